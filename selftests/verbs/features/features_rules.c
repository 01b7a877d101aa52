// SPDX-License-Identifier: GPL-2.0
/*
 * Rules of the transport that no error status shows: silent drops, work forgotten by RESET, asynchronous events. Each
 * case uses a new pair of QPs.
 */
#include "features.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void no_events(struct vt_dev *d)
{
	while (async_event(d->ctx, 0) >= 0)
		;
}

/* A receive whose SGE is outside its MR: the receiver's error, reported to both sides. */
static void bad_receive(struct vt_dev *d)
{
	enum ibv_wc_status sent, received;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = post_recv(&p, 1, BUF - 8, 64, 1) | post_op(&p, 0, IBV_WR_SEND, 0, 0, 32, 0);
	sent = status_of(p.scq[0], 3000);
	received = status_of(p.rcq[1], 3000);
	vt_ok(!err && refused_by_peer(sent, IBV_WC_REM_OP_ERR) && received == IBV_WC_LOC_PROT_ERR, "a receive outside its region: %s, %s",
	      ibv_wc_status_str(sent), ibv_wc_status_str(received));
	pair_close(&p);
	no_events(d);
}

static void uc_drops(struct vt_dev *d)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_UC, 64, NULL);
	err = post_op(&p, 0, IBV_WR_SEND, 0, 0, 3000, 0) | status_of(p.scq[0], 3000);
	vt_ok(!err && status_of(p.rcq[1], 100) == NO_COMPLETION, "UC: a message without a receive is dropped");

	memset(p.buf, 0x11, BUF);
	sge = sge_at(&p, 0, 16);
	wr = (struct ibv_send_wr) {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p.buf + 4096, p.mr->rkey ^ 0x5500 },
	};
	memset(p.buf, 0x22, 16);
	err = post(&p, 0, wr) | status_of(p.scq[0], 3000);
	usleep(50000);
	vt_ok(!err && p.buf[4096] == 0x11, "UC: a WRITE with a wrong key writes nothing");

	err = post_recv(&p, 1, 8192, 3000, 1) | post_op(&p, 0, IBV_WR_SEND, 0, 0, 3000, 0);
	vt_ok(!err && status_of(p.rcq[1], 3000) == IBV_WC_SUCCESS && state_of(p.qp[1]) == IBV_QPS_RTS, "UC: the next one arrives");
	pair_close(&p);
	no_events(d);
}

static int send_datagram(struct pair *p, struct ibv_ah *ah, uint32_t len, uint32_t qkey)
{
	struct ibv_sge sge = sge_at(p, 0, len);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = p->qp[1]->qp_num, .remote_qkey = qkey },
	};

	return post(p, 0, wr) | status_of(p->scq[0], 3000);
}

static void ud_drops(struct vt_dev *d)
{
	struct vt_addr self = { .gid = d->gid };
	struct ibv_ah *ah = vt_ah(d, &self);
	struct ibv_wc wc = {};
	struct pair p;
	int err, got;

	pair_open(&p, d, IBV_QPT_UD, 64, NULL);
	err = send_datagram(&p, ah, 16, VT_QKEY);
	vt_ok(!err && status_of(p.rcq[1], 100) == NO_COMPLETION, "UD: a datagram without a receive is dropped");

	err = post_recv(&p, 1, 8192, 40 + 8, 7) | send_datagram(&p, ah, 16, VT_QKEY);
	vt_ok(!err && status_of(p.rcq[1], 100) == NO_COMPLETION, "UD: a datagram longer than the receive is dropped");
	err = send_datagram(&p, ah, 8, VT_QKEY + 1);
	vt_ok(!err && status_of(p.rcq[1], 100) == NO_COMPLETION, "UD: a datagram with a wrong Q_Key is dropped");
	err = send_datagram(&p, ah, 8, 1u << 31 | 0x77);
	got = vt_poll(p.rcq[1], &wc, 3000);
	vt_ok(!err && got && wc.status == IBV_WC_SUCCESS && wc.wr_id == 7 && wc.byte_len == 48,
	      "UD: a Q_Key with its top bit set means the QP's own; the receive was not used up before");
	vt_ok(vt_grh_is(p.buf + 8192, &d->gid, &d->gid), "UD: the 40 bytes before the data are its network header");
	pair_close(&p);
	ibv_destroy_ah(ah);
}

/* A CQ can be armed without a completion channel, as on adapters; no event is delivered. */
static void armed_without_channel(struct vt_dev *d)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(d->pd, &init) : NULL;
	const struct vt_conn conn = { .type = IBV_QPT_RC };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr *bad, wr = {};
	int err;

	if (!qp)
		vt_die("a CQ without a channel, and a QP on it");
	err = ibv_req_notify_cq(cq, 1) | ibv_req_notify_cq(cq, 0);
	err |= vt_qp_init(qp, &conn) | ibv_post_recv(qp, &wr, &bad) | ibv_modify_qp(qp, &a, IBV_QP_STATE);
	vt_ok(!err && status_of(cq, 3000) == IBV_WC_WR_FLUSH_ERR,
	      "a CQ without a channel can be armed and gets completions (error %d)", err);
	err = ibv_destroy_qp(qp) | ibv_destroy_cq(cq);
	vt_ok(!err, "a CQ without a channel can be destroyed (error %d)", err);
}

static void reset_forgets(struct vt_dev *d)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct pair p;
	int i, err = 0;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	for (i = 0; i < 8; i++)
		err |= post_recv(&p, 0, 0, 64, i);
	err |= ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE);
	vt_ok(!err && status_of(p.rcq[0], 100) == NO_COMPLETION && status_of(p.scq[0], 0) == NO_COMPLETION,
	      "RESET discards posted work without completions");
	pair_close(&p);
}

static void path_in_sqd(struct vt_dev *d)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD }, q = {};
	struct ibv_qp_init_attr init;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE);
	a = (struct ibv_qp_attr) {
		.timeout = 17, .retry_cnt = 3,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = d->gid, .sgid_index = d->gid_index, .hop_limit = 64, .traffic_class = 0x20 } },
	};
	err |= ibv_modify_qp(p.qp[0], &a, IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT);
	err |= ibv_query_qp(p.qp[0], &q, IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT, &init);
	vt_ok(!err && q.timeout == 17 && q.retry_cnt == 3 && q.ah_attr.grh.traffic_class == 0x20,
	      "SQD: path and timeout can be changed (error %d)", err);
	a = (struct ibv_qp_attr) { .retry_cnt = 10, .rnr_retry = 255 };
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	err |= ibv_query_qp(p.qp[0], &q, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY, &init);
	vt_ok(!err && q.retry_cnt == 7 && q.rnr_retry == 7, "modify_qp: greater retry counts are 7, the most (error %d)", err);
	a = (struct ibv_qp_attr) { .min_rnr_timer = 32 + 12 };
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_MIN_RNR_TIMER);
	err |= ibv_query_qp(p.qp[0], &q, IBV_QP_MIN_RNR_TIMER, &init);
	vt_ok(!err && q.min_rnr_timer == 12, "modify_qp: of min_rnr_timer the five bits of the field count (error %d, code %d)", err,
	      q.min_rnr_timer);
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS };
	err = ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE) | post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 64, 0);
	vt_ok(!err && status_of(p.scq[0], 3000) == IBV_WC_SUCCESS, "SQD: the new path works");
	pair_close(&p);
}

#define MANY_READS	64

static int set_reads(struct ibv_qp *qp, int own, int peers)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .max_rd_atomic = own, .max_dest_rd_atomic = peers };
	int err = ibv_modify_qp(qp, &a, IBV_QP_STATE) ?: ibv_modify_qp(qp, &a, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC);

	a.qp_state = IBV_QPS_RTS;
	return err ?: ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

/*
 * The responder's READ limit is raised in SQD after it has executed some READs; then that many are outstanding at once.
 */
static void more_reads_in_sqd(struct vt_dev *d)
{
	struct ibv_send_wr wr[MANY_READS] = {}, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};
	struct ibv_sge sge;
	struct pair p;
	int i, err;

	pair_open(&p, d, IBV_QPT_RC, 2 * MANY_READS, NULL);
	err = post_op(&p, 0, IBV_WR_RDMA_READ, 0, 4096, 64, 0) | status_of(p.scq[0], 3000);
	err |= set_reads(p.qp[1], MANY_READS, MANY_READS) | set_reads(p.qp[0], MANY_READS, MANY_READS);
	sge = sge_at(&p, 0, 64);
	for (i = 0; i < MANY_READS; i++)
		wr[i] = (struct ibv_send_wr) {
			.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			.next = i + 1 < MANY_READS ? &wr[i + 1] : NULL,
			.wr.rdma = { .remote_addr = (uintptr_t)p.buf + 4096, .rkey = p.mr->rkey },
		};
	err |= ibv_post_send(p.qp[0], wr, &bad);
	for (i = 0; !err && i < MANY_READS && status_of(p.scq[0], 5000) == IBV_WC_SUCCESS; i++)
		;
	vt_ok(!err && i == MANY_READS,
	      "SQD: the READ limit can be raised, %d of %d READs succeed (error %d)", i, MANY_READS, err);
	err = set_reads(p.qp[0], 0, MANY_READS) ?: ibv_query_qp(p.qp[0], &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init);
	vt_ok(!err && attr.max_rd_atomic == 1, "max_rd_atomic 0 is 1 (%d, error %d)", attr.max_rd_atomic, err);
	err = post_op(&p, 0, IBV_WR_RDMA_READ, 0, 4096, 64, 0);
	vt_ok(!err && status_of(p.scq[0], 5000) == IBV_WC_SUCCESS, "max_rd_atomic 0: one READ at a time (error %d)", err);
	err = post_op(&p, 0, IBV_WR_RDMA_READ, 0, 4096, 64, IBV_SEND_IP_CSUM | 1u << 30);
	vt_ok(!err && status_of(p.scq[0], 5000) == IBV_WC_SUCCESS, "other send flags are ignored (error %d)", err);
	pair_close(&p);
	no_events(d);
}

/* In RTR the first packet raises COMM_EST: the passive side of a connection then knows that its peer is in RTS. */
static void established(struct vt_dev *d)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct vt_conn c = { .type = IBV_QPT_RC, .access = RIGHTS };
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = ibv_modify_qp(p.qp[1], &a, IBV_QP_STATE) | vt_qp_init(p.qp[1], &c);
	a = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = d->mtu, .dest_qp_num = p.qp[0]->qp_num, .rq_psn = 100,
		.max_dest_rd_atomic = 16, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = d->gid, .sgid_index = d->gid_index, .hop_limit = 64 } },
	};
	err |= ibv_modify_qp(p.qp[1], &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	vt_ok(!err && async_event(d->ctx, 100) == -1, "RTR: without a packet there is no event");
	err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0) | status_of(p.scq[0], 3000);
	vt_ok(!err && async_event(d->ctx, 2000) == IBV_EVENT_COMM_EST, "RTR: the first packet raises COMM_EST");
	err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0) | status_of(p.scq[0], 3000);
	vt_ok(!err && async_event(d->ctx, 100) == -1, "RTR: once");
	pair_close(&p);
}

/* Optional access flags (IBV_ACCESS_OPTIONAL_RANGE) are ignored if not supported. */
static void optional_rights(struct vt_dev *d)
{
	static uint8_t mem[64];
	uint64_t va = (uintptr_t)mem;
	struct ibv_mr *mr = ibv_reg_mr_iova2(d->pd, mem, sizeof(mem), va, RIGHTS | IBV_ACCESS_OPTIONAL_RANGE);
	struct ibv_mr *bad = ibv_reg_mr_iova2(d->pd, mem, sizeof(mem), va, RIGHTS | 1u << 19);

	vt_ok(mr && !bad, "reg_mr: optional access flags are ignored, unknown ones refused");
	if (mr)
		ibv_dereg_mr(mr);
}

static void last_wqe(struct vt_dev *d)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(d->pd, &sa);
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr qa = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = { 1, 0, 1, 0, 0 },
	};
	struct ibv_qp *qp = srq && cq ? ibv_create_qp(d->pd, &qa) : NULL;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct vt_conn c = { .type = IBV_QPT_RC };
	int err;

	if (!qp)
		vt_die("a QP with an SRQ");
	err = vt_qp_init(qp, &c) | ibv_modify_qp(qp, &a, IBV_QP_STATE);
	vt_ok(!err && async_event(d->ctx, 2000) == IBV_EVENT_QP_LAST_WQE_REACHED, "SRQ: a QP that goes to ERR raises LAST_WQE_REACHED");
	err = ibv_modify_qp(qp, &a, IBV_QP_STATE);
	vt_ok(!err && async_event(d->ctx, 100) == -1, "SRQ: a second modify to ERR raises no event");
	err = ibv_destroy_qp(qp) | ibv_destroy_srq(srq) | ibv_destroy_cq(cq);
	vt_ok(!err, "SRQ: QPs and SRQ can be destroyed");
}

/* The responder's side gets an event for a request that it refused. */
static void refusal_events(struct vt_dev *d)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair p;
	int err, event;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, BUF - 4, 64, 0);
	event = async_event(d->ctx, 2000);
	vt_ok(!err && event == IBV_EVENT_QP_ACCESS_ERR, "a refused access raises QP_ACCESS_ERR (%d)", event);
	pair_close(&p);
	no_events(d);

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	sge = sge_at(&p, 0, 8);
	wr = (struct ibv_send_wr) {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1,
		.wr.atomic = { .remote_addr = (uintptr_t)p.buf + 4, .compare_add = 1, .rkey = p.mr->rkey },
	};
	err = post(&p, 0, wr);
	event = async_event(d->ctx, 2000);
	vt_ok(!err && event == IBV_EVENT_QP_REQ_ERR, "an invalid request raises QP_REQ_ERR (%d)", event);
	pair_close(&p);
	no_events(d);
}

struct adder {
	uint64_t *word;
	volatile bool stop;
	uint64_t n;
};

static void *add(void *arg)
{
	struct adder *a = arg;

	for (; !a->stop; a->n++)
		__atomic_fetch_add(a->word, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Atomics of the peer and of the CPU to one word: no update is lost. */
static void atomics_and_the_cpu(struct vt_dev *d)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct adder a = {};
	struct pair p;
	pthread_t t;
	int i, err = 0;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	memset(p.buf, 0, BUF);
	a.word = (uint64_t *)(p.buf + 4096);
	sge = sge_at(&p, 0, 8);
	wr = (struct ibv_send_wr) {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = (uintptr_t)a.word, .compare_add = 1ull << 40, .rkey = p.mr->rkey },
	};
	if (pthread_create(&t, NULL, add, &a))
		vt_die("pthread_create");
	for (i = 0; i < 500 && !err; i++)
		err = post(&p, 0, wr) | status_of(p.scq[0], 5000);
	a.stop = true;
	pthread_join(t, NULL);
	vt_ok(!err && *a.word == (500ull << 40) + a.n, "atomics: 500 by the peer and %llu by the CPU: none is lost",
	      (unsigned long long)a.n);
	pair_close(&p);
}

/* An atomic returns 8 bytes. An entry that is longer is filled at its start, as by rdma_rxe and mlx5. */
static void longer_entry_of_an_atomic(struct vt_dev *d)
{
	enum ibv_wc_status got;
	uint64_t *word, *target;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	word = (uint64_t *)p.buf;
	target = (uint64_t *)(p.buf + 4096);
	*target = 5;
	sge = sge_at(&p, 0, 64);
	wr = (struct ibv_send_wr) {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = (uintptr_t)target, .compare_add = 2, .rkey = p.mr->rkey },
	};
	got = post(&p, 0, wr) ? NO_COMPLETION : status_of(p.scq[0], 5000);
	vt_ok(got == IBV_WC_SUCCESS && *target == 7 && word[0] == 5 && !word[1],
	      "atomics: the entry for the result may be longer than 8 bytes (status %d)", got);
	pair_close(&p);
	no_events(d);
}

/* Programs say that they give creation flags, and give none. */
static void creation_flags(struct vt_dev *d)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 }, .pd = d->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	const uint32_t mask = init.comp_mask;
	struct ibv_qp *qp = ibv_create_qp_ex(d->ctx, &init);
	int err = qp ? 0 : errno;

	vt_ok(!err && init.comp_mask == mask, "creation flags of a QP: the field may be given as 0 (error %d)", err);
	if (qp && ibv_destroy_qp(qp))
		vt_die("the QP could not be destroyed");
	init.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	qp = ibv_create_qp_ex(d->ctx, &init);
	vt_ok(!qp && errno == EOPNOTSUPP, "creation flags of a QP: one that the device lacks is EOPNOTSUPP");
	if (qp)
		ibv_destroy_qp(qp);
	init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	qp = ibv_create_qp_ex(d->ctx, &init);
	vt_ok(!qp && errno == EOPNOTSUPP, "creation flags of a QP: for multicast, on RC, is EOPNOTSUPP");
	if (qp)
		ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
}

/* Programs compare an operation of a QP with NULL to learn whether the QP has it, also one that they did not request. */
static void operations(struct vt_dev *d)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 }, .pd = d->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(d->ctx, &init);
	struct ibv_qp_ex *ex = qp ? ibv_qp_to_qp_ex(qp) : NULL;
	void *all[(sizeof(*ex) - offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp)) / sizeof(void *)];
	unsigned int i, n = 0;

	if (!ex)
		vt_die("a QP with ibv_wr_send()");
	memcpy(all, &ex->wr_atomic_cmp_swp, sizeof(all));
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		n += !!all[i];
	/* start, complete, abort, one and several entries, one and several pieces of inline data */
	vt_ok(ex->wr_send && n == 1 + 7, "a QP with one operation: the others are NULL (%u of 8 functions)", n);
	if (ibv_destroy_qp(qp) | ibv_destroy_cq(cq))
		vt_die("the QP could not be destroyed");
}

/* One entry is requested, and @max_inline bytes. Then @n entries of 16 bytes are sent, inline or not, to the QP itself. */
static void more_than_requested(struct vt_dev *d, uint32_t max_inline, int n, unsigned int flags)
{
	const struct vt_conn conn = { .type = IBV_QPT_RC, .timeout = 14, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 1 };
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, max_inline },
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(d->pd, &init) : NULL;
	static uint8_t mem[2][48];
	struct ibv_mr *mr = ibv_reg_mr(d->pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE);
	struct vt_addr self = { .gid = d->gid, .mtu = d->mtu };
	struct ibv_sge to, from[3];
	struct ibv_recv_wr *rbad, rwr = { .sg_list = &to, .num_sge = 1 };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .sg_list = from, .num_sge = n, .send_flags = IBV_SEND_SIGNALED | flags,
	};
	int i, err;

	if (!qp || !mr)
		vt_die("a QP and a region");
	vt_fill(mem[0], sizeof(mem[0]), max_inline + 1, 0);
	memset(mem[1], 0, sizeof(mem[1]));
	to = (struct ibv_sge) { (uintptr_t)mem[1], sizeof(mem[1]), mr->lkey };
	for (i = 0; i < n; i++)
		from[i] = (struct ibv_sge) { (uintptr_t)mem[0] + 16 * i, 16, mr->lkey };
	self.qpn = qp->qp_num;
	err = vt_qp_init(qp, &conn) | ibv_post_recv(qp, &rwr, &rbad);
	err = err ?: vt_qp_connect(d, qp, &conn, &self);
	err = err ?: ibv_post_send(qp, &wr, &bad);
	vt_ok(!err && status_of(cq, 3000) == IBV_WC_SUCCESS && status_of(cq, 3000) == IBV_WC_SUCCESS &&
	      vt_diff(mem[1], 16 * n, max_inline + 1, 0) == 16u * n,
	      "a QP with 1 entry and %u inline bytes requested sends %d entries%s (error %d; %u, %u)", max_inline, n,
	      flags ? " inline" : "", err, init.cap.max_send_sge, init.cap.max_inline_data);
	err = ibv_destroy_qp(qp) | ibv_destroy_cq(cq) | ibv_dereg_mr(mr);
	if (err)
		vt_die("the objects could not be destroyed");
}

void test_rules(struct vt_dev *d)
{
	creation_flags(d);
	operations(d);
	more_than_requested(d, 0, 1, IBV_SEND_INLINE);	/* as rdma_xclient does */
	more_than_requested(d, 60, 2, 0);		/* as eRPC does */
	no_events(d);
	bad_receive(d);
	if (wire_loses) {
		vt_ok_skip("UC and UD: silent drops", "WIRE loses packets");
	} else {
		uc_drops(d);
		ud_drops(d);
	}
	armed_without_channel(d);
	reset_forgets(d);
	path_in_sqd(d);
	more_reads_in_sqd(d);
	established(d);
	last_wqe(d);
	optional_rights(d);
	refusal_events(d);
	atomics_and_the_cpu(d);
	longer_entry_of_an_atomic(d);
}
