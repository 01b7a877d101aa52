// SPDX-License-Identifier: GPL-2.0
/* Rate limits of a QP. */
#include "features.h"

/* 0, and the time that four WRITEs of 64 KB take, or an errno. */
static int time_writes(struct pair *p, uint64_t *took)
{
	uint64_t began = vt_now_ms();
	int i, err = 0;

	for (i = 0; !err && i < 4; i++) {
		err = post_op(p, 0, IBV_WR_RDMA_WRITE, 0, BUF / 2, 65536, IBV_SEND_SIGNALED);
		if (!err && status_of(p->scq[0], 10000) != IBV_WC_SUCCESS)
			err = EIO;
	}
	*took = vt_now_ms() - began;
	return err;
}

/*
 * At 16 Mbit/s 64 KB with headers take at least 33 ms. Only a lower bound on the time is checked: a busy machine is
 * slow.
 */
static void rate_limit(struct vt_dev *d)
{
	struct ibv_qp_attr slower = { .qp_state = IBV_QPS_RTS, .rate_limit = 16000 };
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 64000 };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	uint64_t took = 0;
	struct pair p;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = ibv_modify_qp_rate_limit(p.qp[0], &limit);
	vt_ok(!err, "rate limit: 64 Mbit/s is accepted");
	/* The way of perftest (--rate_limit_type=PP). */
	err = ibv_modify_qp(p.qp[0], &slower, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
	vt_ok(!err, "rate limit: 16 Mbit/s by ibv_modify_qp() is accepted");
	err = err ?: time_writes(&p, &took);
	vt_ok(!err && took >= 130, "rate limit: 256 KB take 130 ms or more (%llu)", (unsigned long long)took);
	limit.rate_limit = 0;
	vt_ok(!ibv_modify_qp_rate_limit(p.qp[0], &limit), "rate limit: can be removed");
	limit.typical_pkt_sz = 64;
	vt_ok(ibv_modify_qp_rate_limit(p.qp[0], &limit) == EOPNOTSUPP, "rate limit: burst and packet size are EOPNOTSUPP");
	limit.typical_pkt_sz = 0;
	err = ibv_modify_qp(p.qp[0], &reset, IBV_QP_STATE);
	vt_ok(!err && ibv_modify_qp_rate_limit(p.qp[0], &limit) == EINVAL, "rate limit: of a QP that cannot send is EINVAL");
	pair_close(&p);
}

static void rate_limit_after_sqe(struct vt_dev *d)
{
	struct ibv_qp_attr slower = { .qp_state = IBV_QPS_RTS, .rate_limit = 16000 };
	uint64_t took = 0;
	struct pair p;
	uint32_t lkey;
	int err;

	pair_open(&p, d, IBV_QPT_UC, 64, NULL);
	lkey = p.mr->lkey;
	p.mr->lkey ^= 0x5500;
	err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, BUF / 2, 64, IBV_SEND_SIGNALED);
	p.mr->lkey = lkey;
	if (!err && (status_of(p.scq[0], 10000) != IBV_WC_LOC_PROT_ERR || state_of(p.qp[0]) != IBV_QPS_SQE))
		err = EIO;
	err = err ?: ibv_modify_qp(p.qp[0], &slower, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
	err = err ?: time_writes(&p, &took);
	vt_ok(!err && took >= 120, "rate limit: set when a UC QP leaves SQE, 256 KB take 120 ms or more (%llu)",
	      (unsigned long long)took);
	pair_close(&p);
}

/* READ responses and requests of a QP share its rate. All READs take 540 ms; the WRITE is posted 20 ms after them. */
static void request_beside_reads(struct vt_dev *d)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 16000 };
	int err, reads = 16, done = 0;
	enum ibv_wc_status write;
	struct ibv_wc wc;
	struct pair p;
	int i;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	err = ibv_modify_qp_rate_limit(p.qp[0], &limit);
	for (i = 0; !err && i < reads; i++)
		err = post_op(&p, 1, IBV_WR_RDMA_READ, BUF / 2, 0, 65536, IBV_SEND_SIGNALED);
	usleep(20000);
	if (!err)
		err = post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, BUF / 2 + 65536, 16384, IBV_SEND_SIGNALED);
	write = err ? NO_COMPLETION : status_of(p.scq[0], 10000);
	while (vt_poll(p.scq[1], &wc, 0))
		done++;
	vt_ok(write == IBV_WC_SUCCESS && done < reads,
	      "rate limit: a WRITE does not wait for all READ responses (%d of %d READs were complete)", done, reads);
	while (done < reads && vt_poll(p.scq[1], &wc, 10000))
		done++;
	pair_close(&p);
}

void test_rate(struct vt_dev *d)
{
	if (!(d->attr.packet_pacing_caps.supported_qpts & 1 << IBV_QPT_RC))
		return vt_ok_skip("rate limit", "the device has none");
	rate_limit(d);
	rate_limit_after_sqe(d);
	request_beside_reads(d);
}
