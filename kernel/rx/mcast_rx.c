// SPDX-License-Identifier: GPL-2.0
/* Delivers a multicast datagram to each QP attached to its group. Does not manage groups: verbs/mcast.c does. */
#include <linux/rculist.h>
#include "base/base.h"
#include "rx/mcast_rx.h"
#include "rx/rx.h"

u32 roan_mcast_deliver(struct roan_dev *dev, struct roan_rx_ctx *rx)
{
	struct roan_mcast *group;
	struct roan_mcast_member *m;
	u32 n = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(group, &dev->mcast, dev_link) {
		if (!roan_gid_equal(&group->gid, &rx->daddr))
			continue;
		list_for_each_entry_rcu(m, &group->members, on_group) {
			if (!refcount_inc_not_zero(&m->ref->refs))
				continue;
			if (roan_pkey_match(rx->pkt.pkey, m->ref->qp->pkey))
				roan_recv_datagram(m->ref->qp, rx);
			else
				roan_count(dev, rx_bad_pkey);
			roan_qp_put(m->ref->qp);
			n++;
		}
		break;
	}
	rcu_read_unlock();
	return n;
}
