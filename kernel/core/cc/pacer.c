// SPDX-License-Identifier: GPL-2.0
/*
 * The pacer's arithmetic: credit earned, limited, overdrawn. pacer.h states its guarantees. Does not send and has no
 * timer.
 */
#include "core/cc/pacer.h"
#include "core/cc/params.h"

/* Credit for @bytes, in 1e-9 bit. */
static s64 pacer_cost(u32 bytes)
{
	return (s64)bytes * 8 * NSEC_PER_SEC;
}

u32 roan_pacer_quantum(const struct roan_cc_params *params, u64 rate, u32 packet)
{
	u64 bytes = rate * READ_ONCE(params->pacer_burst_us) / (8 * USEC_PER_SEC);

	return max_t(u64, packet, min_t(u64, bytes, READ_ONCE(params->pacer_burst_max)));
}

/* Adds the credit earned until @now, up to one quantum. If the product overflows, the limit applies. */
static void pacer_earn(struct roan_pacer *p, u64 now)
{
	u64 room = pacer_cost(p->quantum) - p->credit;
	u64 earned;

	if (now <= p->credit_ns)
		return;
	if (check_mul_overflow(p->rate, now - p->credit_ns, &earned) || earned > room)
		earned = room;
	p->credit += earned;
	p->credit_ns = now;
}

void roan_pacer_set_rate(struct roan_pacer *p, u64 rate, u32 quantum, u64 now)
{
	if (p->rate) {
		pacer_earn(p, now);
	} else {
		p->credit_ns = now;
		p->credit = 0;
	}
	p->rate = rate;
	p->quantum = quantum;
	p->credit = min(p->credit, pacer_cost(quantum));
}

u32 __roan_pacer_allow(struct roan_pacer *p, u64 now)
{
	pacer_earn(p, now);
	return p->credit < 0 ? 0 : p->quantum;
}

/* ns by which trains may be handed over before their departure time. */
static u64 pacer_lead(const struct roan_pacer *p)
{
	return min_t(u64, pacer_cost(ROAN_PACER_AHEAD * p->quantum) / p->rate, ROAN_PACER_AHEAD_NS);
}

u32 roan_pacer_early(struct roan_pacer *p, u64 now, u64 *due)
{
	u32 may = roan_pacer_allow(p, now);
	u64 at = roan_pacer_when(p);

	*due = max(now, at);
	if (may || at > now + pacer_lead(p))
		return may;
	return __roan_pacer_allow(p, at);
}

u64 roan_pacer_when_early(const struct roan_pacer *p)
{
	return p->rate ? __roan_pacer_when(p) - pacer_lead(p) / 2 : 0;
}

void roan_pacer_unsent(struct roan_pacer *p, u32 bytes)
{
	if (p->rate)
		p->credit = min(p->credit + pacer_cost(bytes), pacer_cost(p->quantum));
}

u64 __roan_pacer_when(const struct roan_pacer *p)
{
	return p->credit < 0 ? p->credit_ns + DIV_ROUND_UP((u64)-p->credit, p->rate) : p->credit_ns;
}
