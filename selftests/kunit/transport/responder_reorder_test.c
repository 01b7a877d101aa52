// SPDX-License-Identifier: GPL-2.0
/* When the NAK for a gap is due: at once, until requests were late; then after a time that depends on how late. */
#include "responder_fixture.h"

#define SEND_ONLY	0x04
#define READ_REQUEST	0x0c

/* Keeps what comes after a gap, as rx_early.c does. Times are in us. */
struct late_fixture {
	struct kunit *test;
	struct resp_fixture *f;
	u64 kept;		/* bit_of() */
	u32 kept_at[64];	/* by n % 64 */
	u32 next;		/* the expected n */
	u8  version;		/* of the peer's extensions */
};

static struct late_fixture late_fixture(struct kunit *test)
{
	return (struct late_fixture) { .test = test, .f = resp_fixture(test) };
}

static u64 ns(u32 us)
{
	return us * (u64)NSEC_PER_USEC;
}

static u64 bit_of(u32 n)
{
	return 1ull << n % 64;
}

static struct roan_pkt send_of(const struct late_fixture *l, u32 n)
{
	struct roan_pkt pkt = request(SEND_ONLY, n, 8, 0);

	pkt.ext_version = l->version;
	return pkt;
}

static void execute(struct late_fixture *l)
{
	KUNIT_EXPECT_EQ(l->test, take(l->f, send_of(l, l->next)), ROAN_V_EXECUTE);
	l->next++;
}

static void keep(struct late_fixture *l, const struct roan_pkt *pkt, u32 n, u32 us)
{
	roan_responder_kept(&l->f->r, pkt);
	l->kept |= bit_of(n);
	l->kept_at[n % 64] = us;
}

static void run_kept(struct late_fixture *l, u32 us)
{
	bool filled = false;
	u32 n;

	for (; l->kept & bit_of(l->next); filled = true) {
		l->kept &= ~bit_of(l->next);
		execute(l);
	}
	for (n = l->next; l->kept && !(l->kept & bit_of(n)); n++)
		;
	roan_responder_next_gap(&l->f->r, filled, ns(l->kept_at[n % 64]), ns(us));
}

static void arrive(struct late_fixture *l, u32 n, u32 us)
{
	struct roan_responder *r = &l->f->r;
	struct roan_pkt pkt = send_of(l, n);
	bool any = l->kept;

	switch (roan_responder_admit(r, &pkt, &l->f->exec)) {
	case ROAN_V_EXECUTE:
		execute(l);
		break;
	case ROAN_V_GAP:
		keep(l, &pkt, n, us);
		roan_responder_gap(r, ns(us));
		break;
	case ROAN_V_EARLY:
		keep(l, &pkt, n, us);
		break;
	case ROAN_V_DUPLICATE:
		roan_responder_duplicate(r, &pkt, ns(us));
		break;
	default:
		break;
	}
	if (any)
		run_kept(l, us);
}

/* Sends what is due at that time. Returns n of the NAK, or -1. */
static int nak_at(struct late_fixture *l, u32 us)
{
	int n = -1;

	if (roan_responder_nak_waits(&l->f->r))
		roan_responder_timer(&l->f->r, ns(us));
	while (owed(l->f) != -1)
		if (l->f->a.syndrome == (ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE))
			n = psn_diff(l->f->a.psn, PSN0);
	return n;
}

static u32 wait_us(const struct late_fixture *l)
{
	return l->f->r.reorder.wait_ns / NSEC_PER_USEC;
}

/* @n is late by @by, from @us on. Without a wait it gets a NAK, and is sent twice. */
static void be_late(struct late_fixture *l, u32 n, u32 us, u32 by)
{
	bool nak_sent;

	arrive(l, n + 1, us);
	nak_sent = nak_at(l, us) == (int)n;
	arrive(l, n, us + by);
	if (nak_sent)
		arrive(l, n, us + 2 * by + 100);
	KUNIT_EXPECT_EQ(l->test, nak_at(l, us + 2 * by + 100), -1);
}

/* Returns the time between the gap and the NAK. */
static u32 be_lost(struct late_fixture *l, u32 n, u32 us)
{
	u32 waited;

	arrive(l, n + 1, us);
	for (waited = 0; nak_at(l, us + waited) != (int)n; waited++)
		KUNIT_ASSERT_LT(l->test, waited, 2000u);
	arrive(l, n, us + waited + 30);
	KUNIT_EXPECT_EQ(l->test, nak_at(l, us + waited + 30), -1);
	return waited;
}

/* 0 and 1 are lost. The requester goes back, and the copy of 1 is lost, too: that of 2 shows it. */
static void kept__copy_behind_a_lost_one_is_answered(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	arrive(&l, 2, 0);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 0), 0);
	arrive(&l, 3, 1);
	arrive(&l, 0, 10);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 10), -1);
	arrive(&l, 2, 11);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 11), 1);
	arrive(&l, 3, 12);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 12), -1);
	arrive(&l, 1, 20);
	KUNIT_EXPECT_EQ(test, l.next, 4);
}

static void wait__none_while_requests_are_lost(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);
	u32 n;

	for (n = 0; n < 100; n += 2)
		KUNIT_EXPECT_EQ(test, be_lost(&l, n, 100 * n), 0);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
}

/* 0, 2 and 4 are lost. The requester goes back to 0, and then to 2 and 4, some of which is on the way already. */
static void wait__none_while_the_requester_goes_back(struct kunit *test)
{
	static const u32 sent[] = { 0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 8 };
	struct late_fixture l = late_fixture(test);
	size_t i;

	arrive(&l, 1, 0);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 0), 0);
	arrive(&l, 3, 1);
	arrive(&l, 5, 2);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2), -1);
	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		arrive(&l, sent[i], 20 + i);
		KUNIT_EXPECT_EQ(test, nak_at(&l, 20 + i), i == 0 ? 2 : i == 2 ? 4 : -1);
	}
	KUNIT_EXPECT_EQ(test, l.next, 9);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
}

static void wait__learned_from_a_needless_copy(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	arrive(&l, 2, 1000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 1000), 0);
	arrive(&l, 0, 1040);
	arrive(&l, 1, 1100);
	arrive(&l, 3, 1110);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
	arrive(&l, 1, 1200);		/* copies are reordered, too */
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
	arrive(&l, 0, 1201);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 100);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 1201), -1);
}

/* Before the gap is filled, or soon after: the first one may have been a copy. */
static void wait__not_learned_from_an_early_copy(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	arrive(&l, 2, 1000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 1000), 0);
	arrive(&l, 0, 1040);
	arrive(&l, 0, 1050);
	arrive(&l, 1, 1060);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
	arrive(&l, 4, 2000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2000), 3);
	arrive(&l, 3, 2800);
	arrive(&l, 3, 3599);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
}

/* The wait of the second one is over while the first is repaired. */
static void wait__of_two_losses(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	arrive(&l, 5, 2001);
	arrive(&l, 7, 2120);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2100), 2);
	arrive(&l, 2, 2140);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2140), 4);
	arrive(&l, 4, 2180);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2219), -1);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2220), 6);
}

/* The gap is filled before the NAK leaves. */
static void wait__learned_without_a_nak(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	arrive(&l, 1, 1000);
	arrive(&l, 0, 1001);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 1001), -1);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 50);
}

static void wait__no_nak_in_time(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2000), -1);
	arrive(&l, 4, 2050);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2099), -1);
	KUNIT_EXPECT_EQ(test, l.f->r.n_out_of_sequence, 2);
	arrive(&l, 2, 2099);
	KUNIT_EXPECT_EQ(test, l.next, 5);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 3000), -1);
}

static void wait__then_one_nak(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	KUNIT_EXPECT_EQ(test, roan_responder_timer(&l.f->r, ns(2099)), ns(2100));
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2099), -1);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2100), 2);
	KUNIT_EXPECT_FALSE(test, roan_responder_nak_waits(&l.f->r));
	arrive(&l, 4, 2101);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 5000), -1);
}

/* Requests of the gap still arrive, as out of a queue. */
static void wait__begins_anew_with_each_late_one(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 6, 2000);
	arrive(&l, 2, 2090);
	arrive(&l, 3, 2180);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2279), -1);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2280), 4);
}

static void wait__of_two_gaps(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	arrive(&l, 5, 2001);
	arrive(&l, 2, 2080);
	KUNIT_EXPECT_EQ(test, l.next, 4);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2100), -1);
	KUNIT_EXPECT_EQ(test, nak_at(&l, wait_us(&l) + 2080 - 1), -1);
	KUNIT_EXPECT_EQ(test, nak_at(&l, wait_us(&l) + 2080), 4);
}

/* The first gap is filled before its NAK leaves. */
static void wait__of_two_gaps_in_one_batch(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	arrive(&l, 5, 2001);
	KUNIT_EXPECT_EQ(test, roan_responder_timer(&l.f->r, ns(2100)), 0);
	arrive(&l, 2, 2100);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2101), -1);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2400), 4);
}

/* Twice the longest time, at first 50 to 100 us, then at most doubled, to a millisecond. What was later counts as lost. */
static void wait__grows_and_is_bounded(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	be_late(&l, 2, 2000, 90);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 180);
	be_late(&l, 4, 3000, 170);
	be_late(&l, 6, 4000, 330);
	be_late(&l, 8, 5000, 650);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 1000);
	be_late(&l, 10, 10000, 999);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 1000);

	l = late_fixture(test);
	be_late(&l, 0, 1000, 900);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 100);
	be_late(&l, 2, 5000, 900);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 200);

	l = late_fixture(test);
	be_late(&l, 0, 1000, 1001);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
	be_late(&l, 2, 5000, 1);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 50);
}

static void wait__shrinks(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);
	u32 n;

	for (n = 0; n < 10; n += 2)
		be_late(&l, n, 5000 * n, 500);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 1000);
	for (; n < 102; n += 2)
		be_late(&l, n, 5000 * n, 30);
	KUNIT_EXPECT_LT(test, wait_us(&l), 500);
	for (; n < 502; n += 2)
		be_late(&l, n, 5000 * n, 30);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 60);
}

static void wait__ends_after_losses(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);
	u32 n;

	be_late(&l, 0, 1000, 50);
	for (n = 2; n < 2 + 2 * 15; n += 2)
		KUNIT_EXPECT_EQ(test, be_lost(&l, n, 5000 * n), 100);
	be_late(&l, n, 5000 * n, 50);
	for (n += 2; n < 34 + 2 * 16; n += 2)
		KUNIT_EXPECT_GT(test, be_lost(&l, n, 5000 * n), 90);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
	KUNIT_EXPECT_EQ(test, be_lost(&l, n, 5000 * n), 0);
}

/* A gap counts once, however many NAKs it takes. */
static void wait__ends_after_gaps_not_naks(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 4, 2000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2100), 2);
	arrive(&l, 2, 2130);
	arrive(&l, 5, 2140);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2140), 3);
	KUNIT_EXPECT_EQ(test, l.f->r.reorder.lost, 1);
}

/* Among duplicates it may be a copy; and so may be what a NAK named. */
static void wait__not_learned_among_duplicates(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	arrive(&l, 0, 2001);
	arrive(&l, 2, 2099);
	KUNIT_EXPECT_EQ(test, l.next, 4);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 100);
	arrive(&l, 5, 3000);
	arrive(&l, 0, 3001);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 3100), 4);
	arrive(&l, 4, 3190);
	arrive(&l, 4, 3200);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 100);
}

/* The copy of a request comes after another gap, or, if that request was lost, never. */
static void wait__learned_from_the_first_nak(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);
	u32 n;

	arrive(&l, 1, 1000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 1000), 0);
	arrive(&l, 0, 1040);
	arrive(&l, 3, 1050);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 1050), 2);
	arrive(&l, 2, 1060);
	arrive(&l, 0, 1200);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 80);

	l = late_fixture(test);
	KUNIT_EXPECT_EQ(test, be_lost(&l, 0, 1000), 0);
	for (n = 2; n < 600; n++)
		arrive(&l, n, 2000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2000), -1);
	be_late(&l, n, 3000, 50);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 100);
}

/* It is also repeated if its response was lost. */
static void wait__not_learned_from_a_read(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);
	struct roan_pkt read = request(READ_REQUEST, 0, 0, 8);

	arrive(&l, 1, 1000);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 1000), 0);
	KUNIT_EXPECT_EQ(test, take(l.f, read), ROAN_V_EXECUTE);
	l.next++;
	run_kept(&l, 1020);
	KUNIT_EXPECT_EQ(test, admit(l.f, read), ROAN_V_DUPLICATE);
	roan_responder_duplicate(&l.f->r, &read, ns(1100));
	KUNIT_EXPECT_EQ(test, wait_us(&l), 0);
}

/* The requester repeats everything, also what it sent before. */
static void wait__ends_with_an_rnr_nak(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	admit(l.f, send_of(&l, 2));
	roan_responder_rnr(&l.f->r, 1);
	KUNIT_EXPECT_EQ(test, owed(l.f), 0x11);
	KUNIT_EXPECT_EQ(test, l.f->a.syndrome, ROAN_AETH_RNR | 1);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2089), -1);
	arrive(&l, 2, 2090);
	KUNIT_EXPECT_EQ(test, l.next, 4);
	KUNIT_EXPECT_EQ(test, wait_us(&l), 100);
}

static void wait__ends_when_the_qp_fails(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	roan_responder_nak(&l.f->r, ROAN_NAK_REMOTE_ACCESS);
	roan_responder_timer(&l.f->r, ns(2100));
	expect_nak(test, l.f, ROAN_NAK_REMOTE_ACCESS, 2);
}

/* The missing request came, and waits for a page: it was late until then, and nothing is missing. */
static void wait__ends_when_the_request_waits_itself(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	arrive(&l, 3, 2000);
	l.f->r.epsn_waits = true;
	KUNIT_EXPECT_FALSE(test, roan_responder_next_gap(&l.f->r, true, ns(2000), ns(2080)));
	KUNIT_EXPECT_EQ(test, wait_us(&l), 160);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 9000), -1);
}

/* It has to be repeated anyway. */
static void wait__not_if_nothing_is_kept(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	KUNIT_EXPECT_EQ(test, admit(l.f, send_of(&l, 3)), ROAN_V_GAP);
	KUNIT_EXPECT_EQ(test, nak_at(&l, 2000), 2);
}

static void wait__not_of_a_sack(struct kunit *test)
{
	struct late_fixture l = late_fixture(test);

	be_late(&l, 0, 1000, 50);
	l.f->r.cfg.sack = true;
	l.version = ROAN_EXT_VERSION;
	arrive(&l, 3, 2000);
	KUNIT_EXPECT_FALSE(test, roan_responder_nak_waits(&l.f->r));
	KUNIT_EXPECT_EQ(test, owed(l.f), ROAN_OPCODE_SACK);
}

static struct kunit_case responder_reorder_cases[] = {
	KUNIT_CASE(kept__copy_behind_a_lost_one_is_answered),
	KUNIT_CASE(wait__none_while_requests_are_lost),
	KUNIT_CASE(wait__none_while_the_requester_goes_back),
	KUNIT_CASE(wait__learned_from_a_needless_copy),
	KUNIT_CASE(wait__not_learned_from_an_early_copy),
	KUNIT_CASE(wait__of_two_losses),
	KUNIT_CASE(wait__learned_without_a_nak),
	KUNIT_CASE(wait__no_nak_in_time),
	KUNIT_CASE(wait__then_one_nak),
	KUNIT_CASE(wait__begins_anew_with_each_late_one),
	KUNIT_CASE(wait__of_two_gaps),
	KUNIT_CASE(wait__of_two_gaps_in_one_batch),
	KUNIT_CASE(wait__grows_and_is_bounded),
	KUNIT_CASE(wait__shrinks),
	KUNIT_CASE(wait__ends_after_losses),
	KUNIT_CASE(wait__ends_after_gaps_not_naks),
	KUNIT_CASE(wait__not_learned_among_duplicates),
	KUNIT_CASE(wait__not_learned_from_a_read),
	KUNIT_CASE(wait__learned_from_the_first_nak),
	KUNIT_CASE(wait__ends_with_an_rnr_nak),
	KUNIT_CASE(wait__ends_when_the_qp_fails),
	KUNIT_CASE(wait__ends_when_the_request_waits_itself),
	KUNIT_CASE(wait__not_if_nothing_is_kept),
	KUNIT_CASE(wait__not_of_a_sack),
	{}
};

static struct kunit_suite responder_reorder_suite = {
	.name = "responder_reorder",
	.test_cases = responder_reorder_cases,
};

kunit_test_suite(responder_reorder_suite);
