/* SPDX-License-Identifier: GPL-2.0 */
/* A reaction point that runs DCQCN and can be put into any state. The cases supply times and events. */
#ifndef ROAN_DCQCN_FIXTURE_H
#define ROAN_DCQCN_FIXTURE_H

#include "cc_fixture.h"

#define PACKET	1082

static inline void start(struct rig *r, enum roan_cc_algo algo)
{
	roan_cc_params_default(&r->params, algo);
	roan_cc_start(&r->cc, algo, &r->params, 40 * GBPS, 0, PACKET, T0);
}

/* Limiting since T0 with these rates, alpha 0 and all counts 0, so that only the events of the case have an effect. */
static inline void limited(struct rig *r, enum roan_cc_algo algo, u64 rate, u64 target)
{
	start(r, algo);
	roan_cc_cnp(&r->cc, T0);
	r->cc.dcqcn.rate = rate;
	r->cc.dcqcn.target = target;
	r->cc.dcqcn.alpha = 0;
	r->cc.dcqcn.cut_at = 0;
	r->cc.rate = rate;
}

#endif
