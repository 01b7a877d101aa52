/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet-level simulator of congestion control: N senders, a bottleneck queue that marks (or two), receivers, and the very
 * dcqcn.c, swift.c, pacer.c and np.h of the module in between, in virtual time. And the published fluid model to hold its
 * figures against.
 */
#ifndef ROAN_CCSIM_H
#define ROAN_CCSIM_H

#include "core/cc/cc.h"
#include "core/cc/np.h"
#include "core/cc/pacer.h"
#include "core/flow/pfc_rules.h"

#define WINDOWS	40			/* a run's length in windows of throughput */

#define START	(1000 * (u64)NSEC_PER_MSEC)	/* when a run begins; time must never be 0 */

enum red_law {
	RED_INSTANT,	/* each packet is marked with probability p, as the paper's switch does */
	RED_COUNT,	/* Linux sch_red: marks are spaced, so that a share 2p/(1+p) is marked */
};

struct red {
	double kmin, kmax;	/* bytes: p is 0 up to the one and 1 above the other */
	double pmax;		/* and rises to this between them */
	enum red_law law;
};

struct red_state {
	int count;		/* packets since the last mark; -1: not between the thresholds */
	double random;
};

/* events.c: what both simulations are made of. */

struct packet {
	u32 flow;
	bool ce;
};

/* What happens at a moment; each simulation knows its own kinds, and what of this they carry. */
struct event {
	u64 at;
	u64 order;		/* of events of one moment: the least first */
	u64 sent_at;
	u32 kind;
	u32 who;
	struct packet packet;
	u16 quanta;
	u8 port;
};

struct events {
	struct event *heap;	/* free() when done */
	u32 n, room;
};

void event_add(struct events *events, struct event e);
struct event event_take(struct events *events);	/* the first of at least one */

/* In [0, 1). */
double random_unit(u64 *seed);

double red_probability(const struct red *red, double queue);

/* sch_red's way: the gap between two marks is uniform on 1 ... 1/p. */
bool red_counts(struct red_state *state, double p, u64 *seed);

struct setup {
	const char *scenario;
	enum roan_cc_algo algo;
	struct roan_cc_params params;
	struct red red;
	u64 link;		/* bit/s: the bottleneck's, and each sender's own */
	u64 cap;		/* bit/s of a flow; 0: none */
	u32 flows;
	u32 frame;		/* bytes on the wire per packet */
	bool marks_leaving;	/* a packet is judged by what it leaves behind in a queue, and not by what it finds */
	bool two_ports;		/* parking lot: flow 0 passes two bottlenecks, flow 1 the first, flow 2 the second */
	u64 buffer;		/* bytes; what does not fit is dropped */
	u64 rtt_ns;		/* with an empty queue, without serialization */
	u64 join_ns;		/* the first flow is alone until then, then all others start at line rate */
	u64 run_ns;
	u64 measure_ns;		/* from here to the end: queue, utilisation, fairness */
	u64 window_ns;		/* run_ns / WINDOWS: throughput is averaged over this */
	u64 seed;
};

struct figures {
	double jain, util, queue_mean, queue_p99, queue_peak;	/* share, share, bytes ... */
	double mark_share;
	u64 drops, cnps;
	double converge_s;	/* from the join to the end of the first window with a Jain index of 0.99; < 0: none */
	double window_jain[WINDOWS];	/* Jain's index of each window */
};

void simulate(const struct setup *s, struct figures *out);

#define VICTIM_FLOWS	20	/* as many thresholds fit into the buffer of a switch */

/* victim.c: shares of a link's rate. */
struct victim_figures {
	double util;		/* of the crowded port, from measure_ns on */
	double victim;		/* what the victim gets, from then on, ... */
	double victim_all;	/* ... and from the join on */
	u64 pauses;		/* XOFF frames of both switches */
	u64 drops, cnps;
};

void simulate_victim(const struct setup *s, struct victim_figures *out);
void print_victim(const struct setup *s, const struct victim_figures *f);

/* model.c */
struct fixed_point {
	double p;		/* share of packets marked */
	double queue;		/* bytes; above kmax: there is no fixed point on the slope */
	double alpha;
	double cnps;		/* per second and flow */
};

struct fluid {
	double queue_mean;	/* bytes, over the last quarter */
	double util;		/* share of the link, likewise */
	double jain;		/* likewise */
	double converge_s;	/* from the join until all are within a tenth of their mean for good */
};

void fixed_point(const struct setup *s, struct fixed_point *out);
void fluid(const struct setup *s, struct fluid *out);

#endif /* ROAN_CCSIM_H */
