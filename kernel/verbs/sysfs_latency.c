// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/class/infiniband/roanN/ports/1/latency/: the histograms of latency.h, read-only. A file has a line for the sum
 * of all times and one for each bucket: the time that its entries do not reach, and their number.
 *
 *	sum_ns 31337
 *	1024 0
 *	2048 12
 *	...
 *	inf 0
 */
#include <rdma/ib_sysfs.h>
#include "base/base.h"
#include "verbs/verbs.h"

struct latency {
	struct ib_port_attribute attr;
	enum roan_latency which;
};

static ssize_t latency_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, char *buf)
{
	const struct latency *l = container_of(attr, struct latency, attr);
	struct roan_histogram sum;
	int i, n;

	roan_stats_histogram(to_roan_dev(ibdev), l->which, &sum);
	n = sysfs_emit(buf, "sum_ns %llu\n", sum.sum_ns);
	for (i = 0; i < ROAN_LATENCY_BUCKETS - 1; i++)
		n += sysfs_emit_at(buf, n, "%llu %llu\n", 1ull << (ROAN_LATENCY_SHIFT + i), sum.count[i]);
	return n + sysfs_emit_at(buf, n, "inf %llu\n", sum.count[i]);
}

#define X(_name, ...)							\
	static struct latency latency_##_name = {			\
		.attr = __ATTR(_name, 0444, latency_show, NULL),	\
		.which = ROAN_LAT_##_name,				\
	};
ROAN_LATENCIES(X)
#undef X

static struct attribute *attrs[] = {
#define X(_name, ...)	&latency_##_name.attr.attr,
	ROAN_LATENCIES(X)
#undef X
	NULL
};

const struct attribute_group roan_latency_group = { .name = "latency", .attrs = attrs };
