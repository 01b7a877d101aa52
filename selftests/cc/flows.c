// SPDX-License-Identifier: GPL-2.0
/*
 * The client's flows: each keeps `depth` messages outstanding from its start to its stop. One loop waits for
 * completions, for space in sockets and for two timers: the next start or stop, and the next line of the series.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "traffic.h"

enum state { WAITING, RUNNING, STOPPING, OVER };

struct flow {
	struct end end;
	enum state state;
	uint64_t start_ns;
	uint64_t ended_ns;
	uint64_t bytes;		/* acknowledged */
	uint64_t sampled;	/* of these, already in the series */
	uint64_t handed;	/* TCP: bytes given to the socket */
	uint32_t next;		/* index of the next message */
	uint32_t under_way;
	uint64_t *posted;	/* [depth]: time of posting */
	uint32_t failed;
	enum ibv_wc_status why;
	struct latency lat;
};

struct client {
	const struct options *opt;
	struct rig rig;
	struct flow *flow;
	int epoll;
	int schedule;	/* timerfd: the next start or stop */
	int sample;	/* timerfd: the next line */
	FILE *csv;
};

enum { TAG_CQ = 1 << 20, TAG_SCHEDULE, TAG_SAMPLE };

static void arm(int timer, uint64_t at, uint64_t every)
{
	struct itimerspec its = {
		.it_value = { at / 1000000000, at % 1000000000 },
		.it_interval = { every / 1000000000, every % 1000000000 },
	};

	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &its, NULL))
		die("timer");
}

/* ---- RDMA ---- */

static void post(struct client *c, struct flow *f, uint64_t now)
{
	struct ibv_sge sge = { (uintptr_t)c->rig.buf, c->rig.size, c->rig.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = (uint64_t)(f - c->flow) << 32 | f->next, .sg_list = &sge, .num_sge = 1,
		.opcode = (c->opt->mixed ? f->next & 1 : c->opt->read) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = { f->end.peer_addr, f->end.peer_key },
	};

	f->posted[f->next % c->opt->depth] = now;
	if (ibv_post_send(f->end.qp, &wr, &bad))
		die("post_send");
	f->next++;
	f->under_way++;
}

static void complete(struct client *c, const struct ibv_wc *wc, uint64_t now)
{
	struct flow *f = &c->flow[wc->wr_id >> 32];

	f->under_way--;
	if (wc->status != IBV_WC_SUCCESS) {
		if (!f->failed++)
			f->why = wc->status;
		f->state = STOPPING;
	} else {
		f->bytes += c->rig.size;
		latency_add(&f->lat, now - f->posted[(uint32_t)wc->wr_id % c->opt->depth]);
	}
	if (f->state == RUNNING)
		post(c, f, now);
	else if (f->state == STOPPING && !f->under_way)
		f->state = OVER;
	f->ended_ns = now;
}

static void completions(struct client *c)
{
	struct ibv_wc wc[32];
	struct ibv_cq *cq;
	void *ctx;
	int n, i;

	if (ibv_get_cq_event(c->rig.channel, &cq, &ctx))
		die("get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		die("req_notify_cq");
	while ((n = ibv_poll_cq(cq, 32, wc)) > 0) {
		uint64_t now = now_ns();

		for (i = 0; i < n; i++)
			complete(c, &wc[i], now);
	}
}

/* ---- TCP: bytes that left the socket's buffer have been acknowledged ---- */

static void tcp_count(struct flow *f)
{
	int queued = 0;

	ioctl(f->end.sock, SIOCOUTQ, &queued);
	f->bytes = f->handed - queued;
}

static void tcp_fill(struct client *c, struct flow *f)
{
	ssize_t n;

	while (f->state == RUNNING) {
		n = send(f->end.sock, c->rig.buf, c->rig.size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			die("send");
		if (n < 0)
			return;
		f->handed += n;
	}
}

static void tcp_stop(struct flow *f, uint64_t now)
{
	tcp_count(f);
	f->state = OVER;
	f->ended_ns = now;
	close(f->end.sock);
	f->end.sock = -1;
}

/* ---- starts, stops and lines ---- */

static void start(struct client *c, struct flow *f, uint64_t now)
{
	f->state = RUNNING;
	f->start_ns = now;
	f->ended_ns = now;
	if (c->opt->tcp) {
		watch(c->epoll, f->end.sock, EPOLLOUT, f - c->flow);
		return;
	}
	while (f->under_way < c->opt->depth)
		post(c, f, now);
}

static void stop(struct client *c, struct flow *f, uint64_t now)
{
	if (c->opt->tcp)
		tcp_stop(f, now);
	else
		f->state = f->under_way ? STOPPING : OVER;
}

/* Executes due starts and stops, and sets the timer to the next one. */
static void follow_schedule(struct client *c)
{
	const struct options *opt = c->opt;
	uint64_t now = now_ns(), next = UINT64_MAX, stop_at = opt->epoch_ns + opt->stop_ns, at;
	uint32_t i;

	for (i = 0; i < opt->flows; i++) {
		struct flow *f = &c->flow[i];

		at = opt->epoch_ns + opt->start_ns + i * opt->gap_ns;
		if (f->state == WAITING && now >= at)
			start(c, f, now);
		if (f->state == RUNNING && now >= stop_at)
			stop(c, f, now);
		if (f->state == WAITING)
			next = at < next ? at : next;
		else if (f->state == RUNNING)
			next = stop_at < next ? stop_at : next;
	}
	if (next != UINT64_MAX)
		arm(c->schedule, next, 0);
}

static void write_line(struct client *c)
{
	uint32_t i;

	fprintf(c->csv, "%.3f", (double)(int64_t)(now_ns() - c->opt->epoch_ns) / 1e3);
	for (i = 0; i < c->opt->flows; i++) {
		struct flow *f = &c->flow[i];

		if (c->opt->tcp && f->state == RUNNING)
			tcp_count(f);
		fprintf(c->csv, ",%llu", (unsigned long long)(f->bytes - f->sampled));
		f->sampled = f->bytes;
	}
	fputc('\n', c->csv);
}

static bool all_over(const struct client *c)
{
	uint32_t i;

	for (i = 0; i < c->opt->flows; i++)
		if (c->flow[i].state != OVER)
			return false;
	return true;
}

static bool loop(struct client *c)
{
	uint64_t expirations;
	struct epoll_event ev;
	uint32_t i;

	while (!all_over(c)) {
		if (epoll_wait(c->epoll, &ev, 1, -1) != 1)
			continue;
		switch (ev.data.u64) {
		case TAG_CQ:
			completions(c);
			break;
		case TAG_SCHEDULE:
			if (read(c->schedule, &expirations, 8) == 8)
				follow_schedule(c);
			break;
		case TAG_SAMPLE:
			if (read(c->sample, &expirations, 8) == 8)
				write_line(c);
			break;
		default:
			tcp_fill(c, &c->flow[ev.data.u64]);
		}
	}
	for (i = 0; i < c->opt->flows; i++)
		if (c->flow[i].failed)
			return false;
	return true;
}

/* ---- before and after ---- */

static void open_flows(struct client *c)
{
	const struct options *opt = c->opt;
	uint32_t i;

	if (!opt->tcp) {
		rig_open(&c->rig, opt, opt->flows * opt->depth);
		watch(c->epoll, c->rig.channel->fd, EPOLLIN, TAG_CQ);
		if (ibv_req_notify_cq(c->rig.cq, 0))
			die("req_notify_cq");
	} else {
		c->rig.size = opt->size;
		c->rig.buf = calloc(1, opt->size);
	}
	c->flow = calloc(opt->flows, sizeof(*c->flow));
	if (!c->flow || !c->rig.buf)
		die("no memory");
	for (i = 0; i < opt->flows; i++) {
		struct flow *f = &c->flow[i];

		f->end.sock = connect_to(opt->peer, opt->port);
		f->posted = calloc(opt->depth, sizeof(*f->posted));
		if (!f->posted)
			die("no memory");
		if (opt->tcp)
			continue;
		end_create(&c->rig, &f->end, opt);
		end_meet(&c->rig, &f->end, opt);
	}
}

static void report(const struct client *c)
{
	uint32_t i;

	for (i = 0; i < c->opt->flows; i++) {
		const struct flow *f = &c->flow[i];
		double took = f->ended_ns - f->start_ns;

		printf("flow=%u qpn=%u bytes=%llu gbps=%.4f", i, f->end.qp ? f->end.qp->qp_num : 0,
		       (unsigned long long)f->bytes, took > 0 ? f->bytes * 8 / took : 0);
		if (f->lat.count)
			printf(" lat_us_p50=%.1f lat_us_p90=%.1f lat_us_p99=%.1f lat_us_max=%.1f", latency_us(&f->lat, .5),
			       latency_us(&f->lat, .9), latency_us(&f->lat, .99), f->lat.max / 1e3);
		if (f->failed)
			printf(" failed=%u status=\"%s\"", f->failed, ibv_wc_status_str(f->why));
		printf("\n");
	}
}

static void close_flows(struct client *c)
{
	uint32_t i;

	for (i = 0; i < c->opt->flows; i++) {
		if (c->flow[i].end.qp)
			ibv_destroy_qp(c->flow[i].end.qp);
		if (c->flow[i].end.sock >= 0)
			close(c->flow[i].end.sock);
		free(c->flow[i].posted);
	}
	free(c->flow);
}

int run_client(const struct options *opt)
{
	struct client c = { .opt = opt, .epoll = epoll_create1(0) };
	bool good;

	c.schedule = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	c.sample = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	open_flows(&c);
	watch(c.epoll, c.schedule, EPOLLIN, TAG_SCHEDULE);
	watch(c.epoll, c.sample, EPOLLIN, TAG_SAMPLE);
	if (opt->csv) {
		c.csv = fopen(opt->csv, "w");
		if (!c.csv)
			die("cannot write %s", opt->csv);
		arm(c.sample, opt->epoch_ns + opt->start_ns, opt->sample_ns);
	}
	follow_schedule(&c);
	good = loop(&c);
	if (c.csv && (write_line(&c), fclose(c.csv)))
		die("cannot write %s", opt->csv);
	report(&c);
	close_flows(&c);
	return good ? 0 : 1;
}
