// SPDX-License-Identifier: GPL-2.0
/*
 * Swift (Kumar et al., SIGCOMM 2020), as far as a sender alone can implement it: a window that grows while the round
 * trip is below a target, and shrinks with the excess, at most once per round trip. There is one window for fabric and
 * host together, because a plain RC ACK does not separate their delays. Needs only ACKs: no switch support, no CNP.
 * Limits nothing without a measured round trip (UC, UD).
 *
 * The window is in bytes and may be less than a packet: then single packets are paced at window / round trip.
 */
#include "core/cc/cc_ops.h"

#define FRAC		8			/* fraction bits of roan_swift.cwnd */
#define MIN_SHARE	1000			/* minimum window, whatever swift_min_rate: packet / MIN_SHARE */
#define MAX_TIMEOUTS	5			/* consecutive timeouts after which the window is set to its minimum */

static u64 isqrt(u64 x)
{
	u64 root = 0;

	for (u64 bit = 1ULL << 62; bit; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

/* 65536 / sqrt(packets), for a window in 1/1024 packet. */
static u64 swift_inverse_root(u64 packets)
{
	return isqrt((1ULL << 42) / max(packets, 1ULL));
}

/* Swift's flow scaling, ns added to the target: queues shared by many flows, each with a small window, are longer. */
static u64 swift_flow_scaling(const struct roan_cc *cc)
{
	u64 range = CC_PARAM(cc, swift_fs_range_us) * (u64)NSEC_PER_USEC;
	u64 small = swift_inverse_root(CC_PARAM(cc, swift_fs_min));
	u64 large = swift_inverse_root(CC_PARAM(cc, swift_fs_max));
	u64 here = swift_inverse_root((cc->swift.cwnd << (10 - FRAC)) / cc->packet);

	if (here <= large || small <= large)
		return 0;
	return min(range, range * (here - large) / (small - large));
}

/* ns, without flow scaling. */
static u64 swift_base_target(const struct roan_cc *cc)
{
	u64 target = CC_PARAM(cc, swift_target_us) * (u64)NSEC_PER_USEC;

	return target ? target : 2 * cc->min_rtt_ns + CC_PARAM(cc, swift_slack_us) * (u64)NSEC_PER_USEC;
}

static u64 swift_window_max(const struct roan_cc *cc)
{
	u64 bytes = CC_PARAM(cc, swift_max_window) * 1024ULL;

	if (!bytes)
		bytes = min(mul_u64_u64_div_u64(cc->link, swift_base_target(cc), 4 * NSEC_PER_SEC), 1ULL << 30);
	return max_t(u64, bytes, 2 * cc->packet) << FRAC;
}

/*
 * At least swift_min_rate, as DCQCN's rpg_min_rate: round trips may exceed the target for other reasons than queues, in
 * busy or emulated hosts, and no cut shortens those.
 */
static u64 swift_window_min(const struct roan_cc *cc)
{
	u64 rate = roan_mbps(CC_PARAM(cc, swift_min_rate));
	u64 least = mul_u64_u64_div_u64(rate << FRAC, cc->swift.rtt_ns, 8 * NSEC_PER_SEC);

	return max(max(least, ((u64)cc->packet << FRAC) / MIN_SHARE), 1ULL);
}

static void swift_publish(struct roan_cc *cc)
{
	struct roan_swift *s = &cc->swift;
	u64 full = (u64)cc->packet << FRAC;
	u64 rate = 0;

	if (!s->cwnd) {
		cc->rate = cc->rate_cap;
		return;
	}
	s->cwnd = min(max(s->cwnd, swift_window_min(cc)), swift_window_max(cc));
	if (s->cwnd < full)
		rate = max(mul_u64_u64_div_u64(s->cwnd << 3, NSEC_PER_SEC, s->rtt_ns << FRAC), 1ULL);
	cc->cwnd = max(s->cwnd >> FRAC, (u64)cc->packet);
	cc->rate = roan_cc_capped(cc, rate);
}

/* Reduces the window to @keep / @of, unless it was reduced less than a round trip ago. */
static void swift_shrink(struct roan_cc *cc, u64 keep, u64 of)
{
	struct roan_swift *s = &cc->swift;

	if (s->cut_at && cc->now - s->cut_at < s->rtt_ns)
		return;
	s->cwnd = mul_u64_u64_div_u64(s->cwnd, keep, of);
	s->cut_at = cc->now;
	cc->cuts++;
}

static void swift_measured(struct roan_cc *cc, u64 rtt)
{
	struct roan_swift *s = &cc->swift;

	s->rtt_ns = s->rtt_ns ? (7 * s->rtt_ns + rtt) / 8 : rtt;
	if (!s->cwnd)
		s->cwnd = swift_window_max(cc);
}

/* Adds swift_ai packets per window acknowledged; per packet acknowledged if the window is smaller than a packet. */
static void swift_grow(struct roan_cc *cc, u64 acked)
{
	struct roan_swift *s = &cc->swift;
	u64 window = max(s->cwnd >> FRAC, (u64)cc->packet);

	s->cwnd += ((u64)CC_PARAM(cc, swift_ai) * cc->packet >> (10 - FRAC)) * min(acked, window) / window;
}

static void swift_acked(struct roan_cc *cc, const struct roan_cc_sample *sample)
{
	struct roan_swift *s = &cc->swift;
	u64 rtt = sample->rtt_ns;
	u64 target, acked;

	s->acked += sample->bytes;
	s->timeouts = 0;
	if (!rtt)
		return;
	acked = s->acked;
	s->acked = 0;
	swift_measured(cc, rtt);
	target = swift_base_target(cc) + swift_flow_scaling(cc);
	if (rtt >= target) {
		u64 less = CC_PARAM(cc, swift_beta) * (rtt - target) / rtt;

		swift_shrink(cc, 1024 - min_t(u64, less, CC_PARAM(cc, swift_max_mdf)), 1024);
	} else if (sample->in_flight + acked >= s->cwnd >> (FRAC + 1)) {
		/* grow only if at least half of the window is used: otherwise the round trip says nothing about it */
		swift_grow(cc, acked);
	}
	swift_publish(cc);
}

static void swift_lost(struct roan_cc *cc, enum roan_cc_loss why)
{
	struct roan_swift *s = &cc->swift;

	s->timeouts = why == ROAN_CC_LOST_TIMEOUT ? s->timeouts + 1 : 0;
	if (!s->cwnd)
		return;
	if (s->timeouts >= MAX_TIMEOUTS)
		s->cwnd = 1;		/* swift_publish() raises it to the minimum */
	else
		swift_shrink(cc, 1024 - CC_PARAM(cc, swift_max_mdf), 1024);
	swift_publish(cc);
}

static void swift_start(struct roan_cc *cc)
{
	cc->event_mask = ROAN_CC_EVENT_ACKED | ROAN_CC_EVENT_LOST;
	swift_publish(cc);
}

static void swift_state(const struct roan_cc *cc, struct roan_cc_state *state)
{
	state->rtt_ns = cc->swift.rtt_ns;
}

const struct roan_cc_ops roan_cc_swift = {
	.flags = ROAN_CC_NEEDS_ACKS | ROAN_CC_FROM_START,
	.start = swift_start,
	.limits = swift_publish,
	.acked = swift_acked,
	.lost = swift_lost,
	.state = swift_state,
};
