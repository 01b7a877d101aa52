// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for skbs to leave this host: a queue is woken when less than its threshold is in flight, and no wake-up is
 * lost. The socket of skbs that fq may get.
 */
#include <net/sch_generic.h>
#include <net/sock.h>
#include "flow/flow.h"
#include "fakes.h"

#define KIB(n)	atomic64_set(&f->qp.ref->tx_inflight.total_kb, (n))

static bool called(struct fake *f)
{
	return test_and_clear_bit(ROAN_DEFER_SEND, &f->qp.deferred.bits);
}

static void arm__waits_while_more_is_in_flight(struct kunit *test)
{
	struct fake *f = test->priv;

	KIB(100);
	KUNIT_EXPECT_TRUE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 100));
	KUNIT_EXPECT_EQ(test, f->qp.ref->tx_inflight.wake_kb[ROAN_QUEUE_SQ], 100);
	KUNIT_EXPECT_FALSE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_RQ, 1));
	KIB(99);
	KUNIT_EXPECT_FALSE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 100));
	KUNIT_EXPECT_EQ(test, f->qp.ref->tx_inflight.wake_kb[ROAN_QUEUE_SQ], 0);
	KUNIT_EXPECT_TRUE(test, called(f));	/* for the first wait */
	KIB(0);
	KUNIT_EXPECT_FALSE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 100));
	KUNIT_EXPECT_FALSE(test, called(f));
}

/* The send loop waits for half; a wait of the timer for all does not lower that threshold. */
static void arm__keeps_the_higher_threshold(struct kunit *test)
{
	struct fake *f = test->priv;

	KIB(200);
	KUNIT_EXPECT_TRUE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 100));
	KUNIT_EXPECT_TRUE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 1));
	KUNIT_EXPECT_EQ(test, f->qp.ref->tx_inflight.wake_kb[ROAN_QUEUE_SQ], 100);
	KUNIT_EXPECT_FALSE(test, called(f));
}

/*
 * Race: the send loop waits for half. The last destructor has subtracted its skb but has not read the threshold, when
 * the timer calls roan_tx_inflight_arm(), finds nothing in flight and clears the threshold. The destructor then finds
 * none, so the timer's call must wake the queue.
 */
static void arm__wakes_after_a_lost_race(struct kunit *test)
{
	struct fake *f = test->priv;

	KIB(200);
	KUNIT_EXPECT_TRUE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 100));
	KIB(0);
	KUNIT_EXPECT_FALSE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 1));
	KUNIT_EXPECT_EQ(test, f->qp.ref->tx_inflight.wake_kb[ROAN_QUEUE_SQ], 0);
	KUNIT_EXPECT_TRUE(test, called(f));
}

/* The same race, when the timer has waited before and expires once more. */
static void arm__wakes_for_an_equal_wait(struct kunit *test)
{
	struct fake *f = test->priv;

	KIB(200);
	KUNIT_EXPECT_TRUE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 1));
	KIB(0);
	KUNIT_EXPECT_FALSE(test, roan_tx_inflight_arm(&f->qp, ROAN_QUEUE_SQ, 1));
	KUNIT_EXPECT_TRUE(test, called(f));
}

/*
 * Behind a tunnel with a queue ESP adds bytes to the socket for each packet. Near the overflow of their sum, which would
 * be a warning, skbs have no socket.
 */
static void charge__stops_to_use_a_socket_with_many_bytes(struct kunit *test)
{
	struct netdev_queue queue = { .qdisc = &noop_qdisc };
	struct fake *f = test->priv;
	struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);
	struct sock *sk;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_EQ(test, roan_tx_inflight_init(), 0);
	f->ndev._tx = &queue;
	KIB(BIT_ULL(62));	/* the QP exists */
	rcu_read_lock();
	roan_tx_inflight_charge(&f->qp, ROAN_QUEUE_SQ, skb, &f->dst);
	sk = skb->sk;
	skb_orphan(skb);
	KUNIT_EXPECT_NOT_NULL(test, sk);
	if (sk) {
		refcount_add(BIT(30), &sk->sk_wmem_alloc);
		roan_tx_inflight_charge(&f->qp, ROAN_QUEUE_SQ, skb, &f->dst);
		KUNIT_EXPECT_NULL(test, skb->sk);
		skb_orphan(skb);
		KUNIT_EXPECT_FALSE(test, refcount_sub_and_test(BIT(30), &sk->sk_wmem_alloc));
	}
	rcu_read_unlock();
	kfree_skb(skb);
	f->ndev._tx = NULL;
	roan_tx_inflight_exit();
}

static int tx_inflight_init(struct kunit *test)
{
	int err = fake_init(test);
	struct fake *f = test->priv;

	if (err)
		return err;
	f->qp.ref = kunit_kzalloc(test, sizeof(*f->qp.ref), GFP_KERNEL);
	if (!f->qp.ref)
		return -ENOMEM;
	f->qp.ref->qp = &f->qp;
	return 0;
}

static struct kunit_case tx_inflight_cases[] = {
	KUNIT_CASE(arm__waits_while_more_is_in_flight),
	KUNIT_CASE(arm__keeps_the_higher_threshold),
	KUNIT_CASE(arm__wakes_after_a_lost_race),
	KUNIT_CASE(arm__wakes_for_an_equal_wait),
	KUNIT_CASE(charge__stops_to_use_a_socket_with_many_bytes),
	{}
};

static struct kunit_suite tx_inflight_suite = {
	.name = "roan_tx_inflight",
	.init = tx_inflight_init,
	.exit = fake_exit,
	.test_cases = tx_inflight_cases,
};
kunit_test_suite(tx_inflight_suite);
