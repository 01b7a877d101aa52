// SPDX-License-Identifier: GPL-2.0
/* Implements hostile.h: makes queues, finds their rings, writes to them. Checks only its own operation. */
#define _GNU_SOURCE
#include "hostile.h"

#include <errno.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GUARD	0xa5
#define MARK	0x726f616e0000ull	/* wr_id of the requests used to find slots */

struct map {
	uint8_t *at;
	size_t size;
};

static int uverbs_maps(struct map *maps)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f) && n < MAX_MAPS)
		if (strstr(line, "/uverbs") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			maps[n++] = (struct map) { (uint8_t *)from, to - from };
	if (f)
		fclose(f);
	return n;
}

int ring_ctls(struct roan_ring_ctl *ctl[MAX_MAPS])
{
	struct map maps[MAX_MAPS];
	int i, n = uverbs_maps(maps);

	for (i = 0; i < n; i++)
		ctl[i] = (void *)maps[i].at;
	return n;
}

/* Finds mappings that did not exist before. */
static int new_maps(const struct map *before, int nr_before, struct map *fresh)
{
	struct map now[MAX_MAPS];
	int i, k, n = 0, nr_now = uverbs_maps(now);

	for (i = 0; i < nr_now; i++) {
		for (k = 0; k < nr_before && before[k].at != now[i].at; k++)
			;
		if (k == nr_before)
			fresh[n++] = now[i];
	}
	return n;
}

static uint8_t *find_mark(const struct map *m, uint64_t mark)
{
	size_t off;

	for (off = sizeof(struct roan_ring_ctl); off + 8 <= m->size; off += 16)
		if (!memcmp(m->at + off, &mark, 8))
			return m->at + off;
	return NULL;
}

/* Finds the ring among @maps in whose slots 0 and 1 @mark and @mark + 1 were posted. */
static void find_ring(struct hring *ring, const struct map *maps, int n, uint64_t mark, const char *what)
{
	int i;

	for (i = 0; i < n; i++) {
		uint8_t *zero = find_mark(&maps[i], mark), *one = find_mark(&maps[i], mark + 1);

		if (zero && one > zero) {
			*ring = (struct hring) { .ctl = (void *)(zero - sizeof(struct roan_ring_ctl)), .slots = zero,
						 .slot_size = one - zero, .map = maps[i].at,
						 .map_size = maps[i].size };
			return;
		}
	}
	vt_die("no ring found for the %s among %d mappings", what, n);
}

void *ring_slot_at(struct hring *ring, uint32_t n)
{
	uint32_t index = __atomic_load_n(&ring->ctl->user.index, __ATOMIC_RELAXED) + n;
	void *slot = ring->slots + (index % SLOTS) * ring->slot_size;

	memset(slot, 0, ring->slot_size);
	return slot;
}

void ring_advance(struct hring *ring, uint32_t n)
{
	__atomic_store_n(&ring->ctl->user.index, ring->ctl->user.index + n, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void post_write(struct rig *g, uint64_t wr_id)
{
	struct roan_send_wqe *w = ring_slot_at(&g->sq, 0);

	w->wr_id = wr_id;
	w->opcode = ROAN_WR_RDMA_WRITE;
	ring_advance(&g->sq, 1);
}

int doorbell_as(int fd, uint16_t len, uint64_t data)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} call = {
		.hdr = { .length = sizeof(call), .object_id = UVERBS_OBJECT_QP, .method_id = ROAN_METHOD_QP_DOORBELL,
			 .num_attrs = 1, .driver_id = ROAN_DRIVER_ID },
		.attr = { .attr_id = ROAN_ATTR_QP_DOORBELL_HANDLES, .len = len, .flags = UVERBS_ATTR_F_MANDATORY,
			  .data = data },
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

uint64_t inline_u32(uint32_t value)
{
	uint64_t data = 0;

	memcpy(&data, &value, sizeof(value));
	return data;
}

int doorbell_of(int fd, uint32_t handle)
{
	return doorbell_as(fd, sizeof(handle), inline_u32(handle));
}

int doorbell_bare(int fd)
{
	struct ib_uverbs_ioctl_hdr call = {
		.length = sizeof(call), .object_id = UVERBS_OBJECT_QP, .method_id = ROAN_METHOD_QP_DOORBELL,
		.driver_id = ROAN_DRIVER_ID,
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

int doorbell(struct ibv_qp *qp)
{
	return doorbell_of(qp->context->cmd_fd, qp->handle);
}

static struct ibv_qp *make_qp(struct rig *g, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = g->type, .sq_sig_all = 1,
		.cap = { SLOTS, SLOTS, MAX_SGE, MAX_SGE, MAX_INLINE },
	};
	struct ibv_qp *qp = ibv_create_qp(g->d->pd, &init);

	if (!qp)
		vt_die("create_qp: %s", strerror(errno));
	return qp;
}

static int connect_one(struct rig *g, struct ibv_qp *qp, struct ibv_qp *to)
{
	struct vt_conn c = {
		.type = g->type, .timeout = 12, .retry = 2, .rnr_retry = 1, .min_rnr_timer = 12, .psn = 100,
		.access = g->type == IBV_QPT_RC ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC : g->type == IBV_QPT_UC ? IBV_ACCESS_REMOTE_WRITE : 0,
	};
	struct vt_addr peer = { .gid = g->d->gid, .qpn = to->qp_num, .psn = 100, .mtu = g->d->mtu };
	int err = vt_qp_init(qp, &c);

	return err ?: vt_qp_connect(g->d, qp, &c, &peer);
}

static void connect_both(struct rig *g)
{
	int err = connect_one(g, g->qp, g->peer) ?: connect_one(g, g->peer, g->qp);

	if (err)
		vt_die("connect: %s", strerror(err));
}

static int post_send(struct rig *g, struct ibv_qp *qp, struct ibv_qp *to, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)g->r->mem + AREA, len, g->r->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = len ? 1 : 0,
	};

	if (g->type == IBV_QPT_UD) {
		wr.wr.ud.ah = g->ah;
		wr.wr.ud.remote_qpn = to->qp_num;
		wr.wr.ud.remote_qkey = VT_QKEY;
	}
	return ibv_post_send(qp, &wr, &bad);
}

static int post_recv(struct rig *g, struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)g->r->mem + AREA + AREA / 2, AREA / 2, g->r->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	if (g->srq && qp == g->qp)
		return ibv_post_srq_recv(g->srq, &wr, &bad);
	return ibv_post_recv(qp, &wr, &bad);
}

int peer_send(struct rig *g, uint32_t len)
{
	return post_send(g, g->peer, g->qp, 7, len);
}

int peer_recv(struct rig *g)
{
	return post_recv(g, g->peer, 8);
}

/* False: they did not arrive. */
static bool all_ok(struct ibv_cq *cq, int n, const char *what)
{
	struct ibv_wc wc;

	while (n--) {
		if (!vt_poll(cq, &wc, 5000))
			return false;
		if (wc.status)
			vt_die("%s: %s", what, ibv_wc_status_str(wc.status));
	}
	return true;
}

/*
 * Sends two messages each way, by which the rings are found; all queues are empty afterwards. False: a message was
 * lost.
 */
static bool calibrate(struct rig *g, const struct map *maps, int n)
{
	int i, err = 0;

	for (i = 0; i < 2; i++)
		err = err ?: post_recv(g, g->qp, MARK + 16 + i) ?: peer_recv(g);
	for (i = 0; i < 2; i++)
		err = err ?: post_send(g, g->qp, g->peer, MARK + i, 0) ?: peer_send(g, 0);
	if (err)
		vt_die("post: %s", strerror(err));
	if (!all_ok(g->cq, 4, "the hostile end's first requests") || !all_ok(g->peer_cq, 4, "the peer"))
		return false;
	find_ring(&g->sq, maps, n, MARK, "send queue");
	find_ring(&g->rq, maps, n, MARK + 16, "receive queue");
	return true;
}

static bool build(struct rig *g, struct vt_dev *d, struct region *r, enum ibv_qp_type type, bool srq)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = SLOTS, .max_sge = MAX_SGE } };
	struct vt_addr self = { .gid = d->gid };
	struct map before[MAX_MAPS], fresh[MAX_MAPS];
	int nr_before, n;

	*g = (struct rig) { .d = d, .r = r, .type = type };
	nr_before = uverbs_maps(before);
	g->cq = ibv_create_cq(d->ctx, 63, NULL, NULL, 0);
	if (!g->cq || new_maps(before, nr_before, fresh) != 1)
		vt_die("no mapping that could be the completion queue's");
	g->cqr.ctl = (void *)fresh[0].at;
	g->cqr.map = fresh[0].at;
	g->cqr.map_size = fresh[0].size;
	g->peer_cq = ibv_create_cq(d->ctx, 63, NULL, NULL, 0);
	g->ah = vt_ah(d, &self);
	nr_before = uverbs_maps(before);
	if (srq)
		g->srq = ibv_create_srq(d->pd, &srq_init);
	if (!g->peer_cq || !g->ah || (srq && !g->srq))
		vt_die("objects: %s", strerror(errno));
	g->qp = make_qp(g, g->cq, g->srq);
	n = new_maps(before, nr_before, fresh);
	g->peer = make_qp(g, g->peer_cq, NULL);
	connect_both(g);
	return calibrate(g, fresh, n);
}

void rig_down(struct rig *g)
{
	int err;

	/* EBUSY: another thread of the test is in a system call with it. */
	while ((err = ibv_destroy_qp(g->qp)) == EBUSY)
		usleep(100);
	err = err ?: ibv_destroy_qp(g->peer) ?: ibv_destroy_ah(g->ah);
	if (!err && g->srq)
		err = ibv_destroy_srq(g->srq);
	err = err ?: ibv_destroy_cq(g->cq) ?: ibv_destroy_cq(g->peer_cq);
	if (err)
		vt_die("destroy: %s", strerror(err));
}

void rig_up(struct rig *g, struct vt_dev *d, struct region *r, enum ibv_qp_type type, bool srq)
{
	int tries = type == IBV_QPT_RC ? 1 : 5;		/* UC and UD messages may get lost */

	while (!build(g, d, r, type, srq)) {
		if (!--tries)
			vt_die("no message comes through");
		rig_down(g);
	}
}

void drain_cq(struct ibv_cq *cq, int ms)
{
	struct ibv_wc wc;

	while (vt_poll(cq, &wc, ms))
		;
}

int try_reconnect(struct rig *g)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	int err = ibv_modify_qp(g->qp, &a, IBV_QP_STATE) ?: ibv_modify_qp(g->peer, &a, IBV_QP_STATE);

	drain_cq(g->cq, 0);
	drain_cq(g->peer_cq, 0);
	return err ?: connect_one(g, g->qp, g->peer) ?: connect_one(g, g->peer, g->qp);
}

void rig_reconnect(struct rig *g)
{
	int err = try_reconnect(g);

	if (err)
		vt_die("connect: %s", strerror(err));
}

bool event_came(struct ibv_context *ctx, enum ibv_event_type type, int ms)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	uint64_t end = vt_now_ms() + ms;
	struct ibv_async_event ev;
	bool seen = false;

	while (!seen && vt_now_ms() < end) {
		if (poll(&p, 1, end - vt_now_ms()) != 1 || ibv_get_async_event(ctx, &ev))
			break;
		seen = ev.event_type == type;
		ibv_ack_async_event(&ev);
	}
	return seen;
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	return ibv_query_qp(qp, &a, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : a.qp_state;
}

bool guards_whole(const struct region *r)
{
	size_t i;

	for (i = 0; i < AREA; i++)
		if (r->mem[i] != GUARD || r->mem[2 * AREA + i] != GUARD)
			return false;
	return true;
}

bool still_works(struct vt_dev *d, struct region *r)
{
	uint8_t *area = r->mem + AREA;
	struct ibv_wc wc;
	struct rig g;
	bool ok;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	vt_fill(area, AREA / 2, 42, 0);
	memset(area + AREA / 2, 0, AREA / 2);
	ok = !peer_recv(&g) && !post_send(&g, g.qp, g.peer, 1, AREA / 2) && vt_poll(g.peer_cq, &wc, 5000) &&
	     !wc.status && wc.byte_len == AREA / 2 && vt_diff(area + AREA / 2, AREA / 2, 42, 0) == AREA / 2;
	rig_down(&g);
	return ok && guards_whole(r);
}
