// SPDX-License-Identifier: GPL-2.0
/*
 * Calls the algorithm of a QP for each event that it subscribes to, and reports whether rate or window changed.
 * Decides nothing itself.
 */
#include "core/cc/cc_ops.h"

#define LINK_UNKNOWN	10000000000ULL	/* bit/s, for interfaces that report no speed */

static const struct roan_cc_ops *const algorithms[ROAN_CC_NUM_ALGOS] = {
	[ROAN_CC_NONE] = &roan_cc_none,
	[ROAN_CC_FIXED] = &roan_cc_fixed,
	[ROAN_CC_DCQCN] = &roan_cc_dcqcn,
	[ROAN_CC_DCQCN_MLX] = &roan_cc_dcqcn,
	[ROAN_CC_SWIFT] = &roan_cc_swift,
};

#define X(id, name) name,
static const char *const names[ROAN_CC_NUM_ALGOS] = { ROAN_CC_ALGOS(X) };
#undef X

#define MAX_RTT		(10ULL * NSEC_PER_SEC)

/* Passes @event to @cc's algorithm; true if rate or window changed. */
#define CC_CALL(cc, event, now, ...) ({							\
	const u64 rate_was = (cc)->rate, window_was = (cc)->cwnd;			\
											\
	(cc)->now = max((cc)->now, now);						\
	algorithms[(cc)->algo]->event(cc, ##__VA_ARGS__);				\
	(cc)->rate != rate_was || (cc)->cwnd != window_was;				\
})

u8 roan_cc_flags(enum roan_cc_algo algo)
{
	return algorithms[algo]->flags;
}

const char *roan_cc_name(enum roan_cc_algo algo)
{
	return names[algo];
}

enum roan_cc_algo roan_cc_find(const char *name)
{
	u32 algo = 0;

	if (!strcmp(name, "paper"))
		return ROAN_CC_DCQCN;
	if (!strcmp(name, "mlx"))
		return ROAN_CC_DCQCN_MLX;
	while (algo < ROAN_CC_NUM_ALGOS && strcmp(name, names[algo]))
		algo++;
	return algo;
}

void roan_cc_start(struct roan_cc *cc, enum roan_cc_algo algo, const struct roan_cc_params *params, u64 link, u64 cap,
		   u32 packet, u64 now)
{
	*cc = (struct roan_cc) {
		.algo = algo,
		.params = params,
		.link = link ? link : LINK_UNKNOWN,
		.rate_cap = cap,
		.packet = packet,
		.now = now,
	};
	roan_cc_apply_bound(cc);
	algorithms[algo]->start(cc);
}

bool roan_cc_limits(struct roan_cc *cc, u64 link, u64 cap, u64 now)
{
	const u64 bound_was = cc->cwnd_bound;
	bool changed;

	cc->link = link ? link : LINK_UNKNOWN;
	cc->rate_cap = cap;
	roan_cc_apply_bound(cc);
	changed = CC_CALL(cc, limits, now);
	return changed || cc->cwnd_bound != bound_was;
}

bool roan_cc_cnp(struct roan_cc *cc, u64 now)
{
	return roan_cc_cnp_part(cc, ROAN_CC_WHOLE, now);
}

bool roan_cc_cnp_part(struct roan_cc *cc, u32 part, u64 now)
{
	cc->cnps++;
	cc->cnp_part += part;
	if (cc->cnp_part < ROAN_CC_WHOLE)
		return false;
	cc->cnp_part -= ROAN_CC_WHOLE;
	return algorithms[cc->algo]->cnp && CC_CALL(cc, cnp, now);
}

bool __roan_cc_acked(struct roan_cc *cc, const struct roan_cc_sample *sample, u64 now)
{
	const u64 bound_was = cc->cwnd_bound;
	struct roan_cc_sample s = *sample;
	bool changed;

	s.rtt_ns = min(s.rtt_ns, MAX_RTT);
	cc->now = max(cc->now, now);
	if (s.rtt_ns)
		roan_cc_rtt_sample(cc, s.rtt_ns);
	changed = cc->event_mask & ROAN_CC_EVENT_ACKED && CC_CALL(cc, acked, now, &s);
	roan_cc_apply_bound(cc);
	return changed || cc->cwnd_bound != bound_was;
}

bool __roan_cc_lost(struct roan_cc *cc, enum roan_cc_loss why, u64 now)
{
	return CC_CALL(cc, lost, now, why);
}

bool __roan_cc_sent(struct roan_cc *cc, u32 bytes, u64 now)
{
	return CC_CALL(cc, sent, now, bytes);
}

bool __roan_cc_elapsed(struct roan_cc *cc, u64 now)
{
	return CC_CALL(cc, elapsed, now);
}

u64 __roan_cc_deadline(const struct roan_cc *cc)
{
	return algorithms[cc->algo]->deadline ? algorithms[cc->algo]->deadline(cc) : 0;
}

void roan_cc_state(const struct roan_cc *cc, u64 now, struct roan_cc_state *state)
{
	struct roan_cc as_of_now = *cc;

	roan_cc_elapsed(&as_of_now, now);
	as_of_now.now = max(as_of_now.now, now);
	*state = (struct roan_cc_state) {
		.rate = as_of_now.rate,
		.cwnd = roan_cc_cwnd(&as_of_now),
		.cnps = as_of_now.cnps,
		.cuts = as_of_now.cuts,
	};
	if (algorithms[cc->algo]->state)
		algorithms[cc->algo]->state(&as_of_now, state);
}
