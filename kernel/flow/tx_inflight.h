/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is below: skbs of a QP that the IP stack, a queueing discipline or the adapter has. Each is counted from the time it is
 * handed over until its destructor runs. How much may be there is core/flow/inflight_limit.h's.
 */
#ifndef ROAN_BELOW_H
#define ROAN_BELOW_H

#include <linux/atomic.h>
#include <linux/types.h>

struct roan_qp;
struct roan_qp_ref;
struct roan_train;
struct sk_buff;

/* Part of a QP's ref, which stays as long as there is an skb. */
struct roan_below {
	atomic64_t size;	/* KiB, of both queues, and whether the QP is there: below.c */
	u32 wake[2];		/* by enum roan_side: less than this may be below before it goes on; 0: it does not wait */
	u64 left_at;		/* ns, by the tick: when a request left last */
};

/* An skb says by its destructor's argument whose it is, of which queue, and how large: see below.c. */
#define ROAN_BELOW_ALIGN	128

void roan_below_begin(struct roan_qp_ref *ref);
void roan_below_end(struct roan_qp_ref *ref);	/* frees it, a grace period after the last skb is gone; waits for nothing */
void roan_below_exit(void);			/* waits until all are gone; no QP is left */

/* A queue sends from now on: is it counted, and how much may there be? Lock of the queue and RCU held, as below. */
void roan_below_turn(struct roan_train *train, struct roan_qp *qp, u8 side);
/* A train that is counted: is there too much for one more packet? Then it has left, and the queue is called when there is less. */
bool roan_below_full(struct roan_train *train);
/* @skb of such a train leaves for the IP stack. */
void roan_below_add(const struct roan_train *train, struct sk_buff *skb);
/* Must the queue wait, as more than @wake is below? Then it is called when that is no more. */
bool roan_below_waits(struct roan_qp *qp, u8 side, u32 wake);

#endif /* ROAN_BELOW_H */
