// SPDX-License-Identifier: GPL-2.0
/*
 * Users of on-demand paged memory, for prefetch.sh and stuck_fault.sh, which judge:
 *
 *	odp_users stall -d DEV -f FILE [-n QPS] [-b BYTES] [-D]
 *		registers FILE's pages on demand, WRITEs BYTES from each QP to pages of its own, and prints "posted".
 *		The script sees to it that the pages are never there. Then waits to be killed. -D: deregisters the
 *		region and destroys the QPs first, and prints how long that took
 *	odp_users uffd ...	the same, in memory that a userfaultfd() has to supply, and does not
 *	odp_users first -d DEV
 *		WRITEs the first of two pages, which alone is supplied by a userfaultfd(); prints how it ended
 *	odp_users unreadable -d DEV -f FILE
 *		WRITEs to and prefetches a page of FILE that cannot be read; prints how both ended
 *	odp_users killed -d DEV -f FILE [-b BYTES]
 *		a program has on-demand memory and a fault of FILE's page that never ends. It is killed; then a peer WRITEs
 *		BYTES of its memory. Prints how that ended, and by how much the memory of all programs grew
 *	odp_users probe -d DEV [-n TIMES] [-b BYTES] [-t MS] [-r RNR_RETRIES]
 *		WRITEs and READs pages that are not present, one after the other; prints the latencies, or what failed
 *	odp_users flood -d DEV -c THREADS -t MS [-s]
 *		each thread prefetches large ranges of pages that are not present; -s: the thread only computes;
 *		-f FILE: pages of FILE, for writing
 *	odp_users release -d DEV -n GIB
 *		has an implicit region with GIB of memory that is prefetched without faults. Unmaps that memory,
 *		deregisters the region, exits with another one; prints how long this CPU ran no other task in each,
 *		and how many bytes of the kernel's memory each 2 MiB took
 * -u UID: the user to become before the device is opened.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs_test.h"

#define PAGE	4096
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const char *device, *file;
static unsigned int times = 1, bytes = 64, ms = 10000, rnr_retries = 7, threads = 1, uid;
static bool deregister, computes;

struct pair {
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
};

/* In INIT, with both queues on @cq. */
static struct ibv_qp *open_qp(struct vt_dev *d, struct ibv_cq *cq, const struct vt_conn *conn)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(d->pd, &init) : NULL;

	if (!qp || vt_qp_init(qp, conn))
		vt_die("create_qp");
	return qp;
}

static void pair_open(struct pair *p, struct vt_dev *d)
{
	const struct vt_conn conn = {
		.type = IBV_QPT_RC, .access = RIGHTS, .timeout = 18, .retry = 7, .rnr_retry = rnr_retries,
		.min_rnr_timer = 1,
	};
	int i;

	p->cq = ibv_create_cq(d->ctx, 64, NULL, NULL, 0);
	if (!p->cq)
		vt_die("create_cq");
	for (i = 0; i < 2; i++)
		p->qp[i] = open_qp(d, p->cq, &conn);
	for (i = 0; i < 2; i++) {
		struct vt_addr peer = { .gid = d->gid, .qpn = p->qp[!i]->qp_num, .mtu = d->mtu };

		if (vt_qp_connect(d, p->qp[i], &conn, &peer))
			vt_die("connect");
	}
}

static void pair_close(struct pair *p)
{
	if (ibv_destroy_qp(p->qp[0]) || ibv_destroy_qp(p->qp[1]) || ibv_destroy_cq(p->cq))
		vt_die("destroy");
}

static void *map(size_t len, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (mem == MAP_FAILED)
		vt_die("mmap: %s", strerror(errno));
	return mem;
}

static struct ibv_mr *on_demand(struct vt_dev *d, void *mem, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(d->pd, mem, len, RIGHTS | IBV_ACCESS_ON_DEMAND);

	if (!mr)
		vt_die("reg_mr on demand: %s", strerror(errno));
	return mr;
}

static void post_to(struct ibv_qp *qp, enum ibv_wr_opcode op, struct ibv_mr *here, uint64_t to, uint32_t rkey,
		    uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)here->addr, len, here->lkey };
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { to, rkey } }, *bad;

	if (ibv_post_send(qp, &wr, &bad))
		vt_die("post_send");
}

static void post(struct pair *p, enum ibv_wr_opcode op, struct ibv_mr *here, struct ibv_mr *there, uint64_t to,
		 uint32_t len)
{
	post_to(p->qp[0], op, here, to, there->rkey, len);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

/* ---- the user whose faults last for ever ---- */

static void *userfault_memory(size_t len, int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = *uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *mem = map(len, -1);

	range.range.start = (uintptr_t)mem;
	range.range.len = len;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		vt_skip("userfaultfd: %s", strerror(errno));
	return mem;
}

static void stall(struct vt_dev *d, void *mem, size_t len)
{
	struct pair *p = calloc(times, sizeof(*p));
	struct ibv_mr *there = on_demand(d, mem, len), *here;
	size_t step = (bytes + PAGE - 1) / PAGE * PAGE;
	uint64_t start;
	unsigned int i;

	here = ibv_reg_mr(d->pd, map(step, -1), step, RIGHTS);
	if (!p || !here)
		vt_die("memory");
	for (i = 0; i < times; i++)
		pair_open(&p[i], d);
	for (i = 0; i < times; i++)
		post(&p[i], IBV_WR_RDMA_WRITE, here, there, (uintptr_t)mem + i * step, bytes);
	puts("posted");
	fflush(stdout);
	if (deregister) {
		sleep(1);
		start = vt_now_ms();
		if (ibv_dereg_mr(there))
			vt_die("dereg_mr: %s", strerror(errno));
		printf("deregistered after %d ms\n", (int)(vt_now_ms() - start));
		fflush(stdout);
		for (i = 0; i < times; i++)
			pair_close(&p[i]);
		printf("destroyed after %d ms\n", (int)(vt_now_ms() - start));
		fflush(stdout);
	}
	for (;;)
		pause();
}

/* The pages behind that of the fault are prefetched: the QP must not wait for them. */
static void first(struct vt_dev *d)
{
	struct ibv_mr *here = ibv_reg_mr(d->pd, map(PAGE, -1), PAGE, RIGHTS), *there;
	struct uffdio_zeropage zero = { .range.len = PAGE };
	struct ibv_wc wc;
	struct pair p;
	void *mem;
	int fd;

	mem = userfault_memory(2 * PAGE, &fd);
	there = on_demand(d, mem, 2 * PAGE);
	pair_open(&p, d);
	post(&p, IBV_WR_RDMA_WRITE, here, there, (uintptr_t)mem, PAGE);
	puts("posted");
	usleep(200000);
	zero.range.start = (uintptr_t)mem;
	if (ioctl(fd, UFFDIO_ZEROPAGE, &zero) && errno != EEXIST)
		vt_die("UFFDIO_ZEROPAGE: %s", strerror(errno));
	if (!vt_poll(p.cq, &wc, ms))
		vt_die("no completion within %u ms", ms);
	printf("WRITE: %s\n", ibv_wc_status_str(wc.status));
	fflush(stdout);
	_exit(0);	/* the prefetch of the second page does not end */
}

static void unreadable(struct vt_dev *d, void *mem)
{
	struct ibv_mr *here = ibv_reg_mr(d->pd, map(PAGE, -1), PAGE, RIGHTS), *there = on_demand(d, mem, PAGE);
	struct ibv_sge sge = { (uintptr_t)mem, PAGE, there->lkey };
	struct ibv_wc wc;
	struct pair p;

	pair_open(&p, d);
	post(&p, IBV_WR_RDMA_WRITE, here, there, (uintptr_t)mem, 64);
	if (!vt_poll(p.cq, &wc, ms))
		vt_die("no completion within %u ms", ms);
	printf("WRITE: %s\n", ibv_wc_status_str(wc.status));
	printf("prefetch: %s\n", strerror(ibv_advise_mr(d->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
						       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1)));
}

/* ---- a program that is killed while its fault waits ---- */

struct far_end {	/* what the other end must know */
	uint32_t qpn[2];
	uint32_t rkey[2];
	uint64_t at[2];
};

/* Sends what the other end must know, and gets its QPs. Then both are connected. */
static void meet(struct vt_dev *d, const struct vt_conn *conn, struct ibv_qp *qp[2], int in, int out,
		 struct far_end *mine, struct far_end *theirs)
{
	int i;

	for (i = 0; i < 2; i++)
		mine->qpn[i] = qp[i]->qp_num;
	if (write(out, mine, sizeof(*mine)) != sizeof(*mine) || read(in, theirs, sizeof(*theirs)) != sizeof(*theirs))
		vt_die("pipe");
	for (i = 0; i < 2; i++) {
		struct vt_addr peer = { .gid = d->gid, .qpn = theirs->qpn[i], .mtu = d->mtu };

		if (vt_qp_connect(d, qp[i], conn, &peer))
			vt_die("connect");
	}
}

static const struct vt_conn until_killed = {
	.type = IBV_QPT_RC, .access = RIGHTS, .timeout = 16, .retry = 3, .rnr_retry = 7, .min_rnr_timer = 1,
};

static void until_killed_child(int fd, int in, int out)
{
	struct far_end mine = {}, theirs;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	struct vt_dev d;
	int i;

	vt_open(&d, device, false, -1, 4096);
	for (i = 0; i < 2; i++) {
		void *mem = map(i ? bytes : PAGE, i ? -1 : fd);

		mr = on_demand(&d, mem, i ? bytes : PAGE);
		mine.at[i] = (uintptr_t)mem;
		mine.rkey[i] = mr->rkey;
		qp[i] = open_qp(&d, ibv_create_cq(d.ctx, 16, NULL, NULL, 0), &until_killed);
	}
	meet(&d, &until_killed, qp, in, out, &mine, &theirs);
	for (;;)
		pause();
}

static void killed(int fd)
{
	struct far_end mine = {}, theirs;
	struct ibv_qp *qp[2];
	struct ibv_mr *here;
	struct vt_dev d;
	struct ibv_wc wc;
	int to[2], from[2], i;
	long before;
	pid_t pid;

	if (pipe(to) || pipe(from))
		vt_die("pipe");
	pid = fork();
	if (!pid)
		until_killed_child(fd, to[0], from[1]);
	vt_open(&d, device, false, -1, 4096);
	here = ibv_reg_mr(d.pd, map(bytes, -1), bytes, RIGHTS);
	if (!here)
		vt_die("reg_mr");
	for (i = 0; i < 2; i++)
		qp[i] = open_qp(&d, ibv_create_cq(d.ctx, 16, NULL, NULL, 0), &until_killed);
	meet(&d, &until_killed, qp, from[0], to[1], &mine, &theirs);
	sleep(1);	/* the program connects its end, too */
	post_to(qp[0], IBV_WR_RDMA_WRITE, here, theirs.at[0], theirs.rkey[0], 64);
	sleep(1);	/* the fault waits */
	kill(pid, SIGKILL);
	if (waitpid(pid, NULL, 0) != pid)
		vt_die("waitpid");
	before = vt_number("/proc/meminfo", "AnonPages:");
	post_to(qp[1], IBV_WR_RDMA_WRITE, here, theirs.at[1], theirs.rkey[1], bytes);
	if (!vt_poll(qp[1]->send_cq, &wc, ms))
		vt_die("no completion within %u ms", ms);
	printf("WRITE: %s\nmemory grew by %ld KiB\n", ibv_wc_status_str(wc.status),
	       vt_number("/proc/meminfo", "AnonPages:") - before);
}

/* ---- the user who suffers ---- */

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Returns the latency of one WRITE and one READ, each of pages that were never accessed. Exits if one fails. */
static uint64_t probe_once(struct vt_dev *d, struct pair *p, struct ibv_mr *here)
{
	uint64_t start, took = 0;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		void *mem = map(bytes, -1);
		struct ibv_mr *there = on_demand(d, mem, bytes);

		start = now_us();
		post(p, i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, here, there, (uintptr_t)mem, bytes);
		if (!vt_poll(p->cq, &wc, ms))
			vt_die("%s: no completion within %u ms", i ? "READ" : "WRITE", ms);
		if (wc.status)
			vt_die("%s: %s", i ? "READ" : "WRITE", ibv_wc_status_str(wc.status));
		took = now_us() - start > took ? now_us() - start : took;
		if (ibv_dereg_mr(there))
			vt_die("dereg_mr");
		munmap(mem, bytes);
	}
	return took;
}

static void probe(struct vt_dev *d)
{
	struct ibv_mr *here = ibv_reg_mr(d->pd, map(bytes, -1), bytes, RIGHTS);
	uint64_t *took = calloc(times, sizeof(*took));
	struct pair p;
	unsigned int i;

	if (!here || !took)
		vt_die("memory");
	pair_open(&p, d);
	for (i = 0; i < times; i++)
		took[i] = probe_once(d, &p, here);
	qsort(took, times, sizeof(*took), by_size);
	printf("us p50 %d p99 %d max %d\n", (int)took[times / 2], (int)took[times * 99 / 100], (int)took[times - 1]);
	pair_close(&p);
}

/* ---- the user who prefetches ---- */

#define SGES	16
/* Bytes that one SGE prefetches. In UML each page takes one of the 65530 mappings of its host. */
#define RANGE	(8u << 20)

static uint64_t until;
static int flood_fd = -1;
static struct vt_dev dev;

static void *flood_thread(void *arg)
{
	int advice = flood_fd < 0 ? IBV_ADVISE_MR_ADVICE_PREFETCH : IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uint8_t *mem = map(RANGE, flood_fd);
	struct ibv_mr *mr = on_demand(&dev, mem, RANGE);
	struct ibv_sge sges[SGES];
	unsigned long calls = 0;
	int i;

	(void)arg;
	for (i = 0; i < SGES; i++)
		sges[i] = (struct ibv_sge) { (uintptr_t)mem, RANGE, mr->lkey };
	while (vt_now_ms() < until) {
		if (!computes && ibv_advise_mr(dev.pd, advice, 0, sges, SGES))
			vt_die("advise_mr: %s", strerror(errno));
		if (++calls % 16 == 0 && !computes)
			madvise(mem, RANGE, MADV_DONTNEED);
	}
	return (void *)calls;
}

static void flood(void)
{
	pthread_t t[64];
	void *calls;
	unsigned long all = 0;
	unsigned int i;

	until = vt_now_ms() + ms;
	for (i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, flood_thread, NULL))
			vt_die("pthread_create");
	puts("posted");
	fflush(stdout);
	for (i = 0; i < threads; i++) {
		pthread_join(t[i], &calls);
		all += (unsigned long)calls;
	}
	printf("calls %lu\n", all);
	fflush(stdout);
}

/* ---- release: much memory at once ---- */

static _Atomic uint64_t *longest;	/* us between two runs of watch() that should be 1 ms apart */

static void watch(void)
{
	const struct sched_param param = { .sched_priority = 1 };
	const struct timespec tick = { .tv_nsec = 1000000 };
	uint64_t last, now;

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		vt_die("sched_setscheduler: %s", strerror(errno));
	for (last = now_us();; last = now) {
		nanosleep(&tick, NULL);
		now = now_us();
		if (now - last > *longest)
			*longest = now - last;
	}
}

static void report(const char *what)
{
	usleep(20000);	/* watch() runs */
	printf("%s %d us\n", what, (int)*longest);
	fflush(stdout);
	*longest = 0;
}

static long kernel_kib(void)
{
	return vt_number("/proc/meminfo", "SUnreclaim:");
}

static struct ibv_mr *prefetched(uint8_t *mem)
{
	struct ibv_mr *mr = on_demand(&dev, NULL, SIZE_MAX);
	unsigned int i;

	for (i = 0; i < times; i++) {
		struct ibv_sge sge = { (uintptr_t)mem + ((uint64_t)i << 30), 1u << 30, mr->lkey };
		int err = ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, &sge,
					1);

		if (err)
			vt_die("advise_mr: %s", strerror(err));
	}
	return mr;
}

static void release_all(void)
{
	size_t len = (size_t)times << 30;
	uint8_t *mem = map(len, -1);
	struct ibv_mr *mr;
	long kib;

	vt_open(&dev, device, false, -1, 4096);
	kib = kernel_kib();
	mr = prefetched(mem);
	printf("each_2_MiB %ld bytes\n", (kernel_kib() - kib) * 1024 / (times * 512L));
	report("prefetched");
	munmap(mem, len);
	report("unmapped");
	ibv_dereg_mr(mr);
	report("deregistered");
	prefetched(map(len, -1));
	*longest = 0;
	_exit(0);
}

static void release(void)
{
	pid_t watcher, user;
	cpu_set_t first_cpu;
	int status;

	CPU_ZERO(&first_cpu);
	CPU_SET(0, &first_cpu);
	longest = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (longest == MAP_FAILED || sched_setaffinity(0, sizeof(first_cpu), &first_cpu))
		vt_die("set-up: %s", strerror(errno));
	watcher = fork();
	if (!watcher)
		watch();
	user = fork();
	if (!user)
		release_all();
	waitpid(user, &status, 0);
	report("exited");
	kill(watcher, SIGKILL);
	exit(status ? 1 : 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int o, fd = -1;
	size_t len;

	while ((o = getopt(argc - 1, argv + 1, "d:f:n:b:t:r:c:u:Ds")) != -1) {
		switch (o) {
		case 'd': device = optarg; break;
		case 'f': file = optarg; break;
		case 'n': times = atoi(optarg); break;
		case 'b': bytes = atoi(optarg); break;
		case 't': ms = atoi(optarg); break;
		case 'r': rnr_retries = atoi(optarg); break;
		case 'c': threads = atoi(optarg); break;
		case 'u': uid = atoi(optarg); break;
		case 'D': deregister = true; break;
		case 's': computes = true; break;
		default: return 2;
		}
	}
	len = (size_t)times * ((bytes + PAGE - 1) / PAGE * PAGE);
	if (!device || !times || threads > 64)
		return 2;
	if (file) {
		fd = flood_fd = open(file, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			vt_die("%s: %s", file, strerror(errno));
	}
	if (!strcmp(what, "release"))
		release();
	if (uid && setresuid(uid, uid, uid))
		vt_die("setresuid");
	if (!strcmp(what, "killed")) {
		killed(fd);
		return 0;
	}
	vt_open(&dev, device, false, -1, 4096);
	if (!strcmp(what, "stall"))
		stall(&dev, map(len, fd), len);
	else if (!strcmp(what, "uffd"))
		stall(&dev, userfault_memory(len, &fd), len);
	else if (!strcmp(what, "first"))
		first(&dev);
	else if (!strcmp(what, "unreadable"))
		unreadable(&dev, map(PAGE, fd));
	else if (!strcmp(what, "probe"))
		probe(&dev);
	else if (!strcmp(what, "flood"))
		flood();
	else
		return 2;
	return 0;
}
