// SPDX-License-Identifier: GPL-2.0
/*
 * Executes requests and datagrams: fetches receive WQEs, copies payload, performs atomics, completes receives. Does not
 * decide whether a request may be executed (core/transport/responder.c), and does not send responses
 * (tx/tx_response.c).
 */
#include "base/base.h"
#include "base/comp_count.h"
#include "base/trace.h"
#include "net/net.h"
#include "rx/rx.h"
#include "tx/tx.h"

/* Refuses the request. RC: a NAK is due, and the QP fails once it is sent. UC: the rest of the message is dropped. */
static void rx_nak(struct roan_qp *qp, enum roan_nak nak)
	__must_hold(&qp->rq.lock)
{
	roan_responder_nak(&qp->rq.resp, nak);
	if (qp->transport != ROAN_TP_RC) {
		if (nak == ROAN_NAK_INVALID_REQUEST)
			roan_count(qp->dev, rx_too_long);	/* no other request of UC is invalid here */
		else
			roan_count(qp->dev, rx_access);
		return;
	}
	switch (nak) {
	case ROAN_NAK_REMOTE_ACCESS:
		roan_count(qp->dev, resp_remote_access_errors);
		roan_defer(&qp->deferred, ROAN_DEFER_EV_ACCESS_ERR);
		break;
	case ROAN_NAK_REMOTE_OPERATION:
		roan_count(qp->dev, resp_remote_op_errors);
		break;
	default:
		roan_count(qp->dev, resp_invalid_requests);
		roan_defer(&qp->deferred, ROAN_DEFER_EV_REQ_ERR);
		break;
	}
}

/* RC: sends an RNR NAK. A fetched receive stays fetched, and the expected PSN does not change. */
static void rx_rnr(struct roan_qp *qp, u8 timer_code)
	__must_hold(&qp->rq.lock)
{
	roan_count(qp->dev, send_rnr_err);
	roan_responder_rnr(&qp->rq.resp, timer_code);
}

/*
 * The fault queue is full: RNR NAK with a delay of four times the wait so far, at least ROAN_FAULT_RNR_TIMER. Six
 * retries then cover some tenths of a second.
 */
static void rx_rnr_full(struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	u8 code = roan_rnr_code(4 * (ktime_get_ns() - qp->rq.rnr_defer.start_ns));

	rx_rnr(qp, max_t(u8, code, ROAN_FAULT_RNR_TIMER));
}

/*
 * The memory is not present, or a FLUSH is still being written back: queue the packet. If the queue is full, RC sends
 * an RNR NAK; UC, UD: the rest of the message is dropped.
 */
static void rx_queue_fault(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	if (roan_odp_rxq_add(qp, rx))
		return;
	if (qp->transport == ROAN_TP_RC) {
		rx_rnr_full(qp);
	} else {
		roan_count(qp->dev, rx_fault_dropped);
		roan_responder_nak(&qp->rq.resp, ROAN_NAK_REMOTE_OPERATION);
	}
}

/* The access to remote memory failed with @verr: refuse the request, or queue it if @verr is of enum roan_not_yet. */
static void rx_nak_access(struct roan_qp *qp, struct roan_rx_ctx *rx, u32 verr)
	__must_hold(&qp->rq.lock)
{
	if (verr == ROAN_VERR_PENDING || verr == ROAN_VERR_UNWRITTEN)
		return rx_queue_fault(qp, rx);
	roan_rx_key_refused(qp, rx, verr);
	rx_nak(qp, ROAN_NAK_REMOTE_ACCESS);
}

/* UC, UD: the receive WQE is invalid. It completes in error and the QP goes to ERR; the peer is not notified. */
static void rx_drop_recv(struct roan_qp *qp, enum roan_status status, u32 verr)
	__must_hold(&qp->rq.lock)
{
	static const struct roan_cqe nothing;

	roan_qp_set_err(qp);	/* before the error can be polled */
	if (qp->rq.cur.taken)
		roan_complete_recv(qp, &nothing, status, verr);
	roan_count(qp->dev, rx_no_wqe);
}

/*
 * Fails the current receive, and the request with it. On a page fault the packet is queued instead. UC: a message that
 * is too long is dropped, and its receive is kept for the next message.
 */
static void rx_fail_recv(struct roan_qp *qp, struct roan_rx_ctx *rx, enum roan_status status, u32 verr,
			 enum roan_nak nak)
	__must_hold(&qp->rq.lock)
{
	if (verr == ROAN_VERR_PENDING)
		return rx_queue_fault(qp, rx);
	if (qp->transport == ROAN_TP_UC && status == ROAN_ST_LOC_PROT_ERR)
		return rx_drop_recv(qp, status, verr);
	rx_nak(qp, nak);
	if (qp->transport != ROAN_TP_RC || !qp->rq.cur.taken)
		return;
	qp->rq.cur.failed = status;
	qp->rq.cur.verr = verr;
	roan_respond_locked(qp);	/* completes it, now or once READ responses before the NAK have left */
}

/* Fetches a receive WQE for a message that starts, or ends with immediate data. False: none; answered or counted. */
static bool rx_get_recv(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	u32 verr = ROAN_VERR_NONE;

	if (qp->rq.cur.taken)
		return true;	/* before a page fault, or (UC, UD) for an earlier message that was dropped */
	switch (roan_rx_fetch(qp, &verr)) {
	case ROAN_FETCH_OK:
		return true;
	case ROAN_FETCH_EMPTY:
		if (qp->transport == ROAN_TP_RC) {
			rx_rnr(qp, qp->min_rnr_timer);
		} else {
			roan_count(qp->dev, rx_no_wqe);
			roan_responder_nak(&qp->rq.resp, ROAN_NAK_REMOTE_OPERATION);
		}
		return false;
	case ROAN_FETCH_BAD:
		break;
	}
	if (qp->transport == ROAN_TP_RC)
		rx_fail_recv(qp, rx, ROAN_ST_LOC_QP_OP_ERR, verr, ROAN_NAK_REMOTE_OPERATION);
	else
		rx_drop_recv(qp, ROAN_ST_LOC_QP_OP_ERR, verr);
	return false;
}

static void rx_finish_recv(struct roan_qp *qp, const struct roan_pkt *pkt, u32 len)
	__must_hold(&qp->rq.lock)
{
	struct roan_cqe cqe = {
		.byte_len = len,
		.src_qp = qp->dest_qpn,
		.opcode = pkt->info->op == ROAN_OP_WRITE ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV,
		.flags = pkt->solicited ? ROAN_CQE_SOLICITED : 0,
		.sl = roan_qp_av(qp)->sl,
	};

	if (pkt->info->ext == ROAN_EXT_IMM) {
		cqe.flags |= ROAN_CQE_WITH_IMM;
		cqe.imm = pkt->imm;
	} else if (pkt->info->ext == ROAN_EXT_INV) {
		cqe.flags |= ROAN_CQE_WITH_INV;
		cqe.inv_rkey = pkt->inv_rkey;
	}
	roan_complete_recv(qp, &cqe, ROAN_ST_SUCCESS, ROAN_VERR_NONE);
}

/* The SGEs of the current receive. L_Keys from an SRQ are checked against its PD: QPs of other PDs can share it. */
static struct roan_sge_list rx_recv_sges(const struct roan_qp *qp)
{
	const struct roan_recv *cur = &qp->rq.cur;

	return (struct roan_sge_list) { cur->sge, cur->num_sge, qp->srq ? qp->srq->ib.pd : qp->ib.pd };
}

static void execute_send(struct roan_qp *qp, struct roan_rx_ctx *rx, const struct roan_request *exec)
	__must_hold(&qp->rq.lock)
{
	const struct roan_pkt *pkt = &rx->pkt;
	struct roan_recv *cur = &qp->rq.cur;
	u32 verr;

	if (exec->starts && !rx_get_recv(qp, rx))
		return;
	if (exec->msg_len > cur->total)
		return rx_fail_recv(qp, rx, ROAN_ST_LOC_LEN_ERR, ROAN_VERR_TOO_LONG, ROAN_NAK_INVALID_REQUEST);
	verr = roan_scatter(qp, rx_recv_sges(qp), exec->offset, roan_rx_payload(rx), pkt->payload_len);
	if (verr)
		return rx_fail_recv(qp, rx, ROAN_ST_LOC_PROT_ERR, verr, ROAN_NAK_REMOTE_OPERATION);
	if (exec->ends && pkt->info->ext == ROAN_EXT_INV) {
		verr = roan_key_invalidate_remote(qp, pkt->inv_rkey);
		if (verr) {
			roan_rx_key_refused(qp, rx, verr);
			return rx_fail_recv(qp, rx, ROAN_ST_LOC_ACCESS_ERR, verr, ROAN_NAK_REMOTE_ACCESS);
		}
	}
	roan_responder_done(&qp->rq.resp, pkt);
	if (exec->ends)
		rx_finish_recv(qp, pkt, exec->msg_len);
}

/*
 * Refuses a WRITE. RC: if this packet carries immediate data, the message's receive completes with a local access error
 * (11.6.2); the other receives are flushed. UC: the receive is kept for the next message.
 */
static void deny_write(struct roan_qp *qp, struct roan_rx_ctx *rx, u32 verr, bool wants_recv)
	__must_hold(&qp->rq.lock)
{
	u32 unused;

	if (!wants_recv || qp->transport != ROAN_TP_RC || verr == ROAN_VERR_PENDING)
		return rx_nak_access(qp, rx, verr);
	roan_rx_key_refused(qp, rx, verr);
	if (!qp->rq.cur.taken)
		roan_rx_fetch(qp, &unused);
	rx_fail_recv(qp, rx, ROAN_ST_LOC_ACCESS_ERR, verr, ROAN_NAK_REMOTE_ACCESS);
}

static void execute_write(struct roan_qp *qp, struct roan_rx_ctx *rx, const struct roan_request *exec)
	__must_hold(&qp->rq.lock)
{
	const struct roan_pkt *pkt = &rx->pkt;
	bool wants_recv = exec->ends && pkt->info->ext == ROAN_EXT_IMM;
	/* Its copy performs every check. With immediate data it consumes a receive, with length 0 nothing is copied. */
	bool single_pkt = exec->starts && exec->ends && pkt->payload_len && !wants_recv;
	u32 verr;

	if (unlikely(qp->rq.key_limit.spent) && exec->starts && roan_rx_key_blocked(qp, rx))
		return;
	/* Check the whole range at once: a WRITE that exceeds its MR then stores no byte, as with hardware adapters. */
	if (exec->starts && !single_pkt) {
		verr = roan_remote_check(qp, exec->rkey, exec->va, exec->total, IB_ACCESS_REMOTE_WRITE);
		if (verr)
			return deny_write(qp, rx, verr, wants_recv);
	}
	if (wants_recv && !rx_get_recv(qp, rx))
		return;
	verr = roan_remote_write(qp, exec->rkey, exec->va, roan_rx_payload(rx), pkt->payload_len);
	if (verr)
		return deny_write(qp, rx, verr, wants_recv);
	if (qp->transport == ROAN_TP_UC && pkt->payload_len)
		roan_key_limit_stored(&qp->rq.key_limit, pkt->psn);
	roan_responder_done(&qp->rq.resp, pkt);
	if (exec->ends)
		roan_comp_count(qp, ROAN_COMP_REMOTE_WRITE, true);
	if (wants_recv)
		rx_finish_recv(qp, pkt, exec->msg_len);
}

static void execute_read(struct roan_qp *qp, struct roan_rx_ctx *rx, const struct roan_request *exec)
	__must_hold(&qp->rq.lock)
{
	u32 verr = roan_remote_check(qp, exec->rkey, exec->va, exec->total, IB_ACCESS_REMOTE_READ);

	if (verr)
		return rx_nak_access(qp, rx, verr);
	roan_responder_done_op(&qp->rq.resp, &rx->pkt, 0);
}

static void execute_atomic(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	struct roan_pkt *pkt = &rx->pkt;
	u64 orig;
	u32 verr;

	/* The responder has checked that the payload has eight bytes. */
	if (pkt->info->op == ROAN_OP_ATOMIC_WRITE &&
	    skb_copy_bits(rx->skb, rx->off + pkt->payload_off, &pkt->swap_add, sizeof(pkt->swap_add)))
		return rx_nak(qp, ROAN_NAK_REMOTE_ACCESS);
	verr = roan_remote_atomic(qp, pkt, &orig);
	if (verr)
		return rx_nak_access(qp, rx, verr);
	roan_responder_done_op(&qp->rq.resp, pkt, orig);
}

static void execute_flush(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	u32 verr = roan_remote_flush(qp, &rx->pkt);

	if (verr)
		return rx_nak_access(qp, rx, verr);
	roan_responder_done_op(&qp->rq.resp, &rx->pkt, 0);
}

/* The first request executed in RTR shows that the peer is up: raise COMM_EST, which the CM waits for (11.6.3.1). */
static void rx_note_established(struct roan_qp *qp)
{
	if (qp->comm_est_sent || qp->state != IB_QPS_RTR)
		return;
	qp->comm_est_sent = true;
	roan_defer(&qp->deferred, ROAN_DEFER_EV_COMM_EST);
}

static void execute_request(struct roan_qp *qp, struct roan_rx_ctx *rx, const struct roan_request *exec)
	__must_hold(&qp->rq.lock)
{
	rx_note_established(qp);
	switch (rx->pkt.info->op) {
	case ROAN_OP_SEND:
		return execute_send(qp, rx, exec);
	case ROAN_OP_WRITE:
		return execute_write(qp, rx, exec);
	case ROAN_OP_READ:
		return execute_read(qp, rx, exec);
	case ROAN_OP_CMP_SWAP:
	case ROAN_OP_FETCH_ADD:
	case ROAN_OP_ATOMIC_WRITE:
		return execute_atomic(qp, rx);
	case ROAN_OP_FLUSH:
		return execute_flush(qp, rx);
	}
}

/* Keeps the packet, or counts why it is dropped in exactly one counter. The first of a gap counts as well. */
static void rx_count_verdict(struct roan_qp *qp, struct roan_rx_ctx *rx, enum roan_verdict verdict)
	__must_hold(&qp->rq.lock)
{
	bool rc = qp->transport == ROAN_TP_RC;

	switch (verdict) {
	case ROAN_V_EXECUTE:
		break;
	case ROAN_V_DUPLICATE:
		roan_count(qp->dev, duplicate_request);
		roan_responder_duplicate(&qp->rq.resp, &rx->pkt, ktime_get_ns());
		break;
	case ROAN_V_GAP:
		roan_count(qp->dev, out_of_seq_request);
		roan_early_keep(qp, rx);
		roan_responder_gap(&qp->rq.resp, ktime_get_ns());
		break;
	case ROAN_V_EARLY:
		if (!roan_early_keep(qp, rx))
			roan_count(qp->dev, rx_after_nak);
		break;
	case ROAN_V_DROP:
		if (rc)
			roan_count(qp->dev, rx_after_nak);
		else
			roan_count(qp->dev, rx_uc_lost);
		break;
	case ROAN_V_INVALID:
		if (rc) {
			roan_count(qp->dev, resp_invalid_requests);
			roan_defer(&qp->deferred, ROAN_DEFER_EV_REQ_ERR);
		} else {
			roan_count(qp->dev, rx_invalid);
		}
		break;
	}
}

/*
 * Allocates the responder resources when the first READ or atomic arrives: most connections have none. False: no
 * memory; the packet is dropped as if lost on the wire, and the requester retransmits it.
 */
static bool rx_alloc_resp_res(struct roan_qp *qp, const struct roan_pkt *pkt)
	__must_hold(&qp->rq.lock)
{
	u32 n = roan_resp_resources(qp->attr.max_dest_rd_atomic);
	struct roan_resp_res *resp_res;
	struct roan_memcg_scope scope;

	if (qp->rq.resp.resp_res || !n || pkt->psn != qp->rq.resp.epsn || !roan_op_needs_response(pkt->info->op))
		return true;
	roan_memcg_enter_qp(&scope, qp);
	resp_res = kcalloc(n, sizeof(*resp_res), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	roan_memcg_leave(&scope);
	if (!resp_res) {
		roan_count(qp->dev, rx_no_memory);
		return false;
	}
	roan_responder_set_resources(&qp->rq.resp, resp_res, n);
	return true;
}

static void rx_handle_request(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	enum roan_verdict verdict;
	struct roan_request exec;

	if (!rx_alloc_resp_res(qp, &rx->pkt))
		return;
	verdict = roan_responder_admit(&qp->rq.resp, &rx->pkt, &exec);
	trace_roan_rx_verdict(qp, &rx->pkt, verdict);
	if (verdict == ROAN_V_EXECUTE)
		execute_request(qp, rx, &exec);
	else
		rx_count_verdict(qp, rx, verdict);
	roan_yield_wake(qp);
}

/*
 * Packets are queued behind a page fault: queue this one, too, to keep the order. If an RC peer retransmits the first
 * queued packet, answer by the rule in rnr_defer.h: the RNR NAK renews the peer's retry counter, so that the fault
 * costs it no retries.
 */
static void rx_queue_behind(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	bool rc = qp->transport == ROAN_TP_RC;
	u32 psn = rx->pkt.psn;
	u8 code;

	if (rc && psn == qp->rq.resp.epsn && roan_rnr_defer_dup(&qp->rq.rnr_defer, ktime_get_ns(), &code))
		rx_rnr(qp, code);
	else if (rc && roan_odp_rxq_has(qp, psn))
		roan_count(qp->dev, duplicate_request);
	else if (rc && roan_odp_rxq_is_far(qp, psn))
		roan_count(qp->dev, rx_after_nak);
	else if (roan_odp_rxq_add(qp, rx))
		return;
	else if (!rc)
		roan_count(qp->dev, rx_fault_dropped);
	else if (qp->rq.resp.nak_sent)
		roan_count(qp->dev, rx_after_nak);
	else
		rx_rnr_full(qp);
}

static bool rx_queue_nonempty(const struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	return unlikely(!list_empty(&qp->rq.odp_rxq));
}

/* A duplicate, or a packet of a gap before the queue, is handled at once, ahead of queued packets. */
static bool rx_must_queue(const struct roan_qp *qp, const struct roan_pkt *pkt)
	__must_hold(&qp->rq.lock)
{
	return rx_queue_nonempty(qp) && (qp->transport != ROAN_TP_RC || roan_odp_rxq_precedes(qp, pkt->psn));
}

/* Responses to a roan peer have the UDP source port of its request, so that they take as many paths as the requests. */
static void rx_note_port(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	if (!qp->ext_version || !roan_responder_is_near(&qp->rq.resp, rx->pkt.psn))
		return;
	rx->pkt.sport = rx->pkt.ext_version ? roan_rx_sport(rx) : 0;
	qp->rq.reply_sport = rx->pkt.sport;
}

/* May return with the MR key held: rx_batch_end() drops it after the last packet of the batch. */
void roan_recv_request(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	roan_queue_lock_drop_key(&qp->rq.lock);
	roan_key_hold();
	if (!roan_rx_may_receive(qp)) {
		roan_count(qp->dev, rx_bad_state);
		goto unlock;
	}
	rx_note_port(qp, rx);
	if (rx_must_queue(qp, &rx->pkt))
		rx_queue_behind(qp, rx);
	else
		rx_handle_request(qp, rx);
	if (roan_early_any(qp))
		roan_early_run(qp);
unlock:
	spin_unlock(&qp->rq.lock);
}

/* Fills in the fields that only a datagram's completion has: its source. */
static void ud_fill_source(struct roan_cqe *cqe, const struct roan_rx_ctx *rx)
{
	cqe->src_qp = rx->pkt.src_qpn;
	cqe->flags |= ROAN_CQE_GRH;
	if (!rx->ipv6)
		cqe->flags |= ROAN_CQE_IPV4;
	if (rx->pkt.solicited)
		cqe->flags |= ROAN_CQE_SOLICITED;
	if (rx->pkt.info->ext == ROAN_EXT_IMM) {
		cqe->flags |= ROAN_CQE_WITH_IMM;
		cqe->imm = rx->pkt.imm;
	}
	if (skb_mac_header_was_set(rx->skb) && skb_mac_header_len(rx->skb) >= ETH_HLEN) {
		cqe->flags |= ROAN_CQE_SMAC;
		memcpy(cqe->smac, eth_hdr(rx->skb)->h_source, ETH_ALEN);
	}
	if (rx->vlan != ROAN_NO_VLAN) {
		cqe->flags |= ROAN_CQE_VLAN;
		cqe->vlan = rx->vlan;
	}
}

/* Every UD receive begins with 40 bytes for the network header, the GRH (10.2.4). */
static void ud_deliver(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	const struct roan_pkt *pkt = &rx->pkt;
	u32 total = ROAN_GRH_LEN + pkt->payload_len;
	struct roan_recv *cur = &qp->rq.cur;
	struct roan_cqe cqe = { .byte_len = total };
	u8 grh[ROAN_GRH_LEN];
	u32 verr;

	if (!rx_get_recv(qp, rx))
		return;
	if (total > cur->total) {
		roan_count(qp->dev, rx_too_long);
		return;		/* the receive is kept for the next datagram */
	}
	roan_rx_grh(rx, grh);
	verr = roan_scatter(qp, rx_recv_sges(qp), 0, roan_payload_bytes(grh), sizeof(grh));
	if (!verr)
		verr = roan_scatter(qp, rx_recv_sges(qp), sizeof(grh), roan_rx_payload(rx), pkt->payload_len);
	if (verr == ROAN_VERR_PENDING)
		return rx_queue_fault(qp, rx);	/* the receive is kept */
	ud_fill_source(&cqe, rx);
	if (verr)
		roan_qp_set_err(qp);	/* before the error can be polled */
	roan_complete_recv(qp, &cqe, verr ? ROAN_ST_LOC_PROT_ERR : ROAN_ST_SUCCESS, verr);
}

static void ud_handle(struct roan_qp *qp, struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	switch (roan_ud_admit(&rx->pkt, qp->qkey, 1u << qp->mtu_shift)) {
	case ROAN_UD_DELIVER:
		if (rx_queue_nonempty(qp) && !rx->is_deferred)
			rx_queue_fault(qp, rx);
		else
			ud_deliver(qp, rx);
		break;
	case ROAN_UD_BAD_QKEY:
		roan_rx_refuse(qp->dev, rx, qp->ib.qp_num, ROAN_CNT_rx_bad_qkey);
		break;
	case ROAN_UD_INVALID:
		roan_count(qp->dev, rx_invalid);
		break;
	}
	roan_yield_wake(qp);
}

void roan_recv_datagram(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	if (rx->vlan == ROAN_VLAN_UNREAD)	/* once for all packets of the skb, which have one destination */
		rx->vlan = roan_net_vlan(rx, qp->dev);
	spin_lock(&qp->rq.lock);
	if (roan_rx_may_receive(qp))
		ud_handle(qp, rx);
	else
		roan_count(qp->dev, rx_bad_state);
	spin_unlock(&qp->rq.lock);
}

void roan_request_execute(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	if (roan_connected(qp))
		rx_handle_request(qp, rx);
	else
		ud_handle(qp, rx);
}
