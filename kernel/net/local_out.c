// SPDX-License-Identifier: GPL-2.0
/*
 * The LOCAL_OUT hook: a program without CAP_NET_RAW cannot send UDP packets to port 4791 through a socket. Such a
 * packet has an address of this host, and its ICRC is a checksum that anyone can compute: without this hook the peer
 * would accept it as a packet of a QP of this host. roan's own packets have no socket, or one of the kernel. Does not
 * see forwarded packets.
 */
#include <linux/capability.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include "net/net.h"
#include "net/net_priv.h"

/* The opener counts, as for netlink: a program may be given a socket by one with more rights, but not the reverse. */
bool roan_net_sock_capable(const struct roan_net *rnet, struct sock *sk, int cap)
{
	struct socket *sock;
	bool may = false;

	read_lock_bh(&sk->sk_callback_lock);	/* sock_orphan() takes it, before the file is freed */
	sock = sk->sk_socket;
	if (sock && sock->file)
		may = file_ns_capable(sock->file, rnet->net->user_ns, cap);
	read_unlock_bh(&sk->sk_callback_lock);
	return may;
}

/*
 * The UDP header is @off bytes into the packet; one header may stand for many datagrams (UDP_SEGMENT). Sockets of the
 * kernel (rdma_rxe, tunnels) have no opener. skb->sk is the sender's socket also for protocols inside UDP (SCTP, L2TP).
 */
static unsigned int out_verdict(struct sk_buff *skb, u32 off, const struct nf_hook_state *state)
{
	struct roan_net *rnet = roan_net_of(state->net);
	struct sock *sk = skb->sk;

	if (!sk_fullsock(sk) || sk->sk_kern_sock || !roan_net_to_roce_port(skb, off) ||
	    roan_net_sock_capable(rnet, sk, CAP_NET_RAW))
		return NF_ACCEPT;
	roan_net_count_drop(rnet, ROAN_CNT_tx_unprivileged);
	return NF_DROP;		/* sendto() fails with EPERM */
}

unsigned int roan_net_out4(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct iphdr *ip = ip_hdr(skb);

	if (!skb->sk || ip->protocol != IPPROTO_UDP)
		return NF_ACCEPT;
	return out_verdict(skb, ip->ihl * 4, state);
}

/* Any program may add a routing header, so extension headers are skipped. */
unsigned int roan_net_out6(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	int off = sizeof(struct ipv6hdr);
	__be16 frag_off = 0;
	u8 next;

	if (!skb->sk)
		return NF_ACCEPT;
	next = ipv6_hdr(skb)->nexthdr;
	if (next != IPPROTO_UDP && ipv6_ext_hdr(next))
		off = ipv6_skip_exthdr(skb, off, &next, &frag_off);
	if (next != IPPROTO_UDP || off < 0)
		return NF_ACCEPT;
	return out_verdict(skb, off, state);
}
