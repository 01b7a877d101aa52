// SPDX-License-Identifier: GPL-2.0
/*
 * Events of network interfaces: which of them a device follows, and the port events that its users get from them.
 */
#include <linux/netdevice.h>
#include "base/base.h"
#include "net/net.h"
#include "verbs/verbs.h"

bool roan_port_up(const struct net_device *ndev)
{
	return netif_running(ndev) && netif_carrier_ok(ndev) && READ_ONCE(ndev->mtu) >= 256 + ROAN_NET_HEADERS;
}

static void queue_unregister(struct net_device *ndev)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, ROAN_DRIVER_ID);

	if (!ibdev)
		return;
	ib_unregister_device_queued(ibdev);
	ib_device_put(ibdev);
}

/*
 * RTNL held; it orders the events. From Linux 6.14 on the core calls this for NETDEV_UP, CHANGE and DOWN, which
 * netdev_event() gets too. Of a driver without report_port_event() the core dispatches them itself, by another rule
 * than roan_port_up().
 */
void roan_report_port_event(struct ib_device *ibdev, struct net_device *ndev, unsigned long what)
{
	struct ib_event event = { .device = ibdev, .element.port_num = 1 };
	struct roan_dev *dev = to_roan_dev(ibdev);
	bool up = roan_port_up(ndev);

	if (dev->port_active_sent == up)
		return;
	dev->port_active_sent = up;
	if (!up)
		roan_count(dev, link_downed);
	event.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
}

static void port_changed(struct net_device *ndev, unsigned long what)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, ROAN_DRIVER_ID);

	if (!ibdev)
		return;
	roan_report_port_event(ibdev, ndev, what);
	ib_device_put(ibdev);
}

/* The host joins multicast groups on the VLANs of a device's interface too. */
static void groups_changed(struct net_device *ndev, bool gone)
{
	struct net_device *real = rdma_vlan_dev_real_dev(ndev) ?: ndev;
	struct ib_device *ibdev = ib_device_get_by_netdev(real, ROAN_DRIVER_ID);

	if (!ibdev)
		return;
	roan_mcast_netdev_event(to_roan_dev(ibdev), ndev, gone);
	ib_device_put(ibdev);
}

static int netdev_event(struct notifier_block *nb, unsigned long what, void *ptr)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);

	roan_parent_netdev_event(ndev, what);
	switch (what) {
	case NETDEV_REGISTER:
		groups_changed(ndev, false);
		break;
	case NETDEV_UNREGISTER:
		groups_changed(ndev, true);
		roan_qp_fail_on_netdev(ndev);
		queue_unregister(ndev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
		groups_changed(ndev, false);
		port_changed(ndev, what);
		roan_port_speed_netdev_event(ndev, NULL);
		break;
	case NETDEV_CHANGEUPPER:
		roan_port_speed_netdev_event(ndev, ((struct netdev_notifier_changeupper_info *)ptr)->upper_dev);
		break;
	case NETDEV_CHANGELOWERSTATE:
		roan_port_speed_netdev_event(ndev, NULL);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block netdev_notifier = { .notifier_call = netdev_event };

int roan_netdev_notifier_init(void)
{
	return register_netdevice_notifier(&netdev_notifier);
}

void roan_netdev_notifier_exit(void)
{
	unregister_netdevice_notifier(&netdev_notifier);
}
