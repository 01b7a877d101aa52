/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Priority flow control of a device: which of its priorities are paused, and whose QPs wait for that to end; and what its peer
 * was told. The rules are core/flow/pfc_rules.h's; a QP that waits is on one list, with a reference, and is asked to look again when its
 * priority is free.
 */
#ifndef ROAN_PFC_H
#define ROAN_PFC_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include "core/flow/pfc_rules.h"

struct roan_dev;
struct roan_qp;

struct roan_pfc_prio {
	struct roan_dev *dev;
	struct roan_pause pause;	/* pfc->lock; loads of open() without */
	struct list_head waiting;	/* roan_qp.on_pfc */
	struct hrtimer timer;		/* soft; set while somebody waits */
	u64 timer_at;			/* ns; 0: not set */
	u32 storms;			/* counted so far */
};

/* pfc_tell.c */
struct roan_pfc_out {
	struct roan_dev *dev;
	spinlock_t lock;		/* _bh; under a queue's lock, or under none; a frame is handed over under it */
	struct roan_pause_teller teller;
	struct hrtimer timer;		/* soft; set while the teller wants to be asked */
	u32 storms;			/* counted so far */
};

struct roan_pfc {
	struct roan_pause_params params;	/* cc_param; READ/WRITE_ONCE of each value */
	bool listens;				/* ptype is registered; under RTNL */
	spinlock_t lock;			/* _bh; under a queue's lock, or under none */
	struct packet_type ptype;
	struct roan_pfc_prio prio[ROAN_PRIORITIES];
	struct roan_pfc_out out[ROAN_PRIORITIES];
};

void roan_pfc_init(struct roan_dev *dev);
void roan_pfc_exit(struct roan_dev *dev);	/* no QP is left, no parameter is set any more; takes RTNL if it was on */
/* cc_param. 0, -ERANGE or -ENODEV; process context, takes RTNL. */
int roan_pfc_set(struct roan_dev *dev, enum roan_pause_param which, u32 value);

/* Is PFC on at all? The test that everybody pays. */
static inline bool roan_pfc_on(const struct roan_pfc *pfc)
{
	return unlikely(READ_ONCE(pfc->params.pfc_prio_mask));
}

/* A packet of @prio is there: must it wait? Then the QP is called, for this side, when it need no more. @side's lock held. */
bool roan_pfc_blocks(struct roan_qp *qp, u8 side, u8 prio);
void roan_pfc_cancel(struct roan_qp *qp);	/* it does not wait any more, and will not; process context */

u64 roan_pfc_link_speed(const struct roan_dev *dev);	/* bit/s, never 0 */
/* Is @prio in @mask? That of CNPs is never: nobody would slow down. */
bool roan_pfc_applies(struct roan_dev *dev, u32 mask, u8 prio);

/* pfc_tell.c */
void roan_pfc_tell_init(struct roan_dev *dev);
void roan_pfc_tell_exit(struct roan_dev *dev);
/* The device's backlog of @prio, or what is to be told about it, has changed. Any of our contexts, queue locks may be held. */
void roan_pfc_tell(struct roan_dev *dev, u8 prio);

#endif /* ROAN_PFC_H */
