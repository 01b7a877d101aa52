/* SPDX-License-Identifier: GPL-2.0 */
/*
 * flow: when a packet may leave, and with which priority.
 * Decides by the QP's rate and window, PFC and the in-flight limit; runs a blocked queue again when it may send.
 * Does not decide the rules (core/cc, core/flow). Does not build or send packets, except PFC frames.
 * Locks: limiter->lock, pfc->lock, pfc->out[].lock under a queue lock or none.
 * Contexts: softirq or process; timers are soft. The skb destructor in tx_inflight.c runs in any context.
 */
#ifndef ROAN_FLOW_H
#define ROAN_FLOW_H

#include <rdma/ib_verbs.h>
#include "roan.h"

struct dst_entry;
struct sk_buff;

/*
 * The traffic class of a packet: that of the path; if it is 0, the class selector of the path's service level; if
 * that is 0 too, the device's default. @av may be NULL: a datagram QP has none. A service level above 7 is no
 * priority: ibv_create_ah_from_wc() takes it from a datagram's completion, where it names the network header
 * (provider/poll.c).
 */
static inline u8 roan_qos_tclass(const struct roan_dev *dev, const struct roan_av *av)
{
	if (av && av->tclass)
		return av->tclass;
	return av && av->sl && av->sl < 8 ? av->sl << 5 : READ_ONCE(dev->qos.traffic_class);
}

static inline u8 roan_qos_prio(const struct roan_dev *dev, u8 tclass)
{
	return READ_ONCE(dev->qos.prio[tclass >> 2]);
}

/* The parameters of the device's current algorithm. */
static inline struct roan_cc_params *roan_cc_params_of(struct roan_dev *dev)
{
	return &dev->cc.params[READ_ONCE(dev->cc.algo)];
}

/* bit/s; 0: unknown. The speed that a veth or a tap reports is meaningless, so cc_param/link_speed overrides it. */
static inline u64 roan_link_speed(const struct roan_dev *dev)
{
	return roan_cc_link(READ_ONCE(dev->cc.link_speed) ?: READ_ONCE(dev->cc.port_mbps));
}

/* ---- dcb_prio.c ---- */

int roan_qos_init(void);
void roan_qos_exit(void);
void roan_qos_add_dev(struct roan_dev *dev);
void roan_qos_del_dev(struct roan_dev *dev);
void roan_qos_refresh(struct roan_dev *dev);	/* reads the interface's DCB application table again */

/* ---- tx_inflight.c ---- */

int roan_tx_inflight_init(void);
void roan_tx_inflight_add(struct roan_qp_ref *ref);
/* Frees @ref an RCU grace period after the last skb was freed. Does not wait. */
void roan_tx_inflight_put(struct roan_qp_ref *ref);
void roan_tx_inflight_exit(void);			/* no QP is left; waits until all refs are freed. Sleeps */

/*
 * A queue starts a send round along @dst (NULL: not known yet). Returns true if its skbs can wait in a queue of this
 * host; they are then counted. Queue lock and RCU read lock held, as for the functions that follow.
 */
bool roan_tx_inflight_begin_round(struct roan_qp *qp, u8 side, const struct dst_entry *dst);
/* Counted queue: true if @bytes more reach the limit. The caller hands them to the stack before the queue waits. */
bool roan_tx_inflight_over(struct roan_qp *qp, u8 side, u32 bytes);
/*
 * The limit was reached, and everything built was handed to the stack. Returns true if at least half of the limit is
 * still in flight: the queue waits, and runs again when less is.
 */
bool roan_tx_inflight_arm_full(struct roan_qp *qp, u8 side);
void roan_tx_inflight_dropped(struct roan_qp *qp, u8 side);	/* this host has dropped an skb */
/* Counts @skb, which is about to be handed to the IP stack with @dst, and sets its destructor. */
void roan_tx_inflight_charge(struct roan_qp *qp, u8 side, struct sk_buff *skb, const struct dst_entry *dst);
/* Returns true if at least @wake KiB of the queue are in flight: the queue waits, and runs again when less is. */
bool roan_tx_inflight_arm(struct roan_qp *qp, u8 side, u32 wake);
/* True if a queue of @qp waits at the limit. For display: any context in which @qp is not destroyed. */
bool roan_tx_inflight_waits(const struct roan_qp *qp);

/* ---- peer.c ---- */

struct roan_peer {
	struct hlist_node on_dev;	/* dev->peers[] */
	union ib_gid sgid;
	union ib_gid dgid;
	u32 n_qps;
	struct roan_min_rtt min_rtt;	/* shared without a lock: see core/transport/requester.h */
};

/* A reference to the peer between the addresses of @av, for one QP. NULL: no memory. Sleeps. */
struct roan_peer *roan_peer_get(struct roan_dev *dev, const struct roan_av *av);
void roan_peer_put(struct roan_peer *peer);	/* NULL: none. Sleeps */

/* ---- pfc_rx.c, pfc_tx.c ---- */

void roan_pfc_init(struct roan_dev *dev);
void roan_pfc_exit(struct roan_dev *dev);	/* no QP is left, no parameter is written; takes RTNL if PFC was on */
/* Sets a parameter of cc_param. 0, -ERANGE, -ENODEV or an error of dev_mc_add(); process context, takes RTNL. */
int roan_pfc_set(struct roan_dev *dev, enum roan_pfc_param which, u32 value);

/* True if pause frames are honoured for any priority. The only cost of PFC while it is off. */
static inline bool roan_pfc_on(const struct roan_pfc *pfc)
{
	return unlikely(READ_ONCE(pfc->params.pfc_prio_mask));
}

/*
 * Returns true if a packet of @prio must wait: a pause blocks it, and queue @side runs again at its end. @side's lock
 * held.
 */
bool roan_pfc_check_blocked(struct roan_qp *qp, u8 side, u8 prio);
void roan_pfc_cancel(struct roan_qp *qp);	/* @qp sends nothing more: it stops waiting; process context */

/* ns: total time in which at least one QP had a packet blocked by a pause. Process or softirq context */
u64 roan_pfc_waited(struct roan_dev *dev);
u64 roan_pfc_qp_waited(struct roan_qp *qp);	/* the same for one QP, since its creation */

u64 roan_pfc_link_speed(const struct roan_dev *dev);	/* bit/s, never 0 */
/*
 * True if @prio is in @mask and is not the priority of CNPs. A pause must not delay CNPs, or no sender would slow down.
 */
bool roan_pfc_prio_enabled(struct roan_dev *dev, u32 mask, u8 prio);

/* pfc_tx.c */
void roan_pfc_tx_init(struct roan_dev *dev);
void roan_pfc_tx_exit(struct roan_dev *dev);
/*
 * The device's backlog of @prio or a parameter changed: send XOFF or XON if needed. Softirq or process; also under
 * queue locks.
 */
void roan_pfc_tx_update(struct roan_dev *dev, u8 prio);

#endif /* ROAN_FLOW_H */
