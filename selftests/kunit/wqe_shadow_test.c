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

static struct kunit_case mirror_cases[] = {
	KUNIT_CASE_PARAM(grow__work_under_way_stays, start_gen_params),
	KUNIT_CASE(grow__no_larger_than_the_ring),
	KUNIT_CASE(grow__no_larger_than_two_windows),
	{}
};

static struct kunit_suite mirror_suite = {
	.name = "roan_wqe_shadow",
	.test_cases = mirror_cases,
};

kunit_test_suite(mirror_suite);
