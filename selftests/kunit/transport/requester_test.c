// SPDX-License-Identifier: GPL-2.0
/* requester.c, rule by rule. Long runs over a lossy link are in the simulator (selftests/unit/sim.c). */
#include "requester_fixture.h"

static void slot__full_queue_has_none(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	for (int i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_NOT_NULL(test, post(f, ROAN_OP_SEND, 1));
	KUNIT_EXPECT_NULL(test, post(f, ROAN_OP_SEND, 1));
}

static void next__segments_of_a_message(struct kunit *test)
{
	static const u8 opcodes[] = { 0x00, 0x01, 0x02 };
	static const u32 lens[] = { MTU, MTU, 88 };
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 600);
	for (int i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.opcode, opcodes[i]);
		KUNIT_EXPECT_EQ(test, f->e.len, lens[i]);
		KUNIT_EXPECT_EQ(test, f->e.offset, i * MTU);
		KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, i));
		KUNIT_EXPECT_EQ(test, f->e.ackreq, i == 2);
	}
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
}

/* Only the last packet of a message may have the solicited event bit. */
static void next__only_the_last_packet_is_solicited(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 600)->solicited = true;
	post(f, ROAN_OP_SEND, 600);
	post(f, ROAN_OP_SEND, 8)->solicited = true;
	for (int i = 0; i < 7; i++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.solicited, i == 2 || i == 6);
	}
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	peer_drops(f);
	sequence_nak(f, 1);
	for (int i = 1; i < 7; i++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.solicited, i == 2 || i == 6);
	}
}

/* A WRITE without immediate data completes nothing at the peer. */
static void next__write_is_solicited_with_immediate_only(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post_work(f, (struct roan_tx_wqe) { .op = ROAN_OP_WRITE, .len = 8, .solicited = true });
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_FALSE(test, f->e.solicited);
	post_work(f, (struct roan_tx_wqe) { .op = ROAN_OP_WRITE, .ext = ROAN_EXT_IMM, .len = 300, .solicited = true });
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_FALSE(test, f->e.solicited);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_TRUE(test, f->e.solicited);
}

static void next__empty_message_takes_a_packet(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 0);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.opcode, 0x0a);
	KUNIT_EXPECT_EQ(test, f->e.len, 0);
}

static void next__window_bounds_the_span_and_sets_ackreq(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.psn_window = 4;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_WRITE, 20 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	ack(f, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
}

/* The largest window, across the PSN wrap. A loss near its start retransmits all of it. */
static void next__widest_window_goes_back_whole(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.psn_window = 65536;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_WRITE, 70000 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 65536);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	peer_drops(f);
	sequence_nak(f, 3);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 3));
	KUNIT_EXPECT_TRUE(test, f->e.resend);
	KUNIT_EXPECT_EQ(test, send_all(f), 65535);
	KUNIT_EXPECT_EQ(test, f->r.end_psn, psn_add(PSN0, 65539));
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 65533);
	ack(f, 65538);
	KUNIT_EXPECT_EQ(test, send_all(f), 70000 - 65539);
}

static void next__rd_atomic_is_a_limit(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	for (int i = 0; i < 3; i++)
		post(f, ROAN_OP_FETCH_ADD, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	KUNIT_EXPECT_EQ(test, respond(f, 0x12, 0, 0), ROAN_RESP_PLACE);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
}

static void next__no_rd_atomic_fails_the_work(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.max_rd_atomic = 0;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_READ, 8);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_QP_OP_ERR);
}

static void next__fence_waits_for_reads(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_READ, 8);
	post(f, ROAN_OP_SEND, 8)->fence = true;
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	respond(f, 0x10, 0, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
}

static void next__wqe_before_a_fence_has_ackreq(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_READ, 8);
	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8)->fence = true;
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	KUNIT_EXPECT_TRUE(test, f->r.since_ackreq == 0);
}

/* A local invalidation waits for the ACKs of earlier requests: a retransmission may need the key. */
static void next__local_inv_waits_for_the_ack(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 8);
	post(f, ROAN_OP_LOCAL, 0)->barrier = true;
	post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_LOCAL);
	roan_requester_local_done(&f->r, f->e.index);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
}

static void next__only_the_last_of_a_batch_has_ackreq(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	for (int i = 0; i < 3; i++)
		post(f, ROAN_OP_SEND, 8);
	for (int i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.ackreq, i == 2);
	}
}

static void next__credits_bound_and_probe(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	for (int i = 0; i < 4; i++)
		post(f, ROAN_OP_SEND, 8);
	send_one(f);
	answer(f, ROAN_AETH_ACK | 1, 0, 1);		/* one credit */
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	answer(f, ROAN_AETH_ACK | 0, 1, 2);		/* no credit and nothing outstanding: a probe */
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	ack(f, 2);					/* unlimited */
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
}

/* Credits in READ responses count: during READs there may be no ACKs. */
static void next__responses_bring_credits(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_one(f);
	answer(f, ROAN_AETH_ACK | 0, 0, 1);
	post(f, ROAN_OP_READ, 2 * MTU);
	post(f, ROAN_OP_READ, 8);
	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	respond_with(f, 0x0d, 1, MTU, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, 1);	/* "unlimited" is valid in ACKs only */
	KUNIT_EXPECT_EQ(test, send_all(f), 0);
	respond_with(f, 0x0f, 2, MTU, ROAN_AETH_ACK | 2, 2);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
}

/* The credits drop to 0 between two messages. The first had no AckReq, so it is retransmitted with AckReq. */
static void next__credits_that_shrink_do_not_strand_a_tail(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8)->solicited = true;
	for (int i = 0; i < 3; i++)
		post(f, ROAN_OP_SEND, 8);
	send_one(f);
	send_one(f);
	KUNIT_EXPECT_FALSE(test, f->e.ackreq);
	answer(f, ROAN_AETH_ACK | 0, 0, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	KUNIT_EXPECT_TRUE(test, f->e.resend);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
}

static void can_send__window_space_and_no_backlog(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	KUNIT_EXPECT_TRUE(test, roan_requester_can_send(&f->r));
	post(f, ROAN_OP_WRITE, 63 * MTU);
	KUNIT_EXPECT_FALSE(test, roan_requester_can_send(&f->r));
	send_all(f);
	KUNIT_EXPECT_TRUE(test, roan_requester_can_send(&f->r));
	post(f, ROAN_OP_WRITE, MTU);
	send_all(f);
	KUNIT_EXPECT_FALSE(test, roan_requester_can_send(&f->r));	/* the window of 64 is full */
	ack(f, 63);
	KUNIT_EXPECT_TRUE(test, roan_requester_can_send(&f->r));
}

static void can_send__no_more_than_max_rd_atomic_reads(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_READ, 8);
	send_all(f);
	KUNIT_EXPECT_TRUE(test, roan_requester_can_send(&f->r));
	post(f, ROAN_OP_READ, 8);
	send_all(f);
	KUNIT_EXPECT_FALSE(test, roan_requester_can_send(&f->r));
	respond(f, 0x10, 0, 8);
	KUNIT_EXPECT_TRUE(test, roan_requester_can_send(&f->r));
	f->r.cfg.max_rd_atomic = 18;
	for (int i = 0; i < 18; i++)
		post(f, ROAN_OP_READ, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 15);	/* 16 with the one before: as many as any adapter takes */
	f->r.peer_sacks = true;			/* the peer is a roan host */
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
}

static void local__in_order_and_without_a_psn(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_LOCAL, 0);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_LOCAL);
	roan_requester_local_done(&f->r, f->e.index);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 1));
	ack(f, 1);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
}

static void fail__earlier_succeeds_later_is_flushed(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	for (int i = 0; i < 3; i++)
		post(f, ROAN_OP_SEND, 8);
	send_one(f);
	KUNIT_EXPECT_FALSE(test, f->e.ackreq);
	roan_requester_fail(&f->r, 1, ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);		/* retransmitted with AckReq */
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
}

/* The driver half may call roan_requester_next() before it retires a failed WQE: later WQEs must not be sent. */
static void fail__nothing_behind_leaves(struct kunit *test)
{
	static const u8 transports[] = { ROAN_TP_RC, ROAN_TP_UC };

	for (int i = 0; i < ARRAY_SIZE(transports); i++) {
		struct roan_requester_cfg cfg = rc;
		struct req_fixture *f;

		cfg.transport = transports[i];
		f = req_fixture_with(test, cfg);
		post(f, ROAN_OP_WRITE, 8);
		post(f, ROAN_OP_WRITE, 8);
		roan_requester_fail(&f->r, 0, ROAN_ST_LOC_PROT_ERR);
		KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
		KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
	}
}

static void fail__nor_when_the_last_before_is_answered(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	for (int i = 0; i < 3; i++)
		post(f, ROAN_OP_WRITE, 8);
	send_one(f);
	roan_requester_fail(&f->r, 1, ROAN_ST_LOC_PROT_ERR);
	send_all(f);
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
}

/* Also if late ACKs let the requester continue behind the packets already sent. */
static void fail__nor_behind_a_late_answer(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 4 * MTU);
	post(f, ROAN_OP_WRITE, 8);
	roan_requester_fail(&f->r, 1, ROAN_ST_LOC_PROT_ERR);
	post(f, ROAN_OP_WRITE, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
	f->now = roan_requester_deadline(&f->r);
	roan_requester_timer(&f->r, f->now);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	ack(f, 1);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	ack(f, 3);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
}

/* A new window does not apply to a READ under way: it would be split at other PSNs than before. */
static void update_cfg__keeps_what_is_under_way(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f = req_fixture(test);

	cfg.psn_window = 16;
	cfg.sq_psn = 7;
	cfg.timeout = 3;
	roan_requester_update_cfg(&f->r, &cfg);
	KUNIT_EXPECT_EQ(test, f->r.cfg.psn_window, rc.psn_window);
	KUNIT_EXPECT_EQ(test, f->r.cfg.sq_psn, rc.sq_psn);
	KUNIT_EXPECT_EQ(test, f->r.cfg.timeout, 3);
}

static void update_cfg__new_retries_restart_the_counters(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.retry_cnt = 0;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	cfg.retry_cnt = 1;
	cfg.rnr_retry = 3;
	roan_requester_update_cfg(&f->r, &cfg);
	KUNIT_EXPECT_EQ(test, f->r.rnr_left, 3);
	f->now += roan_timeout_ns(10);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	roan_requester_update_cfg(&f->r, &cfg);		/* nothing changed */
	f->now += roan_timeout_ns(10);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_FAILED);
}

static void flush__everything_retires(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	post(f, ROAN_OP_SEND, 8);
	send_one(f);
	roan_requester_flush(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), 0);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
}

static void drain__finishes_the_message_and_stops(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_SEND, 2 * MTU);
	post(f, ROAN_OP_SEND, 8);
	send_one(f);
	roan_requester_drain(&f->r, true);
	KUNIT_EXPECT_FALSE(test, roan_requester_drained(&f->r));
	send_all(f);
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	KUNIT_EXPECT_FALSE(test, roan_requester_drained(&f->r));
	ack(f, 1);
	KUNIT_EXPECT_TRUE(test, roan_requester_drained(&f->r));
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	roan_requester_drain(&f->r, false);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
}

/* A timeout by the old path's round trip would come before the answer by a longer one. */
static void change_path__forgets_the_round_trip(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct roan_min_rtt min_rtt = {};
	struct req_fixture *f;

	cfg.timeout = 14;	/* 67 ms */
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	f->now += 2000;
	ack(f, 0);
	f->r.rto_backoff = 1;
	roan_requester_drain(&f->r, true);
	roan_requester_change_path(&f->r, &min_rtt);
	roan_requester_drain(&f->r, false);
	KUNIT_EXPECT_PTR_EQ(test, f->r.min_rtt, &min_rtt);
	KUNIT_EXPECT_EQ(test, min_rtt.ns, 0u);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + roan_timeout_ns(14));
	f->now += 5000000;
	ack(f, 1);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, 5000000u);
	KUNIT_EXPECT_EQ(test, min_rtt.ns, 5000000u);
}

/* The ACK timer restarts at the given time, when the QP's packets have left this host. */
static void restart_timer__counts_from_the_given_time(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);
	u64 before, later;

	roan_requester_restart_timer(&f->r, f->now);		/* nothing outstanding: no timer */
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), 0);
	post(f, ROAN_OP_SEND, 8);
	send_one(f);
	before = roan_requester_deadline(&f->r);
	KUNIT_ASSERT_NE(test, before, 0);
	later = f->now + 10 * (before - f->now);
	roan_requester_restart_timer(&f->r, later);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), before - f->now + later);
	roan_requester_restart_timer(&f->r, f->now);		/* an earlier time changes nothing */
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), before - f->now + later);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, later), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, f->r.retries_left, f->r.cfg.retry_cnt);
}

static void uc__sent_is_done(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.transport = ROAN_TP_UC;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_WRITE, MTU + 1);
	send_one(f);
	KUNIT_EXPECT_EQ(test, f->e.opcode, 0x26);
	KUNIT_EXPECT_FALSE(test, f->e.ackreq);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
	send_one(f);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	post(f, ROAN_OP_READ, 8);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_QP_OP_ERR);
}

static void resume__sends_on_with_the_next_psn(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.transport = ROAN_TP_UC;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_SEND, 2 * MTU);
	post(f, ROAN_OP_SEND, 8);
	send_one(f);
	roan_requester_fail(&f->r, f->e.index, ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_WR_FLUSH_ERR);

	roan_requester_resume(&f->r);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 1));
	KUNIT_EXPECT_EQ(test, f->e.opcode, 0x24);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, retired(f), -1);
}

static struct kunit_case requester_cases[] = {
	KUNIT_CASE(slot__full_queue_has_none),
	KUNIT_CASE(next__segments_of_a_message),
	KUNIT_CASE(next__only_the_last_packet_is_solicited),
	KUNIT_CASE(next__write_is_solicited_with_immediate_only),
	KUNIT_CASE(next__empty_message_takes_a_packet),
	KUNIT_CASE(next__window_bounds_the_span_and_sets_ackreq),
	KUNIT_CASE(next__widest_window_goes_back_whole),
	KUNIT_CASE(next__rd_atomic_is_a_limit),
	KUNIT_CASE(next__no_rd_atomic_fails_the_work),
	KUNIT_CASE(next__fence_waits_for_reads),
	KUNIT_CASE(next__wqe_before_a_fence_has_ackreq),
	KUNIT_CASE(next__local_inv_waits_for_the_ack),
	KUNIT_CASE(next__only_the_last_of_a_batch_has_ackreq),
	KUNIT_CASE(next__credits_bound_and_probe),
	KUNIT_CASE(next__responses_bring_credits),
	KUNIT_CASE(next__credits_that_shrink_do_not_strand_a_tail),
	KUNIT_CASE(can_send__window_space_and_no_backlog),
	KUNIT_CASE(can_send__no_more_than_max_rd_atomic_reads),
	KUNIT_CASE(local__in_order_and_without_a_psn),
	KUNIT_CASE(fail__earlier_succeeds_later_is_flushed),
	KUNIT_CASE(fail__nothing_behind_leaves),
	KUNIT_CASE(fail__nor_when_the_last_before_is_answered),
	KUNIT_CASE(fail__nor_behind_a_late_answer),
	KUNIT_CASE(update_cfg__keeps_what_is_under_way),
	KUNIT_CASE(update_cfg__new_retries_restart_the_counters),
	KUNIT_CASE(flush__everything_retires),
	KUNIT_CASE(drain__finishes_the_message_and_stops),
	KUNIT_CASE(change_path__forgets_the_round_trip),
	KUNIT_CASE(restart_timer__counts_from_the_given_time),
	KUNIT_CASE(uc__sent_is_done),
	KUNIT_CASE(resume__sends_on_with_the_next_psn),
	{}
};

static struct kunit_suite requester_suite = {
	.name = "requester",
	.test_cases = requester_cases,
};

kunit_test_suite(requester_suite);
