// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paged regions: which pages of a process's address space are present for the data path. No page is pinned:
 * an MMU notifier deletes the entry of a page before the page is unmapped. Does not decide which accesses are allowed
 * (mr_access.c), nor which queue waits for a page (odp_fault.c).
 *
 * The address space is divided into chunks of 2 MiB, allocated on first use, so that an implicit region (the whole
 * address space) costs memory only for the parts in use:
 *
 *	region -> chunks (xarray by address >> 21) -> entry per page: page | WRITABLE; 0: not present
 *
 * Entries are used and deleted under the chunk's lock, so a copy delays the MMU notifier by one page at most.
 */
#include <linux/hmm.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/userfaultfd_k.h>
#include <uapi/linux/magic.h>
#include "base/base.h"
#include "mem/mem.h"
#include "mem/odp_priv.h"

#define CHUNK_SHIFT	21
#define CHUNK_SIZE	BIT_ULL(CHUNK_SHIFT)
#define CHUNK_PAGES	(CHUNK_SIZE >> PAGE_SHIFT)

/* Bit 0 of an entry, which is 0 in the address of a struct page. */
#define WRITABLE	1UL

struct odp_chunk {
	struct mmu_interval_notifier notifier;
	struct roan_odp *odp;
	u64 base;			/* user address of the first byte */
	spinlock_t lock;		/* entries; _bh, leaf */
	unsigned long *entries;		/* CHUNK_PAGES; by itself, as the allocator rounds up to powers of two */
};

/* ---- softirq: access present pages ---- */

static struct page *odp_entry_page(unsigned long entry)
{
	return (struct page *)(entry & ~WRITABLE);
}

/* ROAN_VERR_PENDING unless the page is present for this access. The chunk's lock is held. */
static u32 odp_page_usable(const struct odp_chunk *chunk, u32 i, bool write)
{
	unsigned long entry = chunk->entries[i];

	return entry && (!write || entry & WRITABLE) ? ROAN_VERR_NONE : ROAN_VERR_PENDING;
}

/* Accesses @len bytes at @at, which follow the @done bytes accessed so far. Called under the chunk's lock. */
typedef u32 (*roan_odp_use)(void *at, u32 done, u32 len, void *arg);

static u32 odp_walk_pages(struct roan_odp *odp, u64 pos, u32 len, bool write, roan_odp_use what, void *arg)
{
	u64 va = odp->start + pos;
	u32 verr = ROAN_VERR_NONE;
	u32 done, run;

	if (READ_ONCE(odp->mm_gone) || va >= odp->mm->task_size || len > odp->mm->task_size - va)
		return ROAN_VERR_BAD_RANGE;
	for (done = 0; done < len && !verr; done += run, va += run) {
		struct odp_chunk *chunk = xa_load(&odp->chunks, va >> CHUNK_SHIFT);
		u32 i = (va & (CHUNK_SIZE - 1)) >> PAGE_SHIFT;

		run = min_t(u32, len - done, PAGE_SIZE - offset_in_page(va));
		if (!chunk)
			return ROAN_VERR_PENDING;
		spin_lock_bh(&chunk->lock);
		verr = odp_page_usable(chunk, i, write);
		if (!verr)
			verr = what(page_address(odp_entry_page(chunk->entries[i])) + offset_in_page(va), done, run,
				    arg);
		spin_unlock_bh(&chunk->lock);
	}
	return verr;
}

static u32 odp_copy_out(void *at, u32 done, u32 len, void *to)
{
	memcpy(to + done, at, len);
	return ROAN_VERR_NONE;
}

u32 roan_odp_read(struct roan_odp *odp, u64 pos, void *to, u32 len)
{
	return odp_walk_pages(odp, pos, len, false, odp_copy_out, to);
}

static u32 odp_copy_in(void *at, u32 done, u32 len, void *from)
{
	return roan_payload_write(*(struct roan_payload *)from, done, at, len) ? ROAN_VERR_NONE : ROAN_VERR_BAD_RANGE;
}

u32 roan_odp_write(struct roan_odp *odp, u64 pos, struct roan_payload from, u32 len)
{
	return odp_walk_pages(odp, pos, len, true, odp_copy_in, &from);
}

struct atomic_arg {
	const struct roan_pkt *pkt;
	u64 *orig;
};

static u32 odp_do_atomic(void *at, u32 done, u32 len, void *arg)
{
	const struct atomic_arg *a = arg;

	if (len != sizeof(u64) || !IS_ALIGNED((uintptr_t)at, sizeof(u64)))
		return ROAN_VERR_UNALIGNED;
	*a->orig = roan_atomic_execute(at, a->pkt);
	return ROAN_VERR_NONE;
}

u32 roan_odp_atomic(struct roan_odp *odp, u64 pos, const struct roan_pkt *pkt, u64 *orig)
{
	struct atomic_arg a = { pkt, orig };

	return odp_walk_pages(odp, pos, sizeof(u64), true, odp_do_atomic, &a);
}

/* ---- MMU notifier: invalidate pages ---- */

static void odp_unmap_pages(struct odp_chunk *chunk, u32 from, u32 to)
	__must_hold(&chunk->lock)
{
	memset(&chunk->entries[from], 0, (to - from) * sizeof(*chunk->entries));
}

static void odp_count_invalidation(struct roan_odp *odp)
{
	spin_lock_bh(&odp->lock);
	if (odp->dev)
		roan_count(odp->dev, page_invalidations);
	spin_unlock_bh(&odp->lock);
}

/* The mapping or protection of the range is about to change. When this returns, no CPU accesses its pages. */
static bool odp_invalidate(struct mmu_interval_notifier *notifier, const struct mmu_notifier_range *range,
			   unsigned long seq)
{
	struct odp_chunk *chunk = container_of(notifier, struct odp_chunk, notifier);
	u64 from = max_t(u64, range->start, chunk->base) - chunk->base;
	u64 to = min_t(u64, range->end, chunk->base + CHUNK_SIZE) - chunk->base;

	spin_lock_bh(&chunk->lock);
	mmu_interval_set_seq(notifier, seq);	/* from here on odp_try_pages() installs nothing */
	odp_unmap_pages(chunk, from >> PAGE_SHIFT, PAGE_ALIGN(to) >> PAGE_SHIFT);
	spin_unlock_bh(&chunk->lock);
	odp_count_invalidation(chunk->odp);
	if (mmu_notifier_range_blockable(range))	/* the range may have a million chunks */
		cond_resched();
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = { .invalidate = odp_invalidate };

/* ---- process context: fault pages in ---- */

static void odp_chunk_free(struct odp_chunk *chunk)
{
	kfree(chunk->entries);
	kfree(chunk);
}

static struct odp_chunk *odp_chunk_alloc(struct roan_odp *odp, u64 va)
{
	struct odp_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL_ACCOUNT);

	if (!chunk)
		return NULL;
	chunk->entries = kcalloc(CHUNK_PAGES, sizeof(*chunk->entries), GFP_KERNEL_ACCOUNT);
	if (!chunk->entries) {
		kfree(chunk);
		return NULL;
	}
	chunk->odp = odp;
	chunk->base = va & ~(CHUNK_SIZE - 1);
	spin_lock_init(&chunk->lock);
	return chunk;
}

/* The chunk of @va, allocated if it does not exist. ERR_PTR */
static struct odp_chunk *odp_chunk_at(struct roan_odp *odp, u64 va)
{
	struct odp_chunk *chunk = xa_load(&odp->chunks, va >> CHUNK_SHIFT);
	int err;

	if (chunk)
		return chunk;
	chunk = odp_chunk_alloc(odp, va);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	err = mmu_interval_notifier_insert(&chunk->notifier, odp->mm, chunk->base, CHUNK_SIZE, &notifier_ops);
	if (err)
		goto err_free;
	err = xa_insert(&odp->chunks, va >> CHUNK_SHIFT, chunk, GFP_KERNEL_ACCOUNT);
	if (!err)
		return chunk;
	mmu_interval_notifier_remove(&chunk->notifier);
err_free:
	odp_chunk_free(chunk);
	return err == -EBUSY ? xa_load(&odp->chunks, va >> CHUNK_SHIFT) : ERR_PTR(err);	/* EBUSY: lost a race */
}

/*
 * Packets do not set the dirty bit of a page table, so reclaim could drop a clean page of anonymous or shared memory,
 * with the data that they wrote. Such a page is cleaned by MADV_FREE, or once it is not mapped: the MMU notifier runs
 * before. set_page_dirty() would set the same bit of these pages. No other page is marked: a page of a file is mapped
 * for writing only while it is dirty, after its file system has reserved space for it, which would miss a bit set here.
 */
static void odp_mark_dirty(struct page *page)
{
	struct folio *folio = page_folio(page);

	if ((folio_test_anon(folio) || folio_test_swapbacked(folio)) && !folio_test_dirty(folio))
		folio_set_dirty(folio);
}

/* The sequence of the notifier is fresh, so the pages are still mapped: the notifier waits for the lock. */
static void odp_install(struct odp_chunk *chunk, u64 va, const unsigned long *pfns, u32 n)
	__must_hold(&chunk->lock)
{
	u32 i = (va - chunk->base) >> PAGE_SHIFT;

	for (; n--; pfns++, i++) {
		if (!(*pfns & HMM_PFN_VALID) || *pfns & HMM_PFN_ERROR)
			continue;
		chunk->entries[i] = (unsigned long)hmm_pfn_to_page(*pfns);
		if (*pfns & HMM_PFN_WRITE) {
			chunk->entries[i] |= WRITABLE;
			odp_mark_dirty(hmm_pfn_to_page(*pfns));
		}
	}
}

/*
 * Secret memory is not in the kernel's direct map, and only calls may write to a shadow stack. get_user_pages()
 * refuses all access to the one and writes to the other, hmm_range_fault() does not.
 */
static bool is_protected(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_SHADOW_STACK ||
	       (vma->vm_file && file_inode(vma->vm_file)->i_sb->s_magic == SECRETMEM_MAGIC);
}

static bool any_protected(struct mm_struct *mm, u64 va, u64 end)
{
	struct vm_area_struct *vma;

	mmap_assert_locked(mm);
	for (; va < end; va = vma->vm_end) {
		vma = find_vma_intersection(mm, va, end);
		if (!vma || is_protected(vma))
			return vma;
	}
	return false;
}

/*
 * -ENODEV once no more pages are wanted: the region is destroyed, or its device is being removed. -EFAULT: the process
 * has exited, and another fault that does not end keeps its address space.
 */
static int odp_check_stop(struct roan_odp *odp)
{
	int err;

	if (fatal_signal_pending(current))
		return -EINTR;
	if (!roan_mm_has_process(odp->mm)) {
		WRITE_ONCE(odp->mm_gone, true);
		return -EFAULT;
	}
	spin_lock_bh(&odp->lock);
	err = !odp->dev || READ_ONCE(odp->dev->removing) ? -ENODEV : 0;
	spin_unlock_bh(&odp->lock);
	return err;
}

#define MAX_TRIES	16	/* of a page, and of a range whose pages are taken away meanwhile */

/* True if the page belongs to a file and is in the page cache, up to date and not locked: a fault need not wait. */
static bool odp_page_cached(struct vm_area_struct *vma, u64 va)
{
	struct folio *folio;
	bool cached;

	mmap_assert_locked(vma->vm_mm);
	if (!vma->vm_file)
		return false;
	folio = filemap_get_folio(vma->vm_file->f_mapping, linear_page_index(vma, va));
	if (IS_ERR_OR_NULL(folio))	/* NULL in older kernels */
		return false;
	cached = folio_test_uptodate(folio) && !folio_test_locked(folio);
	folio_put(folio);
	return cached;
}

/*
 * Faults one page in. hmm_range_fault() could, but would keep mmap_lock while it waits for the page, however long that
 * takes. Here the lock is released for most waits, and taken again; the page is tried again then.
 *
 * With FAULT_FLAG_TRIED the kernel waits with the lock held, so only faults of cached pages have it. They need it:
 * reclaim marks pages under writeback with the bit that requests read-ahead, and without the flag filemap_fault()
 * returns VM_FAULT_RETRY for such a page until the writeback ends.
 *
 * Called with mmap_lock held for reading, and returns with it, unless it clears *@locked.
 */
static int odp_fault_page(struct roan_odp *odp, u64 va, bool write, bool *locked)
{
	unsigned int flags = FAULT_FLAG_REMOTE | FAULT_FLAG_ALLOW_RETRY | FAULT_FLAG_KILLABLE |
			     (write ? FAULT_FLAG_WRITE : 0);
	unsigned long rights = VM_READ | (write ? VM_WRITE : 0);
	struct vm_area_struct *vma;
	bool armed = false;
	vm_fault_t ret;
	u32 tries;
	int err;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		err = odp_check_stop(odp);
		if (err)
			return err;
		vma = vma_lookup(odp->mm, va);
		if (!vma || (vma->vm_flags & rights) != rights || vma->vm_flags & (VM_IO | VM_PFNMAP) ||
		    is_protected(vma))
			return -EFAULT;
		armed = userfaultfd_armed(vma);
		if (tries && odp_page_cached(vma, va))
			ret = handle_mm_fault(vma, va, flags | FAULT_FLAG_TRIED, NULL);
		else
			ret = handle_mm_fault(vma, va, flags, NULL);
		if (ret & VM_FAULT_ERROR)
			return ret & VM_FAULT_OOM ? -ENOMEM : -EFAULT;
		if (!(ret & (VM_FAULT_RETRY | VM_FAULT_COMPLETED)))
			return 0;
		*locked = !mmap_read_lock_killable(odp->mm);	/* both results: the lock was released */
		if (!*locked)
			return -EINTR;
		if (ret & VM_FAULT_COMPLETED)
			return 0;
	}
	/* Without FAULT_FLAG_TRIED an I/O error is VM_FAULT_RETRY, too. A userfaultfd() may wake without a page. */
	return armed ? -EBUSY : -EFAULT;
}

static bool pfn_usable(unsigned long pfn, enum roan_odp_access want)
{
	return want == ROAN_ODP_PRESENT || (pfn & HMM_PFN_VALID && (want == ROAN_ODP_READ || pfn & HMM_PFN_WRITE));
}

/* Faults in the pages of [@va, @end) that @pfns lacks. Returns their number or an error; mmap_lock: as above. */
static int odp_fault_missing(struct roan_odp *odp, u64 va, u64 end, enum roan_odp_access want,
			     const unsigned long *pfns, bool *locked)
{
	int err, n = 0;

	for (; va < end; va += PAGE_SIZE, pfns++) {
		if (pfn_usable(*pfns, want))
			continue;
		if (*pfns & HMM_PFN_ERROR)
			return -EFAULT;
		err = odp_fault_page(odp, va, want == ROAN_ODP_WRITE, locked);
		if (err)
			return err;
		n++;
	}
	return n;
}

/* One pass: 0 if all pages were present and are installed, or the number of pages faulted in, or an error. */
static int odp_try_pages(struct odp_chunk *chunk, u64 va, u64 end, enum roan_odp_access want, unsigned long *pfns)
{
	struct mm_struct *mm = chunk->odp->mm;
	struct hmm_range range = {
		.notifier = &chunk->notifier,
		.start = va,
		.end = end,
		.hmm_pfns = pfns,	/* no flags: takes what is present, waits for nothing */
	};
	bool locked, fresh;
	int err;

	range.notifier_seq = mmu_interval_read_begin(&chunk->notifier);
	locked = !mmap_read_lock_killable(mm);
	if (!locked)
		return -EINTR;
	err = any_protected(mm, va, end) ? -EFAULT : hmm_range_fault(&range);
	if (!err)
		err = odp_fault_missing(chunk->odp, va, end, want, pfns, &locked);
	if (locked)
		mmap_read_unlock(mm);
	if (err)
		return err;
	spin_lock_bh(&chunk->lock);
	fresh = !mmu_interval_read_retry(&chunk->notifier, range.notifier_seq);
	if (fresh && READ_ONCE(chunk->odp->dev))
		odp_install(chunk, va, pfns, (end - va) >> PAGE_SHIFT);
	spin_unlock_bh(&chunk->lock);
	return fresh ? 0 : -EBUSY;
}

/* [@va, @end) lies in the chunk; @pfns has space for its pages. */
static int odp_fault_pages(struct odp_chunk *chunk, u64 va, u64 end, enum roan_odp_access want, unsigned long *pfns)
{
	int err = -EBUSY;
	u32 tries;

	for (tries = 0; tries < MAX_TRIES && (err > 0 || err == -EBUSY); tries++)
		err = odp_check_stop(chunk->odp) ?: odp_try_pages(chunk, va, end, want, pfns);
	return err > 0 ? -EBUSY : err;
}

/* -EFAULT: nothing is mapped in the range. */
static int odp_check_mapped(struct mm_struct *mm, u64 va, u64 end)
{
	bool any;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	any = find_vma_intersection(mm, va, end);
	mmap_read_unlock(mm);
	return any ? 0 : -EFAULT;
}

static int odp_fault_range(struct roan_odp *odp, u64 va, u64 end, enum roan_odp_access want, unsigned long *pfns)
{
	u64 stop;
	int err;

	for (; va < end; va = stop) {
		struct odp_chunk *chunk;

		stop = min(end, (va & ~(CHUNK_SIZE - 1)) + CHUNK_SIZE);
		err = odp_check_stop(odp) ?: odp_check_mapped(odp->mm, va, stop);
		if (err == -EFAULT && want == ROAN_ODP_PRESENT) {	/* allocate no chunk for it */
			cond_resched();
			continue;
		}
		if (err)
			return err;
		chunk = odp_chunk_at(odp, va);
		if (IS_ERR(chunk))
			return PTR_ERR(chunk);
		err = odp_fault_pages(chunk, va, stop, want, pfns);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

int roan_odp_fault_in(struct roan_odp *odp, u64 pos, u64 len, enum roan_odp_access want)
{
	u64 va = (odp->start + pos) & PAGE_MASK;
	u64 end = PAGE_ALIGN(odp->start + pos + len);
	struct roan_memcg_scope scope;
	unsigned long *pfns;
	int err;

	if (va >= odp->mm->task_size || len > odp->mm->task_size - va)
		return -EFAULT;
	if (!mmget_not_zero(odp->mm)) {
		WRITE_ONCE(odp->mm_gone, true);	/* the process has exited */
		return -EFAULT;
	}
	roan_memcg_enter(&scope, odp->mm);	/* charge the process, not the worker */
	pfns = kvmalloc_array(CHUNK_PAGES, sizeof(*pfns), GFP_KERNEL);
	err = pfns ? odp_fault_range(odp, va, end, want, pfns) : -ENOMEM;
	kvfree(pfns);
	roan_memcg_leave(&scope);
	mmput(odp->mm);
	return err;
}

/* ---- registration and destruction ---- */

static struct roan_odp *odp_create(const struct ib_pd *pd, u64 start, u64 length)
{
	struct roan_odp *odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);

	if (!odp)
		return NULL;
	odp->user = roan_pd_user_get(pd);
	if (!odp->user) {
		kfree(odp);
		return NULL;
	}
	refcount_set(&odp->refs, 1);
	spin_lock_init(&odp->lock);
	INIT_LIST_HEAD(&odp->faults);
	odp->dev = to_roan_dev(pd->device);
	odp->start = start;
	odp->length = length;
	odp->mm = current->mm;
	mmgrab(odp->mm);
	xa_init_flags(&odp->chunks, XA_FLAGS_ACCOUNT);
	return odp;
}

static void odp_unmap_all(struct roan_odp *odp)
{
	struct odp_chunk *chunk;
	unsigned long i;

	xa_for_each(&odp->chunks, i, chunk) {
		spin_lock_bh(&chunk->lock);
		odp_unmap_pages(chunk, 0, CHUNK_PAGES);
		spin_unlock_bh(&chunk->lock);
		cond_resched();
	}
}

void roan_odp_put(struct roan_odp *odp)
{
	struct odp_chunk *chunk;
	unsigned long i;

	if (!refcount_dec_and_test(&odp->refs))
		return;
	xa_for_each(&odp->chunks, i, chunk) {
		mmu_interval_notifier_remove(&chunk->notifier);
		odp_chunk_free(chunk);
		cond_resched();
	}
	xa_destroy(&odp->chunks);
	mmdrop(odp->mm);
	roan_user_put(odp->user);
	kfree(odp);
}

void roan_odp_destroy(struct roan_odp *odp)
{
	if (!odp)
		return;
	spin_lock_bh(&odp->lock);
	WRITE_ONCE(odp->dev, NULL);
	spin_unlock_bh(&odp->lock);
	roan_odp_cancel_region(odp);
	odp_unmap_all(odp);	/* takes each chunk's lock: odp_try_pages() has installed before, or sees @dev NULL */
	roan_odp_put(odp);
}

static int odp_check_range(u64 start, u64 length, u64 iova, int access)
{
	bool all = !start && length == U64_MAX;

	if (access & ~(ROAN_ACCESS_USER | IB_ACCESS_HUGETLB))
		return -EOPNOTSUPP;
	if (access & IB_ACCESS_FLUSH_PERSISTENT)
		return -EINVAL;		/* persistence cannot be checked for pages that change */
	if (all)
		return iova ? -EINVAL : 0;
	return roan_mr_check_range(start, length, iova);
}

struct ib_mr *roan_odp_reg_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata)
{
	struct roan_mr *mr;
	int err;

	err = roan_udata_none(udata) ?: odp_check_range(start, length, iova, access);
	if (err)
		return ERR_PTR(err);
	mr = roan_mr_alloc(pd, ROAN_MR_ODP);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ib.iova = iova;	/* for roan_mr_trace() */
	mr->ib.length = length;
	mr->iova = roan_mr_first(iova, access);
	mr->length = length;
	mr->access = access & ~IB_ACCESS_HUGETLB;
	mr->odp = odp_create(pd, start, length);
	mr->state = ROAN_MR_VALID;
	return roan_mr_finish(mr, mr->odp ? 0 : -ENOMEM);
}
