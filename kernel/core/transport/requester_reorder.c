// SPDX-License-Identifier: GPL-2.0
/*
 * Reordering: when a packet that a SACK shows as missing counts as lost, and when it may only have been overtaken. As
 * in RACK (RFC 8985) it may be late by a part of the round trip; longer while overtaken packets that were sent before
 * it still arrive, as in a queue. Packets received that were sent later end the wait early: at a high rate many of them
 * arrive in that time, and a loss has to be repaired fast. How many may overtake is learned from those that did, so
 * until the first loss only the time decides. While losses occurred and no reordering, there is no wait.
 */
#include "core/transport/requester_priv.h"

#define REORDER_MIN_LEN	65536			/* bytes; as many packets, sent as one skb, overtake together */
#define REORDER_MAX	(ROAN_HOLES - 1)	/* packets; then only the time decides */
#define REORDER_STEPS	3			/* a whole round trip */
#define REORDER_MIN_NS	(200 * NSEC_PER_USEC)	/* 16 packets without a SACK take 50 us at 10 Gb/s */
#define REORDER_MAX_NS	NSEC_PER_SEC
#define RECOVERIES	16			/* without needless copies: less is tolerated, as in RFC 8985 */

/* The lowest value of holes.reorder but 0. */
static u32 reorder_min(const struct roan_requester *r)
{
	return min_t(u32, REORDER_MIN_LEN >> r->cfg.mtu_shift, REORDER_MAX);
}

static u32 reorder_most(const struct roan_requester *r)
{
	return r->holes->any_lost ? r->holes->reorder : REORDER_MAX;
}

u32 roan_reorder_wait_ns(const struct roan_requester *r, u32 quarters)
{
	u64 ns = r->rtt.srtt_ns / 4 * quarters;

	return clamp_t(u64, ns, REORDER_MIN_NS, REORDER_MAX_NS);
}

/* Packets received that were sent after packet @psn, or after its copy; by the same path, if there are several. */
static u32 reorder_overtakers(const struct roan_requester *r, const struct roan_pkt *pkt, u32 psn)
{
	const struct roan_holes *h = r->holes;
	bool tried = psn_set_has(h->tried, ROAN_HOLES, psn);
	u32 later = tried ? h->tried_at[psn % ROAN_HOLES] : psn_add(psn, 1);

	if (unlikely(r->paths) && r->paths->n > 1)
		return min_t(u32, roan_paths_overtakers(r, psn), U8_MAX);
	if (psn_diff(pkt->sack.highest_psn, later) < 0)
		return 0;
	return max(roan_sack_count(&pkt->sack, psn_diff(later, pkt->psn) - 1), 1u);
}

/* @at may be later: another CPU read the clock after this one, and came first. */
static u32 reorder_since(u32 at, u64 now)
{
	return max((s32)((u32)now - at), 0);
}

/* True if packet @psn has waited long enough. If not, it will have at lost_at or later. */
static bool reorder_is_over(struct roan_requester *r, u32 psn, u64 now)
{
	struct roan_holes *h = r->holes;
	u32 waited = reorder_since(h->overtaken_at[psn % ROAN_HOLES], now);
	u32 wait = roan_reorder_wait_ns(r, 1 + h->reorder_steps);

	if (psn_diff(psn, h->late_psn) > 0)
		waited = min(waited, reorder_since(h->late_at, now));
	if (waited >= wait) {
		h->lost_by_time = true;
		return true;
	}
	h->lost_at = min(h->lost_at, now + wait - waited);
	return false;
}

void roan_reorder_begin(struct roan_requester *r, u64 now)
{
	struct roan_holes *h = r->holes;

	h->lost_at = U64_MAX;
	if (r->any_holes)
		return;
	h->recovery_psn = r->end_psn;
	h->late_psn = r->una_psn;
	h->late_at = now;
}

bool roan_reorder_is_lost(struct roan_requester *r, const struct roan_pkt *pkt, u32 psn, u64 now)
{
	struct roan_holes *h = r->holes;
	u32 n = reorder_overtakers(r, pkt, psn);

	if (!n)
		return r->paths && roan_paths_expired(r, psn, now, &h->lost_at);
	if (!h->overtakers[psn % ROAN_HOLES])
		h->overtaken_at[psn % ROAN_HOLES] = now;
	h->overtakers[psn % ROAN_HOLES] = n;
	if (n > reorder_most(r)) {
		h->lost_by_count = true;
		return true;
	}
	return reorder_is_over(r, psn, now);
}

/* So many packets have overtaken one, and twice as many may do so. */
static void reorder_seen(struct roan_requester *r, u32 overtakers)
{
	struct roan_holes *h = r->holes;

	h->reorder = clamp_t(u32, 2 * overtakers, max_t(u32, h->reorder, reorder_min(r)), REORDER_MAX);
	h->reordered = true;
}

void roan_reorder_received(struct roan_requester *r, u32 psn, u64 now)
{
	struct roan_holes *h = r->holes;

	if (!psn_set_has(h->missing, ROAN_HOLES, psn) || !h->overtakers[psn % ROAN_HOLES])
		return;
	h->late_at = now;
	h->late_psn = psn;
	reorder_seen(r, h->overtakers[psn % ROAN_HOLES]);
}

/* Once for each set of copies: too little was tolerated, in time, or if nothing was lost by time, in packets. */
void roan_reorder_needless(struct roan_requester *r, u8 needless)
{
	struct roan_holes *h = r->holes;

	if (needless == h->needless)
		return;
	h->needless = needless;
	if (!h->lost_by_count && !h->lost_by_time)
		return;
	reorder_seen(r, h->lost_by_time ? 0 : h->reorder);
	h->reorder_steps = min(h->reorder_steps + h->lost_by_time, REORDER_STEPS);
	h->lost_by_count = false;
	h->lost_by_time = false;
	h->recoveries = 0;
}

/* A recovery in which packets were lost ends. */
static void reorder_recovered(struct roan_requester *r)
{
	struct roan_holes *h = r->holes;

	h->repaired = false;
	if (++h->recoveries < RECOVERIES)
		return;
	h->recoveries = 0;
	h->reorder /= 2;
	if (h->reorder < reorder_min(r))
		h->reorder = h->reordered ? reorder_min(r) : 0;
	h->reorder_steps /= 2;
	h->reordered = false;
}

void roan_reorder_progress(struct roan_requester *r)
{
	struct roan_holes *h = r->holes;

	if (r->any_holes && psn_diff(r->una_psn, h->recovery_psn) < 0)
		return;
	h->recovery_psn = r->end_psn;
	if (h->repaired)
		reorder_recovered(r);
}

static bool reorder_has_waited(struct roan_requester *r, u32 psn, u64 now)
{
	struct roan_holes *h = r->holes;

	if (h->overtakers[psn % ROAN_HOLES])
		return reorder_is_over(r, psn, now);
	return r->paths && roan_paths_expired(r, psn, now, &h->lost_at);
}

void roan_reorder_timed_out(struct roan_requester *r, u64 now)
{
	struct roan_holes *h = r->holes;
	u32 i, psn;

	h->lost_at = U64_MAX;
	if (!roan_repair_possible(r))
		return;
	h->guessed &= !!r->repair_left;
	for (i = 0, psn = r->una_psn; i < ROAN_HOLES; i++, psn = psn_add(psn, 1)) {
		if (!psn_set_has(h->missing, ROAN_HOLES, psn) || psn_set_has(h->again, ROAN_HOLES, psn) ||
		    !reorder_has_waited(r, psn, now))
			continue;
		roan_sack_lost(r, psn);
	}
	roan_sack_choose_oldest(r);
}
