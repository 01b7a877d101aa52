/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a device and a QP keep for congestion control, PFC, priorities and the small-queue limit. Only types: flow/flow.h has
 * the functions.
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

struct roan_qos {
	u8  prio[ROAN_DSCPS];	/* DSCP -> skb->priority, 0..7; READ/WRITE_ONCE */
	u32 traffic_class;	/* of packets whose QP or address handle says nothing; cc_param */
};

struct roan_cc_dev {
	u32 algo;		/* enum roan_cc_algo; READ/WRITE_ONCE */
	u64 link;		/* bit/s, as the interface says; 0: it does not. Written under RTNL */
	u32 link_speed;		/* Mb/s, as cc_param says; 0: as the interface says. READ/WRITE_ONCE */
	struct roan_cc_params params[ROAN_CC_NUM_ALGOS];	/* cc_param; READ/WRITE_ONCE of each value */
	struct roan_np np_port;	/* see np.h: raced for */
	struct roan_np_hosts np_hosts;
};

/* Part of a QP's ref, which stays as long as there is an skb. */
struct roan_tx_inflight {
	atomic64_t total_kb;	/* KiB, of both queues, and whether the QP is there: tx_inflight.c */
	/* by enum roan_queue_id: less than this may be below before it goes on; 0: it does not wait */
	u32 wake_kb[2];
	u64 last_free_ns;	/* ns, by the tick: when a request left last */
};

/* An skb says by its destructor's argument whose it is, of which queue, and how large: see tx_inflight.c. */
#define ROAN_TX_INFLIGHT_ALIGN	128

/* Bytes of all QPs of a device; written where packets wait, and only then. */
struct roan_odp_rxq {
	atomic_t bytes;
	atomic_t of_prio[ROAN_PRIORITIES];
};

struct roan_pfc_prio {
	struct roan_dev *dev;
	struct roan_pfc_rx_state pause;	/* pfc->lock; loads of open() without */
	struct list_head blocked_qps;	/* roan_qp.on_pfc */
	struct hrtimer timer;		/* soft; set while somebody waits */
	u64 timer_at;			/* ns; 0: not set */
	u32 trips_counted;		/* counted so far */
};

/* pfc_tx.c */
struct roan_pfc_tx {
	struct roan_dev *dev;
	spinlock_t lock;		/* _bh; under a queue's lock, or under none; a frame is handed over under it */
	struct roan_pfc_tx_state tx_state;
	struct hrtimer timer;		/* soft; set while the teller wants to be asked */
	u32 trips_counted;		/* counted so far */
};

struct roan_pfc {
	struct roan_pfc_params params;	/* cc_param; READ/WRITE_ONCE of each value */
	bool rx_registered;			/* ptype is registered; under RTNL */
	spinlock_t lock;			/* _bh; under a queue's lock, or under none */
	u32 n_waiting;				/* QPs on the lists of all priorities */
	u64 wait_since;				/* ns: when the first of them began to wait */
	u64 waited;				/* ns: how long there was any, before that */
	struct packet_type ptype;
	struct roan_pfc_prio prio[ROAN_PRIORITIES];
	struct roan_pfc_tx out[ROAN_PRIORITIES];
};

#endif /* ROAN_FLOW_TYPES_H */
