// SPDX-License-Identifier: GPL-2.0
/*
 * DCQCN's reaction point. A CNP cuts the rate R_C by a share that follows alpha, an estimate of how often CNPs come.
 * Time and volume without CNPs raise it again: first back to the target R_T (fast recovery), then beyond it (additive,
 * hyper).
 *
 * Two profiles. `dcqcn` (Zhu et al., SIGCOMM 2015, sections 3 and 5): a CNP cuts at once, with the alpha before it,
 * and restarts the timers; the step counter is raised before the stage is chosen. `dcqcn-mlx` (ConnectX): timers run
 * freely from the first CNP; alpha is updated at the end of a period that had a CNP, the rate is cut at the end of
 * another period; the step counter is raised after the stage is chosen. Where sources disagree,
 * Documentation/congestion-control.md has the decision.
 *
 * No timer runs: each event first applies everything that was due before it, in order of time. Between two events at
 * most one update of alpha, one cut and any number of increases are due; only a few dozen of the increases differ from
 * each other.
 */
#include "core/cc/cc_ops.h"

#define ALPHA_FRAC	20	/* fraction bits of alpha below 1/1024; its slow average uses eight of them */

static bool is_paper(const struct roan_cc *cc)
{
	return cc->algo == ROAN_CC_DCQCN;
}

static u64 usec(u32 us)
{
	return (u64)us * NSEC_PER_USEC;
}

/* Rate at which limiting ends. */
static u64 dcqcn_max_rate(const struct roan_cc *cc)
{
	u64 rate = min(roan_mbps(CC_PARAM(cc, rpg_max_rate)) ?: U64_MAX, cc->link);

	return cc->rate_cap ? min(rate, cc->rate_cap) : rate;
}

static u64 dcqcn_min_rate(const struct roan_cc *cc)
{
	return min(roan_mbps(CC_PARAM(cc, rpg_min_rate)), dcqcn_max_rate(cc));
}

/* End of the period that contains @now, for periods counted from @origin. Always later than @now. */
static u64 dcqcn_period_end(u64 origin, u64 period, u64 now)
{
	return origin + (div64_u64(now - origin, period) + 1) * period;
}

/* ---- alpha ---- */

/* Alpha after @periods updates without a CNP: alpha * (g/1024)^periods, by squaring. */
static u32 alpha_decayed(u32 alpha, u32 g, u64 periods)
{
	u64 factor = (u64)g << 22;	/* unit: 1 / (1 << 32) */

	for (; periods && alpha; periods >>= 1) {
		if (periods & 1)
			alpha = alpha * factor >> 32;
		factor = factor * factor >> 32;
	}
	return alpha;
}

/* Alpha after an update with a CNP. */
static u32 alpha_raised(u32 alpha, u32 g)
{
	return ((u64)alpha * g >> 10) + ((1024 - g) << ALPHA_FRAC);
}

/* Decay is always computed from the last rise, so the number of reads in between does not change the value. */
static u32 alpha_at(const struct roan_cc *cc, u64 at)
{
	const struct roan_dcqcn *d = &cc->dcqcn;

	return alpha_decayed(d->alpha, CC_PARAM(cc, dce_tcp_g),
			     div64_u64(at - d->alpha_at, usec(CC_PARAM(cc, dce_tcp_rtt))));
}

/* dcqcn-mlx: applies the pending update of alpha for a CNP, if due. That update is one of the periods. */
static void alpha_update_if_due(struct roan_cc *cc, u64 now)
{
	struct roan_dcqcn *d = &cc->dcqcn;

	if (!d->alpha_update_at || d->alpha_update_at > now)
		return;
	d->alpha = alpha_raised(alpha_at(cc, d->alpha_update_at - 1), CC_PARAM(cc, dce_tcp_g));
	d->alpha_at = d->alpha_update_at;
	d->alpha_update_at = 0;
}

/* ---- rate decrease ---- */

static void dcqcn_cut(struct roan_cc *cc, u64 at)
{
	struct roan_dcqcn *d = &cc->dcqcn;
	u64 most = div_u64(d->rate * (100 - CC_PARAM(cc, rpg_min_dec_fac)), 100);
	u64 share;

	alpha_update_if_due(cc, at);
	share = mul_u64_u64_shr(d->rate, alpha_at(cc, at), CC_PARAM(cc, rpg_gd) + ALPHA_FRAC);
	if (CC_PARAM(cc, clamp_tgt_rate) || d->byte_steps ||
	    (CC_PARAM(cc, clamp_tgt_rate_after_time_inc) && d->time_steps))
		d->target = d->rate;
	d->rate = max(d->rate - min(share, most), dcqcn_min_rate(cc));
	d->target = max(d->target, d->rate);
	d->time_steps = 0;
	d->byte_steps = 0;
	d->bytes = 0;
	d->increase_at = at + usec(CC_PARAM(cc, rpg_time_reset));
	d->cut_at = 0;
	cc->cuts++;
}

/* ---- rate increase ---- */

/* Increase of the target in the stage given by the step counters, with @rounds of fast recovery. */
static u64 dcqcn_gain(const struct roan_cc *cc, u32 rounds)
{
	const struct roan_dcqcn *d = &cc->dcqcn;
	u32 less = min(d->time_steps, d->byte_steps);
	u32 more = max(d->time_steps, d->byte_steps);

	if (less > rounds)
		return roan_mbps(CC_PARAM(cc, rpg_hai_rate)) * (is_paper(cc) ? less - rounds + 1 : 1);
	return more >= rounds ? roan_mbps(CC_PARAM(cc, rpg_ai_rate)) : 0;
}

/* True if the gain stays the same for all further steps while only @steps is counted up. It is not 0 then. */
static bool dcqcn_gain_lasts(const struct roan_cc *cc, u32 rounds, u32 steps, u32 others)
{
	return steps > rounds && (steps >= others || !is_paper(cc));
}

/*
 * Applies @n steps, counted in *@steps (one of the two counters; @others is the other's value), with the same result
 * as one by one: once gain and distance from rate to target are constant, rate and target rise together until the
 * target is at its maximum.
 */
static void dcqcn_increase(struct roan_cc *cc, u32 *steps, u32 others, u64 n)
{
	struct roan_dcqcn *d = &cc->dcqcn;
	u32 rounds = CC_PARAM(cc, rpg_threshold);
	u64 top = dcqcn_max_rate(cc);

	while (n && d->rate < top) {
		u64 gap = d->target - d->rate;
		u64 step, jump;

		if (is_paper(cc))
			++*steps;
		step = dcqcn_gain(cc, rounds);
		if (!is_paper(cc))
			++*steps;
		d->target = min(d->target + step, top);
		d->rate += (d->target - d->rate + 1) / 2;	/* rounded up, so that the rate reaches the target */
		n--;
		if (d->target - d->rate != gap || !dcqcn_gain_lasts(cc, rounds, *steps, others))
			continue;
		jump = min(n, div64_u64(top - d->target, step));
		d->target += jump * step;
		d->rate += jump * step;
		*steps += jump;
		n -= jump;
	}
	*steps += n;	/* at the maximum steps are counted without a gain */
}

static void dcqcn_increase_until(struct roan_cc *cc, u64 now)
{
	struct roan_dcqcn *d = &cc->dcqcn;
	u64 period = usec(CC_PARAM(cc, rpg_time_reset));
	u64 n;

	if (d->increase_at > now)
		return;
	n = div64_u64(now - d->increase_at, period) + 1;
	d->increase_at += n * period;
	dcqcn_increase(cc, &d->time_steps, d->byte_steps, n);
}

/* ---- start and end of limiting ---- */

/* First CNP, ever or since the rate was last unlimited. `dcqcn` keeps alpha, `dcqcn-mlx` starts it again. */
static void dcqcn_begin(struct roan_cc *cc)
{
	struct roan_dcqcn *d = &cc->dcqcn;

	d->rate = dcqcn_max_rate(cc);
	d->target = d->rate;
	d->period_base = cc->now;
	d->time_steps = 0;
	d->byte_steps = 0;
	d->bytes = 0;
	d->increase_at = cc->now + usec(CC_PARAM(cc, rpg_time_reset));
	if (!is_paper(cc) || !d->alpha_at) {
		d->alpha = CC_PARAM(cc, initial_alpha_value) << ALPHA_FRAC;
		d->alpha_at = cc->now;
	}
	d->rp_active = true;
	cc->event_mask = ROAN_CC_EVENT_SENT | ROAN_CC_EVENT_TIME;
}

/* Publishes rate and event mask. With a cut pending the QP stays limited even at the maximum rate. */
static void dcqcn_publish(struct roan_cc *cc)
{
	struct roan_dcqcn *d = &cc->dcqcn;

	if (d->rp_active && (d->rate < dcqcn_max_rate(cc) || d->cut_at)) {
		cc->rate = d->rate;
		return;
	}
	d->rp_active = false;
	d->alpha_update_at = 0;
	cc->event_mask = 0;
	cc->rate = cc->rate_cap;
}

/* Applies all changes due by now, in order of time; at the same time a cut precedes an increase. */
static void dcqcn_catch_up(struct roan_cc *cc)
{
	struct roan_dcqcn *d = &cc->dcqcn;

	if (d->cut_at && d->cut_at <= cc->now) {
		dcqcn_increase_until(cc, d->cut_at - 1);
		dcqcn_cut(cc, d->cut_at);
	}
	dcqcn_increase_until(cc, cc->now);
	alpha_update_if_due(cc, cc->now);
	dcqcn_publish(cc);
}

/* ---- events ---- */

static void dcqcn_cnp(struct roan_cc *cc)
{
	struct roan_dcqcn *d = &cc->dcqcn;
	u64 monitor = usec(CC_PARAM(cc, rate_reduce_monitor_period));
	u64 first_rate = roan_mbps(CC_PARAM(cc, rate_to_set_on_first_cnp));
	bool first;

	if (d->rp_active)
		dcqcn_catch_up(cc);
	first = !d->rp_active;
	if (first)
		dcqcn_begin(cc);

	if (first && first_rate) {
		d->rate = min(first_rate, d->rate);
		d->target = d->rate;
	} else if (!monitor) {
		dcqcn_cut(cc, cc->now);
	} else if (!d->cut_at) {
		d->cut_at = dcqcn_period_end(d->period_base, monitor, cc->now);
	}

	if (is_paper(cc)) {
		d->alpha = alpha_raised(alpha_at(cc, cc->now), CC_PARAM(cc, dce_tcp_g));
		d->alpha_at = cc->now;
	} else if (!first && !d->alpha_update_at) {
		d->alpha_update_at = dcqcn_period_end(d->alpha_at, usec(CC_PARAM(cc, dce_tcp_rtt)), cc->now);
	}
	dcqcn_publish(cc);
}

static void dcqcn_sent(struct roan_cc *cc, u32 bytes)
{
	struct roan_dcqcn *d = &cc->dcqcn;
	u64 volume = CC_PARAM(cc, rpg_byte_reset) * 64ULL;
	u64 n;

	dcqcn_catch_up(cc);
	if (!d->rp_active || !volume)
		return;
	d->bytes += bytes;
	if (d->bytes < volume)
		return;
	n = div64_u64(d->bytes, volume);
	d->bytes -= n * volume;
	dcqcn_increase(cc, &d->byte_steps, d->time_steps, n);
	dcqcn_publish(cc);
}

static void dcqcn_limits(struct roan_cc *cc)
{
	struct roan_dcqcn *d = &cc->dcqcn;

	if (d->rp_active)
		dcqcn_catch_up(cc);
	d->rate = min(d->rate, dcqcn_max_rate(cc));
	d->target = min(d->target, dcqcn_max_rate(cc));
	dcqcn_publish(cc);
}

static u64 dcqcn_deadline(const struct roan_cc *cc)
{
	return cc->dcqcn.increase_at;
}

static void dcqcn_state(const struct roan_cc *cc, struct roan_cc_state *state)
{
	const struct roan_dcqcn *d = &cc->dcqcn;

	if (d->alpha_at)
		state->alpha = alpha_at(cc, cc->now) >> ALPHA_FRAC;
	if (!d->rp_active)
		return;
	state->target = d->target;
}

const struct roan_cc_ops roan_cc_dcqcn = {
	.flags = ROAN_CC_USES_ECN,
	.start = dcqcn_limits,
	.limits = dcqcn_limits,
	.cnp = dcqcn_cnp,
	.sent = dcqcn_sent,
	.elapsed = dcqcn_catch_up,
	.deadline = dcqcn_deadline,
	.state = dcqcn_state,
};
