/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of the data path: a WQE fetched, a packet sent, a packet received, a decision. One per event, numbers as
 * on the wire. Function calls are not traced. Documentation/observability.md lists the fields.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM roan

#if !defined(ROAN_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ROAN_TRACE_H

#include <linux/tracepoint.h>
#include "base/base.h"
#include "base/rx_ctx.h"

/* A work request was copied out of its ring. @verr: enum roan_vendor_err if it was refused; 0: accepted. */
TRACE_EVENT(roan_wqe_fetch,
	TP_PROTO(const struct roan_qp *qp, u64 wr_id, u8 opcode, u32 len, u32 verr),
	TP_ARGS(qp, wr_id, opcode, len, verr),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, len)
		__field(u32, verr)
		__field(u8, opcode)
	),
	TP_fast_assign(
		__entry->wr_id = wr_id;
		__entry->qpn = qp->ib.qp_num;
		__entry->len = len;
		__entry->verr = verr;
		__entry->opcode = opcode;
	),
	TP_printk("qpn=%u wr_id=%#llx wr_opcode=%u len=%u verr=%u",
		  __entry->qpn, __entry->wr_id, __entry->opcode, __entry->len, __entry->verr)
);

/* A packet was added to an outgoing skb. @len: payload bytes. */
TRACE_EVENT(roan_pkt_tx,
	TP_PROTO(const struct roan_qp *qp, const struct roan_pkt *pkt, u32 len, bool resend),
	TP_ARGS(qp, pkt, len, resend),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, dqpn)
		__field(u32, psn)
		__field(u32, len)
		__field(u8, opcode)
		__field(u8, syndrome)
		__field(bool, ackreq)
		__field(bool, resend)
	),
	TP_fast_assign(
		__entry->qpn = qp->ib.qp_num;
		__entry->dqpn = pkt->qpn;
		__entry->psn = pkt->psn;
		__entry->len = len;
		__entry->opcode = pkt->opcode;
		__entry->syndrome = pkt->syndrome;
		__entry->ackreq = pkt->ackreq;
		__entry->resend = resend;
	),
	TP_printk("qpn=%u dqpn=%u opcode=%#x psn=%u len=%u syndrome=%#x ackreq=%d resend=%d",
		  __entry->qpn, __entry->dqpn, __entry->opcode, __entry->psn, __entry->len, __entry->syndrome,
		  __entry->ackreq, __entry->resend)
);

/* The responder decided about a request. @verdict: enum roan_verdict. */
TRACE_EVENT(roan_rx_verdict,
	TP_PROTO(const struct roan_qp *qp, const struct roan_pkt *pkt, u32 verdict),
	TP_ARGS(qp, pkt, verdict),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, epsn)
		__field(u32, verdict)
		__field(u8, opcode)
	),
	TP_fast_assign(
		__entry->qpn = qp->ib.qp_num;
		__entry->psn = pkt->psn;
		__entry->epsn = qp->rq.resp.epsn;
		__entry->verdict = verdict;
		__entry->opcode = pkt->opcode;
	),
	TP_printk("qpn=%u opcode=%#x psn=%u epsn=%u verdict=%u",
		  __entry->qpn, __entry->opcode, __entry->psn, __entry->epsn, __entry->verdict)
);

/* A request from @saddr was refused because of the key it names. @verr: enum roan_vendor_err. */
TRACE_EVENT(roan_key_refused,
	TP_PROTO(const struct roan_qp *qp, const union ib_gid *saddr, u32 key, u32 psn, u32 verr),
	TP_ARGS(qp, saddr, key, psn, verr),
	TP_STRUCT__entry(
		__array(u8, saddr, 16)
		__field(u32, qpn)
		__field(u32, key)
		__field(u32, psn)
		__field(u32, verr)
	),
	TP_fast_assign(
		memcpy(__entry->saddr, saddr->raw, sizeof(__entry->saddr));
		__entry->qpn = qp->ib.qp_num;
		__entry->key = key;
		__entry->psn = psn;
		__entry->verr = verr;
	),
	TP_printk("qpn=%u saddr=%pI6c key=%#x psn=%u verr=%u",
		  __entry->qpn, __entry->saddr, __entry->key, __entry->psn, __entry->verr)
);

/*
 * A packet of @saddr was refused: @why is its counter. @qpn: the QP that it names, 0 if that was not read. @ifindex:
 * the interface it came by, 0 if it waited for a page fault.
 */
TRACE_EVENT(roan_pkt_refused,
	TP_PROTO(const struct roan_rx_ctx *rx, u32 qpn, enum roan_counter why),
	TP_ARGS(rx, qpn, why),
	TP_STRUCT__entry(
		__array(u8, saddr, 16)
		__array(char, reason, 24)
		__field(u32, qpn)
		__field(int, ifindex)
	),
	TP_fast_assign(
		memcpy(__entry->saddr, rx->saddr.raw, sizeof(__entry->saddr));
		strscpy(__entry->reason, roan_counter_name(why), sizeof(__entry->reason));
		__entry->qpn = qpn;
		__entry->ifindex = rx->in ? rx->in->ifindex : 0;
	),
	TP_printk("reason=%s saddr=%pI6c qpn=%u ifindex=%d",
		  __entry->reason, __entry->saddr, __entry->qpn, __entry->ifindex)
);

/* A memory region was registered, or was not: @err. @kind: enum roan_mr_kind, @access: enum ib_access_flags. */
TRACE_EVENT(roan_mr_reg,
	TP_PROTO(const struct roan_dev *dev, u32 key, u32 kind, u64 iova, u64 length, u32 access, int err),
	TP_ARGS(dev, key, kind, iova, length, access, err),
	TP_STRUCT__entry(
		__field(u64, iova)
		__field(u64, length)
		__field(int, ifindex)
		__field(u32, key)
		__field(u32, kind)
		__field(u32, access)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->iova = iova;
		__entry->length = length;
		__entry->ifindex = dev->ndev->ifindex;
		__entry->key = key;
		__entry->kind = kind;
		__entry->access = access;
		__entry->err = err;
	),
	TP_printk("ifindex=%d key=%#x kind=%u iova=%#llx length=%llu access=%#x err=%d",
		  __entry->ifindex, __entry->key, __entry->kind, __entry->iova, __entry->length, __entry->access,
		  __entry->err)
);

/* A packet with a correct ICRC reached its QP. */
TRACE_EVENT(roan_pkt_rx,
	TP_PROTO(const struct roan_qp *qp, const struct roan_pkt *pkt),
	TP_ARGS(qp, pkt),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, len)
		__field(u8, opcode)
		__field(u8, syndrome)
	),
	TP_fast_assign(
		__entry->qpn = qp->ib.qp_num;
		__entry->psn = pkt->psn;
		__entry->len = pkt->payload_len;
		__entry->opcode = pkt->opcode;
		__entry->syndrome = pkt->syndrome;
	),
	TP_printk("qpn=%u opcode=%#x psn=%u len=%u syndrome=%#x",
		  __entry->qpn, __entry->opcode, __entry->psn, __entry->len, __entry->syndrome)
);

/* A completion is written. @opcode as in the CQE. */
TRACE_EVENT(roan_complete,
	TP_PROTO(const struct roan_qp *qp, u64 wr_id, u8 opcode, u8 status),
	TP_ARGS(qp, wr_id, opcode, status),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u8, opcode)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->wr_id = wr_id;
		__entry->qpn = qp->ib.qp_num;
		__entry->opcode = opcode;
		__entry->status = status;
	),
	TP_printk("qpn=%u wr_id=%#llx wc_opcode=%#x status=%u",
		  __entry->qpn, __entry->wr_id, __entry->opcode, __entry->status)
);

/* The retransmission timer fired: sending restarts at @psn. @left: retries left. */
TRACE_EVENT(roan_retry,
	TP_PROTO(const struct roan_qp *qp, u32 psn, u8 left),
	TP_ARGS(qp, psn, left),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, psn)
		__field(u8, left)
	),
	TP_fast_assign(
		__entry->qpn = qp->ib.qp_num;
		__entry->psn = psn;
		__entry->left = left;
	),
	TP_printk("qpn=%u psn=%u retries_left=%u", __entry->qpn, __entry->psn, __entry->left)
);

/* The rate or window of a QP changed. @rate: bit/s, @window: bytes; 0: unlimited. */
TRACE_EVENT(roan_rate,
	TP_PROTO(const struct roan_qp *qp, u64 rate, u64 window, u32 cnps),
	TP_ARGS(qp, rate, window, cnps),
	TP_STRUCT__entry(
		__field(u64, rate)
		__field(u64, window)
		__field(u32, qpn)
		__field(u32, cnps)
	),
	TP_fast_assign(
		__entry->rate = rate;
		__entry->window = window;
		__entry->qpn = qp->ib.qp_num;
		__entry->cnps = cnps;
	),
	TP_printk("qpn=%u rate=%llu window=%llu cnps=%u", __entry->qpn, __entry->rate, __entry->window, __entry->cnps)
);

/* A CNP. @out: true: sent to @peer_qpn, for a packet received with CE; false: received. */
TRACE_EVENT(roan_cnp,
	TP_PROTO(const struct roan_qp *qp, u32 peer_qpn, bool out),
	TP_ARGS(qp, peer_qpn, out),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, peer_qpn)
		__field(bool, out)
	),
	TP_fast_assign(
		__entry->qpn = qp->ib.qp_num;
		__entry->peer_qpn = peer_qpn;
		__entry->out = out;
	),
	TP_printk("qpn=%u peer_qpn=%u out=%d", __entry->qpn, __entry->peer_qpn, __entry->out)
);

/* A pause frame was received for this priority: @ns; 0: XON. @event: enum roan_pfc_rx_event. */
TRACE_EVENT(roan_pfc_rx,
	TP_PROTO(const struct roan_dev *dev, u32 prio, u64 ns, u32 event),
	TP_ARGS(dev, prio, ns, event),
	TP_STRUCT__entry(
		__field(u64, ns)
		__field(int, ifindex)
		__field(u32, prio)
		__field(u32, event)
	),
	TP_fast_assign(
		__entry->ns = ns;
		__entry->ifindex = dev->ndev->ifindex;
		__entry->prio = prio;
		__entry->event = event;
	),
	TP_printk("ifindex=%d prio=%u ns=%llu event=%u", __entry->ifindex, __entry->prio, __entry->ns, __entry->event)
);

/* A pause frame is sent for this priority, of which @backlog bytes are queued. @what: enum roan_pfc_tx_action. */
TRACE_EVENT(roan_pfc_tx,
	TP_PROTO(const struct roan_dev *dev, u32 prio, u64 backlog, u32 what),
	TP_ARGS(dev, prio, backlog, what),
	TP_STRUCT__entry(
		__field(u64, backlog)
		__field(int, ifindex)
		__field(u32, prio)
		__field(u32, what)
	),
	TP_fast_assign(
		__entry->backlog = backlog;
		__entry->ifindex = dev->ndev->ifindex;
		__entry->prio = prio;
		__entry->what = what;
	),
	TP_printk("ifindex=%d prio=%u backlog=%llu what=%u",
		  __entry->ifindex, __entry->prio, __entry->backlog, __entry->what)
);

/* A QP changed its state. enum ib_qp_state, before and after. */
TRACE_EVENT(roan_qp_state,
	TP_PROTO(const struct roan_qp *qp, u32 from, u32 to),
	TP_ARGS(qp, from, to),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, from)
		__field(u32, to)
	),
	TP_fast_assign(
		__entry->qpn = qp->ib.qp_num;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("qpn=%u from=%u to=%u", __entry->qpn, __entry->from, __entry->to)
);

#endif /* ROAN_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH base
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
