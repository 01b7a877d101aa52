/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of a queue's packets may be below at a time: handed to the IP stack and not yet gone from this host. What waits
 * there can neither be called back nor overtaken, and to the peer it looks like silence; but an adapter that has nothing to
 * do waits for us. So a queue begins with little, as a slow link may be shared by many; it may have twice as much when it is at
 * its limit and that leaves at once, and half as much when it stays for long.
 *
 * Sizes are KiB. Concurrency: the caller's lock.
 */
#ifndef ROAN_DEPTH_H
#define ROAN_DEPTH_H

#include "core/core_env.h"

#define ROAN_DEPTH_MIN		8
#define ROAN_DEPTH_MAX		512
#define ROAN_DEPTH_QUICK_NS	(2 * NSEC_PER_MSEC)	/* left sooner: more may wait */
#define ROAN_DEPTH_SLOW_NS	(20 * NSEC_PER_MSEC)	/* stays longer: less */

struct roan_depth {
	u32 limit;
	u32 given;		/* all that was ever handed over; wraps */
	u32 mark;		/* ... until @since */
	u64 since;		/* ns */
	bool full;		/* the limit was reached since then */
};

static inline void roan_depth_init(struct roan_depth *d)
{
	*d = (struct roan_depth){ .limit = ROAN_DEPTH_MIN };
}

/* Now and then, at best when sending begins: what is below moves the limit. */
void roan_depth_look(struct roan_depth *d, u32 below, u64 now);

/* May more be handed over, @below being there? */
static inline bool roan_depth_open(const struct roan_depth *d, u32 below)
{
	return likely(below < d->limit);
}

/* No more was. It may go on when less than this is below. */
static inline u32 roan_depth_full(struct roan_depth *d)
{
	d->full = true;
	return d->limit / 2;
}

static inline void roan_depth_gave(struct roan_depth *d, u32 size)
{
	d->given += size;
}

#endif /* ROAN_DEPTH_H */
