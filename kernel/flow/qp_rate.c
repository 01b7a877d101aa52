// SPDX-License-Identifier: GPL-2.0
/*
 * The reaction point's shell: which algorithm a QP runs, what it is told, what its answer means for the next packet. How a
 * rate follows from events is cc/'s, how a train follows from a rate core/cc/pacer.h's.
 */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/inet_ecn.h>
#include <net/sch_generic.h>
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "net/net.h"

static u32 full_packet(const struct roan_qp *qp)
{
	return ETH_HLEN + ROAN_NET_HEADERS + (1u << qp->mtu_shift);
}

/* Management has none. Delay can be measured where there are ACKs. */
enum roan_cc_algo roan_cc_algo(const struct roan_qp *qp)
{
	u8 own = READ_ONCE(qp->own_algo);
	enum roan_cc_algo algo = own ? own - 1 : READ_ONCE(qp->dev->cc.algo);

	if (qp->ib.qp_type == IB_QPT_GSI || (roan_cc_flags(algo) & ROAN_CC_NEEDS_ACKS && qp->transport != ROAN_TP_RC))
		return ROAN_CC_NONE;
	return algo;
}

static bool heeds_marks(enum roan_cc_algo algo)
{
	return roan_cc_flags(algo) & ROAN_CC_USES_ECN;
}

bool roan_cc_marks(const struct roan_qp *qp, u8 prio)
{
	enum roan_cc_algo algo = roan_cc_algo(qp);

	return heeds_marks(algo) && READ_ONCE(qp->dev->cc.params[algo].roce_cc_prio_mask) & BIT(prio);
}

/*
 * bit/s: the lowest of modify_qp's rate limit, the administrator's and the path's static rate; 0: none. A datagram's path is
 * not looked at.
 */
static u64 cap_of(const struct roan_qp *qp)
{
	u64 limit = qp->attr.rate_limit * 1000ull;
	const struct roan_av *av = roan_qp_av(qp);
	int mbps = av && av->static_rate ? ib_rate_to_mbps(av->static_rate) : 0;
	u64 path = mbps > 0 ? mbps * 1000000ull : 0;

	return min_not_zero(min_not_zero(limit, path), READ_ONCE(qp->admin_cap) * 1000ull);
}

/* bit/s. What a veth or a tap says of itself means nothing, so it may be set. */
static u64 link_speed(const struct roan_dev *dev)
{
	return READ_ONCE(dev->cc.link_speed) * 1000000ull ?: READ_ONCE(dev->cc.link);
}

/* ---- life ---- */

/* An algorithm that wants nothing is not asked any more, once nothing is kept below that a packet could overtake. */
static void note_open(struct roan_limiter *l, u64 now)
	__must_hold(&l->lock)
{
	WRITE_ONCE(l->open, roan_cc_open(&l->cc) && l->due <= now);
}

/* The algorithm spoke: the pacer, whoever waits, and the trace shall know. */
static void settle(struct roan_limiter *l, u64 now)
	__must_hold(&l->lock)
{
	u64 rate = l->cc.rate;

	roan_pacer_set_rate(&l->pacer, rate, rate ? roan_pacer_quantum(l->cc.params, rate, l->cc.packet) : 0, now);
	note_open(l, now);
	trace_roan_rate(l->qp, rate, roan_cc_window(&l->cc), l->cc.cnps);
	if (READ_ONCE(l->waiting))
		roan_pace_moved(l, rate ? roan_pacer_when(&l->pacer) : now);
}

static void restart(struct roan_limiter *l)
	__must_hold(&l->lock)
{
	struct roan_qp *qp = l->qp;
	enum roan_cc_algo algo = roan_cc_algo(qp);

	l->now = ktime_get_ns();
	l->started = true;
	roan_cc_start(&l->cc, algo, &qp->dev->cc.params[algo], link_speed(qp->dev), cap_of(qp), full_packet(qp),
		      l->now);
	settle(l, l->now);
}

static struct roan_limiter *get(struct roan_qp *qp, gfp_t gfp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter), *other;

	if (l)
		return l;
	l = kzalloc(sizeof(*l), gfp);
	if (!l)
		return NULL;
	l->qp = qp;
	l->open = true;
	spin_lock_init(&l->lock);
	timerqueue_init(&l->node);
	other = cmpxchg(&qp->limiter, NULL, l);
	if (!other)
		return l;
	kfree(l);
	return other;
}

/* Is there more to do from the start than to wait for a CNP? */
static bool begins_limited(const struct roan_qp *qp)
{
	enum roan_cc_algo algo = roan_cc_algo(qp);
	const struct roan_cc_params *params = &qp->dev->cc.params[algo];

	if (qp->transport == ROAN_TP_RC && (READ_ONCE(params->window_max) || READ_ONCE(params->window_bdp)))
		return true;
	return cap_of(qp) || roan_cc_flags(algo) & ROAN_CC_FROM_START;
}

int roan_limiter_prepare(struct roan_qp *qp, bool cap)
{
	if (!cap && !begins_limited(qp))
		return 0;
	return get(qp, GFP_KERNEL_ACCOUNT) ? 0 : -ENOMEM;
}

void roan_limiter_start(struct roan_qp *qp)
{
	struct roan_limiter *l = qp->limiter;

	lockdep_assert_held(&qp->sq.lock);
	if (!l)
		return;
	l->probe_at = 0;
	spin_lock(&l->lock);
	restart(l);
	spin_unlock(&l->lock);
}

void roan_limiter_tune(struct roan_qp *qp)
{
	struct roan_limiter *l = qp->limiter;

	lockdep_assert_held(&qp->sq.lock);
	if (!l)
		return;
	spin_lock(&l->lock);
	if (!l->started || l->cc.algo != roan_cc_algo(qp))
		restart(l);
	l->now = ktime_get_ns();
	if (l->cc.cap != cap_of(qp) && roan_cc_limits(&l->cc, link_speed(qp->dev), cap_of(qp), l->now))
		settle(l, l->now);
	spin_unlock(&l->lock);
}

void roan_limiter_stop(struct roan_qp *qp)
{
	struct roan_limiter *l = qp->limiter;

	lockdep_assert_held(&qp->sq.lock);
	if (!l)
		return;
	spin_lock(&l->lock);
	l->started = false;
	WRITE_ONCE(l->open, true);
	spin_unlock(&l->lock);
}

/* ---- events ---- */

/* A datagram QP has no peer: it believes who it sent to last. */
static bool concerned(struct roan_qp *qp, const union ib_gid *from)
{
	u8 prio = roan_qos_prio(qp->dev, roan_qos_tclass(qp->dev, roan_qp_av(qp)));
	bool ok;

	spin_lock(&qp->sq.lock);
	if (roan_connected(qp))
		ok = qp->state >= IB_QPS_RTR && qp->state <= IB_QPS_SQE && roan_cc_marks(qp, prio);
	else
		ok = qp->state >= IB_QPS_RTS && qp->state <= IB_QPS_SQE && heeds_marks(roan_cc_algo(qp)) &&
		     qp->sq.flow.dst && roan_gid_equal(&qp->sq.flow.dgid, from);
	spin_unlock(&qp->sq.lock);
	return ok;
}

void roan_cnp_heard(struct roan_qp *qp, const union ib_gid *from)
{
	struct roan_limiter *l = concerned(qp, from) ? get(qp, GFP_ATOMIC | __GFP_NOWARN) : NULL;
	u64 link = link_speed(qp->dev);
	bool changed;

	if (!l) {
		roan_count(qp->dev, rp_cnp_ignored);
		return;
	}
	roan_count(qp->dev, rp_cnp_handled);
	trace_roan_cnp(qp, qp->dest_qpn, false);
	spin_lock(&l->lock);
	if (!l->started || l->cc.algo != roan_cc_algo(qp))
		restart(l);
	l->now = ktime_get_ns();
	changed = link && l->cc.link != link && roan_cc_limits(&l->cc, link, l->cc.cap, l->now);
	changed |= roan_cc_cnp(&l->cc, l->now);
	/* Even without a change: from now on it may want to hear of what is sent. */
	note_open(l, l->now);
	if (changed)
		settle(l, l->now);
	spin_unlock(&l->lock);
}

void roan_limit_acked(struct roan_qp *qp, struct roan_limiter *l, u32 una, u32 psn, u64 now)
{
	const struct roan_requester *req = &qp->sq.req;
	struct roan_cc_sample sample = {
		.bytes = psn_diff(req->una_psn, una) << qp->mtu_shift,
		.in_flight = psn_diff(req->end_psn, req->una_psn) << qp->mtu_shift,
	};

	lockdep_assert_held(&qp->sq.lock);
	if (req->una_psn == una)
		return;
	if (l->probe_at && psn_diff(req->una_psn, l->probe_psn) > 0) {
		/* Not one for several packets, who knows when the last of them left; nor one let go before its time. */
		if (psn == l->probe_psn && now > l->probe_at)
			sample.rtt_ns = now - l->probe_at;
		l->probe_at = 0;
	}
	spin_lock(&l->lock);
	if (roan_cc_acked(&l->cc, &sample, now))
		settle(l, now);
	spin_unlock(&l->lock);
}

void roan_limit_lost(struct roan_limiter *l, enum roan_cc_loss why, u64 now)
{
	l->probe_at = 0;	/* what is sent twice cannot be timed */
	spin_lock(&l->lock);
	if (roan_cc_lost(&l->cc, why, now))
		settle(l, now);
	spin_unlock(&l->lock);
}

/* ---- may it leave? ---- */

/* Does an fq space what we give to the interface? Of several transmit queues the first one speaks for all. */
static bool fq_below(const struct roan_dev *dev)
{
	const struct Qdisc *qdisc = rcu_dereference(netdev_get_tx_queue(dev->ndev, 0)->qdisc);

	return qdisc && !strcmp(qdisc->ops->id, "fq");
}

/* The turn's packets leave at @due, and never before what the QP sent earlier. */
static void leaves(struct roan_limiter *l, struct roan_tx_round *round, u64 due)
	__must_hold(&l->lock)
{
	due = max(due, l->due);
	if (due > l->now)
		WRITE_ONCE(l->due, due);
	else if (unlikely(roan_cc_open(&l->cc)))
		note_open(l, l->now);
	round->edt_ns = due > l->now ? due : 0;
}

/*
 * A new turn: how many bytes? 0: none yet, and the QP is called when the time has come, or when the rate may have risen; but not
 * so early that it would look many times for each packet, as all others who wait do.
 */
static u32 turn(struct roan_limiter *l, struct roan_tx_round *round, enum roan_side side, u32 bytes)
	__must_hold(&l->lock)
{
	u64 link = link_speed(l->qp->dev);
	u64 at, rises, due;
	bool early;
	u32 may;

	l->now = ktime_get_ns();
	if (l->cc.algo != roan_cc_algo(l->qp))
		restart(l);
	if (roan_cc_elapsed(&l->cc, l->now))
		settle(l, l->now);
	if (unlikely(link && l->cc.link != link) && roan_cc_limits(&l->cc, link, cap_of(l->qp), l->now))
		settle(l, l->now);
	early = unlikely(READ_ONCE(l->cc.params->pacer_edt)) && fq_below(l->qp->dev);
	due = l->now;
	may = early ? roan_pacer_early(&l->pacer, l->now, &due) : roan_pacer_allow(&l->pacer, l->now);
	if (may >= bytes) {
		leaves(l, round, due);
		return may;
	}
	at = early ? roan_pacer_when_early(&l->pacer) : roan_pacer_when(&l->pacer);
	rises = roan_cc_deadline(&l->cc);
	if (rises)
		at = min(at, max(rises, l->now + (at - l->now) / 4));
	roan_pace_wait(l, side, at);
	return 0;
}

static bool pass(struct roan_limiter *l, struct roan_tx_round *round, enum roan_side side, u32 bytes)
{
	bool ok = true;

	spin_lock(&l->lock);
	if (round->byte_budget < bytes) {
		round->byte_budget = turn(l, round, side, bytes);
		ok = round->byte_budget;
	}
	if (ok) {
		if (round->byte_budget != U32_MAX)
			round->byte_budget -= bytes;
		roan_pacer_sent(&l->pacer, bytes);
		if (roan_cc_sent(&l->cc, bytes, l->now))
			settle(l, l->now);
	}
	spin_unlock(&l->lock);
	round->blocked = !ok;
	return ok;
}

static bool acknowledged(const struct roan_qp *qp, const struct roan_opcode *info)
{
	return qp->transport == ROAN_TP_RC && (info->op == ROAN_OP_SEND || info->op == ROAN_OP_WRITE);
}

/* Bytes that may follow those in flight, ours with the packet at hand; READs are the responder's to limit. */
static u64 room(const struct roan_qp *qp, const struct roan_limiter *l, const struct roan_emit *emit)
{
	return roan_cc_room(&l->cc, (u64)psn_diff(emit->psn, qp->sq.req.una_psn) << qp->mtu_shift);
}

bool roan_limit_request(struct roan_qp *qp, struct roan_tx_round *round, struct roan_emit *emit)
{
	const struct roan_opcode *info = roan_opcode(emit->opcode);
	u32 payload = info->payload ? emit->len : 0;
	u32 bytes = round->wire_overhead + info->header_len + payload + roan_wire_pad(payload) + ROAN_ICRC_LEN;
	struct roan_limiter *l = round->limiter;
	bool acks = acknowledged(qp, info);
	u64 left = acks ? room(qp, l, emit) : U64_MAX;
	u32 full = full_packet(qp);

	lockdep_assert_held(&qp->sq.lock);
	/* If the window shrank below what is in flight, and the last of that asked for no answer, one packet more has to. */
	if ((!left && !qp->sq.req.since_ackreq) || !pass(l, round, ROAN_SIDE_SQ, bytes))
		return false;
	if (!acks)
		return true;
	/* If nothing can follow soon, this one must bring the answer; and is timed, like the last that asks in a train. */
	emit->ackreq |= round->byte_budget < full || left < 2 * full;
	if (emit->ackreq && !emit->resend && (!l->probe_at || round->rtt_probe)) {
		l->probe_at = round->edt_ns ?: l->now;
		l->probe_psn = emit->psn;
		round->rtt_probe = true;
	}
	return true;
}

bool roan_limit_response(struct roan_qp *qp, struct roan_tx_round *round, const struct roan_answer *answer)
{
	const struct roan_opcode *info = roan_opcode(answer->opcode);

	lockdep_assert_held(&qp->rq.lock);
	return pass(round->limiter, round, ROAN_SIDE_RQ,
		    round->wire_overhead + info->header_len + answer->len + roan_wire_pad(answer->len) + ROAN_ICRC_LEN);
}

u64 roan_limit_follows(struct roan_limiter *l)
{
	u64 due = READ_ONCE(l->due);

	return due && due > ktime_get_ns() ? due : 0;
}
