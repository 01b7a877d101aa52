// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is removed while it is read and written. A round: a region, two QPs of one device, a batch of WRITEs and
 * READs from both sides. During the batch the exporter moves the memory, the region is deregistered or reregistered
 * with other memory, or the program is killed. Requests may fail with a few known statuses. Nothing may hang, and after
 * the removal the device must not access the memory.
 *   revoke_stress -d DEV -m KIND -w move|leave|dereg|rereg|kill|hold|FILE [-n ROUNDS] [-s SEED]
 * hold: registers, prints "held", and waits for the end of its standard input. FILE: with dm memory on a BAR; writing 1
 * to FILE removes the BAR's device for good.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../verbs/verbs_test.h"
#include "fake_gpu.h"
#include "mem.h"

#define LEN	(256 * 1024)
#define BATCH	16
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct vt_dev dev;
static struct ibv_cq *cq;
static struct ibv_qp *qps[2];
static struct mem own;			/* user memory, the other side of each transfer */
static struct ibv_pd *other_pd;
static uint8_t other_memory[LEN];
static uint8_t scratch[LEN];
static uint8_t ack_timeout = 10;	/* 4 ms: a QP whose peer has failed must find out soon */
static uint64_t dice;

static uint64_t throw(uint64_t sides)
{
	return vt_mix(dice++) % sides;
}

static void make_pair(const char *kind)
{
	struct vt_conn conn = { .type = IBV_QPT_RC, .access = ACCESS, .timeout = ack_timeout, .retry = 7, .rnr_retry = 7 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
					 .cap = { .max_send_wr = BATCH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct vt_addr addr[2];
	int i;

	/*
	 * For each page that is not present the peer retransmits its whole window, which takes a debug kernel some ms.
	 */
	if (!strncmp(kind, "odp", 3) && conn.timeout < 14)
		conn.timeout = 14;
	for (i = 0; i < 2; i++) {
		qps[i] = ibv_create_qp(dev.pd, &init);
		if (!qps[i] || vt_qp_init(qps[i], &conn))
			vt_die("queues");
		addr[i] = (struct vt_addr) { .gid = dev.gid, .qpn = qps[i]->qp_num, .mtu = dev.mtu };
	}
	for (i = 0; i < 2; i++)
		if (vt_qp_connect(&dev, qps[i], &conn, &addr[!i]))
			vt_die("connecting");
}

static void set_up(const char *name)
{
	vt_open(&dev, name, false, -1, 0);
	cq = ibv_create_cq(dev.ctx, 4 * BATCH, NULL, NULL, 0);
	other_pd = ibv_alloc_pd(dev.ctx);
	if (!cq || !other_pd || mem_get(&own, dev.pd, "user", LEN, ACCESS))
		vt_die("set-up");
}

/* Alternating WRITEs and READs: from QP 0 with @m as the remote side, from QP 1 with @m as the local side. */
static void post_batch(const struct mem *m)
{
	int i;

	for (i = 0; i < 2 * BATCH; i++) {
		const struct mem *here = i % 2 ? m : &own, *there = i % 2 ? &own : m;
		struct ibv_sge sge = { .addr = here->addr, .length = LEN / 2, .lkey = here->mr->lkey };
		struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
					  .opcode = i / 2 % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE }, *bad;

		wr.wr.rdma.remote_addr = there->addr + throw(LEN / 2);
		wr.wr.rdma.rkey = there->mr->rkey;
		if (ibv_post_send(qps[i % 2], &wr, &bad))
			vt_die("post_send");
	}
}

/* Waits for all completions of the batch; returns the number of failed requests. */
static int reap(void)
{
	struct ibv_wc wc;
	int i, failed = 0;

	for (i = 0; i < 2 * BATCH; i++) {
		if (!vt_poll(cq, &wc, 20000))
			vt_die("%d of %d requests do not complete", 2 * BATCH - i, 2 * BATCH);
		/* A QP with a local memory error sends nothing more, and the other one's retries run out. */
		if (failed && wc.status == IBV_WC_RETRY_EXC_ERR)
			continue;
		failed += wc.status != IBV_WC_SUCCESS;
		/* A QP that failed does not respond, so the other one's retries may run out. */
		if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR && wc.status != IBV_WC_LOC_PROT_ERR &&
		    wc.status != IBV_WC_REM_ACCESS_ERR && wc.status != IBV_WC_RETRY_EXC_ERR)
			vt_die("a request completes with: %s", ibv_wc_status_str(wc.status));
	}
	return failed;
}

static void sleep_us(uint64_t us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };

	nanosleep(&ts, NULL);
}

/* Reregisters the region with other memory, and sometimes another PD or fewer access flags. */
static int rereg(struct mem *m)
{
	bool pd = throw(2), access = throw(2);

	return ibv_rereg_mr(m->mr, IBV_REREG_MR_CHANGE_TRANSLATION | (pd ? IBV_REREG_MR_CHANGE_PD : 0) |
			    (access ? IBV_REREG_MR_CHANGE_ACCESS : 0), pd ? other_pd : NULL, other_memory, LEN,
			    access ? IBV_ACCESS_LOCAL_WRITE : 0);
}

static int leave(struct mem *m)
{
	(void)m;
	return mem_client_leaves();
}

static const struct how {
	const char *name;
	int (*take)(struct mem *m);
	bool poisons;		/* fills the old memory with FAKE_GPU_POISON itself */
} hows[] = {
	{ "move", mem_move, true }, { "leave", leave, false }, { "dereg", mem_dereg, false }, { "rereg", rereg, false },
};

/* Removes the memory during the batch and fills it with a pattern that must stay. */
static void take_away(struct mem *m, const struct how *how)
{
	if (how->take(m))
		vt_die("removing the memory");
	if (how->poisons)
		return;
	memset(scratch, FAKE_GPU_POISON, LEN);
	mem_write(m, 0, scratch, LEN);
}

static bool untouched(struct mem *m)
{
	size_t i;

	mem_read(m, 0, scratch, LEN);
	for (i = 0; i < LEN && scratch[i] == FAKE_GPU_POISON; i++)
		;
	return i == LEN;
}

/* Returns the number of failed requests. */
static int go_round(const char *kind, const struct how *how)
{
	struct mem m;
	int err = mem_get(&m, dev.pd, kind, LEN, ACCESS), failed;

	if (err == ENODEV)
		vt_skip("this kind of memory does not exist here");
	if (err)
		vt_die("%s memory: %s", kind, strerror(err));
	make_pair(kind);
	post_batch(&m);
	if (throw(4))
		sleep_us(throw(3000));
	take_away(&m, how);
	failed = reap();
	/* Peer memory is unmapped from the program, too. */
	if (!(m.peer && how->poisons) && !untouched(&m))
		vt_die("memory was accessed after its removal");
	ibv_destroy_qp(qps[0]);
	ibv_destroy_qp(qps[1]);
	mem_put(&m);
	return failed;
}

static void rounds(const char *name, const char *kind, const char *way, int n)
{
	const struct how *how = NULL;
	int i, hit = 0;

	for (i = 0; i < (int)(sizeof(hows) / sizeof(*hows)); i++)
		if (!strcmp(hows[i].name, way))
			how = &hows[i];
	if (!how)
		vt_die("unknown way to remove memory: %s", way);
	set_up(name);
	/* On a busy machine batches may finish before the removal: run more rounds then. */
	for (i = 0; i < n || (!hit && i < 20 * n); i++)
		hit += go_round(kind, how) > 0;
	mem_put(&own);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(other_pd);
	vt_close(&dev);
	printf("# %s: %d rounds, in %d of them requests failed\n", kind, i, hit);
	if (!hit)
		vt_die("in no round was the memory removed before the batch finished");
}

/* Writes a byte to @started when the first transfers are done. */
static void transfer_for_ever(const char *name, const char *kind, int started)
{
	struct mem m;
	int err, tries;

	ack_timeout = 18;	/* no request may time out here, even on a slow machine */
	set_up(name);
	/*
	 * The fake GPU has little memory, and that of a killed program is freed a little later, when its last file is
	 * closed.
	 */
	for (tries = 0; tries < 300; tries++) {
		err = mem_get(&m, dev.pd, kind, LEN, ACCESS);
		if (!err)
			break;
		sleep_us(100000);
	}
	if (err)
		vt_die("no %s memory: %s", kind, strerror(err));
	make_pair(kind);
	for (;;) {
		post_batch(&m);
		if (reap())
			vt_die("a transfer failed");
		if (started >= 0 && write(started, "", 1) != 1)
			vt_die("write");
		started = -1;
	}
}

/* Every second one is killed during transfers for certain. The others may be at any step before, on a slow machine. */
static void kills(const char *name, const char *kind, int n)
{
	int i, status, started[2];
	pid_t pid;
	char c;

	for (i = 0; i < n; i++) {
		if (pipe(started))
			vt_die("pipe");
		pid = fork();
		if (!pid) {
			close(started[0]);
			transfer_for_ever(name, kind, started[1]);
		}
		close(started[1]);
		if (i % 2)
			sleep_us(20000 + throw(60000));
		else if (read(started[0], &c, 1) == 1)
			sleep_us(throw(20000));
		if (kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid)
			vt_die("killing");
		if (!WIFSIGNALED(status))
			vt_die("it exited before it was killed, status %d", WEXITSTATUS(status));
		close(started[0]);
	}
}

static void remove_bar(const char *file)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, "1", 1) != 1)
		vt_die("%s: %s", file, strerror(errno));
	close(fd);
}

/* After removal of the BAR existing allocations stay until they are freed, without access, and new ones fail. */
static void removed(const char *name, const char *kind, const char *file)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct mem m;
	int i;

	set_up(name);
	i = mem_get(&m, dev.pd, kind, LEN, ACCESS);
	if (i)
		vt_die("%s memory: %s", kind, strerror(i));
	for (i = 0; i < 2; i++) {
		make_pair(kind);
		post_batch(&m);
		if (!i) {
			sleep_us(throw(3000));
			remove_bar(file);
		}
		if (!reap() && i)
			vt_die("it still works after the removal");
		ibv_destroy_qp(qps[0]);
		ibv_destroy_qp(qps[1]);
	}
	if (ibv_memcpy_from_dm(scratch, m.dm, 0, 4096) != ENODEV)
		vt_die("it can be read after the removal");
	if (ibv_alloc_dm(dev.ctx, &attr) || errno != ENODEV)
		vt_die("more can be allocated after the removal: %s", strerror(errno));
	mem_put(&m);
	mem_put(&own);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(other_pd);
	vt_close(&dev);
}

static void hold(const char *name, const char *kind)
{
	struct mem m;
	char c;

	vt_open(&dev, name, false, -1, 0);
	if (mem_get(&m, dev.pd, kind, LEN, ACCESS))
		vt_die("no %s memory", kind);
	puts("held");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *kind = "gpu-moves", *how = "dereg";
	int n = 20, o;

	while ((o = getopt(argc, argv, "d:m:w:n:s:")) != -1) {
		switch (o) {
		case 'd': name = optarg; break;
		case 'm': kind = optarg; break;
		case 'w': how = optarg; break;
		case 'n': n = atoi(optarg); break;
		case 's': dice = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (!strcmp(how, "hold"))
		hold(name, kind);
	else if (!strcmp(how, "kill"))
		kills(name, kind, n);
	else if (how[0] == '/')
		removed(name, kind, how);
	else
		rounds(name, kind, how, n);
	return 0;
}
