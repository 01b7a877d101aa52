// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/class/infiniband/roanN/ports/1/cc_param/: what may be tuned at run time. One table: name, where the value is, unit,
 * range. A value that is no number is EINVAL, one out of range ERANGE, and nothing changes. Acts on nothing itself.
 */
#include <rdma/ib_sysfs.h>
#include "roan.h"

struct param {
	struct ib_port_attribute attr;
	u32 off;	/* of a u32 in struct roan_dev */
	u32 min, max;
};

static u32 *value_of(struct ib_device *ibdev, const struct param *p)
{
	return (void *)to_roan_dev(ibdev) + p->off;
}

static ssize_t param_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, char *buf)
{
	const struct param *p = container_of(attr, struct param, attr);

	return sysfs_emit(buf, "%u\n", READ_ONCE(*value_of(ibdev, p)));
}

static ssize_t param_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, const char *buf, size_t n)
{
	const struct param *p = container_of(attr, struct param, attr);
	u32 value;
	int err = kstrtou32(buf, 0, &value);

	if (err)
		return err;
	if (value < p->min || value > p->max)
		return -ERANGE;
	WRITE_ONCE(*value_of(ibdev, p), value);
	return n;
}

#define PARAM(_name, _field, _min, _max)							\
	static struct param param_##_name = {							\
		.attr = __ATTR(_name, 0644, param_show, param_store),				\
		.off = offsetof(struct roan_dev, _field),					\
		.min = _min,									\
		.max = _max,									\
	};											\
	static_assert(sizeof_field(struct roan_dev, _field) == sizeof(u32))

PARAM(traffic_class, qos.traffic_class, 0, 255);

static struct attribute *attrs[] = {
	&param_traffic_class.attr.attr,
	NULL
};

static const struct attribute_group group = { .name = "cc_param", .attrs = attrs };

const struct attribute_group *roan_port_groups[] = { &group, NULL };
