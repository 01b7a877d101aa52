/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decides when the next train of a QP may be sent, and with how many bytes. A token bucket whose credit may be
 * overdrawn by one train. Does not decide the rate (cc.h).
 *
 *	a train is sent when credit >= 0, with at most quantum bytes;	credit -= bytes sent
 *	credit grows by rate * time, up to one quantum
 *
 * So -quantum <= credit <= quantum, and with any timing, in any time t at a constant rate
 *
 *	bytes sent <= rate * t / 8 + 2 * quantum
 *
 * and for a sender that starts without credit, always has data and is called at most quantum / rate late, to the byte,
 *
 *	bytes sent >= rate * t / 8 - quantum
 *
 * The quantum is the bytes sent in pacer_burst_us at the rate, at most pacer_burst_max, at least one packet. Credit is
 * in 1e-9 bit (rate * ns), so neither time nor a change of the rate causes rounding; the largest debt, 64 KB, is 5e14.
 *
 *	u32 may = roan_pacer_allow(&p, now);		U32_MAX: not paced; 0: not before roan_pacer_when(&p)
 *	... build a train of at most that, in whole packets ...
 *	roan_pacer_sent(&p, bytes);
 *
 * A zeroed pacer is valid: unlimited, and each call is a single test. Bytes are wire bytes, as for the rate.
 * Concurrency: the caller's lock.
 */
#ifndef ROAN_PACER_H
#define ROAN_PACER_H

#include "core/core_env.h"

struct roan_cc_params;

struct roan_pacer {
	u64 rate;		/* bit/s; 0: unlimited, the other fields are not used */
	u64 credit_ns;		/* ns: time for which @credit is valid */
	s64 credit;		/* 1e-9 bit */
	u32 quantum;		/* bytes */
};

/* Maximum bytes of a train at @rate: see above. */
u32 roan_pacer_quantum(const struct roan_cc_params *params, u64 rate, u32 packet);

/* Credit earned at the old rate is kept, up to the new quantum. @rate 0 ends pacing. */
void roan_pacer_set_rate(struct roan_pacer *p, u64 rate, u32 quantum, u64 now);

u32 __roan_pacer_allow(struct roan_pacer *p, u64 now);
u64 __roan_pacer_when(const struct roan_pacer *p);

/* Bytes that the next train may carry; 0: none now; U32_MAX: not limited. */
static inline u32 roan_pacer_allow(struct roan_pacer *p, u64 now)
{
	return likely(!p->rate) ? U32_MAX : __roan_pacer_allow(p, now);
}

/* ns: the earliest time at which roan_pacer_allow() is not 0 if the rate stays. Not paced: 0. */
static inline u64 roan_pacer_when(const struct roan_pacer *p)
{
	return likely(!p->rate) ? 0 : __roan_pacer_when(p);
}

/*
 * As roan_pacer_allow(), for a qdisc (fq) that keeps a train until its departure time: the train may be handed over
 * early, by at most ROAN_PACER_AHEAD trains' time and at most ROAN_PACER_AHEAD_NS. A rate cut does not affect packets
 * already handed to fq, so this bounds the delay of a cut. *@due is the departure time in ns: @now or
 * roan_pacer_when(). Not paced: U32_MAX, and @now.
 */
#define ROAN_PACER_AHEAD	4
#define ROAN_PACER_AHEAD_NS	(200 * NSEC_PER_USEC)
u32 roan_pacer_early(struct roan_pacer *p, u64 now, u64 *due);
/* ns: when half of that lead time is free again, so that one call hands over several trains. */
u64 roan_pacer_when_early(const struct roan_pacer *p);

/* Call after roan_pacer_allow(), at the same time. @bytes: bytes sent; may be 0. */
static inline void roan_pacer_sent(struct roan_pacer *p, u32 bytes)
{
	if (unlikely(p->rate))
		p->credit -= (s64)bytes * 8 * NSEC_PER_SEC;
}

/* @bytes of those sent did not leave this host: they cost nothing. */
void roan_pacer_unsent(struct roan_pacer *p, u32 bytes);

#endif /* ROAN_PACER_H */
