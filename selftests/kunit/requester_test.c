// SPDX-License-Identifier: GPL-2.0
/* requester.c and requester_ack.c, rule by rule. Long runs over a bad link are the simulator's (selftests/unit/sim.c). */
#include <kunit/test.h>
#include "../../kernel/transport/requester.h"

#define SLOTS	16
#define MTU	256
#define PSN0	0xfffffe	/* everything here crosses the wrap */

struct bench {
	struct roan_requester r;
	struct roan_work work[SLOTS];
	struct roan_emit e;
	u64 now;
};

static struct bench *bench_with(struct kunit *test, struct roan_requester_cfg cfg)
{
	struct bench *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	b->r.work = b->work;
	b->r.mask = SLOTS - 1;
	b->now = 1000;
	roan_requester_reset(&b->r, &cfg);
	return b;
}

static const struct roan_requester_cfg rc = {
	.transport = ROAN_TP_RC, .mtu_shift = 8, .retry_cnt = 2, .rnr_retry = 2, .timeout = 10, .max_rd_atomic = 2,
	.sq_psn = PSN0, .window = 64,
};

static struct bench *bench(struct kunit *test)
{
	return bench_with(test, rc);
}

static struct roan_work *post(struct bench *b, u8 op, u32 len)
{
	u32 index;
	struct roan_work *w = roan_requester_slot(&b->r, &index);

	if (w) {
		memset(w, 0, sizeof(*w));
		w->op = op;
		w->len = len;
		roan_requester_queued(&b->r);
	}
	return w;
}

static enum roan_next send_one(struct bench *b)
{
	enum roan_next next = roan_requester_next(&b->r, b->now, &b->e);

	if (next == ROAN_NEXT_PACKET)
		roan_requester_sent(&b->r, &b->e, b->now);
	return next;
}

static u32 send_all(struct bench *b)
{
	u32 n = 0;

	while (send_one(b) == ROAN_NEXT_PACKET)
		n++;
	return n;
}

static enum roan_event answer(struct bench *b, u8 syndrome, u32 n, u32 msn)
{
	const struct roan_pkt pkt = {
		.info = roan_opcode(0x11), .opcode = 0x11, .psn = psn_add(PSN0, n), .syndrome = syndrome, .msn = msn,
	};

	return roan_requester_acked(&b->r, &pkt, b->now);
}

static enum roan_event ack(struct bench *b, u32 n)
{
	return answer(b, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, n, 0);
}

static enum roan_take respond(struct bench *b, u8 opcode, u32 n, u16 len)
{
	const struct roan_pkt pkt = {
		.info = roan_opcode(opcode), .opcode = opcode, .psn = psn_add(PSN0, n), .payload_len = len,
	};
	u32 index, offset;
	enum roan_take take = roan_requester_response(&b->r, &pkt, b->now, &index, &offset);

	if (take == ROAN_TAKE_PLACE)
		roan_requester_placed(&b->r, &pkt, b->now);
	return take;
}

/* The status of the next finished work; -1: none. */
static int retired(struct bench *b)
{
	enum roan_status status;
	u32 index;

	return roan_requester_retired(&b->r, &index, &status) ? (int)status : -1;
}

static void slot__full_queue_has_none(struct kunit *test)
{
	struct bench *b = bench(test);

	for (int i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_NOT_NULL(test, post(b, ROAN_OP_SEND, 1));
	KUNIT_EXPECT_NULL(test, post(b, ROAN_OP_SEND, 1));
}

static void next__segments_of_a_message(struct kunit *test)
{
	static const u8 opcodes[] = { 0x00, 0x01, 0x02 };
	static const u32 lens[] = { MTU, MTU, 88 };
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 600);
	for (int i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, b->e.opcode, opcodes[i]);
		KUNIT_EXPECT_EQ(test, b->e.len, lens[i]);
		KUNIT_EXPECT_EQ(test, b->e.offset, i * MTU);
		KUNIT_EXPECT_EQ(test, b->e.psn, psn_add(PSN0, i));
		KUNIT_EXPECT_EQ(test, b->e.ackreq, i == 2);
	}
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_IDLE);
}

static void next__empty_message_takes_a_packet(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_WRITE, 0);
	KUNIT_ASSERT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, b->e.opcode, 0x0a);
	KUNIT_EXPECT_EQ(test, b->e.len, 0);
}

static void next__window_bounds_the_span_and_asks(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct bench *b;

	cfg.window = 4;
	b = bench_with(test, cfg);
	post(b, ROAN_OP_WRITE, 20 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(b), 4);
	KUNIT_EXPECT_TRUE(test, b->e.ackreq);
	ack(b, 1);
	KUNIT_EXPECT_EQ(test, send_all(b), 2);
}

static void next__long_read_goes_in_pieces(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct bench *b;

	cfg.window = 4;
	b = bench_with(test, cfg);
	post(b, ROAN_OP_READ, 5 * MTU + 1);
	KUNIT_ASSERT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, b->e.npsn, 4);
	KUNIT_EXPECT_EQ(test, b->e.len, 4 * MTU);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_WAIT);
	for (u32 i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, respond(b, i == 0 ? 0x0d : i == 3 ? 0x0f : 0x0e, i, MTU), ROAN_TAKE_PLACE);
	KUNIT_EXPECT_EQ(test, retired(b), -1);
	KUNIT_ASSERT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, b->e.offset, 4 * MTU);
	KUNIT_EXPECT_EQ(test, b->e.len, MTU + 1);
	KUNIT_EXPECT_EQ(test, respond(b, 0x0d, 4, MTU), ROAN_TAKE_PLACE);
	KUNIT_EXPECT_EQ(test, respond(b, 0x0f, 5, 1), ROAN_TAKE_PLACE);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
}

static void next__rd_atomic_is_a_limit(struct kunit *test)
{
	struct bench *b = bench(test);

	for (int i = 0; i < 3; i++)
		post(b, ROAN_OP_FETCH_ADD, 8);
	KUNIT_EXPECT_EQ(test, send_all(b), 2);
	KUNIT_EXPECT_EQ(test, respond(b, 0x12, 0, 0), ROAN_TAKE_PLACE);
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
}

static void next__no_rd_atomic_fails_the_work(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct bench *b;

	cfg.max_rd_atomic = 0;
	b = bench_with(test, cfg);
	post(b, ROAN_OP_READ, 8);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_LOC_QP_OP_ERR);
}

static void next__fence_waits_for_reads(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_READ, 8);
	post(b, ROAN_OP_SEND, 8)->fence = true;
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
	respond(b, 0x10, 0, 8);
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
}

static void next__work_before_a_fence_asks_for_the_ack(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_READ, 8);
	post(b, ROAN_OP_SEND, 8);
	post(b, ROAN_OP_SEND, 8)->fence = true;
	KUNIT_EXPECT_EQ(test, send_all(b), 2);
	KUNIT_EXPECT_TRUE(test, b->r.since_ackreq == 0);
}

static void next__only_the_last_of_a_batch_asks(struct kunit *test)
{
	struct bench *b = bench(test);

	for (int i = 0; i < 3; i++)
		post(b, ROAN_OP_SEND, 8);
	for (int i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, b->e.ackreq, i == 2);
	}
}

static void next__credits_bound_and_probe(struct kunit *test)
{
	struct bench *b = bench(test);

	for (int i = 0; i < 4; i++)
		post(b, ROAN_OP_SEND, 8);
	send_one(b);
	answer(b, ROAN_AETH_ACK | 1, 0, 1);		/* one more */
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
	KUNIT_EXPECT_TRUE(test, b->e.ackreq);
	answer(b, ROAN_AETH_ACK | 0, 1, 2);		/* none; nothing outstanding: a probe */
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
	KUNIT_EXPECT_TRUE(test, b->e.ackreq);
	ack(b, 2);					/* no flow control any more */
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
}

/* Credits appear between two messages: the first did not ask for an ACK, the second may not go. */
static void next__credits_that_shrink_do_not_strand_a_tail(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8)->solicited = true;
	for (int i = 0; i < 3; i++)
		post(b, ROAN_OP_SEND, 8);
	send_one(b);
	send_one(b);
	KUNIT_EXPECT_FALSE(test, b->e.ackreq);
	answer(b, ROAN_AETH_ACK | 0, 0, 1);
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
	KUNIT_EXPECT_TRUE(test, b->e.resend);
	KUNIT_EXPECT_TRUE(test, b->e.ackreq);
}

static void local__in_order_and_without_a_psn(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	post(b, ROAN_OP_LOCAL, 0);
	post(b, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_LOCAL);
	roan_requester_local_done(&b->r, b->e.index);
	KUNIT_EXPECT_EQ(test, retired(b), -1);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, b->e.psn, psn_add(PSN0, 1));
	ack(b, 1);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(b), -1);
}

static void fail__earlier_succeeds_later_is_flushed(struct kunit *test)
{
	struct bench *b = bench(test);

	for (int i = 0; i < 3; i++)
		post(b, ROAN_OP_SEND, 8);
	send_one(b);
	KUNIT_EXPECT_FALSE(test, b->e.ackreq);
	roan_requester_fail(&b->r, 1, ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, send_all(b), 1);		/* again, now asking */
	KUNIT_EXPECT_TRUE(test, b->e.ackreq);
	ack(b, 0);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_WR_FLUSH_ERR);
}

static void flush__everything_retires(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	post(b, ROAN_OP_SEND, 8);
	send_one(b);
	roan_requester_flush(&b->r);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&b->r), 0);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_WR_FLUSH_ERR);
}

static void drain__finishes_the_message_and_stops(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 2 * MTU);
	post(b, ROAN_OP_SEND, 8);
	send_one(b);
	roan_requester_drain(&b->r, true, b->now);
	KUNIT_EXPECT_FALSE(test, roan_requester_drained(&b->r));
	send_all(b);
	KUNIT_EXPECT_TRUE(test, b->e.ackreq);
	KUNIT_EXPECT_FALSE(test, roan_requester_drained(&b->r));
	ack(b, 1);
	KUNIT_EXPECT_TRUE(test, roan_requester_drained(&b->r));
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_WAIT);
	roan_requester_drain(&b->r, false, b->now);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_PACKET);
}

static void uc__sent_is_done(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct bench *b;

	cfg.transport = ROAN_TP_UC;
	b = bench_with(test, cfg);
	post(b, ROAN_OP_WRITE, MTU + 1);
	send_one(b);
	KUNIT_EXPECT_EQ(test, b->e.opcode, 0x26);
	KUNIT_EXPECT_FALSE(test, b->e.ackreq);
	KUNIT_EXPECT_EQ(test, retired(b), -1);
	send_one(b);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
	post(b, ROAN_OP_READ, 8);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_LOC_QP_OP_ERR);
}

static void acked__cumulative(struct kunit *test)
{
	struct bench *b = bench(test);

	for (int i = 0; i < 3; i++)
		post(b, ROAN_OP_SEND, 8);
	send_all(b);
	KUNIT_EXPECT_EQ(test, ack(b, 1), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(b), -1);
}

static void acked__outside_is_stale(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	send_all(b);
	KUNIT_EXPECT_EQ(test, ack(b, 1), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, ack(b, PSN_MASK - 1), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, answer(b, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS, PSN_MASK, 0), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, b->r.n_stale, 3);
	KUNIT_EXPECT_EQ(test, retired(b), -1);
}

static void acked__beyond_a_read_is_an_implied_nak(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_READ, 8);
	post(b, ROAN_OP_SEND, 8);
	send_all(b);
	KUNIT_EXPECT_EQ(test, ack(b, 1), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, ack(b, 1), ROAN_EV_NOTHING);	/* once a hole */
	KUNIT_EXPECT_EQ(test, b->r.n_implied_naks, 1);
	KUNIT_EXPECT_EQ(test, send_all(b), 2);
	KUNIT_EXPECT_EQ(test, retired(b), -1);
}

static void acked__sequence_nak_goes_back_once(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_WRITE, 4 * MTU);
	send_all(b);
	KUNIT_EXPECT_EQ(test, answer(b, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 2, 0), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, answer(b, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 2, 0), ROAN_EV_NOTHING);
	send_one(b);
	KUNIT_EXPECT_EQ(test, b->e.psn, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, b->e.offset, 2 * MTU);
	KUNIT_EXPECT_TRUE(test, b->e.resend);
	KUNIT_EXPECT_EQ(test, b->e.opcode, 0x07);
}

static void acked__rnr_waits(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	send_all(b);
	KUNIT_EXPECT_EQ(test, answer(b, ROAN_AETH_RNR | 1, 0, 0), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&b->r), b->now + 10000);
	b->now += 10000;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&b->r, b->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, b->r.retries_left, 2);
	KUNIT_EXPECT_EQ(test, send_all(b), 1);
}

static void acked__rnr_budget(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	for (int i = 0; i < 3; i++) {
		send_all(b);
		KUNIT_EXPECT_EQ(test, answer(b, ROAN_AETH_RNR | 1, 0, 0), i < 2 ? ROAN_EV_RETRY : ROAN_EV_FAILED);
		b->now += 20000;
	}
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_RNR_RETRY_EXC_ERR);
}

/* A wait longer than the ACK timeout is no silence of the peer. */
static void acked__rnr_wait_is_no_timeout(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	send_all(b);
	answer(b, ROAN_AETH_RNR | 0, 0, 0);
	b->now += 655360000;
	send_all(b);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&b->r, b->now), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&b->r), b->now + roan_timeout_ns(10));
}

static void acked__rnr_for_ever(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct bench *b;

	cfg.rnr_retry = 7;
	b = bench_with(test, cfg);
	post(b, ROAN_OP_SEND, 8);
	for (int i = 0; i < 100; i++) {
		KUNIT_EXPECT_EQ(test, send_all(b), 1);
		KUNIT_EXPECT_EQ(test, answer(b, ROAN_AETH_RNR | 1, 0, 0), ROAN_EV_RETRY);
		b->now += 10000;
	}
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
		struct bench *b = bench(test);

		for (int k = 0; k < 3; k++)
			post(b, ROAN_OP_SEND, 8);
		send_all(b);
		KUNIT_EXPECT_EQ(test, answer(b, naks[i].syndrome, 1, 0), ROAN_EV_FAILED);
		if (!reserved)
			KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
		KUNIT_EXPECT_EQ(test, retired(b), naks[i].status);
		KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, send_one(b), ROAN_NEXT_WAIT);
	}
}

static void response__hole_asks_for_the_rest(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_READ, 4 * MTU);
	send_all(b);
	KUNIT_EXPECT_EQ(test, respond(b, 0x0d, 0, MTU), ROAN_TAKE_PLACE);
	KUNIT_EXPECT_EQ(test, respond(b, 0x0e, 2, MTU), ROAN_TAKE_RETRY);
	send_one(b);
	KUNIT_EXPECT_EQ(test, b->e.psn, psn_add(PSN0, 1));
	KUNIT_EXPECT_EQ(test, b->e.offset, MTU);
	KUNIT_EXPECT_EQ(test, b->e.len, 3 * MTU);
	KUNIT_EXPECT_EQ(test, respond(b, 0x0d, 1, MTU), ROAN_TAKE_PLACE);
	KUNIT_EXPECT_EQ(test, respond(b, 0x0d, 0, MTU), ROAN_TAKE_STALE);
}

static void response__acknowledges_what_is_before(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	post(b, ROAN_OP_READ, 8);
	send_all(b);
	KUNIT_EXPECT_EQ(test, respond(b, 0x10, 1, 8), ROAN_TAKE_PLACE);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_SUCCESS);
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
		{ ROAN_OP_READ, 0x12, 0 },		/* not of its kind */
		{ ROAN_OP_FETCH_ADD, 0x10, 8 },
		{ ROAN_OP_FLUSH, 0x10, 4 },
		{ ROAN_OP_SEND, 0x10, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bench *b = bench(test);

		post(b, bad[i].op, 2 * MTU);
		send_all(b);
		KUNIT_EXPECT_EQ(test, respond(b, bad[i].opcode, 0, bad[i].len), ROAN_TAKE_FAILED);
		KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_BAD_RESP_ERR);
	}
}

static void timer__retries_run_out(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, send_all(b), 1);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&b->r, b->now), ROAN_EV_NOTHING);
		b->now += roan_timeout_ns(10);
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&b->r, b->now), i < 2 ? ROAN_EV_RETRY : ROAN_EV_FAILED);
	}
	KUNIT_EXPECT_EQ(test, retired(b), ROAN_ST_RETRY_EXC_ERR);
}

static void timer__progress_renews_the_budget(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_SEND, 8);
	post(b, ROAN_OP_SEND, 8);
	send_all(b);
	b->now += roan_timeout_ns(10);
	roan_requester_timer(&b->r, b->now);
	KUNIT_EXPECT_EQ(test, b->r.retries_left, 1);
	ack(b, 0);
	KUNIT_EXPECT_EQ(test, b->r.retries_left, 2);
}

static void timer__code_0_is_never(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct bench *b;

	cfg.timeout = 0;
	b = bench_with(test, cfg);
	post(b, ROAN_OP_SEND, 8);
	send_all(b);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&b->r), 0);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&b->r, U64_MAX), ROAN_EV_NOTHING);
}

static struct kunit_case requester_cases[] = {
	KUNIT_CASE(slot__full_queue_has_none),
	KUNIT_CASE(next__segments_of_a_message),
	KUNIT_CASE(next__empty_message_takes_a_packet),
	KUNIT_CASE(next__window_bounds_the_span_and_asks),
	KUNIT_CASE(next__long_read_goes_in_pieces),
	KUNIT_CASE(next__rd_atomic_is_a_limit),
	KUNIT_CASE(next__no_rd_atomic_fails_the_work),
	KUNIT_CASE(next__fence_waits_for_reads),
	KUNIT_CASE(next__work_before_a_fence_asks_for_the_ack),
	KUNIT_CASE(next__only_the_last_of_a_batch_asks),
	KUNIT_CASE(next__credits_bound_and_probe),
	KUNIT_CASE(next__credits_that_shrink_do_not_strand_a_tail),
	KUNIT_CASE(local__in_order_and_without_a_psn),
	KUNIT_CASE(fail__earlier_succeeds_later_is_flushed),
	KUNIT_CASE(flush__everything_retires),
	KUNIT_CASE(drain__finishes_the_message_and_stops),
	KUNIT_CASE(uc__sent_is_done),
	KUNIT_CASE(acked__cumulative),
	KUNIT_CASE(acked__outside_is_stale),
	KUNIT_CASE(acked__beyond_a_read_is_an_implied_nak),
	KUNIT_CASE(acked__sequence_nak_goes_back_once),
	KUNIT_CASE(acked__rnr_waits),
	KUNIT_CASE(acked__rnr_budget),
	KUNIT_CASE(acked__rnr_wait_is_no_timeout),
	KUNIT_CASE(acked__rnr_for_ever),
	KUNIT_CASE(acked__naks_have_their_status),
	KUNIT_CASE(response__hole_asks_for_the_rest),
	KUNIT_CASE(response__acknowledges_what_is_before),
	KUNIT_CASE(response__must_be_well_formed),
	KUNIT_CASE(timer__retries_run_out),
	KUNIT_CASE(timer__progress_renews_the_budget),
	KUNIT_CASE(timer__code_0_is_never),
	{}
};

static struct kunit_suite requester_suite = {
	.name = "requester",
	.test_cases = requester_cases,
};

kunit_test_suite(requester_suite);
