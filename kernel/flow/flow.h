/* SPDX-License-Identifier: GPL-2.0 */
/*
 * flow: when a packet may leave, and with which priority. Decides by the QP's rate and window, PFC pauses from and to the
 * peer, and how much of a QP waits in this host's queues; the rules themselves are core/cc and core/flow. Does not build or
 * send packets. Locks: limiter->lock, pfc->lock, the PFC transmit lock and the pacing queue's lock are taken under a queue's
 * lock or under none. Any context; timers are soft.
 */
#ifndef ROAN_FLOW_H
#define ROAN_FLOW_H

#include <rdma/ib_verbs.h>
#include "roan.h"

struct dst_entry;
struct sk_buff;

/*
 * The traffic class a packet leaves with: the path's own; if that is 0 the class selector of its service level; if there
 * is neither, the device's default. @av may be NULL: a datagram QP has none.
 */
static inline u8 roan_qos_tclass(const struct roan_dev *dev, const struct roan_av *av)
{
	if (av && av->tclass)
		return av->tclass;
	return av && av->sl ? (av->sl & 7) << 5 : READ_ONCE(dev->qos.traffic_class);
}

static inline u8 roan_qos_prio(const struct roan_dev *dev, u8 tclass)
{
	return READ_ONCE(dev->qos.prio[tclass >> 2]);
}

/* The set in force: that of the device's algorithm. */
static inline struct roan_cc_params *roan_cc_params_of(struct roan_dev *dev)
{
	return &dev->cc.params[READ_ONCE(dev->cc.algo)];
}

/* ---- dcb_prio.c ---- */

int roan_qos_init(void);
void roan_qos_exit(void);
void roan_qos_add_dev(struct roan_dev *dev);
void roan_qos_del_dev(struct roan_dev *dev);
void roan_qos_refresh(struct roan_dev *dev);	/* from the interface's DCB application table */

/* ---- tx_inflight.c ---- */

void roan_tx_inflight_init(struct roan_qp_ref *ref);
/* frees it, a grace period after the last skb is gone; waits for nothing */
void roan_tx_inflight_put(struct roan_qp_ref *ref);
void roan_tx_inflight_exit(void);			/* waits until all are gone; no QP is left */

/*
 * A queue starts to send along @dst (NULL: not known yet). True: what it hands over can wait in a queue of this host, and is
 * counted. Lock of the queue and RCU held, as for all below.
 */
bool roan_tx_inflight_begin_round(struct roan_qp *qp, u8 side, const struct dst_entry *dst);
/* Of a queue that is counted: is the limit reached with @bytes more? They should be handed over before it waits. */
bool roan_tx_inflight_over(struct roan_qp *qp, u8 side, u32 bytes);
/* The limit is reached and all is handed over. True: it still is, and the queue is run again when there is less. */
bool roan_below_full_waits(struct roan_qp *qp, u8 side);
/* @skb of such a queue is handed to the IP stack. */
void roan_tx_inflight_charge(struct roan_qp *qp, u8 side, struct sk_buff *skb);
/* Must the queue wait, as more than @wake is below? Then it is called when that is no more. */
bool roan_tx_inflight_arm(struct roan_qp *qp, u8 side, u32 wake);

/* ---- pfc_rx.c, pfc_tx.c ---- */

void roan_pfc_init(struct roan_dev *dev);
void roan_pfc_exit(struct roan_dev *dev);	/* no QP is left, no parameter is set any more; takes RTNL if it was on */
/* cc_param. 0, -ERANGE or -ENODEV; process context, takes RTNL. */
int roan_pfc_set(struct roan_dev *dev, enum roan_pfc_param which, u32 value);

/* Is PFC on at all? The test that everybody pays. */
static inline bool roan_pfc_on(const struct roan_pfc *pfc)
{
	return unlikely(READ_ONCE(pfc->params.pfc_prio_mask));
}

/* A packet of @prio is there: must it wait? Then the QP is called, for this side, when it need no more. @side's lock held. */
bool roan_pfc_check_blocked(struct roan_qp *qp, u8 side, u8 prio);
void roan_pfc_cancel(struct roan_qp *qp);	/* it does not wait any more, and will not; process context */

/* ns: how long any QP had a packet that a pause held back. Process or softirq context */
u64 roan_pfc_waited(struct roan_dev *dev);

u64 roan_pfc_link_speed(const struct roan_dev *dev);	/* bit/s, never 0 */
/* Is @prio in @mask? That of CNPs is never: nobody would slow down. */
bool roan_pfc_prio_enabled(struct roan_dev *dev, u32 mask, u8 prio);

/* pfc_tx.c */
void roan_pfc_tx_init(struct roan_dev *dev);
void roan_pfc_tx_exit(struct roan_dev *dev);
/* The device's backlog of @prio, or what is to be told about it, has changed. Any of our contexts, queue locks may be held. */
void roan_pfc_tx_update(struct roan_dev *dev, u8 prio);

#endif /* ROAN_FLOW_H */
