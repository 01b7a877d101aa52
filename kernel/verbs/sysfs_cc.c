// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/class/infiniband/roanN/ports/1/cc_param/: parameters that can be changed at run time. Names, units and ranges
 * are in core/cc/params.h and core/flow/pfc_rules.h. Text that is not a number returns EINVAL, a number out of range
 * ERANGE; neither changes anything. Each algorithm has a set of values; the files show the set of the device's
 * algorithm. A store changes that set, or all of them (roan_cc_param_is_shared()). This file only stores a value: the
 * code that uses it reads it each time, and roan_pfc_set() applies PFC parameters.
 */
#include <rdma/ib_sysfs.h>
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "verbs/verbs.h"

struct param {
	struct ib_port_attribute attr;
	u32 which;		/* enum roan_cc_param or roan_pfc_param */
};

static ssize_t cc_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, char *buf)
{
	const struct param *p = container_of(attr, struct param, attr);

	return sysfs_emit(buf, "%u\n", roan_cc_param_get(roan_cc_params_of(to_roan_dev(ibdev)), p->which));
}

static ssize_t cc_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, const char *buf, size_t n)
{
	const struct param *p = container_of(attr, struct param, attr);
	struct roan_cc_dev *cc = &to_roan_dev(ibdev)->cc;
	u32 value, algo, own = READ_ONCE(cc->algo);
	int err = kstrtou32(buf, 0, &value);

	for (algo = 0; !err && algo < ROAN_CC_NUM_ALGOS; algo++) {
		if (algo != own && !roan_cc_param_is_shared(p->which))
			continue;
		if (!roan_cc_param_set(&cc->params[algo], p->which, value))
			err = -ERANGE;
	}
	return err ?: n;
}

static ssize_t pfc_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, char *buf)
{
	const struct param *p = container_of(attr, struct param, attr);

	return sysfs_emit(buf, "%u\n", roan_pfc_param_get(&to_roan_dev(ibdev)->pfc.params, p->which));
}

static ssize_t pfc_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, const char *buf, size_t n)
{
	const struct param *p = container_of(attr, struct param, attr);
	u32 value;
	int err = kstrtou32(buf, 0, &value);

	return err ?: roan_pfc_set(to_roan_dev(ibdev), p->which, value) ?: n;
}

/* Upper ends of the ranges that users are shown. */
enum device_param_max {
#define X(name, unit, min, max, def, meaning)	MAX_##name = max,
	ROAN_CC_DEVICE_PARAMS(X)
#undef X
};

static_assert((int)MAX_any_interface == (int)ROAN_SEND_BY_ANY_INTERFACE);

/* A number from 0 to @max. */
static int read_number(const char *buf, u32 max, u32 *value)
{
	return kstrtou32(buf, 0, value) ?: (*value > max ? -ERANGE : 0);
}

/* A parameter that is stored as it is, in @field of struct roan_dev. */
#define NUMBER(_name, field)										\
static ssize_t _name##_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, char *buf)	\
{													\
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_roan_dev(ibdev)->field));				\
}													\
													\
static ssize_t _name##_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr,		\
			     const char *buf, size_t n)							\
{													\
	u32 value;											\
	int err = read_number(buf, MAX_##_name, &value);						\
													\
	if (!err)											\
		WRITE_ONCE(to_roan_dev(ibdev)->field, value);						\
	return err ?: n;										\
}													\
static IB_PORT_ATTR_RW(_name)

NUMBER(program_algo, cc.program_algo);
NUMBER(link_speed, cc.link_speed);
NUMBER(traffic_class, qos.traffic_class);
NUMBER(any_interface, any_interface);

static ssize_t algo_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", roan_cc_name(READ_ONCE(to_roan_dev(ibdev)->cc.algo)));
}

static ssize_t algo_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, const char *buf, size_t n)
{
	enum roan_cc_algo algo;
	char name[16];

	if (strscpy(name, buf, sizeof(name)) < 0)
		return -EINVAL;
	algo = roan_cc_find(strim(name));
	if (algo == ROAN_CC_NUM_ALGOS)
		return -EINVAL;
	WRITE_ONCE(to_roan_dev(ibdev)->cc.algo, algo);
	return n;
}
static IB_PORT_ATTR_RW(algo);

static const char * const peer_modes[] = { "auto", "standard" };

static ssize_t peer_mode_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", peer_modes[READ_ONCE(to_roan_dev(ibdev)->standard_wire)]);
}

static ssize_t peer_mode_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, const char *buf,
			       size_t n)
{
	int mode = sysfs_match_string(peer_modes, buf);

	if (mode < 0)
		return mode;
	WRITE_ONCE(to_roan_dev(ibdev)->standard_wire, mode);
	return n;
}
static IB_PORT_ATTR_RW(peer_mode);

#define X(_name, ...)							\
	static struct param param_##_name = {				\
		.attr = __ATTR(_name, 0644, cc_show, cc_store),		\
		.which = ROAN_CC_PARAM_##_name,				\
	};
ROAN_CC_PARAMS(X)
#undef X

#define X(_name, ...)							\
	static struct param param_##_name = {				\
		.attr = __ATTR(_name, 0644, pfc_show, pfc_store),	\
		.which = ROAN_PFC_PARAM_##_name,			\
	};
ROAN_PFC_PARAMS(X)
#undef X

static struct attribute *attrs[] = {
#define X(_name, ...)	&ib_port_attr_##_name.attr,
	ROAN_CC_DEVICE_PARAMS(X)
#undef X
#define X(_name, ...)	&param_##_name.attr.attr,
	ROAN_PFC_PARAMS(X)
	ROAN_CC_PARAMS(X)
#undef X
	NULL
};

static const struct attribute_group group = { .name = "cc_param", .attrs = attrs };

const struct attribute_group *roan_port_groups[] = { &group, &roan_qp_cc_group, &roan_latency_group, NULL };

void roan_cc_param_init(struct roan_cc_dev *cc)
{
	enum roan_cc_algo algo;

	cc->algo = ROAN_CC_DCQCN;
	cc->program_algo = true;
	for (algo = 0; algo < ROAN_CC_NUM_ALGOS; algo++)
		roan_cc_params_default(&cc->params[algo], algo);
}
