/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of a queue's packets may be below at a time: handed to the IP stack and not yet gone from this host. What waits
 * there can neither be called back nor overtaken, and to the peer it looks like silence; but an adapter that has nothing to
 * do waits for us. So a queue begins with little, as a slow link may be shared by many; it may have twice as much when it is at
 * its limit and that leaves at once, and half as much when it stays for long.
 *
 * Sizes are KiB. Concurrency: the caller's lock.
 */
#ifndef ROAN_INFLIGHT_LIMIT_H
#define ROAN_INFLIGHT_LIMIT_H

#include "core/core_env.h"

#define ROAN_INFLIGHT_MIN		8
#define ROAN_INFLIGHT_MAX		512
#define ROAN_INFLIGHT_GROW_NS	(2 * NSEC_PER_MSEC)	/* left sooner: more may wait */
#define ROAN_INFLIGHT_SHRINK_NS	(20 * NSEC_PER_MSEC)	/* stays longer: less */

struct roan_inflight_limit {
	u32 max_kb;
	u32 sent_kb;		/* all that was ever handed over; wraps */
	u32 mark_kb;		/* ... until @mark_ns */
	u64 mark_ns;		/* ns */
	bool limited;		/* the limit was reached since then */
};

static inline void roan_inflight_limit_init(struct roan_inflight_limit *d)
{
	*d = (struct roan_inflight_limit){ .max_kb = ROAN_INFLIGHT_MIN };
}

/* Now and then, at best when sending begins: what is below moves the limit. */
void roan_inflight_limit_update(struct roan_inflight_limit *d, u32 below, u64 now);

/* May more be handed over, @below being there? */
static inline bool roan_inflight_limit_allows(const struct roan_inflight_limit *d, u32 below)
{
	return likely(below < d->max_kb);
}

/* No more was. It may go on when less than this is below. */
static inline u32 roan_inflight_limit_hit(struct roan_inflight_limit *d)
{
	d->limited = true;
	return d->max_kb / 2;
}

static inline void roan_inflight_limit_add(struct roan_inflight_limit *d, u32 size)
{
	d->sent_kb += size;
}

#endif /* ROAN_INFLIGHT_LIMIT_H */
