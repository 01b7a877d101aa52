// SPDX-License-Identifier: GPL-2.0
/* The bound on bytes in flight: off, in bytes, in percent of the BDP, and combined with an algorithm's own window. */
#include "cc_fixture.h"

#define PACKET	1000

static void start(struct rig *r, enum roan_cc_algo algo, u32 max_kb, u32 bdp)
{
	roan_cc_params_default(&r->params, algo);
	r->params.window_max = max_kb;
	r->params.window_bdp = bdp;
	roan_cc_start(&r->cc, algo, &r->params, 10 * GBPS, 0, PACKET, T0);
}

static bool ack(struct rig *r, u64 rtt_us, u64 now)
{
	struct roan_cc_sample sample = { .bytes = 1000, .in_flight = 100000, .rtt_ns = rtt_us * US };

	return roan_cc_acked(&r->cc, &sample, now);
}

static void off__costs_nothing(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN, 0, 0);
	KUNIT_EXPECT_TRUE(test, roan_cc_idle(&r.cc));
	KUNIT_EXPECT_FALSE(test, roan_cc_uses_acks(&r.cc));
	KUNIT_EXPECT_FALSE(test, ack(&r, 50, T0));
	KUNIT_EXPECT_EQ(test, r.cc.min_rtt_ns, 0);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&r.cc, 1 << 30), U64_MAX);
}

static void max__is_in_kilobytes_and_at_once(struct kunit *test)
{
	struct roan_cc_state state;
	struct rig r;

	start(&r, ROAN_CC_NONE, 64, 0);
	KUNIT_EXPECT_FALSE(test, roan_cc_idle(&r.cc));
	KUNIT_EXPECT_TRUE(test, roan_cc_uses_acks(&r.cc));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&r.cc, 0), 65536);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&r.cc, 65535), 1);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&r.cc, 65536), 0);
	KUNIT_EXPECT_FALSE(test, ack(&r, 50, T0));	/* the round trip does not matter */
	roan_cc_state(&r.cc, T0, &state);
	KUNIT_EXPECT_EQ(test, state.cwnd, 65536);
	r.params.window_max = 32;			/* valid from the next ACK on */
	KUNIT_EXPECT_TRUE(test, ack(&r, 50, T0 + 1));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 32768);
	r.params.window_max = 0;
	KUNIT_EXPECT_TRUE(test, ack(&r, 0, T0 + 2));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&r.cc, 1 << 30), U64_MAX);
}

/* 10 kb/s * 40 us are less than a byte, which is a bound: two packets. */
static void bdp__of_less_than_a_byte(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_NONE, 0, 100);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 10 * GBPS, 10000, T0));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 0);		/* not known yet */
	KUNIT_EXPECT_TRUE(test, ack(&r, 40, T0));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 2 * PACKET);
}

/* 10 Gb/s * 40 us are 50,000 bytes. */
static void bdp__follows_the_shortest_round_trip(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN, 0, 100);
	KUNIT_EXPECT_FALSE(test, roan_cc_idle(&r.cc));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 0);	/* not known yet */
	KUNIT_EXPECT_FALSE(test, ack(&r, 0, T0));
	KUNIT_EXPECT_TRUE(test, ack(&r, 80, T0));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 100000);
	KUNIT_EXPECT_TRUE(test, ack(&r, 40, T0 + 1));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 50000);
	KUNIT_EXPECT_FALSE(test, ack(&r, 90, T0 + 2));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 50000);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 20 * GBPS, 0, T0 + 3));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 100000);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 20 * GBPS, 5 * GBPS, T0 + 3));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 25000);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 5 * GBPS, 20 * GBPS, T0 + 3));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 25000);
	r.params.window_bdp = 150;
	KUNIT_EXPECT_TRUE(test, ack(&r, 0, T0 + 4));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 37500);
}

/* A longer minimum RTT is accepted after ten seconds. An event with an earlier time does not change the window. */
static void bdp__forgets_after_ten_seconds(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_NONE, 0, 100);
	ack(&r, 40, T0);
	KUNIT_EXPECT_FALSE(test, ack(&r, 80, T0 + 10 * NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 50000);
	KUNIT_EXPECT_TRUE(test, ack(&r, 80, T0 + 10 * NSEC_PER_SEC + 1));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 100000);
	ack(&r, 80, T0);
	KUNIT_EXPECT_EQ(test, r.cc.now, T0 + 10 * NSEC_PER_SEC + 1);
}

static void both__the_lower_counts(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_NONE, 64, 100);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 65536);
	ack(&r, 40, T0);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 50000);
	r.params.window_max = 32;
	ack(&r, 0, T0);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 32768);
}

/* With one packet in flight the sender would wait for each ACK. */
static void bound__is_two_packets_at_least(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_NONE, 1, 0);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 2000);
	start(&r, ROAN_CC_NONE, 0, 1);
	ack(&r, 1, T0);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 2000);
	start(&r, ROAN_CC_NONE, 2, 0);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 2048);
}

static void algorithm__has_its_own_window_too(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_SWIFT, 64, 0);
	r.params.swift_target_us = 100;		/* 10 Gb/s carry 250,000 bytes in twice that */
	KUNIT_EXPECT_TRUE(test, ack(&r, 50, T0));
	KUNIT_EXPECT_EQ(test, r.cc.cwnd, 250000);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 65536);
	r.cc.cwnd = 20000;
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 20000);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&r.cc, 19000), 1000);
}

/* A bound set later begins with a change of the link or the cap, and ends when it is removed. */
static void limits__a_bound_that_they_begin_ends(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN, 0, 0);
	r.params.window_max = 64;
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 20 * GBPS, 0, T0));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 65536);
	KUNIT_EXPECT_FALSE(test, roan_cc_idle(&r.cc));
	r.params.window_max = 0;
	KUNIT_EXPECT_TRUE(test, ack(&r, 0, T0 + 1));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 0);
	r.params.window_bdp = 100;
	ack(&r, 40, T0 + 2);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 100000);
}

/* Only the bound subscribes to ACKs here: the algorithm does not, so its handler is not called. */
static void acked__only_with_a_subscription(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN_MLX, 0, 100);
	KUNIT_EXPECT_TRUE(test, ack(&r, 20, T0));
	KUNIT_EXPECT_EQ(test, r.cc.event_mask, 0);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	KUNIT_EXPECT_TRUE(test, roan_cc_cnp(&r.cc, T0 + 1));
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 25000);
}

/* RTT samples are clamped to ten seconds. */
static void acked__round_trips_have_an_end(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_NONE, 0, 10000);
	ack(&r, 100000000, T0);
	KUNIT_EXPECT_EQ(test, r.cc.min_rtt_ns, 10 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd(&r.cc), 1250000000000ULL);
}

static struct kunit_case window_cases[] = {
	KUNIT_CASE(off__costs_nothing),
	KUNIT_CASE(max__is_in_kilobytes_and_at_once),
	KUNIT_CASE(bdp__of_less_than_a_byte),
	KUNIT_CASE(bdp__follows_the_shortest_round_trip),
	KUNIT_CASE(bdp__forgets_after_ten_seconds),
	KUNIT_CASE(both__the_lower_counts),
	KUNIT_CASE(bound__is_two_packets_at_least),
	KUNIT_CASE(algorithm__has_its_own_window_too),
	KUNIT_CASE(limits__a_bound_that_they_begin_ends),
	KUNIT_CASE(acked__only_with_a_subscription),
	KUNIT_CASE(acked__round_trips_have_an_end),
	{}
};

static struct kunit_suite window_suite = {
	.name = "roan_cwnd_bound",
	.test_cases = window_cases,
};
kunit_test_suite(window_suite);
