/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a device and a user context keep for doorbells and polling. Only types: tx/tx.h has the functions.
 */
#ifndef ROAN_TX_TYPES_H
#define ROAN_TX_TYPES_H

#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include "base/ring.h"

struct roan_watch;

enum roan_poller_state {
	ROAN_POLLER_AWAY,	/* there is no thread, or it has to leave its CPU to others: everybody rings */
	ROAN_POLLER_ASLEEP,	/* who rings wakes it */
	ROAN_POLLER_LOOKING,	/* it runs */
};

struct roan_poller {
	spinlock_t lock;		/* _bh, a leaf: of the next two, and of what is added to @watched */
	enum roan_poller_state state;	/* READ_ONCE() without */
	u32 n_watched;			/* READ_ONCE() without; only the thread makes it smaller */
	struct roan_watch *watched;	/* the thread's, in no order; there while @task is */
	struct task_struct *task;	/* NULL: off */
	u32 idle_us;			/* a ring with nothing new for so long is left alone; 0: off. READ/WRITE_ONCE */
};

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

#endif /* ROAN_TX_TYPES_H */
