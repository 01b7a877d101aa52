// SPDX-License-Identifier: GPL-2.0
/* The order in which the responder sends responses again that were requested again. */
#include "responder_fixture.h"

static void expect_response(struct kunit *test, struct resp_fixture *f, u32 n)
{
	KUNIT_EXPECT_NE(test, owed(f), -1);
	KUNIT_EXPECT_NE(test, f->a.resp_res, ROAN_NO_RESP_RES);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, n));
}

/* Pending responses leave in PSN order, whatever the order of the repeated requests. */
static void next__the_oldest_first(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture_with(test, ROAN_TP_RC, 4);
	u32 n;

	for (n = 0; n < 6; n++) {		/* so that the oldest is in the middle of the array */
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, n, 0, 8)), ROAN_V_EXECUTE);
		if (n < 2)
			expect_response(test, f, n);
	}
	expect_response(test, f, 2);
	expect_response(test, f, 3);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 3, 0, 8)), ROAN_V_DUPLICATE);	/* older than the pending ones */
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 2, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 5, 0, 8)), ROAN_V_DUPLICATE);	/* already pending */
	for (n = 2; n < 6; n++)
		expect_response(test, f, n);
	KUNIT_EXPECT_EQ(test, owed(f), -1);

	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 5, 0, 8)), ROAN_V_DUPLICATE);	/* not adjacent */
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 3, 0, 8)), ROAN_V_DUPLICATE);
	expect_response(test, f, 3);
	expect_response(test, f, 5);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/* A new request takes the resource of a pending repeated response: the others stay in order. */
static void next__the_oldest_is_overwritten(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture_with(test, ROAN_TP_RC, 3);
	u32 n;

	for (n = 0; n < 3; n++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, n, 0, 8)), ROAN_V_EXECUTE);
		expect_response(test, f, n);
	}
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 2, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 3, 0, 8)), ROAN_V_EXECUTE);
	expect_response(test, f, 2);
	expect_response(test, f, 3);
	KUNIT_EXPECT_EQ(test, f->r.n_pending, 0);
}

/* The resource array grows while responses are pending: entries move, their order stays. */
static void next__the_oldest_moves(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture_with(test, ROAN_TP_RC, 3);
	struct roan_resp_res more[8] = {};
	u32 n;

	for (n = 0; n < 4; n++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, n, 0, 8)), ROAN_V_EXECUTE);
		if (n < 2)
			expect_response(test, f, n);
	}
	roan_responder_set_resources(&f->r, more, ARRAY_SIZE(more));
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 4, 0, 8)), ROAN_V_EXECUTE);
	expect_response(test, f, 2);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 1, 0, 8)), ROAN_V_DUPLICATE);
	expect_response(test, f, 1);
	expect_response(test, f, 3);
	expect_response(test, f, 4);
	KUNIT_EXPECT_EQ(test, f->r.n_pending, 0);
}

static struct kunit_case responder_pending_cases[] = {
	KUNIT_CASE(next__the_oldest_first),
	KUNIT_CASE(next__the_oldest_is_overwritten),
	KUNIT_CASE(next__the_oldest_moves),
	{}
};

static struct kunit_suite responder_pending_suite = {
	.name = "responder_pending",
	.test_cases = responder_pending_cases,
};

kunit_test_suite(responder_pending_suite);
