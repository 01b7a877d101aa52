/* SPDX-License-Identifier: GPL-2.0 */
/* Things to do soon, in softirq on this CPU, with no lock held: a list of what has any. */
#ifndef ROAN_LATER_H
#define ROAN_LATER_H

#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/refcount.h>
#include <linux/types.h>

enum roan_later_bit {
	/* QP */
	ROAN_DO_SEND,		/* look at the SQ */
	ROAN_DO_RESPOND,	/* responses are owed */
	ROAN_DO_RESUME,		/* memory came: what rested for want of it goes on */
	ROAN_DO_FAIL,		/* to the error state */
	ROAN_DO_EV_FATAL,	/* async events to tell */
	ROAN_DO_EV_REQ_ERR,
	ROAN_DO_EV_ACCESS_ERR,
	ROAN_DO_EV_COMM_EST,
	ROAN_DO_EV_SQ_DRAINED,
	ROAN_DO_EV_LAST_WQE,
	/* CQ */
	ROAN_DO_NOTIFY,
	ROAN_DO_CQ_ERR,
	/* SRQ */
	ROAN_DO_SRQ_LIMIT,
	ROAN_DO_SRQ_ERR,
};

struct roan_later {
	struct llist_node node;
	unsigned long bits;	/* enum roan_later_bit, atomic; not empty = queued or about to run */
	refcount_t *refs;	/* of the object that holds this item; one is taken while the item is queued */
	void (*run)(struct roan_later *later, unsigned long bits);	/* softirq; drops that reference */
};

static inline void roan_later_setup(struct roan_later *later, refcount_t *refs,
				    void (*run)(struct roan_later *later, unsigned long bits))
{
	later->refs = refs;
	later->run = run;
}

void roan_later(struct roan_later *later, enum roan_later_bit what);	/* caller has a reference to its holder */
int roan_later_init(void);
void roan_later_exit(void);

/*
 * Transmit budget of one softirq round: how many skbs this CPU hands over before other softirqs run. A consumer on this CPU (a
 * veth's NAPI ring of 256, the backlog) runs only after ours returns, so a longer burst would overflow it. Softirqs off.
 */
#define ROAN_BURST	64	/* skbs: as many as NAPI takes at a time */

DECLARE_PER_CPU(u32, roan_burst);

/* Other softirqs have run. */
static inline void roan_burst_begin(void)
{
	__this_cpu_write(roan_burst, 0);
}

/* A send begins. Outside of a softirq, all pending softirqs ran before it. */
static inline void roan_burst_turn(void)
{
	if (!in_serving_softirq())
		roan_burst_begin();
}

static inline bool roan_burst_full(void)
{
	return __this_cpu_read(roan_burst) >= ROAN_BURST;
}

#endif /* ROAN_LATER_H */
