/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control of one sender (the reaction point): events in, a rate and a window out. The algorithm is chosen
 * per QP; the driver half does not depend on it. pacer.h paces packets at @rate; np.h decides when to send a CNP. No
 * packet, no timer and no lock here.
 *
 *   start(algo, params, link, cap, packet)    QP becomes ready to send
 *   cnp()       a CNP for this QP, from its peer
 *   acked()     bytes acknowledged, and a round-trip time if one was measured (RC only)
 *   lost()      a sequence NAK or a timeout made the sender go back
 *   sent()      bytes handed to the network, headers included, retransmissions too: after each train
 *   elapsed()   before @rate is read to pace the next train, and at deadline() while packets wait
 *   limits()    the link's speed or the QP's cap changed
 *
 * All but start() return true if @rate, @cwnd or @cwnd_bound changed; then call roan_pacer_set_rate() and the
 * tracepoint.
 *
 * Time is ns, any epoch, never 0. No periodic timer is needed: the state carries the time for which it is valid, and
 * periods that passed since are applied at once, with the same result as one by one. So an idle QP costs nothing, and
 * a sending one pays per train. deadline() matters only while the pacer holds packets back: the rate may rise before
 * the pacer's own time, so the caller wakes at the earlier of the two.
 *
 * Cost without congestion: acked(), lost(), sent() and elapsed() test @event_mask, acked() also @cwnd_bounded. The mask
 * is 0 for `none` always, and for DCQCN until the first CNP and again once its rate is back at the maximum.
 *
 * Concurrency: none here. The caller holds one lock over all events of one struct roan_cc. @params may change at any
 * time: each value is read once per event with READ_ONCE(), and any mixture of old and new values is valid.
 */
#ifndef ROAN_CC_H
#define ROAN_CC_H

#include "core/core_env.h"
#include "core/cc/params.h"

/* X(enum, name): the names of sysfs and of the tools. */
#define ROAN_CC_ALGOS(X)							\
	X(NONE, "none")		/* only the QP's cap */				\
	X(FIXED, "fixed")	/* fixed_rate, or the QP's cap if lower */	\
	X(DCQCN, "dcqcn")	/* as published */				\
	X(DCQCN_MLX, "dcqcn-mlx")	/* as ConnectX runs it */		\
	X(SWIFT, "swift")	/* delay-based: RC only, any peer, no switch support needed */

#define X(id, name) ROAN_CC_##id,
enum roan_cc_algo { ROAN_CC_ALGOS(X) ROAN_CC_NUM_ALGOS };
#undef X

/* Events that an algorithm subscribes to at the moment: roan_cc.event_mask. CNPs are always delivered. */
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
	u64 rtt_ns;		/* of a packet acknowledged by this ACK; 0: not measured */
};

/* DCQCN, both profiles: dcqcn.c. Symbols as in the paper. */
struct roan_dcqcn {
	u64 rate;		/* R_C, bit/s; valid while @rp_active */
	u64 target;		/* R_T, bit/s */
	u64 bytes;		/* sent since the last increase by volume, or the last cut */
	u64 alpha_at;		/* ns: time for which @alpha is valid; it has decayed once per period since */
	u64 alpha_update_at;	/* ns: update of alpha for a received CNP; 0: none pending (dcqcn-mlx) */
	u64 cut_at;		/* ns: cut for a received CNP; 0: none pending (dcqcn-mlx) */
	u64 increase_at;	/* ns: next increase by time */
	u64 period_base;	/* ns: when limiting began; cuts happen at whole periods from here (dcqcn-mlx) */
	u32 alpha;		/* 1 << 30 is one */
	u32 time_steps;		/* T: increases by time since the last cut */
	u32 byte_steps;		/* BC: increases by volume since the last cut */
	bool rp_active;
};

/* Swift: swift.c. */
struct roan_swift {
	u64 cwnd;		/* 1/256 byte; 0: no round trip measured yet */
	u64 acked;		/* bytes acknowledged since the last round trip was measured */
	u64 cut_at;		/* ns: last decrease; 0: never */
	u64 rtt_ns;		/* smoothed; 0: none yet */
	u32 timeouts;		/* in a row */
};

struct roan_cc {
	/* results, read by the driver half */
	u64 rate;		/* bit/s on the wire; 0: unlimited */
	u64 cwnd;		/* bytes in flight; 0: unlimited. One packet may always be in flight. */
	u64 cwnd_bound;		/* bound of cwnd_bound.c, same unit; the lower of the two applies */
	bool cwnd_bounded;	/* a bound was configured: ACKs are needed, and it applies once a round trip is known */
	u32 cnps;		/* CNPs received since start */
	u32 cnp_part;		/* 1/ROAN_CC_WHOLE: of the next CNP that the algorithm gets, as far as received */
	u32 cuts;		/* decreases since start, for any reason */
	u8  algo;		/* enum roan_cc_algo */
	u8  event_mask;		/* enum roan_cc_event_mask */

	/* read by the algorithms */
	u32 packet;		/* bytes of a full packet on the wire */
	u64 link;		/* bit/s, never 0 */
	u64 rate_cap;		/* bit/s: the QP's own cap; 0: none */
	/* ns: time of the latest event; an event with an earlier time (another CPU) counts as now */
	u64 now;
	u64 min_rtt_ns;		/* shortest recent round trip; 0: none measured */
	u64 min_rtt_at;		/* ns: when it was last measured or replaced */
	const struct roan_cc_params *params;
	union {
		struct roan_dcqcn dcqcn;
		struct roan_swift swift;
	};
};

/* State of a QP's congestion control for display; 0 where the algorithm has no such value. */
struct roan_cc_state {
	u64 rate;		/* bit/s; 0: unlimited */
	u64 target;		/* bit/s; DCQCN while limiting */
	u64 cwnd;		/* bytes; 0: unlimited */
	u64 rtt_ns;		/* Swift: smoothed */
	u32 alpha;		/* DCQCN: 1/1024, now */
	u32 cnps, cuts;
};

/*
 * Returns bit/s of an interface that reports @mbps. Limited to ROAN_CC_MAX_MBPS, as periods are computed from it. 0:
 * unknown.
 */
static inline u64 roan_cc_link(u32 mbps)
{
	return min_t(u32, mbps, ROAN_CC_MAX_MBPS) * 1000000ull;
}

/*
 * @params must outlive @cc. @link: bit/s, 0 counts as 10 Gb/s. @cap: bit/s, 0 = none. @packet: wire bytes of a full
 * packet.
 */
void roan_cc_start(struct roan_cc *cc, enum roan_cc_algo algo, const struct roan_cc_params *params, u64 link, u64 cap,
		   u32 packet, u64 now);
bool roan_cc_limits(struct roan_cc *cc, u64 link, u64 cap, u64 now);
bool roan_cc_cnp(struct roan_cc *cc, u64 now);
#define ROAN_CC_WHOLE	65536
/*
 * A CNP for @part of the traffic, in 1/ROAN_CC_WHOLE: that of a path. Parts add up; when they reach the whole, the
 * algorithm gets a CNP, and what is left counts for the next one. If all paths are marked it gets as many as for one
 * path, if a part of the traffic is marked that part of them.
 */
bool roan_cc_cnp_part(struct roan_cc *cc, u32 part, u64 now);

/* Returns the state at @now, with all periods passed until then applied. Does not change @cc. */
void roan_cc_state(const struct roan_cc *cc, u64 now, struct roan_cc_state *state);

/* Sets the default values of @algo. Each algorithm has a set: see roan_cc_param_is_shared(). */
void roan_cc_params_default(struct roan_cc_params *params, enum roan_cc_algo algo);

/* Properties of an algorithm, for code outside core/cc, which must not depend on algorithms by name. */
#define ROAN_CC_USES_ECN	BIT(0)	/* reacts to CNPs: packets are sent as ECT(0) */
#define ROAN_CC_NEEDS_ACKS	BIT(1)	/* measures round trips: RC only */
#define ROAN_CC_FROM_START	BIT(2)	/* limits a QP before the first event */
u8 roan_cc_flags(enum roan_cc_algo algo);
const char *roan_cc_name(enum roan_cc_algo algo);
/* By a name of the list above, or a former one: "paper" (dcqcn), "mlx" (dcqcn-mlx). ROAN_CC_NUM_ALGOS: no such name. */
enum roan_cc_algo roan_cc_find(const char *name);

/* Slow paths of the inline functions below. */
bool __roan_cc_acked(struct roan_cc *cc, const struct roan_cc_sample *sample, u64 now);
bool __roan_cc_lost(struct roan_cc *cc, enum roan_cc_loss why, u64 now);
bool __roan_cc_sent(struct roan_cc *cc, u32 bytes, u64 now);
bool __roan_cc_elapsed(struct roan_cc *cc, u64 now);
u64 __roan_cc_deadline(const struct roan_cc *cc);

static inline bool roan_cc_uses_acks(const struct roan_cc *cc)
{
	return unlikely(cc->event_mask & ROAN_CC_EVENT_ACKED || cc->cwnd_bounded);
}

/* True if nothing is limited and only CNPs are needed. */
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

/* ns of the next rate increase by time; 0: none. */
static inline u64 roan_cc_deadline(const struct roan_cc *cc)
{
	return unlikely(cc->event_mask & ROAN_CC_EVENT_TIME) ? __roan_cc_deadline(cc) : 0;
}

/* The lower of the algorithm's window and the bound; 0: neither. */
static inline u64 roan_cc_cwnd(const struct roan_cc *cc)
{
	if (!cc->cwnd || !cc->cwnd_bound)
		return cc->cwnd | cc->cwnd_bound;
	return min(cc->cwnd, cc->cwnd_bound);
}

/*
 * Bytes that may be sent while @in_flight bytes are unacknowledged. At least one packet if nothing is in flight:
 * windows below one packet are paced.
 */
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
