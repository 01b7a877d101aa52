// SPDX-License-Identifier: GPL-2.0
/* Slow start, the first round trip sample, and how losses shrink the window. */
#include "requester_fixture.h"

/* At first, and after a timeout, few packets: the window doubles with each round trip. */
static void start__doubles_the_window(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	roan_requester_reset(&f->r, &rc);
	post(f, ROAN_OP_WRITE, 200 * MTU);
	KUNIT_EXPECT_EQ(test, send_all(f), 16);
	ack(f, 15);
	KUNIT_EXPECT_EQ(test, send_all(f), 32);
	ack(f, 47);
	KUNIT_EXPECT_EQ(test, send_all(f), 64);		/* psn_window */
	ack(f, 111);
	KUNIT_EXPECT_EQ(test, send_all(f), 64);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_all(f), 1);
	ack(f, 112);
	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	ack(f, 114);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
}

/* A timeout before the first round trip was measured: it is not a part of the first sample. */
static void start__sample_has_no_timeout_in_it(struct kunit *test)
{
	struct req_fixture *f = req_fixture(test);

	post(f, ROAN_OP_WRITE, 4 * MTU);
	send_all(f);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	send_all(f);
	ack(f, 3);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, 0);
	post(f, ROAN_OP_WRITE, MTU);
	send_all(f);
	f->now += MS;
	ack(f, 4);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, MS);
}

/* @n packets of which every @nth is lost. */
static void outcome(struct roan_path_window *w, u32 n, u32 nth)
{
	while (n--)
		roan_path_window_count(w, !(n % nth));
}

static void window__shrinks_by_what_did_not_fit(struct kunit *test)
{
	struct roan_path_window w;

	roan_path_window_reset(&w, false, 0);
	w.size = 100 * ROAN_WINDOW_ONE;
	outcome(&w, 99, 4);
	KUNIT_EXPECT_EQ(test, w.size, 100 * ROAN_WINDOW_ONE);
	roan_path_window_count(&w, false);
	KUNIT_EXPECT_EQ(test, w.size, 75 * ROAN_WINDOW_ONE);
	for (int i = 0; i < 100; i++)
		outcome(&w, 10, 2);
	KUNIT_EXPECT_EQ(test, w.size, 4 * ROAN_WINDOW_ONE);
}

/* An eighth is as much as a bad cable loses. */
static void window__stays_with_few_losses(struct kunit *test)
{
	struct roan_path_window w;

	roan_path_window_reset(&w, false, 0);
	outcome(&w, 640, 8);
	KUNIT_EXPECT_EQ(test, w.size, 64 * ROAN_WINDOW_ONE);
	KUNIT_EXPECT_FALSE(test, w.known);
}

/* Long round trips alone: 64 packets are the least. A window that was made smaller by losses shrinks on. */
static void window__long_round_trips(struct kunit *test)
{
	const struct roan_path_sample late = { .n = 1, .ns = 100 * MS, .min_ns = 20000, .mtu_shift = 12 };
	struct roan_path_window w;

	roan_path_window_reset(&w, true, 0);
	for (int i = 0; i < 100; i++)
		roan_path_window_adapt(&w, &late);
	KUNIT_EXPECT_EQ(test, w.size, 64 * ROAN_WINDOW_ONE);
	outcome(&w, 64, 2);
	KUNIT_EXPECT_EQ(test, w.size, 32 * ROAN_WINDOW_ONE);
	for (int i = 0; i < 100; i++)
		roan_path_window_adapt(&w, &late);
	KUNIT_EXPECT_EQ(test, w.size, 4 * ROAN_WINDOW_ONE);
}

static struct kunit_case requester_start_cases[] = {
	KUNIT_CASE(start__doubles_the_window),
	KUNIT_CASE(start__sample_has_no_timeout_in_it),
	KUNIT_CASE(window__shrinks_by_what_did_not_fit),
	KUNIT_CASE(window__stays_with_few_losses),
	KUNIT_CASE(window__long_round_trips),
	{}
};

static struct kunit_suite requester_start_suite = {
	.name = "requester_start",
	.test_cases = requester_start_cases,
};

kunit_test_suite(requester_start_suite);
