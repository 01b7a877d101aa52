// SPDX-License-Identifier: GPL-2.0
/* Driver data of verbs: requests and responses of older and newer providers. Needs a kernel, for a user address. */
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include "fakes.h"

/* The first version of this struct ended with @b. @later was appended. */
struct grown_req {
	u64 a, b, later;
};

static u64 __user *user_page(struct kunit *test)
{
	unsigned long at = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
					 MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, at, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(at));
	return (u64 __user *)at;
}

/* KUnit (of 6.12) leaves the thread attached to the page's mm_struct, which is never freed then. */
static void put_user_page(void)
{
	struct mm_struct *mm = current->mm;

	kthread_unuse_mm(mm);
	mmput(mm);
}

static struct grown_req fill(struct kunit *test, u64 __user *at, u64 fourth)
{
	const u64 sent[4] = { 1, 2, 3, fourth };

	KUNIT_ASSERT_EQ(test, copy_to_user(at, sent, sizeof(sent)), 0);
	return (struct grown_req) { 9, 9, 9 };
}

static int get(const u64 __user *at, size_t len, struct grown_req *req)
{
	struct ib_udata udata = { .inbuf = at, .inlen = len };

	return roan_udata_in(&udata, req, b);
}

static void udata_in__older_request_has_zeros_behind(struct kunit *test)
{
	u64 __user *at = user_page(test);
	struct grown_req req = fill(test, at, 0);

	KUNIT_EXPECT_EQ(test, get(at, 16, &req), 0);
	KUNIT_EXPECT_TRUE(test, req.a == 1 && req.b == 2 && req.later == 0);
	put_user_page();
}

static void udata_in__shorter_than_the_first_version(struct kunit *test)
{
	u64 __user *at = user_page(test);
	struct grown_req req = fill(test, at, 0);

	KUNIT_EXPECT_EQ(test, get(at, 15, &req), -EINVAL);
	KUNIT_EXPECT_EQ(test, get(at, 0, &req), -EINVAL);
	put_user_page();
}

static void udata_in__newer_request(struct kunit *test)
{
	u64 __user *at = user_page(test);
	struct grown_req req = fill(test, at, 0);

	KUNIT_EXPECT_EQ(test, get(at, 24, &req), 0);
	KUNIT_EXPECT_EQ(test, req.later, 3);
	KUNIT_EXPECT_EQ(test, get(at, 32, &req), 0);
	KUNIT_EXPECT_EQ(test, req.later, 3);
	req = fill(test, at, 4);
	KUNIT_EXPECT_EQ(test, get(at, 32, &req), -EINVAL);
	put_user_page();
}

static void resp_out__cut_or_filled(struct kunit *test)
{
	const u64 resp[2] = { 5, 6 };
	u64 __user *at = user_page(test);
	u64 got[4];

	fill(test, at, 4);
	KUNIT_EXPECT_EQ(test, roan_resp_out(at, 8, resp, sizeof(resp)), 0);
	KUNIT_ASSERT_EQ(test, copy_from_user(got, at, sizeof(got)), 0);
	KUNIT_EXPECT_TRUE(test, got[0] == 5 && got[1] == 2);
	KUNIT_EXPECT_EQ(test, roan_resp_out(at, 24, resp, sizeof(resp)), 0);
	KUNIT_ASSERT_EQ(test, copy_from_user(got, at, sizeof(got)), 0);
	KUNIT_EXPECT_TRUE(test, got[0] == 5 && got[1] == 6 && got[2] == 0 && got[3] == 4);
	put_user_page();
}

static struct kunit_case udata_cases[] = {
	KUNIT_CASE(udata_in__older_request_has_zeros_behind),
	KUNIT_CASE(udata_in__shorter_than_the_first_version),
	KUNIT_CASE(udata_in__newer_request),
	KUNIT_CASE(resp_out__cut_or_filled),
	{}
};

static struct kunit_suite udata_suite = { .name = "roan_udata", .test_cases = udata_cases };
kunit_test_suite(udata_suite);
