// SPDX-License-Identifier: GPL-2.0
/* WQE shadows that grow: outstanding WQEs keep their index and contents, also across 2^32. */
#include "fakes.h"

static struct roan_sq *new_sq(struct kunit *test, u32 slots, u32 index)
{
	struct roan_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sq);
	spin_lock_init(&sq->lock);
	sq->ring.mask = slots - 1;
	sq->ring.slot_size = 80;
	KUNIT_ASSERT_EQ(test, roan_wqe_shadow_init(sq), 0);
	sq->req.retire = index;
	sq->req.tail = index;
	return sq;
}

static bool queue_one(struct roan_sq *sq)
{
	u32 index;
	struct roan_tx_wqe *work = roan_requester_slot(&sq->req, &index);

	if (!work)
		return false;
	work->len = index;
	roan_sq_shadow(sq, index)->wqe.wr_id = index;
	roan_requester_queued(&sq->req);
	return true;
}

static u32 fill(struct roan_sq *sq)
{
	u32 n = 0;

	while (queue_one(sq))
		n++;
	return n;
}

static bool grow(struct roan_sq *sq)
{
	bool grew;

	spin_lock_bh(&sq->lock);
	grew = roan_wqe_shadow_grow(sq);
	spin_unlock_bh(&sq->lock);
	return grew;
}

static const u32 starts[] = { 0, 5, U32_MAX - 1 };

static void start_desc(const u32 *start, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "index %u", *start);
}

KUNIT_ARRAY_PARAM(start, starts, start_desc);

static void grow__work_under_way_stays(struct kunit *test)
{
	u32 first = *(const u32 *)test->param_value, i;
	struct roan_sq *sq = new_sq(test, 64, first);

	KUNIT_EXPECT_EQ(test, fill(sq), 2);
	KUNIT_EXPECT_TRUE(test, grow(sq));
	KUNIT_EXPECT_EQ(test, fill(sq), 6);
	KUNIT_EXPECT_TRUE(test, grow(sq));
	KUNIT_EXPECT_EQ(test, fill(sq), 24);
	for (i = first; i != sq->req.tail; i++) {
		KUNIT_EXPECT_EQ(test, roan_requester_wqe(&sq->req, i)->len, i);
		KUNIT_EXPECT_EQ(test, roan_sq_shadow(sq, i)->wqe.wr_id, (u64)i);
	}
	roan_wqe_shadow_free(sq);
}

static void grow__no_larger_than_the_ring(struct kunit *test)
{
	struct roan_sq *sq = new_sq(test, 8, 0);

	KUNIT_EXPECT_TRUE(test, grow(sq));
	KUNIT_EXPECT_EQ(test, fill(sq), 8);
	KUNIT_EXPECT_FALSE(test, grow(sq));
	roan_wqe_shadow_free(sq);
}

static void grow__no_larger_than_two_windows(struct kunit *test)
{
	struct roan_sq *sq = new_sq(test, 1 << 15, 0);

	while (grow(sq))
		;
	KUNIT_EXPECT_EQ(test, fill(sq), ROAN_MAX_UNDER_WAY);
	roan_wqe_shadow_free(sq);
}

static bool uses_key(struct roan_sq *sq, u32 end, u32 key)
{
	bool uses;

	spin_lock_bh(&sq->lock);
	uses = roan_wqe_shadow_uses_key(sq, end, key);
	spin_unlock_bh(&sq->lock);
	return uses;
}

/* Each request has a buffer by key 256 times its index. */
static void queue_with_keys(struct roan_sq *sq)
{
	u32 i;

	fill(sq);
	for (i = sq->req.retire; i != sq->req.tail; i++) {
		struct roan_send_wqe *wqe = &roan_sq_shadow(sq, i)->wqe;

		wqe->num_sge = 1;
		roan_wqe_sges(wqe)->lkey = i << 8;
	}
}

static void uses_key__of_earlier_requests_that_are_not_completed(struct kunit *test)
{
	struct roan_sq *sq = new_sq(test, 64, 100);

	while (grow(sq))
		;
	queue_with_keys(sq);
	sq->req.retire += 2;
	KUNIT_EXPECT_FALSE(test, uses_key(sq, 110, 101 << 8));		/* completed */
	KUNIT_EXPECT_TRUE(test, uses_key(sq, 110, 102 << 8));
	KUNIT_EXPECT_TRUE(test, uses_key(sq, 110, 109 << 8 | 7));	/* another variant */
	KUNIT_EXPECT_FALSE(test, uses_key(sq, 110, 110 << 8));		/* a later one */
	roan_wqe_shadow_free(sq);
}

/* The list of a request that was refused may have any length. */
static void uses_key__ignores_inline_data_and_refused_requests(struct kunit *test)
{
	struct roan_sq *sq = new_sq(test, 8, 0);

	while (grow(sq))
		;
	queue_with_keys(sq);
	roan_sq_shadow(sq, 1)->wqe.flags = ROAN_SEND_INLINE;
	roan_sq_shadow(sq, 2)->vendor_err = ROAN_VERR_TOO_LONG;
	roan_sq_shadow(sq, 2)->wqe.num_sge = 255;
	KUNIT_EXPECT_FALSE(test, uses_key(sq, 8, 1 << 8));
	KUNIT_EXPECT_FALSE(test, uses_key(sq, 8, 2 << 8));
	KUNIT_EXPECT_TRUE(test, uses_key(sq, 8, 3 << 8));
	roan_wqe_shadow_free(sq);
}

static void uses_key__if_many_are_to_be_looked_at(struct kunit *test)
{
	struct roan_sq *sq = new_sq(test, 2048, 0);

	while (grow(sq))
		;
	queue_with_keys(sq);
	KUNIT_EXPECT_FALSE(test, uses_key(sq, 256, 5000 << 8));
	KUNIT_EXPECT_TRUE(test, uses_key(sq, 257, 5000 << 8));
	roan_wqe_shadow_free(sq);
}

static struct kunit_case mirror_cases[] = {
	KUNIT_CASE_PARAM(grow__work_under_way_stays, start_gen_params),
	KUNIT_CASE(grow__no_larger_than_the_ring),
	KUNIT_CASE(grow__no_larger_than_two_windows),
	KUNIT_CASE(uses_key__of_earlier_requests_that_are_not_completed),
	KUNIT_CASE(uses_key__ignores_inline_data_and_refused_requests),
	KUNIT_CASE(uses_key__if_many_are_to_be_looked_at),
	{}
};

static struct kunit_suite mirror_suite = {
	.name = "roan_wqe_shadow",
	.test_cases = mirror_cases,
};

kunit_test_suite(mirror_suite);
