/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long an answer takes, and so how long silence may last before it means loss: the estimator of RFC 6298, in ns. What
 * may be measured (one request at a time, none that was sent twice) is requester.c's business.
 */
#ifndef ROAN_RTT_H
#define ROAN_RTT_H

#include "core/core_env.h"

/*
 * No shorter: a peer's softirq may be put off to a thread for a scheduler's slice. TCP has 200 ms here, because its peer
 * holds acknowledgements back; ours may not once they are asked for.
 */
#define ROAN_RTO_MIN_NS		(4 * NSEC_PER_MSEC)

struct roan_rtt {
	u64 srtt_ns;		/* smoothed; 0: nothing measured yet */
	u64 var_ns;		/* mean deviation from it */
};

void roan_rtt_sample(struct roan_rtt *rtt, u64 ns);

/* Silence of this many ns means loss; 0: nothing measured yet. */
u64 roan_rtt_rto_ns(const struct roan_rtt *rtt);

#endif /* ROAN_RTT_H */
