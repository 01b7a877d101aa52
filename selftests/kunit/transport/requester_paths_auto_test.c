// SPDX-License-Identifier: GPL-2.0
/* A QP that finds out itself how many paths it uses: kernel/core/transport/requester_paths_auto.c. */
#include "requester_sack_fixture.h"

#define MSG_PKTS	16

/* A requester that may use several paths, and what a network gives it. */
struct auto_fixture {
	struct req_fixture *f;
	struct roan_paths *memory;
	u32 us_one, us_several;		/* to send and acknowledge a window of packets */
	u32 us_idle;			/* before the next window */
	u32 msg_len;
};

static struct auto_fixture *auto_fixture(struct kunit *test, u32 us_one, u32 us_several)
{
	struct auto_fixture *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	KUNIT_ASSERT_NOT_NULL(test, a);
	cfg.sack = true;
	cfg.mtu_shift = SACK_MTU_SHIFT;
	f = req_fixture_with(test, cfg);
	f->r.min_rtt = kunit_kzalloc(test, sizeof(*f->r.min_rtt), GFP_KERNEL);
	f->r.auto_paths = kunit_kzalloc(test, sizeof(*f->r.auto_paths), GFP_KERNEL);
	a->memory = kunit_kzalloc(test, roan_paths_size(ROAN_AUTO_PATHS), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->r.min_rtt);
	KUNIT_ASSERT_NOT_NULL(test, f->r.auto_paths);
	KUNIT_ASSERT_NOT_NULL(test, a->memory);
	roan_requester_reset(&f->r, &cfg);
	*a = (struct auto_fixture) {
		.f = f, .memory = a->memory, .us_one = us_one, .us_several = us_several,
		.msg_len = MSG_PKTS << SACK_MTU_SHIFT,
	};
	return a;
}

static bool by_several(const struct auto_fixture *a)
{
	return roan_paths_in_use(a->f->r.paths) > 1;
}

/* A window of packets is sent and acknowledged. */
static void window(struct auto_fixture *a)
{
	struct req_fixture *f = a->f;

	while (retired(f) >= 0)
		;
	while (f->r.tail - f->r.retire < SLOTS)
		post(f, ROAN_OP_WRITE, a->msg_len);
	send_all(f);
	f->now += (by_several(a) ? a->us_several : a->us_one) * NSEC_PER_USEC;
	ack(f, psn_diff(f->r.end_psn, PSN0) - 1);
	if (roan_requester_wants_paths(&f->r))
		roan_requester_give_paths(&f->r, a->memory);
	f->now += a->us_idle * NSEC_PER_USEC;
}

static void windows(struct auto_fixture *a, u32 n)
{
	while (n--)
		window(a);
}

/* Until epoch @epoch begins, for 100 ms at most. */
static void until_epoch(struct kunit *test, struct auto_fixture *a, u8 epoch)
{
	u64 end = a->f->now + 100 * NSEC_PER_MSEC;

	while (a->f->r.auto_paths->epoch != epoch) {
		window(a);
		KUNIT_ASSERT_LT(test, a->f->now, end);
	}
}

static void trial__begins_when_the_qp_was_busy(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 100);

	until_epoch(test, a, 1);
	KUNIT_EXPECT_GE(test, psn_diff(a->f->r.una_psn, PSN0), (4 << 20) >> SACK_MTU_SHIFT);
	KUNIT_EXPECT_GE(test, a->f->now, 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->n_trials, 1u);
	KUNIT_EXPECT_PTR_EQ(test, a->f->r.paths, a->memory);
}

static void trial__does_not_begin_with_small_messages(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 100);

	a->msg_len = (1 << SACK_MTU_SHIFT) / 2 - 1;
	windows(a, 5000);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->n_trials, 0u);
	a->msg_len++;
	windows(a, 5000);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->n_trials, 1u);
}

static void trial__does_not_begin_if_the_qp_is_idle_now_and_then(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 25);

	a->us_idle = 10;
	windows(a, 5000);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->n_trials, 0u);
	KUNIT_EXPECT_NULL(test, a->f->r.paths);
}

static void trial__needs_sacks_and_a_small_window(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 25);

	a->f->r.cfg.sack = false;
	windows(a, 1000);
	a->f->r.cfg.sack = true;
	a->f->r.cfg.psn_window = ROAN_PATH_PSNS + 1;
	windows(a, 1000);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->n_trials, 0u);
	a->f->r.cfg.psn_window = ROAN_PATH_PSNS;
	windows(a, 1000);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->n_trials, 1u);
}

static void trial__uses_one_path_and_several_by_turns(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 25);
	u8 epoch;

	for (epoch = 1; epoch <= 9; epoch++) {
		until_epoch(test, a, epoch);
		KUNIT_EXPECT_EQ(test, by_several(a), !(epoch % 2));
		window(a);
		KUNIT_EXPECT_TRUE(test, epoch % 2 == 0 || !a->f->e.path);
	}
}

static void trial__chooses_several_if_each_epoch_brings_more(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 85);

	until_epoch(test, a, 9);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_TRUE(test, by_several(a));
	KUNIT_EXPECT_TRUE(test, a->f->r.auto_paths->several);
	windows(a, 20);
	KUNIT_EXPECT_EQ(test, a->memory->n, ROAN_AUTO_PATHS);
}

static void trial__ends_with_the_first_epoch_that_brings_no_more(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 95);

	until_epoch(test, a, 2);
	until_epoch(test, a, 9);
	KUNIT_EXPECT_EQ(test, a->f->r.paths->n, ROAN_AUTO_PATHS);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_FALSE(test, a->f->r.auto_paths->several);
	KUNIT_EXPECT_NULL(test, a->f->r.paths);	/* there was no window before */
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->next_at, a->f->now + NSEC_PER_SEC);
}

static void trial__compares_with_the_time_before(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);

	until_epoch(test, a, 1);
	a->us_one = 200;	/* as others that have no window take more from a QP that has one */
	a->us_several = 100;
	until_epoch(test, a, 9);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_FALSE(test, a->f->r.auto_paths->several);
}

static void trial__keeps_the_window_of_a_qp_that_had_one(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 100);

	window(a);
	roan_requester_give_paths(&a->f->r, a->memory);
	roan_requester_set_paths(&a->f->r, a->memory);
	until_epoch(test, a, 2);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_PTR_EQ(test, a->f->r.paths, a->memory);
	KUNIT_EXPECT_EQ(test, a->memory->n, 1u);
}

static void trial__repeats_an_epoch_in_which_the_qp_was_idle(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);
	u32 i;

	until_epoch(test, a, 2);
	a->us_idle = 50;
	for (i = 0; i < 100 && !a->f->r.auto_paths->repeats; i++)
		window(a);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->epoch, 2);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->repeats, 1);
	a->us_idle = 0;
	until_epoch(test, a, 9);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_TRUE(test, a->f->r.auto_paths->several);
}

static void trial__is_given_up_if_the_qp_is_idle_too_often(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);

	until_epoch(test, a, 2);
	a->us_idle = 50;
	until_epoch(test, a, 9);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_FALSE(test, a->f->r.auto_paths->several);
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->next_at, a->f->now + NSEC_PER_SEC - a->us_idle * NSEC_PER_USEC);
}

/* The next trial is later each time that it changes nothing. */
static void trial__returns_to_one_path_if_several_bring_no_more(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);
	struct roan_auto_paths *state = a->f->r.auto_paths;

	until_epoch(test, a, 2);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_EQ(test, state->next_at, a->f->now + NSEC_PER_SEC);
	a->f->now += NSEC_PER_SEC;
	until_epoch(test, a, 2);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_TRUE(test, state->several);
	KUNIT_EXPECT_EQ(test, state->next_at, a->f->now + 2 * NSEC_PER_SEC);
	a->us_several = 100;
	a->f->now += 2 * NSEC_PER_SEC;
	until_epoch(test, a, 2);
	until_epoch(test, a, 0);
	KUNIT_EXPECT_FALSE(test, state->several);
	KUNIT_EXPECT_NULL(test, a->f->r.paths);
	KUNIT_EXPECT_EQ(test, state->next_at, a->f->now + NSEC_PER_SEC);
}

/* All packets that were sent to it by several paths are answered before there is one again. */
static void timeout__ends_a_trial(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);

	until_epoch(test, a, 4);
	post(a->f, ROAN_OP_WRITE, a->msg_len);
	send_all(a->f);
	a->f->r.holes = NULL;	/* otherwise a SACK is asked for, twice and more */
	while (a->f->r.auto_paths->epoch == 4) {
		a->f->now = roan_requester_deadline(&a->f->r);
		KUNIT_ASSERT_NE(test, roan_requester_timer(&a->f->r, a->f->now), ROAN_EV_FAILED);
		send_all(a->f);
	}
	KUNIT_EXPECT_EQ(test, a->f->r.auto_paths->epoch, 9);
	KUNIT_EXPECT_FALSE(test, by_several(a));
	until_epoch(test, a, 0);
	KUNIT_EXPECT_FALSE(test, a->f->r.auto_paths->several);
}

static void timeout__leaves_several_in_use(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);

	until_epoch(test, a, 2);
	until_epoch(test, a, 0);
	a->f->now += NSEC_PER_SEC;
	until_epoch(test, a, 1);
	KUNIT_EXPECT_FALSE(test, by_several(a));
	send_all(a->f);
	while (a->f->r.auto_paths->epoch) {
		a->f->now = roan_requester_deadline(&a->f->r);
		KUNIT_ASSERT_NE(test, roan_requester_timer(&a->f->r, a->f->now), ROAN_EV_FAILED);
		send_all(a->f);
	}
	KUNIT_EXPECT_TRUE(test, by_several(a));
}

static void trial__does_not_choose_a_path_that_failed_in_it(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);

	until_epoch(test, a, 2);
	until_epoch(test, a, 0);
	a->us_several = 100;
	a->f->now += NSEC_PER_SEC;
	until_epoch(test, a, 1);
	a->memory->path[0].failed = true;	/* so others take its packets */
	a->memory->probe_at = U64_MAX;
	a->memory->n_failed = 1;
	until_epoch(test, a, 0);
	KUNIT_EXPECT_TRUE(test, a->f->r.auto_paths->several);
	KUNIT_EXPECT_TRUE(test, by_several(a));
}

static void reset__forgets_what_was_chosen(struct kunit *test)
{
	struct auto_fixture *a = auto_fixture(test, 100, 50);
	struct roan_requester_cfg cfg = a->f->r.cfg;

	until_epoch(test, a, 2);
	until_epoch(test, a, 0);
	roan_requester_reset(&a->f->r, &cfg);
	KUNIT_EXPECT_NULL(test, a->f->r.paths);
	KUNIT_EXPECT_FALSE(test, a->f->r.auto_paths->several);
	KUNIT_EXPECT_PTR_EQ(test, a->f->r.auto_paths->memory, a->memory);
}

static struct kunit_case requester_paths_auto_cases[] = {
	KUNIT_CASE(trial__begins_when_the_qp_was_busy),
	KUNIT_CASE(trial__does_not_begin_with_small_messages),
	KUNIT_CASE(trial__does_not_begin_if_the_qp_is_idle_now_and_then),
	KUNIT_CASE(trial__needs_sacks_and_a_small_window),
	KUNIT_CASE(trial__uses_one_path_and_several_by_turns),
	KUNIT_CASE(trial__chooses_several_if_each_epoch_brings_more),
	KUNIT_CASE(trial__ends_with_the_first_epoch_that_brings_no_more),
	KUNIT_CASE(trial__compares_with_the_time_before),
	KUNIT_CASE(trial__keeps_the_window_of_a_qp_that_had_one),
	KUNIT_CASE(trial__repeats_an_epoch_in_which_the_qp_was_idle),
	KUNIT_CASE(trial__is_given_up_if_the_qp_is_idle_too_often),
	KUNIT_CASE(trial__returns_to_one_path_if_several_bring_no_more),
	KUNIT_CASE(timeout__ends_a_trial),
	KUNIT_CASE(timeout__leaves_several_in_use),
	KUNIT_CASE(trial__does_not_choose_a_path_that_failed_in_it),
	KUNIT_CASE(reset__forgets_what_was_chosen),
	{}
};

static struct kunit_suite requester_paths_auto_suite = {
	.name = "requester_paths_auto",
	.test_cases = requester_paths_auto_cases,
};

kunit_test_suite(requester_paths_auto_suite);
