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

#define QUICK_NS	(1000 * NSEC_PER_USEC)	/* bells closer than this are a stream, perhaps */
#define LINGER_NS	(20 * NSEC_PER_USEC)
#define MAX_BATCH_NS	(200 * NSEC_PER_USEC)
#define WORTH		4			/* work requests gathered that make lingering worth it */
#define MIN_PATIENCE	16			/* quick bells before it is tried first, and where trying did no harm */
#define MAX_PATIENCE	8192			/* doubled each time it was in vain, from one up where it had been worth it */
#define SLOTS		256			/* of the ring; a poster that finds it full rings */
#define SOFTIRQ_LOOKS	64			/* at a time; a caller of the doorbell looks at SLOTS */

/*
 * Little has gathered. That did harm if the timer found it, as somebody waited for the timer; a poster that waits and rings
 * loses nothing. False: it was a stream so far, and may go on.
 */
static bool in_vain(struct roan_notices *notices)
	__must_hold(&notices->lock)
{
	u32 patience = notices->patience;

	notices->patience = clamp_t(u32, patience * 2, 1, notices->late ? MAX_PATIENCE : MIN_PATIENCE);
	return patience;
}

/*
 * Nobody is at work on the ring: shall we look again? True: linger_at says when. The wait is in proportion to what the
 * last batch took from beginning to end: on one CPU the poster gets to run only then.
 */
static bool linger(struct roan_notices *notices, u64 now)
	__must_hold(&notices->lock)
{
	if (now < notices->linger_at)
		return true;		/* a bell brought us here; the time is not up */
	if (!notices->linger_at) {
		if (notices->quick_bells < notices->patience)
			return false;
	} else if (READ_ONCE(notices->gathered) >= WORTH) {
		notices->patience = 0;	/* a stream: its poster may be late once, and then the next bell will do */
	} else if (in_vain(notices)) {
		notices->linger_at = 0;
		notices->quick_bells = 0;
		return false;
	}
	WRITE_ONCE(notices->gathered, 0);
	notices->late = false;
	notices->linger_at = now + LINGER_NS + 2 * min(now - notices->found_at, MAX_BATCH_NS);
	return true;
}

/* The doorbell is off while the timer is set. One set to an earlier time stays, and is set anew when it fires. */
static void look_again(struct roan_notices *notices, u64 at)
	__must_hold(&notices->lock)
{
	roan_ring_awake(&notices->ring);
	if (!hrtimer_is_queued(&notices->timer))
		hrtimer_start(&notices->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/* May we leave? */
static bool leave(struct roan_notices *notices)
{
	bool done = true;

	spin_lock_bh(&notices->lock);
	if (linger(notices, ktime_get_ns()))
		look_again(notices, notices->linger_at);
	else
		done = !roan_ring_need_doorbell(&notices->ring);
	spin_unlock_bh(&notices->lock);
	return done;
}

static bool take(struct roan_notices *notices, u64 began, u32 *qpn)
{
	bool any;

	spin_lock_bh(&notices->lock);
	any = roan_ring_take_notice(&notices->ring, qpn);
	if (any)
		notices->found_at = began;
	spin_unlock_bh(&notices->lock);
	return any;
}

static void look_at(struct roan_uctx *uctx, u32 qpn, struct roan_qp **answered)
{
	struct roan_qp *qp = roan_qp_find(qpn);

	if (!qp)
		return;
	if (qp->uctx == &uctx->ib)
		roan_doorbell_look(qp, answered);
	roan_qp_put(qp);
}

/* A ring that runs away from us must not keep us here: after @looks the timer goes on. */
static void look(struct roan_uctx *uctx, u64 began, u32 looks, struct roan_qp **answered)
{
	struct roan_notices *notices = &uctx->notices;
	u32 qpn;

	while (looks--) {
		if (take(notices, began, &qpn))
			look_at(uctx, qpn, answered);
		else if (leave(notices))
			return;
	}
	spin_lock_bh(&notices->lock);
	look_again(notices, ktime_get_ns() + LINGER_NS);
	spin_unlock_bh(&notices->lock);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct roan_uctx *uctx = container_of(timer, struct roan_uctx, notices.timer);
	struct roan_notices *notices = &uctx->notices;

	spin_lock_bh(&notices->lock);
	notices->late |= roan_ring_pending(&notices->ring) > 0;
	spin_unlock_bh(&notices->lock);
	look(uctx, ktime_get_ns(), SOFTIRQ_LOOKS, NULL);
	return HRTIMER_NORESTART;
}

void roan_notices_rung(struct roan_uctx *uctx, u64 began, struct roan_qp **answered)
{
	struct roan_notices *notices = &uctx->notices;

	if (!notices->ring.ctl)
		return;
	/* First: softirqs that wait on this CPU run when the lock is let go, and may say anew that more waits. */
	WRITE_ONCE(notices->ring.ctl->kernel.waits_on, 0);
	spin_lock_bh(&notices->lock);
	notices->quick_bells = began - notices->bell_at < QUICK_NS ? notices->quick_bells + 1 : 0;
	notices->bell_at = began;
	notices->found_at = began;
	roan_ring_awake(&notices->ring);
	spin_unlock_bh(&notices->lock);
	look(uctx, began, SLOTS, answered);
}

/* Also by those who look without us, because an answer came. Once it is enough nobody writes to what all CPUs read. */
void roan_notices_found(struct roan_qp *qp, u32 n)
{
	struct roan_notices *notices;
	u32 gathered;

	if (!n || !qp->uctx)
		return;
	notices = &to_roan_uctx(qp->uctx)->notices;
	gathered = READ_ONCE(notices->gathered);
	if (gathered < WORTH)
		WRITE_ONCE(notices->gathered, gathered + n);
}

/*
 * What goes on later goes on in softirq, and softirqs that have gone on for long are left to ksoftirqd, which gets its share of
 * the CPU like any program. One of ours that polls there has nothing better to do, if it only knew.
 */
void roan_notices_waits(struct roan_qp *qp, bool waits)
{
	u32 on = waits ? smp_processor_id() + 1 : 0;
	struct roan_ring *ring;

	if (!qp->uctx)
		return;
	ring = &to_roan_uctx(qp->uctx)->notices.ring;
	if (ring->ctl && READ_ONCE(ring->ctl->kernel.waits_on) != on)
		WRITE_ONCE(ring->ctl->kernel.waits_on, on);
}

void roan_notices_init(struct roan_notices *notices)
{
	spin_lock_init(&notices->lock);
	roan_hrtimer_setup(&notices->timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	notices->patience = MIN_PATIENCE;
}

int roan_notices_alloc(struct roan_uctx *uctx, struct roan_ring_desc *desc)
{
	struct roan_notices *notices = &uctx->notices;
	int err = roan_ring_alloc(&notices->ring, SLOTS, sizeof(struct roan_notice), &uctx->ib, desc);

	if (!err)
		roan_ring_need_doorbell(&notices->ring);
	return err;
}

void roan_notices_free(struct roan_notices *notices)
{
	hrtimer_cancel(&notices->timer);
	roan_ring_free(&notices->ring);
}
