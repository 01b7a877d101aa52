// SPDX-License-Identifier: GPL-2.0
/*
 * QPs that the pacer blocks wait here for their send time: one queue and one timer per CPU, so that an idle QP has no
 * timer. At that time the QP's queues are deferred (deferred.c) and try again. Does not decide whether they may send:
 * the pacer does. Needs no queueing discipline.
 */
#include <linux/timerqueue.h>
#include "base/base.h"
#include "flow/qp_rate.h"

#define SLACK_NS	1000	/* ns that a QP may run early, so that QPs with close times share one timer interrupt */
#define MAX_WAKE	256	/* QPs per timer run; the timer expires at once again for the others */

struct roan_pacing_queue {
	spinlock_t lock;	/* _bh, leaf */
	struct timerqueue_head queue;
	struct hrtimer timer;	/* pinned, soft */
};

static DEFINE_PER_CPU(struct roan_pacing_queue, wheels);

/* Returns true if @l was queued; the caller then owns the queue's QP reference. l->lock held. */
static bool pacing_dequeue(struct roan_limiter *l)
{
	struct roan_pacing_queue *wheel = l->pacing_queue;
	bool was;

	if (!wheel)
		return false;
	spin_lock(&wheel->lock);
	was = l->queued;
	if (was)
		timerqueue_del(&wheel->queue, &l->node);
	WRITE_ONCE(l->queued, false);	/* pacing_waits_until() does not take this lock */
	spin_unlock(&wheel->lock);
	return was;
}

static bool pacing_waits_until(const struct roan_limiter *l, u64 at)
{
	return READ_ONCE(l->queued) && (u64)l->node.expires <= at;
}

/* A limiter that is queued for an earlier time stays there; its QP tries too early and is queued again. */
void roan_pacing_reschedule(struct roan_limiter *l, u64 at)
{
	struct roan_pacing_queue *wheel;

	lockdep_assert_held(&l->lock);
	if (pacing_waits_until(l, at))
		return;
	if (!pacing_dequeue(l))
		roan_qp_get(l->qp);
	wheel = this_cpu_ptr(&wheels);
	spin_lock(&wheel->lock);
	l->pacing_queue = wheel;
	l->node.expires = at;
	WRITE_ONCE(l->queued, true);
	if (timerqueue_add(&wheel->queue, &l->node))
		hrtimer_start(&wheel->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_PINNED_SOFT);
	spin_unlock(&wheel->lock);
}

void roan_pacing_wait(struct roan_limiter *l, enum roan_queue_id side, u64 at)
{
	set_bit(side, &l->blocked_mask);
	/* Pairs with the xchg() in pacing_wake(): either it sees our bit, or we see that @l is no longer queued. */
	smp_mb__after_atomic();
	roan_pacing_reschedule(l, at);
}

void roan_pacing_cancel(struct roan_limiter *l)
{
	bool was;

	spin_lock_bh(&l->lock);
	WRITE_ONCE(l->blocked_mask, 0);
	was = pacing_dequeue(l);
	spin_unlock_bh(&l->lock);
	if (was)
		roan_qp_put(l->qp);
}

static void pacing_wake(struct roan_limiter *l)
{
	struct roan_qp *qp = l->qp;

	roan_kick_queues(qp, xchg(&l->blocked_mask, 0));
	roan_qp_put(qp);
}

/* The timer of an offline CPU is migrated to another CPU and still serves the same queue. */
static enum hrtimer_restart pacing_timer_fn(struct hrtimer *timer)
{
	struct roan_pacing_queue *wheel = container_of(timer, struct roan_pacing_queue, timer);
	struct timerqueue_node *node;
	u64 now = ktime_get_ns();
	u32 most = MAX_WAKE;

	spin_lock(&wheel->lock);
	while ((node = timerqueue_getnext(&wheel->queue)) && (u64)node->expires <= now + SLACK_NS && most--) {
		struct roan_limiter *l = container_of(node, struct roan_limiter, node);

		timerqueue_del(&wheel->queue, node);
		WRITE_ONCE(l->queued, false);
		pacing_wake(l);
	}
	if (node)	/* not in the past: this softirq would run it again at once, without a bound */
		hrtimer_start(timer, max_t(ktime_t, node->expires, ktime_get()), HRTIMER_MODE_ABS_PINNED_SOFT);
	spin_unlock(&wheel->lock);
	return HRTIMER_NORESTART;
}

void roan_pacing_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct roan_pacing_queue *wheel = per_cpu_ptr(&wheels, cpu);

		spin_lock_init(&wheel->lock);
		timerqueue_init_head(&wheel->queue);
		roan_hrtimer_setup(&wheel->timer, pacing_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	}
}

/* No QP exists, so all queues are empty, but a timer may still run. */
void roan_pacing_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(&wheels, cpu)->timer);
}
