// SPDX-License-Identifier: GPL-2.0
/*
 * Access to MRs: which bytes a packet or scatter list may access, to the byte, and that the right bytes are copied
 * across pages, list entries and skb frags. The MRs come from fake_region().
 */
#include "../fakes.h"

#define IOVA	0x7f0000001064ull
#define OFF	0x64			/* offset of the MR in its first page */
#define LEN	(2 * PAGE_SIZE + 500)	/* ends in the third page */

#define ALL_REMOTE	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define ALL_ACCESS	(ALL_REMOTE | IB_ACCESS_LOCAL_WRITE)

/* Byte @i of a packet's payload. */
static u8 sent_byte(u32 i)
{
	return ~i;
}

static void fill(u8 *p, u32 from, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = sent_byte(from + i);
}

/* An skb with @len such bytes behind @head other bytes. */
static struct sk_buff *new_skb(struct kunit *test, u32 head, u32 len)
{
	struct sk_buff *skb = alloc_skb(head + len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_zero(skb, head);
	fill(skb_put(skb, len), 0, len);
	return skb;
}

static void add_frag(struct kunit *test, struct sk_buff *skb, u32 from, u32 len)
{
	struct page *page = alloc_page(GFP_KERNEL);
	int i = skb_shinfo(skb)->nr_frags;

	KUNIT_ASSERT_NOT_NULL(test, page);
	fill(page_address(page) + 64 + i, from, len);
	skb_add_rx_frag(skb, i, page, 64 + i, len, PAGE_SIZE);
}

static u32 write_at(struct fake *f, const struct roan_mr *mr, u64 va, u32 len, const struct sk_buff *skb)
{
	return roan_remote_write(&f->qp, mr->key.key, va, roan_payload_skb(skb, 0), len);
}

/* Exactly bytes [@off, @off + @len) of the MR hold the payload from byte @from on; the others are unchanged. */
static void expect_written(struct kunit *test, const struct roan_mr *mr, u64 off, u32 len, u32 from)
{
	u64 i;

	KUNIT_EXPECT_TRUE(test, fake_edges_intact(mr));
	for (i = 0; i < mr->length; i++) {
		bool in = i >= off && i < off + len;
		u8 want = in ? sent_byte(from + i - off) : fake_pattern(i);

		if (*fake_byte(mr, i) == want)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, *fake_byte(mr, i), want, "byte %llu", i);
		return;
	}
}

/* ---- ranges ---- */

struct span {
	u64 off;		/* from the first byte of the MR, modulo 2^64 */
	u64 len;
	bool ok;
};

static const struct span ranges[] = {
	{ 0, 1, true },
	{ 0, LEN, true },
	{ LEN - 1, 1, true },
	{ 1, LEN - 1, true },
	{ PAGE_SIZE - OFF - 1, 2, true },
	{ -1, 1, false },
	{ -1, 2, false },
	{ -1, LEN + 1, false },
	{ 0, LEN + 1, false },
	{ 1, LEN, false },
	{ LEN, 1, false },
	{ LEN - 1, 2, false },
	{ LEN + 1, 1, false },
	{ 0, U32_MAX, false },
	{ LEN - 1, U64_MAX, false },
	{ 8, U64_MAX - 7, false },	/* wraps to the first byte */
	{ -IOVA, 1, false },		/* address 0 */
	{ U64_MAX - IOVA, 1, false },	/* the last address */
	{ U64_MAX - IOVA, 2, false },
};

static void range_desc(const struct span *r, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%lld, %llu bytes", r->off, r->len);
}

KUNIT_ARRAY_PARAM(range, ranges, range_desc);

static void region_ends_at_its_last_byte(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	const struct span *r = test->param_value;
	struct fake *f = test->priv;
	struct roan_sge sge = { .addr = IOVA + r->off, .length = r->len, .lkey = mr->key.key };
	struct sk_buff *skb = new_skb(test, 0, 2 * PAGE_SIZE + 1000);
	u32 want = r->ok ? ROAN_VERR_NONE : ROAN_VERR_BAD_RANGE;

	KUNIT_EXPECT_EQ(test, roan_remote_check(&f->qp, mr->key.key, IOVA + r->off, r->len, IB_ACCESS_REMOTE_WRITE),
			want);
	if (r->len > skb->len)
		goto free;
	KUNIT_EXPECT_EQ(test, write_at(f, mr, IOVA + r->off, r->len, skb), want);
	expect_written(test, mr, r->off, r->ok ? r->len : 0, 0);

	mr = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	sge.lkey = mr->key.key;
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_skb(skb, 0), r->len), want);
	expect_written(test, mr, r->off, r->ok ? r->len : 0, 0);
free:
	kfree_skb(skb);
}

static void region_at_the_end_of_addresses(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, U64_MAX - 99, 0, 100, ALL_ACCESS);
	struct roan_sge sge = { .addr = U64_MAX - 99, .length = 200, .lkey = mr->key.key };
	struct sk_buff *skb = new_skb(test, 0, 200);
	struct fake *f = test->priv;

	KUNIT_EXPECT_EQ(test, write_at(f, mr, U64_MAX, 1, skb), 0u);
	expect_written(test, mr, 99, 1, 0);
	KUNIT_EXPECT_EQ(test, write_at(f, mr, U64_MAX, 2, skb), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, write_at(f, mr, 0, 1, skb), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, write_at(f, mr, U64_MAX - 100, 1, skb), (u32)ROAN_VERR_BAD_RANGE);
	/* Address of the entry plus offset is beyond the last address. */
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 100, roan_payload_skb(skb, 0), 1),
			(u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 101, roan_payload_skb(skb, 0), 1),
			(u32)ROAN_VERR_BAD_RANGE);
	expect_written(test, mr, 99, 1, 0);
	/* ... also for an MR at address 0. */
	mr = fake_region(test, 0, 0, 100, ALL_ACCESS);
	sge.lkey = mr->key.key;
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 100, roan_payload_skb(skb, 0), 1),
			(u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_skb(skb, 0), 101),
			(u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, fake_changed(mr), 0ull);
	kfree_skb(skb);
}

static void nothing_needs_no_key(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_sge sge = { .addr = 1, .length = 0, .lkey = 0x666 };
	struct sk_buff *skb = new_skb(test, 0, 4);
	u8 byte;

	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_skb(skb, 0), 0), 0u);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, NULL, 0), 0, roan_payload_skb(skb, 0), 0), 0u);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, NULL, 0), 0, roan_payload_bytes(&byte), 0), 0u);
	KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, &sge, 1), 0, &byte, 0, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, roan_remote_write(&f->qp, 0x666, 1, roan_payload_skb(skb, 0), 0), 0u);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, 0x666, 1, &byte, 0, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, roan_remote_check(&f->qp, 0x666, 1, 0, IB_ACCESS_REMOTE_WRITE), 0u);
	f->qp.access = 0;	/* the QP's access rights still count */
	KUNIT_EXPECT_EQ(test, roan_remote_check(&f->qp, 0x666, 1, 0, IB_ACCESS_REMOTE_WRITE), (u32)ROAN_VERR_BAD_ACCESS);
	kfree_skb(skb);
}

/* ---- access rights ---- */

static void access_is_what_region_and_qp_both_give(struct kunit *test)
{
	static const u32 bits[] = { IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_ATOMIC };
	struct fake *f = test->priv;
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, 0);
	u32 region, qp, op;
	u64 word;

	for (region = 0; region < 8; region++) {
		for (qp = 0; qp < 8; qp++) {
			mr->access = (region & 1 ? bits[0] : 0) | (region & 2 ? bits[1] : 0) | (region & 4 ? bits[2] : 0);
			f->qp.access = (qp & 1 ? bits[0] : 0) | (qp & 2 ? bits[1] : 0) | (qp & 4 ? bits[2] : 0);
			for (op = 0; op < 3; op++)
				KUNIT_EXPECT_EQ_MSG(test, roan_remote_check(&f->qp, mr->key.key, IOVA, 8, bits[op]),
						    region & qp & 1 << op ? 0u : (u32)ROAN_VERR_BAD_ACCESS,
						    "region %u, QP %u, operation %u", region, qp, op);
			KUNIT_EXPECT_EQ(test, !roan_remote_read(&f->qp, mr->key.key, IOVA, &word, 8, &f->icrc),
					region & qp & 1);
			KUNIT_EXPECT_EQ(test, !remote_atomic_write(f, mr, IOVA + 4, 0), !!(region & qp & 2));
		}
	}
}

static void local_writes_need_access_rights(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, ALL_REMOTE);
	struct roan_sge sge = { .addr = IOVA, .length = 10, .lkey = mr->key.key };
	struct fake *f = test->priv;
	u8 bytes[10] = {};

	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_bytes(bytes), 10),
			(u32)ROAN_VERR_BAD_ACCESS);
	KUNIT_EXPECT_EQ(test, fake_changed(mr), 0ull);
	KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, &sge, 1), 0, bytes, 10, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, bytes[9], fake_pattern(9));
}

static void domains_are_apart(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	struct roan_sge sge = { .addr = IOVA, .length = 1, .lkey = mr->key.key };
	struct sk_buff *skb = new_skb(test, 0, 8);
	struct fake *f = test->priv;
	u64 word;

	f->qp.ib.pd = &f->other_pd.ib;
	KUNIT_EXPECT_EQ(test, write_at(f, mr, IOVA, 1, skb), (u32)ROAN_VERR_BAD_PD);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mr->key.key, IOVA, &word, 1, &f->icrc), (u32)ROAN_VERR_BAD_PD);
	KUNIT_EXPECT_EQ(test, remote_atomic_write(f, mr, IOVA + 4, 0), (u32)ROAN_VERR_BAD_PD);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_skb(skb, 0), 1),
			(u32)ROAN_VERR_BAD_PD);
	KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, &sge, 1), 0, &word, 1, &f->icrc), (u32)ROAN_VERR_BAD_PD);
	KUNIT_EXPECT_EQ(test, fake_changed(mr), 0ull);
	/* The keys of an SRQ's receives belong to the SRQ's PD. */
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, (struct roan_sge_list) { &sge, 1, mr->ib.pd }, 0,
					   roan_payload_skb(skb, 0), 1), 0u);
	kfree_skb(skb);
}

static void keys_must_be_valid(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	struct sk_buff *skb = new_skb(test, 0, 8);
	struct fake *f = test->priv;
	struct roan_mw mw = { .ib = { .device = &f->dev.ib, .pd = &f->pd.ib, .type = IB_MW_TYPE_1 } };
	struct roan_sge sge = { .addr = IOVA, .length = 1 };
	u8 byte;

	KUNIT_EXPECT_EQ(test, roan_remote_write(&f->qp, mr->key.key ^ 1, IOVA, roan_payload_skb(skb, 0), 1),
			(u32)ROAN_VERR_BAD_KEY);
	mr->state = ROAN_MR_DEAD;
	KUNIT_EXPECT_EQ(test, write_at(f, mr, IOVA, 1, skb), (u32)ROAN_VERR_BAD_KEY);
	mr->state = ROAN_MR_FREE;
	KUNIT_EXPECT_EQ(test, write_at(f, mr, IOVA, 1, skb), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, fake_changed(mr), 0ull);
	/* The key of a window is not an L_Key. */
	KUNIT_ASSERT_EQ(test, roan_alloc_mw(&mw.ib, NULL), 0);
	sge.lkey = mw.win->key.key;
	KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, &sge, 1), 0, &byte, 1, &f->icrc), (u32)ROAN_VERR_BAD_KEY);
	roan_dealloc_mw(&mw.ib);
	kfree_skb(skb);
}

static void key_0_is_for_the_kernel(struct kunit *test)
{
	u8 *memory = kunit_kzalloc(test, 16, GFP_KERNEL);
	struct roan_sge sge = { .addr = (uintptr_t)memory, .length = 16, .lkey = 0 };
	struct fake *f = test->priv;
	u8 bytes[16];

	memset(bytes, 0x5a, sizeof(bytes));
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 0, roan_payload_bytes(bytes), 16),
			(u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, 0, sge.addr, bytes, 16, &f->icrc), (u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, memory[0], 0);
	f->qp.user = false;
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, &sge, 1), 4, roan_payload_bytes(bytes), 12), 0u);
	KUNIT_EXPECT_EQ(test, memory[3], 0);
	KUNIT_EXPECT_EQ(test, memory[4], 0x5a);
	KUNIT_EXPECT_EQ(test, memory[15], 0x5a);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, 0, sge.addr, bytes, 16, &f->icrc),
			(u32)ROAN_VERR_BAD_KEY);	/* not for remote access */
}

/* A peer with the R_Key of a consumer's region of all memory names addresses at which there is none. */
static void all_memory_is_what_there_is(struct kunit *test)
{
	struct fake *f = test->priv;
	u8 *memory = kunit_kzalloc(test, 16, GFP_KERNEL), bytes[16];
	struct ib_mr *ibmr = roan_get_dma_mr(&f->pd.ib, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ);
	u32 key;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = &f->dev.ib;
	ibmr->pd = &f->pd.ib;
	key = ibmr->rkey;
	memset(memory, 0x5a, 16);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, key, (uintptr_t)memory, bytes, 16, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, bytes[15], 0x5a);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, key, 1ull << 50, bytes, 16, &f->icrc), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_remote_check(&f->qp, key, (uintptr_t)memory, 1ull << 50, IB_ACCESS_REMOTE_READ),
			(u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_dereg_mr(ibmr, NULL), 0);
}

/* ---- the right bytes ---- */

static void pages_in_any_order(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	struct sk_buff *skb = new_skb(test, 7, PAGE_SIZE + 20);
	u64 off = PAGE_SIZE - OFF - 10;		/* ten bytes, a page, ten bytes */
	struct fake *f = test->priv;
	u8 *back = kunit_kzalloc(test, PAGE_SIZE + 22, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, back);
	KUNIT_EXPECT_EQ(test, roan_remote_write(&f->qp, mr->key.key, IOVA + off, roan_payload_skb(skb, 7), PAGE_SIZE +
						20), 0u);
	expect_written(test, mr, off, PAGE_SIZE + 20, 0);
	KUNIT_EXPECT_EQ(test, roan_remote_read(&f->qp, mr->key.key, IOVA + off - 1, back, PAGE_SIZE + 22, &f->icrc),
			0u);
	KUNIT_EXPECT_EQ(test, f->icrc.state, roan_crc32(0, back, PAGE_SIZE + 22));
	KUNIT_EXPECT_EQ(test, back[0], fake_pattern(off - 1));
	for (i = 0; i < PAGE_SIZE + 20 && back[i + 1] == sent_byte(i); i++)
		;
	KUNIT_EXPECT_EQ(test, i, (u32)PAGE_SIZE + 20);
	KUNIT_EXPECT_EQ(test, back[PAGE_SIZE + 21], fake_pattern(off + PAGE_SIZE + 20));
	kfree_skb(skb);
}

static void skbs_in_pieces(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	struct sk_buff *skb = new_skb(test, 0, 100), *more = new_skb(test, 0, 0);
	struct fake *f = test->priv;

	add_frag(test, skb, 100, 333);
	add_frag(test, skb, 433, 1);
	add_frag(test, skb, 434, 1000);
	add_frag(test, more, 1434, 3000);
	skb_shinfo(skb)->frag_list = more;
	skb->len += more->len;
	skb->data_len += more->len;
	KUNIT_EXPECT_EQ(test, roan_remote_write(&f->qp, mr->key.key, IOVA + 50, roan_payload_skb(skb, 3), 4431), 0u);
	expect_written(test, mr, 50, 4431, 3);
	kfree_skb(skb);
}

/* Three entries, one of them empty, over two MRs. */
static void lists_in_pieces(struct kunit *test)
{
	struct roan_mr *a = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	struct roan_mr *b = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	struct roan_sge sges[] = {
		{ .addr = IOVA + 10, .length = 100, .lkey = a->key.key },
		{ .addr = 1, .length = 0, .lkey = 0x666 },
		{ .addr = IOVA, .length = PAGE_SIZE, .lkey = b->key.key },
	};
	struct sk_buff *skb = new_skb(test, 0, 400);
	struct fake *f = test->priv;
	u8 back[30];

	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 3), 90, roan_payload_skb(skb, 0), 400), 0u);
	expect_written(test, a, 100, 10, 0);
	expect_written(test, b, 0, 390, 10);
	KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, sges, 3), 85, back, 30, &f->icrc), 0u);
	KUNIT_EXPECT_EQ(test, f->icrc.state, roan_crc32(0, back, 30));
	KUNIT_EXPECT_EQ(test, back[4], fake_pattern(99));
	KUNIT_EXPECT_EQ(test, back[5], sent_byte(0));
	KUNIT_EXPECT_EQ(test, back[15], sent_byte(10));
	KUNIT_EXPECT_EQ(test, back[29], sent_byte(24));
	/* Up to the last byte of the list, and one byte more. */
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 3), 100 + PAGE_SIZE - 1, roan_payload_skb(skb, 0),
					   1), 0u);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 3), 100 + PAGE_SIZE - 1, roan_payload_skb(skb, 0),
					   2), (u32)ROAN_VERR_TOO_LONG);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 3), 100 + PAGE_SIZE, roan_payload_skb(skb, 0), 1),
			(u32)ROAN_VERR_TOO_LONG);
	KUNIT_EXPECT_EQ(test, roan_gather(&f->qp, list_of(f, sges, 3), 100 + PAGE_SIZE - 1, back, 2, &f->icrc), (u32)ROAN_VERR_TOO_LONG);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->key.refs), 1u);
	KUNIT_EXPECT_EQ(test, refcount_read(&b->key.refs), 1u);
	kfree_skb(skb);
}

static void all_or_nothing(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, ALL_ACCESS);
	struct roan_sge sges[] = {
		{ .addr = IOVA, .length = 100, .lkey = mr->key.key },
		{ .addr = IOVA + 200, .length = 100, .lkey = mr->key.key ^ 1 },
	};
	struct sk_buff *skb = new_skb(test, 0, 200);
	struct fake *f = test->priv;

	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 2), 0, roan_payload_skb(skb, 0), 200),
			(u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 2), 0, roan_payload_bytes(skb->data), 200),
			(u32)ROAN_VERR_BAD_KEY);
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 1), 0, roan_payload_skb(skb, 0), 101),
			(u32)ROAN_VERR_TOO_LONG);
	sges[1].lkey = mr->key.key;
	sges[1].addr = IOVA + LEN - 99;
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 2), 0, roan_payload_skb(skb, 0), 200),
			(u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, fake_changed(mr), 0ull);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
	sges[1].addr--;
	KUNIT_EXPECT_EQ(test, roan_scatter(&f->qp, list_of(f, sges, 2), 0, roan_payload_skb(skb, 0), 200), 0u);
	KUNIT_EXPECT_GE(test, fake_changed(mr), 190ull);	/* some new bytes equal the old ones by chance */
	KUNIT_EXPECT_TRUE(test, fake_edges_intact(mr));
	kfree_skb(skb);
}

/* ---- words ---- */

static struct roan_pkt atomic(const struct roan_mr *mr, enum roan_op op, u64 off, u64 swap_add, u64 compare)
{
	return (struct roan_pkt) {
		.info = roan_opcode(roan_opcode_of(ROAN_TP_RC, op, ROAN_SEG_ONLY, ROAN_EXT_NONE)),
		.rkey = mr->key.key,
		.va = mr->iova + off,
		.swap_add = swap_add,
		.compare = compare,
	};
}

static void atomics_do_what_they_say(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, 0x10000, 0, LEN, ALL_ACCESS);
	u64 *word = (u64 *)fake_byte(mr, PAGE_SIZE);	/* first word of the second page */
	struct fake *f = test->priv;
	struct roan_pkt pkt;
	u64 orig;

	*word = U64_MAX;
	pkt = atomic(mr, ROAN_OP_FETCH_ADD, PAGE_SIZE, 3, 0);
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), 0u);
	KUNIT_EXPECT_EQ(test, orig, U64_MAX);
	KUNIT_EXPECT_EQ(test, *word, 2ull);
	pkt = atomic(mr, ROAN_OP_CMP_SWAP, PAGE_SIZE, 99, 1);
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), 0u);
	KUNIT_EXPECT_EQ(test, orig, 2ull);
	KUNIT_EXPECT_EQ(test, *word, 2ull);
	pkt.compare = 2;
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), 0u);
	KUNIT_EXPECT_EQ(test, orig, 2ull);
	KUNIT_EXPECT_EQ(test, *word, 99ull);
	KUNIT_EXPECT_EQ(test, remote_atomic_write(f, mr, 0x10000 + PAGE_SIZE, 0x1122334455667788ull), 0u);
	KUNIT_EXPECT_EQ(test, *word, 0x1122334455667788ull);
	KUNIT_EXPECT_LE(test, fake_changed(mr), 8ull);
}

static void atomics_stay_in_their_word(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, 0x10000, 4, LEN, ALL_ACCESS);	/* misaligned to IOVA */
	struct roan_pkt pkt = atomic(mr, ROAN_OP_FETCH_ADD, 0, 1, 0);
	struct fake *f = test->priv;
	u64 orig;

	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), (u32)ROAN_VERR_UNALIGNED);
	pkt.va += PAGE_SIZE - 8;	/* half in the first page */
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), (u32)ROAN_VERR_UNALIGNED);
	KUNIT_EXPECT_EQ(test, remote_atomic_write(f, mr, pkt.va, 0), (u32)ROAN_VERR_UNALIGNED);
	pkt.va = 0x10000 + LEN - 4;
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), (u32)ROAN_VERR_BAD_RANGE);
	mr->access = ALL_ACCESS & ~IB_ACCESS_REMOTE_ATOMIC;
	pkt.va = 0x10004;
	KUNIT_EXPECT_EQ(test, roan_remote_atomic(&f->qp, &pkt, &orig), (u32)ROAN_VERR_BAD_ACCESS);
	KUNIT_EXPECT_EQ(test, fake_changed(mr), 0ull);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
}

static void flushes_are_checked_as_writes_are(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, IB_ACCESS_FLUSH_GLOBAL);
	struct roan_pkt pkt = { .rkey = mr->key.key, .va = IOVA, .dma_len = LEN, .flush_type = ROAN_FLUSH_GLOBAL };
	struct fake *f = test->priv;

	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), 0u);
	pkt.dma_len++;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_BAD_RANGE);
	pkt.flush_level = ROAN_FLUSH_MR;	/* address and length are ignored then */
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), 0u);
	pkt.va = 0;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), 0u);
	pkt.rkey ^= 1;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_BAD_KEY);
	pkt.rkey ^= 1;
	pkt.flush_level = 2;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_BAD_ACCESS);
	pkt.flush_level = ROAN_FLUSH_MR;
	pkt.flush_type = ROAN_FLUSH_PERSISTENT;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_BAD_ACCESS);
	pkt.flush_type = 0;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_BAD_ACCESS);
	pkt.flush_type = 5;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_BAD_ACCESS);
	pkt.flush_type = ROAN_FLUSH_GLOBAL;
	f->qp.access &= ~IB_ACCESS_FLUSH_GLOBAL;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), (u32)ROAN_VERR_BAD_ACCESS);
	f->qp.access |= IB_ACCESS_FLUSH_GLOBAL;
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), 0u);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
}

/*
 * A long FLUSH is executed by a worker. Until it is done, the result is a value outside the vendor_err codes of the
 * ABI.
 */
static void long_flush_is_not_done_at_once(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, IB_ACCESS_FLUSH_PERSISTENT);
	struct roan_pkt pkt = { .rkey = mr->key.key, .va = IOVA, .flush_type = ROAN_FLUSH_PERSISTENT };
	struct fake *f = test->priv;

	pkt.dma_len = min_t(u32, LEN, ROAN_WRITE_BACK_MAX);
	KUNIT_EXPECT_EQ(test, roan_remote_flush(&f->qp, &pkt), 0u);
	mr->length = ROAN_WRITE_BACK_MAX + 1;	/* longer than the memory, which is not accessed here */
	pkt.dma_len = mr->length;
	KUNIT_EXPECT_GT(test, roan_remote_flush(&f->qp, &pkt), (u32)U16_MAX);
	mr->length = LEN;
}

/* The flush worker calls this per piece: it must fail as soon as the MR is invalid, shorter, or has other rights. */
static void write_back_checks_each_piece(struct kunit *test)
{
	struct roan_mr *mr = fake_region(test, IOVA, OFF, LEN, IB_ACCESS_FLUSH_PERSISTENT);
	struct fake *f = test->priv;
	u32 key = mr->key.key;

	local_bh_disable();
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, 0, LEN), 0u);
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, LEN - 1, 1), 0u);
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, 1, LEN), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, U64_MAX, 1), (u32)ROAN_VERR_BAD_RANGE);
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key ^ 1, 0, 1), (u32)ROAN_VERR_BAD_KEY);
	mr->length = 1;
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, 1, 1), (u32)ROAN_VERR_BAD_RANGE);
	mr->access = IB_ACCESS_FLUSH_GLOBAL;
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, 0, 1), (u32)ROAN_VERR_BAD_ACCESS);
	mr->access = IB_ACCESS_FLUSH_PERSISTENT;
	mr->kind = ROAN_MR_DMA;
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, 0, 1), (u32)ROAN_VERR_BAD_ACCESS);
	mr->kind = ROAN_MR_USER;
	mr->state = ROAN_MR_FREE;
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, 0, 1), (u32)ROAN_VERR_BAD_KEY);
	mr->state = ROAN_MR_VALID;
	KUNIT_EXPECT_EQ(test, roan_mr_write_back(&f->qp, key, 0, 1), 0u);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->key.refs), 1u);
}

static struct kunit_case place_cases[] = {
	KUNIT_CASE_PARAM(region_ends_at_its_last_byte, range_gen_params),
	KUNIT_CASE(region_at_the_end_of_addresses),
	KUNIT_CASE(nothing_needs_no_key),
	KUNIT_CASE(access_is_what_region_and_qp_both_give),
	KUNIT_CASE(local_writes_need_access_rights),
	KUNIT_CASE(domains_are_apart),
	KUNIT_CASE(keys_must_be_valid),
	KUNIT_CASE(key_0_is_for_the_kernel),
	KUNIT_CASE(all_memory_is_what_there_is),
	KUNIT_CASE(pages_in_any_order),
	KUNIT_CASE(skbs_in_pieces),
	KUNIT_CASE(lists_in_pieces),
	KUNIT_CASE(all_or_nothing),
	KUNIT_CASE(atomics_do_what_they_say),
	KUNIT_CASE(atomics_stay_in_their_word),
	KUNIT_CASE(flushes_are_checked_as_writes_are),
	KUNIT_CASE(long_flush_is_not_done_at_once),
	KUNIT_CASE(write_back_checks_each_piece),
	{}
};

static struct kunit_suite place_suite = {
	.name = "roan_mr_access",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = place_cases,
};
kunit_test_suite(place_suite);
