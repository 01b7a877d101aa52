// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* DMA handles (ibv_alloc_dmah()) and regions with one (ibv_reg_mr_ex()); since rdma-core 59. */
#include <stdlib.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "roan.h"

#if ROAN_RDMA_CORE >= 59

struct roan_dmah {
	struct ibv_dmah ibv;
	uint32_t handle;
};

/*
 * Numbers of the kernel's interface. Not by the names of the kernel's headers, because those that are installed may be
 * older than rdma-core.
 */
enum { OBJECT_DMAH = 17, METHOD_DMAH_ALLOC = 0, METHOD_DMAH_FREE = 1, METHOD_REG_MR = 5 };
enum { ATTR_ALLOC_HANDLE, ATTR_ALLOC_CPU_ID, ATTR_ALLOC_MEM_TYPE, ATTR_ALLOC_PH };
enum { ATTR_FREE_HANDLE };
enum {
	ATTR_MR_HANDLE, ATTR_MR_PD, ATTR_MR_DMAH, ATTR_MR_IOVA, ATTR_MR_ADDR, ATTR_MR_LENGTH, ATTR_MR_ACCESS, ATTR_MR_FD,
	ATTR_MR_FD_OFFSET, ATTR_MR_LKEY, ATTR_MR_RKEY,
};

#ifdef ROAN_IN_TREE	/* with the headers of its own release */
ROAN_SAME(OBJECT_DMAH, UVERBS_OBJECT_DMAH);
ROAN_SAME(METHOD_DMAH_FREE, UVERBS_METHOD_DMAH_FREE);
ROAN_SAME(METHOD_REG_MR, UVERBS_METHOD_REG_MR);
ROAN_SAME(ATTR_ALLOC_PH, UVERBS_ATTR_ALLOC_DMAH_PH);
ROAN_SAME(ATTR_MR_RKEY, UVERBS_ATTR_REG_MR_RESP_RKEY);
#endif

struct ibv_dmah *roan_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *init)
{
	struct ib_uverbs_attr attrs[4] = { { .attr_id = ATTR_ALLOC_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY } };
	struct roan_dmah *dmah;
	uint64_t ph = 0;
	uint16_t n = 1;

	memcpy(&ph, &init->ph, sizeof(init->ph));	/* inline, at the lowest address */
	if (init->comp_mask & ~(IBV_DMAH_INIT_ATTR_MASK_CPU_ID | IBV_DMAH_INIT_ATTR_MASK_PH |
				IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (init->comp_mask & IBV_DMAH_INIT_ATTR_MASK_CPU_ID)
		attrs[n++] = (struct ib_uverbs_attr) {
			.attr_id = ATTR_ALLOC_CPU_ID, .len = sizeof(uint32_t), .data = roan_inline_u32(init->cpu_id),
		};
	if (init->comp_mask & IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE)
		attrs[n++] = (struct ib_uverbs_attr) {
			.attr_id = ATTR_ALLOC_MEM_TYPE, .attr_data.enum_data.elem_id = init->tph_mem_type,
		};
	if (init->comp_mask & IBV_DMAH_INIT_ATTR_MASK_PH)
		attrs[n++] = (struct ib_uverbs_attr) {
			.attr_id = ATTR_ALLOC_PH, .len = sizeof(init->ph), .data = ph,
		};
	dmah = calloc(1, sizeof(*dmah));
	if (!dmah)
		return NULL;
	errno = roan_ioctl_or_unsupported(ctx, OBJECT_DMAH, METHOD_DMAH_ALLOC, attrs, n);
	if (errno) {
		free(dmah);
		return NULL;
	}
	dmah->ibv.context = ctx;
	dmah->handle = attrs[0].data;
	return &dmah->ibv;
}

int roan_dealloc_dmah(struct ibv_dmah *ibv)
{
	struct roan_dmah *dmah = (struct roan_dmah *)ibv;
	struct ib_uverbs_attr attr = {
		.attr_id = ATTR_FREE_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY, .data = dmah->handle,
	};
	int err = roan_ioctl_destroy(ibv->context, OBJECT_DMAH, METHOD_DMAH_FREE, &attr);

	if (!err)
		free(dmah);
	return err;
}

static struct ibv_mr *reg_with_dmah(struct ibv_pd *pd, const struct ibv_mr_init_attr *init, uint64_t iova)
{
	const bool by_fd = init->comp_mask & IBV_REG_MR_MASK_FD;
	const struct verbs_mr like = {
		.ibv_mr = { .addr = init->addr, .length = init->length },
		.mr_type = by_fd ? IBV_MR_TYPE_DMABUF_MR : IBV_MR_TYPE_MR,
		.access = init->access,
	};
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = ATTR_MR_HANDLE },
		{ .attr_id = ATTR_MR_PD, .data = pd->handle },
		{ .attr_id = ATTR_MR_DMAH, .data = ((struct roan_dmah *)init->dmah)->handle },
		{ .attr_id = ATTR_MR_IOVA, .len = sizeof(uint64_t), .data = iova },
		{ .attr_id = ATTR_MR_LENGTH, .len = sizeof(uint64_t), .data = init->length },
		{ .attr_id = ATTR_MR_ACCESS, .len = sizeof(uint32_t), .data = roan_inline_u32(init->access) },
		{ .attr_id = ATTR_MR_ADDR, .len = sizeof(uint64_t), .data = (uintptr_t)init->addr },
		{ 0 },
		{ 0 },
		{ 0 },
	};
	uint16_t n = 7;

	if (by_fd) {
		attrs[n - 1] = (struct ib_uverbs_attr) { .attr_id = ATTR_MR_FD, .data_s64 = init->fd };
		attrs[n++] = (struct ib_uverbs_attr) {
			.attr_id = ATTR_MR_FD_OFFSET, .len = sizeof(uint64_t), .data = init->fd_offset,
		};
	}
	attrs[n++].attr_id = ATTR_MR_LKEY;
	attrs[n++].attr_id = ATTR_MR_RKEY;
	return roan_reg_by_ioctl(pd, METHOD_REG_MR, attrs, n, &like);
}

/* A request without a handle is one of the older calls, which all kernels have. */
struct ibv_mr *roan_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *init)
{
	const uint64_t by_fd = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_IOVA;
	const uint64_t known = by_fd | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH;
	uint64_t mask = init->comp_mask & ~(uint64_t)IBV_REG_MR_MASK_DMAH;
	uint64_t iova = mask & IBV_REG_MR_MASK_IOVA ? init->iova : (uintptr_t)init->addr;

	if (init->comp_mask & ~known) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (mask != by_fd && (mask & ~(uint64_t)IBV_REG_MR_MASK_IOVA) != IBV_REG_MR_MASK_ADDR) {
		errno = EINVAL;
		return NULL;
	}
	if (init->comp_mask & IBV_REG_MR_MASK_DMAH)
		return reg_with_dmah(pd, init, iova);
	if (mask == by_fd)
		return roan_reg_dmabuf_mr(pd, init->fd_offset, init->length, iova, init->fd, init->access);
	return roan_reg_mr(pd, init->addr, init->length, iova, init->access);
}

#endif
