// SPDX-License-Identifier: GPL-2.0
/* The limit of KiB in flight in this host: fast draining raises it, slow draining lowers it, an unused limit stays. */
#include <kunit/test.h>
#include "core/flow/inflight_limit.h"

#define T0	NSEC_PER_SEC
#define LEAST	8			/* KiB */
#define MOST	512
#define QUICK	(2 * NSEC_PER_MSEC)
#define SLOW	(20 * NSEC_PER_MSEC)

/* A queue that hands KiB to the stack. */
struct link {
	struct roan_inflight_limit d;
	u64 now;
	u32 below;
};

static void begin(struct link *l)
{
	*l = (struct link){ .now = T0 };
	roan_inflight_limit_init(&l->d);
}

static void give(struct link *l, u32 size)
{
	roan_inflight_limit_add(&l->d, size);
	l->below += size;
}

/* Sends up to the limit, 4 KiB at a time. The backlog drains below the wake-up mark after @ns. */
static void round_of(struct link *l, u64 ns)
{
	roan_inflight_limit_update(&l->d, l->below, l->now);
	while (roan_inflight_limit_allows(&l->d, l->below))
		give(l, 4);
	l->below = roan_inflight_limit_hit(&l->d) - 1;
	l->now += ns;
}

static void limit__begins_small(struct kunit *test)
{
	struct link l;

	begin(&l);
	KUNIT_EXPECT_TRUE(test, roan_inflight_limit_allows(&l.d, 0));
	KUNIT_EXPECT_TRUE(test, roan_inflight_limit_allows(&l.d, LEAST - 1));
	KUNIT_EXPECT_FALSE(test, roan_inflight_limit_allows(&l.d, LEAST));
	KUNIT_EXPECT_EQ(test, roan_inflight_limit_hit(&l.d), LEAST / 2);
}

static void quick__doubles_up_to_the_most(struct kunit *test)
{
	u32 expect = LEAST;
	struct link l;

	begin(&l);
	round_of(&l, QUICK - 1);
	for (int i = 0; i < 10; i++) {
		round_of(&l, QUICK - 1);
		expect = min_t(u32, 2 * expect, MOST);
		KUNIT_EXPECT_EQ(test, l.d.max_kb, expect);
	}
}

static void neither__stays(struct kunit *test)
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

static void slow__halves_down_to_the_least(struct kunit *test)
{
	u32 expect = MOST;
	struct link l;

	begin(&l);
	l.d.max_kb = MOST;
	round_of(&l, SLOW);
	for (int i = 0; i < 10; i++) {
		round_of(&l, SLOW);
		expect = max_t(u32, expect / 2, LEAST);
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
	roan_inflight_limit_update(&l.d, l.below, ++l.now);	/* the KiB sent before have drained */
	roan_inflight_limit_update(&l.d, l.below, l.now += SLOW - 1);
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 256);
	roan_inflight_limit_update(&l.d, l.below - 1, ++l.now);
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
static void hit__is_forgotten(struct kunit *test)
{
	struct link l;

	begin(&l);
	round_of(&l, 1);
	for (int i = 0; i < 3; i++) {
		l.below = 0;
		roan_inflight_limit_update(&l.d, 0, ++l.now);
		KUNIT_EXPECT_EQ(test, l.d.max_kb, 2 * LEAST);
	}
}

/* The counters wrap at 2^32. */
static void given__wraps(struct kunit *test)
{
	struct link l;

	begin(&l);
	l.d.sent_kb = l.d.mark_kb = -2u;
	for (int i = 0; i < 4; i++)
		round_of(&l, QUICK - 1);
	KUNIT_EXPECT_EQ(test, l.d.max_kb, 8 * LEAST);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(limit__begins_small),
	KUNIT_CASE(quick__doubles_up_to_the_most),
	KUNIT_CASE(neither__stays),
	KUNIT_CASE(slow__halves_down_to_the_least),
	KUNIT_CASE(standing__halves),
	KUNIT_CASE(unused__stays),
	KUNIT_CASE(hit__is_forgotten),
	KUNIT_CASE(given__wraps),
	{}
};

static struct kunit_suite suite = { .name = "roan_inflight_limit", .test_cases = cases };
kunit_test_suite(suite);
