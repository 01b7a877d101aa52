/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by odp.c, which maps the pages of a region, and odp_fault.c, which queues page faults to a worker. */
#ifndef ROAN_ODP_PRIV_H
#define ROAN_ODP_PRIV_H

#include <linux/xarray.h>
#include "mem/mem.h"

struct roan_odp {
	struct roan_dev *dev;
	struct mm_struct *mm;		/* referenced by mmgrab() */
	u64 start;			/* user address of the region's first byte */
	struct xarray chunks;		/* odp.c; an entry stays until the region is destroyed */
	bool mm_gone;			/* the process has exited: mm_users is 0. READ/WRITE_ONCE */
};

enum roan_odp_access {
	ROAN_ODP_PRESENT,	/* map only present pages, without faulting */
	ROAN_ODP_READ,
	ROAN_ODP_WRITE,
};

/*
 * Makes [@pos, @pos + @len) of the region accessible until the MMU notifier invalidates it. -ENOMEM and -EBUSY:
 * transient, retry; any other error: a part of the range does not allow this access. Process context, sleeps.
 */
int roan_odp_fault_in(struct roan_odp *odp, u64 pos, u64 len, enum roan_odp_access want);

#endif /* ROAN_ODP_PRIV_H */
