// SPDX-License-Identifier: GPL-2.0
/*
 * Finds a user's share of what on-demand paging has for all users of a device. A share belongs to a user and a device,
 * not to a context: a context costs nothing to open, and a page fault that lasts for ever outlives its context. Does
 * not limit anything: odp_fault.c and rx/odp_rxqueue.c do.
 */
#include <linux/mutex.h>
#include <linux/slab.h>
#include "base/user_share.h"
#include "mem/mem.h"
#include "mem/odp_priv.h"

static DEFINE_MUTEX(shares_lock);
static LIST_HEAD(shares);

static struct roan_odp_share *odp_share_find(const struct roan_dev *dev, kuid_t uid)
{
	struct roan_odp_share *share;

	lockdep_assert_held(&shares_lock);
	list_for_each_entry(share, &shares, link) {
		if (share->dev == dev && uid_eq(share->uid, uid))
			return share;
	}
	return NULL;
}

static void odp_share_init(struct roan_odp_share *share, const struct roan_dev *dev, kuid_t uid)
{
	int job;

	lockdep_assert_held(&shares_lock);
	refcount_set(&share->refs, 1);
	share->dev = dev;
	share->uid = uid;
	spin_lock_init(&share->lock);
	for (job = 0; job < ROAN_ODP_JOBS; job++) {
		INIT_LIST_HEAD(&share->waiting[job]);
		INIT_LIST_HEAD(&share->running[job]);
	}
	list_add(&share->link, &shares);
}

struct roan_odp_share *roan_odp_share_get(const struct roan_dev *dev)
{
	struct roan_odp_share *share, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);

	if (!fresh)	/* not allocated under the lock: it takes long at a cgroup's limit */
		return NULL;
	mutex_lock(&shares_lock);
	share = odp_share_find(dev, roan_user_uid());
	if (share) {
		refcount_inc(&share->refs);
	} else {
		share = fresh;
		fresh = NULL;
		odp_share_init(share, dev, roan_user_uid());
	}
	mutex_unlock(&shares_lock);
	kfree(fresh);
	return share;
}

void roan_odp_share_put(struct roan_odp_share *share)
{
	if (!share || !refcount_dec_and_mutex_lock(&share->refs, &shares_lock))
		return;
	list_del(&share->link);
	mutex_unlock(&shares_lock);
	kfree(share);
}
