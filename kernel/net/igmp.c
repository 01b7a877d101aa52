// SPDX-License-Identifier: GPL-2.0
/* IP multicast membership: by interface, not by socket, which may join no more than igmp_max_memberships groups. */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include "base/base.h"
#include "net/net.h"
#include "net/net_priv.h"

static bool group_v4(const union ib_gid *mgid, __be32 *addr)
{
	memcpy(addr, mgid->raw + 12, sizeof(*addr));
	return roan_gid_v4(mgid);
}

/* The interface is in another namespace, and our device about to go. RTNL held */
static bool moved_away(const struct roan_dev *dev)
{
	return !net_eq(dev_net(dev->ndev), dev->rnet->net);
}

int roan_net_join(struct roan_dev *dev, const union ib_gid *mgid)
{
	struct in_device *in_dev;
	int err = 0;
	__be32 addr;

	rtnl_lock();
	if (moved_away(dev)) {
		err = -ENODEV;
	} else if (group_v4(mgid, &addr)) {
		in_dev = __in_dev_get_rtnl(dev->ndev);
		if (!ipv4_is_multicast(addr))
			err = -EINVAL;
		else if (!in_dev)
			err = -ENODEV;
		else
			ip_mc_inc_group(in_dev, addr);
	} else {
		err = IS_ENABLED(CONFIG_IPV6) ? ipv6_dev_mc_inc(dev->ndev, (const struct in6_addr *)mgid) :
						-EAFNOSUPPORT;
	}
	rtnl_unlock();
	return err;
}

static void leave(struct net_device *ndev, const union ib_gid *mgid)
{
	struct in_device *in_dev;
	__be32 addr;

	if (group_v4(mgid, &addr)) {
		in_dev = __in_dev_get_rtnl(ndev);
		if (in_dev)	/* gone with its groups, if the interface went first */
			ip_mc_dec_group(in_dev, addr);
	} else if (IS_ENABLED(CONFIG_IPV6)) {
		ipv6_dev_mc_dec(ndev, (const struct in6_addr *)mgid);
	}
}

void roan_net_leave(struct roan_dev *dev, const union ib_gid *mgid)
{
	rtnl_lock();
	if (!moved_away(dev))	/* its groups went then, and those it has now are others' */
		leave(dev->ndev, mgid);
	rtnl_unlock();
}
