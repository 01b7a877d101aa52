// SPDX-License-Identifier: GPL-2.0
/*
 * The receive path: walks the packets of an skb, parses each one, finds its QP, verifies it and dispatches it. Handles
 * responses itself; rx_request.c executes requests and datagrams. Does not decide what a packet means: core/transport
 * does.
 */
#include "base/base.h"
#include "base/trace.h"
#include "flow/qp_rate.h"
#include "net/net.h"
#include "rx/rx.h"
#include "tx/tx.h"

/*
 * Consecutive packets of one skb for one QP. The QP and the MR key are looked up once; responses and further requests
 * are sent once, at the end.
 */
struct rx_batch {
	struct roan_qp *qp;
	u32 qpn;
	enum roan_counter refused;	/* why the QP takes none of the packets: rx_refused() */
	bool respond;		/* requests were received: an ACK may be due */
	bool send;		/* responses were received: retire work requests, send more */
};

static void rx_batch_end(struct rx_batch *batch)
{
	if (!batch->qp)
		return;
	roan_key_drop();
	if (batch->respond)
		roan_respond(batch->qp);
	if (batch->send)
		roan_send_acked(batch->qp);
	roan_qp_put(batch->qp);
	*batch = (struct rx_batch) {};
}

#define RX_ACCEPTED	ROAN_NUM_COUNTERS

/*
 * Checks addresses and interface. A connected QP accepts packets from its peer's address to its own address that come
 * by that address's interface; a datagram QP accepts every packet to an address of its device, but none to a group. The
 * same rule holds for CNPs. Returns RX_ACCEPTED, or the counter of the refused packets.
 */
static enum roan_counter rx_refused(const struct roan_qp *qp, const struct roan_rx_ctx *rx)
{
	const struct roan_av *av;
	int ifindex = 0;
	bool ok;

	if (qp->dev->rnet != rx->rnet)
		return ROAN_CNT_rx_wrong_peer;
	if (!roan_connected(qp)) {
		ok = !rx->multicast && roan_net_is_to(rx, qp->dev);
	} else {
		rcu_read_lock();
		av = roan_qp_av(qp);
		if (!av) {	/* not in RTR yet */
			rcu_read_unlock();
			return ROAN_CNT_rx_bad_state;
		}
		ok = roan_gid_equal(&av->dgid, &rx->saddr) && roan_gid_equal(&av->sgid, &rx->daddr);
		ifindex = av->ifindex;
		rcu_read_unlock();
	}
	if (!ok)
		return ROAN_CNT_rx_wrong_peer;
	return roan_net_came_by(rx, qp->dev, ifindex) ? RX_ACCEPTED : ROAN_CNT_rx_wrong_interface;
}

static bool rx_batch_continue(struct rx_batch *batch, struct roan_rx_ctx *rx)
{
	u32 qpn = rx->pkt.qpn;

	if (batch->qp && batch->qpn == qpn)
		return true;
	rx_batch_end(batch);
	if (qpn == 1) {
		struct roan_dev *dev = roan_net_dev_for(rx);

		batch->qp = dev ? roan_qp_find_gsi(dev) : NULL;
	} else {
		batch->qp = roan_qp_find(qpn);
	}
	batch->qpn = qpn;
	if (batch->qp)
		batch->refused = rx_refused(batch->qp, rx);
	return batch->qp;
}

void roan_rx_refuse(struct roan_dev *dev, const struct roan_rx_ctx *rx, u32 qpn, enum roan_counter why)
{
	trace_roan_pkt_refused(rx, qpn, why);
	if (dev)
		this_cpu_inc(dev->stats->count[why]);
}

/* Counts a packet without a QP on the device that owns the receiving interface or the destination address, if any. */
static void rx_unmatched(const struct roan_rx_ctx *rx, u32 qpn, enum roan_counter why)
{
	roan_rx_refuse(roan_net_dev_for(rx), rx, qpn, why);
}

static bool rx_parse(struct roan_rx_ctx *rx)
{
	switch (roan_wire_parse(rx->head, rx->len, &rx->pkt)) {
	case ROAN_PARSE_OK:
		return true;
	case ROAN_PARSE_SHORT:
		rx_unmatched(rx, 0, ROAN_CNT_rx_truncated);
		return false;
	case ROAN_PARSE_VERSION:
		rx_unmatched(rx, 0, ROAN_CNT_rx_bad_version);
		return false;
	case ROAN_PARSE_OPCODE:
		rx_unmatched(rx, 0, ROAN_CNT_rx_bad_opcode);
		return false;
	}
	return false;
}

/* Called when the packet's ICRC was found correct. */
static void rx_count_packet(struct roan_dev *dev, const struct roan_rx_ctx *rx)
{
	roan_count(dev, rcvd_pkts);
	roan_count_n(dev, rcvd_bytes, rx->len);
	if (rx->ce)
		roan_count(dev, rcvd_ce_pkts);
}

/* All checks that precede the use of a packet's content: cheap ones first, the ICRC last. */
static enum roan_counter rx_check(const struct rx_batch *batch, struct roan_rx_ctx *rx)
{
	const struct roan_pkt *pkt = &rx->pkt;
	const struct roan_qp *qp = batch->qp;
	bool cnp = pkt->info->op == ROAN_OP_CNP;

	if (!cnp && pkt->info->transport != qp->transport)
		return ROAN_CNT_rx_wrong_service;
	if (batch->refused != RX_ACCEPTED)
		return cnp ? ROAN_CNT_rp_cnp_ignored : batch->refused;
	if (!roan_pkey_match(pkt->pkey, qp->pkey))
		return ROAN_CNT_rx_bad_pkey;
	if (!roan_rx_icrc_ok(rx))
		return ROAN_CNT_rx_bad_icrc;
	return RX_ACCEPTED;
}

static bool rx_acceptable(const struct rx_batch *batch, struct roan_rx_ctx *rx)
{
	enum roan_counter why = rx_check(batch, rx);

	if (unlikely(why != RX_ACCEPTED)) {
		roan_rx_refuse(batch->qp->dev, rx, batch->qpn, why);
		return false;
	}
	rx_count_packet(batch->qp->dev, rx);
	trace_roan_pkt_rx(batch->qp, &rx->pkt);
	return true;
}

static void rx_multicast(struct roan_rx_ctx *rx)
{
	struct roan_dev *dev = NULL;
	u32 members, all = 0;

	if (!roan_rx_icrc_ok(rx)) {
		rx_unmatched(rx, rx->pkt.qpn, ROAN_CNT_rx_bad_icrc);
		return;
	}
	while ((dev = roan_net_next_dev(rx, dev))) {
		members = roan_mcast_deliver(dev, rx);
		if (members) {
			rx_count_packet(dev, rx);
			roan_count(dev, rcvd_multicast_pkts);
		}
		all += members;
	}
	if (!all)
		rx_unmatched(rx, rx->pkt.qpn, ROAN_CNT_rx_no_group_member);
}

static void rx_dispatch(struct rx_batch *batch, struct roan_rx_ctx *rx)
{
	enum roan_op op = rx->pkt.info->op;

	if (unlikely(rx->ce || (op != ROAN_OP_ACK && READ_ONCE(batch->qp->rq.cnp_pending)))) {
		roan_key_drop();
		roan_np_ce_received(batch->qp, rx);
	}
	if (op == ROAN_OP_CNP) {
		roan_key_drop();
		roan_rp_cnp_received(batch->qp, &rx->saddr, rx->pkt.ext_version ? roan_rx_sport(rx) : 0);
	} else if (!roan_connected(batch->qp)) {
		roan_recv_datagram(batch->qp, rx);
	} else if (roan_op_is_response(op)) {
		roan_recv_response(batch->qp, rx);
		batch->send = true;
	} else {
		roan_recv_request(batch->qp, rx);
		batch->respond = true;
	}
}

/* softirq, rcu_read_lock held */
void roan_recv(struct roan_rx_ctx *rx)
{
	struct rx_batch batch = {};

	while (roan_rx_next(rx)) {
		if (!rx_parse(rx))
			continue;
		if (rx->pkt.qpn == ROAN_QPN_MULTICAST) {
			rx_multicast(rx);
			continue;
		}
		if (!rx_batch_continue(&batch, rx)) {
			rx_unmatched(rx, rx->pkt.qpn, ROAN_CNT_rx_unknown_qp);
			continue;
		}
		if (rx_acceptable(&batch, rx))
			rx_dispatch(&batch, rx);
	}
	rx_batch_end(&batch);
}

/* Copies a response's payload to the SGEs of its work request. Returns 0, enum roan_vendor_err or ROAN_VERR_PENDING. */
static u32 rx_place_response(struct roan_qp *qp, struct roan_rx_ctx *rx, u32 index, u32 offset)
	__must_hold(&qp->sq.lock)
{
	struct roan_send_wqe *wqe = &roan_sq_shadow(&qp->sq, index)->wqe;
	struct roan_sge_list list = { roan_wqe_sges(wqe), wqe->num_sge, qp->ib.pd, .response = true };
	const struct roan_pkt *pkt = &rx->pkt;

	if (pkt->info->op == ROAN_OP_ATOMIC_ACK)
		return roan_scatter(qp, list, 0, roan_payload_bytes(&pkt->orig), sizeof(pkt->orig));
	return roan_scatter(qp, list, offset, roan_rx_payload(rx), pkt->payload_len);
}

static void rx_read_response(struct roan_qp *qp, struct roan_rx_ctx *rx, u64 now)
	__must_hold(&qp->sq.lock)
{
	struct roan_requester *req = &qp->sq.req;
	u32 index, offset, verr;

	if (roan_requester_response(req, &rx->pkt, now, &index, &offset) != ROAN_RESP_PLACE)
		return;
	verr = rx_place_response(qp, rx, index, offset);
	if (!verr) {
		roan_requester_placed(req, &rx->pkt, now);
		if (unlikely(req->reads.any))
			roan_sq_alloc_window(qp);
		return;
	}
	if (verr == ROAN_VERR_PENDING) {
		qp->sq.rx_fault_wait = true;
		return;
	}
	roan_sq_shadow(&qp->sq, index)->vendor_err = verr;
	roan_requester_fail(req, index, ROAN_ST_LOC_PROT_ERR);
}

/*
 * Ignores responses while a READ response is blocked on a page fault: when that fault ends, roan_qp_restart()
 * retransmits all that is not acknowledged.
 */
static void rx_handle_response(struct roan_qp *qp, struct roan_rx_ctx *rx, u64 now)
	__must_hold(&qp->sq.lock)
{
	if (qp->sq.rx_fault_wait)
		return roan_requester_dropped(&qp->sq.req, &rx->pkt);
	switch (rx->pkt.info->op) {
	case ROAN_OP_ACK:
		roan_requester_acked(&qp->sq.req, &rx->pkt, now);
		break;
	case ROAN_OP_SACK:
		if (roan_requester_sack_counts(&qp->sq.req, &rx->pkt)) {
			roan_sq_alloc_holes(qp);
			roan_sq_alloc_window(qp);
		}
		roan_requester_sacked(&qp->sq.req, &rx->pkt, now);
		break;
	default:
		rx_read_response(qp, rx, now);
		break;
	}
}

static u32 rx_times_lost(const struct roan_requester *req)
{
	return req->n_seq_naks + req->n_implied_naks;
}

/* The caller calls roan_send_acked() afterwards, which retires work requests and sends more. */
void roan_recv_response(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	struct roan_limiter *limiter = roan_limiter_of(qp);
	u32 una, lost;
	u64 now;

	if (unlikely(rx->pkt.becn)) {
		roan_key_drop();
		roan_rp_cnp_received(qp, &rx->saddr, 0);
	}
	/* The clock is read once per skb: reading it costs more than most of the code below. */
	if (!rx->now)
		rx->now = ktime_get_ns();
	now = rx->now;
	roan_queue_lock_drop_key(&qp->sq.lock);
	roan_key_hold();
	una = qp->sq.req.una_psn;
	lost = rx_times_lost(&qp->sq.req);
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD)
		roan_count(qp->dev, rx_bad_state);
	else
		rx_handle_response(qp, rx, now);
	if (limiter) {
		roan_rate_acked(qp, limiter, una, rx->pkt.psn, now);
		if (rx_times_lost(&qp->sq.req) != lost)
			roan_rate_lost(limiter, ROAN_CC_LOST_NAK, now);
	}
	spin_unlock(&qp->sq.lock);
}
