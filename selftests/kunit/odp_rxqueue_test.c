// SPDX-License-Identifier: GPL-2.0
/* Packets that wait behind a page fault: an skb is charged as long as one of its packets waits. */
#include "fakes.h"

#define FIRST	100	/* PSN */

static struct sk_buff *new_skb(struct kunit *test)
{
	struct sk_buff *skb = alloc_skb(60000, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	return skb;
}

static void add(struct fake *f, struct sk_buff *skb, u32 psn)
{
	struct roan_rx_ctx rx = { .skb = skb, .pkt.psn = psn };

	spin_lock_bh(&f->qp.rq.lock);
	roan_odp_rxq_add(&f->qp, &rx);
	spin_unlock_bh(&f->qp.rq.lock);
}

/* Executes the packets before PSN @absent. */
static void run(struct fake *f, u32 absent)
{
	fake_absent_psn = absent;
	spin_lock_bh(&f->qp.rq.lock);
	roan_odp_rxq_run(&f->qp);
	spin_unlock_bh(&f->qp.rq.lock);
}

/* Bytes charged: all accounts agree. -1: they do not. */
static int charged(struct fake *f)
{
	const struct roan_odp_rxq *all = &f->dev.odp_rxq;
	int i, sum = 0;

	for (i = 0; i < ROAN_PRIORITIES; i++)
		sum += atomic_read(&all->of_prio[i]);
	return sum == atomic_read(&all->bytes) && sum == f->qp.rq.kept_bytes ? sum : -1;
}

static void run__keeps_an_skb_charged_until_its_last_packet(struct kunit *test)
{
	struct fake *f = test->priv;
	struct sk_buff *skb = new_skb(test);
	int all, i;

	for (i = 0; i < 3; i++)
		add(f, skb, FIRST + i);
	all = charged(f);
	KUNIT_EXPECT_GT(test, all, (int)skb->truesize);
	KUNIT_EXPECT_LT(test, all, 2 * (int)skb->truesize);
	for (i = 1; i < 3; i++) {
		run(f, FIRST + i);
		KUNIT_EXPECT_LT(test, charged(f), all);
		KUNIT_EXPECT_GT(test, charged(f), (int)skb->truesize);
	}
	run(f, FIRST + 3);
	KUNIT_EXPECT_EQ(test, charged(f), 0);
	consume_skb(skb);
}

/* The packet of another skb comes between two of one skb, as the path has delayed it. */
static void run__charges_each_skb_of_reordered_packets(struct kunit *test)
{
	struct sk_buff *a = new_skb(test), *b = new_skb(test);
	struct fake *f = test->priv;
	int truesize = a->truesize;

	add(f, a, FIRST);
	add(f, a, FIRST + 2);
	add(f, b, FIRST + 1);
	KUNIT_EXPECT_GT(test, charged(f), 2 * truesize);
	run(f, FIRST + 1);
	KUNIT_EXPECT_GT(test, charged(f), 2 * truesize);
	run(f, FIRST + 2);
	KUNIT_EXPECT_GT(test, charged(f), truesize);
	KUNIT_EXPECT_LT(test, charged(f), 2 * truesize);
	run(f, FIRST + 3);
	KUNIT_EXPECT_EQ(test, charged(f), 0);
	consume_skb(a);
	consume_skb(b);
}

static void drop__gives_all_back(struct kunit *test)
{
	struct fake *f = test->priv;
	struct sk_buff *skb = new_skb(test);

	add(f, skb, FIRST);
	add(f, skb, FIRST + 2);
	add(f, skb, FIRST + 1);
	spin_lock_bh(&f->qp.rq.lock);
	roan_odp_rxq_drop(&f->qp);
	spin_unlock_bh(&f->qp.rq.lock);
	KUNIT_EXPECT_EQ(test, charged(f), 0);
	consume_skb(skb);
}

static int odp_rxqueue_init(struct kunit *test)
{
	int err = fake_init(test);
	struct fake *f = test->priv;

	if (err)
		return err;
	f->qp.state = IB_QPS_RTR;
	spin_lock_init(&f->qp.rq.lock);
	INIT_LIST_HEAD(&f->qp.rq.odp_rxq);
	INIT_LIST_HEAD(&f->qp.rq.early);
	return 0;
}

static struct kunit_case odp_rxqueue_cases[] = {
	KUNIT_CASE(run__keeps_an_skb_charged_until_its_last_packet),
	KUNIT_CASE(run__charges_each_skb_of_reordered_packets),
	KUNIT_CASE(drop__gives_all_back),
	{}
};

static struct kunit_suite odp_rxqueue_suite = {
	.name = "roan_odp_rxqueue",
	.init = odp_rxqueue_init,
	.exit = fake_exit,
	.test_cases = odp_rxqueue_cases,
};
kunit_test_suite(odp_rxqueue_suite);
