// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how long requests take, for the histograms of latency.h: of each RC queue pair one request at a time, from
 * its fetch out of the send queue to its completion. So the clock is not read and no time is kept for each request.
 */
#include "base/base.h"
#include "tx/tx.h"

void roan_request_time_begin(struct roan_qp *qp, u32 index, u64 now)
{
	lockdep_assert_held(&qp->sq.lock);
	if (qp->transport != ROAN_TP_RC)
		return;		/* completes when it is sent */
	qp->sq.timed_since = now;
	qp->sq.timed_index = index;
}

/* ROAN_NUM_LATENCIES: not measured. */
static enum roan_latency request_kind(u8 op)
{
	switch (op) {
	case ROAN_OP_SEND:
		return ROAN_LAT_send;
	case ROAN_OP_WRITE:
		return ROAN_LAT_write;
	case ROAN_OP_READ:
		return ROAN_LAT_read;
	case ROAN_OP_CMP_SWAP:
	case ROAN_OP_FETCH_ADD:
	case ROAN_OP_ATOMIC_WRITE:
		return ROAN_LAT_atomic;
	case ROAN_OP_FLUSH:
		return ROAN_LAT_flush;
	default:
		return ROAN_NUM_LATENCIES;
	}
}

void roan_request_time_end(struct roan_qp *qp, enum roan_status status, u64 now)
{
	struct roan_sq *sq = &qp->sq;
	enum roan_latency kind = request_kind(roan_requester_wqe(&sq->req, sq->timed_index)->op);

	lockdep_assert_held(&sq->lock);
	if (status == ROAN_ST_SUCCESS && kind != ROAN_NUM_LATENCIES)
		roan_count_time(qp->dev->stats, kind, now - sq->timed_since);
	sq->timed_since = 0;
}
