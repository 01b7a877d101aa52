// SPDX-License-Identifier: GPL-2.0
/*
 * Forged packets. Most are harmless by a rule, as they name a PSN that is not the next one, or say what only changes when
 * packets are sent again. In some runs one packet with the right PSN violates the protocol: then nothing of it may be
 * executed, and the QP fails.
 */
#include "sim.h"

/* A request that is long past, or too far ahead to be kept. */
static void forge_request(struct sim *sim, struct side *s, struct roan_pkt *pkt)
{
	static const u8 opcodes[] = { 0x00, 0x01, 0x02, 0x04, 0x06, 0x07, 0x0a, 0x0b, 0x0c, 0x13, 0x14, 0x17, 0x1c, 0x1d };
	static const u8 payload[8] = { 0xee, 0xee, 0xee, 0xee };
	const struct roan_resp_res *res = s->resp.resp_res ? &s->resp.resp_res[sim_below(sim, s->n_resp_res)] : NULL;
	struct flight f = { .payload = payload };
	bool again = res && res->op != ROAN_OP_NONE && sim_below(sim, 2);

	pkt->opcode = opcodes[sim_below(sim, ARRAY_SIZE(opcodes))];
	if (again && sim_below(sim, 2))
		pkt->opcode = roan_opcode_of(ROAN_TP_RC, res->op, ROAN_SEG_ONLY, ROAN_EXT_NONE);
	pkt->info = roan_opcode(pkt->opcode);
	pkt->payload_len = pkt->info->payload ? 8 : 0;
	pkt->ackreq = sim_below(sim, 2);
	pkt->rkey = MODEL_RKEY + sim_below(sim, 2);
	pkt->va = MODEL_VA + sim_below(sim, 64);
	pkt->dma_len = sim_below(sim, 2) ? 8 : sim_below(sim, 100000);
	/* A READ that was: only its true address may be read again, else the responses fit no request. */
	if (pkt->info->op == ROAN_OP_READ)
		pkt->rkey = MODEL_RKEY + 1;
	if (again)
		pkt->psn = psn_add(res->first_psn, sim_below(sim, res->npkts));
	else if (sim_below(sim, 2))
		pkt->psn = psn_add(s->resp.epsn, -1 - sim_below(sim, sim_below(sim, 2) ? 40 : 1 << 22));
	else
		pkt->psn = psn_add(s->resp.epsn, ROAN_EARLY_WINDOW + sim_below(sim, 1 << 22));
	sim_take_request(sim, s, pkt, &f);
}

/* What a response says that acknowledges nothing, but may cause packets to be sent again or later. */
static void forge_response_of_oldest(struct sim *sim, struct side *s, struct roan_pkt *pkt)
{
	bool rnr_allowed = s->req.cfg.rnr_retry == 7 && !s->gives_up;
	s32 sent = psn_diff(s->req.end_psn, s->req.una_psn);
	u32 bits, i;

	pkt->opcode = 0x11;
	pkt->psn = s->req.una_psn;
	switch (sim_below(sim, rnr_allowed ? 4 : 2)) {
	case 0:
		pkt->syndrome = ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE;
		break;
	case 1:
		if (sent < 2)
			return;
		pkt->opcode = ROAN_OPCODE_SACK;
		pkt->syndrome = ROAN_AETH_UNLIMITED;
		pkt->sack.needless = sim_below(sim, 256);
		bits = 1 + sim_below(sim, sent - 1);
		pkt->sack.highest_psn = psn_add(pkt->psn, bits);
		for (i = 0; i < min_t(u32, bits, ROAN_SACK_PSNS); i++)
			pkt->sack.received[i / 32] |= (u32)sim_below(sim, 2) << i % 32;
		break;
	case 2:
		pkt->syndrome = ROAN_AETH_RNR | (1 + sim_below(sim, 8));
		break;
	default:
		pkt->psn = psn_add(s->req.una_psn, -1u);
		pkt->syndrome = ROAN_AETH_ACK | sim_below(sim, 32);
		pkt->msn = sim_below(sim, 1 << 24);
		break;
	}
	pkt->info = roan_opcode(pkt->opcode);
	sim_take_response(sim, s, pkt, NULL);
}

/* The next request, but in the wrong place of a message, or with a wrong length or address. */
static void violate_request(struct sim *sim, struct side *s, struct roan_pkt *pkt)
{
	static const u8 starts[] = { 0x00, 0x04, 0x06, 0x0a, 0x0c, 0x14, 0x1c, 0x1d }, others[] = { 0x01, 0x02, 0x07, 0x08 };
	u32 mtu = 1 << sim->mtu_shift;
	bool in_message = s->resp.msg_op != ROAN_OP_NONE;
	u8 payload[4096 + 4] = { 0xee };
	struct flight f = { .payload = payload };

	pkt->psn = s->resp.epsn;
	pkt->rkey = MODEL_RKEY;
	pkt->va = MODEL_VA;
	switch (sim_below(sim, 3)) {
	case 0:
		if (!in_message)
			pkt->opcode = others[sim_below(sim, ARRAY_SIZE(others))];
		else if (sim_below(sim, 2))
			pkt->opcode = starts[sim_below(sim, ARRAY_SIZE(starts))];
		else
			pkt->opcode = s->resp.msg_op == ROAN_OP_WRITE ? 0x01 : 0x07;
		pkt->payload_len = mtu;
		break;
	case 1:		/* too long, or too short for what is not the last packet */
		pkt->opcode = (in_message ? 0x01 : 0x00) + (in_message && s->resp.msg_op == ROAN_OP_WRITE ? 6 : 0);
		pkt->payload_len = sim_below(sim, 2) ? mtu + 4 : sim_below(sim, mtu);
		break;
	default:
		if (in_message)
			return;
		/* WRITE of other than its bytes; misaligned atomic */
		pkt->opcode = sim_below(sim, 2) ? 0x14 : sim_below(sim, 2) ? 0x06 : 0x0a;
		pkt->payload_len = pkt->opcode == 0x06 ? mtu : pkt->opcode == 0x0a ? 8 : 0;
		pkt->dma_len = pkt->opcode == 0x06 ? mtu - 1 : 9 - sim_below(sim, 2) * 2;
		pkt->va += pkt->opcode == 0x14;
		break;
	}
	pkt->info = roan_opcode(pkt->opcode);
	s->violated = true;
	sim_take_request(sim, s, pkt, &f);
	SIM_CHECK(sim, s->resp.failed, "side %u accepted forged opcode %02x with %u bytes", s->id, pkt->opcode, pkt->payload_len);
}

/* The response to the oldest request, a READ or atomic, but of another kind or length. */
static void violate_response(struct sim *sim, struct side *s, struct roan_pkt *pkt)
{
	const struct roan_tx_wqe *w = &s->work[s->req.una & (SIM_QUEUE - 1)];
	u32 index, offset;

	if (!roan_requester_outstanding(&s->req) || s->sink_fault_until || s->req.una == s->req.tail || !w->started ||
	    w->completed || !roan_op_needs_response(w->op))
		return;
	pkt->opcode = w->op == ROAN_OP_READ && sim_below(sim, 2) ? 0x12 : 0x10;
	pkt->info = roan_opcode(pkt->opcode);
	pkt->psn = s->req.una_psn;
	pkt->syndrome = ROAN_AETH_UNLIMITED;
	pkt->payload_len = (1 << sim->mtu_shift) + 4;
	s->misled = true;
	SIM_CHECK(sim, roan_requester_response(&s->req, pkt, sim->now, &index, &offset) == ROAN_RESP_FAILED,
		  "side %u accepted a forged response", s->id);
}

/* Once a run, with luck. */
static void violate(struct sim *sim, struct side *s, struct roan_pkt *pkt)
{
	if (s->resp.failed || s->req.failed || s->violated || s->misled || s->source_fault_until)
		return;
	if (sim_below(sim, 2))
		violate_request(sim, s, pkt);
	else
		violate_response(sim, s, pkt);
}

/* A response to what was acknowledged, or never sent. */
static void forge_stray_response(struct sim *sim, struct side *s, struct roan_pkt *pkt)
{
	static const u8 opcodes[] = { 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x11, 0x12, ROAN_OPCODE_SACK };

	pkt->opcode = opcodes[sim_below(sim, ARRAY_SIZE(opcodes))];
	pkt->info = roan_opcode(pkt->opcode);
	pkt->syndrome = sim_below(sim, 256);
	pkt->msn = sim_below(sim, 1 << 24);
	if (sim_below(sim, 2))
		pkt->psn = psn_add(s->req.una_psn, -2 - sim_below(sim, sim_below(sim, 2) ? 40 : 1 << 22));
	else
		pkt->psn = psn_add(s->req.end_psn, sim_below(sim, sim_below(sim, 2) ? 40 : 1 << 22));
	pkt->sack.highest_psn = psn_add(pkt->psn, sim_below(sim, 300));
	pkt->sack.received[sim_below(sim, ROAN_SACK_WORDS)] = sim_below(sim, 1 << 16);
	sim_take_response(sim, s, pkt, NULL);
}

void sim_forge(struct sim *sim, struct side *s)
{
	struct roan_pkt pkt = { .ext_version = ROAN_EXT_VERSION * sim_below(sim, 2) };

	sim_totals.forged++;
	if (sim->violations && sim_one_in(sim, 5))
		violate(sim, s, &pkt);
	else if (sim_below(sim, 2))
		forge_request(sim, s, &pkt);
	else if (sim_below(sim, 2))
		forge_stray_response(sim, s, &pkt);
	else if (roan_requester_outstanding(&s->req) && !s->req.failed)
		forge_response_of_oldest(sim, s, &pkt);
}

