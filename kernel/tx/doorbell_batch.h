/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A context's notices of what was posted to QPs at rest, and the kernel's lingering over them. What they are good for
 * stands in linger.c.
 */
#ifndef ROAN_LINGER_H
#define ROAN_LINGER_H

#include <linux/hrtimer.h>
#include <linux/spinlock.h>
#include "base/ring.h"

struct roan_qp;
struct roan_uctx;

struct roan_notices {
	spinlock_t lock;	/* _bh, a leaf */
	struct roan_ring ring;	/* ctl NULL: the provider does not know it, and rings for each QP */
	struct hrtimer timer;	/* soft */
	u64 bell_at;		/* ns, the last doorbell */
	u64 linger_at;		/* ns, look at the ring then without a doorbell; 0: wait for one */
	u64 found_at;		/* ns, when the last look that found something began */
	u32 gathered;		/* work requests found since lingering began, or enough of them; raced for */
	u32 quick_bells;	/* doorbells in quick succession */
	u32 patience;		/* as many before lingering is tried; 0: it is, and was worth it */
	bool late;		/* the timer found a notice since lingering began */
};

void roan_notices_init(struct roan_notices *notices);
int roan_notices_alloc(struct roan_uctx *uctx, struct roan_ring_desc *desc);
void roan_notices_free(struct roan_notices *notices);	/* no QP and no caller of the context is left */
void roan_notices_rung(struct roan_uctx *uctx, u64 began, struct roan_qp **answered);	/* a doorbell came at @began */
void roan_notices_found(struct roan_qp *qp, u32 n);	/* work requests were fetched, by whomever */
void roan_notices_waits(struct roan_qp *qp, bool waits);	/* its sends, on this CPU; softirqs are off */

#endif /* ROAN_LINGER_H */
