// SPDX-License-Identifier: GPL-2.0
/*
 * Packets of a QP that wait behind a page fault: queued in order, and executed when the memory is present
 * (rx_request.c). Bounded in bytes, per QP, user and device. Does not decide about a packet that finds no space:
 * rx_request.c answers it with an RNR NAK or drops it. The driver has no other receive queue, so the bytes queued here
 * in each priority decide when PFC pause frames are sent (flow/pfc_tx.c).
 */
#include "base/stats.h"
#include "base/user_share.h"
#include "flow/flow.h"
#include "rx/rx.h"

#define QP_MAX_BYTES	SZ_2M	/* a window of 256 packets of 4 KB, and the overhead of queueing them */
#define QP_FAULT_BYTES	SZ_256K	/* of them, not for packets that are kept after a gap */
#define DEV_MAX_BYTES	SZ_16M	/* all QPs of a device */
#define RUN_PACKETS	128	/* executed at once; the remainder is deferred */
#define FIND_STEPS	256	/* entries passed in search of a packet's place */

struct rxq_entry {
	struct list_head link;	/* rq.odp_rxq */
	u32 bytes;		/* memory charged: this struct, and the skb's truesize in the last entry of an skb */
	u8  prio;		/* of the skb */
	struct roan_rx_ctx rx;
};

/*
 * Returns the entry of @psn, else the last one before it, else NULL: the queue of an RC QP is in order of PSNs, also if
 * the path reorders packets. Newest first, as most packets come in order. Other transports append.
 */
static struct rxq_entry *rxq_find(const struct roan_qp *qp, u32 psn)
	__must_hold(&qp->rq.lock)
{
	struct rxq_entry *w;
	u32 steps = 0;

	list_for_each_entry_reverse(w, &qp->rq.odp_rxq, link) {
		if (qp->transport != ROAN_TP_RC || psn_diff(w->rx.pkt.psn, psn) <= 0)
			return w;
		if (++steps == FIND_STEPS)
			break;
	}
	return NULL;
}

static u8 rxq_tclass(const struct roan_rx_ctx *rx)
{
	return rx->ipv6 ? rx->ip[0] << 4 | rx->ip[1] >> 4 : rx->ip[1];
}

void roan_rxq_charge(struct roan_qp *qp, int bytes)
{
	qp->rq.odp_rxq_bytes += bytes;
	if (qp->uctx)
		atomic_add(bytes, &to_roan_ucontext(qp->uctx)->user->odp.rxq_bytes);
	atomic_add(bytes, &qp->dev->odp_rxq.bytes);
}

static void rxq_account(struct roan_qp *qp, u8 prio, int bytes)
	__must_hold(&qp->rq.lock)
{
	roan_rxq_charge(qp, bytes);
	atomic_add(bytes, &qp->dev->odp_rxq.of_prio[prio]);
	if (READ_ONCE(qp->dev->pfc.params.pfc_emit_mask) & BIT(prio))
		roan_pfc_tx_update(qp->dev, prio);
}

/*
 * Entries of one skb: the last one, which is freed last, is charged the skb, and all are of one priority. Moves the
 * charge from @before to @w.
 */
static void rxq_move_charge(struct rxq_entry *before, struct rxq_entry *w)
{
	w->bytes += before->bytes - sizeof(*before);
	before->bytes = sizeof(*before);
	w->prio = before->prio;
}

/*
 * A user may hold as much as is free: half of the device's limit for a single user, a third for each of two, and so on.
 * So another user finds space, also if the packets of the first wait for ever. The check is not atomic: concurrent QPs
 * may exceed a limit by one packet each. Packets kept after a gap (@early) leave space for page faults, which the peer
 * need not repeat.
 */
bool roan_rxq_has_space(const struct roan_qp *qp, u32 bytes, bool early)
{
	u32 used = atomic_read(&qp->dev->odp_rxq.bytes), of_user = 0;

	if (qp->uctx)
		of_user = atomic_read(&to_roan_ucontext(qp->uctx)->user->odp.rxq_bytes);
	return qp->rq.odp_rxq_bytes + bytes <= QP_MAX_BYTES - (early ? QP_FAULT_BYTES : 0) &&
	       used + of_user + bytes <= DEV_MAX_BYTES / (early ? 2 : 1);
}

void roan_rx_hold_skb(struct roan_rx_ctx *rx)
{
	rx->in = NULL;		/* may be unregistered meanwhile; rx.vlan is already read from it */
	skb_get(rx->skb);
	skb_scrub_packet(rx->skb, false);	/* drops route, conntrack and xfrm state, which may also go away */
}

bool roan_odp_rxq_add(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	struct roan_rq *rq = &qp->rq;
	u32 bytes = sizeof(struct rxq_entry);
	struct rxq_entry *before, *w;
	bool same_skb;

	lockdep_assert_held(&rq->lock);
	if (rx->is_deferred) {
		rx->still_blocked = true;
		return true;
	}
	before = rxq_find(qp, rx->pkt.psn);
	/* the same packet may have come before and found no space: its start time stays */
	if (list_empty(&rq->odp_rxq) && rq->rnr_defer.psn != rx->pkt.psn)
		roan_rnr_defer_begin(&rq->rnr_defer, rx->pkt.psn, ktime_get_ns());
	same_skb = before && before->rx.skb == rx->skb && before->bytes > sizeof(*before);
	if (!same_skb)
		bytes += rx->skb->truesize;
	w = roan_rxq_has_space(qp, bytes, false) ? kmalloc(sizeof(*w), GFP_ATOMIC | __GFP_NOWARN) : NULL;
	if (!w)
		return false;
	w->bytes = bytes;
	w->prio = roan_qos_prio(qp->dev, rxq_tclass(rx)) % ROAN_PRIORITIES;
	if (same_skb)
		rxq_move_charge(before, w);
	w->rx = *rx;
	w->rx.is_deferred = true;
	roan_rx_hold_skb(&w->rx);
	list_add(&w->link, before ? &before->link : &rq->odp_rxq);
	rxq_account(qp, w->prio, bytes);
	roan_count(qp->dev, rx_fault_queued);
	return true;
}

bool roan_odp_rxq_precedes(const struct roan_qp *qp, u32 psn)
{
	const struct list_head *queue = &qp->rq.odp_rxq;

	return !list_empty(queue) && psn_diff(psn, list_first_entry(queue, struct rxq_entry, link)->rx.pkt.psn) >= 0;
}

bool roan_odp_rxq_has(const struct roan_qp *qp, u32 psn)
{
	const struct rxq_entry *w = rxq_find(qp, psn);

	return !w || w->rx.pkt.psn == psn;
}

bool roan_odp_rxq_is_far(const struct roan_qp *qp, u32 psn)
{
	const struct roan_pkt *last = &list_last_entry(&qp->rq.odp_rxq, struct rxq_entry, link)->rx.pkt;
	u32 responses = last->info->op == ROAN_OP_READ ? last->dma_len >> qp->mtu_shift : 0;

	return psn_diff(psn, psn_add(last->psn, responses)) >= ROAN_EARLY_WINDOW;
}

static void rxq_free_entry(struct roan_qp *qp, struct rxq_entry *w)
	__must_hold(&qp->rq.lock)
{
	list_del(&w->link);
	rxq_account(qp, w->prio, -(int)w->bytes);
	consume_skb(w->rx.skb);
	kfree(w);
	w = list_first_entry_or_null(&qp->rq.odp_rxq, struct rxq_entry, link);
	if (w)
		roan_rnr_defer_begin(&qp->rq.rnr_defer, w->rx.pkt.psn, ktime_get_ns());
}

void roan_odp_rxq_run(struct roan_qp *qp)
{
	struct rxq_entry *w, *next;
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
	struct rxq_entry *w, *next;

	lockdep_assert_held(&qp->rq.lock);
	list_for_each_entry_safe(w, next, &qp->rq.odp_rxq, link)
		rxq_free_entry(qp, w);
	qp->rq.rnr_defer.psn = ROAN_PSN_NONE;
}
