/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by requester.c and requester_rx.c only. */
#ifndef ROAN_REQUESTER_PRIV_H
#define ROAN_REQUESTER_PRIV_H

#include "core/transport/requester.h"

/* Position of the packet with @psn in its message. Unsigned: a message may have 2^23 packets. */
static inline u32 work_pos(const struct roan_tx_wqe *w, u32 psn)
{
	return (psn - w->first_psn) & PSN_MASK;
}

/* End of the piece of a READ that contains response packet @pos. */
static inline u32 read_piece_end(const struct roan_requester *r, u32 pos, u32 npkts)
{
	return min(npkts, (pos / r->cfg.psn_window + 1) * r->cfg.psn_window);
}

/* True if a READ or atomic before work request @index is not complete. */
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

/* Makes the oldest unacknowledged PSN the next to send. */
static inline void next_is_oldest(struct roan_requester *r, u64 now)
{
	r->next_psn = r->una_psn;
	r->next = r->una;
	r->rd_outstanding = 0;
	r->since_ackreq = 0;
	r->ack_timer_base_ns = now;
	r->repair_left = 0;
	r->repair_sent = false;
}

/* Retransmits everything from the oldest unacknowledged PSN on. */
static inline void go_back(struct roan_requester *r, u64 now)
{
	next_is_oldest(r, now);
	r->rto_probe = false;
	/* no RTT sample from a retransmitted packet: its response may belong to either copy (Karn) */
	r->timed_at = 0;
}

#endif /* ROAN_REQUESTER_PRIV_H */
