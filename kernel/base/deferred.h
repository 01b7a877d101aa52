/* SPDX-License-Identifier: GPL-2.0 */
/* Things to do soon, in softirq on this CPU, with no lock held: a list of what has any. */
#ifndef ROAN_DEFERRED_H
#define ROAN_DEFERRED_H

#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/refcount.h>
#include <linux/types.h>

enum roan_deferred_bit {
	/* QP */
	ROAN_DEFER_SEND,		/* look at the SQ */
	ROAN_DEFER_RESPOND,	/* responses are owed */
	ROAN_DEFER_RESTART,		/* memory came: what rested for want of it goes on */
	ROAN_DEFER_ERR,		/* to the error state */
	ROAN_DEFER_EV_FATAL,	/* async events to tell */
	ROAN_DEFER_EV_REQ_ERR,
	ROAN_DEFER_EV_ACCESS_ERR,
	ROAN_DEFER_EV_COMM_EST,
	ROAN_DEFER_EV_SQ_DRAINED,
	ROAN_DEFER_EV_LAST_WQE,
	/* CQ */
	ROAN_DEFER_NOTIFY,
	ROAN_DEFER_CQ_ERR,
	/* SRQ */
	ROAN_DEFER_SRQ_LIMIT,
	ROAN_DEFER_SRQ_ERR,
};

struct roan_deferred {
	struct llist_node node;
	unsigned long bits;	/* enum roan_deferred_bit, atomic; not empty = queued or about to run */
	refcount_t *refs;	/* of the object that holds this item; one is taken while the item is queued */
	void (*run)(struct roan_deferred *later, unsigned long bits);	/* softirq; drops that reference */
};

static inline void roan_later_setup(struct roan_deferred *later, refcount_t *refs,
				    void (*run)(struct roan_deferred *later, unsigned long bits))
{
	later->refs = refs;
	later->run = run;
}

/* caller has a reference to its holder */
void roan_defer(struct roan_deferred *later, enum roan_deferred_bit what);
int roan_deferred_init(void);
void roan_deferred_exit(void);

/*
 * Transmit budget of one softirq round: how many skbs this CPU hands over before other softirqs run. A consumer on this CPU (a
 * veth's NAPI ring of 256, the backlog) runs only after ours returns, so a longer burst would overflow it. Softirqs off.
 */
#define ROAN_TX_BUDGET	64	/* skbs: as many as NAPI takes at a time */

DECLARE_PER_CPU(u32, roan_tx_budget_used);

/* Other softirqs have run. */
static inline void roan_tx_budget_reset(void)
{
	__this_cpu_write(roan_tx_budget_used, 0);
}

/* A send begins. Outside of a softirq, all pending softirqs ran before it. */
static inline void roan_tx_budget_begin_round(void)
{
	if (!in_serving_softirq())
		roan_tx_budget_reset();
}

static inline bool roan_tx_budget_exhausted(void)
{
	return __this_cpu_read(roan_tx_budget_used) >= ROAN_TX_BUDGET;
}

#endif /* ROAN_DEFERRED_H */
