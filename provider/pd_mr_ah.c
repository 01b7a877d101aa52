// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The objects without rings: device and port, domains, memory regions and windows, device memory, address handles. Each
 * wraps a handle of the kernel in a libibverbs struct. Domains count their users here, because parent domains and
 * thread domains exist only in the provider.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "roan.h"

/* ---- device and port ---- */

int roan_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp = { 0 };
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int err;

	err = ibv_cmd_query_device_any(ctx, input, attr, attr_size, &resp, &resp_size);
	if (err)
		return err;
	fw = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u", (unsigned int)(fw >> 32 & 0xffff),
		 (unsigned int)(fw >> 16 & 0xffff), (unsigned int)(fw & 0xffff));
	if (attr_size >= offsetof(struct ibv_device_attr_ex, packet_pacing_caps) + sizeof(attr->packet_pacing_caps))
		attr->packet_pacing_caps = (struct ibv_packet_pacing_caps) {
			.qp_rate_limit_min = 1,
			.qp_rate_limit_max = 800000000,
			.supported_qpts = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD,
		};
	return 0;
}

int roan_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	ROAN_CMD(ib_uverbs_query_port) cmd = { 0 };

	return ibv_cmd_query_port(ctx, port, attr, &cmd, sizeof(cmd));
}

#if ROAN_RDMA_CORE >= 62
int roan_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed)
{
	return roan_or_unsupported(ibv_cmd_query_port_speed(ctx, port, speed));
}
#endif

/*
 * The device's clock is the host's: completions carry CLOCK_MONOTONIC in ns. The whole number is in tv_nsec, as from
 * mlx4 and mlx5: programs compare that field alone with the timestamp of a completion. A long of 32 bits is too short
 * for it.
 */
int roan_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	uint32_t want = values->comp_mask;
	struct timespec now;

	(void)ctx;
	values->comp_mask = 0;
	if (want & ~IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (want & IBV_VALUES_MASK_RAW_CLOCK) {
		if (clock_gettime(CLOCK_MONOTONIC, &now))
			return errno;
		if (sizeof(now.tv_nsec) == sizeof(uint64_t))
			now = (struct timespec) { .tv_nsec = now.tv_sec * INT64_C(1000000000) + now.tv_nsec };
		values->raw_clock = now;
		values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	}
	return 0;
}

/* ---- protection, parent and thread domains ---- */

struct ibv_pd *roan_alloc_pd(struct ibv_context *ctx)
{
	ROAN_CMD(ib_uverbs_alloc_pd) cmd = { 0 };
	struct ib_uverbs_alloc_pd_resp resp = { 0 };
	struct roan_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	errno = ibv_cmd_alloc_pd(ctx, &pd->ibv, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (errno) {
		free(pd);
		return NULL;
	}
	return &pd->ibv;
}

int roan_dealloc_pd(struct ibv_pd *ibpd)
{
	struct roan_pd *pd = to_roan_pd(ibpd);
	int err;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->real) {
		atomic_fetch_sub(&pd->real->users, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->users, 1);
	} else {
		err = ibv_cmd_dealloc_pd(ibpd);
		if (err)
			return err;
	}
	free(pd);
	return 0;
}

struct ibv_td *roan_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct roan_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = ctx;
	return &td->ibv;
}

int roan_dealloc_td(struct ibv_td *ibtd)
{
	struct roan_td *td = (struct roan_td *)ibtd;

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

/*
 * ALLOW_CC_UNPROTECTED_ALLOC, of rdma-core 65, permits memory that a confidential VM shares with its host. Rings and
 * buffers of the kernel need none.
 */
#define PARENT_DOMAIN_ATTRS	(IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | 1 << 2)

struct ibv_pd *roan_alloc_parent_domain(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr)
{
	struct roan_pd *pd, *parent;

	if (attr->comp_mask & ~PARENT_DOMAIN_ATTRS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->pd || (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS && (!attr->alloc || !attr->free))) {
		errno = EINVAL;
		return NULL;
	}
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return NULL;
	pd = to_roan_pd(attr->pd);
	if (pd->real)
		pd = pd->real;
	parent->ibv.context = ctx;
	parent->ibv.handle = pd->ibv.handle;
	parent->real = pd;
	parent->td = (struct roan_td *)attr->td;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		parent->alloc = attr->alloc;
		parent->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->context = attr->pd_context;
	atomic_fetch_add(&pd->users, 1);
	if (parent->td)
		atomic_fetch_add(&parent->td->users, 1);
	return &parent->ibv;
}

struct ibv_pd *roan_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	struct roan_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = ctx;
	pd->ibv.handle = handle;
	return &pd->ibv;
}

void roan_unimport_pd(struct ibv_pd *pd)
{
	free(to_roan_pd(pd));
}

/* ---- memory regions ---- */

struct ibv_mr *roan_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access)
{
	ROAN_CMD(ib_uverbs_reg_mr) cmd = { 0 };
	struct ib_uverbs_reg_mr_resp resp = { 0 };
	struct verbs_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	errno = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, mr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (errno) {
		free(mr);
		return NULL;
	}
	return &mr->ibv_mr;
}

struct ibv_mr *roan_reg_by_ioctl(struct ibv_pd *pd, uint16_t method, struct ib_uverbs_attr *attrs, uint16_t n,
				 const struct verbs_mr *like)
{
	struct verbs_mr *mr = malloc(sizeof(*mr));
	uint16_t i;

	if (!mr)
		return NULL;
	*mr = *like;
	for (i = 0; i < n; i++)
		attrs[i].flags = UVERBS_ATTR_F_MANDATORY;
	attrs[n - 2].len = sizeof(mr->ibv_mr.lkey);
	attrs[n - 2].data = (uintptr_t)&mr->ibv_mr.lkey;
	attrs[n - 1].len = sizeof(mr->ibv_mr.rkey);
	attrs[n - 1].data = (uintptr_t)&mr->ibv_mr.rkey;
	errno = roan_ioctl(pd->context, UVERBS_OBJECT_MR, method, attrs, n);
	if (errno) {
		free(mr);
		return NULL;
	}
	mr->ibv_mr.context = pd->context;
	mr->ibv_mr.pd = pd;
	mr->ibv_mr.handle = attrs[0].data;
	return &mr->ibv_mr;
}

/* Not by ibv_cmd_reg_dmabuf_mr(): its parameters changed without a new symbol version. */
struct ibv_mr *roan_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	const struct verbs_mr like = {
		.ibv_mr = { .addr = (void *)(uintptr_t)offset, .length = length },
		.mr_type = IBV_MR_TYPE_DMABUF_MR,
		.access = access,
	};
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_HANDLE },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, .data = pd->handle },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_OFFSET, .len = sizeof(uint64_t), .data = offset },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_LENGTH, .len = sizeof(uint64_t), .data = length },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_IOVA, .len = sizeof(uint64_t), .data = iova },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_FD, .len = sizeof(uint32_t), .data = roan_inline_u32(fd) },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, .len = sizeof(uint32_t), .data = roan_inline_u32(access) },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY },
		{ .attr_id = UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY },
	};

	return roan_reg_by_ioctl(pd, UVERBS_METHOD_REG_DMABUF_MR, attrs, sizeof(attrs) / sizeof(*attrs), &like);
}

int roan_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	ROAN_CMD(ib_uverbs_rereg_mr) cmd = { 0 };
	struct ib_uverbs_rereg_mr_resp resp = { 0 };
	int err = ibv_cmd_rereg_mr(mr, flags, addr, length, (uintptr_t)addr, access, pd, &cmd, sizeof(cmd), &resp,
				   sizeof(resp));

	if (!err && flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = access;	/* roan_bind_mw() reads it */
	return err;
}

int roan_dereg_mr(struct verbs_mr *mr)
{
	int err = ibv_cmd_dereg_mr(mr);

	if (!err)
		free(mr);
	return err;
}

struct ibv_mr *roan_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	errno = ibv_cmd_query_mr(pd, mr, handle);
	if (errno) {
		free(mr);
		return NULL;
	}
	return &mr->ibv_mr;
}

void roan_unimport_mr(struct ibv_mr *mr)
{
	free(mr);	/* the ibv_mr comes first in struct verbs_mr */
}

/* ---- device memory ---- */

static int dm_check_range(struct ibv_dm *ibdm, uint64_t off, size_t len)
{
	const struct roan_dm *dm = to_roan_dm(ibdm);

	/* Offset and length are multiples of 4, as with other devices that have device memory. */
	return off % 4 || len % 4 || off > dm->length || len > dm->length - off ? EINVAL : 0;
}

/* For device memory that cannot be mapped (a PCI BAR). */
static int copy_by_kernel(struct ibv_dm *ibdm, uint64_t off, const void *user, size_t len, bool write)
{
	struct roan_dm_copy what = { .offset = off, .length = len, .user = (uintptr_t)user, .write = write };
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = ROAN_ATTR_DM_COPY_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY, .data = ibdm->handle },
		{ .attr_id = ROAN_ATTR_DM_COPY_REQ, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(what),
		  .data = (uintptr_t)&what },
	};

	return roan_ioctl(ibdm->context, UVERBS_OBJECT_DM, ROAN_METHOD_DM_COPY, attrs, 2);
}

static int copy_to_dm(struct ibv_dm *ibdm, uint64_t off, const void *from, size_t len)
{
	int err = dm_check_range(ibdm, off, len);

	if (err)
		return err;
	if (!to_roan_dm(ibdm)->map)
		return copy_by_kernel(ibdm, off, from, len, true);
	memcpy(to_roan_dm(ibdm)->map->at + off, from, len);
	return 0;
}

static int copy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t off, size_t len)
{
	int err = dm_check_range(ibdm, off, len);

	if (err)
		return err;
	if (!to_roan_dm(ibdm)->map)
		return copy_by_kernel(ibdm, off, to, len, false);
	memcpy(to, to_roan_dm(ibdm)->map->at + off, len);
	return 0;
}

/* Also for device memory that another context of the same file allocated. */
struct ibv_dm *roan_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	struct roan_dm_desc desc = { 0 };
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = ROAN_ATTR_DM_MAP_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
		{ .attr_id = ROAN_ATTR_DM_MAP_RESP, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(desc),
		  .data = (uintptr_t)&desc },
	};
	struct roan_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	errno = roan_ioctl(ctx, UVERBS_OBJECT_DM, ROAN_METHOD_DM_MAP, attrs, 2);
	if (errno)
		goto err_free;
	if (desc.mmap_offset != ROAN_DM_UNMAPPED) {
		dm->map = roan_map(ctx, desc.length, PROT_READ | PROT_WRITE, desc.mmap_offset);
		if (!dm->map)
			goto err_free;
	}
	dm->length = desc.length;
	dm->ibv.context = ctx;
	dm->ibv.handle = handle;
	dm->ibv.memcpy_to_dm = copy_to_dm;
	dm->ibv.memcpy_from_dm = copy_from_dm;
	return &dm->ibv;

err_free:
	free(dm);
	return NULL;
}

void roan_unimport_dm(struct ibv_dm *ibdm)
{
	struct roan_dm *dm = to_roan_dm(ibdm);

	if (dm->map)
		roan_unmap(dm->map);
	free(dm);
}

#if ROAN_RDMA_CORE >= 62
int roan_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	int32_t fd = -1;
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = ROAN_ATTR_DM_EXPORT_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY, .data = dm->handle },
		{ .attr_id = ROAN_ATTR_DM_EXPORT_FD, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(fd),
		  .data = (uintptr_t)&fd },
	};

	errno = roan_ioctl_or_unsupported(dm->context, UVERBS_OBJECT_DM, ROAN_METHOD_DM_EXPORT, attrs, 2);
	return errno ? -1 : fd;
}
#endif

static int free_dm_handle(struct ibv_context *ctx, uint32_t handle)
{
	struct ib_uverbs_attr attr = { .attr_id = UVERBS_ATTR_FREE_DM_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY,
				       .data = handle };

	return roan_ioctl_destroy(ctx, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, &attr);
}

struct ibv_dm *roan_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = UVERBS_ATTR_ALLOC_DM_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY },
		{ .attr_id = UVERBS_ATTR_ALLOC_DM_LENGTH, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(uint64_t),
		  .data = attr->length },
		{ .attr_id = UVERBS_ATTR_ALLOC_DM_ALIGNMENT, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(uint32_t),
		  .data = roan_inline_u32(attr->log_align_req) },
	};
	struct ibv_dm *dm;
	int err;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	errno = roan_ioctl(ctx, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, attrs, 3);
	if (errno)
		return NULL;
	dm = roan_import_dm(ctx, attrs[0].data);
	if (!dm) {
		err = errno;
		free_dm_handle(ctx, attrs[0].data);
		errno = err;
	}
	return dm;
}

int roan_free_dm(struct ibv_dm *dm)
{
	int err = free_dm_handle(dm->context, dm->handle);

	if (!err)
		roan_unimport_dm(dm);
	return err;
}

struct ibv_mr *roan_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t length, unsigned int access)
{
	const struct verbs_mr like = {
		.ibv_mr = { .length = length },
		.mr_type = IBV_MR_TYPE_MR,
		.access = access & ~IBV_ACCESS_ZERO_BASED,	/* all are, and windows can be bound to them */
	};
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_HANDLE },
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_DM_HANDLE, .data = dm->handle },
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_PD_HANDLE, .data = pd->handle },
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_OFFSET, .len = sizeof(uint64_t), .data = off },
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_LENGTH, .len = sizeof(uint64_t), .data = length },
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, .len = sizeof(uint32_t), .data = roan_inline_u32(access) },
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_RESP_LKEY },
		{ .attr_id = UVERBS_ATTR_REG_DM_MR_RESP_RKEY },
	};

	return roan_reg_by_ioctl(pd, UVERBS_METHOD_DM_MR_REG, attrs, sizeof(attrs) / sizeof(*attrs), &like);
}

/* ---- memory windows ---- */

struct ibv_mw *roan_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	ROAN_CMD(ib_uverbs_alloc_mw) cmd = { 0 };
	struct ib_uverbs_alloc_mw_resp resp = { 0 };
	struct ibv_mw *mw = calloc(1, sizeof(*mw));

	if (!mw)
		return NULL;
	errno = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (errno) {
		free(mw);
		return NULL;
	}
	return mw;
}

int roan_dealloc_mw(struct ibv_mw *mw)
{
	int err = ibv_cmd_dealloc_mw(mw);

	if (!err)
		free(mw);
	return err;
}

/* ---- address handles ---- */

struct ibv_ah *roan_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	ROAN_RESP(ib_uverbs_create_ah_resp, roan_create_ah_resp) resp = { 0 };
	struct roan_ah *ah = calloc(1, sizeof(*ah));

	_Static_assert(offsetof(typeof(resp), roan) == 4, "create_ah response");
	if (!ah)
		return NULL;
	errno = ibv_cmd_create_ah(pd, &ah->ibv, attr, &resp, sizeof(resp));
	if (errno) {
		free(ah);
		return NULL;
	}
	ah->ah_num = resp.roan.ah_num;
	return &ah->ibv;
}

int roan_destroy_ah(struct ibv_ah *ibah)
{
	int err = ibv_cmd_destroy_ah(ibah);

	if (!err)
		free(ibah);	/* first member of struct roan_ah */
	return err;
}
