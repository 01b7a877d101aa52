/* SPDX-License-Identifier: GPL-2.0 */
/* Interface between cc.c and the algorithms. Private to kernel/core/cc. */
#ifndef ROAN_CC_OPS_H
#define ROAN_CC_OPS_H

#include "core/cc/cc.h"

/*
 * An algorithm. Each callback handles an event at cc->now and writes @rate, @cwnd and @event_mask; cc.c detects
 * changes. Callbacks for events that the algorithm never subscribes to may be NULL.
 */
struct roan_cc_ops {
	u8 flags;						/* ROAN_CC_USES_ECN ... */
	void (*start)(struct roan_cc *cc);
	void (*limits)(struct roan_cc *cc);			/* link or cap changed */
	void (*cnp)(struct roan_cc *cc);
	void (*acked)(struct roan_cc *cc, const struct roan_cc_sample *sample);
	void (*lost)(struct roan_cc *cc, enum roan_cc_loss why);
	void (*sent)(struct roan_cc *cc, u32 bytes);
	void (*elapsed)(struct roan_cc *cc);
	u64  (*deadline)(const struct roan_cc *cc);
	void (*state)(const struct roan_cc *cc, struct roan_cc_state *state);
};

extern const struct roan_cc_ops roan_cc_none;		/* fixed.c */
extern const struct roan_cc_ops roan_cc_fixed;
extern const struct roan_cc_ops roan_cc_dcqcn;		/* dcqcn.c, also dcqcn-mlx */
extern const struct roan_cc_ops roan_cc_swift;		/* swift.c */

/* cwnd_bound.c: a round trip was measured; recompute the bound. */
void roan_cc_rtt_sample(struct roan_cc *cc, u64 rtt_ns);
void roan_cc_apply_bound(struct roan_cc *cc);

#define CC_PARAM(cc, name)	READ_ONCE((cc)->params->name)

static inline u64 roan_mbps(u32 mbps)
{
	return mbps * 1000000ULL;
}

/* The lower of @rate and the QP's cap; 0 means unlimited in both. */
static inline u64 roan_cc_capped(const struct roan_cc *cc, u64 rate)
{
	if (!rate || !cc->rate_cap)
		return rate | cc->rate_cap;
	return min(rate, cc->rate_cap);
}

#endif /* ROAN_CC_OPS_H */
