// SPDX-License-Identifier: GPL-2.0
/* Implements fakes.h: device, QPs and MRs for the suites of the driver half (outside core/). Has no test cases. */
#include "fakes.h"

static void init_qp(struct roan_qp *qp, struct fake *f, u32 qpn)
{
	qp->dev = &f->dev;
	qp->ib.device = &f->dev.ib;
	qp->ib.pd = &f->pd.ib;
	qp->ib.qp_num = qpn;
	qp->user = true;
	qp->transport = ROAN_TP_RC;
	qp->access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC |
		     IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT;
}

int fake_init(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	test->priv = f;
	if (roan_key_table_init(&f->dev))
		return -ENOMEM;
	f->dev.ib.ops.map_mr_sg = roan_map_mr_sg;
	f->dev.ib.num_comp_vectors = 1;
	f->dev.stats = fake_stats();
	f->pd.ib.device = &f->dev.ib;
	f->other_pd.ib.device = &f->dev.ib;
	init_qp(&f->qp, f, 17);
	init_qp(&f->other_qp, f, 18);

	f->ndev.features = NETIF_F_SG | NETIF_F_HW_CSUM;
	f->ndev.gso_max_segs = GSO_MAX_SEGS;
	f->ndev.gso_max_size = GSO_LEGACY_MAX_SIZE;
	f->dst.dev = &f->ndev;
	fake_dst = &f->dst;
	f->dev.ndev = &f->ndev;
	f->ndev.ifindex = INT_MAX;	/* no DCB table has an entry for it */
	roan_qos_refresh(&f->dev);
	fake_no_route = false;
	__skb_queue_head_init(&fake_sent);
	fake_counts_reset();
	return 0;
}

void fake_exit(struct kunit *test)
{
	struct fake *f = test->priv;

	if (!f)
		return;
	__skb_queue_purge(&fake_sent);
	roan_tx_page_pool_exit();
	if (f->dev.keys.tbl)
		roan_key_table_exit(&f->dev);
}

/* ---- MRs ---- */

static u8 *byte_at(const struct roan_mr *mr, u64 pos)
{
	return (u8 *)page_address(mr->pages[pos >> PAGE_SHIFT]) + offset_in_page(pos);
}

u8 *fake_byte(const struct roan_mr *mr, u64 off)
{
	return byte_at(mr, mr->page_off + off);
}

struct roan_mr *fake_region(struct kunit *test, u64 iova, u32 page_off, u64 length, u32 access)
{
	struct fake *f = test->priv;
	struct roan_mr *mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);
	u8 *memory = kunit_kzalloc(test, FAKE_PAGES * PAGE_SIZE, GFP_KERNEL);	/* a power of two: aligned to a page */
	u64 i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_NOT_NULL(test, memory);
	KUNIT_ASSERT_LE(test, page_off + length, (u64)FAKE_PAGES * PAGE_SIZE);
	mr->pages = kunit_kcalloc(test, FAKE_PAGES, sizeof(*mr->pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr->pages);
	for (i = 0; i < FAKE_PAGES; i++)
		mr->pages[i] = virt_to_page(memory + (FAKE_PAGES - 1 - i) * PAGE_SIZE);
	mr->ib.device = &f->dev.ib;
	mr->ib.pd = &f->pd.ib;
	mr->kind = ROAN_MR_USER;
	mr->state = ROAN_MR_VALID;
	mr->access = access;
	mr->iova = iova;
	mr->length = length;
	mr->page_off = page_off;
	mr->n_pages = FAKE_PAGES;
	memset(memory, FAKE_EDGE, FAKE_PAGES * PAGE_SIZE);
	for (i = 0; i < length; i++)
		*fake_byte(mr, i) = fake_pattern(i);
	KUNIT_ASSERT_EQ(test, roan_key_insert(&f->dev, &mr->key), 0);
	mr->ib.lkey = mr->key.key;
	mr->ib.rkey = mr->key.key;
	return mr;
}

bool fake_edges_intact(const struct roan_mr *mr)
{
	u64 pos;

	for (pos = 0; pos < FAKE_PAGES * PAGE_SIZE; pos++)
		if ((pos < mr->page_off || pos >= mr->page_off + mr->length) && *byte_at(mr, pos) != FAKE_EDGE)
			return false;
	return true;
}

u64 fake_changed(const struct roan_mr *mr)
{
	u64 i, n = 0;

	for (i = 0; i < mr->length; i++)
		n += *fake_byte(mr, i) != fake_pattern(i);
	return n;
}
