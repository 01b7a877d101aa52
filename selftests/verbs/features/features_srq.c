// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: the limit event, and a resize, while messages consume receives or without address space. */
#include "features.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct ibv_srq *new_srq(struct vt_dev *d, int max_wr)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = max_wr, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(d->pd, &a);

	if (!srq)
		vt_die("create_srq");
	return srq;
}

static int post_shared(struct pair *p, struct ibv_srq *srq, size_t off, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = sge_at(p, off, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/* An SRQ with QPs cannot be destroyed. */
static void close_both(struct pair *p, struct ibv_srq *srq)
{
	int i, busy = ibv_destroy_srq(srq);

	for (i = 0; i < 2; i++) {
		ibv_destroy_qp(p->qp[i]);
		p->qp[i] = NULL;
	}
	vt_ok(busy && !ibv_destroy_srq(srq), "SRQ: can be destroyed only after its QPs");
	pair_close(p);
}

static void limit(struct vt_dev *d)
{
	struct ibv_srq *srq = new_srq(d, 16);
	struct ibv_srq_attr q = { .srq_limit = 6 };
	struct pair p;
	int i, err = 0;

	pair_open_srq(&p, d, 64, srq);
	for (i = 0; i < 8; i++)
		err |= post_shared(&p, srq, 1024 * i, 512, i);
	err |= ibv_modify_srq(srq, &q, IBV_SRQ_LIMIT);
	for (i = 0; i < 2; i++)
		err |= post_op(&p, 0, IBV_WR_SEND, 32768, 0, 64, 0) | status_of(p.scq[0], 3000);
	vt_ok(!err && async_event(d->ctx, 100) == -1, "SRQ: no limit event at the limit");
	err = post_op(&p, 0, IBV_WR_SEND, 32768, 0, 64, 0) | status_of(p.scq[0], 3000);
	vt_ok(!err && async_event(d->ctx, 2000) == IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ: limit event below the limit");
	err = ibv_query_srq(srq, &q);
	vt_ok(!err && q.srq_limit == 0 && q.max_wr >= 16, "SRQ: the limit is disarmed by its event");
	err = ibv_modify_srq(srq, &(struct ibv_srq_attr) { .srq_limit = 12 }, IBV_SRQ_LIMIT);
	err |= ibv_modify_srq(srq, &(struct ibv_srq_attr) { .max_wr = 8, .srq_limit = 2 }, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	err |= ibv_query_srq(srq, &q);
	vt_ok(!err && q.srq_limit == 2 && q.max_wr < 12, "SRQ: size and limit are lowered in one call");
	close_both(&p, srq);
}

#define POSTED	3000	/* receives in the queue: more than a resize copies in one step */
#define MESSAGES	4000
#define SLOTS	(BUF / 16)

struct resizer {
	struct ibv_srq *srq;
	atomic_bool stop;
	int err, n;
};

static void *resize_on(void *arg)
{
	struct resizer *r = arg;

	while (!atomic_load(&r->stop) && !r->err) {
		struct ibv_srq_attr q = { .max_wr = r->n++ & 1 ? POSTED : 2 * POSTED };

		r->err = ibv_modify_srq(r->srq, &q, IBV_SRQ_MAX_WR);
		usleep(100);
	}
	return NULL;
}

/* Message @n carries its number and must land in the buffer of receive @n. */
static bool received(struct pair *p, struct ibv_srq *srq, int n)
{
	uint64_t *there = (uint64_t *)(p->buf + BUF / 2 + n % (SLOTS / 2) * 16);
	struct ibv_wc wc;

	if (!vt_poll(p->rcq[1], &wc, 10000) || wc.status || wc.wr_id != (uint64_t)n || *there != (uint64_t)n)
		return false;
	*there = 0;
	n += POSTED;
	return !post_shared(p, srq, BUF / 2 + n % (SLOTS / 2) * 16, 8, n);
}

static void resize(struct vt_dev *d)
{
	struct ibv_srq *srq = new_srq(d, POSTED);
	struct resizer r = { .srq = srq };
	pthread_t thread;
	struct pair p;
	int i, err = 0;

	pair_open_srq(&p, d, 64, srq);
	for (i = 0; i < POSTED; i++)
		err |= post_shared(&p, srq, BUF / 2 + i * 16, 8, i);
	if (err || pthread_create(&thread, NULL, resize_on, &r))
		vt_die("receives, or pthread_create");
	for (i = 0; i < MESSAGES; i++) {
		*(uint64_t *)p.buf = i;
		if (post_op(&p, 0, IBV_WR_SEND, 0, 0, 8, 0) || status_of(p.scq[0], 10000) || !received(&p, srq, i))
			break;
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	vt_ok(i == MESSAGES && !r.err && r.n > 1, "SRQ: resized %d times, %d of %d messages in the right receives",
	      r.n, i, MESSAGES);
	r.err = ibv_modify_srq(srq, &(struct ibv_srq_attr) { .max_wr = POSTED / 2 }, IBV_SRQ_MAX_WR);
	vt_ok(r.err, "SRQ: a resize below the number of its receives fails (error %d)", r.err);
	r.err = ibv_modify_srq(srq, &(struct ibv_srq_attr) { .max_wr = POSTED - 1 }, IBV_SRQ_MAX_WR);
	err = ibv_modify_srq(srq, &(struct ibv_srq_attr) { .max_wr = POSTED }, IBV_SRQ_MAX_WR);
	vt_ok(r.err == EINVAL && !err, "SRQ: a resize to one less than that fails, to that number not (errors %d, %d)", r.err,
	      err);
	close_both(&p, srq);
}

/* The process may not map another MiB, but a ring of this many slots needs several. Both queues must stay as they are. */
static void resize_without_address_space(struct vt_dev *d)
{
	struct ibv_srq *srq = new_srq(d, 16);
	const int many = 65536;
	struct rlimit limit, was;
	unsigned long pages = 0;
	int cq, queue, err = 0;
	struct pair p;
	FILE *f;

	pair_open_srq(&p, d, 64, srq);
	err = post_shared(&p, srq, 1024, 512, 1);
	f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%lu", &pages) != 1 || fclose(f) || getrlimit(RLIMIT_AS, &was))
		vt_die("size of the process");
	limit = was;
	limit.rlim_cur = pages * sysconf(_SC_PAGESIZE) + (1 << 20);
	err |= setrlimit(RLIMIT_AS, &limit);
	cq = ibv_resize_cq(p.rcq[1], many);
	queue = ibv_modify_srq(srq, &(struct ibv_srq_attr) { .max_wr = many }, IBV_SRQ_MAX_WR);
	err |= setrlimit(RLIMIT_AS, &was);
	err |= post_op(&p, 0, IBV_WR_SEND, 32768, 0, 64, 0) | status_of(p.scq[0], 3000) | status_of(p.rcq[1], 3000);
	err |= post_shared(&p, srq, 1024, 512, 2);
	err |= post_op(&p, 0, IBV_WR_SEND, 32768, 0, 64, 0) | status_of(p.scq[0], 3000) | status_of(p.rcq[1], 3000);
	vt_ok(!err && cq == ENOMEM && queue == ENOMEM,
	      "CQ, SRQ: a resize without address space fails (%d, %d), and both still work", cq, queue);
	close_both(&p, srq);
}

/* QPs of several PDs may share an SRQ. Its receives' L_Keys are checked against the SRQ's own PD. */
static void domain(struct vt_dev *d)
{
	struct ibv_pd *own = ibv_alloc_pd(d->ctx), *theirs = d->pd;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct pair p;
	int err;

	if (!own)
		vt_die("alloc_pd");
	d->pd = own;
	srq = new_srq(d, 16);
	d->pd = theirs;
	pair_open_srq(&p, d, 64, srq);
	mr = ibv_reg_mr(own, p.buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		vt_die("reg_mr");
	memset(p.buf, 0, 64);
	memset(p.buf + 32768, 7, 64);
	err = ibv_post_srq_recv(srq, &(struct ibv_recv_wr) {
		.sg_list = &(struct ibv_sge) { (uintptr_t)p.buf, 64, mr->lkey }, .num_sge = 1 }, &(struct ibv_recv_wr *) { NULL });
	err |= post_op(&p, 0, IBV_WR_SEND, 32768, 0, 64, 0);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS && status_of(p.rcq[1], 3000) == IBV_WC_SUCCESS &&
	      !memcmp(p.buf, p.buf + 32768, 64), "SRQ: a receive may use an L_Key of the SRQ's PD");
	err = post_shared(&p, srq, 0, 64, 1) | post_op(&p, 0, IBV_WR_SEND, 32768, 0, 64, 0);
	vt_ok(!err && status_of(p.rcq[1], 3000) == IBV_WC_LOC_PROT_ERR && refused_by_peer(status_of(p.scq[0], 3000), IBV_WC_REM_OP_ERR),
	      "SRQ: an L_Key of the QP's PD is refused");
	ibv_dereg_mr(mr);
	close_both(&p, srq);
	vt_ok(!ibv_dealloc_pd(own), "SRQ: its PD can be freed after it");
}

void test_srq(struct vt_dev *d)
{
	domain(d);
	limit(d);
	resize(d);
	resize_without_address_space(d);
}
