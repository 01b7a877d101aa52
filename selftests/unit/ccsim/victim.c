// SPDX-License-Identifier: GPL-2.0
/*
 * The victim of PFC: a flow whose own path is free, behind a switch that is paused because of other flows. Lossless
 * switches send and obey pause frames by the module's rules (core/flow/pfc_rules.c), with or without congestion
 * control. Virtual time.
 *
 *	h1 ... hN ----\				 /---- r	N flows to r: its port is overloaded N times
 *	           sw1 ==== (N + 1 links' rate) ==== sw2
 *	v ------------/				 \---- rv	one flow to rv: no overload on its path
 *
 * sw2 counts the queued bytes that came over the trunk, sw1 those of each host. Each sends XOFF to the sender above the
 * threshold. No packet is lost if the buffer holds what arrives before XOFF takes effect.
 */
#include "ccsim.h"

#define PRIO		3
#define HOP_NS		1000		/* propagation delay of each link */
#define XOFF		512000		/* bytes */
#define BUFFER		12000000	/* bytes per switch */
#define HOSTS		(VICTIM_FLOWS + 1)

enum kind { HOST, HOST_SENT, TRUNK_SENT, AT_SW2, PORT_SENT, CNP, PAUSE, TELL };

/* An egress port with its queue. */
struct port {
	u64 rate;
	struct packet *queue;
	u32 head, tail;		/* free running */
	bool busy;
	u64 wake_at;		/* time of its next scheduled HOST event; 0: none */
	struct red_state red;
	struct roan_pfc_rx_state pause;
};

struct host {
	struct roan_cc cc;
	struct roan_pacer pacer;
	struct roan_np np;	/* notification point at its receiver */
	struct port nic;
	u32 train;
	u64 held;		/* its bytes in sw1 */
	struct roan_pfc_tx_state teller;	/* pauses sent by sw1 to it */
};

struct net {
	const struct setup *s;
	struct victim_figures *out;
	struct roan_pfc_params params;
	struct events events;
	u64 order, now, seed;
	struct host host[HOSTS];	/* the last one is the victim */
	struct port trunk, port[2];	/* to r and to rv */
	u64 held1, held2;		/* bytes in the switches */
	struct roan_pfc_tx_state teller;	/* pauses sent by sw2 to sw1 */
	u64 delivered[HOSTS];
	u64 joined[HOSTS], measured[HOSTS];	/* delivered as of join_ns, measure_ns */
};

#define QUEUE	(1 << 15)	/* packets: more than a buffer holds */

/* Events at the same time keep the order of scheduling. */
static void schedule(struct net *n, struct event e)
{
	e.order = n->order++;
	event_add(&n->events, e);
}

static u64 serialization(const struct net *n, const struct port *p)
{
	return (n->s->frame * 8 * (u64)NSEC_PER_SEC + p->rate - 1) / p->rate;
}

/* ---- pauses; @who: 0..N: a host, N + 1: the trunk of sw1 ---- */

static void look(struct net *n, u32 who);

/* An earlier event stays scheduled: its handler finds the port still blocked and calls this again. */
static void look_at(struct net *n, struct port *p, u32 who, u64 at)
{
	if (p->wake_at && p->wake_at <= at)
		return;
	p->wake_at = at;
	schedule(n, (struct event) { .at = at, .kind = HOST, .who = who });
}

static struct port *port_of(struct net *n, u32 who)
{
	return who > n->s->flows ? &n->trunk : &n->host[who].nic;
}

static bool blocked(struct net *n, struct port *p, u32 who)
{
	if (roan_pfc_rx_clear(&p->pause, n->now) || !roan_pfc_rx_blocked(&p->pause, &n->params, n->now))
		return false;
	look_at(n, p, who, roan_pfc_rx_deadline(&p->pause, &n->params));
	return true;
}

/* A pause frame with @quanta arrives at @who; it is built and parsed as on the wire. */
static void told(struct net *n, u32 who, u16 quanta)
{
	static const u8 nobody[6];
	struct roan_pfc_frame f = { .enabled = BIT(PRIO), .quanta[PRIO] = quanta };
	struct port *p = port_of(n, who);
	u8 frame[ROAN_PFC_FRAME_LEN];

	roan_pfc_frame_build(frame, nobody, &f);
	if (roan_pfc_frame_parse(frame, sizeof(frame), &f) != ROAN_PFC_PARSE_OK || f.enabled != BIT(PRIO))
		abort();
	roan_pfc_rx_pause(&p->pause, &n->params, roan_pfc_quanta_ns(f.quanta[PRIO], p->rate), n->now);
	look(n, who);
}

/* The bytes held of @who changed, or a refresh is due. A new frame waits for the one on the wire. */
static void tell(struct net *n, u32 who)
{
	bool trunk = who > n->s->flows;
	struct roan_pfc_tx_state *t = trunk ? &n->teller : &n->host[who].teller;
	struct port *p = port_of(n, who);
	struct event e = { .at = n->now + serialization(n, p) + HOP_NS, .kind = PAUSE, .who = who };
	u64 held = trunk ? n->held2 : n->host[who].held;

	switch (roan_pfc_tx_decide(t, held, XOFF, XOFF - 2 * n->s->frame,
				   roan_pfc_quanta_ns(ROAN_PFC_MAX_QUANTA, p->rate), n->now)) {
	case ROAN_PFC_TX_NONE:
		return;
	case ROAN_PFC_TX_XOFF:
		e.quanta = ROAN_PFC_MAX_QUANTA;
		n->out->pauses++;
		schedule(n, (struct event) { .at = t->refresh_at, .kind = TELL, .who = who });
		break;
	case ROAN_PFC_TX_XON:
		break;
	}
	schedule(n, e);
}

/* ---- queues ---- */

static u64 bytes_in(const struct net *n, const struct port *p)
{
	return (u64)(p->tail - p->head) * n->s->frame;
}

static void enqueue(struct net *n, struct port *p, struct packet packet)
{
	packet.ce |= red_counts(&p->red, red_probability(&n->s->red, bytes_in(n, p)), &n->seed);
	p->queue[p->tail++ % QUEUE] = packet;
}

static void serve(struct net *n, struct port *p, enum kind sent, u32 who)
{
	if (p->busy || p->head == p->tail || blocked(n, p, n->s->flows + 1))
		return;
	p->busy = true;
	schedule(n, (struct event) {
		.at = n->now + serialization(n, p), .kind = sent, .who = who, .packet = p->queue[p->head++ % QUEUE],
	});
}

static void at_sw1(struct net *n, struct packet packet)
{
	if (n->held1 + n->s->frame > BUFFER) {
		n->out->drops++;
		return;
	}
	n->held1 += n->s->frame;
	n->host[packet.flow].held += n->s->frame;
	enqueue(n, &n->trunk, packet);
	tell(n, packet.flow);
	serve(n, &n->trunk, TRUNK_SENT, 0);
}

static void left_sw1(struct net *n, struct packet packet)
{
	n->trunk.busy = false;
	n->held1 -= n->s->frame;
	n->host[packet.flow].held -= n->s->frame;
	tell(n, packet.flow);
	schedule(n, (struct event) { .at = n->now + HOP_NS, .kind = AT_SW2, .packet = packet });
	serve(n, &n->trunk, TRUNK_SENT, 0);
}

static void at_sw2(struct net *n, struct packet packet)
{
	u32 which = packet.flow == n->s->flows;

	if (n->held2 + n->s->frame > BUFFER) {
		n->out->drops++;
		return;
	}
	n->held2 += n->s->frame;
	enqueue(n, &n->port[which], packet);
	tell(n, n->s->flows + 1);
	serve(n, &n->port[which], PORT_SENT, which);
}

static void left_sw2(struct net *n, u32 which, struct packet packet)
{
	u32 interval = n->s->params.min_time_between_cnps;
	struct roan_np *np = &n->host[packet.flow].np;

	n->port[which].busy = false;
	n->held2 -= n->s->frame;
	n->delivered[packet.flow] += n->s->frame;
	tell(n, n->s->flows + 1);
	if (packet.ce ? roan_np_cnp_due(np, interval, n->now) : roan_np_cnp_pending(np, interval, n->now))
		schedule(n, (struct event) { .at = n->now + 4 * HOP_NS, .kind = CNP, .who = packet.flow });
	serve(n, &n->port[which], PORT_SENT, which);
}

/* ---- hosts ---- */

static void pace(struct net *n, struct host *h, bool changed)
{
	if (changed)
		roan_pacer_set_rate(&h->pacer, h->cc.rate, roan_pacer_quantum(&n->s->params, h->cc.rate, n->s->frame), n->now);
}

/* Number of packets of the next pacing round. 0: not now; an event is scheduled for the time when it may send. */
static u32 turn(struct net *n, struct host *h, u32 who)
{
	u32 frame = n->s->frame, may, packets;
	u64 again, deadline;

	pace(n, h, roan_cc_elapsed(&h->cc, n->now));
	may = roan_pacer_allow(&h->pacer, n->now);
	if (!may) {
		again = roan_pacer_when(&h->pacer);
		deadline = roan_cc_deadline(&h->cc);
		look_at(n, &h->nic, who, deadline ? min(again, deadline) : again);
		return 0;
	}
	packets = may == U32_MAX ? 1 : max(1u, may / frame);
	roan_pacer_sent(&h->pacer, packets * frame);
	pace(n, h, roan_cc_sent(&h->cc, packets * frame, n->now));
	return packets;
}

static void look(struct net *n, u32 who)
{
	struct host *h = &n->host[who];

	if (who > n->s->flows)
		return serve(n, &n->trunk, TRUNK_SENT, 0);
	if (h->nic.busy || blocked(n, &h->nic, who))
		return;
	if (!h->train)
		h->train = turn(n, h, who);
	if (!h->train)
		return;
	h->train--;
	h->nic.busy = true;
	schedule(n, (struct event) { .at = n->now + serialization(n, &h->nic), .kind = HOST_SENT, .who = who });
}

/* ---- a run ---- */

static void happen(struct net *n, const struct event *e)
{
	switch (e->kind) {
	case HOST:
		if (port_of(n, e->who)->wake_at == n->now)
			port_of(n, e->who)->wake_at = 0;
		return look(n, e->who);
	case HOST_SENT:
		n->host[e->who].nic.busy = false;
		at_sw1(n, (struct packet) { .flow = e->who });
		return look(n, e->who);
	case TRUNK_SENT:
		return left_sw1(n, e->packet);
	case AT_SW2:
		return at_sw2(n, e->packet);
	case PORT_SENT:
		return left_sw2(n, e->who, e->packet);
	case CNP:
		n->out->cnps++;
		return pace(n, &n->host[e->who], roan_cc_cnp(&n->host[e->who].cc, n->now));
	case PAUSE:
		return told(n, e->who, e->quanta);
	case TELL:
		return tell(n, e->who);
	}
}

static void port_init(struct port *p, u64 rate)
{
	p->rate = rate;
	p->red.count = -1;
	p->queue = calloc(QUEUE, sizeof(*p->queue));
	if (!p->queue)
		abort();
}

/* Only the victim sends until join_ns; then all others start at line rate. */
static void begin(struct net *n)
{
	const struct setup *s = n->s;

	roan_pfc_params_default(&n->params);
	port_init(&n->trunk, s->link * (s->flows + 1));
	port_init(&n->port[0], s->link);
	port_init(&n->port[1], s->link);
	for (u32 i = 0; i <= s->flows; i++) {
		u64 at = START + (i < s->flows ? s->join_ns : 0) + random_unit(&n->seed) * serialization(n, &n->port[0]);

		n->host[i].nic.rate = s->link;
		roan_cc_start(&n->host[i].cc, s->algo, &s->params, s->link, s->cap, s->frame, at);
		n->now = at;
		pace(n, &n->host[i], true);
		schedule(n, (struct event) { .at = at, .kind = HOST, .who = i });
	}
}

/*
 * Share of the link's rate that hosts [from, to) got since @since ns after the start, when @then bytes were delivered.
 */
static double share(const struct net *n, u32 from, u32 to, const u64 *then, u64 since)
{
	double bytes = 0;

	for (u32 i = from; i < to; i++)
		bytes += n->delivered[i] - then[i];
	return bytes * 8 / (n->s->link * ((n->s->run_ns - since) * 1e-9));
}

static void summarize(const struct net *n, struct victim_figures *out)
{
	const struct setup *s = n->s;

	out->util = share(n, 0, s->flows, n->measured, s->measure_ns);
	out->victim = share(n, s->flows, s->flows + 1, n->measured, s->measure_ns);
	out->victim_all = share(n, s->flows, s->flows + 1, n->joined, s->join_ns);
}

void simulate_victim(const struct setup *s, struct victim_figures *out)
{
	struct net *n = calloc(1, sizeof(*n));

	if (!n || s->flows >= HOSTS)
		abort();
	*out = (struct victim_figures) {};
	n->s = s;
	n->out = out;
	n->seed = s->seed * 0x9e3779b97f4a7c15ULL + 1;
	begin(n);
	for (bool joined = false, measuring = false; n->events.n; ) {
		struct event e = event_take(&n->events);

		if (e.at >= START + s->run_ns)
			break;
		if (!joined && e.at >= START + s->join_ns) {
			joined = true;
			memcpy(n->joined, n->delivered, sizeof(n->joined));
		}
		if (!measuring && e.at >= START + s->measure_ns) {
			measuring = true;
			memcpy(n->measured, n->delivered, sizeof(n->measured));
		}
		n->now = e.at;
		happen(n, &e);
	}
	summarize(n, out);
	free(n->trunk.queue);
	free(n->port[0].queue);
	free(n->port[1].queue);
	free(n->events.heap);
	free(n);
}

void print_victim(const struct setup *s, const struct victim_figures *f)
{
	printf("scenario=victim n=%u gbps=%g frame_bytes=%u algo=%s util=%.4f victim=%.4f victim_all=%.4f ", s->flows,
	       s->link / 1e9, s->frame, roan_cc_name(s->algo), f->util, f->victim, f->victim_all);
	printf("pauses=%llu cnps=%llu drops=%llu\n", (unsigned long long)f->pauses, (unsigned long long)f->cnps,
	       (unsigned long long)f->drops);
}
