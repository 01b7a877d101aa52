/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request, or the answer to one, waits for memory of ours, and its requester asks again meanwhile. What is it told?
 *
 *   at first	nothing. An early probe costs it no retry, and an RNR NAK might be one more than its rnr_retry allows.
 *   then	to come later (RNR NAK, 9.7.5.2.8), which renews its other retries: as long again as this has taken, so that
 *		few are enough, and little is sent in vain.
 *
 * The first ends after ROAN_RNR_GRACE_NS, which an ACK timeout is longer than as a rule (4.096 us * 2^14 is 67 ms), or
 * when it
 * has asked more often than probes do in that time: then its ACK timeouts are so short that its retries may soon be spent.
 */
#ifndef ROAN_RNR_DEFER_H
#define ROAN_RNR_DEFER_H

#include "core/core_env.h"
#include "core/transport/wire.h"

#define ROAN_RNR_GRACE_NS	50000000ull
#define ROAN_RNR_GRACE_DUPS	3

#define ROAN_PSN_NONE	U32_MAX

struct roan_rnr_defer {
	u64 start_ns;		/* ns */
	u32 psn;		/* whose it is, or ROAN_PSN_NONE */
	u32 n_dup;
};

static inline void roan_rnr_defer_begin(struct roan_rnr_defer *rest, u32 psn, u64 now)
{
	*rest = (struct roan_rnr_defer) { .start_ns = now, .psn = psn };
}

/* Asked again. True: say so, with the RNR timer's @code. */
static inline bool roan_rnr_defer_dup(struct roan_rnr_defer *rest, u64 now, u8 *code)
{
	u64 waited = now - rest->start_ns;

	*code = roan_rnr_code(waited);
	return ++rest->n_dup > ROAN_RNR_GRACE_DUPS || waited >= ROAN_RNR_GRACE_NS;
}

#endif /* ROAN_RNR_DEFER_H */
