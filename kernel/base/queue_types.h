/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queues a program sees: CQs, SRQs, and the two queues of a QP with all that is theirs. Only types.
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
#include "core/transport/requester.h"
#include "core/transport/responder.h"

struct roan_cq {
	struct ib_cq ib;
	struct roan_deferred deferred;
	refcount_t refs;
	struct completion released;
	spinlock_t lock;	/* _bh: producers */
	spinlock_t poll_lock;	/* irqsave: a kernel consumer's polling and arming */
	spinlock_t upcall_lock;	/* _bh: held over the completion handler; none of ours is ever taken around it */
	struct roan_ring ring;
	u32 arm_next_done;	/* arm_next already answered */
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
	spinlock_t post_lock;	/* irqsave: a kernel consumer's posting */
	struct roan_ring ring;
	u32 max_wr;
	u32 max_sge;
	u32 limit;		/* 0: not armed */
	u32 num;
	bool user;
	bool failed;		/* its indices are impossible */
};

/* A receive work request taken from a ring: kernel memory. */
struct roan_recv {
	u64 wr_id;
	u32 num_sge;
	u32 total;		/* bytes of all sges */
	bool taken;
	struct roan_sge *sge;	/* max_sge entries */
};

enum roan_queue_id { ROAN_QUEUE_SQ, ROAN_QUEUE_RQ };

/* A send slot's kernel copy. */
struct roan_wqe_shadow {
	u32 vendor_err;		/* enum roan_vendor_err, once the work failed */
	u32 reserved;

	/* What most slots hold. Behind it the rest of the sges or inline bytes. */
	struct_group(wqe_head,
		struct roan_send_wqe wqe;
		struct roan_sge sge;
	);
};

struct roan_sq {
	spinlock_t lock;	/* _bh */
	spinlock_t post_lock;	/* irqsave: a kernel consumer's posting; never taken with lock */
	struct roan_ring ring;
	void *shadow;		/* struct roan_wqe_shadow of the works not retired yet, same indices as req.work */
	u32 shadow_size;	/* bytes of one */
	struct roan_requester req;
	struct roan_dst_cache flow;
	struct roan_inflight_limit depth;
	u32 max_wr, max_sge, max_inline;
	bool sig_all;
	bool fault_wait;	/* odp_fault.c: what is to be sent next is not there, a worker fetches it */
	bool rx_fault_wait;	/* odp_fault.c: so is the place an answer goes to; it will be asked for again */
	/* no silence is counted: pfc_rx.c will call, as a pause must end first, or tx_inflight.c, when all has left */
	bool ack_timer_stopped;
	bool sqd_notify;	/* tell SQ_DRAINED */
	u32 rx_seq_seen;	/* cpu_yield.c: what had come from the peer at the last bell; atomic */
	u64 timer_at;		/* when the timer, if set, fires at the latest; 0: not set */
	struct hrtimer timer;	/* soft; calls roan_requester_timer() */
	/* counted so far */
	u32 seen_resent, seen_timeouts, seen_rto, seen_seq_naks, seen_rnr_naks, seen_implied, seen_stale;
};

struct roan_rq {
	spinlock_t lock;	/* _bh */
	spinlock_t post_lock;	/* irqsave, as above */
	struct roan_ring ring;	/* unused with an SRQ */
	bool fault_wait;	/* odp_fault.c: what is to be answered is not there, a worker fetches it */
	struct list_head backlog;	/* odp_rxqueue.c: requests whose memory is not there, and what came after them */
	u32 backlog_bytes;
	struct roan_rnr_defer rnr_defer;	/* of the first in @backlog, or of what would be */
	struct roan_flush_job flush_job;
	struct roan_recv cur;	/* the receive under way */
	struct roan_responder resp;
	struct roan_dst_cache flow;
	struct roan_inflight_limit depth;
	struct roan_np np;	/* CNPs to this QP's peer */
	struct task_struct *yield_waiter;	/* cpu_yield.c: sleeps until the peer sends something; NULL: nobody */
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
