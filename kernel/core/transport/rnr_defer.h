/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Response to duplicate requests while the request, or its response, is deferred by a page fault of this host.
 *
 *	at first	none. An early probe uses no retry of the requester, and an RNR NAK might exceed its rnr_retry.
 *	then		RNR NAK (9.7.5.2.8), which renews the requester's other retries. Its delay is as long as the
 *			page fault has taken so far, so that few are needed and few packets are sent in vain.
 *
 * The first phase ends at the first of
 *	40 ms		less than the usual ACK timeout (code 14: 67 ms). Also less than three of code 12 (50 ms), which
 *			last 44 to 48 ms on rdma_rxe: its timer counts jiffies.
 *	3 timeouts	duplicates with the time of a short ACK timeout between them: the requester may have few
 *			retries. Most copies and repairs come sooner, and the intervals of probes double (4, 8,
 *			16 ms), so that probes alone are two. With an ACK timeout of 4.2 ms (code 10) that is after
 *			12.6 ms, and three retries are enough.
 *	7 duplicates	whatever is between them: no requester has more retries, and one with an even shorter timeout
 *			(rdma_rxe: 1 ms) needs an answer to the last one. Probes and repairs cause no more in 40 ms.
 */
#ifndef ROAN_RNR_DEFER_H
#define ROAN_RNR_DEFER_H

#include "core/core_env.h"
#include "core/transport/wire.h"

#define ROAN_RNR_GRACE_NS	40000000ull
#define ROAN_RNR_GRACE_TIMEOUTS	2
#define ROAN_RNR_GRACE_DUPS	6

/* Of rdma_rxe with HZ=250: 4 ms. Codes 1 to 11: 4.2 and 8.4 ms. */
#define ROAN_RNR_TIMEOUT_MIN_NS	3500000ull
#define ROAN_RNR_TIMEOUT_MAX_NS	12000000ull

#define ROAN_PSN_NONE	U32_MAX

struct roan_rnr_defer {
	u64 start_ns;		/* ns: when the page fault began */
	u64 last_ns;		/* ns: the same, or the last duplicate at least ROAN_RNR_TIMEOUT_MIN_NS later */
	u32 psn;		/* PSN of the deferred request or response, or ROAN_PSN_NONE */
	u16 n_dup;
	u16 n_timeouts;		/* of the duplicates, those with the time of a short ACK timeout before them */
};

static inline void roan_rnr_defer_begin(struct roan_rnr_defer *rest, u32 psn, u64 now)
{
	*rest = (struct roan_rnr_defer) { .start_ns = now, .last_ns = now, .psn = psn };
}

/* Counts a duplicate. True: send an RNR NAK with timer @code. */
static inline bool roan_rnr_defer_dup(struct roan_rnr_defer *rest, u64 now, u8 *code)
{
	u64 waited = now - rest->start_ns, since = now - rest->last_ns;

	*code = roan_rnr_code(waited);
	rest->n_dup++;
	if (since >= ROAN_RNR_TIMEOUT_MIN_NS) {
		rest->n_timeouts += since <= ROAN_RNR_TIMEOUT_MAX_NS;
		rest->last_ns = now;
	}
	return waited >= ROAN_RNR_GRACE_NS || rest->n_timeouts > ROAN_RNR_GRACE_TIMEOUTS ||
	       rest->n_dup > ROAN_RNR_GRACE_DUPS;
}

#endif /* ROAN_RNR_DEFER_H */
