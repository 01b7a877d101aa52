// SPDX-License-Identifier: GPL-2.0
/*
 * Two programs in a ping-pong that poll their memory: each waits for the peer's WRITE without a system call and answers
 * by a WRITE. On one CPU each can make progress only after the other has yielded the CPU.
 *
 *	one_cpu_pingpong -d DEV -D PEER [-n ROUND_TRIPS]
 *
 * Prints how many WRITEs had not arrived when the program first looked: after answering, it should not get the CPU back
 * before the peer has answered. It fails if that is more than one in eight. It does not use the clock.
 */
#include "verbs_test.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct end {
	struct vt_dev dev;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	volatile uint32_t *heard;	/* number of the last WRITE, written by the peer */
	uint32_t said;			/* number of our last WRITE */
};

struct where {
	struct vt_addr addr;
	uint64_t at;
	uint32_t rkey;
	uint32_t pad;
};

static void open_end(struct end *e, const char *name)
{
	vt_open(&e->dev, name, false, -1, 0);
	e->cq = ibv_create_cq(e->dev.ctx, 16, NULL, NULL, 0);
	e->heard = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	e->mr = e->heard == MAP_FAILED ? NULL : ibv_reg_mr(e->dev.pd, (void *)e->heard, 4096,
							   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!e->cq || !e->mr)
		vt_die("objects: %s", strerror(errno));
}

static struct where connect_end(struct end *e, int fd)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 4 },
	};
	const struct vt_conn c = {
		.type = IBV_QPT_RC, .access = IBV_ACCESS_REMOTE_WRITE, .timeout = 14, .retry = 7, .rnr_retry = 7,
	};
	struct where own, peer;
	int err;

	e->qp = ibv_create_qp(e->dev.pd, &init);
	if (!e->qp)
		vt_die("create_qp: %s", strerror(errno));
	own = (struct where) {
		.addr = { .gid = e->dev.gid, .qpn = e->qp->qp_num, .mtu = e->dev.mtu },
		.at = (uintptr_t)e->heard,
		.rkey = e->mr->rkey,
	};
	vt_send(fd, &own, sizeof(own));
	vt_recv(fd, &peer, sizeof(peer));
	err = vt_qp_init(e->qp, &c) ?: vt_qp_connect(&e->dev, e->qp, &c, &peer.addr);
	if (err)
		vt_die("connect: %s", strerror(err));
	vt_send(fd, &err, sizeof(err));		/* ready */
	vt_recv(fd, &err, sizeof(err));
	return peer;
}

static void say(struct end *e, const struct where *peer, uint32_t turn)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&e->said, .length = sizeof(e->said) };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE,
		.wr.rdma = { .remote_addr = peer->at, .rkey = peer->rkey },
	};
	struct ibv_wc wc;
	int err;

	e->said = turn;
	err = ibv_post_send(e->qp, &wr, &bad);
	if (err)
		vt_die("post_send: %s", strerror(err));
	if (!vt_poll(e->cq, &wc, 20000) || wc.status != IBV_WC_SUCCESS)
		vt_die("turn %u: no completion, or a failed one", turn);
}

/* Waits for WRITE @turn. Returns true if it had not arrived at first. */
static bool listen_for(const struct end *e, uint32_t turn)
{
	if (*e->heard == turn)
		return false;
	while (*e->heard != turn)
		;
	return true;
}

/* The side with @first sends odd numbers. Returns how many of the peer's WRITEs had to be waited for. */
static uint32_t converse(const char *name, int fd, bool first, uint32_t turns)
{
	struct end e = {};
	struct where peer;
	uint32_t turn, waited = 0;

	open_end(&e, name);
	peer = connect_end(&e, fd);
	for (turn = 1; turn <= turns; turn++) {
		if (turn % 2 == first)
			say(&e, &peer, turn);
		else
			waited += listen_for(&e, turn);
	}
	vt_send(fd, &turn, sizeof(turn));	/* neither exits before the other has received all */
	vt_recv(fd, &turn, sizeof(turn));
	return waited;
}

int main(int argc, char **argv)
{
	const char *dev = NULL, *peer = NULL;
	uint32_t trips = 500, waited, theirs;
	int fds[2], status, o;
	pid_t pid;

	while ((o = getopt(argc, argv, "d:D:n:")) != -1) {
		switch (o) {
		case 'd': dev = optarg; break;
		case 'D': peer = optarg; break;
		case 'n': trips = strtoul(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (!dev || !peer || !trips || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		vt_die("one_cpu_pingpong -d DEV -D PEER [-n ROUND_TRIPS]");
	pid = fork();
	if (pid < 0)
		vt_die("fork: %s", strerror(errno));
	waited = converse(pid ? dev : peer, fds[!!pid], pid, 2 * trips);
	if (!pid) {
		vt_send(fds[0], &waited, sizeof(waited));
		return VT_PASS;
	}
	vt_recv(fds[1], &theirs, sizeof(theirs));
	if (waitpid(pid, &status, 0) != pid || status)
		vt_die("the other end failed");
	waited += theirs;
	printf("turns %u, polled for %u\n", 2 * trips, waited);
	return waited < trips / 2 ? VT_PASS : VT_FAIL;
}
