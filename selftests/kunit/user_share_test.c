// SPDX-License-Identifier: GPL-2.0
/* Shares of a user: how many it may hold, and who has none. Needs a kernel. */
#include <linux/capability.h>
#include <linux/cred.h>
#include "fakes.h"

static void share_take__ends_at_the_limit(struct kunit *test)
{
	struct roan_user user = {};
	int i;

	for (i = 0; i < ROAN_USER_MCAST_ATTACH; i++)
		KUNIT_ASSERT_EQ(test, roan_share_take(&user, ROAN_SHARE_MCAST), 0);
	KUNIT_EXPECT_EQ(test, roan_share_take(&user, ROAN_SHARE_MCAST), -ENOMEM);
	KUNIT_EXPECT_EQ(test, roan_share_take(&user, ROAN_SHARE_AH), 0);	/* each kind by itself */
	roan_share_give(&user, ROAN_SHARE_MCAST);
	KUNIT_EXPECT_EQ(test, roan_share_take(&user, ROAN_SHARE_MCAST), 0);
	KUNIT_EXPECT_EQ(test, roan_share_take(&user, ROAN_SHARE_MCAST), -ENOMEM);
}

static void share_take__nobody_has_no_limit(struct kunit *test)
{
	int i;

	for (i = 0; i <= ROAN_USER_MCAST_ATTACH; i++)
		KUNIT_ASSERT_EQ(test, roan_share_take(NULL, ROAN_SHARE_MCAST), 0);
	roan_share_give(NULL, ROAN_SHARE_MCAST);
}

/* The calling thread as this user, without capabilities. */
static struct roan_user *get_as(struct kunit *test, struct roan_dev *dev, unsigned int uid)
{
	const struct cred *before;
	struct roan_user *user;
	struct cred *cred = prepare_creds();

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cred->uid = KUIDT_INIT(uid);
	cap_clear(cred->cap_effective);
	before = override_creds(cred);
	user = roan_user_get(dev);
	revert_creds(before);
	put_cred(cred);
	return user;
}

static void user_get__counts_contexts_of_an_account_together(struct kunit *test)
{
	struct roan_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct roan_user *a, *b;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	INIT_LIST_HEAD(&dev->users);
	a = get_as(test, dev, 2001);
	b = get_as(test, dev, 2002);
	KUNIT_ASSERT_FALSE(test, !a || !b);
	KUNIT_EXPECT_PTR_NE(test, a, b);
	KUNIT_EXPECT_PTR_EQ(test, get_as(test, dev, 2001), a);
	roan_user_put(a);
	roan_user_put(b);
	KUNIT_EXPECT_PTR_EQ(test, get_as(test, dev, 2001), a);	/* one context is still open */
	roan_user_put(a);
	roan_user_put(a);
	KUNIT_EXPECT_TRUE(test, list_empty(&dev->users));
}

static void user_get__capable_process_has_no_limit(struct kunit *test)
{
	struct roan_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct roan_user *all, *root;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	INIT_LIST_HEAD(&dev->users);
	all = roan_user_get(dev);	/* the test's thread has all capabilities */
	root = get_as(test, dev, 0);
	KUNIT_ASSERT_FALSE(test, !all || !root);
	KUNIT_EXPECT_PTR_NE(test, all, root);
	for (i = 0; i <= ROAN_USER_MCAST_ATTACH; i++)
		KUNIT_ASSERT_EQ(test, roan_share_take(all, ROAN_SHARE_MCAST), 0);
	roan_user_put(root);
	roan_user_put(all);
	KUNIT_EXPECT_TRUE(test, list_empty(&dev->users));
}

/* A page fault keeps users; a later device may have the address of theirs. */
static void users_forget__later_device_has_users_of_its_own(struct kunit *test)
{
	struct roan_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct roan_user *a, *b, *later;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	INIT_LIST_HEAD(&dev->users);
	a = get_as(test, dev, 2001);
	b = get_as(test, dev, 2002);
	roan_users_forget(dev);
	memset(dev, 0xff, sizeof(*dev));
	INIT_LIST_HEAD(&dev->users);
	later = get_as(test, dev, 2001);
	KUNIT_ASSERT_FALSE(test, !a || !b || !later);
	KUNIT_EXPECT_PTR_NE(test, later, a);
	roan_user_put(a);
	roan_user_put(b);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&dev->users, struct roan_user, on_dev), later);
	roan_user_put(later);
	KUNIT_EXPECT_TRUE(test, list_empty(&dev->users));
}

static struct kunit_case share_cases[] = {
	KUNIT_CASE(share_take__ends_at_the_limit),
	KUNIT_CASE(share_take__nobody_has_no_limit),
	KUNIT_CASE(user_get__counts_contexts_of_an_account_together),
	KUNIT_CASE(user_get__capable_process_has_no_limit),
	KUNIT_CASE(users_forget__later_device_has_users_of_its_own),
	{}
};

static struct kunit_suite share_suite = { .name = "roan_user_share", .test_cases = share_cases };
kunit_test_suite(share_suite);
