// SPDX-License-Identifier: GPL-2.0
/*
 * Work of the kernel that is split into rounds: that its result is that of one piece, and how long it keeps others
 * waiting.
 *
 *	softirq_time order -d DEV		largest queues in the error state: each request is flushed once, in order
 *	softirq_time attack -d DEV -k KIND [-n QPS]	runs until it is killed; softirq_attack.c has the kinds
 *	softirq_time watch -a ADDRESS [-t SECONDS]	latency on CPU 0; softirq_watch.c
 */
#define _GNU_SOURCE
#include "softirq_time.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECV		(1ull << 32)	/* bit of a receive's wr_id */
#define LIMIT_MS	200000		/* reached only by a hang */

void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		vt_die("CPU %d: %s", cpu, strerror(errno));
}

struct ibv_qp *make_qp(struct vt_dev *d, enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq, int slots)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = type, .sq_sig_all = 1,
		.cap = { slots, srq ? 0 : slots, 1, srq ? 0 : 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	if (!qp)
		vt_die("create_qp: %s", strerror(errno));
	return qp;
}

int set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

/* ---- order ---- */

struct bench {
	struct vt_dev d;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *self;
	uint64_t next_send, next_recv;		/* wr_id of the next completion */
};

/* A QP in RTS whose peer never answers: the QPN is nobody's, and the timer is off. */
static void fresh_qp(struct bench *b, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct vt_conn c = { .type = type, .psn = 100 };
	struct vt_addr peer = { .gid = b->d.gid, .qpn = 5, .psn = 100, .mtu = b->d.mtu };
	int err;

	b->qp = make_qp(&b->d, type, b->cq, srq, RING);
	b->next_send = 0;
	b->next_recv = RECV;
	err = vt_qp_init(b->qp, &c) ?: vt_qp_connect(&b->d, b->qp, &c, &peer);
	if (err)
		vt_die("connect: %s", strerror(err));
}

static void post_sends(struct bench *b, uint64_t first, int n, uint32_t lkey)
{
	struct ibv_sge sge = { 0, !!lkey, lkey };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = !!lkey };
	int err = 0;

	if (b->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = b->self;
		wr.wr.ud.remote_qpn = 5;
		wr.wr.ud.remote_qkey = VT_QKEY;
	}
	for (wr.wr_id = first; !err && wr.wr_id < first + n; wr.wr_id++)
		err = ibv_post_send(b->qp, &wr, &bad);
	if (err)
		vt_die("post_send %llu: %s", (unsigned long long)wr.wr_id - 1, strerror(err));
}

static void post_recvs(struct bench *b, uint64_t first, int n)
{
	struct ibv_recv_wr *bad, wr = { 0 };
	int err = 0;

	for (wr.wr_id = RECV + first; !err && wr.wr_id < RECV + first + n; wr.wr_id++)
		err = ibv_post_recv(b->qp, &wr, &bad);
	if (err)
		vt_die("post_recv %llu: %s", (unsigned long long)wr.wr_id - 1, strerror(err));
}

/* Returns true if the next completion came within @ms and is the next one of its queue, with an error. */
static bool next_flushed(struct bench *b, int ms)
{
	struct ibv_wc wc;
	uint64_t *next;

	if (!vt_poll(b->cq, &wc, ms))
		return false;
	next = wc.wr_id & RECV ? &b->next_recv : &b->next_send;
	if (wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == *next) {
		++*next;
		return true;
	}
	printf("# wr_id %#llx, status %d, expected %#llx\n", (unsigned long long)wc.wr_id, wc.status,
	       (unsigned long long)*next);
	return false;
}

static bool all_flushed(struct bench *b, uint64_t sends, uint64_t recvs)
{
	while (b->next_send < sends || b->next_recv < RECV + recvs)
		if (!next_flushed(b, LIMIT_MS))
			break;
	printf("# %llu sends and %llu receives flushed\n", (unsigned long long)b->next_send,
	       (unsigned long long)(b->next_recv - RECV));
	return b->next_send == sends && b->next_recv == RECV + recvs;
}

static bool no_more(struct bench *b)
{
	struct ibv_wc wc;

	return !vt_poll(b->cq, &wc, 200);
}

static void destroy(struct bench *b)
{
	int err = ibv_destroy_qp(b->qp);
	struct ibv_wc wc;

	if (err)
		vt_die("destroy_qp: %s", strerror(err));
	while (ibv_poll_cq(b->cq, 1, &wc) > 0)
		;
}

static void full_queues(struct bench *b)
{
	int err;

	fresh_qp(b, IBV_QPT_RC, NULL);
	post_recvs(b, 0, RING);
	post_sends(b, 0, RING, 0);
	err = set_state(b->qp, IBV_QPS_ERR);
	vt_ok(!err && all_flushed(b, RING, RING) && no_more(b), "full queues: each request is flushed once, in order");
	post_sends(b, RING, RING / 2, 0);
	post_recvs(b, RING, RING / 2);
	vt_ok(all_flushed(b, RING + RING / 2, RING + RING / 2) && no_more(b), "so is what is posted in the error state");
	destroy(b);
}

static void reset_while_flushing(struct bench *b)
{
	struct vt_conn c = { .type = IBV_QPT_RC, .psn = 100 };
	struct vt_addr peer = { .gid = b->d.gid, .qpn = 5, .psn = 100, .mtu = b->d.mtu };
	struct ibv_wc wc;
	int err;

	fresh_qp(b, IBV_QPT_RC, NULL);
	post_recvs(b, 0, RING);
	post_sends(b, 0, RING, 0);
	err = set_state(b->qp, IBV_QPS_ERR) ?: set_state(b->qp, IBV_QPS_RESET);
	while (ibv_poll_cq(b->cq, 1, &wc) > 0)
		;
	err = err ?: vt_qp_init(b->qp, &c) ?: vt_qp_connect(&b->d, b->qp, &c, &peer);
	b->next_send = 7;
	b->next_recv = RECV + 7;
	post_recvs(b, 7, 1);
	post_sends(b, 7, 1, 0);
	vt_ok(!err && no_more(b), "RESET while the queues are flushed: the QP works again, nothing is flushed");
	err = set_state(b->qp, IBV_QPS_ERR);
	vt_ok(!err && all_flushed(b, 8, 8) && no_more(b), "then ERR: only what was posted since RESET is flushed");
	destroy(b);
}

static void destroy_while_flushing(struct bench *b)
{
	int err;

	fresh_qp(b, IBV_QPT_RC, NULL);
	post_recvs(b, 0, RING);
	post_sends(b, 0, RING, 0);
	err = set_state(b->qp, IBV_QPS_ERR);
	destroy(b);
	vt_ok(!err && no_more(b), "destroyed while the queues are flushed: no completion afterwards");
}

static bool event_came(struct ibv_context *ctx, enum ibv_event_type type, int ms)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	bool seen;

	if (poll(&p, 1, ms) != 1 || ibv_get_async_event(ctx, &ev))
		return false;
	seen = ev.event_type == type;
	ibv_ack_async_event(&ev);
	return seen;
}

static void last_wqe(struct bench *b)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(b->d.pd, &init);
	struct ibv_wc wc;
	int err, n = 0;
	bool event;

	if (!srq)
		vt_die("create_srq: %s", strerror(errno));
	fresh_qp(b, IBV_QPT_RC, srq);
	post_sends(b, 0, RING, 0);
	err = set_state(b->qp, IBV_QPS_ERR);
	event = event_came(b->d.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, LIMIT_MS);
	while (ibv_poll_cq(b->cq, 1, &wc) > 0)
		n++;
	printf("# %d completions before the event\n", n);
	vt_ok(!err && event && n == RING && !event_came(b->d.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, 200),
	      "SRQ: LAST_WQE_REACHED comes once, after the last completion");
	destroy(b);
	ibv_destroy_srq(srq);
}

/* A datagram QP fails its send queue alone: the rest is flushed, and what is posted before it sends again. */
static void send_queue_error(struct bench *b)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;
	struct ibv_wc wc;
	int err;
	bool ok;

	fresh_qp(b, IBV_QPT_UD, NULL);
	post_sends(b, 0, 1, 0xdead00);		/* no such key */
	ok = vt_poll(b->cq, &wc, LIMIT_MS) && wc.status == IBV_WC_LOC_PROT_ERR;
	err = ibv_query_qp(b->qp, &now, IBV_QP_STATE, &init);
	b->next_send = 1;
	post_sends(b, 1, RING - 1, 0);
	err = err ?: ibv_modify_qp(b->qp, &rts, IBV_QP_STATE | IBV_QP_CUR_STATE);
	vt_ok(ok && !err && now.qp_state == IBV_QPS_SQE && all_flushed(b, RING, 0) && no_more(b),
	      "send queue error: what was posted before RTS is flushed, in order");
	post_sends(b, RING, 1, 0);
	vt_ok(vt_poll(b->cq, &wc, LIMIT_MS) && !wc.status && wc.wr_id == RING, "then the QP sends again");
	destroy(b);
}

static int order(const struct options *opt)
{
	struct bench b = { 0 };
	struct vt_addr self;

	vt_open(&b.d, opt->dev, false, -1, 0);
	self = (struct vt_addr) { .gid = b.d.gid };
	b.cq = ibv_create_cq(b.d.ctx, 3 * RING, NULL, NULL, 0);
	b.self = vt_ah(&b.d, &self);
	if (!b.cq || !b.self)
		vt_die("objects: %s", strerror(errno));
	full_queues(&b);
	reset_while_flushing(&b);
	destroy_while_flushing(&b);
	last_wqe(&b);
	send_queue_error(&b);
	ibv_destroy_ah(b.self);
	ibv_destroy_cq(b.cq);
	vt_close(&b.d);
	return vt_done();
}

int main(int argc, char **argv)
{
	struct options opt = { .n = 1, .seconds = 10 };
	int o;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((o = getopt(argc, argv, "d:a:k:n:t:")) != -1) {
		switch (o) {
		case 'd': opt.dev = optarg; break;
		case 'a': opt.to = optarg; break;
		case 'k': opt.kind = optarg; break;
		case 'n': opt.n = atoi(optarg); break;
		case 't': opt.seconds = atoi(optarg); break;
		default: return VT_FAIL;
		}
	}
	if (optind + 1 == argc) {
		const char *what = argv[optind];

		if (!strcmp(what, "order") && opt.dev)
			return order(&opt);
		if (!strcmp(what, "attack") && opt.dev && opt.kind)
			return attack(&opt);
		if (!strcmp(what, "watch") && opt.to)
			return watch(&opt);
	}
	vt_die("usage: see the head of softirq_time.c");
}
