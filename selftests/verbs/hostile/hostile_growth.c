// SPDX-License-Identifier: GPL-2.0
/*
 * Growth of the ABI: driver data that is shorter or longer than this kernel's, as an older or newer provider passes it.
 * The rules are in Documentation/abi.md.
 */
#define _GNU_SOURCE
#include "hostile_call.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define UNREADABLE	((const void *)64)	/* in the first page, which is never mapped */

static void contexts(struct vt_dev *d)
{
	vt_ok(is(context_with(d, unknown, 4, NULL), EINVAL, "cut"), "context: driver data cut short");
	vt_ok(is(context_with(d, unknown, 16, NULL), EINVAL, "long"), "context: unknown driver data behind the known");
	vt_ok(is(context_with(d, zeros, 16, NULL), 0, "zeros"), "context: zeros behind the known data are accepted");
}

/* What a provider that imports the context gets. All bits: the call failed. */
static uint64_t features_in_effect(int fd)
{
	struct roan_alloc_ucontext_resp resp = { .features = ~0ull };
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} call = {
		.hdr = { .length = sizeof(call), .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_QUERY_CONTEXT,
			 .num_attrs = 1, .driver_id = ROAN_DRIVER_ID },
		.attr = { .attr_id = ROAN_ATTR_QUERY_CONTEXT_RESP, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(resp),
			  .data = (uintptr_t)&resp },
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &call.hdr) ? ~0ull : resp.features;
}

/* A feature has an effect only if the provider that created the context knows it. */
static void features_of_importer(struct vt_dev *d)
{
	static const uint64_t knows[2] = { ROAN_FEATURE_ONE_MAPPING }, future[2] = { 1ull << 63 };
	int with, without, newer;

	if (context_with(d, knows, 8, &with) || context_with(d, zeros, 8, &without) || context_with(d, future, 8, &newer))
		vt_die("contexts: %s", strerror(errno));
	vt_ok(features_in_effect(with) == ALL_FEATURES && features_in_effect(without) == ROAN_FEATURE_QP_HANDLE &&
	      features_in_effect(newer) == ROAN_FEATURE_QP_HANDLE, "query_context: the features in effect in the context");
	close(with);
	close(without);
	close(newer);
}

/* A provider older than the doorbell hints has a shorter response buffer and gets only the fields that fit. */
static void older_context(struct vt_dev *d)
{
	struct {
		struct raw_context known;
		uint64_t unknown[2];
	} longer = { .unknown = { 1, 1 } };
	struct raw_context resp;
	int fd = open_raw(d);

	vt_ok(is(raw_context(fd, zeros, 8, &resp, offsetof(struct raw_context, roan.db_hints)), 0, "older") &&
	      resp.roan.max_inline && resp.roan.db_hints.slot_count == 0xeeeeeeee, "context: an older provider's shorter response");
	vt_ok(is(doorbell_bare(fd), 0, "bare"), "doorbell: of a context without doorbell hints");
	close(fd);
	fd = open_raw(d);
	vt_ok(is(raw_context(fd, zeros, 8, &resp, offsetof(struct raw_context, roan.max_inline)), 0, "short") &&
	      resp.roan.features == ALL_FEATURES && resp.roan.max_inline == 0xeeeeeeee, "context: the response is cut");
	close(fd);
	fd = open_raw(d);
	vt_ok(is(raw_context(fd, zeros, 8, &longer.known, sizeof(longer)), 0, "longer") && longer.known.roan.max_inline &&
	      !longer.unknown[0] && !longer.unknown[1], "context: zeros behind the known response");
	close(fd);
}

static int raw_mw(int fd, uint32_t pd, const void *udata, size_t len)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ib_uverbs_alloc_mw core = { .pd_handle = pd, .mw_type = IBV_MW_TYPE_1 };

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_ALLOC_MW, &core, sizeof(core), &resp,
						sizeof(resp), udata, len });
}

static int raw_rereg_mr(int fd, uint32_t mr, uint32_t pd, const void *udata, size_t len)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ib_uverbs_rereg_mr core = { .mr_handle = mr, .pd_handle = pd, .flags = IBV_REREG_MR_CHANGE_PD };

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_REREG_MR, &core, sizeof(core), &resp, sizeof(resp),
					    udata, len });
}

/* Sets the SRQ limit, which needs no ring. */
static int raw_limit_srq(int fd, uint32_t srq, const void *udata, size_t len)
{
	struct ib_uverbs_modify_srq core = { .srq_handle = srq, .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 1 };

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_MODIFY_SRQ, &core, sizeof(core), NULL, 0, udata, len });
}

static void driver_data(int fd, uint32_t pd, uint32_t cq)
{
	struct roan_create_qp_req flags = { .flags = ~ROAN_QP_BLOCK_SELF_MCAST }, reserved = { .reserved = 1 };
	struct raw_cq scratch;
	struct raw_qp qp;
	uint32_t handle;

	vt_ok(is(raw_pd(fd, unknown, 16, &handle), EINVAL, "PD"), "alloc_pd: unknown driver data");
	vt_ok(is(raw_cq(fd, unknown, 16, &scratch, sizeof(scratch)), EINVAL, "CQ"), "create_cq: unknown driver data");
	vt_ok(is(raw_qp(fd, pd, cq, unknown, 24, &qp, sizeof(qp.roan)), EINVAL, "QP") &&
	      is(raw_qp(fd, pd, cq, unknown, 4, &qp, sizeof(qp.roan)), EINVAL, "QP"), "create_qp: unknown or cut driver data");
	vt_ok(is(raw_qp(fd, pd, cq, &flags, sizeof(flags), &qp, sizeof(qp.roan)), EOPNOTSUPP, "flags") &&
	      is(raw_qp(fd, pd, cq, &reserved, sizeof(reserved), &qp, sizeof(qp.roan)), EOPNOTSUPP, "reserved"),
	      "create_qp: unknown flags or a reserved field");
	vt_ok(is(raw_srq(fd, pd, unknown, 16, &handle), EINVAL, "SRQ"), "create_srq: unknown driver data");
	vt_ok(is(raw_mr(fd, pd, unknown, 16, &handle), EINVAL, "MR"), "reg_mr: unknown driver data");
	vt_ok(is(raw_mw(fd, pd, unknown, 16), EINVAL, "MW"), "alloc_mw: unknown driver data");
	vt_ok(is(raw_cq(fd, zeros, 16, &scratch, sizeof(scratch)), 0, "CQ"), "create_cq: zeros are accepted");
	vt_ok(is(raw_mr(fd, pd, zeros, 16, &handle), 0, "MR"), "reg_mr: zeros are accepted");
	vt_ok(is(raw_cq(fd, NULL, 0, &scratch, sizeof(scratch.core) + 8), 0, "CQ") && !scratch.roan.cq.mmap_size,
	      "create_cq: the response is cut");
	vt_ok(is(raw_qp(fd, pd, cq, NULL, 0, &qp, 8), 0, "QP") && !qp.roan.sq.mmap_size && !destroy_qp(fd, qp.core.qp_handle),
	      "create_qp: the response is cut");
}

/* A command of the write() interface as an ioctl, which can pass driver data to verbs that destroy. Returns the errno. */
static int invoke(int fd, uint32_t command, const void *core, size_t core_len, const void *udata, size_t udata_len)
{
	uint64_t resp[4], inlined = 0;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} call = {
		.hdr = { .length = sizeof(call), .method_id = UVERBS_METHOD_INVOKE_WRITE, .num_attrs = 4, .driver_id = ROAN_DRIVER_ID },
		.attrs = {
			{ .attr_id = UVERBS_ATTR_WRITE_CMD, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(uint64_t), .data = command },
			{ .attr_id = UVERBS_ATTR_CORE_IN, .len = core_len, .data = (uintptr_t)core },
			{ .attr_id = UVERBS_ATTR_CORE_OUT, .len = sizeof(resp), .data = (uintptr_t)resp },
			{ .attr_id = UVERBS_ATTR_UHW_IN, .len = udata_len, .data = (uintptr_t)udata },
		},
	};

	if (core_len <= sizeof(inlined)) {	/* short attributes are passed inline */
		memcpy(&inlined, core, core_len);
		call.attrs[1].data = inlined;
	}
	return ioctl(fd, RDMA_VERBS_IOCTL, &call.hdr) ? errno : 0;
}

/* A refused destroy changes nothing: the object can be destroyed afterwards. */
static void driver_data_of_destroys(int fd, uint32_t pd, uint32_t cq)
{
	struct {
		uint64_t response;
		uint32_t handle, reserved;
	} core = { 0 };
	struct raw_cq own_cq;
	struct raw_qp qp;
	uint32_t srq, mr, own_pd, i;

	if (raw_qp(fd, pd, cq, NULL, 0, &qp, sizeof(qp.roan)) || raw_srq(fd, pd, NULL, 0, &srq) ||
	    raw_cq(fd, NULL, 0, &own_cq, sizeof(own_cq)) || raw_mr(fd, pd, NULL, 0, &mr) || raw_pd(fd, NULL, 0, &own_pd))
		vt_die("objects made by raw commands: %s", strerror(errno));
	const struct {
		const char *name;
		uint32_t command, handle;
		const void *core;
		size_t len;
	} kinds[] = {
		{ "QP", IB_USER_VERBS_CMD_DESTROY_QP, qp.core.qp_handle, &core, sizeof(core) },
		{ "SRQ", IB_USER_VERBS_CMD_DESTROY_SRQ, srq, &core, sizeof(core) },
		{ "CQ", IB_USER_VERBS_CMD_DESTROY_CQ, own_cq.core.cq_handle, &core, sizeof(core) },
		{ "MR", IB_USER_VERBS_CMD_DEREG_MR, mr, &core.handle, sizeof(core.handle) },
		{ "PD", IB_USER_VERBS_CMD_DEALLOC_PD, own_pd, &core.handle, sizeof(core.handle) },
	};

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		core.handle = kinds[i].handle;
		vt_ok(is(invoke(fd, kinds[i].command, kinds[i].core, kinds[i].len, unknown, 16), EINVAL, "unknown") &&
		      is(invoke(fd, kinds[i].command, kinds[i].core, kinds[i].len, UNREADABLE, 16), EFAULT, "unreadable") &&
		      is(invoke(fd, kinds[i].command, kinds[i].core, kinds[i].len, zeros, 16), 0, "zeros"),
		      "destroy %s: unknown or unreadable driver data, and zeros", kinds[i].name);
	}
}

/* The core passes driver data to this verb on every kernel. */
static void driver_data_of_query(int fd)
{
	const uint32_t command = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE;
	const struct ib_uverbs_ex_query_device core = { 0 };

	vt_ok(is(invoke(fd, command, &core, sizeof(core), unknown, 16), EINVAL, "unknown") &&
	      is(invoke(fd, command, &core, sizeof(core), UNREADABLE, 16), EFAULT, "unreadable") &&
	      is(invoke(fd, command, &core, sizeof(core), zeros, 16), 0, "zeros"),
	      "query_device: unknown or unreadable driver data, and zeros");
}

struct srq_room {
	struct roan_modify_srq_resp resp;
	uint64_t behind;
};

/* Resizes the SRQ; the size of the response is @size. */
static int raw_resize_srq(int fd, uint32_t srq, uint32_t size, uint32_t reserved, struct srq_room *room)
{
	struct ib_uverbs_modify_srq core = { .srq_handle = srq, .attr_mask = IBV_SRQ_MAX_WR, .max_wr = 8 };
	const struct roan_modify_srq_req req = { (uintptr_t)room, size, reserved };

	memset(room, 0xee, sizeof(*room));
	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_MODIFY_SRQ, &core, sizeof(core), NULL, 0, &req, sizeof(req) });
}

/* The response of a resize goes to an address in the request: the kernel writes no byte more than its size says. */
static void response_of_srq_resize(int fd, uint32_t pd)
{
	const uint32_t size = sizeof(struct roan_modify_srq_resp), wrong[] = { 0, size - 8, size - 1, 65536, ~0u };
	struct srq_room room;
	unsigned int i, bad = 0;
	uint32_t srq;

	if (raw_srq(fd, pd, NULL, 0, &srq))
		vt_die("an SRQ made by raw commands: %s", strerror(errno));
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		bad += !is(raw_resize_srq(fd, srq, wrong[i], 0, &room), EINVAL, "size") || room.resp.rq.slot_count != 0xeeeeeeee;
	vt_ok(!bad, "modify_srq: a response of a wrong size");
	vt_ok(is(raw_resize_srq(fd, srq, size, 1, &room), EINVAL, "reserved"), "modify_srq: the reserved field is not 0");
	vt_ok(is(raw_resize_srq(fd, srq, size, 0, &room), 0, "resize") && room.resp.rq.slot_count == 8 &&
	      room.behind == 0xeeeeeeeeeeeeeeee, "modify_srq: nothing is written behind the response");
	vt_ok(is(raw_resize_srq(fd, srq, sizeof(room), 0, &room), 0, "longer") && room.resp.rq.slot_count == 8 && !room.behind,
	      "modify_srq: zeros behind the known response");
}

/* The same for verbs that modify an existing object. */
static void driver_data_of_changes(int fd, uint32_t pd)
{
	static const uint64_t behind[3] = { 0, 0, 1ull << 63 };		/* struct roan_modify_srq_req has 16 bytes */
	uint32_t mr, srq;

	if (raw_mr(fd, pd, NULL, 0, &mr) || raw_srq(fd, pd, NULL, 0, &srq))
		vt_die("objects made by raw commands: %s", strerror(errno));
	vt_ok(is(raw_rereg_mr(fd, mr, pd, unknown, 16), EINVAL,
	      "MR") && is(raw_rereg_mr(fd, mr, pd, zeros, 16), 0, "MR"),
	      "rereg_mr: unknown driver data, and zeros");
	vt_ok(is(raw_limit_srq(fd, srq, behind, 24), EINVAL, "SRQ") && is(raw_limit_srq(fd, srq, zeros, 24), 0, "SRQ"),
	      "modify_srq: unknown driver data behind the known, and zeros");
}

/* A method of roan's own; each has the handle in its first attribute and a struct in the second. */
static int own_method(int fd, uint16_t object, uint16_t id, uint32_t handle, void *data, uint16_t len)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[2];
	} call = {
		.hdr = { .length = sizeof(call), .object_id = object, .method_id = id, .num_attrs = 2,
			 .driver_id = ROAN_DRIVER_ID },
		.attrs = {
			{ .attr_id = 0x1000, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
			{ .attr_id = 0x1001, .flags = UVERBS_ATTR_F_MANDATORY, .len = len, .data = (uintptr_t)data },
		},
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &call.hdr) ? errno : 0;
}

static void struct_of_qp_cc(int fd, uint32_t pd, uint32_t cq)
{
	struct {
		struct roan_qp_cc known;
		uint64_t later;
	} req = { .known.algo = "device" };
	struct raw_qp qp;
	int err;

	if (raw_qp(fd, pd, cq, NULL, 0, &qp, sizeof(qp.roan)))
		vt_die("create_qp: %s", strerror(errno));
	err = own_method(fd, UVERBS_OBJECT_QP, ROAN_METHOD_QP_CC, qp.core.qp_handle, &req, sizeof(req));
	vt_ok(is(err, 0, "longer"), "QP_CC: zeros behind the known request");
	req.later = 1;
	err = own_method(fd, UVERBS_OBJECT_QP, ROAN_METHOD_QP_CC, qp.core.qp_handle, &req, sizeof(req));
	vt_ok(is(err, EOPNOTSUPP, "unknown"), "QP_CC: unknown data behind the known request");
	err = own_method(fd, UVERBS_OBJECT_QP, ROAN_METHOD_QP_CC, qp.core.qp_handle, &req, sizeof(req.known) - 1);
	vt_ok(is(err, EINVAL, "cut"), "QP_CC: the request is cut");
	destroy_qp(fd, qp.core.qp_handle);
}

/*
 * This memory can be mapped, so DM_COPY refuses to copy it: EOPNOTSUPP, after it has found the request valid. A reserved
 * field that is not 0 is EINVAL, unless the core refuses the request first.
 */
static void structs_of_dm(struct vt_dev *d)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct {
		struct roan_dm_copy known;
		uint64_t later;
	} copy = { .known.length = 8 };
	struct {
		struct roan_dm_desc known;
		uint64_t later;
	} desc = { .later = 1 };
	struct ibv_dm *dm = ibv_alloc_dm(d->ctx, &attr);
	int fd = d->ctx->cmd_fd, err;

	if (!dm)
		vt_die("device memory: %s", strerror(errno));
	err = own_method(fd, UVERBS_OBJECT_DM, ROAN_METHOD_DM_COPY, dm->handle, &copy, sizeof(copy));
	vt_ok(is(err, EOPNOTSUPP, "longer"), "DM_COPY: zeros behind the known request");
	copy.known.reserved = 1;
	err = own_method(fd, UVERBS_OBJECT_DM, ROAN_METHOD_DM_COPY, dm->handle, &copy, sizeof(copy));
	vt_ok(is(err, EINVAL, "reserved"), "DM_COPY: the reserved field is not 0");
	copy.later = 1;
	err = own_method(fd, UVERBS_OBJECT_DM, ROAN_METHOD_DM_COPY, dm->handle, &copy, sizeof(copy));
	vt_ok(is(err, EOPNOTSUPP, "unknown"), "DM_COPY: unknown data behind the known request");
	err = own_method(fd, UVERBS_OBJECT_DM, ROAN_METHOD_DM_COPY, dm->handle, &copy, sizeof(copy.known) - 8);
	vt_ok(is(err, EINVAL, "cut"), "DM_COPY: the request is cut");
	err = own_method(fd, UVERBS_OBJECT_DM, ROAN_METHOD_DM_MAP, dm->handle, &desc, sizeof(desc));
	vt_ok(is(err, 0, "longer") && desc.known.length == 4096 && !desc.later, "DM_MAP: zeros behind the known response");
	ibv_free_dm(dm);
}

void growth_cases(struct vt_dev *d)
{
	struct raw_cq cq;
	uint32_t pd;
	int fd;

	contexts(d);
	older_context(d);
	features_of_importer(d);
	if (context_with(d, zeros, 8, &fd) || raw_pd(fd, NULL, 0, &pd) || raw_cq(fd, NULL, 0, &cq, sizeof(cq)))
		vt_die("a context made by raw commands: %s", strerror(errno));
	driver_data(fd, pd, cq.core.cq_handle);
	driver_data_of_changes(fd, pd);
	response_of_srq_resize(fd, pd);
	driver_data_of_destroys(fd, pd, cq.core.cq_handle);
	driver_data_of_query(fd);
	struct_of_qp_cc(fd, pd, cq.core.cq_handle);
	structs_of_dm(d);
	close(fd);
}
