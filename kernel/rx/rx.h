/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rx: from a received skb to executed requests and consumed responses. Decides which QP a packet is for and whether it is
 * acceptable; what it means is core/transport's word. Copies by mem, answers by tx. Softirq, under RCU; rq.lock for requests
 * and datagrams, sq.lock for responses, never both.
 */
#ifndef ROAN_RX_H
#define ROAN_RX_H

#include "base/rx_ctx.h"
#include "mem/mem.h"
#include "roan.h"

/* ---- recv.c, rx_request.c, mcast_rx.c ---- */

/* softirq, from net: every packet of the skb; the skb stays the caller's */
void roan_recv(struct roan_rx_ctx *rx);
void roan_recv_request(struct roan_qp *qp, struct roan_rx_ctx *rx);
void roan_recv_response(struct roan_qp *qp, struct roan_rx_ctx *rx);
void roan_recv_datagram(struct roan_qp *qp, struct roan_rx_ctx *rx);
/* Calls roan_recv_datagram() for every member; returns how many. softirq */
u32 roan_mcast_deliver(struct roan_dev *dev, struct roan_rx_ctx *rx);

/* ---- rx_packet.c ---- */

/* The next packet of the skb into rx->off, len, head; false: no more. */
bool roan_rx_next(struct roan_rx_ctx *rx);
struct roan_payload roan_rx_payload(struct roan_rx_ctx *rx);	/* of the packet under the walker; rx->pkt is parsed */
bool roan_rx_icrc_ok(struct roan_rx_ctx *rx);	/* of the packet under the walker; rx->pkt is parsed */

/* ---- recv_fetch.c ---- */

enum roan_fetch_status { ROAN_FETCH_OK, ROAN_FETCH_EMPTY, ROAN_FETCH_BAD };	/* BAD: *verr says why */
enum roan_fetch_status roan_srq_fetch(struct roan_srq *srq, struct roan_recv *recv, u32 *verr);
/* Copies the slot at the ring's index into @recv and consumes it. Caller holds the queue's lock. Shared by RQ and SRQ. */
enum roan_fetch_status roan_recv_fetch(struct roan_ring *ring, u32 max_sge, struct roan_recv *recv, u32 *verr);

/* ---- odp_rxqueue.c, odp_resume.c ---- */

/* All with rq.lock held. */
/* behind all others; false: no room. What waits stays in its place */
bool roan_odp_rxq_add(struct roan_qp *qp, struct roan_rx_ctx *rx);
/* somebody waits: is this PSN, or a later one, among them? */
bool roan_odp_rxq_has(const struct roan_qp *qp, u32 psn);
void roan_odp_rxq_run(struct roan_qp *qp);		/* executes them, until one must wait still */
void roan_odp_rxq_drop(struct roan_qp *qp);		/* the QP receives no more */

/* rx_request.c: what waited is admitted and executed, or waits again. RCU; the QP can receive. */
void roan_request_execute(struct roan_qp *qp, struct roan_rx_ctx *rx);

/* The memory that a QP waited for came, or will not come: both queues run again. softirq, no lock held */
void roan_qp_restart(struct roan_qp *qp);

#endif /* ROAN_RX_H */
