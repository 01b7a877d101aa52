// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory that a user takes with RLIMIT_MEMLOCK of 64 KiB: device memory and rings are charged, the limit is
 * reported by ENOMEM, and the charge is returned. Another user at the same time creates and uses QPs.
 *   memory_limit -d DEV			as user `nobody`
 *   memory_limit -d DEV -x COMMAND		COMMAND removes the device while rings are mapped
 *   memory_limit -d DEV -g CGROUP		what each object is charged; CGROUP has memory accounting; as root
 *   memory_limit -d DEV -l BYTES		as root; device memory is limited to BYTES
 *   memory_limit -d DEV -o OBJECTS		as root; the rdma controller allows one context and OBJECTS objects
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memory_usage.h"
#include "verbs_test.h"

#define LIMIT	(64 * KIB)
#define NOBODY	65534
#define OTHER	65533

static struct vt_dev dev;
static struct ibv_cq *cq;	/* of all QPs; created before the limit applies */

static long start;		/* bytes charged for the context and @cq */

/* The kernel returns a charge within 0.1 s after the memory was unmapped. */
static void returned(bool good, long bytes, const char *what)
{
	good = usage_pinned_becomes(bytes) && good;
	vt_ok(good, "%s, VmPin is %ld KiB again: %ld", what, bytes / KIB, usage_pinned() / KIB);
}

static void become(int user)
{
	struct rlimit limit = { LIMIT, LIMIT };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(user) || setuid(user))
		vt_die("setuid: %s", strerror(errno));
}

/* ---- objects ---- */

static void *new_dm(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(dev.ctx, &attr);
}

static void *large_dm(void)
{
	return new_dm(dev.attr.max_dm_size);
}

static void *small_dm(void)
{
	return new_dm(1);
}

static int free_dm(void *dm)
{
	return ibv_free_dm(dm);
}

static void *large_cq(void)
{
	return ibv_create_cq(dev.ctx, dev.attr.orig_attr.max_cqe, NULL, NULL, 0);
}

static void *small_cq(void)
{
	return ibv_create_cq(dev.ctx, 1, NULL, NULL, 0);
}

static int free_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *new_qp(uint32_t wr, uint32_t sge, uint32_t inlined)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { wr, wr, sge, sge, inlined },
	};

	return ibv_create_qp(dev.pd, &init);
}

static void *large_qp(void)
{
	return new_qp(dev.attr.orig_attr.max_qp_wr, dev.attr.orig_attr.max_sge, 0);
}

static void *small_qp(void)
{
	return new_qp(1, 1, 0);
}

static int free_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *new_srq(uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = wr, .max_sge = sge } };

	return ibv_create_srq(dev.pd, &init);
}

static void *large_srq(void)
{
	return new_srq(dev.attr.orig_attr.max_srq_wr, dev.attr.orig_attr.max_srq_sge);
}

static void *small_srq(void)
{
	return new_srq(1, 1);
}

static int free_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static const struct kind {
	const char *name;
	void *(*create)(void);
	int (*destroy)(void *object);
	int most;	/* objects: what the guest's memory allows */
} kinds[] = {
	{ "device memory of the largest size", large_dm, free_dm, 8 },
	{ "device memory of one byte", small_dm, free_dm, 1000 },
	{ "CQs of the largest size", large_cq, free_cq, 2 },
	{ "CQs of the smallest size", small_cq, free_cq, 1000 },
	{ "QPs of the largest size", large_qp, free_qp, 10 },
	{ "QPs of the smallest size", small_qp, free_qp, 1000 },
	{ "SRQs of the largest size", large_srq, free_srq, 20 },
	{ "SRQs of the smallest size", small_srq, free_srq, 1000 },
};

/* ---- the other user ---- */

static int ask[2], answer[2];

/* Creates two connected QPs and sends a message from one to the other. False if anything fails. */
static bool exchange(void)
{
	const struct vt_conn conn = { .type = IBV_QPT_RC, .timeout = 14, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 1 };
	static char memory[8192] __attribute__((aligned(4096)));
	struct ibv_qp *qp[2] = { new_qp(4, 1, 0), new_qp(4, 1, 0) };
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_recv_wr recv = { .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct ibv_sge to, from;
	struct ibv_wc wc;
	bool good;
	int i;

	if (!qp[0] || !qp[1] || !mr)
		return false;
	for (i = 0; i < 2; i++) {
		const struct vt_addr peer = { .gid = dev.gid, .qpn = qp[!i]->qp_num, .mtu = dev.mtu };

		if (vt_qp_init(qp[i], &conn) || vt_qp_connect(&dev, qp[i], &conn, &peer))
			return false;
	}
	strcpy(memory, "hello");
	from = (struct ibv_sge) { (uintptr_t)memory, 4096, mr->lkey };
	to = (struct ibv_sge) { (uintptr_t)memory + 4096, 4096, mr->lkey };
	recv.sg_list = &to;
	send.sg_list = &from;
	good = !ibv_post_recv(qp[1], &recv, &bad_recv) && !ibv_post_send(qp[0], &send, &bad_send);
	for (i = 0; i < 2 && good; i++)
		good = vt_poll(cq, &wc, 20000) && wc.status == IBV_WC_SUCCESS;
	good = good && !strcmp(memory + 4096, "hello");
	return !ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]) && !ibv_dereg_mr(mr) && good;
}

/* A process of another user that calls exchange() each time it is asked. */
static void start_neighbour(const char *device)
{
	char c;

	if (pipe(ask) || pipe(answer))
		vt_die("pipe");
	if (fork())
		return;
	close(ask[1]);
	vt_open(&dev, device, false, -1, 0);
	cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	become(OTHER);
	while (read(ask[0], &c, 1) == 1) {
		c = cq && exchange();
		if (write(answer[1], &c, 1) != 1)
			break;
	}
	_exit(0);
}

static bool neighbour_works(void)
{
	char c = 1;

	return write(ask[1], &c, 1) == 1 && read(answer[0], &c, 1) == 1 && c;
}

/* ---- cases ---- */

/* A context that is opened with less than its hint ring takes has none. All works once memory may be charged. */
static void open_without_ring(const char *device, long limit, int want)
{
	const struct rlimit none = { limit, LIMIT }, some = { LIMIT, LIMIT };
	pid_t pid = fork();
	int status;

	if (!pid) {
		bool good;

		become(NOBODY);
		if (setrlimit(RLIMIT_MEMLOCK, &none))
			vt_die("setrlimit: %s", strerror(errno));
		vt_open(&dev, device, false, -1, 0);
		good = !usage_pinned() && !large_cq() && errno == want;
		if (setrlimit(RLIMIT_MEMLOCK, &some))
			vt_die("setrlimit: %s", strerror(errno));
		cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
		_exit(!good || !cq || !exchange());
	}
	waitpid(pid, &status, 0);
	vt_ok(!status, "limit of %ld bytes: a user opens the device, a CQ is refused (%s); a message after it is raised",
	      limit, strerror(want));
}

/* As many objects as the kernel gives. */
static void take(const struct kind *kind)
{
	long before = usage_pinned(), with;
	size_t mapped = usage_mapped();
	void *objects[1000];
	int n, i, err = 0;
	bool good = true;

	for (n = 0; n < kind->most; n++) {
		errno = 0;
		objects[n] = kind->create();
		if (!objects[n]) {
			err = errno;
			break;
		}
	}
	if (!n && err == EOPNOTSUPP) {
		vt_ok_skip(kind->name, "not supported");
		return;
	}
	mapped = usage_mapped() - mapped;
	with = usage_pinned();
	printf("# %s: %d objects, %zu KiB of kernel memory mapped, VmPin %ld KiB\n", kind->name, n, mapped >> 10, with >> 10);
	vt_ok((long)mapped <= LIMIT && err == ENOMEM, "%s: %zu KiB within the limit of %ld, then %s", kind->name,
	      mapped >> 10, LIMIT >> 10, err ? strerror(err) : "no error");
	vt_ok(with - before >= (long)mapped && with <= LIMIT, "all of it is charged");
	vt_ok(neighbour_works(), "meanwhile another user creates and uses QPs");
	for (i = 0; i < n; i++)
		good &= !kind->destroy(objects[i]);
	returned(good, before, kind->name);
}

static void resize_cq(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 50, NULL, NULL, 0);
	int i, err = 0;
	long before;

	before = usage_pinned();
	for (i = 0; i < 500 && !err; i++)
		err = ibv_resize_cq(cq, i & 1 ? 50 : 200);
	returned(!err, before, "a CQ is resized 500 times");
	err = ibv_resize_cq(cq, dev.attr.orig_attr.max_cqe);
	returned(err == ENOMEM, before, "resizing a CQ beyond the limit is ENOMEM");
	returned(!ibv_resize_cq(cq, 100) && !ibv_destroy_cq(cq), start, "the CQ works on, and is destroyed");
}

static void resize_srq(void)
{
	struct ibv_srq_attr small = { .max_wr = 50 }, medium = { .max_wr = 200 };
	struct ibv_srq_attr large = { .max_wr = dev.attr.orig_attr.max_srq_wr };
	struct ibv_srq *srq = new_srq(50, 1);
	long before = usage_pinned();
	int i, err = 0;

	for (i = 0; i < 500 && !err; i++)
		err = ibv_modify_srq(srq, i & 1 ? &small : &medium, IBV_SRQ_MAX_WR);
	returned(!err, before, "an SRQ is resized 500 times");
	err = ibv_modify_srq(srq, &large, IBV_SRQ_MAX_WR);
	returned(err == ENOMEM, before, "resizing an SRQ beyond the limit is ENOMEM");
	returned(!ibv_destroy_srq(srq), start, "the SRQ is destroyed");
}

/* Memory that a program keeps mapped stays charged when its object is gone. */
static void kept_mapped(void)
{
	size_t mapped = usage_mapped();
	int n, err = 0;

	usage_keep_mapped = true;
	for (n = 0; n < 1000; n++) {
		void *dm;

		errno = 0;
		dm = new_dm(4096);
		if (!dm) {
			err = errno;
			break;
		}
		if (free_dm(dm))
			vt_die("free_dm");
	}
	usage_keep_mapped = false;
	mapped = usage_mapped() - mapped;
	printf("# freed, but kept mapped: %zu KiB\n", mapped >> 10);
	vt_ok((long)mapped <= LIMIT && err == ENOMEM, "memory kept mapped after its object: %zu KiB, then %s", mapped >> 10,
	      err ? strerror(err) : "no error");
}

/* After kept_mapped(), whose mappings end here; so do those of the objects that still exist. */
static void unmapped_at_last(void)
{
	void *dm;

	usage_unmap_all();
	dm = new_dm(4096);
	vt_ok(dm && !free_dm(dm), "as soon as it is unmapped there is room again");
}

/* Every page of the limit is used; the responder resources of 128 READs need one more. */
static void too_many_reads(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 1, .max_dest_rd_atomic = 128,
		.ah_attr = { .is_global = 1, .grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64 },
			     .port_num = 1 },
	};
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const struct vt_conn conn = { .type = IBV_QPT_RC };
	struct ibv_qp *qp = small_qp();
	void *dms[64] = { 0 };
	int i, n = 0, err;

	if (!qp || vt_qp_init(qp, &conn))
		vt_die("no QP");
	while (n < 64 && (dms[n] = small_dm()))
		n++;
	err = ibv_modify_qp(qp, &attr, mask);
	vt_ok(err == ENOMEM, "modify_qp() for 128 READs at the limit: %s", err ? strerror(err) : "no error");
	attr.max_dest_rd_atomic = 16;
	err = ibv_modify_qp(qp, &attr, mask);
	vt_ok(!err, "for 16 READs: %s", err ? strerror(err) : "no error");
	for (i = 0; i < n; i++)
		free_dm(dms[i]);
	returned(!ibv_destroy_qp(qp), start, "the QP is destroyed");
}

static void *churn(void *rounds)
{
	long failed = 0, i;

	for (i = 0; i < (long)rounds; i++) {
		void *dm = small_dm();

		failed += !dm || free_dm(dm);
	}
	return (void *)failed;
}

static void threads(void)
{
	long before = usage_pinned(), failed = 0;
	pthread_t threads[4];
	void *result;
	int i;

	for (i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, churn, (void *)200l))
			vt_die("pthread_create");
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		failed += (long)result;
	}
	returned(!failed, before, "threads allocate and free");
}

/* A child inherits mappings and the file, but not the charge. */
static void forked(void)
{
	void *dm = new_dm(8 * PAGE);
	long with = usage_pinned();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(usage_pinned() != 0);
	waitpid(pid, &status, 0);
	vt_ok(dm && !status && usage_pinned() == with, "a child is charged nothing, and its exit returns nothing");
	returned(!free_dm(dm), with - 8 * PAGE, "the parent frees it");
}

/* Programs that take all they may and are killed. */
static void killed(const char *device)
{
	int up[2], status, i, good = 0;
	pid_t pid;
	char c;

	for (i = 0; i < 20; i++) {
		c = 0;
		if (pipe(up))
			vt_die("pipe");
		pid = fork();
		if (!pid) {
			vt_open(&dev, device, false, -1, 0);
			become(NOBODY);
			while (c < 100 && small_dm())
				c++;
			if (write(up[1], &c, 1) == 1)
				pause();
			_exit(1);
		}
		good += read(up[0], &c, 1) == 1 && c > 8 && c <= 16;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		close(up[0]);
		close(up[1]);
	}
	vt_ok(good == 20, "20 programs take up to their limit and are killed: %d", good);
}

/* The device goes while rings are mapped: they stay mapped and charged until the context is closed. */
static void removed(const char *command)
{
	bool good = small_qp() && small_srq() && new_dm(8 * PAGE);	/* beside @cq and the ring of doorbell hints */
	long before = usage_pinned();

	if (!good || before < 13 * PAGE)
		vt_die("VmPin %ld", before);
	vt_ok(!system(command), "%s", command);
	usleep(300000);
	vt_ok(usage_pinned() == before, "memory of the removed device that is mapped is charged: VmPin %ld", usage_pinned());
	returned(!ibv_close_device(dev.ctx), 0, "the context is closed");
}

/* The device's limit holds for root, too. */
static void device_limit(long bytes)
{
	static void *dms[2000];
	int n = 0, i, err;

	errno = 0;
	while (n < 2000 && (dms[n] = small_dm()))
		n++;
	err = errno;
	vt_ok(n * PAGE == bytes && err == ENOMEM, "root gets %ld KiB of %ld, then %s", n * PAGE / KIB, bytes / KIB,
	      strerror(err));
	for (i = 0; i < n; i++)
		free_dm(dms[i]);
	dms[0] = new_dm(bytes);
	vt_ok(dms[0] && !free_dm(dms[0]), "all of it in one piece");

	usage_keep_mapped = true;
	dms[0] = new_dm(bytes);
	if (!dms[0] || free_dm(dms[0]))
		vt_die("free_dm");
	usage_keep_mapped = false;
	errno = 0;
	dms[0] = small_dm();
	vt_ok(!dms[0] && errno == ENOMEM, "freed, but kept mapped: it still counts");
	usage_unmap_all();
	for (i = 0; i < 50 && !(dms[0] = small_dm()); i++)
		usleep(100000);
	vt_ok(dms[0] && !free_dm(dms[0]), "unmapped: it no longer counts");
}

/* A PD and a CQ exist. */
static void controller(int objects)
{
	void *(*const create[])(void) = { small_dm, small_cq, small_qp, small_srq };
	int (*const destroy[])(void *object) = { free_dm, free_cq, free_qp, free_srq };
	struct ibv_context *second;
	void *made[100];
	int n, i, err;

	for (n = 0; n < 100; n++) {
		errno = 0;
		made[n] = create[n % 4]();
		if (!made[n])
			break;
	}
	err = errno;
	vt_ok(n + 2 == objects && err == EAGAIN, "%d objects of %d, then %s", n + 2, objects, strerror(err));
	second = ibv_open_device(dev.ctx->device);
	vt_ok(!second, "a second context is refused");
	for (i = 0; i < n; i++)
		destroy[i % 4](made[i]);
	made[0] = small_qp();
	vt_ok(made[0] && !free_qp(made[0]), "destroyed objects are given back");
}

int main(int argc, char **argv)
{
	const char *device = NULL, *cgroup = NULL, *command = NULL;
	long limit = 0, objects = 0;
	unsigned int i;
	int o;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((o = getopt(argc, argv, "d:g:l:o:x:")) != -1) {
		switch (o) {
		case 'd': device = optarg; break;
		case 'g': cgroup = optarg; break;
		case 'l': limit = atol(optarg); break;
		case 'o': objects = atol(optarg); break;
		case 'x': command = optarg; break;
		default: return 2;
		}
	}
	if (!device)
		return 2;
	if (!cgroup && !command && !limit && !objects) {
		open_without_ring(device, 0, EPERM);
		open_without_ring(device, PAGE, ENOMEM);
		killed(device);
		start_neighbour(device);
	}
	vt_open(&dev, device, false, -1, 0);
	cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	if (!cq)
		vt_die("create_cq");
	if (cgroup) {
		table(&dev, cgroup);
		return vt_done();
	}
	if (command)
		removed(command);
	if (limit)
		device_limit(limit);
	if (objects)
		controller(objects);
	if (command || limit || objects)
		return vt_done();
	become(NOBODY);
	start = usage_pinned();
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		take(&kinds[i]);
	resize_cq();
	resize_srq();
	threads();
	forked();
	too_many_reads();
	kept_mapped();
	unmapped_at_last();
	return vt_done();
}
