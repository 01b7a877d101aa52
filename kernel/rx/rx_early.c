// SPDX-License-Identifier: GPL-2.0
/*
 * RC requests that came before an earlier one, which was lost or is delayed: kept in order of their PSNs, and executed
 * once the missing one was (rx_request.c). Then one cumulative ACK covers them all, whatever the requester: it need not
 * repeat them. Bounded in bytes together with packets that wait for page faults (odp_rxqueue.c). A packet that finds no
 * space is dropped, and the requester repeats it. Does not decide what is early or missing: core/transport/responder.c
 * does.
 */
#include "base/base.h"
#include "rx/rx.h"

#define RUN_PACKETS	256	/* executed at once, a window of roan's requester; the remainder is deferred */
#define FIND_STEPS	256	/* entries passed in search of a packet's place; beyond it is dropped */

struct early_entry {
	struct list_head link;	/* rq.early, by PSN */
	u32 bytes;		/* memory charged: this struct, and the skb's truesize in the last entry of an skb */
	struct roan_rx_ctx rx;
};

static struct early_entry *early_first(struct roan_rq *rq)
{
	return list_first_entry_or_null(&rq->early, struct early_entry, link);
}

/*
 * Returns the entry of @psn, else the last one before it, else NULL. Newest first, as most packets come in order;
 * ERR_PTR(-ENOSPC): too far from there.
 */
static struct early_entry *early_find(const struct roan_rq *rq, u32 psn)
{
	struct early_entry *e;
	u32 steps = 0;

	list_for_each_entry_reverse(e, &rq->early, link) {
		if (psn_diff(e->rx.pkt.psn, psn) <= 0)
			return e;
		if (++steps == FIND_STEPS)
			return ERR_PTR(-ENOSPC);
	}
	return NULL;
}

/* Entries of one skb: the last one, which is freed last, is charged the skb. Moves the charge from @before to @e. */
static void early_move_charge(struct early_entry *before, struct early_entry *e)
{
	e->bytes += before->bytes - sizeof(*before);
	before->bytes = sizeof(*before);
}

/* Most QPs never keep a packet, so the first one allocates the set. */
static bool early_has_set(struct roan_qp *qp)
{
	struct roan_responder *resp = &qp->rq.resp;

	if (!resp->early_set)
		resp->early_set = roan_qp_zalloc(qp, sizeof(*resp->early_set), GFP_ATOMIC);
	return resp->early_set;
}

static void early_charge(struct roan_qp *qp, int pkts, int bytes)
	__must_hold(&qp->rq.lock)
{
	struct roan_rq *rq = &qp->rq;

	WRITE_ONCE(rq->early_pkts, rq->early_pkts + pkts);
	WRITE_ONCE(rq->early_bytes, rq->early_bytes + bytes);
	roan_rxq_charge(qp, bytes);
}

bool roan_early_keep(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	struct early_entry *before, *e;
	struct roan_rq *rq = &qp->rq;
	u32 bytes = sizeof(*e);
	bool same_skb;

	lockdep_assert_held(&rq->lock);
	if (!roan_responder_may_keep(&rq->resp, &rx->pkt) || !early_has_set(qp))
		return false;
	before = early_find(rq, rx->pkt.psn);
	if (IS_ERR(before))
		return false;
	same_skb = before && before->rx.skb == rx->skb && before->bytes > sizeof(*before);
	if (!same_skb)
		bytes += rx->skb->truesize;
	e = roan_rxq_has_space(qp, bytes, true) ? kmalloc(sizeof(*e), GFP_ATOMIC | __GFP_NOWARN) : NULL;
	if (!e)
		return false;
	if (!rx->now)
		rx->now = ktime_get_ns();
	e->bytes = bytes;
	if (same_skb)
		early_move_charge(before, e);
	e->rx = *rx;
	e->rx.is_deferred = false;	/* if a page fault is pending, it is queued behind the fault as a new packet */
	roan_rx_hold_skb(&e->rx);
	list_add(&e->link, before ? &before->link : &rq->early);
	early_charge(qp, 1, bytes);
	roan_responder_kept(&rq->resp, &rx->pkt);
	roan_count(qp->dev, rx_early_kept);
	return true;
}

static void early_free(struct roan_qp *qp, struct early_entry *e)
	__must_hold(&qp->rq.lock)
{
	list_del(&e->link);
	early_charge(qp, -1, -(int)e->bytes);
	consume_skb(e->rx.skb);
	kfree(e);
}

/* When the first of the kept requests came. */
static u64 early_since(struct roan_rq *rq)
{
	const struct early_entry *e = early_first(rq);

	return e ? e->rx.now : 0;
}

/* The expected request is kept, or waits for a page fault. */
static bool early_epsn_waits(struct roan_rq *rq)
{
	const struct early_entry *e = early_first(rq);

	return !list_empty(&rq->odp_rxq) || (e && psn_diff(e->rx.pkt.psn, rq->resp.epsn) <= 0);
}

/* Executes what is next. Returns how many were executed; the remainder is deferred. */
static u32 early_execute(struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	struct roan_rq *rq = &qp->rq;
	struct early_entry *e;
	u32 ran;

	for (ran = 0; list_empty(&rq->odp_rxq) && (e = early_first(rq)) &&
	     psn_diff(e->rx.pkt.psn, rq->resp.epsn) <= 0; ran++) {
		if (ran == RUN_PACKETS) {
			roan_defer(&qp->deferred, ROAN_DEFER_RESTART);
			break;
		}
		roan_request_execute(qp, &e->rx);
		early_free(qp, e);
	}
	return ran;
}

/* If a packet waits for a page fault, all others wait behind it: roan_qp_restart() calls this again. */
void roan_early_run(struct roan_qp *qp)
{
	struct roan_rq *rq = &qp->rq;
	u32 ran;

	lockdep_assert_held(&rq->lock);
	rq->resp.epsn_waits = false;
	ran = early_execute(qp);
	rq->resp.epsn_waits = early_epsn_waits(rq);
	if (roan_responder_next_gap(&rq->resp, ran || rq->resp.epsn_waits, early_since(rq), ktime_get_ns()))
		roan_count(qp->dev, out_of_seq_request);
}

void roan_early_drop(struct roan_qp *qp)
{
	struct early_entry *e, *next;

	lockdep_assert_held(&qp->rq.lock);
	list_for_each_entry_safe(e, next, &qp->rq.early, link)
		early_free(qp, e);
}
