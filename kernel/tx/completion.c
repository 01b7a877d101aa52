// SPDX-License-Identifier: GPL-2.0
/*
 * Writes completions of work requests to their CQs. Does not decide the status of a work request: the transport does.
 */
#include "base/base.h"
#include "base/comp_count.h"
#include "base/trace.h"
#include "tx/tx.h"

static const u8 wc_opcodes[ROAN_NUM_WR_OPCODES] = {
	[ROAN_WR_RDMA_WRITE]		= IB_WC_RDMA_WRITE,
	[ROAN_WR_RDMA_WRITE_WITH_IMM]	= IB_WC_RDMA_WRITE,
	[ROAN_WR_SEND]			= IB_WC_SEND,
	[ROAN_WR_SEND_WITH_IMM]		= IB_WC_SEND,
	[ROAN_WR_SEND_WITH_INV]		= IB_WC_SEND,
	[ROAN_WR_RDMA_READ]		= IB_WC_RDMA_READ,
	[ROAN_WR_ATOMIC_CMP_AND_SWP]	= IB_WC_COMP_SWAP,
	[ROAN_WR_ATOMIC_FETCH_AND_ADD]	= IB_WC_FETCH_ADD,
	[ROAN_WR_ATOMIC_WRITE]		= IB_WC_ATOMIC_WRITE,
	[ROAN_WR_FLUSH]			= IB_WC_FLUSH,
	[ROAN_WR_LOCAL_INV]		= IB_WC_LOCAL_INV,
	[ROAN_WR_BIND_MW]		= IB_WC_BIND_MW,
	[ROAN_WR_REG_MR]		= IB_WC_REG_MR,
};

static u8 wc_opcode(const struct roan_send_wqe *wqe)
{
	return wqe->opcode < ROAN_NUM_WR_OPCODES ? wc_opcodes[wqe->opcode] : IB_WC_SEND;
}

/* Counts requester failures; some have a counter of their own. */
static void completion_count_failure(struct roan_dev *dev, enum roan_status status)
{
	roan_count(dev, req_cqe_error);
	switch (status) {
	case ROAN_ST_RETRY_EXC_ERR:
		roan_count(dev, retry_exceeded_err);
		break;
	case ROAN_ST_RNR_RETRY_EXC_ERR:
		roan_count(dev, retry_rnr_exceeded_err);
		break;
	case ROAN_ST_REM_ACCESS_ERR:
		roan_count(dev, req_remote_access_errors);
		break;
	case ROAN_ST_REM_INV_REQ_ERR:
		roan_count(dev, req_remote_invalid_request);
		break;
	case ROAN_ST_REM_OP_ERR:
		roan_count(dev, req_remote_op_errors);
		break;
	default:
		break;
	}
}

/* A program must not learn which keys exist outside its PD: these are reported as keys that do not exist. */
static u32 completion_hide_foreign_key(const struct roan_qp *qp, u32 verr)
{
	return qp->user && verr == ROAN_VERR_BAD_PD ? ROAN_VERR_BAD_KEY : verr;
}

/* A failure that the peer reported has no local reason: the vendor error then says that the peer is the source. */
static u32 completion_vendor_err(const struct roan_qp *qp, enum roan_status status, u32 verr)
{
	switch (status) {
	case ROAN_ST_REM_ACCESS_ERR:
	case ROAN_ST_REM_INV_REQ_ERR:
	case ROAN_ST_REM_OP_ERR:
		return ROAN_VERR_PEER_NAK;
	case ROAN_ST_BAD_RESP_ERR:
		return ROAN_VERR_PROTOCOL;
	default:
		return completion_hide_foreign_key(qp, verr);
	}
}

/* Not inlined: most requests of a stream are unsignaled, and would clear an unused CQE on the stack. */
static noinline void completion_report_send(struct roan_qp *qp, u32 index, u32 ring_index, enum roan_status status,
					    u32 verr)
	__must_hold(&qp->sq.lock)
{
	const struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, index)->wqe;
	const struct roan_cqe cqe = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wc_opcode(wqe),
		.byte_len = roan_requester_wqe(&qp->sq.req, index)->len,
		.qp_num = qp->ib.qp_num,
		.vendor_err = completion_vendor_err(qp, status, verr),
		.wqe_index = ring_index,
		.qp_handle = qp->handle,
	};

	trace_roan_complete(qp, cqe.wr_id, cqe.opcode, status);
	roan_cq_post(qp->scq, &cqe);
}

void roan_complete_send(struct roan_qp *qp, u32 index, enum roan_status status, u32 verr)
	__must_hold(&qp->sq.lock)
{
	const struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, index)->wqe;
	u32 head = qp->sq.ring.index - (qp->sq.req.tail - qp->sq.req.retire);
	bool report = status != ROAN_ST_SUCCESS || qp->sq.sig_all || wqe->flags & ROAN_SEND_SIGNALED;

	lockdep_assert_held(&qp->sq.lock);
	/* Release the ring slot first: a consumer that sees the completion may reuse the slot at once. */
	if (report)
		roan_ring_set_cqe_until(&qp->sq.ring, head);
	roan_ring_publish(&qp->sq.ring, head);
	roan_comp_count_send(qp, wqe->opcode, status == ROAN_ST_SUCCESS);
	if (status == ROAN_ST_SUCCESS && wc_opcode(wqe) == IB_WC_SEND)
		roan_count(qp->dev, rdma_sends);
	if (status != ROAN_ST_SUCCESS && status != ROAN_ST_WR_FLUSH_ERR)
		completion_count_failure(qp->dev, status);
	if (report)
		completion_report_send(qp, index, head - 1, status, verr);
}

void roan_complete_recv(struct roan_qp *qp, const struct roan_cqe *partial, enum roan_status status, u32 verr)
	__must_hold(&qp->rq.lock)
{
	struct roan_cqe cqe = *partial;

	lockdep_assert_held(&qp->rq.lock);
	roan_comp_count(qp, ROAN_COMP_RECV, status == ROAN_ST_SUCCESS);
	if (status == ROAN_ST_SUCCESS)
		roan_count(qp->dev, rdma_recvs);
	else if (status != ROAN_ST_WR_FLUSH_ERR)
		roan_count(qp->dev, resp_cqe_error);
	cqe.wr_id = qp->rq.cur.wr_id;
	cqe.status = status;
	cqe.vendor_err = completion_hide_foreign_key(qp, verr);
	cqe.qp_num = qp->ib.qp_num;
	cqe.wqe_index = qp->srq ? 0 : qp->rq.ring.index - 1;
	cqe.qp_handle = qp->handle;
	if (!cqe.opcode)
		cqe.opcode = IB_WC_RECV;
	qp->rq.cur.taken = false;
	qp->rq.cur.failed = ROAN_ST_SUCCESS;
	trace_roan_complete(qp, cqe.wr_id, cqe.opcode, status);
	roan_cq_post(qp->rcq, &cqe);
}

void roan_complete_refused(struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	static const struct roan_cqe nothing;
	const struct roan_recv *cur = &qp->rq.cur;

	if (cur->failed)
		roan_complete_recv(qp, &nothing, cur->failed, cur->verr);
	else
		roan_complete_recv(qp, &nothing, ROAN_ST_WR_FLUSH_ERR, ROAN_VERR_NONE);
}
