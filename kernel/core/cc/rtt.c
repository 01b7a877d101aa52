// SPDX-License-Identifier: GPL-2.0
/* Round-trip estimator and RTO (RFC 6298, section 2). */
#include "core/cc/rtt.h"

void roan_rtt_sample(struct roan_rtt *rtt, u64 ns)
{
	u64 off;

	ns = max(ns, 1ull);
	if (!rtt->srtt_ns) {
		rtt->srtt_ns = ns;
		rtt->var_ns = ns / 2;
		return;
	}
	off = ns > rtt->srtt_ns ? ns - rtt->srtt_ns : rtt->srtt_ns - ns;
	rtt->var_ns += off / 4 - rtt->var_ns / 4;
	rtt->srtt_ns = max(rtt->srtt_ns + ns / 8 - rtt->srtt_ns / 8, 1ull);
}

u64 roan_rtt_rto_ns(const struct roan_rtt *rtt)
{
	if (!rtt->srtt_ns)
		return 0;
	return max(rtt->srtt_ns + 4 * rtt->var_ns, (u64)ROAN_RTO_MIN_NS);
}

u64 roan_rtt_repair_ns(const struct roan_rtt *rtt)
{
	if (!rtt->srtt_ns)
		return 0;
	return max(2 * rtt->srtt_ns + 4 * rtt->var_ns, (u64)ROAN_REPAIR_MIN_NS);
}
