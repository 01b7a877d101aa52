// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: registration, re-registration, fast registration (FRMR), revocation and invalidation. Does not
 * allocate keys (key.c), does not check or copy for packets (mr_access.c), does not bind windows (mw.c).
 */
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>
#include "base/base.h"
#include "mem/mem.h"

static struct roan_mr *mr_of(struct roan_key *k)
{
	return container_of(k, struct roan_mr, key);
}

/* ---- regions ---- */

struct roan_mr *roan_mr_alloc(struct ib_pd *pd, enum roan_mr_kind kind)
{
	struct roan_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->kind = kind;
	/* The RDMA core sets these only after the driver returns, when the key is already visible. */
	mr->ib.device = pd->device;
	mr->ib.pd = pd;
	mr->key.user = roan_pd_user(pd);
	return mr;
}

/* Pinned memory before it is attached to a region, or after it was detached. */
struct pinned_umem {
	struct ib_umem *umem;
	struct page **pages;
	u32 n_pages;
};

static void unpin_umem(struct pinned_umem *pin)
{
	kvfree(pin->pages);
	if (pin->umem)
		ib_umem_release(pin->umem);
	*pin = (struct pinned_umem) {};
}

static bool page_matches_desc(const struct page *page, unsigned long desc)
{
	return region_intersects(page_to_phys(page), PAGE_SIZE, IORESOURCE_MEM, desc) == REGION_INTERSECTS;
}

/* IB_ACCESS_FLUSH_PERSISTENT requires that all pages are persistent memory, of either resource type. */
static bool may_persist(const struct pinned_umem *pin)
{
	u32 i;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		return false;
	for (i = 0; i < pin->n_pages; i++) {
		if (!page_matches_desc(pin->pages[i], IORES_DESC_PERSISTENT_MEMORY) &&
		    !page_matches_desc(pin->pages[i], IORES_DESC_PERSISTENT_MEMORY_LEGACY))
			return false;
		cond_resched();
	}
	return true;
}

/* kvmalloc() refuses more than INT_MAX bytes, with a warning in the kernel log: the list of 1 TiB in pages of 4 KiB. */
static struct page **alloc_page_list(size_t n)
{
	if (n > INT_MAX / sizeof(struct page *))
		return __vmalloc_array(n, sizeof(struct page *), GFP_KERNEL_ACCOUNT);
	return kvmalloc_array(n, sizeof(struct page *), GFP_KERNEL_ACCOUNT);
}

static int pin_umem(struct ib_device *dev, u64 start, u64 length, int access, struct pinned_umem *pin)
{
	struct sg_page_iter iter;
	size_t n;
	int err;

	memset(pin, 0, sizeof(*pin));
	if (!length)	/* nothing to pin: only requests of 0 bytes match such a region, and they access no page */
		return 0;
	pin->umem = roan_umem_get(dev, start, length, access);
	if (IS_ERR(pin->umem)) {
		err = PTR_ERR(pin->umem);
		pin->umem = NULL;
		return err;
	}
	n = ib_umem_num_pages(pin->umem);
	err = -EINVAL;
	if (n > U32_MAX)
		goto err_unpin;
	err = -ENOMEM;
	pin->pages = alloc_page_list(n);
	if (!pin->pages)
		goto err_unpin;
	for_each_sgtable_page(&pin->umem->sgt_append.sgt, &iter, 0) {
		if (WARN_ON_ONCE(pin->n_pages == n))
			break;
		pin->pages[pin->n_pages++] = sg_page_iter_page(&iter);
		cond_resched();	/* a terabyte has 2^28 pages */
	}
	err = -EINVAL;
	if (pin->n_pages != n || (access & IB_ACCESS_FLUSH_PERSISTENT && !may_persist(pin)))
		goto err_unpin;
	return 0;

err_unpin:
	unpin_umem(pin);
	return err;
}

int roan_mr_check_range(u64 start, u64 length, u64 iova)
{
	u64 end;

	/* Neither the end of the user range nor the address of the region's last byte may wrap. */
	if (check_add_overflow(start, length, &end) || (length && check_add_overflow(iova, length - 1, &end)))
		return -EINVAL;
	return 0;
}

static void mr_set_memory(struct roan_mr *mr, const struct pinned_umem *pin, u64 start, u64 length, u64 iova)
{
	mr->umem = pin->umem;
	mr->pages = pin->pages;
	mr->n_pages = pin->n_pages;
	mr->page_off = offset_in_page(start);
	mr->length = length;
	mr->ib.iova = iova;
	mr->ib.length = length;
}

/* Also sets the first address: a zero-based region is addressed by offset. */
static void set_access(struct roan_mr *mr, int access)
{
	mr->access = access;
	mr->iova = roan_mr_first(mr->ib.iova, access);
}

/* Releases the memory by kind. Also for a registration that failed half-way. */
static void mr_release_memory(struct roan_mr *mr)
{
	struct pinned_umem old = { .pages = mr->pages, .n_pages = mr->n_pages };

	switch (mr->kind) {
	case ROAN_MR_USER:
		old.umem = mr->umem;
		break;
	case ROAN_MR_FAST:
		kvfree(mr->pbl);
		kvfree(mr->pbl_next);
		break;
	case ROAN_MR_DMABUF:
		roan_dmabuf_release(mr);
		break;
	case ROAN_MR_DM:
		if (mr->bar_region)
			roan_dm_bar_dereg_mr(mr);
		break;
	case ROAN_MR_PEERMEM:
		roan_peermem_release(mr);
		break;
	case ROAN_MR_ODP:
		roan_odp_destroy(mr->odp);
		break;
	}
	unpin_umem(&old);
}

struct ib_mr *roan_mr_finish(struct roan_mr *mr, int err)
{
	if (!err)
		err = roan_key_insert(to_roan_dev(mr->ib.device), &mr->key);
	roan_mr_trace(mr, err);
	if (err) {
		mr_release_memory(mr);
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ib.lkey = mr->key.key;
	mr->ib.rkey = mr->key.key;
	return &mr->ib;
}

struct ib_mr *roan_get_dma_mr(struct ib_pd *pd, int access)
{
	struct roan_mr *mr = roan_mr_alloc(pd, ROAN_MR_DMA);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->access = access & ~IB_ACCESS_OPTIONAL;
	mr->length = U64_MAX;
	mr->state = ROAN_MR_VALID;
	return roan_mr_finish(mr, 0);
}

struct ib_mr *roan_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata)
{
	struct pinned_umem fresh;
	struct roan_mr *mr;
	int err;

	access &= ~IB_ACCESS_OPTIONAL;
	if (access & IB_ACCESS_ON_DEMAND)
		return roan_odp_reg_mr(pd, start, length, iova, access & ~IB_ACCESS_ON_DEMAND, udata);
	access &= ~IB_ACCESS_HUGETLB;	/* a hint for page faults; pinning needs none */
	if (access & ~ROAN_ACCESS_USER)
		return ERR_PTR(-EOPNOTSUPP);
	err = roan_udata_none(udata) ?: roan_mr_check_range(start, length, iova);
	if (err)
		return ERR_PTR(err);
	mr = roan_mr_alloc(pd, ROAN_MR_USER);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = pin_umem(pd->device, start, length, access, &fresh);
	mr_set_memory(mr, &fresh, start, length, iova);
	set_access(mr, access);
	mr->state = ROAN_MR_VALID;	/* before roan_peermem_claim(): after it the region may be revoked */
	/* Memory that cannot be pinned may belong to a peer-memory client. RLIMIT_MEMLOCK is not about such memory. */
	if (err && !(access & IB_ACCESS_FLUSH_PERSISTENT)) {
		int claimed = roan_peermem_claim(mr, start);

		err = claimed == -EFAULT ? err : claimed;	/* -EFAULT: it is no client's */
	}
	return roan_mr_finish(mr, err);
}

/*
 * Changes PD, access and translation together. Meanwhile the region is not valid and no CPU uses it. On failure the
 * region is unchanged.
 */
struct ib_mr *roan_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 iova, int access,
				 struct ib_pd *pd, struct ib_udata *udata)
{
	struct roan_mr *mr = to_roan_mr(ibmr);
	struct pinned_umem fresh = {};
	int err = roan_udata_none(udata);

	if (err)
		return ERR_PTR(err);
	access = flags & IB_MR_REREG_ACCESS ? access & ~(IB_ACCESS_OPTIONAL | IB_ACCESS_HUGETLB) : mr->access;
	if (flags & ~IB_MR_REREG_SUPPORTED || access & ~ROAN_ACCESS_USER)
		return ERR_PTR(-EOPNOTSUPP);
	if (mr->kind != ROAN_MR_USER)
		return ERR_PTR(-EINVAL);
	if (!(flags & IB_MR_REREG_TRANS)) {
		/*
		 * Memory that was pinned read-only would have to be pinned again for writing. The caller may be another
		 * process than the one that registered it, so the stored address is not enough.
		 */
		if (ib_access_writable(access) && mr->umem && !mr->umem->writable)
			return ERR_PTR(-EOPNOTSUPP);
		if (access & ~mr->access & IB_ACCESS_FLUSH_PERSISTENT)
			return ERR_PTR(-EOPNOTSUPP);
	} else {
		err = roan_mr_check_range(start, length, iova);
		if (!err)
			err = pin_umem(ibmr->device, start, length, access, &fresh);
		if (err)
			return ERR_PTR(err);
	}
	/* 0 -> INT_MIN: no window is bound, and none can be bound meanwhile. */
	if (atomic_cmpxchg(&mr->n_mws, 0, INT_MIN)) {
		unpin_umem(&fresh);
		return ERR_PTR(-EBUSY);
	}
	cmpxchg(&mr->state, ROAN_MR_VALID, ROAN_MR_FREE);
	roan_key_synchronize(&mr->key);
	if (flags & IB_MR_REREG_TRANS) {
		struct pinned_umem old = { mr->umem, mr->pages, mr->n_pages };

		mr_set_memory(mr, &fresh, start, length, iova);
		fresh = old;
	}
	if (flags & IB_MR_REREG_PD)
		WRITE_ONCE(mr->ib.pd, pd);	/* mw.c reads it before it excludes this */
	set_access(mr, access);
	roan_mr_trace(mr, 0);
	smp_store_release(&mr->state, ROAN_MR_VALID);	/* pairs with the acquire in mr_access.c */
	atomic_set_release(&mr->n_mws, 0);	/* a bind that increments it sees the new values */
	unpin_umem(&fresh);	/* the replaced memory, if any */
	return NULL;
}

void roan_mr_begin_revoke(struct roan_mr *mr)
{
	cmpxchg(&mr->state, ROAN_MR_VALID, ROAN_MR_REVOKED);
}

void roan_mr_revoke(struct roan_mr *mr)
{
	roan_mr_begin_revoke(mr);
	synchronize_rcu();
}

int roan_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct roan_mr *mr = to_roan_mr(ibmr);
	int err = roan_udata_none(udata);

	if (err)
		return err;
	/* 0 -> INT_MIN: no window is bound, and none can be bound any more. */
	if (atomic_cmpxchg(&mr->n_mws, 0, INT_MIN))
		return -EBUSY;
	WRITE_ONCE(mr->state, ROAN_MR_DEAD);
	roan_key_remove(to_roan_dev(ibmr->device), &mr->key);
	mr_release_memory(mr);
	kfree_rcu(mr, key.rcu);	/* a lookup may still read mr->key */
	return 0;
}

/* ---- fast registration: kernel consumers ---- */

struct ib_mr *roan_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg)
{
	struct roan_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_sg || max_sg > ROAN_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = roan_mr_alloc(pd, ROAN_MR_FAST);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->max_blocks = max_sg;
	mr->pbl = kvzalloc(struct_size(mr->pbl, block, max_sg), GFP_KERNEL_ACCOUNT);
	mr->pbl_next = kvzalloc(struct_size(mr->pbl_next, block, max_sg), GFP_KERNEL_ACCOUNT);
	spin_lock_init(&mr->map_lock);
	mr->state = ROAN_MR_FREE;
	return roan_mr_finish(mr, mr->pbl && mr->pbl_next ? 0 : -ENOMEM);
}

static int mr_append_block(struct ib_mr *ibmr, u64 addr)
{
	struct roan_mr *mr = to_roan_mr(ibmr);
	struct roan_pbl *list = mr->pbl_next;

	if (list->n == mr->max_blocks)
		return -ENOMEM;
	list->block[list->n++] = (void *)(uintptr_t)addr;
	return 0;
}

/*
 * May run while the region is valid: it fills pbl_next. The LOCAL_INV may be in the same WR chain as the REG_MR.
 * Without the lock, as a list may be long (SMC: 131,072 pages). While next_valid is false, mr_activate() does not use
 * it.
 */
int roan_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int n, unsigned int *offset)
{
	struct roan_mr *mr = to_roan_mr(ibmr);
	unsigned long flags;
	int mapped;

	if (mr->kind != ROAN_MR_FAST || !is_power_of_2(ibmr->page_size))
		return -EINVAL;
	spin_lock_irqsave(&mr->map_lock, flags);
	mr->next_valid = false;
	spin_unlock_irqrestore(&mr->map_lock, flags);
	mr->pbl_next->n = 0;
	mapped = ib_sg_to_pages(ibmr, sg, n, offset, mr_append_block);
	mr->pbl_next->shift = ilog2(ibmr->page_size);
	mr->pbl_next->off = ibmr->iova & (ibmr->page_size - 1);
	mr->pbl_next->length = ibmr->length;
	spin_lock_irqsave(&mr->map_lock, flags);
	mr->next_valid = mapped >= 0;	/* 0: only a part of the first entry was mapped */
	spin_unlock_irqrestore(&mr->map_lock, flags);
	return mapped;
}

/* No CPU reads @mr->pbl: mr_invalidate_key() waited for its readers. So it may become pbl_next and be overwritten. */
static bool mr_activate(struct roan_mr *mr, const struct roan_send_wqe *wqe)
{
	unsigned long flags;
	bool is_free;

	spin_lock_irqsave(&mr->map_lock, flags);
	is_free = mr->state == ROAN_MR_FREE;
	if (is_free) {
		if (mr->next_valid)
			swap(mr->pbl, mr->pbl_next);
		mr->next_valid = false;
		mr->n_pages = mr->pbl->n;
		mr->access = wqe->reg.access & ~IB_ACCESS_OPTIONAL;
		mr->iova = mr->ib.iova;
		mr->length = mr->pbl->length;
		WRITE_ONCE(mr->key.key, wqe->reg.key);
		/* Pairs with the acquire in mr_access.c. No store: roan_dereg_mr() may have made it DEAD meanwhile. */
		is_free = cmpxchg(&mr->state, ROAN_MR_FREE, ROAN_MR_VALID) == ROAN_MR_FREE;
	}
	spin_unlock_irqrestore(&mr->map_lock, flags);
	return is_free;
}

u32 roan_mr_reg(struct roan_qp *qp, const struct roan_send_wqe *wqe)
{
	/* ib_update_fast_reg_key() may have set the new variant already, so look up by index only. */
	struct roan_key *k = roan_key_find_index(qp->dev, wqe->reg.lkey);
	u32 verr = ROAN_VERR_BAD_KEY;
	struct roan_mr *mr;

	if (!k)
		return verr;
	mr = mr_of(k);
	if (k->is_mw || mr->kind != ROAN_MR_FAST || (wqe->reg.key ^ k->key) >> 8)
		goto put;
	verr = ROAN_VERR_BAD_PD;
	if (mr->ib.pd != qp->ib.pd)
		goto put;
	verr = ROAN_VERR_BAD_ACCESS;
	if (wqe->reg.access & ~(ROAN_ACCESS_SUPPORTED | IB_ACCESS_OPTIONAL) ||
	    wqe->reg.access & (IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_PERSISTENT))
		goto put;
	verr = mr_activate(mr, wqe) ? ROAN_VERR_NONE : ROAN_VERR_BAD_KEY;
	if (!verr)
		roan_mr_trace(mr, 0);
put:
	roan_key_put(k);
	return verr;
}

/* ---- invalidation ---- */

/*
 * Frees a fast-registered region. A remote invalidation must name the key under which the region is registered now:
 * since the look-up it may have been registered under another one. A local one frees the region whatever the variant of
 * its key, and succeeds if it is free already: Lustre invalidates by the variant of a REG_MR that was flushed.
 */
static u32 mr_free(struct roan_mr *mr, u32 key, bool remote)
{
	unsigned long flags;
	bool freed = false;

	spin_lock_irqsave(&mr->map_lock, flags);
	if (!remote || mr->key.key == key)
		freed = cmpxchg(&mr->state, ROAN_MR_VALID, ROAN_MR_FREE) == ROAN_MR_VALID;
	spin_unlock_irqrestore(&mr->map_lock, flags);
	return freed || !remote ? ROAN_VERR_NONE : ROAN_VERR_BAD_KEY;
}

/* When this returns 0, no CPU accesses the memory: its owner may free it. */
static u32 mr_invalidate_key(struct roan_qp *qp, u32 key, bool remote)
{
	bool exact = remote || qp->uctx;	/* an index alone would tell a user about the keys of others */
	struct roan_key *k = exact ? roan_key_find(qp->dev, key) : roan_key_find_index(qp->dev, key);
	u32 verr = ROAN_VERR_BAD_KEY;
	struct roan_mr *mr;

	if (!k)
		return verr;
	if (k->is_mw) {
		verr = roan_mw_invalidate(qp, container_of(k, struct roan_mw_binding, key), key);
		goto wait;
	}
	mr = mr_of(k);
	if (mr->kind != ROAN_MR_FAST)
		goto put;
	verr = ROAN_VERR_BAD_PD;
	if (mr->ib.pd != qp->ib.pd)
		goto put;
	verr = mr_free(mr, key, remote);
wait:
	if (!verr)	/* also if the region was free: the CPU that freed it may still be waiting */
		roan_key_synchronize(k);
put:
	roan_key_put(k);
	return verr;
}

u32 roan_key_invalidate_local(struct roan_qp *qp, u32 key)
{
	return mr_invalidate_key(qp, key, false);
}

u32 roan_key_invalidate_remote(struct roan_qp *qp, u32 rkey)
{
	return mr_invalidate_key(qp, rkey, true);
}
