// SPDX-License-Identifier: GPL-2.0
/*
 * A packet may not be sent yet, or its payload is not in memory: those before it are acknowledged all the same. Or this
 * host has dropped it: it is the next to send.
 */
#include "requester_sack_fixture.h"

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

/*
 * A timeout while packets are sent again, of which the last one was lost, too: the probe's answer shows that others
 * arrived, so that nothing is left to send, and no packet on its way has AckReq.
 */
static void ask__if_the_queue_is_empty(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.sack = true;
	cfg.timeout = 14;
	f = req_fixture_with(test, cfg);
	know_rtt(f);
	post(f, ROAN_OP_WRITE, MTU);
	post_again(f, 3);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
	peer_drops(f);
	KUNIT_EXPECT_EQ(test, sequence_nak(f, 0), ROAN_EV_RETRY);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, sack(f, 1, BIT(0)), ROAN_EV_REPAIR);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 1));
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 3));
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	ack(f, 2);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + roan_rtt_repair_ns(&f->r.rtt));
	ack(f, 3);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), 0);
}

/* The first SEND has no AckReq, as the second was to follow. It is acknowledged nevertheless. */
static void held__earlier_packets_are_acknowledged(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_FALSE(test, f->e.ackreq);
	roan_requester_hold(&f->r, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_FALSE(test, roan_requester_repair_is_held(&f->r));
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 1));
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	ack(f, 1);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	roan_requester_release(&f->r, f->now);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 2));
}

/* The answer is asked for after 1 ms, whatever the timeout, and neither a retry nor the window is lost by that. */
static void held__asks_without_a_retry(struct kunit *test)
{
	static const u8 timeouts[] = { 0, 1, 14 };	/* none, 8 us, 67 ms */
	u32 i;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		struct roan_requester_cfg cfg = rc;
		struct req_fixture *f;

		cfg.timeout = timeouts[i];
		cfg.retry_cnt = 0;
		f = req_fixture_with(test, cfg);
		post(f, ROAN_OP_WRITE, MTU);
		post(f, ROAN_OP_WRITE, MTU);
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		roan_requester_hold(&f->r, psn_add(PSN0, 1));
		f->now += MS;
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
		KUNIT_EXPECT_EQ(test, send_all(f), 1);
		KUNIT_EXPECT_EQ(test, f->r.n_timeouts + f->r.n_rto, 0);
		KUNIT_EXPECT_EQ(test, f->r.start_window, cfg.psn_window);
		ack(f, 0);
		f->now += 1000 * MS;
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
		roan_requester_release(&f->r, f->now);
		KUNIT_EXPECT_EQ(test, send_all(f), 1);
	}
}

/* The fault has ended, and the answer is not here: the time of the fault is not the peer's. */
static void held__time_is_not_the_peers(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.timeout = 9;	/* 2.1 ms */
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_WRITE, MTU);
	post(f, ROAN_OP_WRITE, MTU);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	roan_requester_hold(&f->r, psn_add(PSN0, 1));
	f->now += MS - 1;
	roan_requester_release(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + roan_timeout_ns(cfg.timeout));
}

/* Four packets were sent. After a timeout packet 1 is sent again, and packet 2 is held. */
static struct req_fixture *req_fixture_with_held_2(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_probe(test);

	roan_requester_hold(&f->r, psn_add(PSN0, 2));
	return f;
}

/* The packets behind it are sent, although the page does not come. */
static void held__acknowledged_meanwhile(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_held_2(test);

	ack(f, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 0);
	ack(f, 2);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	KUNIT_EXPECT_FALSE(test, f->r.held);
}

/* A packet that is lost once more is not waiting for that page. */
static void held__earlier_packets_are_repaired(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_held_2(test);

	KUNIT_EXPECT_FALSE(test, roan_requester_repair_is_held(&f->r));
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 1));
}

/* So is an earlier message if the held packet is not the first one of its own that is sent again. */
static void held__earlier_messages_are_repaired(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 4 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 5);
	f->r.go_back_left = 1;	/* as of a peer that keeps nothing after a gap */
	answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 1, 0);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_FALSE(test, f->e.ackreq);
	roan_requester_hold(&f->r, psn_add(PSN0, 3));
	KUNIT_EXPECT_FALSE(test, roan_requester_repair_is_held(&f->r));
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 1));
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
}

/* Faults for other accesses of the QP end meanwhile, each of which releases it. */
static void held__asks_beside_other_faults(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);
	u32 i;

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	roan_requester_hold(&f->r, psn_add(PSN0, 2));
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
		f->now += MS / 4;
		roan_requester_release(&f->r, f->now);
		KUNIT_ASSERT_EQ(test, roan_requester_next(&f->r, f->now, &f->e), ROAN_NEXT_PACKET);
		roan_requester_hold(&f->r, f->e.psn);
	}
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
}

/* All is acknowledged, so nothing waits for that page any more: the doorbell of the next request counts. */
static void held__ends_with_the_last_request(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_held_2(test);

	ack(f, 4);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	KUNIT_EXPECT_FALSE(test, f->r.held);
}

/* Then the silence of the peer says nothing: the timer does not count. */
static void held__retransmission(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_held_2(test);

	ack(f, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 0);
	KUNIT_EXPECT_TRUE(test, roan_requester_repair_is_held(&f->r));
	roan_requester_release(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
}

/* What this host has dropped is sent again at once. The ACK timeout goes on, no retry is used, and the time is no RTT. */
static void unsent__is_next(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);
	u64 deadline;
	u32 n;

	post(f, ROAN_OP_WRITE, 40 * MTU);
	for (n = 0; n < 8; n++)
		send_one(f);
	f->r.timed_at = f->now;
	f->r.timed_psn = psn_add(PSN0, 6);
	deadline = roan_requester_deadline(&f->r);
	f->now += 1000;
	KUNIT_ASSERT_TRUE(test, roan_requester_unsent(&f->r, psn_add(PSN0, 5)));
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), deadline);
	KUNIT_EXPECT_EQ(test, f->r.since_ackreq, 5);	/* perhaps none of the others asks for an answer */
	KUNIT_EXPECT_EQ(test, f->r.timed_at, 0);
	for (n = 5; n < 9; n++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, n));
		KUNIT_EXPECT_EQ(test, f->e.resend, n < 8);
	}
	KUNIT_EXPECT_EQ(test, f->r.retries_left, rc.retry_cnt);
	KUNIT_EXPECT_FALSE(test, roan_requester_unsent(&f->r, psn_add(PSN0, 9)));
	ack(f, 5);
	KUNIT_EXPECT_FALSE(test, roan_requester_unsent(&f->r, psn_add(PSN0, 5)));
}

/* The packet with AckReq is dropped, and its request fails: what was sent before is sent again, with AckReq. */
static void unsent__of_a_failed_request(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 3 * MTU);
	send_one(f);
	KUNIT_EXPECT_FALSE(test, f->e.ackreq);
	send_one(f);
	f->r.since_ackreq = 0;
	roan_requester_fail(&f->r, 1, ROAN_ST_LOC_PROT_ERR);
	KUNIT_ASSERT_TRUE(test, roan_requester_unsent(&f->r, psn_add(PSN0, 1)));
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, PSN0);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
}

/* The request of a READ that this host has dropped is outstanding no more, one before it is. */
static void unsent__read_is_not_outstanding(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_READ, 2 * MTU);
	post(f, ROAN_OP_READ, 2 * MTU);
	post(f, ROAN_OP_READ, 2 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	KUNIT_ASSERT_TRUE(test, roan_requester_unsent(&f->r, psn_add(PSN0, 2)));
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 1);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 2);
}

static struct kunit_case requester_held_cases[] = {
	KUNIT_CASE(ask__if_no_packet_may_follow),
	KUNIT_CASE(ask__if_the_queue_is_empty),
	KUNIT_CASE(held__earlier_packets_are_acknowledged),
	KUNIT_CASE(held__asks_without_a_retry),
	KUNIT_CASE(held__time_is_not_the_peers),
	KUNIT_CASE(held__acknowledged_meanwhile),
	KUNIT_CASE(held__earlier_packets_are_repaired),
	KUNIT_CASE(held__earlier_messages_are_repaired),
	KUNIT_CASE(held__asks_beside_other_faults),
	KUNIT_CASE(held__ends_with_the_last_request),
	KUNIT_CASE(held__retransmission),
	KUNIT_CASE(unsent__is_next),
	KUNIT_CASE(unsent__of_a_failed_request),
	KUNIT_CASE(unsent__read_is_not_outstanding),
	{}
};

static struct kunit_suite requester_held_suite = {
	.name = "requester_held",
	.test_cases = requester_held_cases,
};

kunit_test_suite(requester_held_suite);
