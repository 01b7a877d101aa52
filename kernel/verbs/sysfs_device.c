// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/class/infiniband/roanN/: what adapters and rdma_rxe show there of themselves, for the programs that read it, and
 * settings of the device, which are described where they are used.
 */
#include "mem/mem.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

/* Of the ib_device, as rdma_rxe has it: the netdev's name. */
static ssize_t parent_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct roan_dev *dev = rdma_device_to_drv_device(device, struct roan_dev, ib);

	return sysfs_emit(buf, "%s\n", dev->ndev->name);
}
static DEVICE_ATTR_RO(parent);

/* Adapters have it. Prometheus' node exporter 1.5 skips all devices if one lacks it. */
static ssize_t board_id_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "roan\n");
}
static DEVICE_ATTR_RO(board_id);

/* ibstat prints both. libibumad reads the files; without them the lines of ibstat are empty. */
static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "roan\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", rdma_device_to_drv_device(device, struct roan_dev, ib)->ib.attrs.hw_ver);
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *device_attrs[] = {
	&dev_attr_parent.attr,
	&dev_attr_board_id.attr,
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	&dev_attr_dm_bar.attr,
	&dev_attr_dm_limit.attr,
	&dev_attr_poll_idle_us.attr,
	NULL
};

const struct attribute_group roan_device_group = { .attrs = device_attrs };
