// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters that change during an event. One thread writes allowed values, as sysfs does; the other passes events to
 * every algorithm. Every mixture of old and new values must be safe: the sanitizers report undefined behaviour, and
 * rates must stay within bounds. The fuzzer changes parameters only between events. A bug here is found by chance,
 * mostly at once; there are no false failures.
 */
#include <pthread.h>
#include "core/cc/cc.h"
#include "core/cc/pacer.h"

#define LINK	100000000000ULL
#define PACKET	1082
#define EVENTS	1000000
#define FLIPS	5000
#define START	1000000000ULL

static struct roan_cc_params params;
static bool over;

static u64 scramble(u64 *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Flips one random parameter after another between its minimum and maximum, then restores it. */
static void *tune(void *unused)
{
	u64 seed = 4791;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		enum roan_cc_param which = scramble(&seed) % ROAN_CC_NUM_PARAMS;
		const struct roan_cc_param_info *info = &roan_cc_param_table[which];
		u32 was = roan_cc_param_get(&params, which);

		for (u32 i = 0; i < FLIPS; i++)
			roan_cc_param_set(&params, which, i & 1 ? info->max : info->min);
		roan_cc_param_set(&params, which, was);
	}
	return unused;
}

static void tell(struct roan_cc *cc, u64 what, u64 now)
{
	struct roan_cc_sample sample = { .bytes = what >> 8 & 0xffff, .in_flight = what >> 24 & 0xffff, .rtt_ns = what >> 40 };

	switch (what & 7) {
	case 0:
		roan_cc_cnp(cc, now);
		break;
	case 1:
		roan_cc_acked(cc, &sample, now);
		break;
	case 2:
		roan_cc_lost(cc, what & 8 ? ROAN_CC_LOST_NAK : ROAN_CC_LOST_TIMEOUT, now);
		break;
	case 3:
		roan_cc_sent(cc, sample.bytes, now);
		break;
	case 4:
		roan_cc_limits(cc, LINK, what & 8 ? 0 : LINK / 2, now);
		break;
	default:
		roan_cc_elapsed(cc, now);
		break;
	}
}

static bool sane(const struct roan_cc *cc, u64 now)
{
	bool dcqcn = cc->algo == ROAN_CC_DCQCN || cc->algo == ROAN_CC_DCQCN_MLX;
	struct roan_cc_state seen;

	roan_cc_state(cc, now, &seen);
	if (dcqcn && cc->dcqcn.rp_active && (!cc->rate || cc->rate > LINK || cc->dcqcn.target < cc->rate))
		return false;
	return roan_pacer_quantum(cc->params, cc->rate, PACKET) >= PACKET && seen.alpha <= 1024;
}

static bool lives_through_it(enum roan_cc_algo algo)
{
	u64 seed = algo + 1, now = START;
	struct roan_cc cc;
	u32 i;

	for (i = 0; i < EVENTS; i++) {
		u64 what = scramble(&seed);

		if (!(i & 15))
			roan_cc_start(&cc, algo, &params, LINK, 0, PACKET, now);
		now += what >> 44;
		tell(&cc, what, now);
		if (!sane(&cc, now)) {
			fprintf(stderr, "%s: event %u: rate %llu, window %llu\n", roan_cc_name(algo), i,
				(unsigned long long)cc.rate, (unsigned long long)cc.cwnd);
			return false;
		}
	}
	return true;
}

int main(void)
{
	enum roan_cc_algo algo;
	pthread_t thread;
	bool ok = true;

	roan_cc_params_default(&params, ROAN_CC_DCQCN);
	params.rate_to_set_on_first_cnp = 1000;		/* rate and target equal, below the top */
	if (pthread_create(&thread, NULL, tune, NULL))
		return 1;
	for (algo = 0; algo < ROAN_CC_NUM_ALGOS; algo++)
		ok = lives_through_it(algo) && ok;
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%sok parameters that change in the middle of an event\n", ok ? "" : "not ");
	return !ok;
}
