// SPDX-License-Identifier: GPL-2.0
/*
 * The network of ccsim: senders with unlimited data, ports with marking queues, the notification point. All senders
 * have the same distance. Queues are FIFO, so the departure time of a packet is known when it enters.
 */
#include <math.h>
#include "ccsim.h"

enum kind { LOOK, CNP, ACK, LEAVES };

struct flow {
	struct roan_cc cc;
	struct roan_pacer pacer;
	struct roan_np np;
	u64 in_flight;		/* bytes */
	u64 delivered, at_window, at_measure;	/* bytes: total, and at two earlier times */
	u32 train;		/* remaining packets of the current train */
	bool waits_for_ack;
};

struct port {
	u64 busy_until;		/* the queue is empty then, without further packets */
	struct red_state red;
};

struct net {
	const struct setup *s;
	struct roan_cc_params adapter;
	struct figures *out;
	struct flow *flow;
	struct events events;
	struct port port[2];	/* the first one is sampled */
	u64 next_sample, sample_ns, next_window;
	u32 window;		/* index of the window that ends at @next_window */
	u64 packets, marks;
	u64 *histogram;		/* of sampled queue lengths in packets */
	u64 samples;
	double queue_sum;
	u64 seed;
};

#define HISTOGRAM	(1 << 16)

/* Events at the same time are ordered by flow number. */
static void schedule(struct net *n, struct event e)
{
	e.order = e.who;
	event_add(&n->events, e);
}

/* ---- ports ---- */

static u64 serialization(const struct setup *s)
{
	return s->frame * 8 * (u64)NSEC_PER_SEC / s->link;
}

static double queue_at(const struct net *n, const struct port *p, u64 now)
{
	return p->busy_until > now ? (p->busy_until - now) * 1e-9 * n->s->link / 8 : 0;
}

static bool marks(struct net *n, struct port *port, double queue)
{
	const struct red *red = &n->s->red;
	double p = red_probability(red, queue);
	bool ce = red->law == RED_COUNT ? red_counts(&port->red, p, &n->seed) : random_unit(&n->seed) < p;

	n->packets++;
	n->marks += ce;
	return ce;
}

static u8 first_port(const struct net *n, u32 which)
{
	return n->s->two_ports && which == 2;
}

static u8 last_port(const struct net *n, u32 which)
{
	return n->s->two_ports && which != 1;
}

/* The propagation delay lies behind the last port: half of the RTT to the receiver, half of it back. */
static void received(struct net *n, const struct event *e)
{
	struct flow *f = &n->flow[e->who];
	u32 interval = n->s->params.min_time_between_cnps;
	u64 at = e->at + n->s->rtt_ns / 2, back = at + n->s->rtt_ns / 2;

	f->delivered += n->s->frame;
	if (e->packet.ce ? roan_np_cnp_due(&f->np, interval, at) : roan_np_cnp_pending(&f->np, interval, at))
		schedule(n, (struct event) { .at = back, .who = e->who, .kind = CNP });
	if (roan_cc_uses_acks(&f->cc))
		schedule(n, (struct event) { .at = back, .sent_at = e->sent_at, .who = e->who, .kind = ACK });
}

static void enters(struct net *n, struct event e)
{
	const struct setup *s = n->s;
	struct port *p = &n->port[e.port];
	double queue = queue_at(n, p, e.at);

	if (queue + s->frame > s->buffer) {
		n->out->drops++;
		if (roan_cc_uses_acks(&n->flow[e.who].cc))
			n->flow[e.who].in_flight -= s->frame;
		return;
	}
	if (!s->marks_leaving)
		e.packet.ce |= marks(n, p, queue);
	n->out->queue_peak = fmax(n->out->queue_peak, queue + s->frame);
	p->busy_until = max(p->busy_until, e.at) + serialization(s);
	e.at = p->busy_until;
	e.kind = LEAVES;
	schedule(n, e);
}

static void leaves(struct net *n, struct event e)
{
	struct port *p = &n->port[e.port];

	if (n->s->marks_leaving)
		e.packet.ce |= marks(n, p, queue_at(n, p, e.at));
	if (e.port == last_port(n, e.who)) {
		received(n, &e);
		return;
	}
	e.port++;
	enters(n, e);
}

/* ---- senders ---- */

static void pace(struct net *n, struct flow *f, bool changed, u64 now)
{
	if (changed)
		roan_pacer_set_rate(&f->pacer, f->cc.rate, roan_pacer_quantum(f->cc.params, f->cc.rate, n->s->frame), now);
}

/* Number of packets of the next train. 0: not now; *again is the time to retry, or an ACK must come first. */
static u32 train(struct net *n, struct flow *f, u64 now, u64 *again)
{
	u32 frame = n->s->frame, may, packets;
	u64 deadline, room;

	pace(n, f, roan_cc_elapsed(&f->cc, now), now);
	room = roan_cc_cwnd_avail(&f->cc, f->in_flight);
	if (room < frame) {
		f->waits_for_ack = true;
		return 0;
	}
	may = roan_pacer_allow(&f->pacer, now);
	if (!may) {
		*again = roan_pacer_when(&f->pacer);
		deadline = roan_cc_deadline(&f->cc);
		if (deadline)
			*again = min(*again, deadline);
		return 0;
	}
	packets = may == U32_MAX ? 1 : max(1u, may / frame);
	packets = min_t(u64, packets, room / frame);
	roan_pacer_sent(&f->pacer, packets * frame);
	pace(n, f, roan_cc_sent(&f->cc, packets * frame, now), now);
	return packets;
}

static void look(struct net *n, u32 which, u64 now)
{
	struct flow *f = &n->flow[which];
	u64 again = 0;

	if (!f->train) {
		f->train = train(n, f, now, &again);
		if (!f->train) {
			if (again)
				schedule(n, (struct event) { .at = again, .who = which, .kind = LOOK });
			return;
		}
	}
	f->train--;
	if (roan_cc_uses_acks(&f->cc))
		f->in_flight += n->s->frame;
	enters(n, (struct event) { .at = now, .sent_at = now, .who = which, .port = first_port(n, which) });
	schedule(n, (struct event) { .at = now + serialization(n->s), .who = which, .kind = LOOK });
}

static void acked(struct net *n, const struct event *e)
{
	struct flow *f = &n->flow[e->who];
	struct roan_cc_sample sample = { .bytes = n->s->frame, .rtt_ns = e->at - e->sent_at };

	f->in_flight -= n->s->frame;
	sample.in_flight = f->in_flight;
	pace(n, f, roan_cc_acked(&f->cc, &sample, e->at), e->at);
	if (f->waits_for_ack) {
		f->waits_for_ack = false;
		schedule(n, (struct event) { .at = e->at, .who = e->who, .kind = LOOK });
	}
}

/* ---- figures ---- */

static double jain(const struct net *n, bool whole)
{
	double sum = 0, squares = 0;

	for (u32 i = 0; i < n->s->flows; i++) {
		const struct flow *f = &n->flow[i];
		double x = f->delivered - (whole ? f->at_measure : f->at_window);

		sum += x;
		squares += x * x;
	}
	return squares ? sum * sum / (n->s->flows * squares) : 0;
}

static void window_over(struct net *n)
{
	struct figures *out = n->out;

	if (n->window < WINDOWS)
		out->window_jain[n->window] = jain(n, false);
	if (out->converge_s < 0 && n->next_window > START + n->s->join_ns && jain(n, false) >= 0.99)
		out->converge_s = (n->next_window - (START + n->s->join_ns)) * 1e-9;
	for (u32 i = 0; i < n->s->flows; i++)
		n->flow[i].at_window = n->flow[i].delivered;
	n->next_window += n->s->window_ns;
	n->window++;
}

/* Samples the queue every sample_ns up to @now. */
static void sample_until(struct net *n, u64 now)
{
	for (; n->next_sample <= now; n->next_sample += n->sample_ns) {
		double queue = queue_at(n, n->port, n->next_sample);

		if (n->next_sample >= START + n->s->measure_ns) {
			n->queue_sum += queue;
			n->samples++;
			n->histogram[min_t(u64, queue / n->s->frame, HISTOGRAM - 1)]++;
		}
	}
	while (n->next_window <= now)
		window_over(n);
}

static double percentile(const struct net *n, double share)
{
	u64 seen = 0;
	u32 i = 0;

	while (i < HISTOGRAM - 1 && (seen += n->histogram[i]) < share * n->samples)
		i++;
	return (i + 0.5) * n->s->frame;
}

static bool by_adapter(const struct setup *s, u32 which)
{
	return which >= s->flows - s->adapters;
}

static double beside_adapters(const struct net *n)
{
	const struct setup *s = n->s;
	double bytes[2] = {};

	for (u32 i = 0; i < s->flows; i++)
		bytes[by_adapter(s, i)] += n->flow[i].delivered - n->flow[i].at_measure;
	return s->adapters ? bytes[0] / (s->flows - s->adapters) / (bytes[1] / s->adapters) : 0;
}

static void summarize(struct net *n)
{
	const struct setup *s = n->s;
	struct figures *out = n->out;
	double bytes = 0;

	for (u32 i = 0; i < s->flows; i++) {
		if (!first_port(n, i))
			bytes += n->flow[i].delivered - n->flow[i].at_measure;
		out->cnps += n->flow[i].cc.cnps;
	}
	out->beside = beside_adapters(n);
	out->jain = jain(n, true);
	out->util = fmin(1, bytes * 8 / (s->link * ((s->run_ns - s->measure_ns) * 1e-9)));
	out->queue_mean = n->queue_sum / fmax(n->samples, 1);
	out->queue_p99 = percentile(n, 0.99);
	out->mark_share = n->marks / fmax(n->packets, 1);
}

static void happens(struct net *n, const struct event *e)
{
	struct flow *f = &n->flow[e->who];

	switch ((enum kind)e->kind) {
	case LOOK: look(n, e->who, e->at); break;
	case LEAVES: leaves(n, *e); break;
	case ACK: acked(n, e); break;
	case CNP: pace(n, f, roan_cc_cnp(&f->cc, e->at), e->at); break;
	}
}

void simulate(const struct setup *s, struct figures *out)
{
	struct net n = {
		.s = s, .out = out, .seed = s->seed * 0x9e3779b97f4a7c15ULL + 1, .port = { { .red.count = -1 }, { .red.count = -1 } },
		.next_sample = START, .sample_ns = max_t(u64, s->run_ns / 100000, 100), .next_window = START + s->window_ns,
	};
	bool measuring = false;

	*out = (struct figures) { .converge_s = -1 };
	roan_cc_params_default(&n.adapter, ROAN_CC_DCQCN_MLX);
	n.flow = calloc(s->flows, sizeof(*n.flow));
	n.histogram = calloc(HISTOGRAM, sizeof(*n.histogram));
	if (!n.flow || !n.histogram)
		abort();
	for (u32 i = 0; i < s->flows; i++) {
		u64 at = START + (i ? s->join_ns : 0) + random_unit(&n.seed) * serialization(s);

		if (by_adapter(s, i))
			roan_cc_start(&n.flow[i].cc, ROAN_CC_DCQCN_MLX, &n.adapter, s->link, s->cap, s->frame, at);
		else
			roan_cc_start(&n.flow[i].cc, s->algo, &s->params, s->link, s->cap, s->frame, at);
		pace(&n, &n.flow[i], true, at);
		schedule(&n, (struct event) { .at = at, .who = i, .kind = LOOK });
	}
	while (n.events.n) {
		struct event e = event_take(&n.events);

		if (e.at >= START + s->run_ns)
			break;
		sample_until(&n, e.at);
		if (!measuring && e.at >= START + s->measure_ns) {
			measuring = true;
			for (u32 i = 0; i < s->flows; i++)
				n.flow[i].at_measure = n.flow[i].delivered;
		}
		happens(&n, &e);
	}
	sample_until(&n, START + s->run_ns);
	summarize(&n);
	free(n.events.heap);
	free(n.flow);
	free(n.histogram);
}
