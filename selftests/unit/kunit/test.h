/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of KUnit that the pure suites use, for userspace: the same suite files build against this header and against
 * the kernel's <kunit/test.h>. A failed EXPECT is recorded and the case continues; a failed ASSERT ends the case. Not
 * supported: fixtures other than init and exit, test-managed resources other than kunit_kzalloc().
 */
#ifndef ROAN_UNIT_KUNIT_H
#define ROAN_UNIT_KUNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include "../../../kernel/core/core_env.h"

#define KUNIT_PARAM_DESC_SIZE	128
#define GFP_KERNEL		0
#define MODULE_LICENSE(x)
#define MODULE_DESCRIPTION(x)

struct kunit {
	void *priv;
	const void *param_value;
	bool failed;
	char skipped[80];	/* reason; empty: not skipped */
	jmp_buf leave;
	void **owned;
	size_t owned_count;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
};

struct kunit_suite {
	const char *name;
	int (*suite_init)(struct kunit_suite *suite);
	void (*suite_exit)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(f)		{ .run_case = f, .name = #f }
#define KUNIT_CASE_SLOW(f)	KUNIT_CASE(f)
#define KUNIT_CASE_PARAM(f, gen) { .run_case = f, .name = #f, .generate_params = gen }

#define KUNIT_ARRAY_PARAM(name, array, get_desc)			\
static const void *name##_gen_params(const void *prev, char *desc)	\
{									\
	typeof((array)[0]) *next = prev ? (typeof(next))prev + 1 : (array);	\
	void (*describe)(typeof(next), char *) = get_desc;		\
									\
	if (next - (array) >= (ptrdiff_t)ARRAY_SIZE(array))		\
		return NULL;						\
	if (describe)							\
		describe(next, desc);					\
	return next;							\
}

void kunit_register(struct kunit_suite *suite);
void kunit_fail(struct kunit *test, bool leave, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void kunit_skip(struct kunit *test, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
void *kunit_kzalloc(struct kunit *test, size_t size, int gfp);

#define kunit_kmalloc(test, size, gfp)	kunit_kzalloc(test, size, gfp)
#define kunit_kcalloc(test, n, size, gfp) kunit_kzalloc(test, (size_t)(n) * (size), gfp)
#define kunit_info(test, fmt, ...)	printf("# " fmt "\n", ##__VA_ARGS__)

#define kunit_test_suite(suite)						\
static __attribute__((constructor)) void register_##suite(void)		\
{									\
	kunit_register(&suite);						\
}

#define KUNIT_CHECK_(test, leave, ok, fmt, ...)				\
	do {								\
		if (!(ok))						\
			kunit_fail(test, leave, __FILE__, __LINE__, fmt, ##__VA_ARGS__);	\
	} while (0)

#define KUNIT_BINARY_(test, leave, a, op, b, fmt, ...)			\
	do {								\
		const typeof((a) + 0) a_ = (a);				\
		const typeof((b) + 0) b_ = (b);				\
									\
		KUNIT_CHECK_(test, leave, a_ op b_, "%s " #op " %s (%lld, %lld) " fmt, #a, #b,	\
			     (long long)a_, (long long)b_, ##__VA_ARGS__);	\
	} while (0)

#define KUNIT_EXPECT_EQ(t, a, b)	KUNIT_BINARY_(t, false, a, ==, b, "")
#define KUNIT_EXPECT_NE(t, a, b)	KUNIT_BINARY_(t, false, a, !=, b, "")
#define KUNIT_EXPECT_LT(t, a, b)	KUNIT_BINARY_(t, false, a, <, b, "")
#define KUNIT_EXPECT_LE(t, a, b)	KUNIT_BINARY_(t, false, a, <=, b, "")
#define KUNIT_EXPECT_GT(t, a, b)	KUNIT_BINARY_(t, false, a, >, b, "")
#define KUNIT_EXPECT_GE(t, a, b)	KUNIT_BINARY_(t, false, a, >=, b, "")
#define KUNIT_ASSERT_EQ(t, a, b)	KUNIT_BINARY_(t, true, a, ==, b, "")
#define KUNIT_ASSERT_NE(t, a, b)	KUNIT_BINARY_(t, true, a, !=, b, "")
#define KUNIT_ASSERT_LT(t, a, b)	KUNIT_BINARY_(t, true, a, <, b, "")
#define KUNIT_ASSERT_LE(t, a, b)	KUNIT_BINARY_(t, true, a, <=, b, "")
#define KUNIT_ASSERT_GT(t, a, b)	KUNIT_BINARY_(t, true, a, >, b, "")
#define KUNIT_ASSERT_GE(t, a, b)	KUNIT_BINARY_(t, true, a, >=, b, "")
#define KUNIT_EXPECT_EQ_MSG(t, a, b, ...) KUNIT_BINARY_(t, false, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_NE_MSG(t, a, b, ...) KUNIT_BINARY_(t, false, a, !=, b, __VA_ARGS__)
#define KUNIT_EXPECT_LT_MSG(t, a, b, ...) KUNIT_BINARY_(t, false, a, <, b, __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(t, a, b, ...) KUNIT_BINARY_(t, false, a, <=, b, __VA_ARGS__)
#define KUNIT_EXPECT_GT_MSG(t, a, b, ...) KUNIT_BINARY_(t, false, a, >, b, __VA_ARGS__)
#define KUNIT_EXPECT_GE_MSG(t, a, b, ...) KUNIT_BINARY_(t, false, a, >=, b, __VA_ARGS__)
#define KUNIT_ASSERT_EQ_MSG(t, a, b, ...) KUNIT_BINARY_(t, true, a, ==, b, __VA_ARGS__)
#define KUNIT_ASSERT_NE_MSG(t, a, b, ...) KUNIT_BINARY_(t, true, a, !=, b, __VA_ARGS__)

#define KUNIT_EXPECT_TRUE(t, c)		KUNIT_CHECK_(t, false, c, "%s is false", #c)
#define KUNIT_EXPECT_FALSE(t, c)	KUNIT_CHECK_(t, false, !(c), "%s is true", #c)
#define KUNIT_ASSERT_TRUE(t, c)		KUNIT_CHECK_(t, true, c, "%s is false", #c)
#define KUNIT_ASSERT_FALSE(t, c)	KUNIT_CHECK_(t, true, !(c), "%s is true", #c)
#define KUNIT_EXPECT_TRUE_MSG(t, c, ...)  KUNIT_CHECK_(t, false, c, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE_MSG(t, c, ...) KUNIT_CHECK_(t, false, !(c), __VA_ARGS__)
#define KUNIT_ASSERT_TRUE_MSG(t, c, ...)  KUNIT_CHECK_(t, true, c, __VA_ARGS__)
#define KUNIT_ASSERT_FALSE_MSG(t, c, ...) KUNIT_CHECK_(t, true, !(c), __VA_ARGS__)
#define KUNIT_EXPECT_NULL(t, p)		KUNIT_CHECK_(t, false, !(p), "%s is not NULL", #p)
#define KUNIT_EXPECT_NOT_NULL(t, p)	KUNIT_CHECK_(t, false, p, "%s is NULL", #p)
#define KUNIT_ASSERT_NULL(t, p)		KUNIT_CHECK_(t, true, !(p), "%s is not NULL", #p)
#define KUNIT_ASSERT_NOT_NULL(t, p)	KUNIT_CHECK_(t, true, p, "%s is NULL", #p)
#define KUNIT_EXPECT_PTR_EQ(t, a, b)	KUNIT_CHECK_(t, false, (a) == (b), "%s is not %s", #a, #b)
#define KUNIT_EXPECT_PTR_NE(t, a, b)	KUNIT_CHECK_(t, false, (a) != (b), "%s is %s", #a, #b)
#define KUNIT_EXPECT_STREQ(t, a, b)	KUNIT_CHECK_(t, false, !strcmp(a, b), "\"%s\" != \"%s\"", a, b)
#define KUNIT_EXPECT_MEMEQ(t, a, b, n)	KUNIT_CHECK_(t, false, !memcmp(a, b, n), "%s and %s differ", #a, #b)
#define KUNIT_ASSERT_MEMEQ(t, a, b, n)	KUNIT_CHECK_(t, true, !memcmp(a, b, n), "%s and %s differ", #a, #b)
#define KUNIT_FAIL(t, ...)		kunit_fail(t, false, __FILE__, __LINE__, __VA_ARGS__)

#endif /* ROAN_UNIT_KUNIT_H */
