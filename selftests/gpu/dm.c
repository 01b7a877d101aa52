// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory (ibv_alloc_dm): size limit, no data of a previous owner, bounds of copies, errors of region
 * registration, and a memory window over it, used by a QP connected to itself.
 *   dm -d DEV -l LIMIT		maximum number of bytes that can be allocated
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "../verbs/verbs_test.h"

#define LEN	(40 * 1024)

static struct vt_dev dev;
static uint8_t bytes[LEN], back[LEN];

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	errno = 0;
	return ibv_alloc_dm(dev.ctx, &attr);
}

static void is_clean(void)
{
	static const uint8_t none[LEN];
	struct ibv_dm *dm[2] = { alloc(LEN), alloc(LEN) };
	int i;

	vt_ok(dm[0] && dm[1], "two allocations of %d bytes: %s", LEN, strerror(errno));
	for (i = 0; i < 2; i++) {
		vt_fill(bytes, LEN, i + 1, 0);
		vt_ok(!ibv_memcpy_to_dm(dm[i], 0, bytes, LEN), "allocation %d is written", i);
	}
	for (i = 0; i < 2; i++)
		vt_ok(!ibv_memcpy_from_dm(back, dm[i], 0, LEN) && vt_diff(back, LEN, i + 1, 0) == LEN,
		      "allocation %d has its own bytes", i);
	ibv_free_dm(dm[0]);
	dm[0] = alloc(LEN);
	vt_ok(dm[0] && !ibv_memcpy_from_dm(back, dm[0], 0, LEN) && !memcmp(back, none, LEN), "a new allocation is zeroed");
	vt_ok(!ibv_memcpy_from_dm(back, dm[1], 0, LEN) && vt_diff(back, LEN, 2, 0) == LEN, "the other allocation is unchanged");
	ibv_free_dm(dm[0]);
	ibv_free_dm(dm[1]);
}

static void stays_inside(void)
{
	struct ibv_dm *dm = alloc(LEN);
	struct ibv_mr *mr;

	vt_ok(ibv_memcpy_to_dm(dm, LEN - 4, bytes, 8) == EINVAL, "a copy past the end is EINVAL");
	vt_ok(ibv_memcpy_from_dm(back, dm, -8ull, 16) == EINVAL, "a copy from before the start is EINVAL");
	vt_ok(ibv_memcpy_from_dm(back, dm, 2, 4) == EINVAL, "a copy that is not word-aligned is EINVAL");
	vt_ok(!ibv_reg_dm_mr(dev.pd, dm, 4096, LEN - 4095, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE), "a region past the end is refused");
	mr = ibv_reg_dm_mr(dev.pd, dm, 4096, LEN - 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	vt_ok(mr && ibv_free_dm(dm) == EBUSY, "free_dm is EBUSY while a region uses it");
	vt_ok(mr && !ibv_dereg_mr(mr) && !ibv_free_dm(dm), "and succeeds without the region");
}

/* An RC QP connected to itself. */
static struct ibv_qp *own_qp(struct ibv_cq *cq)
{
	struct vt_conn c = { .type = IBV_QPT_RC, .access = IBV_ACCESS_REMOTE_WRITE, .timeout = 14, .retry = 7, .rnr_retry = 7 };
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &a);
	struct vt_addr self = { .gid = dev.gid, .mtu = dev.mtu };

	if (!qp)
		vt_die("create_qp");
	self.qpn = qp->qp_num;
	if (vt_qp_init(qp, &c) || vt_qp_connect(&dev, qp, &c, &self))
		vt_die("connect");
	return qp;
}

static bool done(struct ibv_qp *qp, struct ibv_send_wr wr, enum ibv_wc_status status)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	return !ibv_post_send(qp, &wr, &bad) && vt_poll(qp->send_cq, &wc, 10000) && wc.status == status;
}

static void is_lent(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 8, NULL, NULL, 0);
	struct ibv_mw *mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
	struct ibv_mr *src = ibv_reg_mr(dev.pd, bytes, LEN, 0);
	struct ibv_dm *dm = alloc(LEN);
	struct ibv_mr *mr = dm ? ibv_reg_dm_mr(dev.pd, dm, 4096, 8192, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
					       IBV_ACCESS_MW_BIND) : NULL;
	struct ibv_qp *qp = own_qp(cq);
	struct ibv_sge sge = { (uintptr_t)bytes, 2000, src ? src->lkey : 0 };
	struct ibv_send_wr bind = { .opcode = IBV_WR_BIND_MW };
	struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };

	if (!mw || !src || !mr)
		vt_die("a window and two regions");
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = write.wr.rdma.rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info) { mr, 4000, 2000, IBV_ACCESS_REMOTE_WRITE };
	write.wr.rdma.remote_addr = 4000;
	vt_fill(bytes, LEN, 3, 0);
	vt_ok(done(qp, bind, IBV_WC_SUCCESS), "a memory window is bound to a part of it");
	vt_ok(done(qp, write, IBV_WC_SUCCESS) && !ibv_memcpy_from_dm(back, dm, 8092, 2008) && !memcmp(back + 4, bytes, 2000) &&
	      !back[3] && !back[2004], "the window is written to its last byte");
	vt_ok(ibv_dereg_mr(mr) == EBUSY, "dereg_mr is EBUSY while a window is bound");
	write.wr.rdma.remote_addr++;
	vt_ok(done(qp, write, IBV_WC_REM_ACCESS_ERR), "a write one byte past the window is refused");
	vt_ok(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr) && !ibv_free_dm(dm), "without the window region and memory can be freed");
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(src);
}

int main(int argc, char **argv)
{
	size_t limit = 64 << 20;
	struct ibv_dm *dm;
	int o;

	while ((o = getopt(argc, argv, "d:l:")) != -1) {
		switch (o) {
		case 'd': vt_open(&dev, optarg, false, -1, 0); break;
		case 'l': limit = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (!dev.ctx)
		return 2;
	is_clean();
	stays_inside();
	is_lent();
	vt_ok(!alloc(limit + 1) && errno == ENOMEM, "more than the limit is ENOMEM: %s", strerror(errno));
	dm = alloc(limit);
	vt_ok(!!dm, "an allocation of the whole limit: %s", strerror(errno));
	if (dm)
		ibv_free_dm(dm);
	vt_close(&dev);
	return vt_done();
}
