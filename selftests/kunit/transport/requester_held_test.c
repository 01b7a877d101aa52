// SPDX-License-Identifier: GPL-2.0
/* A packet may not be sent yet: those before it are acknowledged all the same. */
#include "requester_fixture.h"

/* The last packet sent has no AckReq, as another message was to follow: it alone is sent again. */
static void ask__if_no_packet_may_follow(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);
	u32 i;

	for (i = 0; i < 6; i++)
		post(f, ROAN_OP_SEND, 8);
	for (i = 0; i < 4; i++)
		send_one(f);
	KUNIT_EXPECT_FALSE(test, f->e.ackreq);
	f->r.start_window = 2;
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 3));
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	ack(f, 3);
	f->r.start_window = rc.psn_window;
	send_one(f);
	roan_requester_drain(&f->r, true);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 4));
}

static struct kunit_case requester_held_cases[] = {
	KUNIT_CASE(ask__if_no_packet_may_follow),
	{}
};

static struct kunit_suite requester_held_suite = {
	.name = "requester_held",
	.test_cases = requester_held_cases,
};

kunit_test_suite(requester_held_suite);
