// SPDX-License-Identifier: GPL-2.0
/*
 * Adds up what the CPUs have counted, and names the counters of counters.h for the RDMA core: `rdma statistic` and
 * ports/1/hw_counters/. verbs/pma.c and sysfs_latency.c show the sums. Does not count events.
 */
#include <net/netlink.h>
#include "base/base.h"

#define X(counter, ...)	\
	[ROAN_CNT_##counter] = { .name = #counter },
static const struct rdma_stat_desc descs[] = { ROAN_COUNTERS(X) };
#undef X

static_assert(ARRAY_SIZE(descs) == ROAN_NUM_COUNTERS);

/*
 * The core puts all counters into one netlink message of a fixed size: stat_get_doit_default_counter(). Kernels with
 * more fragments in an skb than the default have less room in it: there `rdma statistic show link` may fail.
 */
#define ATTR(size)	(NLA_HDRLEN + NLA_ALIGN(size))
#define UNALIGNED_IS_FAST	IS_ENABLED(CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS)
#define PAD(name)	(UNALIGNED_IS_FAST || NLA_ALIGN(sizeof(name)) % 8 ? 0 : ATTR(0))
#define HEAD		(NLMSG_HDRLEN + 2 * ATTR(sizeof(u32)) + ATTR(IB_DEVICE_NAME_MAX) + ATTR(0))
#define X(counter, ...)	+ ATTR(0) + ATTR(sizeof(#counter)) + PAD(#counter) + ATTR(sizeof(u64))
static_assert(MAX_SKB_FRAGS > 17 || HEAD ROAN_COUNTERS(X) <= NLMSG_GOODSIZE);
#undef X

const char *roan_counter_name(enum roan_counter which)
{
	return descs[which].name;
}

/* Not a snapshot: CPUs count while they are summed. */
u64 roan_stats_sum(const struct roan_dev *dev, enum roan_counter which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->stats, cpu)->count[which]);
	return sum;
}

void roan_stats_histogram(const struct roan_dev *dev, enum roan_latency which, struct roan_histogram *sum)
{
	const struct roan_histogram *h;
	int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		h = &per_cpu_ptr(dev->stats, cpu)->latency[which];
		sum->sum_ns += READ_ONCE(h->sum_ns);
		for (i = 0; i < ROAN_LATENCY_BUCKETS; i++)
			sum->count[i] += READ_ONCE(h->count[i]);
	}
}

struct rdma_hw_stats *roan_alloc_port_stats(struct ib_device *dev, u32 port)
{
	return rdma_alloc_hw_stats_struct(descs, ARRAY_SIZE(descs), RDMA_HW_STATS_DEFAULT_LIFESPAN);
}
