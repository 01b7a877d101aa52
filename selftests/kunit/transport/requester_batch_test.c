// SPDX-License-Identifier: GPL-2.0
/* roan_requester_batch_count(): packets that one struct roan_tx_desc describes together. */
#include "requester_fixture.h"

#define UNLIMITED	(ROAN_AETH_ACK | ROAN_AETH_UNLIMITED)

/*
 * Checks that batches contain the packets that @single sends one by one, and leave the requester in the same state.
 * Returns the number of batches with more than one packet. ACKs have @syndrome.
 */
static u32 same(struct kunit *test, struct req_fixture *single, struct req_fixture *many, u8 syndrome)
{
	u32 together = 0;
	enum roan_next next;

	while ((next = send_alike(many)) == ROAN_NEXT_PACKET) {
		const struct roan_tx_desc all = many->e;

		for (u32 i = 0; i < all.npsn; i++) {
			KUNIT_ASSERT_EQ(test, send_one(single), ROAN_NEXT_PACKET);
			KUNIT_EXPECT_EQ(test, single->e.index, all.index + (all.single_pkt ? i : 0));
			KUNIT_EXPECT_EQ(test, single->e.psn, psn_add(all.psn, i));
			KUNIT_EXPECT_EQ(test, single->e.offset, all.single_pkt ? 0 : all.offset + i * all.len);
			KUNIT_EXPECT_EQ(test, single->e.len, all.len);
			KUNIT_EXPECT_EQ(test, single->e.opcode, all.opcode);
			KUNIT_EXPECT_EQ(test, single->e.ackreq, all.ackreq);
			KUNIT_EXPECT_EQ(test, single->e.solicited, all.solicited);
		}
		together += all.npsn > 1;
		if (all.ackreq) {
			answer(single, syndrome, psn_diff(all.psn, PSN0), 0);
			answer(many, syndrome, psn_diff(all.psn, PSN0), 0);
		}
		single->r.work = many->r.work;
		single->r.holes = many->r.holes;
		KUNIT_EXPECT_MEMEQ(test, &single->r, &many->r, sizeof(single->r));
		single->r.work = single->work;
		single->r.holes = &single->holes;
		KUNIT_EXPECT_MEMEQ(test, single->work, many->work, sizeof(single->work));
	}
	KUNIT_EXPECT_EQ(test, send_one(single), next);
	return together;
}

static void alike(struct kunit *test, const struct roan_requester_cfg *cfg, u8 op)
{
	struct req_fixture *single = req_fixture_with(test, *cfg), *many = req_fixture_with(test, *cfg);

	post(single, op, 50 * MTU + 1);
	post(many, op, 50 * MTU + 1);
	/* Packets with AckReq are not batched. With a window of 12 or more at most every third has it. */
	KUNIT_EXPECT_EQ(test, same(test, single, many, UNLIMITED) > 0, cfg->psn_window >= 12);
}

static const u32 windows[] = { 1, 2, 4, 8, 9, 12, 16, 64, 4096 };

static void batch_count__as_one_by_one(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;

	for (u32 i = 0; i < ARRAY_SIZE(windows); i++) {
		cfg.psn_window = windows[i];
		alike(test, &cfg, ROAN_OP_WRITE);
		alike(test, &cfg, ROAN_OP_SEND);
	}
}

/* Single-packet messages, mixed with others. */
static void post_rows(struct req_fixture *f, u8 op)
{
	post(f, op, 64);
	post_again(f, 20);
	post_work(f, (struct roan_tx_wqe) { .op = op, .len = 65, .solicited = true });
	post(f, op, 65);
	post(f, op, 0);
	post_again(f, 1);
	post_work(f, (struct roan_tx_wqe) { .op = op, .ext = ROAN_EXT_IMM });
	post(f, op, 3 * MTU);
	post(f, op, MTU);
	post_again(f, 9);
	post_work(f, (struct roan_tx_wqe) { .op = op, .len = MTU, .fence = true });
	post(f, op, MTU);
}

static void batch_count__messages(struct kunit *test)
{
	static const u8 services[] = { ROAN_TP_RC, ROAN_TP_UC };
	static const u8 ops[] = { ROAN_OP_WRITE, ROAN_OP_SEND };
	struct roan_requester_cfg cfg = rc;

	for (u32 i = 0; i < ARRAY_SIZE(windows) * 4; i++) {
		struct req_fixture *single, *many;

		cfg.psn_window = windows[i / 4];
		cfg.transport = services[i & 1];
		single = req_fixture_with(test, cfg);
		many = req_fixture_with(test, cfg);
		post_rows(single, ops[i >> 1 & 1]);
		post_rows(many, ops[i >> 1 & 1]);
		KUNIT_EXPECT_EQ(test, same(test, single, many, UNLIMITED) > 0, cfg.psn_window >= 12 ||
				cfg.transport != ROAN_TP_RC);
	}
}

/* A batch of SENDs is limited by the peer's credits. */
static void batch_count__credits(struct kunit *test)
{
	struct req_fixture *single = req_fixture(test), *many = req_fixture(test), *f;

	for (int i = 0; i < 2; i++) {
		f = i ? many : single;
		post(f, ROAN_OP_SEND, 64);
		send_one(f);
		answer(f, ROAN_AETH_ACK | roan_credit_code(6), 0, 1);
		post(f, ROAN_OP_SEND, 64);
		post_again(f, 20);
	}
	KUNIT_EXPECT_GT(test, same(test, single, many, ROAN_AETH_ACK), 0);	/* these ACKs grant no credits */
}

/* A failed WQE and those behind it are not sent. */
static void batch_count__none_behind_a_failure(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 64);
	post_again(f, 20);
	roan_requester_fail(&f->r, 5, ROAN_ST_LOC_QP_OP_ERR);
	while (send_alike(f) == ROAN_NEXT_PACKET)
		;
	KUNIT_EXPECT_EQ(test, f->r.next_psn, psn_add(PSN0, 5));
}

static void batch_count__none_of_another_kind(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 3 * MTU);
	post(f, ROAN_OP_READ, 8 * MTU);
	post(f, ROAN_OP_FETCH_ADD, 8);
	for (int i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, roan_requester_next(&f->r, f->now, &f->e), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, roan_requester_batch_count(&f->r, &f->e, 100), 0);
		roan_requester_sent(&f->r, &f->e, f->now);
	}
}

/* Retransmitted packets are not batched: the last one before end_psn needs AckReq. */
static void batch_count__none_sent_again(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 10 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 10);
	answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 3, 0);
	KUNIT_ASSERT_EQ(test, roan_requester_next(&f->r, f->now, &f->e), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, roan_requester_batch_count(&f->r, &f->e, 100), 0);
}

static struct kunit_case requester_alike_cases[] = {
	KUNIT_CASE(batch_count__as_one_by_one),
	KUNIT_CASE(batch_count__messages),
	KUNIT_CASE(batch_count__credits),
	KUNIT_CASE(batch_count__none_behind_a_failure),
	KUNIT_CASE(batch_count__none_of_another_kind),
	KUNIT_CASE(batch_count__none_sent_again),
	{}
};

static struct kunit_suite requester_alike_suite = {
	.name = "requester_batch",
	.test_cases = requester_alike_cases,
};

kunit_test_suite(requester_alike_suite);
