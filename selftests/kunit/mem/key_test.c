// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and their objects: exact look-up, waiting for users, fast registration. The cases check the validity of a key
 * by roan_remote_check(), as the responder does. Pinning user memory is not tested here: it needs a process. Memory
 * windows: mw_test.c.
 */
#include <linux/scatterlist.h>
#include <linux/workqueue.h>
#include "../fakes.h"

#define IOVA	0x7f0000001000ull
#define LEN	(PAGE_SIZE + 1904ull)
#define ALL_REMOTE	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

static u32 may_read(struct roan_qp *qp, u32 rkey, u64 va, u64 len)
{
	return roan_remote_check(qp, rkey, va, len, IB_ACCESS_REMOTE_READ);
}

/* ---- keys ---- */

static void only_the_exact_key_is_found(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_key a = {}, b = {};
	int bit;

	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &a), 0);
	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &b), 0);
	KUNIT_EXPECT_NE(test, a.key >> 8, b.key >> 8);
	KUNIT_EXPECT_PTR_EQ(test, roan_key_find(&f->dev, a.key), &a);
	KUNIT_EXPECT_PTR_EQ(test, roan_key_find(&f->dev, b.key), &b);
	KUNIT_EXPECT_EQ(test, refcount_read(&a.refs), 2u);
	roan_key_put(&a);
	roan_key_put(&b);
	for (bit = 0; bit < 32; bit++) {
		struct roan_key *k = roan_key_find(&f->dev, a.key ^ 1u << bit);

		KUNIT_EXPECT_NULL(test, k);
		if (k)
			roan_key_put(k);
	}
	roan_key_remove(&f->dev, &a);
	KUNIT_EXPECT_NULL(test, roan_key_find(&f->dev, a.key));
	KUNIT_EXPECT_EQ(test, refcount_read(&b.refs), 1u);	/* failed look-ups keep no reference */
	roan_key_remove(&f->dev, &b);
}

/* Of 1024 keys, each bit is set in about half, and differs from the previous key's in about half: within 8 sigma. */
static void keys_show_no_order(struct kunit *test)
{
	u32 set[32] = {}, differ[32] = {}, last = 0;
	struct fake *f = test->priv;
	struct roan_key k = {};
	int bit, i;

	for (i = 0; i < 1024; i++, last = k.key) {
		memset(&k, 0, sizeof(k));
		KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &k), 0);
		for (bit = 0; bit < 32; bit++) {
			set[bit] += k.key >> bit & 1;
			differ[bit] += (k.key ^ last) >> bit & 1;
		}
		roan_key_remove(&f->dev, &k);
	}
	for (bit = 0; bit < 32; bit++) {
		KUNIT_EXPECT_LT(test, abs((int)set[bit] - 512), 128);
		KUNIT_EXPECT_LT(test, abs((int)differ[bit] - 512), 128);
	}
}

struct removal {
	struct work_struct work;
	struct completion done;
	struct roan_dev *dev;
	struct roan_key key;
};

static void remove_it(struct work_struct *work)
{
	struct removal *r = container_of(work, struct removal, work);

	roan_key_remove(r->dev, &r->key);
	complete(&r->done);
}

static void removal_waits_for_users(struct kunit *test)
{
	struct removal *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct fake *f = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->dev = &f->dev;
	init_completion(&r->done);
	INIT_WORK(&r->work, remove_it);
	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &r->key), 0);
	KUNIT_ASSERT_PTR_EQ(test, roan_key_find(&f->dev, r->key.key), &r->key);
	schedule_work(&r->work);
	KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&r->done, HZ / 20), 0ul);
	KUNIT_EXPECT_NULL(test, roan_key_find(&f->dev, r->key.key));	/* no longer found */
	roan_key_put(&r->key);
	flush_work(&r->work);
	KUNIT_EXPECT_TRUE(test, completion_done(&r->done));
}

static bool enters(struct roan_dev *dev, u32 key)
{
	bool found = roan_key_acquire(dev, key);

	if (found)
		roan_key_release();
	return found;
}

/* Between roan_key_hold() and roan_key_drop() acquiring the same key needs no look-up: it works with an unpublished key. */
static void held_key_needs_no_second_lookup(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_key a = {}, b = {};
	struct roan_dev *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	bool again, elsewhere, variant, parted;

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_EQ(test, roan_key_table_init(other), 0);
	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &a), 0);
	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &b), 0);
	local_bh_disable();
	roan_key_hold();
	again = enters(&f->dev, a.key);
	roan_key_unpublish(&f->dev, &a);
	again &= enters(&f->dev, a.key);
	elsewhere = enters(other, a.key);	/* the same key value on another device */
	WRITE_ONCE(a.key, a.key ^ 1);
	variant = enters(&f->dev, a.key ^ 1);
	again &= enters(&f->dev, a.key);
	again &= enters(&f->dev, b.key);
	parted = enters(&f->dev, a.key);	/* acquiring @b has dropped @a */
	roan_key_drop();
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, again);
	KUNIT_EXPECT_FALSE(test, elsewhere);
	KUNIT_EXPECT_FALSE(test, variant);
	KUNIT_EXPECT_FALSE(test, parted);
	roan_key_remove(&f->dev, &a);
	roan_key_remove(&f->dev, &b);
	roan_key_table_exit(other);
}

static void synchronize_drops_the_own_key(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_key k = {};
	bool before, after;

	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &k), 0);
	local_bh_disable();
	roan_key_hold();
	before = enters(&f->dev, k.key);
	roan_key_unpublish(&f->dev, &k);
	roan_key_synchronize(&k);		/* must not wait for the key that this CPU holds */
	after = enters(&f->dev, k.key);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, before);
	KUNIT_EXPECT_FALSE(test, after);
	roan_key_remove(&f->dev, &k);
}

/* ---- fast registration ---- */

/* ib_map_mr_sg() of @len bytes at @memory, to appear at @iova. */
static int map(struct ib_mr *mr, void *memory, u32 len, u32 page_size, u64 iova)
{
	struct scatterlist sg;
	int n;

	sg_init_one(&sg, memory, len);
	sg_dma_address(&sg) = (u64)(uintptr_t)memory;	/* as for a device without DMA */
	sg_dma_len(&sg) = len;
	n = ib_map_mr_sg(mr, &sg, 1, NULL, page_size);
	mr->iova = iova;
	return n;
}

static struct roan_mr *new_frmr(struct kunit *test, void *memory, u32 len, u64 iova)
{
	struct fake *f = test->priv;
	struct ib_mr *mr = roan_alloc_mr(&f->pd.ib, IB_MR_TYPE_MEM_REG, 4);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_EQ(test, map(mr, memory, len, PAGE_SIZE, iova), 1);
	return to_roan_mr(mr);
}

static u32 reg(struct roan_qp *qp, const struct roan_mr *mr, u32 key, u32 access)
{
	struct roan_send_wqe wqe = { .reg = { .lkey = mr->ib.lkey, .key = key, .access = access } };

	return roan_mr_reg(qp, &wqe);
}

static void frmr_comes_and_goes_with_its_variants(struct kunit *test)
{
	struct fake *f = test->priv;
	u8 *memory = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct roan_mr *mr = new_frmr(test, memory, LEN, IOVA);
	u32 old = mr->key.key, key = ib_inc_rkey(old);
	u8 bytes[3];

	KUNIT_EXPECT_EQ(test, may_read(&f->qp, old, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_ASSERT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_REMOTE_READ), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, old, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, LEN), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, LEN + 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_remote_check(&f->qp, key, IOVA, 1, IB_ACCESS_REMOTE_WRITE), (u32)ROAN_VERR_BAD_ACCESS);
	memory[PAGE_SIZE - 1] = 1;
	memory[PAGE_SIZE] = 2;
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, key, IOVA + PAGE_SIZE - 2, bytes, 3, &f->icrc), 0u);
	KUNIT_EXPECT_MEMEQ(test, bytes, ((u8[]){ 0, 1, 2 }), 3);

	KUNIT_EXPECT_EQ(test, reg(&f->qp, mr, key, 0), (u32)ROAN_VERR_BAD_KEY);	/* already valid */
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_remote(&f->qp, old), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 1), 0u);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_remote(&f->qp, key), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_remote(&f->qp, key), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, key), 0u);	/* already invalid: success */
	key = ib_inc_rkey(key);
	KUNIT_ASSERT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_REMOTE_READ), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 1), 0u);
	f->qp.uctx = (struct ib_ucontext *)f;	/* a program's QP: only the exact key */
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, ib_inc_rkey(key)), (u32)ROAN_VERR_BAD_KEY);
	f->qp.uctx = NULL;
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, ib_inc_rkey(key)), 0u);	/* its REG_MR was flushed */
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 1), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);	/* no call kept a reference */
	KUNIT_EXPECT_EQ(test, roan_dereg_mr(&mr->ib, NULL), 0);
}

static void frmr_refusals(struct kunit *test)
{
	struct fake *f = test->priv;
	u8 *memory = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct roan_mr *user = fake_region(test, IOVA, 0, LEN, ALL_REMOTE);
	struct roan_mr *mr = new_frmr(test, memory, 100, IOVA);
	u32 key = mr->key.key;

	KUNIT_EXPECT_EQ(test, reg(&f->qp, mr, key ^ 0x100, 0), (u32)ROAN_VERR_BAD_KEY);	/* another index */
	KUNIT_EXPECT_EQ(test, reg(&f->qp, mr, key, 1u << 31), (u32)ROAN_VERR_BAD_ACCESS);
	KUNIT_EXPECT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_FLUSH_PERSISTENT), (u32)ROAN_VERR_BAD_ACCESS);
	KUNIT_EXPECT_EQ(test, reg(&f->qp, user, user->key.key, 0), (u32)ROAN_VERR_BAD_KEY);
	f->qp.ib.pd = &f->other_pd.ib;
	KUNIT_EXPECT_EQ(test, reg(&f->qp, mr, key, 0), (u32)ROAN_VERR_BAD_PD);
	f->qp.ib.pd = &f->pd.ib;
	KUNIT_ASSERT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_REMOTE_READ), 0u);
	f->qp.ib.pd = &f->other_pd.ib;
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_remote(&f->qp, key), (u32)ROAN_VERR_BAD_PD);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, key), (u32)ROAN_VERR_BAD_PD);
	f->qp.ib.pd = &f->pd.ib;
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 1), 0u);
	KUNIT_EXPECT_EQ(test, roan_key_invalidate_local(&f->qp, user->key.key), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, user->key.key, IOVA, 1), 0u);
	KUNIT_EXPECT_TRUE(test, IS_ERR(roan_alloc_mr(&f->pd.ib, IB_MR_TYPE_MEM_REG, ROAN_MAX_FAST_REG_PAGES + 1)));
	KUNIT_EXPECT_TRUE(test, IS_ERR(roan_alloc_mr(&f->pd.ib, IB_MR_TYPE_INTEGRITY, 1)));
	roan_dereg_mr(&mr->ib, NULL);
}

static void frmr_takes_no_more_pages_than_it_has(struct kunit *test)
{
	struct fake *f = test->priv;
	struct ib_mr *mr = roan_alloc_mr(&f->pd.ib, IB_MR_TYPE_MEM_REG, 2);
	u8 *memory = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	map(mr, memory, 4 * PAGE_SIZE, PAGE_SIZE, IOVA);
	KUNIT_ASSERT_EQ(test, reg(&f->qp, to_roan_mr(mr), mr->lkey, IB_ACCESS_REMOTE_READ), 0u);
	KUNIT_EXPECT_EQ(test, to_roan_mr(mr)->n_pages, 2u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, mr->lkey, IOVA, 2 * PAGE_SIZE + 1), (u32)ROAN_VERR_BAD_RANGE);
	roan_dereg_mr(mr, NULL);
}

static u8 first_byte(struct kunit *test, u32 key)
{
	struct fake *f = test->priv;
	u8 byte = 0;

	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, key, IOVA, &byte, 1, &f->icrc), 0u);
	return byte;
}

/* A consumer may map the next list before the current one is invalidated. REG_MR puts the new list into use. */
static void frmr_list_is_valid_when_registered(struct kunit *test)
{
	struct fake *f = test->priv;
	u8 *one = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL), *two = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct roan_mr *mr = new_frmr(test, one, PAGE_SIZE, IOVA);
	u32 key = mr->key.key;

	one[0] = 1;
	two[0] = 2;
	KUNIT_ASSERT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_REMOTE_READ), 0u);
	KUNIT_ASSERT_EQ(test, map(&mr->ib, two, 2 * PAGE_SIZE, PAGE_SIZE, IOVA), 1);
	KUNIT_EXPECT_EQ(test, first_byte(test, key), 1);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, PAGE_SIZE + 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_REMOTE_READ), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, first_byte(test, key), 1);
	KUNIT_ASSERT_EQ(test, roan_key_invalidate_local(&f->qp, key), 0u);
	KUNIT_ASSERT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_REMOTE_READ), 0u);
	KUNIT_EXPECT_EQ(test, first_byte(test, key), 2);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 2 * PAGE_SIZE), 0u);

	/* No new list since, or only a failed mapping: REG_MR reuses the old list. */
	KUNIT_ASSERT_EQ(test, roan_key_invalidate_local(&f->qp, key), 0u);
	KUNIT_EXPECT_EQ(test, roan_map_mr_sg(&mr->ib, NULL, 0, NULL), -EINVAL);
	KUNIT_ASSERT_EQ(test, reg(&f->qp, mr, key, IB_ACCESS_REMOTE_READ), 0u);
	KUNIT_EXPECT_EQ(test, first_byte(test, key), 2);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 2 * PAGE_SIZE), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, key, IOVA, 2 * PAGE_SIZE + 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_dereg_mr(&mr->ib, NULL), 0);
}

/* Two blocks in descending address order. The MR begins and ends inside a block. */
static void frmr_uses_the_given_block_size(struct kunit *test)
{
	const u32 block = 128 << 10, len = 2 * block - 300;
	struct fake *f = test->priv;
	struct ib_mr *mr = roan_alloc_mr(&f->pd.ib, IB_MR_TYPE_MEM_REG, 2);
	u8 *memory = kunit_kzalloc(test, 2 * block, GFP_KERNEL), *back = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct roan_sge sge = { .addr = IOVA, .length = len };
	struct scatterlist sg[2];
	u32 at[] = { 0, PAGE_SIZE - 110, block - 110, block + PAGE_SIZE - 110, len - 20 }, i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_NOT_NULL(test, memory);
	KUNIT_ASSERT_NOT_NULL(test, back);
	for (i = 0; i < len; i++)
		memory[(i + block + 100) % (2 * block)] = fake_pattern(i) ^ i >> 8;
	sg_init_table(sg, 2);
	sg_dma_address(&sg[0]) = (uintptr_t)memory + block + 100;
	sg_dma_len(&sg[0]) = block - 100;
	sg_dma_address(&sg[1]) = (uintptr_t)memory;
	sg_dma_len(&sg[1]) = block - 200;
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(mr, sg, 2, NULL, block - 1), -EINVAL);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr, sg, 2, NULL, block), 2);
	mr->iova = IOVA;
	sge.lkey = mr->lkey;
	KUNIT_ASSERT_EQ(test, reg(&f->qp, to_roan_mr(mr), mr->lkey, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ), 0u);
	KUNIT_EXPECT_EQ(test, may_read(&f->qp, mr->lkey, IOVA, len + 1), (u32)ROAN_VERR_BAD_RANGE);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		u8 *first = &memory[(at[i] + block + 100) % (2 * block)];
		u8 was = *first;

		KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mr->lkey, IOVA + at[i], back, 20, &f->icrc), 0u);
		KUNIT_EXPECT_EQ(test, back[0], was);
		KUNIT_EXPECT_EQ(test, back[19], (u8)(fake_pattern(at[i] + 19) ^ (at[i] + 19) >> 8));
		back[0] ^= 0xff;
		KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), at[i], roan_payload_bytes(back), 20),
				0u);
		KUNIT_EXPECT_EQ(test, *first, (u8)(was ^ 0xff));
	}
	roan_dereg_mr(mr, NULL);
}

static struct kunit_case key_cases[] = {
	KUNIT_CASE(only_the_exact_key_is_found),
	KUNIT_CASE(keys_show_no_order),
	KUNIT_CASE(removal_waits_for_users),
	KUNIT_CASE(held_key_needs_no_second_lookup),
	KUNIT_CASE(synchronize_drops_the_own_key),
	KUNIT_CASE(frmr_comes_and_goes_with_its_variants),
	KUNIT_CASE(frmr_refusals),
	KUNIT_CASE(frmr_takes_no_more_pages_than_it_has),
	KUNIT_CASE(frmr_list_is_valid_when_registered),
	KUNIT_CASE(frmr_uses_the_given_block_size),
	{}
};

static struct kunit_suite key_suite = {
	.name = "roan_key",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = key_cases,
};
kunit_test_suite(key_suite);
