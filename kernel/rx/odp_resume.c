// SPDX-License-Identifier: GPL-2.0
/* A page fault of a QP was resolved, or refused: both queues run again. */
#include "rx/rx.h"
#include "tx/tx.h"

/* What rested goes on. softirq, no lock held */
void roan_qp_resume(struct roan_qp *qp)
{
	struct roan_sq *sq = &qp->sq;

	spin_lock_bh(&sq->lock);
	if (sq->absent) {
		sq->absent = false;
		roan_requester_excused(&sq->req, ktime_get_ns());
	}
	if (sq->unplaced) {
		sq->unplaced = false;
		roan_requester_again(&sq->req, ktime_get_ns());
	}
	roan_send_locked(qp);
	spin_unlock_bh(&sq->lock);

	spin_lock_bh(&qp->rq.lock);
	qp->rq.absent = false;
	roan_backlog_run(qp);
	spin_unlock_bh(&qp->rq.lock);
	roan_respond(qp);
}
