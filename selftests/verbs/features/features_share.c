// SPDX-License-Identifier: GPL-2.0
/*
 * Sharing: threads that post to one QP and poll one CQ without a lock of their own, a child process with a copy of
 * registered memory, and two contexts of which one is closed. No request may complete twice, get lost or use the wrong
 * memory.
 */
#include "features.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS	4
#define EACH	500	/* requests per thread */

/* A request's number is its wr_id and the immediate data of the receive it completes. */
struct crowd {
	struct pair p;
	atomic_int ready, received, acked;
	atomic_uchar sent[THREADS * EACH], came[THREADS * EACH];
	atomic_bool failed;
};

struct member {
	struct crowd *crowd;
	pthread_t thread;
	int first;
};

/* Posts one request while other threads post; retries on ENOMEM, which means that the queue is full at the moment. */
static int post_numbered(struct crowd *c, int number)
{
	struct ibv_send_wr wr = {
		.wr_id = number, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED, .imm_data = number,
		.wr.rdma = { .remote_addr = (uintptr_t)c->p.buf, .rkey = c->p.mr->rkey },
	};

	return post(&c->p, 0, wr);
}

static void note(struct crowd *c, atomic_uchar *seen, uint32_t number)
{
	if (number >= THREADS * EACH || atomic_fetch_add(&seen[number], 1))
		atomic_store(&c->failed, true);
}

/* Polls completions of all threads' requests; posts each receive again. */
static bool poll_both(struct crowd *c)
{
	struct ibv_wc wc;
	bool any = false;

	if (ibv_poll_cq(c->p.scq[0], 1, &wc) > 0) {
		any = true;
		if (wc.status)
			atomic_store(&c->failed, true);
		else
			note(c, c->sent, wc.wr_id);
		atomic_fetch_add(&c->acked, 1);
	}
	if (ibv_poll_cq(c->p.rcq[1], 1, &wc) > 0) {
		any = true;
		if (wc.status || post_recv(&c->p, 1, 0, 8, 0))
			atomic_store(&c->failed, true);
		else
			note(c, c->came, wc.imm_data);
		atomic_fetch_add(&c->received, 1);
	}
	return any;
}

static void *take_part(void *arg)
{
	struct member *m = arg;
	struct crowd *c = m->crowd;
	uint64_t end = vt_now_ms() + 60000;
	int i = 0;

	atomic_fetch_add(&c->ready, 1);
	while (atomic_load(&c->ready) < THREADS)
		sched_yield();
	while (atomic_load(&c->received) < THREADS * EACH && !atomic_load(&c->failed) && vt_now_ms() < end) {
		if (i < EACH && !post_numbered(c, m->first + i))
			i++;
		else if (!poll_both(c))
			sched_yield();
	}
	return NULL;
}

static void threads(struct vt_dev *d)
{
	static struct crowd c;
	struct member m[THREADS];
	int i, once = 0;
	uint64_t end;

	pair_open(&c.p, d, IBV_QPT_RC, 256, NULL);
	for (i = 0; i < 64; i++)
		if (post_recv(&c.p, 1, 0, 8, 0))
			vt_die("receives");
	for (i = 0; i < THREADS; i++) {
		m[i] = (struct member) { .crowd = &c, .first = i * EACH };
		if (pthread_create(&m[i].thread, NULL, take_part, &m[i]))
			vt_die("pthread_create");
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(m[i].thread, NULL);
	/* A receive completes before the ACK of its request is here. */
	for (end = vt_now_ms() + 10000; atomic_load(&c.acked) < THREADS * EACH && vt_now_ms() < end;)
		poll_both(&c);
	while (poll_both(&c))	/* a second completion of a request */
		;
	for (i = 0; i < THREADS * EACH; i++)
		once += c.sent[i] == 1 && c.came[i] == 1;
	vt_ok(!c.failed && once == THREADS * EACH, "%d threads on one QP and its CQs: %d of %d requests complete once at both ends",
	      THREADS, once, THREADS * EACH);
	pair_close(&c.p);
}

/* A child that keeps running and writes to its copy must not get the pages that the device uses. */
static void child(struct vt_dev *d)
{
	const size_t len = 4 * 4096;
	int go[2], status = -1;
	struct pair p;
	bool ok;
	pid_t pid;
	char c;

	pair_open(&p, d, IBV_QPT_RC, 16, NULL);
	vt_fill(p.buf, len, 1, 0);
	if (pipe(go))
		vt_die("pipe");
	pid = fork();
	if (!pid) {
		close(go[1]);
		memset(p.buf, 0xcc, len);
		memset(p.buf + BUF / 2, 0xcc, len);
		_exit(read(go[0], &c, 1) != 0 || p.buf[0] != 0xcc || p.buf[BUF / 2] != 0xcc);
	}
	memset(p.buf + BUF / 2, 0xdd, len);	/* the first writer gets the copied page, unless it is pinned */
	ok = pid > 0 && !post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, BUF / 2, len, 0) && status_of(p.scq[0], 5000) == IBV_WC_SUCCESS;
	ok = ok && vt_diff(p.buf + BUF / 2, len, 1, 0) == len;
	close(go[0]);
	close(go[1]);
	ok = waitpid(pid, &status, 0) == pid && !status && ok;
	vt_ok(ok, "a fork between registration and transfer: the device uses the parent's pages, the child has its own");
	pair_close(&p);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/*
 * The CQ can be armed between start_poll and end_poll, also by the polling thread. Completions have time stamps in ns,
 * and those of the wall clock for programs that measure delays between hosts. 1 us: the conversion reads two clocks.
 */
static void arming_while_polling(struct vt_dev *d)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
								   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->ctx, &want);
	struct ibv_qp_attr to_err = { .qp_state = IBV_QPS_ERR };
	const struct vt_conn c = { .type = IBV_QPT_RC };
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t stamp = 0, before, wall = 0;
	struct ibv_qp *qp;
	int err;

	if (!cq)
		vt_die("create_cq_ex");
	init.send_cq = ibv_cq_ex_to_cq(cq);
	init.recv_cq = init.send_cq;
	qp = ibv_create_qp(d->pd, &init);
	before = wall_ns();
	err = !qp || vt_qp_init(qp, &c) || ibv_modify_qp(qp, &to_err, IBV_QP_STATE) || ibv_post_send(qp, &wr, &bad);
	while (!err && ibv_start_poll(cq, &none))
		;			/* a flush completion arrives */
	if (!err) {
		stamp = ibv_wc_read_completion_ts(cq);
		wall = ibv_wc_read_completion_wallclock_ns(cq);
		err = ibv_req_notify_cq(init.send_cq, 0);
		ibv_end_poll(cq);
	}
	vt_ok(!err, "a CQ armed between start_poll and end_poll");
	vt_ok(stamp && d->attr.completion_timestamp_mask && d->attr.hca_core_clock == 1000000, "completions have time stamps, in ns, as query_device_ex says");
	vt_ok(wall + 1000 >= before && wall <= wall_ns() + 1000, "and of the wall clock");
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(init.send_cq))
		vt_die("the CQ could not be destroyed");
}

/*
 * As UCCL makes its CQs: if the device has extended ones, with both flags and with moderation, and it stops if either
 * is refused.
 */
static void cq_hints(struct vt_dev *d)
{
	struct ibv_cq_init_attr_ex want = {
		.cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_modify_cq_attr moderate = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 32, 100 } };
	struct ibv_modify_cq_attr unknown = { .attr_mask = IBV_CQ_ATTR_RESERVED };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->ctx, &want);

	vt_ok(cq, "an extended CQ for one thread, which does not overrun");
	if (!cq)
		return;
	vt_ok(!ibv_modify_cq(ibv_cq_ex_to_cq(cq), &moderate), "its moderation is set");
	vt_ok(ibv_modify_cq(ibv_cq_ex_to_cq(cq), &unknown) == EOPNOTSUPP, "another attribute of a CQ: refused");
	if (ibv_destroy_cq(ibv_cq_ex_to_cq(cq)))
		vt_die("the CQ could not be destroyed");
}

/* An event of @of comes within @ms. No other CQ is armed. */
static bool event_within(struct pair *p, const struct ibv_cq *of, int ms)
{
	struct ibv_cq *cq;
	void *context;

	if (!readable(p->chan->fd, ms) || ibv_get_cq_event(p->chan, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	if (cq != of)
		vt_die("an event of another CQ");
	return true;
}

/* A message of 8 bytes from side 0. It is in the CQ of side 1 when this returns. */
static int deliver(struct pair *p, unsigned int flags)
{
	return post_recv(p, 1, 0, 64, 0) || post_op(p, 0, IBV_WR_SEND, 4096, 0, 8, flags) ||
	       status_of(p->scq[0], 5000) != IBV_WC_SUCCESS;
}

/*
 * UCX polls until there is nothing, arms the CQ and waits. Other programs take an event, arm the CQ, poll once and wait.
 * On mlx4 and mlx5 an entry that was in the CQ when it was armed raises the event at once.
 */
static void arming_late(struct vt_dev *d)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 16, NULL);
	cq = p.rcq[1];
	err = deliver(&p, 0) || ibv_req_notify_cq(cq, 0);
	vt_ok(!err && event_within(&p, cq, 2000), "a CQ armed for the first time with an entry in it: an event");
	err = ibv_req_notify_cq(cq, 0) || ibv_poll_cq(cq, 1, &wc) != 1;
	vt_ok(!err && !event_within(&p, cq, 200), "armed after that event, before the poll for its entry: none");
	err = ibv_poll_cq(cq, 1, &wc) || deliver(&p, 0) || !event_within(&p, cq, 2000) || ibv_poll_cq(cq, 1, &wc) != 1 ||
	      ibv_poll_cq(cq, 1, &wc) || deliver(&p, 0) || ibv_req_notify_cq(cq, 0);
	vt_ok(!err && event_within(&p, cq, 2000), "an entry between the last poll and the arming: an event");
	err = ibv_poll_cq(cq, 1, &wc) != 1 || deliver(&p, 0) || ibv_req_notify_cq(cq, 1);
	vt_ok(!err && !event_within(&p, cq, 200), "armed for solicited ones, an entry that is not: no event");
	err = deliver(&p, IBV_SEND_SOLICITED) || !event_within(&p, cq, 2000) || ibv_poll_cq(cq, 1, &wc) != 1 ||
	      ibv_poll_cq(cq, 1, &wc) != 1 || deliver(&p, 0) || deliver(&p, IBV_SEND_SOLICITED) || ibv_req_notify_cq(cq, 1);
	vt_ok(!err && event_within(&p, cq, 2000), "and a solicited one behind it: an event");
	vt_ok(!event_within(&p, cq, 200), "one event");
	err = ibv_poll_cq(cq, 1, &wc) != 1 || ibv_poll_cq(cq, 1, &wc) != 1 || ibv_poll_cq(cq, 1, &wc) ||
	      ibv_req_notify_cq(cq, 0) || deliver(&p, 0) || deliver(&p, 0) || !event_within(&p, cq, 2000) ||
	      ibv_req_notify_cq(cq, 0) || ibv_poll_cq(cq, 1, &wc) != 1;
	vt_ok(!err && event_within(&p, cq, 2000), "armed after an event, and one of two entries polled: an event for the other");
	err = ibv_poll_cq(cq, 1, &wc) != 1 || ibv_req_notify_cq(cq, 0) || deliver(&p, 0) || ibv_poll_cq(cq, 1, &wc) != 1 ||
	      ibv_req_notify_cq(cq, 0) || deliver(&p, 0) || deliver(&p, 0) || !event_within(&p, cq, 2000) ||
	      ibv_req_notify_cq(cq, 0) || !event_within(&p, cq, 2000) || ibv_poll_cq(cq, 1, &wc) != 1;
	vt_ok(!err && event_within(&p, cq, 2000), "armed between two events, and one of two entries polled: an event for the other");
	pair_close(&p);
}

struct resizer {
	struct ibv_cq *cq;
	atomic_bool stop;
	int err, n;
};

static void *resize_on(void *arg)
{
	struct resizer *r = arg;

	while (!atomic_load(&r->stop) && !r->err) {
		r->err = ibv_resize_cq(r->cq, r->n++ & 1 ? 16 : 300);
		usleep(r->n % 500);
	}
	return NULL;
}

/*
 * Arming must reach the ring that the kernel uses after a concurrent resize: a thread that armed and sleeps is woken.
 */
static void arming_while_resizing(struct vt_dev *d)
{
	struct resizer r = { 0 };
	pthread_t thread;
	struct ibv_wc wc;
	struct pair p;
	int i;

	pair_open(&p, d, IBV_QPT_RC, 16, NULL);
	r.cq = p.scq[0];
	if (pthread_create(&thread, NULL, resize_on, &r))
		vt_die("pthread_create");
	for (i = 0; i < 500; i++) {
		usleep(i % 700);	/* vary the time between the poll and the resize */
		if (ibv_req_notify_cq(p.scq[0], 0) || ibv_poll_cq(p.scq[0], 1, &wc))
			break;
		if (post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0) || !event_within(&p, r.cq, 5000))
			break;
		if (!vt_poll(p.scq[0], &wc, 5000) || wc.status)
			break;
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	vt_ok(i == 500 && !r.err,
	      "a CQ armed while another thread resizes it: woken %d times of 500, resized %d times", i, r.n);
	pair_close(&p);
}

/* True if `rdma res` lists the QP. */
static bool listed(struct vt_dev *d, uint32_t qpn)
{
	char command[128], line[256];
	bool any;
	FILE *f;

	snprintf(command, sizeof(command), "rdma res show qp link %s/1 lqpn %u", ibv_get_device_name(d->ctx->device),
		 qpn);
	f = popen(command, "r");
	if (!f)
		vt_die("popen: %s", strerror(errno));
	any = fgets(line, sizeof(line), f);
	if (pclose(f))
		vt_die("%s", command);
	return any;
}

/* A program may close a context and free the memory that it registered there, without destroying anything before. */
static void context_closed(struct vt_dev *d)
{
	const struct vt_conn c = { .type = IBV_QPT_RC, .access = RIGHTS, .timeout = 14, .retry = 7 };
	struct vt_dev closed = *d;
	struct ibv_send_wr wr;
	enum ibv_wc_status got;
	struct pair here, there;
	struct ibv_sge sge;
	uint32_t qpn;
	int i, err;

	closed.ctx = ibv_open_device(d->ctx->device);
	closed.pd = closed.ctx ? ibv_alloc_pd(closed.ctx) : NULL;
	if (!closed.pd)
		vt_die("a second context: %s", strerror(errno));
	pair_create(&here, d, IBV_QPT_RC, 16);
	pair_create(&there, &closed, IBV_QPT_RC, 16);
	qpn = there.qp[0]->qp_num;
	for (i = 0; i < 2; i++) {
		struct vt_addr addr = { .gid = d->gid, .mtu = d->mtu, .qpn = i ? here.qp[0]->qp_num : qpn };
		struct ibv_qp *qp = i ? there.qp[0] : here.qp[0];

		if (vt_qp_init(qp, &c) || vt_qp_connect(d, qp, &c, &addr))
			vt_die("connect");
	}
	sge = sge_at(&here, 0, 8);
	wr = (struct ibv_send_wr) {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)there.buf, there.mr->rkey },
	};
	err = post(&here, 0, wr) || status_of(here.scq[0], 20000) != IBV_WC_SUCCESS || !listed(d, qpn);
	err = err || ibv_close_device(closed.ctx);
	vt_ok(!err && !listed(d, qpn), "a context is closed with all its objects: its QP is gone");
	err = err || post(&here, 0, wr);
	got = status_of(here.scq[0], 20000);
	vt_ok(!err && got == IBV_WC_RETRY_EXC_ERR, "a WRITE to its memory: retry exceeded (%s)",
	      ibv_wc_status_str(got));
	free(there.buf);
	pair_close(&here);
}

void test_share(struct vt_dev *d)
{
	arming_while_resizing(d);
	arming_while_polling(d);
	arming_late(d);
	cq_hints(d);
	threads(d);
	child(d);
	context_closed(d);
}
