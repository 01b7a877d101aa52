// SPDX-License-Identifier: GPL-2.0
/* Delivers a multicast datagram to each QP attached to its group. Does not manage groups: verbs/mcast.c does. */
#include <linux/jhash.h>
#include <linux/once.h>
#include <linux/rculist.h>
#include "base/base.h"
#include "rx/mcast_rx.h"
#include "rx/rx.h"

u32 roan_mcast_hash(const union ib_gid *gid)
{
	static u32 seed __read_mostly;

	get_random_once(&seed, sizeof(seed));
	return jhash2((const u32 *)gid->raw, sizeof(*gid) / sizeof(u32), seed) >> (32 - ROAN_MCAST_HASH_BITS);
}

struct roan_mcast *roan_mcast_find(struct roan_dev *dev, const union ib_gid *gid)
{
	struct roan_mcast *group;

	hlist_for_each_entry_rcu(group, &dev->mcast[roan_mcast_hash(gid)], on_dev)
		if (roan_gid_equal(&group->gid, gid))
			return group;
	return NULL;
}

/* The copy for this host of a datagram that @qp has sent. */
static bool mcast_is_own(const struct roan_qp *qp, const struct roan_rx_ctx *rx)
{
	return rx->from_this_host && rx->pkt.src_qpn == qp->ib.qp_num;
}

u32 roan_mcast_deliver(struct roan_dev *dev, struct roan_rx_ctx *rx)
{
	struct roan_mcast_member *m;
	struct roan_mcast *group;
	struct roan_qp *qp;
	u32 n = 0;

	rcu_read_lock();
	group = roan_mcast_find(dev, &rx->daddr);
	if (!group)
		goto unlock;
	list_for_each_entry_rcu(m, &group->members, on_group) {
		qp = roan_qp_get_rcu(m->ref);
		if (!qp)
			continue;
		if (!roan_pkey_match(rx->pkt.pkey, qp->pkey))
			roan_count(dev, rx_bad_pkey);
		else if (likely(!qp->block_self_mcast) || !mcast_is_own(qp, rx))
			roan_recv_datagram(qp, rx);
		roan_qp_put(qp);
		n++;
	}
unlock:
	rcu_read_unlock();
	return n;
}
