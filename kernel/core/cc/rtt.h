/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Round-trip estimator of RFC 6298, in ns, and the retransmission timeout derived from it. Does not decide which
 * packets may be timed (one at a time, none sent twice): requester.c and requester_rx.c do.
 */
#ifndef ROAN_RTT_H
#define ROAN_RTT_H

#include "core/core_env.h"

/*
 * Lower bound of the RTO: the peer's softirq may be deferred to ksoftirqd for a scheduler slice. TCP uses 200 ms,
 * because TCP peers delay ACKs; an RC responder may not delay an ACK that was requested.
 */
#define ROAN_RTO_MIN_NS		(4 * NSEC_PER_MSEC)

/* The same for the answer to a repair. It costs one packet to be wrong, so that the bound is low. */
#define ROAN_REPAIR_MIN_NS	(100 * NSEC_PER_USEC)

struct roan_rtt {
	u64 srtt_ns;		/* smoothed; 0: no sample yet */
	u64 var_ns;		/* mean deviation */
};

void roan_rtt_sample(struct roan_rtt *rtt, u64 ns);

/* Returns the RTO in ns; 0: no sample yet. */
u64 roan_rtt_rto_ns(const struct roan_rtt *rtt);

/* Returns how long to wait for the answer to a repair, in ns: two round trips and their variation; 0: no sample yet. */
u64 roan_rtt_repair_ns(const struct roan_rtt *rtt);

#endif /* ROAN_RTT_H */
