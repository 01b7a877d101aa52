// SPDX-License-Identifier: GPL-2.0
/*
 * The speed of the port: what query_port_speed() returns, what congestion control takes as the link's rate, and the
 * event when it changes. Does not report the port's state: device.c does.
 *
 * Netdev notifiers only queue a work item, because they may run with the netdev's own lock held, which reading the
 * speed takes. The speed of a bond or team is that of its ports, so their events count too.
 */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include "flow/flow.h"
#include "verbs/verbs.h"

/* Mbit/s; 0: unknown. RTNL held, the netdev's own lock not */
static u32 port_mbps(const struct roan_dev *dev)
{
	struct ethtool_link_ksettings link;

	ASSERT_RTNL();
	if (dev->ndev->reg_state != NETREG_REGISTERED || __ethtool_get_link_ksettings(dev->ndev, &link) ||
	    link.base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return link.base.speed;
}

bool roan_port_speed_update(struct roan_dev *dev)
{
	u32 mbps = port_mbps(dev);
	bool changed = mbps != dev->cc.port_mbps;

	WRITE_ONCE(dev->cc.port_mbps, mbps);
	return changed;
}

static u32 port_mbps_now(const struct roan_dev *dev)
{
	u32 mbps;

	rtnl_lock();
	mbps = port_mbps(dev);
	rtnl_unlock();
	return mbps;
}

/* The speed of a port that does not know its own: without the query that of a veth, else that which the core takes. */
static u32 unknown_mbps(const struct roan_dev *dev)
{
	return dev->ndev->ethtool_ops->get_link_ksettings ? SPEED_1000 : SPEED_10000;
}

/* In units of 100 Mbit/s; a slower speed is not 0. */
int roan_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct roan_dev *dev = to_roan_dev(ibdev);

	*speed = DIV_ROUND_UP(port_mbps_now(dev) ?: unknown_mbps(dev), SPEED_100);
	return 0;
}

/* The core's function logs a warning each time if the speed is unknown, and fails while the netdev is removed. */
void roan_query_port_rate(struct roan_dev *dev, struct ib_port_attr *attr)
{
	if (port_mbps_now(dev) && !ib_get_eth_speed(&dev->ib, 1, &attr->active_speed, &attr->active_width))
		return;
	attr->active_speed = unknown_mbps(dev) == SPEED_10000 ? IB_SPEED_QDR : IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_1X;
}

static void port_speed_event(struct ib_device *ibdev)
{
#ifdef HAVE_SPEED_CHANGE_EVENT
	/* of no port, as mlx5's */
	struct ib_event event = { .device = ibdev, .event = IB_EVENT_DEVICE_SPEED_CHANGE };

	ib_dispatch_event(&event);
#endif
}

static void port_speed_work(struct work_struct *work)
{
	struct roan_dev *dev = container_of(work, struct roan_dev, speed_work);
	bool changed;

	rtnl_lock();
	changed = roan_port_speed_update(dev);
	rtnl_unlock();
	if (changed && ib_device_try_get(&dev->ib)) {	/* no events while it is unregistered */
		port_speed_event(&dev->ib);
		ib_device_put(&dev->ib);
	}
}

void roan_port_speed_init(struct roan_dev *dev)
{
	INIT_WORK(&dev->speed_work, port_speed_work);
}

void roan_port_speed_exit(struct roan_dev *dev)
{
	cancel_work_sync(&dev->speed_work);
}

static int port_speed_recheck(struct net_device *ndev, struct netdev_nested_priv *unused)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, ROAN_DRIVER_ID);

	if (!ibdev)
		return 0;
	schedule_work(&to_roan_dev(ibdev)->speed_work);
	ib_device_put(ibdev);
	return 0;
}

void roan_port_speed_netdev_event(struct net_device *ndev, struct net_device *upper)
{
	struct netdev_nested_priv unused = {};

	port_speed_recheck(ndev, &unused);
	if (upper)	/* it, and what is above it, may not be above @ndev any more */
		roan_port_speed_netdev_event(upper, NULL);
	rcu_read_lock();
	netdev_walk_all_upper_dev_rcu(ndev, port_speed_recheck, &unused);
	rcu_read_unlock();
}
