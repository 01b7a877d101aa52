/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request, or the answer to one, waits for memory of ours, and its requester asks again meanwhile. What is it told?
 *
 *   at first	nothing. An early probe costs it no retry, and an RNR NAK might be one more than its rnr_retry allows.
 *   then	to come later (RNR NAK, 9.7.5.2.8), which renews its other retries: as long again as this has taken, so that
 *		few are enough, and little is sent in vain.
 *
 * The first ends after ROAN_REST_QUIET_NS, which an ACK timeout is longer than as a rule (4.096 us * 2^14 is 67 ms), or when it
 * has asked more often than probes do in that time: then its ACK timeouts are so short that its retries may soon be spent.
 */
#ifndef ROAN_REST_H
#define ROAN_REST_H

#include "core/core_env.h"
#include "core/transport/wire.h"

#define ROAN_REST_QUIET_NS	50000000ull
#define ROAN_REST_QUIET_ASKS	3

#define ROAN_REST_NOBODY	U32_MAX

struct roan_rest {
	u64 since;		/* ns */
	u32 psn;		/* whose it is, or ROAN_REST_NOBODY */
	u32 asks;
};

static inline void roan_rest_begin(struct roan_rest *rest, u32 psn, u64 now)
{
	*rest = (struct roan_rest) { .since = now, .psn = psn };
}

/* Asked again. True: say so, with the RNR timer's @code. */
static inline bool roan_rest_asked(struct roan_rest *rest, u64 now, u8 *code)
{
	u64 waited = now - rest->since;

	*code = roan_rnr_code(waited);
	return ++rest->asks > ROAN_REST_QUIET_ASKS || waited >= ROAN_REST_QUIET_NS;
}

#endif /* ROAN_REST_H */
