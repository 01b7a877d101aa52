// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: create, resize, query, destroy, events. Kernel consumers post in kpost.c. Does not fetch work
 * requests from the ring: see rx/recv_fetch.c.
 */
#include "base/base.h"
#include "verbs/verbs.h"

static void srq_send_event(struct roan_srq *srq, enum ib_event_type type)
{
	struct ib_event event = { .device = srq->ib.device, .element.srq = &srq->ib, .event = type };

	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

static void srq_run_deferred(struct roan_deferred *item, unsigned long bits)
{
	struct roan_srq *srq = container_of(item, struct roan_srq, deferred);

	if (bits & BIT(ROAN_DEFER_SRQ_LIMIT))
		srq_send_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	if (bits & BIT(ROAN_DEFER_SRQ_ERR))
		srq_send_event(srq, IB_EVENT_SRQ_ERR);
}

static int srq_alloc_ring(struct roan_ring *ring, u32 max_wr, u32 max_sge, struct ib_udata *udata,
			  struct roan_ring_desc *desc)
{
	struct roan_ucontext *uctx = rdma_udata_to_drv_context(udata, struct roan_ucontext, ib);

	return roan_ring_alloc(ring, max_wr, sizeof(struct roan_recv_wqe) + max_sge * sizeof(struct roan_sge),
			       uctx ? &uctx->ib : NULL, desc);
}

int roan_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	static atomic_t numbers;
	struct roan_srq *srq = to_roan_srq(ibsrq);
	struct roan_create_srq_resp resp = {};
	int err;

	err = roan_udata_no_input(udata);
	if (err)
		return err;
	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > ROAN_MAX_WR || init->attr.max_sge > ROAN_MAX_SGE)
		return -EINVAL;
	spin_lock_init(&srq->lock);
	spin_lock_init(&srq->post_lock);
	refcount_set(&srq->refs, 1);
	init_completion(&srq->released);
	roan_deferred_setup(&srq->deferred, &srq->refs, &srq->released, srq_run_deferred);
	srq->user = udata;
	srq->max_wr = init->attr.max_wr;
	srq->max_sge = max(init->attr.max_sge, 1u);
	srq->num = atomic_inc_return(&numbers) & 0xffffff;
	err = srq_alloc_ring(&srq->ring, srq->max_wr, srq->max_sge, udata, &resp.rq);
	if (err)
		return err;
	init->attr.max_sge = srq->max_sge;
	resp.srq_num = srq->num;
	err = roan_udata_out(udata, &resp, sizeof(resp));
	if (err)
		roan_ring_free(&srq->ring);
	return err;
}

#define MOVE_BATCH	512	/* slots per lock hold, each about half a KiB at most */

/*
 * Moves one batch of slots per lock hold. The provider must keep its threads from posting meanwhile. A kernel consumer
 * may post between two batches, so its slots are moved in a single batch.
 */
static int srq_move_posted(struct roan_srq *srq, struct roan_ring *fresh, u32 max_wr)
{
	u32 most = srq->user ? MOVE_BATCH : U32_MAX;
	struct roan_ring_resize move = {};
	unsigned long flags;
	int err;

	do {
		cond_resched();
		spin_lock_irqsave(&srq->post_lock, flags);
		spin_lock(&srq->lock);
		/* The rings have a power of two of slots, so @fresh may have room for more than may be posted to it. */
		err = roan_ring_pending(&srq->ring) > max_wr ? -EINVAL : 0;
		if (!err)
			err = roan_ring_move_posted(&srq->ring, fresh, &move, most);
		if (!err)
			srq->max_wr = max_wr;
		spin_unlock(&srq->lock);
		spin_unlock_irqrestore(&srq->post_lock, flags);
	} while (err == -EAGAIN);
	return err;
}

static int srq_resize(struct roan_srq *srq, u32 max_wr, const struct roan_modify_srq_req *req, struct ib_udata *udata)
{
	struct roan_modify_srq_resp resp = {};
	struct roan_ring fresh = {};
	int err;

	if (!max_wr || max_wr > ROAN_MAX_WR)
		return -EINVAL;
	/* The core limits the other responses to as many bytes. */
	if (udata && (req->resp_size < offsetofend(struct roan_modify_srq_resp, rq) || req->resp_size > U16_MAX))
		return -EINVAL;
	err = srq_alloc_ring(&fresh, max_wr, srq->max_sge, udata, &resp.rq);
	if (err)
		return err;
	if (udata)
		err = roan_resp_out(u64_to_user_ptr(req->resp_addr), req->resp_size, &resp, sizeof(resp));
	if (!err)
		err = srq_move_posted(srq, &fresh, max_wr);
	roan_ring_free(&fresh);		/* the old ring; after an error, the new one */
	return err;
}

int roan_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct roan_srq *srq = to_roan_srq(ibsrq);
	u32 max_wr = mask & IB_SRQ_MAX_WR ? attr->max_wr : READ_ONCE(srq->max_wr);
	struct roan_modify_srq_req req = {};
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (udata && (udata->inlen || mask & IB_SRQ_MAX_WR)) {
		err = roan_udata_in(udata, &req, reserved);
		if (err)
			return err;
		if (req.reserved)
			return -EINVAL;
	}
	if (mask & IB_SRQ_LIMIT && attr->srq_limit > max_wr)
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR) {
		if (!(mask & IB_SRQ_LIMIT) && READ_ONCE(srq->limit) > max_wr)
			return -EINVAL;
		err = srq_resize(srq, max_wr, &req, udata);
		if (err)
			return err;
	}
	if (mask & IB_SRQ_LIMIT) {
		spin_lock_bh(&srq->lock);
		srq->limit = attr->srq_limit;
		spin_unlock_bh(&srq->lock);
	}
	return 0;
}

int roan_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct roan_srq *srq = to_roan_srq(ibsrq);
	bool failed;

	spin_lock_bh(&srq->lock);
	failed = srq->failed;
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	spin_unlock_bh(&srq->lock);
	return failed ? -EINVAL : 0;
}

int roan_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct roan_srq *srq = to_roan_srq(ibsrq);
	int err = roan_udata_none(udata);

	if (err)
		return err;
	roan_put(&srq->refs, &srq->released);
	wait_for_completion(&srq->released);
	roan_ring_free(&srq->ring);
	return 0;
}
