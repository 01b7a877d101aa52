// SPDX-License-Identifier: GPL-2.0
/*
 * How much may be in flight, whatever the algorithm: window_max bytes, or window_bdp of what the path holds when it is empty,
 * which is the link's speed times the shortest round trip seen lately. An algorithm's own window is apart (swift.c), and so is
 * what the transport can number.
 */
#include "core/cc/cc_ops.h"

#define MIN_RTT_LIFE	(10ULL * NSEC_PER_SEC)	/* paths change: the shortest round trip is believed for so long */
#define MIN_PKTS	2			/* packets: with fewer one is always waited for */

void roan_cc_rtt_sample(struct roan_cc *cc, u64 rtt_ns)
{
	if (cc->min_rtt_ns && rtt_ns > cc->min_rtt_ns && cc->now - cc->min_rtt_at <= MIN_RTT_LIFE)
		return;
	cc->min_rtt_ns = rtt_ns;
	cc->min_rtt_at = cc->now;
}

/* Bytes; 0: no such bound, or not known yet. */
static u64 path_bdp(const struct roan_cc *cc)
{
	u64 bps = cc->rate_cap ? min(cc->rate_cap, cc->link) : cc->link;

	return mul_u64_u64_div_u64(bps, cc->min_rtt_ns * CC_PARAM(cc, window_bdp), 800 * NSEC_PER_SEC);
}

void roan_cc_apply_bound(struct roan_cc *cc)
{
	u64 most = CC_PARAM(cc, window_max) * 1024ULL;
	u64 path = path_bdp(cc);

	cc->cwnd_bound = most && path ? min(most, path) : most | path;
	if (cc->cwnd_bound)
		cc->cwnd_bound = max_t(u64, cc->cwnd_bound, MIN_PKTS * cc->packet);
}
