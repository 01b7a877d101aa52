/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by odp.c, which maps the pages of a region, odp_fault.c, which queues page faults to a worker, and
 * odp_advise.c, which prefetches.
 */
#ifndef ROAN_ODP_PRIV_H
#define ROAN_ODP_PRIV_H

#include <linux/xarray.h>
#include "mem/mem.h"

/*
 * A worker that runs a fault has a reference, not the region's key: the region can be destroyed, and its device too,
 * while the fault lasts.
 */
struct roan_odp {
	refcount_t refs;		/* 1 until the region is destroyed, plus one per running fault */
	spinlock_t lock;		/* use of @dev; _bh, leaf */
	struct roan_dev *dev;		/* NULL: the region is destroyed, no page may be installed */
	struct roan_user *user;		/* referenced */
	struct list_head faults;	/* of QPs; odp_fault.c: odp_fault.on_region, @user->odp.lock */
	struct mm_struct *mm;		/* referenced by mmgrab() */
	u64 start;			/* user address of the region's first byte */
	u64 length;			/* bytes */
	struct xarray chunks;		/* odp.c; an entry stays until the last reference is dropped */
	bool mm_gone;			/* the process has exited. READ/WRITE_ONCE */
};

enum roan_odp_access {
	ROAN_ODP_PRESENT,	/* map only present pages, without faulting */
	ROAN_ODP_READ,
	ROAN_ODP_WRITE,
};

/*
 * Makes [@pos, @pos + @len) of the region accessible until the MMU notifier invalidates it. -ENOMEM and -EBUSY:
 * transient, retry; -EINTR: the caller is being killed; -ENODEV: the region is destroyed, or its device is being
 * removed; any other error: a part of the range does not allow this access. Process context. Sleeps as long as the
 * memory's owner lets it: a page of FUSE or userfaultfd() memory may never come.
 */
int roan_odp_fault_in(struct roan_odp *odp, u64 pos, u64 len, enum roan_odp_access want);
void roan_odp_put(struct roan_odp *odp);	/* process context, sleeps */

/*
 * odp_fault.c. Queues a prefetch to a worker. False: too many prefetches of this user wait, or there is no memory.
 * Process context.
 */
bool roan_odp_prefetch(struct roan_mr *mr, u64 pos, u64 len, enum roan_odp_access want);
/* Removes the faults and prefetches that wait, and separates the running ones from their QPs. */
void roan_odp_cancel_region(struct roan_odp *odp);

#endif /* ROAN_ODP_PRIV_H */
