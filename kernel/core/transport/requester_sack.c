// SPDX-License-Identifier: GPL-2.0
/*
 * What the requester makes of SACKs (sack.h): which packets are lost and to be sent again, each once for each time it
 * was lost. A packet is lost if a later one was received, and so is its copy if a packet sent after the copy was; where
 * reordering was seen, requester_reorder.c decides. The loss of the last packets, which no later packet reveals, is
 * found by sending the last one again after two round trips.
 */
#include "core/transport/requester_priv.h"

#define HOLE_WORDS	ROAN_PSN_WORDS(ROAN_HOLES)

/*
 * A QP that has sent nothing again for a second waits at least a millisecond before it takes its last packet for lost.
 * On a short path its timer would else fire up to ten thousand times a second, long after the ACKs came.
 */
#define QUIET_AFTER_NS	NSEC_PER_SEC
#define QUIET_WAIT_NS	NSEC_PER_MSEC

/* A request packet that was sent: PSN @psn of work request @index. */
struct sack_pos {
	u32 index;
	u32 psn;
};

void roan_holes_reset(struct roan_requester *r)
{
	struct roan_holes *h = r->holes;

	memset(h->missing, 0, sizeof(h->missing));
	memset(h->again, 0, sizeof(h->again));
	memset(h->tried, 0, sizeof(h->tried));
	h->repaired = false;
	r->any_holes = false;
	r->repair_left = 0;
}

/*
 * Sets @pos to the first request packet sent with @psn or a later one, from work request @pos->index on. False: there
 * is none, or it is too far ahead for the sets.
 */
static bool sack_find(const struct roan_requester *r, struct sack_pos *pos, u32 psn)
{
	const struct roan_tx_wqe *w;
	u32 at;

	for (; pos->index != r->tail; pos->index++) {
		w = roan_requester_wqe(r, pos->index);
		if (!w->n_psn || w->completed)
			continue;
		if (!w->started)
			return false;
		at = work_pos(w, psn);
		if (at > w->n_psn)
			at = 0;		/* @psn is before it, which psn_diff() cannot show: a message may have 2^23 */
		if (roan_op_needs_response(w->op))	/* one request for each piece of a READ */
			at = DIV_ROUND_UP(at, read_piece(r, w)) * read_piece(r, w);
		if (at >= w->n_psn)
			continue;
		pos->psn = psn_add(w->first_psn, at);
		return psn_diff(pos->psn, r->next_psn) < 0 && psn_diff(pos->psn, r->una_psn) < ROAN_HOLES;
	}
	return false;
}

static bool sack_find_oldest(const struct roan_requester *r, struct sack_pos *pos)
{
	pos->index = r->una;
	return sack_find(r, pos, r->una_psn);
}

static bool sack_find_next(const struct roan_requester *r, struct sack_pos *pos)
{
	return sack_find(r, pos, psn_add(pos->psn, 1));
}

/* The newest SEND or WRITE that is not too far ahead for the sets; one is the oldest. */
static bool sack_find_newest(const struct roan_requester *r, struct sack_pos *newest)
{
	bool there, any = false;
	struct sack_pos pos;

	for (there = sack_find_oldest(r, &pos); there; there = sack_find_next(r, &pos)) {
		if (roan_op_needs_response(roan_requester_wqe(r, pos.index)->op))
			continue;
		*newest = pos;
		any = true;
	}
	return any;
}

/* Makes the first packet of holes.again, from @pos on, the next to send. @there: @pos is a packet. */
static void sack_choose(struct roan_requester *r, struct sack_pos *pos, bool there)
{
	while (there && !psn_set_has(r->holes->again, ROAN_HOLES, pos->psn))
		there = sack_find_next(r, pos);
	r->repair_left = there;
	r->repair_sent = false;
	r->repair_by_sack = there;
	r->repair_psn = pos->psn;
	r->repair_index = pos->index;
}

void roan_sack_choose_oldest(struct roan_requester *r)
{
	struct sack_pos pos = {};
	bool there = sack_find_oldest(r, &pos);

	sack_choose(r, &pos, there);
}

void roan_sack_repair_sent(struct roan_requester *r, const struct roan_tx_desc *e, u64 now)
{
	struct sack_pos pos = { .index = e->index, .psn = e->psn };
	struct roan_holes *h = r->holes;

	h->repaired_at = now;
	psn_set_remove(h->again, ROAN_HOLES, e->psn);
	psn_set_add(h->tried, ROAN_HOLES, e->psn);
	h->tried_at[e->psn % ROAN_HOLES] = r->end_psn;
	h->overtakers[e->psn % ROAN_HOLES] = 0;
	sack_choose(r, &pos, sack_find_next(r, &pos));
}

/* The peer has received the @n requests from @from on. */
static void sack_received(struct roan_requester *r, u32 from, u32 n, u64 now)
{
	struct roan_holes *h = r->holes;
	u32 i, left = 0;

	for (i = 0; i < min_t(u32, n, ROAN_HOLES); i++)
		roan_reorder_received(r, psn_add(from, i), now);
	psn_set_remove_run(h->missing, ROAN_HOLES, from, n);
	psn_set_remove_run(h->again, ROAN_HOLES, from, n);
	psn_set_remove_run(h->tried, ROAN_HOLES, from, n);
	for (i = 0; i < HOLE_WORDS; i++)
		left |= h->missing[i];
	r->any_holes = left;
	roan_reorder_progress(r);
	if (r->repair_left && r->repair_by_sack && psn_diff(psn_add(from, n), r->repair_psn) > 0)
		roan_sack_choose_oldest(r);
}

void roan_sack_progress(struct roan_requester *r, u32 from, u64 now)
{
	sack_received(r, from, psn_diff(r->una_psn, from), now);
}

void roan_sack_executed(struct roan_requester *r, u32 psn, u64 now)
{
	if (psn_diff(psn, r->una_psn) > 0)
		sack_received(r, r->una_psn, psn_diff(psn, r->una_psn), now);
}

/* The packet's PSN is sent and not acknowledged, a later one is received, and none that was not sent. */
static bool sack_is_plausible(const struct roan_requester *r, const struct roan_pkt *pkt)
{
	s32 span = psn_diff(pkt->sack.highest_psn, pkt->psn);
	u32 i;

	if (psn_diff(pkt->psn, r->una_psn) < 0 || span <= 0 || psn_diff(pkt->sack.highest_psn, r->end_psn) >= 0)
		return false;
	for (i = span; i < ROAN_SACK_PSNS; i++)
		if (roan_sack_has(&pkt->sack, i))
			return false;
	return true;
}

/* Two SACKs have overtaken each other. */
static bool sack_is_older(const struct roan_requester *r, const struct roan_pkt *pkt)
{
	return r->any_holes && psn_diff(pkt->sack.highest_psn, r->holes->highest_psn) < 0;
}

/* An older SACK that says the same of the highest PSN as the last one does not make missing what has arrived. */
static bool sack_knew_as_received(const struct roan_requester *r, u32 psn)
{
	const struct roan_holes *h = r->holes;

	return r->any_holes && psn != r->una_psn && psn_diff(psn, h->known_psn) < 0 &&
	       !psn_set_has(h->missing, ROAN_HOLES, psn);
}

void roan_sack_lost(struct roan_requester *r, u32 psn)
{
	struct roan_holes *h = r->holes;

	psn_set_remove(h->tried, ROAN_HOLES, psn);
	psn_set_add(h->again, ROAN_HOLES, psn);
	if (unlikely(r->paths))
		roan_paths_lost(r, psn);
	r->n_seq_naks += !h->repaired;	/* once for each recovery */
	h->repaired = true;
	h->any_lost = true;
	if (psn == r->timed_psn)
		r->timed_at = 0;	/* no RTT sample (Karn) */
}

/* Renews the set of missing packets, and chooses those to be sent again. @all: they had time enough to arrive. */
static void sack_find_lost(struct roan_requester *r, const struct roan_pkt *pkt, bool all, u64 now)
{
	struct roan_holes *h = r->holes;
	u32 highest = pkt->sack.highest_psn, i;
	u32 missing[HOLE_WORDS] = {};
	struct sack_pos pos;
	bool there, any = false;
	s32 ahead;

	h->guessed = all || (h->guessed && r->repair_left);
	roan_reorder_begin(r, now);
	if (unlikely(r->paths))
		roan_paths_sacked(r, pkt, now);
	for (there = sack_find_oldest(r, &pos); there && psn_diff(pos.psn, highest) < 0;
	     there = sack_find_next(r, &pos)) {
		ahead = psn_diff(pos.psn, pkt->psn);
		if (ahead > (s32)ROAN_SACK_PSNS)
			break;
		/* before the SACK's PSN only responses to READs are missing */
		if (ahead < 0 || (ahead && roan_sack_has(&pkt->sack, ahead - 1))) {
			roan_reorder_received(r, pos.psn, now);
			continue;
		}
		if (sack_knew_as_received(r, pos.psn))
			continue;
		any = true;
		psn_set_add(missing, ROAN_HOLES, pos.psn);
		if (!psn_set_has(h->missing, ROAN_HOLES, pos.psn))
			h->overtakers[pos.psn % ROAN_HOLES] = 0;
		if (psn_set_has(h->again, ROAN_HOLES, pos.psn))
			continue;
		if (roan_reorder_is_lost(r, pkt, pos.psn, now) || all)
			roan_sack_lost(r, pos.psn);
	}
	r->any_holes = any;
	h->highest_psn = highest;
	h->known_psn = psn_add(pkt->psn, min_t(u32, psn_diff(highest, pkt->psn), ROAN_SACK_PSNS + 1));
	memcpy(h->missing, missing, sizeof(missing));
	for (i = 0; i < HOLE_WORDS; i++) {
		h->again[i] &= missing[i];
		h->tried[i] &= missing[i];
	}
	roan_reorder_progress(r);
	roan_sack_choose_oldest(r);
}

/* It was sent again, and may be on its way. */
static bool sack_is_copy(const struct roan_requester *r, u32 psn)
{
	return r->holes && psn_set_has(r->holes->tried, ROAN_HOLES, psn);
}

/*
 * The packet that is timed is received, if others before it are missing, too. If it is lost, and soon sent again, it
 * gives no sample (Karn). But if none is known, only the ACK timeout would find what no SACK shows: then the time until
 * a later packet's answer is the first one, as the round trip is no longer than that.
 */
static void sack_sample_rtt(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	s32 ahead = psn_diff(r->timed_psn, pkt->psn);

	if (!r->timed_at || ahead < 0 || ahead > ROAN_SACK_PSNS)
		return;
	if (ahead && roan_sack_has(&pkt->sack, ahead - 1))
		return roan_req_sample_rtt(r, now);
	if (psn_diff(pkt->sack.highest_psn, r->timed_psn) <= 0 || sack_is_copy(r, r->timed_psn))
		return;
	if (!r->rtt.srtt_ns && now >= r->timed_at)
		roan_rtt_sample(&r->rtt, now - r->timed_at);
	r->timed_at = 0;
}

bool roan_requester_sack_counts(const struct roan_requester *r, const struct roan_pkt *pkt)
{
	return !r->failed && r->cfg.sack && pkt->ext_version && sack_is_plausible(r, pkt);
}

enum roan_event roan_requester_sacked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	enum roan_event event = ROAN_EV_PROGRESS;
	bool probed = r->rto_probe, answered;

	if (!roan_requester_sack_counts(r, pkt)) {
		r->n_stale += !r->failed;
		return ROAN_EV_NOTHING;
	}
	r->peer_sacks = true;
	roan_req_take_credits(r, pkt);
	answered = roan_req_acknowledge(r, pkt->psn, now);
	if (!answered)
		event = roan_read_missing(r, pkt->psn, now);
	if (event != ROAN_EV_PROGRESS && event != ROAN_EV_REPAIR)
		return event;
	sack_sample_rtt(r, pkt, now);
	if (now < r->rnr_until)
		return event;
	if (!answered && (r->local_err || !r->holes))
		return event;
	if (r->local_err || !r->holes)
		return roan_req_sequence_nak(r, now);	/* repairs need the packets' work requests, and memory */
	if (probed)
		roan_req_end_probe(r);
	if (!roan_repair_possible(r) || sack_is_older(r, pkt))
		return event;
	roan_reorder_needless(r, pkt->sack.needless);
	sack_find_lost(r, pkt, probed, now);
	return r->repair_left ? ROAN_EV_REPAIR : event;
}

static u64 sack_least_wait_ns(const struct roan_requester *r)
{
	bool quiet = !r->holes || r->rto_base_ns > r->holes->repaired_at + QUIET_AFTER_NS;

	return quiet ? QUIET_WAIT_NS : 0;
}

/*
 * Only if the last packet sent asks for an answer: otherwise more follow, perhaps slowly. What may have been overtaken
 * has a time of its own, as those that did so had shorter round trips. READs and atomics are left to the RTO: their
 * peer is busy, perhaps, and should not be asked twice.
 */
u64 roan_sack_deadline(const struct roan_requester *r)
{
	if (roan_requester_reorder_deadline(r) != U64_MAX)
		return U64_MAX;
	if (!r->peer_sacks || r->since_ackreq || r->repair_left || r->next_psn != r->end_psn || r->una == r->tail ||
	    roan_op_needs_response(roan_requester_wqe(r, r->una)->op))
		return U64_MAX;
	return max(req_again_at(r, r->rto_base_ns), r->rto_base_ns + sack_least_wait_ns(r));
}

/* No answer: what is known as missing is lost, copies included. Else the last packet is sent again: it is answered. */
void roan_sack_timed_out(struct roan_requester *r, u64 now)
{
	struct roan_holes *h = r->holes;
	struct sack_pos probe;

	r->n_rto++;
	r->repair_backoff++;
	r->rto_base_ns = now;
	if (!h)
		return;		/* no memory: the RTO covers it */
	h->guessed = true;
	roan_reorder_begin(r, now);
	memset(h->tried, 0, sizeof(h->tried));
	memcpy(h->again, h->missing, sizeof(h->again));
	if (!r->any_holes && sack_find_newest(r, &probe)) {
		r->any_holes = true;
		h->highest_psn = r->una_psn;
		h->known_psn = r->una_psn;
		psn_set_add(h->missing, ROAN_HOLES, probe.psn);
		psn_set_add(h->again, ROAN_HOLES, probe.psn);
		h->overtakers[probe.psn % ROAN_HOLES] = 0;
	}
	if (psn_set_has(h->again, ROAN_HOLES, r->timed_psn))
		r->timed_at = 0;	/* Karn. A sample of others shows whether this time-out was too short */
	roan_sack_choose_oldest(r);
}
