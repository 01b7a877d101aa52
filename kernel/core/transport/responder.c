// SPDX-License-Identifier: GPL-2.0
/*
 * The responder (IBTA vol. 1, 9.7.4, 9.7.5; UC: 9.8.2): admission of requests, state after an executed request, and the
 * sequence of responses. responder_early.c has what is kept after a gap, and when the NAK is due. Does not execute
 * requests and does not access memory.
 */
#include "core/transport/responder_priv.h"

void roan_responder_reset(struct roan_responder *resp, const struct roan_responder_cfg *cfg)
{
	struct roan_resp_res *resp_res = resp->resp_res;
	struct roan_early_set *early_set = resp->early_set;
	u32 max_resp_res = resp->max_resp_res;

	memset(resp, 0, sizeof(*resp));
	resp->cfg = *cfg;
	resp->resp_res = resp_res;
	resp->max_resp_res = max_resp_res;
	resp->early_set = early_set;
	resp->cfg.max_dest_rd_atomic = min_t(u32, cfg->max_dest_rd_atomic, max_resp_res);
	resp->epsn = cfg->rq_psn;
	if (resp_res)
		memset(resp_res, 0, max_resp_res * sizeof(*resp_res));
	if (early_set)
		memset(early_set, 0, sizeof(*early_set));
}

/* Position of entry @at counted from the oldest: the ring is in PSN order, and resp_res_next is its oldest entry. */
static u32 age_order(const struct roan_responder *resp, u32 at)
{
	u32 oldest = resp->resp_res_next;

	return at >= oldest ? at - oldest : at + resp->cfg.max_dest_rd_atomic - oldest;
}

struct roan_resp_res *roan_responder_set_resources(struct roan_responder *resp, struct roan_resp_res *resp_res, u32 n)
{
	struct roan_resp_res *old = resp->resp_res;
	u32 had = resp->cfg.max_dest_rd_atomic, i;

	for (i = 0; i < had; i++)
		resp_res[i] = old[(resp->resp_res_next + i) % had];		/* oldest first */
	resp->oldest_pending = age_order(resp, resp->oldest_pending);
	resp->resp_res = resp_res;
	resp->resp_res_next = had;
	resp->max_resp_res = n;
	resp->cfg.max_dest_rd_atomic = n;
	return old;
}

static u32 resp_mtu(const struct roan_responder *resp)
{
	return 1u << resp->cfg.mtu_shift;
}

static u32 response_packets(const struct roan_responder *resp, u32 len)
{
	return max(1u, DIV_ROUND_UP(len, resp_mtu(resp)));
}

/* ---- admission ---- */

/* FIRST and ONLY are valid only between messages, MIDDLE and LAST only within one of the same operation (9.7.4.1.3). */
static bool resp_in_sequence(const struct roan_responder *resp, const struct roan_pkt *pkt)
{
	if (roan_seg_starts(pkt->info->seg))
		return resp->msg_op == ROAN_OP_NONE;
	return resp->msg_op == pkt->info->op;
}

/* Every packet but the last has a payload of a full MTU (9.7.4.1.6). */
static bool resp_right_length(const struct roan_responder *resp, const struct roan_pkt *pkt)
{
	switch (pkt->info->seg) {
	case ROAN_SEG_FIRST:
	case ROAN_SEG_MIDDLE:
		return pkt->payload_len == resp_mtu(resp);
	case ROAN_SEG_LAST:
		return pkt->payload_len && pkt->payload_len <= resp_mtu(resp);
	default:
		return pkt->payload_len <= resp_mtu(resp);
	}
}

#define MAX_MESSAGE	0x80000000u

/* A WRITE carries exactly the length in its RETH; no message is longer than 2^31 bytes. */
static bool resp_right_total(const struct roan_responder *resp, const struct roan_pkt *pkt)
{
	bool starts = roan_seg_starts(pkt->info->seg);
	u64 bytes = (starts ? 0 : resp->msg_bytes) + (u64)pkt->payload_len;
	u32 announced = starts ? pkt->dma_len : resp->write_len;

	if (pkt->info->op != ROAN_OP_WRITE)
		return bytes <= MAX_MESSAGE;
	if (announced > MAX_MESSAGE || bytes > announced)
		return false;
	return !roan_seg_ends(pkt->info->seg) || bytes == announced;
}

/*
 * READs, atomics, FLUSHes and ATOMIC_WRITEs need a responder resource. The oldest one cannot be reused while its first
 * responses are pending: the requester exceeds max_dest_rd_atomic. If its responses were sent once, a late duplicate
 * request made it pending again, and it may be reused.
 */
static bool resp_has_resource(const struct roan_responder *resp)
{
	const struct roan_resp_res *oldest;

	if (!resp->cfg.max_dest_rd_atomic)
		return false;
	oldest = &resp->resp_res[resp->resp_res_next];
	return !oldest->pending || oldest->sent_once;
}

static bool resp_valid(const struct roan_responder *resp, const struct roan_pkt *pkt)
{
	if (!resp_in_sequence(resp, pkt))
		return false;
	switch (pkt->info->op) {
	case ROAN_OP_SEND:
	case ROAN_OP_WRITE:
		return resp_right_length(resp, pkt) && resp_right_total(resp, pkt);
	case ROAN_OP_READ:
		return resp_has_resource(resp) && pkt->dma_len <= MAX_MESSAGE;
	case ROAN_OP_CMP_SWAP:
	case ROAN_OP_FETCH_ADD:
		return resp_has_resource(resp) && !(pkt->va & 7);
	case ROAN_OP_ATOMIC_WRITE:
		return resp_has_resource(resp) && !(pkt->va & 7) && pkt->payload_len == 8 && pkt->dma_len == 8;
	case ROAN_OP_FLUSH:
		return resp_has_resource(resp);
	default:
		return false;
	}
}

static void resp_fill_request(const struct roan_responder *resp, const struct roan_pkt *pkt, struct roan_request *exec)
{
	bool starts = roan_seg_starts(pkt->info->seg);
	u32 before = starts ? 0 : resp->msg_bytes;

	*exec = (struct roan_request) {
		.starts = starts,
		.ends = roan_seg_ends(pkt->info->seg),
		.offset = before,
		.va = starts ? pkt->va : resp->write_va + before,
		.rkey = starts ? pkt->rkey : resp->write_rkey,
		.total = pkt->dma_len,
		.msg_len = before + pkt->payload_len,
	};
}

/*
 * Returns the entry whose responses include @psn, or NULL. Newest first: an old entry may have the same PSN from
 * before a wrap.
 */
static struct roan_resp_res *resp_find_resource(struct roan_responder *resp, u32 psn)
{
	u32 n = resp->cfg.max_dest_rd_atomic, i;

	for (i = 1; i <= n; i++) {
		struct roan_resp_res *e = &resp->resp_res[(resp->resp_res_next + n - i) % n];

		if (e->op != ROAN_OP_NONE && psn_within(psn, e->first_psn, e->npkts))
			return e;
	}
	return NULL;
}

/* A repeated entry can be older than all pending ones. */
static void resp_queue_response(struct roan_responder *resp, struct roan_resp_res *e, u32 from, u32 to)
{
	u32 at = e - resp->resp_res;

	if (!resp->n_pending || age_order(resp, at) < age_order(resp, resp->oldest_pending))
		resp->oldest_pending = at;
	resp->n_pending += !e->pending;
	e->pending = true;
	e->first_pkt = from;
	e->next_pkt = from;
	e->end_pkt = to;
}

/* The next pending entry after the oldest one is usually its neighbour. */
static void resp_unqueue_response(struct roan_responder *resp, struct roan_resp_res *e)
{
	u32 at = e - resp->resp_res;

	resp->n_pending -= e->pending;
	e->pending = false;
	if (!resp->n_pending || at != resp->oldest_pending)
		return;
	do {
		if (++at == resp->cfg.max_dest_rd_atomic)
			at = 0;
	} while (!resp->resp_res[at].pending);
	resp->oldest_pending = at;
}

/* True if a repeated READ, or a request for its remainder, lies within the original one (9.7.5.1.4). */
static bool resp_same_read(const struct roan_responder *resp, const struct roan_resp_res *e, const struct roan_pkt *pkt,
			   u32 pos)
{
	u64 skipped = (u64)pos << resp->cfg.mtu_shift;

	if (pkt->rkey != e->rkey || pkt->va != e->va + skipped)
		return false;
	if (skipped + pkt->dma_len == e->len)
		return true;
	/* Shorter than the remainder: whole packets only, as in the original. */
	return skipped + pkt->dma_len < e->len && pkt->dma_len && !(pkt->dma_len & (resp_mtu(resp) - 1));
}

/* A retransmission starts at the oldest missing PSN and continues in PSN order. */
static void resp_note_rerequest(struct roan_responder *resp, u32 psn)
{
	if (!resp->resp_blocked)
		return;
	resp->re_requested = true;
	if (psn_diff(psn, resp->rnr_defer.psn) <= 0)
		resp->skipped = false;
	else if (psn_diff(psn, resp->last_dup_psn) <= 0)
		resp->skipped = true;
	resp->last_dup_psn = psn;
}

static enum roan_verdict resp_duplicate(struct roan_responder *resp, const struct roan_pkt *pkt)
{
	struct roan_resp_res *e;
	u32 pos;

	resp->n_duplicates++;
	resp->needless_copies += pkt->copy && roan_responder_is_near(resp, pkt->psn);
	if (pkt->info->op == ROAN_OP_SEND || pkt->info->op == ROAN_OP_WRITE) {
		resp->ack_due = true;
		resp_note_rerequest(resp, pkt->psn);
		return ROAN_V_DUPLICATE;
	}
	e = resp_find_resource(resp, pkt->psn);
	if (!e || e->op != pkt->info->op)
		return ROAN_V_DROP;
	pos = (pkt->psn - e->first_psn) & PSN_MASK;
	if (e->op == ROAN_OP_READ && !resp_same_read(resp, e, pkt, pos))
		return ROAN_V_DROP;
	resp_note_rerequest(resp, pkt->psn);
	e->sport = pkt->sport;
	resp_queue_response(resp, e, pos, e->op == ROAN_OP_READ ? pos + response_packets(resp, pkt->dma_len) :
			    e->npkts);
	return ROAN_V_DUPLICATE;
}

/*
 * One NAK per gap; after it, or after an RNR NAK, no response until the expected packet comes (9.7.5.2.8). After an RNR
 * NAK the requester repeats everything, so nothing is kept.
 */
static enum roan_verdict resp_gap(struct roan_responder *resp, const struct roan_pkt *pkt)
{
	if (roan_resp_is_kept(resp, pkt->psn)) {
		roan_resp_kept_again(resp, pkt);
		return ROAN_V_DUPLICATE;
	}
	if (resp->nak_sent)
		return roan_resp_nak_is_rnr(resp) ? ROAN_V_DROP : ROAN_V_EARLY;
	if (resp->reorder.nak_waits || (resp->early && resp->epsn_waits))
		return ROAN_V_EARLY;		/* nothing is missing, or it may be late */
	resp->n_out_of_sequence++;
	return ROAN_V_GAP;
}

static void resp_drop_msg(struct roan_responder *resp)
{
	resp->uc_drop_msg = true;
	resp->msg_op = ROAN_OP_NONE;
}

/* UC: any FIRST or ONLY packet resynchronises; a gap loses the message it is in (9.8.2.2). */
static enum roan_verdict resp_admit_uc(struct roan_responder *resp, const struct roan_pkt *pkt,
				       struct roan_request *exec)
{
	if (roan_seg_starts(pkt->info->seg)) {
		resp->epsn = pkt->psn;
		resp->uc_drop_msg = false;
		resp->msg_op = ROAN_OP_NONE;
	} else if (resp->uc_drop_msg || pkt->psn != resp->epsn) {
		resp_drop_msg(resp);
		return ROAN_V_DROP;
	}
	if ((pkt->info->op != ROAN_OP_SEND && pkt->info->op != ROAN_OP_WRITE) || !resp_valid(resp, pkt)) {
		resp_drop_msg(resp);
		return ROAN_V_INVALID;
	}
	resp_fill_request(resp, pkt, exec);
	return ROAN_V_EXECUTE;
}

enum roan_verdict roan_responder_admit(struct roan_responder *resp, const struct roan_pkt *pkt,
				       struct roan_request *exec)
{
	s32 ahead = psn_diff(pkt->psn, resp->epsn);

	if (resp->cfg.transport == ROAN_TP_UC)
		return resp_admit_uc(resp, pkt, exec);
	if (resp->failed)
		return ROAN_V_DROP;
	if (roan_responder_is_near(resp, pkt->psn))
		resp->peer_supports_sack = pkt->ext_version;
	if (ahead < 0)
		return resp_duplicate(resp, pkt);
	if (ahead > 0)
		return resp_gap(resp, pkt);
	if (resp->cfg.denied_ops & BIT(pkt->info->op) || !resp_valid(resp, pkt)) {
		roan_responder_nak(resp, ROAN_NAK_INVALID_REQUEST);
		return ROAN_V_INVALID;
	}
	resp_fill_request(resp, pkt, exec);
	return ROAN_V_EXECUTE;
}

/* ---- state after an executed request ---- */

static void resp_advance(struct roan_responder *resp, u32 npsn)
{
	u32 psn = resp->epsn;

	resp->epsn = psn_add(psn, npsn);
	resp->nak_sent = false;
	if (unlikely(resp->early))
		roan_resp_kept_executed(resp, psn, npsn);
	if (!resp->nak_due)
		return;
	/*
	 * The expected packet arrived before the pending NAK was sent. If packets after it are still missing, a
	 * sequence NAK now names the new expected PSN; an RNR NAK becomes an ACK.
	 */
	if (roan_resp_nak_is_rnr(resp)) {
		resp->nak_due = false;
		resp->ack_due = true;
	} else if (roan_resp_is_kept(resp, resp->epsn)) {
		resp->nak_due = false;		/* roan_responder_next_gap() follows */
	} else {
		resp->nak_psn = resp->epsn;
		resp->nak_sent = true;
	}
}

static void resp_count_msg(struct roan_responder *resp)
{
	resp->msn = psn_add(resp->msn, 1);
}

void roan_responder_done(struct roan_responder *resp, const struct roan_pkt *pkt)
{
	if (roan_seg_starts(pkt->info->seg)) {
		resp->msg_op = pkt->info->op;
		resp->msg_bytes = 0;
		resp->write_va = pkt->va;
		resp->write_rkey = pkt->rkey;
		resp->write_len = pkt->dma_len;
	}
	resp->msg_bytes += pkt->payload_len;
	if (roan_seg_ends(pkt->info->seg)) {
		resp->msg_op = ROAN_OP_NONE;
		resp_count_msg(resp);
	}
	resp->unacked = true;
	if (pkt->ackreq)
		resp->ack_due = true;
	resp->n_resp_psns = 0;
	resp_advance(resp, 1);
}

void roan_responder_done_op(struct roan_responder *resp, const struct roan_pkt *pkt, u64 orig)
{
	struct roan_resp_res *e = &resp->resp_res[resp->resp_res_next];
	u32 len = pkt->info->op == ROAN_OP_READ ? pkt->dma_len : 0;
	u32 npkts = response_packets(resp, len);

	resp_count_msg(resp);
	resp_unqueue_response(resp, e);
	*e = (struct roan_resp_res) {
		.op = pkt->info->op,
		.sport = pkt->sport,
		.first_psn = pkt->psn,
		.npkts = npkts,
		.rkey = pkt->rkey,
		.va = pkt->va,
		.len = len,
		.orig = orig,
		.msn = resp->msn,
	};
	if (++resp->resp_res_next == resp->cfg.max_dest_rd_atomic)
		resp->resp_res_next = 0;
	resp_queue_response(resp, e, 0, npkts);
	resp->n_resp_psns = min(resp->n_resp_psns + npkts, PSN_MASK / 2);
	resp_advance(resp, npkts);
}

void roan_responder_rnr(struct roan_responder *resp, u8 timer_code)
{
	resp->n_rnr++;
	if (resp->cfg.transport != ROAN_TP_RC) {	/* UC and UD have no NAK: the message is lost (9.8.2.2) */
		resp_drop_msg(resp);
		return;
	}
	resp->reorder.copies = true;		/* are to come */
	resp->nak_sent = true;
	resp->nak_due = true;
	resp->nak_syndrome = ROAN_AETH_RNR | (timer_code & ROAN_AETH_VALUE_MASK);
	resp->nak_psn = resp->epsn;
}

void roan_responder_nak(struct roan_responder *resp, enum roan_nak nak)
{
	if (resp->cfg.transport != ROAN_TP_RC) {
		resp_drop_msg(resp);
		return;
	}
	resp->n_naks++;
	resp->failed = true;
	resp->nak_due = true;
	resp->nak_syndrome = ROAN_AETH_NAK | nak;
	resp->nak_psn = resp->epsn;
}

/* ---- responses ---- */

static enum roan_seg response_segment(const struct roan_resp_res *e)
{
	if (e->end_pkt - e->first_pkt == 1)
		return ROAN_SEG_ONLY;
	if (e->next_pkt == e->first_pkt)
		return ROAN_SEG_FIRST;
	return e->next_pkt + 1 == e->end_pkt ? ROAN_SEG_LAST : ROAN_SEG_MIDDLE;
}

static void resp_compose_ack(const struct roan_responder *resp, u8 syndrome, u32 psn, struct roan_response *a)
{
	*a = (struct roan_response) {
		.opcode = roan_opcode_of(ROAN_TP_RC, ROAN_OP_ACK, ROAN_SEG_ONLY, ROAN_EXT_NONE),
		.syndrome = syndrome,
		.psn = psn,
		.msn = resp->msn,
		.resp_res = ROAN_NO_RESP_RES,
	};
}

/* Acknowledges all before the expected PSN, and says which after it are kept. */
static void resp_compose_sack(const struct roan_responder *resp, u8 credits, struct roan_response *a)
{
	resp_compose_ack(resp, ROAN_AETH_ACK | credits, resp->epsn, a);
	a->opcode = ROAN_OPCODE_SACK;
}

static void resp_compose_data(const struct roan_responder *resp, u32 at, u8 credits, struct roan_response *a)
{
	const struct roan_resp_res *e = &resp->resp_res[at];
	bool atomic = e->op == ROAN_OP_CMP_SWAP || e->op == ROAN_OP_FETCH_ADD;
	u32 offset = e->next_pkt << resp->cfg.mtu_shift;

	if (e->late_nak) {
		resp_compose_ack(resp, e->late_nak, psn_add(e->first_psn, e->next_pkt), a);
		a->resp_res = at;
		return;
	}
	*a = (struct roan_response) {
		.opcode = roan_opcode_of(ROAN_TP_RC, atomic ? ROAN_OP_ATOMIC_ACK : ROAN_OP_READ_RESP,
					 response_segment(e), ROAN_EXT_NONE),
		.syndrome = ROAN_AETH_ACK | roan_resp_credits(resp, credits, e->msn),
		.sport = e->sport,
		.psn = psn_add(e->first_psn, e->next_pkt),
		.msn = e->msn,
		.resp_res = at,
		.rkey = e->rkey,
		.va = e->va + offset,
		.len = e->op == ROAN_OP_READ ? min(e->len - offset, resp_mtu(resp)) : 0,
		.orig = e->orig,
	};
}

bool roan_responder_next(struct roan_responder *resp, u8 credits, struct roan_response *a)
{
	if (resp->n_pending) {
		resp_compose_data(resp, resp->oldest_pending, credits, a);
		return true;
	}
	if (unlikely(resp->early) && roan_resp_may_sack(resp))
		resp_compose_sack(resp, credits, a);
	else if (resp->nak_due)
		resp_compose_ack(resp, resp->nak_syndrome, resp->nak_psn, a);
	else
		resp_compose_ack(resp, ROAN_AETH_ACK | credits, roan_resp_ack_psn(resp), a);
	return resp->nak_due || resp->ack_due;
}

static bool resp_is_blocked(const struct roan_responder *resp, const struct roan_resp_res *e)
{
	return resp->resp_blocked && psn_add(e->first_psn, e->npkts - 1) == resp->rnr_defer.psn;
}

void roan_responder_sent(struct roan_responder *resp, const struct roan_response *a)
{
	struct roan_resp_res *e;

	if (a->resp_res == ROAN_NO_RESP_RES) {	/* a NAK acknowledges all PSNs before it */
		if (unlikely(a->syndrome == (ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE)))
			roan_resp_reorder_nak_sent(resp, a->psn);
		resp->nak_due = false;
		resp->ack_due = false;
		resp->unacked = false;
		resp->resp_blocked = false;
		resp->early_unreported = 0;
		return;
	}
	e = &resp->resp_res[a->resp_res];
	if (resp_is_blocked(resp, e))
		resp->resp_blocked = false;
	if (++e->next_pkt == e->npkts)
		e->sent_once = true;
	if (e->next_pkt == e->end_pkt || e->late_nak)
		resp_unqueue_response(resp, e);
	if (!resp->n_pending && resp->n_resp_psns)	/* the last request has its response: it acknowledges all */
		resp->unacked = false;
}

void roan_responder_block(struct roan_responder *resp, const struct roan_response *a, u64 now)
{
	const struct roan_resp_res *e = &resp->resp_res[a->resp_res];
	u32 last = psn_add(e->first_psn, e->npkts - 1);

	if (resp_is_blocked(resp, e))
		return;
	roan_rnr_defer_begin(&resp->rnr_defer, last, now);
	resp->resp_blocked = true;
	resp->re_requested = false;
	resp->skipped = false;
	resp->last_dup_psn = last;
}

bool roan_responder_unblocked(struct roan_responder *resp)
{
	struct roan_resp_res *e;

	if (!resp->n_pending)
		return true;
	e = &resp->resp_res[resp->oldest_pending];
	if (!resp_is_blocked(resp, e))
		return true;
	if (!e->sent_once || !resp->skipped)
		return false;
	resp_unqueue_response(resp, e);
	resp->resp_blocked = false;
	return true;
}

bool roan_responder_defer_rnr(struct roan_responder *resp, u64 now, struct roan_response *a)
{
	const struct roan_resp_res *e;
	u8 code;

	if (!resp->resp_blocked || !resp->re_requested)
		return false;
	resp->re_requested = false;
	if (!roan_rnr_defer_dup(&resp->rnr_defer, now, &code))
		return false;
	resp->n_rnr++;
	e = &resp->resp_res[resp->oldest_pending];
	resp_compose_ack(resp, ROAN_AETH_RNR | code, psn_add(e->first_psn, e->next_pkt), a);
	return true;
}

bool roan_responder_fail(struct roan_responder *resp, const struct roan_response *a, enum roan_nak nak)
{
	struct roan_resp_res *e = &resp->resp_res[a->resp_res];
	u32 i;

	if (e->sent_once) {
		e->late_nak = ROAN_AETH_NAK | nak;
		return false;
	}
	for (i = 0; i < resp->cfg.max_dest_rd_atomic; i++)
		resp_unqueue_response(resp, &resp->resp_res[i]);
	roan_responder_nak(resp, nak);
	resp->nak_psn = a->psn;
	return true;
}
