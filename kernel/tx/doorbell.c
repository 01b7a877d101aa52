// SPDX-License-Identifier: GPL-2.0
/*
 * The doorbell: a method of the uverbs QP object that runs the send queues of the given QPs. The caller's own context
 * sends: waking another thread costs more than the system call. Does not decide when a doorbell is needed:
 * send.c does for a send queue (sq_park()), doorbell_batch.c for the ring of doorbell hints, provider/doorbell.c for
 * the poster.
 *
 * A file descriptor with its own write() would save some of the dispatch in uverbs. But its file_operations would pin
 * the module while any program has a device open, and doorbells are rare where speed matters.
 */
#include <rdma/uverbs_ioctl.h>
#define UVERBS_MODULE_NAME roan
#include <rdma/uverbs_named_ioctl.h>
#include "base/base.h"
#include "tx/tx.h"

void roan_qp_kick(struct roan_qp *qp, struct roan_qp **answered)
{
	roan_send(qp);
	if (!answered || !roan_yield_wanted(qp))
		return;
	if (*answered)
		roan_qp_put(*answered);
	roan_qp_get(qp);
	*answered = qp;
}

/* The core holds the objects and the device during the call, and returns -EIO itself once the device is gone. */
static int UVERBS_HANDLER(ROAN_METHOD_QP_DOORBELL)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uctx = ib_uverbs_get_ucontext(attrs);
	struct roan_qp *answered = NULL;
	u64 began = ktime_get_ns();
	struct ib_uobject **uobjs;
	int i, n;

	if (IS_ERR(uctx))
		return PTR_ERR(uctx);
	n = uverbs_attr_get_uobjs_arr(attrs, ROAN_ATTR_QP_DOORBELL_HANDLES, &uobjs);	/* <= 0: none given */
	for (i = 0; i < n; i++) {
		roan_qp_kick(to_roan_qp(uobjs[i]->object), &answered);
		cond_resched();
	}
	roan_db_batch_ring(to_roan_ucontext(uctx), began, &answered);
	if (answered) {
		roan_yield(answered);
		roan_qp_put(answered);
	}
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	ROAN_METHOD_QP_DOORBELL,
	UVERBS_ATTR_IDRS_ARR(ROAN_ATTR_QP_DOORBELL_HANDLES, UVERBS_OBJECT_QP, UVERBS_ACCESS_READ, 1,
			     ROAN_MAX_DOORBELL_QPS,
			     UA_OPTIONAL));

ADD_UVERBS_METHODS(roan_qp, UVERBS_OBJECT_QP, &UVERBS_METHOD(ROAN_METHOD_QP_DOORBELL));

const struct uapi_definition roan_doorbell_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &roan_qp),
	{}
};
