// SPDX-License-Identifier: GPL-2.0
/*
 * The polling thread of a device (poll_idle_us): that it saves doorbells, when it sleeps, and that a polled QP may be
 * reset or destroyed. One program has both ends and counts its doorbells: its only system calls between messages.
 *
 *	sq_poller -d DEV
 *
 * Messages are so far apart that the kernel does not batch doorbells. No case depends on the clock: with several CPUs
 * the thread polls rings only while it has a CPU to itself, so the program waits until that is the case.
 */
#include "verbs_test.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART_US	2000	/* between messages; doorbells closer than 1 ms may be batched */
#define IDLE_US		"1000000"
#define MESSAGES	50
#define SILENT		20	/* messages in a row without a doorbell: the ring is polled */
#define LIMIT_MS	100000	/* reached only by a hang */

struct rig {
	const char *name;
	struct vt_dev dev;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[2];
	uint32_t words[2];	/* source and target of the WRITE */
};

static unsigned int calls;

/* Replaces the C library's function, so that the provider's calls are counted. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	calls++;
	return syscall(SYS_ioctl, fd, request, arg);
}

/* ---- the thread, seen from user space ---- */

static int set_idle(const struct rig *r, const char *us)
{
	char path[128];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/poll_idle_us", r->name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		vt_die("%s: %s", path, strerror(errno));
	if (write(fd, us, strlen(us)) < 0)
		err = errno;
	close(fd);
	return err;
}

/* Returns the thread's state in /proc, 'I' when it sleeps; 0: no such thread. */
static char thread_state(const struct rig *r)
{
	char want[64], line[256], state = 0;
	size_t i, len;
	glob_t g;

	len = snprintf(want, sizeof(want), "(roan_poll/%s)", r->name);
	if (glob("/proc/[0-9]*/stat", 0, NULL, &g))
		return 0;
	for (i = 0; i < g.gl_pathc && !state; i++) {
		FILE *f = fopen(g.gl_pathv[i], "r");
		const char *at;

		if (!f)
			continue;
		at = fgets(line, sizeof(line), f) ? strstr(line, want) : NULL;
		if (at)
			state = at[len + 1];
		fclose(f);
	}
	globfree(&g);
	return state;
}

static bool falls_asleep(const struct rig *r)
{
	uint64_t end = vt_now_ms() + LIMIT_MS;

	while (thread_state(r) != 'I') {
		if (vt_now_ms() > end)
			return false;
		usleep(APART_US);
	}
	return true;
}

/* ---- messages ---- */

static void connect_ends(struct rig *r)
{
	const struct vt_conn c = {
		.type = IBV_QPT_RC, .access = IBV_ACCESS_REMOTE_WRITE, .timeout = 14, .retry = 7, .rnr_retry = 7,
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++)
		err = ibv_modify_qp(r->qp[i], &reset, IBV_QP_STATE) ?: vt_qp_init(r->qp[i], &c);
	for (i = 0; i < 2 && !err; i++) {
		struct vt_addr peer = { .gid = r->dev.gid, .qpn = r->qp[!i]->qp_num, .mtu = r->dev.mtu };

		err = vt_qp_connect(&r->dev, r->qp[i], &c, &peer);
	}
	if (err)
		vt_die("connect: %s", strerror(err));
}

static void make_ends(struct rig *r)
{
	struct ibv_qp_init_attr init = {
		.send_cq = r->cq, .recv_cq = r->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 4 },
	};

	r->qp[0] = ibv_create_qp(r->dev.pd, &init);
	r->qp[1] = ibv_create_qp(r->dev.pd, &init);
	if (!r->qp[0] || !r->qp[1])
		vt_die("create_qp: %s", strerror(errno));
	connect_ends(r);
}

static bool destroy_ends(struct rig *r)
{
	return !ibv_destroy_qp(r->qp[0]) && !ibv_destroy_qp(r->qp[1]);
}

/* Sends one message after the last one has been finished for APART_US. Returns the number of doorbells. */
static unsigned int bells_of_one(struct rig *r)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&r->words[0], .length = sizeof(r->words[0]) };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE,
		.wr.rdma = { .remote_addr = (uintptr_t)&r->words[1], .rkey = r->mr->rkey },
	};
	unsigned int before;
	struct ibv_wc wc;
	int err;

	usleep(APART_US);
	r->words[0]++;
	before = calls;
	err = ibv_post_send(r->qp[0], &wr, &bad);
	if (err)
		vt_die("post_send: %s", strerror(err));
	if (!vt_poll(r->cq, &wc, LIMIT_MS) || wc.status != IBV_WC_SUCCESS || r->words[1] != r->words[0])
		vt_die("message %u: no completion, a failed one, or not what was sent", r->words[0]);
	return calls - before;
}

/* Most messages ring. A program delayed at the right moment may find the kernel still polling. */
static bool each_rings(struct rig *r)
{
	unsigned int i, rang = 0;

	for (i = 0; i < MESSAGES; i++)
		rang += bells_of_one(r) > 0;
	return rang > MESSAGES / 2;
}

static bool comes_to_be_watched(struct rig *r)
{
	uint64_t end = vt_now_ms() + LIMIT_MS;
	unsigned int silent = 0;

	while (silent < SILENT && vt_now_ms() < end)
		silent = bells_of_one(r) ? 0 : silent + 1;
	return silent == SILENT;
}

/* ---- cases ---- */

static void refusals(struct rig *r)
{
	vt_ok(set_idle(r, "1000001") == ERANGE, "more than a second: out of range");
	vt_ok(set_idle(r, "-1") == EINVAL || set_idle(r, "-1") == ERANGE, "less than none: refused");
	vt_ok(set_idle(r, "often") == EINVAL, "a word: invalid");
	vt_ok(!thread_state(r), "after refused values there is no thread");
}

static void spares(struct rig *r)
{
	vt_ok(each_rings(r), "without a thread, messages far apart ring the doorbell");
	vt_ok(!set_idle(r, IDLE_US) && falls_asleep(r), "a thread exists, and sleeps while nothing is sent");
	vt_ok(comes_to_be_watched(r), "a doorbell wakes it, then messages ring no doorbell");
	vt_ok(falls_asleep(r), "it sleeps again when the ring was empty for long enough");
	vt_ok(bells_of_one(r) == 1, "and the next message rings the doorbell");
}

static void goes(struct rig *r)
{
	vt_ok(comes_to_be_watched(r), "a queue pair is polled");
	connect_ends(r);
	vt_ok(comes_to_be_watched(r), "it is reset and reconnected while polled, and polled again");
	vt_ok(destroy_ends(r), "it is destroyed while polled");
	make_ends(r);
	vt_ok(comes_to_be_watched(r), "another queue pair is polled");
	vt_ok(!set_idle(r, "0") && !thread_state(r), "the thread ends while it polls a ring");
	vt_ok(each_rings(r), "and messages ring the doorbell again");
}

int main(int argc, char **argv)
{
	static struct rig r;
	int o;

	while ((o = getopt(argc, argv, "d:")) != -1) {
		if (o != 'd')
			return 2;
		r.name = optarg;
	}
	if (!r.name)
		vt_die("sq_poller -d DEV");
	vt_open(&r.dev, r.name, false, -1, 0);
	r.cq = ibv_create_cq(r.dev.ctx, 16, NULL, NULL, 0);
	r.mr = ibv_reg_mr(r.dev.pd, r.words, sizeof(r.words), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!r.cq || !r.mr)
		vt_die("objects: %s", strerror(errno));
	make_ends(&r);
	refusals(&r);
	spares(&r);
	goes(&r);
	return vt_done();
}
