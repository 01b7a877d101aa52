// SPDX-License-Identifier: GPL-2.0
/*
 * Completion counters (ibv_create_comp_cntr()): creation, attachment to QPs, reads and changes. A counter is a page
 * that its program maps and reads without a system call. Does not count: base/comp_count.h does.
 */
#include <rdma/uverbs_ioctl.h>
#define UVERBS_MODULE_NAME roan_comp_cntr
#include <rdma/uverbs_named_ioctl.h>
#include "base/base.h"
#include "base/comp_count.h"
#include "base/user_mem.h"
#include "verbs/verbs.h"

#ifdef HAVE_COMP_CNTR

struct roan_comp_cntr {
	struct ib_comp_cntr ib;
	struct roan_mmap *map;
	struct roan_user *user;		/* the counter is in this user's share (base/user_share.h) */
};

static struct roan_comp_count *comp_cntr_count(struct ib_comp_cntr *ib)
{
	return container_of(ib, struct roan_comp_cntr, ib)->map->buf;
}

static int query_comp_cntr_caps(struct ib_device *ibdev, struct ib_comp_cntr_caps *caps,
				struct uverbs_attr_bundle *attrs)
{
	caps->max_value = U64_MAX;
	caps->max_counters = ROAN_MAX_COMP_CNTR;
	caps->supported_qp_attach_ops = BIT(ROAN_NUM_COMP_OPS) - 1;
	return 0;
}

static int create_comp_cntr(struct ib_comp_cntr *ib, struct uverbs_attr_bundle *attrs)
{
	struct roan_comp_cntr *cntr = container_of(ib, struct roan_comp_cntr, ib);
	struct roan_dev *dev = to_roan_dev(ib->device);
	struct roan_comp_cntr_desc desc = {};
	int err;

	BUILD_BUG_ON(offsetof(struct roan_comp_count, completed) != offsetof(struct roan_comp_cntr_page, completed));
	BUILD_BUG_ON(offsetof(struct roan_comp_count, failed) != offsetof(struct roan_comp_cntr_page, failed));
	cntr->user = to_roan_ucontext(attrs->context)->user;
	err = roan_share_take(cntr->user, ROAN_SHARE_COMP_CNTR);
	if (err)
		return err;
	if (atomic_inc_return(&dev->n_comp_cntr) > ROAN_MAX_COMP_CNTR) {
		err = -ENOMEM;
		goto err_dec;
	}
	cntr->map = roan_user_mem_alloc(PAGE_SIZE, attrs->context);
	if (IS_ERR(cntr->map)) {
		err = PTR_ERR(cntr->map);
		goto err_dec;
	}
	desc.mmap_offset = rdma_user_mmap_get_offset(&cntr->map->entry);
	err = uverbs_copy_to_struct_or_zero(attrs, ROAN_ATTR_COMP_CNTR_DESC, &desc, sizeof(desc));
	if (IS_UVERBS_COPY_ERR(err))	/* the attribute is optional */
		goto err_free;
	return 0;

err_free:
	rdma_user_mmap_entry_remove(&cntr->map->entry);
err_dec:
	atomic_dec(&dev->n_comp_cntr);
	roan_share_give(cntr->user, ROAN_SHARE_COMP_CNTR);
	return err;
}

/* The core has checked that it is attached to no QP. */
static int destroy_comp_cntr(struct ib_comp_cntr *ib)
{
	struct roan_comp_cntr *cntr = container_of(ib, struct roan_comp_cntr, ib);

	rdma_user_mmap_entry_remove(&cntr->map->entry);
	atomic_dec(&to_roan_dev(ib->device)->n_comp_cntr);
	roan_share_give(cntr->user, ROAN_SHARE_COMP_CNTR);
	return 0;
}

static int modify_comp_cntr(struct ib_comp_cntr *ib, enum ib_comp_cntr_entry entry, enum ib_comp_cntr_modify_op op,
			    u64 value)
{
	struct roan_comp_count *count = comp_cntr_count(ib);
	atomic64_t *which = entry == IB_COMP_CNTR_ENTRY_ERR ? &count->failed : &count->completed;

	if (op == IB_COMP_CNTR_MODIFY_OP_SET)
		atomic64_set(which, value);
	else
		atomic64_add(value, which);
	return 0;
}

static int read_comp_cntr(struct ib_comp_cntr *ib, enum ib_comp_cntr_entry entry, u64 *value)
{
	struct roan_comp_count *count = comp_cntr_count(ib);

	*value = atomic64_read(entry == IB_COMP_CNTR_ENTRY_ERR ? &count->failed : &count->completed);
	return 0;
}

static int comp_counts_alloc(struct roan_qp *qp)
{
	struct roan_comp_counts *counts = kzalloc(sizeof(*counts), GFP_KERNEL_ACCOUNT);

	if (!counts)
		return -ENOMEM;
	smp_store_release(&qp->comp_counts, counts);	/* pairs with roan_comp_count() */
	return 0;
}

/*
 * The core has checked @attr->op_mask, refuses a second counter for the same operation, and keeps the counter until the
 * QP is destroyed. An INIT QP may enter ERR meanwhile: the counter then counts its receives from some point on.
 */
static int qp_attach_comp_cntr(struct ib_qp *ibqp, struct ib_comp_cntr *ib, struct ib_qp_attach_comp_cntr_attr *attr)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	unsigned long ops = attr->op_mask;
	enum ib_qp_state state;
	int err = 0;
	u32 op;

	BUILD_BUG_ON(BIT(ROAN_COMP_REMOTE_WRITE) != IB_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE);
	mutex_lock(&qp->mutex);
	state = READ_ONCE(qp->state);
	if (state != IB_QPS_RESET && state != IB_QPS_INIT)
		err = -EINVAL;
	else if (!qp->comp_counts)
		err = comp_counts_alloc(qp);
	if (!err)
		for_each_set_bit(op, &ops, ROAN_NUM_COMP_OPS)
			WRITE_ONCE(qp->comp_counts->of[op], comp_cntr_count(ib));
	mutex_unlock(&qp->mutex);
	return err;
}

const struct ib_device_ops roan_comp_cntr_ops = {
	.query_comp_cntr_caps	= query_comp_cntr_caps,
	.create_comp_cntr	= create_comp_cntr,
	.destroy_comp_cntr	= destroy_comp_cntr,
	.modify_comp_cntr	= modify_comp_cntr,
	.read_comp_cntr		= read_comp_cntr,
	.qp_attach_comp_cntr	= qp_attach_comp_cntr,
	INIT_RDMA_OBJ_SIZE(ib_comp_cntr, roan_comp_cntr, ib),
};

ADD_UVERBS_ATTRIBUTES_SIMPLE(roan_comp_cntr_create, UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_CREATE,
			     UVERBS_ATTR_PTR_OUT(ROAN_ATTR_COMP_CNTR_DESC,
						 UVERBS_ATTR_STRUCT(struct roan_comp_cntr_desc, mmap_offset),
						 UA_OPTIONAL));

const struct uapi_definition roan_comp_cntr_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_COMP_CNTR, &roan_comp_cntr_create),
	{}
};

#else /* !HAVE_COMP_CNTR */

const struct ib_device_ops roan_comp_cntr_ops = {};
const struct uapi_definition roan_comp_cntr_defs[] = { {} };

#endif
