/* SPDX-License-Identifier: GPL-2.0 */
/* State of a network namespace that has roan devices. Private to net/. */
#ifndef ROAN_NET_PRIV_H
#define ROAN_NET_PRIV_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include "base/stats.h"

struct net;
struct nf_hook_state;
struct sk_buff;
struct socket;

struct roan_net {
	struct net *net;
	struct list_head devs;		/* roan_dev.net_link; written under net_mutex, RCU readers */
	struct xarray avs;		/* ifindex -> struct roan_av, of QPs; iface_qps.c */
	u32 users;			/* under net_mutex; not 0: sockets and hooks exist */
	struct socket *sock4;
	struct socket *sock6;		/* NULL without IPv6 */
};

struct roan_net *roan_net_of(const struct net *net);
/* Counts on the first device of the namespace. RCU */
void roan_net_count_drop(struct roan_net *rnet, enum roan_counter which);
/* True if the UDP header at @off of the packet has destination port 4791. */
bool roan_net_to_roce_port(struct sk_buff *skb, u32 off);
/* local_out.c: hooks for packets that this host sends */
unsigned int roan_net_out4(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);
unsigned int roan_net_out6(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

#endif /* ROAN_NET_PRIV_H */
