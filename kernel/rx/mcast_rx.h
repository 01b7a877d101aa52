/* SPDX-License-Identifier: GPL-2.0 */
/* Multicast groups of a device: verbs/mcast.c writes them, mcast_rx.c reads them under RCU. */
#ifndef ROAN_MCAST_RX_H
#define ROAN_MCAST_RX_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

struct roan_dev;
struct roan_qp_ref;

struct roan_mcast {
	struct hlist_node on_dev;	/* dev->mcast[roan_mcast_hash()], RCU */
	union ib_gid gid;		/* group address, in the form of roan_rx_ctx.daddr */
	struct list_head members;	/* struct roan_mcast_member, RCU */
	struct list_head joined;	/* verbs/mcast.c: interfaces that have joined the group; RTNL */
	u32 n_members;
	struct rcu_head rcu;
};

struct roan_mcast_member {
	struct list_head on_group;	/* RCU */
	struct list_head on_qp;		/* qp->mcast; verbs/mcast.c */
	struct roan_mcast *group;
	u32 attached;			/* verbs/mcast.c: how often */
	struct roan_qp_ref *ref;	/* RCU-freed, at least a grace period after the member is removed */
	struct rcu_head rcu;
};

/* Bucket of a group address. A random seed: users choose the addresses. */
u32 roan_mcast_hash(const union ib_gid *gid);
/* Group of the device with this address, or NULL. RCU read side. */
struct roan_mcast *roan_mcast_find(struct roan_dev *dev, const union ib_gid *gid);

#endif /* ROAN_MCAST_RX_H */
