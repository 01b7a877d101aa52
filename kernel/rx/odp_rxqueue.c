// SPDX-License-Identifier: GPL-2.0
/*
 * What came for a QP while memory that an earlier packet is for is on its way from a worker: kept, in order, and executed when
 * the memory is there (rx_request.c). Bounded in bytes for a QP and for its device; what finds no room is rx_request.c's to refuse.
 * This is all the backlog of its own that the module has, so each priority's share of it is what peers are told to stop for
 * (pfc_tx.c).
 */
#include "base/stats.h"
#include "flow/flow.h"
#include "rx/rx.h"

#define QP_ROOM		SZ_2M	/* a window of 256 packets of 4 KB, and what keeping them takes */
#define DEV_ROOM	SZ_16M	/* of all its QPs */

struct waiting {
	struct list_head on;	/* rq.backlog */
	u32 bytes;		/* memory that it keeps from others: its own, and the skb's if it is the QP's first in there */
	u8  prio;
	struct roan_rx rx;
};

static struct waiting *last_of(const struct roan_rq *rq)
{
	return list_last_entry(&rq->backlog, struct waiting, on);
}

static u8 tclass_of(const struct roan_rx *rx)
{
	return rx->ipv6 ? rx->ip[0] << 4 | rx->ip[1] >> 4 : rx->ip[1];
}

static void account(struct roan_qp *qp, const struct waiting *w, int sign)
	__must_hold(&qp->rq.lock)
{
	struct roan_backlog *all = &qp->dev->backlog;
	int bytes = sign * (int)w->bytes;

	qp->rq.backlog_bytes += bytes;
	atomic_add(bytes, &all->bytes);
	atomic_add(bytes, &all->of_prio[w->prio]);
	if (READ_ONCE(qp->dev->pfc.params.pfc_emit_mask) & BIT(w->prio))
		roan_pfc_tell(qp->dev, w->prio);
}

/* QPs that race for the last of the room exceed it by a packet each. */
static bool has_room(const struct roan_qp *qp, u32 bytes)
{
	return qp->rq.backlog_bytes + bytes <= QP_ROOM && atomic_read(&qp->dev->backlog.bytes) + bytes <= DEV_ROOM;
}

bool roan_backlog_add(struct roan_qp *qp, struct roan_rx *rx)
{
	struct roan_rq *rq = &qp->rq;
	u32 bytes = sizeof(struct waiting);
	struct waiting *w;

	lockdep_assert_held(&rq->lock);
	if (rx->waits) {
		rx->again = true;
		return true;
	}
	if (list_empty(&rq->backlog) && rq->rest.psn != rx->pkt.psn)	/* it may have come before, and found no room */
		roan_rest_begin(&rq->rest, rx->pkt.psn, ktime_get_ns());
	if (list_empty(&rq->backlog) || last_of(rq)->rx.skb != rx->skb)
		bytes += rx->skb->truesize;
	w = has_room(qp, bytes) ? kmalloc(sizeof(*w), GFP_ATOMIC | __GFP_NOWARN) : NULL;
	if (!w)
		return false;
	w->bytes = bytes;
	w->prio = roan_qos_prio(qp->dev, tclass_of(rx)) % ROAN_PRIORITIES;
	w->rx = *rx;
	w->rx.waits = true;
	w->rx.in = NULL;		/* it may leave meanwhile; what it was to say has been said */
	skb_get(rx->skb);
	skb_scrub_packet(rx->skb, false);	/* and so may its route, its connection, its policy */
	list_add_tail(&w->on, &rq->backlog);
	account(qp, w, 1);
	roan_count(qp->dev, page_waits);
	return true;
}

bool roan_backlog_has(const struct roan_qp *qp, u32 psn)
{
	return psn_diff(psn, last_of(&qp->rq)->rx.pkt.psn) <= 0;
}

static void let_go(struct roan_qp *qp, struct waiting *w)
	__must_hold(&qp->rq.lock)
{
	list_del(&w->on);
	account(qp, w, -1);
	consume_skb(w->rx.skb);
	kfree(w);
	w = list_first_entry_or_null(&qp->rq.backlog, struct waiting, on);
	if (w)
		roan_rest_begin(&qp->rq.rest, w->rx.pkt.psn, ktime_get_ns());
}

void roan_backlog_run(struct roan_qp *qp)
{
	struct waiting *w, *next;

	lockdep_assert_held(&qp->rq.lock);
	rcu_read_lock();
	list_for_each_entry_safe(w, next, &qp->rq.backlog, on) {
		w->rx.again = false;
		roan_request_execute(qp, &w->rx);
		if (w->rx.again)
			break;
		let_go(qp, w);
	}
	rcu_read_unlock();
}

void roan_backlog_drop(struct roan_qp *qp)
{
	struct waiting *w, *next;

	lockdep_assert_held(&qp->rq.lock);
	list_for_each_entry_safe(w, next, &qp->rq.backlog, on)
		let_go(qp, w);
	qp->rq.rest.psn = ROAN_REST_NOBODY;
}
