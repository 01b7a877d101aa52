// SPDX-License-Identifier: GPL-2.0
/* Writes one CQE to its CQ and defers the completion event. Does not run the upcall: verbs/cq.c does. */
#include "base/deferred.h"
#include "base/ring.h"
#include "base/stats.h"
#include "tx/tx.h"

/* The CQ is full and the CQE is lost: the consumer made the CQ too small (11.2.6.1). The error is raised once. */
static void cq_set_overflow(struct roan_cq *cq)
	__must_hold(&cq->lock)
{
	roan_count(to_roan_dev(cq->ib.device), cq_overflow);
	if (cq->overflowed)
		return;
	cq->overflowed = true;
	roan_ring_flag_overflow(&cq->ring);
	roan_defer(&cq->deferred, ROAN_DEFER_CQ_ERR);
}

/* Returns true if the consumer has armed the CQ for an entry like this one. Each arming is answered once. */
static bool cq_event_wanted(struct roan_cq *cq, bool solicited)
	__must_hold(&cq->lock)
{
	u32 next, sol;

	roan_ring_armed(&cq->ring, &next, &sol);
	if (next == cq->arm_next_done && !(solicited && sol != cq->arm_solicited_done))
		return false;
	cq->arm_next_done = next;
	cq->arm_solicited_done = sol;
	return true;
}

void roan_cq_raise_armed(struct roan_cq *cq)
{
	spin_lock_bh(&cq->lock);
	if (cq_event_wanted(cq, true))
		roan_defer(&cq->deferred, ROAN_DEFER_NOTIFY);
	spin_unlock_bh(&cq->lock);
}

void roan_cq_post(struct roan_cq *cq, const struct roan_cqe *cqe)
{
	struct roan_cqe *slot;

	/* no padding */
	BUILD_BUG_ON(offsetofend(struct roan_cqe, smac) != offsetof(struct roan_cqe, reserved) ||
		     offsetofend(struct roan_cqe, reserved) != offsetof(struct roan_cqe, wqe_index));
	spin_lock_bh(&cq->lock);
	slot = roan_ring_cqe_slot(&cq->ring);
	if (unlikely(!slot)) {
		cq_set_overflow(cq);
		goto unlock;
	}
	memcpy(slot, cqe, sizeof(*cqe));
	slot->timestamp_ns = ktime_get_ns();
	roan_ring_cqe_done(&cq->ring);
	if (cq_event_wanted(cq, cqe->status || cqe->flags & ROAN_CQE_SOLICITED))
		roan_defer(&cq->deferred, ROAN_DEFER_NOTIFY);
unlock:
	spin_unlock_bh(&cq->lock);
}
