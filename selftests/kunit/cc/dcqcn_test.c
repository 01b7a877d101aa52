// SPDX-License-Identifier: GPL-2.0
/* DCQCN's rules one by one, with values computed by hand. Rate increases and event sequences: dcqcn_rise_test.c. */
#include "dcqcn_fixture.h"

#define ALPHA(n)	((n) << 20)	/* of 1/1024 */

static u32 alpha(const struct rig *r, u64 now)
{
	struct roan_cc_state state;

	roan_cc_state(&r->cc, now, &state);
	return state.alpha;
}

/* ---- before and at the first CNP ---- */

static void start__nothing_is_limited_or_wanted(struct kunit *test)
{
	static const enum roan_cc_algo both[] = { ROAN_CC_DCQCN, ROAN_CC_DCQCN_MLX };
	struct roan_cc_state state;
	struct rig r;

	for (u32 i = 0; i < ARRAY_SIZE(both); i++) {
		start(&r, both[i]);
		KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
		KUNIT_EXPECT_EQ(test, r.cc.cwnd, 0);
		KUNIT_EXPECT_EQ(test, r.cc.event_mask, 0);
		KUNIT_EXPECT_FALSE(test, roan_cc_sent(&r.cc, 1 << 30, T0 + 1));
		KUNIT_EXPECT_FALSE(test, roan_cc_elapsed(&r.cc, T0 + NSEC_PER_SEC));
		KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), 0);
		roan_cc_state(&r.cc, T0 + NSEC_PER_SEC, &state);
		KUNIT_EXPECT_EQ(test, state.alpha, 0);
		KUNIT_EXPECT_EQ(test, state.target, 0);
	}
}

/* alpha 1023/1024: the cut leaves (1 - 1023/2048) of the line rate; then alpha = 1023/1024 * 1020/1024 + 4/1024. */
static void paper_cnp__first_halves_the_line_rate(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN);
	KUNIT_EXPECT_TRUE(test, roan_cc_cnp(&r.cc, T0));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 20019531250ULL);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 40 * GBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.alpha, ALPHA(1023) / 1024 * 1020 + ALPHA(4));
	KUNIT_EXPECT_EQ(test, r.cc.event_mask, ROAN_CC_EVENT_SENT | ROAN_CC_EVENT_TIME);
	KUNIT_EXPECT_EQ(test, r.cc.cnps, 1);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + 55 * US);
}

/* dcqcn-mlx cuts at the end of the first 4 us; until then the rate is the line rate. */
static void mlx_cnp__first_cuts_at_the_end_of_the_period(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN_MLX);
	KUNIT_EXPECT_TRUE(test, roan_cc_cnp(&r.cc, T0));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 40 * GBPS);
	KUNIT_EXPECT_FALSE(test, roan_cc_elapsed(&r.cc, T0 + 4 * US - 1));
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 0);
	KUNIT_EXPECT_TRUE(test, roan_cc_elapsed(&r.cc, T0 + 4 * US));
	/* alpha 1023/1024, four updates down: 1003; the cut takes half of that share */
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 4 * US), 1003);
	KUNIT_EXPECT_GE(test, r.cc.rate, 40 * GBPS - 19609 * MBPS);
	KUNIT_EXPECT_LE(test, r.cc.rate, 40 * GBPS - 19589 * MBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 40 * GBPS);	/* no increase came before: not clamped */
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + 304 * US);
	KUNIT_EXPECT_FALSE(test, roan_cc_elapsed(&r.cc, T0 + 8 * US));
}

static void cnp__first_with_a_preset_sets_and_does_not_cut(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN_MLX);
	r.params.rate_to_set_on_first_cnp = 34000;
	roan_cc_cnp(&r.cc, T0);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 34 * GBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 34 * GBPS);
	roan_cc_elapsed(&r.cc, T0 + 200 * US);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 0);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 34 * GBPS);
	roan_cc_cnp(&r.cc, T0 + 200 * US);	/* no longer the first: it cuts */
	roan_cc_elapsed(&r.cc, T0 + 204 * US);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
	KUNIT_EXPECT_LT(test, r.cc.rate, 34 * GBPS);

	start(&r, ROAN_CC_DCQCN);
	r.params.rate_to_set_on_first_cnp = 50000;	/* above the line rate: limiting ends at once */
	roan_cc_cnp(&r.cc, T0);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
}

/* ---- cuts ---- */

static void cut__takes_half_of_alpha_or_all(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 10 * GBPS);
	r.cc.dcqcn.alpha = ALPHA(256);
	r.cc.dcqcn.alpha_at = T0 + 1;
	KUNIT_EXPECT_TRUE(test, roan_cc_cnp(&r.cc, T0 + 1));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 7 * GBPS);

	r.params.rpg_gd = 10;
	r.cc.dcqcn.alpha = ALPHA(256);
	roan_cc_cnp(&r.cc, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 5250 * MBPS);
}

static void cut__leaves_min_dec_fac(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 10 * GBPS);
	r.params.rpg_min_dec_fac = 90;
	r.cc.dcqcn.alpha = ALPHA(1024);
	r.cc.dcqcn.alpha_at = T0 + 1;
	roan_cc_cnp(&r.cc, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 7200 * MBPS);
	r.params.rpg_min_dec_fac = 100;
	roan_cc_cnp(&r.cc, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 7200 * MBPS);
}

static void cut__stops_at_the_floor(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 11 * MBPS, 11 * MBPS);
	r.cc.dcqcn.alpha = ALPHA(1024);
	r.cc.dcqcn.alpha_at = T0 + 1;
	roan_cc_cnp(&r.cc, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 10 * MBPS);
	r.params.rpg_min_rate = 20;	/* raised after the cut: the target follows, it is never below the rate */
	roan_cc_cnp(&r.cc, T0 + 1);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 20 * MBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 20 * MBPS);
}

static void cut__restarts_counters_and_timer(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 10 * GBPS);
	roan_cc_sent(&r.cc, 11000000, T0 + 60 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.time_steps, 1);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.byte_steps, 1);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.bytes, 1000000);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + 110 * US);
	roan_cc_cnp(&r.cc, T0 + 70 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.time_steps, 0);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.byte_steps, 0);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.bytes, 0);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + 125 * US);
}

/* The clamp parameters: a cut lowers the target always, or after a certain kind of increase. */
static void cut__clamps_the_target(struct kunit *test)
{
	static const struct {
		u32 clamp, after_time, time_steps, byte_steps;
		bool lowered;
	} t[] = {
		{ 1, 0, 0, 0, true },
		{ 0, 0, 0, 0, false },
		{ 0, 0, 1, 0, false },
		{ 0, 0, 0, 1, true },
		{ 0, 1, 0, 0, false },
		{ 0, 1, 1, 0, true },
		{ 0, 1, 0, 1, true },
	};
	struct rig r;

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
		r.params.rate_reduce_monitor_period = 0;
		r.params.clamp_tgt_rate = t[i].clamp;
		r.params.clamp_tgt_rate_after_time_inc = t[i].after_time;
		r.cc.dcqcn.time_steps = t[i].time_steps;
		r.cc.dcqcn.byte_steps = t[i].byte_steps;
		roan_cc_cnp(&r.cc, T0);
		KUNIT_EXPECT_EQ_MSG(test, r.cc.dcqcn.target, t[i].lowered ? 8 * GBPS : 10 * GBPS, "row %u", i);
	}
}

/* Any number of CNPs in a period causes one cut, at its end. */
static void mlx_cut__once_per_period(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	for (u64 at = 13 * US; at < 16 * US; at += 100)
		roan_cc_cnp(&r.cc, T0 + at);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 0);
	roan_cc_elapsed(&r.cc, T0 + 16 * US);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
	roan_cc_cnp(&r.cc, T0 + 16 * US);	/* belongs to the next */
	roan_cc_elapsed(&r.cc, T0 + 20 * US - 1);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
	roan_cc_elapsed(&r.cc, T0 + 40 * US);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 2);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + 320 * US);	/* from the cut's own time on */
	KUNIT_EXPECT_EQ(test, r.cc.cnps, 32);
}

/* An increase due before the cut is executed before it; one due at the same time is dropped. */
static void mlx_cut__ordered_by_due_time(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	r.params.rpg_time_reset = 7;
	r.cc.dcqcn.increase_at = T0 + 7 * US;
	roan_cc_cnp(&r.cc, T0 + 5 * US);
	roan_cc_elapsed(&r.cc, T0 + 8 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 9 * GBPS);	/* 8 -> 9 at 7 us; clamped to that at 8 us */
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	r.params.rpg_time_reset = 7;
	r.cc.dcqcn.increase_at = T0 + 8 * US - 1;
	roan_cc_cnp(&r.cc, T0 + 5 * US);
	roan_cc_elapsed(&r.cc, T0 + 8 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 9 * GBPS);

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	r.params.rpg_time_reset = 8;
	r.cc.dcqcn.increase_at = T0 + 8 * US;
	roan_cc_cnp(&r.cc, T0 + 5 * US);
	roan_cc_elapsed(&r.cc, T0 + 8 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 10 * GBPS);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + 16 * US);
}

/* With dcqcn, a period delays cuts but not alpha updates. */
static void paper_cut__may_have_a_period(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 10 * GBPS);
	r.params.rate_reduce_monitor_period = 50;
	r.cc.dcqcn.alpha_at = T0;
	roan_cc_cnp(&r.cc, T0 + 10 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.alpha, ALPHA(4));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 8 * GBPS);
	roan_cc_elapsed(&r.cc, T0 + 50 * US);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 8 * GBPS - 8 * GBPS / 256 / 2);
}

/* ---- alpha ---- */

/* (1020/1024)^k: k periods at once, k periods one by one, and the formula agree. */
static void paper_alpha__decays_per_period_without_cnp(struct kunit *test)
{
	static const struct { u32 periods, alpha; } t[] = {
		{ 1, 1020 }, { 2, 1016 }, { 10, 984 }, { 177, 512 }, { 1000, 20 }, { 1774, 0 }, { 1000000, 0 },
	};
	struct rig r, step;
	u32 done = 0;

	limited(&r, ROAN_CC_DCQCN, GBPS, GBPS);
	r.params.rpg_max_rate = 1000;
	r.cc.dcqcn.alpha = ALPHA(1024);
	r.cc.dcqcn.alpha_at = T0;
	step = r;
	step.cc.params = &step.params;
	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		for (; done < min(t[i].periods, 2000u); done++)
			roan_cc_elapsed(&step.cc, T0 + (done + 1) * 55 * US);
		KUNIT_EXPECT_EQ_MSG(test, alpha(&r, T0 + t[i].periods * 55 * US), t[i].alpha, "%u", t[i].periods);
		KUNIT_EXPECT_EQ_MSG(test, alpha(&step, T0 + t[i].periods * 55 * US), t[i].alpha, "%u", t[i].periods);
		if (t[i].periods == 1)
			KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 55 * US - 1), 1024);
	}
}

/* The cut takes the alpha before the CNP; the CNP restarts the decay's period. */
static void paper_alpha__cut_first_then_raised(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 8 * GBPS);
	r.cc.dcqcn.alpha = ALPHA(512);
	r.cc.dcqcn.alpha_at = T0;
	roan_cc_cnp(&r.cc, T0 + 54 * US);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 6 * GBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.alpha, ALPHA(510) + ALPHA(4));
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 108 * US), 514);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 109 * US), 511);
}

/* Sticky bit: a period with CNPs raises alpha once, at its end. CNPs do not restart the period. */
static void mlx_alpha__raised_once_per_period(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	r.cc.dcqcn.alpha_at = T0;
	for (u64 at = 100; at < 1000; at += 100)
		roan_cc_cnp(&r.cc, T0 + at);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 999), 0);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 1000), 5);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 1999), 5);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 2000), 4);
	roan_cc_elapsed(&r.cc, T0 + 2500);
	roan_cc_cnp(&r.cc, T0 + 2999);
	roan_cc_elapsed(&r.cc, T0 + 3000);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.alpha, ALPHA(5) / 1024 * 1019 / 1024 * 1019 + ALPHA(5));
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.alpha_at, T0 + 3000);
}

/* alpha converges to the share of periods with a CNP: 1, or 1/4. This needs the fraction bits. */
static void mlx_alpha__follows_the_share_of_periods(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	for (u32 us = 0; us < 5000; us++)
		roan_cc_cnp(&r.cc, T0 + us * US + 500);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 5000 * US), 1023);

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	for (u32 us = 0; us < 5000; us += 4)
		roan_cc_cnp(&r.cc, T0 + us * US + 500);
	KUNIT_EXPECT_GE(test, alpha(&r, T0 + 5000 * US), 253);
	KUNIT_EXPECT_LE(test, alpha(&r, T0 + 5000 * US), 256);
}

/* The cut at the end of a period uses the alpha that is updated at the same time. */
static void mlx_alpha__is_updated_before_the_cut(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8192 * MBPS, 10 * GBPS);
	roan_cc_cnp(&r.cc, T0 + 3500);
	roan_cc_elapsed(&r.cc, T0 + 4000);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 8172 * MBPS);	/* less 8192 * 5/1024 / 2 */
}

static void alpha__after_limiting_ended(struct kunit *test)
{
	struct rig r;

	start(&r, ROAN_CC_DCQCN);
	roan_cc_cnp(&r.cc, T0);
	roan_cc_elapsed(&r.cc, T0 + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	roan_cc_cnp(&r.cc, T0 + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);		/* dcqcn: alpha has decayed to 0, no cut */
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + NSEC_PER_SEC), 4);

	start(&r, ROAN_CC_DCQCN_MLX);
	roan_cc_cnp(&r.cc, T0);
	roan_cc_elapsed(&r.cc, T0 + 100 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	KUNIT_EXPECT_EQ(test, r.cc.event_mask, 0);
	roan_cc_cnp(&r.cc, T0 + 100 * NSEC_PER_SEC);	/* dcqcn-mlx: alpha starts again */
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 100 * NSEC_PER_SEC), 1023);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 40 * GBPS);
}

/* Counts and pending cuts from before the end of limiting are cleared when limiting starts again. */
static void restart__clears_counts_and_pending_cuts(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	r.params.rate_reduce_monitor_period = 0;
	r.params.rpg_min_dec_fac = 100;
	roan_cc_sent(&r.cc, 32767 * 64 + 7, T0 + 300 * US);
	roan_cc_cnp(&r.cc, T0 + 300 * US + 100);		/* cuts nothing; alpha is to rise at 301 us */
	roan_cc_sent(&r.cc, 32767 * 64 + 7, T0 + 300 * US + 200);
	roan_cc_elapsed(&r.cc, T0 + 300 * US + 300);
	roan_cc_limits(&r.cc, GBPS, 0, T0 + 300 * US + 400);
	KUNIT_EXPECT_EQ(test, r.cc.event_mask, 0);
	roan_cc_limits(&r.cc, 40 * GBPS, 0, T0 + 300 * US + 400);
	r.params.rate_to_set_on_first_cnp = 20000;
	r.cc.dcqcn.time_steps = 3;
	roan_cc_cnp(&r.cc, T0 + 300 * US + 500);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 20 * GBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.byte_steps, 0);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.time_steps, 0);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.bytes, 0);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 301 * US), 1023);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.alpha_update_at, 0);
	KUNIT_EXPECT_EQ(test, alpha(&r, T0 + 301 * US + 500), 1018);
}

static void state__shows_rate_and_target(struct kunit *test)
{
	struct roan_cc_state state;
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	roan_cc_sent(&r.cc, 2 * 32767 * 64, T0 + 300 * US);
	roan_cc_state(&r.cc, T0 + 300 * US, &state);
	KUNIT_EXPECT_EQ(test, state.rate, r.cc.rate);
	KUNIT_EXPECT_EQ(test, state.target, r.cc.dcqcn.target);
}

static struct kunit_case dcqcn_cases[] = {
	KUNIT_CASE(start__nothing_is_limited_or_wanted),
	KUNIT_CASE(paper_cnp__first_halves_the_line_rate),
	KUNIT_CASE(mlx_cnp__first_cuts_at_the_end_of_the_period),
	KUNIT_CASE(cnp__first_with_a_preset_sets_and_does_not_cut),
	KUNIT_CASE(cut__takes_half_of_alpha_or_all),
	KUNIT_CASE(cut__leaves_min_dec_fac),
	KUNIT_CASE(cut__stops_at_the_floor),
	KUNIT_CASE(cut__restarts_counters_and_timer),
	KUNIT_CASE(cut__clamps_the_target),
	KUNIT_CASE(mlx_cut__once_per_period),
	KUNIT_CASE(mlx_cut__ordered_by_due_time),
	KUNIT_CASE(paper_cut__may_have_a_period),
	KUNIT_CASE(paper_alpha__decays_per_period_without_cnp),
	KUNIT_CASE(paper_alpha__cut_first_then_raised),
	KUNIT_CASE(mlx_alpha__raised_once_per_period),
	KUNIT_CASE(mlx_alpha__follows_the_share_of_periods),
	KUNIT_CASE(mlx_alpha__is_updated_before_the_cut),
	KUNIT_CASE(alpha__after_limiting_ended),
	KUNIT_CASE(restart__clears_counts_and_pending_cuts),
	KUNIT_CASE(state__shows_rate_and_target),
	{}
};

static struct kunit_suite dcqcn_suite = {
	.name = "roan_dcqcn",
	.test_cases = dcqcn_cases,
};
kunit_test_suite(dcqcn_suite);
