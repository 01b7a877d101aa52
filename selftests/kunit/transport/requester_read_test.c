// SPDX-License-Identifier: GPL-2.0
/*
 * READs. Long ones go in pieces. Responses that arrive after a gap are placed at once, completed in order, and only the
 * hole is requested again.
 */
#include "requester_fixture.h"

enum { FIRST = 0x0d, MIDDLE, LAST, ONLY };	/* opcodes of READ responses */

/* READs of 4 packets each are sent. */
static struct req_fixture *reads(struct kunit *test, u32 n)
{
	struct req_fixture *f = req_fixture(test);

	while (n--)
		post(f, ROAN_OP_READ, 4 * MTU);
	send_all(f);
	return f;
}

/* The next packet is a request for @len responses from number @n on, @offset packets into its READ. */
static void expect_hole(struct kunit *test, struct req_fixture *f, u32 n, u32 offset, u32 len)
{
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, n));
	KUNIT_EXPECT_EQ(test, f->e.offset, offset * MTU);
	KUNIT_EXPECT_EQ(test, f->e.len, len * MTU);
	KUNIT_EXPECT_EQ(test, f->e.npsn, len);
	KUNIT_EXPECT_TRUE(test, f->e.resend);
}

static void read__hole_is_requested_alone(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	KUNIT_EXPECT_EQ(test, respond(f, FIRST, 0, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 2, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);	/* the peer is still sending responses */
	KUNIT_EXPECT_EQ(test, respond(f, LAST, 3, MTU), ROAN_RESP_PLACE);
	expect_hole(test, f, 1, 1, 1);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	KUNIT_EXPECT_EQ(test, respond(f, LAST, 3, MTU), ROAN_RESP_STALE);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
	KUNIT_EXPECT_EQ(test, respond(f, ONLY, 1, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->r.una_psn, psn_add(PSN0, 4));
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 0);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 1);
	KUNIT_EXPECT_EQ(test, f->r.n_implied_naks, 1);
}

/* Each hole of two READs, the second of which is complete first; one of each is requested at a time. */
static void read__completes_in_order(struct kunit *test)
{
	struct req_fixture *f = reads(test, 2);

	respond(f, MIDDLE, 1, MTU);
	respond(f, LAST, 3, MTU);
	respond(f, FIRST, 4, MTU);
	respond(f, LAST, 7, MTU);
	expect_hole(test, f, 0, 0, 1);
	expect_hole(test, f, 5, 1, 2);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	respond(f, FIRST, 5, MTU);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);	/* the other one is on its way */
	respond(f, LAST, 6, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
	respond(f, ONLY, 0, MTU);
	expect_hole(test, f, 2, 2, 1);
	respond(f, ONLY, 2, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 3);
	KUNIT_EXPECT_EQ(test, f->r.n_implied_naks, 1);		/* once for one loss */
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 0);
	KUNIT_EXPECT_FALSE(test, f->r.reads.any);
}

/* Of a hole that was requested again the first response is lost once more: the later one shows it. */
static void read__lost_twice(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	respond(f, LAST, 3, MTU);
	expect_hole(test, f, 0, 0, 3);
	respond(f, LAST, 2, MTU);
	expect_hole(test, f, 0, 0, 2);
	respond(f, FIRST, 0, MTU);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	respond(f, LAST, 1, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* A READ that is sent for the first time while another has a hole: a hole of its own is requested at once. */
static void read__new_behind_a_hole(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	respond(f, FIRST, 0, MTU);
	respond(f, LAST, 3, MTU);
	expect_hole(test, f, 1, 1, 2);
	post(f, ROAN_OP_READ, 4 * MTU);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	respond(f, FIRST, 4, MTU);
	ack(f, 8);
	expect_hole(test, f, 5, 1, 3);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
}

/*
 * A NAK that refuses a request overtakes the responses to a READ before it, as it can by another path. The peer's QP
 * has failed and repeats nothing, so the NAK counts once they are here.
 */
static void read__refusal_that_comes_first_is_remembered(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_WRITE, 8);
	send_all(f);
	respond(f, FIRST, 0, MTU);
	answer(f, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, 5, 0);
	respond(f, MIDDLE, 1, MTU);
	respond(f, MIDDLE, 2, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
	respond(f, LAST, 3, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
}

/* A response to the READ was lost. Its repetition is not answered, so the first timeout ends it. */
static void read__refusal_without_a_response_ends_it(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);
	u64 start = f->now;
	int status;

	post(f, ROAN_OP_WRITE, 8);
	send_all(f);
	respond(f, FIRST, 0, MTU);
	answer(f, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, 4, 0);
	while ((status = retired(f)) == -1 && f->now < start + 2 * roan_timeout_ns(f->r.cfg.timeout)) {
		f->now = roan_requester_deadline(&f->r);
		roan_requester_timer(&f->r, f->now);
		send_all(f);
	}
	KUNIT_EXPECT_EQ(test, status, ROAN_ST_RETRY_EXC_ERR);
	KUNIT_EXPECT_LE(test, f->now - start, roan_timeout_ns(f->r.cfg.timeout));
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
}

static void dropped(struct req_fixture *f, u8 opcode, u8 syndrome, u32 n)
{
	struct roan_pkt pkt = {
		.info = roan_opcode(opcode), .opcode = opcode, .psn = psn_add(PSN0, n), .syndrome = syndrome,
	};

	roan_requester_dropped(&f->r, &pkt);
}

/* A response waits for a page fault, and what comes meanwhile is dropped: the peer repeats it, if it still can. */
static void read__refusal_during_a_page_fault_is_remembered(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);
	u32 i;

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_WRITE, 8);
	send_all(f);
	for (i = 0; i < 2; i++) {
		respond(f, FIRST, i, MTU);
		dropped(f, 0x11, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 5);
		dropped(f, 0x11, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, 4);
		dropped(f, 0x0e, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, 1);	/* has no AETH, so no syndrome */
		roan_requester_retransmit(&f->r, f->now);
		KUNIT_EXPECT_EQ(test, retired(f), -1);
		KUNIT_EXPECT_GT(test, send_all(f), 0);
	}
	dropped(f, 0x11, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, 5);
	roan_requester_retransmit(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_RETRY_EXC_ERR);	/* the rest of the READ never comes */
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
}

/* The same; the refusal is of the READ itself, or only what needs no response is before the refused request. */
static void read__refusal_during_a_page_fault_has_its_status(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	send_all(f);
	dropped(f, 0x11, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, 2);
	roan_requester_retransmit(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_REM_ACCESS_ERR);

	f = req_fixture(test);
	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_READ, 8);
	send_all(f);
	dropped(f, 0x11, ROAN_AETH_NAK | ROAN_NAK_INVALID_REQUEST, 1);
	roan_requester_retransmit(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_REM_INV_REQ_ERR);
}

/* What an ACK or a response says of other requests counts once the hole before them is filled. */
static void read__later_ack_is_remembered(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_FETCH_ADD, 8);
	send_all(f);
	respond(f, FIRST, 0, MTU);
	respond(f, MIDDLE, 2, MTU);
	KUNIT_EXPECT_EQ(test, ack(f, 4), ROAN_EV_REPAIR);
	KUNIT_EXPECT_EQ(test, respond(f, 0x12, 5, 0), ROAN_RESP_PLACE);
	expect_hole(test, f, 1, 1, 1);
	respond(f, ONLY, 1, MTU);
	expect_hole(test, f, 3, 3, 1);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
	respond(f, ONLY, 3, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_FALSE(test, roan_requester_outstanding(&f->r));
}

/* The request for the hole is lost: the RTO requests all from there on, and what is placed is not placed again. */
static void read__lost_request_for_a_hole(struct kunit *test)
{
	struct req_fixture *f = reads(test, 2);

	respond(f, FIRST, 0, MTU);
	respond(f, LAST, 3, MTU);
	respond(f, MIDDLE, 5, MTU);
	expect_hole(test, f, 1, 1, 2);
	f->r.repair_backoff = 3;	/* it was requested again already, without an answer */
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	expect_hole(test, f, 1, 1, 3);
	KUNIT_EXPECT_EQ(test, respond(f, FIRST, 1, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, f->r.reads.hole_left, 0);		/* the rest is requested */
	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 2, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, respond(f, LAST, 3, MTU), ROAN_RESP_STALE);
	expect_hole(test, f, 4, 0, 4);
	KUNIT_EXPECT_EQ(test, respond(f, FIRST, 4, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 5, MTU), ROAN_RESP_STALE);
	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 6, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, LAST, 7, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* A response whose length is not that of its position fails the QP, early or not; so does one to a WRITE. */
static void read__malformed_early_response(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 2, MTU - 1), ROAN_RESP_FAILED);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_BAD_RESP_ERR);

	f = reads(test, 1);
	post(f, ROAN_OP_WRITE, MTU);
	send_all(f);
	KUNIT_EXPECT_EQ(test, respond(f, ONLY, 4, MTU), ROAN_RESP_FAILED);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_BAD_RESP_ERR);
}

/* A work request after the READ fails locally: what is missing is requested again at once, all of it. */
static void read__local_failure_behind_a_hole(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	post(f, ROAN_OP_WRITE, MTU);
	respond(f, LAST, 3, MTU);
	roan_requester_fail(&f->r, 1, ROAN_ST_LOC_PROT_ERR);
	expect_hole(test, f, 0, 0, 4);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	for (u32 n = 0; n < 4; n++)
		KUNIT_EXPECT_EQ(test, respond(f, n ? n == 3 ? LAST : MIDDLE : FIRST, n, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
}

/* A part of a hole is lost again: it is requested once the last response to the request for the hole is here. */
static void read__waits_for_the_end_of_a_hole(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_READ, 8 * MTU);
	send_all(f);
	respond(f, LAST, 7, MTU);
	expect_hole(test, f, 0, 0, 7);
	respond(f, FIRST, 0, MTU);
	respond(f, MIDDLE, 3, MTU);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	respond(f, MIDDLE, 4, MTU);
	respond(f, LAST, 6, MTU);
	expect_hole(test, f, 1, 1, 2);
	respond(f, FIRST, 1, MTU);
	respond(f, LAST, 2, MTU);
	expect_hole(test, f, 5, 5, 1);
	respond(f, ONLY, 5, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* A slow peer is still sending responses: neither timeout counts, however long the hole before them stays. */
static void read__early_responses_postpone_timeouts(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);
	u64 deadline = roan_requester_deadline(&f->r);

	f->now = deadline - 1;
	respond(f, MIDDLE, 1, MTU);
	KUNIT_EXPECT_GT(test, roan_requester_deadline(&f->r), deadline + 1000);
	f->now = deadline;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
}

/* The time of a repair is no round trip. */
static void read__rtt_samples(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	f->now += 1000;
	ack(f, 4);
	expect_hole(test, f, 0, 0, 4);
	f->now += 50000;
	for (u32 n = 0; n < 4; n++)
		respond(f, n ? n == 3 ? LAST : MIDDLE : FIRST, n, MTU);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* The response to a request for a hole is lost: after two round trips it is requested again, three times at most. */
static void read__lost_response_of_a_hole(struct kunit *test)
{
	struct req_fixture *f = reads(test, 1);
	u32 i;

	for (i = 0; i < 10; i++)
		roan_rtt_sample(&f->r.rtt, 20000);
	respond(f, FIRST, 0, MTU);
	respond(f, LAST, 3, MTU);
	expect_hole(test, f, 1, 1, 2);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + (ROAN_REPAIR_MIN_NS << i));
		f->now = roan_requester_deadline(&f->r);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
		expect_hole(test, f, 1, 1, 2);
	}
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);	/* the RTO */
	expect_hole(test, f, 1, 1, 3);
	respond(f, FIRST, 1, MTU);
	respond(f, MIDDLE, 2, MTU);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* Reordering: response 1 of a READ of 4 comes after 3, and the request for it alone was needless. */
static void response_1_is_late(struct kunit *test, struct req_fixture *f)
{
	respond(f, FIRST, 0, MTU);
	respond(f, MIDDLE, 2, MTU);
	respond(f, LAST, 3, MTU);
	expect_hole(test, f, 1, 1, 1);
	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 1, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, ONLY, 1, MTU), ROAN_RESP_STALE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* Then what is missing may be late, too, and is not requested again when it comes within the time. */
static void read__late_response_is_waited_for(struct kunit *test)
{
	struct req_fixture *f = reads(test, 2);
	u64 lost_at;

	response_1_is_late(test, f);
	respond(f, FIRST, 4, MTU);
	respond(f, LAST, 7, MTU);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	lost_at = roan_requester_reorder_deadline(&f->r);
	KUNIT_EXPECT_GT(test, lost_at, f->now);
	KUNIT_EXPECT_LE(test, lost_at, f->now + NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), lost_at);
	f->now = lost_at - 1;
	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 5, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, respond(f, MIDDLE, 6, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 1);
	KUNIT_EXPECT_EQ(test, roan_requester_reorder_deadline(&f->r), U64_MAX);
}

static void read__late_response_is_lost_in_the_end(struct kunit *test)
{
	struct req_fixture *f = reads(test, 2);

	response_1_is_late(test, f);
	respond(f, FIRST, 4, MTU);
	respond(f, LAST, 7, MTU);
	f->now = roan_requester_reorder_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_hole(test, f, 5, 1, 2);
	KUNIT_EXPECT_EQ(test, respond(f, FIRST, 5, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, LAST, 6, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* Without reordering for some losses nothing is waited for any more. */
static void read__patience_ends(struct kunit *test)
{
	struct req_fixture *f = reads(test, 2);
	u32 i;

	response_1_is_late(test, f);
	KUNIT_EXPECT_EQ(test, f->r.reads.patience, 1);
	for (i = 0; i < 16; i++) {
		post(f, ROAN_OP_READ, 4 * MTU);
		send_all(f);
		respond(f, FIRST, 4 + 4 * i, MTU);
		respond(f, LAST, 7 + 4 * i, MTU);
		if (roan_requester_reorder_deadline(&f->r) != U64_MAX)
			f->now = roan_requester_reorder_deadline(&f->r);
		roan_requester_timer(&f->r, f->now);
		expect_hole(test, f, 5 + 4 * i, 1, 2);
		respond(f, FIRST, 5 + 4 * i, MTU);
		respond(f, LAST, 6 + 4 * i, MTU);
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, f->r.reads.patience, 0);
}

static void next__long_read_goes_in_pieces_of_a_window(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.psn_window = 4;
	cfg.max_rd_atomic = 1;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_READ, 5 * MTU + 1);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.npsn, 4);
	KUNIT_EXPECT_EQ(test, f->e.len, 4 * MTU);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	for (u32 i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, respond(f, i == 0 ? 0x0d : i == 3 ? 0x0f : 0x0e, i, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.offset, 4 * MTU);
	KUNIT_EXPECT_EQ(test, f->e.len, MTU + 1);
	KUNIT_EXPECT_EQ(test, respond(f, 0x0d, 4, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, 0x0f, 5, 1), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
}

/* The third piece is requested while the responses of the second are under way. */
static void next__pieces_of_a_long_read_overlap(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.psn_window = 4;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_READ, 6 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	KUNIT_EXPECT_EQ(test, f->e.npsn, 2);
	KUNIT_EXPECT_EQ(test, respond(f, 0x0d, 0, MTU), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, respond(f, 0x0f, 1, MTU), ROAN_RESP_PLACE);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.offset, 4 * MTU);
}

/* Slow start, and a READ that leaves half of the window to others: one request. */
static void next__first_read_is_one_request(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.psn_window = 64;
	f = req_fixture_with(test, cfg);
	f->r.start_window = 16;
	post(f, ROAN_OP_READ, 64 * MTU);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.npsn, 64);
	cfg.psn_window = 4;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_READ, 2 * MTU);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.npsn, 2);
}

static struct kunit_case requester_read_cases[] = {
	KUNIT_CASE(read__hole_is_requested_alone),
	KUNIT_CASE(read__completes_in_order),
	KUNIT_CASE(read__lost_twice),
	KUNIT_CASE(read__new_behind_a_hole),
	KUNIT_CASE(read__refusal_that_comes_first_is_remembered),
	KUNIT_CASE(read__refusal_without_a_response_ends_it),
	KUNIT_CASE(read__refusal_during_a_page_fault_is_remembered),
	KUNIT_CASE(read__refusal_during_a_page_fault_has_its_status),
	KUNIT_CASE(read__later_ack_is_remembered),
	KUNIT_CASE(read__lost_request_for_a_hole),
	KUNIT_CASE(read__malformed_early_response),
	KUNIT_CASE(read__local_failure_behind_a_hole),
	KUNIT_CASE(read__waits_for_the_end_of_a_hole),
	KUNIT_CASE(read__early_responses_postpone_timeouts),
	KUNIT_CASE(read__rtt_samples),
	KUNIT_CASE(read__lost_response_of_a_hole),
	KUNIT_CASE(read__late_response_is_waited_for),
	KUNIT_CASE(read__late_response_is_lost_in_the_end),
	KUNIT_CASE(read__patience_ends),
	KUNIT_CASE(next__long_read_goes_in_pieces_of_a_window),
	KUNIT_CASE(next__pieces_of_a_long_read_overlap),
	KUNIT_CASE(next__first_read_is_one_request),
	{}
};

static struct kunit_suite requester_read_suite = {
	.name = "requester_read",
	.test_cases = requester_read_cases,
};

kunit_test_suite(requester_read_suite);
