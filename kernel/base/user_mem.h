/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that a program maps: rings and device memory. Charged to RLIMIT_MEMLOCK of the process that allocates it and
 * to its memory cgroup. Process context.
 */
#ifndef ROAN_USER_MEM_H
#define ROAN_USER_MEM_H

#include <rdma/ib_verbs.h>
#include "base/mem_charge.h"

/* Freeing the last reference to @entry frees the memory, or, if pages are still mapped, as soon as none is. */
struct roan_mmap {
	struct rdma_user_mmap_entry entry;
	void *buf;
	struct page **pages;		/* of @buf, which owns the array */
	u32 n_pages;
	u32 seen;		/* the page that was found mapped last; where the next search starts */
	atomic64_t *used;	/* bytes, of the owner; subtracted on free. NULL: none. Once retained: retained_lock */
	struct roan_mem_charge charge;
	struct list_head retained_link;
};

/*
 * Zeroed memory for the calling program. @size: a multiple of PAGE_SIZE. ERR_PTR: -ENOMEM, or an error of
 * roan_mem_charge(). Undo with rdma_user_mmap_entry_remove().
 */
struct roan_mmap *roan_user_mem_alloc(size_t size, struct ib_ucontext *uctx);

/* ops.mmap and ops.mmap_free */
int roan_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void roan_mmap_free(struct rdma_user_mmap_entry *entry);

/* Frees memory whose mapping was removed, and that was kept for it. True: some is still mapped. Process context. */
bool roan_user_mem_free_unmapped(void);
void roan_user_mem_forget(atomic64_t *used);	/* @used goes away; memory that it counts may still be mapped */
void roan_user_mem_exit(void);	/* no device is left */

#endif /* ROAN_USER_MEM_H */
