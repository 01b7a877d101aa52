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
#define PATIENCE_NS	(500 * NSEC_PER_USEC)

/* What came from the peer so far: requests by their messages, datagrams by the receives they took. */
static u32 heard_of(const struct roan_qp *qp)
{
	return READ_ONCE(qp->rq.resp.msn) + READ_ONCE(qp->rq.ring.index);
}

/* A bell was rung for @qp. Did the peer send anything since the last one? Then it waits for what was posted now. */
bool roan_turn_answered(struct roan_qp *qp)
{
	u32 heard;

	if (num_online_cpus() > 1)
		return false;
	heard = heard_of(qp);
	return xchg(&qp->sq.heard, heard) != heard;
}

/* roan_turn_comes() wakes us; if several threads post to one QP, the last of them. */
static void sleep_until_heard(struct roan_qp *qp)
{
	ktime_t patience = PATIENCE_NS;
	bool heard;

	spin_lock_bh(&qp->rq.lock);
	heard = heard_of(qp) != READ_ONCE(qp->sq.heard);
	if (!heard) {
		qp->rq.listener = current;
		set_current_state(TASK_INTERRUPTIBLE);
	}
	spin_unlock_bh(&qp->rq.lock);
	if (heard)
		return;
	schedule_hrtimeout_range(&patience, 0, HRTIMER_MODE_REL);

	spin_lock_bh(&qp->rq.lock);
	if (qp->rq.listener == current)
		qp->rq.listener = NULL;
	spin_unlock_bh(&qp->rq.lock);
}

/* Process context, no lock held. */
void roan_turn_pass(struct roan_qp *qp)
{
	unsigned long switches = current->nvcsw + current->nivcsw;

	if (single_task_running())
		return;
	yield();
	if (current->nvcsw + current->nivcsw == switches)
		sleep_until_heard(qp);
}
