// SPDX-License-Identifier: GPL-2.0
/*
 * Many QPs on one device: memory of each, rate of creation and destruction, and the cost of streaming over many
 * compared with one. One process has both ends, so it needs no side channel. It measures and prints, without a verdict.
 *
 *	scale stream -d DEV -D PEER [-n QPS] [-s BYTES] [-w OUTSTANDING] [-t SECONDS] [-e]
 *		WRITEs from DEV to PEER, each on the next QP; -e sleeps in a completion channel instead of polling.
 *		Prints: messages N seconds S cpu_seconds C		(C: all CPUs, from /proc/stat)
 *	scale memory -d DEV [-n QPS]
 *		QPS connected QPs on DEV, in pairs. Prints: kernel K rings R left L	(bytes per QP; L: after destruction)
 *	scale used -d DEV [-n QPS]
 *		The same after each QP has sent one message.
 *	scale rate -d DEV [-n QPS]
 *		Prints: create N connect N destroy N		(QPs per second)
 *	scale cqs -d DEV
 *		Creates CQs until the device's announced maximum or a failure. Prints: announced N created N: ERROR
 */
#define _GNU_SOURCE
#include "verbs_test.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	16		/* work requests per queue, for any number of QPs */

struct end {
	struct vt_dev dev;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr;
	uint8_t *buf;
	struct ibv_qp **qps;
};

static struct {
	const char *dev, *peer;
	int qps, outstanding, seconds;
	uint32_t size;
	bool events, used;
} opt = { .qps = 1, .outstanding = DEPTH, .seconds = 1, .size = 65536 };

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Seconds that all CPUs together have been busy since boot. */
static double cpu_seconds(void)
{
	unsigned long long v[8] = {};
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
			 &v[6], &v[7]) < 4)
		vt_die("/proc/stat");
	fclose(f);
	return (double)(v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / sysconf(_SC_CLK_TCK);
}

/* Returns the sum of all "NAME: N kB" lines of @path. */
static long long kb_lines(const char *path, const char *name)
{
	long long sum = 0, n;
	char line[512];
	FILE *f = fopen(path, "r");

	if (!f)
		vt_die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && sscanf(line + strlen(name), ": %lld kB", &n) == 1)
			sum += n;
	fclose(f);
	return sum;
}

/* Returns the bytes of uverbs files that this process has mapped. */
static long long ring_bytes(void)
{
	unsigned long long from, to;
	long long sum = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "uverbs") && sscanf(line, "%llx-%llx", &from, &to) == 2)
			sum += to - from;
	if (f)
		fclose(f);
	return sum;
}

static void open_end(struct end *e, const char *name, int cqe)
{
	vt_open(&e->dev, name, false, -1, 0);
	if (opt.events) {
		e->channel = ibv_create_comp_channel(e->dev.ctx);
		if (!e->channel)
			vt_die("create_comp_channel: %s", strerror(errno));
	}
	e->cq = ibv_create_cq(e->dev.ctx, cqe, NULL, e->channel, 0);
	if (!e->cq)
		vt_die("create_cq: %s", strerror(errno));
	e->buf = mmap(NULL, opt.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	e->mr = e->buf == MAP_FAILED ? NULL : ibv_reg_mr(e->dev.pd, e->buf, opt.size,
							 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!e->mr)
		vt_die("reg_mr: %s", strerror(errno));
	e->qps = calloc(opt.qps, sizeof(*e->qps));
	if (!e->qps)
		vt_die("no memory");
}

static void close_end(struct end *e)
{
	free(e->qps);
	if (ibv_dereg_mr(e->mr) || ibv_destroy_cq(e->cq))
		vt_die("destroy: %s", strerror(errno));
	if (e->channel && ibv_destroy_comp_channel(e->channel))
		vt_die("destroy_comp_channel: %s", strerror(errno));
	munmap(e->buf, opt.size);
	vt_close(&e->dev);
}

static void create_qps(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int i;

	for (i = 0; i < opt.qps; i++) {
		e->qps[i] = ibv_create_qp(e->dev.pd, &init);
		if (!e->qps[i])
			vt_die("create_qp %d: %s", i, strerror(errno));
	}
}

static void connect_one(struct end *e, struct ibv_qp *qp, const struct end *to, const struct ibv_qp *peer)
{
	const struct vt_conn c = {
		.type = IBV_QPT_RC, .access = IBV_ACCESS_REMOTE_WRITE, .psn = qp->qp_num & 0xffffff, .timeout = 14,
		.retry = 7, .rnr_retry = 7, .min_rnr_timer = 12,
	};
	const struct vt_addr a = {
		.gid = to->dev.gid, .qpn = peer->qp_num, .psn = peer->qp_num & 0xffffff, .mtu = to->dev.mtu,
	};
	int err = vt_qp_init(qp, &c) ?: vt_qp_connect(&e->dev, qp, &c, &a);

	if (err)
		vt_die("connect: %s", strerror(err));
}

static void destroy_qps(struct end *e)
{
	int i;

	for (i = 0; i < opt.qps; i++)
		if (ibv_destroy_qp(e->qps[i]))
			vt_die("destroy_qp: %s", strerror(errno));
}

/* ---- stream ---- */

static void post(struct end *a, struct end *b, struct ibv_qp *qp)
{
	struct ibv_sge sge = { .addr = (uintptr_t)a->buf, .length = opt.size, .lkey = a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)b->buf, .rkey = b->mr->rkey },
	};
	int err = ibv_post_send(qp, &wr, &bad);

	if (err)
		vt_die("post_send: %s", strerror(err));
}

static void sleep_for_one(struct end *a)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(a->channel, &cq, &context))
		vt_die("get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(a->cq, 0))
		vt_die("req_notify_cq");
}

/*
 * Polls; returns the number of completions, which must be successes. With @wait and events it sleeps if there are none.
 */
static int reap(struct end *a, bool wait)
{
	struct ibv_wc wc[DEPTH];
	int n = ibv_poll_cq(a->cq, DEPTH, wc), i;

	if (!n && wait && opt.events) {
		sleep_for_one(a);
		n = ibv_poll_cq(a->cq, DEPTH, wc);
	}
	for (i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			vt_die("completion: %s", ibv_wc_status_str(wc[i].status));
	return n;
}

static void stream(struct end *a, struct end *b)
{
	long long posted = 0, done = 0, counted;
	double start, cpu, end;
	int i;

	for (i = 0; i < opt.qps; i++) {
		connect_one(a, a->qps[i], b, b->qps[i]);
		connect_one(b, b->qps[i], a, a->qps[i]);
	}
	if (opt.events && ibv_req_notify_cq(a->cq, 0))
		vt_die("req_notify_cq");
	/* One message per QP before the measurement: routes and other state are set up on first use. */
	for (i = 0; i < opt.qps; i++) {
		post(a, b, a->qps[i]);
		while (!reap(a, true))
			;
	}
	cpu = cpu_seconds();
	start = now();
	end = start + opt.seconds;
	while (now() < end) {
		while (posted - done < opt.outstanding)
			post(a, b, a->qps[posted++ % opt.qps]);
		done += reap(a, true);
	}
	counted = done;
	end = now();
	cpu = cpu_seconds() - cpu;
	printf("messages %lld seconds %.3f cpu_seconds %.2f\n", counted, end - start, cpu);
	fflush(stdout);
	while (done < posted)
		done += reap(a, true);
}

static int run_stream(void)
{
	struct end a = {}, b = {};

	open_end(&a, opt.dev, opt.outstanding);
	open_end(&b, opt.peer, 1);
	create_qps(&a);
	create_qps(&b);
	stream(&a, &b);
	destroy_qps(&a);
	destroy_qps(&b);
	close_end(&a);
	close_end(&b);
	return VT_PASS;
}

/* ---- memory ---- */

/* Returns the free pages on per-CPU lists, which MemFree does not include. */
static long long pages_at_cpus(void)
{
	long long sum = 0, n;
	char line[512];
	FILE *f = fopen("/proc/zoneinfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %lld", &n) == 1)
			sum += n;
	if (f)
		fclose(f);
	return sum;
}

/* Returns the bytes in use, except this process's own memory and reclaimable caches. */
static long long used(void)
{
	long long kb, bytes = -1, last;
	int i;

	malloc_trim(0);
	for (i = 0; i < 100; i++) {	/* freed memory returns some time after an RCU grace period */
		last = bytes;
		usleep(100000);
		kb = kb_lines("/proc/meminfo", "MemTotal") - kb_lines("/proc/meminfo", "MemFree") -
		     kb_lines("/proc/meminfo", "Cached") - kb_lines("/proc/meminfo", "Buffers") -
		     kb_lines("/proc/meminfo", "SReclaimable") - kb_lines("/proc/self/status", "RssAnon") -
		     kb_lines("/proc/self/status", "VmPTE");
		bytes = kb * 1024 - pages_at_cpus() * sysconf(_SC_PAGESIZE);
		if (i > 60 && bytes >= last - 65536)
			break;
	}
	return bytes;
}

static void send_one_each(struct end *e)
{
	int i;

	for (i = 0; i < opt.qps; i++) {
		post(e, e, e->qps[i]);
		while (!reap(e, true))
			;
	}
}

/* Creates all QPs and destroys them. Stores the memory in use with them, and returns that in use afterwards. */
static long long come_and_go(struct end *e, long long before, long long *taken, long long *rings)
{
	long long rings_before = ring_bytes();
	int i;

	create_qps(e);
	for (i = 0; i < opt.qps; i++)
		connect_one(e, e->qps[i], e, e->qps[i ^ 1]);
	if (opt.used)
		send_one_each(e);
	*taken = used() - before;
	*rings = ring_bytes() - rings_before;
	destroy_qps(e);
	return used();
}

/* The first round also fills pools that keep their size. So a leak is what each of two more rounds leaves. */
static int run_memory(void)
{
	long long before, once, twice, taken, rings, left;
	struct end e = {};

	open_end(&e, opt.dev, 1);
	before = used();
	once = come_and_go(&e, before, &taken, &rings);
	left = once - before;
	if (left > 0) {
		long long unused_taken, unused_rings;

		twice = come_and_go(&e, once, &unused_taken, &unused_rings);
		if (twice - once < left)
			left = twice - once;
	}
	printf("kernel %lld rings %lld left %lld\n", (taken - rings) / opt.qps, rings / opt.qps, left / opt.qps);
	close_end(&e);
	return VT_PASS;
}

static int run_rate(void)
{
	struct end e = {};
	double t[4];
	int i;

	open_end(&e, opt.dev, 1);
	t[0] = now();
	create_qps(&e);
	t[1] = now();
	for (i = 0; i < opt.qps; i++)
		connect_one(&e, e.qps[i], &e, e.qps[i ^ 1]);
	t[2] = now();
	destroy_qps(&e);
	t[3] = now();
	printf("create %.0f connect %.0f destroy %.0f\n", opt.qps / (t[1] - t[0]), opt.qps / (t[2] - t[1]),
	       opt.qps / (t[3] - t[2]));
	close_end(&e);
	return VT_PASS;
}

static int run_cqs(void)
{
	struct vt_dev d;
	struct ibv_cq **cqs;
	int n, most;

	vt_open(&d, opt.dev, false, -1, 0);
	most = d.attr.orig_attr.max_cq;
	cqs = calloc(most, sizeof(*cqs));
	if (!cqs)
		vt_die("no memory");
	for (n = 0; n < most; n++) {
		cqs[n] = ibv_create_cq(d.ctx, 1, NULL, NULL, 0);
		if (!cqs[n])
			break;
	}
	printf("announced %d created %d: %s\n", most, n, n < most ? strerror(errno) : "all");
	while (n--)
		if (ibv_destroy_cq(cqs[n]))
			vt_die("destroy_cq: %s", strerror(errno));
	free(cqs);
	vt_close(&d);
	return VT_PASS;
}

static int usage(void)
{
	fputs("scale stream|memory|used|rate|cqs -d DEV [-D PEER] [-n QPS] [-s BYTES] [-w OUTSTANDING] [-t SECONDS] [-e]\n",
	stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int c;

	while ((c = getopt(argc - 1, argv + 1, "d:D:n:s:w:t:e")) != -1) {
		switch (c) {
		case 'd': opt.dev = optarg; break;
		case 'D': opt.peer = optarg; break;
		case 'n': opt.qps = atoi(optarg); break;
		case 's': opt.size = atoi(optarg); break;
		case 'w': opt.outstanding = atoi(optarg); break;
		case 't': opt.seconds = atoi(optarg); break;
		case 'e': opt.events = true; break;
		default: return usage();
		}
	}
	/* All outstanding requests may go to one QP, so its queue must hold them. */
	if (!opt.dev || opt.qps < 1 || !opt.size || opt.outstanding < 1 || opt.outstanding > DEPTH)
		return usage();
	if (!strcmp(what, "stream") && opt.peer)
		return run_stream();
	if (!strcmp(what, "cqs"))
		return run_cqs();
	opt.qps += opt.qps & 1;	/* pairs */
	opt.used = !strcmp(what, "used");
	if (opt.used || !strcmp(what, "memory"))
		return run_memory();
	return strcmp(what, "rate") ? usage() : run_rate();
}
