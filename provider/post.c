// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting lists of work requests: sends, receives, window binds. Only immediate errors of the verbs are checked here.
 * The kernel checks the rest after it has copied the slot, and reports errors by a completion.
 */
#include <string.h>
#include "roan.h"

#define BIT(n)	(1u << (n))

#define ANY_OPS		(BIT(ROAN_WR_SEND) | BIT(ROAN_WR_SEND_WITH_IMM))
#define UC_OPS		(ANY_OPS | BIT(ROAN_WR_RDMA_WRITE) | BIT(ROAN_WR_RDMA_WRITE_WITH_IMM) | BIT(ROAN_WR_LOCAL_INV) | \
			 BIT(ROAN_WR_BIND_MW))
#define RC_OPS		(UC_OPS | BIT(ROAN_WR_RDMA_READ) | BIT(ROAN_WR_ATOMIC_CMP_AND_SWP) | \
			 BIT(ROAN_WR_ATOMIC_FETCH_AND_ADD) | BIT(ROAN_WR_SEND_WITH_INV) | BIT(ROAN_WR_ATOMIC_WRITE))
#define ALL_OPS		RC_OPS
#define INLINE_OPS	(ANY_OPS | BIT(ROAN_WR_RDMA_WRITE) | BIT(ROAN_WR_RDMA_WRITE_WITH_IMM) | \
			 BIT(ROAN_WR_SEND_WITH_INV) | BIT(ROAN_WR_ATOMIC_WRITE))
#define KNOWN_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

ROAN_SAME(ROAN_SEND_FENCE, IBV_SEND_FENCE);
ROAN_SAME(ROAN_SEND_SIGNALED, IBV_SEND_SIGNALED);
ROAN_SAME(ROAN_SEND_SOLICITED, IBV_SEND_SOLICITED);
ROAN_SAME(ROAN_SEND_INLINE, IBV_SEND_INLINE);
ROAN_SAME(ROAN_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE);
ROAN_SAME(ROAN_WR_RDMA_READ, IBV_WR_RDMA_READ);
ROAN_SAME(ROAN_WR_LOCAL_INV, IBV_WR_LOCAL_INV);
ROAN_SAME(ROAN_WR_BIND_MW, IBV_WR_BIND_MW);
ROAN_SAME(ROAN_WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);

/* ---- sends ---- */

uint32_t roan_allowed_ops(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return RC_OPS;
	case IBV_QPT_UC:
		return UC_OPS;
	case IBV_QPT_UD:
		return ANY_OPS;
	default:
		return 0;
	}
}

static int fill_inline(struct roan_send_wqe *wqe, const struct roan_wq *sq, const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)(wqe + 1);
	uint32_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length > sq->max_inline - len)
			return EINVAL;
		if (sge->length)
			memcpy(to + len, (void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	wqe->inline_len = len;
	return 0;
}

static int fill_sges(struct roan_send_wqe *wqe, const struct roan_wq *sq, const struct ibv_send_wr *wr)
{
	if ((uint32_t)wr->num_sge > sq->max_sge)	/* rejects negative numbers too */
		return EINVAL;
	roan_copy_sges(wqe + 1, wr->sg_list, wr->num_sge);
	wqe->num_sge = wr->num_sge;
	return 0;
}

/*
 * The program chooses the low 8 bits of the window's R_Key; the index does not change. Programs read the new key from
 * mw->rkey, to send it to the peer and to invalidate it. For a type 1 window roan_bind_mw() sets it.
 */
void roan_fill_bind(struct roan_send_wqe *wqe, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.mr_lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind.mw_rkey = mw->rkey;
	wqe->bind.new_rkey = rkey;
	wqe->bind.access = info->mw_access_flags;
	if (mw->type == IBV_MW_TYPE_2)
		mw->rkey = (mw->rkey & ~0xffu) | (rkey & 0xff);
}

static int fill_target(struct roan_send_wqe *wqe, enum ibv_qp_type type, const struct ibv_send_wr *wr)
{
	if (type == IBV_QPT_UD) {
		if (!wr->wr.ud.ah)
			return EINVAL;
		wqe->ud.ah_num = ((struct roan_ah *)wr->wr.ud.ah)->ah_num;
		wqe->ud.remote_qpn = wr->wr.ud.remote_qpn;
		wqe->ud.remote_qkey = wr->wr.ud.remote_qkey;
		return 0;
	}
	switch ((uint32_t)wr->opcode) {
	case ROAN_WR_BIND_MW:
		if (!wr->bind_mw.mw || (wr->bind_mw.bind_info.length && !wr->bind_mw.bind_info.mr))
			return EINVAL;
		roan_fill_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return 0;
	case ROAN_WR_ATOMIC_CMP_AND_SWP:
	case ROAN_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.remote_addr = wr->wr.atomic.remote_addr;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
		wqe->atomic.rkey = wr->wr.atomic.rkey;
		return 0;
	default:
		wqe->rdma.remote_addr = wr->wr.rdma.remote_addr;
		wqe->rdma.rkey = wr->wr.rdma.rkey;
		return 0;
	}
}

static int fill_send(struct roan_send_wqe *wqe, const struct roan_qp *qp, const struct ibv_send_wr *wr)
{
	enum ibv_qp_type type = qp->vqp.qp.qp_type;
	uint32_t op = wr->opcode;
	int err;

	if (op >= 32 || !(ALL_OPS & BIT(op)))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && !(INLINE_OPS & BIT(op)))
		return EINVAL;
	memset(wqe, 0, sizeof(*wqe));	/* the slot holds an old request */
	wqe->wr_id = wr->wr_id;
	wqe->opcode = op;
	wqe->flags = wr->send_flags & KNOWN_FLAGS;	/* others are ignored: programs leave them uninitialised */
	if (!(roan_allowed_ops(type) & BIT(op)))	/* the kernel completes it with LOC_QP_OP_ERR */
		return 0;
	wqe->imm = wr->imm_data;	/* or invalidate_rkey: the same bytes in both unions */
	err = fill_target(wqe, type, wr);
	if (err || op == ROAN_WR_BIND_MW || op == ROAN_WR_LOCAL_INV)
		return err;
	return wr->send_flags & IBV_SEND_INLINE ? fill_inline(wqe, &qp->sq, wr) : fill_sges(wqe, &qp->sq, wr);
}

int roan_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	struct roan_wq *sq = &qp->sq;
	bool kick = false;
	uint32_t tail;
	int err = 0;

	roan_lock(&sq->lock);
	tail = sq->ring.index;
	for (; wr; wr = wr->next, tail++) {
		if (qp->state < IBV_QPS_RTS)	/* an immediate error (10.8.2) */
			err = EINVAL;
		else if (!roan_wq_has_space(sq, tail))
			err = ENOMEM;
		else
			err = fill_send(ring_slot(&sq->ring, tail), qp, wr);
		if (err)
			break;
	}
	if (tail != sq->ring.index) {
		ring_post(&sq->ring, tail);
		kick = roan_needs_doorbell(qp);
	}
	roan_unlock(&sq->lock);
	if (kick)
		roan_ring_doorbell(qp);
	if (err)
		*bad = wr;
	return err;
}

/* For which regions the kernel would fail a bind, and the QP with it: kernel/mem/mw.c. */
static int bind_check_mr(const struct ibv_mr *ibmr)
{
	const struct verbs_mr *mr = (const struct verbs_mr *)ibmr;	/* its first member */

	if (mr->mr_type == IBV_MR_TYPE_DMABUF_MR || mr->access & IBV_ACCESS_ON_DEMAND)
		return ENOTSUP;
	return mr->access & IBV_ACCESS_ZERO_BASED ? EINVAL : 0;
}

int roan_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	/*
	 * Local write is a right of the MR, not of the window. It is accepted because programs set it. A window of type
	 * 1 cannot be zero-based: the kernel would fail the bind, and the QP with it.
	 */
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC;
	const struct ibv_mw_bind_info *info = &bind->bind_info;
	struct ibv_send_wr *bad, wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = *info },
	};
	int err;

	if (info->mw_access_flags & ~known)
		return EINVAL;
	if (info->mr && info->mr->pd != mw->pd)
		return EPERM;
	err = info->mr ? bind_check_mr(info->mr) : 0;
	if (err)
		return err;
	err = roan_post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* ---- receives ---- */

static int fill_recv(struct roan_recv_wqe *wqe, const struct roan_wq *rq, const struct ibv_recv_wr *wr)
{
	if ((uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	*wqe = (struct roan_recv_wqe) { .wr_id = wr->wr_id, .num_sge = wr->num_sge };
	roan_copy_sges(wqe + 1, wr->sg_list, wr->num_sge);
	return 0;
}

/* rq->lock held. True: at least one receive was posted. */
static bool post_recv_list(struct roan_wq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, int *err)
{
	uint32_t tail = rq->ring.index;

	*err = 0;
	for (; wr; wr = wr->next, tail++) {
		if (!roan_wq_has_space(rq, tail))
			*err = ENOMEM;
		else
			*err = fill_recv(ring_slot(&rq->ring, tail), rq, wr);
		if (*err) {
			*bad = wr;
			break;
		}
	}
	if (tail == rq->ring.index)
		return false;
	ring_post(&rq->ring, tail);
	return true;
}

int roan_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	bool kick;
	int err;

	if (!qp->rq.ring.ctl || qp->state == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	roan_lock(&qp->rq.lock);
	kick = post_recv_list(&qp->rq, wr, bad, &err) && ring_idle(&qp->rq.ring);
	roan_unlock(&qp->rq.lock);
	if (kick)
		roan_ring_doorbell(qp);
	return err;
}

int roan_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct roan_srq *srq = to_roan_srq(ibsrq);
	int err;

	roan_lock(&srq->rq.lock);
	post_recv_list(&srq->rq, wr, bad, &err);
	roan_unlock(&srq->rq.lock);
	return err;
}
