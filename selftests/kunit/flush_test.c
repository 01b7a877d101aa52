// SPDX-License-Identifier: GPL-2.0
/* Flush of a QP's receives in ERR: how many a round takes. */
#include "fakes.h"

#define POSTED	133

static void post(struct roan_ring *ring, u32 n)
{
	struct roan_recv_wqe wqe = {};
	u32 i;

	for (i = 0; i < n; i++) {
		wqe.wr_id = i;
		memcpy(roan_ring_post_slot(ring, i), &wqe, sizeof(wqe));
	}
	ring->ctl->user.index = n;
}

/* The fake QP with POSTED receives and a CQ. */
static struct roan_cq *set_up(struct kunit *test, bool user)
{
	struct ib_cq_init_attr attr = { .cqe = 2 * POSTED };
	struct fake *f = test->priv;
	struct roan_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->ib.device = &f->dev.ib;
	KUNIT_ASSERT_EQ(test, roan_create_cq(&cq->ib, &attr, NULL), 0);
	spin_lock_init(&f->qp.rq.lock);
	KUNIT_ASSERT_EQ(test, roan_ring_alloc(&f->qp.rq.ring, POSTED, sizeof(struct roan_recv_wqe), NULL, NULL), 0);
	f->qp.user = user;
	f->qp.rcq = cq;
	f->qp.state = IB_QPS_ERR;
	post(&f->qp.rq.ring, POSTED);
	return cq;
}

static bool flush_round(struct fake *f)
{
	bool done;

	spin_lock_bh(&f->qp.rq.lock);
	done = roan_flush_rq(&f->qp);
	spin_unlock_bh(&f->qp.rq.lock);
	return done;
}

static void tear_down(struct fake *f, struct roan_cq *cq)
{
	roan_ring_free(&f->qp.rq.ring);
	roan_destroy_cq(&cq->ib, NULL);
}

/* A consumer such as DRBD before 9.2.12 polls until the CQ is empty, once, and does not arm it again. */
static void all_receives_of_a_kernel_consumer_in_one_round(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_cq *cq = set_up(test, false);
	struct ib_wc wc[4];
	int n, sum = 0, i;

	KUNIT_EXPECT_TRUE(test, flush_round(f));
	while ((n = roan_poll_cq(&cq->ib, ARRAY_SIZE(wc), wc)) > 0) {
		for (i = 0; i < n; i++) {
			KUNIT_EXPECT_EQ(test, wc[i].wr_id, (u64)sum++);
			KUNIT_EXPECT_EQ(test, wc[i].status, IB_WC_WR_FLUSH_ERR);
		}
	}
	KUNIT_EXPECT_EQ(test, sum, POSTED);
	tear_down(f, cq);
}

/* A program could refill its ring as fast as it is flushed: other softirqs run between the rounds. */
static void receives_of_a_program_in_several_rounds(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_cq *cq = set_up(test, true);
	u32 rounds = 1;

	while (!flush_round(f)) {
		KUNIT_EXPECT_TRUE(test, test_and_clear_bit(ROAN_DEFER_FLUSH, &f->qp.deferred.bits));
		rounds++;
	}
	KUNIT_EXPECT_GT(test, rounds, 4u);
	KUNIT_EXPECT_LT(test, rounds, 7u);
	tear_down(f, cq);
}

static struct kunit_case flush_cases[] = {
	KUNIT_CASE(all_receives_of_a_kernel_consumer_in_one_round),
	KUNIT_CASE(receives_of_a_program_in_several_rounds),
	{}
};

static struct kunit_suite flush_suite = {
	.name = "roan_flush",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = flush_cases,
};
kunit_test_suite(flush_suite);
