// SPDX-License-Identifier: GPL-2.0
/*
 * Fetches WQEs from the send ring into the requester: each slot is copied once, the copy is validated, and only the
 * copy is used from then on. An invalid slot becomes a work request that has already failed, so that its completion
 * comes in order. Does not send.
 */
#include "base/base.h"
#include "base/trace.h"
#include "tx/tx.h"

#define RC	BIT(ROAN_TP_RC)
#define UC	BIT(ROAN_TP_UC)
#define UD	BIT(ROAN_TP_UD)

/* Attributes of a work request opcode. services 0: no such opcode. */
static const struct wr_info {
	u8 op;			/* enum roan_op */
	u8 ext;			/* enum roan_ext */
	u8 services;		/* set of RC, UC, UD */
	bool inline_ok;
	bool kernel_only;
} wr_rules[ROAN_NUM_WR_OPCODES] = {
	[ROAN_WR_RDMA_WRITE]		= { ROAN_OP_WRITE, ROAN_EXT_NONE, RC | UC, true },
	[ROAN_WR_RDMA_WRITE_WITH_IMM]	= { ROAN_OP_WRITE, ROAN_EXT_IMM, RC | UC, true },
	[ROAN_WR_SEND]			= { ROAN_OP_SEND, ROAN_EXT_NONE, RC | UC | UD, true },
	[ROAN_WR_SEND_WITH_IMM]		= { ROAN_OP_SEND, ROAN_EXT_IMM, RC | UC | UD, true },
	[ROAN_WR_SEND_WITH_INV]		= { ROAN_OP_SEND, ROAN_EXT_INV, RC, true },
	[ROAN_WR_RDMA_READ]		= { ROAN_OP_READ, ROAN_EXT_NONE, RC },
	[ROAN_WR_ATOMIC_CMP_AND_SWP]	= { ROAN_OP_CMP_SWAP, ROAN_EXT_NONE, RC },
	[ROAN_WR_ATOMIC_FETCH_AND_ADD]	= { ROAN_OP_FETCH_ADD, ROAN_EXT_NONE, RC },
	[ROAN_WR_ATOMIC_WRITE]		= { ROAN_OP_ATOMIC_WRITE, ROAN_EXT_NONE, RC, true },
	[ROAN_WR_FLUSH]			= { ROAN_OP_FLUSH, ROAN_EXT_NONE, RC },
	[ROAN_WR_LOCAL_INV]		= { ROAN_OP_LOCAL, ROAN_EXT_NONE, RC | UC },
	[ROAN_WR_BIND_MW]		= { ROAN_OP_LOCAL, ROAN_EXT_NONE, RC | UC },
	[ROAN_WR_REG_MR]		= { ROAN_OP_LOCAL, ROAN_EXT_NONE, RC | UC, false, true },
};

#define KNOWN_FLAGS	(ROAN_SEND_FENCE | ROAN_SEND_SIGNALED | ROAN_SEND_SOLICITED | ROAN_SEND_INLINE)

/* Validates the header of a slot. Keys and addresses are checked on use. Returns 0 or enum roan_vendor_err. */
static u32 wqe_check_header(const struct roan_qp *qp, const struct roan_send_wqe *wqe)
{
	const struct wr_info *rule;

	if (wqe->opcode >= ROAN_NUM_WR_OPCODES)
		return ROAN_VERR_BAD_OPCODE;
	rule = &wr_rules[wqe->opcode];
	if (!(rule->services & BIT(qp->transport)) || (rule->kernel_only && qp->user))
		return ROAN_VERR_BAD_OPCODE;
	if (wqe->flags & ~KNOWN_FLAGS)
		return ROAN_VERR_BAD_FLAGS;
	if (!(wqe->flags & ROAN_SEND_INLINE))
		return wqe->num_sge <= qp->sq.max_sge ? ROAN_VERR_NONE : ROAN_VERR_BAD_SGE;
	if (!rule->inline_ok || wqe->num_sge)
		return ROAN_VERR_BAD_FLAGS;
	return wqe->inline_len <= qp->sq.ring.slot_size - sizeof(*wqe) ? ROAN_VERR_NONE : ROAN_VERR_TOO_LONG;
}

/* Sums the lengths of the scatter list. False: more than a message can have. */
static bool wqe_sum_sges(const struct roan_sge *sge, u32 n, u32 *sum)
{
	u64 total = 0;

	while (n--)
		total += (sge++)->length;
	*sum = total;
	return total <= ROAN_MAX_MSG;
}

static u32 wqe_max_message(const struct roan_qp *qp)
{
	return qp->transport == ROAN_TP_UD ? 1u << qp->mtu_shift : ROAN_MAX_MSG;
}

/* Copies the part of the slot behind wqe_head; the header is valid. */
static void wqe_copy_tail(const struct roan_qp *qp, struct roan_send_wqe *wqe)
{
	struct roan_sge *sges = roan_wqe_sges(wqe);
	u32 bytes = wqe->flags & ROAN_SEND_INLINE ? wqe->inline_len : wqe->num_sge * sizeof(*sges);

	if (bytes > sizeof(*sges))
		roan_ring_copy(&qp->sq.ring, sizeof_field(struct roan_wqe_shadow, wqe_head), sges + 1,
			       bytes - sizeof(*sges));
}

/* Sets the message length and checks it. */
static u32 wqe_check_length(const struct roan_qp *qp, struct roan_send_wqe *wqe, struct roan_tx_wqe *work)
{
	u32 len = wqe->inline_len;

	if (!(wqe->flags & ROAN_SEND_INLINE) && !wqe_sum_sges(roan_wqe_sges(wqe), wqe->num_sge, &len))
		return ROAN_VERR_TOO_LONG;

	switch (work->op) {
	case ROAN_OP_CMP_SWAP:
	case ROAN_OP_FETCH_ADD:
		work->len = sizeof(u64);	/* also if the entries are longer, as with rdma_rxe and mlx5 */
		return len >= sizeof(u64) ? ROAN_VERR_NONE : ROAN_VERR_TOO_LONG;
	case ROAN_OP_ATOMIC_WRITE:
		work->len = sizeof(u64);
		return len == sizeof(u64) ? ROAN_VERR_NONE : ROAN_VERR_TOO_LONG;
	case ROAN_OP_FLUSH:
	case ROAN_OP_LOCAL:
		work->len = 0;
		return ROAN_VERR_NONE;
	default:
		work->len = len;
		return len <= wqe_max_message(qp) ? ROAN_VERR_NONE : ROAN_VERR_TOO_LONG;
	}
}

static enum roan_status wqe_status(u32 verr)
{
	return verr == ROAN_VERR_TOO_LONG ? ROAN_ST_LOC_LEN_ERR : ROAN_ST_LOC_QP_OP_ERR;
}

/*
 * Queues the slot at the requester; an invalid one as a work request that has failed. Returns 0 or enum
 * roan_vendor_err.
 */
static u32 wqe_validate(struct roan_qp *qp, struct roan_send_wqe *wqe)
	__must_hold(&qp->sq.lock)
{
	struct roan_requester *req = &qp->sq.req;
	struct roan_tx_wqe *work;
	u32 index, verr;

	work = roan_requester_slot(req, &index);
	memset(work, 0, sizeof(*work));
	work->op = ROAN_OP_LOCAL;
	verr = wqe_check_header(qp, wqe);
	if (!verr) {
		work->op = wr_rules[wqe->opcode].op;
		work->ext = wr_rules[wqe->opcode].ext;
		work->fence = wqe->flags & ROAN_SEND_FENCE;
		/* What is sent but not acknowledged may have to be read again through the key (10.6.5). */
		work->barrier = wqe->opcode == ROAN_WR_LOCAL_INV &&
				roan_wqe_shadow_uses_key(&qp->sq, index, wqe->inv_key);
		work->solicited = wqe->flags & ROAN_SEND_SOLICITED;
		wqe_copy_tail(qp, wqe);
		verr = wqe_check_length(qp, wqe, work);
	}
	roan_requester_queued(req);
	if (verr)
		roan_requester_fail(req, index, wqe_status(verr));
	return verr;
}

/*
 * Returns true if this WQE has the same opcode, flags and lengths as the previous valid one, so that validation can be
 * skipped: consecutive WQEs are usually alike. The SIGNALED flag may differ, as it is evaluated at completion.
 */
static bool wqe_repeats(struct roan_send_wqe *wqe, struct roan_send_wqe *before)
{
	if (wqe->opcode != before->opcode || (wqe->flags ^ before->flags) & ~ROAN_SEND_SIGNALED ||
	    wqe->num_sge != before->num_sge || wqe->inline_len != before->inline_len)
		return false;
	if (wqe->flags & ROAN_SEND_INLINE)
		return true;
	return wqe->num_sge == 1 && roan_wqe_sges(wqe)->length == roan_wqe_sges(before)->length;
}

/* @good: the WQE fetched before is of the same call, and valid. Returns whether this one is valid. */
static bool wqe_fetch_one(struct roan_qp *qp, bool good)
	__must_hold(&qp->sq.lock)
{
	struct roan_sq *sq = &qp->sq;
	u32 index = sq->req.tail;
	struct roan_wqe_shadow *shadow = roan_sq_shadow(sq, index);
	struct roan_send_wqe *wqe = &shadow->wqe;

	roan_ring_copy_head(&sq->ring, &shadow->wqe_head, sizeof(shadow->wqe_head));
	if (good && wqe_repeats(wqe, &roan_sq_shadow(sq, index - 1)->wqe)) {
		wqe_copy_tail(qp, wqe);
		roan_requester_queue_same(&sq->req);
		shadow->vendor_err = ROAN_VERR_NONE;
	} else {
		shadow->vendor_err = wqe_validate(qp, wqe);
	}
	roan_ring_consume(&sq->ring);
	trace_roan_wqe_fetch(qp, wqe->wr_id, wqe->opcode, roan_requester_wqe(&sq->req, index)->len, shadow->vendor_err);
	return !shadow->vendor_err;
}

/* The poster's process or a softirq: the program that owns the QP pays. */
static bool wqe_shadow_grow_charged(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	struct roan_memcg_scope scope;
	bool grew;

	if (!roan_wqe_shadow_may_grow(&qp->sq))
		return false;
	roan_memcg_enter_qp(&scope, qp);
	grew = roan_wqe_shadow_grow(&qp->sq);
	roan_memcg_leave(&scope);
	return grew;
}

u32 roan_wqe_fetch(struct roan_qp *qp, u32 most)
	__must_hold(&qp->sq.lock)
{
	struct roan_sq *sq = &qp->sq;
	u32 pending, held, n;
	bool good = false;

	lockdep_assert_held(&sq->lock);
	pending = roan_ring_pending(&sq->ring);
	/*
	 * WQEs in the shadow still own their ring slots: a poster that respects the ring's head never gets further
	 * ahead of them than the ring's length.
	 */
	held = sq->req.tail - sq->req.retire;
	if (unlikely(roan_ring_corrupt(&sq->ring, pending) || roan_ring_corrupt(&sq->ring, pending + held))) {
		roan_defer(&qp->deferred, ROAN_DEFER_EV_FATAL);
		roan_qp_set_err(qp);
		return 0;
	}
	pending = min(pending, most);
	for (n = 0; n < pending; n++) {
		if (roan_requester_full(&sq->req) && !wqe_shadow_grow_charged(qp))
			break;
		good = wqe_fetch_one(qp, good);
	}
	return n;
}
