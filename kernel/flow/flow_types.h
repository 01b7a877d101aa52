/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types for congestion control, PFC, priorities and the in-flight limit, per device and per QP. No functions: see
 * flow/flow.h.
 */
#ifndef ROAN_FLOW_TYPES_H
#define ROAN_FLOW_TYPES_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include "core/cc/cc.h"
#include "core/cc/np.h"
#include "core/flow/pfc_rules.h"

struct roan_dev;

#define ROAN_DSCPS	64
#define ROAN_PEER_HASH_BITS	6

struct roan_qos {
	u8  prio[ROAN_DSCPS];	/* DSCP -> skb->priority, 0..7; READ/WRITE_ONCE */
	u32 traffic_class;	/* for packets whose QP or address handle has none; cc_param */
};

#define ROAN_CC_PINNED	0x80	/* in roan_qp.cc_override */

struct roan_cc_dev {
	u32 algo;		/* enum roan_cc_algo; READ/WRITE_ONCE */
	bool program_algo;	/* programs' choices have an effect; cc_param. READ/WRITE_ONCE */
	u32 port_mbps;		/* Mb/s, reported by the interface; 0: unknown. Written under RTNL */
	u32 link_speed;		/* Mb/s, set by cc_param; 0: use @port_mbps. READ/WRITE_ONCE */
	struct roan_cc_params params[ROAN_CC_NUM_ALGOS];	/* cc_param; READ/WRITE_ONCE of each value */
	struct roan_np np_port;	/* shared without a lock: see core/cc/np.h */
	struct roan_np_hosts np_hosts;
};

/* Part of struct roan_qp_ref, which lives as long as the QP or an skb of it. */
struct roan_tx_inflight {
	atomic64_t total_kb;	/* KiB in flight of both queues, and ALIVE while the QP exists: tx_inflight.c */
	/* by enum roan_queue_id, KiB: the queue runs again when less than this is in flight; 0: it does not wait */
	u32 wake_kb[2];
	u64 last_free_ns;	/* ns, tick resolution: when the last skb of the send queue was freed */
};

/*
 * Alignment of struct roan_qp_ref: the low bits of its address in an skb's destructor argument are used in
 * tx_inflight.c.
 */
#define ROAN_TX_INFLIGHT_ALIGN	128

/*
 * Bytes of a device's packets that wait. @bytes: behind page faults (odp_rxqueue.c) or for a missing one (rx_early.c).
 * @of_prio: behind page faults only, which decides about pause frames.
 */
struct roan_odp_rxq {
	atomic_t bytes;
	atomic_t of_prio[ROAN_PRIORITIES];
};

struct roan_pfc_prio {
	struct roan_dev *dev;
	struct roan_pfc_rx_state pause;	/* pfc->lock; roan_pfc_rx_clear() reads it without */
	struct list_head blocked_qps;	/* roan_qp.pfc_link */
	struct hrtimer timer;		/* soft; armed while a QP waits */
	u64 timer_at;			/* ns; 0: not armed */
	u32 trips_counted;		/* watchdog trips that are in the counter already */
};

/* pfc_tx.c */
struct roan_pfc_tx {
	struct roan_dev *dev;
	spinlock_t lock;		/* _bh; taken under a queue lock or none; held while a frame is sent */
	struct roan_pfc_tx_state tx_state;
	struct hrtimer timer;		/* soft; armed while @tx_state has a deadline */
	u32 trips_counted;		/* watchdog trips that are in the counter already */
};

struct roan_pfc {
	struct roan_pfc_params params;	/* cc_param; READ/WRITE_ONCE of each value */
	bool rx_registered;			/* @ptype is registered; under RTNL */
	spinlock_t lock;			/* _bh; taken under a queue lock or none */
	u32 n_waiting;				/* QPs in the lists of all priorities */
	u64 wait_since;				/* ns: when @n_waiting became 1 */
	u64 waited;				/* ns: total time with @n_waiting > 0 before @wait_since */
	struct packet_type ptype;
	struct roan_pfc_prio prio[ROAN_PRIORITIES];
	struct roan_pfc_tx out[ROAN_PRIORITIES];
};

#endif /* ROAN_FLOW_TYPES_H */
