// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of users: counts what a user holds and refuses more than its share. Which object belongs to which user is
 * known to the code that creates it.
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

static DEFINE_MUTEX(users_mutex);	/* the lists of users, and how many contexts each has */

kuid_t roan_user_uid(void)
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

static struct roan_user *share_find(struct roan_dev *dev, kuid_t uid)
{
	struct roan_user *user;

	list_for_each_entry(user, &dev->users, on_dev)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

struct roan_user *roan_user_get(struct roan_dev *dev)
{
	struct roan_user *user, *fresh;

	if (ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE))
		return NULL;
	/* Not under the mutex: at a cgroup's limit it takes long. */
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&users_mutex);
	user = share_find(dev, roan_user_uid());
	if (!user) {
		user = fresh;
		fresh = NULL;
		user->uid = roan_user_uid();
		list_add(&user->on_dev, &dev->users);
	}
	user->n_contexts++;
	mutex_unlock(&users_mutex);
	kfree(fresh);
	return user;
}

void roan_user_put(struct roan_user *user)
{
	bool last;

	if (!user)
		return;
	mutex_lock(&users_mutex);
	last = !--user->n_contexts;
	if (last)
		list_del(&user->on_dev);
	mutex_unlock(&users_mutex);
	if (last)
		kfree(user);
}

struct roan_user *roan_pd_user(const struct ib_pd *pd)
{
	return pd->uobject ? to_roan_ucontext(pd->uobject->context)->user : NULL;
}

int roan_share_take(struct roan_user *user, enum roan_share what)
{
	return !user || atomic_add_unless(&user->held[what], 1, share_limits[what]) ? 0 : -ENOMEM;
}

void roan_share_give(struct roan_user *user, enum roan_share what)
{
	if (user)
		atomic_dec(&user->held[what]);
}
