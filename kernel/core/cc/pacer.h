/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When may the next train of a QP leave, and how many bytes may it carry? A bucket whose credit grows with the rate and may
 * be overdrawn by one train:
 *
 *	a train leaves when credit >= 0, with at most quantum bytes;	credit -= what it carried
 *	credit grows by rate * time, up to one quantum
 *
 * so -quantum <= credit <= quantum, and whatever the timing, in any time t at a constant rate
 *
 *	bytes sent <= rate * t / 8 + 2 * quantum
 *
 * and one that starts fresh, always has something to send and is called at most quantum / rate late sends, to the byte,
 *
 *	bytes sent >= rate * t / 8 - quantum
 *
 * The quantum is what the rate gives in pacer_burst_us, at most pacer_burst_max, at least one packet. Credit is held in
 * 1e-9 bit (rate * ns), so that neither time nor a change of rate rounds anything off; the longest debt, 64 KB, is 5e14.
 *
 *	u32 may = roan_pacer_allow(&p, now);		U32_MAX: not paced; 0: not before roan_pacer_when(&p)
 *	... build a train of at most that, in whole packets ...
 *	roan_pacer_sent(&p, bytes);
 *
 * Zeroed is a valid pacer: unlimited, and then each call is one test. Wire bytes as the rate's. Concurrency: the caller's lock.
 */
#ifndef ROAN_PACER_H
#define ROAN_PACER_H

#include "core/core_env.h"

struct roan_cc_params;

struct roan_pacer {
	u64 rate;		/* bit/s; 0: unlimited, and the rest is meaningless */
	u64 credit_ns;		/* ns: credit is as of then */
	s64 credit;		/* 1e-9 bit */
	u32 quantum;		/* bytes */
};

/* Most bytes of a train at @rate: see above. */
u32 roan_pacer_quantum(const struct roan_cc_params *params, u64 rate, u32 packet);

/* What was earned at the old rate stays earned, as far as the new quantum allows. @rate 0 ends pacing. */
void roan_pacer_set_rate(struct roan_pacer *p, u64 rate, u32 quantum, u64 now);

u32 __roan_pacer_allow(struct roan_pacer *p, u64 now);
u64 __roan_pacer_when(const struct roan_pacer *p);

/* Bytes the next train may carry; 0: none now; U32_MAX: as many as you like. */
static inline u32 roan_pacer_allow(struct roan_pacer *p, u64 now)
{
	return likely(!p->rate) ? U32_MAX : __roan_pacer_allow(p, now);
}

/* ns: the first moment allow() says yes, if the rate stays. Not paced: 0. */
static inline u64 roan_pacer_when(const struct roan_pacer *p)
{
	return likely(!p->rate) ? 0 : __roan_pacer_when(p);
}

/*
 * The same for a train that somebody below keeps until its time: it may be handed over early, by no more than what
 * ROAN_PACER_AHEAD trains take, nor than ROAN_PACER_AHEAD_NS; so what was handed over hears of no cut for no longer. @due,
 * in ns, is the time it is to leave at: @now, or that of roan_pacer_when(). Not paced: U32_MAX, and @now.
 */
#define ROAN_PACER_AHEAD	4
#define ROAN_PACER_AHEAD_NS	(200 * NSEC_PER_USEC)
u32 roan_pacer_early(struct roan_pacer *p, u64 now, u64 *due);
/* ns: the first moment early() says yes again with half of that lead to fill, so that one call is for several trains. */
u64 roan_pacer_when_early(const struct roan_pacer *p);

/* After allow(), at the same time. @bytes: what was sent, 0 is fine. */
static inline void roan_pacer_sent(struct roan_pacer *p, u32 bytes)
{
	if (unlikely(p->rate))
		p->credit -= (s64)bytes * 8 * NSEC_PER_SEC;
}

#endif /* ROAN_PACER_H */
