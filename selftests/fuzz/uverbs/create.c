// SPDX-License-Identifier: GPL-2.0
/* Creates objects by the commands of the write() interface, and pairs of connected QPs. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <string.h>

struct object *alloc_pd(struct run *r, int c, const uint8_t *a)
{
	struct ib_uverbs_alloc_pd core = { 0 };
	struct ib_uverbs_alloc_pd_resp resp = { 0 };

	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_ALLOC_PD, &core, sizeof(core), &resp, 4 }, a))
		return NULL;
	return add(r, c, PD, resp.pd_handle);
}

struct object *create_cq(struct run *r, int c, const uint8_t *a)
{
	struct object *channel = pick(r, c, CHANNEL, a[2]);
	struct ib_uverbs_create_cq core = {
		.user_handle = 77, .cqe = amount(a[1]), .comp_channel = channel && a[3] % 4 ? (int)channel->handle : -1,
		.comp_vector = a[4] < 200 ? 0 : a[4],
	};
	struct ib_uverbs_create_cq_resp resp = { 0 };
	struct roan_create_cq_resp roan = { 0 };
	struct object *cq;

	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_CREATE_CQ, &core, sizeof(core), &resp, sizeof(resp),
						       NULL, 0, &roan, sizeof(roan) }, a))
		return NULL;
	cq = add(r, c, CQ, resp.cq_handle);
	map_ring(r, c, &cq->ring[0], &roan.cq);
	return cq;
}

struct object *create_srq(struct run *r, int c, const uint8_t *a)
{
	struct ib_uverbs_create_srq core = {
		.pd_handle = handle(r, c, PD, a[1]), .max_wr = amount(a[2]), .max_sge = a[3] < 240 ? a[3] % 8 : value(a[3]),
		.srq_limit = a[4] < 200 ? 0 : a[4] % 16,
	};
	struct ib_uverbs_create_srq_resp resp = { 0 };
	struct roan_create_srq_resp roan = { 0 };
	struct object *srq;

	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_CREATE_SRQ, &core, sizeof(core), &resp, sizeof(resp),
						       NULL, 0, &roan, sizeof(roan) }, a))
		return NULL;
	srq = add(r, c, SRQ, resp.srq_handle);
	srq->num = roan.srq_num;
	map_ring(r, c, &srq->ring[0], &roan.rq);
	return srq;
}

/* a[5] % 8: RC four times, UC twice, UD twice; more from 240 on. */
static uint8_t qp_type(uint8_t b)
{
	static const uint8_t types[] = { IB_UVERBS_QPT_RC, IB_UVERBS_QPT_RC, IB_UVERBS_QPT_RC, IB_UVERBS_QPT_RC, IB_UVERBS_QPT_UC,
					 IB_UVERBS_QPT_UC, IB_UVERBS_QPT_UD, IB_UVERBS_QPT_UD };

	return b < 240 ? types[b % 8] : b % 16;
}

struct object *create_qp(struct run *r, int c, const uint8_t *a)
{
	struct object *srq = pick(r, c, SRQ, a[8]);
	struct ib_uverbs_create_qp core = {
		.pd_handle = handle(r, c, PD, a[1]), .send_cq_handle = handle(r, c, CQ, a[2]), .recv_cq_handle = handle(r, c, CQ, a[3]),
		.srq_handle = srq ? srq->handle : 0, .max_send_wr = amount(a[4]), .max_recv_wr = amount(a[6]),
		.max_send_sge = a[7] < 240 ? 1 + a[7] % 4 : value(a[7]), .max_recv_sge = a[7] < 240 ? 1 + a[7] / 4 % 4 : value(a[7] * 3),
		.max_inline_data = a[9] < 200 ? a[9] : value(a[9]), .sq_sig_all = a[10] < 20, .qp_type = qp_type(a[5]),
		.is_srq = srq && a[8] % 4 == 0,
	};
	struct ib_uverbs_create_qp_resp resp = { 0 };
	struct roan_create_qp_resp roan = { 0 };
	struct object *qp;

	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_CREATE_QP, &core, sizeof(core), &resp, sizeof(resp),
						       NULL, 0, &roan, sizeof(roan) }, a))
		return NULL;
	qp = add(r, c, QP, resp.qp_handle);
	qp->num = resp.qpn;
	qp->type = core.qp_type;
	map_ring(r, c, &qp->ring[0], &roan.sq);
	if (roan.rq.mmap_offset != roan.sq.mmap_offset) {
		map_ring(r, c, &qp->ring[1], &roan.rq);
	} else if (qp->ring[0].ctl) {	/* both in one mapping; it is unmapped with the first */
		qp->ring[1].desc = roan.rq;
	}
	return qp;
}

static uint32_t access_flags(uint8_t b)
{
	static const uint32_t flags[] = { 0xf, 0xf, 0x1f, 1, 0, 4, 7, 0x40 | 0xf, 0x40 | 1, 0x1000000 | 0xf, 0x300 | 0xf, 0x10 | 0xf, 0x20 | 1 };

	return b < 240 ? flags[b % ARRAY_SIZE(flags)] : value(b * 3);
}

struct object *reg_mr(struct run *r, int c, const uint8_t *a)
{
	uint64_t start = address(a[2]);
	struct ib_uverbs_reg_mr core = {
		.start = start, .length = length(a[3]), .hca_va = a[5] < 200 ? start : (start & 4095) + (a[5] < 230 ? 0 : value(a[5])),
		.pd_handle = handle(r, c, PD, a[1]), .access_flags = access_flags(a[4]),
	};
	struct ib_uverbs_reg_mr_resp resp = { 0 };
	struct object *mr;

	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_REG_MR, &core, sizeof(core), &resp, sizeof(resp) }, a))
		return NULL;
	mr = add(r, c, MR, resp.mr_handle);
	mr->lkey = resp.lkey;
	mr->rkey = resp.rkey;
	mr->addr = core.hca_va;
	mr->length = core.length;
	return mr;
}

/* The GIDs of IPv4 and IPv6 stand at the same indices of both devices. */
static uint8_t gid_index(int c, uint8_t b)
{
	return b < 250 && devices[c].gids ? b % devices[c].gids : b;
}

struct object *create_ah(struct run *r, int c, const uint8_t *a)
{
	struct ib_uverbs_create_ah core = {
		.pd_handle = handle(r, c, PD, a[1]),
		.attr = { .grh = { .flow_label = a[4], .sgid_index = gid_index(c, a[3]), .hop_limit = a[5] < 200 ? 64 : a[5] % 4,
				   .traffic_class = a[6] }, .is_global = a[7] < 250, .port_num = a[8] < 240 ? 1 : a[8], .sl = a[9] % 8 },
	};
	struct ib_uverbs_create_ah_resp resp = { 0 };
	struct roan_create_ah_resp roan = { 0 };
	int to = a[2] & 1 ? c : !c;

	memcpy(core.attr.grh.dgid, devices[to].gid[gid_index(to, a[3]) % 16], 16);
	if (a[2] >= 224) {			/* a multicast group */
		memset(core.attr.grh.dgid, 0, 12);
		core.attr.grh.dgid[10] = core.attr.grh.dgid[11] = 0xff;
		memcpy(core.attr.grh.dgid + 12, (uint8_t[4]) { 224, 1, 1, a[2] % 4 }, 4);
	}
	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_CREATE_AH, &core, sizeof(core), &resp, 4,
						       NULL, 0, &roan, sizeof(roan) }, a))
		return NULL;
	struct object *ah = add(r, c, AH, resp.ah_handle);
	ah->num = roan.ah_num;
	return ah;
}

/* a[3]: GID, a[4]: MTU, a[5]: PSNs, a[6]: timers, a[7]: limits, a[8]: last state. */
void connect_qp(struct run *r, int c, struct object *qp, int peer_ctx, const struct object *peer, const uint8_t *a)
{
	static const uint32_t psns[] = { 0, 1, 100, 0xfffffe, 0xffffff, 0x7fffff };
	bool ud = qp->type == IB_UVERBS_QPT_UD, rc = qp->type == IB_UVERBS_QPT_RC;
	uint32_t psn = psns[a[5] % ARRAY_SIZE(psns)], state;
	struct ib_uverbs_modify_qp core = {
		.qp_handle = qp->handle,
		.dest = { .sgid_index = gid_index(c, a[3]), .hop_limit = 64, .is_global = 1, .port_num = 1, .traffic_class = a[9] & 0xfe },
		.qkey = 0x11111111, .rq_psn = psn, .sq_psn = psn, .dest_qp_num = peer->num, .qp_access_flags = 0xf | (a[7] & 0x40 ? 0x300 : 0),
		.path_mtu = a[4] < 250 ? 1 + a[4] % 5 : a[4], .max_rd_atomic = a[7] % 17, .max_dest_rd_atomic = a[7] / 17 % 17,
		.min_rnr_timer = a[6] % 4 + 1, .port_num = 1, .timeout = a[6] < 240 ? 8 + a[6] % 3 : a[6] % 32, .retry_cnt = a[6] / 32 % 8,
		.rnr_retry = a[6] / 8 % 8,
	};

	memcpy(core.dest.dgid, devices[peer_ctx].gid[gid_index(peer_ctx, a[3]) % 16], 16);
	for (state = 1; state <= 3 && state <= 3u - a[8] / 86; state++) {
		core.qp_state = state;
		switch (state) {
		case 1: core.attr_mask = 1 | 1 << 4 | 1 << 5 | (ud ? 1 << 6 : 1 << 3); break;
		case 2: core.attr_mask = 1 | (ud ? 0 : 1 << 7 | 1 << 8 | 1 << 12 | 1 << 20 | (rc ? 1 << 17 | 1 << 15 : 0)); break;
		case 3: core.attr_mask = 1 | 1 << 16 | (rc ? 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 : 0); break;
		}
		if (do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_MODIFY_QP, &core, sizeof(core) }, NULL))
			return;
	}
	qp->psn = psn;
	qp->peer_ctx = peer_ctx;
	qp->peer = peer - r->ctx[peer_ctx].obj[QP];
}

/*
 * Two connected QPs with all that they need, on two devices or one. a[1] bit 0: on one; a[2]: type; the rest as
 * connect_qp(), with queues that hold 8 to 64.
 */
void make_pair(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a), d = a[1] & 1 ? c : !c, end;
	struct object *qp[2];

	for (end = 0; end < 2; end++) {
		int x = end ? d : c;
		const uint8_t cq[15] = { x, 31 }, srq[15] = { x, 0, 15, 2 }, mr[15] = { x, 0, a[10] + 12 * end, 14, a[11] % 240 },
			      q[15] = { x, 0, 0, 0, 7 + a[12] % 32, a[2], 7 + a[12] % 32, 5, a[1] & 2 ? 0 : 1, 64, 0 },
			      ah[15] = { x, 0, a[1] & 1, a[3], 0, 0, a[9] };

		if (!pick(r, x, PD, 0))
			alloc_pd(r, x, q);
		if (!pick(r, x, CQ, 0))
			create_cq(r, x, cq);
		if (a[1] & 2 && !pick(r, x, SRQ, 0))
			create_srq(r, x, srq);
		reg_mr(r, x, mr);
		if (qp_type(a[2]) == IB_UVERBS_QPT_UD)
			create_ah(r, x, ah);
		qp[end] = create_qp(r, x, q);
		if (!qp[end])
			return;
	}
	connect_qp(r, c, qp[0], d, qp[1], a);
	connect_qp(r, d, qp[1], c, qp[0], a);
}
