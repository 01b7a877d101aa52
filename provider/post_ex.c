// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ibv_wr_* calls of an extended QP, which build send requests step by step. They write into the ring directly;
 * wr_complete posts all of them, or none after an error. The send queue is locked from wr_start to wr_complete or
 * wr_abort.
 */
#include <string.h>
#include "roan.h"

#define WITH(op)	(1ull << ROAN_WR_##op)	/* up to SEND_WITH_INV: IBV_QP_EX_WITH_x is bit ROAN_WR_x */
#define WITH_FLUSH	(1ull << 11)
#define WITH_ATOMIC_WRITE	(1ull << 12)

#define SAME_BITS	(2 * WITH(SEND_WITH_INV) - 1)
#if ROAN_RDMA_CORE >= 45
#define NEW_OPS		(WITH_ATOMIC_WRITE | WITH_FLUSH)
#elif ROAN_RDMA_CORE == 44
#define NEW_OPS		WITH_ATOMIC_WRITE
#else
#define NEW_OPS		0
#endif

_Static_assert(WITH(RDMA_WRITE) == IBV_QP_EX_WITH_RDMA_WRITE && WITH(SEND) == IBV_QP_EX_WITH_SEND &&
	       WITH(LOCAL_INV) == IBV_QP_EX_WITH_LOCAL_INV && WITH(BIND_MW) == IBV_QP_EX_WITH_BIND_MW &&
	       WITH(SEND_WITH_INV) == IBV_QP_EX_WITH_SEND_WITH_INV, "operations of extended QPs");

bool roan_send_ops_ok(enum ibv_qp_type type, uint64_t send_ops)
{
	uint64_t ops = roan_allowed_ops(type) & SAME_BITS;

	if (type == IBV_QPT_RC)
		ops |= NEW_OPS;
	return ops && !(send_ops & ~ops);
}

/* ---- begin and end ---- */

/* Keeps the first error. wr_complete then posts nothing. */
static void wr_fail(struct roan_qp *qp, int err)
{
	if (!qp->err)
		qp->err = err;
	qp->wqe = NULL;
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct roan_qp *qp = to_roan_qp_ex(ibqp);

	roan_lock(&qp->sq.lock);
	qp->tail = qp->sq.ring.index;
	qp->wqe = NULL;
	qp->err = qp->state < IBV_QPS_RTS ? EINVAL : 0;
}

/* Undoes what the requests begun have changed outside the ring: the R_Keys of windows, the last bind first. */
static void wr_discard(struct roan_qp *qp)
{
	while (qp->tail != qp->sq.ring.index) {
		const struct roan_send_wqe *wqe = ring_slot(&qp->sq.ring, --qp->tail);
		struct ibv_mw *mw;

		if (wqe->opcode != ROAN_WR_BIND_MW)
			continue;
		memcpy(&mw, wqe + 1, sizeof(mw));
		mw->rkey = wqe->bind.mw_rkey;
	}
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct roan_qp *qp = to_roan_qp_ex(ibqp);
	int err = qp->err;
	bool kick = false;

	if (err)
		wr_discard(qp);
	if (qp->tail != qp->sq.ring.index) {
		ring_post(&qp->sq.ring, qp->tail);
		kick = roan_needs_doorbell(qp);
	}
	roan_unlock(&qp->sq.lock);
	if (kick)
		roan_ring_doorbell(qp);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	wr_discard(to_roan_qp_ex(ibqp));
	roan_unlock(&to_roan_qp_ex(ibqp)->sq.lock);
}

/* ---- requests ---- */

/* Returns a zeroed slot with the header filled, or NULL after an error. */
static struct roan_send_wqe *wr_begin(struct ibv_qp_ex *ibqp, uint8_t opcode)
{
	struct roan_qp *qp = to_roan_qp_ex(ibqp);
	struct roan_send_wqe *wqe;

	if (qp->err)
		return NULL;
	if (!roan_wq_has_space(&qp->sq, qp->tail)) {
		wr_fail(qp, ENOMEM);
		return NULL;
	}
	wqe = ring_slot(&qp->sq.ring, qp->tail++);
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = ibqp->wr_id;
	wqe->opcode = opcode;
	wqe->flags = ibqp->wr_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	qp->wqe = wqe;
	return wqe;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	wr_begin(qp, ROAN_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct roan_send_wqe *wqe = wr_begin(qp, ROAN_WR_SEND_WITH_IMM);

	if (wqe)
		wqe->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct roan_send_wqe *wqe = wr_begin(qp, ROAN_WR_SEND_WITH_INV);

	if (wqe)
		wqe->inv_key = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct roan_send_wqe *wqe = wr_begin(qp, ROAN_WR_LOCAL_INV);

	if (wqe)
		wqe->inv_key = rkey;
}

static struct roan_send_wqe *wr_begin_rdma(struct ibv_qp_ex *qp, uint8_t opcode, uint32_t rkey, uint64_t addr)
{
	struct roan_send_wqe *wqe = wr_begin(qp, opcode);

	if (wqe) {
		wqe->rdma.remote_addr = addr;
		wqe->rdma.rkey = rkey;
	}
	return wqe;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	wr_begin_rdma(qp, ROAN_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	wr_begin_rdma(qp, ROAN_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct roan_send_wqe *wqe = wr_begin_rdma(qp, ROAN_WR_RDMA_WRITE_WITH_IMM, rkey, addr);

	if (wqe)
		wqe->imm = imm;
}

static void wr_atomic(struct ibv_qp_ex *qp, uint8_t opcode, uint32_t rkey, uint64_t addr, uint64_t compare_add,
		      uint64_t swap)
{
	struct roan_send_wqe *wqe = wr_begin(qp, opcode);

	if (!wqe)
		return;
	wqe->atomic.remote_addr = addr;
	wqe->atomic.compare_add = compare_add;
	wqe->atomic.swap = swap;
	wqe->atomic.rkey = rkey;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	wr_atomic(qp, ROAN_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
	wr_atomic(qp, ROAN_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

/* The kernel does not read what follows the WQE: it is for wr_discard(). So no setter may write there. */
static void wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct roan_qp *qp = to_roan_qp_ex(ibqp);
	struct roan_send_wqe *wqe;

	if (info->length && !info->mr) {
		wr_fail(qp, EINVAL);
		return;
	}
	wqe = wr_begin(ibqp, ROAN_WR_BIND_MW);
	if (!wqe)
		return;
	roan_fill_bind(wqe, mw, rkey, info);
	memcpy(wqe + 1, &mw, sizeof(mw));
	qp->wqe = NULL;
}

#if ROAN_RDMA_CORE >= 44
/* These 8 bytes fit into every slot, also with a module that reports max_inline_data 0. */
static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *value)
{
	struct roan_send_wqe *wqe = wr_begin_rdma(qp, ROAN_WR_ATOMIC_WRITE, rkey, addr);

	if (!wqe)
		return;
	wqe->flags |= ROAN_SEND_INLINE;
	wqe->inline_len = 8;
	memcpy(wqe + 1, value, 8);
}
#endif

#if ROAN_RDMA_CORE >= 45
static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level)
{
	struct roan_send_wqe *wqe = wr_begin(qp, ROAN_WR_FLUSH);

	if (!wqe)
		return;
	if (len > UINT32_MAX) {
		wr_fail(to_roan_qp_ex(qp), EINVAL);
		return;
	}
	wqe->flush.remote_addr = addr;
	wqe->flush.rkey = rkey;
	wqe->flush.length = len;
	wqe->flush.type = type;
	wqe->flush.level = level;
}
#endif

/* ---- setters for the request begun last ---- */

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct roan_send_wqe *wqe = to_roan_qp_ex(ibqp)->wqe;

	if (!wqe)
		return;
	wqe->ud.ah_num = ((struct roan_ah *)ah)->ah_num;
	wqe->ud.remote_qpn = qpn;
	wqe->ud.remote_qkey = qkey;
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct roan_qp *qp = to_roan_qp_ex(ibqp);

	if (!qp->wqe)
		return;
	if (!qp->sq.max_sge) {
		wr_fail(qp, EINVAL);
		return;
	}
	*(struct roan_sge *)(qp->wqe + 1) = (struct roan_sge) { .addr = addr, .length = length, .lkey = lkey };
	qp->wqe->num_sge = 1;
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t n, const struct ibv_sge *list)
{
	struct roan_qp *qp = to_roan_qp_ex(ibqp);

	if (!qp->wqe)
		return;
	if (n > qp->sq.max_sge) {
		wr_fail(qp, EINVAL);
		return;
	}
	roan_copy_sges(qp->wqe + 1, list, n);
	qp->wqe->num_sge = n;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t n, const struct ibv_data_buf *list)
{
	struct roan_qp *qp = to_roan_qp_ex(ibqp);
	uint32_t len = 0;
	uint8_t *to;
	size_t i;

	if (!qp->wqe)
		return;
	to = (uint8_t *)(qp->wqe + 1);
	for (i = 0; i < n; i++) {
		if (list[i].length > qp->sq.max_inline - len) {
			wr_fail(qp, EINVAL);
			return;
		}
		if (list[i].length)
			memcpy(to + len, list[i].addr, list[i].length);
		len += list[i].length;
	}
	qp->wqe->flags |= ROAN_SEND_INLINE;
	qp->wqe->inline_len = len;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(qp, 1, &buf);
}

/* ---- which of them a QP has ---- */

void roan_fill_wr_ops(struct ibv_qp_ex *qp, uint64_t send_ops)
{
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp->qp_base.qp_type == IBV_QPT_UD)
		qp->wr_set_ud_addr = wr_set_ud_addr;
	if (send_ops & WITH(SEND))
		qp->wr_send = wr_send;
	if (send_ops & WITH(SEND_WITH_IMM))
		qp->wr_send_imm = wr_send_imm;
	if (send_ops & WITH(SEND_WITH_INV))
		qp->wr_send_inv = wr_send_inv;
	if (send_ops & WITH(RDMA_WRITE))
		qp->wr_rdma_write = wr_rdma_write;
	if (send_ops & WITH(RDMA_WRITE_WITH_IMM))
		qp->wr_rdma_write_imm = wr_rdma_write_imm;
	if (send_ops & WITH(RDMA_READ))
		qp->wr_rdma_read = wr_rdma_read;
	if (send_ops & WITH(ATOMIC_CMP_AND_SWP))
		qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (send_ops & WITH(ATOMIC_FETCH_AND_ADD))
		qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (send_ops & WITH(LOCAL_INV))
		qp->wr_local_inv = wr_local_inv;
	if (send_ops & WITH(BIND_MW))
		qp->wr_bind_mw = wr_bind_mw;
#if ROAN_RDMA_CORE >= 44
	if (send_ops & WITH_ATOMIC_WRITE)
		qp->wr_atomic_write = wr_atomic_write;
#endif
#if ROAN_RDMA_CORE >= 45
	if (send_ops & WITH_FLUSH)
		qp->wr_flush = wr_flush;
#endif
}
