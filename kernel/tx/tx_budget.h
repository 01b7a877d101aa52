/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much leaves before others of this CPU get their turn. What takes packets off a queue here, as a veth's NAPI with room for 256
 * or the backlog, runs when our softirq has come to its end; what does not fit until then is lost, and with UC for good. So a burst
 * has an end, and what remains goes on in the next round of softirqs (later.c), behind theirs.
 *
 * Softirqs off. Packets that wait in a train nobody has to cut count as one.
 */
#ifndef ROAN_BURST_H
#define ROAN_BURST_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include "tx/gso.h"

#define ROAN_BURST	64	/* skbs: as many as NAPI takes at a time */

DECLARE_PER_CPU(u32, roan_burst);

/* Others had their turn. */
static inline void roan_burst_begin(void)
{
	__this_cpu_write(roan_burst, 0);
}

/* A turn begins. Outside of a softirq all that was pending ran before. */
static inline void roan_burst_turn(void)
{
	if (!in_serving_softirq())
		roan_burst_begin();
}

static inline u32 roan_burst_pieces(const struct roan_train *t)
{
	return t->cut ? t->n : 1;
}

static inline void roan_burst_add(const struct roan_train *t)
{
	__this_cpu_add(roan_burst, roan_burst_pieces(t));
}

static inline bool roan_burst_full(void)
{
	return __this_cpu_read(roan_burst) >= ROAN_BURST;
}

/* The same, when @t has left. */
static inline bool roan_burst_over(const struct roan_train *t)
{
	return __this_cpu_read(roan_burst) + (t->skb ? roan_burst_pieces(t) : 0) >= ROAN_BURST;
}

#endif /* ROAN_BURST_H */
