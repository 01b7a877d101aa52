/* SPDX-License-Identifier: GPL-2.0 */
/* State of a device and of a user context for doorbells and polling. Only types: tx/tx.h has the functions. */
#ifndef ROAN_TX_TYPES_H
#define ROAN_TX_TYPES_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include "base/deferred.h"
#include "base/ring.h"

struct roan_sq_poller_entry;

enum roan_sq_poller_state {
	ROAN_POLLER_OFF,	/* no thread, or other tasks need its CPU: posters ring */
	ROAN_POLLER_SLEEPING,	/* a doorbell wakes the thread */
	ROAN_POLLER_POLLING,	/* the thread polls */
};

struct roan_sq_poller {
	spinlock_t lock;		/* _bh, a leaf: protects the next two and additions to @polled */
	enum roan_sq_poller_state state;	/* READ_ONCE() without the lock */
	u32 n_polled;			/* READ_ONCE() without the lock; only the thread decreases it */
	struct roan_sq_poller_entry *polled;	/* of the thread, in no order; allocated while @task is set */
	struct task_struct *task;	/* NULL: off */
	u32 idle_us;			/* us; a ring without new WQEs so long is released; 0: off. READ/WRITE_ONCE */
};

struct roan_db_hints {
	spinlock_t lock;	/* _bh, a leaf */
	struct roan_ring ring;	/* ring.ctl NULL: the provider does not use hints, and rings for each QP */
	struct hrtimer timer;	/* soft; queues @deferred, which polls the ring */
	struct roan_deferred deferred;
	refcount_t refs;
	struct completion released;	/* completed when the last reference is dropped */
	bool closing;		/* the timer is not set again, the ring not polled */
	u64 last_bell_ns;	/* ns: the last doorbell */
	u64 timer_ns;		/* ns: the timer polls the ring then; 0: not batching, posters ring */
	u64 last_hit_ns;	/* ns: start of the last doorbell, or of the last poll that found a hint */
	u32 batch_wqes;		/* WQEs fetched since the wait began, up to about MIN_BATCH; races are harmless */
	u32 bell_streak;	/* doorbells in quick succession */
	u32 bell_threshold;	/* quick doorbells before batching starts; 0: the last batch was large enough */
	bool timer_hit;		/* the timer has found a hint since the present wait began */
};

#endif /* ROAN_TX_TYPES_H */
