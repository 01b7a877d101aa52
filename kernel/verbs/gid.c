// SPDX-License-Identifier: GPL-2.0
/*
 * The GIDs of a device: which IP addresses become GIDs, and scans of the addresses where the RDMA core's events do not
 * keep its table right.
 *
 * Ethernet interfaces: the core follows the addresses, but deletes more than has gone: gid_remains().
 *
 * Interfaces without link-layer addresses (netdev.c): the core scans the addresses of an interface of any type when a
 * device is registered, but its address notifiers ignore all types but Ethernet. The notifiers here request another
 * scan. A scan only adds; the GID of an address that was removed goes if the core exports roce_del_all_netdev_gids(),
 * which deletes all of them, so a scan follows.
 *
 * rdma_cm looks up the GID of such an interface by the type IB_GID_TYPE_IB, which tables of RoCE ports lack. So the
 * port announces RoCE v1 beside v2, and gid_add() turns an address's v1 entry into one of that type. Packets are
 * RoCE v2 whatever the type of their source GID: there is no Ethernet for v1.
 */
#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>
#include "net/net.h"
#include "verbs/verbs.h"

/* The RDMA core reserves the first entries of the table, one for each GID type of the port, for the default GID. */
#define DEFAULT_GIDS	2

static atomic_t missed_scans = ATOMIC_INIT(0);	/* requests that found no device */

/* The core takes the peer's address for the interface's own where an IPv4 address has a peer (PPP, most tunnels). */
static void l3_local_gid(const struct net_device *ndev, union ib_gid *gid)
{
	struct in6_addr *addr = (struct in6_addr *)gid;
	const struct in_device *in_dev;
	const struct in_ifaddr *ifa;

	if (!ipv6_addr_v4mapped(addr))
		return;
	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			if (ifa->ifa_address == addr->s6_addr32[3]) {
				ipv6_addr_set_v4mapped(ifa->ifa_local, addr);
				break;
			}
		}
	}
	rcu_read_unlock();
}

/*
 * True if the addresses of @ndev belong to another device: that of @ndev or, as a VLAN has none, of the interface that
 * the VLAN is on.
 */
static bool gid_is_of_other(const struct roan_dev *dev, struct net_device *ndev)
{
	struct net_device *owner = rdma_vlan_dev_real_dev(ndev) ?: ndev;
	struct ib_device *ibdev;

	if (owner == dev->ndev || !net_eq(dev_net(owner), dev_net(ndev)))
		return false;
	ibdev = ib_device_get_by_netdev(owner, ROAN_DRIVER_ID);
	if (!ibdev)
		return false;
	ib_device_put(ibdev);
	return true;
}

/*
 * The core offers the addresses of interfaces above the device's too: its VLANs, but also a container's macvlan or
 * ipvlan. Their packets pass the hooks of another namespace, and rdma_cm has to find the container's own device there.
 * An interface above may have a device in this namespace. Its addresses belong to that device: roan_net_dev_for() gives
 * it the requests, but rdma_cm would listen on the device that was made first.
 *
 * The core has not published the entry yet, so its type and address may change. The next scan does not find the entry
 * that it added, so it adds it again: that one stays as it is, so that further scans add nothing. A default GID stays,
 * because the core would have no room for another one.
 */
static int gid_add(const struct ib_gid_attr *attr, void **context)
{
	const struct roan_dev *dev = to_roan_dev(attr->device);
	struct net_device *ndev = rcu_dereference_protected(attr->ndev, 1);
	const struct ib_gid_attr *old;
	enum ib_gid_type type;
	union ib_gid gid;

	if (!net_eq(dev_net(ndev), dev_net(dev->ndev)))
		return -EOPNOTSUPP;
	/* Not Ethernet: the core would never delete the GID, which keeps the interface from being unregistered. */
	if (ndev != dev->ndev && (ndev->type != ARPHRD_ETHER || gid_is_of_other(dev, ndev)))
		return -EOPNOTSUPP;
	if (!dev->l3 || ndev != dev->ndev)
		return 0;
	if (attr->index < DEFAULT_GIDS)
		return 0;
	type = attr->gid_type == IB_GID_TYPE_ROCE ? IB_GID_TYPE_IB : attr->gid_type;
	gid = attr->gid;
	l3_local_gid(ndev, &gid);
	old = rdma_find_gid_by_port(attr->device, &gid, type, attr->port_num, NULL);
	if (!IS_ERR(old)) {
		rdma_put_gid_attr(old);
		return 0;
	}
	((struct ib_gid_attr *)attr)->gid = gid;
	((struct ib_gid_attr *)attr)->gid_type = type;
	return 0;
}

#ifdef HAVE_ROCE_DEL_NETDEV_GIDS
static int gid_del_of_other(struct net_device *upper, struct netdev_nested_priv *priv)
{
	struct roan_dev *dev = priv->data;

	if (gid_is_of_other(dev, upper))
		roce_del_all_netdev_gids(&dev->ib, 1, upper);
	return 0;
}

static void gid_del_stale(struct roan_dev *dev)
{
	struct netdev_nested_priv priv = { .data = dev };

	if (xchg(&dev->addr_removed, false))
		roce_del_all_netdev_gids(&dev->ib, 1, dev->ndev);
	rtnl_lock();
	netdev_walk_all_upper_dev_rcu(dev->ndev, gid_del_of_other, &priv);
	rtnl_unlock();
}
#else
static void gid_del_stale(struct roan_dev *dev)
{
}
#endif

/* Holds a reference that gid_request_scan() got: the device stays registered. */
static void gid_scan(struct work_struct *work)
{
	struct roan_dev *dev = container_of(work, struct roan_dev, gid_scan);

	gid_del_stale(dev);
	rdma_roce_rescan_device(&dev->ib);
	ib_device_put(&dev->ib);
}

/* Scans the addresses of the device on @ndev, if there is one. @removed: one has gone. Any context */
static void gid_request_scan(struct net_device *ndev, bool removed)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, ROAN_DRIVER_ID);
	struct roan_dev *dev;

	if (!ibdev) {
		/* Counted after roan_gid_disable(), if that is why the device is not found. */
		atomic_inc(&missed_scans);
		smp_mb__after_atomic();	/* pairs with roan_gid_enable(): it sees the count or this sees the device */
		ibdev = ib_device_get_by_netdev(ndev, ROAN_DRIVER_ID);
	}
	if (!ibdev)
		return;
	dev = to_roan_dev(ibdev);
	if (removed)
		WRITE_ONCE(dev->addr_removed, true);
	if (!schedule_work(&dev->gid_scan))
		ib_device_put(ibdev);
}

/*
 * The core deletes more than has gone: with one of two prefixes of an IPv4 address the address's GID, and at a failover
 * the default GID of a bond. True of a GID that has to be added again. Before Linux 6.6 @attr has no netdev any more.
 */
static bool gid_remains(const struct roan_dev *dev, const struct ib_gid_attr *attr)
{
	const struct in6_addr *addr = (const struct in6_addr *)&attr->gid;
	bool remains;

	if (!attr->index)
		return true;
	if (!ipv6_addr_v4mapped(addr))
		return false;
	rcu_read_lock();
	remains = __ip_dev_find(dev_net(dev->ndev), addr->s6_addr32[3], false);
	rcu_read_unlock();
	return remains;
}

static int gid_del(const struct ib_gid_attr *attr, void **context)
{
	struct roan_dev *dev = to_roan_dev(attr->device);

	if (!dev->l3 && gid_remains(dev, attr))
		gid_request_scan(dev->ndev, false);
	return 0;
}

static const struct ib_device_ops gid_ops = {
	.add_gid = gid_add,
	.del_gid = gid_del,
};

static void addr_event(struct net_device *ndev, bool removed)
{
	if (ndev->type != ARPHRD_ETHER)
		gid_request_scan(ndev, removed);
}

/* RTNL held */
static int inetaddr_event(struct notifier_block *nb, unsigned long what, void *ptr)
{
	const struct in_ifaddr *ifa = ptr;

	addr_event(ifa->ifa_dev->dev, what == NETDEV_DOWN);
	return NOTIFY_DONE;
}

/* Atomic context */
static int inet6addr_event(struct notifier_block *nb, unsigned long what, void *ptr)
{
	const struct inet6_ifaddr *ifa = ptr;

	addr_event(ifa->idev->dev, what == NETDEV_DOWN);
	return NOTIFY_DONE;
}

static struct notifier_block inetaddr_notifier = { .notifier_call = inetaddr_event };
static struct notifier_block inet6addr_notifier = { .notifier_call = inet6addr_event };

static int gid_scan_lower(struct net_device *lower, struct netdev_nested_priv *priv)
{
	const struct net_device *upper = priv->data;

	if (net_eq(dev_net(lower), dev_net(upper)))
		gid_request_scan(lower, false);
	return 0;
}

/* The devices on the interfaces below lose the GIDs of @dev's interface, or get them back. */
static void gid_scan_all_lower(const struct roan_dev *dev)
{
	struct netdev_nested_priv priv = { .data = dev->ndev };

	rcu_read_lock();
	netdev_walk_all_lower_dev_rcu(dev->ndev, gid_scan_lower, &priv);
	rcu_read_unlock();
}

void roan_gid_disable(struct roan_dev *dev)
{
	dev->missed_scans = atomic_read(&missed_scans);
}

void roan_gid_init(struct roan_dev *dev)
{
	dev->l3 = dev->ndev->type != ARPHRD_ETHER;
	INIT_WORK(&dev->gid_scan, gid_scan);
	roan_gid_disable(dev);	/* before the core's first scan */
	ib_set_device_ops(&dev->ib, &gid_ops);
}

void roan_gid_enable(struct roan_dev *dev)
{
	smp_mb();	/* pairs with gid_request_scan() */
	/* On Ethernet, too: kernels without ib_device_enable_gid_updates() lose events of a device being registered. */
	if (!dev->l3 || dev->missed_scans != atomic_read(&missed_scans))
		gid_request_scan(dev->ndev, dev->l3);
	gid_scan_all_lower(dev);
}

void roan_gid_exit(struct roan_dev *dev)
{
	cancel_work_sync(&dev->gid_scan);	/* holds no reference any more, but may still return */
	gid_scan_all_lower(dev);
}

int roan_gid_notifiers_init(void)
{
	int err = register_inetaddr_notifier(&inetaddr_notifier);

	if (err)
		return err;
	err = register_inet6addr_notifier(&inet6addr_notifier);
	if (err)
		unregister_inetaddr_notifier(&inetaddr_notifier);
	return err;
}

void roan_gid_notifiers_exit(void)
{
	unregister_inet6addr_notifier(&inet6addr_notifier);
	unregister_inetaddr_notifier(&inetaddr_notifier);
}
