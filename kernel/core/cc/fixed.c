// SPDX-License-Identifier: GPL-2.0
/* The two algorithms that listen to nobody: `none` has the QP's own cap only, `fixed` also a rate from the parameters. */
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

/* Asks to be called for each train, so that a new fixed_rate counts from the next one. */
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
