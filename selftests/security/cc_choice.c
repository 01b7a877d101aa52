// SPDX-License-Identifier: GPL-2.0
/*
 * A program that chooses the congestion control of its QP, by command: reads lines from standard input and answers each
 * by the name of the result. First line: the number of its RC QP, which is connected to itself.
 *	algo NAME	roandv_set_cc()
 *	rate KBPS	ibv_modify_qp_rate_limit()
 *	again		RESET, and connects anew
 *	own NAME	creates a second QP with ROAN_CC=NAME; prints its number
 *	late MS		sends a message to itself, and posts the receive MS milliseconds later; 0: before
 *	fault MS	sends a message to itself from a page that a userfaultfd() supplies MS milliseconds later
 */
#define _GNU_SOURCE
#include "roandv.h"
#include "verbs_test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096

static struct ibv_qp *new_qp(struct vt_dev *d, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

	return ibv_create_qp(d->pd, &a);
}

static int connect_to_itself(struct vt_dev *d, struct ibv_qp *qp)
{
	struct vt_conn c = { .type = IBV_QPT_RC, .timeout = 14, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 12 };
	struct vt_addr self = { .gid = d->gid, .qpn = qp->qp_num, .mtu = d->mtu };

	return vt_qp_init(qp, &c) ?: vt_qp_connect(d, qp, &c, &self);
}

static int again(struct vt_dev *d, struct ibv_qp *qp)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &reset, IBV_QP_STATE) ?: connect_to_itself(d, qp);
}

static int set_rate(struct ibv_qp *qp, int kbps)
{
	struct ibv_qp_rate_limit_attr a = { .rate_limit = kbps };

	return ibv_modify_qp_rate_limit(qp, &a);
}

/* 0 or an errno. RNR NAKs answer the message until then. */
static int receive_late(struct vt_dev *d, struct ibv_qp *qp, struct ibv_cq *cq, int ms)
{
	static char bytes[64];
	struct ibv_mr *mr = ibv_reg_mr(d->pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)bytes, .length = sizeof(bytes), .lkey = mr ? mr->lkey : 0 };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	struct ibv_wc wc;
	int err = mr ? 0 : errno, i;

	if (!err && !ms)
		err = ibv_post_recv(qp, &recv, &bad_recv);
	if (!err)
		err = ibv_post_send(qp, &send, &bad_send);
	usleep(ms * 1000);
	if (!err && ms)
		err = ibv_post_recv(qp, &recv, &bad_recv);
	for (i = 0; !err && i < 2; i++)
		err = vt_poll(cq, &wc, 10000) && wc.status == IBV_WC_SUCCESS ? 0 : EIO;
	return err ?: ibv_dereg_mr(mr);
}

/* A page that is not present until UFFDIO_ZEROPAGE of *@uffd. NULL: errno. */
static void *missing_page(int *uffd)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING, .range.len = PAGE };
	struct uffdio_api api = { .api = UFFD_API };
	void *mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	range.range.start = (uintptr_t)mem;
	if (mem == MAP_FAILED || *uffd < 0 || ioctl(*uffd, UFFDIO_API, &api) || ioctl(*uffd, UFFDIO_REGISTER, &range))
		return NULL;
	return mem;
}

/* 0 or an errno; ENOSYS: the kernel has no userfaultfd(). */
static int send_late(struct vt_dev *d, struct ibv_qp *qp, struct ibv_cq *cq, int ms)
{
	static char bytes[64];
	int uffd, err = 0, i;
	void *mem = missing_page(&uffd);
	struct ibv_mr *from = mem ? ibv_reg_mr(d->pd, mem, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND) : NULL;
	struct ibv_mr *to = from ? ibv_reg_mr(d->pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct uffdio_zeropage zero = { .range = { (uintptr_t)mem, PAGE } };
	struct ibv_sge source = { (uintptr_t)mem, sizeof(bytes), from ? from->lkey : 0 };
	struct ibv_sge target = { (uintptr_t)bytes, sizeof(bytes), to ? to->lkey : 0 };
	struct ibv_send_wr send = { .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct ibv_recv_wr recv = { .sg_list = &target, .num_sge = 1 }, *bad_recv;
	struct ibv_wc wc;

	if (!to)
		return errno;
	err = ibv_post_recv(qp, &recv, &bad_recv) ?: ibv_post_send(qp, &send, &bad_send);
	usleep(ms * 1000);
	if (!err && ioctl(uffd, UFFDIO_ZEROPAGE, &zero))
		err = errno;
	for (i = 0; !err && i < 2; i++)
		err = vt_poll(cq, &wc, 10000) && wc.status == IBV_WC_SUCCESS ? 0 : EIO;
	close(uffd);
	err = err ?: ibv_dereg_mr(from) ?: ibv_dereg_mr(to);
	munmap(mem, PAGE);
	return err;
}

int main(int argc, char **argv)
{
	struct ibv_qp *qp, *second;
	struct ibv_cq *cq;
	struct vt_dev d;
	char line[64];
	int err;

	if (argc != 2)
		return 2;
	vt_open(&d, argv[1], false, -1, 0);
	cq = ibv_create_cq(d.ctx, 16, NULL, NULL, 0);
	qp = cq ? new_qp(&d, cq) : NULL;
	if (!qp || connect_to_itself(&d, qp))
		vt_die("QP: %s", strerror(errno));
	setlinebuf(stdout);
	printf("%u\n", qp->qp_num);
	while (fgets(line, sizeof(line), stdin)) {
		char *word = strtok(line, " \n"), *value = strtok(NULL, " \n");

		if (!word)
			continue;
		if (!strcmp(word, "again")) {
			err = again(&d, qp);
		} else if (value && !strcmp(word, "algo")) {
			err = roandv_set_cc(qp, value);
		} else if (value && !strcmp(word, "rate")) {
			err = set_rate(qp, atoi(value));
		} else if (value && !strcmp(word, "late")) {
			err = receive_late(&d, qp, cq, atoi(value));
		} else if (value && !strcmp(word, "fault")) {
			err = send_late(&d, qp, cq, atoi(value));
		} else if (value && !strcmp(word, "own")) {
			setenv("ROAN_CC", value, 1);
			second = new_qp(&d, cq);
			if (!second || connect_to_itself(&d, second))
				vt_die("QP: %s", strerror(errno));
			printf("%u\n", second->qp_num);
			continue;
		} else {
			return 2;
		}
		puts(err ? strerrorname_np(err) : "done");
	}
	return VT_PASS;
}
