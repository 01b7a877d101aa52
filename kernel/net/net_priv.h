/* SPDX-License-Identifier: GPL-2.0 */
/* State of a network namespace that has roan devices. Private to net/. */
#ifndef ROAN_NET_PRIV_H
#define ROAN_NET_PRIV_H

#include <linux/list.h>
#include <linux/types.h>

struct net;
struct socket;

struct roan_net {
	struct net *net;
	struct list_head devs;		/* roan_dev.net_link; written under net_mutex, RCU readers */
	u32 users;			/* under net_mutex; not 0: sockets and hooks exist */
	struct socket *sock4;
	struct socket *sock6;		/* NULL without IPv6 */
};

#endif /* ROAN_NET_PRIV_H */
