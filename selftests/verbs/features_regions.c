// SPDX-License-Identifier: GPL-2.0
/* Regions that are unlike others: of no bytes. A part of features. */
#include "features.h"

#define ODP_RIGHTS	((RIGHTS & ~IBV_ACCESS_MW_BIND) | IBV_ACCESS_ON_DEMAND)

/* A request of @len bytes that names @mr on both sides, at these addresses. */
static enum ibv_wc_status through(struct pair *p, const struct ibv_mr *mr, enum ibv_wr_opcode op, uint64_t local,
				  uint64_t remote, uint32_t len)
{
	struct ibv_sge sge = { .addr = local, .length = len, .lkey = mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { remote, mr->rkey },
	};

	return post(p, 0, wr) ? NO_COMPLETION : status_of(p->scq[0], 3000);
}

static bool receive_into(struct pair *p, const struct ibv_mr *mr, uint64_t addr, uint32_t len)
{
	struct ibv_sge sge = { .addr = addr, .length = len, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return !ibv_post_recv(p->qp[1], &wr, &bad);
}

static void of_no_bytes(struct vt_dev *d, unsigned int rights, size_t off, const char *what)
{
	enum ibv_wc_status wrote, read, sent, got;
	struct ibv_mr *mr;
	struct pair p;
	uint64_t at;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	at = (uintptr_t)p.buf + off;
	mr = ibv_reg_mr(d->pd, p.buf + off, 0, rights);
	vt_ok(mr, "region of no bytes%s: registered", what);
	if (!mr)
		return pair_close(&p);
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, at, at, 0);
	read = through(&p, mr, IBV_WR_RDMA_READ, at, at, 0);
	sent = receive_into(&p, mr, at, 0) ? through(&p, mr, IBV_WR_SEND, at, 0, 0) : NO_COMPLETION;
	got = status_of(p.rcq[1], 3000);
	vt_ok(!wrote && !read && !sent && !got, "region of no bytes%s: WRITE, READ, SEND of none (%d, %d, %d, %d)", what, wrote,
	      read, sent, got);
	wrote = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 0, 1, 0) ? NO_COMPLETION : status_of(p.scq[0], 3000);
	vt_ok(!wrote, "region of no bytes%s: the QP works on", what);
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, at, (uintptr_t)p.buf, 1);
	vt_ok(wrote == IBV_WC_LOC_PROT_ERR, "region of no bytes%s: has not one byte to send (%d)", what, wrote);
	vt_ok(!ibv_dereg_mr(mr), "region of no bytes%s: deregistered", what);
	pair_close(&p);

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	at = (uintptr_t)p.buf + off;
	mr = ibv_reg_mr(d->pd, p.buf + off, 0, rights);
	p.buf[off] = 1;
	if (mr) {
		struct ibv_sge sge = sge_at(&p, 0, 1);
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { at, mr->rkey },
		};

		wrote = post(&p, 0, wr) ? NO_COMPLETION : status_of(p.scq[0], 3000);
		ibv_dereg_mr(mr);
	}
	vt_ok(mr && refused_by_peer(wrote, IBV_WC_REM_ACCESS_ERR) && p.buf[off] == 1,
	      "region of no bytes%s: has not one byte to write to (%d)", what, wrote);
	pair_close(&p);
}

#define AT	4096

void test_regions(struct vt_dev *d)
{
	const bool odp = d->attr.odp_caps.general_caps & IBV_ODP_SUPPORT;

	of_no_bytes(d, RIGHTS, AT, "");
	of_no_bytes(d, RIGHTS, AT + 24, ", within a page");
	if (odp)
		of_no_bytes(d, ODP_RIGHTS, AT, ", on demand");
	else
		vt_ok_skip("regions of no bytes, on demand", "the device has no on-demand paging");
}
