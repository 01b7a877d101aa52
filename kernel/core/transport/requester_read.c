// SPDX-License-Identifier: GPL-2.0
/*
 * Responses that arrive after a gap, of READs and of the other operations that need a response. They are placed at
 * once, as their address does not depend on order; work requests complete in order all the same. What is missing, a
 * hole, is requested again alone: by a READ request of the same PSN for the hole only, which any responder answers
 * (IBTA vol. 1, 9.7.5.1.4). A hole counts as lost when a response or ACK shows that the peer has sent all responses to
 * its request; if reordering was seen, or there are several paths, some time after that. At most one hole of each
 * request is requested at a time, as a responder may know one repetition only.
 */
#include "core/transport/requester_priv.h"

/* The responses to one request: PSNs from @from, the first that is not taken, to before @to, of work request @index. */
struct read_piece {
	u32 index;
	u32 from;
	u32 to;
};

static bool read_is_placed(const struct roan_requester *r, u32 psn)
{
	return psn_set_has(r->reads.placed, ROAN_EARLY_RESPONSES, psn);
}

/* Whether work request @index is sent and needs responses that are not all taken. */
static bool read_is_awaited(const struct roan_requester *r, u32 index)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, index);

	return roan_op_needs_response(w->op) && w->started && !w->completed;
}

static void read_piece_at(const struct roan_requester *r, u32 index, u32 pos, struct read_piece *piece)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, index);

	piece->index = index;
	piece->from = psn_add(w->first_psn, pos);
	piece->to = psn_add(w->first_psn, read_piece_end(r, w, pos));
}

/* The first piece of work request @index or a later one. False: there is none. */
static bool read_find_piece(const struct roan_requester *r, u32 index, struct read_piece *piece)
{
	const struct roan_tx_wqe *w;

	for (; index != r->tail; index++) {
		w = roan_requester_wqe(r, index);
		if (w->n_psn && !w->started)
			return false;
		if (!read_is_awaited(r, index))
			continue;
		read_piece_at(r, index, w->resp_done, piece);
		return true;
	}
	return false;
}

static bool read_next_piece(const struct roan_requester *r, struct read_piece *piece)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, piece->index);
	u32 pos = work_pos(w, piece->to);

	if (pos >= w->n_psn)
		return read_find_piece(r, piece->index + 1, piece);
	read_piece_at(r, piece->index, pos, piece);
	return true;
}

/* It is known by which paths the responses come, and on each of them packets keep their order, as far as was seen. */
static bool read_paths_tell(const struct roan_requester *r)
{
	return unlikely(r->paths) && !r->reads.patience;
}

/* The last response of the piece came, or does not come any more. */
static bool read_all_came(const struct roan_requester *r, const struct read_piece *piece)
{
	u32 last = psn_add(piece->to, -1u);

	return read_paths_tell(r) && (read_is_placed(r, last) || roan_paths_overtaken(r, last));
}

/* Response @psn was requested again, and is not lost once more. */
static bool read_is_requested(struct roan_requester *r, u32 psn)
{
	if (!psn_set_has(r->reads.requested, ROAN_EARLY_RESPONSES, psn))
		return false;
	if (!read_paths_tell(r) || !roan_paths_overtaken(r, psn))
		return true;
	psn_set_remove(r->reads.requested, ROAN_EARLY_RESPONSES, psn);
	return false;
}

/* What is missing of the piece is lost, is within the sets, and will not be requested again anyway. */
static bool read_may_have_holes(const struct roan_requester *r, const struct read_piece *piece)
{
	if (psn_diff(piece->to, r->next_psn) > 0 || psn_diff(piece->to, r->una_psn) > ROAN_EARLY_RESPONSES)
		return false;
	return psn_diff(piece->to, r->reads.lost_psn) <= 0 || read_all_came(r, piece);
}

/* Finds the first hole of the piece. False: there is none, or a part of the piece is requested again already. */
static bool read_find_hole(struct roan_requester *r, const struct read_piece *piece, u32 *first, u32 *n)
{
	u32 psn;

	*n = 0;
	for (psn = piece->to; psn != piece->from; ) {
		psn = psn_add(psn, -1u);
		if (read_is_requested(r, psn))
			return false;
		if (read_is_placed(r, psn))
			continue;
		*n = *n && psn_add(psn, 1) == *first ? *n + 1 : 1;
		*first = psn;
	}
	return *n;
}

void roan_read_choose(struct roan_requester *r)
{
	struct roan_early_reads *e = &r->reads;
	struct read_piece piece;
	bool there = read_find_piece(r, r->una, &piece);

	e->hole_left = 0;
	for (; there && psn_diff(piece.from, e->answered_psn) < 0; there = read_next_piece(r, &piece)) {
		e->hole_index = piece.index;
		if (read_may_have_holes(r, &piece) && read_find_hole(r, &piece, &e->hole_psn, &e->hole_left))
			return;
		e->hole_left = 0;
	}
}

void roan_read_forget_requests(struct roan_requester *r)
{
	memset(r->reads.requested, 0, sizeof(r->reads.requested));
	r->reads.hole_left = 0;
}

void roan_read_reset(struct roan_requester *r)
{
	memset(r->reads.placed, 0, sizeof(r->reads.placed));
	roan_read_forget_requests(r);
	r->reads.any = false;
	r->reads.lost_at = 0;
}

/* The work request and the position in it of response @psn. False: no response has that PSN. */
static bool read_find(const struct roan_requester *r, u32 psn, u32 *index, u32 *pos)
{
	const struct roan_tx_wqe *w;

	for (*index = r->una; *index != r->tail; ++*index) {
		w = roan_requester_wqe(r, *index);
		if (!w->n_psn)		/* executed here */
			continue;
		if (!w->started)
			return false;
		*pos = work_pos(w, psn);
		if (*pos < w->n_psn)
			return read_is_awaited(r, *index);
	}
	return false;
}

bool roan_read_may_wait(const struct roan_requester *r, u32 psn)
{
	return !r->local_err && !r->rto_probe && psn_diff(psn, r->una_psn) < ROAN_EARLY_RESPONSES &&
	       read_is_awaited(r, r->una);
}

enum roan_resp_action roan_read_early(const struct roan_requester *r, u32 psn, u32 *index, u32 *pos)
{
	if (!read_find(r, psn, index, pos))
		return ROAN_RESP_FAILED;
	return read_is_placed(r, psn) ? ROAN_RESP_STALE : ROAN_RESP_PLACE;
}

/* ---- reordering ---- */

#define PATIENCE_MAX	4	/* a whole round trip */
#define LOSSES		16	/* without a needless response: less patience, as in RFC 8985 */

/* ns that a response may be late. */
static u64 read_wait_ns(const struct roan_requester *r)
{
	u64 wait = unlikely(r->paths) ? roan_paths_read_wait_ns(r) : 0;

	if (wait || !r->reads.patience)
		return wait;
	return roan_reorder_wait_ns(r, r->reads.patience);
}

/* What is missing now is lost, or will be after a while. */
static void read_wait(struct roan_requester *r, u64 now)
{
	struct roan_early_reads *e = &r->reads;
	u64 wait = read_wait_ns(r);

	if (!wait)
		e->late_psn = e->answered_psn;
	if (!wait || (e->lost_at && now >= e->lost_at)) {
		e->lost_psn = e->late_psn;
		e->lost_at = 0;
	}
	if (e->lost_at || psn_diff(e->answered_psn, e->lost_psn) <= 0)
		return;
	e->late_psn = e->answered_psn;
	e->lost_at = now + wait;
}

/* Chooses the next hole to request. Counts the first one of a loss. */
static enum roan_event read_find_lost(struct roan_requester *r)
{
	struct roan_early_reads *e = &r->reads;

	roan_read_choose(r);
	if (!e->hole_left)
		return ROAN_EV_PROGRESS;
	r->n_implied_naks += !e->counted;
	e->counted = true;
	return ROAN_EV_REPAIR;
}

enum roan_event roan_read_late(struct roan_requester *r, u64 now)
{
	read_wait(r, now);
	return read_find_lost(r);
}

/* A response came twice: a hole was requested that was none. */
void roan_read_needless(struct roan_requester *r)
{
	struct roan_early_reads *e = &r->reads;

	if (!e->again)
		return;
	e->again = false;
	e->losses = 0;
	e->patience = min(e->patience + 1, PATIENCE_MAX);
}

static void read_count_loss(struct roan_early_reads *e)
{
	e->again = true;
	if (++e->losses < LOSSES)
		return;
	e->losses = 0;
	e->patience /= 2;
}

/* The peer has sent all responses before @psn. */
static enum roan_event read_answered(struct roan_requester *r, u32 psn, u64 now)
{
	struct roan_early_reads *e = &r->reads;

	if (!e->any)
		e->lost_psn = r->una_psn;
	if (!e->any || psn_diff(psn, e->answered_psn) > 0)
		e->answered_psn = psn;
	e->any = true;
	if (unlikely(r->any_holes))
		roan_sack_executed(r, psn, now);
	read_wait(r, now);
	return read_find_lost(r);
}

enum roan_event roan_read_missing(struct roan_requester *r, u32 psn, u64 now)
{
	u32 index, pos;

	if (!roan_read_may_wait(r, psn_add(psn, -1u)))
		return roan_req_implied_nak(r, now);
	if (r->timed_at && psn_diff(psn, r->timed_psn) > 0) {
		if (read_find(r, r->timed_psn, &index, &pos))
			r->timed_at = 0;	/* its response will be that of a repeated request (Karn) */
		else
			roan_req_sample_rtt(r, now);
	}
	return read_answered(r, psn, now);
}

/*
 * Of a piece of which a part was requested again, @psn is here: what was requested before it is lost once more. If it
 * may be late, the deadline decides.
 */
static void read_forget_lost(struct roan_requester *r, u32 psn)
{
	const struct roan_tx_wqe *w;
	u32 index, pos, start;

	if (!psn_set_has(r->reads.requested, ROAN_EARLY_RESPONSES, psn) || read_wait_ns(r) ||
	    !read_find(r, psn, &index, &pos))
		return;
	w = roan_requester_wqe(r, index);
	start = max(pos - pos % read_piece(r, w), w->resp_done);
	psn_set_remove_run(r->reads.requested, ROAN_EARLY_RESPONSES, psn_add(psn, start - pos), pos - start + 1);
}

enum roan_event roan_read_placed_early(struct roan_requester *r, u32 psn, u64 now)
{
	r->ack_timer_base_ns = now;	/* the peer is alive, and each response is placed once */
	r->rto_base_ns = now;
	if (r->timed_at && r->timed_psn == psn)
		roan_req_sample_rtt(r, now);
	else if (r->timed_at && psn_diff(psn, r->timed_psn) > 0)
		r->timed_at = 0;	/* its response is missing, and will be that of a repeated request (Karn) */
	psn_set_add(r->reads.placed, ROAN_EARLY_RESPONSES, psn);
	read_forget_lost(r, psn);
	psn_set_remove(r->reads.requested, ROAN_EARLY_RESPONSES, psn);
	return read_answered(r, psn_add(psn, 1), now);
}

static bool read_take_placed(struct roan_requester *r)
{
	if (r->una == r->tail || !read_is_awaited(r, r->una) || !read_is_placed(r, r->una_psn))
		return false;
	take_response(r);
	return true;
}

void roan_read_progress(struct roan_requester *r, u32 from)
{
	struct roan_early_reads *e = &r->reads;
	u32 before;

	psn_set_remove_run(e->requested, ROAN_EARLY_RESPONSES, from, psn_diff(r->una_psn, from));
	psn_set_remove_run(e->placed, ROAN_EARLY_RESPONSES, from, psn_diff(r->una_psn, from));
	do {
		before = r->una_psn;
		while (read_take_placed(r)) {
			psn_set_remove(e->placed, ROAN_EARLY_RESPONSES, psn_add(r->una_psn, -1u));
			psn_set_remove(e->requested, ROAN_EARLY_RESPONSES, psn_add(r->una_psn, -1u));
		}
		if (psn_diff(e->answered_psn, r->una_psn) > 0)
			roan_req_pass(r, e->answered_psn);	/* other requests between READs */
	} while (r->una_psn != before);
	e->any = psn_diff(e->answered_psn, r->una_psn) > 0;
	e->counted &= e->any;
	if (e->any)
		return;
	e->lost_at = 0;
	roan_read_forget_requests(r);
}

enum roan_next roan_read_next_hole(struct roan_requester *r, u64 now, struct roan_tx_desc *d)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, r->reads.hole_index);

	if (unlikely(r->paths))
		roan_paths_response_lost(r, r->reads.hole_psn, now);
	roan_req_describe(r, r->reads.hole_index, r->reads.hole_psn, d);
	d->repair = true;
	d->read_hole = true;
	if (w->op == ROAN_OP_READ && d->npsn > r->reads.hole_left) {
		d->npsn = r->reads.hole_left;
		d->len = d->npsn << r->cfg.mtu_shift;
	}
	return ROAN_NEXT_PACKET;
}

void roan_read_requested(struct roan_requester *r, const struct roan_tx_desc *d)
{
	u32 psn, i;

	for (i = 0; i < d->npsn; i++) {
		psn = psn_add(d->psn, i);
		if (psn_diff(psn, r->una_psn) >= ROAN_EARLY_RESPONSES)
			return;
		if (!read_is_placed(r, psn))
			psn_set_add(r->reads.requested, ROAN_EARLY_RESPONSES, psn);
	}
}

void roan_read_hole_sent(struct roan_requester *r, const struct roan_tx_desc *d, u64 now)
{
	roan_read_requested(r, d);
	r->reads.repeated = true;
	read_count_loss(&r->reads);
	r->rto_base_ns = now;
	r->n_resent++;
	roan_read_choose(r);
}

static bool read_any_requested(const struct roan_requester *r)
{
	u32 i, any = 0;

	for (i = 0; i < ROAN_PSN_WORDS(ROAN_EARLY_RESPONSES); i++)
		any |= r->reads.requested[i];
	return any;
}

u64 roan_read_deadline(const struct roan_requester *r)
{
	if (likely(!r->reads.any) || r->reads.hole_left || !read_any_requested(r))
		return U64_MAX;
	return req_again_at(r, r->rto_base_ns);
}

void roan_read_timed_out(struct roan_requester *r, u64 now)
{
	r->n_rto++;
	r->repair_backoff++;
	r->rto_base_ns = now;
	roan_read_forget_requests(r);
	roan_read_choose(r);
}
