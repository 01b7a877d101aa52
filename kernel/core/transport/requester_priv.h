/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by requester.c and requester_rx.c, and nobody else. */
#ifndef ROAN_REQUESTER_PRIV_H
#define ROAN_REQUESTER_PRIV_H

#include "core/transport/requester.h"

/* Which of its packets has @psn. Unsigned: a message may have 2^23 packets. */
static inline u32 work_pos(const struct roan_tx_wqe *w, u32 psn)
{
	return (psn - w->first_psn) & PSN_MASK;
}

/* Where the piece of a READ that holds response packet @pos ends. */
static inline u32 read_piece_end(const struct roan_requester *r, u32 pos, u32 npkts)
{
	return min(npkts, (pos / r->cfg.psn_window + 1) * r->cfg.psn_window);
}

/* Is a READ or atomic before work @index not finished? */
static inline bool unanswered_before(const struct roan_requester *r, u32 index)
{
	u32 i;

	for (i = r->una; i != index; i++)
		if (!roan_requester_wqe(r, i)->completed && roan_op_needs_response(roan_requester_wqe(r, i)->op))
			return true;
	return false;
}

static inline void skip_completed(struct roan_requester *r)
{
	while (r->una != r->tail && roan_requester_wqe(r, r->una)->completed)
		r->una++;
	if ((s32)(r->next - r->una) < 0)
		r->next = r->una;
}

/* The oldest unacknowledged PSN is the next to leave. */
static inline void next_is_oldest(struct roan_requester *r, u64 now)
{
	r->next_psn = r->una_psn;
	r->next = r->una;
	r->rd_outstanding = 0;
	r->since_ackreq = 0;
	r->ack_timer_base_ns = now;
}

/* Everything from it on leaves again. */
static inline void go_back(struct roan_requester *r, u64 now)
{
	next_is_oldest(r, now);
	r->rto_probe = false;
	r->timed_at = 0;	/* whose answer comes next, the first sending's or the second's, nobody can tell (Karn) */
}

#endif /* ROAN_REQUESTER_PRIV_H */
