// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows: what a bind makes accessible, by which R_Key and to which QP, the end of accesses by the old R_Key,
 * and the region's count of windows. The cases check a key by roan_remote_check(), as the responder does.
 */
#include "../fakes.h"

#define IOVA	0x7f0000001000ull
#define LEN	(PAGE_SIZE + 1904ull)
#define ALL_REMOTE	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define LENDABLE	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND)

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

/* A bind WQE for @len bytes at @addr of @mr, with the window's next key variant. */
static struct roan_send_wqe bind_of(const struct roan_mw_binding *win, const struct roan_mr *mr, u64 addr, u64 len)
{
	return (struct roan_send_wqe) {
		.bind = {
			.addr = addr,
			.length = len,
			.mr_lkey = mr->key.key,
			.mw_rkey = win->key.key,
			.new_rkey = ib_inc_rkey(win->key.key),
			.access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		},
	};
}

static u32 bind(struct roan_qp *qp, const struct roan_mw_binding *win, const struct roan_mr *mr, u64 addr, u64 len)
{
	struct roan_send_wqe wqe = bind_of(win, mr, addr, len);

	return roan_mw_bind(qp, &wqe);
}

static void window_grants_its_part(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 100, LEN, LENDABLE);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window_of(test, IB_MW_TYPE_1, &mw);
	u32 fresh = win->key.key;
	u8 byte;

	KUNIT_EXPECT_EQ(test, may_read(&f->qp, fresh, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, IOVA + 1000, 50), 0u);
	KUNIT_EXPECT_EQ(test, win->key.key, ib_inc_rkey(fresh));
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, fresh, IOVA + 1000, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA + 1000, 50), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA + 999, 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA + 1050, 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA + 1049, 2), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, win->key.key, IOVA + 1049, &byte, 1, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, byte, fake_pattern(1049));
	KUNIT_EXPECT_EQ(test, may_read(&f->other_qp, win->key.key, IOVA + 1000, 1), 0u);	/* type 1: any QP */
	KUNIT_EXPECT_EQ(test, roan_remote_check(&f->qp, win->key.key, IOVA + 1000, 8, IB_ACCESS_REMOTE_ATOMIC),
			(u32)ROAN_VERR_BAD_ACCESS);
	/* The MR itself grants no remote read. */
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, mr->key.key, IOVA + 1000, 1), (u32)ROAN_VERR_BAD_ACCESS);

	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, IOVA, LEN), 0u);	/* rebound */
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 1);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, LEN), 0u);
	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, 0, 0), 0u);		/* unbound */
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
	KUNIT_EXPECT_EQ(test, roan_dealloc_mw(&mw.ib), 0);
}

static void type_2_window_belongs_to_its_qp(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, LENDABLE);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window_of(test, IB_MW_TYPE_2, &mw);

	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA, 0), (u32)ROAN_VERR_BAD_BIND);
	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, IOVA, LEN), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, LEN), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->other_qp, win->key.key, IOVA, LEN), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA, LEN), (u32)ROAN_VERR_BAD_BIND);	/* bound already */
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_remote(&f->other_qp, win->key.key), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, LEN), 0u);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_remote(&f->qp, win->key.key), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, IOVA, 10), 0u);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, win->key.key), 0u);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
	roan_dealloc_mw(&mw.ib);

	/* A type 1 window cannot be invalidated. */
	win = new_window_of(test, IB_MW_TYPE_1, &mw);
	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, IOVA, 10), 0u);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, win->key.key), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, 10), 0u);
	roan_dealloc_mw(&mw.ib);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
}

static void zero_based_window_counts_from_its_beginning(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, LENDABLE);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window_of(test, IB_MW_TYPE_2, &mw);
	struct roan_send_wqe wqe = bind_of(win, mr, IOVA + 100, 64);
	u8 bytes[2];

	wqe.bind.access |= IB_ZERO_BASED;
	KUNIT_ASSERT_EQ(test, roan_mw_bind(&f->qp, &wqe), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, 0, 64), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, 1, 64), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, U64_MAX, 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA + 100, 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, win->key.key, 0, &bytes[0], 1, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, win->key.key, 63, &bytes[1], 1, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, bytes[0], fake_pattern(100));
	KUNIT_EXPECT_EQ(test, bytes[1], fake_pattern(163));
	roan_dealloc_mw(&mw.ib);

	win = new_window_of(test, IB_MW_TYPE_1, &mw);
	wqe = bind_of(win, mr, IOVA, 10);
	wqe.bind.access |= IB_ZERO_BASED;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_BIND);
	roan_dealloc_mw(&mw.ib);
}

static void region_stays_while_lent(struct kunit *test)
{
	struct fake *f = test->priv;
	struct ib_mr *ibmr = roan_alloc_mr(&f->pd.ib, IB_MR_TYPE_MEM_REG, 4);
	struct roan_mr *mr = to_roan_mr(ibmr);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window_of(test, IB_MW_TYPE_2, &mw);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA, 100), (u32)ROAN_VERR_BAD_BIND);
	mr->kind = ROAN_MR_USER;	/* roan_dereg_mr() treats it like a user's */
	mr->access = LENDABLE;
	mr->iova = IOVA;
	mr->length = 100;
	mr->state = ROAN_MR_VALID;
	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, IOVA, 100), 0u);
	KUNIT_EXPECT_EQ(test, roan_dereg_mr(&mr->ib, NULL), -EBUSY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, win->key.key, IOVA, 100), 0u);	/* still bound */
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, win->key.key), 0u);
	mr->kind = ROAN_MR_FAST;
	KUNIT_EXPECT_EQ(test, roan_dereg_mr(&mr->ib, NULL), 0);
	roan_dealloc_mw(&mw.ib);
}

static void binds_that_are_refused(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, LENDABLE);
	struct roan_mr *unlendable = fake_region(test, IOVA, 0, LEN, IB_ACCESS_LOCAL_WRITE | ALL_REMOTE);
	struct roan_mr *readonly = fake_region(test, IOVA, 0, LEN, IB_ACCESS_MW_BIND);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window_of(test, IB_MW_TYPE_1, &mw);
	u32 key = win->key.key;
	struct roan_send_wqe wqe;

	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, unlendable, IOVA, 1), (u32)ROAN_VERR_BAD_ACCESS);
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, readonly, IOVA, 1), (u32)ROAN_VERR_BAD_ACCESS);
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA - 1, 2), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA, LEN + 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA + LEN, 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA + 8, U64_MAX - 4), (u32)ROAN_VERR_BAD_RANGE);

	wqe = bind_of(win, mr, IOVA, 1);
	wqe.bind.new_rkey = win->key.key;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_BIND);
	wqe = bind_of(win, mr, IOVA, 1);
	wqe.bind.access = IB_ACCESS_MW_BIND;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_BIND);
	wqe = bind_of(win, mr, IOVA, 1);
	wqe.bind.mw_rkey = mr->key.key;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_KEY);
	wqe = bind_of(win, mr, IOVA, 1);
	wqe.bind.mr_lkey = win->key.key;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_KEY);
	wqe.bind.mr_lkey = mr->key.key ^ 1;
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_KEY);
	f->qp.transport = ROAN_TP_UD;
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA, 1), (u32)ROAN_VERR_BAD_BIND);
	f->qp.transport = ROAN_TP_RC;
	f->qp.ib.pd = &f->other_pd.ib;
	KUNIT_EXPECT_EQ(test, bind(&f->qp, win, mr, IOVA, 1), (u32)ROAN_VERR_BAD_PD);
	f->qp.ib.pd = &f->pd.ib;

	KUNIT_EXPECT_EQ(test, win->key.key, key);
	KUNIT_EXPECT_FALSE(test, win->valid);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
	KUNIT_EXPECT_EQ(test, atomic_read(&unlendable->n_mws), 0);
	roan_dealloc_mw(&mw.ib);
}

static void dealloc_returns_what_was_lent(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, LENDABLE);
	struct roan_mw mw;
	struct roan_mw_binding *win = new_window_of(test, IB_MW_TYPE_2, &mw);
	u32 key;

	KUNIT_ASSERT_EQ(test, bind(&f->qp, win, mr, IOVA, LEN), 0u);
	key = win->key.key;
	KUNIT_EXPECT_EQ(test, roan_dealloc_mw(&mw.ib), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
}

static struct kunit_case mw_cases[] = {
	KUNIT_CASE(window_grants_its_part),
	KUNIT_CASE(type_2_window_belongs_to_its_qp),
	KUNIT_CASE(zero_based_window_counts_from_its_beginning),
	KUNIT_CASE(region_stays_while_lent),
	KUNIT_CASE(binds_that_are_refused),
	KUNIT_CASE(dealloc_returns_what_was_lent),
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
