// SPDX-License-Identifier: GPL-2.0
/*
 * Runs every registered suite and prints KTAP. The cases run in one process, one after another: a crash ends the run.
 */
#include <kunit/test.h>

#define MAX_SUITES 64

static struct kunit_suite *suites[MAX_SUITES];
static int suite_count;

void kunit_register(struct kunit_suite *suite)
{
	if (suite_count == MAX_SUITES)
		abort();
	suites[suite_count++] = suite;
}

void kunit_fail(struct kunit *test, bool leave, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("    # %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	test->failed = true;
	if (leave)
		longjmp(test->leave, 1);
}

void kunit_skip(struct kunit *test, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(test->skipped, sizeof(test->skipped), fmt, ap);
	va_end(ap);
	longjmp(test->leave, 1);
}

void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	void *p = calloc(1, size);

	(void)gfp;
	test->owned = realloc(test->owned, (test->owned_count + 1) * sizeof(void *));
	if (!p || !test->owned)
		abort();
	test->owned[test->owned_count++] = p;
	return p;
}

/* @skipped: 80 bytes for the reason of a skipped case; otherwise unchanged. */
static bool run_once(struct kunit_suite *suite, struct kunit_case *c, const void *param, char *skipped)
{
	struct kunit test = { .param_value = param };

	if (!setjmp(test.leave)) {
		if (suite->init && suite->init(&test))
			kunit_fail(&test, true, suite->name, 0, "init failed");
		c->run_case(&test);
	}
	if (suite->exit)
		suite->exit(&test);
	for (size_t i = 0; i < test.owned_count; i++)
		free(test.owned[i]);
	free(test.owned);
	if (test.skipped[0])
		strcpy(skipped, test.skipped);
	return !test.failed;
}

static bool run_case(struct kunit_suite *suite, struct kunit_case *c, char *skipped)
{
	char desc[KUNIT_PARAM_DESC_SIZE] = "";
	const void *param = NULL;
	bool ok = true;

	if (!c->generate_params)
		return run_once(suite, c, NULL, skipped);
	while ((param = c->generate_params(param, desc))) {
		if (!run_once(suite, c, param, skipped)) {
			printf("    # with %s\n", desc);
			ok = false;
		}
		desc[0] = 0;
	}
	return ok;
}

int main(void)
{
	int cases = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%d\n", suite_count);
	for (int i = 0; i < suite_count; i++) {
		struct kunit_suite *suite = suites[i];
		int n = 0, bad = 0;

		printf("    KTAP version 1\n    # Subtest: %s\n", suite->name);
		if (suite->suite_init && suite->suite_init(suite))
			bad++;
		for (struct kunit_case *c = suite->test_cases; !bad && c->run_case; c++, n++)
			;
		printf("    1..%d\n", n);
		for (int k = 0; k < n; k++) {
			char skipped[80] = "";
			bool ok = run_case(suite, &suite->test_cases[k], skipped);

			printf("    %sok %d %s%s%s\n", ok ? "" : "not ", k + 1, suite->test_cases[k].name,
			       skipped[0] ? " # SKIP " : "", skipped);
			bad += !ok;
		}
		if (suite->suite_exit)
			suite->suite_exit(suite);
		printf("%sok %d %s\n", bad ? "not " : "", i + 1, suite->name);
		cases += n;
		failed += bad;
	}
	printf("# %d suites, %d cases, %d failed\n", suite_count, cases, failed);
	return failed || !cases;
}
