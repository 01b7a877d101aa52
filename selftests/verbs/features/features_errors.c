// SPDX-License-Identifier: GPL-2.0
/*
 * Errors of the RC transport as both sides see them: completion statuses of the IBTA, order of the flush, QP states.
 * Each case uses a new pair of QPs.
 */
#include "features.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct refusal {
	const char *name;
	enum ibv_wr_opcode op;
	uint64_t addr_add;	/* added to the region's address */
	uint32_t len, key_xor;
	enum ibv_wc_status local, remote;	/* remote: of the receive posted at the responder */
	unsigned int denied;	/* access flags that the responder's QP does not have */
};

static void refused(struct vt_dev *d, const struct refusal *r)
{
	struct ibv_qp_attr rights = { .qp_access_flags = RIGHTS & ~r->denied };
	enum ibv_wc_status got, flush, other;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	memset(p.buf, 0x11, BUF);
	if (r->denied && ibv_modify_qp(p.qp[1], &rights, IBV_QP_ACCESS_FLAGS))
		vt_die("modify_qp: access flags");
	sge = sge_at(&p, 0, r->len);
	wr = (struct ibv_send_wr) {
		.wr_id = 1, .opcode = r->op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
	};
	if (r->op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)p.buf + r->addr_add;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.rkey = p.mr->rkey ^ r->key_xor;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)p.buf + r->addr_add;
		wr.wr.rdma.rkey = p.mr->rkey ^ r->key_xor;
	}
	err = post_recv(&p, 1, 131072, r->op == IBV_WR_SEND ? 16 : 4096, 9);
	err |= post(&p, 0, wr) | post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0);
	got = status_of(p.scq[0], 5000);
	flush = status_of(p.scq[0], 2000);
	other = status_of(p.rcq[1], r->remote == NO_COMPLETION ? 100 : 2000);
	vt_ok(!err && refused_by_peer(got, r->local),
	      "%s: the requester sees %s (%s)", r->name, ibv_wc_status_str(r->local),
	      ibv_wc_status_str(got));
	vt_ok(flush == IBV_WC_WR_FLUSH_ERR && state_of(p.qp[0]) == IBV_QPS_ERR,
	      "%s: later requests are flushed, the QP is in ERR", r->name);
	if (r->remote != NO_COMPLETION)
		vt_ok(other == r->remote,
		      "%s: the responder's receive sees %s (%s)", r->name, ibv_wc_status_str(r->remote),
		      ibv_wc_status_str(other));
	pair_close(&p);
	while (async_event(d->ctx, 0) >= 0)
		;
}

static const struct refusal refusals[] = {
	{ "WRITE with a wrong key", IBV_WR_RDMA_WRITE, 0, 64, 0x5500, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, 0 },
	{ "WRITE with a stale key", IBV_WR_RDMA_WRITE, 0, 64, 0x55, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, 0 },
	{ "WRITE past the end", IBV_WR_RDMA_WRITE, BUF - 63, 64, 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, 0 },
	{ "WRITE whose range wraps",
	IBV_WR_RDMA_WRITE, -(uint64_t)64, 4096, 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, 0 },
	{ "WRITE with immediate, with a wrong key", IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64, 0x5500, IBV_WC_REM_ACCESS_ERR,
	  IBV_WC_LOC_ACCESS_ERR, 0 },
	{ "WRITE with immediate, of several packets, with a wrong key", IBV_WR_RDMA_WRITE_WITH_IMM, 0, 9000, 0x5500,
	  IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, 0 },
	{ "READ past the end", IBV_WR_RDMA_READ, BUF - 63, 64, 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, 0 },
	{ "unaligned atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR, 0 },
	{ "SEND longer than the receive", IBV_WR_SEND, 0, 64, 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, 0 },
	{ "WRITE that the QP does not allow", IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR,
	  IBV_ACCESS_REMOTE_WRITE },
	{ "WRITE of several packets that the QP does not allow", IBV_WR_RDMA_WRITE, 0, 9000, 0, IBV_WC_REM_INV_REQ_ERR,
	  IBV_WC_WR_FLUSH_ERR, IBV_ACCESS_REMOTE_WRITE },
	{ "WRITE with immediate that the QP does not allow", IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64, 0,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR, IBV_ACCESS_REMOTE_WRITE },
	{ "READ that the QP does not allow", IBV_WR_RDMA_READ, 0, 64, 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR,
	  IBV_ACCESS_REMOTE_READ },
	{ "atomic that the QP does not allow", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, IBV_WC_REM_INV_REQ_ERR,
	  IBV_WC_WR_FLUSH_ERR, IBV_ACCESS_REMOTE_ATOMIC },
};

static void local_error(struct vt_dev *d)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	sge = sge_at(&p, BUF - 8, 16);
	wr = (struct ibv_send_wr) {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,	/* unsignalled */
		.wr.rdma = { (uintptr_t)p.buf, p.mr->rkey },
	};
	err = post(&p, 0, wr);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_LOC_PROT_ERR, "local range: an unsignalled request that fails has a completion");
	vt_ok(state_of(p.qp[0]) == IBV_QPS_ERR, "local range: the RC QP is in error");
	pair_close(&p);
}

/* A request posted behind a failed one must not be executed: its completion says that it was flushed. */
static void local_error_in_a_list(struct vt_dev *d, enum ibv_qp_type type, const char *name)
{
	struct ibv_sge bad = { .length = 8 }, good;
	struct ibv_send_wr wr[2], *first_bad;
	enum ibv_wc_status first, second;
	struct pair p;
	int err;

	pair_open(&p, d, type, 64, NULL);
	memset(p.buf, 0x11, BUF);
	p.buf[0] = 0x22;
	good = sge_at(&p, 0, 8);
	bad.addr = good.addr;
	bad.lkey = good.lkey ^ 0x5500;
	for (int i = 0; i < 2; i++)
		wr[i] = (struct ibv_send_wr) {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = i ? &good : &bad, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p.buf + 4096, p.mr->rkey }, .next = i ? NULL : &wr[1],
		};
	err = ibv_post_send(p.qp[0], wr, &first_bad);
	first = status_of(p.scq[0], 3000);
	second = status_of(p.scq[0], 2000);
	usleep(20000);
	vt_ok(!err && first == IBV_WC_LOC_PROT_ERR && second == IBV_WC_WR_FLUSH_ERR && p.buf[4096] == 0x11,
	      "%s: a WRITE behind one that failed is flushed, and not done (%s)", name, p.buf[4096] == 0x11 ? "no" : "done");
	pair_close(&p);
}

static void to_peer(struct pair *p, int side, struct ibv_ah *ah, struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = p->qp[!side]->qp_num;
	wr->wr.ud.remote_qkey = VT_QKEY;
}

int send_to_peer(struct pair *p, int side, struct ibv_ah *ah, size_t off)
{
	struct ibv_sge sge = sge_at(p, off, 16);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	if (ah)
		to_peer(p, side, ah, &wr);
	return post(p, side, wr);
}

/*
 * UC and UD do not NAK: only the receiver's completion shows the error. The message behind is in the same packet train,
 * and is not received any more: the QP has failed.
 */
static void receive_error(struct vt_dev *d, enum ibv_qp_type type, const char *name)
{
	struct vt_addr self = { .gid = d->gid };
	enum ibv_wc_status first, second;
	struct ibv_send_wr *at, send[2];
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge, data;
	struct ibv_ah *ah = NULL;
	struct pair p;
	int err;

	pair_open(&p, d, type, 64, NULL);
	if (type == IBV_QPT_UD)
		ah = vt_ah(d, &self);
	sge = sge_at(&p, 8192, 64);
	sge.lkey ^= 0x5500;
	wr = (struct ibv_recv_wr) { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	err = ibv_post_recv(p.qp[1], &wr, &bad) | post_recv(&p, 1, 4096, 64, 2);
	data = sge_at(&p, 0, 16);
	for (int i = 0; i < 2; i++) {
		send[i] = (struct ibv_send_wr) {
			.sg_list = &data, .num_sge = 1, .opcode = IBV_WR_SEND, .next = i ? NULL : &send[1],
		};
		if (ah)
			to_peer(&p, 0, ah, &send[i]);
	}
	err |= ibv_post_send(p.qp[0], send, &at);
	first = status_of(p.rcq[1], 3000);
	second = status_of(p.rcq[1], 2000);
	vt_ok(!err && first == IBV_WC_LOC_PROT_ERR && state_of(p.qp[1]) == IBV_QPS_ERR,
	      "%s: a receive with a wrong key completes in error (%s), the QP is in ERR", name, ibv_wc_status_str(first));
	vt_ok(second == IBV_WC_WR_FLUSH_ERR, "%s: the receive behind is flushed, though a message for it arrived (%s)", name,
	      ibv_wc_status_str(second));
	if (ah)
		ibv_destroy_ah(ah);
	pair_close(&p);
}

/*
 * A failed send of a UC or UD QP stops the send queue only: the QP goes to SQE, and modify_qp to RTS recovers it
 * (10.3.1.6).
 */
static void send_queue_error(struct vt_dev *d, enum ibv_qp_type type, const char *name)
{
	struct ibv_qp_attr back = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct vt_addr self = { .gid = d->gid };
	enum ibv_wc_status first, second, third;
	struct ibv_ah *ah = NULL;
	struct pair p;
	int err;

	pair_open(&p, d, type, 64, NULL);
	if (type == IBV_QPT_UD)
		ah = vt_ah(d, &self);
	err = send_to_peer(&p, 0, ah, BUF - 8);
	first = status_of(p.scq[0], 3000);
	vt_ok(!err && first == IBV_WC_LOC_PROT_ERR && state_of(p.qp[0]) == IBV_QPS_SQE, "%s: a failed send, the QP in SQE (%s)",
	      name, ibv_wc_status_str(first));

	err = send_to_peer(&p, 0, ah, 0) | send_to_peer(&p, 0, ah, 0);
	second = status_of(p.scq[0], 2000);
	third = status_of(p.scq[0], 2000);
	vt_ok(!err && second == IBV_WC_WR_FLUSH_ERR && third == IBV_WC_WR_FLUSH_ERR,
	      "%s: sends posted in SQE are flushed", name);

	err = post_recv(&p, 0, 4096, 64, 1) | send_to_peer(&p, 1, ah, 0);
	vt_ok(!err && status_of(p.rcq[0], 3000) == IBV_WC_SUCCESS && state_of(p.qp[0]) == IBV_QPS_SQE,
	      "%s: SQE receives", name);

	err = ibv_modify_qp(p.qp[0], &back, IBV_QP_STATE | IBV_QP_CUR_STATE);
	err |= post_recv(&p, 1, 8192, 64, 2) | send_to_peer(&p, 0, ah, 0);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS && status_of(p.rcq[1], 3000) == IBV_WC_SUCCESS &&
	      state_of(p.qp[0]) == IBV_QPS_RTS, "%s: from SQE back to RTS, it sends", name);
	if (ah)
		ibv_destroy_ah(ah);
	pair_close(&p);
}

/*
 * An opcode that the QP type does not support is posted and completes with LOC_QP_OP_ERR, as on adapters; the QP is in
 * SQE.
 */
static void lacking_op(struct vt_dev *d, enum ibv_qp_type type, enum ibv_wr_opcode op, const char *name)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	enum ibv_wc_status got;
	struct pair p;
	int err;

	pair_open(&p, d, type, 64, NULL);
	memset(p.buf, 0x11, BUF);
	p.buf[0] = 0x22;
	sge = sge_at(&p, 0, 8);
	wr = (struct ibv_send_wr) {
		.wr_id = 1, .opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p.buf + 4096, p.mr->rkey },
	};
	err = post(&p, 0, wr);
	got = err ? NO_COMPLETION : status_of(p.scq[0], 3000);
	vt_ok(!err && got == IBV_WC_LOC_QP_OP_ERR && state_of(p.qp[0]) == IBV_QPS_SQE && p.buf[4096] == 0x11,
	      "%s: posted (error %d), completes as a QP operation error (%s)", name, err,
	      got == NO_COMPLETION ? "not at all" : ibv_wc_status_str(got));
	pair_close(&p);
}

static void lacking_ops(struct vt_dev *d)
{
	lacking_op(d, IBV_QPT_UD, IBV_WR_RDMA_READ, "UD READ");
	lacking_op(d, IBV_QPT_UD, IBV_WR_RDMA_WRITE, "UD WRITE");
	lacking_op(d, IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM, "UD WRITE with immediate");
	lacking_op(d, IBV_QPT_UD, IBV_WR_ATOMIC_CMP_AND_SWP, "UD compare and swap");
	lacking_op(d, IBV_QPT_UD, IBV_WR_ATOMIC_FETCH_AND_ADD, "UD fetch and add");
	lacking_op(d, IBV_QPT_UD, IBV_WR_SEND_WITH_INV, "UD SEND with invalidate");
	lacking_op(d, IBV_QPT_UC, IBV_WR_RDMA_READ, "UC READ");
	lacking_op(d, IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD, "UC fetch and add");
}

static void nobody_there(struct vt_dev *d)
{
	struct vt_conn c = { .timeout = 10, .retry = 2, .rnr_retry = 1, .min_rnr_timer = 1 };
	enum ibv_wc_status got;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, &c);
	ibv_destroy_qp(p.qp[1]);
	p.qp[1] = NULL;
	err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0);
	got = status_of(p.scq[0], 10000);
	vt_ok(!err && got == IBV_WC_RETRY_EXC_ERR, "a destroyed peer: retry exceeded (%s)", ibv_wc_status_str(got));
	pair_close(&p);

	pair_open(&p, d, IBV_QPT_RC, 64, &c);
	err = post_op(&p, 0, IBV_WR_SEND, 0, 0, 8, 0);
	got = status_of(p.scq[0], 10000);
	vt_ok(!err && got == IBV_WC_RNR_RETRY_EXC_ERR,
	      "a peer without receives: RNR retry exceeded (%s)", ibv_wc_status_str(got));
	pair_close(&p);
}

/* RESET while the ACK timer runs: the timer must measure the silence of the next peer. */
static void reset_while_waiting(struct vt_dev *d)
{
	struct vt_conn first = { .timeout = 14, .retry = 7 };
	struct vt_conn next = { .type = IBV_QPT_RC, .timeout = 15 };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct vt_addr gone = { .gid = d->gid, .mtu = d->mtu };
	enum ibv_wc_status got;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, &first);
	gone.qpn = p.qp[1]->qp_num;
	ibv_destroy_qp(p.qp[1]);
	p.qp[1] = NULL;
	err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0) | ibv_modify_qp(p.qp[0], &reset, IBV_QP_STATE);
	err |= vt_qp_init(p.qp[0], &next) | vt_qp_connect(d, p.qp[0], &next, &gone);
	err |= post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0);
	got = status_of(p.scq[0], 10000);
	vt_ok(!err && got == IBV_WC_RETRY_EXC_ERR,
	      "reset while waiting for an ACK, then a destroyed peer: retry exceeded (%s)", ibv_wc_status_str(got));
	pair_close(&p);
}

/*
 * The first WRITE carries no AckReq, as the next packet was to have it. The second one is refused locally, so the
 * requester sends the first again with AckReq, and reports its success before the error.
 */
static void refused_behind_a_good_one(struct vt_dev *d)
{
	const struct vt_conn once = { .timeout = 21, .retry = 0, .rnr_retry = 7, .min_rnr_timer = 1 };
	enum ibv_wc_status first, second;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, &once);
	{
		struct ibv_sge good = sge_at(&p, 0, 1024), bad = { (uintptr_t)p.buf, 600, p.mr->lkey ^ 0x5500 };
		struct ibv_send_wr *at, wr[2] = {
			{ .sg_list = &good, .next = &wr[1] },
			{ .sg_list = &bad },
		};

		for (at = wr; at; at = at->next) {
			at->opcode = IBV_WR_RDMA_WRITE;
			at->num_sge = 1;
			at->send_flags = IBV_SEND_SIGNALED;
			at->wr.rdma.remote_addr = (uintptr_t)p.buf + BUF / 2;
			at->wr.rdma.rkey = p.mr->rkey;
		}
		err = ibv_post_send(p.qp[0], wr, &at);
	}
	first = status_of(p.scq[0], 5000);
	second = status_of(p.scq[0], 5000);
	vt_ok(!err && first == IBV_WC_SUCCESS && second == IBV_WC_LOC_PROT_ERR,
	      "a WRITE, then one with a wrong local key: the first succeeds, the second fails (%s, %s)",
	      ibv_wc_status_str(first),
	      ibv_wc_status_str(second));
	pair_close(&p);
	while (async_event(d->ctx, 0) >= 0)
		;
}

static void flush_order(struct vt_dev *d)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;
	struct pair p;
	int i, err = 0;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	for (i = 0; i < 20; i++)
		err |= post_recv(&p, 0, 0, 64, i);
	err |= ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE);
	for (i = 0; vt_poll(p.rcq[0], &wc, 500) && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == (uint64_t)i; i++)
		;
	vt_ok(!err && i == 20, "flush: %d of 20 receives, in order", i);
	for (i = 20; i < 25; i++)
		err |= post_recv(&p, 0, 0, 64, i) | post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 64, 8, 0);
	for (i = 20; vt_poll(p.rcq[0], &wc, 500) && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == (uint64_t)i; i++)
		;
	vt_ok(!err && i == 25, "flush: receives posted in the error state (%d)", i - 20);
	for (i = 0; status_of(p.scq[0], 500) == IBV_WC_WR_FLUSH_ERR; i++)
		;
	vt_ok(i == 5, "flush: sends posted in the error state (%d)", i);
	a.qp_state = IBV_QPS_RESET;
	vt_ok(!ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE) && state_of(p.qp[0]) == IBV_QPS_RESET, "error to RESET");
	pair_close(&p);
}

/* QPs of either end are destroyed during traffic; afterwards a new pair still works. */
static void destroy_busy(struct vt_dev *d)
{
	int round, i, err = 0;
	struct pair p;

	for (round = 0; round < 10; round++) {
		pair_open(&p, d, IBV_QPT_RC, 64, NULL);
		for (i = 0; i < 30; i++)
			err |= post_op(&p, 0, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 0, 65536, 60000, 0);
		err |= ibv_destroy_qp(p.qp[round & 1]);
		p.qp[round & 1] = NULL;
		pair_close(&p);
	}
	vt_ok(!err, "QPs destroyed with requests in flight, ten times");
}

static void child(const char *name, struct vt_dev *parent)
{
	struct vt_dev d;
	struct pair p;
	bool v6 = parent->gid.raw[10] != 0xff;
	int i;

	vt_open(&d, name, v6, parent->gid_index, 128 << parent->mtu);
	pair_open(&p, &d, IBV_QPT_RC, 64, NULL);
	for (;;) {
		for (i = 0; i < 16; i++)
			post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 65536, 60000, 0);
		for (i = 0; i < 16; i++)
			if (status_of(p.scq[0], 5000) != IBV_WC_SUCCESS)
				_exit(1);
	}
}

static void killed(struct vt_dev *d)
{
	const char *name = ibv_get_device_name(d->ctx->device);
	int i, status, good = 0;
	struct pair p;

	for (i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid)
			child(name, d);
		usleep(400000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		good += WIFSIGNALED(status);
	}
	vt_ok(good == 3, "kill -9 under traffic: %d of 3 were still busy when killed", good);
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	vt_ok(!post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 64, 0) && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS,
	      "kill -9 under traffic: the device still works");
	pair_close(&p);
}

void test_errors(struct vt_dev *d)
{
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
		refused(d, &refusals[i]);
	local_error(d);
	local_error_in_a_list(d, IBV_QPT_RC, "RC");
	local_error_in_a_list(d, IBV_QPT_UC, "UC");
	if (wire_loses) {
		vt_ok_skip("UC and UD: a failed send", "WIRE loses packets");
	} else {
		receive_error(d, IBV_QPT_UC, "UC");
		receive_error(d, IBV_QPT_UD, "UD");
		send_queue_error(d, IBV_QPT_UC, "UC");
		send_queue_error(d, IBV_QPT_UD, "UD");
	}
	lacking_ops(d);
	nobody_there(d);
	reset_while_waiting(d);
	if (wire_loses)
		vt_ok_skip("a WRITE and one with a wrong local key", "has no retries, and WIRE loses packets");
	else
		refused_behind_a_good_one(d);
	flush_order(d);
	destroy_busy(d);
	killed(d);
}
