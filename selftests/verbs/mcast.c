// SPDX-License-Identifier: GPL-2.0
/*
 * UD multicast without rdma_cm, which refuses IPv6 groups on RoCE v2. -r: receives on QPs attached to the group and on
 * one that is not. -s: sends datagrams to the group. -o: members send to the group, one of them without its own copies.
 *	mcast -d DEV -m GROUP [-6 | -g GID-INDEX] [-n COUNT] (-r MEMBERS | -s | -o)
 */
#include "verbs_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN	200
#define OTHER_LID	0xc001
#define SEED	0x6d63617374ull

static struct ibv_qp *ud_qp_with(struct vt_dev *d, struct ibv_cq *cq, int depth, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { depth, depth, 1, 1, 0 }, .pd = d->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0),
		.create_flags = create_flags,
	};
	struct vt_conn c = { .type = IBV_QPT_UD };
	struct vt_addr nobody = { 0 };
	struct ibv_qp *qp = ibv_create_qp_ex(d->ctx, &a);

	if (!qp || vt_qp_init(qp, &c) || vt_qp_connect(d, qp, &c, &nobody))
		vt_die("UD QP: %s", strerror(errno));
	return qp;
}

static struct ibv_qp *ud_qp(struct vt_dev *d, struct ibv_cq *cq, int depth)
{
	return ud_qp_with(d, cq, depth, 0);
}

/* A hop limit of 1: routers must not forward the datagrams. */
static struct ibv_ah *group_ah(struct vt_dev *d, const union ibv_gid *group)
{
	struct ibv_ah_attr a = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *group, .sgid_index = d->gid_index, .hop_limit = 1 },
	};

	return ibv_create_ah(d->pd, &a);
}

/* The hop limit or TTL in a received network header. */
static uint8_t hops_left(const uint8_t grh[40])
{
	return grh[0] >> 4 == 6 ? grh[7] : grh[28];
}

static void send_all(struct vt_dev *d, const union ibv_gid *group, int count)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 64, NULL, NULL, 0);
	uint8_t buf[LEN];
	struct ibv_mr *mr = ibv_reg_mr(d->pd, buf, LEN, 0);
	struct ibv_ah *ah = group_ah(d, group);
	struct ibv_qp *qp;
	struct ibv_sge sge = { (uintptr_t)buf, LEN, mr ? mr->lkey : 0 };
	struct ibv_wc wc;
	int i;

	if (!cq || !ah || !mr)
		vt_die("objects: %s", strerror(errno));
	qp = ud_qp(d, cq, 64);
	for (i = 0; i < count; i++) {
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
			.imm_data = htonl(i), .wr.ud = { ah, 0xffffff, VT_QKEY },
		}, *bad;

		vt_fill(buf, LEN, SEED + i, 0);
		if (ibv_post_send(qp, &wr, &bad) || !vt_poll(cq, &wc, 20000) || wc.status)
			vt_die("send %d", i);
		usleep(2000);
	}
	if (ibv_destroy_qp(qp) || ibv_destroy_ah(ah) || ibv_dereg_mr(mr) || ibv_destroy_cq(cq))
		vt_die("destroy");
}

static void receive_all(struct vt_dev *d, const union ibv_gid *group, int members, int count)
{
	int i, k, n = members + 1, got = 0;
	struct ibv_cq *cq[8];
	struct ibv_qp *qp[8];
	size_t size = (size_t)n * count * 256;
	uint8_t *buf = calloc(1, size);
	struct ibv_mr *mr = ibv_reg_mr(d->pd, buf, size, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	if (!mr)
		vt_die("reg_mr");
	for (k = 0; k < n; k++) {
		cq[k] = ibv_create_cq(d->ctx, count + 1, NULL, NULL, 0);
		qp[k] = ud_qp(d, cq[k], count);
		for (i = 0; i < count; i++) {
			struct ibv_sge sge = { (uintptr_t)buf + (k * count + i) * 256, 256, mr->lkey };
			struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

			if (ibv_post_recv(qp[k], &wr, &bad))
				vt_die("post_recv");
		}
	}
	/* RoCE ignores the LID, but the RDMA core does not: the two are one membership, and each needs its detach. */
	for (k = 0; k < members; k++)
		if (ibv_attach_mcast(qp[k], group, 0) || ibv_attach_mcast(qp[k], group, OTHER_LID))
			vt_die("attach: %s", strerror(errno));
	puts("joined");
	fflush(stdout);
	for (i = 0; i < count; i++)
		for (k = 0; k < members; k++, got++) {
			if (!vt_poll(cq[k], &wc, 60000) || wc.status)
				vt_die("member %d: datagram %d did not come", k, i);
			if (wc.byte_len != LEN + 40 || ntohl(wc.imm_data) != (uint32_t)i || !(wc.wc_flags & IBV_WC_GRH) ||
			    vt_diff(buf + (k * count + wc.wr_id) * 256 + 40, LEN, SEED + i, 0) != LEN)
				vt_die("member %d: datagram %d is wrong", k, i);
			if (hops_left(buf + (k * count + wc.wr_id) * 256) != 1)
				vt_die("member %d: datagram %d has a hop limit of %u, not 1", k, i,
				       hops_left(buf + (k * count + wc.wr_id) * 256));
		}
	if (vt_poll(cq[members], &wc, 200))
		vt_die("a QP that is not attached got a datagram");
	for (k = 0; k < members; k++)
		if (ibv_detach_mcast(qp[k], group, OTHER_LID) || ibv_detach_mcast(qp[k], group, 0))
			vt_die("detach: %s", strerror(errno));
	if (!ibv_detach_mcast(qp[0], group, 0))
		vt_die("a second detach succeeded");
	for (k = 0; k < n; k++)
		if (ibv_destroy_qp(qp[k]) || ibv_destroy_cq(cq[k]))
			vt_die("destroy");
	ibv_dereg_mr(mr);
	free(buf);
	printf("%d datagrams to %d members\n", got, members);
}

/*
 * Each of two members sends in turn. Both get what the other has sent; only the second one its own datagrams. It receives
 * into pages that are not present: it is the first to get a datagram, which then waits for the page.
 */
static void without_own(struct vt_dev *d, const union ibv_gid *group)
{
	static uint8_t buf[256];
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *absent = mmap(NULL, 32 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(d->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *odp = ibv_reg_mr(d->pd, absent, 32 * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge out = { (uintptr_t)buf, LEN, mr ? mr->lkey : 0 };
	struct ibv_ah *ah = group_ah(d, group);
	int i, k, got[2] = { 0 };
	struct ibv_qp *qp[2];
	struct ibv_cq *cq[2];
	struct ibv_wc wc;

	if (!mr || !odp || !ah)
		vt_die("objects: %s", strerror(errno));
	for (k = 0; k < 2; k++) {
		cq[k] = ibv_create_cq(d->ctx, 64, NULL, NULL, 0);
		qp[k] = ud_qp_with(d, cq[k], 32, k ? 0 : IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
		for (i = 0; i < 32; i++) {
			struct ibv_sge sge = { (uintptr_t)(k ? absent + i * page : buf), sizeof(buf), k ? odp->lkey : mr->lkey };

			if (ibv_post_recv(qp[k], &(struct ibv_recv_wr) { .sg_list = &sge, .num_sge = 1 },
					  &(struct ibv_recv_wr *) { NULL }))
				vt_die("post_recv");
		}
		if (ibv_attach_mcast(qp[k], group, 0))
			vt_die("attach: %s", strerror(errno));
	}
	for (i = 0; i < 10; i++) {
		struct ibv_send_wr wr = {
			.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = { ah, 0xffffff, VT_QKEY },
		}, *bad;

		if (ibv_post_send(qp[i % 2], &wr, &bad))
			vt_die("send %d", i);
		usleep(2000);
	}
	for (k = 1; k >= 0; k--)
		while (vt_poll(cq[k], &wc, got[k] < (k ? 10 : 5) ? 20000 : 200) && !wc.status)
			got[k]++;
	if (got[0] != 5 || got[1] != 10)
		vt_die("%d datagrams and %d in place of 5 and 10", got[0], got[1]);
	for (k = 0; k < 2; k++)
		if (ibv_detach_mcast(qp[k], group, 0) || ibv_destroy_qp(qp[k]) || ibv_destroy_cq(cq[k]))
			vt_die("destroy");
	if (ibv_destroy_ah(ah) || ibv_dereg_mr(mr) || ibv_dereg_mr(odp))
		vt_die("destroy");
	munmap(absent, 32 * page);
}

int main(int argc, char **argv)
{
	const char *name = NULL, *text = NULL;
	bool v6 = false, sender = false, own = false;
	int o, members = 1, count = 10, gid_index = -1;
	union ibv_gid group;
	struct vt_dev d;

	alarm(120);
	while ((o = getopt(argc, argv, "d:m:r:n:g:so6")) != -1) {
		switch (o) {
		case 'd': name = optarg; break;
		case 'm': text = optarg; break;
		case 'r': members = atoi(optarg); break;
		case 'n': count = atoi(optarg); break;
		case 'g': gid_index = atoi(optarg); break;
		case 's': sender = true; break;
		case 'o': own = true; break;
		case '6': v6 = true; break;
		default: return 2;
		}
	}
	if (!text || inet_pton(AF_INET6, text, group.raw) != 1 || members > 7)
		return 2;
	vt_open(&d, name, v6, gid_index, 0);
	if (own)
		without_own(&d, &group);
	else if (sender)
		send_all(&d, &group, count);
	else
		receive_all(&d, &group, members, count);
	vt_close(&d);
	return VT_PASS;
}
