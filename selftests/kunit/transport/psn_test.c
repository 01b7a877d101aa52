// SPDX-License-Identifier: GPL-2.0
/* 24-bit PSN arithmetic at the wrap and at a distance of 2^23. */
#include <kunit/test.h>
#include "core/transport/psn.h"

static void psn_add_wraps(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, psn_add(0xffffff, 1), 0u);
	KUNIT_EXPECT_EQ(test, psn_add(0xfffff0, 0x20), 0x10u);
	KUNIT_EXPECT_EQ(test, psn_add(5, (u32)-6), 0xffffffu);
}

static void psn_diff_is_signed(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, psn_diff(7, 7), 0);
	KUNIT_EXPECT_EQ(test, psn_diff(0, 0xffffff), 1);
	KUNIT_EXPECT_EQ(test, psn_diff(0xffffff, 0), -1);
	KUNIT_EXPECT_EQ(test, psn_diff(0x7fffff, 0), 0x7fffff);
	KUNIT_EXPECT_EQ(test, psn_diff(0, 0x7fffff), -0x7fffff);
	KUNIT_EXPECT_EQ(test, psn_diff(0x3fffff, 0xc00000), 0x7fffff);
}

static void psn_within_is_half_open(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, psn_within(0xfffffe, 0xfffffe, 4));
	KUNIT_EXPECT_TRUE(test, psn_within(1, 0xfffffe, 4));
	KUNIT_EXPECT_FALSE(test, psn_within(2, 0xfffffe, 4));
	KUNIT_EXPECT_FALSE(test, psn_within(0xfffffd, 0xfffffe, 4));
	KUNIT_EXPECT_FALSE(test, psn_within(9, 9, 0));
}

static struct kunit_case psn_cases[] = {
	KUNIT_CASE(psn_add_wraps),
	KUNIT_CASE(psn_diff_is_signed),
	KUNIT_CASE(psn_within_is_half_open),
	{}
};

static struct kunit_suite psn_suite = {
	.name = "roan_psn",
	.test_cases = psn_cases,
};
kunit_test_suite(psn_suite);
