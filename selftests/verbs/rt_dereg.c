// SPDX-License-Identifier: GPL-2.0
/*
 * A thread of real-time priority deregisters MRs while a normal thread on the same CPU sends WRITEs to them. With
 * PREEMPT_RT it may preempt the softirq that copies a packet into the MR. It then waits for the copy, which must get
 * the CPU meanwhile.
 *
 *	rt_dereg -d DEV [-n REGIONS] [-m MOST]
 *
 * Fails if a deregistration takes longer than MOST milliseconds (300). Without a working wait the copy would get the
 * CPU by the scheduler's real-time throttling, after 950 ms.
 */
#include "verbs_test.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LEN	(1u << 20)

struct writer {
	struct vt_dev dev;
	struct ibv_cq *cq;
	struct ibv_qp *qp;		/* connected to itself */
	uint8_t *from, *to;
	struct ibv_mr *source;
	_Atomic uint32_t rkey;		/* R_Key of the current or last MR over @to */
	_Atomic bool stop;
	unsigned long done, refused;
};

static void reconnect(struct writer *w)
{
	const struct vt_conn c = {
		.type = IBV_QPT_RC, .access = IBV_ACCESS_REMOTE_WRITE, .timeout = 14, .retry = 7, .rnr_retry = 7,
	};
	const struct vt_addr self = { .gid = w->dev.gid, .qpn = w->qp->qp_num, .mtu = w->dev.mtu };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int err = ibv_modify_qp(w->qp, &reset, IBV_QP_STATE) ?: vt_qp_init(w->qp, &c) ?: vt_qp_connect(&w->dev, w->qp, &c, &self);

	if (err)
		vt_die("connect: %s", strerror(err));
}

static void *write_on(void *arg)
{
	struct writer *w = arg;

	while (!w->stop) {
		struct ibv_sge sge = { .addr = (uintptr_t)w->from, .length = LEN, .lkey = w->source->lkey };
		struct ibv_send_wr *bad, wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = (uintptr_t)w->to, .rkey = w->rkey },
		};
		struct ibv_wc wc;

		if (ibv_post_send(w->qp, &wr, &bad) || vt_poll(w->cq, &wc, 20000) != 1)
			vt_die("a WRITE is lost");
		if (wc.status == IBV_WC_SUCCESS) {
			w->done++;
			continue;
		}
		w->refused++;
		reconnect(w);
	}
	return NULL;
}

static void start(struct writer *w, const char *name, pthread_t *thread)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	vt_open(&w->dev, name, false, -1, 0);
	w->from = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (w->from == MAP_FAILED)
		vt_die("memory");
	w->to = w->from + LEN;
	w->source = ibv_reg_mr(w->dev.pd, w->from, LEN, 0);
	w->cq = ibv_create_cq(w->dev.ctx, 16, NULL, NULL, 0);
	init.send_cq = init.recv_cq = w->cq;
	w->qp = w->cq ? ibv_create_qp(w->dev.pd, &init) : NULL;
	if (!w->qp || !w->source)
		vt_die("objects: %s", strerror(errno));
	reconnect(w);
	if (pthread_create(thread, NULL, write_on, w))
		vt_die("a thread");
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

/* Deregisters it. Returns the microseconds that took. */
static uint64_t lend_for(struct writer *w, unsigned int us)
{
	struct ibv_mr *mr = ibv_reg_mr(w->dev.pd, w->to, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	const struct timespec pause = { .tv_nsec = us * 1000 };
	uint64_t since;

	if (!mr)
		vt_die("reg_mr: %s", strerror(errno));
	w->rkey = mr->rkey;
	nanosleep(&pause, NULL);
	since = now_us();
	if (ibv_dereg_mr(mr))
		vt_die("dereg_mr: %s", strerror(errno));
	return now_us() - since;
}

int main(int argc, char **argv)
{
	const struct sched_param urgent = { .sched_priority = 50 };
	unsigned int n = 100, most_ms = 300, i, o;
	const char *name = NULL;
	uint64_t took, worst = 0;
	struct writer w = { 0 };
	pthread_t thread;

	while ((o = getopt(argc, argv, "d:n:m:")) != -1u)
		switch (o) {
		case 'd': name = optarg; break;
		case 'n': n = atoi(optarg); break;
		case 'm': most_ms = atoi(optarg); break;
		default: vt_die("usage: rt_dereg -d DEV [-n REGIONS] [-m MOST]");
		}
	start(&w, name, &thread);
	if (sched_setscheduler(0, SCHED_FIFO, &urgent))
		vt_skip("no real-time priority: %s", strerror(errno));
	for (i = 0; i < n && worst <= most_ms * 1000; i++) {
		took = lend_for(&w, 10000 + vt_mix(i) % 10000);
		worst = took > worst ? took : worst;
	}
	w.stop = true;
	pthread_join(thread, NULL);
	vt_ok(w.done && w.refused, "WRITEs went to the regions (%lu) and were refused (%lu)", w.done, w.refused);
	vt_ok(worst <= most_ms * 1000, "none of %u deregistrations took longer than %u ms: at most %u.%03u", n, most_ms,
	      (unsigned int)worst / 1000, (unsigned int)worst % 1000);
	return vt_done();
}
