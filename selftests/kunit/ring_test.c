// SPDX-License-Identifier: GPL-2.0
/*
 * Rings and completion queues: indices across 2^32, user lines with arbitrary contents, the doorbell flag, overflow,
 * arming. Mapping a ring is not tested here: it needs a process.
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

/* A kernel consumer's CQ of SLOTS entries. Its indices start at the case parameter. */
static struct roan_cq *new_cq(struct kunit *test)
{
	struct ib_cq_init_attr attr = { .cqe = SLOTS };
	struct fake *f = test->priv;
	struct roan_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	u32 start = param_start(test);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->ib.device = &f->dev.ib;
	KUNIT_ASSERT_EQ(test, roan_create_cq(&cq->ib, &attr, NULL), 0);
	cq->ring.index = start;
	cq->ring.ctl->user.index = start;
	cq->ring.ctl->kernel.index = start;
	return cq;
}

static void post_cqe(struct roan_cq *cq, u64 wr_id, u8 status, u16 flags)
{
	struct roan_cqe cqe = { .wr_id = wr_id, .status = status, .flags = flags, .qp_handle = 0xabcd };

	roan_cq_post(cq, &cqe);
}

static bool take_bit(struct roan_cq *cq, enum roan_deferred_bit bit)
{
	return test_and_clear_bit(bit, &cq->deferred.bits);
}

static void cq_overflow_is_reported_once(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);
	struct ib_wc wc[SLOTS + 1];
	int i;

	for (i = 0; i < SLOTS; i++)
		post_cqe(cq, i, 0, 0);
	KUNIT_EXPECT_EQ(test, cq->ring.ctl->kernel.flags, 0u);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_CQ_ERR));
	post_cqe(cq, 100, 0, 0);
	KUNIT_EXPECT_EQ(test, cq->ring.ctl->kernel.flags, (u32)ROAN_RING_OVERFLOW);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_CQ_ERR));
	post_cqe(cq, 101, 0, 0);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_CQ_ERR));
	KUNIT_EXPECT_EQ(test, fake_count(ROAN_CNT_cq_overflow), 2ull);

	/* The older entries are intact, and there is space again. */
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&cq->ib, SLOTS + 1, wc), SLOTS);
	for (i = 0; i < SLOTS; i++)
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, (u64)i);
	post_cqe(cq, 102, 0, 0);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&cq->ib, SLOTS, wc), 1);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 102ull);
	roan_destroy_cq(&cq->ib, NULL);
}

static void cq_events_follow_arming(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);

	post_cqe(cq, 0, 0, ROAN_CQE_SOLICITED);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_NOTIFY));	/* not armed */
	KUNIT_EXPECT_EQ(test, roan_req_notify_cq(&cq->ib, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, roan_req_notify_cq(&cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 1);
	post_cqe(cq, 1, 0, 0);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_NOTIFY));
	post_cqe(cq, 2, 0, 0);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_NOTIFY));	/* one event per arming */

	roan_req_notify_cq(&cq->ib, IB_CQ_SOLICITED);
	post_cqe(cq, 3, 0, 0);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_NOTIFY));
	post_cqe(cq, 4, 0, ROAN_CQE_SOLICITED);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_NOTIFY));
	roan_req_notify_cq(&cq->ib, IB_CQ_SOLICITED);
	post_cqe(cq, 5, IB_WC_WR_FLUSH_ERR, 0);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_NOTIFY));	/* errors count as solicited */
	roan_destroy_cq(&cq->ib, NULL);
}

static void cq_entry_has_handle_and_time(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);
	struct roan_cqe cqe;

	post_cqe(cq, 0, 0, 0);
	KUNIT_ASSERT_TRUE(test, roan_ring_poll(&cq->ring, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.qp_handle, 0xabcdull);
	KUNIT_EXPECT_NE(test, cqe.timestamp_ns, 0ull);
	roan_destroy_cq(&cq->ib, NULL);
}

static void post_cqe_of(struct roan_cq *cq, u64 wr_id, const struct roan_qp *qp)
{
	struct roan_cqe cqe = { .wr_id = wr_id, .qp_handle = (uintptr_t)&qp->ib };

	roan_cq_post(cq, &cqe);
}

/* A kernel consumer's QP is destroyed before its completions are polled: those of other QPs stay, in order. */
static void cq_forgets_a_qp(struct kunit *test)
{
	struct roan_cq *scq = new_cq(test), *rcq = new_cq(test);
	struct roan_qp *qp = kunit_kzalloc(test, 2 * sizeof(*qp), GFP_KERNEL);
	struct ib_wc wc[SLOTS];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp[0].scq = scq;
	qp[0].rcq = rcq;
	roan_cq_forget_qp(&qp[0]);
	for (i = 0; i < SLOTS; i++)
		post_cqe_of(scq, i, &qp[i % 3 == 1]);
	post_cqe_of(rcq, SLOTS, &qp[0]);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&scq->ib, 1, wc), 1);
	roan_cq_forget_qp(&qp[0]);
	post_cqe_of(scq, SLOTS, &qp[1]);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&rcq->ib, SLOTS, wc), 0);
	KUNIT_ASSERT_EQ(test, roan_poll_cq(&scq->ib, SLOTS, wc), 4);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, i < 3 ? 3 * i + 1ull : SLOTS);
		KUNIT_EXPECT_PTR_EQ(test, wc[i].qp, &qp[1].ib);
	}
	roan_destroy_cq(&scq->ib, NULL);
	roan_destroy_cq(&rcq->ib, NULL);
}

static void cq_resize_keeps_entries(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);
	struct ib_wc wc[SLOTS];
	int i;

	for (i = 0; i < SLOTS; i++)
		post_cqe(cq, i, 0, 0);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&cq->ib, 3, wc), 3);
	KUNIT_EXPECT_EQ(test, roan_resize_cq(&cq->ib, 4, NULL), -EINVAL);	/* 5 unpolled entries */
	KUNIT_EXPECT_EQ(test, cq->ring.mask, SLOTS - 1u);
	KUNIT_EXPECT_EQ(test, roan_resize_cq(&cq->ib, 4 * SLOTS, NULL), 0);
	KUNIT_EXPECT_EQ(test, cq->ib.cqe, 4 * SLOTS);
	post_cqe(cq, SLOTS, 0, 0);
	KUNIT_ASSERT_EQ(test, roan_poll_cq(&cq->ib, SLOTS, wc), 6);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, (u64)i + 3);
	roan_destroy_cq(&cq->ib, NULL);
}

/* Two CQ rings, with 3 entries in the first. */
static void two_cq_rings(struct kunit *test, struct roan_ring *ring, struct roan_ring *fresh)
{
	int i;

	KUNIT_ASSERT_EQ(test, roan_ring_alloc(ring, SLOTS, sizeof(struct roan_cqe), NULL, NULL), 0);
	KUNIT_ASSERT_EQ(test, roan_ring_alloc(fresh, SLOTS, sizeof(struct roan_cqe), NULL, NULL), 0);
	for (i = 0; i < 3; i++) {
		roan_ring_cqe_slot(ring)->wr_id = i;
		roan_ring_cqe_done(ring);
	}
}

/* Entries move in steps. Between them a CQE is added, and the program writes arbitrary values to its line. */
static void cq_moves_little_by_little(struct kunit *test)
{
	struct roan_ring ring, fresh;
	u32 head, i;

	two_cq_rings(test, &ring, &fresh);
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, 2), -EAGAIN);
	roan_ring_cqe_slot(&ring)->wr_id = 3;
	roan_ring_cqe_done(&ring);
	ring.ctl->user.index = 0x80000000;
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, 1), 0);
	KUNIT_EXPECT_EQ(test, ring.index, 4u);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, ((struct roan_cqe *)(ring.slots + i * ring.slot_size))->wr_id, (u64)i);
	roan_ring_free(&ring);
	roan_ring_free(&fresh);
}

/* A program may map the new ring before the resize fills it, and write anything there. */
static void cq_moves_into_a_scribbled_ring(struct kunit *test)
{
	struct roan_ring ring, fresh;
	u32 head;
	int i;

	two_cq_rings(test, &ring, &fresh);
	memset(&fresh.ctl->user, 0x80, sizeof(fresh.ctl->user));
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, U32_MAX), 0);
	KUNIT_EXPECT_EQ(test, ring.index, 3u);
	KUNIT_EXPECT_EQ(test, ring.ctl->kernel.index, 3u);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, ((struct roan_cqe *)(ring.slots + i * ring.slot_size))->wr_id, (u64)i);
	roan_ring_free(&ring);
	roan_ring_free(&fresh);
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
	KUNIT_CASE_PARAM(cq_overflow_is_reported_once, start_gen_params),
	KUNIT_CASE_PARAM(cq_events_follow_arming, start_gen_params),
	KUNIT_CASE_PARAM(cq_entry_has_handle_and_time, start_gen_params),
	KUNIT_CASE_PARAM(cq_forgets_a_qp, start_gen_params),
	KUNIT_CASE_PARAM(cq_resize_keeps_entries, start_gen_params),
	KUNIT_CASE(cq_moves_little_by_little),
	KUNIT_CASE(cq_moves_into_a_scribbled_ring),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "roan_ring",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = ring_cases,
};
kunit_test_suite(ring_suite);
