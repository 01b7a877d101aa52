// SPDX-License-Identifier: GPL-2.0
/* Packets that a SACK shows as missing, and that may only be late: when they are sent again, and when not. */
#include "requester_sack_fixture.h"

#define US	1000ull
#define WAIT	(200 * US)	/* the shortest one */
#define MOST	16		/* so many may overtake, at least: 64 KiB */

/* Packets 3, and 5 to 8, were only overtaken. */
static void reorder__alone_sends_nothing_again(struct kunit *test)
{
	struct req_fixture *f = sent(test, 10);

	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x1), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x21), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, sack(f, 5, 0x8), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_FALSE(test, f->holes.any_lost);
	ack(f, 9);
	KUNIT_EXPECT_FALSE(test, f->r.any_holes);
	KUNIT_EXPECT_EQ(test, f->holes.reorder, MOST);
	expect_packet(test, f, 10, false);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 0);
	KUNIT_EXPECT_EQ(test, f->r.n_seq_naks, 0);
}

/* No further response comes: the timer finds the loss, though the QP has no ACK timeout. */
static void reorder__loss_is_found_by_time(struct kunit *test)
{
	struct req_fixture *f = sent(test, 48);

	f->r.cfg.timeout = 0;
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), 0);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x2), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + WAIT);
	KUNIT_EXPECT_EQ(test, roan_requester_slack(&f->r, roan_requester_deadline(&f->r)), 0);
	f->now += 20 * US;
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0xa), ROAN_EV_PROGRESS);		/* 6 is missing, too */
	f->now += WAIT - 21 * US;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
	f->now += US;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_TRUE(test, f->e.copy);
	expect_packet(test, f, 4, true);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 20 * US);
	f->now += 20 * US;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 6, true);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), 0);
	ack(f, 47);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 3);
	KUNIT_EXPECT_EQ(test, f->r.n_seq_naks, 1);
}

/* Two CPUs handle SACKs of one QP: the second has read the clock before the first. */
static void reorder__time_of_another_cpu(struct kunit *test)
{
	struct req_fixture *f = sent(test, 10);

	f->now += 20 * US;
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x2), ROAN_EV_PROGRESS);
	f->now -= US;
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0xa), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_FALSE(test, f->holes.any_lost);
	KUNIT_EXPECT_EQ(test, f->holes.lost_at, f->now + WAIT);
}

/* No answer comes for longer than twice the round trip of those that overtook: what waits is not lost by that. */
static void reorder__sack_timer_waits(struct kunit *test)
{
	struct req_fixture *f = sent(test, 10);

	know_rtt(f);
	f->r.since_ackreq = 0;
	KUNIT_EXPECT_LT(test, roan_requester_deadline(&f->r), f->now + WAIT);
	sack(f, 3, 0x2);
	f->r.since_ackreq = 0;
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + WAIT);
	f->now += WAIT;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 4, true);
	KUNIT_EXPECT_LT(test, roan_requester_deadline(&f->r), f->now + WAIT);	/* the copies do not wait */
}

/* Before the first loss any number may overtake: it is not known how many do, when a whole window leaves at once. */
static void reorder__any_number_before_the_first_loss(struct kunit *test)
{
	struct req_fixture *f = sent(test, 48);

	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x1), ROAN_EV_PROGRESS);		/* 3 was only late, */
	KUNIT_EXPECT_EQ(test, sack(f, 5, 0xfffffffe), ROAN_EV_PROGRESS);	/* and so may be 5 and 6 */
	KUNIT_EXPECT_EQ(test, f->holes.reorder, MOST);
	ack(f, 47);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 0);
	KUNIT_EXPECT_EQ(test, f->holes.reorder, 2 * 31);
}

/* Reordering was seen, and a loss: once more than 16 later packets are received the packet is lost, without a wait. */
static void reorder__loss_is_found_by_count(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 48);

	f->holes.reorder = MOST;
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0xfffe), ROAN_EV_PROGRESS);		/* 15 overtook 3 and 4 */
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x1fffe), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x3fffe), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 4, true);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	KUNIT_EXPECT_EQ(test, f->r.n_seq_naks, 1);
}

/* Twice as many packets may overtake as have done so. */
static void reorder__count_is_learned(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 48);

	f->holes.reorder = MOST;
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0xfffe), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0xffff), ROAN_EV_PROGRESS);		/* 4 was only late */
	KUNIT_EXPECT_EQ(test, f->holes.reorder, 30);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x3fffffff), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x7fffffff), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
}

/* The first hole was a loss: from then on there is no wait, until a packet is seen to be only late. */
static void reorder__no_wait_while_only_losses_occur(struct kunit *test)
{
	struct req_fixture *f = sent(test, 10);

	sack(f, 3, 0x1);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);
	ack(f, 9);
	while (psn_diff(f->r.next_psn, psn_add(PSN0, 30)) < 0)
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, sack(f, 12, 0x5), ROAN_EV_REPAIR);		/* 14 is missing, too */
	expect_packet(test, f, 12, true);
	ack(f, 14);						/* the copy of 14 was not sent yet */
	KUNIT_EXPECT_EQ(test, sack(f, 17, 0x1), ROAN_EV_PROGRESS);
	expect_packet(test, f, 30, false);
}

/* Copies were needless: what was lost by time gets more of it, in steps up to a round trip; else more may overtake. */
static void reorder__needless_copies_lengthen_the_wait(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 48);
	u32 i;

	roan_rtt_sample(&f->r.rtt, 1000 * US);
	f->r.timed_at = 0;
	sack(f, 3, 0xfffff);
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_EQ(test, sack_of(f, 24, 0x1, 1), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, f->holes.reorder, MOST);
	KUNIT_EXPECT_EQ(test, sack_of(f, 24, 0x3, 2), ROAN_EV_PROGRESS);	/* of the same repair */
	KUNIT_EXPECT_EQ(test, f->holes.reorder, MOST);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, roan_requester_reorder_deadline(&f->r), f->now + min(i + 1, 4u) * 250 * US);
		f->now = roan_requester_reorder_deadline(&f->r);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
		expect_packet(test, f, 24 + 2 * i, true);
		sack_of(f, 24 + 2 * (i + 1), 0x1, 3 + i);
	}
	KUNIT_EXPECT_EQ(test, f->holes.reorder, MOST);
	KUNIT_EXPECT_EQ(test, sack_of(f, 34, 0x1fff, 7), ROAN_EV_PROGRESS);
	f->holes.reorder = 12;
	KUNIT_EXPECT_EQ(test, sack_of(f, 34, 0x1fff, 7), ROAN_EV_REPAIR);
	f->holes.reorder = MOST;
	expect_packet(test, f, 34, true);
	sack_of(f, 36, 0x1, 8);
	KUNIT_EXPECT_EQ(test, f->holes.reorder, 2 * MOST);
}

/* As long as packets sent before it arrive late, one that was overtaken is not lost: all of them wait in one queue. */
static void reorder__wait_begins_when_those_before_have_arrived(struct kunit *test)
{
	struct req_fixture *f = sent(test, 30);
	u32 i;

	sack(f, 3, 0x10000);
	for (i = 4; i < 10; i++) {
		f->now += WAIT - US;
		sack_of(f, i, 0x10000 >> (i - 3), 0);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
		KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + WAIT);
	}
	f->now += WAIT - US;
	sack_of(f, 9, (0x20000 >> 6) - 1, 0);			/* 10 to 20, which were sent after it */
	f->now += US;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 9, true);
	expect_packet(test, f, 30, false);
}

/* What was known of packet 3 does not count for the packet that has its place in the sets later. */
static void reorder__each_packet_has_its_own_wait(struct kunit *test)
{
	struct req_fixture *f = sent(test, 48);
	u32 i;

	sack(f, 3, 0x1);
	ack(f, 47);
	for (i = 1; i < 6; i++) {
		post(f, ROAN_OP_WRITE, 48 << SACK_MTU_SHIFT);
		KUNIT_ASSERT_EQ(test, send_all(f), 48);
		if (i < 5)
			ack(f, 48 * i + 47);
	}
	f->now += 2 * WAIT;
	KUNIT_EXPECT_EQ(test, sack(f, 3 + ROAN_HOLES, 0x1), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, roan_requester_reorder_deadline(&f->r), f->now + WAIT);
}

/* A copy may be overtaken as well. */
static void reorder__copy_may_be_late(struct kunit *test)
{
	struct req_fixture *f = sent(test, 10);

	sack(f, 3, 0x1);
	f->now += WAIT;
	roan_requester_timer(&f->r, f->now);
	expect_packet(test, f, 3, true);
	f->holes.reorder = MOST;
	expect_packet(test, f, 10, false);
	expect_packet(test, f, 11, false);
	sack(f, 3, 0x3f);
	KUNIT_EXPECT_EQ(test, roan_requester_reorder_deadline(&f->r), U64_MAX);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x7f), ROAN_EV_PROGRESS);		/* 10 was sent after the copy */
	KUNIT_EXPECT_EQ(test, roan_requester_reorder_deadline(&f->r), f->now + WAIT);
	f->now += WAIT;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);
}

/* Whatever SACKs and round trips a peer makes up: a packet that counts as overtaken waits a second at most. */
static void reorder__no_peer_prolongs_the_wait(struct kunit *test)
{
	static const u32 received[] = { 0x1, 0x9, 0x2, 0x3, 0x8001, 0x1, 0x4 };
	struct req_fixture *f = sent(test, 48);
	u64 began = f->now;
	u32 i;

	sack(f, 3, 0x1);
	for (i = 0; f->now < began + WAIT - US; i++, f->now += US) {
		sack_of(f, 3, received[i % ARRAY_SIZE(received)], 0);
		KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), began + WAIT);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
	}
	f->now = began + WAIT;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);

	f->r.cfg.timeout = 0;
	f->r.rtt.srtt_ns = U64_MAX / 8;
	f->holes.reorder_steps = 3;
	f->holes.reorder = MOST;
	ack(f, 30);
	sack(f, 35, 0x1);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + NSEC_PER_SEC);
	f->now += 5ull * NSEC_PER_SEC;			/* more than 2^32 ns: the timer was late */
	if (roan_requester_timer(&f->r, f->now) == ROAN_EV_NOTHING)
		f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_TRUE(test, f->r.repair_left || roan_requester_timer(&f->r, f->now) == ROAN_EV_REPAIR);
	expect_packet(test, f, 35, true);
}

/* Sixteen recoveries from losses without a needless copy: less is tolerated; in the end none, if no packet was late. */
static void reorder__tolerance_decreases(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 0);
	u32 n = 0, i;

	post(f, ROAN_OP_WRITE, 60 << SACK_MTU_SHIFT);
	f->holes.reorder = MOST;
	f->holes.reorder_steps = 2;
	for (i = 0; i < 16; i++, n += 3) {
		KUNIT_EXPECT_EQ(test, f->holes.reorder, MOST);
		while (psn_diff(f->r.next_psn, psn_add(PSN0, n + 3)) < 0)
			KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, sack(f, n, 0x3), ROAN_EV_PROGRESS);
		f->now += WAIT;
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, n));
		ack(f, n + 2);
	}
	KUNIT_EXPECT_EQ(test, f->holes.reorder, 0);
	KUNIT_EXPECT_EQ(test, f->holes.reorder_steps, 1);
}

static struct kunit_case requester_reorder_cases[] = {
	KUNIT_CASE(reorder__alone_sends_nothing_again),
	KUNIT_CASE(reorder__loss_is_found_by_time),
	KUNIT_CASE(reorder__time_of_another_cpu),
	KUNIT_CASE(reorder__sack_timer_waits),
	KUNIT_CASE(reorder__any_number_before_the_first_loss),
	KUNIT_CASE(reorder__loss_is_found_by_count),
	KUNIT_CASE(reorder__count_is_learned),
	KUNIT_CASE(reorder__no_wait_while_only_losses_occur),
	KUNIT_CASE(reorder__needless_copies_lengthen_the_wait),
	KUNIT_CASE(reorder__wait_begins_when_those_before_have_arrived),
	KUNIT_CASE(reorder__each_packet_has_its_own_wait),
	KUNIT_CASE(reorder__copy_may_be_late),
	KUNIT_CASE(reorder__no_peer_prolongs_the_wait),
	KUNIT_CASE(reorder__tolerance_decreases),
	{}
};

static struct kunit_suite requester_reorder_suite = {
	.name = "requester_reorder",
	.test_cases = requester_reorder_cases,
};

kunit_test_suite(requester_reorder_suite);
