// SPDX-License-Identifier: GPL-2.0
/* responder.c and rnr_defer.h: READ responses that wait for a page fault. */
#include "responder_fixture.h"

#define MS	1000000ull

/* The pages of the next response are not present at @now. True: it is blocked. */
static bool absent(struct resp_fixture *f, u64 now)
{
	if (!roan_responder_next(&f->r, 0, &f->a))
		return false;
	roan_responder_block(&f->r, &f->a, now);
	return !roan_responder_unblocked(&f->r);
}

static struct roan_pkt remainder_of_600(void)
{
	struct roan_pkt rest = request(0x0c, 1, 0, 600 - MTU);

	rest.va += MTU;
	return rest;
}

/*
 * A response is blocked. Early duplicates get no response; later ones get one RNR NAK each, with the next response's
 * PSN.
 */
static void defer_rnr__once_per_duplicate(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);
	u64 now = 1000 * MS;

	take(f, request(0x0c, 0, 0, 600));
	owed(f);
	KUNIT_EXPECT_TRUE(test, absent(f, now));
	KUNIT_EXPECT_FALSE(test, roan_responder_defer_rnr(&f->r, now, &f->a));
	KUNIT_EXPECT_EQ(test, take(f, remainder_of_600()), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_FALSE(test, roan_responder_defer_rnr(&f->r, now + ROAN_RNR_GRACE_NS - 1, &f->a));
	for (int i = 0; i < 2; i++) {
		now += ROAN_RNR_GRACE_NS;
		KUNIT_EXPECT_TRUE(test, absent(f, now));	/* a page arrived, but for another request */
		KUNIT_EXPECT_FALSE(test, roan_responder_defer_rnr(&f->r, now, &f->a));
		KUNIT_EXPECT_EQ(test, take(f, remainder_of_600()), ROAN_V_DUPLICATE);
		KUNIT_EXPECT_TRUE(test, roan_responder_defer_rnr(&f->r, now, &f->a));
		KUNIT_EXPECT_EQ(test, f->a.opcode, 0x11);
		KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_RNR | (i ? 25 : 23));	/* 61.44 and 30.72 ms */
		KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 1));
		KUNIT_EXPECT_FALSE(test, roan_responder_defer_rnr(&f->r, now, &f->a));
	}
	KUNIT_EXPECT_EQ(test, owed(f), 0x0d);
	KUNIT_EXPECT_EQ(test, owed(f), 0x0f);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/*
 * More than ROAN_RNR_GRACE_DUPS duplicates get the RNR NAK before the grace time ends. Each blocked response counts
 * anew.
 */
static void defer_rnr__early_after_many_duplicates(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0c, 0, 0, 600));
	for (u32 packet = 0; packet < 2; packet++) {
		u64 now = (1 + packet) * MS;

		KUNIT_EXPECT_TRUE(test, absent(f, now));
		for (u32 i = 0; i <= ROAN_RNR_GRACE_DUPS; i++) {
			now += 42000 / (ROAN_RNR_GRACE_DUPS + 1);
			KUNIT_EXPECT_EQ(test, take(f, packet ? remainder_of_600() : request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
			KUNIT_EXPECT_EQ(test, roan_responder_defer_rnr(&f->r, now, &f->a), i == ROAN_RNR_GRACE_DUPS);
		}
		KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_RNR | 4);	/* 0.04 ms */
		KUNIT_EXPECT_EQ(test, owed(f), 0x0d);
	}
}

/* A requester has seven retries at most (9.9.2.4.2): the duplicate that uses the last one gets an RNR NAK. */
static void defer_rnr__before_the_last_retry_is_lost(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);
	bool answered = false;

	take(f, request(0x0c, 0, 0, 600));
	KUNIT_EXPECT_TRUE(test, absent(f, MS));
	for (u32 retry = 1; retry <= 7; retry++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
		answered = roan_responder_defer_rnr(&f->r, (1 + retry) * MS, &f->a);
		KUNIT_EXPECT_TRUE(test, !answered || retry == 7);
	}
	KUNIT_EXPECT_TRUE(test, answered);
}

/* A READ's response is blocked, and duplicates come @us later. True: the last one, and no other, gets the RNR NAK. */
static bool only_last_is_answered(struct kunit *test, const u32 *us, u32 n)
{
	struct resp_fixture *f = resp_fixture(test);
	bool answered, ok = true;
	u32 i;

	take(f, request(0x0c, 0, 0, 600));
	KUNIT_EXPECT_TRUE(test, absent(f, MS));
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
		answered = roan_responder_defer_rnr(&f->r, MS + us[i] * 1000ull, &f->a);
		ok &= answered == (i + 1 == n);
	}
	return ok;
}

/* A requester with three retries and a short ACK timeout. The RTO may end before the first timeout does. */
static void defer_rnr__at_the_third_short_timeout(struct kunit *test)
{
	static const u32 code_10[] = { 4200, 8400, 12600 }, code_11[] = { 8400, 16800, 25200 };
	static const u32 rto[] = { 4000, 4200, 8400, 12600 }, copies[] = { 4200, 4300, 8400, 8500, 12600 };
	static const u32 one_lost[] = { 4200, 12600, 16800 }, late[] = { 25000, 29200, 33400, 37600 };
	static const u32 code_12[] = { 16800, 33600, 50300 }, code_12_of_rxe[] = { 14000, 30000, 46000 };

	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, code_10, ARRAY_SIZE(code_10)));
	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, code_11, ARRAY_SIZE(code_11)));
	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, rto, ARRAY_SIZE(rto)));
	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, copies, ARRAY_SIZE(copies)));
	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, one_lost, ARRAY_SIZE(one_lost)));
	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, late, ARRAY_SIZE(late)));
	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, code_12, ARRAY_SIZE(code_12)));
	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, code_12_of_rxe, ARRAY_SIZE(code_12_of_rxe)));
}

/* Repairs and probes use no retry. Probes come at intervals that double. An RNR NAK would come too early. */
static void defer_rnr__not_early_after_probes(struct kunit *test)
{
	static const u32 probes[] = { 100, 300, 700, 4700, 12700, 28700, 60700 };

	KUNIT_EXPECT_TRUE(test, only_last_is_answered(test, probes, ARRAY_SIZE(probes)));
}

/* A duplicate of an executed SEND before the READ gets the RNR NAK: its ACK must not overtake the blocked response. */
static void defer_rnr__for_a_duplicate_send(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 0, 8, 0)), ROAN_V_EXECUTE);
	take(f, request(0x0c, 1, 0, 600));
	KUNIT_EXPECT_TRUE(test, absent(f, 0));
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 0, 8, 0)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_TRUE(test, roan_responder_defer_rnr(&f->r, ROAN_RNR_GRACE_NS, &f->a));
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 1));
}

/* A READ of 3 packets, blocked, and a READ of 1 packet behind it. */
static void block_first_response(struct kunit *test, struct resp_fixture *f)
{
	take(f, request(0x0c, 0, 0, 600));
	KUNIT_EXPECT_TRUE(test, absent(f, 0));
	take(f, request(0x0c, 3, 0, 8));
	KUNIT_EXPECT_FALSE(test, roan_responder_unblocked(&f->r));
}

/* The same, after both were sent once and the first was requested again. */
static void block_repeated_response(struct kunit *test, struct resp_fixture *f)
{
	block_first_response(test, f);
	while (owed(f) != -1)
		;
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_TRUE(test, absent(f, 0));
}

/*
 * A blocked repeated response is dropped when the requester has moved past it, that is, when it requests later PSNs and
 * repeats that request.
 */
static void unblocked__when_the_requester_moved_past(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	block_repeated_response(test, f);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 3, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_FALSE(test, roan_responder_unblocked(&f->r));
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 3, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_TRUE(test, roan_responder_unblocked(&f->r));
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, owed(f), -1);

	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_TRUE(test, absent(f, 0));
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 4, 8, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_FALSE(test, roan_responder_unblocked(&f->r));
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 4, 8, 0)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 4, 8, 0)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_TRUE(test, roan_responder_unblocked(&f->r));
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 4));
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x0d);
}

/*
 * A requester that repeats the first READ too still needs it: the response stays blocked, and the requester gets RNR
 * NAKs.
 */
static void unblocked__not_if_all_is_requested_again(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	block_repeated_response(test, f);
	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 3, 0, 8)), ROAN_V_DUPLICATE);
		KUNIT_EXPECT_FALSE(test, roan_responder_unblocked(&f->r));
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
		KUNIT_EXPECT_FALSE(test, roan_responder_unblocked(&f->r));
		KUNIT_EXPECT_TRUE(test, roan_responder_defer_rnr(&f->r, ROAN_RNR_GRACE_NS, &f->a));
		KUNIT_EXPECT_EQ(test, f->a.psn, PSN0);
	}
}

/* A response that was never sent stays blocked, whatever later requests are repeated. */
static void unblocked__not_if_never_sent(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	block_first_response(test, f);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 3, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_FALSE(test, roan_responder_unblocked(&f->r));
}

/* A repeated request before the blocked one is answered at once. The blocked time continues. */
static void unblocked__for_an_earlier_request(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0c, 0, 0, 8));
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	take(f, request(0x0c, 1, 0, 8));
	KUNIT_EXPECT_TRUE(test, absent(f, 0));
	for (u64 i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_DUPLICATE);
		KUNIT_EXPECT_TRUE(test, roan_responder_unblocked(&f->r));
		KUNIT_EXPECT_EQ(test, owed(f), 0x10);
		KUNIT_EXPECT_EQ(test, f->a.psn, PSN0);
		KUNIT_EXPECT_TRUE(test, absent(f, i * ROAN_RNR_GRACE_NS));
		KUNIT_EXPECT_EQ(test, roan_responder_defer_rnr(&f->r, i * ROAN_RNR_GRACE_NS, &f->a), i > 0);
		KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 1));
	}
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/* A new READ overwrites the responder resource of a blocked repeated one, and is not blocked. */
static void unblocked__for_a_new_request_in_its_resource(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	for (u32 i = 0; i < 2; i++) {
		take(f, request(0x0c, i, 0, 8));
		KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	}
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_TRUE(test, absent(f, 0));
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 2, 0, 8)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_TRUE(test, roan_responder_unblocked(&f->r));
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 2));
}

static struct kunit_case responder_rest_cases[] = {
	KUNIT_CASE(defer_rnr__once_per_duplicate),
	KUNIT_CASE(defer_rnr__early_after_many_duplicates),
	KUNIT_CASE(defer_rnr__before_the_last_retry_is_lost),
	KUNIT_CASE(defer_rnr__at_the_third_short_timeout),
	KUNIT_CASE(defer_rnr__not_early_after_probes),
	KUNIT_CASE(defer_rnr__for_a_duplicate_send),
	KUNIT_CASE(unblocked__when_the_requester_moved_past),
	KUNIT_CASE(unblocked__not_if_all_is_requested_again),
	KUNIT_CASE(unblocked__not_if_never_sent),
	KUNIT_CASE(unblocked__for_an_earlier_request),
	KUNIT_CASE(unblocked__for_a_new_request_in_its_resource),
	{}
};

static struct kunit_suite responder_rest_suite = {
	.name = "responder_rnr_defer",
	.test_cases = responder_rest_cases,
};

kunit_test_suite(responder_rest_suite);
