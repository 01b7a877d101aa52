// SPDX-License-Identifier: GPL-2.0
/*
 * The requester's handling of responses and timeouts (IBTA vol. 1, 9.7.5, 9.7.6, 9.9.2). requester.c chooses the
 * packets to send, requester_repair.c those that are sent again.
 */
#include "core/transport/requester_priv.h"

void roan_req_sample_rtt(struct roan_requester *r, u64 now)
{
	/* @timed_at may be a departure time; a packet that left earlier gives no sample */
	if (now >= r->timed_at) {
		r->new_rtt_ns = max_t(u64, now - r->timed_at, 1);
		roan_rtt_sample(&r->rtt, r->new_rtt_ns);
		if (r->min_rtt)
			roan_min_rtt_sample(r->min_rtt, r->new_rtt_ns, now);
		r->rto_backoff = 0;
		if (r->auto_paths)
			roan_auto_paths_step(r, now);
	}
	r->timed_at = 0;
}

/*
 * ACKs of one burst arrive together, and only the first shows the real wait. So keep the longest recent wait for four
 * times its length.
 */
static void req_track_max_ack_wait(struct roan_requester *r, u64 now)
{
	u64 ns = r->ack_timer_base_ns && now > r->ack_timer_base_ns ? now - r->ack_timer_base_ns : 1;

	if (ns < r->max_ack_wait_ns && now - r->max_ack_wait_at <= 4 * r->max_ack_wait_ns)
		return;
	r->max_ack_wait_ns = ns;
	r->max_ack_wait_at = now;
}

/* una_psn has advanced from @from. @late: by a response to packets sent before the probe. */
static void req_progress(struct roan_requester *r, u32 from, bool late, u64 now)
{
	if (unlikely(r->start_window < r->cfg.psn_window))
		r->start_window = min(r->start_window + psn_diff(r->una_psn, from), r->cfg.psn_window);
	if (unlikely(r->repair_left || r->repair_sent))
		roan_repair_progress(r, now);
	r->retries_left = r->cfg.retry_cnt;
	r->rnr_left = r->cfg.rnr_retry;
	r->nak_seen = false;
	r->repair_backoff = 0;
	r->rnr_until = 0;	/* another copy of the refused request was accepted */
	r->rnr_since = 0;
	/* the response to an earlier copy arrived before its retransmission was sent */
	if (psn_diff(r->next_psn, r->una_psn) < 0) {
		r->next_psn = r->una_psn;
		r->rd_outstanding = 0;
	}
	if (r->rto_probe)
		roan_req_probe_answered(r, late);
	req_track_max_ack_wait(r, now);
	r->ack_timer_base_ns = roan_requester_outstanding(r) ? now : 0;
	r->rto_base_ns = now;
	if (r->timed_at && psn_diff(r->una_psn, r->timed_psn) > 0)
		roan_req_sample_rtt(r, now);
}

bool roan_req_pass(struct roan_requester *r, u32 psn)
{
	bool whole = true;
	u32 una_psn = psn;

	for (; r->una != r->tail; r->una++) {
		struct roan_tx_wqe *w = roan_requester_wqe(r, r->una);

		if (w->completed)
			continue;
		/* Compare with the PSNs ahead, a window at most: up to 2^23 packets of the message may lie behind. */
		if (!w->started || psn_within(w->first_psn, psn, psn_diff(r->end_psn, psn)))
			break;
		if (roan_op_needs_response(w->op)) {
			una_psn = psn_add(w->first_psn, w->resp_done);
			whole = una_psn == psn;		/* true: all responses of the READ up to @psn are here */
			break;
		}
		if (work_pos(w, psn) < w->n_psn)
			break;
		w->status = ROAN_ST_SUCCESS;
		w->completed = true;
	}
	if ((s32)(r->next - r->una) < 0)
		r->next = r->una;
	r->una_psn = una_psn;
	return whole;
}

bool roan_req_acknowledge(struct roan_requester *r, u32 psn, u64 now)
{
	u32 from = r->una_psn;
	bool whole = roan_req_pass(r, psn);

	if (r->una_psn != from) {
		if (unlikely(r->paths))
			roan_paths_progress(r, from, now);
		if (unlikely(r->any_holes))
			roan_sack_progress(r, from, now);
		/* true if more than the probe is acknowledged */
		req_progress(r, from, psn_diff(r->una_psn, r->rto_probe_psn) > 1, now);
	}
	return whole;
}

/* Completes the oldest work request with error @status. */
static enum roan_event req_give_up(struct roan_requester *r, enum roan_status status)
{
	struct roan_tx_wqe *w;

	skip_completed(r);
	if (r->una != r->tail) {
		w = roan_requester_wqe(r, r->una);
		w->status = status;
		w->completed = true;
		r->local_err = true;
		r->una++;
	}
	r->failed = true;
	return ROAN_EV_FAILED;
}

/*
 * A NAK uses a retry (9.9.2.4.2). The next ones until there is progress answer what a timer sent again, and use none:
 * early resends use none, and a path that passes small packets only would answer each of them with a NAK.
 */
bool roan_req_use_retry(struct roan_requester *r)
{
	if (r->retries_left < r->cfg.retry_cnt)
		return true;	/* progress renews all */
	if (!r->retries_left)
		return false;
	r->retries_left--;
	return true;
}

/* Goes back if a retry is left. */
static enum roan_event req_retry(struct roan_requester *r, u64 now)
{
	if (!roan_req_use_retry(r))
		return req_give_up(r, ROAN_ST_RETRY_EXC_ERR);
	go_back(r, now);
	r->rto_base_ns = now;
	return ROAN_EV_RETRY;
}

enum roan_event roan_req_implied_nak(struct roan_requester *r, u64 now)
{
	if (r->nak_seen)
		return ROAN_EV_NOTHING;
	r->n_implied_naks++;
	if (req_retry(r, now) == ROAN_EV_FAILED)
		return ROAN_EV_FAILED;
	r->nak_seen = true;
	return ROAN_EV_RETRY;
}

enum roan_event roan_req_sequence_nak(struct roan_requester *r, u64 now)
{
	if (r->nak_seen)
		return ROAN_EV_NOTHING;
	r->n_seq_naks++;
	if (!roan_repair_by_nak(r, now) && req_retry(r, now) == ROAN_EV_FAILED)
		return ROAN_EV_FAILED;
	r->nak_seen = true;
	return ROAN_EV_RETRY;
}

#define RNR_SHARE	8			/* RNR wait >= this part of the time since the first RNR NAK */
#define RNR_MAX_NS	NSEC_PER_MSEC		/* upper limit of that; the timer code may be longer */

/*
 * The timer code is the minimum wait (9.7.5.2.8), and may be 10 us. Retries at that rate take CPU time that the
 * receiver, or the local program, needs to become ready. So the wait grows with the time since the first RNR NAK.
 */
static u64 req_rnr_wait_ns(struct roan_requester *r, u8 code, u64 now)
{
	if (!r->rnr_since)
		r->rnr_since = now;
	return max_t(u64, roan_rnr_ns(code), min_t(u64, (now - r->rnr_since) / RNR_SHARE, RNR_MAX_NS));
}

static enum roan_event req_rnr_nak(struct roan_requester *r, u8 code, u64 now)
{
	r->n_rnr_naks++;
	if (now < r->rnr_until)
		/* response to another copy of the request, sent before the first RNR NAK arrived */
		return ROAN_EV_NOTHING;
	if (r->cfg.rnr_retry != 7) {
		if (!r->rnr_left)
			return req_give_up(r, ROAN_ST_RNR_RETRY_EXC_ERR);
		r->rnr_left--;
	}
	/* the request arrived, so only rnr_left limits the wait for the receiver */
	r->retries_left = r->cfg.retry_cnt;
	/* everything is sent again anyway: ignore sequence NAKs for the packets after it */
	r->nak_seen = true;
	go_back(r, now);
	r->rnr_until = now + req_rnr_wait_ns(r, code, now);
	r->ack_timer_base_ns = r->rnr_until;	/* the RNR wait does not count for the timeouts */
	r->rto_base_ns = r->rnr_until;
	return ROAN_EV_RETRY;
}

static enum roan_status req_remote_error(u8 nak)
{
	switch (nak) {
	case ROAN_NAK_INVALID_REQUEST:
		return ROAN_ST_REM_INV_REQ_ERR;
	case ROAN_NAK_REMOTE_ACCESS:
		return ROAN_ST_REM_ACCESS_ERR;
	case ROAN_NAK_REMOTE_OPERATION:
		return ROAN_ST_REM_OP_ERR;
	default:
		return ROAN_ST_BAD_RESP_ERR;
	}
}

/*
 * The request at refused_psn is refused, and the peer's QP has failed: it does not say so again. What precedes it is
 * executed, but responses may come later than the NAK, by another path. True: they are here.
 */
static bool req_refusal_is_next(struct roan_requester *r, u64 now)
{
	return psn_diff(r->refused_psn, r->una_psn) < 0 || roan_req_acknowledge(r, r->refused_psn, now);
}

static void req_note_refusal(struct roan_requester *r, const struct roan_pkt *pkt)
{
	r->refused = req_remote_error(pkt->syndrome & ROAN_AETH_VALUE_MASK);
	r->refused_psn = pkt->psn;
}

/*
 * Raises the credit limit to that of the packet, never lowers it: the code rounds down, and an old response may arrive
 * late.
 */
static void req_raise_lsn(struct roan_requester *r, const struct roan_pkt *pkt)
{
	u32 said = psn_add(pkt->msn, roan_credits_of(pkt->syndrome & ROAN_AETH_VALUE_MASK));

	if (!r->credits_known || psn_diff(said, r->lsn) > 0)
		r->lsn = said;
	r->credits_known = true;
}

static bool aeth_is_unlimited(const struct roan_pkt *pkt)
{
	return (pkt->syndrome & ROAN_AETH_VALUE_MASK) == ROAN_AETH_UNLIMITED;
}

static enum roan_event req_positive_ack(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	u32 una_psn = r->una_psn, una = r->una;
	u32 limit = r->lsn;
	bool known = r->credits_known;

	if (aeth_is_unlimited(pkt))
		r->credits_known = false;
	else
		req_raise_lsn(r, pkt);
	if (!roan_req_acknowledge(r, psn_add(pkt->psn, 1), now))
		return roan_read_missing(r, psn_add(pkt->psn, 1), now);
	if (una_psn != r->una_psn || una != r->una || limit != r->lsn || known != r->credits_known)
		return ROAN_EV_PROGRESS;
	r->n_stale++;
	return ROAN_EV_NOTHING;
}

/* A NAK or RNR NAK refuses its own PSN and acknowledges all before it. */
static enum roan_event req_negative_ack(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	u8 value = pkt->syndrome & ROAN_AETH_VALUE_MASK;
	bool rnr = (pkt->syndrome & ROAN_AETH_KIND_MASK) == ROAN_AETH_RNR;

	if (refuses(pkt)) {
		req_note_refusal(r, pkt);
		return req_refusal_is_next(r, now) ? req_give_up(r, r->refused) : roan_read_missing(r, pkt->psn, now);
	}
	if (!roan_req_acknowledge(r, pkt->psn, now))
		return roan_req_implied_nak(r, now);
	return rnr ? req_rnr_nak(r, value, now) : roan_req_sequence_nak(r, now);
}

/* True if @psn is sent and not acknowledged. */
static bool req_is_awaited(const struct roan_requester *r, u32 psn)
{
	return psn_diff(psn, r->una_psn) >= 0 && psn_diff(psn, r->end_psn) < 0;
}

/* The ACK of the PSN before the oldest may carry new credits. */
static bool req_ack_counts(const struct roan_requester *r, const struct roan_pkt *pkt)
{
	return req_is_awaited(r, pkt->psn) || ((pkt->syndrome & ROAN_AETH_KIND_MASK) == ROAN_AETH_ACK &&
					       psn_add(pkt->psn, 1) == r->una_psn);
}

enum roan_event roan_requester_acked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	if (r->failed)
		return ROAN_EV_NOTHING;
	if (!req_ack_counts(r, pkt)) {
		r->n_stale++;
		return ROAN_EV_NOTHING;
	}
	r->peer_sacks = r->cfg.sack && pkt->ext_version;
	switch (pkt->syndrome & ROAN_AETH_KIND_MASK) {
	case ROAN_AETH_ACK:
		return req_positive_ack(r, pkt, now);
	case ROAN_AETH_RNR:
	case ROAN_AETH_NAK:
		return req_negative_ack(r, pkt, now);
	default:
		return req_give_up(r, ROAN_ST_BAD_RESP_ERR);
	}
}

/*
 * True if the response carries valid credits, as ACKs do (9.7.7.2). Only ACKs decide whether flow control is used at
 * all: some responders put "unlimited" into every response.
 */
static bool req_brings_credits(const struct roan_requester *r, const struct roan_pkt *pkt)
{
	return r->credits_known && pkt->info->headers & ROAN_H_AETH && !aeth_is_unlimited(pkt) &&
	       (pkt->syndrome & ROAN_AETH_KIND_MASK) == ROAN_AETH_ACK;
}

void roan_req_take_credits(struct roan_requester *r, const struct roan_pkt *pkt)
{
	if (req_brings_credits(r, pkt))
		req_raise_lsn(r, pkt);
}

/* A peer that sends duplicate responses is alive: restarts the RTO. Not for other PSNs, which may be forged. */
static enum roan_resp_action req_stale_response(struct roan_requester *r, u32 psn, u64 now)
{
	r->n_stale++;
	if (psn_diff(r->una_psn, psn) <= (s32)r->cfg.psn_window && psn_diff(psn, r->end_psn) < 0) {
		r->rto_base_ns = max(r->rto_base_ns, now);
		roan_read_needless(r);
	}
	return ROAN_RESP_STALE;
}

/* The work request and the position in it of the response at una_psn. */
static enum roan_resp_action req_next_response(const struct roan_requester *r, u32 *index, u32 *pos)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, r->una);

	*index = r->una;
	*pos = w->resp_done;
	return r->una != r->tail && w->started ? ROAN_RESP_PLACE : ROAN_RESP_FAILED;
}

/* True if @pkt has the operation, length and segment of response @pos of @w. */
static bool req_well_formed(const struct roan_requester *r, const struct roan_tx_wqe *w, u32 pos,
			    const struct roan_pkt *pkt)
{
	u32 left = w->len - (pos << r->cfg.mtu_shift);
	bool ends = roan_seg_ends(pkt->info->seg);

	switch (w->op) {
	case ROAN_OP_CMP_SWAP:
	case ROAN_OP_FETCH_ADD:
		return pkt->info->op == ROAN_OP_ATOMIC_ACK;
	case ROAN_OP_ATOMIC_WRITE:
	case ROAN_OP_FLUSH:
		return pkt->info->op == ROAN_OP_READ_RESP && pkt->info->seg == ROAN_SEG_ONLY && !pkt->payload_len;
	case ROAN_OP_READ:
		return pkt->info->op == ROAN_OP_READ_RESP && pkt->payload_len == min(left, 1u << r->cfg.mtu_shift) &&
		       (r->reads.repeated || ends == read_ends_piece(r, w, pos));
	default:
		return false;
	}
}

enum roan_resp_action roan_requester_response(struct roan_requester *r, const struct roan_pkt *pkt, u64 now,
					      u32 *index, u32 *offset)
{
	enum roan_resp_action action;
	u32 pos;

	if (r->failed || !req_is_awaited(r, pkt->psn))
		return req_stale_response(r, pkt->psn, now);
	r->peer_sacks = r->cfg.sack && pkt->ext_version;
	/* A response acknowledges all requests before it: the response at una_psn none. */
	if (likely(pkt->psn == r->una_psn) || roan_req_acknowledge(r, pkt->psn, now))
		action = req_next_response(r, index, &pos);
	else if (roan_read_may_wait(r, pkt->psn))
		action = roan_read_early(r, pkt->psn, index, &pos);
	else
		return roan_req_implied_nak(r, now) == ROAN_EV_FAILED ? ROAN_RESP_FAILED : ROAN_RESP_RETRY;
	if (action == ROAN_RESP_STALE)
		return req_stale_response(r, pkt->psn, now);
	if (action != ROAN_RESP_PLACE || !req_well_formed(r, roan_requester_wqe(r, *index), pos, pkt)) {
		req_give_up(r, ROAN_ST_BAD_RESP_ERR);
		return ROAN_RESP_FAILED;
	}
	*offset = pos << r->cfg.mtu_shift;
	roan_req_take_credits(r, pkt);
	return ROAN_RESP_PLACE;
}

enum roan_event roan_requester_placed(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	u32 from = r->una_psn;

	if (unlikely(r->paths))
		roan_paths_response(r, pkt->psn, now);
	if (unlikely(pkt->psn != from))
		return roan_read_placed_early(r, pkt->psn, now);
	take_response(r);
	if (unlikely(r->reads.any))
		roan_read_progress(r, from);
	if (unlikely(r->paths))
		roan_paths_progress(r, from, now);
	if (unlikely(r->any_holes))
		roan_sack_progress(r, from, now);
	/* a repeated READ response starts with FIRST or ONLY, so another segment answers the first request */
	req_progress(r, from, !roan_seg_starts(pkt->info->seg), now);
	if (unlikely(r->refused) && req_refusal_is_next(r, now))
		return req_give_up(r, r->refused);
	if (unlikely(r->reads.any))
		roan_read_choose(r);
	return ROAN_EV_PROGRESS;
}

void roan_requester_dropped(struct roan_requester *r, const struct roan_pkt *pkt)
{
	if (!r->failed && pkt->info->op == ROAN_OP_ACK && refuses(pkt) && req_is_awaited(r, pkt->psn))
		req_note_refusal(r, pkt);
}

/* What is sent again after a refusal is not answered. */
static enum roan_event req_end_refused(struct roan_requester *r, u64 now)
{
	return req_give_up(r, req_refusal_is_next(r, now) || refuses_oldest(r) ? r->refused : ROAN_ST_RETRY_EXC_ERR);
}

void roan_requester_retransmit(struct roan_requester *r, u64 now)
{
	if (r->failed || !roan_requester_outstanding(r))
		return;
	if (r->refused)
		req_end_refused(r, now);
	else
		go_back(r, max(now, r->rnr_until));	/* an RNR wait does not count for the timeouts */
}

/*
 * RTO deadline, if it is before the ACK timeout. The RTO doubles with each retransmission until the next RTT sample
 * (RFC 6298, 5.7: retransmitted packets give no samples, and for a peer that became slow the RTO would stay too
 * short). It uses no retry: a peer that stops for a while keeps all the time that the QP's attributes give it.
 */
static u64 req_rto_deadline(const struct roan_requester *r, u64 timeout_ns)
{
	u64 rto = roan_rtt_rto_ns(&r->rtt) << r->rto_backoff;

	if (!rto || rto >= timeout_ns || r->next_psn == r->una_psn)
		return U64_MAX;
	return r->rto_base_ns + rto;
}

u64 roan_requester_deadline(const struct roan_requester *r)
{
	u64 timeout_ns = roan_timeout_ns(r->cfg.timeout), timeout, at;

	if (r->failed)
		return 0;
	if (r->rnr_until)
		return r->rnr_until;
	if (!r->ack_timer_base_ns || !roan_requester_outstanding(r))
		return 0;
	at = min(roan_requester_reorder_deadline(r), roan_req_unasked_deadline(r));
	if (!r->cfg.timeout)
		return at == U64_MAX ? 0 : at;
	timeout = min3(r->ack_timer_base_ns + timeout_ns, req_rto_deadline(r, timeout_ns), at);
	return min(min(timeout, roan_read_deadline(r)), min(roan_sack_deadline(r), roan_repair_deadline(r)));
}

u64 roan_requester_slack(const struct roan_requester *r, u64 deadline)
{
	if (r->rnr_until || deadline <= r->ack_timer_base_ns || deadline == roan_requester_reorder_deadline(r))
		return 0;
	return (deadline - r->ack_timer_base_ns) / 4;
}

/* roan_requester_reorder_deadline() has passed. */
static void req_late_is_lost(struct roan_requester *r, u64 now)
{
	if (r->reads.lost_at && now >= r->reads.lost_at)
		roan_read_late(r, now);
	if (r->any_holes && now >= r->holes->lost_at)
		roan_reorder_timed_out(r, now);
}

enum roan_event roan_requester_timer(struct roan_requester *r, u64 now)
{
	u64 deadline = roan_requester_deadline(r);

	if (!deadline || now < deadline)
		return ROAN_EV_NOTHING;
	if (r->rnr_until) {
		r->rnr_until = 0;
		return ROAN_EV_RETRY;
	}
	if (now >= roan_requester_reorder_deadline(r)) {
		req_late_is_lost(r, now);
		return r->repair_left || r->reads.hole_left ? ROAN_EV_REPAIR : ROAN_EV_NOTHING;
	}
	if (now >= roan_sack_deadline(r) && roan_repair_possible(r)) {
		roan_sack_timed_out(r, now);
		return ROAN_EV_REPAIR;
	}
	if (now >= roan_read_deadline(r)) {
		roan_read_timed_out(r, now);
		return ROAN_EV_REPAIR;
	}
	if (now >= roan_repair_deadline(r) && roan_repair_possible(r)) {
		roan_repair_timed_out(r, now);
		return ROAN_EV_REPAIR;
	}
	if (unlikely(r->refused))
		return req_end_refused(r, now);
	/* Before a timeout counts: no answer to those packets is due. */
	if (roan_req_unasked_deadline(r) != U64_MAX) {
		roan_req_ask(r);
		roan_requester_restart_timer(r, now);
		return ROAN_EV_REPAIR;
	}
	r->nak_seen = false;
	if (r->auto_paths)
		roan_auto_paths_timed_out(r, now);
	if (now < r->ack_timer_base_ns + roan_timeout_ns(r->cfg.timeout)) {
		r->n_rto++;
		r->rto_backoff++;
		roan_req_start_probe(r, r->ack_timer_base_ns, now);
		return ROAN_EV_RETRY;
	}
	r->n_timeouts++;
	if (!r->retries_left)
		return req_give_up(r, ROAN_ST_RETRY_EXC_ERR);
	r->retries_left--;
	roan_req_start_probe(r, now, now);
	return ROAN_EV_RETRY;
}
