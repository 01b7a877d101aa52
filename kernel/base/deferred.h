/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Deferred work, run in softirq on the CPU that queued it, with no locks held; and the transmit budget of one softirq
 * round.
 */
#ifndef ROAN_DEFERRED_H
#define ROAN_DEFERRED_H

#include <linux/completion.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/types.h>

enum roan_deferred_bit {
	/* QP */
	ROAN_DEFER_SEND,		/* run the send queue */
	ROAN_DEFER_RESPOND,		/* send pending responses */
	ROAN_DEFER_RESTART,		/* a page fault is resolved: continue what was deferred for it */
	ROAN_DEFER_ERR,		/* QP to ERR */
	ROAN_DEFER_FLUSH,		/* QP in ERR or SQE: flush the next requests; after all other work of the CPU */
	ROAN_DEFER_EV_FATAL,	/* asynchronous events to report, this and the next ones */
	ROAN_DEFER_EV_REQ_ERR,
	ROAN_DEFER_EV_ACCESS_ERR,
	ROAN_DEFER_EV_COMM_EST,
	ROAN_DEFER_EV_SQ_DRAINED,
	ROAN_DEFER_EV_LAST_WQE,
	/* CQ */
	ROAN_DEFER_NOTIFY,
	ROAN_DEFER_CQ_ERR,
	/* user context */
	ROAN_DEFER_HINTS,		/* poll the ring of doorbell hints */
	/* SRQ */
	ROAN_DEFER_SRQ_LIMIT,
	ROAN_DEFER_SRQ_ERR,
};

struct roan_deferred {
	struct llist_node node;
	unsigned long bits;	/* enum roan_deferred_bit, atomic; not 0: queued or about to run */
	refcount_t *refs;	/* of the owner of this item; one reference is held while the item is queued */
	struct completion *released;	/* of the owner: its last reference was dropped */
	/* softirq, no locks held. Some 100 us at most: defers the remainder */
	void (*run)(struct roan_deferred *item, unsigned long bits);
};

static inline void roan_deferred_setup(struct roan_deferred *item, refcount_t *refs, struct completion *released,
				       void (*run)(struct roan_deferred *item, unsigned long bits))
{
	item->refs = refs;
	item->released = released;
	item->run = run;
}

/* Drops a reference. The destruction of the object waits for @released. Any context */
static inline void roan_put(refcount_t *refs, struct completion *released)
{
	if (refcount_dec_and_test(refs))
		complete(released);
}

/* Any context. The caller holds a reference to the owner of @item. */
void roan_defer(struct roan_deferred *item, enum roan_deferred_bit what);
int roan_deferred_init(void);
void roan_deferred_exit(void);

/*
 * Transmit budget of one softirq round: how many skbs this CPU hands over before other softirqs run. Consumers on this
 * CPU (a veth's NAPI ring of 256, the backlog) run only after this softirq returns, so a longer burst would overflow
 * them. The remainder is deferred. Softirqs are disabled around all of these functions.
 */
#define ROAN_TX_BUDGET	64	/* skbs; the usual NAPI weight */

DECLARE_PER_CPU(u32, roan_tx_budget_used);

/* Call when other softirqs have run. */
static inline void roan_tx_budget_reset(void)
{
	__this_cpu_write(roan_tx_budget_used, 0);
}

/* Call when a send begins. Outside of a softirq all pending softirqs have run before it, so the budget is renewed. */
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
