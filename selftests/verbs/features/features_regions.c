// SPDX-License-Identifier: GPL-2.0
/* MRs of length zero, zero-based MRs, and MRs with the huge page hint; binds of windows by ibv_wr_*(). A part of features. */
#include "features.h"

#include <errno.h>
#include <string.h>

#define ODP_RIGHTS	((RIGHTS & ~IBV_ACCESS_MW_BIND) | IBV_ACCESS_ON_DEMAND)

/* Posts a request of @len bytes that uses @mr on both sides, at these addresses. */
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
	vt_ok(!wrote && !read && !sent && !got,
	      "region of no bytes%s: WRITE, READ, SEND of length 0 (%d, %d, %d, %d)", what, wrote,
	      read, sent, got);
	wrote = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 0, 1, 0) ? NO_COMPLETION : status_of(p.scq[0], 3000);
	vt_ok(!wrote, "region of no bytes%s: the QP still works", what);
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, at, (uintptr_t)p.buf, 1);
	vt_ok(wrote == IBV_WC_LOC_PROT_ERR, "region of no bytes%s: sending one byte is refused (%d)", what, wrote);
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
	      "region of no bytes%s: writing one byte is refused (%d)", what, wrote);
	pair_close(&p);
}

#define AT	4096
#define LEN	5000

static void zero_based(struct vt_dev *d, unsigned int rights, size_t off, const char *what)
{
	enum ibv_wc_status wrote, read, sent, got;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	mr = ibv_reg_mr(d->pd, p.buf + off, LEN, rights | IBV_ACCESS_ZERO_BASED);
	vt_ok(mr, "zero-based region%s: registered", what);
	if (!mr)
		return pair_close(&p);
	memset(p.buf + off, 0, LEN + 1);
	memset(p.buf + off, 0x5a, 100);
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, 0, LEN - 100, 100);
	vt_ok(!wrote && !p.buf[off + LEN - 101] && p.buf[off + LEN - 100] == 0x5a && p.buf[off + LEN - 1] == 0x5a &&
	      !p.buf[off + LEN], "zero-based region%s: WRITE from its first to its last bytes (%d)", what, wrote);
	read = through(&p, mr, IBV_WR_RDMA_READ, 200, 0, 100);
	vt_ok(!read && !p.buf[off + 199] && p.buf[off + 200] == 0x5a && p.buf[off + 299] == 0x5a && !p.buf[off + 300],
	      "zero-based region%s: READ into it (%d)", what, read);
	sent = receive_into(&p, mr, 1000, 100) ? through(&p, mr, IBV_WR_SEND, 0, 0, 100) : NO_COMPLETION;
	got = status_of(p.rcq[1], 3000);
	vt_ok(!sent && !got && p.buf[off + 1000] == 0x5a && !p.buf[off + 1100], "zero-based region%s: SEND into it (%d, %d)",
	      what, sent, got);
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, 0, LEN - 99, 100);
	vt_ok(refused_by_peer(wrote, IBV_WC_REM_ACCESS_ERR) && !p.buf[off + LEN],
	      "zero-based region%s: one byte past its end is refused (%d)", what, wrote);
	pair_close(&p);

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	ibv_dereg_mr(mr);
	mr = ibv_reg_mr(d->pd, p.buf + off, LEN, rights | IBV_ACCESS_ZERO_BASED);
	wrote = mr ? through(&p, mr, IBV_WR_RDMA_WRITE, 0, (uintptr_t)p.buf + off, 1) : NO_COMPLETION;
	vt_ok(refused_by_peer(wrote, IBV_WC_REM_ACCESS_ERR),
	      "zero-based region%s: its virtual address is refused (%d)", what,
	      wrote);
	if (mr)
		ibv_dereg_mr(mr);
	pair_close(&p);
}

/* IBV_ACCESS_ZERO_BASED is an access flag: rereg_mr changes the addresses to offsets, or back. */
static void zero_based_again(struct vt_dev *d)
{
	enum ibv_wc_status wrote;
	struct ibv_mr *mr;
	struct pair p;
	uint64_t at;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	at = (uintptr_t)p.buf + AT;
	mr = ibv_reg_mr(d->pd, p.buf + AT, LEN, RIGHTS | IBV_ACCESS_ZERO_BASED);
	if (!mr) {
		vt_ok(false, "zero-based region: reg_mr: %s", strerror(errno));
		return pair_close(&p);
	}
	err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS);
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, at, at + LEN - 1, 1);
	vt_ok(!err && !wrote, "rereg_mr: no longer zero-based (%d, %d)", err, wrote);
	err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS | IBV_ACCESS_ZERO_BASED);
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, 0, LEN - 1, 1);
	vt_ok(!err && !wrote, "rereg_mr: zero-based again (%d, %d)", err, wrote);
	err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.buf + 3 * AT, 2 * LEN, 0);
	p.buf[3 * AT] = 0x5a;
	p.buf[3 * AT + 2 * LEN - 1] = 0;
	wrote = through(&p, mr, IBV_WR_RDMA_WRITE, 0, 2 * LEN - 1, 1);
	vt_ok(!err && !wrote && p.buf[3 * AT + 2 * LEN - 1] == 0x5a,
	      "rereg_mr: other memory, still zero-based (%d, %d)", err,
	      wrote);
	ibv_dereg_mr(mr);
	pair_close(&p);
}

/* IBV_ACCESS_HUGETLB says that the memory is of huge pages. It is a hint, right or wrong, as with adapters. */
static void hugetlb_hint(struct vt_dev *d)
{
	enum ibv_wc_status before, after;
	struct ibv_mr *mr;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	mr = ibv_reg_mr(d->pd, p.buf, BUF, RIGHTS | IBV_ACCESS_HUGETLB);
	if (!mr) {
		vt_ok(false, "a region with the huge page hint: %s", strerror(errno));
		return pair_close(&p);
	}
	before = through(&p, mr, IBV_WR_RDMA_WRITE, (uintptr_t)p.buf, (uintptr_t)p.buf + LEN, 64);
	err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS | IBV_ACCESS_HUGETLB);
	after = through(&p, mr, IBV_WR_RDMA_WRITE, (uintptr_t)p.buf, (uintptr_t)p.buf + LEN, 64);
	vt_ok(!before && !err && !after, "a region with the huge page hint, registered and reregistered (%d, %d, %d)", before,
	      err, after);
	ibv_dereg_mr(mr);
	pair_close(&p);
}

static void window_on_zero_based(struct vt_dev *d)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr bind, *bad;
	enum ibv_wc_status got;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	mr = ibv_reg_mr(d->pd, p.buf + AT, LEN, RIGHTS | IBV_ACCESS_ZERO_BASED);
	if (mr && mw) {
		bind = (struct ibv_send_wr) {
			.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
			.bind_mw = { mw, ibv_inc_rkey(mw->rkey), { mr, 0, LEN, IBV_ACCESS_REMOTE_READ } },
		};
		got = ibv_post_send(p.qp[1], &bind, &bad) ? NO_COMPLETION : status_of(p.scq[1], 3000);
		vt_ok(got == IBV_WC_MW_BIND_ERR, "zero-based region: a window cannot be bound to it (%d)", got);
	} else {
		vt_ok(false, "zero-based region: a window: %s", strerror(errno));
	}
	if (mr)
		ibv_dereg_mr(mr);
	if (mw)
		ibv_dealloc_mw(mw);
	pair_close(&p);
}

static int bind_type_1(struct pair *p, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, addr, 64, IBV_ACCESS_REMOTE_READ },
	};

	return ibv_bind_mw(p->qp[1], mw, &bind);
}

/* ibv_bind_mw() refuses a zero-based region at once. rereg_mr may have made it one, or an ordinary one. */
static void window_on_reregistered(struct vt_dev *d)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_1);
	struct ibv_mr *ordinary, *zero_based;
	int err, got;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	ordinary = ibv_reg_mr(d->pd, p.buf + AT, LEN, RIGHTS | IBV_ACCESS_ZERO_BASED);
	zero_based = ibv_reg_mr(d->pd, p.buf + AT, LEN, RIGHTS);
	if (!mw || !ordinary || !zero_based)
		vt_die("regions and a window");
	err = ibv_rereg_mr(ordinary, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS) |
	      ibv_rereg_mr(zero_based, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS | IBV_ACCESS_ZERO_BASED);
	got = bind_type_1(&p, mw, ordinary, (uintptr_t)p.buf + AT) ?: (int)status_of(p.scq[1], 3000);
	vt_ok(!err && !got, "MW type 1: bound to a region that was zero-based before rereg_mr (%d, %d)", err, got);
	got = bind_type_1(&p, mw, zero_based, 0);
	vt_ok(got == EINVAL && status_of(p.scq[1], 100) == NO_COMPLETION && state_of(p.qp[1]) == IBV_QPS_RTS,
	      "MW type 1: a region that rereg_mr made zero-based is refused at once (%d)", got);
	ibv_dealloc_mw(mw);
	ibv_dereg_mr(ordinary);
	ibv_dereg_mr(zero_based);
	pair_close(&p);
}

static struct ibv_qp *connected_to_itself(struct vt_dev *d, struct ibv_cq *cq, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 }, .pd = d->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = ops,
	};
	const struct vt_conn conn = { .type = IBV_QPT_RC, .timeout = 14, .retry = 7, .rnr_retry = 7, .access = RIGHTS };
	struct vt_addr addr = { .gid = d->gid, .mtu = d->mtu };
	struct ibv_qp *qp = ibv_create_qp_ex(d->ctx, &init);

	if (!qp)
		vt_die("a QP with ibv_wr_*: %s", strerror(errno));
	addr.qpn = qp->qp_num;
	if (vt_qp_init(qp, &conn) || vt_qp_connect(d, qp, &conn, &addr))
		vt_die("connecting a QP to itself");
	return qp;
}

/* A bind that is given up, or fails with other requests of its list, leaves the R_Keys that the program reads. */
static void bind_given_up(struct vt_dev *d)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2), *other = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 8, NULL, NULL, 0);
	uint32_t key, other_key, first;
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *q;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t buf[64];
	int err;

	mr = ibv_reg_mr(d->pd, buf, sizeof(buf), RIGHTS);
	if (!mw || !other || !cq || !mr)
		vt_die("objects for binds by ibv_wr_bind_mw()");
	qp = connected_to_itself(d, cq, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV);
	q = ibv_qp_to_qp_ex(qp);
	info = (struct ibv_mw_bind_info) { mr, (uintptr_t)buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE };
	first = ibv_inc_rkey(mw->rkey);
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(q);
	ibv_wr_bind_mw(q, mw, first, &info);
	err = ibv_wr_complete(q);
	vt_ok(!err && status_of(cq, 3000) == IBV_WC_SUCCESS, "MW type 2: bound by ibv_wr_bind_mw() (error %d)", err);
	key = mw->rkey;
	other_key = other->rkey;
	ibv_wr_start(q);
	ibv_wr_bind_mw(q, mw, first + 5, &info);
	ibv_wr_bind_mw(q, other, other_key + 5, &info);
	ibv_wr_bind_mw(q, mw, first + 6, &info);
	ibv_wr_abort(q);
	vt_ok(mw->rkey == key && other->rkey == other_key, "MW type 2: ibv_wr_abort() after binds keeps the R_Keys");
	ibv_wr_start(q);
	ibv_wr_bind_mw(q, mw, first + 5, &info);
	info.mr = NULL;
	ibv_wr_bind_mw(q, other, other_key + 5, &info);
	err = ibv_wr_complete(q);
	vt_ok(err && mw->rkey == key && other->rkey == other_key,
	      "MW type 2: a list of binds that is refused keeps the R_Keys (error %d)", err);
	ibv_wr_start(q);
	ibv_wr_local_inv(q, first);
	err = ibv_wr_complete(q);
	vt_ok(!err && status_of(cq, 3000) == IBV_WC_SUCCESS, "MW type 2: invalidated under the key that was bound");
	if (ibv_destroy_qp(qp) | ibv_dealloc_mw(mw) | ibv_dealloc_mw(other) | ibv_dereg_mr(mr) | ibv_destroy_cq(cq))
		vt_die("objects of binds by ibv_wr_bind_mw() cannot be destroyed");
}

void test_regions(struct vt_dev *d)
{
	const bool odp = d->attr.odp_caps.general_caps & IBV_ODP_SUPPORT;

	of_no_bytes(d, RIGHTS, AT, "");
	of_no_bytes(d, RIGHTS, AT + 24, ", within a page");
	zero_based(d, RIGHTS, AT, "");
	zero_based(d, RIGHTS, AT + 24, ", within a page");
	if (odp) {
		of_no_bytes(d, ODP_RIGHTS, AT, ", on demand");
		zero_based(d, ODP_RIGHTS, AT + 24, ", on demand");
	} else {
		vt_ok_skip("regions of no bytes, and zero-based, on demand", "the device has no on-demand paging");
	}
	zero_based_again(d);
	hugetlb_hint(d);
	window_on_zero_based(d);
	window_on_reregistered(d);
	bind_given_up(d);
}
