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

struct ib_pd;
struct roan_dev;

enum roan_share {
	ROAN_SHARE_MCAST,	/* attachments of QPs to multicast groups */
	ROAN_SHARE_AH,		/* address handles */
	ROAN_SHARE_KEY,		/* keys: memory regions and memory windows */
	ROAN_SHARE_COMP_CNTR,	/* completion counters */
	ROAN_NUM_SHARES
};

/* A user that has contexts of a device open. The contexts keep it, and outlive the objects that are counted. */
struct roan_user {
	struct list_head on_dev;	/* dev->users */
	kuid_t uid;
	u32 n_contexts;
	atomic_t held[ROAN_NUM_SHARES];
};

/*
 * The account of the calling process. In a user namespace: the account that created the outermost one, as it can have
 * thousands of ids in namespaces of its own (subuid(5)); if root created it, for a container: the container's root.
 */
kuid_t roan_user_uid(void);

/*
 * Finds or creates the user of the calling process. NULL: it has CAP_SYS_RESOURCE, and no limit. ERR_PTR(-ENOMEM).
 * Process context.
 */
struct roan_user *roan_user_get(struct roan_dev *dev);
void roan_user_put(struct roan_user *user);		/* NULL is accepted */

struct roan_user *roan_pd_user(const struct ib_pd *pd);	/* NULL: a kernel consumer's PD, or no limit */

/* Both accept NULL: no limit. Any context. */
int roan_share_take(struct roan_user *user, enum roan_share what);	/* -ENOMEM: the user holds all it may */
void roan_share_give(struct roan_user *user, enum roan_share what);

#endif /* ROAN_USER_SHARE_H */
