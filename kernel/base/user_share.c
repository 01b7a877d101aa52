// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of users: counts what a user holds and refuses more than its share. Which object belongs to which user is
 * known to the code that creates it. Finds a user's part of on-demand paging, but does not limit it: mem/odp_fault.c
 * and rx/rx_kept.c do.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include "base/base.h"

static const int share_limits[ROAN_NUM_SHARES] = {
	[ROAN_SHARE_MCAST]	= ROAN_USER_MCAST_ATTACH,
	[ROAN_SHARE_AH]		= ROAN_USER_AH,
	[ROAN_SHARE_KEY]	= ROAN_USER_KEY,
	[ROAN_SHARE_COMP_CNTR]	= ROAN_USER_COMP_CNTR,
};

static DEFINE_MUTEX(users_mutex);	/* the lists of users */

static kuid_t user_uid(void)
{
	struct user_namespace *ns = current_user_ns(), *outermost = NULL;
	kuid_t uid;

	for (; ns->parent; ns = ns->parent)
		outermost = ns;
	if (!outermost)
		return current_uid();
	if (!uid_eq(outermost->owner, GLOBAL_ROOT_UID))
		return outermost->owner;
	uid = make_kuid(outermost, 0);
	return uid_valid(uid) ? uid : outermost->owner;
}

static struct roan_user *user_alloc(void)
{
	struct roan_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	int job;

	if (!user)
		return NULL;
	refcount_set(&user->refs, 1);
	user->uid = user_uid();
	user->unlimited = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	spin_lock_init(&user->odp.lock);
	for (job = 0; job < ROAN_ODP_JOBS; job++)
		INIT_LIST_HEAD(&user->odp.waiting[job]);
	return user;
}

struct roan_user *roan_user_get(struct roan_dev *dev)
{
	struct roan_user *user, *fresh = user_alloc();

	if (!fresh)	/* not allocated under the mutex: it takes long at a cgroup's limit */
		return NULL;
	mutex_lock(&users_mutex);
	list_for_each_entry(user, &dev->users, on_dev) {
		if (uid_eq(user->uid, fresh->uid) && user->unlimited == fresh->unlimited) {
			refcount_inc(&user->refs);
			goto found;
		}
	}
	user = fresh;
	fresh = NULL;
	list_add(&user->on_dev, &dev->users);
found:
	mutex_unlock(&users_mutex);
	kfree(fresh);
	return user;
}

void roan_user_put(struct roan_user *user)
{
	if (!refcount_dec_and_mutex_lock(&user->refs, &users_mutex))
		return;
	list_del(&user->on_dev);
	mutex_unlock(&users_mutex);
	kfree(user);
}

void roan_users_forget(struct roan_dev *dev)
{
	mutex_lock(&users_mutex);
	list_del_init(&dev->users);	/* users that page faults keep stay linked with each other only */
	mutex_unlock(&users_mutex);
}

struct roan_user *roan_pd_user(const struct ib_pd *pd)
{
	return pd->uobject ? to_roan_ucontext(pd->uobject->context)->user : NULL;
}

struct roan_user *roan_pd_user_get(const struct ib_pd *pd)
{
	struct roan_user *user = roan_pd_user(pd);

	if (!user)
		return roan_user_get(to_roan_dev(pd->device));
	refcount_inc(&user->refs);
	return user;
}

int roan_share_take(struct roan_user *user, enum roan_share what)
{
	if (!user || atomic_add_unless(&user->held[what], 1, user->unlimited ? INT_MAX : share_limits[what]))
		return 0;
	return -ENOMEM;
}

void roan_share_give(struct roan_user *user, enum roan_share what)
{
	if (user)
		atomic_dec(&user->held[what]);
}
