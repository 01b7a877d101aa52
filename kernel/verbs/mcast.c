// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of UD QPs: attach and detach, and the interfaces on which the host joins a group. Does not deliver
 * datagrams (rx/mcast_rx.c); IP membership of an interface is in net/igmp.c.
 *
 * An MGID names no VLAN, so a group belongs to the whole port, as with an adapter: the host joins it on the device's
 * interface and on every VLAN of it, and a datagram that arrives on any of them is delivered. A sender selects the VLAN
 * by its GID. Other upper interfaces (bridge, macvlan) are not joined: with them a datagram could arrive twice.
 *
 * Attach and detach hold the mutex @writers, because joining sleeps. Changes to the table of groups or to the
 * interfaces of a group also hold RTNL, inside the mutex. Under both no memory is charged to a cgroup: at a cgroup's
 * limit that takes long, and all users of the host take them. Readers use RCU. A member points to the QP's ref, not to
 * the QP: a reader may find a removed member after its QP was freed.
 *
 * To attach again is no error (IBTA vol. 1, 10.5.1). But it is counted, because the RDMA core detaches once for each
 * call that attached: it keeps an attachment for each LID and notation of an MGID, which are one group here.
 *
 * Limits: attachments of the device, attachments of a user (base/user_share.h), and QPs of a group, as each of them
 * gets a copy in the same softirq. Beyond each: ENOMEM, as with other drivers. A group without members is left, so
 * there are never more groups than attachments.
 */
#include <linux/in.h>
#include <linux/hashtable.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <net/ipv6.h>
#include "base/base.h"
#include "net/net.h"
#include "rx/mcast_rx.h"
#include "verbs/verbs.h"

/*
 * An interface on which the host joined the group. The entry is removed when @ndev is unregistered. While the module
 * exits nothing tells that any more: then a QP that joined meanwhile keeps a VLAN until it is destroyed.
 */
struct mcast_iface {
	struct list_head on_group;
	struct net_device *ndev;
	netdevice_tracker ndev_tracker;
};

static DEFINE_MUTEX(writers);

/* What an attachment may need, allocated before @writers is taken. What was not needed is freed. */
struct mcast_fresh {
	struct roan_mcast *group;
	struct roan_mcast_member *member;
};

static struct roan_mcast *mcast_group_find(struct roan_dev *dev, const union ib_gid *gid)
{
	struct roan_mcast *group;

	lockdep_assert_held(&writers);	/* keeps the group, once it is found */
	rcu_read_lock();
	group = roan_mcast_find(dev, gid);
	rcu_read_unlock();
	return group;
}

static struct roan_mcast_member *mcast_member_find(struct roan_mcast *group, struct roan_qp *qp)
{
	struct roan_mcast_member *m;

	list_for_each_entry(m, &qp->mcast, on_qp)
		if (m->group == group)
			return m;
	return NULL;
}

static struct mcast_iface *iface_find(struct roan_mcast *group, const struct net_device *ndev)
{
	struct mcast_iface *iface;

	list_for_each_entry(iface, &group->joined, on_group)
		if (iface->ndev == ndev)
			return iface;
	return NULL;
}

static int group_join(struct roan_mcast *group, struct net_device *ndev)
{
	struct mcast_iface *iface = kmalloc(sizeof(*iface), GFP_KERNEL);
	int err;

	if (!iface)
		return -ENOMEM;
	err = roan_net_join(ndev, &group->gid);
	if (err) {
		kfree(iface);
		return err;
	}
	iface->ndev = ndev;
	netdev_hold(ndev, &iface->ndev_tracker, GFP_KERNEL);
	list_add(&iface->on_group, &group->joined);
	return 0;
}

static void group_leave(struct roan_mcast *group, struct mcast_iface *iface)
{
	list_del(&iface->on_group);
	roan_net_leave(iface->ndev, &group->gid);
	netdev_put(iface->ndev, &iface->ndev_tracker);
	kfree(iface);
}

/* A VLAN that cannot join now (its MTU is too small for IPv6, say) joins later in roan_mcast_netdev_event(). */
static int group_join_all(struct roan_dev *dev, struct roan_mcast *group)
{
	struct net_device *ndev;
	int err = -ENODEV;	/* dev->ndev was moved to another namespace; the device will be removed */

	if (roan_net_is_iface(dev, dev->ndev))
		err = group_join(group, dev->ndev);
	if (err)
		return err;
	for_each_netdev(dev_net(dev->ndev), ndev)
		if (ndev != dev->ndev && roan_net_is_iface(dev, ndev))
			group_join(group, ndev);
	return 0;
}

/*
 * An MTU below 68 (1280) removes IPv4 (IPv6) from an interface, and its groups with it. When the protocol returns, the
 * interface is in no group. @gone: the interface is unregistered; IP's notifiers ran before this one and left all
 * groups.
 * RTNL held.
 */
void roan_mcast_netdev_event(struct roan_dev *dev, struct net_device *ndev, bool gone)
{
	struct roan_mcast *group;
	struct mcast_iface *iface;
	int bucket;
	bool can;

	hash_for_each(dev->mcast, bucket, group, on_dev) {
		can = !gone && roan_net_is_iface(dev, ndev) && roan_net_can_join(ndev, &group->gid);
		iface = iface_find(group, ndev);
		if (iface && !can)
			group_leave(group, iface);
		else if (!iface && can)
			group_join(group, ndev);
	}
}

static int mcast_group_open(struct roan_dev *dev, const union ib_gid *gid, struct roan_mcast *group)
{
	int err;

	group->gid = *gid;
	INIT_LIST_HEAD(&group->members);
	INIT_LIST_HEAD(&group->joined);
	rtnl_lock();
	err = group_join_all(dev, group);
	if (!err)
		hlist_add_head_rcu(&group->on_dev, &dev->mcast[roan_mcast_hash(gid)]);
	rtnl_unlock();
	return err;
}

static void mcast_group_close(struct roan_mcast *group)
{
	struct mcast_iface *iface, *next;

	rtnl_lock();
	hlist_del_rcu(&group->on_dev);
	list_for_each_entry_safe(iface, next, &group->joined, on_group)
		group_leave(group, iface);
	rtnl_unlock();
	kfree_rcu(group, rcu);
}

static struct roan_user *mcast_user(const struct roan_qp *qp)
{
	return qp->uctx ? to_roan_ucontext(qp->uctx)->user : NULL;
}

static void mcast_detach(struct roan_mcast_member *m, struct roan_qp *qp)
{
	struct roan_mcast *group = m->group;

	qp->dev->n_mcast--;
	roan_share_give(mcast_user(qp), ROAN_SHARE_MCAST);
	if (--m->attached)
		return;
	list_del_rcu(&m->on_group);
	list_del(&m->on_qp);
	kfree_rcu(m, rcu);
	qp->n_mcast--;
	if (!--group->n_members)
		mcast_group_close(group);
}

static void mcast_member_add(struct roan_mcast *group, struct roan_qp *qp, struct roan_mcast_member *m)
{
	m->ref = qp->ref;
	m->group = group;
	m->attached = 1;
	list_add(&m->on_qp, &qp->mcast);
	list_add_rcu(&m->on_group, &group->members);
	group->n_members++;
	qp->n_mcast++;
}

static int mcast_attach_new(struct roan_mcast *group, struct roan_qp *qp, const union ib_gid *gid,
			    struct mcast_fresh *fresh)
{
	int err;

	if (group && group->n_members >= ROAN_MAX_MCAST_QPS)
		return -ENOMEM;
	if (!group) {
		err = mcast_group_open(qp->dev, gid, fresh->group);
		if (err)
			return err;
		group = fresh->group;
		fresh->group = NULL;
	}
	mcast_member_add(group, qp, fresh->member);
	fresh->member = NULL;
	return 0;
}

static int mcast_attach(struct roan_qp *qp, const union ib_gid *gid, struct mcast_fresh *fresh)
{
	struct roan_mcast *group = mcast_group_find(qp->dev, gid);
	struct roan_mcast_member *m = group ? mcast_member_find(group, qp) : NULL;
	int err;

	if (qp->dev->n_mcast >= ROAN_MAX_MCAST_ATTACH)
		return -ENOMEM;
	err = roan_share_take(mcast_user(qp), ROAN_SHARE_MCAST);
	if (err)
		return err;
	if (m)
		m->attached++;
	else
		err = mcast_attach_new(group, qp, gid, fresh);
	if (err)
		roan_share_give(mcast_user(qp), ROAN_SHARE_MCAST);
	else
		qp->dev->n_mcast++;
	return err;
}

static bool mcast_may_attach(const struct ib_qp *qp, const union ib_gid *gid)
{
	return qp->qp_type == IB_QPT_UD && rdma_is_multicast_addr((struct in6_addr *)gid);
}

/* The address in packets to @mgid. An IPv4 group is ::ffff:a.b.c.d there; RoCE v1 MGIDs have ff0e::ffff:a.b.c.d. */
static union ib_gid mcast_address_of(const union ib_gid *mgid)
{
	static const u8 rocev1_prefix[12] = { 0xff, 0x0e, [10] = 0xff, 0xff };
	union ib_gid address = *mgid;
	__be32 v4;

	memcpy(&v4, mgid->raw + 12, sizeof(v4));
	if (!memcmp(mgid, rocev1_prefix, sizeof(rocev1_prefix)) && ipv4_is_multicast(v4))
		ipv6_addr_set_v4mapped(v4, (struct in6_addr *)&address);
	return address;
}

int roan_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	union ib_gid address = mcast_address_of(gid);
	struct mcast_fresh fresh;
	int err = -ENOMEM;

	if (!mcast_may_attach(ibqp, gid))
		return -EINVAL;
	fresh.group = kzalloc(sizeof(*fresh.group), GFP_KERNEL_ACCOUNT);
	fresh.member = kzalloc(sizeof(*fresh.member), GFP_KERNEL_ACCOUNT);
	if (fresh.group && fresh.member) {
		mutex_lock(&writers);
		err = mcast_attach(to_roan_qp(ibqp), &address, &fresh);
		mutex_unlock(&writers);
	}
	kfree(fresh.group);
	kfree(fresh.member);
	return err;
}

int roan_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	union ib_gid address = mcast_address_of(gid);
	struct roan_qp *qp = to_roan_qp(ibqp);
	struct roan_mcast_member *m = NULL;
	struct roan_mcast *group;

	mutex_lock(&writers);
	group = mcast_group_find(qp->dev, &address);
	if (group)
		m = mcast_member_find(group, qp);
	if (m)
		mcast_detach(m, qp);
	mutex_unlock(&writers);
	return m ? 0 : -EINVAL;
}
