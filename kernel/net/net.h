/* SPDX-License-Identifier: GPL-2.0 */
/*
 * net: the driver's place in the IP stack: UDP port 4791 of a namespace, the receive hook, routes and multicast groups. Does
 * not look into packets beyond UDP. What comes in goes to the function registered at init. Locks: net_mutex for namespaces
 * and devices (process context); RTNL around groups. Receive and transmit run under RCU, softirqs off.
 */
#ifndef ROAN_NET_H
#define ROAN_NET_H

#include "base/rx_ctx.h"
#include "roan.h"

#define ROAN_NET_HEADERS	(sizeof(struct ipv6hdr) + sizeof(struct udphdr) + ROAN_MAX_HEADERS + ROAN_ICRC_LEN)
#define ROAN_HEADROOM		(LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/* What is called with each received skb of ours: softirq, under RCU; the skb stays the caller's. */
typedef void roan_deliver_fn(struct roan_rx_ctx *rx);

int roan_net_init(roan_deliver_fn *receive);	/* pernet operations */
void roan_net_exit(void);
struct roan_net *roan_net_get(struct net *net);	/* sockets and hook; ERR_PTR(-EADDRINUSE): rdma_rxe or another has 4791 */
void roan_net_put(struct roan_net *rnet);
bool roan_net_is(const struct roan_net *rnet, const struct net *net);
void roan_net_add_dev(struct roan_net *rnet, struct roan_dev *dev);
void roan_net_del_dev(struct roan_net *rnet, struct roan_dev *dev);	/* waits a grace period */
struct roan_dev *roan_net_dev_for(const struct roan_rx_ctx *rx);	/* whose interface or address it is; RCU */
bool roan_net_is_to(const struct roan_rx_ctx *rx, const struct roan_dev *dev);	/* may it be this one's? RCU */
/* multicast: all that listen; RCU */
struct roan_dev *roan_net_next_dev(const struct roan_rx_ctx *rx, struct roan_dev *prev);
/* route valid, or looked up */
bool roan_dst_cache_get(struct roan_dst_cache *flow, struct roan_dev *dev, const struct roan_av *av);
void roan_dst_cache_reset(struct roan_dst_cache *flow);
int roan_net_xmit(struct roan_dev *dev, struct sk_buff *skb, struct roan_dst_cache *flow, bool ipv6);
bool roan_net_is_iface(const struct roan_dev *dev, const struct net_device *ndev);
bool roan_net_can_join(const struct net_device *ndev, const union ib_gid *mgid);	/* these three under RTNL */
int roan_net_join(struct net_device *ndev, const union ib_gid *mgid);
void roan_net_leave(struct net_device *ndev, const union ib_gid *mgid);
/* For the GRH slot of a UD receive: 40 bytes, an IPv4 header in the last 20. */
void roan_rx_grh(const struct roan_rx_ctx *rx, u8 grh[ROAN_GRH_LEN]);

#endif /* ROAN_NET_H */
