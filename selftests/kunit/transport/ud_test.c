// SPDX-License-Identifier: GPL-2.0
/* Checks of a received datagram: opcode, size, Q_Key. And P_Key membership. */
#include <kunit/test.h>
#include "core/transport/ud.h"

static void pkeys_match_by_membership(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, roan_pkey_match(0xffff, 0xffff));
	KUNIT_EXPECT_TRUE(test, roan_pkey_match(0x7fff, 0xffff));
	KUNIT_EXPECT_FALSE(test, roan_pkey_match(0x7fff, 0x7fff));
	KUNIT_EXPECT_FALSE(test, roan_pkey_match(0x8001, 0x8002));
	KUNIT_EXPECT_FALSE(test, roan_pkey_match(0x8000, 0x8000));	/* base 0 is the invalid P_Key */
}

static void admit__checks_every_rule(struct kunit *test)
{
	struct roan_pkt p = { .info = roan_opcode(0x64), .pkey = 0xffff, .qkey = 5, .payload_len = 1024 };

	KUNIT_EXPECT_EQ(test, roan_ud_admit(&p, 5, 1024), ROAN_UD_DELIVER);
	KUNIT_EXPECT_EQ(test, roan_ud_admit(&p, 5, 1023), ROAN_UD_INVALID);
	KUNIT_EXPECT_EQ(test, roan_ud_admit(&p, 6, 1024), ROAN_UD_BAD_QKEY);
	p.info = roan_opcode(0x04);
	KUNIT_EXPECT_EQ(test, roan_ud_admit(&p, 5, 1024), ROAN_UD_INVALID);
}

static struct kunit_case datagram_cases[] = {
	KUNIT_CASE(pkeys_match_by_membership),
	KUNIT_CASE(admit__checks_every_rule),
	{}
};

static struct kunit_suite datagram_suite = {
	.name = "roan_ud",
	.test_cases = datagram_cases,
};
kunit_test_suite(datagram_suite);
