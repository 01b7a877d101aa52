// SPDX-License-Identifier: GPL-2.0
/*
 * What a program posts to QPs at rest, and when to look for it without being asked. A program that streams small
 * messages over a short path, or over many QPs in turn, would ring for each of them, because each QP is at rest again
 * when it is used next. So when a context's bells come in quick succession the kernel leaves the doorbell off for the
 * whole context. The program then only writes down which QPs it posted to, in a ring of notices; the kernel looks there
 * a little later, and what has gathered leaves at once. If little has, it was a program that waits for answers, and it
 * is left alone; for longer and longer, if it lost time by it.
 *
 * The time is an upper bound: a poster that has nothing to do but wait for completions rings at once (provider/doorbell.c),
 * for all it has posted. Any QPN may stand in the ring: only QPs of the context are looked at, and so many at a time.
 */
#include "base/base.h"
#include "tx/tx.h"

#define STREAM_GAP_NS	(1000 * NSEC_PER_USEC)	/* bells closer than this are a stream, perhaps */
#define BATCH_WAIT_NS	(20 * NSEC_PER_USEC)
#define MAX_BATCH_NS	(200 * NSEC_PER_USEC)
#define MIN_BATCH	4			/* work requests gathered that make lingering worth it */
#define MIN_BELL_THRESHOLD	16		/* quick bells before it is tried first, and where trying did no harm */
#define MAX_BELL_THRESHOLD	8192		/* doubled each time it was in vain, from one up where it had been worth it */
#define HINT_SLOTS		256			/* of the ring; a poster that finds it full rings */
#define SOFTIRQ_HINTS	64			/* at a time; a caller of the doorbell looks at HINT_SLOTS */

/*
 * Little has gathered. That did harm if the timer found it, as somebody waited for the timer; a poster that waits and rings
 * loses nothing. False: it was a stream so far, and may go on.
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
 * Nobody is at work on the ring: shall we look again? True: timer_ns says when. The wait is in proportion to what the
 * last batch took from beginning to end: on one CPU the poster gets to run only then.
 */
static bool batch_should_wait(struct roan_db_hints *hints, u64 now)
	__must_hold(&hints->lock)
{
	if (now < hints->timer_ns)
		return true;		/* a bell brought us here; the time is not up */
	if (!hints->timer_ns) {
		if (hints->bell_streak < hints->bell_threshold)
			return false;
	} else if (READ_ONCE(hints->batch_wqes) >= MIN_BATCH) {
		/* a stream: its poster may be late once, and then the next bell will do */
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

/* The doorbell is off while the timer is set. One set to an earlier time stays, and is set anew when it fires. */
static void batch_arm_timer(struct roan_db_hints *hints, u64 at)
	__must_hold(&hints->lock)
{
	roan_ring_unpark(&hints->ring);
	if (!hrtimer_is_queued(&hints->timer))
		hrtimer_start(&hints->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/* May we leave? */
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

/* A ring that runs away from us must not keep us here: after @budget the timer goes on. */
static void batch_poll_hints(struct roan_ucontext *uctx, u64 began, u32 budget, struct roan_qp **answered)
{
	struct roan_db_hints *hints = &uctx->db_hints;
	u32 qpn;

	while (budget--) {
		if (batch_pop_hint(hints, began, &qpn))
			batch_kick_qp(uctx, qpn, answered);
		else if (batch_stop_polling(hints))
			return;
	}
	spin_lock_bh(&hints->lock);
	batch_arm_timer(hints, ktime_get_ns() + BATCH_WAIT_NS);
	spin_unlock_bh(&hints->lock);
}

static enum hrtimer_restart batch_timer_fn(struct hrtimer *timer)
{
	struct roan_ucontext *uctx = container_of(timer, struct roan_ucontext, db_hints.timer);
	struct roan_db_hints *hints = &uctx->db_hints;

	spin_lock_bh(&hints->lock);
	hints->timer_hit |= roan_ring_pending(&hints->ring) > 0;
	spin_unlock_bh(&hints->lock);
	batch_poll_hints(uctx, ktime_get_ns(), SOFTIRQ_HINTS, NULL);
	return HRTIMER_NORESTART;
}

void roan_db_batch_ring(struct roan_ucontext *uctx, u64 began, struct roan_qp **answered)
{
	struct roan_db_hints *hints = &uctx->db_hints;

	if (!hints->ring.ctl)
		return;
	/* First: softirqs that wait on this CPU run when the lock is let go, and may say anew that more waits. */
	WRITE_ONCE(hints->ring.ctl->kernel.send_cpu_plus1, 0);
	spin_lock_bh(&hints->lock);
	hints->bell_streak = began - hints->last_bell_ns < STREAM_GAP_NS ? hints->bell_streak + 1 : 0;
	hints->last_bell_ns = began;
	hints->last_hit_ns = began;
	roan_ring_unpark(&hints->ring);
	spin_unlock_bh(&hints->lock);
	batch_poll_hints(uctx, began, HINT_SLOTS, answered);
}

/* Also by those who look without us, because an answer came. Once it is enough nobody writes to what all CPUs read. */
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
 * What goes on later goes on in softirq, and softirqs that have gone on for long are left to ksoftirqd, which gets its share of
 * the CPU like any program. One of ours that polls there has nothing better to do, if it only knew.
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
	hrtimer_cancel(&hints->timer);
	roan_ring_free(&hints->ring);
}
