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
struct roan_below {
	atomic64_t size;	/* KiB, of both queues, and whether the QP is there: tx_inflight.c */
	u32 wake[2];		/* by enum roan_side: less than this may be below before it goes on; 0: it does not wait */
	u64 left_at;		/* ns, by the tick: when a request left last */
};

/* An skb says by its destructor's argument whose it is, of which queue, and how large: see tx_inflight.c. */
#define ROAN_BELOW_ALIGN	128

/* Bytes of all QPs of a device; written where packets wait, and only then. */
struct roan_backlog {
	atomic_t bytes;
	atomic_t of_prio[ROAN_PRIORITIES];
};

struct roan_pfc_prio {
	struct roan_dev *dev;
	struct roan_pause pause;	/* pfc->lock; loads of open() without */
	struct list_head waiting;	/* roan_qp.on_pfc */
	struct hrtimer timer;		/* soft; set while somebody waits */
	u64 timer_at;			/* ns; 0: not set */
	u32 storms;			/* counted so far */
};

/* pfc_tx.c */
struct roan_pfc_out {
	struct roan_dev *dev;
	spinlock_t lock;		/* _bh; under a queue's lock, or under none; a frame is handed over under it */
	struct roan_pause_teller teller;
	struct hrtimer timer;		/* soft; set while the teller wants to be asked */
	u32 storms;			/* counted so far */
};

struct roan_pfc {
	struct roan_pause_params params;	/* cc_param; READ/WRITE_ONCE of each value */
	bool listens;				/* ptype is registered; under RTNL */
	spinlock_t lock;			/* _bh; under a queue's lock, or under none */
	struct packet_type ptype;
	struct roan_pfc_prio prio[ROAN_PRIORITIES];
	struct roan_pfc_out out[ROAN_PRIORITIES];
};

#endif /* ROAN_FLOW_TYPES_H */
