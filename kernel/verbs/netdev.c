// SPDX-License-Identifier: GPL-2.0
/*
 * Which interfaces can have a device, and the GUIDs that a device takes from its interface. Interfaces without
 * link-layer addresses are lo, tun, WireGuard, PPP and the IP tunnels: the IP stack, which takes all packets, needs no
 * such address.
 */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/random.h>
#include <net/addrconf.h>
#include "net/net.h"
#include "verbs/verbs.h"

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
