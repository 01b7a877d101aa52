// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell batching: for a short time the kernel polls a context's ring of doorbell hints (QPNs) instead of taking one
 * doorbell per post. Decides when to poll and when posters must ring. Does not decide what is sent: send.c does.
 *
 * A program that streams small messages over a short path, or over many QPs in turn, would ring for each message,
 * because each QP is idle again when it is used next. So when doorbells of a context come in quick succession, the
 * kernel leaves NEED_DOORBELL of the hint ring clear. The program then only adds the QPN to the ring. A timer defers a
 * poll of the ring to a little later, and everything posted meanwhile is sent at once. If the batch was small, the
 * program waits for responses and does not stream: batching stops, and more doorbells than before must come in quick
 * succession to start it again if latency was lost.
 *
 * The wait is an upper bound: a poster that has nothing to do but wait for completions rings at once
 * (provider/doorbell.c), for all it has posted. The ring may contain any QPN: only QPs of the context are run, and a
 * bounded number per call. The timer itself runs none: those of many contexts may expire in one softirq.
 */
#include "base/base.h"
#include "tx/tx.h"

#define STREAM_GAP_NS	(1000 * NSEC_PER_USEC)	/* doorbells closer than this may be a stream */
#define BATCH_WAIT_NS	(20 * NSEC_PER_USEC)
#define MAX_BATCH_NS	(200 * NSEC_PER_USEC)
#define MIN_BATCH	4			/* work requests; batching pays off from this many per batch */
#define MIN_BELL_THRESHOLD	16		/* doorbells before the first attempt; maximum if none cost latency */
#define MAX_BELL_THRESHOLD	8192		/* maximum otherwise; doubled by each failed attempt */
#define HINT_SLOTS		256			/* of the ring; a poster that finds it full rings */
#define SOFTIRQ_HINTS	64			/* hints per poll in softirq; a doorbell takes up to HINT_SLOTS */
#define SOFTIRQ_NS	(200 * NSEC_PER_USEC)	/* a poll in softirq takes no further hint after that time */

/*
 * The batch was too small. If the timer, not a doorbell, collected it, latency was lost: double the threshold up to
 * MAX_BELL_THRESHOLD, otherwise only up to MIN_BELL_THRESHOLD. Returns false if the threshold was 0, i.e. the previous
 * batch was large enough: batching continues.
 */
static bool batch_failed(struct roan_db_hints *hints)
	__must_hold(&hints->lock)
{
	u32 threshold = hints->bell_threshold;

	hints->bell_threshold = clamp_t(u32, threshold * 2, 1, hints->timer_hit ? MAX_BELL_THRESHOLD :
					MIN_BELL_THRESHOLD);
	return threshold;
}

/*
 * The ring is empty. Returns true if the timer is to poll it at timer_ns; false if posters must ring. The wait grows
 * with the duration of the last batch: on one CPU the poster does not run before that has ended.
 */
static bool batch_should_wait(struct roan_db_hints *hints, u64 now)
	__must_hold(&hints->lock)
{
	if (now < hints->timer_ns)
		return true;		/* a doorbell came before the timer is due */
	if (!hints->timer_ns) {
		if (hints->bell_streak < hints->bell_threshold)
			return false;
	} else if (READ_ONCE(hints->batch_wqes) >= MIN_BATCH) {
		/* a stream: from now on one small batch is tolerated before batching stops */
		hints->bell_threshold = 0;
	} else if (batch_failed(hints)) {
		hints->timer_ns = 0;
		hints->bell_streak = 0;
		return false;
	}
	WRITE_ONCE(hints->batch_wqes, 0);
	hints->timer_hit = false;
	hints->timer_ns = now + BATCH_WAIT_NS + 2 * min(now - hints->last_hit_ns, MAX_BATCH_NS);
	return true;
}

/* The doorbell is off while the timer is set. A timer set to an earlier time stays, and is set again when it fires. */
static void batch_arm_timer(struct roan_db_hints *hints, u64 at)
	__must_hold(&hints->lock)
{
	roan_ring_unpark(&hints->ring);
	if (!hints->closing && !hrtimer_is_queued(&hints->timer))
		hrtimer_start(&hints->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/*
 * Returns true if polling may stop: the timer is set, or the doorbell is enabled and no hint came before the flag was
 * set.
 */
static bool batch_stop_polling(struct roan_db_hints *hints)
{
	bool done = true;

	spin_lock_bh(&hints->lock);
	if (batch_should_wait(hints, ktime_get_ns()))
		batch_arm_timer(hints, hints->timer_ns);
	else
		done = !roan_ring_enable_doorbell(&hints->ring);
	spin_unlock_bh(&hints->lock);
	return done;
}

static bool batch_pop_hint(struct roan_db_hints *hints, u64 began, u32 *qpn)
{
	bool any;

	spin_lock_bh(&hints->lock);
	any = roan_ring_pop_hint(&hints->ring, qpn);
	if (any)
		hints->last_hit_ns = began;
	spin_unlock_bh(&hints->lock);
	return any;
}

static void batch_kick_qp(struct roan_ucontext *uctx, u32 qpn, struct roan_qp **answered)
{
	struct roan_qp *qp = roan_qp_find(qpn);

	if (!qp)
		return;
	if (qp->uctx == &uctx->ib)
		roan_qp_kick(qp, answered);
	roan_qp_put(qp);
}

/* Runs the QP of the next hint. False: there is none, and polling may stop. */
static bool batch_poll_hint(struct roan_ucontext *uctx, u64 began, struct roan_qp **answered)
{
	struct roan_db_hints *hints = &uctx->db_hints;
	u32 qpn;

	if (!batch_pop_hint(hints, began, &qpn))
		return !batch_stop_polling(hints);
	batch_kick_qp(uctx, qpn, answered);
	return true;
}

/* In softirq. A fast poster does not extend the loop: what is left is deferred again. */
static void batch_poll_softirq(struct roan_ucontext *uctx)
{
	struct roan_db_hints *hints = &uctx->db_hints;
	u64 began = ktime_get_ns();
	u32 i;

	spin_lock_bh(&hints->lock);
	hints->timer_hit |= roan_ring_pending(&hints->ring) > 0;
	spin_unlock_bh(&hints->lock);
	for (i = 0; i < SOFTIRQ_HINTS && ktime_get_ns() - began < SOFTIRQ_NS; i++)
		if (!batch_poll_hint(uctx, began, NULL))
			return;
	roan_defer(&hints->deferred, ROAN_DEFER_HINTS);
}

static void batch_run_deferred(struct roan_deferred *item, unsigned long bits)
{
	struct roan_ucontext *uctx = container_of(item, struct roan_ucontext, db_hints.deferred);

	if (!READ_ONCE(uctx->db_hints.closing))
		batch_poll_softirq(uctx);
}

static enum hrtimer_restart batch_timer_fn(struct hrtimer *timer)
{
	roan_defer(&container_of(timer, struct roan_db_hints, timer)->deferred, ROAN_DEFER_HINTS);
	return HRTIMER_NORESTART;
}

void roan_db_batch_ring(struct roan_ucontext *uctx, u64 began, struct roan_qp **answered)
{
	struct roan_db_hints *hints = &uctx->db_hints;
	u32 i;

	if (!hints->ring.ctl)
		return;
	/* Before the lock: softirqs pending on this CPU run when it is released, and may set the field again. */
	WRITE_ONCE(hints->ring.ctl->kernel.send_cpu_plus1, 0);
	spin_lock_bh(&hints->lock);
	hints->bell_streak = began - hints->last_bell_ns < STREAM_GAP_NS ? hints->bell_streak + 1 : 0;
	hints->last_bell_ns = began;
	hints->last_hit_ns = began;
	roan_ring_unpark(&hints->ring);
	spin_unlock_bh(&hints->lock);
	for (i = 0; i < HINT_SLOTS; i++) {
		if (!batch_poll_hint(uctx, began, answered))
			return;
		cond_resched();
	}
	/* The timer continues: a fast poster does not extend the loop. */
	spin_lock_bh(&hints->lock);
	batch_arm_timer(hints, ktime_get_ns() + BATCH_WAIT_NS);
	spin_unlock_bh(&hints->lock);
}

/*
 * Also called for WQEs found by the ACK path. Counting stops at MIN_BATCH, so that the cache line stays shared between
 * CPUs.
 */
void roan_db_batch_account(struct roan_qp *qp, u32 n)
{
	struct roan_db_hints *hints;
	u32 gathered;

	if (!n || !qp->uctx)
		return;
	hints = &to_roan_ucontext(qp->uctx)->db_hints;
	gathered = READ_ONCE(hints->batch_wqes);
	if (gathered < MIN_BATCH)
		WRITE_ONCE(hints->batch_wqes, gathered + n);
}

/*
 * Deferred sends run in ksoftirqd under load, which competes with the polling program on that CPU. Publish the CPU in
 * send_cpu_plus1, so that the program can run the sends by a doorbell.
 */
void roan_db_batch_set_cpu(struct roan_qp *qp, bool waits)
{
	u32 on = waits ? smp_processor_id() + 1 : 0;
	struct roan_ring *ring;

	if (!qp->uctx)
		return;
	ring = &to_roan_ucontext(qp->uctx)->db_hints.ring;
	if (ring->ctl && READ_ONCE(ring->ctl->kernel.send_cpu_plus1) != on)
		WRITE_ONCE(ring->ctl->kernel.send_cpu_plus1, on);
}

void roan_db_hints_init(struct roan_db_hints *hints)
{
	spin_lock_init(&hints->lock);
	refcount_set(&hints->refs, 1);
	init_completion(&hints->released);
	roan_deferred_setup(&hints->deferred, &hints->refs, &hints->released, batch_run_deferred);
	roan_hrtimer_setup(&hints->timer, batch_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	hints->bell_threshold = MIN_BELL_THRESHOLD;
}

int roan_db_hints_alloc(struct roan_ucontext *uctx, struct roan_ring_desc *desc)
{
	struct roan_db_hints *hints = &uctx->db_hints;
	int err = roan_ring_alloc(&hints->ring, HINT_SLOTS, sizeof(struct roan_db_hint), &uctx->ib, desc);

	if (!err)
		roan_ring_enable_doorbell(&hints->ring);
	return err;
}

void roan_db_hints_free(struct roan_db_hints *hints)
{
	spin_lock_bh(&hints->lock);
	WRITE_ONCE(hints->closing, true);
	spin_unlock_bh(&hints->lock);
	hrtimer_cancel(&hints->timer);
	roan_put(&hints->refs, &hints->released);
	wait_for_completion(&hints->released);
	roan_ring_free(&hints->ring);
}
