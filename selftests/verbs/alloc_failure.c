// SPDX-License-Identifier: GPL-2.0
/*
 * Allocation failures: each call is repeated while its first, second, third ... kernel allocation fails (fail-nth of
 * the kernel's fault injection), until none fails. A call that failed must leave nothing behind, which KASAN and
 * kmemleak check; without a failure it must succeed. features/features.sh configures the fault injection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "verbs_test.h"

#define MOST	400	/* allocations in one call */

static struct vt_dev d;
static struct ibv_cq *all;	/* its completions are not polled */
static struct ibv_qp *held;	/* the QP used by the calls below */
static struct ibv_cq *held_cq;
static char memory[65536] __attribute__((aligned(4096)));

static struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = all, .recv_cq = all, .srq = srq, .cap = { 64, 64, 4, 4, 512 },
	};

	return ibv_create_qp(d.pd, &init);
}

static int pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(d.ctx);

	return pd ? ibv_dealloc_pd(pd) : -1;
}

static int cq(void)
{
	struct ibv_cq *cq = ibv_create_cq(d.ctx, 100, NULL, NULL, 0);

	return cq ? ibv_destroy_cq(cq) : -1;
}

static int cq_resized(void)
{
	static int n;

	return ibv_resize_cq(held_cq, n++ & 1 ? 100 : 1000);
}

static int qp_of(enum ibv_qp_type type)
{
	struct ibv_qp *qp = new_qp(type, NULL);

	return qp ? ibv_destroy_qp(qp) : -1;
}

static int rc(void)
{
	return qp_of(IBV_QPT_RC);
}

static int ud(void)
{
	return qp_of(IBV_QPT_UD);
}

static int srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 100, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(d.pd, &init);
	struct ibv_qp *qp = srq ? new_qp(IBV_QPT_RC, srq) : NULL;
	int err = !qp || ibv_modify_srq(srq, &(struct ibv_srq_attr) { .max_wr = 200 }, IBV_SRQ_MAX_WR);

	if (qp)
		ibv_destroy_qp(qp);
	return srq ? ibv_destroy_srq(srq) | err : -1;
}

static int region(int access)
{
	struct ibv_mr *mr = ibv_reg_mr(d.pd, memory, sizeof(memory), access);

	return mr ? ibv_dereg_mr(mr) : -1;
}

static int mr(void)
{
	return region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static int odp(void)
{
	return region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

static int mw(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(d.pd, IBV_MW_TYPE_2);

	return mw ? ibv_dealloc_mw(mw) : -1;
}

static int dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 8192 };
	struct ibv_dm *dm = ibv_alloc_dm(d.ctx, &attr);

	return dm ? ibv_free_dm(dm) : -1;
}

static int reset(void)
{
	return ibv_modify_qp(held, &(struct ibv_qp_attr) { .qp_state = IBV_QPS_RESET }, IBV_QP_STATE);
}

static int connection(void)
{
	const struct vt_conn c = { .type = IBV_QPT_RC, .timeout = 14 };
	const struct vt_addr self = { .gid = d.gid, .qpn = held->qp_num, .mtu = IBV_MTU_1024 };
	int err = vt_qp_init(held, &c) || vt_qp_connect(&d, held, &c, &self);

	return reset() | err;
}

static const struct {
	const char *what;
	int (*call)(void);
} calls[] = {
	{ "protection domain", pd }, { "completion queue", cq }, { "resized completion queue", cq_resized }, { "RC queue pair",
	rc },
	{ "UD queue pair", ud }, { "shared receive queue, resized", srq }, { "memory region", mr }, { "on-demand region",
	odp },
	{ "memory window", mw }, { "device memory", dm }, { "connection", connection },
};

static void try(const char *what, int (*call)(void))
{
	int n, err, refused = 0;
	bool reached = true;

	for (n = 1; reached && n < MOST; n++) {
		vt_fail_nth(n);
		err = call();
		reached = !vt_fail_left();
		vt_fail_nth(0);
		if (reset())		/* it may have failed before */
			vt_die("reset");
		refused += reached && err;
		if (!reached && err)
			break;
	}
	vt_ok(!reached && !err && refused && !call(),
	      "allocation failures: %s (%d allocations failed, the call failed %d times)", what, n - 2,
	      refused);
}

/* KiB charged to RLIMIT_MEMLOCK. */
static long pinned(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (f && kib < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %ld", &kib) != 1)
			kib = -1;
	if (f)
		fclose(f);
	return kib;
}

int main(int argc, char **argv)
{
	unsigned int i;
	long before;

	vt_open(&d, argc > 1 ? argv[1] : NULL, false, -1, 1024);
	all = ibv_create_cq(d.ctx, 100, NULL, NULL, 0);
	held = all ? new_qp(IBV_QPT_RC, NULL) : NULL;
	held_cq = ibv_create_cq(d.ctx, 100, NULL, NULL, 0);
	if (!held || !held_cq)
		vt_die("queues");
	before = pinned();
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].call != dm || d.attr.max_dm_size)
			try(calls[i].what, calls[i].call);
	if (ibv_resize_cq(held_cq, 100))
		vt_die("resize_cq");
	for (i = 0; i < 100 && pinned() != before; i++)
		usleep(50000);	/* the kernel looks every 0.1 s for rings that are no longer mapped */
	vt_ok(pinned() == before, "what failed calls were charged was returned: %ld KiB, at first %ld", pinned(), before);
	return vt_done();
}
