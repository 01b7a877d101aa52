// SPDX-License-Identifier: GPL-2.0
/*
 * Reaction point, driver half: selects the algorithm of a QP, passes events to it, applies the resulting rate and
 * window to each packet, and runs queues that the pacer blocks at their send time. Does not compute a rate from events
 * (core/cc) nor a train length from a rate (core/cc/pacer.c).
 */
#include <linux/if_ether.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/sch_generic.h>
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "net/net.h"

static u32 rate_full_packet(const struct roan_qp *qp)
{
	return ETH_HLEN + ROAN_NET_HEADERS + (1u << qp->mtu_shift);
}

/* 1 + algorithm of this QP, or 0: it has the device's. */
static u8 rate_own_algo(const struct roan_qp *qp)
{
	u8 own = READ_ONCE(qp->cc_override);

	if (!own || own & ROAN_CC_PINNED)
		return own & ~ROAN_CC_PINNED;
	return READ_ONCE(qp->dev->cc.program_algo) ? own : 0;
}

bool roan_rate_has_own_algo(const struct roan_qp *qp)
{
	return rate_own_algo(qp);
}

/* The GSI QP has no congestion control. Algorithms that measure delay need ACKs, so RC only. */
enum roan_cc_algo roan_rate_algo(const struct roan_qp *qp)
{
	u8 own = rate_own_algo(qp);
	enum roan_cc_algo algo = own ? own - 1 : READ_ONCE(qp->dev->cc.algo);

	if (qp->ib.qp_type == IB_QPT_GSI || (roan_cc_flags(algo) & ROAN_CC_NEEDS_ACKS && qp->transport != ROAN_TP_RC))
		return ROAN_CC_NONE;
	return algo;
}

static bool rate_uses_ecn(enum roan_cc_algo algo)
{
	return roan_cc_flags(algo) & ROAN_CC_USES_ECN;
}

bool roan_rate_uses_ecn(const struct roan_qp *qp, u8 prio)
{
	bool gsi = qp->ib.qp_type == IB_QPT_GSI;
	enum roan_cc_algo algo = gsi ? READ_ONCE(qp->dev->cc.algo) : roan_rate_algo(qp);

	return rate_uses_ecn(algo) && READ_ONCE(qp->dev->cc.params[algo].roce_cc_prio_mask) & BIT(prio);
}

/*
 * bit/s: the lower of modify_qp's rate limit and the administrator's cap; 0: none. The static rate of a path has no
 * meaning on RoCE: peers with Linux before 6.5 fill it with their interface's speed, rounded down to 10, 20, 30 or
 * 40 Gbit/s.
 */
static u64 rate_cap_of(const struct roan_qp *qp)
{
	return min_not_zero(qp->attr.rate_limit, READ_ONCE(qp->admin_rate_cap)) * 1000ull;
}

/* ---- pacing timer ---- */

#define SLACK_NS	1000	/* ns that a QP may run early, so that QPs with close times share one timer interrupt */

/* The queues try again from deferred work. The pacer decides whether they may send. */
static enum hrtimer_restart pacing_timer_fn(struct hrtimer *timer)
{
	struct roan_limiter *l = container_of(timer, struct roan_limiter, timer);

	roan_kick_queues(l->qp, xchg(&l->blocked_mask, 0));
	return HRTIMER_NORESTART;
}

/*
 * The waiting queues run at @at, if they would run later. A timer that is set to an earlier time stays: the queues try
 * too early and wait again.
 */
static void pacing_reschedule(struct roan_limiter *l, u64 at)
	__must_hold(&l->lock)
{
	if (hrtimer_is_queued(&l->timer) && (u64)ktime_to_ns(hrtimer_get_expires(&l->timer)) <= at)
		return;
	hrtimer_start_range_ns(&l->timer, ns_to_ktime(at - SLACK_NS), SLACK_NS, HRTIMER_MODE_ABS_PINNED_SOFT);
}

static void pacing_wait(struct roan_limiter *l, enum roan_queue_id side, u64 at)
	__must_hold(&l->lock)
{
	set_bit(side, &l->blocked_mask);
	/* Pairs with the xchg() of pacing_timer_fn(): it sees our bit, or we see that the timer is not queued. */
	smp_mb__after_atomic();
	pacing_reschedule(l, at);
}

/* ---- lifetime ---- */

/*
 * Bypass the algorithm when it subscribes to no event and no EDT packet is still in fq (a later packet must not
 * overtake it).
 */
static void rate_update_bypass(struct roan_limiter *l, u64 now)
	__must_hold(&l->lock)
{
	WRITE_ONCE(l->bypass, roan_cc_idle(&l->cc) && l->edt_ns <= now);
}

/*
 * The algorithm changed its rate or window: update the pacer, the bypass, the trace and the send time of blocked
 * queues.
 */
static void rate_apply(struct roan_limiter *l, u64 now)
	__must_hold(&l->lock)
{
	u64 rate = l->cc.rate;

	roan_pacer_set_rate(&l->pacer, rate, rate ? roan_pacer_quantum(l->cc.params, rate, l->cc.packet) : 0, now);
	rate_update_bypass(l, now);
	trace_roan_rate(l->qp, rate, roan_cc_cwnd(&l->cc), l->cc.cnps);
	if (READ_ONCE(l->blocked_mask))
		pacing_reschedule(l, rate ? roan_pacer_when(&l->pacer) : now);
}

static void rate_restart(struct roan_limiter *l)
	__must_hold(&l->lock)
{
	struct roan_qp *qp = l->qp;
	enum roan_cc_algo algo = roan_rate_algo(qp);

	l->now = ktime_get_ns();
	l->active = true;
	roan_cc_start(&l->cc, algo, &qp->dev->cc.params[algo], roan_link_speed(qp->dev), rate_cap_of(qp),
		      rate_full_packet(qp), l->now);
	rate_apply(l, l->now);
}

static struct roan_limiter *rate_get_limiter(struct roan_qp *qp, gfp_t gfp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter), *other;

	if (l)
		return l;
	l = roan_qp_zalloc(qp, sizeof(*l), gfp);
	if (!l)
		return NULL;
	l->qp = qp;
	l->bypass = true;
	spin_lock_init(&l->lock);
	roan_hrtimer_setup(&l->timer, pacing_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	other = cmpxchg(&qp->limiter, NULL, l);
	if (!other)
		return l;
	kfree(l);
	return other;
}

/* True if the QP needs a limiter before the first CNP. */
static bool rate_starts_limited(const struct roan_qp *qp)
{
	enum roan_cc_algo algo = roan_rate_algo(qp);
	const struct roan_cc_params *params = &qp->dev->cc.params[algo];

	if (qp->transport == ROAN_TP_RC && (READ_ONCE(params->window_max) || READ_ONCE(params->window_bdp)))
		return true;
	return rate_cap_of(qp) || roan_cc_flags(algo) & ROAN_CC_FROM_START;
}

int roan_rate_prepare(struct roan_qp *qp, bool cap)
{
	if (!cap && !rate_starts_limited(qp))
		return 0;
	return rate_get_limiter(qp, GFP_KERNEL) ? 0 : -ENOMEM;
}

void roan_rate_start(struct roan_qp *qp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter);

	lockdep_assert_held(&qp->sq.lock);
	if (!l)
		return;
	l->rtt_sample_ns = 0;
	spin_lock(&l->lock);
	rate_restart(l);
	spin_unlock(&l->lock);
}

void roan_rate_update_cfg(struct roan_qp *qp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter);

	lockdep_assert_held(&qp->sq.lock);
	if (!l)
		return;
	spin_lock(&l->lock);
	if (!l->active || l->cc.algo != roan_rate_algo(qp))
		rate_restart(l);
	l->now = ktime_get_ns();
	if (l->cc.rate_cap != rate_cap_of(qp) &&
	    roan_cc_limits(&l->cc, roan_link_speed(qp->dev), rate_cap_of(qp), l->now))
		rate_apply(l, l->now);
	spin_unlock(&l->lock);
}

void roan_rate_stop(struct roan_qp *qp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter);

	lockdep_assert_held(&qp->sq.lock);
	if (!l)
		return;
	spin_lock(&l->lock);
	l->active = false;
	WRITE_ONCE(l->bypass, true);
	spin_unlock(&l->lock);
}

/* In RESET no queue waits, and while none waits nothing starts the timer: a CNP may still be received. */
void roan_rate_cancel(struct roan_qp *qp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter);

	if (!l)
		return;
	spin_lock_bh(&l->lock);
	WRITE_ONCE(l->blocked_mask, 0);
	spin_unlock_bh(&l->lock);
	hrtimer_cancel(&l->timer);
}

/* ---- events ---- */

/* The part of ROAN_CC_WHOLE for which a CNP counts: all of it if @sport is none of a path. */
static u32 rate_cnp_part(const struct roan_qp *qp, u16 sport)
	__must_hold(&qp->sq.lock)
{
	u32 within = READ_ONCE(roan_cc_params_of(qp->dev)->min_time_between_cnps);

	if (!sport)
		return ROAN_CC_WHOLE;
	return roan_paths_part(&qp->sq.req, roan_path_of_sport(roan_qp_av(qp), sport), ROAN_CC_WHOLE,
			       (u64)within * NSEC_PER_USEC, ktime_get_ns());
}

/* A datagram QP has no peer: it accepts CNPs only from the destination of its last packet. */
static bool rate_cnp_applies(struct roan_qp *qp, const union ib_gid *from, u16 sport, u32 *part)
{
	u8 prio = roan_qos_prio(qp->dev, roan_qos_tclass(qp->dev, roan_qp_av(qp)));
	bool ok;

	*part = ROAN_CC_WHOLE;
	spin_lock(&qp->sq.lock);
	if (roan_connected(qp))
		ok = qp->state >= IB_QPS_RTR && qp->state <= IB_QPS_SQE && roan_rate_uses_ecn(qp, prio);
	else
		ok = qp->state >= IB_QPS_RTS && qp->state <= IB_QPS_SQE && rate_uses_ecn(roan_rate_algo(qp)) &&
		     qp->sq.flow.dst && roan_gid_equal(&qp->sq.flow.dgid, from);
	if (ok && roan_connected(qp))
		*part = rate_cnp_part(qp, sport);
	spin_unlock(&qp->sq.lock);
	return ok;
}

void roan_rp_cnp_received(struct roan_qp *qp, const union ib_gid *from, u16 sport)
{
	u64 link = roan_link_speed(qp->dev);
	struct roan_limiter *l = NULL;
	bool changed;
	u32 part;

	if (rate_cnp_applies(qp, from, sport, &part))
		l = rate_get_limiter(qp, GFP_ATOMIC | __GFP_NOWARN);
	if (!l) {
		roan_count(qp->dev, rp_cnp_ignored);
		return;
	}
	roan_count(qp->dev, rp_cnp_handled);
	trace_roan_cnp(qp, qp->dest_qpn, false);
	spin_lock(&l->lock);
	if (!l->active || l->cc.algo != roan_rate_algo(qp))
		rate_restart(l);
	l->now = ktime_get_ns();
	changed = link && l->cc.link != link && roan_cc_limits(&l->cc, link, l->cc.rate_cap, l->now);
	changed |= roan_cc_cnp_part(&l->cc, part, l->now);
	/* Even without a change: the algorithm may now subscribe to sent bytes. */
	rate_update_bypass(l, l->now);
	if (changed)
		rate_apply(l, l->now);
	spin_unlock(&l->lock);
}

void roan_rate_acked(struct roan_qp *qp, struct roan_limiter *l, u32 una, u32 psn, u64 now)
{
	const struct roan_requester *req = &qp->sq.req;
	struct roan_cc_sample sample = {
		.bytes = psn_diff(req->una_psn, una) << qp->mtu_shift,
		.in_flight = psn_diff(req->end_psn, req->una_psn) << qp->mtu_shift,
	};

	lockdep_assert_held(&qp->sq.lock);
	if (req->una_psn == una)
		return;
	if (l->rtt_sample_ns && psn_diff(req->una_psn, l->rtt_sample_psn) > 0) {
		/*
		 * No sample if the ACK names a later packet, whose departure time is unknown, nor if it comes before
		 * the departure time: then fq released the packet early.
		 */
		if (psn == l->rtt_sample_psn && now > l->rtt_sample_ns)
			sample.rtt_ns = now - l->rtt_sample_ns;
		l->rtt_sample_ns = 0;
	}
	spin_lock(&l->lock);
	if (roan_cc_acked(&l->cc, &sample, now))
		rate_apply(l, now);
	spin_unlock(&l->lock);
}

void roan_rate_lost(struct roan_limiter *l, enum roan_cc_loss why, u64 now)
{
	l->rtt_sample_ns = 0;	/* no RTT sample from a retransmitted packet (Karn) */
	spin_lock(&l->lock);
	if (roan_cc_lost(&l->cc, why, now))
		rate_apply(l, now);
	spin_unlock(&l->lock);
}

/* ---- admission of packets ---- */

/* True if the interface's qdisc is fq, which honours departure times. Only the first transmit queue is checked. */
static bool egress_is_fq(const struct roan_dev *dev)
{
	const struct Qdisc *qdisc = rcu_dereference(netdev_get_tx_queue(dev->ndev, 0)->qdisc);

	return qdisc && !strcmp(qdisc->ops->id, "fq");
}

/* Sets the departure time of this round's packets: @due, but not before that of the QP's earlier packets. */
static void rate_set_edt(struct roan_limiter *l, struct roan_tx_round *round, u64 due)
	__must_hold(&l->lock)
{
	due = max(due, l->edt_ns);
	if (due > l->now)
		WRITE_ONCE(l->edt_ns, due);
	else if (unlikely(roan_cc_idle(&l->cc)))
		rate_update_bypass(l, l->now);
	round->edt_ns = due > l->now ? due : 0;
}

/*
 * Starts a new pacer round and returns its byte budget. 0: not yet; the pacing timer runs the QP at the next send
 * time, or earlier if the rate may rise before, but after a quarter of the wait at the earliest.
 */
static u32 pacer_round(struct roan_limiter *l, struct roan_tx_round *round, enum roan_queue_id side, u32 bytes)
	__must_hold(&l->lock)
{
	u64 link = roan_link_speed(l->qp->dev);
	u64 at, rises, due;
	bool early;
	u32 may;

	l->now = ktime_get_ns();
	if (l->cc.algo != roan_rate_algo(l->qp))
		rate_restart(l);
	if (roan_cc_elapsed(&l->cc, l->now))
		rate_apply(l, l->now);
	if (unlikely(link && l->cc.link != link) && roan_cc_limits(&l->cc, link, rate_cap_of(l->qp), l->now))
		rate_apply(l, l->now);
	early = unlikely(READ_ONCE(l->cc.params->pacer_edt)) && egress_is_fq(l->qp->dev);
	due = l->now;
	may = early ? roan_pacer_early(&l->pacer, l->now, &due) : roan_pacer_allow(&l->pacer, l->now);
	if (may >= bytes) {
		WRITE_ONCE(l->last_side, side);
		rate_set_edt(l, round, due);
		return may;
	}
	at = early ? roan_pacer_when_early(&l->pacer) : roan_pacer_when(&l->pacer);
	rises = roan_cc_deadline(&l->cc);
	if (rises)
		at = min(at, max(rises, l->now + (at - l->now) / 4));
	pacing_wait(l, side, at);
	return 0;
}

static bool rate_admit(struct roan_limiter *l, struct roan_tx_round *round, enum roan_queue_id side, u32 bytes)
	__must_hold(&l->lock)
{
	bool ok = true;

	if (round->byte_budget < bytes) {
		round->byte_budget = pacer_round(l, round, side, bytes);
		ok = round->byte_budget;
	}
	if (ok) {
		if (round->byte_budget != U32_MAX)
			round->byte_budget -= bytes;
		roan_pacer_sent(&l->pacer, bytes);
		if (roan_cc_sent(&l->cc, bytes, l->now))
			rate_apply(l, l->now);
	}
	round->blocked = !ok;
	return ok;
}

static bool rate_is_acked(const struct roan_qp *qp, const struct roan_opcode *info)
{
	return qp->transport == ROAN_TP_RC && (info->op == ROAN_OP_SEND || info->op == ROAN_OP_WRITE);
}

/* Bytes that the window allows from @desc on. For SEND and WRITE only; the responder limits the responses to a READ. */
static u64 rate_cwnd_avail(const struct roan_qp *qp, const struct roan_limiter *l, const struct roan_tx_desc *desc)
	__must_hold(&l->lock)
{
	return roan_cc_cwnd_avail(&l->cc, (u64)psn_diff(desc->psn, qp->sq.req.una_psn) << qp->mtu_shift);
}

bool roan_rate_admit_request(struct roan_qp *qp, struct roan_tx_round *round, struct roan_tx_desc *desc)
{
	const struct roan_opcode *info = roan_opcode(desc->opcode);
	u32 payload = info->payload ? desc->len : 0;
	u32 bytes = round->wire_overhead + info->header_len + payload + roan_wire_pad(payload) + ROAN_ICRC_LEN;
	struct roan_limiter *l = round->limiter;
	bool acks = rate_is_acked(qp, info), ok;
	u32 full = rate_full_packet(qp);
	u64 left, leaves;

	lockdep_assert_held(&qp->sq.lock);
	spin_lock(&l->lock);
	/* A repair replaces a packet that left the network; its answer opens the window. */
	left = acks && !desc->repair ? rate_cwnd_avail(qp, l, desc) : U64_MAX;
	/*
	 * If the window shrank below the bytes in flight and the last packet had no AckReq, no ACK may come: admit
	 * one more packet, which sets it.
	 */
	ok = (left || qp->sq.req.since_ackreq) && rate_admit(l, round, ROAN_QUEUE_SQ, bytes);
	leaves = round->edt_ns ?: l->now;
	spin_unlock(&l->lock);
	if (!ok || !acks)
		return ok;
	/*
	 * Karn: the response may belong to either copy, and the time may contain the wait after an RNR NAK. If the
	 * packet was not sent, as its payload was not present, the time would contain the page fault.
	 */
	if (unlikely(desc->psn == l->rtt_sample_psn))
		l->rtt_sample_ns = 0;
	/* Set AckReq if no packet may follow soon. Take the RTT sample from the last packet with AckReq of a round. */
	desc->ackreq |= round->byte_budget < full || left < 2 * full;
	if (desc->ackreq && !desc->resend && (!l->rtt_sample_ns || round->rtt_probe)) {
		l->rtt_sample_ns = leaves;
		l->rtt_sample_psn = desc->psn;
		round->rtt_probe = true;
	}
	return true;
}

void roan_rate_unsent(struct roan_limiter *l, u32 bytes)
{
	lockdep_assert_held(&l->qp->sq.lock);
	spin_lock(&l->lock);
	roan_pacer_unsent(&l->pacer, bytes);
	clear_bit(ROAN_QUEUE_SQ, &l->blocked_mask);
	spin_unlock(&l->lock);
}

bool roan_rate_admit_response(struct roan_qp *qp, struct roan_tx_round *round, const struct roan_response *answer)
{
	const struct roan_opcode *info = roan_opcode(answer->opcode);
	u32 bytes = round->wire_overhead + info->header_len + answer->len + roan_wire_pad(answer->len) + ROAN_ICRC_LEN;
	struct roan_limiter *l = round->limiter;
	bool ok;

	lockdep_assert_held(&qp->rq.lock);
	spin_lock(&l->lock);
	ok = rate_admit(l, round, ROAN_QUEUE_RQ, bytes);
	spin_unlock(&l->lock);
	return ok;
}

u64 roan_rate_ack_edt(struct roan_limiter *l)
{
	u64 due = READ_ONCE(l->edt_ns);

	return due && due > ktime_get_ns() ? due : 0;
}
