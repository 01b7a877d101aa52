/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiving side of a QP: is this request the next one, what may be done with it, and what is owed in return.
 *
 *   request ->  roan_responder_admit()  -> EXECUTE: the shell places, fetches a receive WQE, does the atomic ... and then
 *                                          says done(), read(), atomic(), or rnr(), nak()
 *   all that is owed (READ responses, atomic results, ACK, NAK) leaves through one door, in PSN order:
 *               roan_responder_next() -> answer -> roan_responder_sent()
 *
 * So ACKs coalesce by themselves: the shell calls next() once after a whole train. And an ACK never overtakes a READ
 * response that is still being sent.
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

/* A READ, atomic, FLUSH or ATOMIC_WRITE remembered for as long as the requester may ask for it again (9.4.5). */
struct roan_resp_res {
	u8  op;			/* enum roan_op; ROAN_OP_NONE: empty */
	bool pending;		/* responses are owed */
	bool sent_once;		/* the last response left at least once */
	/* the AETH syndrome given instead of responses, when it is asked for again too late; 0: none */
	u8 late_nak;
	u32 first_psn;
	u32 npkts;		/* response packets, >= 1 */
	u32 rkey;
	u64 va;
	u32 len;		/* READ: bytes */
	u64 orig;		/* atomics: the value before */
	u32 next_pkt;		/* next response packet to send, 0..npkts */
	/* the response packet the present (re)request began with: it is FIRST or ONLY on the wire */
	u32 first_pkt;
	u32 end_pkt;		/* one past the last that the present request asks for */
	u32 msn;
};

struct roan_responder_cfg {
	u8  transport;		/* enum roan_transport: RC or UC (UD: ud.h) */
	u8  mtu_shift;		/* path MTU = 1 << mtu_shift bytes */
	u8  max_dest_rd_atomic;	/* replay entries in use, 0..max_replay */
	u32 rq_psn;
};

struct roan_responder {
	struct roan_responder_cfg cfg;
	struct roan_resp_res *replay;	/* the shell's array, NULL until roan_responder_set_resources() */
	u32 max_replay;
	u32 replay_next;	/* entry the next READ or atomic takes: the oldest */
	u32 n_pending;		/* entries with responses owed */
	u32 oldest_pending;	/* the oldest of them in PSN order; stale while there is none */

	u32 epsn;		/* expected PSN */
	u32 msn;		/* messages completed */
	u8  msg_op;		/* enum roan_op of the message under way; ROAN_OP_NONE between messages */
	bool uc_drop_msg;	/* UC: a packet was lost, skip to the next FIRST or ONLY */
	u32 msg_bytes;		/* bytes received of the message under way */
	u64 write_va;		/* WRITE: address of the message's first byte */
	u32 write_rkey;
	u32 write_len;		/* WRITE: RETH length */

	bool nak_sent;		/* the gap before @epsn was announced, or RNR was; cleared when @epsn is served */
	bool resp_blocked;	/* a response: the one that ends with @rnr_defer.psn */
	bool re_requested;	/* for it or for what is behind it, since that was last told to come later */
	bool skipped;		/* what is behind it was asked for twice, and it was not */
	u32 last_dup_psn;	/* the last PSN asked for again while it rests */
	struct roan_rnr_defer rnr_defer;
	bool ack_due;
	bool nak_due;
	u8  nak_syndrome;	/* AETH syndrome of the NAK or RNR NAK due */
	u32 nak_psn;		/* and its PSN: @epsn, or that of a READ response that cannot be given */
	bool failed;		/* a NAK other than sequence or RNR is due or sent: nothing more is admitted */

	/* counts of events since reset */
	u32 n_duplicates;
	u32 n_out_of_sequence;
	u32 n_rnr;
	u32 n_naks;		/* other than sequence */
};

enum roan_verdict {
	ROAN_V_EXECUTE,		/* in order and well-formed: do it as @exec says */
	ROAN_V_DUPLICATE,	/* seen before: nothing to do but answer */
	ROAN_V_GAP,		/* out of sequence: answer (a NAK may be due), drop */
	ROAN_V_DROP,		/* drop without a word (after RNR, UC skip, failed) */
	ROAN_V_INVALID,		/* breaks a rule: RC: a NAK is due and the QP fails; UC: drop, the message is lost */
};

/* How an admitted request is to be executed. */
struct roan_request {
	bool starts;		/* first packet of its message */
	bool ends;		/* last packet of its message */
	u32 offset;		/* SEND: bytes of the message before this packet */
	u64 va;			/* WRITE: where this packet's payload goes; READ, atomic, FLUSH: the RETH address */
	u32 rkey;
	u32 total;		/* WRITE: RETH length if @starts, READ, FLUSH: RETH length */
	u32 msg_len;		/* bytes of the message up to and including this packet */
};

#define ROAN_NO_RESP_RES	U32_MAX

/* One packet owed. */
struct roan_response {
	u8  opcode;
	u8  syndrome;		/* if the opcode has an AETH */
	u32 psn;
	u32 msn;
	u32 replay;		/* index of the entry it comes from; ROAN_NO_RESP_RES: an ACK or NAK of the QP's */
	u64 va;			/* READ response: where the payload is taken from */
	u32 rkey;
	u32 len;		/* READ response: payload bytes */
	u64 orig;		/* ATOMIC ACKNOWLEDGE */
};

void roan_responder_reset(struct roan_responder *resp, const struct roan_responder_cfg *cfg);

/*
 * Memory for @n READs, atomics, FLUSHes and ATOMIC_WRITEs, zeroed: more than the responder has, if it has any. What is
 * remembered moves along; returns the memory it had. Without any the first such request is invalid: who gives it late
 * gives it before that one is admitted.
 */
struct roan_resp_res *roan_responder_set_resources(struct roan_responder *resp, struct roan_resp_res *replay, u32 n);

enum roan_verdict roan_responder_admit(struct roan_responder *resp, const struct roan_pkt *pkt,
				       struct roan_request *exec);

/* After EXECUTE, exactly one of these. */
void roan_responder_done(struct roan_responder *resp, const struct roan_pkt *pkt);		/* SEND, WRITE */
void roan_responder_read(struct roan_responder *resp, const struct roan_pkt *pkt);		/* READ: answers are owed */
void roan_responder_atomic(struct roan_responder *resp, const struct roan_pkt *pkt, u64 orig);	/* atomics */
/* FLUSH, ATOMIC_WRITE */
void roan_responder_done_op(struct roan_responder *resp, const struct roan_pkt *pkt);
void roan_responder_rnr(struct roan_responder *resp, u8 timer_code);	/* no receive WQE: RNR NAK, @epsn stays (9.7.5.2.8) */
void roan_responder_nak(struct roan_responder *resp, enum roan_nak nak);	/* the request is refused; the QP fails */

/*
 * The next packet owed, in order; false: nothing. @credits: AETH credit code (roan_credit_code() of the receive WQEs
 * posted, or ROAN_AETH_UNLIMITED). State moves only with answered().
 */
bool roan_responder_next(struct roan_responder *resp, u8 credits, struct roan_response *answer);
void roan_responder_sent(struct roan_responder *resp, const struct roan_response *answer);

/* The payload of @answer is not there yet: the response rests, and next() gives it again. */
void roan_responder_block(struct roan_responder *resp, const struct roan_response *answer, u64 now);

/*
 * While a response rests: true if next() gives another one now. Either that is before it, asked for again since; or what
 * rested was given once, and the requester has gone on and asks for what is behind it: then it is as if the wire had lost it.
 */
bool roan_responder_unblocked(struct roan_responder *resp);

/*
 * True, at most once each time that the requester asks again while a response rests: @answer tells it to come later, as rnr_defer.h
 * has it. That is not to be answered(): the response is owed as before.
 */
bool roan_responder_defer_rnr(struct roan_responder *resp, u64 now, struct roan_response *answer);

/*
 * The payload of @answer cannot be read any more (key gone): the answer becomes a NAK and the QP fails, which it says. Not
 * if all was answered once: then the requester may have it and have let the key go, and its being asked for again is an old
 * packet. Who does still wait for it is refused; to others the NAK is old too.
 */
bool roan_responder_fail(struct roan_responder *resp, const struct roan_response *answer, enum roan_nak nak);

#endif /* ROAN_RESPONDER_H */
