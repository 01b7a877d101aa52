// SPDX-License-Identifier: GPL-2.0
/*
 * Impossible ring indices, and rings that are overwritten while they are in use. The program that does so loses its own
 * queue and gets an event; other programs are not affected.
 */
#define _GNU_SOURCE
#include "hostile.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool reaches(struct ibv_qp *qp, enum ibv_qp_state state, int ms)
{
	uint64_t end = vt_now_ms() + ms;

	while (state_of(qp) != state && vt_now_ms() < end)
		usleep(1000);
	return state_of(qp) == state;
}

/* Advances the send ring's tail by @by with no request outstanding. */
static void sq_index(struct vt_dev *d, struct region *r, uint32_t by)
{
	struct rig g;
	int err;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	ring_advance(&g.sq, by);
	err = doorbell(g.qp);
	vt_ok(!err && event_came(d->ctx, IBV_EVENT_QP_FATAL, 3000) && reaches(g.qp, IBV_QPS_ERR, 2000),
	      "send ring: tail + %#x is a fatal event", by);
	rig_down(&g);
}

/* Moves the tail back behind requests the kernel has taken, while a SEND waits for a receive. */
static void sq_backwards(struct vt_dev *d, struct region *r)
{
	struct ibv_qp_attr slow = { .min_rnr_timer = 31 };	/* half a second */
	struct roan_send_wqe *w;
	struct rig g;
	int err;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	err = ibv_modify_qp(g.peer, &slow, IBV_QP_MIN_RNR_TIMER);
	w = ring_slot_at(&g.sq, 0);
	w->wr_id = 1;
	w->opcode = ROAN_WR_SEND;
	ring_advance(&g.sq, 1);
	err = err ?: doorbell(g.qp);
	ring_advance(&g.sq, -2);
	err = err ?: doorbell(g.qp);
	vt_ok(!err && event_came(d->ctx, IBV_EVENT_QP_FATAL, 3000) && reaches(g.qp, IBV_QPS_ERR, 2000),
	      "send ring: tail behind the head with requests outstanding is a fatal event");
	rig_down(&g);
}

static void rq_index(struct vt_dev *d, struct region *r, uint32_t by)
{
	struct ibv_wc wc = { .status = -1 };
	struct rig g;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	ring_advance(&g.rq, by);
	peer_send(&g, 8);
	vt_ok(event_came(d->ctx, IBV_EVENT_QP_FATAL, 3000) && reaches(g.qp, IBV_QPS_ERR, 2000) &&
	      vt_poll(g.peer_cq, &wc, 3000) && wc.status == IBV_WC_REM_OP_ERR,
	      "receive ring: tail + %#x is a fatal event, the sender's request fails", by);
	rig_down(&g);
}

static void srq_index(struct vt_dev *d, struct region *r, uint32_t by)
{
	struct ibv_wc wc = { .status = -1 };
	struct rig g;
	bool event;

	rig_up(&g, d, r, IBV_QPT_RC, true);
	ring_advance(&g.rq, by);
	peer_send(&g, 8);
	event = event_came(d->ctx, IBV_EVENT_SRQ_ERR, 3000);
	vt_ok(event && vt_poll(g.peer_cq, &wc, 5000) && wc.status != IBV_WC_SUCCESS,
	      "SRQ ring: tail + %#x is an SRQ error event, the sender's request fails", by);
	rig_down(&g);
}

/* An impossible head of the CQ ring: the entries are lost, and the overflow is reported once. */
static void cq_index(struct vt_dev *d, struct region *r, uint32_t by)
{
	struct roan_ring_ctl *ctl;
	struct rig g;
	bool ok;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	ctl = g.cqr.ctl;
	ring_advance(&g.cqr, by);
	post_write(&g, 0);
	ok = !doorbell(g.qp) && event_came(d->ctx, IBV_EVENT_CQ_ERR, 3000);
	vt_ok(ok && ctl->kernel.flags & ROAN_RING_OVERFLOW, "completion ring: head + %#x is an overflow", by);
	rig_down(&g);
}

/* Overwriting the kernel's line changes what the program sees; the kernel does not use it. */
static void kernel_lines(struct vt_dev *d, struct region *r)
{
	struct ibv_wc wc = { .status = -1 };
	struct rig g;
	int i, err = 0, n = 0;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	for (i = 0; i < 3 * SLOTS; i++) {
		memset(&g.sq.ctl->kernel, 0x5a + i, sizeof(g.sq.ctl->kernel));
		memset(&g.rq.ctl->kernel, 0xc3 + i, sizeof(g.rq.ctl->kernel));
		post_write(&g, i);
		err = err ?: doorbell(g.qp);
		if (vt_poll(g.cq, &wc, 3000) && !wc.status && wc.wr_id == (uint64_t)i)
			n++;
	}
	vt_ok(!err && n == 3 * SLOTS, "kernel lines overwritten: %d of %d requests complete in order", n, 3 * SLOTS);
	rig_down(&g);
}

/* The slot of the completion ring with this wr_id, or NULL. Slots begin at multiples of 16. */
static const struct roan_cqe *cqe_of(const struct hring *ring, uint64_t wr_id)
{
	size_t at;

	for (at = sizeof(struct roan_ring_ctl); at + sizeof(struct roan_cqe) <= ring->map_size; at += 16)
		if (!memcmp(ring->map + at, &wr_id, sizeof(wr_id)))
			return (void *)(ring->map + at);
	return NULL;
}

/* Every byte of a completion is written: none is what the kernel's stack or the ring held before. */
static bool cqe_whole(struct rig *g, uint64_t wr_id, enum ibv_wc_status status)
{
	const struct roan_cqe *cqe;
	struct ibv_wc wc;

	if (!vt_poll(g->cq, &wc, 3000) || wc.wr_id != wr_id || wc.status != status)
		return false;
	cqe = cqe_of(&g->cqr, wr_id);
	return cqe && !cqe->reserved_pkey && !cqe->reserved && cqe->qp_handle == (uintptr_t)g->qp &&
	       cqe->qp_num == g->qp->qp_num && cqe->timestamp_ns != ~0ull && cqe->vlan != 0xffff;
}

static void cqe_bytes(struct vt_dev *d, struct region *r)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct roan_recv_wqe *w;
	struct rig g;
	bool ok;

	_Static_assert(offsetof(struct roan_cqe, reserved) + 1 == offsetof(struct roan_cqe, wqe_index),
		       "a byte of struct roan_cqe has no name");
	rig_up(&g, d, r, IBV_QPT_RC, false);
	memset(g.cqr.map + sizeof(struct roan_ring_ctl), 0xff, g.cqr.map_size - sizeof(struct roan_ring_ctl));
	post_write(&g, 0x7777777777770001);
	ok = !doorbell(g.qp) && cqe_whole(&g, 0x7777777777770001, IBV_WC_SUCCESS);
	w = ring_slot_at(&g.rq, 0);
	w->wr_id = 0x7777777777770002;
	ring_advance(&g.rq, 1);
	peer_send(&g, 0);
	ok = ok && cqe_whole(&g, 0x7777777777770002, IBV_WC_SUCCESS);
	w = ring_slot_at(&g.rq, 0);
	w->wr_id = 0x7777777777770003;
	ring_advance(&g.rq, 1);
	ok = ok && !ibv_modify_qp(g.qp, &err, IBV_QP_STATE) && cqe_whole(&g, 0x7777777777770003, IBV_WC_WR_FLUSH_ERR);
	vt_ok(ok, "completion ring: the kernel writes every byte of an entry, reserved ones as zero");
	rig_down(&g);
}

/* Unmaps both rings of a QP that has work. */
static void unmapped(struct vt_dev *d, struct region *r)
{
	struct ibv_wc wc;
	struct rig g;
	bool ok;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	post_write(&g, 77);
	munmap(g.sq.map, g.sq.map_size);
	ok = !doorbell(g.qp) && vt_poll(g.cq, &wc, 3000) && !wc.status && wc.wr_id == 77;
	/* The provider will unmap the address again: reserve it, so that no other mapping is hit. */
	mmap(g.sq.map, g.sq.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	vt_ok(ok, "a ring that the program has unmapped still works in the kernel");
	rig_down(&g);
}

static uint64_t rnd(uint64_t *s)
{
	return *s = vt_mix(*s);
}

static const uint32_t odd[] = {
	0, 1, 7, 8, 64, 4095, 4096, 4097, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffff8, 0xffffffff
};

static uint64_t odd_address(const struct region *r, uint64_t *s)
{
	uint64_t area = (uintptr_t)r->mem + AREA;

	switch (rnd(s) % 5) {
	case 0:
		return rnd(s);
	case 1:
		return 0;
	case 2:
		return area + AREA - rnd(s) % 16;
	default:
		return area + rnd(s) % AREA;
	}
}

static uint32_t odd_key(const struct region *r, uint64_t *s)
{
	const uint32_t keys[] = {
		r->mr->lkey, r->mr->rkey, r->mr->rkey, r->local->lkey, r->foreign->rkey, r->stale, 0, rnd(s)
	};

	return keys[rnd(s) % 8];
}

static void odd_slot(struct rig *g, uint32_t n, uint64_t *s)
{
	static const uint8_t ops[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15 };
	struct roan_send_wqe *w = ring_slot_at(&g->sq, n);
	struct roan_sge *sge = (void *)(w + 1);
	int i;

	w->wr_id = n;
	w->opcode = rnd(s) % 16 ? ops[rnd(s) % sizeof(ops)] : rnd(s);
	w->flags = rnd(s) % 16 ? rnd(s) & (ROAN_SEND_FENCE | ROAN_SEND_SOLICITED) : rnd(s);
	w->num_sge = rnd(s) % 8 ? rnd(s) % (MAX_SGE + 1) : rnd(s);
	w->inline_len = rnd(s) % 2 ? rnd(s) % (MAX_INLINE + 8) : odd[rnd(s) % 13];
	for (i = 0; i < 5; i++)
		w->words[i] = rnd(s) % 2 ? odd_address(g->r, s) : rnd(s);
	w->rdma.remote_addr = odd_address(g->r, s);
	w->rdma.rkey = odd_key(g->r, s);
	if (w->opcode == ROAN_WR_ATOMIC_CMP_AND_SWP || w->opcode == ROAN_WR_ATOMIC_FETCH_AND_ADD)
		w->atomic.rkey = odd_key(g->r, s);
	if (w->opcode == ROAN_WR_LOCAL_INV)
		w->inv_key = g->r->stale;	/* not a key that the rest of the test needs */
	for (i = 0; i < MAX_SGE; i++)
		sge[i] = (struct roan_sge) { odd_address(g->r, s), odd[rnd(s) % 13], odd_key(g->r, s) };
}

/* Fills slots with random edge values. Each QP ends idle or in ERR, and the guards around the memory are unchanged. */
static void odd_slots(struct vt_dev *d, struct region *r, enum ibv_qp_type type, const char *name, int rounds)
{
	uint64_t seed = type * 7919, end;
	unsigned int errors = 0, i, k, n;
	struct ibv_wc wc;
	struct rig g;

	rig_up(&g, d, r, type, false);
	for (i = 0; i < (unsigned int)rounds; i++) {
		n = 1 + rnd(&seed) % (SLOTS / 2);
		for (k = 0; k < n; k++)
			odd_slot(&g, k, &seed);
		for (k = 0; k < 4; k++)
			peer_recv(&g);
		ring_advance(&g.sq, n);
		doorbell(g.qp);
		/* sq_sig_all: each slot has a completion: success, error or flush. */
		for (k = 0, end = vt_now_ms() + 60000; k < n && vt_now_ms() < end;)
			k += vt_poll(g.cq, &wc, 100);
		if (k != n) {
			printf("# round %u: %u of %u slots completed\n", i, k, n);
			errors++;
		}
		rig_reconnect(&g);
	}
	rig_down(&g);
	vt_ok(!errors && guards_whole(r), "%s: %d rounds of random slots, each slot completes once", name, rounds);
}

struct scribbler {
	struct rig *g;
	atomic_bool stop;
};

/*
 * The provider trusts two parts of a CQ: the kernel's line (it would poll 4 * 10^9 entries) and the handle of a QP in
 * each entry, an address in this program.
 */
static bool provider_trusts(const struct hring *cq, const uint32_t *at)
{
	size_t off = (const uint8_t *)at - cq->map;

	if (off < sizeof(struct roan_ring_ctl))
		return off >= offsetof(struct roan_ring_ctl, kernel);
	off -= sizeof(struct roan_ring_ctl);
	return off % sizeof(struct roan_cqe) >= offsetof(struct roan_cqe, qp_handle);
}

static void *scribble(void *arg)
{
	struct scribbler *sc = arg;
	struct hring *rings[] = { &sc->g->sq, &sc->g->rq, &sc->g->cqr };
	uint64_t s = 4711;

	while (!atomic_load(&sc->stop)) {
		struct hring *h = rings[rnd(&s) % 3];
		uint64_t v = rnd(&s);
		uint32_t *at = rnd(&s) % 4 ? (uint32_t *)h->map + (v >> 32) % (h->map_size / 4) :
					     (uint32_t *)h->ctl + (v >> 32) % 64;

		if (h != &sc->g->cqr || !provider_trusts(h, at))
			__atomic_store_n(at, v % 4 ? v : odd[v / 4 % 13], __ATOMIC_RELAXED);
		if (!(v % 64))
			usleep(100);
	}
	return NULL;
}

/* Another thread writes random words into all three rings while both sides use the QP. */
static void scribbling(struct vt_dev *d, struct region *r, bool srq, int rounds)
{
	uint64_t seed = 99, end;
	struct scribbler sc;
	pthread_t thread;
	struct rig g;
	int i, err = 0;

	for (i = 0; i < rounds; i++) {
		rig_up(&g, d, r, IBV_QPT_RC, srq);
		sc = (struct scribbler) { .g = &g };
		if (pthread_create(&thread, NULL, scribble, &sc))
			vt_die("pthread_create");
		for (end = vt_now_ms() + 300; vt_now_ms() < end;) {
			odd_slot(&g, 0, &seed);
			ring_advance(&g.sq, 1);
			ring_advance(&g.rq, 1);
			err = err ?: doorbell(g.qp);
			peer_send(&g, 64);
			peer_recv(&g);
			drain_cq(g.peer_cq, 0);
			if (state_of(g.peer) == IBV_QPS_ERR || state_of(g.qp) == IBV_QPS_ERR) {
				struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

				err = err ?: ibv_modify_qp(g.qp, &a, IBV_QP_STATE);
				try_reconnect(&g);	/* concurrent overwriting may make it fail half-way */
			}
		}
		atomic_store(&sc.stop, true);
		pthread_join(thread, NULL);
		while (event_came(d->ctx, IBV_EVENT_DEVICE_FATAL, 1))
			err = EIO;	/* a ring error must not be fatal for the device */
		rig_down(&g);
	}
	vt_ok(!err && guards_whole(r), "%s rings overwritten during use, %d times: all objects can be destroyed",
	      srq ? "SRQ" : "QP", rounds);
}

struct runner {
	struct rig *g;
	atomic_bool stop;
	bool bells;
	int fd;
	uint32_t handle;
};

/* Advances the tail without writing slots, as fast as possible, or only rings the doorbell. */
static void *run_away(void *arg)
{
	struct runner *run = arg;

	while (!atomic_load(&run->stop)) {
		if (run->bells) {
			doorbell_of(run->fd, run->handle);
			continue;
		}
		ring_advance(&run->g->sq, 1);
		ring_advance(&run->g->rq, 1);
		ring_advance(&run->g->cqr, 1);
	}
	return NULL;
}

/*
 * The kernel flushes a QP in ERR whose tails keep advancing. Neither the flush nor a waiting thread may be held for
 * ever.
 */
static void runaway(struct vt_dev *d, struct region *r)
{
	struct ibv_qp_attr err_state = { .qp_state = IBV_QPS_ERR }, reset = { .qp_state = IBV_QPS_RESET };
	struct runner run = { 0 };
	uint64_t begin, end, worst = 0;
	pthread_t thread;
	struct rig g;
	int err;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	err = ibv_modify_qp(g.qp, &err_state, IBV_QP_STATE);
	run.g = &g;
	if (pthread_create(&thread, NULL, run_away, &run))
		vt_die("pthread_create");
	for (end = vt_now_ms() + 500; vt_now_ms() < end;) {
		begin = vt_now_ms();
		err = err ?: doorbell(g.qp);
		if (vt_now_ms() - begin > worst)
			worst = vt_now_ms() - begin;
	}
	err = err ?: ibv_modify_qp(g.qp, &reset, IBV_QP_STATE);
	atomic_store(&run.stop, true);
	pthread_join(thread, NULL);
	vt_ok(!err && worst < 5000, "a QP in ERR with running tails: no doorbell call takes long");
	rig_down(&g);
}

/* One thread rings the doorbell all the time, another takes the QP through its states and destroys it. */
static void bells_and_states(struct vt_dev *d, struct region *r)
{
	struct runner run;
	pthread_t thread;
	struct rig g;
	int i, k;

	for (i = 0; i < 5; i++) {
		rig_up(&g, d, r, IBV_QPT_RC, false);
		run = (struct runner) { .g = &g, .bells = true, .fd = d->ctx->cmd_fd, .handle = g.qp->handle };
		if (pthread_create(&thread, NULL, run_away, &run))
			vt_die("pthread_create");
		for (k = 0; k < 20; k++) {
			post_write(&g, 0);
			rig_reconnect(&g);
		}
		rig_down(&g);	/* doorbells of a destroyed QP must only return errors */
		atomic_store(&run.stop, true);
		pthread_join(thread, NULL);
	}
	vt_ok(guards_whole(r), "doorbells while the QP changes its state and goes away");
}

/* A fast but well-behaved program: work deferred by the error state must not hit the QP after RESET. */
static void reset_after_failure(struct vt_dev *d, struct region *r)
{
	struct ibv_qp_attr err_state = { .qp_state = IBV_QPS_ERR };
	unsigned int i, k, fell = 0;
	struct rig g;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	for (i = 0; i < 300; i++) {
		if (ibv_modify_qp(g.qp, &err_state, IBV_QP_STATE))
			vt_die("ERR: %s", strerror(errno));
		for (k = 0; k < i % 4; k++)
			doorbell(g.qp);
		if (try_reconnect(&g)) {
			fell++;
			continue;
		}
		usleep(i % 3 ? 0 : 2000);
		fell += state_of(g.qp) != IBV_QPS_RTS;
	}
	vt_ok(!fell, "a QP that failed, was reset and connected again stays up: fell %u times of %u", fell, i);
	rig_down(&g);
}

/* Receives need a doorbell in ERR only. A QP that is used again must not request doorbells any more. */
static void receives_after_failure(struct vt_dev *d, struct region *r)
{
	struct ibv_qp_attr err_state = { .qp_state = IBV_QPS_ERR };
	uint32_t failed, again;
	struct rig g;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	if (ibv_modify_qp(g.qp, &err_state, IBV_QP_STATE))
		vt_die("ERR: %s", strerror(errno));
	failed = g.rq.ctl->kernel.flags;
	rig_reconnect(&g);
	again = g.rq.ctl->kernel.flags;
	vt_ok(failed == ROAN_RING_NEED_DOORBELL && !again, "receive ring: NEED_DOORBELL is set in ERR only");
	rig_down(&g);
}

/* Sets send_cpu_plus1 of all rings to @on, polls an empty CQ, and counts the rings whose value the kernel has reset. */
static int rung_by_polling(struct ibv_cq *cq, uint32_t on)
{
	struct roan_ring_ctl *ctl[MAX_MAPS];
	int i, n = ring_ctls(ctl), rung = 0;
	struct ibv_wc wc;

	for (i = 0; i < n; i++)
		ctl[i]->kernel.send_cpu_plus1 = on;
	ibv_poll_cq(cq, 1, &wc);
	for (i = 0; i < n; i++) {
		rung += !__atomic_load_n(&ctl[i]->kernel.send_cpu_plus1, __ATOMIC_RELAXED);
		ctl[i]->kernel.send_cpu_plus1 = 0;
	}
	return rung;
}

/* A poll of an empty CQ rings only if deferred sends wait on this CPU, and only for the context's hint ring. */
static void waits_where_we_poll(struct vt_dev *d, struct region *r)
{
	int here, there, cpu = sched_getcpu();
	cpu_set_t before, one;
	struct rig g;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_getaffinity(0, sizeof(before), &before) || sched_setaffinity(0, sizeof(one), &one))
		vt_die("affinity: %s", strerror(errno));
	here = rung_by_polling(g.cq, cpu + 1);
	there = rung_by_polling(g.cq, cpu + 2);
	vt_ok(here == 1 && !there,
	      "doorbell hints: a poll rings for sends deferred on its CPU (%d), not on another (%d)", here, there);
	sched_setaffinity(0, sizeof(before), &before);
	rig_down(&g);
}

static void *watch(void *arg)
{
	struct roan_ring_ctl *ctl[MAX_MAPS];
	int i, n = ring_ctls(ctl);
	_Atomic int *state = arg;	/* 0: watch; 1: seen; 2: stop */

	while (!*state)
		for (i = 0; i < n; i++)
			if (__atomic_load_n(&ctl[i]->kernel.send_cpu_plus1, __ATOMIC_RELAXED))
				*state = 1;
	return NULL;
}

/*
 * A window is longer than one transmit budget. With several CPUs another thread can see that the remainder is deferred.
 */
static void long_send_waits(struct vt_dev *d, struct region *r)
{
	uint32_t len = 1 << 20;
	void *mem = calloc(1, len);
	struct ibv_mr *mr = ibv_reg_mr(d->pd, mem, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	uint64_t end = vt_now_ms() + 20000;
	_Atomic int state = 0;
	struct ibv_wc wc;
	pthread_t thread;
	struct rig g;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	if (!mr || pthread_create(&thread, NULL, watch, &state))
		vt_die("a watching thread: %s", strerror(errno));
	while (!state && vt_now_ms() < end) {
		struct ibv_sge sge = { (uintptr_t)mr->addr, len, mr->lkey };
		struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
						.send_flags = IBV_SEND_SIGNALED };

		wr.wr.rdma.remote_addr = sge.addr;
		wr.wr.rdma.rkey = mr->rkey;
		if (ibv_post_send(g.qp, &wr, &bad) || !vt_poll(g.cq, &wc, 5000) || wc.status)
			vt_die("a WRITE of 1 MB");
	}
	vt_ok(state == 1, "doorbell hints: the remainder of a long send is deferred");
	state = 2;
	pthread_join(thread, NULL);
	rig_down(&g);
	ibv_dereg_mr(mr);
	free(mem);
}

void rings_cases(struct vt_dev *d, struct region *r)
{
	sq_index(d, r, SLOTS + 1);
	sq_index(d, r, 0x80000000);
	sq_index(d, r, -1);
	sq_backwards(d, r);
	rq_index(d, r, SLOTS + 1);
	rq_index(d, r, -1);
	srq_index(d, r, 0x7fffffff);
	cq_index(d, r, 5);
	cq_index(d, r, 0x80000000);
	kernel_lines(d, r);
	cqe_bytes(d, r);
	unmapped(d, r);
	odd_slots(d, r, IBV_QPT_RC, "RC", 150);
	odd_slots(d, r, IBV_QPT_UC, "UC", 100);
	odd_slots(d, r, IBV_QPT_UD, "UD", 100);
	scribbling(d, r, false, 5);
	scribbling(d, r, true, 3);
	runaway(d, r);
	bells_and_states(d, r);
	reset_after_failure(d, r);
	receives_after_failure(d, r);
	waits_where_we_poll(d, r);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		long_send_waits(d, r);
	else
		vt_ok_skip("doorbell hints: the remainder of a long send is deferred", "one CPU");
}
