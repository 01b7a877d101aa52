// SPDX-License-Identifier: GPL-2.0
/*
 * Resumes a QP after a page fault was resolved or has failed: both queues run again. Does not handle the fault itself:
 * mem/odp_fault.c does.
 */
#include "rx/rx.h"
#include "tx/tx.h"

/*
 * Clears the page-fault state of both queues and runs them. Any fault of the QP may have ended: a dropped response is
 * requested again only if none that it waits for goes on. softirq, no lock held
 */
void roan_qp_restart(struct roan_qp *qp)
{
	struct roan_sq *sq = &qp->sq;

	spin_lock_bh(&sq->lock);
	roan_requester_release(&sq->req, ktime_get_ns());
	if (sq->rx_fault_wait && !roan_odp_response_waits(qp)) {
		sq->rx_fault_wait = false;
		roan_requester_retransmit(&sq->req, ktime_get_ns());
	}
	roan_send_locked(qp);
	spin_unlock_bh(&sq->lock);

	spin_lock_bh(&qp->rq.lock);
	qp->rq.fault_wait = false;
	roan_odp_rxq_run(qp);
	rcu_read_lock();
	if (roan_early_any(qp))
		roan_early_run(qp);
	rcu_read_unlock();
	spin_unlock_bh(&qp->rq.lock);
	roan_respond(qp);
}
