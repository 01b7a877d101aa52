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
/* While requests are kept, those of @npsn PSNs from @psn on, kept or not, are executed. epsn has advanced. */
void roan_resp_kept_executed(struct roan_responder *resp, u32 psn, u32 npsn);

/* The NAK for @psn was sent, because of a gap. */
void roan_resp_reorder_nak_sent(struct roan_responder *resp, u32 psn);

#endif /* ROAN_RESPONDER_PRIV_H */
