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

/*
 * @dev: the device of the interface, or of the one that a VLAN is on: the host joins multicast groups on VLANs too.
 * @own: only if it is the interface's own.
 */
static int netdev_event(struct notifier_block *nb, unsigned long what, void *ptr)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct ib_device *ibdev = ib_device_get_by_netdev(rdma_vlan_dev_real_dev(ndev) ?: ndev, ROAN_DRIVER_ID);
	struct roan_dev *dev = ibdev ? to_roan_dev(ibdev) : NULL;
	struct roan_dev *own = dev && dev->ndev == ndev ? dev : NULL;

	switch (what) {
	case NETDEV_CHANGENAME:
		if (own)
			roan_parent_show_netdev(own);
		break;
	case NETDEV_REGISTER:
		if (dev)
			roan_mcast_netdev_event(dev, ndev, false);
		break;
	case NETDEV_UNREGISTER:
		if (own)
			roan_parent_hide_netdev(own);
		if (dev)
			roan_mcast_netdev_event(dev, ndev, true);
		roan_qp_fail_on_netdev(ndev);
		if (own)
			ib_unregister_device_queued(ibdev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
		if (dev)
			roan_mcast_netdev_event(dev, ndev, false);
		if (own)
			roan_report_port_event(ibdev, ndev, what);
		roan_port_speed_netdev_event(ndev, NULL);
		break;
	case NETDEV_CHANGEUPPER:
		roan_port_speed_netdev_event(ndev, ((struct netdev_notifier_changeupper_info *)ptr)->upper_dev);
		break;
	case NETDEV_CHANGELOWERSTATE:
		roan_port_speed_netdev_event(ndev, NULL);
		break;
	}
	if (ibdev)
		ib_device_put(ibdev);
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
