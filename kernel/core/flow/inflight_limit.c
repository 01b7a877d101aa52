// SPDX-License-Identifier: GPL-2.0
/*
 * Adapts the limit of inflight_limit.h to how fast packets leave this host. Does not count the packets
 * (flow/tx_inflight.c).
 */
#include "core/flow/inflight_limit.h"

void roan_inflight_limit_update(struct roan_inflight_limit *limit, u32 inflight_kb, u64 now)
{
	/* true if everything handed over before @mark_ns has left */
	bool left = (s32)(limit->sent_kb - inflight_kb - limit->mark_kb) >= 0;
	u64 took = now - limit->mark_ns;

	if (took >= ROAN_INFLIGHT_SHRINK_NS && (limit->limited || !left))
		limit->max_kb = max_t(u32, limit->max_kb / 2, ROAN_INFLIGHT_MIN);
	else if (!left)
		return;
	else if (took < ROAN_INFLIGHT_GROW_NS && limit->limited)
		limit->max_kb = min_t(u32, limit->max_kb * 2, ROAN_INFLIGHT_MAX);
	limit->limited = false;
	limit->mark_kb = limit->sent_kb;
	limit->mark_ns = now;
}
