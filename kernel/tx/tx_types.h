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

struct roan_sq_poller_entry;

enum roan_sq_poller_state {
	ROAN_POLLER_OFF,	/* there is no thread, or it has to leave its CPU to others: everybody rings */
	ROAN_POLLER_SLEEPING,	/* who rings wakes it */
	ROAN_POLLER_POLLING,	/* it runs */
};

struct roan_sq_poller {
	spinlock_t lock;		/* _bh, a leaf: of the next two, and of what is added to @polled */
	enum roan_sq_poller_state state;	/* READ_ONCE() without */
	u32 n_polled;			/* READ_ONCE() without; only the thread makes it smaller */
	struct roan_sq_poller_entry *polled;	/* the thread's, in no order; there while @task is */
	struct task_struct *task;	/* NULL: off */
	u32 idle_us;			/* a ring with nothing new for so long is left alone; 0: off. READ/WRITE_ONCE */
};

struct roan_db_hints {
	spinlock_t lock;	/* _bh, a leaf */
	struct roan_ring ring;	/* ctl NULL: the provider does not know it, and rings for each QP */
	struct hrtimer timer;	/* soft */
	u64 last_bell_ns;	/* ns, the last doorbell */
	u64 timer_ns;		/* ns, look at the ring then without a doorbell; 0: wait for one */
	u64 last_hit_ns;	/* ns, when the last look that found something began */
	u32 batch_wqes;		/* work requests found since lingering began, or enough of them; raced for */
	u32 bell_streak;	/* doorbells in quick succession */
	u32 bell_threshold;	/* as many before lingering is tried; 0: it is, and was worth it */
	bool timer_hit;		/* the timer found a notice since lingering began */
};

#endif /* ROAN_TX_TYPES_H */
