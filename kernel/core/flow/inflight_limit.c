// SPDX-License-Identifier: GPL-2.0
/*
 * Adapts the limit of inflight_limit.h to how fast packets leave this host. Does not count the packets
 * (flow/tx_inflight.c).
 */
#include "core/flow/inflight_limit.h"

void roan_inflight_limit_update(struct roan_inflight_limit *d, u32 below, u64 now)
{
	/* true if everything handed over before @mark_ns has left */
	bool left = (s32)(d->sent_kb - below - d->mark_kb) >= 0;
	u64 took = now - d->mark_ns;

	if (took >= ROAN_INFLIGHT_SHRINK_NS && (d->limited || !left))
		d->max_kb = max_t(u32, d->max_kb / 2, ROAN_INFLIGHT_MIN);
	else if (!left)
		return;
	else if (took < ROAN_INFLIGHT_GROW_NS && d->limited)
		d->max_kb = min_t(u32, d->max_kb * 2, ROAN_INFLIGHT_MAX);
	d->limited = false;
	d->mark_kb = d->sent_kb;
	d->mark_ns = now;
}
