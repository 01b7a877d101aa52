// SPDX-License-Identifier: GPL-2.0
/* The two algorithms without feedback: `none` has only the QP's own cap, `fixed` also a rate from the parameters. */
#include "core/cc/cc_ops.h"

static void none_limits(struct roan_cc *cc)
{
	cc->rate = cc->rate_cap;
}

const struct roan_cc_ops roan_cc_none = {
	.start = none_limits,
	.limits = none_limits,
};

static void fixed_limits(struct roan_cc *cc)
{
	cc->rate = roan_cc_capped(cc, roan_mbps(CC_PARAM(cc, fixed_rate)));
}

/* Subscribes to time events, so that a new fixed_rate applies from the next train on. */
static void fixed_start(struct roan_cc *cc)
{
	cc->event_mask = ROAN_CC_EVENT_TIME;
	fixed_limits(cc);
}

const struct roan_cc_ops roan_cc_fixed = {
	.flags = ROAN_CC_FROM_START,
	.start = fixed_start,
	.limits = fixed_limits,
	.elapsed = fixed_limits,
};
