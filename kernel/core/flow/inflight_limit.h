/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adaptive limit of a queue's packets in flight in this host: handed to the IP stack and not yet sent. Such packets
 * can neither be recalled nor overtaken, and to the peer they look like a delay; but too low a limit leaves an idle
 * adapter waiting. So a queue starts with a low limit, as many may share a slow link. The limit doubles if it is
 * reached and packets leave fast, and is halved if they stay long.
 *
 * Sizes are KiB. Concurrency: the caller's lock.
 */
#ifndef ROAN_INFLIGHT_LIMIT_H
#define ROAN_INFLIGHT_LIMIT_H

#include "core/core_env.h"

#define ROAN_INFLIGHT_MIN		8
#define ROAN_INFLIGHT_MAX		512
#define ROAN_INFLIGHT_GROW_NS	(2 * NSEC_PER_MSEC)	/* packets left sooner: double the limit */
#define ROAN_INFLIGHT_SHRINK_NS	(20 * NSEC_PER_MSEC)	/* packets stay longer: halve the limit */

struct roan_inflight_limit {
	u32 max_kb;
	u32 sent_kb;		/* handed over in total; wraps */
	u32 mark_kb;		/* value of sent_kb at @mark_ns */
	u64 mark_ns;		/* ns: start of the present measurement */
	bool limited;		/* the limit was reached since @mark_ns */
};

static inline void roan_inflight_limit_init(struct roan_inflight_limit *limit)
{
	*limit = (struct roan_inflight_limit){ .max_kb = ROAN_INFLIGHT_MIN };
}

/* Updates the limit. @inflight_kb: KiB in flight in the stack now. Call it now and then, best when sending begins. */
void roan_inflight_limit_update(struct roan_inflight_limit *limit, u32 inflight_kb, u64 now);

/* True if more may be handed over while @inflight_kb KiB are in flight in the stack. */
static inline bool roan_inflight_limit_allows(const struct roan_inflight_limit *limit, u32 inflight_kb)
{
	return likely(inflight_kb < limit->max_kb);
}

/* The limit was hit. Returns the KiB in flight in the stack below which sending may resume. */
static inline u32 roan_inflight_limit_hit(struct roan_inflight_limit *limit)
{
	limit->limited = true;
	return limit->max_kb / 2;
}

static inline void roan_inflight_limit_add(struct roan_inflight_limit *limit, u32 size)
{
	limit->sent_kb += size;
}

#endif /* ROAN_INFLIGHT_LIMIT_H */
