/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiving side of a QP: whether a request is the next one and valid, and which responses are pending. No memory
 * access and no receive WQE here: the driver half executes requests.
 *
 *   request ->  roan_responder_admit()  -> EXECUTE: the driver half copies data, takes a receive WQE, performs the
 *                                          atomic ... and then calls roan_responder_done(), _done_op(), _rnr()
 *                                          or _nak()
 *   all pending responses (READ responses, atomic results, ACK, NAK) are sent in PSN order:
 *               roan_responder_next() -> answer -> roan_responder_sent()
 *
 * A request that comes before an earlier one (EARLY) may be kept by the driver half, which then calls
 * roan_responder_kept(), and passes it to roan_responder_admit() again once the expected PSN is its own. One ACK then
 * covers the request that was missing and all kept ones behind it. The driver half calls roan_responder_gap() for a
 * gap, and roan_responder_next_gap() after kept requests: a NAK is then pending, at once or, if requests were late
 * before, after a time; the driver half calls roan_responder_timer() then. A requester that supports SACK is sent one
 * in place of such ACKs and NAKs as long as requests are kept.
 *
 * The driver half calls roan_responder_next() once after all packets of an skb, so ACKs coalesce. An ACK never
 * overtakes a READ response that is still being sent.
 *
 * Concurrency: none here. The caller holds qp->rq.lock.
 */
#ifndef ROAN_RESPONDER_H
#define ROAN_RESPONDER_H

#include "core/core_env.h"
#include "core/transport/opcode.h"
#include "core/transport/psn.h"
#include "core/transport/rnr_defer.h"
#include "core/transport/wire.h"

/* Responder resource: a READ, atomic, FLUSH or ATOMIC_WRITE kept as long as the requester may send it again (9.4.5). */
struct roan_resp_res {
	u8  op;			/* enum roan_op; ROAN_OP_NONE: empty */
	bool pending;		/* responses are to be sent */
	bool sent_once;		/* the last response was sent at least once */
	/* AETH syndrome sent instead of responses to a repeated request that can no longer be served; 0: none */
	u8 late_nak;
	u16 sport;		/* of the last request for them; 0: not mirrored */
	u32 first_psn;
	u32 npkts;		/* response packets, >= 1 */
	u32 rkey;
	u64 va;
	u32 len;		/* READ: bytes */
	u64 orig;		/* atomics: the original value */
	u32 next_pkt;		/* next response packet to send, 0..npkts */
	/* First response packet of the current request or repeated request: FIRST or ONLY on the wire. */
	u32 first_pkt;
	u32 end_pkt;		/* one past the last response packet of the current request */
	u32 msn;
};

struct roan_responder_cfg {
	u8  transport;		/* enum roan_transport. UD: admitted by ud.h */
	u8  mtu_shift;		/* path MTU = 1 << mtu_shift bytes */
	u8  max_dest_rd_atomic;	/* responder resources in use, 0..max_resp_res */
	bool sack;		/* SACKs may be sent */
	/* Bits by enum roan_op: RC requests that the QP's access rights do not allow; the driver half may change it */
	u16 denied_ops;
	u32 rq_psn;
};

/* No packet is kept that is further ahead than usual windows: it would be a forged or very old one. */
#define ROAN_EARLY_WINDOW	2048

struct roan_early_set {
	u32 bits[ROAN_PSN_WORDS(ROAN_EARLY_WINDOW)];
};

enum roan_late {
	ROAN_LATE_NONE,
	ROAN_LATE_MISSING,	/* a NAK was sent for it, and the gap is not filled */
	ROAN_LATE_CAME,		/* the gap was filled at @late_at: if it comes again, it was late, by @late_ns */
};

/* How late requests are: responder_early.c */
struct roan_resp_reorder {
	u64 since;		/* ns: the gap before kept requests was seen then, or a request of it came */
	u64 late_at;
	u32 epsn;		/* the expected PSN at @since */
	u32 longest_ns;		/* of the times between those of this gap */
	u32 wait_ns;		/* between @since and the NAK; 0: no reordering was seen lately */
	u32 late_psn;		/* of a NAK that may have been needless */
	u32 late_ns;
	u8  late;		/* enum roan_late: state of @late_psn */
	u8  lost;		/* gaps since reordering was last seen */
	bool gap;		/* requests after a gap are kept, @since is valid */
	bool nak_waits;		/* no NAK was sent for it yet: one is due at @since + @wait_ns */
	bool nak_sent;		/* a NAK was sent for it */
	bool copies;		/* duplicates came since it was seen */
};

struct roan_responder {
	struct roan_responder_cfg cfg;
	/* array owned by the driver half; NULL until roan_responder_set_resources() */
	struct roan_resp_res *resp_res;
	u32 max_resp_res;
	u32 resp_res_next;	/* entry for the next READ or atomic: the oldest */
	u32 n_pending;		/* entries with responses to send */
	u32 oldest_pending;	/* the oldest of them in PSN order; invalid if there is none */

	u32 epsn;		/* expected PSN */
	/* PSNs of READs, atomics and the like that were executed after the last SEND or WRITE; at most PSN_MASK / 2 */
	u32 n_resp_psns;
	u32 msn;		/* messages completed */
	u8  msg_op;		/* enum roan_op of the current message; ROAN_OP_NONE between messages */
	bool uc_drop_msg;	/* UC: a packet was lost: drop packets until the next FIRST or ONLY */
	u32 msg_bytes;		/* bytes received of the current message */
	u64 write_va;		/* WRITE: address of the message's first byte */
	u32 write_rkey;
	u32 write_len;		/* WRITE: RETH length */

	bool nak_sent;		/* NAK for the gap before @epsn, or RNR NAK, was sent; cleared when @epsn is executed */
	bool peer_supports_sack;	/* the sender of the last request does */
	bool early;		/* requests with PSNs up to @early_psn, after a gap, are kept */
	bool epsn_waits;	/* the request with @epsn is here, and is not executed yet; set by the driver half */
	u8  early_unreported;	/* kept since the last SACK */
	u8  needless_copies;	/* for the SACK */
	u32 early_psn;		/* the last of them */
	struct roan_early_set *early_set;	/* all of them; owned by the driver half. NULL: none may be kept */
	struct roan_resp_reorder reorder;
	bool resp_blocked;	/* a response waits for a page fault: the one whose last PSN is @rnr_defer.psn */
	bool re_requested;	/* it or a later request was repeated since the last RNR NAK */
	bool skipped;		/* later requests were repeated, and it was not */
	u32 last_dup_psn;	/* last PSN repeated while @resp_blocked */
	struct roan_rnr_defer rnr_defer;
	bool unacked;		/* a SEND or WRITE was executed after the last ACK, or response that acknowledges it */
	bool ack_due;
	bool nak_due;
	u8  nak_syndrome;	/* AETH syndrome of the NAK or RNR NAK due */
	u32 nak_psn;		/* PSN of that NAK: @epsn, or that of a READ response that cannot be sent */
	/* a NAK other than sequence or RNR is pending or sent: no request is admitted any more */
	bool failed;

	/* counts of events since reset */
	u32 n_duplicates;
	u32 n_out_of_sequence;
	u32 n_rnr;
	u32 n_naks;		/* other than sequence */
};

enum roan_verdict {
	ROAN_V_EXECUTE,		/* in order and valid: execute it as described in @exec */
	ROAN_V_DUPLICATE,	/* duplicate: only respond */
	ROAN_V_GAP,		/* out of sequence, the first after a gap: keep or drop it, then roan_responder_gap() */
	ROAN_V_EARLY,		/* out of sequence, the NAK for the gap was sent, or waits: keep or drop it */
	ROAN_V_DROP,		/* drop without a response (after RNR, UC skip, failed) */
	/* violates a rule: RC: a NAK is pending and the QP fails; UC: drop, the message is lost */
	ROAN_V_INVALID,
};

/* How an admitted request is to be executed. */
struct roan_request {
	bool starts;		/* first packet of its message */
	bool ends;		/* last packet of its message */
	u32 offset;		/* SEND: bytes of the message before this packet */
	/* WRITE: address of this packet's payload; READ, atomic, FLUSH: address of the RETH or AtomicETH */
	u64 va;
	u32 rkey;
	u32 total;		/* WRITE: RETH length if @starts, READ, FLUSH: RETH length */
	u32 msg_len;		/* bytes of the message up to and including this packet */
};

#define ROAN_NO_RESP_RES	U32_MAX

/* One response packet to send. */
struct roan_response {
	u8  opcode;
	u8  syndrome;		/* if the opcode has an AETH */
	u16 sport;		/* UDP source port; 0: any */
	u32 psn;
	u32 msn;
	u32 resp_res;		/* index of its responder resource; ROAN_NO_RESP_RES: an ACK or NAK without one */
	u64 va;			/* READ response: address of the payload */
	u32 rkey;
	u32 len;		/* READ response: payload bytes */
	u64 orig;		/* ATOMIC ACKNOWLEDGE */
};

void roan_responder_reset(struct roan_responder *resp, const struct roan_responder_cfg *cfg);

/*
 * Sets @resp_res, @n zeroed responder resources; @n must be larger than the present number. Entries in use are copied.
 * Returns the old array. Without resources roan_responder_admit() refuses READs and atomics as invalid, so set them
 * before the first one is admitted.
 */
struct roan_resp_res *roan_responder_set_resources(struct roan_responder *resp, struct roan_resp_res *resp_res, u32 n);

/*
 * True if a peer may send PSN @psn now. Half of all PSNs are duplicates, but those that are far away are forged by a
 * host that does not know the PSN: they change nothing.
 */
static inline bool roan_responder_is_near(const struct roan_responder *resp, u32 psn)
{
	s32 ahead = psn_diff(psn, resp->epsn);

	return ahead > -ROAN_EARLY_WINDOW && ahead < ROAN_EARLY_WINDOW;
}

enum roan_verdict roan_responder_admit(struct roan_responder *resp, const struct roan_pkt *pkt,
				       struct roan_request *exec);

/* After GAP or EARLY: true if the packet may be kept. */
static inline bool roan_responder_may_keep(const struct roan_responder *resp, const struct roan_pkt *pkt)
{
	return psn_diff(pkt->psn, resp->epsn) < ROAN_EARLY_WINDOW;
}

/* It is kept. */
void roan_responder_kept(struct roan_responder *resp, const struct roan_pkt *pkt);

/* After DUPLICATE. */
void roan_responder_duplicate(struct roan_responder *resp, const struct roan_pkt *pkt, u64 now);

/* After GAP. A NAK, or a SACK, is pending at once, or roan_responder_nak_waits(). */
void roan_responder_gap(struct roan_responder *resp, u64 now);

/*
 * After each request while others are kept. @filled: the gap before the first of these is, so they were executed, or
 * can be. @since: when the first of the remaining ones came. Returns true if there is a next gap, and does for it the
 * same.
 */
bool roan_responder_next_gap(struct roan_responder *resp, bool filled, u64 since, u64 now);

static inline bool roan_responder_nak_waits(const struct roan_responder *resp)
{
	return unlikely(resp->reorder.nak_waits);
}

/* While a NAK waits: returns when to call this again, ns; 0: the wait is over, the NAK is pending if it is needed. */
u64 roan_responder_timer(struct roan_responder *resp, u64 now);

/* After EXECUTE, exactly one of these. */
void roan_responder_done(struct roan_responder *resp, const struct roan_pkt *pkt);		/* SEND, WRITE */
/* READ, atomics, FLUSH, ATOMIC_WRITE: responses become pending. @orig: the original value of an atomic, else unused */
void roan_responder_done_op(struct roan_responder *resp, const struct roan_pkt *pkt, u64 orig);
/* no receive WQE: RNR NAK, @epsn stays (9.7.5.2.8) */
void roan_responder_rnr(struct roan_responder *resp, u8 timer_code);
void roan_responder_nak(struct roan_responder *resp, enum roan_nak nak);	/* request refused; the QP fails */

/*
 * Returns the next response packet to send, in order; false: none. @credits: AETH credit code (roan_credit_code() of
 * the receive WQEs posted, or ROAN_AETH_UNLIMITED). Only roan_responder_sent() changes the state.
 */
bool roan_responder_next(struct roan_responder *resp, u8 credits, struct roan_response *answer);
/* Fills in the SACK that roan_responder_next() returned. */
void roan_responder_fill_sack(const struct roan_responder *resp, struct roan_sack *sack);
void roan_responder_sent(struct roan_responder *resp, const struct roan_response *answer);

/* Before a QP stops responding: an ACK becomes due, behind the responses, for all that was executed without AckReq. */
static inline void roan_responder_stop(struct roan_responder *resp)
{
	resp->ack_due |= resp->unacked;
}

/*
 * A page fault is pending for the payload of @answer: the response is blocked, and roan_responder_next() returns it
 * again.
 */
void roan_responder_block(struct roan_responder *resp, const struct roan_response *answer, u64 now);

/*
 * While a response is blocked: true if roan_responder_next() returns another one now. Either an earlier one was
 * requested again; or the blocked response was sent once before, and the requester repeats only later requests: then
 * it is discarded, as if it had been lost on the wire.
 */
bool roan_responder_unblocked(struct roan_responder *resp);

/*
 * Returns true at most once for each repeated request while a response is blocked: send @answer, an RNR NAK by the
 * rule of rnr_defer.h. Do not call roan_responder_sent() for it: the response stays pending.
 */
bool roan_responder_defer_rnr(struct roan_responder *resp, u64 now, struct roan_response *answer);

/*
 * The payload of @answer cannot be read (key invalid). If the response was never sent completely, it is replaced by a
 * NAK and the QP fails; returns true. Otherwise the requester may have received it and invalidated the key, and the
 * repeated request may be an old packet: the NAK is sent but the QP does not fail; returns false. A requester that
 * still waits for the response gets the NAK; any other ignores it as stale.
 */
bool roan_responder_fail(struct roan_responder *resp, const struct roan_response *answer, enum roan_nak nak);

#endif /* ROAN_RESPONDER_H */
