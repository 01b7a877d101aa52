/* SPDX-License-Identifier: GPL-2.0 */
/* A network namespace in which devices are. Inside net/ only. */
#ifndef ROAN_NET_PRIV_H
#define ROAN_NET_PRIV_H

#include <linux/list.h>
#include <linux/types.h>

struct net;
struct socket;

struct roan_net {
	struct net *net;
	struct list_head devs;		/* roan_dev.on_net; net_mutex, RCU readers */
	u32 users;			/* net_mutex; sockets and hooks are there while it is not 0 */
	struct socket *sock4;
	struct socket *sock6;		/* NULL without IPv6 */
};

#endif /* ROAN_NET_PRIV_H */
