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

/* Packets that leave at a stretch, at most; what is left goes later. Why it depends on the CPUs stands at alone(). */
#define TURN_ALONE	256
#define TURN		60	/* four full trains of 4 KB each; of smaller packets, most of two or one */

/* While an answer is due, one more of so many under way is worth a system call. */
#define ASK_SHARE	4

/* The address vector of a datagram's work request; NULL: no such, or not this QP's PD. */
static const struct roan_av *datagram_av(struct roan_qp *qp, const struct roan_send_wqe *wqe)
{
	const struct roan_av *av = roan_av_find(qp->dev, wqe->ud.ah_num);

	return av && av->pd == qp->ib.pd ? av : NULL;
}

/* What a message has of its own, where it is like the one before. */
static void describe_message(const struct roan_send_wqe *wqe, struct roan_pkt *pkt)
{
	pkt->imm = wqe->imm;
	pkt->inv_rkey = wqe->inv_key;
	pkt->rkey = wqe->rdma.rkey;
	pkt->va = wqe->rdma.remote_addr;
}

/*
 * Headers of the packets @emit describes, but for their PSNs, their address vector and what board() wrote. Of headers that the
 * opcode does not have, another packet's may be left: they are not built.
 */
static void describe(const struct roan_qp *qp, const struct roan_send_wqe *wqe, const struct roan_work *work,
		     const struct roan_emit *emit, struct roan_pkt *pkt)
{
	pkt->opcode = emit->opcode;
	pkt->solicited = emit->solicited;
	pkt->ackreq = emit->ackreq;
	pkt->dma_len = work->len;
	describe_message(wqe, pkt);
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

static u32 put_payload(struct roan_qp *qp, struct roan_send_wqe *wqe, u32 offset, u8 *to, u32 len, struct roan_icrc *icrc)
{
	if (wqe->flags & ROAN_SEND_INLINE) {
		roan_icrc_copy(icrc, to, (u8 *)(wqe + 1) + offset, len);
		return ROAN_VERR_NONE;
	}
	return roan_gather(qp, (struct roan_sges) { roan_wqe_sges(wqe), wqe->num_sge, qp->ib.pd }, offset, to, len, icrc);
}

static void refuse(struct roan_qp *qp, u32 index, u32 verr, enum roan_status status)
{
	roan_sq_mirror(&qp->sq, index)->verr = verr;
	roan_requester_fail(&qp->sq.req, index, status);
}

/* Packets of this address from here on; with the limiter that is a turn of its own. */
static void board(struct roan_qp *qp, struct roan_train *train, const struct roan_av *av)
{
	roan_train_open(train, qp->dev, &qp->sq.flow, av);
	train->pkt.migreq = true;
	train->pkt.pkey = qp->pkey;
	train->pkt.qpn = qp->dest_qpn;
	train->qp = qp;
	train->side = ROAN_SIDE_SQ;
	train->queued = roan_below_turn(qp, ROAN_SIDE_SQ, qp->sq.flow.dst);
	train->round.limiter = roan_limiter_of(qp);
	train->pausable = roan_pfc_on(&qp->dev->pfc);
	if (roan_cc_marks(qp, train->prio))
		roan_train_ecn(train, INET_ECN_ECT_0);
}

/*
 * Build packet number @i of those that are like @emit into the train. 0; or why there is no payload for it. A packet for which
 * there is no memory or no route counts as sent and lost: the retransmission finds out, or the retry counter.
 */
static u32 put_packet(struct roan_qp *qp, struct roan_train *train, const struct roan_emit *emit, u32 i)
	__must_hold(&qp->sq.lock)
{
	struct roan_send_wqe *wqe = &roan_sq_mirror(&qp->sq, roan_emit_index(emit, i))->wqe;
	const struct roan_opcode *info = roan_opcode(emit->opcode);
	u32 payload = info->payload ? emit->len : 0;
	struct roan_pkt *pkt = &train->pkt;
	u32 verr;
	u8 *at;

	if (i && emit->whole)
		describe_message(wqe, pkt);
	pkt->psn = psn_add(emit->psn, i);
	pkt->pad = roan_wire_pad(payload);
	at = roan_train_add(train, info->header_len + payload + pkt->pad + ROAN_ICRC_LEN);
	if (!at)
		return ROAN_VERR_NONE;
	at += roan_wire_build(at, pkt);
	roan_key_stay();
	verr = put_payload(qp, wqe, roan_emit_offset(emit, i), at, payload,
			   roan_train_sum(train, info->header_len, payload));
	if (verr) {
		roan_train_drop(train);
		return verr;
	}
	if (pkt->pad)
		memset(at + payload, 0, pkt->pad);
	roan_train_seal(train);
	trace_roan_emit(qp, pkt, payload, emit->resend);
	return ROAN_VERR_NONE;
}

/*
 * The packet, and up to @most - 1 others like it, until the burst is over, the work is refused, or it has to wait (sq.absent).
 * How much of the budget that took: 1 at least.
 */
static u32 emit_packets(struct roan_qp *qp, struct roan_train *train, struct roan_emit *emit, u32 most, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_work *work = roan_requester_work(&qp->sq.req, emit->index);
	struct roan_send_wqe *wqe = &roan_sq_mirror(&qp->sq, emit->index)->wqe;
	const struct roan_av *av = roan_qp_av(qp);
	u32 verr = ROAN_VERR_NONE, n;

	if (qp->transport == ROAN_TP_UD) {
		av = datagram_av(qp, wqe);
		if (!av) {
			refuse(qp, emit->index, ROAN_VERR_BAD_AH, ROAN_ST_LOC_QP_OP_ERR);
			return 1;
		}
	}
	if (train->av != av) {
		u64 due = train->due;

		roan_train_flush(train);
		board(qp, train, av);
		roan_train_due(train, due);
	}

	describe(qp, wqe, work, emit, &train->pkt);
	for (n = 0; n < most && !(n && roan_burst_over(train)); n++) {
		verr = put_packet(qp, train, emit, n);
		if (verr)
			break;
	}
	if (n) {
		emit->npsn += n - 1;
		roan_requester_sent(&qp->sq.req, emit, train->due ?: now);
	}
	if (verr == ROAN_VERR_ABSENT)
		qp->sq.absent = true;
	else if (verr)
		refuse(qp, roan_emit_index(emit, n), verr, ROAN_ST_LOC_PROT_ERR);
	return max(n, 1u);
}

/* How many packets may be built without asking anybody but the requester, of those like @emit. */
static u32 at_once(const struct roan_qp *qp, const struct roan_train *train, const struct roan_emit *emit, u32 budget)
	__must_hold(&qp->sq.lock)
{
	if (train->queued || train->pausable || train->round.limiter)
		return 1;
	return 1 + roan_requester_alike(&qp->sq.req, emit, budget - 1);
}

static void local_work(struct roan_qp *qp, u32 index)
	__must_hold(&qp->sq.lock)
{
	const struct roan_send_wqe *wqe = &roan_sq_mirror(&qp->sq, index)->wqe;
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
		refuse(qp, index, verr, wqe->opcode == ROAN_WR_BIND_MW ? ROAN_ST_MW_BIND_ERR : ROAN_ST_LOC_QP_OP_ERR);
	else
		roan_requester_local_done(&qp->sq.req, index);
}

static bool rate_allows(struct roan_qp *qp, struct roan_train *train, struct roan_emit *emit)
	__must_hold(&qp->sq.lock)
{
	bool ok = roan_limit_request(qp, &train->round, emit);

	roan_train_due(train, train->round.edt_ns);
	return ok;
}

/* Is the priority of this packet paused? Where it has no address it is refused soon enough. */
static bool must_pause(struct roan_qp *qp, struct roan_train *train, const struct roan_emit *emit)
	__must_hold(&qp->sq.lock)
{
	const struct roan_send_wqe *wqe = &roan_sq_mirror(&qp->sq, emit->index)->wqe;
	const struct roan_av *av = roan_connected(qp) ? roan_qp_av(qp) : datagram_av(qp, wqe);

	train->paused = roan_pfc_blocks(qp, ROAN_SIDE_SQ, roan_qos_prio(qp->dev, roan_qos_tclass(qp->dev, av)));
	return train->paused;
}

/* Sends until the requester, our own host's queues, a pause or the limiter say wait, or the budget is gone. False: budget gone. */
static bool send_work(struct roan_qp *qp, struct roan_train *train, u32 *budget, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_requester *req = &qp->sq.req;
	struct roan_emit emit;

	while (*budget && !qp->sq.absent && !roan_burst_over(train)) {
		switch (roan_requester_next(req, now, &emit)) {
		case ROAN_NEXT_PACKET:
			train->round.blocked = train->queued && roan_train_full_below(train);
			if (train->round.blocked)
				return true;
			if (unlikely(train->pausable) && must_pause(qp, train, &emit))
				return true;
			if (unlikely(train->round.limiter) && !rate_allows(qp, train, &emit))
				return true;
			*budget -= emit_packets(qp, train, &emit, at_once(qp, train, &emit, *budget), now);
			break;
		case ROAN_NEXT_LOCAL:
			--*budget;
			local_work(qp, emit.index);
			break;
		case ROAN_NEXT_IDLE:
		case ROAN_NEXT_WAIT:
			return true;
		}
	}
	return qp->sq.absent;
}

#define COUNT_SINCE(qp, seen, now_at, name) do {			\
	roan_count_n((qp)->dev, name, (u32)((now_at) - (seen)));	\
	(seen) = (now_at);						\
} while (0)

/* The requester keeps plain counts; turn what is new into the device's counters. */
static void count_events(struct roan_qp *qp)
{
	struct roan_sq *sq = &qp->sq;

	COUNT_SINCE(qp, sq->seen_resent, sq->req.n_resent, resent_pkts);
	COUNT_SINCE(qp, sq->seen_timeouts, sq->req.n_timeouts, local_ack_timeout_err);
	COUNT_SINCE(qp, sq->seen_early, sq->req.n_early, roce_adp_retrans_to);
	COUNT_SINCE(qp, sq->seen_seq_naks, sq->req.n_seq_naks, rcvd_seq_err);
	COUNT_SINCE(qp, sq->seen_rnr_naks, sq->req.n_rnr_naks, rcvd_rnr_err);
	COUNT_SINCE(qp, sq->seen_implied, sq->req.n_implied_naks, implied_nak_seq_err);
	COUNT_SINCE(qp, sq->seen_stale, sq->req.n_stale, stale_response);
}

/* Give finished work back to the consumer. */
static void retire(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	struct roan_sq *sq = &qp->sq;
	enum roan_status status;
	u32 index;

	while (roan_requester_retired(&sq->req, &index, &status)) {
		roan_complete_send(qp, index, status, roan_sq_mirror(sq, index)->verr);
		if (status != ROAN_ST_SUCCESS)
			roan_qp_fail_sq(qp);
	}
	if (sq->sqd_notify && roan_requester_drained(&sq->req)) {
		sq->sqd_notify = false;
		roan_later(&qp->later, ROAN_DO_EV_SQ_DRAINED);
	}
}

/* What leaves with @budget packets, and what is behind that: whether there is something decides about its last one. */
static void fetch(struct roan_qp *qp, u32 budget)
	__must_hold(&qp->sq.lock)
{
	u32 n = roan_fetch(qp, budget + 1);

	if (!n || qp->watched)
		return;
	roan_notices_found(qp, n);
	if (unlikely(READ_ONCE(qp->dev->poller.state)) && qp->user)	/* a kernel consumer sends as it posts */
		roan_poller_found(qp);
}

/* Is there no room for more work, until some is finished? Where the mirror may grow but did not, there was no memory. */
static bool is_full(const struct roan_sq *sq)
	__must_hold(&sq->lock)
{
	return roan_requester_full(&sq->req) && (!roan_mirror_may_grow(sq) || roan_ring_pending(&sq->ring));
}

/*
 * May we leave? Where answers come soon, and one is due, the ring will be looked at again without a doorbell; so it will if we
 * asked to be called later, or hold all the work there is room for: what makes room, makes us look; or if a thread does
 * nothing but look. Otherwise the poster must tell, and what was posted before it could know is looked at now. While an answer
 * is due the poster may tell, if more could leave at once.
 */
static bool park(struct roan_qp *qp, bool called_again)
	__must_hold(&qp->sq.lock)
{
	const struct roan_requester *req = &qp->sq.req;

	if (called_again || qp->watched || qp->sq.absent || is_full(&qp->sq))
		return true;
	if (!roan_requester_called_soon(req))
		return !roan_ring_need_doorbell(&qp->sq.ring);
	return !roan_requester_could_send(req) || !roan_ring_await(&qp->sq.ring, 1 + roan_requester_under_way(req) / ASK_SHARE);
}

/* While we may not ask, nobody can answer: the timer does not run, and afterwards starts afresh. */
static void note_pause(struct roan_qp *qp, bool paused, u64 now)
	__must_hold(&qp->sq.lock)
{
	if (qp->sq.paused && !paused)
		roan_requester_excused(&qp->sq.req, now);
	qp->sq.paused = paused;
}

/* @budget: packets; the rest goes later. None: what was sent is finished, no more. */
static void send_turn(struct roan_qp *qp, u32 budget)
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
	roan_burst_turn();
	board(qp, &train, roan_qp_av(qp));
	do {
		roan_ring_awake(&qp->sq.ring);
		fetch(qp, budget);
		done = send_work(qp, &train, &budget, now);
		retire(qp);
		if (done)
			budget--;	/* a tail that makes no sense, or runs away from us, must not keep us here */
	} while (!park(qp, !done || train.round.blocked || train.paused));
	if (unlikely(train.paused || qp->sq.paused))
		note_pause(qp, train.paused, now);
	roan_train_flush(&train);
	rcu_read_unlock();
	if (!done)
		roan_later(&qp->later, ROAN_DO_SEND);
	roan_notices_waits(qp, !done);
	count_events(qp);
	roan_sq_arm(qp);
}

/*
 * Packets that RPS hands to another CPU are in its queue at once, but it is roused only when the softirq that sent them
 * comes to its end. So on several CPUs a window does not leave in one turn, and the receiver is at work on the first of
 * it while we build the rest. On one CPU there is nobody to rouse, and a softirq that is begun again too often is left to
 * ksoftirqd, which has to share the CPU with a program that polls.
 */
static bool alone(void)
{
	return num_online_cpus() == 1;
}

void roan_send_locked(struct roan_qp *qp)
{
	send_turn(qp, alone() ? TURN_ALONE : TURN);
}

void roan_send(struct roan_qp *qp)
{
	spin_lock_bh(&qp->sq.lock);
	roan_send_locked(qp);
	spin_unlock_bh(&qp->sq.lock);
}

/* Answers that came together are seen in one softirq: the first of them lets a turn go, and all the rest goes later. */
static u32 acked_budget(const struct roan_qp *qp)
{
	if (alone())
		return TURN_ALONE;
	return test_bit(ROAN_DO_SEND, &qp->later.bits) ? 0 : TURN;
}

void roan_send_acked(struct roan_qp *qp)
{
	spin_lock_bh(&qp->sq.lock);
	send_turn(qp, acked_budget(qp));
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
	if (!deadline || qp->sq.paused || (qp->sq.timer_at && qp->sq.timer_at <= latest))
		return;
	qp->sq.timer_at = latest;
	hrtimer_start_range_ns(&qp->sq.timer, ns_to_ktime(deadline), latest - deadline, HRTIMER_MODE_ABS_SOFT);
}

static void timed_out(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	struct roan_limiter *l = roan_limiter_of(qp);

	trace_roan_retry(qp, qp->sq.req.una_psn, qp->sq.req.retries_left);
	if (l)
		roan_limit_lost(l, ROAN_CC_LOST_TIMEOUT, ktime_get_ns());
}

/* Does the limiter hold back what is to be sent again, so that nothing has been asked since? */
static bool held_back(const struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	const struct roan_limiter *l = roan_limiter_of(qp);

	return l && READ_ONCE(l->waiting) & BIT(ROAN_SIDE_SQ) && qp->sq.req.next_psn == qp->sq.req.una_psn;
}

/*
 * Nobody can answer what has not left this host. So silence begins when it has: if it has not yet, tx_inflight.c calls then, and
 * the timer does not run. Nor is silent whose answers we cannot take, nor who waits for what we have not got yet.
 */
static void discount(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	u64 deadline = roan_requester_deadline(&qp->sq.req);

	if (!deadline || now < deadline || qp->sq.req.rnr_until)
		return;
	if (qp->sq.unplaced || qp->sq.absent || held_back(qp))
		roan_requester_excused(&qp->sq.req, now);
	else
		roan_requester_excused(&qp->sq.req, READ_ONCE(qp->ref->below.left_at));
	qp->sq.paused |= roan_below_waits(qp, ROAN_SIDE_SQ, 1);
}

/* Mostly the answer came long ago. */
static void on_timer(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	bool waited = qp->sq.req.rnr_until;

	discount(qp, now);
	if (qp->sq.paused || roan_requester_timer(&qp->sq.req, now) == ROAN_EV_NOTHING)
		return roan_sq_arm(qp);
	if (!waited)
		timed_out(qp);
	roan_send_locked(qp);
}

enum hrtimer_restart roan_sq_timer(struct hrtimer *timer)
{
	struct roan_qp *qp = container_of(timer, struct roan_qp, sq.timer);

	spin_lock_bh(&qp->sq.lock);
	qp->sq.timer_at = 0;
	if (qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD)
		on_timer(qp, ktime_get_ns());
	spin_unlock_bh(&qp->sq.lock);
	return HRTIMER_NORESTART;
}
