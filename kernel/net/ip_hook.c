// SPDX-License-Identifier: GPL-2.0
/*
 * The module's place in the IP stack: the sockets that hold UDP port 4791 in a namespace, the receive hook that calls
 * the receive path, and the choice of the device that a packet is for. Does not look into packets beyond UDP.
 *
 * Packets are received by a LOCAL_IN hook: a UDP socket's encap_rcv would get GSO packets already segmented. The
 * sockets reserve the port and make GRO merge the packets of a NIC. They receive only for an ipvlan in mode l3s, whose
 * packets pass the hooks of the lower interface's namespace and not those of its own.
 */
#include <linux/hashtable.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <linux/wait.h>
#include <net/addrconf.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/net_namespace.h>
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
#include <net/netfilter/nf_conntrack.h>		/* does not compile without it */
#endif
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>
#include <net/xfrm.h>

#include "base/stats.h"
#include "base/trace.h"
#include "net/net.h"
#include "net/net_priv.h"

static unsigned int net_id;
static roan_deliver_fn *deliver __ro_after_init;	/* receive path, set once by roan_net_init() */
static DEFINE_MUTEX(net_mutex);
static DEFINE_HASHTABLE(ndev_devs, 10);	/* all devices by their netdev; written under net_mutex, RCU readers */
static DECLARE_WAIT_QUEUE_HEAD(net_unused);

struct roan_net *roan_net_of(const struct net *net)
{
	return net_generic(net, net_id);
}

/* ---- receive ---- */

void roan_net_count_drop(struct roan_net *rnet, enum roan_counter which)
{
	struct roan_dev *dev = list_first_or_null_rcu(&rnet->devs, struct roan_dev, net_link);

	if (dev)
		this_cpu_inc(dev->stats->count[which]);
}

/* True if @in is the device's interface or on top of it (VLAN). */
static bool net_dev_is_on(const struct roan_dev *dev, struct net_device *in)
{
	return dev->ndev == in || netdev_has_upper_dev_all_rcu(dev->ndev, in);
}

/* True if @a and @b are in the same VRF, or both in none. A packet from a VRF to itself has the VRF's device as @in. */
static bool net_same_vrf(const struct net_device *a, const struct net_device *b)
{
	return l3mdev_master_ifindex_rcu(a) == l3mdev_master_ifindex_rcu(b);
}

static __be32 net_daddr4(const struct roan_rx_ctx *rx)
{
	return *(const __be32 *)(rx->daddr.raw + 12);
}

static bool net_has_daddr(const struct roan_rx_ctx *rx, struct net_device *ndev)
{
	const struct in_device *in_dev;
	const struct in_ifaddr *ifa;

	if (rx->ipv6)
		return ipv6_dev_find(rx->net, (const struct in6_addr *)&rx->daddr, ndev) == ndev;
	in_dev = __in_dev_get_rcu(ndev);
	if (in_dev)
		in_dev_for_each_ifa_rcu(ifa, in_dev)
			if (ifa->ifa_local == net_daddr4(rx))
				return true;
	return false;
}

/*
 * Returns the interface that has the packet's destination address, or NULL. Several may have it, as VRFs are separate
 * networks: the receiving interface is looked at first, then the device's own. A link-local address is looked up on
 * these only.
 */
static struct net_device *net_daddr_netdev(const struct roan_rx_ctx *rx, const struct roan_dev *dev)
{
	const struct in6_addr *addr = (const struct in6_addr *)&rx->daddr;
	struct net_device *near[] = { rx->in, dev->ndev }, *owner;
	int i;

	if (rx->multicast)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(near) && (!i || net_same_vrf(near[i], rx->in)); i++)
		if (net_has_daddr(rx, near[i]))
			return near[i];
	if (rx->ipv6 && ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL)
		return NULL;
	owner = rx->ipv6 ? ipv6_dev_find(rx->net, addr, NULL) : __ip_dev_find(rx->net, net_daddr4(rx), false);
	return owner && net_same_vrf(owner, rx->in) ? owner : NULL;
}

static struct roan_dev *net_dev_on(const struct roan_net *rnet, const struct net_device *ndev)
{
	struct roan_dev *dev;

	hash_for_each_possible_rcu(ndev_devs, dev, ndev_link, (unsigned long)ndev, lockdep_is_held(&net_mutex))
		if (dev->ndev == ndev && dev->rnet == rnet)
			return dev;
	return NULL;
}

/*
 * The destination address decides before the receiving interface: a packet to a local address comes in by lo, and a
 * neighbour may send to any port of this host. If one device is on an interface and another one on its lower
 * interface, the upper one is chosen, also for an address of a VLAN that is on it. For other interfaces above it is the
 * one that was made first, as in rdma_cm.
 */
struct roan_dev *roan_net_dev_for(const struct roan_rx_ctx *rx)
{
	struct roan_dev *dev, *below = NULL;

	if (!rx->multicast && net_has_daddr(rx, rx->in))	/* most packets: no walk over all devices */
		return net_dev_on(rx->rnet, rdma_vlan_dev_real_dev(rx->in) ?: rx->in) ?: roan_net_next_dev(rx, NULL);
	list_for_each_entry_rcu(dev, &rx->rnet->devs, net_link) {
		struct net_device *owner = net_daddr_netdev(rx, dev);

		if (owner && roan_net_is_iface(dev, owner))
			return dev;
		if (owner && !below && net_dev_is_on(dev, owner))
			below = dev;
	}
	return below ?: roan_net_next_dev(rx, NULL);
}

bool roan_net_is_to(const struct roan_rx_ctx *rx, const struct roan_dev *dev)
{
	struct net_device *owner = net_daddr_netdev(rx, dev) ?: rx->in;

	return owner && net_dev_is_on(dev, owner);
}

bool roan_net_came_by(const struct roan_rx_ctx *rx, const struct roan_dev *dev, int ifindex)
{
	const struct net_device *own = dev->ndev;

	if (ifindex ? rx->in->ifindex == ifindex : net_dev_is_on(dev, rx->in))
		return true;
	if (ifindex)
		own = dev_get_by_index_rcu(rx->net, ifindex);
	return own && net_same_vrf(own, rx->in) &&
	       (rx->in->flags & IFF_LOOPBACK || netif_is_l3_master(rx->in) || READ_ONCE(dev->any_interface));
}

static int net_vlan_below(struct net_device *lower, struct netdev_nested_priv *priv)
{
	if (is_vlan_dev(lower))
		*(u16 *)priv->data = vlan_dev_vlan_id(lower);
	return 1;	/* ends the walk: the core looks at the first interface below only */
}

/*
 * The RDMA core looks for the destination's GID by this number when it answers a management datagram, and gives the GID
 * the VLAN of the interface that has the address, or of the one directly below that (rdma_read_gid_l2_fields()). The
 * receiving interface would be wrong: a packet from this host to the address of a VLAN comes by lo.
 */
u16 roan_net_vlan(const struct roan_rx_ctx *rx, const struct roan_dev *dev)
{
	struct net_device *ndev = net_daddr_netdev(rx, dev) ?: rx->in;
	u16 vlan = ROAN_NO_VLAN;
	struct netdev_nested_priv priv = { .data = &vlan };

	if (is_vlan_dev(ndev))
		return vlan_dev_vlan_id(ndev);
	netdev_walk_all_lower_dev_rcu(ndev, net_vlan_below, &priv);
	return vlan;
}

struct roan_dev *roan_net_next_dev(const struct roan_rx_ctx *rx, struct roan_dev *prev)
{
	struct roan_dev *dev;
	bool after = !prev;

	list_for_each_entry_rcu(dev, &rx->rnet->devs, net_link) {
		if (after && net_dev_is_on(dev, rx->in))
			return dev;
		if (dev == prev)
			after = true;
	}
	return NULL;
}

void roan_rx_grh(const struct roan_rx_ctx *rx, u8 grh[ROAN_GRH_LEN])
{
	u32 udp_len = rx->len + sizeof(struct udphdr);

	if (rx->ipv6) {
		memcpy(grh, rx->ip, sizeof(struct ipv6hdr));
		put_unaligned_be16(udp_len, grh + offsetof(struct ipv6hdr, payload_len));
		return;
	}
	memset(grh, 0, ROAN_GRH_LEN - sizeof(struct iphdr));
	grh += ROAN_GRH_LEN - sizeof(struct iphdr);
	memcpy(grh, rx->ip, sizeof(struct iphdr));
	put_unaligned_be16(udp_len + sizeof(struct iphdr), grh + offsetof(struct iphdr, tot_len));
}

/*
 * Confirms the connection tracking entry. Connection tracking's last IPv4 hook has the same priority as this one, and
 * runs after it if it was registered first; without confirmation each packet of a flow would look like the first.
 * Conntrack events stay cached: delivering them here would take a symbol of the nf_conntrack module.
 */
static bool hook_confirm_conntrack(struct sk_buff *skb)
{
#ifdef HAVE_CT_CONFIRM
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
	const struct nf_ct_hook *hook = rcu_dereference(nf_ct_hook);
	struct nf_conn *ct = (struct nf_conn *)skb_nfct(skb);

	if (ct && hook && !nf_ct_is_confirmed(ct))
		return hook->confirm(skb) == NF_ACCEPT;
#endif
#endif
	return true;
}

static unsigned int hook_drop(struct roan_rx_ctx *rx, enum roan_counter why)
{
	trace_roan_pkt_refused(rx, 0, why);
	roan_net_count_drop(rx->rnet, why);
	kfree_skb(rx->skb);
	return NF_STOLEN;
}

/* Common part for IPv4 and IPv6, from the UDP header on. skb->data is at the IP header, which is @l3 bytes long. */
static unsigned int hook_deliver(struct roan_rx_ctx *rx, u32 l3)
{
	struct sk_buff *skb = rx->skb;
	struct roan_dev *dev;
	u32 len;

	rx->off = l3 + sizeof(struct udphdr);
	if (skb_copy_bits(skb, 0, rx->ip, l3) || skb_copy_bits(skb, l3, rx->udp, sizeof(rx->udp)))
		return hook_drop(rx, ROAN_CNT_rx_truncated);
	if (skb_is_gso(skb) && (skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4)) {
		rx->seg_len = skb_shinfo(skb)->gso_size;
		rx->end = skb->len;
	} else {
		len = get_unaligned_be16(rx->udp + offsetof(struct udphdr, len));
		if (len < sizeof(struct udphdr) || l3 + len > skb->len)
			return hook_drop(rx, ROAN_CNT_rx_truncated);
		rx->end = l3 + len;
	}
	if (rx->end <= rx->off)		/* empty: no packet to parse, so count the drop here */
		return hook_drop(rx, ROAN_CNT_rx_truncated);

	if (unlikely(!hook_confirm_conntrack(skb)))
		return hook_drop(rx, ROAN_CNT_rx_policy);
	dev = roan_net_dev_for(rx);
	if (!dev)
		return hook_drop(rx, ROAN_CNT_rx_no_device);
	/* Once: roan_rx_hold_skb() clears the mark while others are still to get packets of this skb. lo marks none. */
	if (rx->multicast)
		rx->from_this_host = skb->pkt_type == PACKET_LOOPBACK || skb->dev->flags & IFF_LOOPBACK;
	roan_count(dev, rcvd_skbs);
	local_bh_disable();	/* a packet reinjected from NFQUEUE arrives in process context */
	deliver(rx);
	napi_consume_skb(skb, 1);	/* softirqs are off, so the skb may go to this CPU's NAPI cache */
	local_bh_enable();
	return NF_STOLEN;
}

bool roan_net_to_roce_port(struct sk_buff *skb, u32 off)
{
	const struct udphdr *udp;
	struct udphdr buf;

	udp = skb_header_pointer(skb, off, sizeof(buf), &buf);
	return udp && udp->dest == htons(ROAN_UDP_PORT);
}

/* True for a packet to an ipvlan in mode l3s in another namespace. A socket of that namespace receives it later. */
static bool hook_other_net(const struct sk_buff *skb, const struct nf_hook_state *state)
{
	return unlikely(netif_has_l3_rx_handler(state->in)) && skb_dst(skb) &&
	       !net_eq(dev_net(skb_dst(skb)->dev), state->net);
}

/* A packet that was received by an interface in a VRF passes the hooks as one of the VRF's device. */
static struct net_device *hook_in(const struct sk_buff *skb, const struct nf_hook_state *state)
{
	int member = ip_hdr(skb)->version == 4 ? inet_sdif(skb) : inet6_sdif(skb);

	return (member ? dev_get_by_index_rcu(state->net, member) : NULL) ?: state->in;
}

static void hook_init_rx(struct roan_rx_ctx *rx, struct sk_buff *skb, const struct nf_hook_state *state)
{
	memset(rx, 0, sizeof(*rx));
	rx->skb = skb;
	rx->net = state->net;
	rx->rnet = roan_net_of(state->net);
	rx->in = hook_in(skb, state);
	rx->vlan = ROAN_VLAN_UNREAD;
	/* The mac header of a packet from an IP tunnel is the tunnel's own header, not an Ethernet header. */
	if (unlikely(rx->in->type != ARPHRD_ETHER && rx->in->type != ARPHRD_LOOPBACK))
		skb_unset_mac_header(skb);
}

/* 255.255.255.255 or that of a subnet. */
static bool hook_is_broadcast(const struct sk_buff *skb)
{
	const struct rtable *rt = skb_rtable(skb);

	return rt && rt->rt_flags & RTCF_BROADCAST;
}

static unsigned int hook4(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct iphdr *ip = ip_hdr(skb);
	struct roan_rx_ctx rx;

	if (ip->protocol != IPPROTO_UDP || ip_is_fragment(ip) || !roan_net_to_roce_port(skb, ip->ihl * 4) ||
	    hook_other_net(skb, state))
		return NF_ACCEPT;
	hook_init_rx(&rx, skb, state);
	ipv6_addr_set_v4mapped(ip->saddr, (struct in6_addr *)&rx.saddr);
	ipv6_addr_set_v4mapped(ip->daddr, (struct in6_addr *)&rx.daddr);
	if (ip->ihl != 5)
		/* the ICRC is not defined over options and extensions */
		return hook_drop(&rx, ROAN_CNT_rx_invalid);
	if (!xfrm4_policy_check(NULL, XFRM_POLICY_IN, skb))
		return hook_drop(&rx, ROAN_CNT_rx_policy);
	ip = ip_hdr(skb);
	rx.ce = INET_ECN_is_ce(ip->tos);
	rx.multicast = ipv4_is_multicast(ip->daddr) || hook_is_broadcast(skb);
	return hook_deliver(&rx, sizeof(*ip));
}

static unsigned int hook6(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct ipv6hdr *ip6 = ipv6_hdr(skb);
	int off = sizeof(*ip6);
	u8 next = ip6->nexthdr;
	struct roan_rx_ctx rx;
	__be16 frag_off = 0;

	if (next != IPPROTO_UDP && ipv6_ext_hdr(next))
		off = ipv6_skip_exthdr(skb, off, &next, &frag_off);
	if (next != IPPROTO_UDP || off < 0 || frag_off || !roan_net_to_roce_port(skb, off) ||
	    hook_other_net(skb, state))
		return NF_ACCEPT;
	hook_init_rx(&rx, skb, state);
	rx.ipv6 = true;
	memcpy(&rx.saddr, &ip6->saddr, sizeof(rx.saddr));
	memcpy(&rx.daddr, &ip6->daddr, sizeof(rx.daddr));
	if (off != sizeof(*ip6))
		/* the ICRC is not defined over options and extensions */
		return hook_drop(&rx, ROAN_CNT_rx_invalid);
	if (!xfrm6_policy_check(NULL, XFRM_POLICY_IN, skb))
		return hook_drop(&rx, ROAN_CNT_rx_policy);
	ip6 = ipv6_hdr(skb);
	rx.ce = INET_ECN_is_ce(ipv6_get_dsfield(ip6));
	rx.multicast = ipv6_addr_is_multicast(&ip6->daddr);
	return hook_deliver(&rx, sizeof(*ip6));
}

/* Last of all hooks: after the administrator's filters, NAT and connection tracking. */
static const struct nf_hook_ops hooks[] = {
	{ .hook = hook4, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_IN, .priority = INT_MAX },
	{ .hook = hook6, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_IN, .priority = INT_MAX },
	{ .hook = roan_net_out4, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT, .priority = INT_MAX },
	{ .hook = roan_net_out6, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT, .priority = INT_MAX },
};

/* encap_rcv of the sockets. The skb begins at the UDP header. */
static int sock_receive(struct sock *sk, struct sk_buff *skb)
{
	struct nf_hook_state state = { .net = sock_net(sk), .in = skb->dev };
	unsigned int verdict;

	__skb_push(skb, -skb_network_offset(skb));
	verdict = ip_hdr(skb)->version == 4 ? hook4(NULL, skb, &state) : hook6(NULL, skb, &state);
	if (verdict == NF_ACCEPT)
		kfree_skb(skb);
	return 0;
}

/* ---- the namespace ---- */

static void close_port(struct socket *sock)
{
	if (!sock)
		return;
	kernel_sock_shutdown(sock, SHUT_RDWR);
	sock_release(sock);
}

static struct socket *open_port(struct net *net, bool ipv6)
{
	struct udp_port_cfg cfg = {
		.family = ipv6 ? AF_INET6 : AF_INET,
		.local_udp_port = htons(ROAN_UDP_PORT),
		.ipv6_v6only = ipv6,
	};
	struct socket *sock;
	int err;

	err = udp_sock_create(net, &cfg, &sock);
	if (err)
		return ERR_PTR(err);
	/* What is sent with this socket may be as long as the interface's MTU: fits_route() checks it before. */
	if (ipv6)
		inet6_sk(sock->sk)->pmtudisc = IPV6_PMTUDISC_INTERFACE;
	else
		inet_sk(sock->sk)->pmtudisc = IP_PMTUDISC_INTERFACE;
	roan_udp_enable_gro(sock->sk);
	udp_allow_gso(sock->sk);
	WRITE_ONCE(udp_sk(sock->sk)->encap_rcv, sock_receive);
	WRITE_ONCE(udp_sk(sock->sk)->encap_type, 1);	/* any but 0 */
	roan_udp_enable_encap(sock->sk);	/* otherwise GRO does not look up UDP sockets at all */
	return sock;
}

static void net_close_ports(struct roan_net *rnet)
{
	close_port(rnet->sock6);
	close_port(rnet->sock4);
	rnet->sock6 = NULL;
	rnet->sock4 = NULL;
	synchronize_net();	/* the hook or sock_receive() may still be reading rnet->devs */
}

static int net_open(struct roan_net *rnet)
{
	struct socket *sock;
	int err;

	sock = open_port(rnet->net, false);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	rnet->sock4 = sock;
	sock = open_port(rnet->net, true);
	if (IS_ERR(sock)) {
		err = PTR_ERR(sock);
		if (err != -EAFNOSUPPORT && err != -EPFNOSUPPORT)
			goto err_ports;
		sock = NULL;
	}
	rnet->sock6 = sock;
	err = nf_register_net_hooks(rnet->net, hooks, ARRAY_SIZE(hooks));
	if (!err)
		return 0;
err_ports:
	net_close_ports(rnet);
	return err;
}

static void net_close(struct roan_net *rnet)
{
	WARN_ON_ONCE(!xa_empty(&rnet->avs));
	nf_unregister_net_hooks(rnet->net, hooks, ARRAY_SIZE(hooks));
	net_close_ports(rnet);
}

/* While RTNL is held @ndev stays in its namespace. */
struct net *roan_net_hold_of(const struct net_device *ndev)
{
	struct net *net;

	rtnl_lock();
	net = maybe_get_net(dev_net(ndev));
	rtnl_unlock();
	return net;
}

struct roan_net *roan_net_get(const struct net_device *ndev)
{
	struct net *net = roan_net_hold_of(ndev);	/* until a user is counted */
	struct roan_net *rnet;
	int err = 0;

	if (!net)
		return ERR_PTR(-ENODEV);
	rnet = net_generic(net, net_id);
	mutex_lock(&net_mutex);
	if (!rnet->users)
		err = net_open(rnet);
	if (!err)
		rnet->users++;
	mutex_unlock(&net_mutex);
	put_net(net);
	return err ? ERR_PTR(err) : rnet;
}

void roan_net_put(struct roan_net *rnet)
{
	mutex_lock(&net_mutex);
	if (rnet->users == 1)
		net_close(rnet);
	WRITE_ONCE(rnet->users, rnet->users - 1);
	wake_up_all(&net_unused);	/* under the mutex: net_pernet_exit() takes it before rnet is freed */
	mutex_unlock(&net_mutex);
}

bool roan_net_is(const struct roan_net *rnet, const struct net *net)
{
	return net_eq(rnet->net, net);
}

bool roan_net_has_guid(const struct roan_net *rnet, __be64 guid)
{
	const struct roan_dev *dev;
	bool found = false;

	mutex_lock(&net_mutex);
	list_for_each_entry(dev, &rnet->devs, net_link)
		found |= dev->ib.node_guid == guid;
	mutex_unlock(&net_mutex);
	return found;
}

int roan_net_add_dev(struct roan_net *rnet, struct roan_dev *dev)
{
	int err = 0;

	mutex_lock(&net_mutex);
	if (net_dev_on(rnet, dev->ndev)) {
		err = -EEXIST;
	} else {
		list_add_tail_rcu(&dev->net_link, &rnet->devs);
		hash_add_rcu(ndev_devs, &dev->ndev_link, (unsigned long)dev->ndev);
	}
	mutex_unlock(&net_mutex);
	return err;
}

void roan_net_del_dev(struct roan_net *rnet, struct roan_dev *dev)
{
	mutex_lock(&net_mutex);
	list_del_rcu(&dev->net_link);
	hash_del_rcu(&dev->ndev_link);
	mutex_unlock(&net_mutex);
	synchronize_net();
}

static int __net_init net_pernet_init(struct net *net)
{
	struct roan_net *rnet = net_generic(net, net_id);

	rnet->net = net;
	INIT_LIST_HEAD(&rnet->devs);
	xa_init_flags(&rnet->avs, XA_FLAGS_ACCOUNT);
	return 0;
}

/*
 * The interfaces of the namespace are gone, and their devices with them. roan_net_put() may still be running: wait for
 * it.
 */
static void __net_exit net_pernet_exit(struct net *net)
{
	struct roan_net *rnet = net_generic(net, net_id);

	wait_event(net_unused, !READ_ONCE(rnet->users));
	mutex_lock(&net_mutex);
	mutex_unlock(&net_mutex);
}

static struct pernet_operations net_ops = {
	.init = net_pernet_init,
	.exit = net_pernet_exit,
	.id = &net_id,
	.size = sizeof(struct roan_net),
};

int roan_net_init(roan_deliver_fn *receive)
{
	deliver = receive;
	return register_pernet_subsys(&net_ops);
}

void roan_net_exit(void)
{
	unregister_pernet_subsys(&net_ops);
}
