// SPDX-License-Identifier: GPL-2.0
/*
 * DCQCN's rate increase: first each stage, with values computed by hand, then random event sequences, compared with a
 * reference model that executes the published steps one by one, timer by timer.
 */
#include "dcqcn_fixture.h"

/* F = 5: the fifth step is the first additive one. The byte counter stays 0, so there is no hyper increase. */
static void paper_time__fast_then_additive(struct kunit *test)
{
	static const u64 rate[] = { 9000, 9500, 9750, 9875, 9957500, 10018750, 10069375, 10114687500 };
	static const u64 target[] = { 10000, 10000, 10000, 10000, 10040, 10080, 10120, 10160 };
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 10 * GBPS);
	for (u32 i = 0; i < ARRAY_SIZE(rate); i++) {
		u64 expected = rate[i];

		while (expected < GBPS)
			expected *= 1000;
		KUNIT_EXPECT_FALSE(test, roan_cc_elapsed(&r.cc, T0 + (i + 1) * 55 * US - 1));
		KUNIT_EXPECT_TRUE(test, roan_cc_elapsed(&r.cc, T0 + (i + 1) * 55 * US));
		KUNIT_EXPECT_EQ(test, r.cc.rate, expected);
		KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, target[i] * MBPS);
		KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + (i + 2) * 55 * US);
	}
}

/* F = 1, compared before the step is counted: one step of fast recovery, then additive. */
static void mlx_time__fast_then_additive(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	roan_cc_elapsed(&r.cc, T0 + 300 * US);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 9 * GBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 10 * GBPS);
	roan_cc_elapsed(&r.cc, T0 + 600 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 10005 * MBPS);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 9502500000ULL);
}

static void volume__counts_every_byte_once(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	KUNIT_EXPECT_FALSE(test, roan_cc_sent(&r.cc, 32767 * 64 - 1, T0 + 1));
	KUNIT_EXPECT_TRUE(test, roan_cc_sent(&r.cc, 1, T0 + 2));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 9 * GBPS);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.byte_steps, 1);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.bytes, 0);
	KUNIT_EXPECT_TRUE(test, roan_cc_sent(&r.cc, 32767 * 64 * 2 + 5, T0 + 3));	/* two steps in one train */
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.byte_steps, 3);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.bytes, 5);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 10010 * MBPS);
	r.params.rpg_byte_reset = 0;
	KUNIT_EXPECT_FALSE(test, roan_cc_sent(&r.cc, U32_MAX, T0 + 4));
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.bytes, 5);
}

/* Timer steps that are due before a train leaves come before the byte steps of that train. */
static void volume__after_what_time_did(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	roan_cc_sent(&r.cc, 32767 * 64, T0 + 300 * US);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.time_steps, 1);
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.byte_steps, 1);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 9502500000ULL);	/* 9, then (9 + 10.005) / 2 */
}

/* Both counts beyond F: the paper's step grows, the adapter's does not. */
static void hyper__needs_both_counts(struct kunit *test)
{
	static const struct {
		enum roan_cc_algo algo;
		u32 time_steps, byte_steps;
		u64 gain;
	} t[] = {	/* counts before the step by time that follows */
		{ ROAN_CC_DCQCN, 3, 3, 0 },	/* 4: max < 5 */
		{ ROAN_CC_DCQCN, 4, 0, 40 },	/* 5 */
		{ ROAN_CC_DCQCN, 0, 5, 40 },
		{ ROAN_CC_DCQCN, 9, 5, 40 },	/* min 5 is not above 5 */
		{ ROAN_CC_DCQCN, 5, 6, 400 },	/* min 6: (6 - 5 + 1) * 200 */
		{ ROAN_CC_DCQCN, 9, 6, 400 },
		{ ROAN_CC_DCQCN, 8, 9, 1000 },	/* min 9: 5 * 200 */
		{ ROAN_CC_DCQCN_MLX, 0, 0, 0 },
		{ ROAN_CC_DCQCN_MLX, 0, 1, 5 },
		{ ROAN_CC_DCQCN_MLX, 1, 0, 5 },
		{ ROAN_CC_DCQCN_MLX, 1, 9, 5 },
		{ ROAN_CC_DCQCN_MLX, 2, 2, 50 },
		{ ROAN_CC_DCQCN_MLX, 9, 9, 50 },
	};
	struct rig r;

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		limited(&r, t[i].algo, 8 * GBPS, 10 * GBPS);
		r.cc.dcqcn.time_steps = t[i].time_steps;
		r.cc.dcqcn.byte_steps = t[i].byte_steps;
		roan_cc_elapsed(&r.cc, r.cc.dcqcn.increase_at);
		KUNIT_EXPECT_EQ_MSG(test, r.cc.dcqcn.target, 10 * GBPS + t[i].gain * MBPS, "row %u", i);
		KUNIT_EXPECT_EQ(test, r.cc.dcqcn.time_steps, t[i].time_steps + 1);
	}
}

static void top__is_reached_exactly_and_ends_limiting(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 39 * GBPS + 1, 40 * GBPS);
	for (u32 i = 1; i < 60 && r.cc.event_mask; i++)
		roan_cc_elapsed(&r.cc, T0 + i * 300 * US);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	KUNIT_EXPECT_EQ(test, r.cc.event_mask, 0);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), 0);
	KUNIT_EXPECT_FALSE(test, r.cc.dcqcn.rp_active);

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	r.params.rpg_max_rate = 9000;
	roan_cc_elapsed(&r.cc, T0 + 300 * US);	/* the target must not exceed rpg_max_rate */
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 9 * GBPS);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 8500 * MBPS);
}

/* A pending cut keeps the limiter active although the rate is at the top. */
static void top__waits_for_a_pending_cut(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 40 * GBPS - 1, 40 * GBPS);
	r.params.rpg_time_reset = 1;
	r.cc.dcqcn.increase_at = T0 + 1 * US;
	roan_cc_cnp(&r.cc, T0 + 500);
	roan_cc_elapsed(&r.cc, T0 + 2 * US);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 40 * GBPS);
	roan_cc_elapsed(&r.cc, T0 + 4 * US);
	KUNIT_EXPECT_EQ(test, r.cc.cuts, 1);
	KUNIT_EXPECT_LT(test, r.cc.rate, 40 * GBPS);
}

static void cap__is_the_top_and_stays_when_limiting_ends(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 1 * GBPS, 2 * GBPS);
	KUNIT_EXPECT_FALSE(test, roan_cc_limits(&r.cc, 40 * GBPS, 1500 * MBPS, T0));
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 1500 * MBPS);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 40 * GBPS, 500 * MBPS, T0));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 500 * MBPS);
	KUNIT_EXPECT_EQ(test, r.cc.event_mask, 0);	/* at the top: nothing more to limit */
	roan_cc_cnp(&r.cc, T0);
	roan_cc_elapsed(&r.cc, T0 + 4 * US);
	KUNIT_EXPECT_LT(test, r.cc.rate, 260 * MBPS);	/* from the cap, not from the line rate */
	roan_cc_elapsed(&r.cc, T0 + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 500 * MBPS);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 40 * GBPS, 0, T0));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	KUNIT_EXPECT_FALSE(test, roan_cc_limits(&r.cc, 10 * GBPS, 0, T0));
}

/* A pending cut keeps the limiter active, and a new cap applies at once. */
static void cap__holds_while_a_cut_is_pending(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	roan_cc_cnp(&r.cc, T0 + 1);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 40 * GBPS, GBPS, T0 + 2));
	KUNIT_EXPECT_EQ(test, r.cc.rate, GBPS);
	KUNIT_EXPECT_NE(test, r.cc.event_mask, 0);
}

/* Steps that were due before the new limits are executed first. */
static void limits__come_after_what_was_due(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN_MLX, 8 * GBPS, 10 * GBPS);
	roan_cc_limits(&r.cc, 40 * GBPS, 0, T0 + 300 * US);
	KUNIT_EXPECT_EQ(test, r.cc.rate, 9 * GBPS);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&r.cc), T0 + 600 * US);
}

/* A slower link lowers the rate. */
static void link__lowers_the_rate(struct kunit *test)
{
	struct rig r;

	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 10 * GBPS);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&r.cc, 5 * GBPS, 0, T0));
	KUNIT_EXPECT_EQ(test, r.cc.rate, 0);	/* that is the new line rate */
	limited(&r, ROAN_CC_DCQCN, 8 * GBPS, 10 * GBPS);
	KUNIT_EXPECT_FALSE(test, roan_cc_limits(&r.cc, 9 * GBPS, 0, T0));
	KUNIT_EXPECT_EQ(test, r.cc.dcqcn.target, 9 * GBPS);
}

/* ---- long silences ---- */

/* One call after n periods has the result of n calls, from any stage, in dozens of steps instead of n. */
static void increase__many_at_once_as_one_by_one(struct kunit *test)
{
	static const u32 counts[] = { 0, 1, 2, 5, 7, 40 };
	static const u32 periods[] = { 1, 5, 6, 7, 50, 100, 333, 5000 };

	for (u32 i = 0; i < 2 * ARRAY_SIZE(counts) * ARRAY_SIZE(periods); i++) {
		enum roan_cc_algo algo = i & 1 ? ROAN_CC_DCQCN_MLX : ROAN_CC_DCQCN;
		u32 n = periods[i / 2 % ARRAY_SIZE(periods)];
		struct rig at_once, stepped;
		u64 period;

		limited(&at_once, algo, 3 * MBPS + i, 4 * MBPS + 3 * i);
		at_once.cc.dcqcn.byte_steps = counts[i / 2 / ARRAY_SIZE(periods)];
		stepped = at_once;
		period = at_once.params.rpg_time_reset * US;
		roan_cc_elapsed(&at_once.cc, T0 + n * period);
		for (u32 k = 1; k <= n; k++)
			roan_cc_elapsed(&stepped.cc, T0 + k * period);
		KUNIT_EXPECT_EQ_MSG(test, at_once.cc.rate, stepped.cc.rate, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, at_once.cc.event_mask, stepped.cc.event_mask, "row %u", i);
		if (!stepped.cc.event_mask)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, at_once.cc.dcqcn.target, stepped.cc.dcqcn.target, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, at_once.cc.dcqcn.time_steps, stepped.cc.dcqcn.time_steps, "row %u", i);
		KUNIT_EXPECT_EQ(test, at_once.cc.dcqcn.increase_at, stepped.cc.dcqcn.increase_at);
	}
}

/*
 * The smallest steps on an extremely fast link, after days without events: more than 10^9 steps to the top. Executed
 * one by one they would take minutes.
 */
static void increase__takes_dozens_of_steps_not_all(struct kunit *test)
{
	static const struct { enum roan_cc_algo algo; u32 byte_steps; } t[] = {
		{ ROAN_CC_DCQCN, 0 }, { ROAN_CC_DCQCN, 9 }, { ROAN_CC_DCQCN_MLX, 0 }, { ROAN_CC_DCQCN_MLX, U32_MAX },
	};

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		struct rig r;

		limited(&r, t[i].algo, MBPS, MBPS);
		r.cc.link = 3000000ULL * GBPS;
		r.params.rpg_ai_rate = 1;
		r.params.rpg_hai_rate = 1;
		r.cc.dcqcn.byte_steps = t[i].byte_steps;
		roan_cc_elapsed(&r.cc, T0 + 30000ULL * NSEC_PER_SEC);
		KUNIT_EXPECT_GT(test, r.cc.rate, GBPS);
		roan_cc_elapsed(&r.cc, T0 + (1ULL << 60));
		KUNIT_EXPECT_EQ(test, r.cc.rate, 0);
	}
}

/* ---- the reference model ---- */

struct ref_model {
	const struct roan_cc_params *p;
	bool paper, on, cnp_alpha, cnp_cut;
	u64 rate, target, bytes;
	u64 alpha;		/* of 1 << 40 */
	u64 next_alpha, next_cut, next_time;
	u32 t, b;
};

#define ONE (1ULL << 40)

static void ref_up(struct ref_model *w, u32 *count)
{
	u32 f = w->p->rpg_threshold;

	*count += w->paper;
	if (min(w->t, w->b) > f)
		w->target += w->p->rpg_hai_rate * MBPS * (w->paper ? min(w->t, w->b) - f + 1 : 1);
	else if (max(w->t, w->b) >= f)
		w->target += w->p->rpg_ai_rate * MBPS;
	*count += !w->paper;
	w->target = min(w->target, 40 * GBPS);
	w->rate = (w->rate + w->target + 1) / 2;
}

static void ref_cut(struct ref_model *w, u64 now)
{
	u64 share = mul_u64_u64_shr(w->rate, w->alpha, 40) >> (w->p->rpg_gd - 10);

	if (w->p->clamp_tgt_rate || w->b || (w->t && w->p->clamp_tgt_rate_after_time_inc))
		w->target = w->rate;
	w->rate -= min(share, w->rate * (100 - w->p->rpg_min_dec_fac) / 100);
	w->rate = max(w->rate, w->p->rpg_min_rate * MBPS);
	w->t = 0;
	w->b = 0;
	w->bytes = 0;
	w->next_time = now + w->p->rpg_time_reset * US;
}

static void ref_raise(struct ref_model *w)
{
	w->alpha = w->alpha / 1024 * w->p->dce_tcp_g + ONE / 1024 * (1024 - w->p->dce_tcp_g);
}

/* Executes the timers one by one until @now. */
static void ref_run(struct ref_model *w, u64 now)
{
	while (w->on) {
		u64 next = min(w->next_alpha, min(w->next_cut, w->next_time));

		if (next > now)
			break;
		if (w->next_alpha == next) {
			if (w->cnp_alpha)
				ref_raise(w);
			else
				w->alpha = w->alpha / 1024 * w->p->dce_tcp_g;
			w->cnp_alpha = false;
			w->next_alpha += w->p->dce_tcp_rtt * US;
		} else if (w->next_cut == next) {
			if (w->cnp_cut)
				ref_cut(w, next);
			w->cnp_cut = false;
			w->next_cut += w->p->rate_reduce_monitor_period * US;
		} else {
			ref_up(w, &w->t);
			w->next_time += w->p->rpg_time_reset * US;
		}
		if (w->rate >= 40 * GBPS && !w->cnp_cut)
			w->on = false;
	}
}

static void ref_cnp(struct ref_model *w, u64 now)
{
	ref_run(w, now);
	if (!w->on) {
		w->on = true;
		w->rate = 40 * GBPS;
		w->target = w->rate;
		w->alpha = ONE / 1024 * w->p->initial_alpha_value;
		w->next_alpha = now + w->p->dce_tcp_rtt * US;
		w->next_cut = w->paper ? U64_MAX : now + w->p->rate_reduce_monitor_period * US;
		w->next_time = now + w->p->rpg_time_reset * US;
	} else {
		w->cnp_alpha = !w->paper;
	}
	w->cnp_cut = !w->paper;
	if (w->paper) {
		ref_cut(w, now);
		ref_raise(w);
		w->next_alpha = now + w->p->dce_tcp_rtt * US;
	}
}

static void ref_sent(struct ref_model *w, u32 bytes, u64 now)
{
	ref_run(w, now);
	if (!w->on)
		return;
	for (w->bytes += bytes; w->bytes >= w->p->rpg_byte_reset * 64ULL; w->bytes -= w->p->rpg_byte_reset * 64ULL)
		ref_up(w, &w->b);
}

static u32 draw(u64 *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 33;
}

static bool close_to(u64 a, u64 b)
{
	return (a > b ? a - b : b - a) <= b / 100000 + 1000;
}

/* Rates agree to 0.001 % (alpha has fewer bits than in the reference), counts exactly. */
static void history(struct kunit *test, enum roan_cc_algo algo, u64 seed)
{
	struct ref_model w = { .paper = algo == ROAN_CC_DCQCN };
	u64 now = T0 + seed;
	struct rig r;

	roan_cc_params_default(&r.params, algo);
	r.params.rpg_time_reset = 10 + draw(&seed) % 300;
	r.params.rpg_byte_reset = 1000 + draw(&seed) % 10000;
	r.params.rpg_threshold = draw(&seed) % 6;
	r.params.rpg_gd = 10 + (draw(&seed) & 1);
	r.params.clamp_tgt_rate = draw(&seed) % 4 == 0;
	r.params.clamp_tgt_rate_after_time_inc = draw(&seed) & 1;
	r.params.rpg_min_dec_fac = 1 + draw(&seed) % 80;
	roan_cc_start(&r.cc, algo, &r.params, 40 * GBPS, 0, PACKET, now);
	w.p = &r.params;
	for (int i = 0; i < 600; i++) {
		u32 what = draw(&seed) % 16;

		now += draw(&seed) % (what == 0 ? 3000 * US : what < 4 ? 40 * US : 2 * US);
		if (what & 1) {
			roan_cc_cnp(&r.cc, now);
			ref_cnp(&w, now);
		} else {
			u32 bytes = draw(&seed) % 100000;

			roan_cc_sent(&r.cc, bytes, now);
			ref_sent(&w, bytes, now);
		}
		KUNIT_ASSERT_EQ_MSG(test, r.cc.dcqcn.rp_active, w.on, "step %d", i);
		if (!w.on) {
			KUNIT_ASSERT_EQ(test, r.cc.rate, 0);
			return;
		}
		KUNIT_ASSERT_EQ_MSG(test, r.cc.dcqcn.time_steps, w.t, "step %d", i);
		KUNIT_ASSERT_EQ_MSG(test, r.cc.dcqcn.byte_steps, w.b, "step %d", i);
		KUNIT_ASSERT_EQ_MSG(test, r.cc.dcqcn.bytes, w.bytes, "step %d", i);
		KUNIT_ASSERT_TRUE_MSG(test, close_to(r.cc.rate, w.rate), "step %d: %llu, reference %llu", i,
				      (unsigned long long)r.cc.rate, (unsigned long long)w.rate);
		KUNIT_ASSERT_TRUE_MSG(test, close_to(r.cc.dcqcn.target, w.target), "step %d: %llu, reference %llu", i,
				      (unsigned long long)r.cc.dcqcn.target, (unsigned long long)w.target);
	}
}

static void reference__agrees_with_paper(struct kunit *test)
{
	for (u64 seed = 1; seed <= 60; seed++)
		history(test, ROAN_CC_DCQCN, seed);
}

static void reference__agrees_with_mlx(struct kunit *test)
{
	for (u64 seed = 1; seed <= 60; seed++)
		history(test, ROAN_CC_DCQCN_MLX, seed);
}

static struct kunit_case rise_cases[] = {
	KUNIT_CASE(paper_time__fast_then_additive),
	KUNIT_CASE(mlx_time__fast_then_additive),
	KUNIT_CASE(volume__counts_every_byte_once),
	KUNIT_CASE(volume__after_what_time_did),
	KUNIT_CASE(hyper__needs_both_counts),
	KUNIT_CASE(top__is_reached_exactly_and_ends_limiting),
	KUNIT_CASE(top__waits_for_a_pending_cut),
	KUNIT_CASE(cap__is_the_top_and_stays_when_limiting_ends),
	KUNIT_CASE(cap__holds_while_a_cut_is_pending),
	KUNIT_CASE(limits__come_after_what_was_due),
	KUNIT_CASE(link__lowers_the_rate),
	KUNIT_CASE(increase__many_at_once_as_one_by_one),
	KUNIT_CASE(increase__takes_dozens_of_steps_not_all),
	KUNIT_CASE(reference__agrees_with_paper),
	KUNIT_CASE(reference__agrees_with_mlx),
	{}
};

static struct kunit_suite rise_suite = {
	.name = "roan_dcqcn_rise",
	.test_cases = rise_cases,
};
kunit_test_suite(rise_suite);
