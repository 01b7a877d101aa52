// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes congestion control: any sequence of events, any allowed parameters, changed between events, and clocks that
 * jump or step back. Invariants: rates stay between floor and link rate, windows and the pacer's credit stay within
 * bounds, deadlines lie in the future.
 */
#include "core/cc/cc.h"
#include "core/cc/np.h"
#include "core/cc/pacer.h"

#define MUST(c)	do { if (!(c)) abort(); } while (0)
#define PACKET	1082

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

struct state {
	struct roan_cc_params params;
	struct roan_cc cc;
	struct roan_pacer pacer;
	struct roan_np np;
	u64 now;
	u64 floor;	/* the lowest floor so far: a higher floor takes effect at the next cut */
};

static void lower_floor(struct state *s)
{
	s->floor = min(s->floor, min(s->cc.link, s->cc.rate_cap ? s->cc.rate_cap : U64_MAX));
}

static void check(struct state *s)
{
	const struct roan_cc *cc = &s->cc;
	const struct roan_dcqcn *d = &cc->dcqcn;
	struct roan_cc_state seen;
	u64 deadline;

	MUST(!cc->rate_cap || (cc->rate && cc->rate <= cc->rate_cap));
	roan_cc_state(cc, s->now, &seen);
	MUST(seen.cnps == cc->cnps && seen.cuts >= cc->cuts);
	if (cc->algo == ROAN_CC_SWIFT) {
		MUST(!cc->cwnd || cc->cwnd >= PACKET);
		MUST(!cc->cwnd || cc->cwnd <= max(1ULL << 30, 2ULL * PACKET));
		return;
	}
	MUST(!cc->cwnd);
	if (cc->algo != ROAN_CC_DCQCN && cc->algo != ROAN_CC_DCQCN_MLX)
		return;
	MUST(d->rp_active == !!cc->event_mask);
	MUST(seen.alpha <= 1024);
	if (!d->rp_active)
		return;
	MUST(cc->rate == d->rate && d->rate >= s->floor && d->rate <= cc->link && d->target >= d->rate);
	deadline = roan_cc_deadline(cc);
	MUST(deadline > cc->now);
}

static void pace(struct state *s, u32 bytes)
{
	s64 quantum;
	u32 may;

	roan_pacer_set_rate(&s->pacer, s->cc.rate, roan_pacer_quantum(&s->params, s->cc.rate, PACKET), s->cc.now);
	may = roan_pacer_allow(&s->pacer, s->cc.now);
	MUST(may == U32_MAX || may <= 65535);
	if (!s->cc.rate) {
		MUST(may == U32_MAX);
		return;
	}
	if (may)
		roan_pacer_sent(&s->pacer, min(bytes, may));
	quantum = 65535LL * 8 * NSEC_PER_SEC;
	MUST(s->pacer.credit >= -quantum && s->pacer.credit <= quantum);
	MUST(s->pacer.credit >= 0 || roan_pacer_when(&s->pacer) > s->pacer.credit_ns);
}

static void event(struct state *s, const u8 *d)
{
	struct roan_cc_sample sample = {
		.bytes = d[1] << 8, .in_flight = d[2] << 10, .rtt_ns = (u64)d[3] << (d[2] & 31),
	};
	u64 now = s->now - (d[0] & 0x80 ? d[3] : 0);	/* sometimes a CPU with an earlier time */
	u32 which;

	switch (d[0] & 15) {
	case 0:
	case 1:
		roan_cc_cnp(&s->cc, now);
		break;
	case 2:
		roan_cc_acked(&s->cc, &sample, now);
		roan_cc_elapsed(&s->cc, now);	/* an ACK for cwnd_bound.c alone may pass the deadline */
		break;
	case 3:
		roan_cc_lost(&s->cc, d[1] & 1, now);
		break;
	case 4:
	case 5:
		roan_cc_sent(&s->cc, d[1] << (d[2] & 15), now);
		break;
	case 6:
		roan_cc_elapsed(&s->cc, now);
		break;
	case 7:
		roan_cc_limits(&s->cc, (u64)d[1] << (d[2] & 31), (u64)d[3] << (d[2] >> 3), now);
		lower_floor(s);
		break;
	case 8:
		which = d[1] % ROAN_CC_NUM_PARAMS;
		roan_cc_param_set(&s->params, which, d[2] << (d[3] & 15) | d[3] >> 4);
		MUST(roan_cc_param_get(&s->params, which) >= roan_cc_param_table[which].min);
		MUST(roan_cc_param_get(&s->params, which) <= roan_cc_param_table[which].max);
		break;
	case 9:
		if (roan_np_cnp_due(&s->np, s->params.min_time_between_cnps, now))
			MUST(!roan_np_cnp_pending(&s->np, 1, now));
		break;
	default:
		s->now += (u64)d[1] << (d[2] & 31);
		break;
	}
	pace(s, d[1] << 4);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct state s = { .now = 1000, .floor = 1000000 };
	u32 algo;

	if (size < 4)
		return 0;
	algo = data[0] % ROAN_CC_NUM_ALGOS;
	roan_cc_params_default(&s.params, algo);
	roan_cc_start(&s.cc, algo, &s.params, (u64)data[1] << (data[2] & 31), (u64)data[3] << (data[2] >> 3), PACKET,
		      s.now);
	lower_floor(&s);
	for (size_t at = 4; at + 4 <= size; at += 4) {
		event(&s, data + at);
		check(&s);
	}
	return 0;
}
