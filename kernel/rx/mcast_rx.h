/* SPDX-License-Identifier: GPL-2.0 */
/* Multicast groups of a device: verbs/mcast.c writes them, mcast_rx.c reads them under RCU. */
#ifndef ROAN_MCAST_RX_H
#define ROAN_MCAST_RX_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

struct roan_qp_ref;

struct roan_mcast {
	struct list_head dev_link;	/* dev->mcast, RCU */
	union ib_gid gid;		/* group address, in the form of roan_rx_ctx.daddr */
	struct list_head members;	/* struct roan_mcast_member, RCU */
	struct list_head joined;	/* verbs/mcast.c: interfaces that have joined the group; RTNL */
	u32 n_members;
	struct rcu_head rcu;
};

struct roan_mcast_member {
	struct list_head on_group;
	struct roan_qp_ref *ref;	/* RCU-freed, at least a grace period after the member is removed */
	struct rcu_head rcu;
};

#endif /* ROAN_MCAST_RX_H */
