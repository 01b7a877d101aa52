// SPDX-License-Identifier: GPL-2.0
/*
 * Copies between packets and registered memory, and the checks before each copy: key, PD, access rights, range. Does
 * not know what the bytes mean, and does not decide what an error or a page fault does to the QP: the callers in rx/
 * and tx/ do.
 */
#include <linux/libnvdimm.h>
#include "base/base.h"
#include "mem/mem.h"

/* A checked range of a region. Valid while its key is held. */
struct mr_range {
	struct roan_mr *mr;	/* NULL: kernel virtual address @va */
	u64 off;		/* bytes from the region's first byte */
	u64 va;
	bool response;		/* roan_sge_list.response */
};

/* ---- checks ---- */

static u32 check_bounds(u64 base, u64 length, u64 va, u64 len)
{
	u64 off = va - base;

	if (va < base || off > length || len > length - off)
		return ROAN_VERR_BAD_RANGE;
	return ROAN_VERR_NONE;
}

/*
 * The length of a consumer's region of all memory is no limit: an address at which there is no memory at all, from a
 * peer with its R_Key (IB_PD_UNSAFE_GLOBAL_RKEY), is an error. Memory that the kernel keeps unmapped or read-only is
 * not found here: such a key is for peers that are trusted. Each packet is checked: first and last byte suffice.
 */
static u32 check_memory(const struct roan_mr *mr, u64 va, u64 len)
{
	if (likely(mr->kind != ROAN_MR_DMA) || !len)
		return ROAN_VERR_NONE;
	if (virt_addr_valid((void *)(uintptr_t)va) && virt_addr_valid((void *)(uintptr_t)(va + len - 1)))
		return ROAN_VERR_NONE;
	return ROAN_VERR_BAD_RANGE;
}

static u32 check_mr_state(const struct roan_mr *mr)
{
	/* Pairs with the release in mr.c: the fields that describe the region were written before it became valid. */
	u8 state = smp_load_acquire(&mr->state);

	if (likely(state == ROAN_MR_VALID))
		return ROAN_VERR_NONE;
	return state == ROAN_MR_REVOKED ? ROAN_VERR_REVOKED : ROAN_VERR_BAD_KEY;
}

/*
 * REG_MR and a bind give an existing region or window a new key value, possibly after the lookup. So compare again,
 * once the region is known to be valid, or under the window's lock.
 */
static u32 check_key(const struct roan_key *k, u32 key)
{
	return likely(READ_ONCE(k->key) == key) ? ROAN_VERR_NONE : ROAN_VERR_BAD_KEY;
}

static u32 check_mr(const struct ib_pd *pd, const struct roan_mr *mr, u32 key, u32 access)
{
	u32 verr = check_mr_state(mr);

	if (mr->ib.pd != pd)		/* before REVOKED, which would tell that the key exists */
		return ROAN_VERR_BAD_PD;
	verr = verr ?: check_key(&mr->key, key);
	if (verr)
		return verr;
	if (access & ~mr->access)
		return ROAN_VERR_BAD_ACCESS;
	return ROAN_VERR_NONE;
}

static u32 check_mw(const struct roan_qp *qp, const struct roan_mw_binding *win, u32 key, u64 va, u64 len, u32 access)
{
	if (check_key(&win->key, key) || !win->valid || (win->type == IB_MW_TYPE_2 && win->qpn != qp->ib.qp_num))
		return ROAN_VERR_BAD_KEY;
	if (win->pd != qp->ib.pd)
		return ROAN_VERR_BAD_PD;
	if (access & ~win->access)
		return ROAN_VERR_BAD_ACCESS;
	return check_mr_state(win->mr) ?: check_bounds(win->addr, win->length, va, len);
}

static u32 range_from_mw(const struct roan_qp *qp, struct roan_mw_binding *win, u32 key, u64 va, u64 len, u32 access,
			 struct mr_range *range)
{
	u32 verr;

	spin_lock_bh(&win->lock);
	verr = check_mw(qp, win, key, va, len, access);
	if (!verr) {
		*range = (struct mr_range) { .mr = win->mr, .off = win->mr_off + (va - win->addr), .va = va };
		/*
		 * Before the window's lock is dropped: afterwards the window may be unbound and the region destroyed.
		 */
		roan_key_acquire_mr(&win->mr->key);
	}
	spin_unlock_bh(&win->lock);
	return verr;
}

static u32 range_from_mr(const struct ib_pd *pd, struct roan_mr *mr, u32 key, u64 va, u64 len, u32 access,
			 struct mr_range *range)
{
	u32 verr = check_mr(pd, mr, key, access) ?: check_bounds(mr->iova, mr->length, va, len) ?:
		   check_memory(mr, va, len);

	if (!verr)
		*range = (struct mr_range) { .mr = mr, .off = va - mr->iova, .va = va };
	return verr;
}

/* On success the key is held and the caller calls roan_key_release(); on error the key has been released. */
static u32 range_from_rkey(const struct roan_qp *qp, u32 rkey, u64 va, u64 len, u32 access, struct mr_range *range)
{
	struct roan_key *k;
	u32 verr;

	if (access & ROAN_ACCESS_REMOTE & ~qp->access)
		return ROAN_VERR_BAD_ACCESS;
	k = roan_key_acquire(qp->dev, rkey);
	if (!k)
		return ROAN_VERR_BAD_KEY;
	if (k->is_mw)
		verr = range_from_mw(qp, container_of(k, struct roan_mw_binding, key), rkey, va, len, access, range);
	else
		verr = range_from_mr(qp->ib.pd, container_of(k, struct roan_mr, key), rkey, va, len, access, range);
	if (verr)
		roan_key_release();
	return verr;
}

/* The whole region, for any address and length of the request. A window never has the access rights that need this. */
static u32 range_whole_mr(const struct roan_qp *qp, u32 rkey, u32 access, struct mr_range *range)
{
	struct roan_key *k = roan_key_acquire(qp->dev, rkey);
	u32 verr;

	if (!k)
		return ROAN_VERR_BAD_KEY;
	*range = (struct mr_range) { .mr = container_of(k, struct roan_mr, key) };
	verr = k->is_mw ? ROAN_VERR_BAD_ACCESS : check_mr(qp->ib.pd, range->mr, rkey, access);
	if (verr)
		roan_key_release();
	return verr;
}

static u32 range_from_lkey(const struct roan_qp *qp, const struct ib_pd *pd, u32 lkey, u64 va, u64 len, u32 access,
			   struct mr_range *range)
{
	u32 verr = ROAN_VERR_BAD_KEY;
	struct roan_key *k;

	*range = (struct mr_range) { .va = va };
	if (!lkey && !qp->user)		/* local_dma_lkey: kernel virtual addresses, kernel consumers only */
		return ROAN_VERR_NONE;
	k = roan_key_acquire(qp->dev, lkey);
	if (!k)
		return verr;
	if (!k->is_mw)
		verr = range_from_mr(pd, container_of(k, struct roan_mr, key), lkey, va, len, access, range);
	if (verr)
		roan_key_release();
	return verr;
}

/* ---- copies ---- */

/* Memory that needs the functions of iomem.c or odp.c. */
static bool range_is_indirect(const struct mr_range *range)
{
	return unlikely(range->mr && (range->mr->io || range->mr->odp));
}

/* Queues a page fault if a page is not present; @qp resumes when it is resolved or has failed. */
static u32 range_fault(struct roan_qp *qp, const struct mr_range *range, u32 len, bool write, u32 verr)
{
	if (verr == ROAN_VERR_PENDING)
		return roan_odp_request_fault(range->mr, qp, range->off, len, write, range->response);
	if (!verr && unlikely(!list_empty(&qp->faults->list)))
		roan_odp_fault_done(range->mr, qp, range->off, len, write);
	return verr;
}

static u32 indirect_read(struct roan_qp *qp, const struct mr_range *range, void *to, u32 len)
{
	if (range->mr->odp)
		return range_fault(qp, range, len, false, roan_odp_read(range->mr->odp, range->off, to, len));
	roan_iomem_read(range->mr->io, range->off, to, len);
	return ROAN_VERR_NONE;
}

static u32 indirect_write(struct roan_qp *qp, const struct mr_range *range, struct roan_payload from, u32 len)
{
	if (range->mr->odp)
		return range_fault(qp, range, len, true, roan_odp_write(range->mr->odp, range->off, from, len));
	return roan_iomem_write(range->mr->io, range->off, from, len);
}

static u32 indirect_atomic(struct roan_qp *qp, const struct mr_range *range, const struct roan_pkt *pkt, u64 *orig)
{
	if (range->mr->odp)
		return range_fault(qp, range, sizeof(u64), true,
				   roan_odp_atomic(range->mr->odp, range->off, pkt, orig));
	return roan_iomem_atomic(range->mr->io, range->off, pkt, orig);
}

static void *pbl_addr_at(const struct roan_pbl *list, u64 pos, u32 len, u32 *run)
{
	u32 size = 1u << list->shift, in_block;

	pos += list->off;
	in_block = pos & (size - 1);
	*run = min(len, size - in_block);
	return list->block[pos >> list->shift] + in_block;
}

/*
 * Kernel address of byte @off of @range; *@run: contiguous bytes from there, at most @len. Not if range_is_indirect().
 */
static void *range_addr_at(const struct mr_range *range, u64 off, u32 len, u32 *run)
{
	const struct roan_mr *mr = range->mr;
	u64 pos;
	u32 i, in_page;

	*run = len;
	if (!mr)
		return (void *)(uintptr_t)(range->va + off);
	if (!mr->pages)
		return mr->pbl ? pbl_addr_at(mr->pbl, range->off + off, len, run) : mr->vaddr +
			(uintptr_t)(range->off + off);
	pos = mr->page_off + range->off + off;
	i = pos >> PAGE_SHIFT;
	in_page = offset_in_page(pos);
	*run = min_t(u32, len, PAGE_SIZE - in_page);
	return page_address(mr->pages[i]) + in_page;
}

static u32 range_copy_out(struct roan_qp *qp, const struct mr_range *range, void *to, u32 len, struct roan_icrc *icrc)
{
	u64 off = 0;
	u32 run, verr;

	if (range_is_indirect(range)) {
		verr = indirect_read(qp, range, to, len);
		if (!verr && icrc)
			roan_icrc_add(icrc, to, len);
		return verr;
	}
	for (; len; len -= run, off += run, to += run) {
		const void *from = range_addr_at(range, off, len, &run);

		roan_icrc_copy(icrc, to, from, run);
	}
	return ROAN_VERR_NONE;
}

/*
 * The bytes of one packet become visible to every CPU before those of a later packet, of the same message or of the
 * next. So a program may poll memory for a flag that the peer writes after the data. The smp_wmb() pairs with the
 * acquire, or the read barrier, between the program's load of the flag and its loads of the data. The queue lock
 * orders packets, but it is held over a whole train, and its release comes after the last packet. Another CPU that
 * takes the lock for the next train orders that train behind this one. A completion does not need this barrier: its
 * index is stored with release. Atomics are ordered by themselves. payload.c: the order of the bytes of one packet.
 */
static u32 range_copy_in(struct roan_qp *qp, const struct mr_range *range, struct roan_payload from, u32 len)
{
	u64 off = 0;
	u32 run;

	smp_wmb();	/* pairs as the comment above says */
	if (range_is_indirect(range))
		return indirect_write(qp, range, from, len);
	for (; len; len -= run, off += run) {
		void *to = range_addr_at(range, off, len, &run);

		if (!roan_payload_write(from, off, to, run))
			return ROAN_VERR_BAD_RANGE;	/* cannot happen: the parser checked the length */
	}
	return ROAN_VERR_NONE;
}

/* ---- scatter lists ---- */

/* Position in a scatter/gather list. */
struct sge_cursor {
	const struct roan_sge *sge;
	const struct ib_pd *pd;
	u32 left;		/* entries from @sge on */
	u32 skip;		/* byte offset in *sge */
	bool response;
};

static bool cursor_start(struct sge_cursor *c, struct roan_sge_list list, u32 offset)
{
	*c = (struct sge_cursor) {
		.sge = list.sge, .pd = list.pd, .left = list.n, .skip = offset, .response = list.response,
	};
	while (c->left && c->skip >= c->sge->length) {
		c->skip -= c->sge->length;
		c->sge++;
		c->left--;
	}
	return c->left;
}

/* Checks the next piece, *@piece bytes, at most @len, and advances. On success the piece's key is held. */
static u32 cursor_range(struct sge_cursor *c, const struct roan_qp *qp, u32 len, u32 access, struct mr_range *range,
			u32 *piece)
{
	u32 verr;
	u64 va;

	while (c->left && c->skip == c->sge->length) {
		c->skip = 0;
		c->sge++;
		c->left--;
	}
	if (!c->left)
		return ROAN_VERR_TOO_LONG;
	*piece = min(len, c->sge->length - c->skip);
	if (check_add_overflow(c->sge->addr, (u64)c->skip, &va))
		return ROAN_VERR_BAD_RANGE;
	verr = range_from_lkey(qp, c->pd, c->sge->lkey, va, *piece, access, range);
	range->response = c->response;
	c->skip += *piece;
	return verr;
}

/* Checks all pieces before the first write, so that nothing is written unless all of it is allowed. */
static u32 check_sges(const struct roan_qp *qp, struct roan_sge_list list, u32 offset, u32 len, u32 access)
{
	struct mr_range range;
	struct sge_cursor c;
	u32 piece, verr;

	if (!cursor_start(&c, list, offset))
		return ROAN_VERR_TOO_LONG;
	if (len <= c.sge->length - c.skip)
		return ROAN_VERR_NONE;		/* one piece: roan_scatter() checks it before it writes */
	for (; len; len -= piece) {
		verr = cursor_range(&c, qp, len, access, &range, &piece);
		if (verr)
			return verr;
		roan_key_release();
	}
	return ROAN_VERR_NONE;
}

u32 roan_gather(struct roan_qp *qp, struct roan_sge_list list, u32 offset, void *to, u32 len, struct roan_icrc *icrc)
{
	struct mr_range range;
	struct sge_cursor c;
	u32 piece, verr;

	cursor_start(&c, list, offset);
	for (; len; len -= piece, to += piece) {
		verr = cursor_range(&c, qp, len, 0, &range, &piece);
		if (verr)
			return verr;
		verr = range_copy_out(qp, &range, to, piece, icrc);
		roan_key_release();
		if (verr)
			return verr;
	}
	return ROAN_VERR_NONE;
}

u32 roan_scatter(struct roan_qp *qp, struct roan_sge_list list, u32 offset, struct roan_payload from, u32 len)
{
	struct mr_range range;
	struct sge_cursor c;
	u32 piece, verr;

	if (!len)
		return ROAN_VERR_NONE;
	verr = check_sges(qp, list, offset, len, IB_ACCESS_LOCAL_WRITE);
	if (verr)
		return verr;
	cursor_start(&c, list, offset);
	for (; len && !verr; len -= piece, from = roan_payload_skip(from, piece)) {
		verr = cursor_range(&c, qp, len, IB_ACCESS_LOCAL_WRITE, &range, &piece);
		if (verr)
			return verr;
		verr = range_copy_in(qp, &range, from, piece);
		roan_key_release();
	}
	return verr;
}

/* ---- the peer's requests ---- */

u32 roan_remote_check(struct roan_qp *qp, u32 rkey, u64 va, u64 len, u32 access)
{
	struct mr_range range;
	u32 verr;

	/* For a length of 0 only the QP's access rights are checked, not the key (9.7.4.1.5). */
	if (!len)
		return access & ROAN_ACCESS_REMOTE & ~qp->access ? ROAN_VERR_BAD_ACCESS : ROAN_VERR_NONE;
	verr = range_from_rkey(qp, rkey, va, len, access, &range);
	if (!verr)
		roan_key_release();
	return verr;
}

u32 roan_remote_write(struct roan_qp *qp, u32 rkey, u64 va, struct roan_payload from, u32 len)
{
	struct mr_range range;
	u32 verr;

	if (!len)
		return ROAN_VERR_NONE;
	verr = range_from_rkey(qp, rkey, va, len, IB_ACCESS_REMOTE_WRITE, &range);
	if (verr)
		return verr;
	verr = range_copy_in(qp, &range, from, len);
	roan_key_release();
	return verr;
}

u32 roan_remote_read(struct roan_qp *qp, u32 rkey, u64 va, void *to, u32 len, struct roan_icrc *icrc)
{
	struct mr_range range;
	u32 verr;

	if (!len)
		return ROAN_VERR_NONE;
	verr = range_from_rkey(qp, rkey, va, len, IB_ACCESS_REMOTE_READ, &range);
	if (verr)
		return verr;
	verr = range_copy_out(qp, &range, to, len, icrc);
	roan_key_release();
	return verr;
}

/* The 8-byte word of @range for CPU atomics, so that remote atomics are atomic with local ones. NULL: not aligned. */
static u64 *range_word_at(const struct mr_range *range)
{
	u32 run;
	u64 *word = range_addr_at(range, 0, sizeof(u64), &run);

	/* The address in the request may be aligned and the memory not. */
	return run == sizeof(u64) && IS_ALIGNED((uintptr_t)word, sizeof(u64)) ? word : NULL;
}

u64 roan_atomic_execute(u64 *word, const struct roan_pkt *pkt)
{
	switch (pkt->info->op) {
	case ROAN_OP_ATOMIC_WRITE:
		smp_store_release(word, pkt->swap_add);		/* the bytes of earlier packets are visible before it */
		return 0;
	case ROAN_OP_CMP_SWAP:
		return cmpxchg64(word, pkt->compare, pkt->swap_add);
	default:
		return atomic64_fetch_add(pkt->swap_add, (atomic64_t *)word);
	}
}

static u32 range_atomic(struct roan_qp *qp, const struct mr_range *range, const struct roan_pkt *pkt, u64 *orig)
{
	u64 *word;

	if (range_is_indirect(range))
		return indirect_atomic(qp, range, pkt, orig);
	word = range_word_at(range);
	if (!word)
		return ROAN_VERR_UNALIGNED;
	*orig = roan_atomic_execute(word, pkt);
	return ROAN_VERR_NONE;
}

u32 roan_remote_atomic(struct roan_qp *qp, const struct roan_pkt *pkt, u64 *orig)
{
	u32 access = pkt->info->op == ROAN_OP_ATOMIC_WRITE ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_ATOMIC;
	struct mr_range range;
	u32 verr = range_from_rkey(qp, pkt->rkey, pkt->va, sizeof(u64), access, &range);

	if (verr)
		return verr;
	verr = range_atomic(qp, &range, pkt, orig);
	roan_key_release();
	return verr;
}

static u32 flush_access(const struct roan_pkt *pkt)
{
	return (pkt->flush_type & ROAN_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0) |
	       (pkt->flush_type & ROAN_FLUSH_PERSISTENT ? IB_ACCESS_FLUSH_PERSISTENT : 0);
}

/* The memory is persistent: mr.c grants IB_ACCESS_FLUSH_PERSISTENT to no other. */
static void range_write_back(const struct mr_range *range, u32 len)
{
#ifdef CONFIG_ARCH_HAS_PMEM_API
	u32 pos, run;

	for (pos = 0; pos < len; pos += run) {
		void *from = range_addr_at(range, pos, len - pos, &run);

		arch_wb_cache_pmem(from, run);
	}
	wmb();		/* wait until the write-backs are complete */
#endif
}

u32 roan_mr_write_back(struct roan_qp *qp, u32 rkey, u64 off, u32 len)
{
	struct mr_range range;
	u32 verr = range_whole_mr(qp, rkey, IB_ACCESS_FLUSH_PERSISTENT, &range);

	if (verr)
		return verr;
	range.off = off;
	verr = range.mr->kind == ROAN_MR_USER ? check_bounds(0, range.mr->length, off, len) : ROAN_VERR_BAD_ACCESS;
	if (!verr)
		range_write_back(&range, len);
	roan_key_release();
	return verr;
}

static u32 range_persist(struct roan_qp *qp, u32 rkey, const struct mr_range *range, u64 len)
{
	if (len > ROAN_WRITE_BACK_MAX)
		return roan_flush_job_start(qp, rkey, range->off, len);
	range_write_back(range, len);
	return ROAN_VERR_NONE;
}

/* Global visibility needs only a memory barrier, because CPUs write the data and caches are coherent. */
u32 roan_remote_flush(struct roan_qp *qp, const struct roan_pkt *pkt)
{
	u64 len = pkt->dma_len;
	struct mr_range range;
	u32 verr;

	if (!pkt->flush_type || pkt->flush_type & ~(ROAN_FLUSH_GLOBAL | ROAN_FLUSH_PERSISTENT) ||
	    pkt->flush_level > ROAN_FLUSH_MR || flush_access(pkt) & ~qp->access)
		return ROAN_VERR_BAD_ACCESS;
	if (pkt->flush_level == ROAN_FLUSH_MR)
		verr = range_whole_mr(qp, pkt->rkey, flush_access(pkt), &range);
	else
		verr = range_from_rkey(qp, pkt->rkey, pkt->va, len, flush_access(pkt), &range);
	if (verr)
		return verr;
	if (pkt->flush_level == ROAN_FLUSH_MR)
		len = range.mr->length;
	if (pkt->flush_type & ROAN_FLUSH_PERSISTENT && range.mr->kind == ROAN_MR_USER)
		verr = range_persist(qp, pkt->rkey, &range, len);
	if (range.mr->io && len) {
		u8 byte;

		roan_iomem_read(range.mr->io, range.off, &byte, 1);	/* flushes posted writes on the bus */
	}
	smp_mb();	/* data written for earlier requests, by any CPU, is visible before the FLUSH response */
	roan_key_release();
	return verr;
}
