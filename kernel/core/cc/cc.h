/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control of one sender (the reaction point): events in, a rate and a window out. Which algorithm turns the one
 * into the other is chosen per QP; the shell does not care. What is paced by @rate is pacer.h, when to notify a sender is
 * np.h; here is no packet, no timer and no lock.
 *
 *   start(algo, params, link, cap, packet)    QP becomes ready to send
 *   cnp()       a CNP for this QP, from its peer
 *   acked()     bytes acknowledged, and a round-trip time if one was measured (RC only)
 *   lost()      a sequence NAK or a timeout made the sender go back
 *   sent()      bytes handed to the network, headers included, retransmissions too: after each train
 *   elapsed()   before @rate is read to pace the next train, and when deadline() has come while packets wait
 *   limits()    the link's speed or the QP's cap changed
 *
 * Each returns true if @rate or @window changed; then tell the pacer (roan_pacer_set_rate()) and the trace.
 *
 * Time is ns, any epoch, never 0. Nothing here needs a periodic timer: state carries the time it was last
 * true, and the periods missed since are applied at once, with the same result as one by one. So an idle QP costs nothing,
 * and one that sends pays per train. deadline() matters only while packets are held back by the pacer: the rate may rise
 * before the pacer would let them go; wake at the earlier of the two.
 *
 * The price while nothing is congested: acked(), lost(), sent() and elapsed() are a test of @wants each, which is 0 for
 * `none` and `fixed` always, and for DCQCN until the first CNP and again once its rate is back at the maximum.
 *
 * Concurrency: none here. The caller holds one lock over all events of one struct roan_cc. @params may change under us: each
 * value is read once per event with READ_ONCE(), any mixture of old and new is sane.
 */
#ifndef ROAN_CC_H
#define ROAN_CC_H

#include "core/core_env.h"
#include "core/cc/params.h"

/* X(enum, name): the names are those of sysfs and of the tools. */
#define ROAN_CC_ALGOS(X)							\
	X(NONE, "none")		/* nothing but the QP's cap */			\
	X(FIXED, "fixed")	/* fixed_rate, or the QP's cap if lower */	\
	X(DCQCN, "paper")	/* DCQCN as published */			\
	X(DCQCN_MLX, "mlx")		/* DCQCN as ConnectX runs it */			\
	X(SWIFT, "swift")	/* delay-based: RC only, any peer, no switch support needed */

#define X(id, name) ROAN_CC_##id,
enum roan_cc_algo { ROAN_CC_ALGOS(X) ROAN_CC_NUM_ALGOS };
#undef X

/* Events an algorithm wants to hear of at the moment; roan_cc.wants. CNPs it always hears of. */
enum roan_cc_event_mask {
	ROAN_CC_EVENT_ACKED	= BIT(0),
	ROAN_CC_EVENT_LOST	= BIT(1),
	ROAN_CC_EVENT_SENT	= BIT(2),
	ROAN_CC_EVENT_TIME	= BIT(3),
};

enum roan_cc_loss { ROAN_CC_LOST_NAK, ROAN_CC_LOST_TIMEOUT };

struct roan_cc_sample {
	u32 bytes;		/* newly acknowledged */
	u32 in_flight;		/* bytes still unacknowledged after that */
	u64 rtt_ns;		/* of a packet acknowledged by this very ACK; 0: not measured */
};

/* DCQCN, both profiles: dcqcn.c. Symbols as in the paper. */
struct roan_dcqcn {
	u64 rate;		/* R_C, bit/s; meaningful while limiting */
	u64 target;		/* R_T, bit/s */
	u64 bytes;		/* sent since the last increase by volume, or the last cut */
	u64 alpha_at;		/* ns: alpha had the value @alpha then; it has decayed once per period since */
	u64 alpha_update_at;	/* ns: the update that takes a CNP into account; 0: none pending (mlx) */
	u64 cut_at;		/* ns: the cut that a CNP asked for; 0: none pending (mlx) */
	u64 increase_at;	/* ns: next increase by time */
	u64 period_base;	/* ns: limiting began; cuts happen at whole periods from here (mlx) */
	u32 alpha;		/* 1 << 30 is one */
	u32 time_steps;		/* T: increases by time since the last cut */
	u32 byte_steps;		/* BC: increases by volume since the last cut */
	bool rp_active;
};

/* Swift: swift.c. */
struct roan_swift {
	u64 cwnd;		/* 1/256 byte; 0: no round trip was measured yet */
	u64 acked;		/* bytes acknowledged since the last round trip was measured */
	u64 cut_at;		/* ns: last decrease; 0: never */
	u64 rtt_ns;		/* smoothed; 0: none yet */
	u32 timeouts;		/* in a row */
};

struct roan_cc {
	/* read by the shell */
	u64 rate;		/* bit/s on the wire; 0: unlimited */
	u64 cwnd;		/* bytes in flight; 0: unlimited. One packet may always be in flight */
	u64 cwnd_bound;		/* the same, by cwnd_bound.c; the lower counts */
	bool cwnd_bounded;	/* there is to be a bound, once a round trip is known: ACKs are wanted */
	u32 cnps;		/* heard since start */
	u32 cuts;		/* decreases since start, whatever for */
	u8  algo;		/* enum roan_cc_algo */
	u8  event_mask;		/* enum roan_cc_event_mask */

	/* read by the algorithms */
	u32 packet;		/* bytes of a full packet on the wire */
	u64 link;		/* bit/s, never 0 */
	u64 rate_cap;		/* bit/s: the QP's own limit; 0: none */
	u64 now;		/* ns: of the latest event; an event from a CPU behind it happens then */
	u64 min_rtt_ns;		/* shortest round trip seen lately; 0: none yet, or nobody asked */
	u64 min_rtt_at;		/* ns: it was last confirmed or renewed */
	const struct roan_cc_params *params;
	union {
		struct roan_dcqcn dcqcn;
		struct roan_swift swift;
	};
};

/* What there is to see of a QP's congestion control; all zero where an algorithm has no such thing. */
struct roan_cc_state {
	u64 rate;		/* bit/s; 0: unlimited */
	u64 target;		/* bit/s; DCQCN while limiting */
	u64 cwnd;		/* bytes; 0: unlimited */
	u64 rtt_ns;		/* Swift: smoothed */
	u32 alpha;		/* DCQCN: 1/1024, as of now */
	u32 time_steps, byte_steps;
	u32 cnps, cuts;
};

/* bit/s of an interface that claims @mbps: more than any rate may be is not believed, as periods are made of it. 0: unknown. */
static inline u64 roan_cc_link(u32 mbps)
{
	return min_t(u32, mbps, ROAN_CC_MAX_MBPS) * 1000000ull;
}

/* @params outlive @cc. @link: bit/s, 0 is taken as 10 Gb/s. @cap: bit/s, 0 = none. @packet: wire bytes of a full packet. */
void roan_cc_start(struct roan_cc *cc, enum roan_cc_algo algo, const struct roan_cc_params *params, u64 link, u64 cap,
		   u32 packet, u64 now);
bool roan_cc_limits(struct roan_cc *cc, u64 link, u64 cap, u64 now);
bool roan_cc_cnp(struct roan_cc *cc, u64 now);

/* Of now: what is due is counted, but @cc stays as it is. */
void roan_cc_state(const struct roan_cc *cc, u64 now, struct roan_cc_state *state);

/* Default values of @algo. Each algorithm has a set of its own, so that one may be tuned without the others. */
void roan_cc_params_default(struct roan_cc_params *params, enum roan_cc_algo algo);

/* What an algorithm needs, for code outside core/cc that must not know algorithms by name. */
#define ROAN_CC_USES_ECN	BIT(0)	/* reacts to CNPs: data packets are sent as ECT(0) */
#define ROAN_CC_NEEDS_ACKS	BIT(1)	/* measures round trips: RC only */
#define ROAN_CC_FROM_START	BIT(2)	/* limits a QP before any event came */
u8 roan_cc_flags(enum roan_cc_algo algo);
const char *roan_cc_name(enum roan_cc_algo algo);
/* ROAN_CC_NUM_ALGOS: no such name. */
enum roan_cc_algo roan_cc_find(const char *name);

/* The far halves of the inline functions. */
bool __roan_cc_acked(struct roan_cc *cc, const struct roan_cc_sample *sample, u64 now);
bool __roan_cc_lost(struct roan_cc *cc, enum roan_cc_loss why, u64 now);
bool __roan_cc_sent(struct roan_cc *cc, u32 bytes, u64 now);
bool __roan_cc_elapsed(struct roan_cc *cc, u64 now);
u64 __roan_cc_deadline(const struct roan_cc *cc);

static inline bool roan_cc_uses_acks(const struct roan_cc *cc)
{
	return unlikely(cc->event_mask & ROAN_CC_EVENT_ACKED || cc->cwnd_bounded);
}

/* Nothing is limited and nothing is wanted but CNPs. */
static inline bool roan_cc_idle(const struct roan_cc *cc)
{
	return !cc->rate && !cc->cwnd && !cc->event_mask && !cc->cwnd_bounded;
}

static inline bool roan_cc_acked(struct roan_cc *cc, const struct roan_cc_sample *sample, u64 now)
{
	return roan_cc_uses_acks(cc) && __roan_cc_acked(cc, sample, now);
}

static inline bool roan_cc_lost(struct roan_cc *cc, enum roan_cc_loss why, u64 now)
{
	return unlikely(cc->event_mask & ROAN_CC_EVENT_LOST) && __roan_cc_lost(cc, why, now);
}

static inline bool roan_cc_sent(struct roan_cc *cc, u32 bytes, u64 now)
{
	return unlikely(cc->event_mask & ROAN_CC_EVENT_SENT) && __roan_cc_sent(cc, bytes, now);
}

static inline bool roan_cc_elapsed(struct roan_cc *cc, u64 now)
{
	return unlikely(cc->event_mask & ROAN_CC_EVENT_TIME) && __roan_cc_elapsed(cc, now);
}

/* ns; 0: time alone raises nothing. */
static inline u64 roan_cc_deadline(const struct roan_cc *cc)
{
	return unlikely(cc->event_mask & ROAN_CC_EVENT_TIME) ? __roan_cc_deadline(cc) : 0;
}

/* The algorithm's window and the bound, whichever is lower; 0: neither. */
static inline u64 roan_cc_cwnd(const struct roan_cc *cc)
{
	if (!cc->cwnd || !cc->cwnd_bound)
		return cc->cwnd | cc->cwnd_bound;
	return min(cc->cwnd, cc->cwnd_bound);
}

/* Bytes that may join @in_flight. A packet may always go when nothing is in flight: windows below one are paced. */
static inline u64 roan_cc_cwnd_avail(const struct roan_cc *cc, u64 in_flight)
{
	u64 window = roan_cc_cwnd(cc);

	if (likely(!window))
		return U64_MAX;
	if (!in_flight)
		return max_t(u64, window, cc->packet);
	return in_flight < window ? window - in_flight : 0;
}

#endif /* ROAN_CC_H */
