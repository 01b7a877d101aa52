// SPDX-License-Identifier: GPL-2.0
/*
 * The requester: which packet to send next (IBTA vol. 1, 9.7.3). requester_rx.c handles responses and timeouts. Only
 * these two files write struct roan_requester.
 *
 * A lost packet is repaired in one of two ways. A repair sends the oldest unacknowledged packet alone again, for a peer
 * that keeps what it received after it. Going back returns next_psn and next to the oldest unacknowledged PSN and its
 * work request, and everything from there on is sent again. The packets of a work request are numbered from its
 * first_psn, so the position of a PSN needs no further state, and a READ that got some of its responses requests the
 * remainder.
 *
 * One READ request packet asks for at most psn_window response packets. A longer READ is sent in pieces, each a READ
 * of its own on the wire, cut at multiples of one length from the first PSN. So the span of PSNs in flight is bounded,
 * and a READ of 2 GiB works with any MTU. If the peer takes several READs at a time, the pieces are a half to a quarter
 * of the window, so that it stays full. They are smaller with several paths, as each takes another one, and with a
 * window for the responses.
 */
#include "core/transport/requester_priv.h"

void roan_requester_reset(struct roan_requester *r, const struct roan_requester_cfg *cfg)
{
	struct roan_tx_wqe *work = r->work;
	struct roan_holes *holes = r->holes;
	struct roan_min_rtt *min_rtt = r->min_rtt;
	struct roan_auto_paths *auto_paths = r->auto_paths;
	struct roan_paths *paths = r->paths;
	u32 mask = r->mask;

	memset(r, 0, sizeof(*r));
	r->cfg = *cfg;
	roan_req_start_slowly(r, ROAN_START_WINDOW);
	r->work = work;
	r->mask = mask;
	r->holes = holes;
	if (holes)
		memset(holes, 0, sizeof(*holes));
	r->min_rtt = min_rtt;
	r->paths = paths;
	r->auto_paths = auto_paths;
	if (auto_paths)
		roan_auto_paths_reset(r);
	else if (paths)
		roan_paths_reset(r);
	r->una_psn = cfg->sq_psn;
	r->next_psn = cfg->sq_psn;
	r->end_psn = cfg->sq_psn;
	r->next_ssn = 1;
	r->retries_left = cfg->retry_cnt;
	r->rnr_left = cfg->rnr_retry;
}

struct roan_tx_wqe *roan_requester_slot(struct roan_requester *r, u32 *index)
{
	if (roan_requester_full(r))
		return NULL;
	*index = r->tail;
	return roan_requester_wqe(r, r->tail);
}

static u32 req_wqe_packets(const struct roan_requester *r, const struct roan_tx_wqe *w)
{
	if (w->op != ROAN_OP_SEND && w->op != ROAN_OP_WRITE && w->op != ROAN_OP_READ)
		return 1;
	return max(1u, DIV_ROUND_UP(w->len, 1u << r->cfg.mtu_shift));
}

/* True if @w starts without further conditions once an equal work request before it may start. */
static bool req_is_plain(const struct roan_tx_wqe *w)
{
	return (w->op == ROAN_OP_SEND || w->op == ROAN_OP_WRITE) && w->n_psn == 1 && !w->fence && !w->solicited;
}

/*
 * Without paths: so long that up to four pieces of a long READ fill the window, and the next one is requested while the
 * responses of the others come. 0: the window. Slow start would hold back all pieces but the first.
 */
static u8 req_read_piece(const struct roan_requester *r, const struct roan_tx_wqe *w)
{
	u32 window = r->cfg.psn_window, piece = window / min_t(u32, roan_requester_max_reads(r) ?: 1, 4);

	if (w->n_psn <= window / 2 || piece == window || r->start_window < window)
		return 0;
	return piece <= U8_MAX ? piece : 0;
}

/* Computes once what depends on the request alone, not for each packet. */
void roan_requester_queued(struct roan_requester *r)
{
	/* may be a completed entry: its values are only compared */
	const struct roan_tx_wqe *before = roan_requester_wqe(r, r->tail - 1);
	struct roan_tx_wqe *w = roan_requester_wqe(r, r->tail++);

	w->n_psn = w->op == ROAN_OP_LOCAL ? 0 : req_wqe_packets(r, w);
	w->piece = 0;
	if (w->op == ROAN_OP_READ)
		w->piece = unlikely(r->paths) ? roan_paths_read_piece(r) : req_read_piece(r, w);
	w->needs_recv_wqe = w->op == ROAN_OP_SEND || (w->op == ROAN_OP_WRITE && w->ext == ROAN_EXT_IMM);
	w->same_as_prev = req_is_plain(w) && req_is_plain(before) && w->op == before->op && w->ext == before->ext &&
		w->len == before->len;
}

void roan_requester_queue_same(struct roan_requester *r)
{
	const struct roan_tx_wqe *before = roan_requester_wqe(r, r->tail - 1);
	struct roan_tx_wqe *w = roan_requester_wqe(r, r->tail++);

	*w = *before;
	w->same_as_prev = req_is_plain(w);
}

static bool req_has_credit(const struct roan_requester *r, const struct roan_tx_wqe *w, u32 ssn)
{
	return !w->needs_recv_wqe || !r->credits_known || psn_diff(ssn, r->lsn) <= 0;
}

/*
 * True if a work request without sent packets may start. The event that a refused one waits for always comes: a
 * response, or modify_qp.
 */
static bool req_may_start(const struct roan_requester *r, const struct roan_tx_wqe *w)
{
	if (r->sqd)
		return false;
	if (w->fence && (r->rd_outstanding || unanswered_before(r, r->next)))
		return false;
	if (w->barrier && roan_requester_outstanding(r))
		return false;
	/*
	 * Without a credit one message may be sent as a probe, if no outstanding response can bring new credits
	 * (9.7.7.2.5).
	 */
	return req_has_credit(r, w, r->next_ssn) || !roan_requester_outstanding(r);
}

/*
 * True if the work request after @index will certainly send a packet after the current message; then that packet may
 * carry AckReq. False if in doubt: a last packet without AckReq would wait for the timeout.
 */
static bool req_ack_follows(const struct roan_requester *r, u32 index)
{
	const struct roan_tx_wqe *w;

	if (index + 1 == r->tail || r->sqd || r->local_err)
		return false;
	w = roan_requester_wqe(r, index + 1);
	return (w->op == ROAN_OP_SEND || w->op == ROAN_OP_WRITE) && !w->fence && !w->completed &&
	       req_has_credit(r, w, r->next_ssn + 1);
}

/*
 * After a timeout or an RNR NAK one packet is enough to learn what the peer has received, or whether it is ready. More
 * would add to a queue that is only slow, and take the receiver the CPU time that it needs to become ready.
 */
static u32 req_psn_window(const struct roan_requester *r)
{
	return r->rto_probe || r->rnr_since ? 1 : r->start_window;
}

/* Adapters take at least 16 READs and atomics, many no more. */
#define STANDARD_PEER_READS	16

/*
 * Programs that do not agree on a number (UCX) set max_rd_atomic to what this device supports; an adapter answers one
 * more than it takes with a NAK, which ends the connection. So it counts in full only if the peer is known to be a roan
 * host.
 */
u8 roan_requester_max_reads(const struct roan_requester *r)
{
	u8 most = READ_ONCE(r->cfg.max_rd_atomic);

	return READ_ONCE(r->peer_sacks) ? most : min_t(u8, most, STANDARD_PEER_READS);
}

/* True if @w is a READ or atomic and the peer already has as many as it takes. */
static bool req_reads_full(const struct roan_requester *r, const struct roan_tx_wqe *w)
{
	return roan_op_needs_response(w->op) && r->rd_outstanding >= roan_requester_max_reads(r);
}

bool roan_requester_can_send(const struct roan_requester *r)
{
	const struct roan_tx_wqe *last = roan_requester_wqe(r, r->tail - 1);

	if (r->next != r->tail || psn_diff(r->end_psn, r->una_psn) >= req_psn_window(r))
		return false;
	return r->una == r->tail || !req_reads_full(r, last);
}

/* Maximum distance in packets between two AckReq. */
static u32 req_ack_interval(const struct roan_requester *r)
{
	u32 window = r->start_window;

	if (unlikely(r->paths))
		window = min(window, roan_paths_window(r));
	return max(window / 4, 1u);
}

static bool req_wants_ackreq(const struct roan_requester *r, const struct roan_tx_wqe *w, const struct roan_tx_desc *e,
			     bool ends)
{
	u32 span = psn_diff(e->psn, r->una_psn) + 1;

	if (span >= req_psn_window(r) || r->since_ackreq + 1 >= req_ack_interval(r))
		return true;
	if (e->resend && psn_add(e->psn, 1) == r->end_psn)
		return true;
	if (!w->started && !req_has_credit(r, w, r->next_ssn))
		return true;
	return ends && (e->resend || w->solicited || !req_ack_follows(r, e->index));
}

static enum roan_seg req_segment(u32 pos, u32 npkts)
{
	if (npkts == 1)
		return ROAN_SEG_ONLY;
	if (!pos)
		return ROAN_SEG_FIRST;
	return pos + 1 == npkts ? ROAN_SEG_LAST : ROAN_SEG_MIDDLE;
}

/* Describes the packet at position @pos of @w. */
static void req_fill_desc(const struct roan_requester *r, const struct roan_tx_wqe *w, u32 pos, struct roan_tx_desc *e)
{
	enum roan_seg seg = ROAN_SEG_ONLY;

	e->npsn = 1;
	e->offset = pos << r->cfg.mtu_shift;
	e->resend = psn_diff(e->psn, r->end_psn) < 0;
	switch (w->op) {
	case ROAN_OP_READ:
		e->npsn = read_piece_end(r, w, pos) - pos;
		e->len = min_t(u64, (u64)e->npsn << r->cfg.mtu_shift, w->len - e->offset);
		break;
	case ROAN_OP_SEND:
	case ROAN_OP_WRITE:
		seg = req_segment(pos, w->n_psn);
		e->single_pkt = seg == ROAN_SEG_ONLY;
		e->len = min(w->len - e->offset, 1u << r->cfg.mtu_shift);
		e->solicited = w->solicited && w->needs_recv_wqe && roan_seg_ends(seg);
		e->ackreq = r->cfg.transport == ROAN_TP_RC && req_wants_ackreq(r, w, e, roan_seg_ends(seg));
		break;
	case ROAN_OP_ATOMIC_WRITE:
		e->len = w->len;
		break;
	default:
		e->len = 0;
		break;
	}
	e->opcode = roan_opcode_of(r->cfg.transport, w->op, seg, w->ext);
}

/* True if the packet fits into the PSN window and the limit of outstanding READs and atomics. */
static bool req_fits_limits(const struct roan_requester *r, const struct roan_tx_wqe *w, const struct roan_tx_desc *e)
{
	u32 span = psn_diff(e->psn, r->una_psn);

	if (r->cfg.transport != ROAN_TP_RC)
		return true;
	if (req_reads_full(r, w))
		return false;
	if (!span || span + e->npsn <= req_psn_window(r))
		return true;
	return r->since_ackreq && psn_add(e->psn, 1) == r->end_psn;	/* roan_req_ask(): sent in a larger window */
}

void roan_req_describe(const struct roan_requester *r, u32 index, u32 psn, struct roan_tx_desc *e)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, index);

	memset(e, 0, sizeof(*e));
	e->index = index;
	e->psn = psn;
	req_fill_desc(r, w, work_pos(w, psn), e);
}

/* The packet at repair_psn, or for a READ the request for the responses from there on, lies within all limits. */
static enum roan_next req_next_repair(struct roan_requester *r, struct roan_tx_desc *e)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, r->repair_index);

	roan_req_describe(r, r->repair_index, r->repair_psn, e);
	e->ackreq = !roan_op_needs_response(w->op);
	e->repair = true;
	e->copy = r->repair_by_sack && !r->holes->guessed;
	return ROAN_NEXT_PACKET;
}

static enum roan_next req_next(struct roan_requester *r, u64 now, struct roan_tx_desc *e)
{
	const struct roan_tx_wqe *w;

	if (r->failed || now < r->rnr_until)
		return ROAN_NEXT_WAIT;
	r->rnr_until = 0;
	if (unlikely(r->repair_left))
		return req_next_repair(r, e);
	if (unlikely(r->reads.hole_left))
		return roan_read_next_hole(r, now, e);
	while (r->next != r->tail && roan_requester_wqe(r, r->next)->completed)
		r->next++;
	if (r->local_err && (s32)(r->next - r->local_err_idx) >= 0)
		return ROAN_NEXT_WAIT;
	if (r->next == r->tail)
		return ROAN_NEXT_IDLE;

	w = roan_requester_wqe(r, r->next);
	if (!w->started && !req_may_start(r, w))
		return ROAN_NEXT_WAIT;
	memset(e, 0, sizeof(*e));
	e->index = r->next;
	if (w->op == ROAN_OP_LOCAL)
		return ROAN_NEXT_LOCAL;
	if (roan_op_needs_response(w->op) && !r->cfg.max_rd_atomic) {
		roan_requester_fail(r, r->next, ROAN_ST_LOC_QP_OP_ERR);
		return ROAN_NEXT_WAIT;
	}
	e->psn = r->next_psn;
	req_fill_desc(r, w, w->started ? work_pos(w, r->next_psn) : 0, e);
	if (e->opcode == ROAN_OPCODE_INVALID) {
		roan_requester_fail(r, r->next, ROAN_ST_LOC_QP_OP_ERR);
		return ROAN_NEXT_WAIT;
	}
	return req_fits_limits(r, w, e) ? ROAN_NEXT_PACKET : ROAN_NEXT_WAIT;
}

/*
 * True if packet @e is next and its payload is not in memory. It may be next no more, as it was sent before, and the
 * peer has it.
 */
static bool req_is_held(struct roan_requester *r, enum roan_next next, const struct roan_tx_desc *e)
{
	if (psn_diff(r->una_psn, r->held_psn) > 0 || next == ROAN_NEXT_IDLE ||
	    (next == ROAN_NEXT_PACKET && psn_diff(e->psn, r->held_psn) > 0))
		r->held = false;
	return r->held && next == ROAN_NEXT_PACKET && e->psn == r->held_psn;
}

enum roan_next roan_requester_next(struct roan_requester *r, u64 now, struct roan_tx_desc *e)
{
	enum roan_next next = req_next(r, now, e);

	/*
	 * The packet that was to carry AckReq may not be sent: no credit is left, SQD began, the window has shrunk. Or
	 * it was sent, but it is not known whether it carried AckReq: roan_req_end_probe().
	 */
	if (next != ROAN_NEXT_PACKET && unlikely(roan_req_is_unasked(r)) && roan_req_ask(r))
		next = req_next(r, now, e);
	if (unlikely(r->held) && req_is_held(r, next, e))
		return ROAN_NEXT_WAIT;
	if (likely(!r->paths) || next != ROAN_NEXT_PACKET)
		return next;
	return roan_paths_next(r, e, now) ? next : ROAN_NEXT_WAIT;
}

/* How many packets after @e fit into the window without an AckReq. */
static u32 req_unacked_batch(const struct roan_requester *r, const struct roan_tx_desc *e)
{
	u32 in_window = req_psn_window(r) - 2 - psn_diff(e->psn, r->una_psn);

	return min(in_window, req_ack_interval(r) - 2 - r->since_ackreq);
}

/* How many of the next work requests equal @w; one less, as the last may need AckReq. */
static u32 req_batchable_wqes(const struct roan_requester *r, const struct roan_tx_wqe *w, u32 index, u32 most)
{
	u32 behind = r->tail - 1 - index, n;

	if (r->sqd || r->local_err)
		return 0;
	if (w->needs_recv_wqe && r->credits_known)
		most = min_t(u32, most, max(psn_diff(r->lsn, r->next_ssn) - 1, 0));
	for (n = 0; n < behind && n <= most && roan_requester_wqe(r, index + 1 + n)->same_as_prev; n++)
		;
	return n ? n - 1 : 0;
}

/* MIDDLE packets of one message, or consecutive one-packet messages. */
u32 roan_requester_batch_count(const struct roan_requester *r, const struct roan_tx_desc *e, u32 most)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, e->index);
	u32 pos = e->offset >> r->cfg.mtu_shift;

	if ((w->op != ROAN_OP_SEND && w->op != ROAN_OP_WRITE) || e->ackreq || e->resend ||
	    r->cfg.transport == ROAN_TP_UD)
		return 0;
	if (r->cfg.transport == ROAN_TP_RC)
		most = min(most, req_unacked_batch(r, e));
	if (unlikely(r->paths))
		most = min(most, roan_paths_batch(r));
	if (e->single_pkt)
		return req_batchable_wqes(r, w, e->index, most);
	return pos && pos + 1 < w->n_psn ? min(most, w->n_psn - 2 - pos) : 0;
}

static void req_start_wqe(struct roan_requester *r, struct roan_tx_wqe *w, u32 psn)
{
	w->started = true;
	w->first_psn = psn;
	w->resp_done = 0;
	/* The peer counts each piece of a READ as a message. */
	r->next_ssn = psn_add(r->next_ssn, w->op == ROAN_OP_READ ? DIV_ROUND_UP(w->n_psn, read_piece(r, w)) : 1);
}

/* UC and UD have no ACKs: a sent work request is complete. */
static void req_complete_unacked(struct roan_requester *r, u32 index)
{
	r->una_psn = r->next_psn;
	for (; index != r->next; index++) {
		struct roan_tx_wqe *w = roan_requester_wqe(r, index);

		w->status = ROAN_ST_SUCCESS;
		w->completed = true;
	}
	skip_completed(r);
}

void roan_requester_sent(struct roan_requester *r, const struct roan_tx_desc *e, u64 now)
{
	struct roan_tx_wqe *w = roan_requester_wqe(r, e->index);
	u32 i;

	if (unlikely(r->paths))
		roan_paths_sent(r, e, now);
	if (unlikely(e->repair)) {
		if (e->read_hole)
			roan_read_hole_sent(r, e, now);
		else
			roan_repair_sent(r, e, now);
		return;
	}
	if (!w->started)
		req_start_wqe(r, w, e->psn);
	for (i = 1; e->single_pkt && i < e->npsn; i++)
		req_start_wqe(r, roan_requester_wqe(r, e->index + i), psn_add(e->psn, i));
	if (e->single_pkt)
		r->next = e->index + e->npsn;
	else if (work_pos(w, e->psn) + e->npsn == w->n_psn)
		r->next = e->index + 1;
	r->next_psn = psn_add(e->psn, e->npsn);
	if (psn_diff(r->next_psn, r->end_psn) > 0)
		r->end_psn = r->next_psn;
	if (unlikely(e->resend)) {
		r->n_resent++;
		if (r->reads.any && roan_op_needs_response(w->op))
			roan_read_requested(r, e);
	}
	if (r->cfg.transport != ROAN_TP_RC) {
		req_complete_unacked(r, e->index);
		return;
	}
	if (!r->ack_timer_base_ns) {
		r->ack_timer_base_ns = now;
		r->idle_ns += now - r->rto_base_ns;
	}
	r->rto_base_ns = now;
	if (!r->timed_at && !e->resend && (e->ackreq || roan_op_needs_response(w->op))) {
		r->timed_at = now;
		r->timed_psn = e->psn;
	}
	r->since_ackreq = e->ackreq || roan_op_needs_response(w->op) ? 0 : r->since_ackreq + e->npsn;
	if (roan_op_needs_response(w->op))
		r->rd_outstanding++;
}

void roan_requester_local_done(struct roan_requester *r, u32 index)
{
	struct roan_tx_wqe *w = roan_requester_wqe(r, index);

	w->status = ROAN_ST_SUCCESS;
	w->completed = true;
	skip_completed(r);
}

void roan_requester_fail(struct roan_requester *r, u32 index, enum roan_status status)
{
	struct roan_tx_wqe *w = roan_requester_wqe(r, index);
	bool had_holes = r->reads.any;

	w->status = status;
	w->completed = true;
	if (!r->local_err || (s32)(index - r->local_err_idx) < 0)
		r->local_err_idx = index;
	r->local_err = true;
	r->repair_left = 0;
	r->repair_sent = false;
	roan_holes_clear(r);
	roan_read_reset(r);
	skip_completed(r);
	/* The packets sent before may lack AckReq, which this work request was to carry; or responses are missing. */
	if ((r->since_ackreq || had_holes) && roan_requester_outstanding(r) && r->una != index)
		go_back(r, r->ack_timer_base_ns);
}

bool roan_requester_retired(struct roan_requester *r, u32 *index, enum roan_status *status)
{
	struct roan_tx_wqe *w = roan_requester_wqe(r, r->retire);

	if (r->retire == r->tail || (!w->completed && !r->failed))
		return false;
	*index = r->retire++;
	*status = w->completed && !r->err_delivered ? w->status : ROAN_ST_WR_FLUSH_ERR;
	if (*status != ROAN_ST_SUCCESS) {
		r->err_delivered = true;
		roan_requester_flush(r);
	}
	if ((s32)(r->una - r->retire) < 0)
		r->una = r->retire;
	if ((s32)(r->next - r->una) < 0)
		r->next = r->una;
	return true;
}

void roan_requester_flush(struct roan_requester *r)
{
	r->failed = true;
	r->una_psn = r->end_psn;	/* nothing is outstanding any more */
	r->held = false;
	r->next_psn = r->end_psn;
	r->ack_timer_base_ns = 0;
	r->rnr_until = 0;
	r->timed_at = 0;
	r->repair_left = 0;
	roan_holes_clear(r);
	if (unlikely(r->paths))
		roan_paths_forget(r);
	roan_read_reset(r);
}

void roan_requester_resume(struct roan_requester *r)
{
	r->una = r->retire;
	r->next = r->retire;
	r->local_err = false;
	r->failed = false;
	r->err_delivered = false;
}

void roan_requester_update_cfg(struct roan_requester *r, const struct roan_requester_cfg *cfg)
{
	const struct roan_requester_cfg old = r->cfg;

	r->cfg = *cfg;
	r->cfg.sq_psn = old.sq_psn;
	r->cfg.psn_window = old.psn_window;
	if (cfg->retry_cnt != old.retry_cnt)
		r->retries_left = cfg->retry_cnt;
	if (cfg->rnr_retry != old.rnr_retry)
		r->rnr_left = cfg->rnr_retry;
}

void roan_requester_change_path(struct roan_requester *r, struct roan_min_rtt *min_rtt)
{
	r->min_rtt = min_rtt;
	memset(&r->rtt, 0, sizeof(r->rtt));
	r->rto_backoff = 0;
	r->timed_at = 0;
	r->max_ack_wait_ns = 0;
	roan_req_start_slowly(r, ROAN_START_WINDOW);
}

bool roan_requester_drained(const struct roan_requester *r)
{
	const struct roan_tx_wqe *w;

	if (!r->sqd || roan_requester_outstanding(r))
		return false;
	if (r->next == r->tail)
		return true;
	w = roan_requester_wqe(r, r->next);
	return !w->started || w->completed;
}
