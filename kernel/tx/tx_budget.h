/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The transmit budget of a softirq round (base/deferred.h), counted in skbs: a train counts as one if the device segments it,
 * else as many as it has packets. What exceeds the budget goes on in the next round. Softirqs off.
 */
#ifndef ROAN_BURST_H
#define ROAN_BURST_H

#include "base/deferred.h"
#include "tx/gso.h"

static inline u32 roan_burst_pieces(const struct roan_train *t)
{
	return t->cut ? t->n : 1;
}

static inline void roan_burst_add(const struct roan_train *t)
{
	__this_cpu_add(roan_burst, roan_burst_pieces(t));
}

/* The same, when @t has left. */
static inline bool roan_burst_over(const struct roan_train *t)
{
	return __this_cpu_read(roan_burst) + (t->skb ? roan_burst_pieces(t) : 0) >= ROAN_BURST;
}

#endif /* ROAN_BURST_H */
