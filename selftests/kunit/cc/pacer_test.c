// SPDX-License-Identifier: GPL-2.0
/* The pacer: its two inequalities (pacer.h), exactness, and no cost without a rate. */
#include <kunit/test.h>
#include "core/cc/cc.h"
#include "core/cc/pacer.h"

#define GBPS 1000000000ULL
#define T0 1000000ULL

static u32 draw(u64 *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 33;
}

static void quantum__is_the_burst_of_the_rate_within_limits(struct kunit *test)
{
	struct roan_cc_params params;

	roan_cc_params_default(&params, ROAN_CC_DCQCN_MLX);
	KUNIT_EXPECT_EQ(test, params.pacer_burst_us, 20);
	KUNIT_EXPECT_EQ(test, roan_pacer_quantum(&params, 4 * GBPS, 1082), 10000);
	KUNIT_EXPECT_EQ(test, roan_pacer_quantum(&params, 40 * GBPS, 1082), 16384);
	KUNIT_EXPECT_EQ(test, roan_pacer_quantum(&params, GBPS / 1000, 1082), 1082);
	params.pacer_burst_max = 0;
	KUNIT_EXPECT_EQ(test, roan_pacer_quantum(&params, 40 * GBPS, 4154), 4154);
	params.pacer_burst_max = 65535;
	params.pacer_burst_us = 1000;
	KUNIT_EXPECT_EQ(test, roan_pacer_quantum(&params, ROAN_CC_MAX_MBPS * 1000000ULL, 1082), 65535);
}

static void unlimited__everything_goes(struct kunit *test)
{
	struct roan_pacer p = {};

	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0), U32_MAX);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), 0);
	roan_pacer_sent(&p, 1 << 20);
	KUNIT_EXPECT_EQ(test, p.credit, 0);
}

/* The first train leaves at once; the second when the time of the first has passed, not a nanosecond earlier. */
static void allow__after_what_was_sent_is_paid(struct kunit *test)
{
	struct roan_pacer p = {};

	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);	/* one byte per nanosecond */
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0), 10000);
	roan_pacer_sent(&p, 9000);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0), 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 9000);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0 + 8999), 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 9000);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0 + 9000), 10000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 9000);
}

/* What did not leave costs nothing, and is no credit beyond the quantum. */
static void unsent__costs_nothing(struct kunit *test)
{
	struct roan_pacer p = {};

	roan_pacer_unsent(&p, 9000);
	KUNIT_EXPECT_EQ(test, p.credit, 0);
	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	roan_pacer_sent(&p, 9000);
	roan_pacer_unsent(&p, 5000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 4000);
	roan_pacer_unsent(&p, 4000);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0), 10000);
	KUNIT_EXPECT_EQ(test, p.credit, 0);
	roan_pacer_unsent(&p, 10001);
	KUNIT_EXPECT_EQ(test, p.credit, 10000 * 8LL * NSEC_PER_SEC);
}

/* roan_pacer_when() rounds up: at 3 bit/s a byte takes 2.67 s. */
static void when__rounds_up(struct kunit *test)
{
	struct roan_pacer p = {};

	roan_pacer_set_rate(&p, 3, 100, T0);
	roan_pacer_sent(&p, 1);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 2666666667ULL);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0 + 2666666666ULL), 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0 + 2666666667ULL), 100);
}

/* An idle time of any length earns a credit of one quantum. */
static void idle__earns_one_quantum(struct kunit *test)
{
	static const u64 silences[] = { 10000, 10001, NSEC_PER_SEC, 1ULL << 62 };

	for (u32 i = 0; i < ARRAY_SIZE(silences); i++) {
		struct roan_pacer p = {};
		u64 now = T0 + silences[i];

		roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
		KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, now), 10000);
		roan_pacer_sent(&p, 10000);
		KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, now), 10000);
		roan_pacer_sent(&p, 10000);
		KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, now), 0);
		KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), now + 10000);
	}
}

static void late__is_compensated(struct kunit *test)
{
	struct roan_pacer p = {};
	u64 now = T0;

	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	roan_pacer_sent(&p, 10000);
	now = roan_pacer_when(&p) + 6000;
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, now), 10000);
	roan_pacer_sent(&p, 10000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 20000);	/* as without the delay */
}

static void clock__that_stands_or_steps_back_earns_nothing(struct kunit *test)
{
	struct roan_pacer p = {};

	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	roan_pacer_sent(&p, 5000);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0 - 5), 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 5000);
}

/* A remaining wait scales with a new rate: a tenth of the rate, ten times the wait. */
static void set_rate__rescales_the_wait(struct kunit *test)
{
	struct roan_pacer p = {};

	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	roan_pacer_sent(&p, 10000);
	roan_pacer_set_rate(&p, 8 * GBPS / 10, 1000, T0 + 4000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 4000 + 60000);
	roan_pacer_set_rate(&p, 80 * GBPS, 10000, T0 + 4000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + 4000 + 600);
}

static void set_rate__smaller_quantum_caps_credit(struct kunit *test)
{
	struct roan_pacer p = {};

	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	roan_pacer_set_rate(&p, 8 * GBPS, 1000, T0 + NSEC_PER_SEC);
	roan_pacer_sent(&p, 1000);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0 + NSEC_PER_SEC), 1000);
	roan_pacer_sent(&p, 1000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + NSEC_PER_SEC + 1000);
}

/* After pacing ends and starts again there is neither debt nor credit. */
static void set_rate__zero_ends_and_starts_afresh(struct kunit *test)
{
	struct roan_pacer p = {};

	roan_pacer_set_rate(&p, GBPS, 10000, T0);
	roan_pacer_sent(&p, 10000);
	roan_pacer_set_rate(&p, 0, 0, T0);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0), U32_MAX);
	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0 + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, p.credit, 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_allow(&p, T0 + NSEC_PER_SEC), 10000);
	roan_pacer_sent(&p, 10000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when(&p), T0 + NSEC_PER_SEC + 10000);
}

/* Early trains get the departure time that they would have without being early; at most four trains ahead. */
static void early__is_due_when_it_would_have_left(struct kunit *test)
{
	struct roan_pacer p = {};
	u64 due;

	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	for (u64 i = 0; i <= 4; i++) {
		KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0, &due), 10000);
		KUNIT_EXPECT_EQ(test, due, T0 + i * 10000);
		roan_pacer_sent(&p, 10000);
	}
	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0, &due), 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0 + 9999, &due), 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0 + 10000, &due), 10000);
	KUNIT_EXPECT_EQ(test, due, T0 + 50000);
}

static void early__that_is_late_is_due_now(struct kunit *test)
{
	struct roan_pacer p = {};
	u64 due;

	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0 + 3000, &due), 10000);
	KUNIT_EXPECT_EQ(test, due, T0 + 3000);
}

/* A train may be handed over at most 200 us early, exact to the nanosecond. */
static void early__by_200_us_at_most(struct kunit *test)
{
	struct roan_pacer p = {};
	u64 due;

	roan_pacer_set_rate(&p, 8 * GBPS, 300000, T0);
	roan_pacer_sent(&p, 300000);
	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0 + 99999, &due), 0);
	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0 + 100000, &due), 300000);
	KUNIT_EXPECT_EQ(test, due, T0 + 300000);
}

/*
 * roan_pacer_when_early() is the time at which half of the lead is used up, so that several trains can be sent per
 * call.
 */
static void when_early__leaves_half_the_lead(struct kunit *test)
{
	struct roan_pacer p = {};
	u64 due;

	KUNIT_EXPECT_EQ(test, roan_pacer_when_early(&p), 0);
	roan_pacer_set_rate(&p, 8 * GBPS, 10000, T0);
	roan_pacer_sent(&p, 60000);
	KUNIT_EXPECT_EQ(test, roan_pacer_when_early(&p), T0 + 40000);
	for (u32 i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0 + 40000, &due), 10000);
		KUNIT_EXPECT_EQ(test, due, T0 + 60000 + i * 10000);
		roan_pacer_sent(&p, 10000);
	}
	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0 + 40000, &due), 0);
}

static void early__unlimited_is_due_now(struct kunit *test)
{
	struct roan_pacer p = {};
	u64 due;

	KUNIT_EXPECT_EQ(test, roan_pacer_early(&p, T0, &due), U32_MAX);
	KUNIT_EXPECT_EQ(test, due, T0);
}

/*
 * Conservation: a backlogged sender that is called up to a quantum's time late has sent between rate*t/8 - quantum and
 * rate*t/8 + 2*quantum bytes at every time t. Odd rates, and trains shorter than allowed.
 */
static void conservation__between_the_two_bounds(struct kunit *test)
{
	u64 seed = 1;

	for (int round = 0; round < 50; round++) {
		u64 rate = 1000000 + (u64)draw(&seed) * (1 + draw(&seed) % 100);
		u32 quantum = 1000 + draw(&seed) % 64000;
		u64 late = (u64)quantum * 8 * NSEC_PER_SEC / rate;
		struct roan_pacer p = {};
		u64 now = T0, sent = 0;

		roan_pacer_set_rate(&p, rate, quantum, now);
		for (int i = 0; i < 300; i++) {
			u64 due;

			while (roan_pacer_allow(&p, now)) {
				u32 bytes = 1 + draw(&seed) % quantum;

				roan_pacer_sent(&p, bytes);
				sent += bytes;
			}
			due = mul_u64_u64_div_u64(rate, now - T0, 8 * NSEC_PER_SEC);
			KUNIT_ASSERT_LE(test, sent, due + 2 * quantum);
			KUNIT_ASSERT_GE(test, sent + quantum, due);
			now = roan_pacer_when(&p) + draw(&seed) % (late + 1);
		}
	}
}

/* Called exactly at roan_pacer_when(), small packets at 100 Gb/s take exactly the nominal time. */
static void conservation__no_drift(struct kunit *test)
{
	struct roan_pacer p = {};
	u64 now = T0;

	roan_pacer_set_rate(&p, 100 * GBPS, 83, now);
	for (int i = 0; i < 1000000; i++) {
		KUNIT_ASSERT_EQ(test, roan_pacer_allow(&p, now), 83);
		roan_pacer_sent(&p, 83);
		now = roan_pacer_when(&p);
	}
	KUNIT_EXPECT_EQ(test, now - T0, 6640000);	/* 83 * 8 / 100 ns each */
}

static struct kunit_case pacer_cases[] = {
	KUNIT_CASE(quantum__is_the_burst_of_the_rate_within_limits),
	KUNIT_CASE(unlimited__everything_goes),
	KUNIT_CASE(allow__after_what_was_sent_is_paid),
	KUNIT_CASE(unsent__costs_nothing),
	KUNIT_CASE(when__rounds_up),
	KUNIT_CASE(idle__earns_one_quantum),
	KUNIT_CASE(late__is_compensated),
	KUNIT_CASE(clock__that_stands_or_steps_back_earns_nothing),
	KUNIT_CASE(set_rate__rescales_the_wait),
	KUNIT_CASE(set_rate__smaller_quantum_caps_credit),
	KUNIT_CASE(set_rate__zero_ends_and_starts_afresh),
	KUNIT_CASE(early__is_due_when_it_would_have_left),
	KUNIT_CASE(early__that_is_late_is_due_now),
	KUNIT_CASE(early__by_200_us_at_most),
	KUNIT_CASE(when_early__leaves_half_the_lead),
	KUNIT_CASE(early__unlimited_is_due_now),
	KUNIT_CASE(conservation__between_the_two_bounds),
	KUNIT_CASE(conservation__no_drift),
	{}
};

static struct kunit_suite pacer_suite = {
	.name = "roan_pacer",
	.test_cases = pacer_cases,
};
kunit_test_suite(pacer_suite);
