// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the responder: sequences of requests, responses, NAKs and page faults from fuzz bytes, eight bytes per step.
 * PSNs stay near the expected one, so that interesting cases are frequent. Wire bytes are fuzzed in wire_fuzz.c.
 */
#include "core/transport/responder.h"

#define MUST(c)	do { if (!(c)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void execute(struct roan_responder *r, const struct roan_pkt *pkt, const struct roan_request *exec, u8 how)
{
	u32 epsn = r->epsn, npsn = 1;

	MUST(exec->msg_len <= 1u << 31);
	if ((how & 15) == 1) {
		roan_responder_rnr(r, how >> 4);
		npsn = 0;
	} else if ((how & 15) == 2) {
		roan_responder_nak(r, ROAN_NAK_REMOTE_ACCESS);
		npsn = 0;
	} else if (roan_op_needs_response(pkt->info->op)) {
		if (pkt->info->op == ROAN_OP_READ)
			npsn = max(1u, DIV_ROUND_UP(pkt->dma_len, 1u << r->cfg.mtu_shift));
		roan_responder_done_op(r, pkt, 1);
	} else {
		roan_responder_done(r, pkt);
	}
	MUST(r->epsn == psn_add(epsn, npsn));
}

static void answer(struct roan_responder *r, u32 budget, bool fails, bool absent)
{
	struct roan_response a;

	while (budget-- && roan_responder_next(r, ROAN_AETH_UNLIMITED, &a)) {
		const struct roan_opcode *info = roan_opcode(a.opcode);

		MUST(roan_op_is_response(info->op));
		MUST(psn_diff(a.psn, r->epsn) <= 0);
		MUST(a.len <= 1u << r->cfg.mtu_shift);
		if (info->op == ROAN_OP_SACK) {
			struct roan_sack sack;

			MUST(r->cfg.sack && r->early && !r->failed);
			roan_responder_fill_sack(r, &sack);
			MUST(psn_diff(sack.highest_psn, a.psn) > 0 && a.psn == r->epsn);
		}
		if (fails && info->op == ROAN_OP_READ_RESP) {
			bool first = !r->resp_res[a.resp_res].sent_once, active = r->n_pending;

			MUST(roan_responder_fail(r, &a, ROAN_NAK_REMOTE_ACCESS) == first);
			MUST(first ? r->failed && !r->n_pending : active);
			return;
		}
		if (absent && info->op == ROAN_OP_READ_RESP) {
			bool first = !r->resp_res[a.resp_res].sent_once;

			roan_responder_block(r, &a, 0);
			if (roan_responder_unblocked(r)) {
				MUST(!first);
				continue;
			}
			MUST(r->n_pending);
			if (roan_responder_defer_rnr(r, budget * 10000000ull, &a))
				MUST((a.syndrome & ROAN_AETH_KIND_MASK) == ROAN_AETH_RNR && psn_diff(a.psn, r->epsn) < 0);
			return;
		}
		roan_responder_sent(r, &a);
	}
}

static void check(const struct roan_responder *r)
{
	u32 active = 0;

	MUST(r->epsn <= PSN_MASK && r->msn <= PSN_MASK);
	for (u32 i = 0; i < r->cfg.max_dest_rd_atomic; i++) {
		const struct roan_resp_res *e = &r->resp_res[i];

		active += e->pending;
		MUST(e->first_pkt <= e->next_pkt && e->next_pkt <= e->end_pkt && e->end_pkt <= e->npkts);
		MUST(!e->pending || e->next_pkt < e->end_pkt);
		MUST(e->npkts < 1u << 23);
	}
	MUST(active == r->n_pending);
	for (u32 at = r->resp_res_next; active && at != r->oldest_pending; at = (at + 1) % r->cfg.max_dest_rd_atomic)
		MUST(!r->resp_res[at].pending);
	MUST(!active || r->resp_res[r->oldest_pending].pending);
	MUST(r->cfg.transport == ROAN_TP_RC || (!r->nak_due && !r->n_pending && !r->early));
	MUST(!r->early || psn_diff(r->early_psn, r->epsn) >= 0);
	MUST(r->reorder.wait_ns <= NSEC_PER_MSEC && (!r->reorder.nak_waits || r->reorder.gap));
	for (u32 i = 0; i < ROAN_EARLY_WINDOW && !r->early; i += 32)
		MUST(!r->early_set->bits[i / 32]);
}

/* At most a millisecond, in which no NAK is sent, and then it is due. */
static void check_wait(struct roan_responder *r, u64 now)
{
	bool due = r->nak_due;
	u64 at = roan_responder_timer(r, now);

	MUST(!at || (at > now && at <= now + NSEC_PER_MSEC && r->nak_due == due));
	MUST(at || (!r->reorder.nak_waits && (r->nak_sent || r->failed || r->epsn_waits)));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct roan_resp_res resp_res[16];
	static struct roan_responder r;
	static struct roan_early_set early_set;
	struct roan_responder_cfg cfg;
	struct roan_request exec;
	enum roan_verdict verdict;
	u64 now = NSEC_PER_SEC;

	if (size < 2)
		return 0;
	cfg = (struct roan_responder_cfg) {
		.transport = data[0] & 1 ? ROAN_TP_UC : ROAN_TP_RC,
		.mtu_shift = 8 + (data[0] >> 5) % 5,
		.max_dest_rd_atomic = data[1] % 20,
		.rq_psn = PSN_MASK - 3,
		.sack = data[0] & 16,
	};
	r.resp_res = resp_res;
	r.early_set = &early_set;
	r.max_resp_res = ARRAY_SIZE(resp_res);
	roan_responder_reset(&r, &cfg);

	for (size_t at = 2; at + 8 <= size; at += 8) {
		const u8 *d = data + at;
		u32 mtu = 1u << cfg.mtu_shift, epsn = r.epsn;
		static const u16 lens[] = { 0, 8, 100, 0xffff };
		struct roan_pkt pkt = {
			.opcode = d[0], .info = roan_opcode(d[0]), .psn = psn_add(r.epsn, (s32)(s8)d[1] / 4),
			.payload_len = lens[d[2] & 3], .dma_len = d[3] == 255 ? 0x80000001u : d[3] * mtu / 4,
			.va = d[4] * mtu / 4, .rkey = d[5] & 1, .ackreq = d[5] & 2,
			.ext_version = d[5] >> 2 & 1,
		};

		if (pkt.payload_len == 0xffff)
			pkt.payload_len = mtu;
		if (pkt.info->op == ROAN_OP_NONE)
			continue;
		verdict = roan_responder_admit(&r, &pkt, &exec);
		if (verdict == ROAN_V_EXECUTE)
			execute(&r, &pkt, &exec, d[6]);
		else
			MUST(r.epsn == epsn || cfg.transport == ROAN_TP_UC);
		if ((verdict == ROAN_V_GAP || verdict == ROAN_V_EARLY) && d[6] & 1 && roan_responder_may_keep(&r, &pkt))
			roan_responder_kept(&r, &pkt);
		now += (u64)d[6] << (d[5] >> 4);
		if (verdict == ROAN_V_DUPLICATE)
			roan_responder_duplicate(&r, &pkt, now);
		if (verdict == ROAN_V_GAP)
			roan_responder_gap(&r, now);
		if (d[5] & 24)
			roan_responder_next_gap(&r, d[5] & 8, now - d[4], now);
		if (roan_responder_nak_waits(&r))
			check_wait(&r, now);
		check(&r);
		answer(&r, d[7] & 31, d[7] >> 5 == 7, d[7] >> 5 == 6);
		check(&r);
	}
	return 0;
}
