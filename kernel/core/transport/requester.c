// SPDX-License-Identifier: GPL-2.0
/*
 * The requester: what leaves next (IBTA vol. 1, 9.7.3). What answers and silences mean is requester_rx.c; both are one
 * room, and only they write struct roan_requester.
 *
 * Loss is repaired by going back: next_psn and next return to the oldest unacknowledged PSN and its work, and everything
 * from there on leaves again. A work's packets are numbered from its first_psn, so the place of a PSN in a work needs no
 * further state, and a READ that got some of its responses asks for the rest.
 *
 * A READ asks for at most a window's worth of responses with one request packet. Longer ones are asked for piece by
 * piece, each piece a READ of its own on the wire, cut at multiples of the window from the first PSN: so the span of PSNs
 * in flight stays bounded and a 2 GiB READ works at any MTU.
 */
#include "core/transport/requester_priv.h"

void roan_requester_reset(struct roan_requester *r, const struct roan_requester_cfg *cfg)
{
	struct roan_work *work = r->work;
	u32 mask = r->mask;

	memset(r, 0, sizeof(*r));
	r->cfg = *cfg;
	r->work = work;
	r->mask = mask;
	r->una_psn = cfg->sq_psn;
	r->next_psn = cfg->sq_psn;
	r->end_psn = cfg->sq_psn;
	r->next_ssn = 1;
	r->retries_left = cfg->retry_cnt;
	r->rnr_left = cfg->rnr_retry;
}

struct roan_work *roan_requester_slot(struct roan_requester *r, u32 *index)
{
	if (roan_requester_full(r))
		return NULL;
	*index = r->tail;
	return roan_requester_work(r, r->tail);
}

static u32 work_packets(const struct roan_requester *r, const struct roan_work *w)
{
	if (w->op != ROAN_OP_SEND && w->op != ROAN_OP_WRITE && w->op != ROAN_OP_READ)
		return 1;
	return max(1u, DIV_ROUND_UP(w->len, 1u << r->cfg.mtu_shift));
}

/* Once it may begin, may each work like it that lies behind it? */
static bool is_plain(const struct roan_work *w)
{
	return (w->op == ROAN_OP_SEND || w->op == ROAN_OP_WRITE) && w->npkts == 1 && !w->fence && !w->solicited;
}

/* What follows from the request alone is settled once, not for each of its packets. */
void roan_requester_queued(struct roan_requester *r)
{
	const struct roan_work *before = roan_requester_work(r, r->tail - 1);	/* of long ago, if it is finished: no matter */
	struct roan_work *w = roan_requester_work(r, r->tail++);

	w->npkts = w->op == ROAN_OP_LOCAL ? 0 : work_packets(r, w);
	w->takes_credit = w->op == ROAN_OP_SEND || (w->op == ROAN_OP_WRITE && w->rider == ROAN_RIDER_IMM);
	w->twin = is_plain(w) && is_plain(before) && w->op == before->op && w->rider == before->rider && w->len == before->len;
}

void roan_requester_repeat(struct roan_requester *r)
{
	const struct roan_work *before = roan_requester_work(r, r->tail - 1);
	struct roan_work *w = roan_requester_work(r, r->tail++);

	*w = *before;
	w->twin = is_plain(w);
}

static bool has_credit(const struct roan_requester *r, const struct roan_work *w, u32 ssn)
{
	return !w->takes_credit || !r->credits_known || psn_diff(ssn, r->limit_ssn) <= 0;
}

/* May a work that has not begun begin? What it waits for always comes: an answer, or modify_qp. */
static bool may_start(const struct roan_requester *r, const struct roan_work *w)
{
	if (r->drain)
		return false;
	if (w->fence && (r->rd_outstanding || unanswered_before(r, r->next)))
		return false;
	if (w->alone && roan_requester_outstanding(r))
		return false;
	/* Without a credit one message may go as a probe, if nothing else can bring news of new credits (9.7.7.2.5). */
	return has_credit(r, w, r->next_ssn) || !roan_requester_outstanding(r);
}

/*
 * Will the work behind @index surely put a packet on the wire once the present message is out? Then that packet may ask
 * for the ACK. If in doubt, no: a tail that nobody answers would hang.
 */
static bool followed(const struct roan_requester *r, u32 index)
{
	const struct roan_work *w;

	if (index + 1 == r->tail || r->drain || r->blocked)
		return false;
	w = roan_requester_work(r, index + 1);
	return (w->op == ROAN_OP_SEND || w->op == ROAN_OP_WRITE) && !w->fence && !w->done &&
	       has_credit(r, w, r->next_ssn + 1);
}

/* After silence one packet is enough to hear what the peer has, and a queue that is only slow is not made longer. */
static u32 window_of(const struct roan_requester *r)
{
	return r->probing ? 1 : r->cfg.window;
}

/* Has the peer as many READs and atomics of ours as it takes, and is this one more? */
static bool too_many_reads(const struct roan_requester *r, const struct roan_work *w)
{
	return roan_op_wants_answer(w->op) && r->rd_outstanding >= r->cfg.max_rd_atomic;
}

bool roan_requester_could_send(const struct roan_requester *r)
{
	const struct roan_work *last = roan_requester_work(r, r->tail - 1);

	if (r->next != r->tail || psn_diff(r->end_psn, r->una_psn) >= window_of(r))
		return false;
	return r->una == r->tail || !too_many_reads(r, last);
}

/* How many packets leave, at most, from one that asks for an ACK to the next. */
static u32 ack_every(const struct roan_requester *r)
{
	return max(r->cfg.window / 4, 1u);
}

static bool wants_ack(const struct roan_requester *r, const struct roan_work *w, const struct roan_emit *e, bool ends)
{
	u32 span = psn_diff(e->psn, r->una_psn) + 1;

	if (span >= window_of(r) || r->since_ackreq + 1 >= ack_every(r))
		return true;
	if (e->resend && psn_add(e->psn, 1) == r->end_psn)
		return true;
	if (!w->started && !has_credit(r, w, r->next_ssn))
		return true;
	return ends && (e->resend || w->solicited || !followed(r, e->index));
}

static enum roan_seg segment_of(u32 pos, u32 npkts)
{
	if (npkts == 1)
		return ROAN_SEG_ONLY;
	if (!pos)
		return ROAN_SEG_FIRST;
	return pos + 1 == npkts ? ROAN_SEG_LAST : ROAN_SEG_MIDDLE;
}

/* The packet at position @pos of @w. */
static void compose(const struct roan_requester *r, const struct roan_work *w, u32 pos, struct roan_emit *e)
{
	enum roan_seg seg = ROAN_SEG_ONLY;

	e->npsn = 1;
	e->offset = pos << r->cfg.mtu_shift;
	e->resend = psn_diff(e->psn, r->end_psn) < 0;
	switch (w->op) {
	case ROAN_OP_READ:
		e->npsn = read_piece_end(r, pos, w->npkts) - pos;
		e->len = min_t(u64, (u64)e->npsn << r->cfg.mtu_shift, w->len - e->offset);
		break;
	case ROAN_OP_SEND:
	case ROAN_OP_WRITE:
		seg = segment_of(pos, w->npkts);
		e->whole = seg == ROAN_SEG_ONLY;
		e->len = min(w->len - e->offset, 1u << r->cfg.mtu_shift);
		e->solicited = w->solicited && roan_seg_ends(seg);
		e->ackreq = r->cfg.transport == ROAN_TP_RC && wants_ack(r, w, e, roan_seg_ends(seg));
		break;
	case ROAN_OP_ATOMIC_WRITE:
		e->len = w->len;
		break;
	default:
		e->len = 0;
		break;
	}
	e->opcode = roan_opcode_of(r->cfg.transport, w->op, seg, w->rider);
}

/* Is there room for the packet in the window, and for what it asks of the peer? */
static bool fits(const struct roan_requester *r, const struct roan_work *w, const struct roan_emit *e)
{
	u32 span = psn_diff(e->psn, r->una_psn);

	if (r->cfg.transport != ROAN_TP_RC)
		return true;
	if (too_many_reads(r, w))
		return false;
	return !span || span + e->npsn <= window_of(r);
}

enum roan_next roan_requester_next(struct roan_requester *r, u64 now, struct roan_emit *e)
{
	struct roan_work *w;

	if (r->failed || now < r->rnr_until)
		return ROAN_NEXT_WAIT;
	r->rnr_until = 0;
	while (r->next != r->tail && roan_requester_work(r, r->next)->done)
		r->next++;
	if (r->blocked && (s32)(r->next - r->blocked_at) >= 0)
		return ROAN_NEXT_WAIT;
	if (r->next == r->tail)
		return ROAN_NEXT_IDLE;

	w = roan_requester_work(r, r->next);
	if (!w->started && !may_start(r, w)) {
		/* Sent without AckReq because this work was to follow, and then the credits turned out fewer. */
		if (!r->since_ackreq || !roan_requester_outstanding(r))
			return ROAN_NEXT_WAIT;
		go_back(r, r->progress_at);
		w = roan_requester_work(r, r->next);
	}
	memset(e, 0, sizeof(*e));
	e->index = r->next;
	if (w->op == ROAN_OP_LOCAL)
		return ROAN_NEXT_LOCAL;
	if (roan_op_wants_answer(w->op) && !r->cfg.max_rd_atomic) {
		roan_requester_fail(r, r->next, ROAN_ST_LOC_QP_OP_ERR);
		return ROAN_NEXT_WAIT;
	}
	e->psn = r->next_psn;
	compose(r, w, w->started ? work_pos(w, r->next_psn) : 0, e);
	if (e->opcode == ROAN_OPCODE_INVALID) {
		roan_requester_fail(r, r->next, ROAN_ST_LOC_QP_OP_ERR);
		return ROAN_NEXT_WAIT;
	}
	return fits(r, w, e) ? ROAN_NEXT_PACKET : ROAN_NEXT_WAIT;
}

/* How many packets behind @e have a place in the window, and need not ask for an ACK. */
static u32 unasked(const struct roan_requester *r, const struct roan_emit *e)
{
	u32 in_window = window_of(r) - 2 - psn_diff(e->psn, r->una_psn);

	return min(in_window, ack_every(r) - 2 - r->since_ackreq);
}

/* Up to the last, which may have to ask for an ACK. */
static u32 works_alike(const struct roan_requester *r, const struct roan_work *w, u32 index, u32 most)
{
	u32 behind = r->tail - 1 - index, n;

	if (r->drain || r->blocked)
		return 0;
	if (w->takes_credit && r->credits_known)
		most = min_t(u32, most, max(psn_diff(r->limit_ssn, r->next_ssn) - 1, 0));
	for (n = 0; n < behind && n <= most && roan_requester_work(r, index + 1 + n)->twin; n++)
		;
	return n ? n - 1 : 0;
}

/* Those in the middle of a message, or messages of a packet. */
u32 roan_requester_alike(const struct roan_requester *r, const struct roan_emit *e, u32 most)
{
	const struct roan_work *w = roan_requester_work(r, e->index);
	u32 pos = e->offset >> r->cfg.mtu_shift;

	if ((w->op != ROAN_OP_SEND && w->op != ROAN_OP_WRITE) || e->ackreq || e->resend || r->cfg.transport == ROAN_TP_UD)
		return 0;
	if (r->cfg.transport == ROAN_TP_RC)
		most = min(most, unasked(r, e));
	if (e->whole)
		return works_alike(r, w, e->index, most);
	return pos && pos + 1 < w->npkts ? min(most, w->npkts - 2 - pos) : 0;
}

static void start(struct roan_requester *r, struct roan_work *w, u32 psn)
{
	w->started = true;
	w->first_psn = psn;
	w->got = 0;
	w->ssn = r->next_ssn;
	/* The peer counts every piece of a READ as a message. */
	r->next_ssn = psn_add(r->next_ssn, w->op == ROAN_OP_READ ? DIV_ROUND_UP(w->npkts, r->cfg.window) : 1);
}

/* Nobody answers UC and UD: what is sent is done. */
static void sent_unreliably(struct roan_requester *r, u32 index)
{
	r->una_psn = r->next_psn;
	for (; index != r->next; index++) {
		struct roan_work *w = roan_requester_work(r, index);

		w->status = ROAN_ST_SUCCESS;
		w->done = true;
	}
	pass_done(r);
}

void roan_requester_sent(struct roan_requester *r, const struct roan_emit *e, u64 now)
{
	struct roan_work *w = roan_requester_work(r, e->index);
	u32 i;

	if (!w->started)
		start(r, w, e->psn);
	for (i = 1; e->whole && i < e->npsn; i++)
		start(r, roan_requester_work(r, e->index + i), psn_add(e->psn, i));
	if (e->whole)
		r->next = e->index + e->npsn;
	else if (work_pos(w, e->psn) + e->npsn == w->npkts)
		r->next = e->index + 1;
	r->next_psn = psn_add(e->psn, e->npsn);
	if (psn_diff(r->next_psn, r->end_psn) > 0)
		r->end_psn = r->next_psn;
	if (e->resend)
		r->n_resent++;
	if (r->cfg.transport != ROAN_TP_RC) {
		sent_unreliably(r, e->index);
		return;
	}
	if (!r->progress_at)
		r->progress_at = now;
	r->quiet_at = now;
	if (!r->timed_at && !e->resend && (e->ackreq || roan_op_wants_answer(w->op))) {
		r->timed_at = now;
		r->timed_psn = e->psn;
	}
	r->since_ackreq = e->ackreq || roan_op_wants_answer(w->op) ? 0 : r->since_ackreq + e->npsn;
	if (roan_op_wants_answer(w->op))
		r->rd_outstanding++;
}

void roan_requester_local_done(struct roan_requester *r, u32 index)
{
	struct roan_work *w = roan_requester_work(r, index);

	w->status = ROAN_ST_SUCCESS;
	w->done = true;
	pass_done(r);
}

void roan_requester_fail(struct roan_requester *r, u32 index, enum roan_status status)
{
	struct roan_work *w = roan_requester_work(r, index);

	w->status = status;
	w->done = true;
	if (!r->blocked || (s32)(index - r->blocked_at) < 0)
		r->blocked_at = index;
	r->blocked = true;
	pass_done(r);
	/* What was sent may have counted on this work's packets to ask for the ACK. */
	if (r->since_ackreq && roan_requester_outstanding(r) && r->una != index)
		go_back(r, r->progress_at);
}

bool roan_requester_retired(struct roan_requester *r, u32 *index, enum roan_status *status)
{
	struct roan_work *w = roan_requester_work(r, r->retire);

	if (r->retire == r->tail || (!w->done && !r->failed))
		return false;
	*index = r->retire++;
	*status = w->done && !r->told ? w->status : ROAN_ST_WR_FLUSH_ERR;
	if (*status != ROAN_ST_SUCCESS) {
		r->told = true;
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
	r->una_psn = r->end_psn;	/* no answer is waited for any more */
	r->next_psn = r->end_psn;
	r->progress_at = 0;
	r->rnr_until = 0;
	r->timed_at = 0;
}

void roan_requester_resume(struct roan_requester *r)
{
	r->una = r->retire;
	r->next = r->retire;
	r->blocked = false;
	r->failed = false;
	r->told = false;
}

void roan_requester_tune(struct roan_requester *r, const struct roan_requester_cfg *cfg)
{
	const struct roan_requester_cfg old = r->cfg;

	r->cfg = *cfg;
	r->cfg.sq_psn = old.sq_psn;
	r->cfg.window = old.window;
	if (cfg->retry_cnt != old.retry_cnt)
		r->retries_left = cfg->retry_cnt;
	if (cfg->rnr_retry != old.rnr_retry)
		r->rnr_left = cfg->rnr_retry;
}

void roan_requester_drain(struct roan_requester *r, bool on, u64 now)
{
	r->drain = on;
	if (on && r->since_ackreq && roan_requester_outstanding(r))
		go_back(r, now);
}

bool roan_requester_drained(const struct roan_requester *r)
{
	const struct roan_work *w;

	if (!r->drain || roan_requester_outstanding(r))
		return false;
	if (r->next == r->tail)
		return true;
	w = roan_requester_work(r, r->next);
	return !w->started || w->done;
}
