// SPDX-License-Identifier: GPL-2.0
/* Completion queues: overflow, arming, resize, a QP or the CQ that is destroyed. Rings as such: ring_test.c. */
#include <linux/delay.h>
#include "fakes.h"

#define SLOTS	8

/* Initial indices, two of them such that the ring crosses 2^32. */
static const u32 first_indices[] = { 0, 1000, U32_MAX - 3, U32_MAX };

static void first_index_desc(const u32 *first, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "index %u", *first);
}

KUNIT_ARRAY_PARAM(first_index, first_indices, first_index_desc);

/* A kernel consumer's CQ of SLOTS entries. Its indices start at the case parameter, if there is one. */
static struct roan_cq *new_cq(struct kunit *test)
{
	struct ib_cq_init_attr attr = { .cqe = SLOTS - 1 };
	struct fake *f = test->priv;
	struct roan_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	u32 start = test->param_value ? *(const u32 *)test->param_value : 0;

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->ib.device = &f->dev.ib;
	KUNIT_ASSERT_EQ(test, roan_create_cq(&cq->ib, &attr, NULL), 0);
	cq->ring.index = start;
	cq->ring.ctl->user.index = start;
	cq->ring.ctl->kernel.index = start;
	return cq;
}

static void post_cqe(struct roan_cq *cq, u64 wr_id, u8 status, u16 flags)
{
	struct roan_cqe cqe = { .wr_id = wr_id, .status = status, .flags = flags, .qp_handle = 0xabcd };

	roan_cq_post(cq, &cqe);
}

static bool take_bit(struct roan_cq *cq, enum roan_deferred_bit bit)
{
	return test_and_clear_bit(bit, &cq->deferred.bits);
}

static void cq_overflow_is_reported_once(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);
	struct ib_wc wc[SLOTS + 1];
	int i;

	for (i = 0; i < SLOTS; i++)
		post_cqe(cq, i, 0, 0);
	KUNIT_EXPECT_EQ(test, cq->ring.ctl->kernel.flags, 0u);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_CQ_ERR));
	post_cqe(cq, 100, 0, 0);
	KUNIT_EXPECT_EQ(test, cq->ring.ctl->kernel.flags, (u32)ROAN_RING_OVERFLOW);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_CQ_ERR));
	post_cqe(cq, 101, 0, 0);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_CQ_ERR));
	KUNIT_EXPECT_EQ(test, fake_count(ROAN_CNT_cq_overflow), 2ull);

	/* The older entries are intact, and there is space again. */
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&cq->ib, SLOTS + 1, wc), SLOTS);
	for (i = 0; i < SLOTS; i++)
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, (u64)i);
	post_cqe(cq, 102, 0, 0);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&cq->ib, SLOTS, wc), 1);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 102ull);
	roan_destroy_cq(&cq->ib, NULL);
}

static void cq_events_follow_arming(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);

	post_cqe(cq, 0, 0, ROAN_CQE_SOLICITED);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_NOTIFY));	/* not armed */
	KUNIT_EXPECT_EQ(test, roan_req_notify_cq(&cq->ib, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, roan_req_notify_cq(&cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 1);
	post_cqe(cq, 1, 0, 0);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_NOTIFY));
	post_cqe(cq, 2, 0, 0);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_NOTIFY));	/* one event per arming */

	roan_req_notify_cq(&cq->ib, IB_CQ_SOLICITED);
	post_cqe(cq, 3, 0, 0);
	KUNIT_EXPECT_FALSE(test, take_bit(cq, ROAN_DEFER_NOTIFY));
	post_cqe(cq, 4, 0, ROAN_CQE_SOLICITED);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_NOTIFY));
	roan_req_notify_cq(&cq->ib, IB_CQ_SOLICITED);
	post_cqe(cq, 5, IB_WC_WR_FLUSH_ERR, 0);
	KUNIT_EXPECT_TRUE(test, take_bit(cq, ROAN_DEFER_NOTIFY));	/* errors count as solicited */
	roan_destroy_cq(&cq->ib, NULL);
}

static void cq_entry_has_handle_and_time(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);
	struct roan_cqe cqe;

	post_cqe(cq, 0, 0, 0);
	KUNIT_ASSERT_TRUE(test, roan_ring_poll(&cq->ring, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.qp_handle, 0xabcdull);
	KUNIT_EXPECT_NE(test, cqe.timestamp_ns, 0ull);
	roan_destroy_cq(&cq->ib, NULL);
}

static void post_cqe_of(struct roan_cq *cq, u64 wr_id, const struct roan_qp *qp)
{
	struct roan_cqe cqe = { .wr_id = wr_id, .qp_handle = (uintptr_t)&qp->ib };

	roan_cq_post(cq, &cqe);
}

/* A kernel consumer's QP is destroyed before its completions are polled: those of other QPs stay, in order. */
static void cq_forgets_a_qp(struct kunit *test)
{
	struct roan_cq *scq = new_cq(test), *rcq = new_cq(test);
	struct roan_qp *qp = kunit_kzalloc(test, 2 * sizeof(*qp), GFP_KERNEL);
	struct ib_wc wc[SLOTS];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp[0].scq = scq;
	qp[0].rcq = rcq;
	roan_cq_forget_qp(&qp[0]);
	for (i = 0; i < SLOTS; i++)
		post_cqe_of(scq, i, &qp[i % 3 == 1]);
	post_cqe_of(rcq, SLOTS, &qp[0]);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&scq->ib, 1, wc), 1);
	roan_cq_forget_qp(&qp[0]);
	post_cqe_of(scq, SLOTS, &qp[1]);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&rcq->ib, SLOTS, wc), 0);
	KUNIT_ASSERT_EQ(test, roan_poll_cq(&scq->ib, SLOTS, wc), 4);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, i < 3 ? 3 * i + 1ull : SLOTS);
		KUNIT_EXPECT_PTR_EQ(test, wc[i].qp, &qp[1].ib);
	}
	roan_destroy_cq(&scq->ib, NULL);
	roan_destroy_cq(&rcq->ib, NULL);
}

static void cq_resize_keeps_entries(struct kunit *test)
{
	struct roan_cq *cq = new_cq(test);
	struct ib_wc wc[SLOTS];
	int i;

	for (i = 0; i < SLOTS; i++)
		post_cqe(cq, i, 0, 0);
	KUNIT_EXPECT_EQ(test, roan_poll_cq(&cq->ib, 3, wc), 3);
	KUNIT_EXPECT_EQ(test, roan_resize_cq(&cq->ib, 3, NULL), -EINVAL);	/* 5 unpolled entries */
	KUNIT_EXPECT_EQ(test, cq->ring.mask, SLOTS - 1u);
	KUNIT_EXPECT_EQ(test, roan_resize_cq(&cq->ib, 2 * SLOTS, NULL), 0);
	KUNIT_EXPECT_EQ(test, cq->ib.cqe, 4 * SLOTS - 1);
	KUNIT_EXPECT_EQ(test, roan_resize_cq(&cq->ib, cq->ib.cqe, NULL), 0);
	KUNIT_EXPECT_EQ(test, cq->ring.mask, 4 * SLOTS - 1u);
	post_cqe(cq, SLOTS, 0, 0);
	KUNIT_ASSERT_EQ(test, roan_poll_cq(&cq->ib, SLOTS, wc), 6);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, (u64)i + 3);
	roan_destroy_cq(&cq->ib, NULL);
}

/* Sets cqe to 0 when it ends. */
static void poll_late(struct work_struct *work)
{
	struct ib_cq *cq = container_of(work, struct ib_cq, work);

	complete(cq->cq_context);
	msleep(50);
	roan_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	cq->cqe = 0;
}

/* As poll_late(), but in the core's softirq, which cannot sleep. */
static void poll_late_in_softirq(struct work_struct *work)
{
	struct ib_cq *cq = container_of(work, struct ib_cq, work);

	local_bh_disable();
	complete(cq->cq_context);
	mdelay(50);
	roan_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	cq->cqe = 0;
	local_bh_enable();
}

static void expect_destroy_waits(struct kunit *test, enum ib_poll_context ctx, work_func_t poll)
{
	DECLARE_COMPLETION_ONSTACK(running);
	struct roan_cq *cq = new_cq(test);
	struct ib_wc wc;

	cq->ib.cq_context = &running;
	cq->ib.poll_ctx = ctx;
	cq->ib.wc = &wc;	/* as of a CQ that the core polls */
	INIT_WORK(&cq->ib.work, poll);
	queue_work(system_unbound_wq, &cq->ib.work);
	wait_for_completion(&running);
	roan_destroy_cq(&cq->ib, NULL);
	KUNIT_EXPECT_EQ(test, cq->ib.cqe, 0);
	cancel_work_sync(&cq->ib.work);
}

/* A consumer destroys a CQ by ib_destroy_cq() while the core's work, which an upcall queued, still polls the CQ. */
static void cq_waits_for_polling_work(struct kunit *test)
{
	expect_destroy_waits(test, IB_POLL_UNBOUND_WORKQUEUE, poll_late);
}

/* ib_free_cq() returns while the softirq that polled the CQ is about to arm it, on another CPU. */
static void cq_waits_for_polling_softirq(struct kunit *test)
{
	if (num_online_cpus() == 1)
		kunit_skip(test, "needs a second CPU");
	expect_destroy_waits(test, IB_POLL_SOFTIRQ, poll_late_in_softirq);
}

/* Two CQ rings, with 3 entries in the first. */
static void two_cq_rings(struct kunit *test, struct roan_ring *ring, struct roan_ring *fresh)
{
	int i;

	KUNIT_ASSERT_EQ(test, roan_ring_alloc(ring, SLOTS, sizeof(struct roan_cqe), NULL, NULL), 0);
	KUNIT_ASSERT_EQ(test, roan_ring_alloc(fresh, SLOTS, sizeof(struct roan_cqe), NULL, NULL), 0);
	for (i = 0; i < 3; i++) {
		roan_ring_cqe_slot(ring)->wr_id = i;
		roan_ring_cqe_done(ring);
	}
}

/* Entries move in steps. Between them a CQE is added, and the program writes arbitrary values to its line. */
static void cq_moves_little_by_little(struct kunit *test)
{
	struct roan_ring ring, fresh;
	u32 head, i;

	two_cq_rings(test, &ring, &fresh);
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, 2), -EAGAIN);
	roan_ring_cqe_slot(&ring)->wr_id = 3;
	roan_ring_cqe_done(&ring);
	ring.ctl->user.index = 0x80000000;
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, 1), 0);
	KUNIT_EXPECT_EQ(test, ring.index, 4u);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, ((struct roan_cqe *)(ring.slots + i * ring.slot_size))->wr_id, (u64)i);
	roan_ring_free(&ring);
	roan_ring_free(&fresh);
}

/* A program may map the new ring before the resize fills it, and write anything there. */
static void cq_moves_into_a_scribbled_ring(struct kunit *test)
{
	struct roan_ring ring, fresh;
	u32 head;
	int i;

	two_cq_rings(test, &ring, &fresh);
	memset(&fresh.ctl->user, 0x80, sizeof(fresh.ctl->user));
	KUNIT_EXPECT_EQ(test, roan_ring_move_cqes(&ring, &fresh, &head, U32_MAX), 0);
	KUNIT_EXPECT_EQ(test, ring.index, 3u);
	KUNIT_EXPECT_EQ(test, ring.ctl->kernel.index, 3u);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, ((struct roan_cqe *)(ring.slots + i * ring.slot_size))->wr_id, (u64)i);
	roan_ring_free(&ring);
	roan_ring_free(&fresh);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE_PARAM(cq_overflow_is_reported_once, first_index_gen_params),
	KUNIT_CASE_PARAM(cq_events_follow_arming, first_index_gen_params),
	KUNIT_CASE_PARAM(cq_entry_has_handle_and_time, first_index_gen_params),
	KUNIT_CASE_PARAM(cq_forgets_a_qp, first_index_gen_params),
	KUNIT_CASE_PARAM(cq_resize_keeps_entries, first_index_gen_params),
	KUNIT_CASE(cq_waits_for_polling_work),
	KUNIT_CASE(cq_waits_for_polling_softirq),
	KUNIT_CASE(cq_moves_little_by_little),
	KUNIT_CASE(cq_moves_into_a_scribbled_ring),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "roan_cq",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = cq_cases,
};
kunit_test_suite(cq_suite);
