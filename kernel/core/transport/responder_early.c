// SPDX-License-Identifier: GPL-2.0
/*
 * The requests that are kept after a gap, the SACK that reports them, and when a NAK for the gap is due. Where they are
 * kept, and how many, is the driver half's decision.
 */
#include "core/transport/responder_priv.h"

bool roan_resp_is_kept(const struct roan_responder *resp, u32 psn)
{
	return resp->early && psn_diff(psn, resp->epsn) < ROAN_EARLY_WINDOW &&
	       psn_set_has(resp->early_set->bits, ROAN_EARLY_WINDOW, psn);
}

bool roan_resp_may_sack(const struct roan_responder *resp)
{
	return resp->early && psn_diff(resp->early_psn, resp->epsn) > 0 && !resp->epsn_waits && resp->cfg.sack &&
	       resp->peer_supports_sack && !resp->failed &&
	       !(resp->nak_sent && roan_resp_nak_is_rnr(resp));
}

#define MAX_UNREPORTED	16	/* soon enough to tell the requester what became of copies, and what was late */

/* A request was kept, or executed while others are kept: a SACK is due after some of them. */
static void early_unreported(struct roan_responder *resp)
{
	if (roan_resp_may_sack(resp) && ++resp->early_unreported >= MAX_UNREPORTED)
		resp->ack_due = true;
}

void roan_resp_kept_executed(struct roan_responder *resp, u32 psn, u32 npsn)
{
	psn_set_remove_run(resp->early_set->bits, ROAN_EARLY_WINDOW, psn, npsn);
	if (psn_diff(resp->early_psn, resp->epsn) < 0) {
		resp->early = false;
		resp->nak_due = false;
		resp->ack_due = true;	/* at once: the requester need not repeat the kept packets */
	} else {
		early_unreported(resp);
	}
}

/*
 * A requester without SACK repeats everything in order. @pkt is behind the expected request, so the copy of that one is
 * lost as well. A NAK names it, as that of a responder that keeps nothing. Where reordering was seen the copy may be
 * late, and no NAK is sent.
 */
void roan_resp_kept_again(struct roan_responder *resp, const struct roan_pkt *pkt)
{
	resp->n_duplicates++;
	resp->needless_copies += pkt->copy;
	if (roan_resp_may_sack(resp))
		resp->ack_due = true;
	else if (!resp->nak_sent && !resp->epsn_waits && !resp->reorder.wait_ns)
		roan_resp_sequence_nak(resp);
}

/* A SACK is due if the packet begins or ends a gap, or requests a response. */
void roan_responder_kept(struct roan_responder *resp, const struct roan_pkt *pkt)
{
	bool first = !resp->early;
	s32 behind = first ? 0 : psn_diff(pkt->psn, resp->early_psn);

	if (first || behind > 0)
		resp->early_psn = pkt->psn;
	resp->early = true;
	psn_set_add(resp->early_set->bits, ROAN_EARLY_WINDOW, pkt->psn);
	if (behind == 1 && !pkt->ackreq)
		early_unreported(resp);
	else
		resp->ack_due |= roan_resp_may_sack(resp);
}

void roan_responder_fill_sack(const struct roan_responder *resp, struct roan_sack *sack)
{
	u32 i, psn = psn_add(resp->epsn, 1);

	*sack = (struct roan_sack) {
		.needless = resp->needless_copies,
		.highest_psn = resp->early_psn,
	};
	for (i = 0; i < ROAN_SACK_PSNS && psn_diff(psn, resp->early_psn) <= 0; i++, psn = psn_add(psn, 1))
		if (psn_set_has(resp->early_set->bits, ROAN_EARLY_WINDOW, psn))
			sack->received[i / 32] |= 1u << (i % 32);
}

/* ---- the NAK ---- */

/*
 * A NAK makes a requester without SACK send again what was only overtaken. So where reordering was seen the NAK waits,
 * as a retransmission does in RACK (RFC 8985): twice as long as the longest time without a request of the gap was, in
 * gaps that late requests filled. The wait begins anew with each request of the gap that arrives, as they may come out
 * of a queue. While packets are lost and none is late, there is no wait.
 *
 * A gap was filled by late requests, not by copies of lost ones, if no NAK was sent for it and no duplicate arrived
 * meanwhile; or if the request that its NAK named arrives again, roan_responder_duplicate().
 */

#define WAIT_MIN_NS	(50 * NSEC_PER_USEC)	/* batches in hosts and NICs delay packets by about that */
#define WAIT_FIRST_NS	(100 * NSEC_PER_USEC)	/* at most, when reordering is first seen */
/* A quarter of the shortest usual ACK timeout: code 10, 4.2 ms; roan retransmits after 4 ms. */
#define WAIT_MAX_NS	NSEC_PER_MSEC
#define WAIT_DECAY	64	/* the wait decreases by this part with each gap that was filled sooner */
#define LOST_IN_A_ROW	16	/* gaps for which a NAK was sent end the wait, as in RFC 8985 */
#define COPY_PSNS	512	/* a copy is expected before so many later requests */

/*
 * Requests were late by @late_ns. If that is more than the longest wait, waiting is no use. A requester may also send a
 * copy for reasons of its own, so the wait increases in steps.
 */
static void late_seen(struct roan_resp_reorder *o, u32 late_ns)
{
	u32 most = clamp_t(u32, 2 * o->wait_ns, WAIT_FIRST_NS, WAIT_MAX_NS);

	if (late_ns > WAIT_MAX_NS)
		return;
	o->wait_ns = clamp_t(u32, 2 * late_ns, max_t(u32, o->wait_ns - o->wait_ns / WAIT_DECAY, WAIT_MIN_NS), most);
	o->lost = 0;
}

/*
 * If nothing is kept, all has to be sent again anyway. A SACK lets the requester decide, so it is due at once. The wait
 * for a gap ends with its first NAK.
 */
static void gap_seen(struct roan_responder *resp, u64 since, u64 now)
{
	struct roan_resp_reorder *o = &resp->reorder;

	if (!resp->early || (resp->cfg.sack && resp->peer_supports_sack))
		return roan_resp_sequence_nak(resp);
	if (!o->gap) {
		o->gap = true;
		o->nak_sent = false;
		o->copies = false;
		o->longest_ns = 0;
		o->since = since;
		o->epsn = resp->epsn;
	}
	o->nak_waits = !o->nak_sent && now < o->since + o->wait_ns;
	if (!o->nak_waits)
		roan_resp_sequence_nak(resp);
}

void roan_responder_gap(struct roan_responder *resp, u64 now)
{
	gap_seen(resp, now, now);
}

/* A request came that was missing. */
static void late_came(struct roan_resp_reorder *o, u32 epsn, u64 now)
{
	o->longest_ns = max_t(u64, o->longest_ns, min_t(u64, now - o->since, U32_MAX));
	o->since = now;
	o->epsn = epsn;
}

static void gap_filled(struct roan_resp_reorder *o)
{
	o->gap = false;
	o->nak_waits = false;
	if (o->late == ROAN_LATE_MISSING) {
		o->late = ROAN_LATE_CAME;
		o->late_ns = o->longest_ns;
		o->late_at = o->since;
	} else if (!o->nak_sent && !o->copies) {
		late_seen(o, o->longest_ns);
	}
}

/* The copy that a NAK requested fills a gap late, so the wait of the next one began before. */
bool roan_responder_next_gap(struct roan_responder *resp, bool filled, u64 since, u64 now)
{
	struct roan_resp_reorder *o = &resp->reorder;

	if (o->gap && (filled || o->epsn != resp->epsn))
		late_came(o, resp->epsn, now);
	if (!filled)
		return false;
	if (o->gap)
		gap_filled(o);
	if (!o->nak_sent)
		since = now;
	if (!resp->early || resp->epsn_waits || resp->nak_sent || resp->failed)
		return false;
	resp->n_out_of_sequence++;
	gap_seen(resp, since, now);
	return true;
}

void roan_resp_reorder_nak_sent(struct roan_responder *resp, u32 psn)
{
	struct roan_resp_reorder *o = &resp->reorder;

	if (!o->gap || o->nak_sent)
		return;
	o->nak_sent = true;
	if (o->wait_ns && ++o->lost == LOST_IN_A_ROW) {
		o->lost = 0;
		o->wait_ns = 0;
	}
	if (o->copies || (o->late == ROAN_LATE_CAME && psn_within(psn, o->late_psn, COPY_PSNS)))
		return;
	o->late = ROAN_LATE_MISSING;
	o->late_psn = psn;
}

/*
 * A copy that comes sooner after the gap was filled than that took was not requested by the NAK: a requester repeats
 * its repair when the round trip has become longer than it knows. READs and atomics may be repeated because a response
 * was lost.
 */
void roan_responder_duplicate(struct roan_responder *resp, const struct roan_pkt *pkt, u64 now)
{
	struct roan_resp_reorder *o = &resp->reorder;

	o->copies = true;
	if (o->late == ROAN_LATE_CAME && pkt->psn != o->late_psn)
		return;
	if (o->late == ROAN_LATE_CAME && now - o->late_at >= o->late_ns && !roan_op_needs_response(pkt->info->op))
		late_seen(o, o->late_ns);
	o->late = ROAN_LATE_NONE;
}

u64 roan_responder_timer(struct roan_responder *resp, u64 now)
{
	struct roan_resp_reorder *o = &resp->reorder;

	if (now < o->since + o->wait_ns)
		return o->since + o->wait_ns;
	o->nak_waits = false;
	if (!resp->nak_sent && !resp->failed)
		roan_resp_sequence_nak(resp);
	return 0;
}
