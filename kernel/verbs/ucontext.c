// SPDX-License-Identifier: GPL-2.0
/* User contexts. Mapping of rings is in base/user_mem.c, handling of doorbell hints in tx/doorbell_batch.c. */
#include <linux/sched/mm.h>
#include <rdma/uverbs_ioctl.h>
#define UVERBS_MODULE_NAME roan
#include <rdma/uverbs_named_ioctl.h>
#include "base/base.h"
#include "mem/mem.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

#define UCTX_RESP(_features) ((struct roan_alloc_ucontext_resp) {		\
	.features = (_features),						\
	.max_inline = ROAN_MAX_INLINE,						\
})

/* False for an older provider, whose response buffer ends before db_hints. */
static bool uctx_knows_hints(const struct ib_udata *udata)
{
	return udata->outlen >= offsetofend(struct roan_alloc_ucontext_resp, db_hints);
}

/*
 * Programs open all devices to choose one, also with no RLIMIT_MEMLOCK left. Without a hint ring, which is charged to
 * it, @desc stays 0 and each post to an idle queue rings.
 */
static int uctx_alloc_hints(struct roan_ucontext *uctx, struct roan_ring_desc *desc)
{
	int err = roan_db_hints_alloc(uctx, desc);

	return err == -ENOMEM || err == -EPERM ? 0 : err;
}

int roan_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata)
{
	struct roan_ucontext *uctx = to_roan_ucontext(ibuctx);
	struct roan_alloc_ucontext_resp resp = UCTX_RESP(ROAN_FEATURE_ONE_MAPPING | ROAN_FEATURE_QP_HANDLE);
	struct roan_alloc_ucontext_req req = {};
	int err;

	if (udata->inlen) {
		err = roan_udata_in(udata, &req, features);
		if (err)
			return err;
	}
	uctx->user = roan_user_get(to_roan_dev(ibuctx->device));
	if (!uctx->user)
		return -ENOMEM;
	uctx->mm = current->mm;
	mmgrab(uctx->mm);
	uctx->one_mapping = req.features & ROAN_FEATURE_ONE_MAPPING;
	roan_db_hints_init(&uctx->db_hints);
	if (uctx_knows_hints(udata)) {
		err = uctx_alloc_hints(uctx, &resp.db_hints);
		if (err)
			goto err_put_user;
	}
	err = roan_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_free_hints;
	return 0;

err_free_hints:
	roan_db_hints_free(&uctx->db_hints);
err_put_user:
	mmdrop(uctx->mm);
	roan_user_put(uctx->user);
	return err;
}

void roan_dealloc_ucontext(struct ib_ucontext *ibuctx)
{
	struct roan_ucontext *uctx = to_roan_ucontext(ibuctx);

	roan_db_hints_free(&uctx->db_hints);
	roan_user_put(uctx->user);
	mmdrop(uctx->mm);
}

/*
 * Empty but required: its presence lets the core remove the device while contexts are open. Mapped rings stay mapped:
 * the core removes only what rdma_user_mmap_io() mapped, and the pages live as base/user_mem.c says.
 */
void roan_disassociate_ucontext(struct ib_ucontext *uctx)
{
}

/* The features that have an effect in this context. A provider that imports the context must know them all. */
static u64 uctx_features(const struct roan_ucontext *uctx)
{
	return ROAN_FEATURE_QP_HANDLE | (uctx->one_mapping ? ROAN_FEATURE_ONE_MAPPING : 0);
}

/* The method has no udata, so the answer is an attribute, an optional one. */
int roan_query_ucontext(struct ib_ucontext *ibuctx, struct uverbs_attr_bundle *attrs)
{
	const struct roan_alloc_ucontext_resp resp = UCTX_RESP(uctx_features(to_roan_ucontext(ibuctx)));

	if (!uverbs_attr_is_valid(attrs, ROAN_ATTR_QUERY_CONTEXT_RESP))
		return 0;
	return uverbs_copy_to_struct_or_zero(attrs, ROAN_ATTR_QUERY_CONTEXT_RESP, &resp, sizeof(resp));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(roan_query_context, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(ROAN_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct roan_alloc_ucontext_resp, reserved),
						 UA_OPTIONAL));

const struct uapi_definition roan_ucontext_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &roan_query_context),
	{}
};
