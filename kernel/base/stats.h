/* SPDX-License-Identifier: GPL-2.0 */
/* The counters of counters.h and the histograms of latency.h, per CPU. */
#ifndef ROAN_STATS_H
#define ROAN_STATS_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include "base/counters.h"
#include "base/latency.h"

#define X(name, unit, meaning) ROAN_CNT_##name,
enum roan_counter { ROAN_COUNTERS(X) ROAN_NUM_COUNTERS };
#undef X

struct roan_histogram {
	u64 sum_ns;
	u64 count[ROAN_LATENCY_BUCKETS];
};

struct roan_stats {
	u64 count[ROAN_NUM_COUNTERS];
	struct roan_histogram latency[ROAN_NUM_LATENCIES];
};

/* Any context. */
#define roan_count_n(dev, name, n)	this_cpu_add((dev)->stats->count[ROAN_CNT_##name], (n))
#define roan_count(dev, name)		roan_count_n(dev, name, 1)

static inline u32 roan_latency_bucket(u64 ns)
{
	return min_t(u32, fls64(ns >> ROAN_LATENCY_SHIFT), ROAN_LATENCY_BUCKETS - 1);
}

/* Any context. */
static inline void roan_count_time(struct roan_stats __percpu *stats, enum roan_latency which, u64 ns)
{
	this_cpu_add(stats->latency[which].sum_ns, ns);
	this_cpu_inc(stats->latency[which].count[roan_latency_bucket(ns)]);
}

#endif /* ROAN_STATS_H */
