/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files requester*.c only. */
#ifndef ROAN_REQUESTER_PRIV_H
#define ROAN_REQUESTER_PRIV_H

#include "core/transport/requester.h"

/*
 * Slow start (RFC 5681, 3.1): a queue on the way may hold less than the PSN window, and what it drops at the beginning
 * no SACK tells of. The window doubles with each round trip.
 */
#define ROAN_START_WINDOW	16	/* packets */
#define ROAN_RESTART_WINDOW	2	/* after a timeout */

static inline void roan_req_start_slowly(struct roan_requester *r, u32 window)
{
	r->start_window = min(window, r->cfg.psn_window);
}

void roan_holes_reset(struct roan_requester *r);

/* Holes are not requested any more, as all is requested again; what is placed stays so. */
void roan_read_forget_requests(struct roan_requester *r);
/* Nothing is placed early. */
void roan_read_reset(struct roan_requester *r);

#define ROAN_PATH_SHARE_MIN	16
#define ROAN_PATH_SHARE_MAX	4096

/* Nothing is known of it. */
static inline void roan_path_start_again(struct roan_path *path)
{
	path->share = ROAN_PATH_SHARE_MIN;
	path->rtt_ns = 0;
	path->read_ns = 0;
}

void roan_paths_reset(struct roan_requester *r);
/* The memory is for @n or more. Those beyond the first are new; if it is one, all packets count as sent by it. */
void roan_paths_set_number(struct roan_requester *r, u32 n);
/* Nothing is in flight any more: everything is sent again, or nothing. */
void roan_paths_forget(struct roan_requester *r);
/* Sets the path of packet @d, which is next, and AckReq if no other may follow it. False: not now. */
bool roan_paths_next(struct roan_requester *r, struct roan_tx_desc *d, u64 now);
/* How many more packets, without AckReq, may leave by the same path. */
u32 roan_paths_batch(const struct roan_requester *r);
/* The most packets in flight by all paths. */
static inline u32 roan_paths_window(const struct roan_requester *r)
{
	return r->peer_sacks ? roan_path_window_packets(&r->paths->window) : U32_MAX;
}

/* The packets of @d leave by the path that roan_paths_next() has set. */
void roan_paths_sent(struct roan_requester *r, const struct roan_tx_desc *d, u64 now);
/* The packets from @psn on did not leave this host. */
void roan_paths_unsent(struct roan_requester *r, u32 psn);
/* A SACK says which packets the peer has received. */
void roan_paths_sacked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now);
/* una_psn has advanced from @from. */
void roan_paths_progress(struct roan_requester *r, u32 from, u64 now);
/* The most responses that a request of a READ posted now should ask for; 0: any number. */
u8 roan_paths_read_piece(const struct roan_requester *r);
/* Response @psn is here. */
void roan_paths_response(struct roan_requester *r, u32 psn, u64 now);
/* A response to a READ that was sent after the request for response @psn, by the same path, is here. */
bool roan_paths_overtaken(const struct roan_requester *r, u32 psn);
/* Response @psn counts as lost. */
void roan_paths_response_lost(struct roan_requester *r, u32 psn, u64 now);
/* ns that a response may be later than others; 0: there is one path. */
u64 roan_paths_read_wait_ns(const struct roan_requester *r);
/* Packet @psn counts as lost. */
void roan_paths_lost(struct roan_requester *r, u32 psn);
/* Packets sent by the path of packet @psn and after it, of which the last is received. */
u32 roan_paths_overtakers(const struct roan_requester *r, u32 psn);
/*
 * True if packet @psn, which no packet of its path has overtaken, would have arrived by now. If not, lowers @at, ns, to
 * when it is.
 */
bool roan_paths_expired(struct roan_requester *r, u32 psn, u64 now, u64 *at);

void roan_auto_paths_reset(struct roan_requester *r);
/* A round trip was measured. */
void roan_auto_paths_step(struct roan_requester *r, u64 now);
/* The RTO or the ACK timeout has expired. */
void roan_auto_paths_timed_out(struct roan_requester *r, u64 now);

/* Forgets all holes: everything is sent again, or nothing. */
static inline void roan_holes_clear(struct roan_requester *r)
{
	if (unlikely(r->any_holes))
		roan_holes_reset(r);
}

/* Position of the packet with @psn in its message. Unsigned: a message may have 2^23 packets. */
static inline u32 work_pos(const struct roan_tx_wqe *w, u32 psn)
{
	return (psn - w->first_psn) & PSN_MASK;
}

/* The most responses that one request of READ @w asks for. */
static inline u32 read_piece(const struct roan_requester *r, const struct roan_tx_wqe *w)
{
	return w->piece ?: r->cfg.psn_window;
}

/* End of the piece of READ @w that contains response packet @pos. */
static inline u32 read_piece_end(const struct roan_requester *r, const struct roan_tx_wqe *w, u32 pos)
{
	u32 piece = read_piece(r, w);

	return min(w->n_psn, (pos / piece + 1) * piece);
}

/* True if response @pos is the last one of a piece of READ @w. */
static inline bool read_ends_piece(const struct roan_requester *r, const struct roan_tx_wqe *w, u32 pos)
{
	return pos + 1 == w->n_psn || (pos + 1) % read_piece(r, w) == 0;
}

/* True if @pkt, an ACK packet, refuses a request: the peer's QP has failed. */
static inline bool refuses(const struct roan_pkt *pkt)
{
	return (pkt->syndrome & ROAN_AETH_KIND_MASK) == ROAN_AETH_NAK &&
	       (pkt->syndrome & ROAN_AETH_VALUE_MASK) != ROAN_NAK_PSN_SEQUENCE;
}

/* True if the peer has refused a part of the oldest work request, which may be a READ that got some responses. */
static inline bool refuses_oldest(const struct roan_requester *r)
{
	const struct roan_tx_wqe *w = roan_requester_wqe(r, r->una);

	return work_pos(w, r->refused_psn) < w->n_psn;
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

/* Takes the response at una_psn, which is placed. */
static inline void take_response(struct roan_requester *r)
{
	struct roan_tx_wqe *w = roan_requester_wqe(r, r->una);

	if (read_ends_piece(r, w, w->resp_done) && r->rd_outstanding && psn_diff(r->una_psn, r->next_psn) < 0)
		r->rd_outstanding--;
	w->resp_done++;
	r->una_psn = psn_add(r->una_psn, 1);
	if (w->resp_done == w->n_psn) {
		w->status = ROAN_ST_SUCCESS;
		w->completed = true;
		skip_completed(r);
	}
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
	roan_holes_clear(r);
	if (unlikely(r->paths))
		roan_paths_forget(r);
	if (unlikely(r->reads.any))
		roan_read_forget_requests(r);
	r->reads.lost_at = 0;
}

/* Retransmits everything from the oldest unacknowledged PSN on. */
static inline void go_back(struct roan_requester *r, u64 now)
{
	next_is_oldest(r, now);
	r->rto_probe = false;
	/* no RTT sample from a retransmitted packet: its response may belong to either copy (Karn) */
	r->timed_at = 0;
}

#define REPAIR_BACKOFF_MAX	2	/* the RTO covers what is still without an answer then */

/*
 * Deadline of an answer that is awaited since @base_ns: two round trips or so, doubled each time it passes. U64_MAX:
 * the RTO covers it. A probe is covered by the RTO, too.
 */
static inline u64 req_again_at(const struct roan_requester *r, u64 base_ns)
{
	u64 wait = roan_rtt_repair_ns(&r->rtt);

	if (!wait || r->rto_probe || r->local_err || r->repair_backoff > REPAIR_BACKOFF_MAX)
		return U64_MAX;
	return base_ns + (wait << r->repair_backoff);
}

/* True if una_psn is a packet of work request @r->una that was sent. After a local failure it need not be. */
bool roan_repair_possible(const struct roan_requester *r);
/* A sequence NAK names packet una_psn. False: everything is to be sent again from there on. */
bool roan_repair_by_nak(struct roan_requester *r, u64 now);
/* Uses a retry, unless one has been used since the last progress. False: none is left. */
bool roan_req_use_retry(struct roan_requester *r);
/*
 * una_psn has advanced during a repair. A peer that drops what it receives after a gap cannot acknowledge a packet
 * behind the repaired ones.
 */
void roan_repair_progress(struct roan_requester *r, u64 now);
/* Packet @e of a repair is sent. */
void roan_repair_sent(struct roan_requester *r, const struct roan_tx_desc *e, u64 now);
/* Deadline of the answer to a repair. After it the repair counts as lost, too. The RTO covers what repairs do not. */
u64 roan_repair_deadline(const struct roan_requester *r);
/*
 * A repair has no answer: it is sent again. If it was answered and nothing else comes, no packet is left that would
 * make the peer ask for the next one of the gap: as if a NAK had named it.
 */
void roan_repair_timed_out(struct roan_requester *r, u64 now);

/*
 * Handles the peer's acknowledgment of all PSNs before @psn. False: the response to a READ or atomic before @psn is
 * missing; what precedes that READ is acknowledged all the same (implied NAK, 9.7.5.1.1).
 */
bool roan_req_acknowledge(struct roan_requester *r, u32 psn, u64 now);
/* The same, as far as una and una_psn are concerned only. */
bool roan_req_pass(struct roan_requester *r, u32 psn);
/* The response to a READ or atomic is missing and a later one arrived. Acts once per loss. */
enum roan_event roan_req_implied_nak(struct roan_requester *r, u64 now);
/* A sequence NAK names packet una_psn. */
enum roan_event roan_req_sequence_nak(struct roan_requester *r, u64 now);
/* The response to the timed packet arrived: takes an RTT sample. */
void roan_req_sample_rtt(struct roan_requester *r, u64 now);
/* Takes the credits that the response carries, if any. */
void roan_req_take_credits(struct roan_requester *r, const struct roan_pkt *pkt);
/* A timeout: sends the oldest packet only. roan_req_probe_answered() decides about the packets after it. */
void roan_req_start_probe(struct roan_requester *r, u64 progress_at, u64 now);
/*
 * The probe was acknowledged. Normally the peer has lost everything after the probe: retransmit all. If the
 * acknowledgment is @late, it covers packets sent before the probe: nothing was lost, or only the ACK, or else the
 * tail, as the answer to the probe covers all that arrived. So the packet that is the oldest now is a second probe. If
 * its answer is late, too: continue behind the last packet sent (as RFC 5682 does), and do not request READ responses
 * twice, which would keep a slow peer busy.
 */
void roan_req_probe_answered(struct roan_requester *r, bool late);
/* The peer keeps what was sent after the RTO probe: continues behind the last packet sent. */
void roan_req_end_probe(struct roan_requester *r);

/* True if the last packet sent has no AckReq, as another one was to follow. */
bool roan_req_is_unasked(const struct roan_requester *r);
/* If that one is held: when the peer is asked for an answer all the same, in ns. Else U64_MAX. */
u64 roan_req_unasked_deadline(const struct roan_requester *r);
/* Makes the last packet sent the next to send, with AckReq. False: it will be answered. */
bool roan_req_ask(struct roan_requester *r);

/* Describes packet @psn of work request @index, which was sent before. */
void roan_req_describe(const struct roan_requester *r, u32 index, u32 psn, struct roan_tx_desc *e);

/* True if response @psn, not the next one, may be placed: those missing before it are requested again alone. */
bool roan_read_may_wait(const struct roan_requester *r, u32 psn);
/* Work request and position in it of response @psn, which may wait. STALE: it is placed; FAILED: there is none. */
enum roan_resp_action roan_read_early(const struct roan_requester *r, u32 psn, u32 *index, u32 *pos);
enum roan_event roan_read_placed_early(struct roan_requester *r, u32 psn, u64 now);
/* The peer has executed all requests before @psn, and the response to one is missing. */
enum roan_event roan_read_missing(struct roan_requester *r, u32 psn, u64 now);
/* una_psn has advanced from @from by a response: takes what is placed behind it, and acknowledges what was answered. */
void roan_read_progress(struct roan_requester *r, u32 from);
/* Makes the first hole that is lost and not requested again the next to send. */
void roan_read_choose(struct roan_requester *r);
/* A request for responses, described by @d, is sent. */
void roan_read_requested(struct roan_requester *r, const struct roan_tx_desc *d);
enum roan_next roan_read_next_hole(struct roan_requester *r, u64 now, struct roan_tx_desc *d);
void roan_read_hole_sent(struct roan_requester *r, const struct roan_tx_desc *d, u64 now);
/* A response came that is not awaited any more, or is placed already. */
void roan_read_needless(struct roan_requester *r);
/* reads.lost_at has passed. */
enum roan_event roan_read_late(struct roan_requester *r, u64 now);
/* Deadline of the responses to the requests for holes. After it they count as lost, too. */
u64 roan_read_deadline(const struct roan_requester *r);
void roan_read_timed_out(struct roan_requester *r, u64 now);

/* una_psn has advanced from @from. */
void roan_sack_progress(struct roan_requester *r, u32 from, u64 now);
/* The peer has executed all requests before @psn, though una_psn is before it: responses are missing. */
void roan_sack_executed(struct roan_requester *r, u32 psn, u64 now);
/* A packet of a repair is sent: chooses the next one. */
void roan_sack_repair_sent(struct roan_requester *r, const struct roan_tx_desc *e, u64 now);
/* Packet @psn, which is missing, is to be sent again. roan_sack_choose_oldest() follows. */
void roan_sack_lost(struct roan_requester *r, u32 psn);
/* Makes the oldest packet that is to be sent again the next to send. */
void roan_sack_choose_oldest(struct roan_requester *r);
/* Deadline of any answer, if the peer sends SACKs. */
u64 roan_sack_deadline(const struct roan_requester *r);
void roan_sack_timed_out(struct roan_requester *r, u64 now);

/* ns that a packet may be late, as so many quarters of a round trip. */
u32 roan_reorder_wait_ns(const struct roan_requester *r, u32 quarters);
/* A SACK comes; roan_reorder_is_lost() follows for each packet that it shows as missing. */
void roan_reorder_begin(struct roan_requester *r, u64 now);
/* True if packet @psn, which the SACK shows as missing, has waited long enough to count as lost. */
bool roan_reorder_is_lost(struct roan_requester *r, const struct roan_pkt *pkt, u32 psn, u64 now);
/* The peer has received packet @psn, which may have been missing. */
void roan_reorder_received(struct roan_requester *r, u32 psn, u64 now);
/* As a SACK says, the peer has received so many copies of packets that had arrived. */
void roan_reorder_needless(struct roan_requester *r, u8 needless);
/* una_psn has advanced, or a SACK was handled. */
void roan_reorder_progress(struct roan_requester *r);
/* roan_requester_reorder_deadline() has passed. */
void roan_reorder_timed_out(struct roan_requester *r, u64 now);

#endif /* ROAN_REQUESTER_PRIV_H */
