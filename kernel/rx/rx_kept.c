// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that are kept with their skb: behind a page fault (odp_rxqueue.c) or behind a gap (rx_early.c). Each queue
 * is in order of PSNs. The bytes of both count together: bounded per QP, user and device. Does not decide when a
 * request is executed.
 */
#include "base/user_share.h"
#include "rx/rx.h"

#define QP_MAX_BYTES	SZ_2M	/* a window of 256 packets of 4 KB, and the overhead of keeping them */
#define QP_FAULT_BYTES	SZ_256K	/* of them, not for packets that are kept after a gap */
#define DEV_MAX_BYTES	SZ_16M	/* all QPs of a device */
#define FIND_STEPS	256	/* entries passed in search of a packet's place */

struct roan_rx_kept *roan_rx_kept_find(const struct list_head *queue, u32 psn)
{
	struct roan_rx_kept *kept;
	u32 steps = 0;

	list_for_each_entry_reverse(kept, queue, link) {
		if (psn_diff(kept->rx.pkt.psn, psn) <= 0)
			return kept;
		if (++steps == FIND_STEPS)
			return ERR_PTR(-ENOSPC);
	}
	return NULL;
}

static void kept_charge(struct roan_qp *qp, int bytes)
	__must_hold(&qp->rq.lock)
{
	qp->rq.kept_bytes += bytes;
	if (qp->uctx)
		atomic_add(bytes, &to_roan_ucontext(qp->uctx)->user->odp.rxq_bytes);
	atomic_add(bytes, &qp->dev->odp_rxq.bytes);
}

/*
 * A user may hold as much as is free: half of the device's limit for a single user, a third for each of two, and so on.
 * So another user finds space, also if the packets of the first wait for ever. The check is not atomic: concurrent QPs
 * may exceed a limit by one packet each. Packets kept after a gap leave space for page faults, which the peer need not
 * repeat.
 */
static bool kept_has_space(const struct roan_qp *qp, u32 bytes, bool after_gap)
	__must_hold(&qp->rq.lock)
{
	u32 used = atomic_read(&qp->dev->odp_rxq.bytes), of_user = 0;

	if (qp->uctx)
		of_user = atomic_read(&to_roan_ucontext(qp->uctx)->user->odp.rxq_bytes);
	return qp->rq.kept_bytes + bytes <= QP_MAX_BYTES - (after_gap ? QP_FAULT_BYTES : 0) &&
	       used + of_user + bytes <= DEV_MAX_BYTES / (after_gap ? 2 : 1);
}

static void kept_hold_skb(struct roan_rx_kept *kept)
{
	struct roan_rx_ctx *rx = &kept->rx;

	rx->in = NULL;		/* may be unregistered meanwhile; rx.vlan is already read from it */
	skb_get(rx->skb);
	skb_scrub_packet(rx->skb, false);	/* drops route, conntrack and xfrm state, which may also go away */
}

struct roan_rx_kept *roan_rx_kept_add(struct roan_qp *qp, struct list_head *queue, struct roan_rx_kept *before,
				      const struct roan_rx_ctx *rx, u32 *charged)
{
	bool same_skb = before && before->rx.skb == rx->skb && before->bytes > sizeof(*before);
	u32 bytes = sizeof(struct roan_rx_kept) + (same_skb ? 0 : rx->skb->truesize);
	struct roan_rx_kept *kept = NULL;

	lockdep_assert_held(&qp->rq.lock);
	if (kept_has_space(qp, bytes, queue == &qp->rq.early))
		kept = kmalloc(sizeof(*kept), GFP_ATOMIC | __GFP_NOWARN);
	if (!kept)
		return NULL;
	kept->bytes = bytes;
	if (same_skb) {		/* moves what is charged for the skb */
		kept->bytes += before->bytes - sizeof(*before);
		before->bytes = sizeof(*before);
	}
	kept->rx = *rx;
	kept_hold_skb(kept);
	list_add(&kept->link, before ? &before->link : queue);
	kept_charge(qp, bytes);
	*charged = bytes;
	return kept;
}

void roan_rx_kept_free(struct roan_qp *qp, struct roan_rx_kept *kept)
{
	lockdep_assert_held(&qp->rq.lock);
	list_del(&kept->link);
	kept_charge(qp, -(int)kept->bytes);
	consume_skb(kept->rx.skb);
	kfree(kept);
}
