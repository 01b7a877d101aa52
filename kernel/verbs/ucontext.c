// SPDX-License-Identifier: GPL-2.0
/* User contexts, and how udata goes in and out. Rings are mapped in ring.c; what notices lead to is doorbell_batch.c's. */
#include <rdma/uverbs_ioctl.h>
#include "base/base.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

/* An older provider has room for the answer's first version only, which knew no notices. */
static bool knows_notices(const struct ib_udata *udata)
{
	return udata->outlen >= sizeof(struct roan_alloc_ucontext_resp);
}

static int answer(struct ib_udata *udata, struct roan_alloc_ucontext_resp *resp)
{
	resp->features = ROAN_FEATURE_ONE_MAPPING;
	resp->max_inline = ROAN_MAX_INLINE;
	return roan_udata_out(udata, resp, knows_notices(udata) ? sizeof(*resp) : offsetof(typeof(*resp), notices));
}

int roan_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata)
{
	struct roan_uctx *uctx = to_roan_uctx(ibuctx);
	struct roan_alloc_ucontext_resp resp = {};
	struct roan_alloc_ucontext_req req = {};
	int err;

	if (udata->inlen) {
		err = roan_udata_in(udata, &req, sizeof(req));
		if (err)
			return err;
	}
	uctx->one_mapping = req.features & ROAN_FEATURE_ONE_MAPPING;
	roan_notices_init(&uctx->notices);
	if (knows_notices(udata)) {
		err = roan_notices_alloc(uctx, &resp.notices);
		if (err)
			return err;
	}
	err = answer(udata, &resp);
	if (err)
		roan_notices_free(&uctx->notices);
	return err;
}

void roan_dealloc_ucontext(struct ib_ucontext *uctx)
{
	roan_notices_free(&to_roan_uctx(uctx)->notices);
}

/*
 * Empty, and needed: its presence tells the core that our mappings survive the device. The core takes them away from the
 * process; the ring memory belongs to its mmap entry.
 */
void roan_disassociate_ucontext(struct ib_ucontext *uctx)
{
}

int roan_query_ucontext(struct ib_ucontext *uctx, struct uverbs_attr_bundle *attrs)
{
	struct roan_alloc_ucontext_resp resp = {};

	return answer(&attrs->driver_udata, &resp);
}
