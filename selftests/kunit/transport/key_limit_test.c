// SPDX-License-Identifier: GPL-2.0
/* The limit of guesses of an R_Key on a UC QP. */
#include <kunit/test.h>
#include "core/transport/key_limit.h"

#define FIRST	0xfffff0u		/* the sequence wraps */
#define STRAY	0x123456u
#define T0	(5 * ROAN_KEY_PERIOD_NS)

static void refuse(struct roan_key_limit *lim, u32 psn, u32 n, u64 now)
{
	while (n--)
		roan_key_limit_refused(lim, psn, now);
}

static bool blocks(struct roan_key_limit *lim, u32 psn, u64 now)
{
	return lim->spent && roan_key_limit_blocks(lim, psn, now);
}

static void refused__stray_guesses_stop_only_strays(struct kunit *test)
{
	struct roan_key_limit lim;

	roan_key_limit_reset(&lim, FIRST);
	refuse(&lim, STRAY, ROAN_KEY_REFUSALS - 1, T0);
	KUNIT_EXPECT_FALSE(test, blocks(&lim, STRAY, T0));
	refuse(&lim, STRAY, 1, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&lim, STRAY, T0));
	KUNIT_EXPECT_TRUE(test, blocks(&lim, STRAY ^ 0x800000, T0));
	KUNIT_EXPECT_FALSE(test, blocks(&lim, FIRST, T0));
	/* The peer goes on in sequence, past the wrap; what it sent already is a stray. */
	roan_key_limit_stored(&lim, FIRST + 15);
	KUNIT_EXPECT_FALSE(test, blocks(&lim, 0, T0));
	KUNIT_EXPECT_FALSE(test, blocks(&lim, ROAN_KEY_PSN_AHEAD - 1, T0));
	KUNIT_EXPECT_TRUE(test, blocks(&lim, ROAN_KEY_PSN_AHEAD, T0));
	KUNIT_EXPECT_TRUE(test, blocks(&lim, FIRST + 15, T0));
}

static void refused__peer_stops_only_itself(struct kunit *test)
{
	struct roan_key_limit lim;

	roan_key_limit_reset(&lim, FIRST);
	refuse(&lim, FIRST + 1, ROAN_KEY_REFUSALS, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&lim, FIRST + 2, T0));
	KUNIT_EXPECT_FALSE(test, blocks(&lim, STRAY, T0));
	refuse(&lim, STRAY, ROAN_KEY_REFUSALS, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&lim, STRAY, T0));
}

static void blocks__until_the_period_ends(struct kunit *test)
{
	struct roan_key_limit lim;
	u64 now;
	u32 i;

	roan_key_limit_reset(&lim, FIRST);
	refuse(&lim, STRAY, ROAN_KEY_REFUSALS, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&lim, STRAY, T0 + ROAN_KEY_PERIOD_NS - 1));
	KUNIT_EXPECT_FALSE(test, blocks(&lim, STRAY, T0 + ROAN_KEY_PERIOD_NS));
	KUNIT_EXPECT_FALSE(test, lim.spent);

	/* A guess each millisecond for ten seconds: never more than the budget of each second. */
	roan_key_limit_reset(&lim, FIRST);
	for (i = 0, now = T0; now < T0 + 10 * ROAN_KEY_PERIOD_NS; now += NSEC_PER_SEC / 1000) {
		if (blocks(&lim, STRAY, now))
			continue;
		roan_key_limit_refused(&lim, STRAY, now);
		i++;
	}
	KUNIT_EXPECT_EQ(test, i, 10u * ROAN_KEY_REFUSALS);

	/* Fewer than the budget in a second are never blocked. */
	roan_key_limit_reset(&lim, FIRST);
	for (i = 0, now = T0; i < 100; i++, now += ROAN_KEY_PERIOD_NS / (ROAN_KEY_REFUSALS - 1)) {
		KUNIT_EXPECT_FALSE(test, blocks(&lim, STRAY, now));
		roan_key_limit_refused(&lim, STRAY, now);
	}
}

static struct kunit_case key_limit_cases[] = {
	KUNIT_CASE(refused__stray_guesses_stop_only_strays),
	KUNIT_CASE(refused__peer_stops_only_itself),
	KUNIT_CASE(blocks__until_the_period_ends),
	{}
};

static struct kunit_suite key_limit_suite = {
	.name = "roan_key_limit",
	.test_cases = key_limit_cases,
};
kunit_test_suite(key_limit_suite);
