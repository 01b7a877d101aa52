/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet-level simulator of congestion control in virtual time: N senders, one or two bottleneck queues that mark
 * packets, receivers. It runs the module's own dcqcn.c, swift.c, pacer.c and np.h. The published fluid model (model.c)
 * gives the expected values.
 */
#ifndef ROAN_CCSIM_H
#define ROAN_CCSIM_H

#include "core/cc/cc.h"
#include "core/cc/np.h"
#include "core/cc/pacer.h"
#include "core/flow/pfc_rules.h"

#define WINDOWS	40			/* number of throughput windows of a run */

#define START	(1000 * (u64)NSEC_PER_MSEC)	/* start time of a run, not 0 */

enum red_law {
	RED_INSTANT,	/* marks each packet with probability p, as the paper's switch */
	RED_COUNT,	/* Linux sch_red: marks are spaced, so a share 2p/(1+p) is marked */
};

struct red {
	double kmin, kmax;	/* bytes: p is 0 up to kmin and 1 above kmax */
	double pmax;		/* p rises linearly to this at kmax */
	enum red_law law;
};

struct red_state {
	int count;		/* packets since the last mark; -1: outside kmin..kmax */
	double random;
};

/* events.c: used by both simulations (net.c, victim.c). */

struct packet {
	u32 flow;
	bool ce;
};

/* Each simulation defines its own kinds, and the fields that they use. */
struct event {
	u64 at;
	u64 order;		/* among events at the same time: the least first */
	u64 sent_at;
	u32 kind;
	u32 who;
	struct packet packet;
	u16 quanta;
	u8 port;
};

struct events {
	struct event *heap;	/* the user calls free() */
	u32 n, room;
};

void event_add(struct events *events, struct event e);
struct event event_take(struct events *events);	/* removes the earliest; must not be empty */

/* Random number in [0, 1). */
double random_unit(u64 *seed);

double red_probability(const struct red *red, double queue);

/* As sch_red: the distance between two marks is uniform on 1 ... 1/p. */
bool red_counts(struct red_state *state, double p, u64 *seed);

struct setup {
	const char *scenario;
	enum roan_cc_algo algo;
	struct roan_cc_params params;
	struct red red;
	u64 link;		/* bit/s of the bottleneck and of each sender */
	u64 cap;		/* bit/s of a flow; 0: none */
	u32 flows;
	u32 adapters;		/* so many of them, the last, are sent by adapters: dcqcn-mlx with its defaults */
	u32 frame;		/* bytes on the wire per packet */
	bool marks_leaving;	/* mark by the queue behind a leaving packet, not by that before an entering one */
	bool two_ports;		/* parking lot: flow 0 passes two bottlenecks, flow 1 the first, flow 2 the second */
	u64 buffer;		/* bytes; packets beyond it are dropped */
	u64 rtt_ns;		/* with an empty queue, without serialization */
	u64 join_ns;		/* only the first flow sends until then; the others then start at line rate */
	u64 run_ns;
	u64 measure_ns;		/* start of the measurement of queue, utilisation, fairness */
	u64 window_ns;		/* run_ns / WINDOWS */
	u64 seed;
};

struct figures {
	double jain, util, queue_mean, queue_p99, queue_peak;	/* share, share, bytes ... */
	double mark_share;
	double beside;		/* rate of the flows beside adapters, as a share of an adapter's; 0: no adapters */
	u64 drops, cnps;
	double converge_s;	/* from the join to the end of the first window with a Jain index of 0.99; < 0: none */
	double window_jain[WINDOWS];	/* Jain's index of each window */
};

void simulate(const struct setup *s, struct figures *out);

#define VICTIM_FLOWS	20	/* the buffer of a switch holds this many XOFF thresholds */

/* victim.c: shares of the link's rate. */
struct victim_figures {
	double util;		/* of the congested port, from measure_ns on */
	double victim;		/* share of the victim, from measure_ns on */
	double victim_all;	/* the same from join_ns on */
	u64 pauses;		/* XOFF frames of both switches */
	u64 drops, cnps;
};

void simulate_victim(const struct setup *s, struct victim_figures *out);
void print_victim(const struct setup *s, const struct victim_figures *f);

/* model.c */
struct fixed_point {
	double p;		/* share of packets marked */
	double queue;		/* bytes; above kmax: no fixed point on the slope */
	double alpha;
	double cnps;		/* per second and flow */
};

struct fluid {
	double queue_mean;	/* bytes, over the last quarter */
	double util;		/* share of the link, likewise */
	double jain;		/* likewise */
	double converge_s;	/* from the join until all stay within 10 % of their mean */
};

void fixed_point(const struct setup *s, struct fixed_point *out);
void fluid(const struct setup *s, struct fluid *out);

#endif /* ROAN_CCSIM_H */
