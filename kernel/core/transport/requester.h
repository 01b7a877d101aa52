/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sending side of a QP: which packet leaves next, what an answer means, what a silence means, which work requests are
 * finished. RC in full; UC and UD use the same queue, where a message is finished as soon as its last packet is sent.
 *
 *     retire        una           next              tail            (free-running indices of struct roan_tx_wqe)
 *   ----|-------------|-------------|-----------------|----
 *        done, not yet  sent, not     queued, not sent
 *        given back     acknowledged  (or to be sent again)
 *
 * The shell queues work in posting order, asks roan_requester_next() what to send, sends it and says so with
 * roan_requester_sent(); feeds every response in; after every event takes back finished work with
 * roan_requester_retired(), and asks roan_requester_deadline() when it wants to be called. Time is ns, any epoch, never 0.
 *
 * Concurrency: none here. The caller holds qp->sq.lock.
 */
#ifndef ROAN_REQUESTER_H
#define ROAN_REQUESTER_H

#include "core/core_env.h"
#include "core/transport/opcode.h"
#include "core/transport/psn.h"
#include "core/transport/rtt.h"
#include "core/transport/wire.h"

/* Completion statuses, numbered as enum ib_wc_status. */
enum roan_status {
	ROAN_ST_SUCCESS		= 0,
	ROAN_ST_LOC_LEN_ERR	= 1,
	ROAN_ST_LOC_QP_OP_ERR	= 2,
	ROAN_ST_LOC_PROT_ERR	= 4,
	ROAN_ST_WR_FLUSH_ERR	= 5,
	ROAN_ST_MW_BIND_ERR	= 6,
	ROAN_ST_BAD_RESP_ERR	= 7,
	ROAN_ST_LOC_ACCESS_ERR	= 8,
	ROAN_ST_REM_INV_REQ_ERR	= 9,
	ROAN_ST_REM_ACCESS_ERR	= 10,
	ROAN_ST_REM_OP_ERR	= 11,
	ROAN_ST_RETRY_EXC_ERR	= 12,
	ROAN_ST_RNR_RETRY_EXC_ERR = 13,
	ROAN_ST_GENERAL_ERR	= 21,
};

/* One work request as the requester sees it. */
struct roan_tx_wqe {
	/* set by the shell, const once queued */
	u8 op;			/* enum roan_op: a request, or ROAN_OP_LOCAL */
	u8 ext;			/* enum roan_ext */
	bool fence;		/* starts only when all earlier READs and atomics are finished */
	bool barrier;		/* starts only when all before it is finished */
	bool solicited;
	u32 len;		/* bytes of the message; READ: bytes asked for; atomics 8; FLUSH, LOCAL 0 */

	/* requester.c */
	/* one packet, as the work before it, of the same kind and length, and neither waits for anything */
	bool same_as_prev;
	bool needs_recv_wqe;	/* and so a receive work request at the peer (9.7.7.2) */
	u8 status;		/* enum roan_status; valid once done */
	bool started;		/* a first packet left: PSNs are assigned */
	bool completed;
	u32 first_psn;
	/* PSNs taken: packets of the request, for a READ those of its response; LOCAL 0, else >= 1 */
	u32 n_psn;
	u32 resp_done;		/* READ: response packets placed, in order */
	u32 ssn;		/* send sequence number, for end-to-end credits (9.7.7.2) */
};

struct roan_requester_cfg {
	u8  transport;		/* enum roan_transport: RC, UC or UD */
	u8  mtu_shift;		/* path MTU = 1 << mtu_shift bytes, 8..12 */
	u8  retry_cnt;		/* 0..7 */
	u8  rnr_retry;		/* 0..7, 7 = for ever */
	u8  timeout;		/* local ACK timeout code, 0..31, 0 = never */
	u8  max_rd_atomic;	/* READs and atomics outstanding */
	u32 sq_psn;
	u32 psn_window;		/* most PSNs unacknowledged; < 2^22 */
};

struct roan_requester {
	struct roan_requester_cfg cfg;
	/* the shell's array of mask + 1 entries; it may put a larger one in its place */
	struct roan_tx_wqe *work;
	u32 mask;

	u32 retire;
	u32 una;		/* oldest work not done */
	u32 next;		/* work the next packet comes from */
	u32 tail;

	u32 una_psn;		/* oldest PSN not acknowledged */
	u32 next_psn;		/* PSN of the next packet to leave; behind end_psn while resending */
	u32 end_psn;		/* one past the highest PSN ever sent */

	u32 next_ssn;		/* of the next message to start */
	u32 lsn;		/* LSN: highest SSN the peer has receive WQEs for; valid if credits_known */
	u32 since_ackreq;	/* packets sent since one asked for an ACK */
	u32 rd_outstanding;	/* READs, atomics, FLUSHes and ATOMIC_WRITEs sent and not answered */

	u64 ack_timer_base_ns;	/* ns: the ACK timer runs from here; 0 = nothing outstanding */
	u64 rnr_until;		/* ns: nothing leaves before; 0 = no RNR wait */
	u64 rnr_since;		/* ns: when the oldest request was first refused so; 0 = it was not */
	u64 rto_base_ns;	/* ns: the last packet left, or news came: measured silence runs from here */

	struct roan_rtt rtt;	/* srtt_ns: the round trip, smoothed */
	u64 max_ack_wait_ns;	/* the longest time that was waited for an answer of late; 0: none came yet */
	u64 max_ack_wait_at;	/* ns: when that was */
	u64 timed_at;		/* ns: when packet @timed_psn, which asked for an answer, left; 0 = none is timed */
	u64 new_rtt_ns;		/* measured since roan_requester_take_rtt(); 0 = none */
	u32 timed_psn;
	u32 rto_probe_psn;
	u32 local_err_idx;	/* valid if blocked: the oldest work that failed */
	u8  rto_backoff;	/* early retransmissions since an answer was measured: each doubles the patience */
	u8  retries_left;
	u8  rnr_left;
	bool credits_known;	/* the peer does end-to-end flow control */
	bool nak_seen;		/* a sequence NAK for una_psn was acted on; a second one is an echo */
	bool rto_probe;		/* silence: one packet asks again, from probe_psn; the rest follows when news came */
	bool tail_ackreq;	/* the last packet before the silence asked for an ACK */
	bool sqd;		/* SQD: finish the message under way, start no other */
	bool local_err;		/* a work failed locally: it and what is behind it does not leave */
	bool failed;		/* everything left is flushed */
	bool err_delivered;	/* retired() gave back an error */

	/* counts of events since reset; the shell reads differences into its counters */
	u32 n_resent;		/* packets sent again */
	u32 n_timeouts;
	u32 n_rto;		/* retransmissions before the ACK timeout, by measured round trip */
	u32 n_seq_naks;
	u32 n_rnr_naks;
	u32 n_implied_naks;	/* a response beyond a READ or atomic not answered yet */
	u32 n_stale;		/* responses that said nothing new */
};

enum roan_next {
	ROAN_NEXT_PACKET,	/* send @emit, then call roan_requester_sent() */
	ROAN_NEXT_LOCAL,	/* do work @emit->index now, then roan_requester_local_done() or roan_requester_fail() */
	ROAN_NEXT_IDLE,		/* nothing queued */
	ROAN_NEXT_WAIT,		/* an answer, a timer or modify_qp must come first */
};

/* One packet to send. Headers other than these come from the work request itself. */
struct roan_tx_desc {
	u32 index;		/* of the work */
	u8  opcode;
	bool ackreq;
	bool solicited;
	bool resend;
	bool single_pkt;	/* the packet is a message: packets alike are messages too, of the works behind */
	u32 psn;
	u32 npsn;		/* PSNs this packet takes: 1, or a READ's response packets; of packets alike, all of theirs */
	u32 offset;		/* bytes into the message at which the payload, or what a READ asks for, begins */
	u32 len;		/* payload bytes; READ: bytes asked for (RETH length); atomics, FLUSH: 0 */
};

/* Of packet number @i of those that are alike: whose it is, and where in its message it begins. */
static inline u32 roan_tx_desc_index(const struct roan_tx_desc *emit, u32 i)
{
	return emit->index + (emit->single_pkt ? i : 0);
}

static inline u32 roan_tx_desc_offset(const struct roan_tx_desc *emit, u32 i)
{
	return emit->single_pkt ? 0 : emit->offset + i * emit->len;
}

enum roan_event {
	ROAN_EV_NOTHING,	/* nothing changed */
	ROAN_EV_PROGRESS,	/* retire; there may be room to send */
	ROAN_EV_RETRY,		/* something goes again, now or when the deadline says */
	ROAN_EV_FAILED,		/* retire: the oldest work carries an error, the rest is flushed */
};

enum roan_resp_action {
	ROAN_RESP_PLACE,	/* put the payload at @offset of work @index, then roan_requester_placed() or _fail() */
	ROAN_RESP_STALE,	/* seen before, or a ghost: drop */
	ROAN_RESP_RETRY,	/* a hole before it: drop; the READ is asked again */
	ROAN_RESP_FAILED,	/* breaks the protocol: as ROAN_EV_FAILED */
};

/* Start afresh with @cfg at RTR->RTS; the work array stays. Work queued before is forgotten. */
void roan_requester_reset(struct roan_requester *r, const struct roan_requester_cfg *cfg);

static inline bool roan_requester_full(const struct roan_requester *r)
{
	return r->tail - r->retire > r->mask;
}

/* Room for another work? The caller fills the entry and then calls roan_requester_queued(). NULL: full. */
struct roan_tx_wqe *roan_requester_slot(struct roan_requester *r, u32 *index);
void roan_requester_queued(struct roan_requester *r);
/* Queues another like the one queued last, none of which has left. */
void roan_requester_queue_same(struct roan_requester *r);

enum roan_next roan_requester_next(struct roan_requester *r, u64 now, struct roan_tx_desc *emit);
/*
 * As many more may leave with the packet @emit, @most at most, each a PSN and a path MTU further on and else the same; or each of
 * the next work, if they are @emit->single_pkt. next() would have said so of each. Of those that do leave sent() is
 * told once, with npsn raised by their number.
 */
u32 roan_requester_batch_count(const struct roan_requester *r, const struct roan_tx_desc *emit, u32 most);
void roan_requester_sent(struct roan_requester *r, const struct roan_tx_desc *emit, u64 now);
void roan_requester_local_done(struct roan_requester *r, u32 index);

/* ACK packet (positive, RNR or NAK). */
enum roan_event roan_requester_acked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now);

/* RDMA READ response (also the answer to FLUSH and ATOMIC_WRITE, then with nothing to place) or atomic acknowledge. */
enum roan_resp_action roan_requester_response(struct roan_requester *r, const struct roan_pkt *pkt, u64 now,
				       u32 *index, u32 *offset);
enum roan_event roan_requester_placed(struct roan_requester *r, const struct roan_pkt *pkt, u64 now);

/*
 * Work @index cannot be done (bad SGE, key, length). Earlier work may still finish; when retired() reaches this one it
 * carries @status and everything behind it is flushed.
 */
void roan_requester_fail(struct roan_requester *r, u32 index, enum roan_status status);

/* Oldest finished work, in order; false: none. Once one has been given back with an error the rest are flushed. */
bool roan_requester_retired(struct roan_requester *r, u32 *index, enum roan_status *status);

/* The QP went to the error state: all that is left retires with WR_FLUSH_ERR. */
void roan_requester_flush(struct roan_requester *r);

/*
 * UC, UD: leaves the SQ error state, after flush() and once all is retired. Numbering goes on where it was: the peer takes
 * any message that begins.
 */
void roan_requester_resume(struct roan_requester *r);

/* When timer() wants to be called next, 0 = never. */
u64 roan_requester_deadline(const struct roan_requester *r);
/*
 * How much later than its deadline timer() may be called: silence need not be measured to the microsecond (9.7.6.1.3 lets
 * a timeout be four times what was asked for), but an RNR wait ends when it ends.
 */
u64 roan_requester_slack(const struct roan_requester *r);
/* An answer found no place and was dropped; now there is one: all from the oldest unanswered on leaves again, no retry. */
void roan_requester_retransmit(struct roan_requester *r, u64 now);

enum roan_event roan_requester_timer(struct roan_requester *r, u64 now);

/* Nothing left, or not the last of it, until @when: the silence before says nothing of the peer. */
static inline void roan_requester_restart_timer(struct roan_requester *r, u64 when)
{
	if (!r->ack_timer_base_ns)
		return;
	r->ack_timer_base_ns = max(r->ack_timer_base_ns, when);
	r->rto_base_ns = max(r->rto_base_ns, when);
}

/*
 * Attributes that may change while works are under way: timeout, retries (begun anew if they changed), READs at a time. @cfg's
 * sq_psn and window are not taken: by the window READs under way were cut in pieces.
 */
void roan_requester_update_cfg(struct roan_requester *r, const struct roan_requester_cfg *cfg);

/* SQD entered or left. What was sent without asking for an ACK, because more was to follow, is then sent again with it. */
void roan_requester_drain(struct roan_requester *r, bool on, u64 now);

/* SQD: nothing sent is unfinished, and no message is half sent. */
bool roan_requester_drained(const struct roan_requester *r);

/* The round trip an answer since the last call has shown, in ns; 0: none. */
static inline u64 roan_requester_take_rtt(struct roan_requester *r)
{
	u64 ns = r->new_rtt_ns;

	r->new_rtt_ns = 0;
	return ns;
}

/* Anything sent and not answered? Then an ACK or the timer will come. */
static inline bool roan_requester_outstanding(const struct roan_requester *r)
{
	return r->una_psn != r->end_psn;
}

/* Has all left, and could one more request leave now, if it is like the last one? */
bool roan_requester_can_send(const struct roan_requester *r);

/* Works begun or to begin, and not finished; some of them may be behind others that are not. */
static inline u32 roan_requester_under_way(const struct roan_requester *r)
{
	return r->tail - r->una;
}

/* What is not heard of for longer is better asked for: a call of the kernel takes its user some microseconds. */
#define ROAN_ACK_SOON_NS	NSEC_PER_MSEC

/*
 * Will an answer or the timer be here soon, so that what is posted meanwhile can wait for it? Not where answers take long, as
 * a window posted request by request would take two round trips; nor without a timer, as the answer may be lost.
 */
static inline bool roan_requester_answer_expected(const struct roan_requester *r)
{
	if (r->rnr_until)
		return true;		/* and until then nothing may leave */
	return roan_requester_outstanding(r) && r->cfg.timeout && r->max_ack_wait_ns &&
		r->max_ack_wait_ns <= ROAN_ACK_SOON_NS;
}

static inline struct roan_tx_wqe *roan_requester_wqe(const struct roan_requester *r, u32 index)
{
	return &r->work[index & r->mask];
}

#endif /* ROAN_REQUESTER_H */
