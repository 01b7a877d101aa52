// SPDX-License-Identifier: GPL-2.0
/*
 * The timer of a QP: sets it to what is due first, and finds out what is due when it fires. It never sends itself: the
 * timers of many QPs may expire in one softirq. Does not decide when the requester's deadlines are
 * (core/transport/requester.c), nor what is retransmitted.
 */
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "tx/tx.h"

#define DROPPED_MIN_WAIT_NS	(125 * NSEC_PER_USEC)	/* after the first round in which an skb was dropped, */
#define DROPPED_MAX_DOUBLED	6			/* doubled for each further one, up to 8 ms */
/*
 * 2^20 ns: about four seconds. QPs that share a full queue try again at random times: if N of them wait, and D skbs
 * leave it in a second, it takes no skb of a QP in four seconds with a probability of exp(-4 * D / N).
 */
#define DROPPED_MAX_EXCLUDED	4096

/*
 * Sets the timer to the requester's deadline, or to what else it is to run if that is earlier. A timer set to an
 * earlier time stays: it finds nothing due and is set again, which is cheaper than moving it with every ACK. The slack
 * lets one interrupt serve the timers of many QPs. sq.timer_at is the latest time at which the timer fires, so that a
 * deadline without slack is kept.
 */
void roan_sq_arm(struct roan_qp *qp)
{
	u64 deadline = qp->sq.ack_timer_stopped ? 0 : roan_requester_deadline(&qp->sq.req);
	u64 latest = deadline + roan_requester_slack(&qp->sq.req, deadline);

	lockdep_assert_held(&qp->sq.lock);
	if (unlikely(qp->sq.kick_at) && (!deadline || qp->sq.kick_at < deadline)) {
		deadline = qp->sq.kick_at;
		latest = deadline;
	}
	if (!deadline || (qp->sq.timer_at && qp->sq.timer_at <= latest))
		return;
	qp->sq.timer_at = latest;
	hrtimer_start_range_ns(&qp->sq.timer, ns_to_ktime(deadline), latest - deadline, HRTIMER_MODE_ABS_SOFT);
}

#define KICK_QUEUES	(BIT(ROAN_QUEUE_SQ) | BIT(ROAN_QUEUE_RQ))	/* bits of sq.kick_at */

/* A queue that runs too early finds out, and when it is to run again. */
static void sq_kick_later(struct roan_qp *qp, u8 side, u64 at)
	__must_hold(&qp->sq.lock)
{
	u64 first = min_not_zero(qp->sq.kick_at, at) & ~KICK_QUEUES;

	WRITE_ONCE(qp->sq.kick_at, first | (qp->sq.kick_at & KICK_QUEUES) | BIT(side));
}

void roan_sq_arm_respond(struct roan_qp *qp, u64 at)
{
	u64 earliest = READ_ONCE(qp->sq.kick_at);

	if (earliest & BIT(ROAN_QUEUE_RQ) && earliest <= (at | KICK_QUEUES))
		return;
	spin_lock_bh(&qp->sq.lock);
	if (roan_tx_may_respond(qp)) {
		sq_kick_later(qp, ROAN_QUEUE_RQ, at);
		roan_sq_arm(qp);
	}
	spin_unlock_bh(&qp->sq.lock);
}

u64 roan_dropped_wait_ns(u8 *n_dropped)
{
	u64 wait = DROPPED_MIN_WAIT_NS << *n_dropped;

	if (*n_dropped < DROPPED_MAX_DOUBLED)
		++*n_dropped;
	return wait;
}

void roan_sq_resume_at(struct roan_qp *qp, u64 at)
{
	sq_kick_later(qp, ROAN_QUEUE_SQ, at);
}

static void sq_kick_due(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	u64 at = qp->sq.kick_at;

	if (likely(!at) || now < at)
		return;
	WRITE_ONCE(qp->sq.kick_at, 0);
	roan_kick_queues(qp, at & KICK_QUEUES);
}

static void tx_timed_out(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	struct roan_limiter *l = roan_limiter_of(qp);

	trace_roan_retry(qp, qp->sq.req.una_psn, qp->sq.req.retries_left);
	if (l)
		roan_rate_lost(l, ROAN_CC_LOST_TIMEOUT, ktime_get_ns());
}

/* Returns true if the pacer blocks the retransmission, so that the peer has not received it yet. */
static bool tx_rate_blocked(const struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	const struct roan_limiter *l = roan_limiter_of(qp);
	const struct roan_requester *req = &qp->sq.req;

	return l && READ_ONCE(l->blocked_mask) & BIT(ROAN_QUEUE_SQ) &&
	       (req->repair_left || req->reads.hole_left || req->next_psn == req->una_psn);
}

/*
 * Returns true if a full queue of this host drops the packets to which the peer is to answer: as far as is known, it
 * was not asked for an answer to others. Not for ever: a rule of tc that drops all ends the connection.
 */
static bool tx_is_dropped(const struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	const struct roan_sq *sq = &qp->sq;

	return unlikely(sq->n_dropped) && sq->req.since_ackreq >= psn_diff(sq->req.next_psn, sq->req.una_psn) &&
	       (u32)(now >> 20) - sq->dropped_since < DROPPED_MAX_EXCLUDED;
}

/*
 * The ACK timer must not count local delay. It starts when the QP's last skb has been freed by the stack
 * (flow/tx_inflight.c runs the queue then). It also restarts while a READ response waits for a page fault
 * (sq.rx_fault_wait), while the payload of a retransmission waits for one, while the pacer blocks the retransmission,
 * and while this host drops what the peer is to answer. The wait for a packet that was overtaken is none for an answer:
 * its begin is the arrival of a later packet.
 */
static void tx_exclude_local_delay(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	u64 deadline = roan_requester_deadline(&qp->sq.req);

	if (!deadline || now < deadline || qp->sq.req.rnr_until || now >= roan_requester_reorder_deadline(&qp->sq.req))
		return;
	/* First, as the time is that of the last skb only if none is left. */
	qp->sq.ack_timer_stopped |= roan_tx_inflight_arm(qp, ROAN_QUEUE_SQ, 1);
	if (qp->sq.rx_fault_wait || roan_requester_repair_is_held(&qp->sq.req) || tx_is_dropped(qp, now) ||
	    tx_rate_blocked(qp))
		roan_requester_restart_timer(&qp->sq.req, now);
	else if (!qp->sq.n_dropped)	/* what is dropped is freed at once */
		roan_requester_restart_timer(&qp->sq.req, READ_ONCE(qp->ref->tx_inflight.last_free_ns));
}

/* Usually nothing is due: the ACK came long before. */
static void sq_timer_expired(struct roan_qp *qp, u64 now)
	__must_hold(&qp->sq.lock)
{
	enum roan_event event = ROAN_EV_NOTHING;
	bool waited = qp->sq.req.rnr_until;
	u64 deadline;

	tx_exclude_local_delay(qp, now);
	deadline = roan_requester_deadline(&qp->sq.req);
	if (deadline && deadline <= now && qp->sq.req.peer_sacks && !qp->sq.req.since_ackreq)
		roan_sq_alloc_holes(qp);
	if (!qp->sq.ack_timer_stopped)
		event = roan_requester_timer(&qp->sq.req, now);
	if (event == ROAN_EV_NOTHING)
		return roan_sq_arm(qp);
	if (!waited && event != ROAN_EV_REPAIR)
		tx_timed_out(qp);
	/* Not here: the timers of many QPs may expire in one softirq. */
	roan_defer(&qp->deferred, ROAN_DEFER_SEND);
}

enum hrtimer_restart roan_sq_timer(struct hrtimer *timer)
{
	struct roan_qp *qp = container_of(timer, struct roan_qp, sq.timer);
	u64 now = ktime_get_ns();

	spin_lock_bh(&qp->sq.lock);
	qp->sq.timer_at = 0;
	if (roan_tx_may_respond(qp)) {
		sq_kick_due(qp, now);
		if (qp->state == IB_QPS_RTR)
			roan_sq_arm(qp);
		else
			sq_timer_expired(qp, now);
	}
	spin_unlock_bh(&qp->sq.lock);
	return HRTIMER_NORESTART;
}
