// SPDX-License-Identifier: GPL-2.0
/*
 * The R_Key after a bind of a type 2 memory window, the end of accesses by the old R_Key, and the region's count of
 * windows. Other properties of windows are tested in key_test.c.
 */
#include "../fakes.h"

#define IOVA	0x7f0000001000ull
#define LEN	6000ull

static u32 may_read(struct roan_qp *qp, u32 rkey, u64 va, u64 len)
{
	return roan_remote_check(qp, rkey, va, len, IB_ACCESS_REMOTE_READ);
}

static struct roan_mw_binding *new_window_of(struct kunit *test, enum ib_mw_type type, struct roan_mw *mw)
{
	struct fake *f = test->priv;

	memset(mw, 0, sizeof(*mw));
	mw->ib.device = &f->dev.ib;
	mw->ib.pd = &f->pd.ib;
	mw->ib.type = type;
	KUNIT_ASSERT_EQ(test, roan_alloc_mw(&mw->ib, NULL), 0);
	return mw->win;
}

static struct roan_mw_binding *new_window(struct kunit *test, struct roan_mw *mw)
{
	return new_window_of(test, IB_MW_TYPE_2, mw);
}

/* A consumer controls the low 8 bits of an R_Key. A type 2 bind ignores the other bits of new_rkey. */
static void type_2_bind_keeps_the_index(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window(test, &mw);
	u32 index = win->key.key & ~0xffu, key = index | 0xba, old;
	struct roan_send_wqe wqe = {
		.bind = { .addr = IOVA, .length = LEN, .mr_lkey = mr->key.key, .mw_rkey = win->key.key,
			  .new_rkey = 0xba, .access = IB_ACCESS_REMOTE_READ },
	};

	KUNIT_ASSERT_EQ(test, roan_mw_bind(&f->qp, &wqe), 0u);
	KUNIT_EXPECT_EQ(test, win->key.key, key);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, LEN), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, 0xba, IOVA, LEN), (u32)ROAN_VERR_BAD_KEY);
	/* Invalidation needs the current key, all 32 bits. */
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, 0xba), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, index | 0xbb), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_remote(&f->qp, key), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);

	/* Bind a free window with its current key, and with a key whose upper bits all differ. */
	wqe.bind.new_rkey = key;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, LEN), 0u);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, key), 0u);
	old = key;
	key = index | 0x17;
	wqe.bind.new_rkey = (~index & ~0xffu) | 0x17;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), 0u);
	KUNIT_EXPECT_EQ(test, win->key.key, key);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, old, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, key), 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
	roan_dealloc_mw(&mw.ib);
}

/* A bind by a QP of another PD, which may have guessed the key, must not make the region's deregistration fail. */
static void region_of_another_pd_is_not_counted(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window(test, &mw);
	struct roan_send_wqe wqe = {
		.bind = { .addr = IOVA, .length = LEN, .mr_lkey = mr->key.key, .mw_rkey = win->key.key,
			  .access = IB_ACCESS_REMOTE_READ },
	};
	struct ib_pd other = {};

	atomic_set(&mr->n_mws, INT_MIN);	/* nothing can be counted: a bind that tried would get BAD_KEY */
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_KEY);
	mr->ib.pd = &other;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_PD);
	mr->ib.pd = &f->pd.ib;
	atomic_set(&mr->n_mws, 0);
	roan_dealloc_mw(&mw.ib);
}

/*
 * The key that an invalidation found is replaced, by another invalidation and a bind, before it acts: it invalidates
 * nothing.
 */
static void old_key_does_not_invalidate(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window(test, &mw);
	u32 old = win->key.key;
	struct roan_send_wqe wqe = {
		.bind = { .addr = IOVA, .length = LEN, .mr_lkey = mr->key.key, .mw_rkey = old,
			  .new_rkey = ib_inc_rkey(old), .access = IB_ACCESS_REMOTE_READ },
	};

	KUNIT_ASSERT_EQ(test, roan_mw_bind(&f->qp, &wqe), 0u);
	KUNIT_EXPECT_EQ(test, roan_mw_invalidate(&f->qp, win, old), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, LEN), 0u);
	KUNIT_EXPECT_EQ(test, roan_mw_invalidate(&f->qp, win, win->key.key), 0u);
	roan_dealloc_mw(&mw.ib);
}

/*
 * Binds @win while this CPU holds its key. Returns true if the bind waited for all CPUs that hold the key. For that it
 * dropped this CPU's own.
 */
static bool bind_waits(struct kunit *test, struct roan_mw_binding *win, const struct roan_mr *mr, u64 len)
{
	struct fake *f = test->priv;
	struct roan_send_wqe wqe = {
		.bind = { .addr = IOVA, .length = len, .mr_lkey = mr->key.key, .mw_rkey = win->key.key,
			  .new_rkey = ib_inc_rkey(win->key.key), .access = IB_ACCESS_REMOTE_READ },
	};
	bool held, dropped;
	u32 verr;

	local_bh_disable();
	roan_key_hold();
	held = roan_key_acquire(&f->dev, win->key.key);
	verr = roan_mw_bind(&f->qp, &wqe);
	dropped = !this_cpu_read(roan_key_hazard.key);
	roan_key_drop();
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, held);
	KUNIT_EXPECT_EQ(test, verr, 0u);
	return dropped;
}

/* Once a type 1 window is bound elsewhere, or to nothing, the old part of the region belongs to the program again. */
static void type_1_bind_waits_for_users_of_the_old_key(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window_of(test, IB_MW_TYPE_1, &mw);

	KUNIT_EXPECT_FALSE(test, bind_waits(test, win, mr, LEN));	/* nothing was accessible before */
	KUNIT_EXPECT_TRUE(test, bind_waits(test, win, mr, LEN / 2));
	KUNIT_EXPECT_TRUE(test, bind_waits(test, win, mr, 0));
	KUNIT_EXPECT_FALSE(test, bind_waits(test, win, mr, LEN));
	roan_dealloc_mw(&mw.ib);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
}

static struct kunit_case mw_cases[] = {
	KUNIT_CASE(type_2_bind_keeps_the_index),
	KUNIT_CASE(region_of_another_pd_is_not_counted),
	KUNIT_CASE(old_key_does_not_invalidate),
	KUNIT_CASE(type_1_bind_waits_for_users_of_the_old_key),
	{}
};

static struct kunit_suite mw_suite = {
	.name = "roan_mw",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = mw_cases,
};
kunit_test_suite(mw_suite);
