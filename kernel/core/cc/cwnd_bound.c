// SPDX-License-Identifier: GPL-2.0
/*
 * Upper bound of the bytes in flight, for any algorithm: window_max, or window_bdp percent of the bandwidth-delay
 * product (link speed times shortest recent round trip). Independent of the algorithm's own window (swift.c) and of
 * the PSN window (requester.c).
 */
#include "core/cc/cc_ops.h"

#define MIN_RTT_LIFE	(10ULL * NSEC_PER_SEC)	/* lifetime of the shortest round trip, as paths change */
#define MIN_PKTS	2			/* packets; with fewer the sender waits for each ACK */

void roan_cc_rtt_sample(struct roan_cc *cc, u64 rtt_ns)
{
	if (cc->min_rtt_ns && rtt_ns > cc->min_rtt_ns && cc->now - cc->min_rtt_at <= MIN_RTT_LIFE)
		return;
	cc->min_rtt_ns = rtt_ns;
	cc->min_rtt_at = cc->now;
}

/* Bytes; 0: no such bound, or no round trip known yet. */
static u64 path_bdp(const struct roan_cc *cc)
{
	u64 bps = cc->rate_cap ? min(cc->rate_cap, cc->link) : cc->link;
	u64 ns = cc->min_rtt_ns * CC_PARAM(cc, window_bdp);

	return ns ? max(mul_u64_u64_div_u64(bps, ns, 800 * NSEC_PER_SEC), 1ull) : 0;
}

void roan_cc_apply_bound(struct roan_cc *cc)
{
	u64 most = CC_PARAM(cc, window_max) * 1024ULL;
	u64 path = path_bdp(cc);

	cc->cwnd_bounded |= most || CC_PARAM(cc, window_bdp);	/* stays: ACKs show when it ends, and begins again */
	cc->cwnd_bound = most && path ? min(most, path) : most | path;
	if (cc->cwnd_bound)
		cc->cwnd_bound = max_t(u64, cc->cwnd_bound, MIN_PKTS * cc->packet);
}
