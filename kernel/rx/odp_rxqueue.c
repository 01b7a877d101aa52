// SPDX-License-Identifier: GPL-2.0
/*
 * Packets of a QP that wait behind a page fault: queued in order, and executed when the memory is present
 * (rx_request.c). Does not decide about a packet that finds no space: rx_request.c answers it with an RNR NAK or drops
 * it. The driver has no other receive queue, so the bytes queued here in each priority decide when PFC pause frames are
 * sent (flow/pfc_tx.c).
 */
#include "base/stats.h"
#include "flow/flow.h"
#include "rx/rx.h"

#define RUN_PACKETS	128	/* executed at once; the remainder is deferred */

/* The place of @psn, NULL also if it is too far from the end. Only RC packets have one: others are appended. */
static struct roan_rx_kept *rxq_find(const struct roan_qp *qp, u32 psn)
	__must_hold(&qp->rq.lock)
{
	struct roan_rx_kept *w;

	if (qp->transport != ROAN_TP_RC)
		return list_empty(&qp->rq.odp_rxq) ? NULL : list_last_entry(&qp->rq.odp_rxq, struct roan_rx_kept, link);
	w = roan_rx_kept_find(&qp->rq.odp_rxq, psn);
	return IS_ERR(w) ? NULL : w;
}

static u8 rxq_tclass(const struct roan_rx_ctx *rx)
{
	return rx->ipv6 ? rx->ip[0] << 4 | rx->ip[1] >> 4 : rx->ip[1];
}

static void rxq_account(struct roan_qp *qp, u8 prio, int bytes)
	__must_hold(&qp->rq.lock)
{
	atomic_add(bytes, &qp->dev->odp_rxq.of_prio[prio]);
	if (READ_ONCE(qp->dev->pfc.params.pfc_emit_mask) & BIT(prio))
		roan_pfc_tx_update(qp->dev, prio);
}

bool roan_odp_rxq_add(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	struct roan_rx_kept *before, *w;
	struct roan_rq *rq = &qp->rq;
	u32 bytes;

	lockdep_assert_held(&rq->lock);
	if (rx->is_deferred) {
		rx->still_blocked = true;
		return true;
	}
	/* the same packet may have come before and found no space: its start time stays */
	if (list_empty(&rq->odp_rxq) && rq->rnr_defer.psn != rx->pkt.psn)
		roan_rnr_defer_begin(&rq->rnr_defer, rx->pkt.psn, ktime_get_ns());
	before = rxq_find(qp, rx->pkt.psn);
	w = roan_rx_kept_add(qp, &rq->odp_rxq, before, rx, &bytes);
	if (!w)
		return false;
	w->rx.is_deferred = true;
	/* what is charged for an skb stays with its first priority, also if the map of priorities has changed */
	w->prio = w->bytes > bytes ? before->prio : roan_qos_prio(qp->dev, rxq_tclass(rx)) % ROAN_PRIORITIES;
	rxq_account(qp, w->prio, bytes);
	roan_count(qp->dev, rx_fault_queued);
	return true;
}

bool roan_odp_rxq_precedes(const struct roan_qp *qp, u32 psn)
{
	const struct list_head *queue = &qp->rq.odp_rxq;

	return !list_empty(queue) && psn_diff(psn, list_first_entry(queue, struct roan_rx_kept, link)->rx.pkt.psn) >= 0;
}

bool roan_odp_rxq_has(const struct roan_qp *qp, u32 psn)
{
	const struct roan_rx_kept *w = rxq_find(qp, psn);

	return !w || w->rx.pkt.psn == psn;
}

bool roan_odp_rxq_is_far(const struct roan_qp *qp, u32 psn)
{
	const struct roan_pkt *last = &list_last_entry(&qp->rq.odp_rxq, struct roan_rx_kept, link)->rx.pkt;
	u32 responses = last->info->op == ROAN_OP_READ ? last->dma_len >> qp->mtu_shift : 0;

	return psn_diff(psn, psn_add(last->psn, responses)) >= ROAN_EARLY_WINDOW;
}

static void rxq_free_entry(struct roan_qp *qp, struct roan_rx_kept *w)
	__must_hold(&qp->rq.lock)
{
	rxq_account(qp, w->prio, -(int)w->bytes);
	roan_rx_kept_free(qp, w);
	w = list_first_entry_or_null(&qp->rq.odp_rxq, struct roan_rx_kept, link);
	if (w)
		roan_rnr_defer_begin(&qp->rq.rnr_defer, w->rx.pkt.psn, ktime_get_ns());
}

void roan_odp_rxq_run(struct roan_qp *qp)
{
	struct roan_rx_kept *w, *next;
	u32 most = RUN_PACKETS;

	lockdep_assert_held(&qp->rq.lock);
	qp->rq.resp.epsn_waits = false;		/* behind the first one there may be a gap; roan_early_run() follows */
	rcu_read_lock();
	list_for_each_entry_safe(w, next, &qp->rq.odp_rxq, link) {
		if (!roan_rx_may_receive(qp))
			break;		/* ERR drops the queue */
		if (!most--) {
			roan_defer(&qp->deferred, ROAN_DEFER_RESTART);
			break;
		}
		w->rx.still_blocked = false;
		roan_request_execute(qp, &w->rx);
		if (w->rx.still_blocked)
			break;
		rxq_free_entry(qp, w);
	}
	rcu_read_unlock();
}

void roan_odp_rxq_drop(struct roan_qp *qp)
{
	struct roan_rx_kept *w, *next;

	lockdep_assert_held(&qp->rq.lock);
	list_for_each_entry_safe(w, next, &qp->rq.odp_rxq, link)
		rxq_free_entry(qp, w);
	qp->rq.rnr_defer.psn = ROAN_PSN_NONE;
}
