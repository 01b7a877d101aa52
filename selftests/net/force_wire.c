// SPDX-License-Identifier: GPL-2.0
/*
 * Sends RoCE packets to a local address, which Linux delivers by lo, over the interface and back. So a program over one
 * device gets the effects of a link between two hosts: segmentation, GRO, MTU, loss.
 *
 *	namespace that has the address:  LOCAL_OUT, to lo ->  sent by the interface with the address, as broadcast
 *	the other end of the veth:       PRE_ROUTING      ->  sent back unchanged
 *
 * The IP packet is not changed. The first namespace must accept packets with a local source (sysctl accept_local).
 */
#include <linux/etherdevice.h>
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>

MODULE_DESCRIPTION("Sends packets to local addresses over the wire, for tests");
MODULE_LICENSE("GPL");

#define ROCE_PORT	4791

static bool is_roce(const struct sk_buff *skb, u32 off)
{
	const struct udphdr *udp;
	struct udphdr buf;

	udp = skb_header_pointer(skb, off, sizeof(buf), &buf);
	return udp && udp->dest == htons(ROCE_PORT);
}

static bool is_to_oneself(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IPV6))
		return ipv6_hdr(skb)->nexthdr == IPPROTO_UDP && is_roce(skb, sizeof(struct ipv6hdr)) &&
		       ipv6_addr_equal(&ipv6_hdr(skb)->saddr, &ipv6_hdr(skb)->daddr);
	return ip_hdr(skb)->protocol == IPPROTO_UDP && is_roce(skb, ip_hdrlen(skb)) && ip_hdr(skb)->saddr == ip_hdr(skb)->daddr;
}

/* Returns the interface of this namespace that has the packet's address. RCU. */
static struct net_device *owner_of(struct net *net, const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IPV6))
		return ipv6_dev_find(net, &ipv6_hdr(skb)->daddr, NULL);
	return __ip_dev_find(net, ip_hdr(skb)->daddr, false);
}

static unsigned int send_by(struct net_device *dev, struct sk_buff *skb, const u8 *to)
{
	if (skb_cow_head(skb, LL_RESERVED_SPACE(dev)) ||
	    dev_hard_header(skb, dev, ntohs(skb->protocol), to, NULL, skb->len) < 0)
		return NF_DROP;
	skb->dev = dev;
	dev_queue_xmit(skb);
	return NF_STOLEN;
}

static unsigned int out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct net_device *dev;

	if (!(state->out->flags & IFF_LOOPBACK) || !is_to_oneself(skb))
		return NF_ACCEPT;
	dev = owner_of(state->net, skb);
	if (!dev || dev->flags & IFF_LOOPBACK)
		return NF_ACCEPT;
	return send_by(dev, skb, dev->broadcast);
}

static unsigned int back(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	u8 sender[ETH_ALEN];

	if (state->in->flags & IFF_LOOPBACK || !is_to_oneself(skb) || owner_of(state->net, skb))
		return NF_ACCEPT;
	ether_addr_copy(sender, eth_hdr(skb)->h_source);
	skb_forward_csum(skb);
	skb_clear_tstamp(skb);
	return send_by(state->in, skb, sender);
}

static const struct nf_hook_ops hooks[] = {
	{ .hook = out, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP_PRI_LAST },
	{ .hook = out, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP6_PRI_LAST },
	{ .hook = back, .pf = NFPROTO_IPV4, .hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP_PRI_FIRST },
	{ .hook = back, .pf = NFPROTO_IPV6, .hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP6_PRI_FIRST },
};

static int __net_init detour_net_init(struct net *net)
{
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit detour_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static struct pernet_operations detour_net_ops = {
	.init = detour_net_init,
	.exit = detour_net_exit,
};

static int __init detour_init(void)
{
	return register_pernet_subsys(&detour_net_ops);
}

static void __exit detour_exit(void)
{
	unregister_pernet_subsys(&detour_net_ops);
}

module_init(detour_init);
module_exit(detour_exit);
