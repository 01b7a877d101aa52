// SPDX-License-Identifier: GPL-2.0
/*
 * One CPU only: a doorbell that answers the peer yields the CPU to it. Decides when the poster gives up the CPU; has no
 * effect on what is sent. Verbs programs poll without sleeping, so a peer process on the same host would see a
 * delivered message only when the poster's time slice ends: after milliseconds instead of microseconds. With more than
 * one CPU online, this file does nothing.
 *
 * yield() is enough while the peer has had no more CPU time than the poster; otherwise a fair scheduler picks the
 * poster again. A peer that polls memory, as programs do that WRITE to each other, makes no system call in which it
 * could yield, so it has had more CPU time after its first time slice. The poster then sleeps until the peer has sent
 * something. That ends the peer's time slice early: its own doorbell finds the poster awake, and yields or sleeps in
 * the same way.
 */
#include <linux/hrtimer.h>
#include <linux/sched/stat.h>
#include "tx/tx.h"

/* bounds the sleep: the peer may never answer, or not on this QP */
#define YIELD_TIMEOUT_NS	(500 * NSEC_PER_USEC)

/* Changes when the peer has sent something: the MSN counts request messages, the ring index receives used. */
static u32 yield_rx_seq(const struct roan_qp *qp)
{
	return READ_ONCE(qp->rq.resp.msn) + READ_ONCE(qp->rq.ring.index);
}

/* Called for a doorbell of @qp. True if the peer has sent something since the last one: it waits for a response. */
bool roan_yield_wanted(struct roan_qp *qp)
{
	u32 seq;

	if (num_online_cpus() > 1)
		return false;
	seq = yield_rx_seq(qp);
	return xchg(&qp->sq.rx_seq_seen, seq) != seq;
}

/* roan_yield_wake() ends the sleep. If several threads post to one QP, it wakes the one that slept last. */
static void yield_wait_rx(struct roan_qp *qp)
{
	ktime_t timeout = YIELD_TIMEOUT_NS;
	bool seq;

	spin_lock_bh(&qp->rq.lock);
	seq = yield_rx_seq(qp) != READ_ONCE(qp->sq.rx_seq_seen);
	if (!seq) {
		qp->rq.yield_waiter = current;
		set_current_state(TASK_INTERRUPTIBLE);
	}
	spin_unlock_bh(&qp->rq.lock);
	if (seq)
		return;
	schedule_hrtimeout_range(&timeout, 0, HRTIMER_MODE_REL);

	spin_lock_bh(&qp->rq.lock);
	if (qp->rq.yield_waiter == current)
		qp->rq.yield_waiter = NULL;
	spin_unlock_bh(&qp->rq.lock);
}

/* Process context, no lock held. */
void roan_yield(struct roan_qp *qp)
{
	unsigned long switches = current->nvcsw + current->nivcsw;

	if (single_task_running())
		return;
	yield();
	if (current->nvcsw + current->nivcsw == switches)
		yield_wait_rx(qp);
}
