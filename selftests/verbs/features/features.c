// SPDX-License-Identifier: GPL-2.0
/*
 * One test for each promise of the verbs objects that rdma-core's own tests and verbs_stress do not check. All run in
 * one process over one device, with QPs connected to each other. features_errors.c: error statuses;
 * features_error_order.c: what holds when one is polled; features_write_order.c: what holds when a byte of a WRITE
 * is polled; features_reuse.c: reuse of slots and buffers after a completion; features_srq.c: SRQs;
 * features_share.c: threads and fork; features_regions.c: MRs of length zero and zero-based MRs; features_odp.c and
 * features_reclaim.c: on-demand paging; features_rules.c: rules without a status; features_interfaces.c: newer
 * interfaces.
 *	features -d DEV [-6] [-m MTU] [-L] [-w] [-s BLOCKDEVICE] [-2 DEV] [-n]
 * -m: path MTU, default 1024; -L: the link loses packets; -w: only the test that overwrites buffers;
 * -s, -S: block devices that take 500 ms and 20 ms for a page; -2: another device; -n: the kernel has all interfaces
 */
#define _GNU_SOURCE
#include "features.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool wire_loses;
const char *slow_device;
const char *slowish_device;

/* @srq: the SRQ of the second QP, or NULL. */
static void pair_objects(struct pair *p, struct vt_dev *d, enum ibv_qp_type type, int cqe, struct ibv_srq *srq)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->d = d;
	p->buf = calloc(1, BUF);
	p->mr = ibv_reg_mr(d->pd, p->buf, BUF, RIGHTS);
	p->chan = ibv_create_comp_channel(d->ctx);
	for (i = 0; i < 2; i++) {
		struct ibv_qp_init_attr a = { .qp_type = type, .cap = { 64, 64, 4, 4, 64 } };

		p->scq[i] = ibv_create_cq(d->ctx, cqe, NULL, p->chan, 0);
		p->rcq[i] = ibv_create_cq(d->ctx, cqe, NULL, p->chan, 0);
		if (!p->mr || !p->chan || !p->scq[i] || !p->rcq[i])
			vt_die("objects of a pair: %s", strerror(errno));
		a.send_cq = p->scq[i];
		a.recv_cq = p->rcq[i];
		a.srq = i ? srq : NULL;
		p->qp[i] = ibv_create_qp(d->pd, &a);
		if (!p->qp[i])
			vt_die("create_qp: %s", strerror(errno));
	}
}

void pair_create(struct pair *p, struct vt_dev *d, enum ibv_qp_type type, int cqe)
{
	pair_objects(p, d, type, cqe, NULL);
}

void pair_connect(struct pair *p, enum ibv_qp_type type, const struct vt_conn *conn)
{
	struct vt_dev *d = p->d;
	struct vt_conn c = conn ? *conn : (struct vt_conn) {
		.timeout = 14, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 1,
	};
	struct vt_addr addr = { .gid = d->gid, .mtu = d->mtu, .psn = 100 };
	int i, err;

	c.type = type;
	c.psn = 100;
	c.access = type == IBV_QPT_UC ? RIGHTS & ~(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC) : RIGHTS;
	for (i = 0; i < 2; i++) {
		addr.qpn = p->qp[!i]->qp_num;
		err = vt_qp_init(p->qp[i], &c);
		if (!err)
			err = vt_qp_connect(d, p->qp[i], &c, &addr);
		if (err)
			vt_die("connect: %s", strerror(err));
	}
}

void pair_open(struct pair *p, struct vt_dev *d, enum ibv_qp_type type, int cqe, const struct vt_conn *conn)
{
	pair_objects(p, d, type, cqe, NULL);
	pair_connect(p, type, conn);
}

void pair_open_srq(struct pair *p, struct vt_dev *d, int cqe, struct ibv_srq *srq)
{
	pair_objects(p, d, IBV_QPT_RC, cqe, srq);
	pair_connect(p, IBV_QPT_RC, NULL);
}

void pair_close(struct pair *p)
{
	int i, err = 0;

	for (i = 0; i < 2; i++)
		err |= p->qp[i] ? ibv_destroy_qp(p->qp[i]) : 0;
	for (i = 0; i < 2; i++)
		err |= ibv_destroy_cq(p->scq[i]) | ibv_destroy_cq(p->rcq[i]);
	err |= ibv_destroy_comp_channel(p->chan) | ibv_dereg_mr(p->mr);
	free(p->buf);
	if (err)
		vt_die("an object of a pair could not be destroyed: %s", strerror(err));
}

struct ibv_sge sge_at(struct pair *p, size_t off, uint32_t len)
{
	return (struct ibv_sge) { .addr = (uintptr_t)p->buf + off, .length = len, .lkey = p->mr->lkey };
}

int post(struct pair *p, int side, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(p->qp[side], &wr, &bad);
}

int post_op(struct pair *p, int side, enum ibv_wr_opcode op, size_t local, size_t remote, uint32_t len, unsigned int flags)
{
	struct ibv_sge sge = sge_at(p, local, len);
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED | flags,
		.wr.rdma = { .remote_addr = (uintptr_t)p->buf + remote, .rkey = p->mr->rkey },
	};

	return post(p, side, wr);
}

int post_recv(struct pair *p, int side, size_t off, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = sge_at(p, off, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(p->qp[side], &wr, &bad);
}

enum ibv_wc_status status_of(struct ibv_cq *cq, int ms)
{
	struct ibv_wc wc;

	return vt_poll(cq, &wc, ms) ? wc.status : NO_COMPLETION;
}

/* The requester sees @status. Or the NAK was lost: the responder is in ERR by then and does not repeat it. */
bool refused_by_peer(enum ibv_wc_status got, enum ibv_wc_status want)
{
	return got == want || (wire_loses && got == IBV_WC_RETRY_EXC_ERR);
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

bool readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	/* Once more: in a guest that stood still the time may be over before what it waits for has run. */
	return poll(&pfd, 1, ms) > 0 || poll(&pfd, 1, 50) > 0;
}

/* The next async event of the context, or -1. */
int async_event(struct ibv_context *ctx, int ms)
{
	struct ibv_async_event e;

	if (!readable(ctx->async_fd, ms) || ibv_get_async_event(ctx, &e))
		return -1;
	ibv_ack_async_event(&e);
	return e.event_type;
}

static bool comp_event(struct pair *p, int ms)
{
	struct ibv_cq *cq;
	void *ctx;

	if (!readable(p->chan->fd, ms) || ibv_get_cq_event(p->chan, &cq, &ctx))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* One completion more than the CQ takes, which is one more than it reports. */
static bool overflows(struct pair *p)
{
	int i, err = 0, size = p->scq[0]->cqe + 1, event = -1;

	for (i = 0; i <= size && i < 60; i++)
		err |= post_op(p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0);
	for (i = 0; i < 4 && event != IBV_EVENT_CQ_ERR; i++)
		event = async_event(p->d->ctx, 1000);
	return !err && event == IBV_EVENT_CQ_ERR;
}

static void cq_overflow(struct vt_dev *d)
{
	struct pair p;
	bool ok;

	pair_open(&p, d, IBV_QPT_RC, 4, NULL);
	ok = overflows(&p);
	vt_ok(ok, "CQ: an overflow raises IBV_EVENT_CQ_ERR (%d entries)", p.scq[0]->cqe);
	ok = !ibv_resize_cq(p.scq[0], 8);
	while (status_of(p.scq[0], 200) == IBV_WC_SUCCESS)
		;
	vt_ok(ok && overflows(&p), "CQ: after a resize the next overflow raises it again (%d entries)", p.scq[0]->cqe);
	pair_close(&p);
	while (async_event(d->ctx, 100) >= 0)
		;
}

/* No completion is lost or reordered by a resize while they arrive. */
static void cq_resize(struct vt_dev *d)
{
	struct ibv_qp_attr drain = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	uint64_t end = vt_now_ms() + 40000;
	int i, err = 0, got = 0, shrink;
	const size_t last = 8192;
	struct ibv_wc wc;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	for (i = 0; i < 40; i++) {
		struct ibv_sge sge = sge_at(&p, 0, 3000);
		struct ibv_send_wr wr = {
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = (uintptr_t)p.buf + 8192, .rkey = p.mr->rkey },
		};

		err |= post(&p, 0, wr);
		if (i % 10 == 5)
			err |= ibv_resize_cq(p.scq[0], 100 * (1 + i / 10));
	}
	while (got < 40 && vt_poll(p.scq[0], &wc, 20000) && !wc.status && wc.wr_id == (uint64_t)got)
		got++;
	vt_ok(!err && got == 40, "CQ: resized under load, %d of 40 completions in order", got);
	/*
	 * SQD finishes messages that have begun to leave. So wait until the last has begun, as the byte it
	 * writes shows.
	 */
	p.buf[0] = 1;
	p.buf[last] = 0;
	for (i = 0; i < 30; i++)
		err |= post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, i < 29 ? 4096 : last, 8, 0);
	while (!*(volatile char *)&p.buf[last] && vt_now_ms() < end)
		usleep(1000);
	err |= ibv_modify_qp(p.qp[0], &drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	err |= async_event(d->ctx, 20000) != IBV_EVENT_SQ_DRAINED;
	shrink = ibv_resize_cq(p.scq[0], 2);
	for (got = 0; vt_poll(p.scq[0], &wc, 100); got++)
		;
	vt_ok(!err && shrink && got == 30,
	      "CQ: a resize below the number of its entries fails (error %d, %d kept)", shrink, got);
	pair_close(&p);
}

static void solicited(struct vt_dev *d)
{
	struct pair p;
	int i, err = 0;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	for (i = 0; i < 4; i++)
		err |= post_recv(&p, 1, 1024 * i, 512, i);
	err |= ibv_req_notify_cq(p.rcq[1], 1);
	err |= post_op(&p, 0, IBV_WR_SEND, 32768, 0, 16, 0) | status_of(p.scq[0], 3000);
	vt_ok(!err && !comp_event(&p, 200), "CQ: armed for solicited only, an unsolicited message raises no event");
	err |= post_op(&p, 0, IBV_WR_SEND, 32768, 0, 16, IBV_SEND_SOLICITED) | status_of(p.scq[0], 3000);
	vt_ok(!err && comp_event(&p, 2000), "CQ: a solicited message raises an event");
	err |= post_op(&p, 0, IBV_WR_SEND, 32768, 0, 16, IBV_SEND_SOLICITED) | status_of(p.scq[0], 3000);
	vt_ok(!err && !comp_event(&p, 200), "CQ: armed once, it raises one event");
	pair_close(&p);
}

static void drain(struct vt_dev *d)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct pair p;
	int i, err = 0, event = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	for (i = 0; i < 8; i++)
		err |= post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 65536, 60000, 0);
	err |= ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	event = async_event(d->ctx, 3000);
	vt_ok(!err && event == IBV_EVENT_SQ_DRAINED,
	      "SQD: an event when the queue has drained (event %d, error %d)", event, err);
	err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0);
	for (i = 0; status_of(p.scq[0], 300) == IBV_WC_SUCCESS; i++)
		;
	vt_ok(!err && i <= 8, "SQD: requests posted in SQD are not sent (%d completed)", i);
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS };
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE);
	for (; status_of(p.scq[0], 1000) == IBV_WC_SUCCESS; i++)
		;
	vt_ok(!err && i == 9, "SQD: they are sent in RTS (%d of 9 completed)", i);
	a.qp_state = IBV_QPS_SQD;
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE);
	event = async_event(d->ctx, 200);
	vt_ok(!err && event == -1, "SQD: no event if none is requested (event %d)", event);
	pair_close(&p);
}

static void bad_wr(struct vt_dev *d)
{
	static struct ibv_sge sge[1000];	/* all exist: rdma_rxe's provider adds up the lengths before it refuses them */
	struct ibv_send_wr wr[3], *bad = NULL;
	struct ibv_recv_wr rwr[2], *rbad = NULL;
	struct pair p;
	int i, err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	sge[0] = sge_at(&p, 0, 8);
	for (i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i, .next = i < 2 ? &wr[i + 1] : NULL, .sg_list = sge, .num_sge = i == 1 ? 1000 : 1,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p.buf + 64, p.mr->rkey },
		};
	err = ibv_post_send(p.qp[0], wr, &bad);
	vt_ok(err && bad == &wr[1], "post_send: bad_wr is the bad request of a list (error %d)", err);
	vt_ok(status_of(p.scq[0], 3000) == IBV_WC_SUCCESS && status_of(p.scq[0], 200) == NO_COMPLETION,
	      "post_send: the requests before it are executed, those after it are not");
	rwr[0] = (struct ibv_recv_wr) { .next = &rwr[1], .sg_list = sge, .num_sge = 1 };
	rwr[1] = (struct ibv_recv_wr) { .sg_list = sge, .num_sge = 1000 };
	err = ibv_post_recv(p.qp[0], rwr, &rbad);
	vt_ok(err && rbad == &rwr[1], "post_recv: bad_wr is the bad request of a list (error %d)", err);
	for (i = 0; i < 10000 && !(err = post_recv(&p, 1, 0, 8, i)); i++)
		;
	vt_ok(err == ENOMEM && i >= 64 && i < 10000, "post_recv: a full queue returns ENOMEM (after %d)", i);
	pair_close(&p);
}

static void queries(struct vt_dev *d)
{
	const unsigned int counted = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct ibv_mr *mr;
	struct pair p;
	int err;

	vt_ok((d->attr.orig_attr.device_cap_flags & counted) == counted,
	      "query_device: P_Key and Q_Key violations are counted");
	mr = ibv_reg_mr(d->pd, &a, sizeof(a), IBV_ACCESS_LOCAL_WRITE | ACCESS_FLUSH_GLOBAL);
	vt_ok(!mr == !(d->attr.device_cap_flags_ex & CAP_FLUSH_GLOBAL),
	      "query_device: FLUSH is announced exactly if memory can be registered for it (%s)", mr ? "it can" : "it cannot");
	if (mr)
		ibv_dereg_mr(mr);
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = ibv_query_qp(p.qp[0], &a, ~0u >> 7, &init);
	vt_ok(!err && a.qp_state == IBV_QPS_RTS && a.dest_qp_num == p.qp[1]->qp_num && a.path_mtu == d->mtu &&
	      a.timeout == 14 && a.retry_cnt == 7 && a.rnr_retry == 7 && a.min_rnr_timer == 1 && a.port_num == 1 &&
	      a.sq_psn == 100 && a.rq_psn == 100 && !memcmp(&a.ah_attr.grh.dgid, &d->gid, 16) &&
	      a.ah_attr.grh.hop_limit == 64 && a.ah_attr.grh.sgid_index == d->gid_index &&
	      (a.qp_access_flags & RIGHTS) == RIGHTS, "query_qp: returns the attributes that were set");
	err = err ?: post_op(&p, 1, IBV_WR_RDMA_WRITE, 0, 0, 2 * (128 << d->mtu) + 1, 0);
	vt_ok(!err && status_of(p.scq[1], 5000) == IBV_WC_SUCCESS && !ibv_query_qp(p.qp[0], &a, IBV_QP_RQ_PSN, &init) &&
	      a.rq_psn == 103 && !ibv_query_qp(p.qp[1], &a, IBV_QP_SQ_PSN, &init) && a.sq_psn == 103,
	      "query_qp: returns the next PSNs");
	vt_ok(!err && init.cap.max_send_wr >= 64 && init.cap.max_send_sge >= 4 && init.cap.max_inline_data >= 64 &&
	      init.send_cq == p.scq[1], "query_qp: returns the capacities");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT };
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE);
	vt_ok(err == EINVAL && state_of(p.qp[0]) == IBV_QPS_RTS, "modify_qp: RTS to INIT is EINVAL and changes nothing");
	a = (struct ibv_qp_attr) { .path_mig_state = IBV_MIG_ARMED };
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_PATH_MIG_STATE);
	vt_ok(err == EOPNOTSUPP, "modify_qp: path migration is EOPNOTSUPP");
	a.path_mig_state = IBV_MIG_REARM;
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_PATH_MIG_STATE);
	a.path_mig_state = IBV_MIG_MIGRATED;
	vt_ok(!err && !ibv_modify_qp(p.qp[0], &a, IBV_QP_PATH_MIG_STATE),
	      "modify_qp: REARM without an alternate path has no effect (error %d)", err);
	pair_close(&p);
}

static void windows(struct vt_dev *d)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2), *mw1 = ibv_alloc_mw(d->pd, IBV_MW_TYPE_1);
	struct ibv_send_wr bind, inv, write, *bad;
	struct ibv_mw_bind b1;
	struct ibv_sge sge;
	uint32_t key;
	struct pair p;
	int err;

	if (!mw || !mw1)
		return vt_ok(false, "MW: alloc_mw: %s", strerror(errno));
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	key = ibv_inc_rkey(mw->rkey);
	bind = (struct ibv_send_wr) {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, key, { p.mr, (uintptr_t)p.buf + 4096, 4096, IBV_ACCESS_REMOTE_WRITE } },
	};
	err = ibv_post_send(p.qp[1], &bind, &bad);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS, "MW type 2: bound");
	sge = sge_at(&p, 0, 100);
	memset(p.buf, 0x5a, 100);
	write = (struct ibv_send_wr) {
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (uintptr_t)p.buf + 4096 + 3996, key },
	};
	err = post(&p, 0, write);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS && p.buf[8191] == 0x5a, "MW type 2: written to its last byte");
	inv = (struct ibv_send_wr) { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key };
	err = ibv_post_send(p.qp[1], &inv, &bad);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS, "MW type 2: LOCAL_INV");
	bind.bind_mw.rkey = key = ibv_inc_rkey(key);
	bind.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	err = ibv_post_send(p.qp[1], &bind, &bad);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS, "MW type 2: bound again, zero-based");
	write.wr.rdma.remote_addr = 3996;
	write.wr.rdma.rkey = key;
	p.buf[8091] = p.buf[8191] = p.buf[8192] = 0;
	err = post(&p, 0, write);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS && !p.buf[8091] && p.buf[8092] == 0x5a && p.buf[8191] == 0x5a &&
	      !p.buf[8192], "MW type 2, zero-based: written to its last byte");
	inv.invalidate_rkey = key;
	err = ibv_post_send(p.qp[1], &inv, &bad);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS, "MW type 2: LOCAL_INV again");
	err = post(&p, 0, write);
	vt_ok(!err && refused_by_peer(status_of(p.scq[0], 3000), IBV_WC_REM_ACCESS_ERR), "MW type 2: the key is refused afterwards");
	pair_close(&p);

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	b1 = (struct ibv_mw_bind) {
		.send_flags = IBV_SEND_SIGNALED, .bind_info = { p.mr, (uintptr_t)p.buf + 4096, 4096, IBV_ACCESS_REMOTE_WRITE },
	};
	err = ibv_bind_mw(p.qp[1], mw1, &b1);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS, "MW type 1: bound");
	sge = sge_at(&p, 0, 100);
	write.wr.rdma.remote_addr = (uintptr_t)p.buf + 4096 + 3997;
	write.wr.rdma.rkey = mw1->rkey;
	p.buf[8192] = 1;
	err = post(&p, 0, write);
	vt_ok(!err && refused_by_peer(status_of(p.scq[0], 3000), IBV_WC_REM_ACCESS_ERR) && p.buf[8192] == 1,
	      "MW type 1: one byte past its end is refused and not written");
	vt_ok(ibv_dereg_mr(p.mr) == EBUSY, "MW type 1: dereg_mr is EBUSY while it is bound");
	vt_ok(!ibv_dealloc_mw(mw) && !ibv_dealloc_mw(mw1), "MW: freed");
	pair_close(&p);
}

/*
 * Only the low 8 bits of the R_Key in a bind count. mw->rkey then has the valid key, for access and for invalidation.
 */
static void window_key(struct vt_dev *d)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr bind, write, inv, *bad;
	uint32_t index = mw ? mw->rkey & ~0xffu : 0;
	struct ibv_sge sge;
	struct pair p;
	int err;

	if (!mw)
		return vt_ok(false, "MW key: alloc_mw: %s", strerror(errno));
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	bind = (struct ibv_send_wr) {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, 0xba, { p.mr, (uintptr_t)p.buf + 4096, 4096, IBV_ACCESS_REMOTE_WRITE } },
	};
	err = ibv_post_send(p.qp[1], &bind, &bad);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS && mw->rkey == (index | 0xba),
	      "MW type 2: bound with an R_Key whose upper 24 bits are not the window's");
	sge = sge_at(&p, 0, 8);
	write = (struct ibv_send_wr) {
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (uintptr_t)p.buf + 4096, mw->rkey },
	};
	err = post(&p, 0, write);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS, "MW type 2: written by that key");
	err = post_recv(&p, 1, 8192, 64, 1);
	inv = (struct ibv_send_wr) {
		.opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.invalidate_rkey = mw->rkey,
	};
	err = err ?: post(&p, 0, inv);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS && status_of(p.rcq[1], 3000) == IBV_WC_SUCCESS,
	      "MW type 2: SEND_WITH_INV of that key");
	bind.bind_mw.rkey = (~index & ~0xffu) | 0xbb;
	err = ibv_post_send(p.qp[1], &bind, &bad);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS, "MW type 2: bound again");
	inv = (struct ibv_send_wr) {
		.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = mw->rkey,
	};
	err = ibv_post_send(p.qp[1], &inv, &bad);
	vt_ok(!err && status_of(p.scq[1], 3000) == IBV_WC_SUCCESS, "MW type 2: LOCAL_INV of that key");
	err = post(&p, 0, write);
	vt_ok(!err && refused_by_peer(status_of(p.scq[0], 3000), IBV_WC_REM_ACCESS_ERR), "MW type 2: the key is refused after LOCAL_INV");
	pair_close(&p);
	vt_ok(!ibv_dealloc_mw(mw), "MW type 2: freed");
}

static void everything(struct vt_dev *d)
{
	queries(d);
	bad_wr(d);
	solicited(d);
	test_srq(d);
	cq_resize(d);
	cq_overflow(d);
	drain(d);
	windows(d);
	window_key(d);
	test_regions(d);
	test_rate(d);
	test_errors(d);
	test_error_order(d);
	test_write_order(d);
	test_rules(d);
	test_reuse(d);
	test_paging(d);
	test_reclaim(d);
	test_share(d);
	test_interfaces(d);
}

int main(int argc, char **argv)
{
	bool v6 = false, overwrite = false;
	const char *name = NULL;
	struct vt_dev d;
	int o, mtu = 1024;

	while ((o = getopt(argc, argv, "d:6m:Lws:S:2:n")) != -1) {
		if (o == 'd')
			name = optarg;
		else if (o == '6')
			v6 = true;
		else if (o == 'm')
			mtu = atoi(optarg);
		else if (o == 'L')
			wire_loses = true;
		else if (o == 'w')
			overwrite = true;
		else if (o == 's')
			slow_device = optarg;
		else if (o == 'S')
			slowish_device = optarg;
		else if (o == '2')
			second_device = optarg;
		else if (o == 'n')
			newest_kernel = true;
		else
			return 2;
	}
	vt_open(&d, name, v6, -1, mtu);
	fcntl(d.ctx->async_fd, F_SETFL, O_NONBLOCK);
	if (overwrite)
		test_overwrite(&d);
	else
		everything(&d);
	vt_close(&d);
	return vt_done();
}
