/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queues a program sees: CQs, SRQs, and the two queues of a QP with all that is theirs. Only types.
 */
#ifndef ROAN_QUEUES_H
#define ROAN_QUEUES_H

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
	struct roan_later later;
	refcount_t refs;
	struct completion gone;
	spinlock_t lock;	/* _bh: producers */
	spinlock_t poll_lock;	/* irqsave: a kernel consumer's polling and arming */
	spinlock_t upcall_lock;	/* _bh: held over the completion handler; none of ours is ever taken around it */
	struct roan_ring ring;
	u32 seen_next;		/* arm_next already answered */
	u32 seen_solicited;
	bool overflowed;
	bool dying;		/* upcall_lock: no more upcalls */
	bool user;
};

struct roan_srq {
	struct ib_srq ib;
	struct roan_later later;
	refcount_t refs;
	struct completion gone;
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

enum roan_side { ROAN_SIDE_SQ, ROAN_SIDE_RQ };

/* A send slot's kernel copy. */
struct roan_mirror {
	u32 verr;		/* enum roan_vendor_err, once the work failed */
	u32 reserved;

	/* What most slots hold. Behind it the rest of the sges or inline bytes. */
	struct_group(first,
		struct roan_send_wqe wqe;
		struct roan_sge sge;
	);
};

struct roan_sq {
	spinlock_t lock;	/* _bh */
	spinlock_t post_lock;	/* irqsave: a kernel consumer's posting; never taken with lock */
	struct roan_ring ring;
	void *mirror;		/* struct roan_mirror of the works not retired yet, same indices as req.work */
	u32 mirror_size;	/* bytes of one */
	struct roan_requester req;
	struct roan_flow flow;
	struct roan_depth depth;
	u32 max_wr, max_sge, max_inline;
	bool sig_all;
	bool absent;		/* odp_fault.c: what is to be sent next is not there, a worker fetches it */
	bool unplaced;		/* odp_fault.c: so is the place an answer goes to; it will be asked for again */
	bool paused;		/* no silence is counted: pfc_rx.c will call, as a pause must end first, or tx_inflight.c, when all has left */
	bool sqd_notify;	/* tell SQ_DRAINED */
	u32 heard;		/* cpu_yield.c: what had come from the peer at the last bell; atomic */
	u64 timer_at;		/* when the timer, if set, fires at the latest; 0: not set */
	struct hrtimer timer;	/* soft; calls roan_requester_timer() */
	u32 seen_resent, seen_timeouts, seen_early, seen_seq_naks, seen_rnr_naks, seen_implied, seen_stale; /* counted so far */
};

struct roan_rq {
	spinlock_t lock;	/* _bh */
	spinlock_t post_lock;	/* irqsave, as above */
	struct roan_ring ring;	/* unused with an SRQ */
	bool absent;		/* odp_fault.c: what is to be answered is not there, a worker fetches it */
	struct list_head backlog;	/* odp_rxqueue.c: requests whose memory is not there, and what came after them */
	u32 backlog_bytes;
	struct roan_rest rest;		/* of the first in @backlog, or of what would be */
	struct roan_write_back write_back;
	struct roan_recv cur;	/* the receive under way */
	struct roan_responder resp;
	struct roan_flow flow;
	struct roan_depth depth;
	struct roan_np np;	/* CNPs to this QP's peer */
	struct task_struct *listener;	/* cpu_yield.c: sleeps until the peer sends something; NULL: nobody */
	u32 max_wr, max_sge;
};

static inline struct roan_mirror *roan_sq_mirror(const struct roan_sq *sq, u32 index)
{
	return sq->mirror + (size_t)(index & sq->req.mask) * sq->mirror_size;
}

static inline struct roan_sge *roan_wqe_sges(struct roan_send_wqe *wqe)
{
	return (struct roan_sge *)(wqe + 1);
}

#endif /* ROAN_QUEUES_H */
