/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by responder.c and responder_early.c only. */
#ifndef ROAN_RESPONDER_PRIV_H
#define ROAN_RESPONDER_PRIV_H

#include "core/transport/responder.h"

/* Of the last NAK: it is an RNR NAK. */
static inline bool roan_resp_nak_is_rnr(const struct roan_responder *resp)
{
	return (resp->nak_syndrome & ROAN_AETH_KIND_MASK) == ROAN_AETH_RNR;
}

/*
 * The PSN that an ACK names: the last one executed. To a standard peer that of the last SEND or WRITE: it takes an ACK
 * with a READ's or atomic's PSN for the response, which may be lost (rdma_rxe then completes a READ without its data).
 * A roan peer requests the response again.
 */
static inline u32 roan_resp_ack_psn(const struct roan_responder *resp)
{
	bool roan_peer = resp->cfg.sack && resp->peer_supports_sack;

	return psn_add(resp->epsn, -1u - (roan_peer ? 0 : resp->n_resp_psns));
}

/*
 * The AETH credits of a response with @msn, if those at the present MSN are @credits. MSN and credits together are the
 * receives posted so far (9.7.7.2), also if requests behind a READ are executed before its responses leave.
 */
static inline u8 roan_resp_credits(const struct roan_responder *resp, u8 credits, u32 msn)
{
	if (credits == ROAN_AETH_UNLIMITED || msn == resp->msn)
		return credits;
	return roan_credit_code(roan_credits_of(credits) + ((resp->msn - msn) & PSN_MASK));
}

static inline void roan_resp_sequence_nak(struct roan_responder *resp)
{
	resp->nak_sent = true;
	resp->nak_due = true;
	resp->nak_syndrome = ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE;
	resp->nak_psn = resp->epsn;
}

/* The request with @psn, beyond the expected one, is kept. */
bool roan_resp_is_kept(const struct roan_responder *resp, u32 psn);
/*
 * What is due may be said by a SACK: a request is missing, and not only waiting. After an RNR NAK the requester repeats
 * everything, whatever it learns from one.
 */
bool roan_resp_may_sack(const struct roan_responder *resp);
/* @pkt is kept, and came again. */
void roan_resp_kept_again(struct roan_responder *resp, const struct roan_pkt *pkt);
/* While requests are kept, those of @npsn PSNs from @psn on, kept or not, are executed. epsn has advanced. */
void roan_resp_kept_executed(struct roan_responder *resp, u32 psn, u32 npsn);

/* The NAK for @psn was sent, because of a gap. */
void roan_resp_reorder_nak_sent(struct roan_responder *resp, u32 psn);

#endif /* ROAN_RESPONDER_PRIV_H */
