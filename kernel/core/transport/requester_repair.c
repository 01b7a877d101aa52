// SPDX-License-Identifier: GPL-2.0
/*
 * Repairs: after a sequence NAK the requester sends the packets of a gap again, and no others, because the peer keeps
 * what it receives after the gap (IBTA vol. 1, 9.7.5.1.4, permits both). Probes: after a timeout it sends the oldest
 * packet again, and the answer decides about the others. Requests for an answer: the packet that was to carry AckReq
 * is not sent, so the one before it is sent again, with AckReq. requester.c builds the packets.
 */
#include "core/transport/requester_priv.h"

bool roan_repair_possible(const struct roan_requester *r)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, r->una);

	return !r->local_err && r->una != r->tail && w->started && !w->completed &&
	       work_pos(w, r->una_psn) < w->n_psn && psn_diff(r->next_psn, r->una_psn) > 0;
}

#define MAX_VAIN_REPAIRS	5	/* then 1 + 2 + ... + 32 packets in a row would be lost */
#define MAX_GO_BACK_SHIFT	6

/*
 * A gap begins at una_psn. Returns how many packets from there on are to be sent again: one if the NAK is the first one
 * of a gap, twice as many for each repair in vain. 0: go back. Whether a new peer keeps what it receives after a gap is
 * found by a repair of one packet. If the next packet is missing as well, the peer keeps nothing, or that packet was
 * lost, too: everything is sent again, and a repair is tried again after 2, 4, ... 64 losses. If nothing else is sent,
 * no NAK tells that, but the deadline of the repair does: no repair without one, and of a new peer that takes a round
 * trip.
 */
static u32 req_plan_repair(struct roan_requester *r)
{
	if (r->rto_probe || !roan_repair_possible(r))
		return 0;		/* usually because everything from there on is being sent again already */
	if (!r->cfg.timeout || (!r->peer_keeps && !r->rtt.srtt_ns))
		return 0;
	if (r->go_back_left) {
		r->go_back_left--;
		return 0;
	}
	if (!r->repair_sent || r->una_psn != r->repair_psn)
		return 1;
	r->vain_repairs++;
	if (r->peer_keeps && r->vain_repairs <= MAX_VAIN_REPAIRS)
		return 1 << r->vain_repairs;
	if (r->peer_keeps)
		r->vain_repairs = 1;
	r->peer_keeps = false;
	r->go_back_left = (1 << min_t(u32, r->vain_repairs, MAX_GO_BACK_SHIFT)) - 1;
	return 0;
}

/* Makes @packets from una_psn on the next to send. */
static void req_begin_repair(struct roan_requester *r, u32 packets)
{
	roan_holes_clear(r);
	r->repair_by_sack = false;
	r->repair_left = packets;
	r->repair_sent = false;
	r->repair_psn = r->una_psn;
	r->repair_index = r->una;
}

bool roan_repair_by_nak(struct roan_requester *r, u64 now)
{
	u32 packets = req_plan_repair(r);

	if (!packets || !roan_req_use_retry(r))
		return false;
	r->repair_backoff = 0;
	req_begin_repair(r, packets);
	r->timed_at = 0;	/* ACKs wait for the repair: no RTT sample */
	r->ack_timer_base_ns = now;
	r->rto_base_ns = now;
	return true;
}

void roan_repair_progress(struct roan_requester *r, u64 now)
{
	if (r->repair_by_sack)
		return;
	r->repair_at_ns = max(r->repair_at_ns, now);	/* the responses to a READ restart the wait */
	if (psn_diff(r->una_psn, r->repair_psn) <= 0) {
		if (!r->repair_sent)
			r->repair_left = 0;	/* the missing packet had only been delayed */
		return;
	}
	r->repair_left = 0;
	r->peer_keeps |= r->repair_sent;
	r->repair_sent = false;
	r->vain_repairs = 0;
}

static void req_next_of_repair(struct roan_requester *r, const struct roan_tx_desc *e, u64 now)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, e->index);

	if (work_pos(w, e->psn) + e->npsn == w->n_psn)
		while (++r->repair_index != r->tail && !roan_requester_wqe(r, r->repair_index)->n_psn)
			;	/* local ones have no packet */
	r->repair_psn = psn_add(e->psn, e->npsn);
	r->repair_sent = true;
	r->repair_at_ns = now;
	r->repair_left = psn_diff(r->next_psn, r->repair_psn) > 0 ? r->repair_left - 1 : 0;
}

void roan_repair_sent(struct roan_requester *r, const struct roan_tx_desc *e, u64 now)
{
	if (r->repair_by_sack)
		roan_sack_repair_sent(r, e, now);
	else
		req_next_of_repair(r, e, now);
	r->rto_base_ns = now;
	r->n_resent++;
}

u64 roan_repair_deadline(const struct roan_requester *r)
{
	return r->repair_sent && !r->repair_left ? req_again_at(r, r->repair_at_ns) : U64_MAX;
}

void roan_repair_timed_out(struct roan_requester *r, u64 now)
{
	u32 packets = r->una_psn == r->repair_psn ? req_plan_repair(r) : 1;

	r->n_rto++;
	if (!packets) {
		go_back(r, r->ack_timer_base_ns);
		r->rto_base_ns = now;
		return;
	}
	r->repair_backoff++;
	req_begin_repair(r, packets);
}

/* ---- the probe after a timeout ---- */

void roan_req_start_probe(struct roan_requester *r, u64 progress_at, u64 now)
{
	if (!r->rto_probe)	/* tail_ackreq describes the packets before the first probe */
		r->tail_ackreq = !r->since_ackreq && r->next_psn == r->end_psn;
	next_is_oldest(r, progress_at);
	if (!r->rtt.srtt_ns)
		r->timed_at = 0;	/* the time until a later packet's answer would have the timeout in it */
	r->rto_probe = true;
	r->rto_again = false;
	r->rto_probe_psn = r->una_psn;
	r->rto_base_ns = now;
}

/*
 * Responses outstanding for the packets of @w before @psn, which were sent: one for each piece of a READ. If @psn is
 * within a piece, what precedes it there has arrived.
 */
static u32 req_responses_pending(const struct roan_requester *r, const struct roan_tx_wqe *w, u32 psn)
{
	u32 piece = read_piece(r, w), pos = work_pos(w, psn);

	if (!w->started || w->completed || !roan_op_needs_response(w->op))
		return 0;
	return (pos < w->n_psn ? pos / piece : DIV_ROUND_UP(w->n_psn, piece)) - w->resp_done / piece;
}

/* Continues at @psn: all before it were sent. */
static void req_continue_at(struct roan_requester *r, u32 psn)
{
	const struct roan_tx_wqe *w;
	u32 next;

	r->rd_outstanding = 0;
	for (next = r->una; next != r->tail; next++) {
		w = roan_requester_wqe(r, next);
		r->rd_outstanding += req_responses_pending(r, w, psn);
		if (!w->completed && (!w->started || work_pos(w, psn) < w->n_psn))
			break;
	}
	r->next = next;
	r->next_psn = psn;
}

void roan_req_end_probe(struct roan_requester *r)
{
	r->rto_probe = false;
	r->timed_at = 0;
	r->since_ackreq = !r->tail_ackreq;
	req_continue_at(r, r->end_psn);
}

/* True if a READ or atomic is among the unacknowledged packets. */
static bool req_response_is_missing(const struct roan_requester *r)
{
	const struct roan_tx_wqe *w;
	u32 i;

	for (i = r->una; i != r->tail; i++) {
		w = roan_requester_wqe(r, i);
		if (!w->completed && !w->started)
			return false;
		if (!w->completed && roan_op_needs_response(w->op))
			return true;
	}
	return false;
}

/* Not with READs and atomics: an ACK ends before them, and a peer that is only slow would execute them twice. */
static bool req_probe_again(struct roan_requester *r)
{
	if (r->rto_again || r->una_psn == r->end_psn || req_response_is_missing(r))
		return false;
	next_is_oldest(r, r->ack_timer_base_ns);
	r->rto_again = true;
	r->rto_probe_psn = r->una_psn;
	return true;
}

void roan_req_probe_answered(struct roan_requester *r, bool late)
{
	late = late && r->tail_ackreq;
	if (!late || r->timed_psn == r->rto_probe_psn)
		r->timed_at = 0;	/* sent twice now or soon: no RTT sample (Karn) */
	if (late && req_probe_again(r))
		return;
	r->rto_probe = false;
	if (late)
		return req_continue_at(r, r->end_psn);
	roan_req_start_slowly(r, ROAN_RESTART_WINDOW);
}

/* It is not known which packets before @psn had AckReq: as if none. */
bool roan_requester_unsent(struct roan_requester *r, u32 psn)
{
	if (r->failed || psn_diff(psn, r->una_psn) < 0 || psn_diff(psn, r->next_psn) >= 0)
		return false;
	if (unlikely(r->paths))
		roan_paths_unsent(r, psn);
	req_continue_at(r, psn);
	r->since_ackreq = psn_diff(psn, r->una_psn);
	if (psn_diff(r->timed_psn, psn) >= 0)
		r->timed_at = 0;
	/* The request that failed here meanwhile was to carry AckReq, as in roan_requester_fail(). */
	if (r->local_err && r->since_ackreq && (s32)(r->next - r->local_err_idx) >= 0)
		go_back(r, r->ack_timer_base_ns);
	return true;
}

/* ---- requests for an answer ---- */

/* A page fault usually takes less, and then the packet that waits for it carries AckReq. */
#define MAX_WAIT_UNASKED_NS	NSEC_PER_MSEC

bool roan_req_is_unasked(const struct roan_requester *r)
{
	return r->since_ackreq && r->next_psn == r->end_psn && !r->local_err && roan_requester_outstanding(r);
}

u64 roan_req_unasked_deadline(const struct roan_requester *r)
{
	if (!r->held || psn_diff(r->held_psn, r->end_psn) < 0 || !roan_req_is_unasked(r))
		return U64_MAX;
	return r->rto_base_ns + MAX_WAIT_UNASKED_NS;
}

bool roan_requester_repair_is_held(const struct roan_requester *r)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, r->una);

	if (!r->held || !roan_requester_outstanding(r) || psn_diff(r->held_psn, r->end_psn) >= 0)
		return false;
	return r->una_psn == r->held_psn ||
	       (r->since_ackreq && !r->repair_left && work_pos(w, r->held_psn) < w->n_psn);
}

/*
 * The time until then does not count for what no answer was asked for. But it counts for the next question: if another
 * page of this QP was meant, the same packet is held at once.
 */
void roan_requester_release(struct roan_requester *r, u64 now)
{
	if (roan_requester_repair_is_held(r))
		roan_requester_restart_timer(r, now);
	else if (r->held && roan_req_is_unasked(r))
		r->ack_timer_base_ns = max(r->ack_timer_base_ns, now);
	r->held = false;
}

/* A READ or atomic is answered without AckReq, but roan_req_end_probe() does not know what was sent last. */
bool roan_req_ask(struct roan_requester *r)
{
	u32 psn = psn_add(r->end_psn, -1), n;

	for (n = r->next - r->una + 1; n--; ) {
		const struct roan_tx_wqe *w = roan_requester_wqe(r, r->una + n);

		if (r->una + n == r->tail || !w->started || w->completed || work_pos(w, psn) >= w->n_psn)
			continue;
		if (roan_op_needs_response(w->op))
			break;
		r->next = r->una + n;
		r->next_psn = psn;
		return true;
	}
	r->since_ackreq = 0;
	return false;
}
