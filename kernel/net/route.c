// SPDX-License-Identifier: GPL-2.0
/* Route lookup for an address vector, and the hand-over of skbs to the IP stack. Does not queue or retry. */
#include <linux/ipv6.h>
#include <net/addrconf.h>
#include <net/inet_dscp.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/lwtunnel.h>
#include <net/route.h>
#include "base/base.h"
#include "net/net.h"
#include "net/net_priv.h"

void roan_dst_cache_reset(struct roan_dst_cache *flow)
{
	dst_release(flow->dst);
	flow->dst = NULL;
}

/*
 * Bind the lookup to the interface of the source address: two NICs in one subnet then each use their own port, and a
 * VLAN address uses its VLAN. A local destination is reached through lo or the device of the VRF, and a lookup bound to
 * the interface would not find it. Another VRF may have the same address: it does not make the destination local. If
 * any interface may be used, routes choose it, among several ones (ECMP) by the ports.
 */
static int route_oif(int ifindex, const struct net_device *own, bool unbound)
{
	return unbound && own ? l3mdev_master_ifindex_rcu(own) : ifindex;
}

static struct dst_entry *route4(struct net *net, const struct roan_av *av, u8 tclass, u16 sport, bool unbound)
{
	struct flowi4 fl = {
		.flowi4_proto = IPPROTO_UDP,
		ROAN_FLOWI4_TOS(tclass & INET_DSCP_MASK),
		.fl4_sport = htons(sport),
		.fl4_dport = htons(ROAN_UDP_PORT),
	};
	const struct net_device *own;
	struct rtable *rt;

	memcpy(&fl.saddr, av->sgid.raw + 12, 4);
	memcpy(&fl.daddr, av->dgid.raw + 12, 4);
	rcu_read_lock();
	own = dev_get_by_index_rcu(net, av->ifindex);
	fl.flowi4_oif = route_oif(av->ifindex, own,
				  unbound || inet_addr_type_dev_table(net, own, fl.daddr) == RTN_LOCAL);
	rcu_read_unlock();
	rt = ip_route_output_flow(net, &fl, NULL);
	return IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
}

static struct dst_entry *route6(struct net *net, const struct roan_av *av, u8 tclass, u16 sport, bool unbound)
{
	struct flowi6 fl = {
		.flowi6_proto = IPPROTO_UDP,
		.flowlabel = ip6_make_flowinfo(tclass & INET_DSCP_MASK, htonl(av->flow_label & IB_GRH_FLOWLABEL_MASK)),
		.fl6_sport = htons(sport),
		.fl6_dport = htons(ROAN_UDP_PORT),
	};
	const struct net_device *own;

	/* Booted with ipv6.disable=1: there is no table. The RDMA core makes a GID of the MAC address all the same. */
	if (!ipv6_mod_enabled())
		return ERR_PTR(-EAFNOSUPPORT);
	memcpy(&fl.saddr, &av->sgid, sizeof(fl.saddr));
	memcpy(&fl.daddr, &av->dgid, sizeof(fl.daddr));
	rcu_read_lock();
	own = dev_get_by_index_rcu(net, av->ifindex);
	unbound = !(ipv6_addr_type(&fl.daddr) & IPV6_ADDR_LINKLOCAL) &&
		(unbound || ipv6_chk_addr_and_flags(net, &fl.daddr, own, true, 0, IFA_F_TENTATIVE));
	fl.flowi6_oif = route_oif(av->ifindex, own, unbound);
	rcu_read_unlock();
	return ip6_dst_lookup_flow(net, NULL, &fl, NULL);
}

/* @unbound: routes choose the interface; else it is that of the source address. */
static struct dst_entry *route(const struct roan_dev *dev, const struct roan_av *av, u8 tclass, u16 sport, bool unbound)
{
	struct net *net = dev->rnet->net;

	return roan_gid_v4(&av->sgid) ? route4(net, av, tclass, sport, unbound) :
					route6(net, av, tclass, sport, unbound);
}

static bool routes_choose(const struct roan_dev *dev)
{
	return unlikely(READ_ONCE(dev->any_interface) == ROAN_SEND_BY_ANY_INTERFACE);
}

/*
 * What this host's administrator allows. dst_mtu() may be less, by an ICMP report, which any host can forge and which
 * the IP stack remembers for 10 minutes, or by a router advertisement. A QP cannot send shorter packets, and on a path
 * that is narrow they would be lost anyway: so what the network says does not count, as with adapters. One exception:
 * an advertisement lowers the MTU of routes by hand that do not lock it. IPsec leaves less than the interface has; the
 * route is then one with the transformation, and its reports count. RCU
 */
static u32 configured_mtu(const struct dst_entry *dst, bool ipv6)
{
	const struct fib6_info *from;
	u32 mtu;

	if (dst_xfrm(dst))
		return dst_mtu(dst);
	if (ipv6) {
		from = rcu_dereference(container_of(dst, struct rt6_info, dst)->from);
		mtu = from && from->fib6_protocol != RTPROT_RA ? from->fib6_pmtu : 0;
	} else {
		mtu = dst_metric_raw(dst, RTAX_MTU);
	}
	mtu = min_not_zero(mtu, READ_ONCE(dst->dev->mtu));
	return mtu - lwtunnel_headroom(dst->lwtstate, mtu);
}

u32 roan_net_route_mtu(const struct roan_dev *dev, const struct roan_av *av, u8 tclass, u32 *reported)
{
	struct dst_entry *dst = route(dev, av, tclass, av->sport, routes_choose(dev));
	u32 mtu;

	if (IS_ERR(dst))
		return *reported = 0;
	rcu_read_lock();
	mtu = configured_mtu(dst, !roan_gid_v4(&av->sgid));
	rcu_read_unlock();
	*reported = min(dst_mtu(dst), mtu);
	dst_release(dst);
	return mtu;
}

static bool is_to(const struct roan_dst_cache *flow, const struct roan_av *av)
{
	return roan_gid_equal(&flow->dgid, &av->dgid) && roan_gid_equal(&flow->sgid, &av->sgid) &&
	       flow->ifindex == av->ifindex;
}

const struct dst_entry *roan_dst_cache_peek(const struct roan_dst_cache *flow, const struct roan_av *av)
{
	return !av || is_to(flow, av) ? flow->dst : NULL;
}

bool roan_dst_cache_get(struct roan_dst_cache *flow, struct roan_dev *dev, const struct roan_av *av, u8 tclass,
			u16 sport)
{
	bool ipv6 = !roan_gid_v4(&av->sgid), unbound = routes_choose(dev);
	struct dst_entry *dst = flow->dst;

	tclass &= INET_DSCP_MASK;
	if (!unbound)
		sport = av->sport;	/* all paths of a QP use one route */
	if (dst && is_to(flow, av) && flow->flow_label == av->flow_label && flow->tclass == tclass &&
	    flow->sport == sport && flow->unbound == unbound && dst_check(dst, flow->cookie))
		return true;
	roan_dst_cache_reset(flow);
	dst = route(dev, av, tclass, sport, unbound);
	if (IS_ERR(dst)) {
		roan_count(dev, tx_no_route);
		return false;
	}
	flow->dst = dst;
	flow->cookie = ipv6 ? rt6_get_cookie((struct rt6_info *)dst) : 0;
	flow->sgid = av->sgid;
	flow->dgid = av->dgid;
	flow->ifindex = av->ifindex;
	flow->flow_label = av->flow_label;
	flow->sport = sport;
	flow->tclass = tclass;
	flow->unbound = unbound;
	flow->cpu = raw_smp_processor_id();
	return true;
}

/* From the IP header on, of the longest packet that GSO makes of @skb. */
static u32 packet_len(const struct sk_buff *skb)
{
	if (!skb_is_gso(skb))
		return skb->len;
	return skb_network_header_len(skb) + sizeof(struct udphdr) + skb_shinfo(skb)->gso_size;
}

/* IPv4 has the socket as an argument, IPv6 reads skb->sk: see open_port(). Rare, so it may cost a shared counter. */
static void set_socket6(const struct roan_dev *dev, struct sk_buff *skb)
{
	skb->sk = dev->rnet->sock6->sk;
	sock_hold(skb->sk);
	if (!skb->destructor)	/* otherwise it is that of flow/tx_inflight.c */
		skb->destructor = sock_efree;
}

/*
 * Returns false if @skb is too long. The IP stack would drop it, too, but send an ICMP report to this host itself, and
 * remember that after the MTU has grown. One that is longer than reported gets the socket that IPv6 needs to send it.
 */
static bool fits_route(const struct roan_dev *dev, struct sk_buff *skb, const struct dst_entry *dst, bool ipv6)
{
	if (likely(packet_len(skb) <= dst_mtu(dst)))
		return true;
	if (packet_len(skb) > configured_mtu(dst, ipv6))
		return false;
	if (ipv6)
		set_socket6(dev, skb);
	return true;
}

int roan_net_xmit(struct roan_dev *dev, struct sk_buff *skb, struct roan_dst_cache *flow, bool ipv6)
{
	struct net *net = dev->rnet->net;
	int err;

	rcu_read_lock();
	if (!fits_route(dev, skb, flow->dst, ipv6)) {
		kfree_skb_reason(skb, SKB_DROP_REASON_PKT_TOO_BIG);
		err = -EMSGSIZE;
		goto out;
	}
	skb_dst_set_noref(skb, flow->dst);
	skb->dev = flow->dst->dev;
#ifdef CONFIG_XPS
	/* fixed, whichever CPU sends: packets in different transmit queues would be reordered */
	skb->sender_cpu = flow->cpu + 1;
#endif
	if (ipv6) {
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
		skb->protocol = htons(ETH_P_IPV6);
		err = ip6_local_out(net, NULL, skb);
	} else {
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		skb->protocol = htons(ETH_P_IP);
		err = ip_local_out(net, dev->rnet->sock4->sk, skb);
	}
out:
	rcu_read_unlock();
	if (net_xmit_eval(err))
		roan_count(dev, tx_dropped);
	return err;
}
