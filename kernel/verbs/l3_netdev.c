// SPDX-License-Identifier: GPL-2.0
/*
 * Interfaces without link-layer addresses: lo, tun, WireGuard, PPP and the IP tunnels. Decides which interfaces can
 * have a device and which addresses become GIDs, and keeps the GID table of a device on such an interface equal to the
 * interface's IP addresses. Moves no packet: packets are handed to the IP stack, which needs no link-layer address.
 *
 * The RDMA core scans the addresses of an interface of any type when a device is registered, but its address notifiers
 * ignore all types but Ethernet. The notifiers here request another scan. A scan only adds; the GID of an address that
 * was removed goes if the core exports roce_del_all_netdev_gids(), which deletes all of them, so a scan follows.
 *
 * rdma_cm looks up the GID of such an interface by the type IB_GID_TYPE_IB, which tables of RoCE ports lack. So the
 * port announces RoCE v1 beside v2, and gid_add() turns an address's v1 entry into one of that type. Packets are
 * RoCE v2 whatever the type of their source GID: there is no Ethernet for v1.
 *
 * The GIDs of Ethernet interfaces are the core's work. A scan mends what its events leave: gid_remains().
 */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>
#include "net/net.h"
#include "verbs/verbs.h"

/* The RDMA core reserves the first entries of the table, one for each GID type of the port, for the default GID. */
#define DEFAULT_GIDS	2

static atomic_t missed_scans = ATOMIC_INIT(0);	/* requests that found no device */

/* ---- which interfaces ---- */

static bool l3_type_allowed(unsigned short type)
{
	switch (type) {
	case ARPHRD_LOOPBACK:
	case ARPHRD_NONE:	/* tun, WireGuard */
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
	case ARPHRD_PPP:
	case ARPHRD_RAWIP:
		return true;
	}
	return false;
}

int roan_netdev_check(const char *name, struct net_device *ndev)
{
	/* The core adds a VLAN's GIDs to the device of the lower interface; a device on the VLAN would have none. */
	if (is_vlan_dev(ndev)) {
		pr_err("roan: %s: %s is a VLAN: add the device to %s, it has the addresses of its VLANs too\n", name,
		       netdev_name(ndev), netdev_name(vlan_dev_real_dev(ndev)));
		return -EOPNOTSUPP;
	}
	if (ndev->type != ARPHRD_ETHER && !l3_type_allowed(ndev->type)) {
		pr_err("roan: %s: %s has link type %u: use an Ethernet interface, lo, tun, WireGuard, PPP, or an IP tunnel\n",
		       name, netdev_name(ndev), ndev->type);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* ---- attributes ---- */

/*
 * By the MAC address: the same after a reboot. Without one: random, with the bits of a local individual EUI-64. rdma_cm
 * distinguishes peers by their node GUID, so two hosts must not have the same.
 */
static __be64 netdev_guid(const struct net_device *ndev)
{
	u8 guid[8];

	if (ndev->type == ARPHRD_ETHER) {
		addrconf_addr_eui48(guid, ndev->dev_addr);
	} else {
		get_random_bytes(guid, sizeof(guid));
		guid[0] &= ~3;
	}
	return get_unaligned((__be64 *)guid);
}

/*
 * Interfaces may share a MAC address, but kernel consumers (NVMe, iSER, rtrs) take devices with one node GUID for one
 * device. ipvlans and OSA adapters have a dev_id. It replaces ff:fe in the node GUID, as in their IPv6 addresses
 * (addrconf_ifid_eui48()). Others (MACsec, ports of a bond or DSA switch) get the next number that is free. The system
 * image GUID is that of all of them.
 */
void roan_set_guids(struct roan_dev *dev)
{
	u8 *id = (u8 *)&dev->ib.node_guid + 3;

	dev->sys_image_guid = netdev_guid(dev->ndev);
	dev->ib.node_guid = dev->sys_image_guid;
	if (dev->ndev->dev_id)
		put_unaligned_be16(dev->ndev->dev_id, id);
	while (roan_net_has_guid(dev->rnet, dev->ib.node_guid))
		put_unaligned_be16(get_unaligned_be16(id) + 1, id);
}

/* ---- GIDs ---- */

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

	if (xchg(&dev->l3_addr_removed, false))
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
		/* Counted after roan_l3_disable(), if that is why the device is not found. */
		atomic_inc(&missed_scans);
		smp_mb__after_atomic();	/* pairs with roan_l3_enabled(): it sees the count or this sees the device */
		ibdev = ib_device_get_by_netdev(ndev, ROAN_DRIVER_ID);
	}
	if (!ibdev)
		return;
	dev = to_roan_dev(ibdev);
	if (removed)
		WRITE_ONCE(dev->l3_addr_removed, true);
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

static void l3_addr_event(struct net_device *ndev, bool removed)
{
	if (ndev->type != ARPHRD_ETHER)
		gid_request_scan(ndev, removed);
}

/* RTNL held */
static int l3_inetaddr_event(struct notifier_block *nb, unsigned long what, void *ptr)
{
	const struct in_ifaddr *ifa = ptr;

	l3_addr_event(ifa->ifa_dev->dev, what == NETDEV_DOWN);
	return NOTIFY_DONE;
}

/* Atomic context */
static int l3_inet6addr_event(struct notifier_block *nb, unsigned long what, void *ptr)
{
	const struct inet6_ifaddr *ifa = ptr;

	l3_addr_event(ifa->idev->dev, what == NETDEV_DOWN);
	return NOTIFY_DONE;
}

static struct notifier_block inetaddr_notifier = { .notifier_call = l3_inetaddr_event };
static struct notifier_block inet6addr_notifier = { .notifier_call = l3_inet6addr_event };

/* ---- the device's part ---- */

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

void roan_l3_disable(struct roan_dev *dev)
{
	dev->missed_scans = atomic_read(&missed_scans);
}

void roan_l3_init(struct roan_dev *dev)
{
	dev->l3 = dev->ndev->type != ARPHRD_ETHER;
	INIT_WORK(&dev->gid_scan, gid_scan);
	roan_l3_disable(dev);	/* before the core's first scan */
	ib_set_device_ops(&dev->ib, &gid_ops);
}

void roan_l3_enabled(struct roan_dev *dev)
{
	smp_mb();	/* pairs with gid_request_scan() */
	if (dev->missed_scans != atomic_read(&missed_scans))
		gid_request_scan(dev->ndev, dev->l3);
	gid_scan_all_lower(dev);
}

void roan_l3_exit(struct roan_dev *dev)
{
	cancel_work_sync(&dev->gid_scan);	/* holds no reference any more, but may still return */
	gid_scan_all_lower(dev);
}

int roan_l3_notifiers_init(void)
{
	int err = register_inetaddr_notifier(&inetaddr_notifier);

	if (err)
		return err;
	err = register_inet6addr_notifier(&inet6addr_notifier);
	if (err)
		unregister_inetaddr_notifier(&inetaddr_notifier);
	return err;
}

void roan_l3_notifiers_exit(void)
{
	unregister_inet6addr_notifier(&inet6addr_notifier);
	unregister_inetaddr_notifier(&inetaddr_notifier);
}
