// SPDX-License-Identifier: GPL-2.0
/* What each kind of object is charged: to the memory cgroup, and to RLIMIT_MEMLOCK (VmPin). Of memory_limit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "memory_usage.h"
#include "verbs_test.h"

#define MOST	2000

static struct vt_dev *dev;
static struct ibv_cq *cq;
static char current[256], stat[256];	/* memory.current and memory.stat of the group */
static char memory[PAGE] __attribute__((aligned(4096)));

static void *dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 16 * MIB };

	return ibv_alloc_dm(dev->ctx, &attr);
}

static int dm_free(void *dm)
{
	return ibv_free_dm(dm);
}

static void *cq_of(int cqe)
{
	return ibv_create_cq(dev->ctx, cqe, NULL, NULL, 0);
}

static void *cq_large(void)
{
	return cq_of((1 << 18) - 1);
}

static void *cq_small(void)
{
	return cq_of(16);
}

static int cq_free(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *qp_of(uint32_t send, uint32_t recv, uint32_t sge, uint32_t inlined)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { send, recv, sge, sge, inlined },
	};

	return ibv_create_qp(dev->pd, &init);
}

static void *qp_large(void)
{
	return qp_of(1 << 14, 1 << 14, 32, 512);
}

static void *qp_small(void)
{
	return qp_of(16, 16, 1, 0);
}

/* The queues of perftest's bandwidth tests: 128 sends; SENDs also 512 receives. */
static void *qp_write_bw(void)
{
	return qp_of(128, 1, 1, 0);
}

static void *qp_send_bw(void)
{
	return qp_of(128, 512, 1, 0);
}

static int qp_free(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1 << 15, .max_sge = 32 } };

	return ibv_create_srq(dev->pd, &init);
}

static int srq_free(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *pd(void)
{
	return ibv_alloc_pd(dev->ctx);
}

static int pd_free(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *ah(void)
{
	const struct vt_addr self = { .gid = dev->gid };

	return vt_ah(dev, &self);
}

static int ah_free(void *ah)
{
	return ibv_destroy_ah(ah);
}

static void *mr(void)
{
	return ibv_reg_mr(dev->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
}

static void *mr_on_demand(void)
{
	return ibv_reg_mr(dev->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

static int mr_free(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *mw(void)
{
	return ibv_alloc_mw(dev->pd, IBV_MW_TYPE_2);
}

static int mw_free(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static const struct row {
	const char *name;
	int n;
	void *(*create)(void);
	int (*destroy)(void *object);
	enum {
		CORE,		/* only the RDMA core allocates, uncharged: shown without a verdict */
		SMALL,
		MAPPED,		/* memory that the program maps is nearly all of it: compared within 5 % */
	} kind;
} rows[] = {
	{ "device memory, 16 MiB", 4, dm, dm_free, MAPPED },
	{ "CQ, 2^18 - 1 entries", 4, cq_large, cq_free, MAPPED },
	{ "QP, 2^14 sends and receives, 32 SGEs", 4, qp_large, qp_free, MAPPED },
	{ "SRQ, 2^15 receives, 32 SGEs", 4, srq, srq_free, MAPPED },
	{ "CQ, 16 entries", MOST, cq_small, cq_free, SMALL },
	{ "QP, 16 sends and receives", MOST, qp_small, qp_free, SMALL },
	{ "QP of ib_write_bw, 128 sends", MOST, qp_write_bw, qp_free, SMALL },
	{ "QP of ib_send_bw, 128 sends, 512 receives", MOST, qp_send_bw, qp_free, SMALL },
	{ "PD", MOST, pd, pd_free, CORE },
	{ "AH", MOST, ah, ah_free, SMALL },
	{ "MR of one page", MOST, mr, mr_free, SMALL },
	{ "MR of one page, on demand", MOST, mr_on_demand, mr_free, SMALL },
	{ "MW of type 2", MOST, mw, mw_free, SMALL },
};

/* The kernel's own part of the group's memory; without it the program's heap would be counted. */
static long group_kernel(void)
{
	return vt_number(stat, "kernel ");
}

static bool near(long is, long want)
{
	return labs(is - want) <= want / 20;
}

/* The kernel adds up the statistics of a group every 2 s; objects are freed after an RCU grace period. */
static void settle(void)
{
	sleep(4);
}

static void measure(const struct row *row)
{
	static void *objects[MOST];
	long before = usage_pinned(), pinned, kernel = group_kernel(), now = vt_number(current, "");
	size_t asked = usage_mapped();
	bool good = true;
	int i;

	for (i = 0; i < row->n; i++) {
		objects[i] = row->create();
		if (!objects[i])
			vt_die("%s: %s", row->name, strerror(errno));
	}
	settle();
	asked = usage_mapped() - asked;
	pinned = usage_pinned() - before;
	kernel = group_kernel() - kernel;
	now = vt_number(current, "") - now;
	printf("# %-42s %9zu mapped %9ld memory.stat kernel %9ld memory.current %9ld VmPin\n", row->name, asked / row->n,
	       kernel / row->n, now / row->n, pinned / row->n);
	if (row->kind == MAPPED)
		vt_ok(near(kernel, asked) && near(now, asked) && near(pinned, asked) && pinned >= (long)asked,
		      "%s: charged to the memory cgroup and to RLIMIT_MEMLOCK within 5 %%", row->name);
	else if (row->kind == SMALL)
		vt_ok(kernel > (long)asked && pinned >= (long)asked, "%s: charged", row->name);
	for (i = 0; i < row->n; i++)
		good &= !row->destroy(objects[i]);
	vt_ok(good && usage_pinned_becomes(before), "%s: VmPin is %ld KiB again", row->name, before / KIB);
	settle();
}

void table(struct vt_dev *device, const char *cgroup)
{
	char file[256], text[32];
	long start, kernel;
	unsigned int i;
	int fd;

	dev = device;
	snprintf(file, sizeof(file), "%s/cgroup.procs", cgroup);
	snprintf(text, sizeof(text), "%d", getpid());
	fd = open(file, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		vt_die("%s: %s", file, strerror(errno));
	close(fd);
	snprintf(current, sizeof(current), "%s/memory.current", cgroup);
	snprintf(stat, sizeof(stat), "%s/memory.stat", cgroup);
	cq = cq_of(16);
	if (!cq)
		vt_die("create_cq");
	start = usage_pinned();
	kernel = group_kernel();
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		measure(&rows[i]);
	vt_ok(usage_pinned_becomes(start), "nothing is left charged to RLIMIT_MEMLOCK: VmPin %ld", usage_pinned() - start);
	kernel = group_kernel() - kernel;
	vt_ok(kernel < MIB, "nor to the memory cgroup, but for freed slabs: %ld KiB", kernel / KIB);
}
