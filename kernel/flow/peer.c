// SPDX-License-Identifier: GPL-2.0
/*
 * Peers: the shortest round trip between two addresses, shared by all QPs of a device that connect them. If each QP
 * measured its own, a QP that begins while others fill a queue would take the delay of the queue for that of the path,
 * and push the others aside.
 */
#include <linux/jhash.h>
#include <linux/mutex.h>
#include <linux/once.h>
#include <linux/slab.h>
#include "base/base.h"
#include "flow/flow.h"

static DEFINE_MUTEX(peers_mutex);	/* the lists of all devices, and the counts */

static struct hlist_head *peer_list(struct roan_dev *dev, const struct roan_av *av)
{
	static u32 seed __read_mostly;	/* programs choose the addresses, and could put all into one list */

	get_random_once(&seed, sizeof(seed));
	return &dev->peers[jhash(&av->dgid, sizeof(av->dgid), seed) & ((1 << ROAN_PEER_HASH_BITS) - 1)];
}

static struct roan_peer *peer_find(struct hlist_head *list, const struct roan_av *av)
{
	struct roan_peer *peer;

	hlist_for_each_entry(peer, list, on_dev)
		if (roan_gid_equal(&peer->sgid, &av->sgid) && roan_gid_equal(&peer->dgid, &av->dgid))
			return peer;
	return NULL;
}

/* Memory is allocated before the mutex: at a cgroup's limit it takes long, and all users of the host take the mutex. */
struct roan_peer *roan_peer_get(struct roan_dev *dev, const struct roan_av *av)
{
	struct roan_peer *peer, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct hlist_head *list = peer_list(dev, av);

	if (!fresh)
		return NULL;
	mutex_lock(&peers_mutex);
	peer = peer_find(list, av);
	if (!peer) {
		peer = fresh;
		fresh = NULL;
		peer->sgid = av->sgid;
		peer->dgid = av->dgid;
		hlist_add_head(&peer->on_dev, list);
	}
	peer->n_qps++;
	mutex_unlock(&peers_mutex);
	kfree(fresh);
	return peer;
}

void roan_peer_put(struct roan_peer *peer)
{
	bool last;

	if (!peer)
		return;
	mutex_lock(&peers_mutex);
	last = !--peer->n_qps;
	if (last)
		hlist_del(&peer->on_dev);
	mutex_unlock(&peers_mutex);
	if (last)
		kfree(peer);
}
