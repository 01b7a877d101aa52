// SPDX-License-Identifier: GPL-2.0
/*
 * IP multicast membership of multicast GIDs. Joins by interface, as a socket may join no more than
 * igmp_max_memberships groups. Any group may be joined, as with a socket: an interface counts the joins of a group, so
 * the host's own membership (224.0.0.1, ff02::1) stays, and a QP receives only RoCE packets. Does not know which QPs
 * are attached, nor how many groups a user may join (verbs/mcast.c).
 */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>
#include "base/base.h"
#include "net/net.h"
#include "net/net_priv.h"

static bool igmp_ipv4_group(const union ib_gid *mgid, __be32 *addr)
{
	memcpy(addr, mgid->raw + 12, sizeof(*addr));
	return roan_gid_v4(mgid);
}

/*
 * True for the device's interface and the VLANs on it (also a VLAN in a VLAN), if they are in the device's namespace:
 * the interfaces from whose addresses the RDMA core makes GIDs of the device.
 */
bool roan_net_is_iface(const struct roan_dev *dev, const struct net_device *ndev)
{
	const struct net_device *real = rdma_vlan_dev_real_dev(ndev) ?: ndev;

	return real == dev->ndev && net_eq(dev_net(ndev), dev->rnet->net);
}

/*
 * False while IPv4 or IPv6 is not enabled on the interface: its MTU is below 68 or 1280, or it is being unregistered.
 */
bool roan_net_can_join(const struct net_device *ndev, const union ib_gid *mgid)
{
	return roan_gid_v4(mgid) ? !!__in_dev_get_rtnl(ndev) : !!__in6_dev_get(ndev);
}

static bool igmp_is_member(const struct in_device *in_dev, __be32 addr)
{
	const struct ip_mc_list *im = rtnl_dereference(in_dev->mc_list);

	while (im && im->multiaddr != addr)
		im = rtnl_dereference(im->next_rcu);
	return im;
}

int roan_net_join(struct net_device *ndev, const union ib_gid *mgid)
{
	struct in_device *in_dev;
	__be32 addr;

	if (!igmp_ipv4_group(mgid, &addr))
		return ipv6_dev_mc_inc(ndev, (const struct in6_addr *)mgid);
	if (!ipv4_is_multicast(addr))
		return -EINVAL;
	in_dev = __in_dev_get_rtnl(ndev);
	if (!in_dev)
		return -ENODEV;
	ip_mc_inc_group(in_dev, addr);	/* returns void; without memory it adds no member */
	return igmp_is_member(in_dev, addr) ? 0 : -ENOMEM;
}

void roan_net_leave(struct net_device *ndev, const union ib_gid *mgid)
{
	struct in_device *in_dev;
	__be32 addr;

	if (igmp_ipv4_group(mgid, &addr)) {
		in_dev = __in_dev_get_rtnl(ndev);
		if (in_dev)	/* NULL: IPv4 is disabled on the interface, which dropped its groups */
			ip_mc_dec_group(in_dev, addr);
	} else {
		ipv6_dev_mc_dec(ndev, (const struct in6_addr *)mgid);
	}
}
