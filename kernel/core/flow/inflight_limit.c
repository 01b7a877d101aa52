// SPDX-License-Identifier: GPL-2.0
/* What leaves at once, and what does not. See inflight_limit.h. */
#include "core/flow/inflight_limit.h"

void roan_depth_look(struct roan_depth *d, u32 below, u64 now)
{
	bool left = (s32)(d->given - below - d->mark) >= 0;	/* all that was there at @since, and perhaps more */
	u64 took = now - d->since;

	if (took >= ROAN_DEPTH_SLOW_NS && (d->full || !left))
		d->limit = max_t(u32, d->limit / 2, ROAN_DEPTH_MIN);
	else if (!left)
		return;
	else if (took < ROAN_DEPTH_QUICK_NS && d->full)
		d->limit = min_t(u32, d->limit * 2, ROAN_DEPTH_MAX);
	d->full = false;
	d->mark = d->given;
	d->since = now;
}
