/* SPDX-License-Identifier: GPL-2.0 */
/* Between odp.c, which has the pages, and odp_fault.c, which brings them in when somebody waits. */
#ifndef ROAN_ODP_PRIV_H
#define ROAN_ODP_PRIV_H

#include <linux/xarray.h>
#include "mem/mem.h"

struct roan_odp {
	struct roan_dev *dev;
	struct mm_struct *mm;		/* own mmgrab() */
	u64 start;			/* user address of the region's first byte */
	struct xarray chunks;		/* odp.c; an entry stays until the region goes */
	bool mm_gone;			/* the process has left its memory */
};

enum roan_odp_access {
	ROAN_ODP_PRESENT,	/* only what needs no fault */
	ROAN_ODP_READ,
	ROAN_ODP_WRITE,
};

/*
 * [@pos, @pos + @len) of the region is made usable, until the MMU takes it away again. -ENOMEM and -EBUSY: try again; any
 * other error: something there may not be used so. Process context, sleeps.
 */
int roan_odp_fault_in(struct roan_odp *odp, u64 pos, u64 len, enum roan_odp_access want);

#endif /* ROAN_ODP_PRIV_H */
