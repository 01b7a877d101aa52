// SPDX-License-Identifier: GPL-2.0
/*
 * The fluid model of DCQCN (Zhu et al., SIGCOMM 2015, section 5): its fixed point by bisection, its course over time by
 * Euler steps. Only the algorithm `dcqcn`, without hyper increase, as in the paper. Units in this file: packets,
 * seconds.
 *
 * If each packet is marked with probability p, n packets of a flow have no mark with probability (1-p)^n; seen(n) is
 * the complement. A flow of R packets/s is cut in a CNP interval with probability seen(interval * R). alpha converges
 * to seen(alpha period * R). A counter of n packets that each cut restarts expires unmarked(p, n) times per packet.
 */
#include <math.h>
#include "ccsim.h"

struct model {
	double link;		/* packets/s */
	double tau, alpha_period, timer;	/* s: CNP interval, K, T */
	double counter;		/* packets: B */
	double step;		/* packets/s: R_AI */
	double rounds;		/* F */
	double g;
};

/* Derived values for a flow with rate R and marking probability p. */
struct sight {
	double cut;		/* cuts per CNP interval */
	double alpha;		/* limit of alpha */
	double by_bytes, by_timer;	/* increases per packet */
	double past_bytes, past_timer;	/* share of these after fast recovery */
};

static struct model model_of(const struct setup *s)
{
	double bits = 8.0 * s->frame;

	return (struct model) {
		.link = s->link / bits,
		.tau = max(s->params.min_time_between_cnps, 1u) * 1e-6,
		.alpha_period = s->params.dce_tcp_rtt * 1e-6,
		.timer = s->params.rpg_time_reset * 1e-6,
		.counter = s->params.rpg_byte_reset * 64.0 / s->frame,
		.step = s->params.rpg_ai_rate * 1e6 / bits,
		.rounds = s->params.rpg_threshold,
		.g = 1 - s->params.dce_tcp_g / 1024.0,
	};
}

/* p / ((1-p)^-n - 1) */
static double unmarked(double p, double n)
{
	double exponent = -n * log1p(-p);

	return exponent > 500 ? 0 : p / expm1(exponent);
}

static struct sight look(const struct model *m, double rate, double p)
{
	struct sight s = { .by_bytes = 1 / m->counter, .by_timer = 1 / (m->timer * rate), .past_bytes = 1, .past_timer = 1 };
	double log_q;

	if (p <= 0)
		return s;
	if (p >= 1)
		return (struct sight) { .cut = 1, .alpha = 1 };
	log_q = log1p(-p);
	s.cut = -expm1(m->tau * rate * log_q);
	s.alpha = -expm1(m->alpha_period * rate * log_q);
	s.by_bytes = unmarked(p, m->counter);
	s.by_timer = unmarked(p, m->timer * rate);
	s.past_bytes = exp(m->rounds * m->counter * log_q);
	s.past_timer = exp(m->rounds * m->timer * rate * log_q);
	return s;
}

/* Share of packets that are marked at this queue length. */
static double marked(const struct red *red, double queue)
{
	double p;

	if (queue <= red->kmin)
		return 0;
	if (queue > red->kmax)
		return 1;
	p = red->pmax * (queue - red->kmin) / (red->kmax - red->kmin);
	return red->law == RED_COUNT ? 2 * p / (1 + p) : p;
}

/* Queue length at which share @p is marked, with the slope extended beyond pmax. */
static double queue_for(const struct red *red, double p)
{
	if (red->law == RED_COUNT)
		p = p / (2 - p);
	return red->kmin + p / red->pmax * (red->kmax - red->kmin);
}

/*
 * In equilibrium the target gains by additive steps what it loses by cuts, and the rate gains by recovery what it loses
 * by cuts.
 */
void fixed_point(const struct setup *s, struct fixed_point *out)
{
	struct model m = model_of(s);
	double rate = m.link / s->flows, low = 1e-9, high = 0.5;
	struct sight at;

	for (int i = 0; i < 200; i++) {
		double p = sqrt(low * high), gap;

		at = look(&m, rate, p);
		gap = m.tau * m.step * rate * (at.past_bytes * at.by_bytes + at.past_timer * at.by_timer) / at.cut;
		if (rate * at.alpha / (2 * m.tau) * at.cut > gap / 2 * rate * (at.by_bytes + at.by_timer))
			high = p;
		else
			low = p;
	}
	*out = (struct fixed_point) {
		.p = low, .queue = queue_for(&s->red, low), .alpha = at.alpha, .cnps = at.cut / m.tau,
	};
}

/*
 * State of one flow. All flows that join late behave alike, so two states are enough for any number of flows. Also for
 * the parking lot: both ports behave alike, and the first flow gets the marks of both.
 */
struct course {
	double rate, target, alpha;
};

static void euler(const struct model *m, struct course *c, double p, double floor, double dt)
{
	struct sight at = look(m, c->rate, p);
	double gap = c->target - c->rate;
	double steps = c->rate * (at.by_bytes + at.by_timer);
	double beyond = c->rate * (at.past_bytes * at.by_bytes + at.past_timer * at.by_timer);
	double rate = c->rate;

	rate += (-rate * c->alpha / (2 * m->tau) * at.cut + gap / 2 * steps) * dt;
	c->target = fmin(m->link, c->target + (-gap / m->tau * at.cut + m->step * beyond) * dt);
	c->alpha += m->g / m->alpha_period * (at.alpha - c->alpha) * dt;
	c->rate = fmin(m->link, fmax(floor, rate));
}

/*
 * Marks on the way to the senders, per time step. A mark made when its packet enters the queue also waits in the queue.
 */
struct echo {
	double *p;		/* [room] */
	u64 room, lag;		/* steps: size of the ring, round trip without queue */
	u64 told;		/* last step with a known value */
};

static void echo_add(struct echo *e, u64 step, u64 queueing, double p)
{
	u64 arrives = step + e->lag + min(queueing, e->room - e->lag - 1);

	if (arrives <= e->told)		/* the queue shrinks faster than time passes: use the newest value */
		e->p[arrives % e->room] = p;
	while (e->told < arrives)
		e->p[++e->told % e->room] = p;
}

/* Sums over the last quarter of a run. */
struct rest {
	double queue, served, first, others;
	u64 steps;
};

static void rest_mean(const struct rest *r, const struct setup *s, double link, struct fluid *out)
{
	u32 number = s->flows - 1;
	double sum = r->first + number * r->others;

	out->queue_mean = r->queue / fmax(r->steps, 1) * s->frame;
	out->util = r->served / fmax(r->steps, 1) / link;
	out->jain = sum * sum / (s->flows * (r->first * r->first + number * r->others * r->others));
}

void fluid(const struct setup *s, struct fluid *out)
{
	struct model m = model_of(s);
	struct course first = { m.link, m.link, 1 }, others = first;
	double dt = m.tau / 50, end = s->run_ns * 1e-9, join = s->join_ns * 1e-9, queue = 0;
	double floor = s->params.rpg_min_rate * 1e6 / (8.0 * s->frame), apart = join;
	u32 beside = s->two_ports ? 1 : s->flows - 1;	/* flows that share a port with the first one */
	u64 steps = end / dt;
	struct echo echo = { .lag = fmax(1, s->rtt_ns * 1e-9 / dt) };
	struct rest rest = {};

	echo.told = echo.lag - 1;
	echo.room = echo.lag + 2 + s->buffer * 8.0 / s->link / dt;
	echo.p = calloc(echo.room, sizeof(*echo.p));
	if (!echo.p)
		abort();
	for (u64 i = 0; i < steps; i++) {
		double p = echo.p[i % echo.room], in = first.rate, before = queue;

		echo_add(&echo, i, s->marks_leaving ? 0 : queue / m.link / dt, marked(&s->red, queue * s->frame));
		euler(&m, &first, s->two_ports ? 1 - (1 - p) * (1 - p) : p, floor, dt);
		if (i * dt >= join) {
			in += beside * others.rate;
			euler(&m, &others, p, floor, dt);
			if (fabs(first.rate * (beside + 1) / in - 1) > 0.1 || fabs(others.rate * (beside + 1) / in - 1) > 0.1)
				apart = (i + 1) * dt;
		}
		queue = fmax(0, queue + (in - m.link) * dt);
		if (i >= steps - steps / 4) {
			rest.queue += queue;
			rest.served += in - (queue - before) / dt;
			rest.first += first.rate;
			rest.others += others.rate;
			rest.steps++;
		}
	}
	free(echo.p);
	rest_mean(&rest, s, m.link, out);
	out->converge_s = apart - join;
}
