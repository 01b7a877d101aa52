// SPDX-License-Identifier: GPL-2.0
/*
 * Flushes the queues of a QP in ERR or SQE: completes requests with WR_FLUSH_ERR, in order, without executing them.
 * Does not decide when: verbs/qp_state.c does for the transition, the doorbell for requests posted afterwards.
 *
 * A round takes ROAN_FLUSH_SLOTS requests of a program's queue, as the rings are long, and a program may refill them as
 * fast as they are flushed. The remainder is deferred: other softirqs run between two rounds, and other deferred work
 * goes first.
 */
#include "base/base.h"
#include "base/comp_count.h"
#include "tx/tx.h"

/*
 * A round of a kernel consumer, which does not refill its queues: one event for all. Some consumers do not arm the CQ
 * again after an error (DRBD before 9.2.12).
 */
#define KERNEL_SLOTS	1024

static void flush_count(const struct roan_qp *qp, const struct roan_ring *ring, u8 opcode)
{
	u8 wr_opcode;

	if (likely(!roan_comp_counts(qp)))
		return;
	if (opcode == IB_WC_RECV) {
		roan_comp_count(qp, ROAN_COMP_RECV, false);
	} else {
		roan_ring_copy(ring, offsetof(struct roan_send_wqe, opcode), &wr_opcode, sizeof(wr_opcode));
		roan_comp_count_send(qp, wr_opcode, false);
	}
}

/* Flushes one slot. Only its wr_id, the first field of both kinds of slot, is used; and, for counters, its opcode. */
static void flush_slot(struct roan_qp *qp, struct roan_ring *ring, struct roan_cq *cq, u8 opcode)
{
	struct roan_cqe cqe = {
		.status = ROAN_ST_WR_FLUSH_ERR,
		.opcode = opcode,
		.qp_num = qp->ib.qp_num,
		.wqe_index = ring->index,
		.qp_handle = qp->handle,
	};

	BUILD_BUG_ON(offsetof(struct roan_send_wqe, wr_id) || offsetof(struct roan_recv_wqe, wr_id));
	roan_ring_copy(ring, 0, &cqe.wr_id, sizeof(cqe.wr_id));
	flush_count(qp, ring, opcode);
	roan_ring_consume(ring);
	roan_ring_set_cqe_until(ring, ring->index);
	roan_ring_publish(ring, ring->index);
	roan_cq_post(cq, &cqe);
}

/*
 * One round. Returns true if the ring is empty; then its doorbell is enabled, as WQEs posted later must be flushed,
 * too. Otherwise the remainder is deferred. A ring with impossible indices is emptied without completions. Each step
 * counts, so that a tail that moves forth and back does not extend the loop.
 */
static bool flush_ring(struct roan_qp *qp, struct roan_ring *ring, struct roan_cq *cq, u8 opcode)
{
	u32 steps = qp->user ? ROAN_FLUSH_SLOTS : KERNEL_SLOTS;
	u32 pending;

	roan_ring_unpark(ring);
	while (steps--) {
		pending = roan_ring_pending(ring);
		if (unlikely(roan_ring_corrupt(ring, pending)))
			roan_ring_discard(ring);
		else if (pending)
			flush_slot(qp, ring, cq, opcode);
		else if (!roan_ring_enable_doorbell(ring))
			return true;
	}
	roan_qp_request_flush(qp);
	return false;
}

bool roan_flush_sq(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	enum roan_status status;
	u32 index;

	lockdep_assert_held(&qp->sq.lock);
	roan_requester_flush(&qp->sq.req);
	while (roan_requester_retired(&qp->sq.req, &index, &status))	/* ROAN_MAX_UNDER_WAY at most */
		roan_complete_send(qp, index, status, roan_sq_shadow(&qp->sq, index)->vendor_err);
	if (!flush_ring(qp, &qp->sq.ring, qp->scq, IB_WC_SEND))
		return false;
	if (qp->last_wqe_due) {
		qp->last_wqe_due = false;
		roan_defer(&qp->deferred, ROAN_DEFER_EV_LAST_WQE);
	}
	return true;
}

bool roan_flush_rq(struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	lockdep_assert_held(&qp->rq.lock);
	if (qp->rq.cur.taken)
		roan_complete_refused(qp);
	return qp->srq || flush_ring(qp, &qp->rq.ring, qp->rcq, IB_WC_RECV);
}

bool roan_flush(struct roan_qp *qp)
{
	bool done = true;

	spin_lock_bh(&qp->rq.lock);
	if (qp->state == IB_QPS_ERR)
		done = roan_flush_rq(qp);
	spin_unlock_bh(&qp->rq.lock);

	spin_lock_bh(&qp->sq.lock);
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_SQE)
		done &= roan_flush_sq(qp);
	spin_unlock_bh(&qp->sq.lock);
	return done;
}
