// SPDX-License-Identifier: GPL-2.0
/*
 * A QP enters ERR, by a request that it received, while another CPU takes it from RTR to RTS. What its last connection
 * left, such as its paths, must not be freed under the one that flushes it. KASAN and KCSAN judge.
 *
 *	rts_error DEV [ROUNDS]
 *
 * Fails if no QP failed before it was in RTS.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "verbs_test.h"

struct end {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
};

static struct vt_dev d;
static struct end victim, sender;
static _Atomic unsigned int go, sent;	/* the round that may begin, and the last one that did */
static _Atomic unsigned int usual_ns = 50000;	/* that a QP takes to RTS */

static const struct vt_conn conn = { .type = IBV_QPT_RC, .timeout = 8, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 1 };

static void make(struct end *e)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 16, 16, 1, 1, 16 } };

	e->cq = ibv_create_cq(d.ctx, 64, NULL, NULL, 0);
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp = e->cq ? ibv_create_qp(d.pd, &init) : NULL;
	if (!e->qp)
		vt_die("create_qp: %s", strerror(errno));
}

static void anew(struct end *e)
{
	struct ibv_wc wc;

	if (ibv_modify_qp(e->qp, &(struct ibv_qp_attr) { .qp_state = IBV_QPS_RESET }, IBV_QP_STATE) || vt_qp_init(e->qp, &conn))
		vt_die("reset: %s", strerror(errno));
	while (ibv_poll_cq(e->cq, 1, &wc) > 0)
		;
}

static int connect_to(const struct end *from, const struct end *to)
{
	const struct vt_addr peer = { .gid = d.gid, .qpn = to->qp->qp_num, .mtu = IBV_MTU_1024 };

	return vt_qp_connect(&d, from->qp, &conn, &peer);
}

static unsigned int now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000u + t.tv_nsec;
}

/* In each round one SEND, at a time that differs from round to round, while the QP goes to RTS. */
static void *send_on(void *arg)
{
	char byte = 0;
	struct ibv_sge sge = { .addr = (uintptr_t)&byte, .length = 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};
	unsigned int *rounds = arg;
	unsigned int from, wait;

	while (sent < *rounds) {
		while (go == sent)
			;
		wait = vt_mix(sent) % usual_ns;
		for (from = now_ns(); now_ns() - from < wait; )
			;
		if (ibv_post_send(sender.qp, &wr, &bad))
			vt_die("post_send");
		sent++;
	}
	return NULL;
}

/* Returns true if the QP failed in RTR. */
static bool one(unsigned int round)
{
	struct ibv_sge nowhere = { .addr = 4096, .length = 64, .lkey = 0xdead00 };
	struct ibv_recv_wr *bad, wr = { .sg_list = &nowhere, .num_sge = 1 };
	struct ibv_wc wc;
	unsigned int from;
	int err;

	anew(&victim);
	anew(&sender);
	if (ibv_post_recv(victim.qp, &wr, &bad) || connect_to(&sender, &victim))
		vt_die("connect: %s", strerror(errno));
	go = round;
	from = now_ns();
	err = connect_to(&victim, &sender);
	usual_ns = usual_ns - usual_ns / 8 + (now_ns() - from) / 8;
	while (sent != round)
		;
	/* By the NAK, or because the other end was not in RTR in time. */
	if (!vt_poll(sender.cq, &wc, 20000))
		vt_die("round %u: no completion", round);
	return err;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 2 ? atoi(argv[2]) : 1000, n, failed = 0;
	pthread_t thread;

	vt_open(&d, argc > 1 ? argv[1] : NULL, false, -1, 1024);
	make(&victim);
	make(&sender);
	if (pthread_create(&thread, NULL, send_on, &rounds))
		vt_die("pthread_create");
	for (n = 1; n <= rounds; n++)
		failed += one(n);
	pthread_join(thread, NULL);
	vt_ok(failed, "%u of %u QPs failed before they were in RTS", failed, rounds);
	return vt_done();
}
