/* SPDX-License-Identifier: GPL-2.0 */
/* The counters of counters.h, per CPU. */
#ifndef ROAN_STATS_H
#define ROAN_STATS_H

#include <linux/percpu.h>
#include "base/counters.h"

#define X(name, unit, meaning) ROAN_CNT_##name,
enum roan_counter { ROAN_COUNTERS(X) ROAN_NUM_COUNTERS };
#undef X

struct roan_stats {
	u64 count[ROAN_NUM_COUNTERS];
};

/* Any context. */
#define roan_count_n(dev, name, n)	this_cpu_add((dev)->stats->count[ROAN_CNT_##name], (n))
#define roan_count(dev, name)		roan_count_n(dev, name, 1)

#endif /* ROAN_STATS_H */
