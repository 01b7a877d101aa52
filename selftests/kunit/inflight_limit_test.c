// SPDX-License-Identifier: GPL-2.0
/* The limit of KiB in flight in this host: fast draining raises it, slow draining lowers it, an unused limit stays. */
#include <kunit/test.h>
#include "core/flow/inflight_limit.h"

#define T0	NSEC_PER_SEC
#define MIN_KB	8			/* KiB */
#define MAX_KB	512
#define QUICK	(2 * NSEC_PER_MSEC)
#define SLOW	(20 * NSEC_PER_MSEC)

/* A queue that hands KiB to the stack. */
struct link {
	struct roan_inflight_limit d;
	u64 now;
	u32 in_flight;
};

static void begin(struct link *l)
{
	*l = (struct link){ .now = T0 };
	roan_inflight_limit_init(&l->d);
}

static void give(struct link *l, u32 size)
{
	roan_inflight_limit_add(&l->d, size);
	l->in_flight += size;
}

/* Sends up to the limit, 4 KiB at a time. The backlog drains below the wake-up mark after @ns. */
static void round_of(struct link *l, u64 ns)
{
	roan_inflight_limit_update(&l->d, l->in_flight, l->now);
	while (roan_inflight_limit_allows(&l->d, l->in_flight))
		give(l, 4);
	l->in_flight = roan_inflight_limit_hit(&l->d) - 1;
	l->now += ns;
}

static void limit__begins_small(struct kunit *test)
{
	struct link l;

	begin(&l);
	KUNIT_EXPECT_TRUE(test, roan_inflight_limit_allows(&l.d, 0));
	KUNIT_EXPECT_TRUE(test, roan_inflight_limit_allows(&l.d, MIN_KB - 1));
	KUNIT_EXPECT_FALSE(test, roan_inflight_limit_allows(&l.d, MIN_KB));
	KUNIT_EXPECT_EQ(test, roan_inflight_limit_hit(&l.d), MIN_KB / 2);
}

static void fast__doubles_up_to_the_maximum(struct kunit *test)
{
	u32 expect = MIN_KB;
	struct link l;

	begin(&l);
	round_of(&l, QUICK - 1);
	for (int i = 0; i < 10; i++) {
		round_of(&l, QUICK - 1);
		expect = min_t(u32, 2 * expect, MAX_KB);
		KUNIT_EXPECT_EQ(test, l.d.max_kb, expect);
	}
}

static void between__stays(struct kunit *test)
{
	struct link l;

	begin(&l);
	l.d.max_kb = 64;
	round_of(&l, QUICK);
	round_of(&l, QUICK);
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 64);
	round_of(&l, SLOW - 1);
	round_of(&l, QUICK);
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 64);
}

static void slow__halves_down_to_the_minimum(struct kunit *test)
{
	u32 expect = MAX_KB;
	struct link l;

	begin(&l);
	l.d.max_kb = MAX_KB;
	round_of(&l, SLOW);
	for (int i = 0; i < 10; i++) {
		round_of(&l, SLOW);
		expect = max_t(u32, expect / 2, MIN_KB);
		KUNIT_EXPECT_EQ(test, l.d.max_kb, expect);
	}
}

/* The limit is not reached, but the backlog does not drain for SLOW. */
static void standing__halves(struct kunit *test)
{
	struct link l;

	begin(&l);
	l.d.max_kb = 256;
	roan_inflight_limit_update(&l.d, 0, l.now);
	give(&l, 100);
	roan_inflight_limit_update(&l.d, l.in_flight, ++l.now);	/* the KiB sent before have drained */
	roan_inflight_limit_update(&l.d, l.in_flight, l.now += SLOW - 1);
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 256);
	roan_inflight_limit_update(&l.d, l.in_flight - 1, ++l.now);
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 128);
}

/* The limit is never reached: neither fast draining nor a long pause changes it. */
static void unused__stays(struct kunit *test)
{
	struct link l;

	begin(&l);
	l.d.max_kb = 64;
	for (int i = 0; i < 10; i++) {
		roan_inflight_limit_update(&l.d, 0, l.now += i & 1 ? 1 : NSEC_PER_SEC);
		give(&l, 63);
	}
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 64);
}

/* Reaching the limit once raises it once. */
static void hit__counts_once(struct kunit *test)
{
	struct link l;

	begin(&l);
	round_of(&l, 1);
	for (int i = 0; i < 3; i++) {
		l.in_flight = 0;
		roan_inflight_limit_update(&l.d, 0, ++l.now);
		KUNIT_EXPECT_EQ(test, l.d.max_kb, 2 * MIN_KB);
	}
}

/* The counters wrap at 2^32. */
static void sent__wraps(struct kunit *test)
{
	struct link l;

	begin(&l);
	l.d.sent_kb = l.d.mark_kb = -2u;
	for (int i = 0; i < 4; i++)
		round_of(&l, QUICK - 1);
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 8 * MIN_KB);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(limit__begins_small),
	KUNIT_CASE(fast__doubles_up_to_the_maximum),
	KUNIT_CASE(between__stays),
	KUNIT_CASE(slow__halves_down_to_the_minimum),
	KUNIT_CASE(standing__halves),
	KUNIT_CASE(unused__stays),
	KUNIT_CASE(hit__counts_once),
	KUNIT_CASE(sent__wraps),
	{}
};

static struct kunit_suite suite = { .name = "roan_inflight_limit", .test_cases = cases };
kunit_test_suite(suite);
