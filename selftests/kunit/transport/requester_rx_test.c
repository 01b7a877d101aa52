// SPDX-License-Identifier: GPL-2.0
/* requester_rx.c, rule by rule: ACKs, NAKs, READ responses and timeouts. */
#include "requester_fixture.h"

static void acked__cumulative(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	for (int i = 0; i < 3; i++)
		post(f, ROAN_OP_SEND, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, ack(f, 1), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
}

/* One ACK for a message of maximum length and the next one: their PSNs are too far apart for a simple comparison. */
static void acked__the_longest_message_and_the_next(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);
	u32 n = 1u << 23;

	post(f, ROAN_OP_WRITE, 1u << 31);
	post(f, ROAN_OP_SEND, 8);
	while (f->r.una_psn != psn_add(PSN0, n - 1)) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		ack(f, min(psn_diff(f->e.psn, PSN0) & PSN_MASK, n - 2));
	}
	send_all(f);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, n));
	KUNIT_EXPECT_EQ(test, ack(f, n), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
}

static void acked__outside_is_stale(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, ack(f, 1), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, ack(f, PSN_MASK - 1), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, PSN_MASK, 0), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, f->r.n_stale, 3);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
}

/* The probe after a timeout was sent, and everything is to be sent again: a hole is not requested by itself. */
static void acked__beyond_a_read_is_an_implied_nak(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_READ, 8);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, ack(f, 1), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, ack(f, 1), ROAN_EV_PROGRESS);	/* all is to be sent again already */
	KUNIT_EXPECT_EQ(test, f->r.n_implied_naks, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
}

static void acked__sequence_nak_goes_back_once(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 4 * MTU);
	send_all(f);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 2, 0), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 2, 0), ROAN_EV_NOTHING);
	send_one(f);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, f->e.offset, 2 * MTU);
	KUNIT_EXPECT_TRUE(test, f->e.resend);
	KUNIT_EXPECT_EQ(test, f->e.opcode, 0x07);
}

static void acked__naks_have_their_status(struct kunit *test)
{
	static const struct {
		u8 syndrome, status;
	} naks[] = {
		{ ROAN_AETH_NAK | ROAN_NAK_INVALID_REQUEST, ROAN_ST_REM_INV_REQ_ERR },
		{ ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, ROAN_ST_REM_ACCESS_ERR },
		{ ROAN_AETH_NAK | ROAN_NAK_REMOTE_OPERATION, ROAN_ST_REM_OP_ERR },
		{ ROAN_AETH_NAK | 9, ROAN_ST_BAD_RESP_ERR },
		{ 0x40, ROAN_ST_BAD_RESP_ERR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(naks); i++) {
		bool reserved = naks[i].syndrome == 0x40;
		struct req_fixture *f = req_fixture(test);

		for (int k = 0; k < 3; k++)
			post(f, ROAN_OP_SEND, 8);
		send_all(f);
		KUNIT_EXPECT_EQ(test, answer(f, naks[i].syndrome, 1, 0), ROAN_EV_FAILED);
		if (!reserved)
			KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
		KUNIT_EXPECT_EQ(test, retired(f), naks[i].status);
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	}
}

static void response__acknowledges_what_is_before(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_READ, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, respond(f, 0x10, 1, 8), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

static void response__must_be_well_formed(struct kunit *test)
{
	static const struct {
		u8 op, opcode;
		u16 len;
	} bad[] = {
		{ ROAN_OP_READ, 0x0d, MTU - 4 },	/* too short */
		{ ROAN_OP_READ, 0x0d, MTU + 4 },	/* too long */
		{ ROAN_OP_READ, 0x10, MTU },		/* ends too early */
		{ ROAN_OP_READ, 0x12, 0 },		/* opcode does not match the request */
		{ ROAN_OP_FETCH_ADD, 0x10, 8 },
		{ ROAN_OP_FLUSH, 0x10, 4 },
		{ ROAN_OP_SEND, 0x10, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct req_fixture *f = req_fixture(test);

		post(f, bad[i].op, 2 * MTU);
		send_all(f);
		KUNIT_EXPECT_EQ(test, respond(f, bad[i].opcode, 0, bad[i].len), ROAN_RESP_FAILED);
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_BAD_RESP_ERR);
	}
}

static void timer__retries_run_out(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, send_all(f), 1);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
		f->now += roan_timeout_ns(10);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), i < 2 ? ROAN_EV_RETRY : ROAN_EV_FAILED);
	}
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_RETRY_EXC_ERR);
}

static void timer__progress_renews_the_budget(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	f->now += roan_timeout_ns(10);
	roan_requester_timer(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, f->r.retries_left, 1);
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, f->r.retries_left, 2);
}

static void timer__code_0_is_never(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.timeout = 0;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), 0);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, U64_MAX), ROAN_EV_NOTHING);
}

static void rtt__from_request_to_its_response(struct kunit *test)
{
	struct req_fixture *f = slow_req_fixture(test);

	post(f, ROAN_OP_SEND, 2 * MTU);
	post(f, ROAN_OP_READ, 2 * MTU);
	send_one(f);
	f->now += 5 * MS;
	send_one(f);
	f->now += MS;
	send_one(f);
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
	f->now += MS;
	ack(f, 1);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 2 * MS);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, 2 * MS);

	/* The first READ left while the SEND was timed, so it gives no sample. The next READ does. */
	respond(f, 0x0d, 2, MTU);
	respond(f, 0x0f, 3, MTU);
	post(f, ROAN_OP_READ, 2 * MTU);
	send_one(f);
	f->now += 3 * MS;
	respond(f, 0x0d, 4, MTU);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 3 * MS);
}

static void rtt__not_of_a_retransmission(struct kunit *test)
{
	struct req_fixture *f = slow_req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	f->now += roan_timeout_ns(14);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	send_all(f);
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, 0);
}

/* The ACK arrives before the recorded send time (early departure): no RTT sample. */
static void rtt__not_if_sent_early(struct kunit *test)
{
	struct req_fixture *f = slow_req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	f->now += 5 * MS;
	send_all(f);
	f->now -= MS;
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, 0);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	f->now += MS;
	ack(f, 1);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), MS);
}

static void timer__rto_costs_no_retry(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);
	u64 began = f->now;

	post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 4; i++) {	/* 6, 12, 24 ms; 48 > timeout */
		KUNIT_EXPECT_EQ(test, send_all(f), 1);
		KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), min(f->now + (6 * MS << i), began + roan_timeout_ns(14)));
		f->now = roan_requester_deadline(&f->r);
		KUNIT_EXPECT_EQ(test, f->r.retries_left, 2);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	}
	KUNIT_EXPECT_EQ(test, f->r.n_rto, 3);
	KUNIT_EXPECT_EQ(test, f->r.n_timeouts, 1);
	KUNIT_EXPECT_EQ(test, f->r.retries_left, 1);
}

/* Small packets arrive, and the large one before them never does: each early resend is answered by a NAK. */
static void timer__naks_of_early_resends_cost_no_retry(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);
	enum roan_event event = ROAN_EV_RETRY;
	u64 began = f->now;
	u32 rounds;

	post(f, ROAN_OP_SEND, MTU);
	post(f, ROAN_OP_SEND, 8);
	for (rounds = 0; rounds < 30 && event == ROAN_EV_RETRY; rounds++) {
		send_all(f);
		if (rounds)
			KUNIT_EXPECT_NE(test, sequence_nak(f, 1), ROAN_EV_FAILED);
		send_all(f);
		f->now = roan_requester_deadline(&f->r);
		event = roan_requester_timer(&f->r, f->now);
	}
	KUNIT_EXPECT_EQ(test, event, ROAN_EV_FAILED);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_RETRY_EXC_ERR);
	KUNIT_EXPECT_GE(test, f->now - began, f->r.cfg.retry_cnt * roan_timeout_ns(14));
}

static void timer__rto_runs_from_the_last_packet(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_SEND, 2 * MTU);
	send_one(f);
	f->now += 5 * MS;	/* paced */
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
	send_one(f);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 6 * MS);
	f->now += 6 * MS;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	/* Nothing is retransmitted yet, so the timer does not count a second loss. */
	f->now += 20 * MS;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
}

/* The backoff lasts until an RTT sample. A retransmitted packet gives none (Karn). */
static void timer__rtt_sample_ends_the_backoff(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_SEND, 2 * MTU);
	send_all(f);
	f->now = roan_requester_deadline(&f->r);
	roan_requester_timer(&f->r, f->now);
	send_all(f);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 12 * MS);
	ack(f, 1);
	f->r.start_window = f->r.cfg.psn_window;	/* slow start is over: not every packet asks for an ACK */
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 12 * MS);
	ack(f, 2);
	post(f, ROAN_OP_SEND, 2 * MTU);
	send_all(f);
	ack(f, 3);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 12 * MS);
	f->now += 2 * MS;
	ack(f, 4);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + 5 * MS);
}

/* True if an ACK is expected soon, so that posting needs no doorbell. Decided by the longest recent wait. */
static void answer_expected__by_the_longest_recent_wait(struct kunit *test)
{
	struct roan_requester_cfg never = rc;
	struct req_fixture *f = req_fixture(test);
	u32 n = 0, i;

	post(f, ROAN_OP_SEND, 4 * MTU);
	send_all(f);
	KUNIT_EXPECT_FALSE(test, roan_requester_answer_expected(&f->r));		/* no measurement yet */
	for (; n < 3; n++) {
		f->now += n ? 10 : 3 * MS;
		ack(f, n);
		/* the ACKs of one window show only one wait */
		KUNIT_EXPECT_FALSE(test, roan_requester_answer_expected(&f->r));
	}
	for (i = 0; i < 200; i++, n++) {
		post(f, ROAN_OP_SEND, 8);
		send_all(f);
		f->now += MS / 10;
		ack(f, n);
		retired(f);
	}
	KUNIT_EXPECT_TRUE(test, roan_requester_answer_expected(&f->r));		/* recent waits were short */
	never.timeout = 0;
	roan_requester_update_cfg(&f->r, &never);
	KUNIT_EXPECT_FALSE(test, roan_requester_answer_expected(&f->r));		/* no ACK timeout */
	answer(f, ROAN_AETH_RNR | 1, n, 0);
	KUNIT_EXPECT_TRUE(test, roan_requester_answer_expected(&f->r));
}

static struct kunit_case requester_ack_cases[] = {
	KUNIT_CASE(acked__cumulative),
	KUNIT_CASE(acked__the_longest_message_and_the_next),
	KUNIT_CASE(acked__outside_is_stale),
	KUNIT_CASE(acked__beyond_a_read_is_an_implied_nak),
	KUNIT_CASE(acked__sequence_nak_goes_back_once),
	KUNIT_CASE(acked__naks_have_their_status),
	KUNIT_CASE(response__acknowledges_what_is_before),
	KUNIT_CASE(response__must_be_well_formed),
	KUNIT_CASE(timer__retries_run_out),
	KUNIT_CASE(timer__progress_renews_the_budget),
	KUNIT_CASE(timer__code_0_is_never),
	KUNIT_CASE(rtt__from_request_to_its_response),
	KUNIT_CASE(rtt__not_of_a_retransmission),
	KUNIT_CASE(rtt__not_if_sent_early),
	KUNIT_CASE(timer__rto_costs_no_retry),
	KUNIT_CASE(timer__naks_of_early_resends_cost_no_retry),
	KUNIT_CASE(timer__rto_runs_from_the_last_packet),
	KUNIT_CASE(timer__rtt_sample_ends_the_backoff),
	KUNIT_CASE(answer_expected__by_the_longest_recent_wait),
	{}
};

static struct kunit_suite requester_ack_suite = {
	.name = "requester_rx",
	.test_cases = requester_ack_cases,
};

kunit_test_suite(requester_ack_suite);
