// SPDX-License-Identifier: GPL-2.0
/* The list of params.h as a table of names, ranges and defaults. Does not know what a parameter does. */
#include "core/cc/cc.h"

#define X(n, u, lo, hi, p, m, text)							\
	[ROAN_CC_PARAM_##n] = { .name = #n, .min = lo, .max = hi, .paper = p, .mlx = m },
const struct roan_cc_param_info roan_cc_param_table[ROAN_CC_NUM_PARAMS] = {
	ROAN_CC_PARAMS(X)
};

#undef X

/* The struct has the members in the order of the list, so the index is the position. */
#define X(n, u, lo, hi, p, m, text)							\
	static_assert(offsetof(struct roan_cc_params, n) == ROAN_CC_PARAM_##n * sizeof(u32), #n);	\
	static_assert((lo) <= (p) && (p) <= (hi) && (lo) <= (m) && (m) <= (hi), #n);
ROAN_CC_PARAMS(X)
#undef X

u32 roan_cc_param_get(const struct roan_cc_params *params, enum roan_cc_param which)
{
	return READ_ONCE(((const u32 *)params)[which]);
}

bool roan_cc_param_set(struct roan_cc_params *params, enum roan_cc_param which, u32 value)
{
	const struct roan_cc_param_info *info = &roan_cc_param_table[which];

	if (value < info->min || value > info->max)
		return false;
	WRITE_ONCE(((u32 *)params)[which], value);
	return true;
}

void roan_cc_params_default(struct roan_cc_params *params, enum roan_cc_algo algo)
{
	for (u32 i = 0; i < ROAN_CC_NUM_PARAMS; i++) {
		const struct roan_cc_param_info *info = &roan_cc_param_table[i];

		((u32 *)params)[i] = algo == ROAN_CC_DCQCN ? info->paper : info->mlx;
	}
}
