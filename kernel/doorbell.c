// SPDX-License-Identifier: GPL-2.0
/*
 * From a user's doorbell to "these QPs have work": a method of the uverbs QP object. Sending happens in the caller's own
 * context: waking somebody else costs more than the system call. When a doorbell is not needed is ring.h's affair.
 *
 * A file of our own with a write() would save some 200 ns of the core's dispatch, but its file_operations would keep the
 * module from being unloaded while any program has a device open, and bells are rare where speed matters.
 */
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_std_types.h>
#define UVERBS_MODULE_NAME roan
#include <rdma/uverbs_named_ioctl.h>
#include "roan.h"

static void look_at(struct roan_qp *qp)
{
	spin_lock_bh(&qp->sq.lock);
	roan_linger_bell(&qp->sq, ktime_get_ns());
	roan_send_locked(qp);
	spin_unlock_bh(&qp->sq.lock);
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		roan_qp_fail(qp);	/* nobody else flushes what was posted to the receive queue since */
}

/* The core holds the objects and the device while this runs, and says EIO by itself once the device is gone. */
static int UVERBS_HANDLER(ROAN_METHOD_QP_DOORBELL)(struct uverbs_attr_bundle *attrs)
{
	struct roan_qp *answered = NULL;
	struct ib_uobject **uobjs;
	int i, n = uverbs_attr_get_uobjs_arr(attrs, ROAN_ATTR_QP_DOORBELL_HANDLES, &uobjs);

	for (i = 0; i < n; i++) {
		struct roan_qp *qp = to_roan_qp(uobjs[i]->object);

		look_at(qp);
		if (roan_turn_answered(qp))
			answered = qp;
	}
	if (answered)
		roan_turn_pass(answered);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(ROAN_METHOD_QP_DOORBELL,
	UVERBS_ATTR_IDRS_ARR(ROAN_ATTR_QP_DOORBELL_HANDLES, UVERBS_OBJECT_QP, UVERBS_ACCESS_READ, 1, ROAN_MAX_BELLS,
			     UA_MANDATORY));

ADD_UVERBS_METHODS(roan_qp, UVERBS_OBJECT_QP, &UVERBS_METHOD(ROAN_METHOD_QP_DOORBELL));

const struct uapi_definition roan_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &roan_qp),
	UAPI_DEF_CHAIN(roan_dm_defs),
	UAPI_DEF_CHAIN(roan_choose_defs),
	{}
};
