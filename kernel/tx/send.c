// SPDX-License-Identifier: GPL-2.0
/*
 * The send loop: fetch, ask the requester, build, hand over. What to send and when is core/transport/requester.c; how packets
 * become skbs is gso.c. Runs in the poster's context (doorbell), in softirq (an ACK came) and from the QP's timer.
 */
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "tx/tx.h"
#include "tx/tx_budget.h"

/*
 * Packets that leave at a stretch, at most; what is left goes later. Why it depends on the CPUs stands at single_cpu().
 */
#define ROUND_PKTS_ONE_CPU	256
#define ROUND_PKTS	60	/* four full trains of 4 KB each; of smaller packets, most of two or one */

/* While an answer is due, one more of so many under way is worth a system call. */
#define NOTIFY_SHARE	4

/* The address vector of a datagram's work request; NULL: no such, or not this QP's PD. */
static const struct roan_av *tx_datagram_av(struct roan_qp *qp, const struct roan_send_wqe *wqe)
{
	const struct roan_av *av = roan_av_find(qp->dev, wqe->ud.ah_num);

	return av && av->pd == qp->ib.pd ? av : NULL;
}

/* What a message has of its own, where it is like the one before. */
static void tx_fill_message(const struct roan_send_wqe *wqe, struct roan_pkt *pkt)
{
	pkt->imm = wqe->imm;
	pkt->inv_rkey = wqe->inv_key;
	pkt->rkey = wqe->rdma.rkey;
	pkt->va = wqe->rdma.remote_addr;
}

/*
 * Headers of the packets @emit describes, but for their PSNs, their address vector and what tx_begin_flow() wrote. Of
 * headers that the opcode does not have, another packet's may be left: they are not built.
 */
static void tx_fill_headers(const struct roan_qp *qp, const struct roan_send_wqe *wqe, const struct roan_tx_wqe *work,
			    const struct roan_tx_desc *emit, struct roan_pkt *pkt)
{
	pkt->opcode = emit->opcode;
	pkt->solicited = emit->solicited;
	pkt->ackreq = emit->ackreq;
	pkt->dma_len = work->len;
	tx_fill_message(wqe, pkt);
	switch (work->op) {
	case ROAN_OP_READ:
		pkt->va += emit->offset;
		pkt->dma_len = emit->len;
		break;
	case ROAN_OP_CMP_SWAP:
		pkt->rkey = wqe->atomic.rkey;
		pkt->compare = wqe->atomic.compare_add;
		pkt->swap_add = wqe->atomic.swap;
		break;
	case ROAN_OP_FETCH_ADD:
		pkt->rkey = wqe->atomic.rkey;
		pkt->swap_add = wqe->atomic.compare_add;
		break;
	case ROAN_OP_FLUSH:
		pkt->dma_len = wqe->flush.length;
		pkt->flush_type = wqe->flush.type;
		pkt->flush_level = wqe->flush.level;
		break;
	default:
		break;
	}
	if (qp->transport == ROAN_TP_UD) {
		pkt->qpn = wqe->ud.remote_qpn & QPN_MASK;
		/* A Q_Key with the top bit set asks for the QP's own (10.2.5). */
		pkt->qkey = wqe->ud.remote_qkey & BIT(31) ? qp->qkey : wqe->ud.remote_qkey;
		pkt->src_qpn = qp->ib.qp_num;
	}
}

static u32 tx_put_payload(struct roan_qp *qp, struct roan_send_wqe *wqe, u32 offset, u8 *to, u32 len,
			  struct roan_icrc *icrc)
{
	if (wqe->flags & ROAN_SEND_INLINE) {
		roan_icrc_copy(icrc, to, (u8 *)(wqe + 1) + offset, len);
		return ROAN_VERR_NONE;
	}
	return roan_gather(qp, (struct roan_sge_list) { roan_wqe_sges(wqe), wqe->num_sge, qp->ib.pd }, offset, to, len,
			   icrc);
}

static void tx_fail_wqe(struct roan_qp *qp, u32 index, u32 verr, enum roan_status status)
{
	roan_sq_shadow(&qp->sq, index)->vendor_err = verr;
	roan_requester_fail(&qp->sq.req, index, status);
}

/* Packets of this address from here on; with the limiter that is a turn of its own. */
static void tx_begin_flow(struct roan_qp *qp, struct roan_train *train, const struct roan_av *av)
{
	roan_gso_begin(train, qp->dev, &qp->sq.flow, av);
	train->pkt.migreq = true;
	train->pkt.pkey = qp->pkey;
	train->pkt.qpn = qp->dest_qpn;
	train->qp = qp;
	train->side = ROAN_QUEUE_SQ;
	train->tx_counted = roan_tx_inflight_begin_round(qp, ROAN_QUEUE_SQ, qp->sq.flow.dst);
	train->round.limiter = roan_limiter_of(qp);
	train->pfc_enabled = roan_pfc_on(&qp->dev->pfc);
	if (roan_rate_uses_ecn(qp, train->prio))
		roan_gso_set_ecn(train, INET_ECN_ECT_0);
}

/*
 * Build packet number @i of those that are like @emit into the train. 0; or why there is no payload for it. A packet for which
 * there is no memory or no route counts as sent and lost: the retransmission finds out, or the retry counter.
 */
static u32 tx_put_packet(struct roan_qp *qp, struct roan_train *train, const struct roan_tx_desc *emit, u32 i)
	__must_hold(&qp->sq.lock)
{
	struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, roan_tx_desc_index(emit, i))->wqe;
	const struct roan_opcode *info = roan_opcode(emit->opcode);
	u32 payload = info->payload ? emit->len : 0;
	struct roan_pkt *pkt = &train->pkt;
	u32 verr;
	u8 *at;

	if (i && emit->single_pkt)
		tx_fill_message(wqe, pkt);
	pkt->psn = psn_add(emit->psn, i);
	pkt->pad = roan_wire_pad(payload);
	at = roan_gso_reserve(train, info->header_len + payload + pkt->pad + ROAN_ICRC_LEN);
	if (!at)
		return ROAN_VERR_NONE;
	at += roan_wire_build(at, pkt);
	roan_key_hold();
	verr = tx_put_payload(qp, wqe, roan_tx_desc_offset(emit, i), at, payload,
			      roan_gso_crc_begin(train, info->header_len, payload));
	if (verr) {
		roan_gso_abort(train);
		return verr;
	}
	if (pkt->pad)
		memset(at + payload, 0, pkt->pad);
	roan_gso_commit(train);
	trace_roan_pkt_tx(qp, pkt, payload, emit->resend);
	return ROAN_VERR_NONE;
}

/*
 * The packet, and up to @most - 1 others like it, until the burst is over, the work is refused, or it has to wait
 * (sq.fault_wait). How much of the budget that took: 1 at least.
 */
static u32 tx_put_packets(struct roan_qp *qp, struct roan_train *train, struct roan_tx_desc *emit, u32 most, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_tx_wqe *work = roan_requester_wqe(&qp->sq.req, emit->index);
	struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, emit->index)->wqe;
	const struct roan_av *av = roan_qp_av(qp);
	u32 verr = ROAN_VERR_NONE, n;

	if (qp->transport == ROAN_TP_UD) {
		av = tx_datagram_av(qp, wqe);
		if (!av) {
			tx_fail_wqe(qp, emit->index, ROAN_VERR_BAD_AH, ROAN_ST_LOC_QP_OP_ERR);
			return 1;
		}
	}
	if (train->av != av) {
		u64 due = train->edt_ns;

		roan_gso_xmit(train);
		tx_begin_flow(qp, train, av);
		roan_gso_set_edt(train, due);
	}

	tx_fill_headers(qp, wqe, work, emit, &train->pkt);
	for (n = 0; n < most && !(n && roan_tx_budget_exhausted_after(train)); n++) {
		verr = tx_put_packet(qp, train, emit, n);
		if (verr)
			break;
	}
	if (n) {
		emit->npsn += n - 1;
		roan_requester_sent(&qp->sq.req, emit, train->edt_ns ?: now);
	}
	if (verr == ROAN_VERR_PENDING)
		qp->sq.fault_wait = true;
	else if (verr)
		tx_fail_wqe(qp, roan_tx_desc_index(emit, n), verr, ROAN_ST_LOC_PROT_ERR);
	return max(n, 1u);
}

/* How many packets may be built without asking anybody but the requester, of those like @emit. */
static u32 tx_batch_len(const struct roan_qp *qp, const struct roan_train *train, const struct roan_tx_desc *emit,
			u32 budget)
	__must_hold(&qp->sq.lock)
{
	if (train->tx_counted || train->pfc_enabled || train->round.limiter)
		return 1;
	return 1 + roan_requester_batch_count(&qp->sq.req, emit, budget - 1);
}

static void tx_local_work(struct roan_qp *qp, u32 index)
	__must_hold(&qp->sq.lock)
{
	const struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, index)->wqe;
	u32 verr;

	switch (wqe->opcode) {
	case ROAN_WR_LOCAL_INV:
		verr = roan_key_invalidate_local(qp, wqe->inv_key);
		break;
	case ROAN_WR_BIND_MW:
		verr = roan_mw_bind(qp, wqe);
		break;
	default:
		verr = roan_mr_reg(qp, wqe);
		break;
	}
	if (verr)
		tx_fail_wqe(qp, index, verr, wqe->opcode == ROAN_WR_BIND_MW ? ROAN_ST_MW_BIND_ERR :
			    ROAN_ST_LOC_QP_OP_ERR);
	else
		roan_requester_local_done(&qp->sq.req, index);
}

static bool request_allowed(struct roan_qp *qp, struct roan_train *train, struct roan_tx_desc *emit)
	__must_hold(&qp->sq.lock)
{
	bool ok = roan_rate_admit_request(qp, &train->round, emit);

	roan_gso_set_edt(train, train->round.edt_ns);
	return ok;
}

/* Is the priority of this packet paused? Where it has no address it is refused soon enough. */
static bool tx_pfc_blocked(struct roan_qp *qp, struct roan_train *train, const struct roan_tx_desc *emit)
	__must_hold(&qp->sq.lock)
{
	const struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, emit->index)->wqe;
	const struct roan_av *av = roan_connected(qp) ? roan_qp_av(qp) : tx_datagram_av(qp, wqe);

	train->pfc_blocked = roan_pfc_check_blocked(qp, ROAN_QUEUE_SQ,
						    roan_qos_prio(qp->dev, roan_qos_tclass(qp->dev, av)));
	return train->pfc_blocked;
}

/* Sends until the requester, our own host's queues, a pause or the limiter say wait, or the budget is gone. False: budget gone. */
static bool tx_send_wqes(struct roan_qp *qp, struct roan_train *train, u32 *budget, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_requester *req = &qp->sq.req;
	struct roan_tx_desc emit;

	while (*budget && !qp->sq.fault_wait && !roan_tx_budget_exhausted_after(train)) {
		switch (roan_requester_next(req, now, &emit)) {
		case ROAN_NEXT_PACKET:
			train->round.blocked = train->tx_counted && roan_train_full_below(train);
			if (train->round.blocked)
				return true;
			if (unlikely(train->pfc_enabled) && tx_pfc_blocked(qp, train, &emit))
				return true;
			if (unlikely(train->round.limiter) && !request_allowed(qp, train, &emit))
				return true;
			*budget -= tx_put_packets(qp, train, &emit, tx_batch_len(qp, train, &emit, *budget), now);
			break;
		case ROAN_NEXT_LOCAL:
			--*budget;
			tx_local_work(qp, emit.index);
			break;
		case ROAN_NEXT_IDLE:
		case ROAN_NEXT_WAIT:
			return true;
		}
	}
	return qp->sq.fault_wait;
}

#define COUNT_DELTA(qp, seen, now_at, name) do {			\
	roan_count_n((qp)->dev, name, (u32)((now_at) - (seen)));	\
	(seen) = (now_at);						\
} while (0)

/* The requester keeps plain counts; turn what is new into the device's counters. */
static void tx_count_events(struct roan_qp *qp)
{
	struct roan_sq *sq = &qp->sq;

	COUNT_DELTA(qp, sq->seen_resent, sq->req.n_resent, resent_pkts);
	COUNT_DELTA(qp, sq->seen_timeouts, sq->req.n_timeouts, local_ack_timeout_err);
	COUNT_DELTA(qp, sq->seen_rto, sq->req.n_rto, roce_adp_retrans_to);
	COUNT_DELTA(qp, sq->seen_seq_naks, sq->req.n_seq_naks, rcvd_seq_err);
	COUNT_DELTA(qp, sq->seen_rnr_naks, sq->req.n_rnr_naks, rcvd_rnr_err);
	COUNT_DELTA(qp, sq->seen_implied, sq->req.n_implied_naks, implied_nak_seq_err);
	COUNT_DELTA(qp, sq->seen_stale, sq->req.n_stale, stale_response);
}

/* Give finished work back to the consumer. */
static void tx_retire(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	struct roan_sq *sq = &qp->sq;
	enum roan_status status;
	u32 index;

	while (roan_requester_retired(&sq->req, &index, &status)) {
		roan_complete_send(qp, index, status, roan_sq_shadow(sq, index)->vendor_err);
		if (status != ROAN_ST_SUCCESS)
			roan_sq_set_err(qp);
	}
	if (sq->sqd_notify && roan_requester_drained(&sq->req)) {
		sq->sqd_notify = false;
		roan_defer(&qp->deferred, ROAN_DEFER_EV_SQ_DRAINED);
	}
}

/* What leaves with @budget packets, and what is behind that: whether there is something decides about its last one. */
static void tx_fetch(struct roan_qp *qp, u32 budget)
	__must_hold(&qp->sq.lock)
{
	u32 n = roan_wqe_fetch(qp, budget + 1);

	if (!n || qp->sq_polled)
		return;
	roan_db_batch_account(qp, n);
	if (unlikely(READ_ONCE(qp->dev->poller.state)) && qp->user)	/* a kernel consumer sends as it posts */
		roan_sq_poller_add(qp);
}

/* Is there no room for more work, until some is finished? Where the mirror may grow but did not, there was no memory. */
static bool sq_is_full(const struct roan_sq *sq)
	__must_hold(&sq->lock)
{
	return roan_requester_full(&sq->req) && (!roan_wqe_shadow_may_grow(sq) || roan_ring_pending(&sq->ring));
}

/*
 * May we leave? Where answers come soon, and one is due, the ring will be looked at again without a doorbell; so it will if we
 * asked to be called later, or hold all the work there is room for: what makes room, makes us look; or if a thread does
 * nothing but look. Otherwise the poster must tell, and what was posted before it could know is looked at now. While an answer
 * is due the poster may tell, if more could leave at once.
 */
static bool sq_park(struct roan_qp *qp, bool called_again)
	__must_hold(&qp->sq.lock)
{
	const struct roan_requester *req = &qp->sq.req;

	if (called_again || qp->sq_polled || qp->sq.fault_wait || sq_is_full(&qp->sq))
		return true;
	if (!roan_requester_answer_expected(req))
		return !roan_ring_enable_doorbell(&qp->sq.ring);
	return !roan_requester_can_send(req) ||
		!roan_ring_park_ack_pending(&qp->sq.ring, 1 + roan_requester_under_way(req) / NOTIFY_SHARE);
}

/* While we may not ask, nobody can answer: the timer does not run, and afterwards starts afresh. */
static void tx_update_ack_timer(struct roan_qp *qp, bool paused, u64 now)
	__must_hold(&qp->sq.lock)
{
	if (qp->sq.ack_timer_stopped && !paused)
		roan_requester_restart_timer(&qp->sq.req, now);
	qp->sq.ack_timer_stopped = paused;
}

/* @budget: packets; the rest goes later. None: what was sent is finished, no more. */
static void tx_round(struct roan_qp *qp, u32 budget)
	__must_hold(&qp->sq.lock)
{
	u64 now = ktime_get_ns();
	struct roan_train train;
	bool done;

	lockdep_assert_held(&qp->sq.lock);
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_SQE)
		return roan_flush_sq(qp);
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD)
		return;

	rcu_read_lock();	/* address vectors */
	roan_tx_budget_begin_round();
	tx_begin_flow(qp, &train, roan_qp_av(qp));
	do {
		roan_ring_unpark(&qp->sq.ring);
		tx_fetch(qp, budget);
		done = tx_send_wqes(qp, &train, &budget, now);
		tx_retire(qp);
		if (done)
			budget--;	/* a tail that makes no sense, or runs away from us, must not keep us here */
	} while (!sq_park(qp, !done || train.round.blocked || train.pfc_blocked));
	if (unlikely(train.pfc_blocked || qp->sq.ack_timer_stopped))
		tx_update_ack_timer(qp, train.pfc_blocked, now);
	roan_gso_xmit(&train);
	rcu_read_unlock();
	if (!done)
		roan_defer(&qp->deferred, ROAN_DEFER_SEND);
	roan_db_batch_set_cpu(qp, !done);
	tx_count_events(qp);
	roan_sq_arm(qp);
}

/*
 * Packets that RPS hands to another CPU are in its queue at once, but it is roused only when the softirq that sent them
 * comes to its end. So on several CPUs a window does not leave in one turn, and the receiver is at work on the first of
 * it while we build the rest. On one CPU there is nobody to rouse, and a softirq that is begun again too often is left to
 * ksoftirqd, which has to share the CPU with a program that polls.
 */
static bool single_cpu(void)
{
	return num_online_cpus() == 1;
}

void roan_send_locked(struct roan_qp *qp)
{
	tx_round(qp, single_cpu() ? ROUND_PKTS_ONE_CPU : ROUND_PKTS);
}

void roan_send(struct roan_qp *qp)
{
	spin_lock_bh(&qp->sq.lock);
	roan_send_locked(qp);
	spin_unlock_bh(&qp->sq.lock);
}

/* Answers that came together are seen in one softirq: the first of them lets a turn go, and all the rest goes later. */
static u32 tx_acked_budget(const struct roan_qp *qp)
{
	if (single_cpu())
		return ROUND_PKTS_ONE_CPU;
	return test_bit(ROAN_DEFER_SEND, &qp->deferred.bits) ? 0 : ROUND_PKTS;
}

void roan_send_acked(struct roan_qp *qp)
{
	spin_lock_bh(&qp->sq.lock);
	tx_round(qp, tx_acked_budget(qp));
	spin_unlock_bh(&qp->sq.lock);
}

/*
 * Let the timer fire at the requester's deadline. One that is set to an earlier time stays: it finds nothing due and is
 * set anew, which is cheaper than moving it with every ACK. The slack lets the timers of many QPs fire at one
 * interrupt; sq.timer_at is when ours fires at the latest, so that a deadline without slack is kept.
 */
void roan_sq_arm(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	u64 deadline = roan_requester_deadline(&qp->sq.req);
	u64 latest = deadline + roan_requester_slack(&qp->sq.req);

	lockdep_assert_held(&qp->sq.lock);
	if (!deadline || qp->sq.ack_timer_stopped || (qp->sq.timer_at && qp->sq.timer_at <= latest))
		return;
	qp->sq.timer_at = latest;
	hrtimer_start_range_ns(&qp->sq.timer, ns_to_ktime(deadline), latest - deadline, HRTIMER_MODE_ABS_SOFT);
}

static void tx_timed_out(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	struct roan_limiter *l = roan_limiter_of(qp);

	trace_roan_retry(qp, qp->sq.req.una_psn, qp->sq.req.retries_left);
	if (l)
		roan_rate_lost(l, ROAN_CC_LOST_TIMEOUT, ktime_get_ns());
}

/* Does the limiter hold back what is to be sent again, so that nothing has been asked since? */
static bool tx_rate_blocked(const struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	const struct roan_limiter *l = roan_limiter_of(qp);

	return l && READ_ONCE(l->blocked_mask) & BIT(ROAN_QUEUE_SQ) && qp->sq.req.next_psn == qp->sq.req.una_psn;
}

/*
 * Nobody can answer what has not left this host. So silence begins when it has: if it has not yet, tx_inflight.c calls then, and
 * the timer does not run. Nor is silent whose answers we cannot take, nor who waits for what we have not got yet.
 */
static void tx_exclude_local_delay(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	u64 deadline = roan_requester_deadline(&qp->sq.req);

	if (!deadline || now < deadline || qp->sq.req.rnr_until)
		return;
	if (qp->sq.rx_fault_wait || qp->sq.fault_wait || tx_rate_blocked(qp))
		roan_requester_restart_timer(&qp->sq.req, now);
	else
		roan_requester_restart_timer(&qp->sq.req, READ_ONCE(qp->ref->tx_inflight.last_free_ns));
	qp->sq.ack_timer_stopped |= roan_tx_inflight_arm(qp, ROAN_QUEUE_SQ, 1);
}

/* Mostly the answer came long ago. */
static void sq_timer_expired(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	bool waited = qp->sq.req.rnr_until;

	tx_exclude_local_delay(qp, now);
	if (qp->sq.ack_timer_stopped || roan_requester_timer(&qp->sq.req, now) == ROAN_EV_NOTHING)
		return roan_sq_arm(qp);
	if (!waited)
		tx_timed_out(qp);
	roan_send_locked(qp);
}

enum hrtimer_restart roan_sq_timer(struct hrtimer *timer)
{
	struct roan_qp *qp = container_of(timer, struct roan_qp, sq.timer);

	spin_lock_bh(&qp->sq.lock);
	qp->sq.timer_at = 0;
	if (qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD)
		sq_timer_expired(qp, ktime_get_ns());
	spin_unlock_bh(&qp->sq.lock);
	return HRTIMER_NORESTART;
}
