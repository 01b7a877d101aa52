// SPDX-License-Identifier: GPL-2.0
/* requester_rx.c: a receiver that is not ready (9.7.5.2.8). */
#include "requester_fixture.h"

static void rnr__waits(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_RNR | 1, 0, 0), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 10000);
	KUNIT_EXPECT_EQ(test, roan_requester_slack(&f->r, roan_requester_deadline(&f->r)), 0);
	f->now += 10000;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, f->r.retries_left, 2);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
}

static void rnr__budget(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 3; i++) {
		send_all(f);
		KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_RNR | 1, 0, 0), i < 2 ? ROAN_EV_RETRY : ROAN_EV_FAILED);
		f->now += 20000;
	}
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_RNR_RETRY_EXC_ERR);
}

/* An RNR wait longer than the ACK timeout does not count as a timeout. */
static void rnr__wait_is_no_timeout(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	answer(f, ROAN_AETH_RNR | 0, 0, 0);
	f->now += 655360000;
	send_all(f);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + roan_timeout_ns(10));
	KUNIT_EXPECT_EQ(test, roan_requester_slack(&f->r, roan_requester_deadline(&f->r)), roan_timeout_ns(10) / 4);
}

/*
 * The response comes during the RNR wait, and a page fault of this host keeps it from being placed: the request is sent
 * again after the wait, and the timeout begins then.
 */
static void rnr__wait_is_no_timeout_after_a_page_fault(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_READ, 8);
	send_all(f);
	answer(f, ROAN_AETH_RNR | 0, 0, 0);
	f->now += NSEC_PER_MSEC;
	roan_requester_retransmit(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + roan_timeout_ns(10));
}

static struct req_fixture *infinite_rnr_retry(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;

	cfg.rnr_retry = 7;
	return req_fixture_with(test, cfg);
}

static void rnr__for_ever(struct kunit *test)
{
	struct req_fixture *f = infinite_rnr_retry(test);

	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 100; i++) {
		KUNIT_EXPECT_EQ(test, send_all(f), 1);
		KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_RNR | 1, 0, 0), ROAN_EV_RETRY);
		f->now = roan_requester_deadline(&f->r);
	}
}

/*
 * First the delay of the RNR NAK; then growing with the time without a receive, up to 1 ms; after progress as at first.
 */
static void rnr__delay_grows_to_one_ms(struct kunit *test)
{
	struct req_fixture *f = infinite_rnr_retry(test);
	u64 began = f->now, wait = 0, before;
	u32 asked = 0;

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8);
	while (f->now - began < 20 * NSEC_PER_MSEC) {
		KUNIT_ASSERT_EQ(test, send_all(f), asked ? 1 : 2);
		answer(f, ROAN_AETH_RNR | 1, 0, 0);
		before = wait;
		wait = roan_requester_deadline(&f->r) - f->now;
		KUNIT_EXPECT_GE(test, wait, max_t(u64, before, 10000));
		KUNIT_EXPECT_LE(test, wait, max_t(u64, (f->now - began) / 8, 10000));
		f->now += wait;
		asked++;
	}
	KUNIT_EXPECT_EQ(test, wait, NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, asked, 70);
	send_all(f);
	KUNIT_EXPECT_EQ(test, ack(f, 0), ROAN_EV_PROGRESS);
	send_all(f);
	answer(f, ROAN_AETH_RNR | 1, 1, 0);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 10000);
}

/* Until the peer accepts it, one packet is sent after each RNR NAK, with AckReq; then everything. */
static void rnr__one_packet_until_it_is_accepted(struct kunit *test)
{
	struct req_fixture *f = infinite_rnr_retry(test);

	post(f, ROAN_OP_SEND, 5 * MTU);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 6);
	for (int i = 0; i < 5; i++) {
		answer(f, ROAN_AETH_RNR | 1, 0, 0);
		f->now = roan_requester_deadline(&f->r);
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_TRUE(test, f->e.ackreq);
		KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	}
	KUNIT_EXPECT_EQ(test, ack(f, 0), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, send_all(f), 5);
}

/* The delay of the RNR NAK is a lower bound, also above 1 ms. */
static void rnr__never_below_the_nak_delay(struct kunit *test)
{
	struct req_fixture *f = infinite_rnr_retry(test);

	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 20; i++) {
		send_all(f);
		answer(f, ROAN_AETH_RNR | 31, 0, 0);
		KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 491520000);
		f->now += 491520000;
	}
}

/*
 * Packets behind the message that caused an RNR NAK may each get a sequence NAK (rdma_rxe does this), during the wait
 * or after it. These NAKs are ignored and cost no retry.
 */
static void rnr__covers_what_follows(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	answer(f, ROAN_AETH_RNR | 1, 0, 0);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 0, 0), ROAN_EV_NOTHING);
	f->now += 10000;
	roan_requester_timer(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 0, 0), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, f->r.retries_left, f->r.cfg.retry_cnt);
	KUNIT_EXPECT_EQ(test, ack(f, 0), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 1, 0), ROAN_EV_RETRY);
}

/* RNR NAKs for several copies of a request start one wait and cost one retry. */
static void rnr__of_copies_counts_once(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_RNR | 1, 0, 0), ROAN_EV_RETRY);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_RNR | 1, 0, 0), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, f->r.rnr_left, 1);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 10000);
}

/* An ACK for a later copy of the request ends the RNR wait. */
static void rnr__wait_ends_with_the_answer(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	answer(f, ROAN_AETH_RNR | 0, 0, 0);
	KUNIT_EXPECT_EQ(test, ack(f, 0), ROAN_EV_PROGRESS);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
}

/* A slow receiver and a lossy link: each RNR NAK proves that the request arrived, and renews the retry counter. */
static void rnr__renews_the_retries(struct kunit *test)
{
	struct req_fixture *f = infinite_rnr_retry(test);

	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 100; i++) {
		send_all(f);
		f->now += roan_timeout_ns(10);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
		send_all(f);
		KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_RNR | 1, 0, 0), ROAN_EV_RETRY);
		f->now = roan_requester_deadline(&f->r);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	}
}

static struct kunit_case requester_rnr_cases[] = {
	KUNIT_CASE(rnr__waits),
	KUNIT_CASE(rnr__budget),
	KUNIT_CASE(rnr__wait_is_no_timeout),
	KUNIT_CASE(rnr__wait_is_no_timeout_after_a_page_fault),
	KUNIT_CASE(rnr__for_ever),
	KUNIT_CASE(rnr__delay_grows_to_one_ms),
	KUNIT_CASE(rnr__one_packet_until_it_is_accepted),
	KUNIT_CASE(rnr__never_below_the_nak_delay),
	KUNIT_CASE(rnr__covers_what_follows),
	KUNIT_CASE(rnr__of_copies_counts_once),
	KUNIT_CASE(rnr__wait_ends_with_the_answer),
	KUNIT_CASE(rnr__renews_the_retries),
	{}
};

static struct kunit_suite requester_rnr_suite = {
	.name = "requester_rnr",
	.test_cases = requester_rnr_cases,
};

kunit_test_suite(requester_rnr_suite);
