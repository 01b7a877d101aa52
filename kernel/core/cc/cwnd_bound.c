// SPDX-License-Identifier: GPL-2.0
/*
 * How much may be in flight, whatever the algorithm: window_max bytes, or window_bdp of what the path holds when it is empty,
 * which is the link's speed times the shortest round trip seen lately. An algorithm's own window is apart (swift.c), and so is
 * what the transport can number.
 */
#include "core/cc/cc_ops.h"

#define FLOOR_LIFE	(10ULL * NSEC_PER_SEC)	/* paths change: the shortest round trip is believed for so long */
#define FEWEST		2			/* packets: with fewer one is always waited for */

void roan_cc_measured(struct roan_cc *cc, u64 rtt_ns)
{
	if (cc->floor_ns && rtt_ns > cc->floor_ns && cc->now - cc->floor_at <= FLOOR_LIFE)
		return;
	cc->floor_ns = rtt_ns;
	cc->floor_at = cc->now;
}

/* Bytes; 0: no such bound, or not known yet. */
static u64 path_holds(const struct roan_cc *cc)
{
	u64 bps = cc->cap ? min(cc->cap, cc->link) : cc->link;

	return mul_u64_u64_div_u64(bps, cc->floor_ns * PARAM(cc, window_bdp), 800 * NSEC_PER_SEC);
}

void roan_cc_bind(struct roan_cc *cc)
{
	u64 most = PARAM(cc, window_max) * 1024ULL;
	u64 path = path_holds(cc);

	cc->bound = most && path ? min(most, path) : most | path;
	if (cc->bound)
		cc->bound = max_t(u64, cc->bound, FEWEST * cc->packet);
}
