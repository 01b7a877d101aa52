// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: create, resize, destroy, upcalls, and polling and arming by kernel consumers. A user polls and
 * arms the mapped ring without a system call. tx/cq_post.c writes the CQEs; tx/completion.c decides their contents.
 */
#include "base/base.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

/* ---- upcalls ---- */

/* upcall_lock: the handler of one CQ must not run on two CPUs at once (core_locking.rst). */
static void cq_notify(struct roan_cq *cq)
{
	spin_lock(&cq->upcall_lock);
	if (!cq->destroying && cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
	spin_unlock(&cq->upcall_lock);
}

static void cq_run_deferred(struct roan_deferred *item, unsigned long bits)
{
	struct roan_cq *cq = container_of(item, struct roan_cq, deferred);

	if (bits & BIT(ROAN_DEFER_NOTIFY))
		cq_notify(cq);
	if (bits & BIT(ROAN_DEFER_CQ_ERR) && cq->ib.event_handler) {
		struct ib_event event = {
			.device = cq->ib.device,
			.element.cq = &cq->ib,
			.event = IB_EVENT_CQ_ERR,
		};

		cq->ib.event_handler(&event, cq->ib.cq_context);
	}
}

/* ---- verbs ---- */

/*
 * The ring rounds it up to a power of two. More than requested, as with mlx4 and mlx5: programs rely on it, such as
 * those that request 16 entries for 16 sends and 16 receives. The number reported is one less than there are, so that
 * to request it gives the same size.
 */
static u32 cq_slots(u32 requested)
{
	return requested + 1;
}

int roan_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct roan_ucontext *uctx = rdma_udata_to_drv_context(udata, struct roan_ucontext, ib);
	struct roan_cq *cq = to_roan_cq(ibcq);
	struct roan_create_cq_resp resp = {};
	int err;

	err = roan_udata_no_input(udata);
	if (err)
		return err;
	/* TIMESTAMP_COMPLETION needs no action: every CQE has a timestamp. */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > ROAN_MAX_CQE || attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	spin_lock_init(&cq->poll_lock);
	spin_lock_init(&cq->upcall_lock);
	refcount_set(&cq->refs, 1);
	init_completion(&cq->released);
	roan_deferred_setup(&cq->deferred, &cq->refs, &cq->released, cq_run_deferred);
	cq->user = udata;
	err = roan_ring_alloc(&cq->ring, cq_slots(attr->cqe), sizeof(struct roan_cqe), uctx ? &uctx->ib : NULL,
			      &resp.cq);
	if (err)
		return err;
	ibcq->cqe = cq->ring.mask;
	err = roan_udata_out(udata, &resp, sizeof(resp));
	if (err)
		roan_ring_free(&cq->ring);
	return err;
}

/* When this returns, no comp_handler() runs and none will start. */
static void cq_stop_upcalls(struct roan_cq *cq)
{
	spin_lock_bh(&cq->upcall_lock);
	cq->destroying = true;
	spin_unlock_bh(&cq->upcall_lock);
}

/*
 * comp_handler() may have started work or a softirq of the core, which polls and arms this CQ: when this returns, none
 * runs. ib_free_cq() has cancelled the work, but it may be queued again; SMB Direct calls ib_destroy_cq(), which does
 * not cancel it. irq_poll_disable() of ib_free_cq() does not wait for a softirq that has polled and is about to arm.
 */
static void cq_wait_for_poller(struct ib_cq *cq)
{
	switch (cq->poll_ctx) {
	case IB_POLL_WORKQUEUE:
	case IB_POLL_UNBOUND_WORKQUEUE:
		cancel_work_sync(&cq->work);
		break;
	case IB_POLL_SOFTIRQ:
		if (cq->wc)		/* NULL: of ib_create_cq(), which the core does not poll */
			synchronize_rcu();	/* a softirq is an RCU reader */
		break;
	case IB_POLL_DIRECT:
		break;
	}
}

int roan_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct roan_cq *cq = to_roan_cq(ibcq);
	int err = roan_udata_none(udata);

	if (err)
		return err;
	cq_stop_upcalls(cq);
	if (!cq->user)
		cq_wait_for_poller(ibcq);
	roan_put(&cq->refs, &cq->released);
	wait_for_completion(&cq->released);
	roan_ring_free(&cq->ring);
	return 0;
}

#define MOVE_BATCH	1024	/* entries per lock hold; interrupts are off */

/*
 * Moves one batch of entries per lock hold, as there may be millions. CQEs written between two batches are moved last.
 * A kernel consumer may poll between two batches, so its entries are moved in a single batch.
 */
static int cq_move_entries(struct roan_cq *cq, struct roan_ring *fresh)
{
	u32 head, most = cq->user ? MOVE_BATCH : U32_MAX;
	unsigned long flags;
	int err;

	do {
		cond_resched();
		spin_lock_irqsave(&cq->poll_lock, flags);
		spin_lock(&cq->lock);
		err = roan_ring_move_cqes(&cq->ring, fresh, &head, most);
		if (!err) {
			cq->ib.cqe = cq->ring.mask;
			cq->overflowed = false;
		}
		spin_unlock(&cq->lock);
		spin_unlock_irqrestore(&cq->poll_lock, flags);
	} while (err == -EAGAIN);
	return err;
}

/* The provider must keep its threads from polling during the resize, or they see entries twice or not at all. */
int roan_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct roan_ucontext *uctx = rdma_udata_to_drv_context(udata, struct roan_ucontext, ib);
	struct roan_cq *cq = to_roan_cq(ibcq);
	struct roan_create_cq_resp resp = {};
	struct roan_ring fresh = {};
	int err;

	err = roan_udata_no_input(udata);
	if (err)
		return err;
	if (cqe < 1 || cqe > ROAN_MAX_CQE)
		return -EINVAL;
	err = roan_ring_alloc(&fresh, cq_slots(cqe), sizeof(struct roan_cqe), uctx ? &uctx->ib : NULL, &resp.cq);
	if (err)
		return err;
	err = roan_udata_out(udata, &resp, sizeof(resp));
	if (!err)
		err = cq_move_entries(cq, &fresh);
	roan_ring_free(&fresh);	/* the old ring; after an error, the new one */
	return err;
}

static void cq_to_wc(const struct roan_cqe *cqe, struct ib_wc *wc)
{
	*wc = (struct ib_wc) {
		.wr_id = cqe->wr_id,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp = (struct ib_qp *)(uintptr_t)cqe->qp_handle,
		.src_qp = cqe->src_qp,
		.sl = cqe->sl,
		.port_num = 1,
		.vlan_id = cqe->vlan,
	};
	if (cqe->flags & ROAN_CQE_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm;
	}
	if (cqe->flags & ROAN_CQE_WITH_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->inv_rkey;
	}
	if (cqe->flags & ROAN_CQE_SMAC) {
		wc->wc_flags |= IB_WC_WITH_SMAC;
		memcpy(wc->smac, cqe->smac, ETH_ALEN);
	}
	if (cqe->flags & ROAN_CQE_VLAN)
		wc->wc_flags |= IB_WC_WITH_VLAN;
	if (cqe->flags & ROAN_CQE_GRH) {
		wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
		wc->network_hdr_type = cqe->flags & ROAN_CQE_IPV4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	}
}

/* Kernel consumers only: a user polls its mapped ring. */
int roan_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct roan_cq *cq = to_roan_cq(ibcq);
	struct roan_cqe cqe;
	unsigned long flags;
	int i = 0;

	spin_lock_irqsave(&cq->poll_lock, flags);
	while (i < n && roan_ring_poll(&cq->ring, &cqe))
		cq_to_wc(&cqe, &wc[i++]);
	spin_unlock_irqrestore(&cq->poll_lock, flags);
	return i;
}

static void cq_forget(struct roan_cq *cq, const struct roan_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->poll_lock, flags);
	roan_ring_forget_cqes(&cq->ring, (uintptr_t)&qp->ib);
	spin_unlock_irqrestore(&cq->poll_lock, flags);
}

/* Else a later poll returns a work completion that points to a freed QP. The provider does the same for a user's QP. */
void roan_cq_forget_qp(const struct roan_qp *qp)
{
	if (qp->user)
		return;
	cq_forget(qp->scq, qp);
	if (qp->rcq != qp->scq)
		cq_forget(qp->rcq, qp);
}

/* A user arms a CQ by its ring. libroan calls this if it finds an entry afterwards (provider/poll.c). */
int roan_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags how)
{
	struct roan_cq *cq = to_roan_cq(ibcq);
	bool solicited = (how & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	unsigned long flags;
	bool missed;

	if (cq->user) {
		roan_cq_raise_armed(cq);
		return 0;
	}
	spin_lock_irqsave(&cq->poll_lock, flags);
	roan_ring_arm(&cq->ring, solicited);
	missed = how & IB_CQ_REPORT_MISSED_EVENTS && !roan_ring_empty(&cq->ring);
	spin_unlock_irqrestore(&cq->poll_lock, flags);
	return missed;
}
