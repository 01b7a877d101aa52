// SPDX-License-Identifier: GPL-2.0
/*
 * Sends what the responder owes: READ responses, atomic responses, ACKs and NAKs. Does not decide which and in what
 * order: core/transport/responder.c does. Called once per batch of received requests, so that ACKs coalesce. What
 * exceeds the budget is deferred.
 */
#include "base/base.h"
#include "base/comp_count.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "mem/mem.h"
#include "tx/gso.h"
#include "tx/tx.h"

#define BUDGET	256	/* packets per round; the remainder is deferred */

/*
 * AETH credits of a round: the posted receives that no complete message has used. The MSN does not count the message
 * under way, so its receive is one of them. Unlimited with an SRQ (9.7.7.2).
 */
static u8 response_credits(const struct roan_qp *qp)
{
	u32 pending;

	if (qp->srq)
		return ROAN_AETH_UNLIMITED;
	pending = roan_ring_pending(&qp->rq.ring);
	return roan_credit_code(min(pending, qp->rq.ring.mask + 1) + qp->rq.cur.taken);
}

/*
 * Builds one response packet. Returns 0, or why a READ response has no payload: ROAN_VERR_PENDING (page fault), or enum
 * roan_vendor_err, and then the responder owes a NAK instead.
 */
static u32 response_put_packet(struct roan_qp *qp, struct roan_train *train, const struct roan_response *answer)
	__must_hold(&qp->rq.lock)
{
	const struct roan_opcode *info = roan_opcode(answer->opcode);
	struct roan_pkt pkt = {
		.opcode = answer->opcode,
		.migreq = true,
		.pad = roan_wire_pad(answer->len),
		.pkey = qp->pkey,
		.qpn = qp->dest_qpn,
		.psn = answer->psn,
		.syndrome = answer->syndrome,
		.msn = answer->msn,
		.orig = answer->orig,
		.ext_version = qp->ext_version,
	};
	u32 verr;
	u8 *at;

	if (qp->rq.reply_sport)
		roan_gso_set_sport(train, answer->sport ?: qp->rq.reply_sport);
	if (unlikely(info->op == ROAN_OP_SACK))
		roan_responder_fill_sack(&qp->rq.resp, &pkt.sack);
	at = roan_gso_reserve(train, info->header_len + answer->len + pkt.pad + ROAN_ICRC_LEN);
	if (!at)
		return ROAN_VERR_NONE;	/* as if lost on the wire: the requester retransmits */
	at += roan_wire_build(at, &pkt);
	roan_key_hold();
	verr = roan_remote_read(qp, answer->rkey, answer->va, at, answer->len,
				roan_gso_crc_begin(train, info->header_len, answer->len));
	if (verr) {
		roan_gso_abort(train);
		return verr;
	}
	memset(at + answer->len, 0, pkt.pad);
	roan_gso_commit(train);
	trace_roan_pkt_tx(qp, &pkt, answer->len, false);
	return ROAN_VERR_NONE;
}

/* Only READ responses wait for the pacer, PFC and the in-flight limit; ACKs do not. */
static bool response_is_data(const struct roan_response *answer)
{
	return roan_opcode(answer->opcode)->op == ROAN_OP_READ_RESP;
}

static bool response_allowed(struct roan_qp *qp, struct roan_train *train, const struct roan_response *answer)
	__must_hold(&qp->rq.lock)
{
	bool ok = roan_rate_admit_response(qp, &train->round, answer);

	roan_gso_set_edt(train, train->round.edt_ns);
	return ok;
}

/*
 * A READ is counted when its last response is sent for the first time. The responses to FLUSH and ATOMIC_WRITE have the
 * opcode of READ responses.
 */
static void response_sent(struct roan_qp *qp, const struct roan_response *answer)
	__must_hold(&qp->rq.lock)
{
	const struct roan_resp_res *res = response_is_data(answer) ? &qp->rq.resp.resp_res[answer->resp_res] : NULL;
	bool sent_once = !res || res->sent_once;

	roan_responder_sent(&qp->rq.resp, answer);
	if (!sent_once && res->sent_once && res->op == ROAN_OP_READ)
		roan_comp_count(qp, ROAN_COMP_REMOTE_READ, true);
}

/*
 * True: a queue of this host is full, or this QP has enough in it. The skbs of a round are counted from its first READ
 * response on; ACKs alone are not counted.
 */
static bool response_must_wait(struct roan_qp *qp, struct roan_train *train)
	__must_hold(&qp->rq.lock)
{
	if (!train->qp) {
		train->qp = qp;
		train->side = ROAN_QUEUE_RQ;
		train->tx_counted = roan_tx_inflight_begin_round(qp, ROAN_QUEUE_RQ, train->flow->dst);
	}
	return train->dropped || (train->tx_counted && roan_gso_inflight_full(train));
}

static void response_send_all(struct roan_qp *qp, struct roan_train *train)
	__must_hold(&qp->rq.lock)
{
	struct roan_responder *resp = &qp->rq.resp;
	u32 budget = BUDGET;
	u8 credits = response_credits(qp);
	struct roan_response answer;
	u32 verr;
	bool data;

	if (unlikely(qp->rq.fault_wait) && roan_responder_unblocked(resp))
		qp->rq.fault_wait = false;
	while (!qp->rq.fault_wait && roan_responder_next(resp, credits, &answer)) {
		data = response_is_data(&answer);
		if (!budget-- || (data && roan_tx_budget_exhausted_after(train))) {
			roan_defer(&qp->deferred, ROAN_DEFER_RESPOND);
			return;
		}
		if (data && response_must_wait(qp, train))
			return;
		if (unlikely(train->pfc_enabled) && data && roan_pfc_check_blocked(qp, ROAN_QUEUE_RQ, train->prio))
			return;
		if (data && train->round.limiter && !response_allowed(qp, train, &answer))
			return;
		verr = response_put_packet(qp, train, &answer);
		if (verr == ROAN_VERR_PENDING) {
			roan_responder_block(resp, &answer, ktime_get_ns());
			qp->rq.fault_wait = !roan_responder_unblocked(resp);
		} else if (!verr) {
			response_sent(qp, &answer);
		} else {
			roan_count(qp->dev, resp_remote_access_errors);
			if (roan_responder_fail(resp, &answer, ROAN_NAK_REMOTE_ACCESS))
				roan_defer(&qp->deferred, ROAN_DEFER_EV_ACCESS_ERR);
		}
	}
	if (unlikely(qp->rq.fault_wait) && roan_responder_defer_rnr(resp, ktime_get_ns(), &answer)) {
		roan_count(qp->dev, send_rnr_err);
		response_put_packet(qp, train, &answer);
	}
	/*
	 * The NAK is handed over, unless it must wait for earlier responses that are blocked on a page fault. Now the
	 * QP may fail (9.7.5.2.4).
	 */
	if (!resp->failed || qp->rq.fault_wait)
		return;
	roan_qp_set_err(qp);
	if (qp->rq.cur.taken && qp->rq.cur.failed)	/* now the program may poll the error, and destroy the QP */
		roan_complete_refused(qp);
}

/* Returns when the NAK for a gap is due; 0: it is pending, or there is none to wait for. */
static u64 response_nak_at(struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	struct roan_responder *resp = &qp->rq.resp;

	return roan_responder_nak_waits(resp) ? roan_responder_timer(resp, ktime_get_ns()) : 0;
}

u64 roan_respond_locked(struct roan_qp *qp)
{
	struct roan_train train;
	u64 again_at;

	lockdep_assert_held(&qp->rq.lock);
	roan_tx_budget_begin_round();
	if (qp->transport != ROAN_TP_RC || !roan_tx_may_respond(qp))
		return 0;
	rcu_read_lock();	/* required by gso.c */
	roan_gso_begin(&train, qp->dev, &qp->rq.flow, roan_qp_av(qp));
	/* ACKs, too: a queue that marks ECT packets drops others. The peer ignores marks on them (cnp.c). */
	if (roan_rate_uses_ecn(qp, train.prio))
		roan_gso_set_ect(&train);
	train.round.limiter = roan_limiter_of(qp);
	/* An ACK must not overtake READ responses: it acknowledges them. */
	if (unlikely(train.round.limiter))
		train.edt_ns = roan_rate_ack_edt(train.round.limiter);
	train.pfc_enabled = roan_pfc_on(&qp->dev->pfc);
	again_at = response_nak_at(qp);
	response_send_all(qp, &train);
	roan_gso_xmit(&train);
	rcu_read_unlock();
	if (unlikely(train.dropped)) {
		roan_tx_inflight_dropped(qp, ROAN_QUEUE_RQ);
		again_at = min_not_zero(again_at, ktime_get_ns() + roan_dropped_wait_ns(&qp->rq.n_dropped));
	} else if (train.sent) {
		qp->rq.n_dropped = 0;
	}
	return again_at;
}

void roan_respond(struct roan_qp *qp)
{
	u64 again_at;

	spin_lock_bh(&qp->rq.lock);
	again_at = roan_respond_locked(qp);
	spin_unlock_bh(&qp->rq.lock);
	if (unlikely(again_at))
		roan_sq_arm_respond(qp, again_at);
}
