// SPDX-License-Identifier: GPL-2.0
/* Call types: commands of the write() interface. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void open_context(struct run *r, const uint8_t *a)
{
	context_open(r, ctx_of(a), a[1] < 128 ? ROAN_FEATURE_ONE_MAPPING : a[1] < 200 ? 0 : value(a[1]), a[2] & 1);
}

static void pd(struct run *r, const uint8_t *a) { alloc_pd(r, ctx_of(a), a); }
static void cq(struct run *r, const uint8_t *a) { create_cq(r, ctx_of(a), a); }
static void srq(struct run *r, const uint8_t *a) { create_srq(r, ctx_of(a), a); }
static void qp(struct run *r, const uint8_t *a) { create_qp(r, ctx_of(a), a); }
static void mr(struct run *r, const uint8_t *a) { reg_mr(r, ctx_of(a), a); }
static void ah(struct run *r, const uint8_t *a) { create_ah(r, ctx_of(a), a); }

static void connect_two(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a), d = a[0] & 2 ? c : !c;
	struct object *one = pick(r, c, QP, a[1]), *other = pick(r, d, QP, a[2]);

	if (!one || !other)
		return;
	connect_qp(r, c, one, d, other, a);
	if (a[0] & 4)
		connect_qp(r, d, other, c, one, a);
}

static void channel(struct run *r, const uint8_t *a)
{
	struct ib_uverbs_create_comp_channel core = { 0 };
	struct ib_uverbs_create_comp_channel_resp resp = { .fd = ~0u };
	int c = ctx_of(a);

	if (context(r, c) >= 0 && !do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &core, sizeof(core), &resp,
								    sizeof(resp) }, a) && (int)resp.fd >= 0)
		add(r, c, CHANNEL, resp.fd);
}

static void create_cq_ex(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct object *chan = pick(r, c, CHANNEL, a[2]), *made;
	struct ib_uverbs_ex_create_cq core = { .cqe = amount(a[1]), .comp_channel = chan ? (int)chan->handle : -1, .flags = a[3] < 200 ? 0 : a[3] % 4 };
	struct ib_uverbs_ex_create_cq_resp resp = { 0 };
	struct roan_create_cq_resp roan = { 0 };

	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { EX | IB_USER_VERBS_EX_CMD_CREATE_CQ, &core, sizeof(core), &resp, sizeof(resp),
						       NULL, 0, &roan, sizeof(roan) }, a))
		return;
	made = add(r, c, CQ, resp.base.cq_handle);
	map_ring(r, c, &made->ring[0], &roan.cq);
}

static void resize_cq(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct object *o = pick(r, c, CQ, a[1]);
	struct ib_uverbs_resize_cq core = { .cq_handle = handle(r, c, CQ, a[1]), .cqe = amount(a[2]) };
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	struct roan_create_cq_resp roan = { 0 };

	if (context(r, c) >= 0 && !do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_RESIZE_CQ, &core, sizeof(core), &resp, sizeof(resp),
								    NULL, 0, &roan, sizeof(roan) }, a) && o)
		map_ring(r, c, &o->ring[0], &roan.cq);
}

static void modify_cq(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct ib_uverbs_ex_modify_cq core = { .cq_handle = handle(r, c, CQ, a[1]), .attr_mask = a[2] < 200 ? 1 : a[2],
					       .attr = { .cq_count = value(a[3]), .cq_period = value(a[4]) } };

	if (context(r, c) >= 0)
		do_write(r, c, &(struct wcmd) { EX | IB_USER_VERBS_EX_CMD_MODIFY_CQ, &core, sizeof(core) }, a);
}

static void modify_srq(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct object *o = pick(r, c, SRQ, a[1]);
	struct ib_uverbs_modify_srq core = { .srq_handle = handle(r, c, SRQ, a[1]), .attr_mask = a[2] < 240 ? 1 + a[2] % 3 : a[2],
					     .max_wr = amount(a[3]), .srq_limit = a[4] % 20 };
	/* A wrong size may be any up to 64 KiB: the kernel clears that much. */
	static struct { struct roan_modify_srq_resp resp; uint8_t rest[UINT16_MAX]; } room;
	struct roan_modify_srq_req req = { .resp_addr = a[5] < 230 ? (uintptr_t)&room : value(a[5]),
					   .resp_size = a[6] < 230 ? sizeof(room.resp) : value(a[6]), .reserved = a[7] / 250 };

	memset(&room, 0, sizeof(room.resp));
	if (context(r, c) >= 0 && !do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_MODIFY_SRQ, &core, sizeof(core), NULL, 0,
								    &req, sizeof(req) }, a) && o && room.resp.rq.mmap_size)
		map_ring(r, c, &o->ring[0], &room.resp.rq);
}

/* To a state with the attributes that it needs, or with any. */
static void modify_qp(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a), d = a[10] & 1 ? c : !c;
	struct object *o = pick(r, c, QP, a[1]), *peer = pick(r, d, QP, a[9]);
	struct ib_uverbs_ex_modify_qp core = { .base = {
		.dest = { .sgid_index = a[3] % 4, .hop_limit = a[4], .is_global = a[4] < 250, .port_num = a[4] < 250, .traffic_class = a[5], .flow_label = a[6] },
		.qp_handle = handle(r, c, QP, a[1]), .attr_mask = 1, .qkey = value(a[5]), .rq_psn = value(a[6]), .sq_psn = value(a[7]),
		.dest_qp_num = peer ? peer->num : a[9], .qp_access_flags = value(a[8]), .qp_state = a[2] % 8, .cur_qp_state = a[3] % 8,
		.path_mtu = a[4] % 7, .path_mig_state = a[5] % 4, .en_sqd_async_notify = a[6], .max_rd_atomic = a[7], .max_dest_rd_atomic = a[8],
		.min_rnr_timer = a[3], .port_num = a[4] < 240 ? 1 : a[4], .timeout = a[5], .retry_cnt = a[6] % 9, .rnr_retry = a[7] % 9,
		.alt_port_num = 1, .alt_timeout = a[8] } };

	memcpy(core.base.dest.dgid, devices[d].gid[a[3] % 4], 16);
	core.base.alt_dest = core.base.dest;
	if (a[11] & 1)
		core.base.attr_mask |= a[12] | a[13] << 8 | (a[11] & 0x7e) << 15;
	if (a[11] & 0x80)
		core.base.attr_mask &= ~1;
	if (context(r, c) < 0 || !o)
		return;
	if (a[0] & 8)
		do_write(r, c, &(struct wcmd) { EX | IB_USER_VERBS_EX_CMD_MODIFY_QP, &core, sizeof(core) }, a);
	else
		do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_MODIFY_QP, &core.base, sizeof(core.base) }, a);
}

static void query(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	uint64_t answer[64];
	struct ib_uverbs_query_qp q = { .qp_handle = handle(r, c, QP, a[2]), .attr_mask = value(a[3]) };
	struct ib_uverbs_query_srq s = { .srq_handle = handle(r, c, SRQ, a[2]) };
	struct ib_uverbs_query_port port = { .port_num = a[2] < 200 ? 1 : a[2] };
	struct ib_uverbs_query_device dev = { 0 };
	struct ib_uverbs_ex_query_device ex = { 0 };
	const struct wcmd all[] = {
		{ IB_USER_VERBS_CMD_QUERY_QP, &q, sizeof(q), answer, sizeof(struct ib_uverbs_query_qp_resp) },
		{ IB_USER_VERBS_CMD_QUERY_SRQ, &s, sizeof(s), answer, sizeof(struct ib_uverbs_query_srq_resp) },
		{ IB_USER_VERBS_CMD_QUERY_PORT, &port, sizeof(port), answer, sizeof(struct ib_uverbs_query_port_resp) },
		{ IB_USER_VERBS_CMD_QUERY_DEVICE, &dev, sizeof(dev), answer, sizeof(struct ib_uverbs_query_device_resp) },
		{ EX | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &ex, sizeof(ex), answer, sizeof(struct ib_uverbs_ex_query_device_resp) },
	};

	if (context(r, c) >= 0)
		do_write(r, c, &all[a[1] % ARRAY_SIZE(all)], a);
}

static void rereg_mr(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct object *o = pick(r, c, MR, a[1]);
	struct ib_uverbs_rereg_mr core = {
		.mr_handle = handle(r, c, MR, a[1]), .flags = a[2] < 250 ? a[2] % 8 : a[2], .start = address(a[3]), .length = length(a[4]),
		.hca_va = address(a[3]), .pd_handle = handle(r, c, PD, a[5]), .access_flags = a[6] < 240 ? a[6] & 0x4f : value(a[6]),
	};
	struct ib_uverbs_rereg_mr_resp resp = { 0 };

	if (context(r, c) < 0 || do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_REREG_MR, &core, sizeof(core), &resp, sizeof(resp) }, a) || !o)
		return;
	o->lkey = resp.lkey;
	o->rkey = resp.rkey;
	if (core.flags & 1) {
		o->addr = core.hca_va;
		o->length = core.length;
	}
}

static void alloc_mw(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct ib_uverbs_alloc_mw core = { .pd_handle = handle(r, c, PD, a[1]), .mw_type = a[2] < 250 ? 1 + a[2] % 2 : a[2] };
	struct ib_uverbs_alloc_mw_resp resp = { 0 };

	if (context(r, c) >= 0 && !do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_ALLOC_MW, &core, sizeof(core), &resp, sizeof(resp) }, a))
		add(r, c, MW, resp.mw_handle)->rkey = resp.rkey;
}

static void multicast(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct ib_uverbs_attach_mcast core = { .gid = { [10] = 0xff, [11] = 0xff, [12] = 224, [13] = 1, [14] = 1, [15] = a[2] % 4 },
					       .qp_handle = handle(r, c, QP, a[1]), .mlid = a[3] < 200 ? 0xc000 : a[3] };

	if (a[2] >= 128) {		/* IPv6 */
		memset(core.gid, 0, 16);
		core.gid[0] = a[2] < 250 ? 0xff : a[2];
		core.gid[1] = a[4] % 16;
		core.gid[15] = a[2] % 4 + 1;
	}
	if (context(r, c) >= 0)
		do_write(r, c, &(struct wcmd) { a[4] % 3 ? IB_USER_VERBS_CMD_ATTACH_MCAST : IB_USER_VERBS_CMD_DETACH_MCAST, &core, sizeof(core) }, a);
}

/* Commands that have no use with rings; the core calls the driver's kernel verbs with them. */
static void post_by_write(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct object *o = pick(r, c, MR, a[3]);
	uint64_t answer[64];
	struct {
		struct ib_uverbs_post_send core;
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} send = { .core = { .qp_handle = handle(r, c, QP, a[1]), .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(struct ib_uverbs_send_wr) },
		   .wr = { .wr_id = 1, .num_sge = 1, .opcode = a[4] % 16, .send_flags = a[5] }, .sge = { .addr = address(a[6]), .length = length(a[7]), .lkey = o ? o->lkey : a[3] } };
	struct {
		struct ib_uverbs_post_recv core;
		struct ib_uverbs_recv_wr wr;
		struct ib_uverbs_sge sge;
	} recv = { .core = { .qp_handle = send.core.qp_handle, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(struct ib_uverbs_recv_wr) },
		   .wr = { .num_sge = 1 }, .sge = send.sge };
	struct ib_uverbs_poll_cq poll = { .cq_handle = handle(r, c, CQ, a[1]), .ne = a[3] % 4 };
	struct ib_uverbs_req_notify_cq arm = { .cq_handle = poll.cq_handle, .solicited_only = a[3] & 1 };
	const struct wcmd all[] = {
		{ IB_USER_VERBS_CMD_POST_SEND, &send, sizeof(send), answer, 4 }, { IB_USER_VERBS_CMD_POST_RECV, &recv, sizeof(recv), answer, 4 },
		{ IB_USER_VERBS_CMD_POST_SRQ_RECV, &recv, sizeof(recv), answer, 4 }, { IB_USER_VERBS_CMD_POLL_CQ, &poll, sizeof(poll), answer, 256 },
		{ IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &arm, sizeof(arm) },
	};

	if (a[2] % ARRAY_SIZE(all) == 2)
		recv.core.qp_handle = handle(r, c, SRQ, a[1]);
	if (context(r, c) >= 0)
		do_write(r, c, &all[a[2] % ARRAY_SIZE(all)], a);
}

/* Any command number, also those that the kernel does not have, with any bytes. */
static void any_command(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a), i;
	uint64_t core[32], answer[64];

	for (i = 0; i < 32; i++)
		core[i] = i < 4 ? value(a[2 + i]) : i % 2 ? handle(r, c, a[6] % KINDS, a[7]) : value(a[8 + i % 7]);
	if (context(r, c) >= 0)
		do_write(r, c, &(struct wcmd) { a[1] % 64 | (a[1] & 0x80 ? EX : 0), core, a[13] % 33 * 8, answer, a[14] % 33 * 8 }, NULL);
}

static void destroy(struct run *r, const uint8_t *a)
{
	static const struct {
		enum kind kind;
		uint32_t command;
		bool responds;
	} how[] = {
		{ QP, IB_USER_VERBS_CMD_DESTROY_QP, true }, { CQ, IB_USER_VERBS_CMD_DESTROY_CQ, true }, { SRQ, IB_USER_VERBS_CMD_DESTROY_SRQ, true },
		{ MR, IB_USER_VERBS_CMD_DEREG_MR }, { MW, IB_USER_VERBS_CMD_DEALLOC_MW }, { PD, IB_USER_VERBS_CMD_DEALLOC_PD },
		{ AH, IB_USER_VERBS_CMD_DESTROY_AH }, { XRCD, IB_USER_VERBS_CMD_CLOSE_XRCD },
	};
	uint32_t which = a[1] % ARRAY_SIZE(how), n;
	int c = ctx_of(a);
	struct {
		uint64_t response;
		uint32_t handle, reserved;
	} core = { .handle = handle(r, c, how[which].kind, a[2]) };
	uint64_t answer[2];
	struct wcmd w = { how[which].command, &core, sizeof(core), answer, 8 };

	n = core.handle;
	if (!how[which].responds) {
		w.core = &core.handle;
		w.core_len = 4;
		w.resp_len = 0;
	} else if (how[which].kind != CQ) {
		w.resp_len = 4;
	}
	if (context(r, c) >= 0 && !do_write(r, c, &w, a) && !(a[3] & 1))
		forget(r, c, how[which].kind, n);
}

static void xrcd(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct ib_uverbs_open_xrcd core = { .fd = -1, .oflags = O_CREAT | (a[1] & 1 ? O_EXCL : 0) };
	struct ib_uverbs_open_xrcd_resp resp = { 0 };

	if (context(r, c) >= 0 && !do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_OPEN_XRCD, &core, sizeof(core), &resp, 4 }, a))
		add(r, c, XRCD, resp.xrcd_handle);
}

static void pair(struct run *r, const uint8_t *a) { make_pair(r, a); }
static void close_it(struct run *r, const uint8_t *a) { context_close(r, ctx_of(a)); }

const struct call_type write_calls[] = {
	{ "pair", 60, pair }, { "connect", 20, connect_two }, { "open_context", 4, open_context }, { "close_context", 2, close_it },
	{ "alloc_pd", 8, pd }, { "create_cq", 12, cq }, { "create_cq_ex", 4, create_cq_ex }, { "create_srq", 10, srq }, { "create_qp", 20, qp },
	{ "reg_mr", 25, mr }, { "create_ah", 10, ah }, { "create_comp_channel", 6, channel }, { "resize_cq", 12, resize_cq },
	{ "modify_cq", 4, modify_cq }, { "modify_srq", 12, modify_srq }, { "modify_qp", 40, modify_qp }, { "query", 15, query },
	{ "rereg_mr", 15, rereg_mr }, { "alloc_mw", 12, alloc_mw }, { "multicast", 15, multicast }, { "post_by_write", 5, post_by_write },
	{ "any_command", 10, any_command }, { "destroy", 40, destroy }, { "open_xrcd", 2, xrcd },
	{ 0 }
};
