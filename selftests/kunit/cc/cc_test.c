// SPDX-License-Identifier: GPL-2.0
/* cc.c, the code common to all algorithms: names, parameters and their ranges, caps, clocks, disabled algorithms. */
#include <kunit/test.h>
#include "core/cc/cc.h"
#include "core/cc/pacer.h"

#define T0	1000000000ULL
#define MBPS	1000000ULL
#define GBPS	1000000000ULL

static void find__inverse_of_name(struct kunit *test)
{
	for (u32 algo = 0; algo < ROAN_CC_NUM_ALGOS; algo++)
		KUNIT_EXPECT_EQ(test, (u32)roan_cc_find(roan_cc_name(algo)), algo);
	KUNIT_EXPECT_EQ(test, (u32)roan_cc_find("paper"), (u32)ROAN_CC_DCQCN);
	KUNIT_EXPECT_EQ(test, (u32)roan_cc_find("mlx"), (u32)ROAN_CC_DCQCN_MLX);
	KUNIT_EXPECT_EQ(test, (u32)roan_cc_find("swif"), (u32)ROAN_CC_NUM_ALGOS);
	KUNIT_EXPECT_EQ(test, (u32)roan_cc_find(""), (u32)ROAN_CC_NUM_ALGOS);
	KUNIT_EXPECT_STREQ(test, roan_cc_name(ROAN_CC_NONE), "none");
	KUNIT_EXPECT_STREQ(test, roan_cc_name(ROAN_CC_FIXED), "fixed");
	KUNIT_EXPECT_STREQ(test, roan_cc_name(ROAN_CC_DCQCN), "dcqcn");
	KUNIT_EXPECT_STREQ(test, roan_cc_name(ROAN_CC_DCQCN_MLX), "dcqcn-mlx");
	KUNIT_EXPECT_STREQ(test, roan_cc_name(ROAN_CC_SWIFT), "swift");
}

static void param_set__takes_the_range_and_nothing_else(struct kunit *test)
{
	struct roan_cc_params params;

	for (u32 algo = 0; algo < ROAN_CC_NUM_ALGOS; algo++) {
		roan_cc_params_default(&params, algo);
		for (u32 i = 0; i < ROAN_CC_NUM_PARAMS; i++) {
			const struct roan_cc_param_info *info = &roan_cc_param_table[i];
			u32 value = algo == ROAN_CC_DCQCN ? info->paper : info->mlx;

			KUNIT_EXPECT_EQ_MSG(test, roan_cc_param_get(&params, i), value, "%s", info->name);
			KUNIT_EXPECT_FALSE(test, roan_cc_param_set(&params, i, info->max + 1));
			KUNIT_EXPECT_FALSE(test, info->min && roan_cc_param_set(&params, i, info->min - 1));
			KUNIT_EXPECT_FALSE(test, roan_cc_param_set(&params, i, U32_MAX));
			KUNIT_EXPECT_EQ_MSG(test, roan_cc_param_get(&params, i), value, "%s", info->name);
			KUNIT_EXPECT_TRUE(test, roan_cc_param_set(&params, i, info->min));
			KUNIT_EXPECT_EQ(test, roan_cc_param_get(&params, i), info->min);
			KUNIT_EXPECT_TRUE(test, roan_cc_param_set(&params, i, info->max));
			KUNIT_EXPECT_EQ(test, roan_cc_param_get(&params, i), info->max);
		}
	}
}

static void param_is_shared__all_but_dcqcns_reaction_point(struct kunit *test)
{
	u32 own = 0;

	for (u32 i = 0; i < ROAN_CC_NUM_PARAMS; i++)
		own += !roan_cc_param_is_shared(i);
	KUNIT_EXPECT_EQ(test, own, 16);
	KUNIT_EXPECT_FALSE(test, roan_cc_param_is_shared(ROAN_CC_PARAM_dce_tcp_g));
	KUNIT_EXPECT_FALSE(test, roan_cc_param_is_shared(ROAN_CC_PARAM_rpg_hai_rate));
	KUNIT_EXPECT_TRUE(test, roan_cc_param_is_shared(ROAN_CC_PARAM_min_time_between_cnps));
}

/* Compares the table of defaults with the published values: a typing error there would change the algorithm. */
static void params_default__are_the_published_ones(struct kunit *test)
{
	static const struct { enum roan_cc_param which; u32 paper, mlx; } t[] = {
		{ ROAN_CC_PARAM_dce_tcp_g, 1020, 1019 },
		{ ROAN_CC_PARAM_dce_tcp_rtt, 55, 1 },
		{ ROAN_CC_PARAM_initial_alpha_value, 1023, 1023 },
		{ ROAN_CC_PARAM_rate_to_set_on_first_cnp, 0, 0 },
		{ ROAN_CC_PARAM_rpg_gd, 11, 11 },
		{ ROAN_CC_PARAM_rpg_min_dec_fac, 50, 50 },
		{ ROAN_CC_PARAM_rpg_min_rate, 10, 1 },
		{ ROAN_CC_PARAM_rpg_max_rate, 0, 0 },
		{ ROAN_CC_PARAM_rate_reduce_monitor_period, 0, 4 },
		{ ROAN_CC_PARAM_clamp_tgt_rate, 1, 0 },
		{ ROAN_CC_PARAM_clamp_tgt_rate_after_time_inc, 1, 1 },
		{ ROAN_CC_PARAM_rpg_time_reset, 55, 300 },
		{ ROAN_CC_PARAM_rpg_byte_reset, 156250, 32767 },
		{ ROAN_CC_PARAM_rpg_threshold, 5, 1 },
		{ ROAN_CC_PARAM_rpg_ai_rate, 40, 5 },
		{ ROAN_CC_PARAM_rpg_hai_rate, 200, 50 },
		{ ROAN_CC_PARAM_min_time_between_cnps, 50, 4 },
		{ ROAN_CC_PARAM_cnp_dscp, 48, 48 },
		{ ROAN_CC_PARAM_cnp_802p_prio, 6, 6 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
		const struct roan_cc_param_info *info = &roan_cc_param_table[t[i].which];

		KUNIT_EXPECT_EQ_MSG(test, info->paper, t[i].paper, "%s", info->name);
		KUNIT_EXPECT_EQ_MSG(test, info->mlx, t[i].mlx, "%s", info->name);
	}
}

static void state__is_small(struct kunit *test)
{
	KUNIT_EXPECT_LT(test, sizeof(struct roan_cc) + sizeof(struct roan_pacer), 256);
}

static void none__has_the_cap_only(struct kunit *test)
{
	struct roan_cc_sample sample = { .bytes = 1000, .rtt_ns = NSEC_PER_SEC };
	struct roan_cc_params params;
	struct roan_cc_state state;
	struct roan_cc cc;

	roan_cc_params_default(&params, ROAN_CC_NONE);
	roan_cc_start(&cc, ROAN_CC_NONE, &params, 0, 0, 1082, T0);
	KUNIT_EXPECT_EQ(test, cc.rate, 0);
	KUNIT_EXPECT_EQ(test, cc.event_mask, 0);
	KUNIT_EXPECT_FALSE(test, roan_cc_cnp(&cc, T0));
	KUNIT_EXPECT_FALSE(test, roan_cc_acked(&cc, &sample, T0));
	KUNIT_EXPECT_FALSE(test, roan_cc_lost(&cc, ROAN_CC_LOST_TIMEOUT, T0));
	KUNIT_EXPECT_EQ(test, cc.cnps, 1);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&cc, 0, 3 * GBPS, T0));
	KUNIT_EXPECT_EQ(test, cc.rate, 3 * GBPS);
	roan_cc_state(&cc, T0, &state);
	KUNIT_EXPECT_EQ(test, state.rate, 3 * GBPS);
	KUNIT_EXPECT_EQ(test, state.cnps, 1);
	KUNIT_EXPECT_EQ(test, state.cuts, 0);
}

static void fixed__is_the_lower_of_both(struct kunit *test)
{
	struct roan_cc_params params;
	struct roan_cc cc;

	roan_cc_params_default(&params, ROAN_CC_FIXED);
	roan_cc_start(&cc, ROAN_CC_FIXED, &params, GBPS, 0, 1082, T0);
	KUNIT_EXPECT_EQ(test, cc.rate, 0);
	roan_cc_param_set(&params, ROAN_CC_PARAM_fixed_rate, 2000);
	KUNIT_EXPECT_TRUE(test, roan_cc_elapsed(&cc, T0));	/* with the next train */
	KUNIT_EXPECT_EQ(test, cc.rate, 2 * GBPS);
	KUNIT_EXPECT_FALSE(test, roan_cc_elapsed(&cc, T0));
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&cc, GBPS, GBPS, T0));
	KUNIT_EXPECT_EQ(test, cc.rate, GBPS);
	KUNIT_EXPECT_TRUE(test, roan_cc_limits(&cc, GBPS, 5 * GBPS, T0));
	KUNIT_EXPECT_EQ(test, cc.rate, 2 * GBPS);
	KUNIT_EXPECT_EQ(test, roan_cc_deadline(&cc), 0);
	roan_cc_param_set(&params, ROAN_CC_PARAM_fixed_rate, 0);
	roan_cc_elapsed(&cc, T0);
	KUNIT_EXPECT_EQ(test, cc.rate, 5 * GBPS);
}

/*
 * An event of another CPU may carry an earlier time. It takes effect at the latest time seen; nothing is undone or
 * repeated.
 */
static void clock__never_runs_back(struct kunit *test)
{
	struct roan_cc_params params;
	struct roan_cc cc;
	u64 rate;

	roan_cc_params_default(&params, ROAN_CC_DCQCN);
	roan_cc_start(&cc, ROAN_CC_DCQCN, &params, 40 * GBPS, 0, 1082, T0);
	roan_cc_cnp(&cc, T0 + 100000);
	rate = cc.rate;
	KUNIT_EXPECT_FALSE(test, roan_cc_elapsed(&cc, T0 + 1));
	KUNIT_EXPECT_FALSE(test, roan_cc_sent(&cc, 1000, T0 + 1));
	KUNIT_EXPECT_EQ(test, cc.rate, rate);
	roan_cc_cnp(&cc, T0 + 1);
	KUNIT_EXPECT_EQ(test, cc.now, T0 + 100000);
	KUNIT_EXPECT_LT(test, cc.rate, rate * 51 / 100);
	KUNIT_EXPECT_GT(test, cc.rate, rate * 49 / 100);
}

/* An interface that reports no speed counts as 10 Gb/s. */
static void link__unknown(struct kunit *test)
{
	struct roan_cc_params params;
	struct roan_cc cc;

	roan_cc_params_default(&params, ROAN_CC_DCQCN_MLX);
	roan_cc_start(&cc, ROAN_CC_DCQCN_MLX, &params, 0, 0, 1082, T0);
	roan_cc_cnp(&cc, T0);
	KUNIT_EXPECT_EQ(test, cc.rate, 10 * GBPS);
	roan_cc_limits(&cc, 0, 0, T0);
	KUNIT_EXPECT_EQ(test, cc.link, 10 * GBPS);
}

static void link__absurd(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, roan_cc_link(0), 0u);
	KUNIT_EXPECT_EQ(test, roan_cc_link(10000), 10 * GBPS);
	KUNIT_EXPECT_EQ(test, roan_cc_link(ROAN_CC_MAX_MBPS), ROAN_CC_MAX_MBPS * 1000000ULL);
	KUNIT_EXPECT_EQ(test, roan_cc_link(U32_MAX - 1), ROAN_CC_MAX_MBPS * 1000000ULL);
}

/* roan_cc_state() includes updates that are due, without executing them. */
static void state__has_no_side_effects(struct kunit *test)
{
	struct roan_cc_params params;
	struct roan_cc_state state;
	struct roan_cc cc, before;

	roan_cc_params_default(&params, ROAN_CC_DCQCN_MLX);
	roan_cc_start(&cc, ROAN_CC_DCQCN_MLX, &params, 40 * GBPS, 0, 1082, T0);
	roan_cc_cnp(&cc, T0);
	before = cc;
	roan_cc_state(&cc, T0 + 304000, &state);
	KUNIT_EXPECT_EQ(test, state.cuts, 1);
	KUNIT_EXPECT_EQ(test, state.target, 40 * GBPS);
	KUNIT_EXPECT_GT(test, state.rate, 30 * GBPS);
	KUNIT_EXPECT_LT(test, state.rate, 31 * GBPS);
	KUNIT_EXPECT_EQ(test, state.alpha, 231);	/* 1023 * (1019/1024)^304 = 231.0 */
	KUNIT_EXPECT_MEMEQ(test, &cc, &before, sizeof(cc));
}

static void cwnd_avail__of_a_window(struct kunit *test)
{
	struct roan_cc cc = { .packet = 1082 };

	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&cc, 0), U64_MAX);
	cc.cwnd = 5000;
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&cc, 0), 5000);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&cc, 4999), 1);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&cc, 5000), 0);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&cc, 6000), 0);
	cc.cwnd = 100;
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&cc, 0), 1082);
	KUNIT_EXPECT_EQ(test, roan_cc_cwnd_avail(&cc, 1), 99);
}

/* CNPs of 32 paths, each for its part: the last one completes one CNP, with the same result as one for the whole. */
static void expect_parts_add_up(struct kunit *test, enum roan_cc_algo algo)
{
	struct roan_cc_params params;
	struct roan_cc parts, whole;
	u32 n, i;

	roan_cc_params_default(&params, algo);
	roan_cc_start(&parts, algo, &params, 40 * GBPS, 0, 1082, T0);
	whole = parts;
	for (n = 1; n <= 3; n++) {
		u64 now = T0 + n * 60000;

		for (i = 1; i < 32; i++)
			KUNIT_EXPECT_FALSE(test, roan_cc_cnp_part(&parts, ROAN_CC_WHOLE / 32, now));
		KUNIT_EXPECT_EQ(test, roan_cc_cnp_part(&parts, ROAN_CC_WHOLE / 32, now), roan_cc_cnp(&whole, now));
		KUNIT_EXPECT_EQ(test, parts.rate, whole.rate);
		KUNIT_EXPECT_EQ(test, parts.cuts, whole.cuts);
		KUNIT_EXPECT_EQ(test, parts.cnps, 32 * n);
		KUNIT_EXPECT_EQ(test, memcmp(&parts.dcqcn, &whole.dcqcn, sizeof(parts.dcqcn)), 0);
	}
}

static void cnp_part__adds_up_to_a_cnp(struct kunit *test)
{
	expect_parts_add_up(test, ROAN_CC_DCQCN);
	expect_parts_add_up(test, ROAN_CC_DCQCN_MLX);
}

/* What is more than the whole counts for the next one. */
static void cnp_part__keeps_the_rest(struct kunit *test)
{
	const u32 most = ROAN_CC_WHOLE / 4 * 3;
	struct roan_cc_params params;
	struct roan_cc cc;

	roan_cc_params_default(&params, ROAN_CC_DCQCN);
	roan_cc_start(&cc, ROAN_CC_DCQCN, &params, 40 * GBPS, 0, 1082, T0);
	roan_cc_cnp_part(&cc, most, T0);
	KUNIT_EXPECT_EQ(test, cc.cuts, 0);
	roan_cc_cnp_part(&cc, most, T0);
	KUNIT_EXPECT_EQ(test, cc.cuts, 1);
	roan_cc_cnp_part(&cc, ROAN_CC_WHOLE / 2 - 1, T0);
	KUNIT_EXPECT_EQ(test, cc.cuts, 1);
	roan_cc_cnp_part(&cc, 1, T0);
	KUNIT_EXPECT_EQ(test, cc.cuts, 2);
	roan_cc_cnp(&cc, T0);		/* one for the whole always counts */
	KUNIT_EXPECT_EQ(test, cc.cuts, 3);
}

static struct kunit_case cc_cases[] = {
	KUNIT_CASE(find__inverse_of_name),
	KUNIT_CASE(param_set__takes_the_range_and_nothing_else),
	KUNIT_CASE(param_is_shared__all_but_dcqcns_reaction_point),
	KUNIT_CASE(params_default__are_the_published_ones),
	KUNIT_CASE(state__is_small),
	KUNIT_CASE(none__has_the_cap_only),
	KUNIT_CASE(fixed__is_the_lower_of_both),
	KUNIT_CASE(clock__never_runs_back),
	KUNIT_CASE(cnp_part__adds_up_to_a_cnp),
	KUNIT_CASE(cnp_part__keeps_the_rest),
	KUNIT_CASE(link__unknown),
	KUNIT_CASE(link__absurd),
	KUNIT_CASE(state__has_no_side_effects),
	KUNIT_CASE(cwnd_avail__of_a_window),
	{}
};

static struct kunit_suite cc_suite = {
	.name = "roan_cc",
	.test_cases = cc_cases,
};
kunit_test_suite(cc_suite);
