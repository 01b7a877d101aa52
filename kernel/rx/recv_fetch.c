// SPDX-License-Identifier: GPL-2.0
/* Fetches a receive WQE from the ring of a QP or of an SRQ. Does not complete it: tx/completion.c does. */
#include "base/deferred.h"
#include "base/ring.h"
#include "rx/rx.h"

enum roan_fetch_status roan_recv_fetch(struct roan_ring *ring, u32 max_sge, struct roan_recv *recv, u32 *verr)
{
	u32 pending = roan_ring_pending(ring);
	struct roan_recv_wqe wqe;
	u64 total = 0;
	u32 i;

	if (!pending)
		return ROAN_FETCH_EMPTY;
	*verr = ROAN_VERR_RING;
	if (roan_ring_corrupt(ring, pending))
		return ROAN_FETCH_BAD;

	roan_ring_copy(ring, 0, &wqe, sizeof(wqe));
	*verr = ROAN_VERR_BAD_SGE;
	recv->failed = ROAN_ST_SUCCESS;
	recv->wr_id = wqe.wr_id;
	recv->num_sge = min(wqe.num_sge, max_sge);
	roan_ring_copy(ring, sizeof(wqe), recv->sge, recv->num_sge * sizeof(*recv->sge));
	roan_ring_consume(ring);
	for (i = 0; i < recv->num_sge; i++)
		total += recv->sge[i].length;
	if (wqe.num_sge > max_sge || total > U32_MAX)
		return ROAN_FETCH_BAD;
	recv->total = total;
	recv->taken = true;
	*verr = ROAN_VERR_NONE;
	return ROAN_FETCH_OK;
}

/* Called with the rq.lock of a QP held. */
static enum roan_fetch_status srq_fetch(struct roan_srq *srq, struct roan_recv *recv, u32 *verr)
{
	enum roan_fetch_status got;

	spin_lock_bh(&srq->lock);
	if (srq->failed) {
		got = ROAN_FETCH_EMPTY;
		goto unlock;
	}
	got = roan_recv_fetch(&srq->ring, srq->max_sge, recv, verr);
	if (got == ROAN_FETCH_BAD && *verr == ROAN_VERR_RING) {
		srq->failed = true;
		roan_defer(&srq->deferred, ROAN_DEFER_SRQ_ERR);
	} else if (got != ROAN_FETCH_EMPTY) {
		roan_ring_publish(&srq->ring, srq->ring.index);
	}
	if (srq->limit && roan_ring_pending(&srq->ring) < srq->limit) {
		srq->limit = 0;		/* one event per arming (11.2.3.3) */
		roan_defer(&srq->deferred, ROAN_DEFER_SRQ_LIMIT);
	}
unlock:
	spin_unlock_bh(&srq->lock);
	return got;
}

enum roan_fetch_status roan_rx_fetch(struct roan_qp *qp, u32 *verr)
{
	enum roan_fetch_status got;

	lockdep_assert_held(&qp->rq.lock);
	if (qp->srq) {
		got = srq_fetch(qp->srq, &qp->rq.cur, verr);
	} else {
		got = roan_recv_fetch(&qp->rq.ring, qp->rq.max_sge, &qp->rq.cur, verr);
		if (got == ROAN_FETCH_OK) {
			roan_ring_set_cqe_until(&qp->rq.ring, qp->rq.ring.index);
			roan_ring_publish(&qp->rq.ring, qp->rq.ring.index);
		}
	}
	if (got != ROAN_FETCH_BAD)
		return got;
	if (*verr == ROAN_VERR_RING)
		roan_defer(&qp->deferred, ROAN_DEFER_EV_FATAL);
	else
		qp->rq.cur.taken = true;	/* its wr_id is known, for a completion in error */
	return got;
}
