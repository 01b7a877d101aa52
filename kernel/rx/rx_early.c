// SPDX-License-Identifier: GPL-2.0
/*
 * RC requests that came before an earlier one, which was lost or is delayed: kept in order of their PSNs, and executed
 * once the missing one was (rx_request.c). Then one cumulative ACK covers them all, whatever the requester: it need not
 * repeat them. A packet that finds no space is dropped, and the requester repeats it. Does not decide what is early or
 * missing: core/transport/responder.c does.
 */
#include "base/base.h"
#include "rx/rx.h"

#define RUN_PACKETS	256	/* executed at once, a window of roan's requester; the remainder is deferred */

static struct roan_rx_kept *early_first(struct roan_rq *rq)
{
	return list_first_entry_or_null(&rq->early, struct roan_rx_kept, link);
}

/* Most QPs never keep a packet, so the first one allocates the set. */
static bool early_has_set(struct roan_qp *qp)
{
	struct roan_responder *resp = &qp->rq.resp;

	if (!resp->early_set)
		resp->early_set = roan_qp_zalloc(qp, sizeof(*resp->early_set), GFP_ATOMIC);
	return resp->early_set;
}

static void early_account(struct roan_rq *rq, int pkts, int bytes)
	__must_hold(&rq->lock)
{
	WRITE_ONCE(rq->early_pkts, rq->early_pkts + pkts);
	WRITE_ONCE(rq->early_bytes, rq->early_bytes + bytes);
}

bool roan_early_keep(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	struct roan_rx_kept *before, *e;
	struct roan_rq *rq = &qp->rq;
	u32 bytes;

	lockdep_assert_held(&rq->lock);
	if (!roan_responder_may_keep(&rq->resp, &rx->pkt) || !early_has_set(qp))
		return false;
	before = roan_rx_kept_find(&rq->early, rx->pkt.psn);
	e = IS_ERR(before) ? NULL : roan_rx_kept_add(qp, &rq->early, before, rx, &bytes);
	if (!e)
		return false;
	if (!e->rx.now)
		e->rx.now = ktime_get_ns();
	e->rx.is_deferred = false;	/* if a page fault is pending, it is queued behind the fault as a new packet */
	early_account(rq, 1, bytes);
	roan_responder_kept(&rq->resp, &rx->pkt);
	roan_count(qp->dev, rx_early_kept);
	return true;
}

static void early_free(struct roan_qp *qp, struct roan_rx_kept *e)
	__must_hold(&qp->rq.lock)
{
	early_account(&qp->rq, -1, -(int)e->bytes);
	roan_rx_kept_free(qp, e);
}

/* When the first of the kept requests came. */
static u64 early_since(struct roan_rq *rq)
{
	const struct roan_rx_kept *e = early_first(rq);

	return e ? e->rx.now : 0;
}

/* The expected request is kept, or waits for a page fault. */
static bool early_epsn_waits(struct roan_rq *rq)
{
	const struct roan_rx_kept *e = early_first(rq);

	return !list_empty(&rq->odp_rxq) || (e && psn_diff(e->rx.pkt.psn, rq->resp.epsn) <= 0);
}

/* Executes what is next. Returns how many were executed; the remainder is deferred. */
static u32 early_execute(struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	struct roan_rq *rq = &qp->rq;
	struct roan_rx_kept *e;
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
	struct roan_rx_kept *e, *next;

	lockdep_assert_held(&qp->rq.lock);
	list_for_each_entry_safe(e, next, &qp->rq.early, link)
		early_free(qp, e);
}
