// SPDX-License-Identifier: GPL-2.0
/* When the responder sends a SACK in place of an ACK or NAK, and what it says. */
#include "responder_fixture.h"

#define SEND_ONLY	0x04

static struct resp_fixture *sacking(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	f->r.cfg.sack = true;
	return f;
}

/* A request of a peer that supports SACK. */
static struct roan_pkt supporting(u32 n)
{
	struct roan_pkt pkt = request(SEND_ONLY, n, 8, 0);

	pkt.ackreq = false;
	pkt.ext_version = ROAN_EXT_VERSION;
	return pkt;
}

static enum roan_verdict keep(struct resp_fixture *f, struct roan_pkt pkt)
{
	enum roan_verdict verdict = admit(f, pkt);

	if (verdict == ROAN_V_GAP || verdict == ROAN_V_EARLY)
		roan_responder_kept(&f->r, &pkt);
	return verdict;
}

/* A SACK is owed: @n is missing, @received says what is not, from @n + 1 on. */
static void expect_sack(struct kunit *test, struct resp_fixture *f, u32 n, u32 received, u32 highest, u8 needless)
{
	struct roan_sack sack;

	KUNIT_ASSERT_TRUE(test, roan_responder_next(&f->r, ROAN_AETH_UNLIMITED, &f->a));
	KUNIT_EXPECT_EQ(test, f->a.opcode, ROAN_OPCODE_SACK);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, n));
	roan_responder_fill_sack(&f->r, &sack);
	KUNIT_EXPECT_EQ(test, sack.received[0], received);
	KUNIT_EXPECT_EQ(test, sack.highest_psn, psn_add(PSN0, highest));
	KUNIT_EXPECT_EQ(test, sack.needless, needless);
	roan_responder_sent(&f->r, &f->a);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/* At each new gap, and when packets of one arrive; an ACK ends it. */
static void sack__at_each_gap(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);

	KUNIT_EXPECT_EQ(test, keep(f, supporting(1)), ROAN_V_GAP);
	expect_sack(test, f, 0, 0x1, 1, 0);
	KUNIT_EXPECT_EQ(test, keep(f, supporting(2)), ROAN_V_EARLY);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	KUNIT_EXPECT_EQ(test, keep(f, supporting(5)), ROAN_V_EARLY);
	expect_sack(test, f, 0, 0x13, 5, 0);
	KUNIT_EXPECT_EQ(test, keep(f, supporting(4)), ROAN_V_EARLY);
	expect_sack(test, f, 0, 0x1b, 5, 0);
	take(f, supporting(0));
	take(f, supporting(1));
	take(f, supporting(2));
	KUNIT_EXPECT_TRUE(test, roan_responder_next_gap(&f->r, true, 0, 0));
	expect_sack(test, f, 3, 0x3, 5, 0);
	take(f, supporting(3));
	take(f, supporting(4));
	take(f, supporting(5));
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 5));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/* On request, and after 16 packets without one. */
static void sack__on_request(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);
	struct roan_pkt asking = supporting(2);
	u32 n;

	keep(f, supporting(1));
	owed(f);
	asking.ackreq = true;
	keep(f, asking);
	expect_sack(test, f, 0, 0x3, 2, 0);
	for (n = 3; n < 18; n++)
		keep(f, supporting(n));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	keep(f, supporting(18));
	expect_sack(test, f, 0, 0x3ffff, 18, 0);
}

/* Requests that were only late are executed: a SACK says so after 16. */
static void sack__of_what_was_late(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);
	u32 n;

	keep(f, supporting(20));
	owed(f);
	for (n = 0; n < 15; n++)
		take(f, supporting(n));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	take(f, supporting(15));
	expect_sack(test, f, 16, 0x8, 20, 0);
}

/* Copies of what had arrived are counted, of kept packets, too, and a SACK says so at once. Other duplicates are not. */
static void sack__needless_copies(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);
	struct roan_pkt copy = supporting(1);

	copy.copy = true;
	keep(f, supporting(1));
	owed(f);
	KUNIT_EXPECT_EQ(test, keep(f, supporting(1)), ROAN_V_DUPLICATE);
	expect_sack(test, f, 0, 0x1, 1, 0);
	KUNIT_EXPECT_EQ(test, keep(f, copy), ROAN_V_DUPLICATE);
	expect_sack(test, f, 0, 0x1, 1, 1);
	take(f, supporting(0));
	take(f, supporting(1));
	owed(f);
	keep(f, supporting(4));
	owed(f);
	KUNIT_EXPECT_EQ(test, keep(f, copy), ROAN_V_DUPLICATE);
	expect_sack(test, f, 2, 0x2, 4, 2);
	copy.psn = psn_add(copy.psn, -ROAN_EARLY_WINDOW);	/* forged: the peer never sends it */
	KUNIT_EXPECT_EQ(test, keep(f, copy), ROAN_V_DUPLICATE);
	expect_sack(test, f, 2, 0x2, 4, 2);
}

/* A peer that does not say that it supports SACK gets NAKs, also if it did before. */
static void sack__not_to_others(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);
	struct roan_pkt silent = supporting(2);

	keep(f, supporting(1));
	silent.ext_version = 0;
	keep(f, silent);
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 0);
	f->r.cfg.sack = false;
	keep(f, supporting(4));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/*
 * A forged packet with any PSN is a duplicate half of the time. Its version must not count: an ACK that names a READ
 * makes a peer that is not roan take the READ for complete.
 */
static void sack__version_of_far_packets_is_ignored(struct kunit *test)
{
	struct roan_pkt far = supporting(PSN_MASK - 5000000);
	struct resp_fixture *f = sacking(test);

	take(f, request(SEND_ONLY, 0, 8, 0));
	take(f, request(0x0c, 1, 0, 4 * MTU));
	while (owed(f) != -1)
		;
	far.ackreq = true;
	KUNIT_EXPECT_EQ(test, admit(f, far), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.psn, PSN0);
	KUNIT_EXPECT_FALSE(test, f->r.peer_supports_sack);
}

/* Without space nothing is kept, and a NAK asks for everything. After an RNR NAK the peer repeats everything. */
static void sack__only_if_something_is_kept(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);

	admit(f, supporting(1));
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 0);
	keep(f, supporting(2));
	expect_sack(test, f, 0, 0x2, 2, 0);
	admit(f, supporting(0));
	roan_responder_rnr(&f->r, 1);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_RNR | 1);
	KUNIT_EXPECT_EQ(test, keep(f, supporting(1)), ROAN_V_DROP);
	KUNIT_EXPECT_EQ(test, keep(f, supporting(2)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/* The expected request waits for a page, or its turn: it is not missing. */
static void sack__not_while_the_next_one_waits(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);

	keep(f, supporting(1));
	owed(f);
	f->r.epsn_waits = true;
	KUNIT_EXPECT_EQ(test, keep(f, supporting(3)), ROAN_V_EARLY);
	KUNIT_EXPECT_FALSE(test, roan_responder_next_gap(&f->r, true, 0, 0));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	f->r.epsn_waits = false;
	take(f, supporting(0));
	take(f, supporting(1));
	KUNIT_EXPECT_TRUE(test, roan_responder_next_gap(&f->r, true, 0, 0));
	expect_sack(test, f, 2, 0x1, 3, 0);
}

/* All that is kept is next: nothing is missing. */
static void sack__not_of_the_next_one(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);
	struct roan_pkt asking = supporting(0);

	keep(f, supporting(1));
	owed(f);
	asking.ackreq = true;
	take(f, asking);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED);
	KUNIT_EXPECT_EQ(test, f->a.psn, PSN0);
}

/* More than a SACK has bits for: the highest PSN is said all the same. */
static void sack__far_ahead(struct kunit *test)
{
	struct resp_fixture *f = sacking(test);
	struct roan_sack sack;

	keep(f, supporting(ROAN_SACK_PSNS));
	keep(f, supporting(ROAN_EARLY_WINDOW - 1));
	KUNIT_ASSERT_TRUE(test, roan_responder_next(&f->r, ROAN_AETH_UNLIMITED, &f->a));
	roan_responder_fill_sack(&f->r, &sack);
	KUNIT_EXPECT_EQ(test, sack.received[ROAN_SACK_WORDS - 1], 1u << 31);
	KUNIT_EXPECT_EQ(test, sack.highest_psn, psn_add(PSN0, ROAN_EARLY_WINDOW - 1));
}

static struct kunit_case responder_sack_cases[] = {
	KUNIT_CASE(sack__at_each_gap),
	KUNIT_CASE(sack__on_request),
	KUNIT_CASE(sack__of_what_was_late),
	KUNIT_CASE(sack__needless_copies),
	KUNIT_CASE(sack__not_to_others),
	KUNIT_CASE(sack__version_of_far_packets_is_ignored),
	KUNIT_CASE(sack__only_if_something_is_kept),
	KUNIT_CASE(sack__not_while_the_next_one_waits),
	KUNIT_CASE(sack__not_of_the_next_one),
	KUNIT_CASE(sack__far_ahead),
	{}
};

static struct kunit_suite responder_sack_suite = {
	.name = "responder_sack",
	.test_cases = responder_sack_cases,
};

kunit_test_suite(responder_sack_suite);
