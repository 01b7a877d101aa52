// SPDX-License-Identifier: GPL-2.0
/*
 * Rings: indices across 2^32, user lines with arbitrary contents, the doorbell flag. Mapping a ring is not tested here:
 * it needs a process. Completion queues: cq_test.c.
 */
#include "fakes.h"

#define SLOTS	8

static struct roan_ring *new_ring(struct kunit *test, u32 slots, u32 slot_size, u32 index)
{
	struct roan_ring *ring = kunit_kzalloc(test, sizeof(*ring), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ring);
	KUNIT_ASSERT_EQ(test, roan_ring_alloc(ring, slots, slot_size, NULL, NULL), 0);
	ring->index = index;
	ring->ctl->user.index = index;
	ring->ctl->kernel.index = index;
	return ring;
}

static void alloc_rounds_up_and_refuses(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, 5, 20, 0);
	struct roan_ring bad = {};

	KUNIT_EXPECT_EQ(test, ring->mask, 7u);
	KUNIT_EXPECT_EQ(test, ring->slot_size, 32u);
	roan_ring_free(ring);
	KUNIT_EXPECT_NULL(test, ring->ctl);
	roan_ring_free(ring);	/* a second time, zeroed: no effect */
	KUNIT_EXPECT_EQ(test, roan_ring_alloc(&bad, 0, 16, NULL, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, roan_ring_alloc(&bad, (1u << 24) + 1, 16, NULL, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, roan_ring_alloc(&bad, 4, (1u << 16) + 1, NULL, NULL), -EINVAL);
}

/* Two rings in one allocation: neither writes into the other, and freeing the first frees both. */
static void alloc_of_two_shares_memory(struct kunit *test)
{
	struct roan_ring first = {}, second = {};
	const struct roan_ring_alloc_req plan[] = {
		{ .ring = &first, .slots = 3, .slot_size = 80 },
		{ .ring = &second, .slots = 5, .slot_size = 20 },
	};
	u32 i;

	KUNIT_ASSERT_EQ(test, roan_rings_alloc(plan, 2, NULL), 0);
	KUNIT_EXPECT_TRUE(test, PTR_ALIGN(second.ctl, sizeof(struct roan_user_line)) == second.ctl);
	KUNIT_EXPECT_TRUE(test, (void *)second.ctl >= first.slots + 4 * 80);
	KUNIT_EXPECT_LE(test, offset_in_page(second.slots) + 8 * 32, PAGE_SIZE);
	KUNIT_EXPECT_PTR_EQ(test, second.slots, (void *)(second.ctl + 1));	/* where the provider expects it */
	for (i = 0; i < 4; i++)
		memset(roan_ring_post_slot(&first, i), 0xff, 80);
	KUNIT_EXPECT_EQ(test, roan_ring_pending(&second), 0u);
	for (i = 0; i < 8; i++)
		memset(roan_ring_post_slot(&second, i), 0xee, 32);
	KUNIT_EXPECT_EQ(test, *((u8 *)first.slots + 4 * 80 - 1), 0xff);
	roan_ring_free(&first);
	roan_ring_free(&second);
	KUNIT_EXPECT_NULL(test, second.ctl);
}

/* Initial indices, two of them such that the ring crosses 2^32. */
static const u32 starts[] = { 0, 1000, U32_MAX - 3, U32_MAX };

static void start_desc(const u32 *start, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "index %u", *start);
}

KUNIT_ARRAY_PARAM(start, starts, start_desc);

static u32 param_start(struct kunit *test)
{
	return *(const u32 *)test->param_value;
}

static void slots_come_out_in_order(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, 16, param_start(test));
	u32 i, got;

	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), 0u);
	for (i = 0; i < SLOTS; i++) {
		u32 *slot = roan_ring_post_slot(ring, i);

		KUNIT_ASSERT_NOT_NULL(test, slot);
		*slot = 100 + i;
	}
	KUNIT_EXPECT_NULL(test, roan_ring_post_slot(ring, SLOTS));
	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), 0u);	/* filled, not posted */
	roan_ring_post(ring, SLOTS);
	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), (u32)SLOTS);
	KUNIT_EXPECT_FALSE(test, roan_ring_corrupt(ring, roan_ring_pending(ring)));
	for (i = 0; i < SLOTS; i++) {
		roan_ring_copy(ring, 0, &got, sizeof(got));
		KUNIT_EXPECT_EQ(test, got, 100 + i);
		roan_ring_consume(ring);
	}
	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), 0u);
	KUNIT_EXPECT_NULL(test, roan_ring_post_slot(ring, 0));	/* consumed, not published */
	roan_ring_publish(ring, ring->index - 1);
	KUNIT_EXPECT_NOT_NULL(test, roan_ring_post_slot(ring, SLOTS - 2));
	KUNIT_EXPECT_NULL(test, roan_ring_post_slot(ring, SLOTS - 1));
	roan_ring_free(ring);
}

static void impossible_tails_are_seen(struct kunit *test)
{
	u32 start = param_start(test);
	struct roan_ring *ring = new_ring(test, SLOTS, 16, start);

	ring->ctl->user.index = start + SLOTS;
	KUNIT_EXPECT_FALSE(test, roan_ring_corrupt(ring, roan_ring_pending(ring)));
	ring->ctl->user.index = start + SLOTS + 1;
	KUNIT_EXPECT_TRUE(test, roan_ring_corrupt(ring, roan_ring_pending(ring)));
	ring->ctl->user.index = start - 1;	/* backwards */
	KUNIT_EXPECT_TRUE(test, roan_ring_corrupt(ring, roan_ring_pending(ring)));
	ring->ctl->user.index = start + (1u << 31);
	KUNIT_EXPECT_TRUE(test, roan_ring_corrupt(ring, roan_ring_pending(ring)));
	roan_ring_discard(ring);
	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), 0u);
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.index, start + (1u << 31));
	roan_ring_free(ring);
}

/* A user can write to the whole mapping, also to the kernel line: the kernel must not read it. */
static void kernel_line_is_write_only(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, 16, param_start(test));
	u32 start = ring->index;

	roan_ring_post(ring, 2);
	ring->ctl->kernel.index = 0xdeadbeef;
	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), 2u);
	roan_ring_consume(ring);
	roan_ring_publish(ring, ring->index);
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.index, start + 1);

	ring->ctl->user.index = ring->index;
	ring->ctl->kernel.index = 0xdeadbeef;
	KUNIT_EXPECT_NOT_NULL(test, roan_ring_cqe_slot(ring));
	roan_ring_cqe_done(ring);
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.index, start + 2);
	roan_ring_free(ring);
}

static void doorbell_bit(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, 16, param_start(test));

	/* Nothing posted: the flag stays set, the next poster rings. */
	KUNIT_EXPECT_FALSE(test, roan_ring_enable_doorbell(ring));
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.flags, (u32)ROAN_RING_NEED_DOORBELL);
	roan_ring_unpark(ring);
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.flags, 0u);
	/*
	 * Posted before the flag was visible: the call clears it and returns true, so the kernel reads the ring again.
	 */
	roan_ring_post(ring, 1);
	KUNIT_EXPECT_TRUE(test, roan_ring_enable_doorbell(ring));
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.flags, 0u);
	roan_ring_consume(ring);
	KUNIT_EXPECT_FALSE(test, roan_ring_enable_doorbell(ring));
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.flags, (u32)ROAN_RING_NEED_DOORBELL);
	/* The same for ACK_PENDING, which also publishes notify_at. */
	KUNIT_EXPECT_FALSE(test, roan_ring_park_ack_pending(ring, 3));
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.flags, (u32)ROAN_RING_ACK_PENDING);
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.notify_at, ring->index + 3);
	roan_ring_post(ring, 1);
	KUNIT_EXPECT_TRUE(test, roan_ring_park_ack_pending(ring, 3));
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.flags, 0u);
	roan_ring_free(ring);
}

/* Each popped hint is published at once. An impossible tail empties the ring; later hints work again. */
static void hints_are_popped(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, sizeof(struct roan_db_hint), param_start(test));
	struct roan_db_hint *slot;
	u32 i, qpn;

	KUNIT_EXPECT_FALSE(test, roan_ring_pop_hint(ring, &qpn));
	for (i = 0; i < SLOTS; i++) {
		slot = roan_ring_post_slot(ring, i);
		KUNIT_ASSERT_NOT_NULL(test, slot);
		slot->qpn = 100 + i;
	}
	roan_ring_post(ring, SLOTS);
	for (i = 0; i < SLOTS; i++) {
		KUNIT_EXPECT_TRUE(test, roan_ring_pop_hint(ring, &qpn));
		KUNIT_EXPECT_EQ(test, qpn, 100 + i);
		KUNIT_EXPECT_EQ(test, ring->ctl->kernel.index, ring->index);
	}
	KUNIT_EXPECT_FALSE(test, roan_ring_pop_hint(ring, &qpn));
	roan_ring_post(ring, SLOTS + 1);
	KUNIT_EXPECT_FALSE(test, roan_ring_pop_hint(ring, &qpn));
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.index, ring->ctl->user.index);
	KUNIT_EXPECT_FALSE(test, roan_ring_enable_doorbell(ring));
	slot = roan_ring_post_slot(ring, 0);
	KUNIT_ASSERT_NOT_NULL(test, slot);
	slot->qpn = 7;
	roan_ring_post(ring, 1);
	KUNIT_EXPECT_TRUE(test, roan_ring_pop_hint(ring, &qpn));
	KUNIT_EXPECT_EQ(test, qpn, 7u);
	roan_ring_free(ring);
}

/* ---- receives: the kernel works on a copy ---- */

struct recv_slot {
	struct roan_recv_wqe wqe;
	struct roan_sge sge[2];
};

static struct recv_slot *post_recv(struct kunit *test, struct roan_ring *ring, u32 num_sge, u32 len0, u32 len1)
{
	struct recv_slot *slot = roan_ring_post_slot(ring, 0);

	KUNIT_ASSERT_NOT_NULL(test, slot);
	*slot = (struct recv_slot) {
		.wqe = { .wr_id = 0x1234, .num_sge = num_sge },
		.sge = { { .addr = 0x1000, .length = len0, .lkey = 7 }, { .addr = 0x2000, .length = len1, .lkey = 8 } },
	};
	roan_ring_post(ring, 1);
	return slot;
}

static void fetched_receive_is_a_copy(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, sizeof(struct recv_slot), param_start(test));
	struct roan_sge sges[2];
	struct roan_recv recv = { .sge = sges };
	struct recv_slot *slot;
	u32 verr;

	KUNIT_EXPECT_EQ(test, roan_recv_fetch(ring, 2, &recv, &verr), ROAN_FETCH_EMPTY);
	slot = post_recv(test, ring, 2, 10, 20);
	KUNIT_ASSERT_EQ(test, roan_recv_fetch(ring, 2, &recv, &verr), ROAN_FETCH_OK);
	memset(slot, 0xff, sizeof(*slot));
	KUNIT_EXPECT_EQ(test, recv.wr_id, 0x1234ull);
	KUNIT_EXPECT_EQ(test, recv.num_sge, 2u);
	KUNIT_EXPECT_EQ(test, recv.total, 30u);
	KUNIT_EXPECT_TRUE(test, recv.taken);
	KUNIT_EXPECT_EQ(test, sges[0].addr, 0x1000ull);
	KUNIT_EXPECT_EQ(test, sges[1].length, 20u);
	KUNIT_EXPECT_EQ(test, sges[1].lkey, 8u);
	KUNIT_EXPECT_EQ(test, roan_recv_fetch(ring, 2, &recv, &verr), ROAN_FETCH_EMPTY);
	roan_ring_free(ring);
}

static void bad_receives_are_refused(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, sizeof(struct recv_slot), param_start(test));
	struct roan_sge sges[3] = { [2] = { .addr = 0x5a5a } };
	struct roan_recv recv = { .sge = sges };
	u32 verr, index;

	/* An invalid slot is consumed too; nothing beyond @max_sge is written. */
	post_recv(test, ring, U32_MAX, 1, 1);
	KUNIT_EXPECT_EQ(test, roan_recv_fetch(ring, 2, &recv, &verr), ROAN_FETCH_BAD);
	KUNIT_EXPECT_EQ(test, verr, (u32)ROAN_VERR_BAD_SGE);
	KUNIT_EXPECT_EQ(test, recv.wr_id, 0x1234ull);
	KUNIT_EXPECT_EQ(test, sges[2].addr, 0x5a5aull);
	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), 0u);

	post_recv(test, ring, 2, U32_MAX, 1);
	KUNIT_EXPECT_EQ(test, roan_recv_fetch(ring, 2, &recv, &verr), ROAN_FETCH_BAD);
	KUNIT_EXPECT_EQ(test, verr, (u32)ROAN_VERR_BAD_SGE);
	post_recv(test, ring, 2, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, roan_recv_fetch(ring, 2, &recv, &verr), ROAN_FETCH_OK);
	KUNIT_EXPECT_EQ(test, recv.total, U32_MAX);

	index = ring->index;
	ring->ctl->user.index = index - 1;
	KUNIT_EXPECT_EQ(test, roan_recv_fetch(ring, 2, &recv, &verr), ROAN_FETCH_BAD);
	KUNIT_EXPECT_EQ(test, verr, (u32)ROAN_VERR_RING);
	KUNIT_EXPECT_EQ(test, ring->index, index);
	roan_ring_free(ring);
}

/* ---- completion queues ---- */

static void cq_is_full(struct kunit *test)
{
	u32 start = param_start(test), i;
	struct roan_ring *ring = new_ring(test, SLOTS, sizeof(struct roan_cqe), start);
	struct roan_cqe cqe;

	for (i = 0; i < SLOTS; i++) {
		struct roan_cqe *slot = roan_ring_cqe_slot(ring);

		KUNIT_ASSERT_NOT_NULL(test, slot);
		slot->wr_id = i;
		roan_ring_cqe_done(ring);
	}
	KUNIT_EXPECT_NULL(test, roan_ring_cqe_slot(ring));
	KUNIT_EXPECT_TRUE(test, roan_ring_poll(ring, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 0ull);
	KUNIT_EXPECT_NOT_NULL(test, roan_ring_cqe_slot(ring));

	ring->ctl->user.index = ring->index + 1;	/* a head beyond the tail */
	KUNIT_EXPECT_NULL(test, roan_ring_cqe_slot(ring));
	ring->ctl->user.index = ring->index - SLOTS - 1;
	KUNIT_EXPECT_NULL(test, roan_ring_cqe_slot(ring));
	ring->ctl->user.index = ring->index;
	KUNIT_EXPECT_NOT_NULL(test, roan_ring_cqe_slot(ring));
	roan_ring_free(ring);
}

static u64 number_in(const struct roan_ring *ring, u32 index)
{
	return *(u64 *)(ring->slots + (size_t)(index & ring->mask) * ring->slot_size);
}

/* Six receives are posted. One is fetched before the move and some during it, across the wrap of the tail. */
static void posted_moves_little_by_little(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, 16, -3u), *fresh = new_ring(test, 2 * SLOTS, 16, 0);
	struct roan_ring_resize move = {};
	u32 i;

	for (i = 0; i < 6; i++)
		*(u64 *)roan_ring_post_slot(ring, i) = i;
	roan_ring_post(ring, 6);
	roan_ring_consume(ring);
	memset(&fresh->ctl->user, 0x80, sizeof(fresh->ctl->user));
	KUNIT_EXPECT_EQ(test, roan_ring_move_posted(ring, fresh, &move, 1), -EAGAIN);
	for (i = 0; i < 3; i++)
		roan_ring_consume(ring);
	KUNIT_EXPECT_EQ(test, roan_ring_move_posted(ring, fresh, &move, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, roan_ring_move_posted(ring, fresh, &move, 1), 0);
	KUNIT_EXPECT_EQ(test, ring->mask, 2 * SLOTS - 1);
	KUNIT_EXPECT_EQ(test, ring->index, 1u);
	KUNIT_EXPECT_EQ(test, ring->ctl->kernel.index, 1u);
	KUNIT_EXPECT_EQ(test, roan_ring_pending(ring), 2u);
	KUNIT_EXPECT_EQ(test, number_in(ring, 1), 4ull);
	KUNIT_EXPECT_EQ(test, number_in(ring, 2), 5ull);
	roan_ring_free(ring);
	roan_ring_free(fresh);
}

/* More receives than the new ring has slots for; a program that posts during the move, or changes the tail. */
static void posted_that_does_not_fit_stays(struct kunit *test)
{
	struct roan_ring *ring = new_ring(test, SLOTS, 16, 0), *fresh = new_ring(test, 4, 16, 0);
	struct roan_ring_resize move = {};
	u32 i;

	roan_ring_post(ring, 5);
	KUNIT_EXPECT_EQ(test, roan_ring_move_posted(ring, fresh, &move, U32_MAX), -EINVAL);
	roan_ring_consume(ring);
	move = (struct roan_ring_resize) {};
	KUNIT_EXPECT_EQ(test, roan_ring_move_posted(ring, fresh, &move, 2), -EAGAIN);
	roan_ring_post(ring, 3);
	for (i = 0; i < 5; i++)
		roan_ring_consume(ring);
	KUNIT_EXPECT_EQ(test, roan_ring_move_posted(ring, fresh, &move, 2), -EINVAL);
	move = (struct roan_ring_resize) {};
	roan_ring_post(ring, 0x80000000);
	KUNIT_EXPECT_EQ(test, roan_ring_move_posted(ring, fresh, &move, 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, ring->mask, SLOTS - 1);
	roan_ring_free(ring);
	roan_ring_free(fresh);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(alloc_rounds_up_and_refuses),
	KUNIT_CASE(posted_moves_little_by_little),
	KUNIT_CASE(posted_that_does_not_fit_stays),
	KUNIT_CASE(alloc_of_two_shares_memory),
	KUNIT_CASE_PARAM(slots_come_out_in_order, start_gen_params),
	KUNIT_CASE_PARAM(impossible_tails_are_seen, start_gen_params),
	KUNIT_CASE_PARAM(kernel_line_is_write_only, start_gen_params),
	KUNIT_CASE_PARAM(doorbell_bit, start_gen_params),
	KUNIT_CASE_PARAM(hints_are_popped, start_gen_params),
	KUNIT_CASE_PARAM(fetched_receive_is_a_copy, start_gen_params),
	KUNIT_CASE_PARAM(bad_receives_are_refused, start_gen_params),
	KUNIT_CASE_PARAM(cq_is_full, start_gen_params),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "roan_ring",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = ring_cases,
};
kunit_test_suite(ring_suite);
