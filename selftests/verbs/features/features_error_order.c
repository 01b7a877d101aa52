// SPDX-License-Identifier: GPL-2.0
/*
 * What holds at the moment when a completion is polled, while another CPU still executes the post, or the packet, that
 * has completed or failed.
 */
#include "features.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ERROR_ROUNDS	1000
#define NAK_ROUNDS	200
#define ACK_ROUNDS	30
#define TRAIN		16	/* messages */
#define READ_ROUNDS	30
#define READ_LEN	65536

struct failing {
	struct pair p;
	struct ibv_ah *ah;
	int (*post)(struct failing *f);
	atomic_int go;		/* the round in which the thread posts; -1: the end */
	pthread_t thread;
};

static int post_wrong_key(struct failing *f)
{
	return send_to_peer(&f->p, 0, f->ah, BUF - 8);
}

static int post_too_long(struct failing *f)
{
	return post_op(&f->p, 0, IBV_WR_SEND, 0, 0, BUF / 4, 0);
}

/* Messages of one packet each, which leave, and are received, at once. */
static int post_train(struct failing *f)
{
	struct ibv_send_wr wr[TRAIN] = {}, *bad;
	struct ibv_sge sge = sge_at(&f->p, 0, 16);
	int i;

	for (i = 0; i < TRAIN; i++)
		wr[i] = (struct ibv_send_wr) {
			.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			.next = i + 1 < TRAIN ? &wr[i + 1] : NULL,
		};
	return ibv_post_send(f->p.qp[0], wr, &bad);
}

static int post_read(struct failing *f)
{
	return post_op(&f->p, 0, IBV_WR_RDMA_READ, 0, BUF / 2, READ_LEN, IBV_SEND_SIGNALED);
}

static void *post_each_round(void *arg)
{
	struct failing *f = arg;
	int round, last = 0;

	while ((round = atomic_load(&f->go)) >= 0) {
		if (round == last)
			sched_yield();
		else if (f->post(f))
			vt_die("post_send");
		last = round;
	}
	return NULL;
}

static void thread_begin(struct failing *f)
{
	if (pthread_create(&f->thread, NULL, post_each_round, f))
		vt_die("pthread_create");
}

static void thread_end(struct failing *f)
{
	atomic_store(&f->go, -1);
	pthread_join(f->thread, NULL);
}

/* The first QP learns soon that its peer has gone. */
static void connect_impatient(struct pair *p)
{
	struct vt_conn impatient = { .timeout = 14, .retry = 1, .rnr_retry = 7, .min_rnr_timer = 1 };

	pair_connect(p, IBV_QPT_RC, &impatient);
}

/* Round @n: the thread posts, and the completion that comes to @cq is polled without a pause. -1: none came. */
static int status_in_round(struct failing *f, int n, struct ibv_cq *cq)
{
	uint64_t end = vt_now_ms() + 20000;
	struct ibv_wc wc;
	int polled;

	atomic_store(&f->go, n);
	do {
		polled = ibv_poll_cq(cq, 1, &wc);
	} while (!polled && vt_now_ms() < end);
	return polled == 1 ? (int)wc.status : -1;
}

/*
 * Once the completion of a failed send is polled the QP is in SQE, also while another CPU still executes the post: a
 * modify_qp() from SQE to RTS before that would fail, or change nothing and leave the QP in SQE for ever.
 */
static void error_state_at_once(struct vt_dev *d)
{
	struct ibv_qp_attr back = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct vt_addr self = { .gid = d->gid };
	struct failing f = { .post = post_wrong_key };
	int n, early = 0;

	pair_open(&f.p, d, IBV_QPT_UD, 64, NULL);
	f.ah = vt_ah(d, &self);
	thread_begin(&f);
	for (n = 1; n <= ERROR_ROUNDS; n++) {
		if (status_in_round(&f, n, f.p.scq[0]) != IBV_WC_LOC_PROT_ERR)
			break;
		early += state_of(f.p.qp[0]) != IBV_QPS_SQE;
		if (ibv_modify_qp(f.p.qp[0], &back, IBV_QP_STATE | IBV_QP_CUR_STATE))
			break;
	}
	thread_end(&f);
	vt_ok(n > ERROR_ROUNDS && !early, "UD: SQE as soon as a failed send is polled (%d of %d rounds, %d times too early)",
	      n - 1, ERROR_ROUNDS, early);
	ibv_destroy_ah(f.ah);
	pair_close(&f.p);
}

/*
 * Once the completion of a failed receive is polled the QP is in ERR and the NAK has been sent, also while another CPU
 * still processes the message: the program may destroy the QP at once, and the peer learns the reason.
 */
static void nak_before_completion(struct vt_dev *d)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct failing f = { .post = post_too_long };
	int n, early = 0, unknown = 0;

	pair_create(&f.p, d, IBV_QPT_RC, 64);
	thread_begin(&f);
	for (n = 1; n <= NAK_ROUNDS; n++) {
		enum ibv_wc_status got;

		connect_impatient(&f.p);
		if (post_recv(&f.p, 1, BUF / 2, 16, n))
			break;
		if (status_in_round(&f, n, f.p.rcq[1]) != IBV_WC_LOC_LEN_ERR)
			break;
		early += n & 1 && state_of(f.p.qp[1]) != IBV_QPS_ERR;
		if (ibv_modify_qp(f.p.qp[1], &reset, IBV_QP_STATE))
			break;
		got = status_of(f.p.scq[0], 20000);
		unknown += got == IBV_WC_RETRY_EXC_ERR;
		if (!refused_by_peer(got, IBV_WC_REM_INV_REQ_ERR) && got != IBV_WC_RETRY_EXC_ERR)
			break;
		if (ibv_modify_qp(f.p.qp[0], &reset, IBV_QP_STATE))
			break;
	}
	thread_end(&f);
	vt_ok(n > NAK_ROUNDS && !early && (!unknown || wire_loses),
	      "RC: ERR, and the NAK sent, as soon as a failed receive is polled (%d of %d rounds; %d times too early, %d without a NAK)",
	      n - 1, NAK_ROUNDS, early, unknown);
	pair_close(&f.p);
}

/* The same while responses to an earlier READ, which precede the NAK, wait: 64 KiB take 33 ms at that rate. */
static void nak_behind_responses(struct vt_dev *d)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 16000 };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	enum ibv_wc_status read = -1, sent = -1;
	bool late = false;
	struct pair p;
	int err;

	if (!(d->attr.packet_pacing_caps.supported_qpts & 1 << IBV_QPT_RC))
		return vt_ok_skip("RC: a NAK behind READ responses", "the device has no rate limit");
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = ibv_modify_qp_rate_limit(p.qp[1], &limit);
	err = err ?: post_recv(&p, 1, BUF / 2, 16, 1);
	err = err ?: post_op(&p, 0, IBV_WR_RDMA_READ, 0, BUF / 2, 65536, IBV_SEND_SIGNALED);
	err = err ?: post_op(&p, 0, IBV_WR_SEND, 0, 0, 64, IBV_SEND_SIGNALED);
	if (!err && status_of(p.rcq[1], 20000) == IBV_WC_LOC_LEN_ERR) {
		late = state_of(p.qp[1]) == IBV_QPS_ERR;
		err = ibv_modify_qp(p.qp[1], &reset, IBV_QP_STATE);
		read = status_of(p.scq[0], 20000);
		sent = status_of(p.scq[0], 20000);
	}
	vt_ok(!err && late && (wire_loses || (read == IBV_WC_SUCCESS && refused_by_peer(sent, IBV_WC_REM_INV_REQ_ERR))),
	      "RC: a failed receive is polled when READ responses and the NAK have left (READ %d, SEND %d)", read, sent);
	pair_close(&p);
}

/* Polls the sends of a train. Returns how many succeeded; -1: one ended otherwise than by a lost peer. */
static int train_sent(struct failing *f)
{
	enum ibv_wc_status got = IBV_WC_SUCCESS;
	int n;

	for (n = 0; n < TRAIN && got == IBV_WC_SUCCESS; n += got == IBV_WC_SUCCESS)
		got = status_of(f->p.scq[0], 20000);
	return got == IBV_WC_SUCCESS || got == IBV_WC_RETRY_EXC_ERR ? n : -1;
}

/* How many messages of a train were received, the one included that was polled, when the QP entered ERR. */
static int train_received(struct failing *f)
{
	int n = 1;

	while (n < TRAIN && status_of(f->p.rcq[1], 5000) == IBV_WC_SUCCESS)
		n++;
	return n;
}

/*
 * A program that has polled a receive may reset, fail or destroy the QP at once, while another CPU still processes the
 * messages behind it: what was received is acknowledged. Odd rounds reset, even ones fail the QP.
 */
static void ack_before_reset(struct vt_dev *d)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET }, fail = { .qp_state = IBV_QPS_ERR };
	int n, i, received, sent = 0, lost = 0, cut = 0;
	struct failing f = { .post = post_train };

	pair_create(&f.p, d, IBV_QPT_RC, 64);
	thread_begin(&f);
	for (n = 1; n <= ACK_ROUNDS && sent >= 0; n++) {
		connect_impatient(&f.p);
		for (i = 0; i < TRAIN; i++)
			if (post_recv(&f.p, 1, BUF / 2, 16, i))
				vt_die("post_recv");
		if (status_in_round(&f, n, f.p.rcq[1]) != IBV_WC_SUCCESS ||
		    ibv_modify_qp(f.p.qp[1], n & 1 ? &reset : &fail, IBV_QP_STATE))
			break;
		received = n & 1 ? 1 : train_received(&f);
		sent = train_sent(&f);
		lost += sent < received;
		cut += sent < TRAIN;
		if (ibv_modify_qp(f.p.qp[0], &reset, IBV_QP_STATE) || ibv_modify_qp(f.p.qp[1], &reset, IBV_QP_STATE))
			break;
	}
	thread_end(&f);
	vt_ok(n > ACK_ROUNDS && sent >= 0 && (!lost || wire_loses),
	      "RC: sends succeed although their receiver resets or fails the QP at once (%d of %d rounds, %d trains cut, %d without an ACK)",
	      n - 1, ACK_ROUNDS, cut, lost);
	pair_close(&f.p);
}

static bool all_are(const uint8_t *buf, uint8_t byte, size_t len)
{
	while (len && *buf == byte)
		buf++, len--;
	return !len;
}

/*
 * A program may use the memory that its peer READs for something else as soon as modify_qp() to RESET (odd rounds) or ERR
 * has returned: a READ that succeeds has what was there before.
 */
static void memory_after_reset(struct vt_dev *d)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET }, fail = { .qp_state = IBV_QPS_ERR };
	struct failing f = { .post = post_read };
	int n, done = 0, wrong = 0;

	pair_create(&f.p, d, IBV_QPT_RC, 64);
	thread_begin(&f);
	for (n = 1; n <= READ_ROUNDS; n++) {
		enum ibv_wc_status got;

		connect_impatient(&f.p);
		memset(f.p.buf, 0, READ_LEN);
		memset(f.p.buf + BUF / 2, 'o', READ_LEN);
		atomic_store(&f.go, n);
		usleep(n * 20);
		if (ibv_modify_qp(f.p.qp[1], n & 1 ? &reset : &fail, IBV_QP_STATE))
			break;
		memset(f.p.buf + BUF / 2, 'n', READ_LEN);
		got = status_of(f.p.scq[0], 20000);
		if (got != IBV_WC_SUCCESS && got != IBV_WC_RETRY_EXC_ERR)
			break;
		done += got == IBV_WC_SUCCESS;
		wrong += got == IBV_WC_SUCCESS && !all_are(f.p.buf, 'o', READ_LEN);
		if (ibv_modify_qp(f.p.qp[0], &reset, IBV_QP_STATE) || ibv_modify_qp(f.p.qp[1], &reset, IBV_QP_STATE))
			break;
	}
	thread_end(&f);
	vt_ok(n > READ_ROUNDS && !wrong,
	      "RC: a READ does not have what is written after its responder was reset or failed (%d of %d rounds, %d READs done, %d wrong)",
	      n - 1, READ_ROUNDS, done, wrong);
	pair_close(&f.p);
}

void test_error_order(struct vt_dev *d)
{
	error_state_at_once(d);
	nak_before_completion(d);
	nak_behind_responses(d);
	ack_before_reset(d);
	memory_after_reset(d);
}
