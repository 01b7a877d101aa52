// SPDX-License-Identifier: GPL-2.0
/*
 * Programs for lifetime.sh and device.sh in net/interfaces: they are busy while their device is removed, are killed, or
 * create and destroy objects as fast as they can. The scripts remove the device and judge.
 *
 *	traffic -d DEV [-D DEV2] [-a ADDR [-A ADDR2]] [-q QPS] [-t SEC] [-p] [-i]
 *		RC and UD traffic from DEV to DEV2 (default: DEV) until something ends it, then cleans up. Its last line:
 *		"end: time|wc STATUS|verb WHICH ERRNO|event NAME; then ERRNO", where the last ERRNO is that of alloc_pd.
 *		-p polls only and reads no events; -i connects, waits idle for an event, then posts.
 *	killed -d DEV -n N	N times: a child with outstanding work is killed
 *	storm -d DEV -t SEC -c CHILDREN [-g]	QPs, CQs, SRQs, MRs, AHs made and destroyed, with work outstanding
 *		-g: the device will be removed. After the first child that fails for it no child is started. Children that
 *		are cut short are no failure. Failures are: a timeout, a crash, a failed child while the device exists
 *	listen -d DEV -t SEC	prints asynchronous events
 *	groups -d DEV -t SEC	a UD QP leaves and joins multicast groups until a verb fails: "end: verb ERRNO"
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_test.h"

#define WINDOW	16
#define LEN	16384
#define UD_LEN	256

static const char *dev_a, *dev_b, *addr_a, *addr_b;
static int n_pairs = 2, seconds = 10, count = 200;
static bool poll_only, idle, goes;

/* One device with all its objects. */
struct end {
	struct vt_dev d;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *rc[16], *ud;
	struct ibv_ah *ah;
	uint8_t *buf;
};

/* The reason for the end. */
static char why[128];

static bool ended(void)
{
	return why[0];
}

static void __attribute__((format(printf, 1, 2))) end_with(const char *fmt, ...)
{
	va_list ap;

	if (ended())
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
}

/* ---- set-up ---- */

static int gid_of(const char *name, const char *addr)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry e;
	union ibv_gid want = { .raw = { [10] = 0xff, [11] = 0xff } };
	struct ibv_context *ctx = NULL;
	int i, at = -1;

	if (!inet_pton(AF_INET, addr, want.raw + 12) && !inet_pton(AF_INET6, addr, want.raw))
		vt_die("%s is no address", addr);
	for (i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	for (i = 0; ctx && i < 256 && at < 0; i++)
		if (!ibv_query_gid_ex(ctx, 1, i, &e, 0) && e.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&e.gid, &want, sizeof(want)))
			at = i;
	if (at < 0)
		vt_die("%s has no GID for %s", name, addr);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return at;
}

static struct ibv_qp *make_qp(struct end *e, enum ibv_qp_type type)
{
	const struct vt_conn c = { .type = type, .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = type, .sq_sig_all = 1,
		.cap = { .max_send_wr = WINDOW, .max_recv_wr = 2 * WINDOW, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(e->d.pd, &init);

	if (!qp || vt_qp_init(qp, &c))
		vt_die("create_qp: %s", strerror(errno));
	return qp;
}

static void set_up(struct end *e, const char *name, const char *addr)
{
	int i;

	vt_open(&e->d, name, false, addr ? gid_of(name, addr) : -1, 1024);
	fcntl(e->d.ctx->async_fd, F_SETFL, O_NONBLOCK);
	e->buf = calloc(1, 2 * LEN);
	e->cq = ibv_create_cq(e->d.ctx, 4096, NULL, NULL, 0);
	e->mr = ibv_reg_mr(e->d.pd, e->buf, 2 * LEN,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!e->cq || !e->mr)
		vt_die("set-up: %s", strerror(errno));
	for (i = 0; i < n_pairs; i++)
		e->rc[i] = make_qp(e, IBV_QPT_RC);
	e->ud = make_qp(e, IBV_QPT_UD);
}

static struct vt_addr addr_of(struct end *e, struct ibv_qp *qp)
{
	return (struct vt_addr) { .gid = e->d.gid, .qpn = qp->qp_num, .psn = 7, .mtu = IBV_MTU_1024 };
}

static void connect_to(struct end *e, struct end *peer, bool to_self)
{
	struct vt_conn c = { .type = IBV_QPT_RC, .psn = 7, .timeout = 17, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 1 };
	struct vt_addr a;
	int i, err;

	for (i = 0; i < n_pairs; i++) {
		a = addr_of(peer, peer->rc[to_self ? i ^ 1 : i]);
		err = vt_qp_connect(&e->d, e->rc[i], &c, &a);
		if (err)
			vt_die("connect: %s", strerror(err));
	}
	c.type = IBV_QPT_UD;
	a = addr_of(peer, peer->ud);
	err = vt_qp_connect(&e->d, e->ud, &c, &a);
	e->ah = vt_ah(&e->d, &a);
	if (err || !e->ah)
		vt_die("UD: %s", strerror(err ? err : errno));
}

/* Destroying must succeed also when the device has been removed; verbs may return EIO then. */
static void tear_down(struct end *e)
{
	int i, err = ibv_destroy_ah(e->ah);

	for (i = 0; i < n_pairs; i++)
		err |= ibv_destroy_qp(e->rc[i]);
	err |= ibv_destroy_qp(e->ud) | ibv_dereg_mr(e->mr) | ibv_destroy_cq(e->cq) | ibv_dealloc_pd(e->d.pd);
	err |= ibv_close_device(e->d.ctx);
	free(e->buf);
	if (err && err != EIO)
		vt_die("tear-down: %d", err);
}

/* ---- traffic ---- */

static int post_recv(struct end *e, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + LEN, UD_LEN + 40, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1 << 16, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static int post_rc(struct end *e, struct end *peer, int i, unsigned int n)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_RDMA_WRITE };
	struct ibv_sge sge = { (uintptr_t)e->buf, LEN, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = ops[n % 4], .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)peer->buf, peer->mr->rkey },
	}, *bad;

	if (wr.opcode == IBV_WR_SEND)
		sge.length = UD_LEN;
	return ibv_post_send(e->rc[i], &wr, &bad);
}

static int post_ud(struct end *e, struct end *peer)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, UD_LEN, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1 << 17, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { e->ah, peer->ud->qp_num, VT_QKEY },
	}, *bad;

	return ibv_post_send(e->ud, &wr, &bad);
}

static void look_for_event(struct end *e)
{
	struct ibv_async_event ev;

	if (poll_only || ibv_get_async_event(e->d.ctx, &ev))
		return;
	ibv_ack_async_event(&ev);
	switch (ev.event_type) {
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_CQ_ERR:
		end_with("event %s", ibv_event_type_str(ev.event_type));
		break;
	default:	/* events of the port and its GIDs are expected */
		break;
	}
}

static struct ibv_qp *find(struct end *e, uint32_t qpn)
{
	int i;

	for (i = 0; i < n_pairs; i++)
		if (e->rc[i]->qp_num == qpn)
			return e->rc[i];
	return e->ud;
}

static void check(int err, const char *verb)
{
	if (err)
		end_with("verb %s %s", verb, strerrorname_np(err));
}

/* Each completion posts the next request of its kind. Returns the number of completions. */
static int turn(struct end *e, struct end *peer)
{
	static unsigned int n;
	struct ibv_wc wc[16];
	int i, got = ibv_poll_cq(e->cq, 16, wc);

	if (got < 0)
		end_with("verb poll_cq %d", got);
	for (i = 0; i < got && !ended(); i++) {
		if (wc[i].status)
			end_with("wc %s", ibv_wc_status_str(wc[i].status));
		else if (wc[i].wr_id == 1 << 16)
			check(post_recv(e, find(e, wc[i].qp_num)), "post_recv");
		else if (wc[i].wr_id == 1 << 17)
			check(post_ud(e, peer), "post_send");
		else
			check(post_rc(e, peer, wc[i].wr_id, n++), "post_send");
	}
	return got;
}

static void start(struct end *e, struct end *peer)
{
	int i, j;

	for (j = 0; j < WINDOW; j++) {
		for (i = 0; i < n_pairs; i++)
			check(post_rc(e, peer, i, j), "post_send");
		if (j < 4)
			check(post_ud(e, peer), "post_send");
	}
}

static void recvs(struct end *e)
{
	int i, j;

	for (j = 0; j < 2 * WINDOW; j++) {
		for (i = 0; i < n_pairs; i++)
			check(post_recv(e, e->rc[i]), "post_recv");
		check(post_recv(e, e->ud), "post_recv");
	}
}

static const char *after(struct end *e)
{
	struct ibv_pd *pd = ibv_alloc_pd(e->d.ctx);

	if (!pd)
		return strerrorname_np(errno);
	ibv_dealloc_pd(pd);
	return "alive";
}

static void run(struct end *a, struct end *b)
{
	uint64_t end = vt_now_ms() + seconds * 1000ull;
	unsigned int n = 0;

	if (!idle) {
		start(a, b);
		if (b != a)
			start(b, a);
	}
	while (!ended() && vt_now_ms() < end) {
		if (!(n++ % 64) || idle) {
			look_for_event(a);
			look_for_event(b);
		}
		if (!turn(a, b) + !(b != a && turn(b, a)) == 2)
			usleep(200);
	}
	if (idle)
		start(a, b);	/* after the removal: each request must fail or be flushed, not hang */
	end_with("time");
}

static int traffic(void)
{
	static struct end ends[2];
	struct end *a = &ends[0], *b = dev_b || addr_b ? &ends[1] : a;

	n_pairs = b == a ? n_pairs & ~1 : n_pairs;
	set_up(a, dev_a, addr_a);
	if (b != a)
		set_up(b, dev_b ? dev_b : dev_a, addr_b);
	connect_to(a, b, b == a);
	if (b != a)
		connect_to(b, a, false);
	recvs(a);
	if (b != a)
		recvs(b);
	puts("started");
	fflush(stdout);
	run(a, b);
	printf("end: %s; then %s\n", why, after(a));
	fflush(stdout);
	tear_down(a);
	if (b != a)
		tear_down(b);
	puts("closed");
	return VT_PASS;
}

/* ---- killed ---- */

static void outstanding_for_ever(int ready)
{
	struct end e;
	int i;

	memset(&e, 0, sizeof(e));
	set_up(&e, dev_a, addr_a);
	connect_to(&e, &e, true);
	recvs(&e);
	start(&e, &e);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (i = 0;; i++)
		if (!turn(&e, &e))
			sched_yield();
}

static int killed(void)
{
	int i;

	for (i = 0; i < count; i++) {
		int fd[2], status;
		char c;
		pid_t pid;

		if (pipe(fd))
			vt_die("pipe");
		pid = fork();
		if (!pid) {
			close(fd[0]);
			outstanding_for_ever(fd[1]);
		}
		close(fd[1]);
		if (read(fd[0], &c, 1) != 1)
			vt_die("child %d did not start", i);
		close(fd[0]);
		usleep(vt_mix(i) % 8000);
		kill(pid, SIGKILL);
		if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
			vt_die("child %d: status %x", i, status);
	}
	printf("%d killed\n", count);
	return VT_PASS;
}

/* ---- storm ---- */

static void one_life(unsigned int seed)
{
	struct end e;
	int turns = vt_mix(seed) % 200;
	int i;

	memset(&e, 0, sizeof(e));
	why[0] = 0;
	set_up(&e, dev_a, addr_a);
	connect_to(&e, &e, true);
	recvs(&e);
	start(&e, &e);
	for (i = 0; i < turns && !ended(); i++)
		turn(&e, &e);
	if (ended())
		vt_die("storm: %s", why);
	for (i = 0; i < 20; i++) {	/* objects created and destroyed during the traffic */
		struct vt_addr a = addr_of(&e, e.ud);
		struct ibv_ah *ah = vt_ah(&e.d, &a);
		struct ibv_mr *mr = ibv_reg_mr(e.d.pd, e.buf, LEN, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_srq_init_attr si = { .attr = { .max_wr = 10, .max_sge = 1 } };
		struct ibv_srq *srq = ibv_create_srq(e.d.pd, &si);
		struct ibv_cq *cq = ibv_create_cq(e.d.ctx, 10, NULL, NULL, 0);

		if (!ah || !mr || !srq || !cq)
			vt_die("storm: %s", strerror(errno));
		turn(&e, &e);
		if (ibv_destroy_ah(ah) | ibv_dereg_mr(mr) | ibv_destroy_srq(srq) | ibv_destroy_cq(cq))
			vt_die("storm: destroy: %s", strerror(errno));
	}
	if (vt_mix(seed + 1) % 4 == 0)
		_exit(0);		/* the kernel cleans up */
	tear_down(&e);
}

static bool listed(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;
	int i;

	for (i = 0; list && list[i]; i++)
		found |= !strcmp(ibv_get_device_name(list[i]), dev_a);
	ibv_free_device_list(list);
	return found;
}

/* The device name disappears a little after verbs have begun to fail. */
static bool gone(uint64_t end)
{
	while (listed() && vt_now_ms() < end)
		usleep(10000);
	return !listed();
}

static int storm(void)
{
	uint64_t end = vt_now_ms() + seconds * 1000ull;
	int i, status, bad = 0, crashed = 0, lives = 0;
	unsigned int seed = 0;

	for (i = 0; i < count; i++)
		if (!fork()) {
			one_life(i);
			_exit(0);
		}
	while (wait(&status) > 0) {
		lives++;
		bad += status != 0;
		crashed += !WIFEXITED(status);
		if (vt_now_ms() < end && !(goes && bad) && !fork()) {
			for (i = 0; i < 3; i++)
				one_life(seed * 7 + i);
			_exit(0);
		}
		seed++;
	}
	printf("%d lives, %d bad, %d crashed\n", lives, bad, crashed);
	if (!goes)
		return bad ? VT_FAIL : VT_PASS;
	if (!bad || !gone(end))
		vt_die("the device stays");
	return crashed ? VT_FAIL : VT_PASS;
}

/* ---- listen ---- */

static int hear(void)
{
	uint64_t end = vt_now_ms() + seconds * 1000ull;
	struct ibv_async_event ev;
	struct vt_dev d;

	vt_open(&d, dev_a, false, -1, 1024);
	fcntl(d.ctx->async_fd, F_SETFL, O_NONBLOCK);
	puts("started");
	fflush(stdout);
	while (vt_now_ms() < end) {
		struct pollfd p = { .fd = d.ctx->async_fd, .events = POLLIN };

		if (poll(&p, 1, 100) <= 0 || ibv_get_async_event(d.ctx, &ev))
			continue;
		puts(ibv_event_type_str(ev.event_type));
		fflush(stdout);
		ibv_ack_async_event(&ev);
		if (ev.event_type == IBV_EVENT_DEVICE_FATAL)
			return VT_PASS;
	}
	return VT_PASS;
}

/* ---- groups ---- */

#define GROUPS	64

static int groups(void)
{
	uint64_t end = vt_now_ms() + seconds * 1000ull;
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 1 } };
	struct end e = { .buf = NULL };
	int n, err = 0;

	n_pairs = 0;
	set_up(&e, dev_a, addr_a);
	for (n = 0; !err && vt_now_ms() < end; n++) {
		gid.raw[15] = n % GROUPS;
		err = n < GROUPS ? 0 : ibv_detach_mcast(e.ud, &gid, 0);
		err = err ?: ibv_attach_mcast(e.ud, &gid, 0);
		if (n == GROUPS) {
			puts("started");
			fflush(stdout);
		}
	}
	printf("end: verb %s\n", strerrorname_np(err));
	return VT_PASS;
}

int main(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "d:D:a:A:q:t:n:c:pig")) > 0) {
		switch (o) {
		case 'd': dev_a = optarg; break;
		case 'D': dev_b = optarg; break;
		case 'a': addr_a = optarg; break;
		case 'A': addr_b = optarg; break;
		case 'q': n_pairs = atoi(optarg); break;
		case 't': seconds = atoi(optarg); break;
		case 'n': case 'c': count = atoi(optarg); break;
		case 'p': poll_only = true; break;
		case 'i': idle = true; break;
		case 'g': goes = true; break;
		default: return VT_FAIL;
		}
	}
	if (optind + 1 != argc || !dev_a || n_pairs < 1 || n_pairs > 16)
		vt_die("usage: lifetime traffic|killed|storm|listen|groups -d DEV ...");
	if (!strcmp(argv[optind], "traffic"))
		return traffic();
	if (!strcmp(argv[optind], "killed"))
		return killed();
	if (!strcmp(argv[optind], "storm"))
		return storm();
	if (!strcmp(argv[optind], "listen"))
		return hear();
	if (!strcmp(argv[optind], "groups"))
		return groups();
	vt_die("no command %s", argv[optind]);
}
