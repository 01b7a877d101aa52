/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shares: some objects exist in a fixed number per device; one user may hold a share of them, so that others get some.
 * A user is an account of the host, with however many processes and contexts. Memory is not limited here: it is charged
 * to the memory cgroup.
 */
#ifndef ROAN_USER_SHARE_H
#define ROAN_USER_SHARE_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include "mem/mem_types.h"

struct ib_pd;
struct roan_dev;

enum roan_share {
	ROAN_SHARE_MCAST,	/* attachments of QPs to multicast groups */
	ROAN_SHARE_AH,		/* address handles */
	ROAN_SHARE_KEY,		/* keys: memory regions and memory windows */
	ROAN_SHARE_COMP_CNTR,	/* completion counters */
	ROAN_NUM_SHARES
};

/*
 * A user of a device. Its contexts outlive the objects that are counted. A page fault that never ends may keep it
 * longer than the device: roan_users_forget().
 */
struct roan_user {
	struct list_head on_dev;	/* dev->users, while there is a device; user_share.c: users_mutex */
	refcount_t refs;		/* contexts, and on-demand regions: struct roan_odp */
	kuid_t uid;			/* const */
	bool unlimited;			/* CAP_SYS_RESOURCE: no limit of @held; const */
	atomic_t held[ROAN_NUM_SHARES];
	struct roan_odp_share odp;
};

/*
 * Finds or creates the user of the calling process: its account, and whether it has CAP_SYS_RESOURCE. In a user
 * namespace: the account that created the outermost one, as it can have thousands of ids in namespaces of its own
 * (subuid(5)); if root created it, for a container: the container's root. NULL: no memory. Process context.
 */
struct roan_user *roan_user_get(struct roan_dev *dev);
void roan_user_put(struct roan_user *user);		/* process context */
void roan_users_forget(struct roan_dev *dev);		/* @dev goes away: takes its users off dev->users */

struct roan_user *roan_pd_user(const struct ib_pd *pd);	/* NULL: a kernel consumer's PD */
/* With a reference. A kernel consumer's PD: the user of the calling process. NULL: no memory. Process context. */
struct roan_user *roan_pd_user_get(const struct ib_pd *pd);

/* Both accept NULL: no limit. Any context. */
int roan_share_take(struct roan_user *user, enum roan_share what);	/* -ENOMEM: the user holds all it may */
void roan_share_give(struct roan_user *user, enum roan_share what);

#endif /* ROAN_USER_SHARE_H */
