// SPDX-License-Identifier: GPL-2.0
/*
 * ib_post_send(), ib_post_recv() and ib_post_srq_recv() of kernel consumers. They fill the user's half of the same kind
 * of ring that a user maps.
 * Callers may have interrupts disabled and hold locks. Filling a ring takes only post_lock, which the data path does
 * not take. With interrupts disabled, sending is deferred.
 * *bad is written on failure only: RDS expects it unchanged after success.
 * The core passes no program's call: ib_device.uverbs_cmd_mask has none of the three. A program fills its ring itself.
 */
#include "base/base.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

static_assert((int)ROAN_SEND_FENCE == IB_SEND_FENCE);
static_assert((int)ROAN_SEND_SIGNALED == IB_SEND_SIGNALED);
static_assert((int)ROAN_SEND_SOLICITED == IB_SEND_SOLICITED);
static_assert((int)ROAN_SEND_INLINE == IB_SEND_INLINE);

static void kpost_fill_sges(struct roan_sge *to, const struct ib_sge *from, int n)
{
	for (; n--; to++, from++)
		*to = (struct roan_sge) { .addr = from->addr, .length = from->length, .lkey = from->lkey };
}

static int kpost_fill_ud(struct roan_send_wqe *wqe, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah)
		return -EINVAL;
	wqe->ud.ah_num = to_roan_ah(ud->ah)->av->ah_num;
	wqe->ud.remote_qpn = ud->remote_qpn;
	wqe->ud.remote_qkey = ud->remote_qkey;
	return 0;
}

static int kpost_fill_operands(const struct roan_qp *qp, struct roan_send_wqe *wqe, const struct ib_send_wr *wr)
{
	switch ((u32)wr->opcode) {	/* cast: the enum of older kernels has no ATOMIC_WRITE */
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		wqe->inv_key = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_SEND_WITH_IMM:
		wqe->imm = wr->ex.imm_data;
		fallthrough;
	case IB_WR_SEND:
		return roan_connected(qp) ? 0 : kpost_fill_ud(wqe, wr);
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm = wr->ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_WRITE:
		wqe->rdma.remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rdma.rkey = rdma_wr(wr)->rkey;
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.remote_addr = atomic_wr(wr)->remote_addr;
		wqe->atomic.compare_add = atomic_wr(wr)->compare_add;
		wqe->atomic.swap = atomic_wr(wr)->swap;
		wqe->atomic.rkey = atomic_wr(wr)->rkey;
		return 0;
	case IB_WR_REG_MR:
		wqe->opcode = ROAN_WR_REG_MR;
		wqe->reg.lkey = reg_wr(wr)->mr->lkey;
		wqe->reg.key = reg_wr(wr)->key;
		wqe->reg.access = reg_wr(wr)->access;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int kpost_fill_inline(const struct roan_qp *qp, struct roan_send_wqe *wqe, const struct ib_send_wr *wr)
{
	u8 *to = (u8 *)(wqe + 1);
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->sq.max_inline - wqe->inline_len)
			return -EINVAL;
		memcpy(to + wqe->inline_len, (void *)(uintptr_t)sge->addr, sge->length);
		wqe->inline_len += sge->length;
	}
	return 0;
}

static int kpost_fill_slot(const struct roan_qp *qp, struct roan_send_wqe *wqe, const struct ib_send_wr *wr)
{
	int err;

	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	*wqe = (struct roan_send_wqe) {
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
	};
	wqe->flags = wr->send_flags & (ROAN_SEND_FENCE | ROAN_SEND_SIGNALED | ROAN_SEND_SOLICITED | ROAN_SEND_INLINE);
	err = kpost_fill_operands(qp, wqe, wr);
	if (err)
		return err;
	if (wqe->flags & ROAN_SEND_INLINE)
		return kpost_fill_inline(qp, wqe, wr);
	wqe->num_sge = wr->num_sge;
	kpost_fill_sges(roan_wqe_sges(wqe), wr->sg_list, wr->num_sge);
	return 0;
}

static int kpost_list(struct roan_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
	__must_hold(&qp->sq.post_lock)
{
	u32 n = 0;
	int err = 0;

	for (; wr; wr = wr->next, n++) {
		struct roan_send_wqe *wqe = roan_ring_post_slot(&qp->sq.ring, n);

		err = wqe ? kpost_fill_slot(qp, wqe, wr) : -ENOMEM;
		if (err)
			break;
	}
	if (err)
		*bad = wr;
	roan_ring_post(&qp->sq.ring, n);	/* WRs before the bad one stay posted */
	return err;
}

int roan_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	unsigned long flags;
	int err;

	if (READ_ONCE(qp->state) < IB_QPS_RTS) {
		*bad = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->sq.post_lock, flags);
	err = kpost_list(qp, wr, bad);
	spin_unlock_irqrestore(&qp->sq.post_lock, flags);

	if (irqs_disabled())
		roan_defer(&qp->deferred, ROAN_DEFER_SEND);	/* sq.lock is a _bh lock: not with irqs off */
	else
		roan_send(qp);
	return err;
}

/* ---- receive queues and SRQs ---- */

static int kpost_fill_recv(struct roan_recv_wqe *wqe, u32 max_sge, const struct ib_recv_wr *wr)
{
	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	*wqe = (struct roan_recv_wqe) { .wr_id = wr->wr_id, .num_sge = wr->num_sge };
	kpost_fill_sges((struct roan_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
	return 0;
}

/* post_lock of the queue held. Writes *@bad on failure only. */
static int kpost_recv_list(struct roan_ring *ring, u32 max_sge, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad)
{
	u32 n = 0;
	int err = 0;

	for (; wr; wr = wr->next, n++) {
		struct roan_recv_wqe *wqe = roan_ring_post_slot(ring, n);

		err = wqe ? kpost_fill_recv(wqe, max_sge, wr) : -ENOMEM;
		if (err)
			break;
	}
	if (err)
		*bad = wr;
	roan_ring_post(ring, n);
	return err;
}

int roan_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	unsigned long flags;
	int err;

	if (qp->srq || READ_ONCE(qp->state) == IB_QPS_RESET) {
		*bad = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->rq.post_lock, flags);
	err = kpost_recv_list(&qp->rq.ring, qp->rq.max_sge, wr, bad);
	spin_unlock_irqrestore(&qp->rq.post_lock, flags);
	if (roan_ring_idle(&qp->rq.ring))
		roan_qp_request_flush(qp);
	return err;
}

int roan_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct roan_srq *srq = to_roan_srq(ibsrq);
	unsigned long flags;
	int err;

	spin_lock_irqsave(&srq->post_lock, flags);
	err = kpost_recv_list(&srq->ring, srq->max_sge, wr, bad);
	spin_unlock_irqrestore(&srq->post_lock, flags);
	return err;
}
