/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rx: from a received skb to executed requests and consumed responses.
 * Decides which QP a packet belongs to, and whether it is acceptable.
 * Does not decide what a packet means (core/transport), does not access memory itself (mem), does not send (tx).
 * Locks: rq.lock for requests and datagrams, sq.lock for responses, never both.
 * Contexts: softirq, under RCU.
 */
#ifndef ROAN_RX_H
#define ROAN_RX_H

#include "base/rx_ctx.h"
#include "base/stats.h"
#include "mem/mem.h"
#include "roan.h"

/* ---- recv.c, rx_request.c, mcast_rx.c ---- */

/* After an error nothing more is received, also before the QP enters ERR: the receives left are to be flushed. */
static inline bool roan_rx_may_receive(const struct roan_qp *qp)
{
	if (unlikely(READ_ONCE(qp->err_pending)))
		return false;
	return qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD || qp->state == IB_QPS_SQE;
}

/* softirq, called by net: processes every packet of the skb; the caller keeps the skb */
void roan_recv(struct roan_rx_ctx *rx);
void roan_recv_request(struct roan_qp *qp, struct roan_rx_ctx *rx);
void roan_recv_response(struct roan_qp *qp, struct roan_rx_ctx *rx);
void roan_recv_datagram(struct roan_qp *qp, struct roan_rx_ctx *rx);
/* Counts and traces a packet that @dev refuses: @why. @qpn: 0 if it was not read. @dev NULL: none is there to count. */
void roan_rx_refuse(struct roan_dev *dev, const struct roan_rx_ctx *rx, u32 qpn, enum roan_counter why);
/*
 * Calls roan_recv_datagram() for every member, but for those with another P_Key and those that want no copy of their
 * own datagram. Returns the number of all members. softirq
 */
u32 roan_mcast_deliver(struct roan_dev *dev, struct roan_rx_ctx *rx);

/* ---- rx_packet.c ---- */

/* Advances to the next packet of the skb: sets rx->off, len and head. False: no more packets. */
bool roan_rx_next(struct roan_rx_ctx *rx);
struct roan_payload roan_rx_payload(struct roan_rx_ctx *rx);	/* of the current packet; rx->pkt is parsed */
bool roan_rx_icrc_ok(struct roan_rx_ctx *rx);	/* of the current packet; rx->pkt is parsed */

/* ---- rx_key.c ---- */

/* A request's R_Key, range or access right was refused with @verr. rq.lock held; the responder's state is unchanged */
void roan_rx_key_refused(struct roan_qp *qp, const struct roan_rx_ctx *rx, u32 verr);
/*
 * UC, rq.key_limit.spent: true if the WRITE that begins with this packet is dropped, and counted, without a look at its
 * R_Key. rq.lock held
 */
bool roan_rx_key_blocked(struct roan_qp *qp, const struct roan_rx_ctx *rx);

/* ---- recv_fetch.c ---- */

enum roan_fetch_status { ROAN_FETCH_OK, ROAN_FETCH_EMPTY, ROAN_FETCH_BAD };	/* BAD: *verr has the reason */
/* Copies the next receive WQE of the QP or its SRQ to rq.cur. rq.lock held */
enum roan_fetch_status roan_rx_fetch(struct roan_qp *qp, u32 *verr);
/* Copies the slot at the ring's index into @recv and consumes it. The queue's lock is held. For RQs and SRQs. */
enum roan_fetch_status roan_recv_fetch(struct roan_ring *ring, u32 max_sge, struct roan_recv *recv, u32 *verr);

/* ---- odp_rxqueue.c, odp_resume.c ---- */

/* All with rq.lock held. */
/* adds the packet, RC: in order of PSNs; false: no space. A packet that is queued already keeps its place */
bool roan_odp_rxq_add(struct roan_qp *qp, struct roan_rx_ctx *rx);
/* RC: true if the first packet of the queue is @psn or an earlier one */
bool roan_odp_rxq_precedes(const struct roan_qp *qp, u32 psn);
/* after roan_odp_rxq_precedes(): true if @psn is queued, or its place is too far from the end to be looked for */
bool roan_odp_rxq_has(const struct roan_qp *qp, u32 psn);
/* the queue is not empty: returns true if @psn is so far behind it that it may be forged */
bool roan_odp_rxq_is_far(const struct roan_qp *qp, u32 psn);
void roan_odp_rxq_run(struct roan_qp *qp);		/* executes queued packets, until one blocks again */
void roan_odp_rxq_drop(struct roan_qp *qp);		/* frees all queued packets: the QP receives no more */

/* ---- rx_kept.c. All with rq.lock held ---- */

struct roan_rx_kept {
	struct list_head link;	/* rq.odp_rxq or rq.early, by PSN */
	u32 bytes;		/* charged: this struct; in an skb's last entry, which is freed last, its truesize */
	u8  prio;		/* of the skb, odp_rxqueue.c */
	struct roan_rx_ctx rx;
};

/*
 * Returns the entry of @psn, else the last one before it, else NULL. Newest first, as most packets come in order;
 * ERR_PTR(-ENOSPC): too far from there.
 */
struct roan_rx_kept *roan_rx_kept_find(const struct list_head *queue, u32 psn);
/*
 * Keeps a copy of @rx with its skb behind @before, NULL: as the first. *@charged: the bytes that were free before.
 * Returns NULL if there is no space or memory.
 */
struct roan_rx_kept *roan_rx_kept_add(struct roan_qp *qp, struct list_head *queue, struct roan_rx_kept *before,
				      const struct roan_rx_ctx *rx, u32 *charged);
void roan_rx_kept_free(struct roan_qp *qp, struct roan_rx_kept *kept);

/* ---- rx_early.c. All with rq.lock held ---- */

/* RC, a request out of sequence: false: no space, it is dropped */
bool roan_early_keep(struct roan_qp *qp, struct roan_rx_ctx *rx);
/* rq.early is not empty, and the responder may have advanced: executes what is next. RCU held */
void roan_early_run(struct roan_qp *qp);
void roan_early_drop(struct roan_qp *qp);		/* frees all: the QP receives no more */

static inline bool roan_early_any(const struct roan_qp *qp)
{
	return unlikely(!list_empty(&qp->rq.early));
}

/* rx_request.c: admits and executes a queued packet, which may block again. rq.lock and RCU held; QP can receive. */
void roan_request_execute(struct roan_qp *qp, struct roan_rx_ctx *rx);

/* A QP's page fault was resolved or has failed: runs both queues again. softirq, no lock held */
void roan_qp_restart(struct roan_qp *qp);

#endif /* ROAN_RX_H */
