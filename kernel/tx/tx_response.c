// SPDX-License-Identifier: GPL-2.0
/*
 * What the responder owes leaves here: READ responses, atomic results, ACKs and NAKs, in the order core/transport/responder.c
 * says. Called once after a train of requests, so acknowledgements coalesce; goes on later when much is owed.
 */
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "mem/mem.h"
#include "tx/tx.h"
#include "tx/tx_budget.h"

#define BUDGET	256	/* packets before the rest goes later */

/* AETH credits: receives posted, unless they come from a shared queue (9.7.7.2). */
static u8 response_credits(const struct roan_qp *qp)
{
	u32 pending;

	if (qp->srq)
		return ROAN_AETH_UNLIMITED;
	pending = roan_ring_pending(&qp->rq.ring);
	return roan_credit_code(min(pending, qp->rq.ring.mask + 1));
}

/* 0; or why there is no payload for a READ response: the responder owes a NAK instead, unless it is only absent. */
static u32 response_put_packet(struct roan_qp *qp, struct roan_train *train, const struct roan_response *answer)
	__must_hold(&qp->rq.lock)
{
	const struct roan_opcode *info = roan_opcode(answer->opcode);
	const struct roan_pkt pkt = {
		.opcode = answer->opcode,
		.migreq = true,
		.pad = roan_wire_pad(answer->len),
		.pkey = qp->pkey,
		.qpn = qp->dest_qpn,
		.psn = answer->psn,
		.syndrome = answer->syndrome,
		.msn = answer->msn,
		.orig = answer->orig,
	};
	u32 verr;
	u8 *at;

	at = roan_gso_reserve(train, info->header_len + answer->len + pkt.pad + ROAN_ICRC_LEN);
	if (!at)
		return ROAN_VERR_NONE;	/* as if the wire had lost it: the requester asks again */
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

/* READ responses wait their turn and are marked where it is crowded; ACKs are neither held back nor marked. */
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

/* From its first response on a turn is counted; ACKs are not. */
static bool response_must_wait(struct roan_qp *qp, struct roan_train *train)
	__must_hold(&qp->rq.lock)
{
	if (!train->qp) {
		train->qp = qp;
		train->side = ROAN_QUEUE_RQ;
		train->tx_counted = roan_tx_inflight_begin_round(qp, ROAN_QUEUE_RQ, train->flow->dst);
	}
	return train->tx_counted && roan_train_full_below(train);
}

static void response_send_all(struct roan_qp *qp, struct roan_train *train)
	__must_hold(&qp->rq.lock)
{
	struct roan_responder *resp = &qp->rq.resp;
	u32 budget = BUDGET;
	bool marks = roan_rate_uses_ecn(qp, train->prio);
	struct roan_response answer;
	u32 verr;
	bool data;

	if (unlikely(qp->rq.fault_wait) && roan_responder_unblocked(resp))
		qp->rq.fault_wait = false;
	while (!qp->rq.fault_wait && roan_responder_next(resp, response_credits(qp), &answer)) {
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
		if (marks)
			roan_gso_set_ecn(train, data ? INET_ECN_ECT_0 : INET_ECN_NOT_ECT);
		verr = response_put_packet(qp, train, &answer);
		if (verr == ROAN_VERR_PENDING) {
			roan_responder_block(resp, &answer, ktime_get_ns());
			qp->rq.fault_wait = !roan_responder_unblocked(resp);
		} else if (!verr) {
			roan_responder_sent(resp, &answer);
		} else {
			roan_count(qp->dev, resp_remote_access_errors);
			if (roan_responder_fail(resp, &answer, ROAN_NAK_REMOTE_ACCESS))
				roan_defer(&qp->deferred, ROAN_DEFER_EV_ACCESS_ERR);
		}
	}
	if (unlikely(qp->rq.fault_wait) && roan_responder_defer_rnr(resp, ktime_get_ns(), &answer)) {
		roan_count(qp->dev, send_rnr_err);
		if (marks)
			roan_gso_set_ecn(train, INET_ECN_NOT_ECT);
		response_put_packet(qp, train, &answer);
	}
	/* The refusal is on its way, if it need not wait for what is answered before; now the QP may fail (9.7.5.2.4). */
	if (resp->failed && !qp->rq.fault_wait)
		roan_qp_set_err(qp);
}

void roan_respond(struct roan_qp *qp)
{
	struct roan_train train;

	spin_lock_bh(&qp->rq.lock);
	roan_tx_budget_begin_round();
	if (qp->transport == ROAN_TP_RC &&
	    (qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD)) {
		rcu_read_lock();	/* as gso.c expects of all its callers */
		roan_gso_begin(&train, qp->dev, &qp->rq.flow, roan_qp_av(qp));
		train.round.limiter = roan_limiter_of(qp);
		if (unlikely(train.round.limiter))	/* an ACK must not overtake READ responses, which it would acknowledge */
			train.edt_ns = roan_rate_ack_edt(train.round.limiter);
		train.pfc_enabled = roan_pfc_on(&qp->dev->pfc);
		response_send_all(qp, &train);
		roan_gso_xmit(&train);
		rcu_read_unlock();
	}
	spin_unlock_bh(&qp->rq.lock);
}
