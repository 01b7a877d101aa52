// SPDX-License-Identifier: GPL-2.0
/*
 * Requests whose R_Key is refused: the tracepoint, and for UC the limit of guesses (core/transport/key_limit.h). Does
 * not check keys (mem/mr_access.c) and does not refuse the request (rx_request.c).
 */
#include "base/base.h"
#include "base/trace.h"
#include "rx/rx.h"

/* The key that the refused packet names, or for a later packet of a WRITE the key that its first packet named. */
static u32 refused_key(const struct roan_qp *qp, const struct roan_pkt *pkt)
{
	if (pkt->info->ext == ROAN_EXT_INV)
		return pkt->inv_rkey;
	return roan_seg_starts(pkt->info->seg) ? pkt->rkey : qp->rq.resp.write_rkey;
}

void roan_rx_key_refused(struct roan_qp *qp, const struct roan_rx_ctx *rx, u32 verr)
{
	trace_roan_key_refused(qp, &rx->saddr, refused_key(qp, &rx->pkt), rx->pkt.psn, verr);
	if (qp->transport == ROAN_TP_UC)
		roan_key_limit_refused(&qp->rq.key_limit, rx->pkt.psn, ktime_get_ns());
}

bool roan_rx_key_blocked(struct roan_qp *qp, const struct roan_rx_ctx *rx)
{
	if (!roan_key_limit_blocks(&qp->rq.key_limit, rx->pkt.psn, ktime_get_ns()))
		return false;
	roan_count(qp->dev, rx_key_limit);
	roan_responder_nak(&qp->rq.resp, ROAN_NAK_REMOTE_ACCESS);	/* UC: drops the rest of the message */
	return true;
}
