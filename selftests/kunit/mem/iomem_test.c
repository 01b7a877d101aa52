// SPDX-License-Identifier: GPL-2.0
/*
 * MRs without pages: I/O memory in pieces out of address order, contiguous kernel memory, revoked memory. Tests that
 * the bytes are copied to the right place, by I/O accessors. Access rights are tested in mr_access_test.c.
 */
#include <linux/io.h>
#include "../fakes.h"
#include "fake_bar.h"

#define IOVA	0x7f0000002008ull
#define OFF	0x208			/* offset of the MR in its first piece */
#define LEN	(3 * PAGE_SIZE - 0x100)	/* ends in the third piece; the fourth is beyond */

#define ALL_ACCESS	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_LOCAL_WRITE)

static struct fake_bar bar;
static u8 __iomem *window;	/* all the pieces, in the order of their addresses */

/* Address of byte @pos of the pieces. The first piece has the highest address. */
static u8 __iomem *where(u64 pos)
{
	return window + (FAKE_PAGES - 1 - pos / PAGE_SIZE) * PAGE_SIZE + pos % PAGE_SIZE;
}

static void fill(void)
{
	u64 pos;

	for (pos = 0; pos < FAKE_PAGES * PAGE_SIZE; pos++)
		writeb(pos < OFF || pos >= OFF + LEN ? FAKE_EDGE : fake_pattern(pos - OFF), where(pos));
}

/* Exactly bytes [@off, @off + @len) of the MR equal @want; the others are unchanged. */
static void expect_bytes(struct kunit *test, u64 off, u64 len, const u8 *want)
{
	u64 pos;

	for (pos = 0; pos < FAKE_PAGES * PAGE_SIZE; pos++) {
		u64 i = pos - OFF;
		u8 is = readb(where(pos));
		u8 must = pos < OFF || i >= LEN ? FAKE_EDGE : i - off < len ? want[i - off] : fake_pattern(i);

		if (is == must)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, is, must, "byte %llu of the pieces", pos);
		return;
	}
}

static struct roan_mr *io_region(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	mr->ib.device = &f->dev.ib;
	mr->ib.pd = &f->pd.ib;
	mr->kind = ROAN_MR_USER;
	mr->state = ROAN_MR_VALID;
	mr->access = ALL_ACCESS;
	mr->iova = IOVA;
	mr->length = LEN;
	mr->io = roan_iomem_alloc(FAKE_PAGES, PAGE_SHIFT, OFF);
	KUNIT_ASSERT_NOT_NULL(test, mr->io);
	for (i = 0; i < FAKE_PAGES; i++)
		mr->io->piece[i] = where(i * PAGE_SIZE);
	fill();
	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &mr->key), 0);
	return mr;
}

static int io_init(struct kunit *test)
{
	int err = fake_init(test);

	if (err)
		return err;
	err = fake_bar_get(&bar);
	if (err)
		return 0;	/* the cases skip */
	window = ioremap_wc(bar.start, FAKE_PAGES * PAGE_SIZE);
	return window ? 0 : -ENOMEM;
}

static void io_exit(struct kunit *test)
{
	if (window) {
		iounmap(window);
		window = NULL;
		fake_bar_put(&bar);
	}
	fake_exit(test);
}

static u8 *random_bytes(struct kunit *test, u32 len)
{
	u8 *bytes = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	get_random_bytes(bytes, len);
	return bytes;
}

/* Start and end within a word, at the edge of a piece, and across two edges. */
static void bytes_cross_pieces(struct kunit *test)
{
	static const struct { u64 off; u32 len; } spans[] = {
		{ 0, 1 }, { 3, 300 }, { PAGE_SIZE - OFF - 1, 2 }, { PAGE_SIZE - OFF, 8 }, { 5, PAGE_SIZE + 1000 },
		{ PAGE_SIZE - OFF - 7, PAGE_SIZE + 20 }, { 0, LEN }, { LEN - 1, 1 },
	};
	struct fake *f = test->priv;
	struct roan_mr *mr;
	u8 *sent, *back;
	int i;

	if (!window)
		kunit_skip(test, "no I/O memory here");
	mr = io_region(test);
	sent = random_bytes(test, LEN + 3);
	back = random_bytes(test, LEN);
	for (i = 0; i < ARRAY_SIZE(spans); i++) {
		struct roan_sge sge = { .addr = IOVA + spans[i].off, .length = spans[i].len, .lkey = mr->key.key };
		struct sk_buff *skb = alloc_skb(LEN + 3, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, skb);
		skb_put_data(skb, sent, LEN + 3);
		fill();
		f->icrc.state = 0;
		KUNIT_EXPECT_EQ(test, roan_remote_write(&f->qp, mr->key.key, sge.addr, roan_payload_skb(skb, 3),
							sge.length), 0u);
		expect_bytes(test, spans[i].off, sge.length, sent + 3);
		KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mr->key.key, sge.addr, back, sge.length, &f->icrc), 0u);
		KUNIT_EXPECT_MEMEQ(test, back, sent + 3, sge.length);
		KUNIT_EXPECT_EQ(test,
				roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_bytes(sent), sge.length), 0u);
		expect_bytes(test, spans[i].off, sge.length, sent);
		KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, &sge, 1), 0, back, sge.length, &f->icrc), 0u);
		KUNIT_EXPECT_MEMEQ(test, back, sent, sge.length);
		KUNIT_EXPECT_EQ(test, f->icrc.state, roan_crc32(roan_crc32(0, sent + 3, sge.length), sent, sge.length));
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
	kvfree(mr->io);
}

static void words_over_the_bus(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_pkt pkt = { .info = roan_opcode(roan_opcode_of(ROAN_TP_RC, ROAN_OP_FETCH_ADD, ROAN_SEG_ONLY,
								   ROAN_EXT_NONE)) };
	struct roan_mr *mr;
	u64 orig, word;

	if (!window)
		kunit_skip(test, "no I/O memory here");
	mr = io_region(test);
	pkt.rkey = mr->key.key;
	pkt.va = IOVA + PAGE_SIZE - OFF;		/* first byte of the second piece */
	word = readq(where(PAGE_SIZE));
	pkt.swap_add = 5;
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), 0u);
	KUNIT_EXPECT_EQ(test, orig, word);
	KUNIT_EXPECT_EQ(test, readq(where(PAGE_SIZE)), word + 5);
	pkt.info = roan_opcode(roan_opcode_of(ROAN_TP_RC, ROAN_OP_CMP_SWAP, ROAN_SEG_ONLY, ROAN_EXT_NONE));
	pkt.compare = word;
	pkt.swap_add = 77;
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), 0u);
	KUNIT_EXPECT_EQ(test, orig, word + 5);
	KUNIT_EXPECT_EQ(test, readq(where(PAGE_SIZE)), word + 5);
	pkt.compare = word + 5;
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), 0u);
	KUNIT_EXPECT_EQ(test, readq(where(PAGE_SIZE)), 77ull);
	KUNIT_EXPECT_EQ(test, remote_atomic_write(f, mr, pkt.va, 1234567), 0u);
	KUNIT_EXPECT_EQ(test, __raw_readq(where(PAGE_SIZE)), 1234567ull);
	writeq(word, where(PAGE_SIZE));
	mr->io->off = OFF + 4;		/* memory and IOVA differ by 4 bytes modulo 8 */
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), (u32)ROAN_VERR_UNALIGNED);
	pkt.va -= 8;			/* half in the first piece */
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), (u32)ROAN_VERR_UNALIGNED);
	KUNIT_EXPECT_EQ(test, remote_atomic_write(f, mr, pkt.va, 0), (u32)ROAN_VERR_UNALIGNED);
	expect_bytes(test, 0, 0, NULL);
	kvfree(mr->io);
}

static void flushes_reach_the_bus(struct kunit *test)
{
	struct roan_pkt pkt = { .va = IOVA, .dma_len = LEN, .flush_type = ROAN_FLUSH_GLOBAL };
	struct fake *f = test->priv;
	struct roan_mr *mr;

	if (!window)
		kunit_skip(test, "no I/O memory here");
	mr = io_region(test);
	mr->access |= IB_ACCESS_FLUSH_GLOBAL;
	pkt.rkey = mr->key.key;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), 0u);
	pkt.flush_level = ROAN_FLUSH_MR;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), 0u);
	expect_bytes(test, 0, 0, NULL);
	kvfree(mr->io);
}

static void contiguous_memory_has_one_run(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, ALL_ACCESS);
	u8 *memory = kunit_kzalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);
	u8 *sent = random_bytes(test, PAGE_SIZE + 9), *back = random_bytes(test, PAGE_SIZE + 9);
	struct roan_sge sge = { .addr = IOVA + 100, .length = PAGE_SIZE + 9, .lkey = mr->key.key };
	struct fake *f = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	mr->pages = NULL;
	mr->vaddr = memory + 11;
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_bytes(sent), sge.length), 0u);
	KUNIT_EXPECT_EQ(test, memory[110], 0);
	KUNIT_EXPECT_MEMEQ(test, memory + 111, sent, PAGE_SIZE + 9);
	KUNIT_EXPECT_EQ(test, memory[111 + PAGE_SIZE + 9], 0);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mr->key.key, sge.addr, back, sge.length, &f->icrc), 0u);
	KUNIT_EXPECT_MEMEQ(test, back, sent, PAGE_SIZE + 9);
}

static void revoked_memory_is_not_accessed(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, 0, LEN, ALL_ACCESS | IB_ACCESS_MW_BIND);
	struct fake *f = test->priv;
	struct roan_mw mw = { .ib = { .device = &f->dev.ib, .pd = &f->pd.ib, .type = IB_MW_TYPE_1 } };
	struct roan_send_wqe wqe = { .bind = { .addr = IOVA, .length = LEN, .mr_lkey = mr->key.key,
					       .access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ } };
	struct roan_sge sge = { .addr = IOVA, .length = 8, .lkey = mr->key.key };
	struct roan_pkt pkt = { .rkey = mr->key.key, .va = IOVA, .flush_type = ROAN_FLUSH_GLOBAL };
	u64 word = 0;

	KUNIT_ASSERT_EQ(test, roan_alloc_mw(&mw.ib, NULL), 0);
	wqe.bind.mw_rkey = mw.win->key.key;
	wqe.bind.new_rkey = ib_inc_rkey(mw.win->key.key);
	KUNIT_ASSERT_EQ(test, roan_mw_bind(&f->qp, &wqe), 0u);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mw.win->key.key, IOVA, &word, 8, &f->icrc), 0u);

	roan_mr_revoke(mr);		/* allowed while an MW is bound */
	mr->pages = NULL;		/* a later access would crash */
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mr->key.key, IOVA, &word, 8, &f->icrc), (u32)ROAN_VERR_REVOKED);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mw.win->key.key, IOVA, &word, 8, &f->icrc),
			(u32)ROAN_VERR_REVOKED);
	KUNIT_EXPECT_EQ(test, remote_atomic_write(f, mr, IOVA, 1), (u32)ROAN_VERR_REVOKED);
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_REVOKED);
	KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, &sge, 1), 0, &word, 8, &f->icrc), (u32)ROAN_VERR_REVOKED);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_bytes(&word), 8),
			(u32)ROAN_VERR_REVOKED);
	wqe.bind.mw_rkey = mw.win->key.key;
	wqe.bind.new_rkey = ib_inc_rkey(mw.win->key.key);
	KUNIT_EXPECT_EQ(test, roan_mw_bind(&f->qp, &wqe), (u32)ROAN_VERR_BAD_KEY);
	roan_dealloc_mw(&mw.ib);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->n_mws), 0);
}

/*
 * The RDMA core filters unknown access flags, but a later kernel may pass new ones. They are refused before @fd is
 * used.
 */
static void dmabuf_rights(struct kunit *test)
{
	struct fake *f = test->priv;
	enum { basic = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC };
	static const struct {
		int access, err;
	} tries[] = {
		{ basic, -EBADF },
		{ basic | IB_ACCESS_OPTIONAL, -EBADF },
		{ basic | IB_ACCESS_ON_DEMAND, -EOPNOTSUPP },
		{ basic | IB_ZERO_BASED, -EOPNOTSUPP },
		{ basic | IB_ACCESS_FLUSH_PERSISTENT, -EOPNOTSUPP },
		{ basic | 1 << 19, -EOPNOTSUPP },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(tries); i++)
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR(roan_reg_user_mr_dmabuf(&f->pd.ib, 0, PAGE_SIZE, 0, -1, tries[i].access)),
				    tries[i].err, "access %#x", tries[i].access);
}

static struct kunit_case io_cases[] = {
	KUNIT_CASE(bytes_cross_pieces),
	KUNIT_CASE(words_over_the_bus),
	KUNIT_CASE(flushes_reach_the_bus),
	KUNIT_CASE(contiguous_memory_has_one_run),
	KUNIT_CASE(revoked_memory_is_not_accessed),
	KUNIT_CASE(dmabuf_rights),
	{}
};

static struct kunit_suite io_suite = {
	.name = "roan_iomem",
	.init = io_init,
	.exit = io_exit,
	.test_cases = io_cases,
};
kunit_test_suite(io_suite);
