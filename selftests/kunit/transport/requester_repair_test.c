// SPDX-License-Identifier: GPL-2.0
/*
 * How a sequence NAK is answered: by one packet, to a peer that keeps what it received after it, or by going back. And
 * timeouts: one packet is sent again, and its answer decides about the others.
 */
#include "requester_fixture.h"

/* @n packets of one WRITE are sent, of 40. A round trip was measured. */
static struct req_fixture *sent(struct kunit *test, u32 n)
{
	struct req_fixture *f = req_fixture(test);

	roan_rtt_sample(&f->r.rtt, 1000);
	post(f, ROAN_OP_WRITE, 40 * MTU);
	while (n--)
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	return f;
}

static void expect_packet(struct kunit *test, struct req_fixture *f, u32 n, bool resend)
{
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, n));
	KUNIT_EXPECT_EQ(test, f->e.offset, n * MTU);
	KUNIT_EXPECT_EQ(test, f->e.resend, resend);
}

/* The missing packet is sent again alone, and new ones follow. */
static void repair__is_one_packet(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);

	KUNIT_EXPECT_EQ(test, sequence_nak(f, 3), ROAN_EV_RETRY);
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	expect_packet(test, f, 8, false);
	KUNIT_EXPECT_EQ(test, sequence_nak(f, 3), ROAN_EV_NOTHING);	/* caused by packets sent before the repair */
	expect_packet(test, f, 9, false);
	ack(f, 9);
	KUNIT_EXPECT_TRUE(test, f->r.peer_keeps);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 1);
	KUNIT_EXPECT_EQ(test, f->r.una_psn, psn_add(PSN0, 10));
}

/* The packet after the repaired one is missing, too: the peer drops such packets, and gets everything again. */
static void repair__in_vain_goes_back(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);

	sequence_nak(f, 3);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 8, false);
	sequence_nak(f, 4);
	for (u32 n = 4; n < 9; n++)
		expect_packet(test, f, n, true);
	expect_packet(test, f, 9, false);
	ack(f, 9);
	KUNIT_EXPECT_FALSE(test, f->r.peer_keeps);
	for (u32 n = 10; n < 14; n++)
		expect_packet(test, f, n, false);
	sequence_nak(f, 11);			/* this peer is not tried again */
	expect_packet(test, f, 11, true);
	expect_packet(test, f, 12, true);
}

/* A peer that drops is tried again after some losses, and may have begun to keep packets. */
static void repair__is_tried_again(struct kunit *test)
{
	struct req_fixture *f = sent(test, 12);

	peer_drops(f);
	sequence_nak(f, 3);
	for (u32 n = 3; n < 12; n++)
		expect_packet(test, f, n, true);
	sequence_nak(f, 7);
	expect_packet(test, f, 7, true);
	expect_packet(test, f, 12, false);
	ack(f, 12);
	KUNIT_EXPECT_TRUE(test, f->r.peer_keeps);
}

/* Packets that were lost in a row: one, two, four ... are sent again at a time. */
static void repair__of_a_run_of_losses(struct kunit *test)
{
	struct req_fixture *f = sent(test, 30);

	f->r.peer_keeps = true;
	for (u32 n = 6, packets = 1; packets <= 8; packets *= 2) {
		sequence_nak(f, n);
		for (u32 i = 0; i < packets; i++)
			expect_packet(test, f, n++, true);
	}
	expect_packet(test, f, 30, false);
	ack(f, 30);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 15);
	sequence_nak(f, 31);			/* nothing was sent from there on */
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 15);
	expect_packet(test, f, 31, false);
	expect_packet(test, f, 32, false);
	sequence_nak(f, 31);
	expect_packet(test, f, 31, true);
	expect_packet(test, f, 33, false);
}

/* The missing packet was only delayed: its ACK comes before it is sent again. */
static void repair__is_dropped_if_acknowledged(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);

	sequence_nak(f, 3);
	ack(f, 7);
	expect_packet(test, f, 8, false);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 0);
}

/* A round trip was measured: a lost repair is sent again after two of them, at doubled intervals, and then by the RTO. */
static void repair__lost_is_sent_again(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);
	u64 wait = ROAN_REPAIR_MIN_NS, sent_at;

	sequence_nak(f, 3);
	expect_packet(test, f, 3, true);
	for (int i = 0; i < 3; i++, wait *= 2) {
		sent_at = f->now;
		f->now = roan_requester_deadline(&f->r);
		KUNIT_EXPECT_EQ(test, f->now - sent_at, wait);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
		expect_packet(test, f, 3, true);
		expect_packet(test, f, 8 + i, false);
	}
	ack(f, 3);
	KUNIT_EXPECT_EQ(test, f->r.una_psn, psn_add(PSN0, 4));
}

/* The packets of a run of losses, and nothing else to send: without a NAK the timer goes on to the next ones. */
static void repair__goes_on_without_a_nak(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 12 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 12);
	roan_rtt_sample(&f->r.rtt, 1000);
	f->r.peer_keeps = true;
	sequence_nak(f, 3);
	expect_packet(test, f, 3, true);
	ack(f, 3);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 4, true);
	expect_packet(test, f, 5, true);
	f->r.peer_keeps = false;		/* one that keeps nothing gets everything */
	ack(f, 5);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	KUNIT_EXPECT_EQ(test, send_all(f), 6);
}

/* While the packets were in this host's queue no time counts; the deadline never precedes its start. */
static void repair__wait_begins_when_it_left(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);

	sequence_nak(f, 3);
	expect_packet(test, f, 3, true);
	f->now += 10 * ROAN_REPAIR_MIN_NS;
	roan_requester_restart_timer(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + ROAN_REPAIR_MIN_NS);
	KUNIT_EXPECT_LE(test, roan_requester_slack(&f->r, roan_requester_deadline(&f->r)), ROAN_REPAIR_MIN_NS);
}

/* The packets of a failed work request are not there to be sent again, whatever a NAK names. */
static void repair__not_of_a_failed_one(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 8);
	post(f, ROAN_OP_WRITE, 40 * MTU);
	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 8; i++)
		send_one(f);
	f->r.since_ackreq = 0;		/* as if the last one had AckReq: the failure does not go back */
	roan_requester_fail(&f->r, 1, ROAN_ST_LOC_PROT_ERR);
	sequence_nak(f, 4);
	KUNIT_EXPECT_NE(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->r.repair_left, 0);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
}

/*
 * The peer drops what it received after the gap, and nothing else is sent that would make it say so. Without a measured
 * round trip only the ACK timeout would find that, and without an ACK timeout nothing.
 */
static void repair__not_without_a_deadline(struct kunit *test)
{
	static const u8 timeouts[] = { 10, 0 };
	struct roan_requester_cfg cfg = rc;

	for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
		struct req_fixture *f;

		cfg.timeout = timeouts[i];
		f = req_fixture_with(test, cfg);
		post(f, ROAN_OP_WRITE, 8 * MTU);
		KUNIT_EXPECT_EQ(test, send_all(f), 8);
		if (!cfg.timeout)
			roan_rtt_sample(&f->r.rtt, 1000);
		KUNIT_EXPECT_EQ(test, sequence_nak(f, 3), ROAN_EV_RETRY);
		KUNIT_EXPECT_EQ(test, send_all(f), 5);
	}
}

/* No round trip was measured: the timeout sends the packet again. The repair uses a retry. */
static void repair__lost_waits_for_the_timer(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);

	f->r.rtt.srtt_ns = 0;
	f->r.peer_keeps = true;
	sequence_nak(f, 3);
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_EQ(test, f->r.retries_left, rc.retry_cnt - 1);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_ASSERT_NE(test, f->now, 0);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	expect_packet(test, f, 3, true);
}

static void repair__without_a_retry_left_fails(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);

	f->r.cfg.retry_cnt = 0;
	f->r.retries_left = 0;
	KUNIT_EXPECT_EQ(test, sequence_nak(f, 0), ROAN_EV_FAILED);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_RETRY_EXC_ERR);
}

/* A lost READ request is repeated for the responses that are missing, and counts once as outstanding. */
static void repair__of_a_read_request(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	roan_rtt_sample(&f->r.rtt, 1000);
	post(f, ROAN_OP_READ, 4 * MTU);
	post(f, ROAN_OP_WRITE, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	sequence_nak(f, 0);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, PSN0);
	KUNIT_EXPECT_EQ(test, f->e.len, 4 * MTU);
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 1);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	for (u32 n = 0; n < 4; n++)
		KUNIT_EXPECT_EQ(test, respond(f, n == 0 ? 0x0d : n == 3 ? 0x0f : 0x0e, n, MTU), ROAN_RESP_PLACE);
	ack(f, 4);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 0);
}

/* The work request fails locally while its packet is due to be sent again. */
static void repair__of_a_failed_work_request(struct kunit *test)
{
	struct req_fixture *f = sent(test, 8);

	sequence_nak(f, 3);
	roan_requester_fail(&f->r, 0, ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_NE(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
}

static void timer__probe_then_loss_resends_all(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_probe(test);

	ack(f, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);	/* slow start */
	ack(f, 3);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 4));
}

/* The first late ACK may be the answer to the probe. */
static void timer__second_late_ack_resends_nothing(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_probe(test);

	post(f, ROAN_OP_SEND, 8);
	ack(f, 2);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 3));
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	ack(f, 4);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 5));
	KUNIT_EXPECT_FALSE(test, f->e.resend);
	ack(f, 5);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* The peer has got all but the last packet: it is sent again at once, not after a second timeout. */
static void timer__lost_tail_follows_the_probe(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_probe(test);

	ack(f, 3);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 4));
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	ack(f, 4);
	KUNIT_EXPECT_EQ(test, send_all(f), 0);
}

/* A peer that is slow executes the READ once. */
static void timer__no_second_probe_before_a_read(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_SEND, 3 * MTU);
	post(f, ROAN_OP_READ, MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	ack(f, 2);
	KUNIT_EXPECT_EQ(test, send_all(f), 0);
	KUNIT_EXPECT_EQ(test, respond(f, 0x10, 4, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* Packets dropped by the peer (sequence NAK) and not yet retransmitted are not in flight, also after a late ACK. */
static void timer__dropped_packets_are_not_in_flight(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	for (int i = 0; i < 6; i++)
		post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 6);
	peer_drops(f);
	answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 1, 0);
	send_one(f);
	send_one(f);			/* then the driver half sends nothing for a while */
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	send_one(f);
	ack(f, 2);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);	/* slow start */
	ack(f, 3);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
}

/* Two timeouts: the ACK of the second probe says no more about the tail than that of the first. */
static void timer__second_probe_says_nothing_of_the_tail(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_SEND, 3 * MTU);
	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 3; i++)	/* the tail, with AckReq, is not sent yet */
		send_one(f);
	for (int i = 0; i < 2; i++) {
		f->now = roan_requester_deadline(&f->r);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
		send_one(f);
	}
	ack(f, 2);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
}

/*
 * A requester with two outstanding READs of two packets each. It has the first response and, after a silence, has
 * requested the next one again as a probe.
 */
static struct req_fixture *req_fixture_with_read_probe(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_READ, 2 * MTU);
	send_all(f);
	f->now += 2 * MS;
	KUNIT_EXPECT_EQ(test, respond(f, 0x0d, 1, MTU), ROAN_RESP_PLACE);
	post(f, ROAN_OP_READ, 2 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	return f;
}

/*
 * The response to the repeated request starts with FIRST or ONLY: the first request was lost, all READs are sent again.
 */
static void timer__read_probe_then_loss_resends_all(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_read_probe(test);

	KUNIT_EXPECT_EQ(test, respond(f, 0x10, 2, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 3));
	KUNIT_EXPECT_TRUE(test, f->e.resend);
	f->now += MS;
	respond(f, 0x0d, 3, MTU);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 2 * MS);	/* from before; none from a retransmission */
}

/*
 * The response continues that to the first request, so it was only late. Nothing is sent again, no more than two READs
 * are outstanding, and the late response gives an RTT sample.
 */
static void timer__late_read_response_resends_nothing(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_read_probe(test);
	u64 sent = f->now - 5 * MS;

	post(f, ROAN_OP_READ, MTU);
	roan_requester_take_rtt(&f->r);
	KUNIT_EXPECT_EQ(test, respond(f, 0x0f, 2, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 5));
	KUNIT_EXPECT_FALSE(test, f->e.resend);
	KUNIT_EXPECT_EQ(test, respond(f, 0x0d, 3, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), f->now - sent);
	KUNIT_EXPECT_EQ(test, respond(f, 0x0f, 4, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, 0x10, 5, MTU), ROAN_RESP_PLACE);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* Stale responses restart the RTO but not the ACK timeout. */
static void timer__stale_responses_restart_the_rto(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_read_probe(test);
	u64 timeout = f->r.ack_timer_base_ns + roan_timeout_ns(14);

	f->now += 5 * MS;
	KUNIT_EXPECT_EQ(test, respond(f, 0x0d, 1, MTU), ROAN_RESP_STALE);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 10 * MS);
	f->now += 55 * MS;
	KUNIT_EXPECT_EQ(test, respond(f, 0x0d, 1, MTU), ROAN_RESP_STALE);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), timeout);
}

static void timer__nak_ends_the_probe(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_probe(test);

	answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 1, 0);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
}

static struct kunit_case requester_repair_cases[] = {
	KUNIT_CASE(repair__is_one_packet),
	KUNIT_CASE(repair__in_vain_goes_back),
	KUNIT_CASE(repair__is_tried_again),
	KUNIT_CASE(repair__of_a_run_of_losses),
	KUNIT_CASE(repair__is_dropped_if_acknowledged),
	KUNIT_CASE(repair__lost_is_sent_again),
	KUNIT_CASE(repair__goes_on_without_a_nak),
	KUNIT_CASE(repair__wait_begins_when_it_left),
	KUNIT_CASE(repair__not_of_a_failed_one),
	KUNIT_CASE(repair__not_without_a_deadline),
	KUNIT_CASE(repair__lost_waits_for_the_timer),
	KUNIT_CASE(repair__without_a_retry_left_fails),
	KUNIT_CASE(repair__of_a_read_request),
	KUNIT_CASE(repair__of_a_failed_work_request),
	KUNIT_CASE(timer__probe_then_loss_resends_all),
	KUNIT_CASE(timer__second_late_ack_resends_nothing),
	KUNIT_CASE(timer__lost_tail_follows_the_probe),
	KUNIT_CASE(timer__no_second_probe_before_a_read),
	KUNIT_CASE(timer__dropped_packets_are_not_in_flight),
	KUNIT_CASE(timer__second_probe_says_nothing_of_the_tail),
	KUNIT_CASE(timer__read_probe_then_loss_resends_all),
	KUNIT_CASE(timer__late_read_response_resends_nothing),
	KUNIT_CASE(timer__stale_responses_restart_the_rto),
	KUNIT_CASE(timer__nak_ends_the_probe),
	{}
};

static struct kunit_suite requester_repair_suite = {
	.name = "requester_repair",
	.test_cases = requester_repair_cases,
};

kunit_test_suite(requester_repair_suite);
