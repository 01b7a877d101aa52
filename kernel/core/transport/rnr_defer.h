/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Response to duplicate requests while the request, or its response, is deferred by a page fault of this host.
 *
 *	at first	none. An early probe uses no retry of the requester, and an RNR NAK might exceed its rnr_retry.
 *	then		RNR NAK (9.7.5.2.8), which renews the requester's other retries. Its delay is as long as the
 *			page fault has taken so far, so that few are needed and few packets are sent in vain.
 *
 * The first phase ends after ROAN_RNR_GRACE_NS, which is usually less than an ACK timeout (4.096 us * 2^14 is 67 ms),
 * or after more than ROAN_RNR_GRACE_DUPS duplicates: probes and repairs cause no more in that time (three of each, as
 * their intervals double), so the requester's ACK timeouts are short. It has seven retries at most, and the duplicate
 * that uses the last one must be answered.
 */
#ifndef ROAN_RNR_DEFER_H
#define ROAN_RNR_DEFER_H

#include "core/core_env.h"
#include "core/transport/wire.h"

#define ROAN_RNR_GRACE_NS	50000000ull
#define ROAN_RNR_GRACE_DUPS	6

#define ROAN_PSN_NONE	U32_MAX

struct roan_rnr_defer {
	u64 start_ns;		/* ns: when the page fault began */
	u32 psn;		/* PSN of the deferred request or response, or ROAN_PSN_NONE */
	u32 n_dup;
};

static inline void roan_rnr_defer_begin(struct roan_rnr_defer *rest, u32 psn, u64 now)
{
	*rest = (struct roan_rnr_defer) { .start_ns = now, .psn = psn };
}

/* Counts a duplicate. True: send an RNR NAK with timer @code. */
static inline bool roan_rnr_defer_dup(struct roan_rnr_defer *rest, u64 now, u8 *code)
{
	u64 waited = now - rest->start_ns;

	*code = roan_rnr_code(waited);
	return ++rest->n_dup > ROAN_RNR_GRACE_DUPS || waited >= ROAN_RNR_GRACE_NS;
}

#endif /* ROAN_RNR_DEFER_H */
