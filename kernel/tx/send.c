// SPDX-License-Identifier: GPL-2.0
/*
 * The send loop: fetches WQEs, gets the next packets from the requester, builds them into trains and hands those to the
 * IP stack. Does not decide what to send and when (core/transport/requester.c), nor how packets become skbs (gso.c).
 * Runs in the poster's context (doorbell) and in softirq (ACK received, deferred work).
 */
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "tx/gso.h"
#include "tx/tx.h"

/* Packets per send round; the remainder is deferred. single_cpu() has the reason for two values. */
#define ROUND_PKTS_ONE_CPU	256
#define ROUND_PKTS	60	/* at path MTU 4096 four full trains; at smaller path MTUs two trains or one */

/* While an ACK is expected, one more WQE per NOTIFY_SHARE under way makes a doorbell hint worth its cost. */
#define NOTIFY_SHARE	4

/* The address vector that a datagram's WQE names. NULL: no such address handle, or one of another PD. */
static const struct roan_av *tx_datagram_av(struct roan_qp *qp, const struct roan_send_wqe *wqe)
{
	const struct roan_av *av = roan_av_find(qp->dev, wqe->ud.ah_num);

	return av && av->pd == qp->ib.pd ? av : NULL;
}

/* Header fields that differ between messages that are otherwise alike. */
static void tx_fill_message(const struct roan_send_wqe *wqe, struct roan_pkt *pkt)
{
	pkt->imm = wqe->imm;
	pkt->inv_rkey = wqe->inv_key;
	pkt->rkey = wqe->rdma.rkey;
	pkt->va = wqe->rdma.remote_addr;
}

/*
 * Fills in the headers of the packets that @desc describes, except PSNs, the address vector and the fields that
 * tx_begin_flow() has set. Fields of headers that the opcode does not have may keep an earlier packet's values:
 * roan_wire_build() ignores them.
 */
static void tx_fill_headers(const struct roan_qp *qp, const struct roan_send_wqe *wqe, const struct roan_tx_wqe *work,
			    const struct roan_tx_desc *desc, struct roan_pkt *pkt)
{
	pkt->opcode = desc->opcode;
	pkt->solicited = desc->solicited;
	pkt->ackreq = desc->ackreq;
	pkt->copy = desc->copy && qp->ext_version;
	pkt->dma_len = work->len;
	tx_fill_message(wqe, pkt);
	switch (work->op) {
	case ROAN_OP_READ:
		pkt->va += desc->offset;
		pkt->dma_len = desc->len;
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
		/* A Q_Key with the top bit set selects the QP's own (10.2.5). */
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

/* Starts a train for address vector @av, and a new pacing round. */
static void tx_begin_flow(struct roan_qp *qp, struct roan_train *train, const struct roan_av *av)
{
	roan_gso_begin(train, qp->dev, &qp->sq.flow, av);
	train->pkt.migreq = true;
	train->pkt.pkey = qp->pkey;
	train->pkt.qpn = qp->dest_qpn;
	train->pkt.ext_version = qp->ext_version;
	train->qp = qp;
	train->side = ROAN_QUEUE_SQ;
	train->tx_counted = roan_tx_inflight_begin_round(qp, ROAN_QUEUE_SQ,
							 roan_dst_cache_peek(&qp->sq.flow, av));
	train->round.limiter = roan_limiter_of(qp);
	train->pfc_enabled = roan_pfc_on(&qp->dev->pfc);
	if (roan_rate_uses_ecn(qp, train->prio))
		roan_gso_set_ect(train);
}

/*
 * Builds packet number @i of those that @desc describes into the train. Returns 0, or why there is no payload: enum
 * roan_vendor_err or ROAN_VERR_PENDING. A packet for which there is no memory or no route counts as sent and lost: RC
 * retransmits it, until the retry counter expires.
 */
static u32 tx_put_packet(struct roan_qp *qp, struct roan_train *train, const struct roan_tx_desc *desc, u32 i)
	__must_hold(&qp->sq.lock)
{
	struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, roan_tx_desc_index(desc, i))->wqe;
	const struct roan_opcode *info = roan_opcode(desc->opcode);
	u32 payload = info->payload ? desc->len : 0;
	struct roan_pkt *pkt = &train->pkt;
	u32 verr;
	u8 *at;

	if (i && desc->single_pkt)
		tx_fill_message(wqe, pkt);
	pkt->psn = psn_add(desc->psn, i);
	pkt->pad = roan_wire_pad(payload);
	at = roan_gso_reserve(train, info->header_len + payload + pkt->pad + ROAN_ICRC_LEN);
	if (!at)
		return ROAN_VERR_NONE;
	at += roan_wire_build(at, pkt);
	roan_key_hold();
	verr = tx_put_payload(qp, wqe, roan_tx_desc_offset(desc, i), at, payload,
			      roan_gso_crc_begin(train, info->header_len, payload));
	if (verr) {
		roan_gso_abort(train);
		return verr;
	}
	if (pkt->pad)
		memset(at + payload, 0, pkt->pad);
	roan_gso_commit(train);
	trace_roan_pkt_tx(qp, pkt, payload, desc->resend);
	return ROAN_VERR_NONE;
}

/*
 * A queue of this host is full: the round ends, and is repeated from there on. UC and UD have nothing to repeat, and
 * the next datagram may go elsewhere.
 */
static bool tx_stops(const struct roan_qp *qp, const struct roan_train *train)
{
	return unlikely(train->dropped) && qp->transport == ROAN_TP_RC;
}

/*
 * Builds the packet of @desc and up to @most - 1 more like it. Stops early if the transmit budget is exhausted, the WQE
 * fails, or the payload waits for a page fault, which holds the requester. Returns how much of the round's budget that
 * takes, at least 1.
 */
static u32 tx_put_packets(struct roan_qp *qp, struct roan_train *train, struct roan_tx_desc *desc, u32 most, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_tx_wqe *work = roan_requester_wqe(&qp->sq.req, desc->index);
	struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, desc->index)->wqe;
	const struct roan_av *av = roan_qp_av(qp);
	u32 verr = ROAN_VERR_NONE, n;

	if (qp->transport == ROAN_TP_UD) {
		av = tx_datagram_av(qp, wqe);
		if (!av) {
			tx_fail_wqe(qp, desc->index, ROAN_VERR_BAD_AH, ROAN_ST_LOC_QP_OP_ERR);
			return 1;
		}
	}
	if (train->av != av) {
		u64 due = train->edt_ns;

		roan_gso_xmit(train);
		tx_begin_flow(qp, train, av);
		roan_gso_set_edt(train, due);
	}
	if (unlikely(qp->sq.req.paths))
		roan_gso_set_sport(train, roan_path_sport(av, desc->path));

	tx_fill_headers(qp, wqe, work, desc, &train->pkt);
	train->keeps_psns |= desc->repair;
	for (n = 0; n < most && !(n && (tx_stops(qp, train) || roan_tx_budget_exhausted_after(train))); n++) {
		verr = tx_put_packet(qp, train, desc, n);
		if (verr)
			break;
	}
	if (n) {
		desc->npsn += n - 1;
		roan_requester_sent(&qp->sq.req, desc, train->edt_ns ?: now);
	}
	if (verr == ROAN_VERR_PENDING)
		roan_requester_hold(&qp->sq.req, psn_add(desc->psn, n));
	else if (verr)
		tx_fail_wqe(qp, roan_tx_desc_index(desc, n), verr, ROAN_ST_LOC_PROT_ERR);
	return max(n, 1u);
}

/* How many packets like @desc can be built at once: 1 if other limits than the requester's must be checked for each. */
static u32 tx_batch_len(const struct roan_qp *qp, const struct roan_train *train, const struct roan_tx_desc *desc,
			u32 budget)
	__must_hold(&qp->sq.lock)
{
	if (train->tx_counted || train->pfc_enabled || train->round.limiter)
		return 1;
	return 1 + roan_requester_batch_count(&qp->sq.req, desc, budget - 1);
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

static bool request_allowed(struct roan_qp *qp, struct roan_train *train, struct roan_tx_desc *desc)
	__must_hold(&qp->sq.lock)
{
	bool ok = roan_rate_admit_request(qp, &train->round, desc);

	roan_gso_set_edt(train, train->round.edt_ns);
	return ok;
}

/*
 * Returns true if PFC pauses the packet's priority. A WQE without a valid address vector fails later, when it is built.
 */
static bool tx_pfc_blocked(struct roan_qp *qp, struct roan_train *train, const struct roan_tx_desc *desc)
	__must_hold(&qp->sq.lock)
{
	const struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, desc->index)->wqe;
	const struct roan_av *av = roan_connected(qp) ? roan_qp_av(qp) : tx_datagram_av(qp, wqe);

	train->pfc_blocked = roan_pfc_check_blocked(qp, ROAN_QUEUE_SQ,
						    roan_qos_prio(qp->dev, roan_qos_tclass(qp->dev, av)));
	return train->pfc_blocked;
}

/*
 * Sends until the requester has nothing more to send, or the in-flight limit, a full queue of this host, PFC, the pacer
 * or a page fault blocks the queue. False: stopped because a budget is used up.
 */
static bool tx_send_wqes(struct roan_qp *qp, struct roan_train *train, u32 *budget, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_requester *req = &qp->sq.req;
	struct roan_tx_desc desc;

	train->round.blocked = roan_sq_waits(qp, now);
	if (train->round.blocked)
		return true;
	while (*budget && !roan_tx_budget_exhausted_after(train)) {
		switch (roan_requester_next(req, now, &desc)) {
		case ROAN_NEXT_PACKET:
			/* After a drop nothing is handed over: what is built is taken back, too. */
			train->round.blocked = tx_stops(qp, train) ||
					       (train->tx_counted && roan_gso_inflight_full(train));
			if (train->round.blocked)
				return true;
			if (unlikely(train->pfc_enabled) && tx_pfc_blocked(qp, train, &desc))
				return true;
			if (unlikely(train->round.limiter) && !request_allowed(qp, train, &desc))
				return true;
			*budget -= tx_put_packets(qp, train, &desc, tx_batch_len(qp, train, &desc, *budget), now);
			break;
		case ROAN_NEXT_LOCAL:
			--*budget;
			tx_local_work(qp, desc.index);
			break;
		case ROAN_NEXT_IDLE:
		case ROAN_NEXT_WAIT:
			return true;
		}
	}
	return false;
}

#define COUNT_DELTA(qp, seen, now_at, name) do {			\
	roan_count_n((qp)->dev, name, (u32)((now_at) - (seen)));	\
	(seen) = (now_at);						\
} while (0)

/* Adds what is new in the requester's plain counts to the device's counters. */
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

/* Completes retired work requests, and raises SQ_DRAINED when the queue has drained. */
static void tx_retire(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_sq *sq = &qp->sq;
	enum roan_status status;
	u64 rtt_ns;
	u32 index;

	while (roan_requester_retired(&sq->req, &index, &status)) {
		if (unlikely(index == sq->timed_index) && sq->timed_since)
			roan_request_time_end(qp, status, now);
		if (status != ROAN_ST_SUCCESS)
			roan_sq_set_err(qp);	/* before the error can be polled */
		roan_complete_send(qp, index, status, roan_sq_shadow(sq, index)->vendor_err);
	}
	rtt_ns = roan_requester_take_rtt(&sq->req);
	if (rtt_ns) {
		roan_count_time(qp->dev->stats, ROAN_LAT_rtt, rtt_ns);
		if (unlikely(roan_requester_wants_paths(&sq->req)))
			roan_sq_alloc_trial(qp);
	}
	if (sq->sqd_notify && roan_requester_drained(&sq->req)) {
		sq->sqd_notify = false;
		roan_defer(&qp->deferred, ROAN_DEFER_EV_SQ_DRAINED);
	}
}

/* Fetches @budget + 1 WQEs: the last packet must know whether another follows, to decide on AckReq. */
static void tx_fetch(struct roan_qp *qp, u32 budget, u64 now)
	__must_hold(&qp->sq.lock)
{
	u32 n = roan_wqe_fetch(qp, budget + 1);

	if (n && !qp->sq.timed_since)
		roan_request_time_begin(qp, qp->sq.req.tail - n, now);
	if (!n || qp->sq_polled)
		return;
	roan_db_batch_account(qp, n);
	if (unlikely(READ_ONCE(qp->dev->poller.state)) && qp->user)	/* a kernel consumer sends in its post call */
		roan_sq_poller_add(qp);
}

/*
 * Returns true if the work array has no space until a work request is retired. If the array may grow but did not,
 * although WQEs are pending, there was no memory.
 */
static bool sq_is_full(const struct roan_sq *sq)
	__must_hold(&sq->lock)
{
	return roan_requester_full(&sq->req) && (!roan_wqe_shadow_may_grow(sq) || roan_ring_pending(&sq->ring));
}

/*
 * Returns true if the kernel may stop polling this send queue. It may, without setting a flag, if another event will
 * run the queue: deferred work (@called_again), the poller thread, a page fault, or a retired work request that makes
 * space in a full work array. Otherwise it sets NEED_DOORBELL, or ACK_PENDING if an ACK is expected soon and one more
 * request could be sent at once; and returns false if a WQE was posted before the flag was set. If an ACK is expected
 * and no more can be sent, no flag is needed.
 */
static bool sq_park(struct roan_qp *qp, bool called_again)
	__must_hold(&qp->sq.lock)
{
	const struct roan_requester *req = &qp->sq.req;

	if (called_again || qp->sq_polled || req->held || sq_is_full(&qp->sq))
		return true;
	if (!roan_requester_answer_expected(req))
		return !roan_ring_enable_doorbell(&qp->sq.ring);
	return !roan_requester_can_send(req) ||
		!roan_ring_park_ack_pending(&qp->sq.ring, 1 + roan_requester_under_way(req) / NOTIFY_SHARE);
}

/* Stops the ACK timer while PFC holds back the packets, which the peer cannot have; restarts it at @now afterwards. */
static void tx_update_ack_timer(struct roan_qp *qp, bool paused, u64 now)
	__must_hold(&qp->sq.lock)
{
	if (qp->sq.ack_timer_stopped && !paused)
		roan_requester_restart_timer(&qp->sq.req, now);
	qp->sq.ack_timer_stopped = paused;
}

/* A queue of this host is full. The packets that it dropped are sent again soon: they need not wait for a timeout. */
static void tx_dropped(struct roan_qp *qp, struct roan_train *train, u64 now)
	__must_hold(&qp->sq.lock)
{
	if (!train->keeps_psns && roan_requester_unsent(&qp->sq.req, train->dropped_psn))
		roan_gso_discard(train);
	else
		roan_gso_xmit(train);
	if (unlikely(train->round.limiter))
		roan_rate_unsent(train->round.limiter, train->unsent_bytes);
	roan_tx_inflight_dropped(qp, ROAN_QUEUE_SQ);
	if (train->sent || !qp->sq.n_dropped)
		qp->sq.dropped_since = now >> 20;
	if (train->sent)	/* a part fits: the wait is half as long */
		qp->sq.n_dropped -= min_t(u8, qp->sq.n_dropped, 2);
	roan_sq_resume_at(qp, now + roan_dropped_wait_ns(&qp->sq.n_dropped));
}

/* Hands over the last skb of a round. False: this host has dropped one, and the queue waits. */
static bool tx_end_round(struct roan_qp *qp, struct roan_train *train, u64 now)
	__must_hold(&qp->sq.lock)
{
	if (!tx_stops(qp, train))
		roan_gso_xmit(train);
	if (tx_stops(qp, train)) {
		tx_dropped(qp, train, now);
		return false;
	}
	/* Without outstanding packets: a copy was dropped, and the peer has answered the original. */
	if (unlikely(qp->sq.n_dropped) && (train->sent || !roan_requester_outstanding(&qp->sq.req)))
		qp->sq.n_dropped = 0;
	return true;
}

/*
 * XPS: while no packet is in flight, which another one could overtake, the transmit queue of the CPU that posts is
 * chosen (as TCP does, ooo_okay). Else the QPs that one thread has connected would share its queue. A softirq that
 * finds a post by its doorbell hint is not on the poster's CPU: one timer polls the hints of a program's threads.
 */
static void tx_choose_queue(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	u32 cpu = smp_processor_id();

	if (qp->sq.flow.cpu != cpu && qp->transport == ROAN_TP_RC && !in_serving_softirq() &&
	    !roan_requester_outstanding(&qp->sq.req))
		qp->sq.flow.cpu = cpu;
}

/* One send round. @budget: packets; the remainder is deferred. 0: only retires finished work requests. */
static void tx_round(struct roan_qp *qp, u32 budget)
	__must_hold(&qp->sq.lock)
{
	u64 now = ktime_get_ns();
	struct roan_train train;
	bool done, waits;

	lockdep_assert_held(&qp->sq.lock);
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_SQE)
		return roan_qp_request_flush(qp);
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD)
		return;

	rcu_read_lock();	/* protects address vectors */
	roan_tx_budget_begin_round();
	tx_choose_queue(qp);
	tx_begin_flow(qp, &train, roan_qp_av(qp));
	do {
		roan_ring_unpark(&qp->sq.ring);
		tx_fetch(qp, budget, now);
		done = tx_send_wqes(qp, &train, &budget, now);
		tx_retire(qp, now);
		if (done)
			budget--;	/* bounds the loop if the tail is impossible or moves as fast as it is read */
	} while (!sq_park(qp, !done || train.round.blocked || train.pfc_blocked));
	if (unlikely(train.pfc_blocked || qp->sq.ack_timer_stopped))
		tx_update_ack_timer(qp, train.pfc_blocked, now);
	waits = !tx_end_round(qp, &train, now);
	rcu_read_unlock();
	if (!done && !waits)
		roan_defer(&qp->deferred, ROAN_DEFER_SEND);
	roan_db_batch_set_cpu(qp, !done && !waits);
	tx_count_events(qp);
	roan_sq_arm(qp);
}

/*
 * RPS queues packets on another CPU at once, but that CPU is woken only when the softirq that sent them ends. So with
 * several CPUs a window is sent in several rounds, and the receiver processes the first packets while the sender builds
 * the next. With one CPU there is no other CPU to wake, and a softirq that is raised again too often moves to
 * ksoftirqd, which competes with a polling program.
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

/*
 * ACKs that arrive together are processed in one softirq: the first sends one round, the others leave sending to
 * deferred work.
 */
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
