// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: creation, destruction, deferred work, and the removal of interfaces and devices. State transitions are
 * in qp_state.c; lookup by QP number and references are in base/qp_ref.c.
 */
#include <linux/rcupdate_wait.h>
#include "base/base.h"
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "net/net.h"
#include "rx/rx.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

/* ---- deferred work ---- */

static void qp_send_events(struct roan_qp *qp, unsigned long bits)
{
	static const struct {
		enum roan_deferred_bit bit;
		enum ib_event_type type;
	} events[] = {
		{ ROAN_DEFER_EV_COMM_EST,	 IB_EVENT_COMM_EST },
		{ ROAN_DEFER_EV_SQ_DRAINED, IB_EVENT_SQ_DRAINED },
		{ ROAN_DEFER_EV_REQ_ERR,	 IB_EVENT_QP_REQ_ERR },
		{ ROAN_DEFER_EV_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR },
		{ ROAN_DEFER_EV_FATAL,	 IB_EVENT_QP_FATAL },
		{ ROAN_DEFER_EV_LAST_WQE,	 IB_EVENT_QP_LAST_WQE_REACHED },
	};
	struct ib_event event = { .device = qp->ib.device, .element.qp = &qp->ib };
	int i;

	if (!qp->ib.event_handler)
		return;
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		if (!(bits & BIT(events[i].bit)))
			continue;
		event.event = events[i].type;
		qp->ib.event_handler(&event, qp->ib.qp_context);
	}
}

/* READ responses and requests share the QP's rate, and a wait for it ends for both at once: they take turns. */
static void qp_run_queues(struct roan_qp *qp, unsigned long bits)
{
	bool requests_first = roan_rate_requests_first(qp);

	if (bits & BIT(ROAN_DEFER_SEND) && requests_first)
		roan_send(qp);
	if (bits & BIT(ROAN_DEFER_RESPOND))
		roan_respond(qp);
	if (bits & BIT(ROAN_DEFER_SEND) && !requests_first)
		roan_send(qp);
}

static void qp_run_deferred(struct roan_deferred *item, unsigned long bits)
{
	struct roan_qp *qp = container_of(item, struct roan_qp, deferred);

	if (bits & BIT(ROAN_DEFER_ERR))
		roan_qp_enter_err(qp);
	if (bits & BIT(ROAN_DEFER_FLUSH))
		roan_flush(qp);
	if (bits & BIT(ROAN_DEFER_RESTART))
		roan_qp_restart(qp);
	qp_run_queues(qp, bits);
	qp_send_events(qp, bits);
}

/* ---- creation ---- */

static u8 qp_transport_of(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return ROAN_TP_RC;
	case IB_QPT_UC:
		return ROAN_TP_UC;
	default:
		return ROAN_TP_UD;
	}
}

static int qp_check_init(const struct roan_qp *qp, const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		break;
	case IB_QPT_GSI:
		if (qp->user)
			return -EINVAL;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags & ~IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		return -EOPNOTSUPP;
	if (qp->block_self_mcast && init->qp_type != IB_QPT_UD)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	/* A CQE's qp_handle is a kernel address or a number of the program, so neither may get the other's. */
	if (WARN_ON_ONCE(qp->scq->user != qp->user || qp->rcq->user != qp->user))
		return -EINVAL;
	if (cap->max_send_wr > ROAN_MAX_WR || cap->max_send_sge > ROAN_MAX_SGE ||
	    cap->max_inline_data > ROAN_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > ROAN_MAX_WR || cap->max_recv_sge > ROAN_MAX_SGE))
		return -EINVAL;
	return 0;
}

static_assert(ROAN_MAX_SGE * sizeof(struct roan_sge) == ROAN_MAX_INLINE);

/*
 * A slot has room for entries or for inline data, and a QP may use all of it for either, as with rdma_rxe and mlx4:
 * some programs post more than they requested, inline data or a second entry. rdma_rw splits a transfer by the number
 * that it gets, but has computed how many requests the queue must hold by max_sge_rd.
 */
static void qp_init_sq(struct roan_qp *qp, const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;
	u32 inline_sges = DIV_ROUND_UP(cap->max_inline_data, sizeof(struct roan_sge));
	struct roan_sq *sq = &qp->sq;

	spin_lock_init(&sq->lock);
	spin_lock_init(&sq->post_lock);
	roan_hrtimer_setup(&sq->timer, roan_sq_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	sq->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	sq->max_wr = max(cap->max_send_wr, 1u);
	sq->max_sge = cap->max_rdma_ctxs ? ROAN_MAX_SGE : max3(cap->max_send_sge, inline_sges, 1u);
	sq->max_inline = sq->max_sge * sizeof(struct roan_sge);
}

static void qp_init_rq(struct roan_qp *qp, const struct ib_qp_init_attr *init)
{
	struct roan_rq *rq = &qp->rq;

	INIT_LIST_HEAD(&rq->odp_rxq);
	INIT_LIST_HEAD(&rq->early);
	spin_lock_init(&rq->lock);
	spin_lock_init(&rq->post_lock);
	roan_flush_job_init(&rq->flush_job);
	if (qp->srq) {
		rq->max_sge = qp->srq->max_sge;
	} else {
		rq->max_wr = max(init->cap.max_recv_wr, 1u);
		rq->max_sge = max(init->cap.max_recv_sge, 1u);
	}
}

/* Allocates both rings in one buffer with one mapping, or in two if the provider lacks ROAN_FEATURE_ONE_MAPPING. */
static int qp_alloc_rings(struct roan_qp *qp, struct roan_create_qp_resp *resp)
{
	const struct roan_ring_alloc_req plan[] = {
		{
			.ring = &qp->sq.ring,
			.slots = qp->sq.max_wr,
			/* max_inline is at least 16: every slot also holds the eight bytes of an ATOMIC_WRITE. */
			.slot_size = sizeof(struct roan_send_wqe) + qp->sq.max_inline,
			.desc = &resp->sq,
		}, {
			.ring = &qp->rq.ring,
			.slots = qp->rq.max_wr,
			.slot_size = sizeof(struct roan_recv_wqe) + qp->rq.max_sge * sizeof(struct roan_sge),
			.desc = &resp->rq,
		},
	};

	if (qp->srq)
		return roan_rings_alloc(plan, 1, qp->uctx);
	if (!qp->uctx || to_roan_ucontext(qp->uctx)->one_mapping)
		return roan_rings_alloc(plan, 2, qp->uctx);
	return roan_rings_alloc(&plan[0], 1, qp->uctx) ?: roan_rings_alloc(&plan[1], 1, qp->uctx);
}

static int qp_create_queues(struct roan_qp *qp, const struct ib_qp_init_attr *init, struct roan_create_qp_resp *resp)
{
	int err;

	qp_init_sq(qp, init);
	qp_init_rq(qp, init);
	err = qp_alloc_rings(qp, resp);
	if (err)
		return err;
	/* An idle queue needs a doorbell. This is also the first access to the ring's memory, which RTS then avoids. */
	roan_ring_enable_doorbell(&qp->sq.ring);
	qp->rq.cur.sge = kcalloc(qp->rq.max_sge, sizeof(*qp->rq.cur.sge), GFP_KERNEL_ACCOUNT);
	if (!qp->rq.cur.sge)
		return -ENOMEM;
	err = roan_wqe_shadow_init(&qp->sq);
	if (err || !qp->uctx)
		return err;
	/* It grows in softirq, where exceeding the limit could not be reported. So its largest size is charged now. */
	return roan_mem_charge(&qp->charge, roan_wqe_shadow_max_bytes(&qp->sq) >> PAGE_SHIFT);
}

static void qp_free_queues(struct roan_qp *qp)
{
	roan_ring_free(&qp->sq.ring);
	roan_wqe_shadow_free(&qp->sq);
	roan_dst_cache_reset(&qp->sq.flow);
	roan_ring_free(&qp->rq.ring);
	kfree(qp->rq.cur.sge);
	kfree(qp->rq.resp.resp_res);
	kfree(qp->rq.resp.early_set);
	kfree(qp->rq.np_ports);
	kfree(qp->faults);
	roan_dst_cache_reset(&qp->rq.flow);
	roan_mem_uncharge(&qp->charge);
	roan_mem_uncharge(&qp->resp_charge);
}

void roan_qp_caps(const struct roan_qp *qp, struct ib_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.max_wr;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = qp->rq.max_wr;
	cap->max_recv_sge = qp->srq ? 0 : qp->rq.max_sge;
}

/* An older provider passes no request. No input is left, see roan_udata_no_input(). */
static int qp_get_request(struct roan_qp *qp, const struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct roan_create_qp_req req = {};
	int err;

	qp->block_self_mcast = init->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	if (!udata) {
		qp->handle = (uintptr_t)&qp->ib;
		return 0;
	}
	err = udata->inlen ? roan_udata_in(udata, &req, qp_handle) : 0;
	udata->inlen = 0;
	qp->handle = req.qp_handle;
	qp->block_self_mcast |= req.flags & ROAN_QP_BLOCK_SELF_MCAST;
	if (!err && (req.flags & ~ROAN_QP_BLOCK_SELF_MCAST || req.reserved))
		err = -EOPNOTSUPP;
	return err;
}

static void qp_init_members(struct roan_qp *qp, const struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct roan_ucontext *uctx = rdma_udata_to_drv_context(udata, struct roan_ucontext, ib);

	qp->dev = to_roan_dev(qp->ib.device);
	qp->user = udata;
	qp->uctx = uctx ? &uctx->ib : NULL;
	qp->transport = qp_transport_of(init->qp_type);
	qp->state = IB_QPS_RESET;
	qp->pkey = ROAN_DEFAULT_PKEY;
	qp->scq = init->send_cq ? to_roan_cq(init->send_cq) : NULL;
	qp->rcq = init->recv_cq ? to_roan_cq(init->recv_cq) : NULL;
	qp->srq = init->srq ? to_roan_srq(init->srq) : NULL;
	INIT_LIST_HEAD(&qp->pfc_link);
	INIT_LIST_HEAD(&qp->mcast);
	roan_inflight_limit_init(&qp->sq.inflight_limit);
	roan_inflight_limit_init(&qp->rq.inflight_limit);
	mutex_init(&qp->mutex);
	init_completion(&qp->released);
}

int roan_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	struct roan_create_qp_resp resp = {};
	int err;

	qp_init_members(qp, init, udata);
	err = qp_get_request(qp, init, udata) ?: qp_check_init(qp, init);
	if (err)
		return err;
	qp->ref = kzalloc(sizeof(*qp->ref), GFP_KERNEL_ACCOUNT);
	if (!qp->ref)
		return -ENOMEM;
	refcount_set(&qp->ref->refs, 1);
	qp->ref->qp = qp;
	roan_tx_inflight_add(qp->ref);
	roan_deferred_setup(&qp->deferred, &qp->ref->refs, &qp->released, qp_run_deferred);

	err = -ENOMEM;
	qp->faults = roan_fault_list_alloc(qp);
	if (!qp->faults)
		goto err_free;
	err = qp_create_queues(qp, init, &resp);
	if (err)
		goto err_free;
	roan_qp_caps(qp, &init->cap);
	err = roan_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_free;
	err = roan_qp_publish(qp);	/* last: from here on received packets find the QP */
	if (err)
		goto err_free;
	return 0;

err_free:
	qp_free_queues(qp);
	roan_tx_inflight_put(qp->ref);
	return err;
}

/* ---- removal of interfaces and devices ---- */

void roan_qp_fail_on_netdev(const struct net_device *ndev)
{
	struct roan_qp *qp;

	while ((qp = roan_net_take_qp(ndev))) {
		if (roan_qp_disconnect(qp, ndev->ifindex))
			roan_defer(&qp->deferred, ROAN_DEFER_EV_FATAL);
		roan_qp_put(qp);
		cond_resched();
	}
}

static void qp_flush_if_of(struct roan_qp *qp, const void *dev)
{
	u32 rounds = ROAN_FLUSH_ROUNDS;

	if (!qp->user || qp->dev != dev)
		return;
	WRITE_ONCE(qp->err_pending, true);
	roan_qp_enter_err(qp);
	while (rounds-- && !roan_flush(qp))
		cond_resched_rcu();	/* roan_qp_for_each() allows it */
}

/* The core destroys the QPs of a removed device without flushing them; a program that only polls would wait forever. */
void roan_qp_flush_on_device(const struct roan_dev *dev)
{
	roan_qp_for_each(qp_flush_if_of, dev);
}

/* ---- destruction ---- */

/* On kernels without rdma_restrack_begin_del() a restrack reader may still use the QP here; it holds qp->mutex. */
static void qp_drop_shown(struct roan_qp *qp)
{
	mutex_lock(&qp->mutex);
	roan_ring_free(&qp->sq.ring);
	roan_qp_av_free(rcu_replace_pointer(qp->av, NULL, lockdep_is_held(&qp->mutex)));
	kfree(qp->limiter);
	qp->limiter = NULL;
	kfree(qp->sq.req.holes);
	qp->sq.req.holes = NULL;
	roan_qp_free_paths(qp->sq.req.paths, qp->sq.req.auto_paths);
	qp->sq.req.paths = NULL;
	qp->sq.req.auto_paths = NULL;
	roan_peer_put(qp->peer);
	qp->peer = NULL;
	mutex_unlock(&qp->mutex);
}

int roan_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	int err = roan_udata_none(udata);

	if (err)
		return err;
	roan_qp_unpublish(qp);
	roan_qp_quiesce(qp);
	roan_odp_cancel(qp);	/* a fault may last for ever: its QP reference goes before the wait */
	roan_qp_put(qp);
	wait_for_completion(&qp->released);
	roan_cq_forget_qp(qp);

	qp_drop_shown(qp);
	qp_free_queues(qp);
	kfree(qp->comp_counts);
	roan_tx_inflight_put(qp->ref);
	return 0;
}
