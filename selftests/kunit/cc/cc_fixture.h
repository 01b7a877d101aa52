/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct rig: a reaction point with its own parameters, for the suites of the algorithms. Each suite starts it itself.
 */
#ifndef ROAN_CC_FIXTURE_H
#define ROAN_CC_FIXTURE_H

#include <kunit/test.h>
#include "core/cc/cc.h"

#define T0	1000000000ULL
#define US	1000ULL
#define MBPS	1000000ULL
#define GBPS	1000000000ULL

struct rig {
	struct roan_cc_params params;
	struct roan_cc cc;
};

#endif
