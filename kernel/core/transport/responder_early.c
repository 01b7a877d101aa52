// SPDX-License-Identifier: GPL-2.0
/*
 * The requests that are kept after a gap, and the SACK that reports them. Where they are kept, and how many, is the
 * driver half's decision.
 */
#include "core/transport/responder_priv.h"

bool roan_resp_is_kept(const struct roan_responder *resp, u32 psn)
{
	return resp->early && psn_diff(psn, resp->epsn) < ROAN_EARLY_WINDOW &&
	       psn_set_has(resp->early_set->bits, ROAN_EARLY_WINDOW, psn);
}

bool roan_resp_may_sack(const struct roan_responder *resp)
{
	return resp->early && psn_diff(resp->early_psn, resp->epsn) > 0 && !resp->epsn_waits && resp->cfg.sack &&
	       resp->peer_supports_sack && !resp->failed &&
	       !(resp->nak_sent && roan_resp_nak_is_rnr(resp));
}

#define MAX_UNREPORTED	16	/* soon enough to tell the requester what became of copies, and what was late */

void roan_resp_unreported(struct roan_responder *resp)
{
	if (roan_resp_may_sack(resp) && ++resp->early_unreported >= MAX_UNREPORTED)
		resp->ack_due = true;
}

/* A SACK is due if the packet begins or ends a gap, or requests a response. */
void roan_responder_kept(struct roan_responder *resp, const struct roan_pkt *pkt)
{
	bool first = !resp->early;
	s32 behind = first ? 0 : psn_diff(pkt->psn, resp->early_psn);

	if (first || behind > 0)
		resp->early_psn = pkt->psn;
	resp->early = true;
	psn_set_add(resp->early_set->bits, ROAN_EARLY_WINDOW, pkt->psn);
	if (behind == 1 && !pkt->ackreq)
		roan_resp_unreported(resp);
	else
		resp->ack_due |= roan_resp_may_sack(resp);
}

bool roan_responder_next_gap(struct roan_responder *resp)
{
	if (!resp->early || resp->epsn_waits || resp->nak_sent || resp->failed)
		return false;
	resp->n_out_of_sequence++;
	roan_resp_sequence_nak(resp);
	return true;
}

void roan_responder_fill_sack(const struct roan_responder *resp, struct roan_sack *sack)
{
	u32 i, psn = psn_add(resp->epsn, 1);

	*sack = (struct roan_sack) {
		.needless = resp->needless_copies,
		.highest_psn = resp->early_psn,
	};
	for (i = 0; i < ROAN_SACK_PSNS && psn_diff(psn, resp->early_psn) <= 0; i++, psn = psn_add(psn, 1))
		if (psn_set_has(resp->early_set->bits, ROAN_EARLY_WINDOW, psn))
			sack->received[i / 32] |= 1u << (i % 32);
}
