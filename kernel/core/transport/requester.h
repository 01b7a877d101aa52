/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sending side of a QP: which packet to send next, what a response or a timeout means, which work requests are
 * complete. RC in full. UC and UD use the same queue; their messages are complete once the last packet is sent. No
 * skb, timer or lock here.
 *
 *     retire        una           next              tail            (free-running indices of struct roan_tx_wqe)
 *   ----|-------------|-------------|-----------------|----
 *        done, not yet  sent, not     queued, not sent
 *        retired        acknowledged  (or to be sent again)
 *
 * The driver half queues work requests in posting order, gets the next packet from roan_requester_next(), sends it and
 * reports it with roan_requester_sent(). It passes in every response. After every event it takes completed work
 * requests with roan_requester_retired() and sets its timer to roan_requester_deadline().
 * Time is ns, any epoch, never 0.
 *
 * Concurrency: none here. The caller holds qp->sq.lock.
 */
#ifndef ROAN_REQUESTER_H
#define ROAN_REQUESTER_H

#include "core/core_env.h"
#include "core/cc/path_window.h"
#include "core/cc/rtt.h"
#include "core/transport/opcode.h"
#include "core/transport/psn.h"
#include "core/transport/sack.h"
#include "core/transport/wire.h"

/* Completion status, same values as enum ib_wc_status. */
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

/* A work request in the requester's queue. */
struct roan_tx_wqe {
	/* set by the driver half, constant once queued */
	u8 op;			/* enum roan_op: a request, or ROAN_OP_LOCAL */
	u8 ext;			/* enum roan_ext */
	bool fence;		/* start only after all earlier READs and atomics completed */
	bool barrier;		/* start only after all earlier work requests completed */
	bool solicited;
	u32 len;		/* bytes of the message; READ: bytes requested; atomics 8; FLUSH, LOCAL 0 */

	/* state of requester.c */
	/*
	 * one packet, of the same kind and length as the work request before it, and neither needs to wait for
	 * anything
	 */
	bool same_as_prev;
	bool needs_recv_wqe;	/* consumes a receive work request of the peer (9.7.7.2) */
	u8 status;		/* enum roan_status; valid once @completed */
	bool started;		/* first packet was sent: PSNs are assigned */
	bool completed;
	u8  piece;		/* READ: most responses that one request asks for; 0: cfg.psn_window */
	u32 first_psn;
	/* PSNs used: packets of the request, for a READ those of its response; LOCAL 0, else >= 1 */
	u32 n_psn;
	u32 resp_done;		/* READ: response packets placed so far, in order */
};

struct roan_requester_cfg {
	u8  transport;		/* enum roan_transport: RC, UC or UD */
	u8  mtu_shift;		/* path MTU = 1 << mtu_shift bytes, 8..12 */
	u8  retry_cnt;		/* 0..7 */
	u8  rnr_retry;		/* 0..7, 7 = unlimited */
	u8  timeout;		/* local ACK timeout code, 0..31, 0 = never */
	u8  max_rd_atomic;	/* READs and atomics outstanding */
	bool sack;		/* SACKs are used; otherwise ignored */
	u32 sq_psn;
	u32 psn_window;		/* maximum of unacknowledged PSNs; < 2^22; with @paths at most ROAN_PATH_PSNS */
};

#define ROAN_HOLES	256	/* more than a SACK covers */

/*
 * The packets that a SACK reports as missing, with later ones received ("holes"), and what was done about them; also a
 * packet that was sent again for want of an answer. Sets of PSNs from una_psn on. requester_sack.c
 */
struct roan_holes {
	bool guessed;		/* @again holds packets that no SACK shows as lost */
	u8  needless;		/* as the last SACK said */
	/* requester_reorder.c */
	u8  reorder;		/* so many later packets may be received before a missing one counts as lost; 0: none */
	u8  reorder_steps;	/* quarters of a round trip, beyond the first, that it may take */
	bool any_lost;		/* a packet counted as lost; until then only the time decides */
	bool reordered;		/* reordering was seen since @reorder was last changed */
	bool repaired;		/* packets were sent again as lost in this recovery */
	u8  recoveries;		/* since @reorder was too small */
	bool lost_by_count;	/* since then: a packet counted as lost because of @reorder */
	bool lost_by_time;	/* because of the time */
	/* valid if @missing is not empty */
	u32 highest_psn;	/* as the last SACK said */
	u32 known_psn;		/* the last SACK said of all before whether they were received */
	u32 recovery_psn;	/* the recovery ends when all before it is acknowledged */
	u64 repaired_at;	/* ns: when a packet was last sent again; 0: never */
	u64 lost_at;		/* ns: when the first packet that was overtaken counts as lost; U64_MAX: none waits */
	u32 late_at;		/* low half of ns: when a packet arrived that was overtaken and not lost */
	u32 late_psn;		/* it */
	u32 missing[ROAN_PSN_WORDS(ROAN_HOLES)];
	u32 again[ROAN_PSN_WORDS(ROAN_HOLES)];	/* of these: to be sent again */
	u32 tried[ROAN_PSN_WORDS(ROAN_HOLES)];	/* of these: sent again, and not known to be lost once more */
	u32 tried_at[ROAN_HOLES];		/* of these: end_psn when they were sent again */
	/* of @missing: packets received that were sent later than it, or than its copy */
	u8  overtakers[ROAN_HOLES];
	u32 overtaken_at[ROAN_HOLES];		/* low half of ns: when the first of them was received */
};

#define ROAN_EARLY_RESPONSES	256

/*
 * Responses of READs and atomics that were placed before an earlier one arrived, and the holes before them. Sets of
 * PSNs from una_psn on. requester_read.c
 */
struct roan_early_reads {
	bool any;		/* a response is missing, and the peer has sent a later one or an ACK */
	bool counted;		/* a hole was counted since then */
	bool repeated;		/* a hole was ever requested: a response's segment does not tell its position then */
	bool again;		/* holes were requested, and no needless response was seen since then */
	u8  patience;		/* quarters of a round trip before a hole is lost; 0: no reordering was seen lately */
	u8  losses;		/* holes requested since @patience was too small */
	u32 answered_psn;	/* all responses before it were sent; valid if @any */
	u32 lost_psn;		/* what is missing before it is lost */
	u32 late_psn;		/* what is missing before it may only be late, */
	u64 lost_at;		/* ns: and is lost then; 0: nothing is */
	u32 placed[ROAN_PSN_WORDS(ROAN_EARLY_RESPONSES)];
	u32 requested[ROAN_PSN_WORDS(ROAN_EARLY_RESPONSES)];	/* again, since the first request; not placed */
	/* The hole to be requested next: @hole_left responses, from @hole_psn of work request @hole_index on. */
	u32 hole_left;
	u32 hole_psn;
	u32 hole_index;
};

#define ROAN_MAX_PATHS	64

/* Packets are numbered in the order in which they leave by the path, modulo 2^16. */
struct roan_path {
	u32 in_flight;		/* packets sent, and neither received nor lost; and responses awaited */
	u16 share;		/* @in_flight of the paths is kept proportional to it */
	u16 last_sent;		/* number of the packet sent last */
	u16 last_received;	/* the highest number received */
	u16 last_read;		/* the highest number of a READ sent once to which a response was received */
	u16 adapt_at;		/* @share is adapted when this number is received */
	u16 failed_at;		/* if @failed: last_sent at that time */
	bool failed;		/* it delivered nothing while others did: takes single packets, as probes */
	u32 rtt_ns;		/* smoothed; 0: none measured since it was tried again */
	u32 read_ns;		/* the same from a READ request to its first response */
	u64 sent_at;		/* ns: the last packet was sent */
	u64 received_at;	/* ns: the last packet was received; 0: none */
};

/*
 * The packets in flight, as SACKs tell them, and their window; of a QP with several paths, each a UDP source port of
 * its own, or of one that has lost packets. Arrays are indexed by PSN. requester_paths.c
 */
struct roan_paths {
	u32 n;			/* 1..ROAN_MAX_PATHS; set by the driver half, kept by roan_requester_reset() */
	u32 in_use;		/* index of the path of the next packet, */
	u32 train_left;		/* and of so many from there on; 0: to be chosen */
	u32 try_next;		/* index of the path that is tried next, if it was not used for long */
	u32 n_failed;		/* paths */
	u32 probe_backoff;	/* doublings of the time between probes of paths that have failed */
	u64 probe_at;		/* ns: the next one may be sent */
	u32 n_in_flight;	/* packets, of all paths */
	u32 backoff;		/* doublings of the time after which packets expire, until a round trip is measured */
	u64 backoff_at;		/* ns: the last one */
	struct roan_path_window window;	/* of @n_in_flight */
	u32 n_awaited;		/* responses, of all paths */
	struct roan_path_window read_window;	/* of @n_awaited */
	/* requester_paths_auto.c */
	bool trial;		/* all epochs of a trial have the same rule for the window */
	bool one;		/* packets leave by path 0, unless it has failed */
	/* ns, of all paths; 0: none measured */
	u32 rtt_ns;		/* smoothed */
	u32 max_rtt_ns;		/* longest recent one */
	u32 read_ns;		/* the same from a READ request to its first response */
	u32 max_read_ns;
	struct roan_min_rtt min_read;
	u32 in_flight[ROAN_PSN_WORDS(ROAN_PATH_PSNS)];
	u32 not_timed[ROAN_PSN_WORDS(ROAN_PATH_PSNS)];	/* sent more than once, or a READ or atomic: not timed */
	u32 awaited[ROAN_PSN_WORDS(ROAN_PATH_PSNS)];	/* responses */
	u32 asked_once[ROAN_PSN_WORDS(ROAN_PATH_PSNS)];	/* of these, requested once */
	u8  path_of[ROAN_PATH_PSNS];		/* path by which the packet, or the request for it, was sent last */
	u16 number[ROAN_PATH_PSNS];		/* of that, on the path */
	u32 sent_at[ROAN_PATH_PSNS];		/* low half of ns: when */
	struct roan_path path[ROAN_MAX_PATHS];	/* memory for @n */
};

/* Paths by which packets leave now. */
static inline u32 roan_paths_in_use(const struct roan_paths *p)
{
	return p && !READ_ONCE(p->one) ? READ_ONCE(p->n) : 1;
}

static inline size_t roan_paths_size(u32 n)
{
	return offsetof(struct roan_paths, path) + n * sizeof(struct roan_path);
}

#define ROAN_AUTO_PATHS	16

/* For a QP that finds out itself how many paths it uses. requester_paths_auto.c */
struct roan_auto_paths {
	struct roan_paths *memory;	/* for ROAN_AUTO_PATHS, owned by the driver half; NULL: none yet */
	bool wants_memory;	/* for a trial */
	bool several;		/* in use outside trials; otherwise one */
	bool had_window;	/* before the trial */
	bool better;		/* several were, in this trial as far as it is known */
	u8  epoch;		/* of the trial; 0: there is none */
	u8  repeats;		/* of epochs in this trial */
	u8  pause;		/* doublings of the time before the next trial */
	u32 n_trials;
	u32 psn;		/* una_psn, */
	u32 index;		/* una, */
	u64 idle_ns;		/* and idle_ns when measuring began, */
	u64 since;		/* ns: which was then; 0: not yet */
	u64 next_at;		/* ns: nothing is to be done before */
	u64 length;		/* ns: of this epoch */
	u64 rate;		/* packets per 2^30 ns, in the epoch before */
};

struct roan_requester {
	struct roan_requester_cfg cfg;
	/* array of mask + 1 entries, owned by the driver half, which may replace it by a larger one */
	struct roan_tx_wqe *work;
	u32 mask;

	u32 retire;
	u32 una;		/* oldest work request not completed */
	u32 next;		/* work request of the next packet */
	u32 tail;

	u32 una_psn;		/* oldest PSN not acknowledged */
	u32 next_psn;		/* PSN of the next packet to send; less than end_psn during a retransmission */
	u32 end_psn;		/* one past the highest PSN ever sent */

	u32 next_ssn;		/* of the next message to start */
	u32 lsn;		/* LSN: highest SSN the peer has receive WQEs for; valid if credits_known */
	u32 start_window;	/* like cfg.psn_window, but small at first and after a timeout (slow start) */
	u32 since_ackreq;	/* packets sent since the last one with AckReq */
	u32 rd_outstanding;	/* READs, atomics, FLUSHes and ATOMIC_WRITEs sent and not responded to */
	u32 timed_psn;		/* of the packet that is timed, if @timed_at */

	u64 ack_timer_base_ns;	/* ns: start of the ACK timeout; 0: nothing outstanding */
	u64 rnr_until;		/* ns: no packet is sent before; 0: no RNR wait */
	u64 rnr_since;		/* ns: first RNR NAK for the oldest request; 0: none */
	u64 rto_base_ns;	/* ns: last packet sent or last progress; start of the RTO */
	u64 idle_ns;		/* sum of the times in which nothing was outstanding, modulo 2^64 */

	struct roan_rtt rtt;	/* round-trip estimate */
	u64 max_ack_wait_ns;	/* longest recent wait for an ACK; 0: no ACK yet */
	u64 max_ack_wait_at;	/* ns: end of that wait */
	/* ns: when packet @timed_psn, which requests a response, was sent; 0: no packet is timed */
	u64 timed_at;
	u64 new_rtt_ns;		/* ns: measured since roan_requester_take_rtt(); 0: none */
	u32 rto_probe_psn;
	u32 held_psn;		/* valid if @held */
	u32 local_err_idx;	/* valid if @local_err: oldest work request that failed locally */
	u32 refused_psn;	/* valid if @refused: of a request that the peer has refused, so that its QP failed */
	u8  refused;		/* enum roan_status of that request; 0: none. Responses before it are missing */
	u8  rto_backoff;	/* RTO retransmissions since the last RTT sample; each doubles the RTO */
	u8  retries_left;
	u8  rnr_left;
	bool credits_known;	/* the peer uses end-to-end flow control */
	bool nak_seen;		/* a sequence NAK for una_psn was handled; further ones are ignored */
	/*
	 * Repair: packets of a gap are sent again, and next_psn stays. @repair_left packets, from @repair_psn of work
	 * request @repair_index on, are still to be sent.
	 */
	u8  repair_left;
	bool repair_sent;	/* a repair was sent up to @repair_psn, and no later packet is acknowledged yet */
	bool peer_keeps;	/* the peer was seen to keep packets that it received after a gap */
	u8  vain_repairs;	/* successive repairs after which the next packet was missing, too */
	u8  repair_backoff;	/* times that a repair was sent again without an answer; each doubles the wait */
	u8  go_back_left;	/* sequence NAKs to be answered by going back before a repair is tried again */
	u32 repair_psn;
	u32 repair_index;
	bool repair_by_sack;	/* the repair sends holes.again: one packet, then the next */
	bool peer_sacks;	/* the peer's last response says that it supports SACK */
	bool any_holes;		/* holes->missing is not empty */
	u64 repair_at_ns;	/* ns: last packet of a repair sent; valid if @repair_sent */
	/* zeroed when set, owned by the driver half. NULL: a SACK counts as a sequence NAK */
	struct roan_holes *holes;
	/* owned by the driver half. NULL: one path, all packets within the PSN window leave */
	struct roan_paths *paths;
	struct roan_auto_paths *auto_paths;	/* owned by the driver half. NULL: the number of paths is fixed */
	struct roan_min_rtt *min_rtt;	/* owned by the driver half. NULL only without @paths */
	struct roan_early_reads reads;
	/* after a timeout only packet @rto_probe_psn was sent again; the rest follows after its response */
	bool rto_probe;
	bool rto_again;		/* it is the second one: the answer to the first covered later packets, too */
	bool tail_ackreq;	/* the last packet sent before the probe had AckReq */
	bool sqd;		/* SQD: finish the current message, start no other */
	bool held;		/* the payload of @held_psn waits for a page: no packet from it on is sent */
	bool local_err;		/* a work request failed locally: it and later ones are not sent */
	bool failed;		/* all remaining work requests are flushed */
	bool err_delivered;	/* roan_requester_retired() has returned an error */

	/* Events since reset; the driver half adds the differences to its counters. */
	u32 n_resent;		/* packets sent again */
	u32 n_timeouts;
	u32 n_rto;		/* retransmissions before the ACK timeout, by measured round trip (RTO) */
	u32 n_seq_naks;
	u32 n_rnr_naks;
	u32 n_implied_naks;	/* responses that skipped an unanswered READ or atomic */
	u32 n_stale;		/* responses that acknowledge nothing new */
};

enum roan_next {
	ROAN_NEXT_PACKET,	/* send @desc, then call roan_requester_sent() */
	/* execute work request @desc->index now, then call roan_requester_local_done() or roan_requester_fail() */
	ROAN_NEXT_LOCAL,
	ROAN_NEXT_IDLE,		/* nothing queued */
	ROAN_NEXT_WAIT,		/* wait for a response, the timer or modify_qp */
};

/* One packet to send, or several alike. The other header fields come from the work request. */
struct roan_tx_desc {
	u32 index;		/* of the work request */
	u8  opcode;
	u8  path;		/* index of its path, which is a UDP source port; 0: the QP's own */
	bool ackreq;
	bool solicited;
	bool resend;
	bool single_pkt;	/* a one-packet message: the next packets alike belong to the next work requests */
	bool repair;		/* sent again alone: other packets do not follow it */
	bool copy;		/* because a SACK shows it as lost */
	bool read_hole;		/* requests missing responses again */
	u32 psn;
	u32 npsn;		/* PSNs used: 1, or a READ's response packets; for packets alike their total */
	u32 offset;		/* byte offset in the message of the payload, or of the data that a READ requests */
	u32 len;		/* payload bytes; READ: bytes requested (RETH length); atomics, FLUSH: 0 */
};

/* Of packet number @i of several alike: its work request, and its byte offset in the message. */
static inline u32 roan_tx_desc_index(const struct roan_tx_desc *desc, u32 i)
{
	return desc->index + (desc->single_pkt ? i : 0);
}

static inline u32 roan_tx_desc_offset(const struct roan_tx_desc *desc, u32 i)
{
	return desc->single_pkt ? 0 : desc->offset + i * desc->len;
}

enum roan_event {
	ROAN_EV_NOTHING,	/* nothing changed */
	ROAN_EV_PROGRESS,	/* retire work requests; more packets may fit now */
	ROAN_EV_RETRY,		/* packets are to be sent again, now or at the deadline */
	ROAN_EV_REPAIR,		/* the same, of packets in a gap; the peer answers others */
	ROAN_EV_FAILED,		/* retire: the oldest work request has an error, the others are flushed */
};

enum roan_resp_action {
	/* copy the payload to @offset of work request @index, then roan_requester_placed() or roan_requester_fail() */
	ROAN_RESP_PLACE,
	ROAN_RESP_STALE,	/* duplicate, or not awaited: drop */
	ROAN_RESP_RETRY,	/* a response before it is missing: drop; the READ is sent again */
	ROAN_RESP_FAILED,	/* violates the protocol: as ROAN_EV_FAILED */
};

/* Initialises @r with @cfg at RTR->RTS. Keeps the work array; drops the work requests queued before. */
void roan_requester_reset(struct roan_requester *r, const struct roan_requester_cfg *cfg);

static inline bool roan_requester_full(const struct roan_requester *r)
{
	return r->tail - r->retire > r->mask;
}

/*
 * Returns the next free entry, or NULL if the queue is full. The caller fills it in and calls roan_requester_queued().
 */
struct roan_tx_wqe *roan_requester_slot(struct roan_requester *r, u32 *index);
void roan_requester_queued(struct roan_requester *r);
/*
 * Sets @paths, of roan_paths_size(1) bytes, on a QP that has none, but min_rtt, and may have been sending.
 * cfg.psn_window must not be above ROAN_PATH_PSNS.
 */
void roan_requester_set_paths(struct roan_requester *r, struct roan_paths *paths);
/*
 * The part of the traffic that goes by @path, in 1/@whole: by the shares of the paths that have sent a packet within
 * @within ns. @whole: there is one path, or the peer has no others.
 */
u32 roan_paths_part(const struct roan_requester *r, u32 path, u32 whole, u64 within, u64 now);
/* True if a round trip was measured, and memory for several paths would be of use: roan_requester_give_paths(). */
static inline bool roan_requester_wants_paths(const struct roan_requester *r)
{
	return r->auto_paths && r->auto_paths->wants_memory;
}

/* For auto_paths, of roan_paths_size(ROAN_AUTO_PATHS) bytes. NULL: there is no memory. */
static inline void roan_requester_give_paths(struct roan_requester *r, struct roan_paths *memory)
{
	r->auto_paths->memory = memory;
	r->auto_paths->wants_memory = false;
}

/* Queues another work request equal to the last one; the last one must not have been sent yet. */
void roan_requester_queue_same(struct roan_requester *r);

enum roan_next roan_requester_next(struct roan_requester *r, u64 now, struct roan_tx_desc *desc);
/*
 * Returns how many more packets, at most @most, may be sent together with @desc: each one PSN and one path MTU further
 * on and otherwise equal; if @desc->single_pkt, each of the next work request. roan_requester_next() would return each
 * of them. Call roan_requester_sent() once for all packets sent, with @desc->npsn increased by their number.
 */
u32 roan_requester_batch_count(const struct roan_requester *r, const struct roan_tx_desc *desc, u32 most);
void roan_requester_sent(struct roan_requester *r, const struct roan_tx_desc *desc, u64 now);
void roan_requester_local_done(struct roan_requester *r, u32 index);

/* Handles an ACK packet (positive, RNR NAK or NAK). */
enum roan_event roan_requester_acked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now);

/* True if @pkt is a SACK of a roan peer that names sent packets: others change nothing, and need no memory. */
bool roan_requester_sack_counts(const struct roan_requester *r, const struct roan_pkt *pkt);
/* Handles a SACK (sack.h). */
enum roan_event roan_requester_sacked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now);

/* Handles a READ response (for FLUSH and ATOMIC_WRITE one without payload) or an atomic ACK. */
enum roan_resp_action roan_requester_response(struct roan_requester *r, const struct roan_pkt *pkt, u64 now,
					      u32 *index, u32 *offset);
enum roan_event roan_requester_placed(struct roan_requester *r, const struct roan_pkt *pkt, u64 now);

/*
 * Work request @index cannot be executed (bad SGE, key, length). Earlier ones may still complete. Then
 * roan_requester_retired() returns this one with @status and all later ones as flushed.
 */
void roan_requester_fail(struct roan_requester *r, u32 index, enum roan_status status);

/*
 * This host has dropped packet @psn and all that were sent after it, none of which was a repair: they are the next to
 * send. The ACK timeout goes on, as if they had left. RC. False: they count as sent and lost, as the peer has
 * acknowledged them, or the requester goes back further or has failed.
 */
bool roan_requester_unsent(struct roan_requester *r, u32 psn);

/* Returns completed work requests in order; false: none. After one with an error all others are returned as flushed. */
bool roan_requester_retired(struct roan_requester *r, u32 *index, enum roan_status *status);

/* The QP went to ERR: the remaining work requests retire with WR_FLUSH_ERR. */
void roan_requester_flush(struct roan_requester *r);

/*
 * UC, UD: leaves SQE, after roan_requester_flush() and once all is retired. PSNs continue: the peer accepts any packet
 * that starts a message.
 */
void roan_requester_resume(struct roan_requester *r);

/* Returns when to call roan_requester_timer(), ns; 0: no timer needed. */
u64 roan_requester_deadline(const struct roan_requester *r);
/*
 * @deadline: from roan_requester_deadline(). Returns by how many ns roan_requester_timer() may be late: a quarter of
 * the time from the start of the ACK timeout to the deadline (9.7.6.1.3 allows a timeout of four times the attribute).
 * 0 for an RNR wait and for a packet that was overtaken, which end exactly at their deadline.
 */
u64 roan_requester_slack(const struct roan_requester *r, u64 deadline);
/*
 * Part of roan_requester_deadline(): when the first packet that was overtaken, a request or a response, counts as lost.
 * U64_MAX: none waits.
 */
static inline u64 roan_requester_reorder_deadline(const struct roan_requester *r)
{
	u64 requests = unlikely(r->any_holes) ? r->holes->lost_at : U64_MAX;

	return unlikely(r->reads.lost_at) ? min(requests, r->reads.lost_at) : requests;
}

/*
 * A response was dropped because of a page fault, and so is this one, which comes before it is resolved. The peer
 * repeats all but a refusal, which is remembered.
 */
void roan_requester_dropped(struct roan_requester *r, const struct roan_pkt *pkt);
/*
 * The page fault is resolved now: retransmits from the oldest unacknowledged PSN. Uses no retry. If the peer has
 * refused a request, its QP has failed and answers nothing: then the oldest request fails at once, as refused or, if
 * it is another one, as if all retries were used up. The caller retires.
 */
void roan_requester_retransmit(struct roan_requester *r, u64 now);

enum roan_event roan_requester_timer(struct roan_requester *r, u64 now);

/* Restarts the ACK timeout and the RTO at @when: until then packets were still queued in this host. */
static inline void roan_requester_restart_timer(struct roan_requester *r, u64 when)
{
	if (!r->ack_timer_base_ns)
		return;
	r->ack_timer_base_ns = max(r->ack_timer_base_ns, when);
	r->rto_base_ns = max(r->rto_base_ns, when);
	r->repair_at_ns = max(r->repair_at_ns, when);
}

/*
 * Changes attributes of a QP in use: timeout, retry counts (renewed if they changed), READs outstanding. Ignores
 * @cfg's sq_psn and psn_window: READs in flight were split by the old window.
 */
void roan_requester_update_cfg(struct roan_requester *r, const struct roan_requester_cfg *cfg);

/* SQD is entered (@on) or left. */
static inline void roan_requester_drain(struct roan_requester *r, bool on)
{
	r->sqd = on;
}

/* SQD: the packets take another path from now on. What was measured of the old one is forgotten. */
void roan_requester_change_path(struct roan_requester *r, struct roan_min_rtt *min_rtt);

/* SQD: true if nothing is outstanding and no message is partly sent. */
bool roan_requester_drained(const struct roan_requester *r);

/* Returns the round trip in ns measured since the last call; 0: none. */
static inline u64 roan_requester_take_rtt(struct roan_requester *r)
{
	u64 ns = r->new_rtt_ns;

	r->new_rtt_ns = 0;
	return ns;
}

/* True if packets are unacknowledged: then a response or the timer is to come. */
static inline bool roan_requester_outstanding(const struct roan_requester *r)
{
	return r->una_psn != r->end_psn;
}

/*
 * The payload of packet @psn, which roan_requester_next() has described, is not in memory. Until
 * roan_requester_release(), or until it need not be sent any more, the requester sends earlier packets only: lost ones
 * again, or the last one, so that the peer answers.
 */
static inline void roan_requester_hold(struct roan_requester *r, u32 psn)
{
	r->held = true;
	r->held_psn = psn;
}

void roan_requester_release(struct roan_requester *r, u64 now);

/*
 * True if the oldest packet waits for that payload, or no answer was asked for since what precedes it in its message
 * was sent again: then a timeout would say nothing about the peer.
 */
bool roan_requester_repair_is_held(const struct roan_requester *r);

/* How many READs and atomics may be outstanding. Any context */
u8 roan_requester_max_reads(const struct roan_requester *r);
/* True if all packets are sent and one more request like the last one could be sent now. */
bool roan_requester_can_send(const struct roan_requester *r);

/* Work requests from the oldest incomplete one on; some behind it may be complete. */
static inline u32 roan_requester_under_way(const struct roan_requester *r)
{
	return r->tail - r->una;
}

/* For a longer wait a doorbell (some microseconds of system call) is cheaper than the delay. */
#define ROAN_ACK_SOON_NS	NSEC_PER_MSEC

/*
 * True if a response or the timer will run this queue within ROAN_ACK_SOON_NS, so that a new WQE needs no doorbell.
 * False if recent waits were longer: a window posted request by request would take two round trips. False without an
 * ACK timeout: the response may be lost.
 */
static inline bool roan_requester_answer_expected(const struct roan_requester *r)
{
	if (r->rnr_until)
		return true;		/* nothing may be sent before that anyway */
	return roan_requester_outstanding(r) && r->cfg.timeout && r->max_ack_wait_ns &&
		r->max_ack_wait_ns <= ROAN_ACK_SOON_NS;
}

static inline struct roan_tx_wqe *roan_requester_wqe(const struct roan_requester *r, u32 index)
{
	return &r->work[index & r->mask];
}

#endif /* ROAN_REQUESTER_H */
