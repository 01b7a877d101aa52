/* SPDX-License-Identifier: GPL-2.0 */
/*
 * net: the driver's place in the IP stack: UDP port 4791 of a namespace, the hooks for received packets and for those
 * that programs send, routes and multicast groups. Does not look into packets beyond UDP. Received packets go to the
 * function registered at init. Locks: net_mutex for namespaces and devices (process context); RTNL for multicast
 * groups. Receive and transmit run under RCU, softirqs off.
 */
#ifndef ROAN_NET_H
#define ROAN_NET_H

#include "base/rx_ctx.h"
#include "roan.h"

#define ROAN_NET_HEADERS	(sizeof(struct ipv6hdr) + sizeof(struct udphdr) + ROAN_MAX_HEADERS + ROAN_ICRC_LEN)
#define ROAN_HEADROOM		(LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/* Called with each received skb for UDP port 4791: softirqs off, under RCU. The caller keeps the skb. */
typedef void roan_deliver_fn(struct roan_rx_ctx *rx);

int roan_net_init(roan_deliver_fn *receive);	/* registers the pernet operations */
void roan_net_exit(void);
/*
 * The namespace in which @ndev is now. Opens sockets and hook with the first user. Takes RTNL. ERR_PTR(-EADDRINUSE):
 * UDP port 4791 is taken, by rdma_rxe for example; ERR_PTR(-ENODEV): the namespace is ending.
 */
struct roan_net *roan_net_get(const struct net_device *ndev);
void roan_net_put(struct roan_net *rnet);
bool roan_net_is(const struct roan_net *rnet, const struct net *net);
struct net *roan_net_hold_of(const struct net_device *ndev);	/* put_net(); NULL: it is being removed. Takes RTNL */
bool roan_net_has_guid(const struct roan_net *rnet, __be64 guid);	/* node GUID of a device. Process context */
/* True if @sk was opened by a program with @cap in the user namespace of the network namespace. */
bool roan_net_sock_capable(const struct roan_net *rnet, struct sock *sk, int cap);
/*
 * -EEXIST: the netdev has a device. It has one until that is freed, also while the RDMA core does not find it by its
 * netdev, as it moves to another RDMA namespace or is removed. Process context
 */
int roan_net_add_dev(struct roan_net *rnet, struct roan_dev *dev);
void roan_net_del_dev(struct roan_net *rnet, struct roan_dev *dev);	/* waits a grace period */
/*
 * iface_qps.c. Returns the number of the GID's interface, not a reference: a reference would block the removal of the
 * netdev as long as a program keeps its handle. 0: the interface is being unregistered, or the address is deleted
 */
int roan_net_ifindex(const struct roan_dev *dev, const struct ib_gid_attr *gid);
/* The next three: process context. Address vectors of QPs: av->qp is set. 0 or -ENOMEM */
int roan_net_add_av(struct roan_av *av);
void roan_net_del_av(struct roan_av *av);
/* Takes out one vector that names @ndev. Returns its QP, with a reference, or NULL: none is left */
struct roan_qp *roan_net_take_qp(const struct net_device *ndev);
/* device that has the destination address, else the interface; NULL: none. RCU */
struct roan_dev *roan_net_dev_for(const struct roan_rx_ctx *rx);
/* true if the packet may be for @dev. RCU */
bool roan_net_is_to(const struct roan_rx_ctx *rx, const struct roan_dev *dev);
/*
 * True if the packet came by the interface with that index, or 0: by the device's or one on top of it; or from this
 * host; or if the device accepts packets from any interface. Never from another VRF. RCU
 */
bool roan_net_came_by(const struct roan_rx_ctx *rx, const struct roan_dev *dev, int ifindex);
/* VLAN of the interface with the destination address, else of the receiving one, or ROAN_NO_VLAN. rx->in is set. RCU */
u16 roan_net_vlan(const struct roan_rx_ctx *rx, const struct roan_dev *dev);
/* For multicast: the next device on the receiving interface after @prev (NULL: the first). RCU. */
struct roan_dev *roan_net_next_dev(const struct roan_rx_ctx *rx, struct roan_dev *prev);
/*
 * Looks the route up, unless the cached one is for the same packets. The lookup uses the DSCP of @tclass and the UDP
 * source port @sport. False: no route.
 */
bool roan_dst_cache_get(struct roan_dst_cache *flow, struct roan_dev *dev, const struct roan_av *av, u8 tclass,
			u16 sport);
void roan_dst_cache_reset(struct roan_dst_cache *flow);
/* The route of the last lookup, if that was for @av, or @av is NULL; else NULL. */
const struct dst_entry *roan_dst_cache_peek(const struct roan_dst_cache *flow, const struct roan_av *av);
/*
 * Bytes from the IP header on that a packet may have; 0: no route. @reported: less than that, if the network has said
 * so; it does not count. Process context
 */
u32 roan_net_route_mtu(const struct roan_dev *dev, const struct roan_av *av, u8 tclass, u32 *reported);
int roan_net_xmit(struct roan_dev *dev, struct sk_buff *skb, struct roan_dst_cache *flow, bool ipv6);
bool roan_net_is_iface(const struct roan_dev *dev, const struct net_device *ndev);
/* this and the next two under RTNL */
bool roan_net_can_join(const struct net_device *ndev, const union ib_gid *mgid);
int roan_net_join(struct net_device *ndev, const union ib_gid *mgid);
void roan_net_leave(struct net_device *ndev, const union ib_gid *mgid);
/* Fills in the GRH area of a UD receive: 40 bytes; an IPv4 header is in the last 20. */
void roan_rx_grh(const struct roan_rx_ctx *rx, u8 grh[ROAN_GRH_LEN]);

#endif /* ROAN_NET_H */
