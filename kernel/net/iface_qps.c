// SPDX-License-Identifier: GPL-2.0
/*
 * The QPs of a namespace by the interface that their address vector names. An interface that is unregistered fails
 * these, with RTNL held, and takes no time for any other QP of the host. A vector is taken out by that, as it connects
 * no QP again: another interface with the same number finds only vectors that were made later.
 *
 * rnet->avs: for the number of each such interface one of its vectors. A list links that one with the others.
 */
#include <linux/list.h>
#include <linux/xarray.h>
#include <rdma/ib_cache.h>
#include "base/base.h"
#include "net/net.h"
#include "net/net_priv.h"

int roan_net_ifindex(const struct roan_dev *dev, const struct ib_gid_attr *gid)
{
	struct net_device *ndev;
	int ifindex = 0;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(gid);
	if (!IS_ERR(ndev)) {
		ifindex = READ_ONCE(ndev->ifindex);
		if (dev_get_by_index_rcu(dev->rnet->net, ifindex) != ndev)
			ifindex = 0;	/* the core deletes the GID later, in a worker */
	}
	rcu_read_unlock();
	return ifindex;
}

int roan_net_add_av(struct roan_av *av)
{
	struct xarray *avs = &av->qp->dev->rnet->avs;
	struct roan_av *other;

	INIT_LIST_HEAD(&av->same_iface);
	xa_lock(avs);
	other = __xa_cmpxchg(avs, av->ifindex, NULL, av, GFP_KERNEL);
	if (other && !xa_is_err(other))
		list_add(&av->same_iface, &other->same_iface);
	xa_unlock(avs);
	return xa_err(other);
}

static void iface_av_del(struct xarray *avs, struct roan_av *av)
{
	lockdep_assert_held(&avs->xa_lock);
	if (xa_load(avs, av->ifindex) == av) {	/* else another one is there, or @av was taken out before */
		if (list_empty(&av->same_iface))
			__xa_erase(avs, av->ifindex);
		else	/* in place of an entry: allocates nothing */
			__xa_store(avs, av->ifindex, list_next_entry(av, same_iface), GFP_ATOMIC);
	}
	list_del_init(&av->same_iface);
}

void roan_net_del_av(struct roan_av *av)
{
	struct xarray *avs = &av->qp->dev->rnet->avs;

	xa_lock(avs);
	iface_av_del(avs, av);
	xa_unlock(avs);
}

struct roan_qp *roan_net_take_qp(const struct net_device *ndev)
{
	struct xarray *avs = &roan_net_of(dev_net(ndev))->avs;
	struct roan_qp *qp = NULL;
	struct roan_av *av;

	xa_lock(avs);	/* keeps the vector, and that keeps its QP: roan_destroy_qp() frees the vector first */
	while (!qp && (av = xa_load(avs, ndev->ifindex))) {
		qp = roan_qp_get_rcu(av->qp->ref);
		iface_av_del(avs, av);
	}
	xa_unlock(avs);
	return qp;
}
