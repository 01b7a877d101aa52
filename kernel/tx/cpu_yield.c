// SPDX-License-Identifier: GPL-2.0
/*
 * Whose turn it is, on a machine with one CPU. Verbs programs poll without sleeping; a peer that lives here too would see
 * what was just delivered only when the poster's time slice is over: milliseconds instead of microseconds. So who answered
 * its peer gives the CPU away. Where there are more CPUs nothing happens here.
 *
 * yield() does as long as the peer had no more of the CPU than we: a fair scheduler hands it straight back otherwise. Who
 * polls its memory, as peers do that WRITE to each other, makes no system call in which it could be told to give way, so
 * after one slice it always had more. Then we sleep until it has answered: it cannot use its slice up, since its own
 * doorbell finds us awake again, and waits in its turn.
 */
#include <linux/hrtimer.h>
#include <linux/sched/stat.h>
#include "tx/tx.h"

/* It may never answer, or not on this QP; a poster with other things to do must not miss much. */
#define YIELD_TIMEOUT_NS	(500 * NSEC_PER_USEC)

/* What came from the peer so far: requests by their messages, datagrams by the receives they took. */
static u32 yield_rx_seq(const struct roan_qp *qp)
{
	return READ_ONCE(qp->rq.resp.msn) + READ_ONCE(qp->rq.ring.index);
}

/* A bell was rung for @qp. Did the peer send anything since the last one? Then it waits for what was posted now. */
bool roan_yield_wanted(struct roan_qp *qp)
{
	u32 seq;

	if (num_online_cpus() > 1)
		return false;
	seq = yield_rx_seq(qp);
	return xchg(&qp->sq.rx_seq_seen, seq) != seq;
}

/* roan_yield_wake() wakes us; if several threads post to one QP, the last of them. */
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
