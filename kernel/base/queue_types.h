/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types of the queues that a program sees: CQ, SRQ, SQ and RQ, with the state that belongs to each. No functions but
 * accessors.
 */
#ifndef ROAN_QUEUE_TYPES_H
#define ROAN_QUEUE_TYPES_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/roan-abi.h>

#include "base/deferred.h"
#include "mem/mem_types.h"
#include "net/net_types.h"
#include "base/ring.h"
#include "core/flow/inflight_limit.h"
#include "core/cc/np.h"
#include "core/transport/key_limit.h"
#include "core/transport/requester.h"
#include "core/transport/responder.h"

struct roan_cq {
	struct ib_cq ib;
	struct roan_deferred deferred;
	refcount_t refs;
	struct completion released;
	spinlock_t lock;	/* _bh: producers */
	spinlock_t poll_lock;	/* irqsave: polling and arming by a kernel consumer */
	/* _bh: held around the completion handler; never taken with another lock of roan held */
	spinlock_t upcall_lock;
	struct roan_ring ring;
	u32 arm_next_done;	/* value of arm_next for which the event was delivered */
	u32 arm_solicited_done;
	bool overflowed;
	bool destroying;	/* upcall_lock: no more upcalls */
	bool user;
};

struct roan_srq {
	struct ib_srq ib;
	struct roan_deferred deferred;
	refcount_t refs;
	struct completion released;
	spinlock_t lock;	/* _bh: consumers (QPs), resize */
	spinlock_t post_lock;	/* irqsave: posting by a kernel consumer */
	struct roan_ring ring;
	u32 max_wr;
	u32 max_sge;
	u32 limit;		/* limit event: number of receives; 0: not armed */
	u32 num;
	bool user;
	bool failed;		/* the ring indices are impossible */
};

/* A receive work request copied from a ring into kernel memory. */
struct roan_recv {
	u64 wr_id;
	u32 num_sge;
	u32 total;		/* bytes of all sges */
	bool taken;
	u8  failed;		/* enum roan_status: completes so once the NAK has left; 0: not refused */
	u32 verr;		/* of a refused one */
	struct roan_sge *sge;	/* max_sge entries */
};

enum roan_queue_id { ROAN_QUEUE_SQ, ROAN_QUEUE_RQ };

/* Kernel copy of a send WQE. */
struct roan_wqe_shadow {
	u32 vendor_err;		/* enum roan_vendor_err of a failed work request */
	u32 reserved;

	/* All that most WQEs have. The remaining SGEs or inline bytes follow. */
	struct_group(
		wqe_head,
		struct roan_send_wqe wqe;
		struct roan_sge sge;
	);
};

struct roan_sq {
	spinlock_t lock;	/* _bh */
	spinlock_t post_lock;	/* irqsave: posting by a kernel consumer; never taken with lock held */
	struct roan_ring ring;
	/* array of struct roan_wqe_shadow, one per work request not retired; same indices as req.work */
	void *shadow;
	u32 shadow_size;	/* bytes of one element */
	u32 timed_index;	/* of the request that is timed, if @timed_since */
	struct roan_requester req;
	struct roan_dst_cache flow;
	struct roan_inflight_limit inflight_limit;
	u32 max_wr, max_sge, max_inline;
	bool sig_all;
	/* a page fault is pending for the target of a response: responses are dropped, the request is sent again */
	bool rx_fault_wait;
	/*
	 * The ACK timer is stopped by a PFC pause, or until this host's queues have sent the last packet; pfc_rx.c or
	 * tx_inflight.c restarts it.
	 */
	bool ack_timer_stopped;
	bool sqd_notify;	/* report IB_EVENT_SQ_DRAINED */
	u8  n_dropped;		/* 0: this host took the last skb; else how often roan_dropped_wait_ns() doubles */
	u32 rx_seq_seen;	/* cpu_yield.c: receive progress at the last doorbell; atomic */
	u64 timer_at;		/* latest expiry of the timer, ns; 0: timer not set */
	/* ns, rounded down: the queues in the low bits (1 << enum roan_queue_id) are to run then. READ_ONCE() */
	u64 kick_at;
	struct hrtimer timer;	/* soft; runs roan_requester_timer(), and queues at @kick_at */
	/* Values of the requester's counters that are already added to the device's counters. */
	u32 seen_resent, seen_timeouts, seen_rto, seen_seq_naks, seen_rnr_naks, seen_implied, seen_stale;
	u32 dropped_since;	/* 2^20 ns: this host has dropped all skbs since then; valid if @n_dropped */
	u64 timed_since;	/* ns: one request at a time is timed, request_time.c; 0: none is */
};

struct roan_rq {
	spinlock_t lock;	/* _bh */
	spinlock_t post_lock;	/* irqsave: posting by a kernel consumer */
	struct roan_ring ring;	/* unused with an SRQ */
	bool fault_wait;	/* a page fault is pending for data of a response; odp_resume.c restarts the queue */
	u8  n_dropped;		/* as in struct roan_sq */
	/* odp_rxqueue.c: requests with a pending page fault, and all packets after them */
	struct list_head odp_rxq;
	struct list_head early;	/* rx_early.c: requests that came before an earlier one */
	u32 kept_bytes;	/* of both lists */
	u32 early_pkts, early_bytes;	/* of @early; READ_ONCE() without lock */
	/* RNR deferral of the first packet in @odp_rxq, or of the next to be queued */
	struct roan_rnr_defer rnr_defer;
	struct roan_flush_job flush_job;
	struct roan_recv cur;	/* the receive work request in progress */
	struct roan_key_limit key_limit;	/* UC */
	struct roan_responder resp;
	struct roan_dst_cache flow;
	u16 reply_sport;	/* UDP source port of ACKs: of the last request that said SACK; 0: the QP's own */
	struct roan_inflight_limit inflight_limit;
	struct roan_np np;	/* notification point: CNPs to this QP's peer, */
	struct roan_np_ports *np_ports;	/* and for its requests if they were marked on several ports; else NULL */
	u16 np_sport;		/* the first such port; 0: none */
	bool cnp_pending;	/* in @np or @np_ports. READ_ONCE() without lock */
	/* cpu_yield.c: thread that sleeps until the peer's next packet; NULL: none */
	struct task_struct *yield_waiter;
	u32 max_wr, max_sge;
};

static inline struct roan_wqe_shadow *roan_sq_shadow(const struct roan_sq *sq, u32 index)
{
	return sq->shadow + (size_t)(index & sq->req.mask) * sq->shadow_size;
}

static inline struct roan_sge *roan_wqe_sges(struct roan_send_wqe *wqe)
{
	return (struct roan_sge *)(wqe + 1);
}

#endif /* ROAN_QUEUE_TYPES_H */
