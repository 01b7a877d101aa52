// SPDX-License-Identifier: GPL-2.0
/*
 * A completion returns the slot of the queue and the buffer. After polling it a program may post again and overwrite
 * the buffer at once; the peer must receive the old contents. Before that the slot is in use: a CQ as long as its queue
 * never overflows.
 */
#include "features.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DEPTH	64		/* of a pair's queues */
#define ROUNDS	3000
#define LEN	(64 << 10)

static bool polled(struct ibv_cq *cq, enum ibv_wc_status want)
{
	return status_of(cq, 5000) == want;
}

static bool write_one(struct pair *p)
{
	return !post_op(p, 0, IBV_WR_RDMA_WRITE, 0, BUF / 2, LEN, 0);
}

/*
 * The queue is kept full: after each completion one more request can be posted. Messages are long, so that the kernel
 * has enough work to complete some of them on another CPU.
 */
static void room_for_another(struct vt_dev *d)
{
	struct pair p;
	bool ok = true;
	int i;

	pair_open(&p, d, IBV_QPT_RC, 2 * DEPTH, NULL);
	for (i = 0; i < DEPTH; i++)
		ok = ok && write_one(&p);
	for (i = 0; ok && i < ROUNDS; i++)
		ok = polled(p.scq[0], IBV_WC_SUCCESS) && write_one(&p);
	vt_ok(ok, "a full send queue takes a request as soon as a completion is polled (%d of %d)", i, ROUNDS);
	pair_close(&p);
}

/* The same for a receive queue in ERR, whose receives are flushed. */
static void room_after_a_flush(struct vt_dev *d)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair p;
	bool ok = true;
	int i;

	pair_open(&p, d, IBV_QPT_RC, 4 * DEPTH, NULL);
	for (i = 0; i < DEPTH; i++)
		ok = ok && !post_recv(&p, 1, 0, 64, i);
	ok = ok && !ibv_modify_qp(p.qp[1], &attr, IBV_QP_STATE);
	for (i = 0; ok && i < 20 * DEPTH; i++)
		ok = polled(p.rcq[1], IBV_WC_WR_FLUSH_ERR) && !post_recv(&p, 1, 0, 64, i);
	vt_ok(ok, "a full receive queue in ERR takes a receive as soon as a flush is polled");
	pair_close(&p);
}

/* ---- a slot is in use until its CQE is polled: the CQs here are as long as the queues ---- */

#define CQE(entries)	((entries) - 1)	/* requested: a CQ has more than that, a power of two */

static int write_flagged(struct pair *p, unsigned int flags, uint64_t id)
{
	struct ibv_sge sge = sge_at(p, 0, 64);

	return post(p, 0, (struct ibv_send_wr) {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = flags,
		.wr.rdma = { .remote_addr = (uintptr_t)p->buf + BUF / 2, .rkey = p->mr->rkey },
	});
}

/* Posts until the queue is full, also 20 ms later, or for 4 queues. Returns the number posted, -1 for another error. */
static int fill_up(struct pair *p)
{
	int n, err = 0, late = 0;

	for (n = 0; n < 4 * DEPTH && late < 2; n += !err) {
		err = write_flagged(p, IBV_SEND_SIGNALED, n);
		if (err && err != ENOMEM)
			return -1;
		if (err && late++ == 0)
			usleep(20000);
	}
	return n;
}

static bool poll_all(struct ibv_cq *cq, int n, enum ibv_wc_status want)
{
	while (n && polled(cq, want))
		n--;
	return !n && status_of(cq, 0) == NO_COMPLETION;
}

/* The posts fail with ENOMEM, as with adapters, and no CQE is lost. */
static void full_until_polled(struct vt_dev *d)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	const struct vt_conn conn = { .type = IBV_QPT_RC, .timeout = 14, .retry = 7, .rnr_retry = 7, .psn = 100 };
	struct pair p;
	bool ok = true;
	int i, n = 0;

	pair_open(&p, d, IBV_QPT_RC, CQE(DEPTH), NULL);
	for (i = 0; ok && i < 20; i++) {
		n = fill_up(&p);
		ok = n == DEPTH && poll_all(p.scq[0], DEPTH, IBV_WC_SUCCESS);
	}
	vt_ok(ok, "a send queue is full until a completion is polled (%d posted)", n);
	ok = fill_up(&p) == DEPTH && polled(p.scq[0], IBV_WC_SUCCESS) && fill_up(&p) == 1 &&
	     poll_all(p.scq[0], DEPTH, IBV_WC_SUCCESS);
	vt_ok(ok, "each completion polled makes room for one request");
	for (i = 0, ok = true; ok && i < 20 * DEPTH; i++)
		for (n = 0; (ok = !write_flagged(&p, 0, i)) == false && n < 5000; n++)
			usleep(1000);
	vt_ok(ok, "requests without a completion need no poll (%d posted)", i);
	for (n = 0; write_flagged(&p, IBV_SEND_SIGNALED, 0) == ENOMEM && n < 5000; n++)
		usleep(1000);
	ok = polled(p.scq[0], IBV_WC_SUCCESS) && !ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE);
	for (i = 0; ok && i < 3; i++) {
		n = fill_up(&p);
		ok = n == DEPTH && poll_all(p.scq[0], DEPTH, IBV_WC_WR_FLUSH_ERR);
	}
	vt_ok(ok, "the same in ERR, where all requests are flushed (%d posted)", n);
	ok = fill_up(&p) == DEPTH;
	attr.qp_state = IBV_QPS_RESET;
	ok = !ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE) && !ibv_modify_qp(p.qp[1], &attr, IBV_QP_STATE) && ok;
	pair_connect(&p, IBV_QPT_RC, &conn);
	ok = ok && fill_up(&p) == DEPTH && poll_all(p.scq[0], DEPTH, IBV_WC_SUCCESS);
	vt_ok(ok, "after RESET the whole queue is free");
	vt_ok(async_event(d->ctx, 0) != IBV_EVENT_CQ_ERR, "a CQ as long as its send queue did not overflow");
	pair_close(&p);
}

/* The requests before the RESET have no CQEs. That of the first request after it is not polled. */
static void reset_when_partly_full(struct vt_dev *d)
{
	const struct vt_conn conn = { .type = IBV_QPT_RC, .timeout = 14, .retry = 7, .rnr_retry = 7, .psn = 100 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct pair p;
	bool ok = true;
	int i, n = -1;

	pair_open(&p, d, IBV_QPT_RC, CQE(DEPTH), NULL);
	for (i = 0; ok && i < DEPTH - 1; i++)
		ok = !write_flagged(&p, 0, i);
	ok = ok && !ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE) && !ibv_modify_qp(p.qp[1], &attr, IBV_QP_STATE);
	pair_connect(&p, IBV_QPT_RC, &conn);
	p.buf[BUF / 2] = 0;
	p.buf[0] = 1;
	ok = ok && !write_flagged(&p, IBV_SEND_SIGNALED, 0);
	for (i = 0; ok && i < 5000 && !*(volatile uint8_t *)&p.buf[BUF / 2]; i++)
		usleep(1000);
	usleep(20000);		/* the ACK comes, too */
	if (ok)
		n = fill_up(&p);
	vt_ok(n == DEPTH - 1, "after RESET of a queue that is partly full, too (%d posted)", n);
	pair_close(&p);
}

/* As pair_open(), but sends of the first QP complete in an extended CQ. */
static struct ibv_cq_ex *pair_open_ex(struct pair *p, struct vt_dev *d)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 4, 4, 64 } };
	struct ibv_cq_init_attr_ex want = { .cqe = CQE(DEPTH) };
	struct ibv_cq_ex *cq;

	pair_create(p, d, IBV_QPT_RC, CQE(DEPTH));
	cq = ibv_destroy_qp(p->qp[0]) || ibv_destroy_cq(p->scq[0]) ? NULL : ibv_create_cq_ex(d->ctx, &want);
	if (!cq)
		vt_die("create_cq_ex");
	p->scq[0] = ibv_cq_ex_to_cq(cq);
	init.send_cq = p->scq[0];
	init.recv_cq = p->rcq[0];
	p->qp[0] = ibv_create_qp(d->pd, &init);
	if (!p->qp[0])
		vt_die("create_qp");
	pair_connect(p, IBV_QPT_RC, NULL);
	return cq;
}

/* A program may post the next request while it reads a completion: the place of that one is free in the CQ, too. */
static void room_while_read(struct vt_dev *d)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct pair p;
	struct ibv_cq_ex *cq = pair_open_ex(&p, d);
	bool ok = fill_up(&p) == DEPTH && !ibv_start_poll(cq, &none);
	int n = 0;

	if (ok) {
		ok = fill_up(&p) == 1;
		do
			n += cq->status == IBV_WC_SUCCESS;
		while (!ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
	while (n <= DEPTH && polled(p.scq[0], IBV_WC_SUCCESS))
		n++;
	vt_ok(ok && n == DEPTH + 1, "a request posted between start_poll and end_poll completes (%d of %d)", n, DEPTH + 1);
	vt_ok(async_event(d->ctx, 0) != IBV_EVENT_CQ_ERR, "nor did the CQ, as long as its send queue, overflow");
	pair_close(&p);
}

/* One request in four has a completion, so a CQ of a quarter of the queue is enough. */
static void every_fourth(struct vt_dev *d)
{
	struct pair p;
	bool ok = true;
	int sent = 0, seen = 0, err;

	pair_open(&p, d, IBV_QPT_RC, CQE(DEPTH / 4), NULL);
	while (ok && seen < 500) {
		err = write_flagged(&p, sent % 4 == 3 ? IBV_SEND_SIGNALED : 0, sent);
		sent += !err;
		if (err == ENOMEM) {
			struct ibv_wc wc;

			ok = vt_poll(p.scq[0], &wc, 5000) && !wc.status && (int)wc.wr_id == seen * 4 + 3;
			seen++;
		} else if (err) {
			ok = false;
		}
	}
	vt_ok(ok && async_event(d->ctx, 0) != IBV_EVENT_CQ_ERR,
	      "with a completion for each fourth request, a quarter of the CQ is enough (%d sent)", sent);
	pair_close(&p);
}

static void receives_until_polled(struct vt_dev *d)
{
	struct pair p;
	bool ok = true;
	int i;

	pair_open(&p, d, IBV_QPT_RC, CQE(DEPTH), NULL);
	for (i = 0; i < DEPTH; i++)
		ok = ok && !post_recv(&p, 1, 0, 64, i);
	for (i = 0; i < DEPTH; i++)
		ok = ok && !post_op(&p, 0, IBV_WR_SEND, 0, 0, 16, 0) && polled(p.scq[0], IBV_WC_SUCCESS);
	for (i = 0; ok && i < DEPTH; i++)
		ok = post_recv(&p, 1, 0, 64, i) == ENOMEM && polled(p.rcq[1], IBV_WC_SUCCESS) &&
		     !post_recv(&p, 1, 0, 64, i);
	vt_ok(ok, "a receive queue is full until a completion is polled (%d)", i);
	pair_close(&p);
}

/* As with mlx5, a CQ of 16 takes the completions of 16 sends and 16 receives. */
static void one_cq_for_both(struct vt_dev *d)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 16, 16, 1, 1, 0 } };
	struct pair p = { .d = d, .qp[0] = cq ? ibv_create_qp(d->pd, &init) : NULL };
	const struct vt_conn conn = { .type = IBV_QPT_RC };
	bool ok = true;
	int i;

	if (!p.qp[0] || vt_qp_init(p.qp[0], &conn))
		vt_die("a QP with one CQ");
	for (i = 0; i < 16; i++)
		ok = ok && !ibv_post_recv(p.qp[0], &(struct ibv_recv_wr) { .wr_id = i }, &(struct ibv_recv_wr *) { NULL });
	ok = ok && !ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE);
	for (i = 0; i < 16; i++)
		ok = ok && !post(&p, 0, (struct ibv_send_wr) { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED });
	vt_ok(ok && poll_all(cq, 32, IBV_WC_WR_FLUSH_ERR), "a CQ of 16 takes the flush of 16 sends and 16 receives");
	vt_ok(async_event(d->ctx, 0) != IBV_EVENT_CQ_ERR, "a CQ of 16 does not overflow by 16 sends and 16 receives");
	ibv_destroy_qp(p.qp[0]);
	ibv_destroy_cq(cq);
}

static void imported_context(struct vt_dev *d)
{
	struct vt_dev other = *d;
	struct pair p;
	bool ok = true;
	int i, n = 0;

	other.ctx = ibv_import_device(dup(d->ctx->cmd_fd));
	other.pd = other.ctx ? ibv_import_pd(other.ctx, d->pd->handle) : NULL;
	if (!other.pd)
		vt_die("import: %s", strerror(errno));
	pair_open(&p, &other, IBV_QPT_RC, CQE(DEPTH), NULL);
	for (i = 0; ok && i < 20; i++) {
		n = fill_up(&p);
		ok = n == DEPTH && poll_all(p.scq[0], DEPTH, IBV_WC_SUCCESS);
	}
	vt_ok(ok, "a send queue of an imported context is full until a completion is polled (%d posted)", n);
	for (i = 0, ok = true; ok && i < 3 * DEPTH; i++)
		ok = !post_recv(&p, 1, 0, 64, i) && !post_op(&p, 0, IBV_WR_SEND, 0, 0, 16, 0) &&
		     polled(p.scq[0], IBV_WC_SUCCESS) && polled(p.rcq[1], IBV_WC_SUCCESS);
	vt_ok(ok, "QPs of an imported context take requests for ever (%d of %d)", i, 3 * DEPTH);
	vt_ok(async_event(d->ctx, 0) != IBV_EVENT_CQ_ERR, "the CQs of an imported context did not overflow");
	pair_close(&p);
	ibv_unimport_pd(other.pd);
	ibv_close_device(other.ctx);
}

/* Side 0 uses the first half of the buffer, side 1 the second. Messages alternate between two places. */
static void overwrite(struct vt_dev *d, enum ibv_wr_opcode op, const char *name)
{
	bool reads = op == IBV_WR_RDMA_READ;
	struct pair p;
	bool ok = true;
	int i;

	pair_open(&p, d, IBV_QPT_RC, DEPTH, NULL);
	for (i = 0; ok && i < 400; i++) {
		size_t from = i % 2 * LEN, to = BUF / 2 + i % 2 * LEN;
		uint8_t *source = p.buf + (reads ? to : from), *copy = p.buf + (reads ? from : to);

		vt_fill(source, LEN, i, 0);
		ok = (op != IBV_WR_SEND || !post_recv(&p, 1, to, LEN, i)) && !post_op(&p, 0, op, from, to, LEN, 0) &&
		     polled(p.scq[0], IBV_WC_SUCCESS);
		memset(source, 0xee, LEN);
		ok = ok && (op != IBV_WR_SEND || polled(p.rcq[1], IBV_WC_SUCCESS)) && vt_diff(copy, LEN, i, 0) == LEN;
	}
	vt_ok(ok, "%s: a buffer overwritten right after its completion never leaks into what arrived", name);
	pair_close(&p);
}

/*
 * Requests whose MR is deregistered meanwhile end in success or in a protection error. Data of those that succeeded is
 * right. After dereg_mr() the kernel does not access the memory: it is unmapped at once.
 */
static void deregister(struct vt_dev *d, int round)
{
	const int n = 48;	/* more than the send window */
	struct ibv_mr *mr;
	struct pair p;
	bool ok = true;
	uint8_t *mem;
	int i, done;

	pair_open(&p, d, IBV_QPT_RC, DEPTH, NULL);
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = mem != MAP_FAILED ? ibv_reg_mr(d->pd, mem, LEN, 0) : NULL;
	if (!mr)
		vt_die("memory of its own");
	vt_fill(mem, LEN, round, 0);
	for (i = 0; i < n; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)mem, .length = LEN, .lkey = mr->lkey };

		ok = ok && !post(&p, 0, (struct ibv_send_wr) {
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = (uintptr_t)p.buf + i % 4 * LEN, .rkey = p.mr->rkey },
		});
	}
	ok = !ibv_dereg_mr(mr) && !munmap(mem, LEN) && ok;
	for (i = 0, done = 0; ok && i < n; i++) {
		enum ibv_wc_status status = status_of(p.scq[0], 5000);

		done += status == IBV_WC_SUCCESS;
		ok = status == IBV_WC_SUCCESS ? done == i + 1 : status == (done == i ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR);
	}
	for (i = 0; i < done && i < 4; i++)
		ok = ok && vt_diff(p.buf + i * LEN, LEN, round, 0) == LEN;
	if (!round || !ok)
		vt_ok(ok, "a region deregistered and unmapped with requests outstanding: %d of %d succeeded", done, n);
	pair_close(&p);
}

/* The peer's SEND_WITH_INV first meets an RNR NAK. So its retransmission arrives from a timer's softirq. */
static bool invalidated_while_advised(struct pair *p, struct ibv_mw *mw, uint32_t key, int i)
{
	struct ibv_send_wr *bad, bind = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, key, { p->mr, (uintptr_t)p->buf, 4096, IBV_ACCESS_REMOTE_WRITE } },
	};
	struct ibv_send_wr inv = {
		.opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key,
	};
	struct ibv_sge about = { .length = 1, .lkey = key };
	uint64_t end = vt_now_ms() + 5000;
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(p->qp[1], &bind, &bad) || !polled(p->scq[1], IBV_WC_SUCCESS) || post(p, 0, inv) ||
	    post_recv(p, 1, 0, 64, i))
		return false;
	while (!vt_poll(p->rcq[1], &wc, 0) && vt_now_ms() < end)
		for (n = 0; n < 100; n++)
			ibv_advise_mr(p->d->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &about, 1);
	return polled(p->scq[0], IBV_WC_SUCCESS);
}

/*
 * An invalidation in softirq waits until no CPU uses the window's key. The system call that uses the key may be what
 * the softirq interrupted on this CPU: then the wait would never end.
 */
static void asked_about(struct vt_dev *d)
{
	const struct vt_conn patient = { .timeout = 18, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 14 };
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);
	struct pair p;
	uint32_t key;
	bool ok = mw;
	int i;

	pair_open(&p, d, IBV_QPT_RC, DEPTH, &patient);
	key = ok ? mw->rkey : 0;
	for (i = 0; ok && i < 300; i++) {
		key = ibv_inc_rkey(key);
		ok = invalidated_while_advised(&p, mw, key, i);
	}
	vt_ok(ok, "a window invalidated by the peer while its program queries its key (%d times)", i);
	pair_close(&p);
	if (mw)
		ibv_dealloc_mw(mw);
}

void test_overwrite(struct vt_dev *d)
{
	overwrite(d, IBV_WR_RDMA_WRITE, "WRITE");
	overwrite(d, IBV_WR_SEND, "SEND");
	overwrite(d, IBV_WR_RDMA_READ, "READ");
}

void test_reuse(struct vt_dev *d)
{
	int i;

	for (i = 0; i < 50; i++)
		deregister(d, i);
	asked_about(d);
	room_for_another(d);
	room_after_a_flush(d);
	full_until_polled(d);
	reset_when_partly_full(d);
	room_while_read(d);
	every_fourth(d);
	receives_until_polled(d);
	one_cq_for_both(d);
	imported_context(d);
	test_overwrite(d);
}
