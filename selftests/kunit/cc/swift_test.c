// SPDX-License-Identifier: GPL-2.0
/* Swift: growth below the target delay, one cut per round trip above it, losses, windows below one packet. */
#include "cc_fixture.h"

#define PACKET	1000

/* Target 100 us, without flow scaling and least rate. 10 Gb/s are 250,000 bytes in 200 us. */
static void start(struct rig *r)
{
	roan_cc_params_default(&r->params, ROAN_CC_SWIFT);
	r->params.swift_target_us = 100;
	r->params.swift_fs_range_us = 0;
	r->params.swift_min_rate = 0;
	roan_cc_start(&r->cc, ROAN_CC_SWIFT, &r->params, 10 * GBPS, 0, PACKET, T0);
}

static bool ack(struct rig *r, u32 bytes, u32 in_flight, u64 rtt_us, u64 now)
{
	struct roan_cc_sample sample = { .bytes = bytes, .in_flight = in_flight, .rtt_ns = rtt_us * US };

	return roan_cc_acked(&r->cc, &sample, now);
}

static void set_window(struct rig *r, u64 bytes)
{
	ack(r, 0, 0, 50, T0);
	r->cc.swift.cwnd = bytes << 8;
	r->cc.cwnd = bytes;
}

static void start__unlimited_until_measured(struct kunit *test)
{
	struct roan_cc_state state;
	struct rig r;

	start(&r);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 0);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	KUNIT_EXPECT_FALSE(test, ack(&r, 100000, 0, 0, T0));
	KUNIT_EXPECT_FALSE(test, roan_cc_lost(&r.cc, ROAN_CC_LOST_NAK, T0));
	KUNIT_EXPECT_FALSE(test, roan_cc_cnp(&r.cc, T0));
	KUNIT_EXPECT_FALSE(test, roan_cc_sent(&r.cc, 1, T0));
	KUNIT_EXPECT_FALSE(test, roan_cc_elapsed(&r.cc, T0));
	KUNIT_EXPECT_TRUE(test, ack(&r, 1000, 0, 50, T0));
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 250000);
	roan_cc_state(&r.cc, T0, &state);
	KUNIT_EXPECT_EQ(test, state.rtt_ns, 50 * US);
	KUNIT_EXPECT_EQ(test, state.cwnd, 250000);
}

/* One window of ACKs adds one packet, in one ACK or in ten. */
static void acked__grows_by_a_packet_a_round_trip(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 20000);
	ack(&r, 20000, 0, 50, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 21000);
	set_window(&r, 20000);
	for (int i = 0; i < 10; i++)
		ack(&r, 2000, 18000, 99, T0 + 2);
	KUNIT_EXPECT_GE(test, r.cc.cwnd, 20970);
	KUNIT_EXPECT_LE(test, r.cc.cwnd, 21000);
	r.params.swift_ai = 2048;
	set_window(&r, 20000);
	ack(&r, 20000, 0, 50, T0 + 3);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 22000);
	set_window(&r, 20000);
	ack(&r, 400000, 0, 50, T0 + 3);		/* an ACK counts for one window at most */
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 22000);
}

/* Bytes of ACKs without an RTT sample count with the next ACK that has one. */
static void acked__bytes_wait_for_a_measurement(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 20000);
	KUNIT_EXPECT_FALSE(test, ack(&r, 15000, 5000, 0, T0 + 1));
	ack(&r, 5000, 0, 50, T0 + 2);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 21000);
}

static void acked__unused_window_does_not_grow(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 20000);
	KUNIT_EXPECT_FALSE(test, ack(&r, 5000, 4999, 50, T0 + 1));
	KUNIT_EXPECT_TRUE(test, ack(&r, 5000, 5000, 50, T0 + 1));
}

/* Factor 1 - beta * (delay - target) / delay, at least 1 - max_mdf. No cut at the target itself. */
static void acked__cuts_by_the_excess(struct kunit *test)
{
	static const struct { u64 rtt; u64 window; } t[] = {
		{ 100, 100000 }, { 125, 84082 }, { 200, 60058 }, { 400, 50000 }, { 100000, 50000 },
	};
	struct rig r;

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		start(&r);
		set_window(&r, 100000);
		ack(&r, 1000, 99000, t[i].rtt, T0 + 1);
		KUNIT_EXPECT_EQ_MSG(test, r.cc.cwnd, t[i].window, "%llu us", (unsigned long long)t[i].rtt);
		KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
	}
}

static void acked__cuts_once_a_round_trip(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 100000);
	r.cc.swift.rtt_ns = 400 * US;
	ack(&r, 1000, 99000, 400, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 50000);
	KUNIT_EXPECT_FALSE(test, ack(&r, 1000, 99000, 400, T0 + 400 * US));
	KUNIT_EXPECT_FALSE(test, roan_cc_lost(&r.cc, ROAN_CC_LOST_NAK, T0 + 400 * US));
	KUNIT_EXPECT_TRUE(test, ack(&r, 1000, 99000, 400, T0 + 400 * US + 1));
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 25000);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 2);
}

static void rtt_sample__smooths_and_remembers_the_shortest(struct kunit *test)
{
	struct rig r;

	start(&r);
	ack(&r, 0, 0, 80, T0);
	ack(&r, 0, 0, 160, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.swift.rtt_ns, 90 * US);
	KUNIT_EXPECT_EQ(test, r.cc.min_rtt_ns, 80 * US);
	ack(&r, 0, 0, 40, T0 + 2);
	KUNIT_EXPECT_EQ(test, r.cc.min_rtt_ns, 40 * US);
	ack(&r, 0, 0, 70, T0 + 2 + 10 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.min_rtt_ns, 40 * US);
	ack(&r, 0, 0, 70, T0 + 3 + 10 * NSEC_PER_SEC);	/* not seen again for ten seconds */
	KUNIT_EXPECT_EQ(test, r.cc.min_rtt_ns, 70 * US);
}

/* Without a configured target: twice the minimum RTT plus the hosts' slack, here 2 * 40 + 50. */
static void target__from_the_shortest_round_trip(struct kunit *test)
{
	struct rig r;

	start(&r);
	r.params.swift_target_us = 0;
	set_window(&r, 100000);
	ack(&r, 0, 0, 40, T0);
	r.cc.swift.cwnd = 100000 << 8;
	ack(&r, 100000, 0, 129, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 101000);
	ack(&r, 1000, 0, 131, T0 + 2);
	KUNIT_EXPECT_LT(test, r.cc.cwnd, 101000);
}

/* swift_fs_range for windows of 0.1 packets and less, none for 100 and more, between them 1/sqrt. */
static void target__scales_with_the_window(struct kunit *test)
{
	static const struct { u64 window_q8; u64 extra; } t[] = {
		{ 100 * PACKET << 8, 0 }, { 10 * PACKET << 8, 3528 }, { PACKET << 8, 14678 }, { PACKET * 26, 50000 },
		{ PACKET * 2, 50000 },
	};
	struct rig r;

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		start(&r);
		r.params.swift_fs_range_us = 50;
		for (int over = 0; over < 2; over++) {
			struct roan_cc_sample sample = {
				.in_flight = 1000000, .rtt_ns = 100000 + t[i].extra + (over ? 500 : -500),
			};

			set_window(&r, PACKET);
			r.cc.swift.cwnd = t[i].window_q8;
			r.cc.swift.cut_at = 0;
			r.cc.cuts = 0;
			roan_cc_acked(&r.cc, &sample, T0 + 1);
			KUNIT_EXPECT_EQ_MSG(test, r.cc.cuts, over, "row %u", i);
		}
	}
}

/* The scaling follows 1/sqrt over its whole range. */
static void target__scaling_in_the_middle(struct kunit *test)
{
	static const struct { u64 window_q8; u64 extra; } t[] = {	/* 50 us * (1/sqrt(w) - 0.1) / (3.1686 - 0.1) */
		{ PACKET << 6, 30961 }, { 4 * PACKET << 8, 6518 }, { 50 * PACKET << 8, 675 },
	};
	struct rig r;

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		for (int over = 0; over < 2; over++) {
			struct roan_cc_sample sample = {
				.in_flight = 1000000, .rtt_ns = 100000 + t[i].extra + (over ? 25 : -25),
			};

			start(&r);
			r.params.swift_fs_range_us = 50;
			set_window(&r, PACKET);
			r.cc.swift.cwnd = t[i].window_q8;
			roan_cc_acked(&r.cc, &sample, T0 + 1);
			KUNIT_EXPECT_EQ_MSG(test, r.cc.cuts, over, "row %u", i);
		}
	}
}

static void target__misordered_scaling_is_none(struct kunit *test)
{
	struct rig r;

	start(&r);
	r.params.swift_fs_range_us = 50;
	r.params.swift_fs_min = 1 << 20;
	r.params.swift_fs_max = 2;
	set_window(&r, PACKET);
	ack(&r, 1000, 0, 101, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);

	start(&r);
	r.params.swift_fs_range_us = 50;
	r.params.swift_fs_min = 1024;	/* both ends at the same window */
	r.params.swift_fs_max = 1024;
	set_window(&r, PACKET);
	r.cc.swift.cwnd = PACKET << 6;
	ack(&r, 1000, 0, 101, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
}

/* Half a packet per RTT of 50 us is one packet every 100 us. */
static void window__below_a_packet_is_paced(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 2 * PACKET);
	r.cc.swift.cwnd = PACKET * 256;
	roan_cc_lost(&r.cc, ROAN_CC_LOST_NAK, T0 + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, PACKET);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 80000000);
	roan_cc_limits(&r.cc, 10 * GBPS, 50000000, T0 + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 50000000);
	roan_cc_limits(&r.cc, 10 * GBPS, 0, T0 + NSEC_PER_SEC);
	ack(&r, PACKET, 0, 50, T0 + 2 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 1500);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
}

static void lost__nak_cuts_by_max_mdf(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 100000);
	r.params.swift_max_mdf = 256;
	roan_cc_lost(&r.cc, ROAN_CC_LOST_NAK, T0 + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 75000);
}

/* Five consecutive timeouts set the minimum window, 1/1000 packet. An ACK ends the sequence. */
static void lost__timeouts_in_a_row(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 100000);
	for (u32 i = 1; i <= 4; i++)
		roan_cc_lost(&r.cc, ROAN_CC_LOST_TIMEOUT, T0 + i * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 6250);
	ack(&r, 0, 0, 0, T0 + 5 * NSEC_PER_SEC);
	for (u32 i = 6; i <= 9; i++)
		roan_cc_lost(&r.cc, ROAN_CC_LOST_TIMEOUT, T0 + i * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.swift.cwnd, 100000);		/* 390.625 bytes */
	roan_cc_lost(&r.cc, ROAN_CC_LOST_TIMEOUT, T0 + 10 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.swift.cwnd, 256);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, PACKET);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 160000);	/* a byte every 50 us */
}

/* Round trips that stay above the target, as those of a slow host do: the rate stays at swift_min_rate or more. */
static void window__has_a_least_rate(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 100000);
	r.params.swift_min_rate = 10;
	for (u32 i = 1; i <= 40; i++)
		ack(&r, PACKET, 0, 400, T0 + i * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, PACKET);
	KUNIT_EXPECT_GE(test, r.cc.rate, 9900000);
	KUNIT_EXPECT_LE(test, r.cc.rate, 10000000);
	for (u32 i = 41; i <= 80; i++)
		ack(&r, PACKET, 0, 5600, T0 + i * NSEC_PER_SEC);	/* 7,000 bytes in a round trip */
	KUNIT_EXPECT_GE(test, r.cc.cwnd, 6900);
	KUNIT_EXPECT_LE(test, r.cc.cwnd, 7000);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	r.params.swift_max_window = 1;		/* limits it all the same */
	ack(&r, PACKET, 0, 5600, T0 + 81 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 2 * PACKET);
}

/* A cap is valid from the start, before any measurement, and when it changes. */
static void cap__without_a_measurement(struct kunit *test)
{
	struct rig r;

	start(&r);
	roan_cc_start(&r.cc, ROAN_CC_SWIFT, &r.params, 10 * GBPS, GBPS, PACKET, T0);
	KUNIT_EXPECT_EQ(test, r.cc.rate, GBPS);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 10 * GBPS, 2 * GBPS, T0));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 2 * GBPS);
}

/* RTT samples are clamped to ten seconds. */
static void rtt_sample__has_an_end(struct kunit *test)
{
	struct rig r;

	start(&r);
	ack(&r, 0, 0, 60000000, T0);
	KUNIT_EXPECT_EQ(test, r.cc.swift.rtt_ns, 10 * NSEC_PER_SEC);
}

/* Measuring the minimum RTT again keeps it for another ten seconds. */
static void rtt_sample__same_again_confirms(struct kunit *test)
{
	struct rig r;

	start(&r);
	ack(&r, 0, 0, 40, T0);
	ack(&r, 0, 0, 40, T0 + 6 * NSEC_PER_SEC);
	ack(&r, 0, 0, 70, T0 + 12 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.min_rtt_ns, 40 * US);
}

/* A window of one packet or more is not paced. A window is at most 1 GB, for any link and target. */
static void window__at_its_edges(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, PACKET);
	roan_cc_limits(&r.cc, 10 * GBPS, 0, T0);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	start(&r);
	r.params.swift_target_us = 100000;
	roan_cc_start(&r.cc, ROAN_CC_SWIFT, &r.params, 1000 * GBPS, 0, PACKET, T0);
	ack(&r, 0, 0, 50, T0);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 1 << 30);
}

/* A NAK between timeouts ends their sequence. */
static void lost__nak_ends_a_row(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 100000);
	roan_cc_lost(&r.cc, ROAN_CC_LOST_NAK, T0 + NSEC_PER_SEC);
	for (u32 i = 2; i <= 5; i++)
		roan_cc_lost(&r.cc, ROAN_CC_LOST_TIMEOUT, T0 + i * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 3125);
}

static void window__stays_below_the_largest(struct kunit *test)
{
	struct rig r;

	start(&r);
	set_window(&r, 249500);
	ack(&r, 249500, 0, 50, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 250000);
	r.params.swift_max_window = 100;
	ack(&r, 1000, 1000000, 50, T0 + 2);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 102400);
	r.params.swift_max_window = 1;
	ack(&r, 1000, 1000000, 50, T0 + 3);
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 2 * PACKET);
}

static struct kunit_case swift_cases[] = {
	KUNIT_CASE(start__unlimited_until_measured),
	KUNIT_CASE(acked__grows_by_a_packet_a_round_trip),
	KUNIT_CASE(acked__bytes_wait_for_a_measurement),
	KUNIT_CASE(acked__unused_window_does_not_grow),
	KUNIT_CASE(acked__cuts_by_the_excess),
	KUNIT_CASE(acked__cuts_once_a_round_trip),
	KUNIT_CASE(rtt_sample__smooths_and_remembers_the_shortest),
	KUNIT_CASE(target__from_the_shortest_round_trip),
	KUNIT_CASE(target__scales_with_the_window),
	KUNIT_CASE(target__scaling_in_the_middle),
	KUNIT_CASE(target__misordered_scaling_is_none),
	KUNIT_CASE(window__below_a_packet_is_paced),
	KUNIT_CASE(window__has_a_least_rate),
	KUNIT_CASE(lost__nak_cuts_by_max_mdf),
	KUNIT_CASE(lost__timeouts_in_a_row),
	KUNIT_CASE(cap__without_a_measurement),
	KUNIT_CASE(rtt_sample__has_an_end),
	KUNIT_CASE(rtt_sample__same_again_confirms),
	KUNIT_CASE(window__at_its_edges),
	KUNIT_CASE(lost__nak_ends_a_row),
	KUNIT_CASE(window__stays_below_the_largest),
	{}
};

static struct kunit_suite swift_suite = {
	.name = "roan_swift",
	.test_cases = swift_cases,
};
kunit_test_suite(swift_suite);
