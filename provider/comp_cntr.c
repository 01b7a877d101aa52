// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion counters (ibv_create_comp_cntr()); since rdma-core 65. The kernel counts; here they are mapped and read. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "roan.h"

#if ROAN_RDMA_CORE >= 65

struct roan_comp_cntr {
	struct ibv_comp_cntr ibv;	/* first */
	struct roan_mapping *map;	/* a struct roan_comp_cntr_page */
};

static const struct roan_comp_cntr_page *page_of(struct ibv_comp_cntr *cntr)
{
	return (const void *)((struct roan_comp_cntr *)cntr)->map->at;
}

/* Numbers of the kernel's interface, whose installed headers may be older than rdma-core. */
enum { OBJECT_COMP_CNTR = 19, METHOD_CREATE = 0, ATTR_CREATE_HANDLE = 0 };

#ifdef ROAN_IN_TREE	/* with the headers of its own release */
ROAN_SAME(OBJECT_COMP_CNTR, UVERBS_OBJECT_COMP_CNTR);
ROAN_SAME(METHOD_CREATE, UVERBS_METHOD_COMP_CNTR_CREATE);
ROAN_SAME(ATTR_CREATE_HANDLE, UVERBS_ATTR_CREATE_COMP_CNTR_HANDLE);
#endif

int roan_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps, size_t size)
{
	return roan_or_unsupported(ibv_cmd_query_comp_cntr_caps(ctx, caps, size));
}

struct ibv_comp_cntr *roan_create_comp_cntr(struct ibv_context *ctx, struct ibv_comp_cntr_init_attr *init)
{
	struct roan_comp_cntr_desc desc = { 0 };
	struct ib_uverbs_attr attrs[] = {
		{ .attr_id = ATTR_CREATE_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY },
		{ .attr_id = ROAN_ATTR_COMP_CNTR_DESC, .flags = UVERBS_ATTR_F_MANDATORY, .len = sizeof(desc),
		  .data = (uintptr_t)&desc },
	};
	struct roan_comp_cntr *cntr;

	if (init->comp_mask || init->flags || init->type != IBV_COMP_CNTR_TYPE_WRS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return NULL;
	errno = roan_ioctl_or_unsupported(ctx, OBJECT_COMP_CNTR, METHOD_CREATE, attrs, 2);
	if (errno)
		goto err_free;
	cntr->ibv.context = ctx;
	cntr->ibv.handle = attrs[0].data;
	cntr->map = roan_map(ctx, sysconf(_SC_PAGESIZE), PROT_READ, desc.mmap_offset);
	if (cntr->map)
		return &cntr->ibv;
	ibv_cmd_destroy_comp_cntr(&cntr->ibv);
	errno = ENOMEM;
err_free:
	free(cntr);
	return NULL;
}

int roan_destroy_comp_cntr(struct ibv_comp_cntr *ibv)
{
	struct roan_comp_cntr *cntr = (struct roan_comp_cntr *)ibv;
	int err = ibv_cmd_destroy_comp_cntr(ibv);

	if (err)
		return err;
	roan_unmap(cntr->map);
	free(cntr);
	return 0;
}

/* Acquire: what a completed request wrote is visible to a reader that sees it counted. */
int roan_read_comp_cntr(struct ibv_comp_cntr *ibv, uint64_t *value)
{
	*value = __atomic_load_n(&page_of(ibv)->completed, __ATOMIC_ACQUIRE);
	return 0;
}

int roan_read_err_comp_cntr(struct ibv_comp_cntr *ibv, uint64_t *value)
{
	*value = __atomic_load_n(&page_of(ibv)->failed, __ATOMIC_ACQUIRE);
	return 0;
}

int roan_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, struct ibv_qp_attach_comp_cntr_attr *attr)
{
	return attr->comp_mask ? EOPNOTSUPP : ibv_cmd_qp_attach_comp_cntr(qp, cntr, attr);
}

#endif
