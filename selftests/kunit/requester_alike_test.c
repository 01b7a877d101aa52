// SPDX-License-Identifier: GPL-2.0
/* Packets that leave together: what the requester says once of many. */
#include "requester_bench.h"

/* Packets that leave together are those that would have left one by one, and leave behind what those would have. */
static void alike(struct kunit *test, const struct roan_requester_cfg *cfg, u8 op)
{
	struct bench *single = bench_with(test, *cfg), *many = bench_with(test, *cfg);
	u32 together = 0;

	post(single, op, 50 * MTU + 1);
	post(many, op, 50 * MTU + 1);
	while (send_alike(many) == ROAN_NEXT_PACKET) {
		const struct roan_emit all = many->e;

		for (u32 i = 0; i < all.npsn; i++) {
			KUNIT_ASSERT_EQ(test, send_one(single), ROAN_NEXT_PACKET);
			KUNIT_EXPECT_EQ(test, single->e.psn, psn_add(all.psn, i));
			KUNIT_EXPECT_EQ(test, single->e.offset, all.offset + i * all.len);
			KUNIT_EXPECT_EQ(test, single->e.len, all.len);
			KUNIT_EXPECT_EQ(test, single->e.opcode, all.opcode);
			KUNIT_EXPECT_EQ(test, single->e.ackreq, all.ackreq);
		}
		together += all.npsn > 1;
		if (all.ackreq) {
			ack(single, psn_diff(all.psn, PSN0));
			ack(many, psn_diff(all.psn, PSN0));
		}
		single->r.work = many->r.work;
		KUNIT_EXPECT_MEMEQ(test, &single->r, &many->r, sizeof(single->r));
		single->r.work = single->work;
	}
	KUNIT_EXPECT_EQ(test, send_one(single), ROAN_NEXT_IDLE);
	/* Every third asks for the ACK, or fewer do: those between can go together. */
	KUNIT_EXPECT_EQ(test, together > 0, cfg->window >= 12);
}

static void alike__as_one_by_one(struct kunit *test)
{
	static const u32 windows[] = { 1, 2, 4, 8, 9, 12, 16, 64, 4096 };
	struct roan_requester_cfg cfg = rc;

	for (u32 i = 0; i < ARRAY_SIZE(windows); i++) {
		cfg.window = windows[i];
		alike(test, &cfg, ROAN_OP_WRITE);
		alike(test, &cfg, ROAN_OP_SEND);
	}
}

static void alike__none_of_another_kind(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_WRITE, 3 * MTU);
	post(b, ROAN_OP_READ, 8 * MTU);
	post(b, ROAN_OP_FETCH_ADD, 8);
	for (int i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, roan_requester_next(&b->r, b->now, &b->e), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, roan_requester_alike(&b->r, &b->e), 0);
		roan_requester_sent(&b->r, &b->e, b->now);
	}
}

/* One by one: the last before end_psn asks for the ACK then. */
static void alike__none_sent_again(struct kunit *test)
{
	struct bench *b = bench(test);

	post(b, ROAN_OP_WRITE, 10 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(b), 10);
	answer(b, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, 3, 0);
	KUNIT_ASSERT_EQ(test, roan_requester_next(&b->r, b->now, &b->e), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, roan_requester_alike(&b->r, &b->e), 0);
}

static struct kunit_case requester_alike_cases[] = {
	KUNIT_CASE(alike__as_one_by_one),
	KUNIT_CASE(alike__none_of_another_kind),
	KUNIT_CASE(alike__none_sent_again),
	{}
};

static struct kunit_suite requester_alike_suite = {
	.name = "requester_alike",
	.test_cases = requester_alike_cases,
};

kunit_test_suite(requester_alike_suite);
