/* SPDX-License-Identifier: GPL-2.0 */
/*
 * UC: limit of guesses of an R_Key. UC accepts a message with any PSN and has no NAK, so a WRITE with a wrong R_Key
 * costs its sender nothing. (RC accepts few PSNs, and a wrong R_Key there moves the QP to ERR.)
 *
 * A QP refuses at most ROAN_KEY_REFUSALS messages of each kind in a period. Further ones of that kind are dropped
 * before their R_Key is looked up, until the period ends:
 *	in sequence	the PSN is one that the peer sends next: the peer itself guesses, and loses its own WRITEs
 *	stray		any other PSN: a forger that cannot see the QP's packets. The peer's own WRITEs stay in sequence
 *			and are executed, unless more than ROAN_KEY_PSN_AHEAD packets were lost or had no R_Key
 * The sequence is that of payloads stored by WRITEs, which need a valid R_Key: a forger cannot move it by a SEND.
 *
 * Concurrency: none here. The caller holds qp->rq.lock.
 */
#ifndef ROAN_KEY_LIMIT_H
#define ROAN_KEY_LIMIT_H

#include "core/core_env.h"
#include "core/transport/psn.h"

#define ROAN_KEY_REFUSALS	16
#define ROAN_KEY_PERIOD_NS	NSEC_PER_SEC
#define ROAN_KEY_PSN_AHEAD	1024

struct roan_key_limit {
	u64 start_ns;		/* ns: first refusal of the period */
	u32 next_psn;		/* one past the last PSN whose payload was stored; at first the initial PSN */
	u8  n_refused[2];	/* in this period: in sequence, stray */
	bool spent;		/* one of them reached the limit: call roan_key_limit_blocks() for each message */
};

static inline void roan_key_limit_reset(struct roan_key_limit *lim, u32 psn)
{
	*lim = (struct roan_key_limit) { .next_psn = psn };
}

/* The payload of packet @psn was stored through a valid R_Key. */
static inline void roan_key_limit_stored(struct roan_key_limit *lim, u32 psn)
{
	lim->next_psn = psn_add(psn, 1);
}

static inline u8 *key_limit_count(struct roan_key_limit *lim, u32 psn)
{
	return &lim->n_refused[!psn_within(psn, lim->next_psn, ROAN_KEY_PSN_AHEAD)];
}

static inline void key_limit_new_period(struct roan_key_limit *lim, u64 now)
{
	if (now - lim->start_ns < ROAN_KEY_PERIOD_NS)
		return;
	lim->start_ns = now;
	memset(lim->n_refused, 0, sizeof(lim->n_refused));
	lim->spent = false;
}

/* @lim->spent. True: drop the message that begins with packet @psn, and do not look up its R_Key. */
static inline bool roan_key_limit_blocks(struct roan_key_limit *lim, u32 psn, u64 now)
{
	key_limit_new_period(lim, now);
	return *key_limit_count(lim, psn) >= ROAN_KEY_REFUSALS;
}

/* R_Key, range or access right of packet @psn was refused. */
static inline void roan_key_limit_refused(struct roan_key_limit *lim, u32 psn, u64 now)
{
	u8 *n = key_limit_count(lim, psn);

	key_limit_new_period(lim, now);
	*n += *n < ROAN_KEY_REFUSALS;
	lim->spent |= *n == ROAN_KEY_REFUSALS;
}

#endif /* ROAN_KEY_LIMIT_H */
