// SPDX-License-Identifier: GPL-2.0
/* The RTT estimator (rtt.c). Sampling and timeouts are tested in requester_rx_test.c. */
#include <kunit/test.h>
#include "core/cc/rtt.h"

#define MS	1000000ull

static void sample__first_one_counts_whole(struct kunit *test)
{
	struct roan_rtt rtt = {};

	KUNIT_EXPECT_EQ(test, roan_rtt_rto_ns(&rtt), 0);
	roan_rtt_sample(&rtt, 8 * MS);
	KUNIT_EXPECT_EQ(test, rtt.srtt_ns, 8 * MS);
	KUNIT_EXPECT_EQ(test, roan_rtt_rto_ns(&rtt), 24 * MS);
}

static void sample__converges(struct kunit *test)
{
	struct roan_rtt rtt = {};
	u64 rto;

	roan_rtt_sample(&rtt, 80 * MS);
	for (int i = 0; i < 100; i++)
		roan_rtt_sample(&rtt, 10 * MS);
	rto = roan_rtt_rto_ns(&rtt);
	KUNIT_EXPECT_GE(test, rto, 10 * MS);
	KUNIT_EXPECT_LE(test, rto, 11 * MS);
}

static void sample__variance_raises_the_rto(struct kunit *test)
{
	struct roan_rtt rtt = {};

	for (int i = 0; i < 100; i++)
		roan_rtt_sample(&rtt, i & 1 ? 30 * MS : 10 * MS);
	KUNIT_EXPECT_GE(test, roan_rtt_rto_ns(&rtt), 50 * MS);
}

static void rto__is_never_below_its_floor(struct kunit *test)
{
	struct roan_rtt rtt = {};

	for (int i = 0; i < 100; i++)
		roan_rtt_sample(&rtt, 0);
	KUNIT_EXPECT_NE(test, rtt.srtt_ns, 0);
	KUNIT_EXPECT_EQ(test, roan_rtt_rto_ns(&rtt), ROAN_RTO_MIN_NS);
}

static struct kunit_case rtt_cases[] = {
	KUNIT_CASE(sample__first_one_counts_whole),
	KUNIT_CASE(sample__converges),
	KUNIT_CASE(sample__variance_raises_the_rto),
	KUNIT_CASE(rto__is_never_below_its_floor),
	{}
};

static struct kunit_suite rtt_suite = {
	.name = "rtt",
	.test_cases = rtt_cases,
};
kunit_test_suite(rtt_suite);
