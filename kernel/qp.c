// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: birth, states, death, and how a QP number finds its QP. The rules of the states are ib_core's
 * (ib_modify_qp_is_ok(), IBTA vol. 1, 10.3.1); what a state means for packets is send.c's and request.c's.
 */
#include <linux/rcupdate_wait.h>
#include <linux/vmalloc.h>
#include "roan.h"
#include "trace.h"

#define FIRST_QPN	16		/* 0 and 1 are the management QPs; a few more leave room to see mistakes */
#define LAST_QPN	(QPN_MASK - 1)	/* 0xffffff is multicast */

static DEFINE_XARRAY_FLAGS(qpns, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);	/* QPN -> struct roan_qp_ref, all devices */
static u32 qpn_next;

int roan_qp_init(void)
{
	qpn_next = get_random_u32_inclusive(FIRST_QPN, LAST_QPN);
	return 0;
}

void roan_qp_exit(void)
{
	WARN_ON_ONCE(!xa_empty(&qpns));
	xa_destroy(&qpns);
}

/* ---- finding ---- */

static struct roan_qp *ref_take(struct roan_qp_ref *ref)
{
	return ref && refcount_inc_not_zero(&ref->refs) ? ref->qp : NULL;
}

struct roan_qp *roan_qp_find(u32 qpn)
{
	struct roan_qp *qp;

	rcu_read_lock();
	qp = ref_take(xa_load(&qpns, qpn));
	rcu_read_unlock();
	return qp;
}

struct roan_qp *roan_qp_find_gsi(struct roan_dev *dev)
{
	struct roan_qp *qp;

	rcu_read_lock();
	qp = ref_take(rcu_dereference(dev->gsi));
	rcu_read_unlock();
	return qp;
}

void roan_qp_get(struct roan_qp *qp)
{
	refcount_inc(&qp->ref->refs);
}

void roan_qp_put(struct roan_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref->refs))
		complete(&qp->gone);
}

/* From here on the network can see the QP. */
static int publish(struct roan_qp *qp)
{
	int err;

	if (qp->ib.qp_type == IB_QPT_GSI) {
		qp->ib.qp_num = 1;
		if (cmpxchg((struct roan_qp_ref __force **)&qp->dev->gsi, NULL, qp->ref))
			return -EBUSY;
		return 0;
	}
	err = xa_alloc_cyclic_bh(&qpns, &qp->ib.qp_num, qp->ref, XA_LIMIT(FIRST_QPN, LAST_QPN), &qpn_next, GFP_KERNEL);
	return err < 0 ? err : 0;
}

static void unpublish(struct roan_qp *qp)
{
	if (qp->ib.qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	else
		xa_erase_bh(&qpns, qp->ib.qp_num);
}

/* ---- both locks: only where the state changes ---- */

static void lock_queues(struct roan_qp *qp)
	__acquires(&qp->sq.lock) __acquires(&qp->rq.lock)
{
	spin_lock_bh(&qp->sq.lock);
	spin_lock(&qp->rq.lock);
}

static void unlock_queues(struct roan_qp *qp)
	__releases(&qp->rq.lock) __releases(&qp->sq.lock)
{
	spin_unlock(&qp->rq.lock);
	spin_unlock_bh(&qp->sq.lock);
}

static void set_state(struct roan_qp *qp, enum ib_qp_state state)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	lockdep_assert_held(&qp->sq.lock);
	lockdep_assert_held(&qp->rq.lock);
	trace_roan_qp_state(qp, qp->state, state);
	WRITE_ONCE(qp->state, state);
}

/* ---- creation ---- */

static u8 transport_of(enum ib_qp_type type)
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

static int check_init(const struct roan_qp *qp, const struct ib_qp_init_attr *init)
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
	if (init->create_flags)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > ROAN_MAX_WR || cap->max_send_sge > ROAN_MAX_SGE || cap->max_inline_data > ROAN_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > ROAN_MAX_WR || cap->max_recv_sge > ROAN_MAX_SGE))
		return -EINVAL;
	return 0;
}

static int create_sq(struct roan_qp *qp, const struct ib_qp_init_attr *init, struct roan_ring_desc *desc)
{
	const struct ib_qp_cap *cap = &init->cap;
	struct roan_sq *sq = &qp->sq;
	u32 slots, room;
	int err;

	spin_lock_init(&sq->lock);
	spin_lock_init(&sq->post_lock);
	roan_hrtimer_setup(&sq->timer, roan_sq_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	sq->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	sq->max_wr = max(cap->max_send_wr, 1u);
	sq->max_sge = max(cap->max_send_sge, 1u);
	sq->max_inline = cap->max_inline_data;

	/* At least one scatter entry, which is also room for the eight inline bytes of an ATOMIC_WRITE. */
	room = max_t(u32, sq->max_sge * sizeof(struct roan_sge), sq->max_inline);
	err = roan_ring_alloc(&sq->ring, sq->max_wr, sizeof(struct roan_send_wqe) + room, qp->uctx, desc);
	if (err)
		return err;
	slots = sq->ring.mask + 1;
	sq->mirror_size = offsetof(struct roan_mirror, wqe) + sq->ring.slot_size;
	sq->mirror = kvcalloc(slots, sq->mirror_size, GFP_KERNEL_ACCOUNT);
	sq->req.work = kvcalloc(slots, sizeof(*sq->req.work), GFP_KERNEL_ACCOUNT);
	sq->req.mask = sq->ring.mask;
	return sq->mirror && sq->req.work ? 0 : -ENOMEM;
}

static int create_rq(struct roan_qp *qp, const struct ib_qp_init_attr *init, struct roan_ring_desc *desc)
{
	struct roan_rq *rq = &qp->rq;
	int err;

	spin_lock_init(&rq->lock);
	spin_lock_init(&rq->post_lock);
	if (qp->srq) {
		rq->max_sge = qp->srq->max_sge;
	} else {
		rq->max_wr = max(init->cap.max_recv_wr, 1u);
		rq->max_sge = max(init->cap.max_recv_sge, 1u);
		err = roan_ring_alloc(&rq->ring, rq->max_wr,
				      sizeof(struct roan_recv_wqe) + rq->max_sge * sizeof(struct roan_sge),
				      qp->uctx, desc);
		if (err)
			return err;
	}
	rq->cur.sge = kcalloc(rq->max_sge, sizeof(*rq->cur.sge), GFP_KERNEL_ACCOUNT);
	return rq->cur.sge ? 0 : -ENOMEM;
}

static void free_queues(struct roan_qp *qp)
{
	roan_ring_free(&qp->sq.ring);
	kvfree(qp->sq.mirror);
	kvfree(qp->sq.req.work);
	roan_flow_reset(&qp->sq.flow);
	roan_ring_free(&qp->rq.ring);
	kfree(qp->rq.cur.sge);
	kfree(qp->rq.resp.replay);
	roan_flow_reset(&qp->rq.flow);
}

static void say_caps(const struct roan_qp *qp, struct ib_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.max_wr;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = qp->rq.max_wr;
	cap->max_recv_sge = qp->srq ? 0 : qp->rq.max_sge;
}

static void init_members(struct roan_qp *qp, const struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct roan_uctx *uctx = rdma_udata_to_drv_context(udata, struct roan_uctx, ib);

	qp->dev = to_roan_dev(qp->ib.device);
	qp->user = udata;
	qp->uctx = uctx ? &uctx->ib : NULL;
	qp->transport = transport_of(init->qp_type);
	qp->state = IB_QPS_RESET;
	qp->pkey = ROAN_DEFAULT_PKEY;
	qp->pd = to_roan_pd(qp->ib.pd);
	qp->scq = init->send_cq ? to_roan_cq(init->send_cq) : NULL;
	qp->rcq = init->recv_cq ? to_roan_cq(init->recv_cq) : NULL;
	qp->srq = init->srq ? to_roan_srq(init->srq) : NULL;
	qp->later.kind = ROAN_LATER_QP;
	mutex_init(&qp->mutex);
	init_completion(&qp->gone);
}

int roan_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	struct roan_create_qp_resp resp = {};
	int err;

	init_members(qp, init, udata);
	err = roan_udata_none(udata) ?: check_init(qp, init);
	if (err)
		return err;
	qp->ref = kzalloc(sizeof(*qp->ref), GFP_KERNEL_ACCOUNT);
	if (!qp->ref)
		return -ENOMEM;
	refcount_set(&qp->ref->refs, 1);
	qp->ref->qp = qp;

	err = create_sq(qp, init, &resp.sq);
	if (err)
		goto err_free;
	err = create_rq(qp, init, &resp.rq);
	if (err)
		goto err_free;
	say_caps(qp, &init->cap);
	err = roan_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_free;
	err = publish(qp);	/* last: from here the network can see it */
	if (err)
		goto err_free;
	return 0;

err_free:
	free_queues(qp);
	kfree(qp->ref);
	return err;
}

/* ---- states ---- */

static int check_attr(const struct roan_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ALT_PATH)
		return -EOPNOTSUPP;
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    ib_mtu_enum_to_int(attr->path_mtu) + ROAN_NET_HEADERS > READ_ONCE(qp->dev->ndev->mtu))
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > ROAN_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > ROAN_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return -EINVAL;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return -EINVAL;
	if (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7)
		return -EINVAL;
	if (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7)
		return -EINVAL;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num > QPN_MASK)
		return -EINVAL;
	return 0;
}

/* What modify_qp needs and cannot allocate under the queue locks. */
struct prepared {
	struct roan_av *av;
	struct roan_replay *replay;
	u32 max_replay;
};

static int prepare(struct roan_qp *qp, const struct ib_qp_attr *attr, int mask, struct prepared *prep)
{
	if (mask & IB_QP_AV) {
		u32 entropy = qp->ib.qp_num ^ (mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->dest_qpn) << 8;
		struct roan_av *av = roan_av_create(qp->dev, &attr->ah_attr, entropy);

		if (IS_ERR(av))
			return PTR_ERR(av);
		prep->av = av;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > qp->rq.resp.max_replay) {
		prep->replay = kcalloc(attr->max_dest_rd_atomic, sizeof(*prep->replay), GFP_KERNEL_ACCOUNT);
		prep->max_replay = attr->max_dest_rd_atomic;
		if (!prep->replay)
			return -ENOMEM;
	}
	return 0;
}

static void unprepare(struct prepared *prep)
{
	roan_av_free(prep->av);
	kfree(prep->replay);
}

/* Remembers attributes for query_qp and copies those that packets are made of. */
static void take_attr(struct roan_qp *qp, const struct ib_qp_attr *attr, int mask, struct prepared *prep)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	struct ib_qp_attr *now = &qp->attr;

#define TAKE(bit, field) do { if (mask & (bit)) now->field = attr->field; } while (0)
	TAKE(IB_QP_PORT, port_num);
	TAKE(IB_QP_PKEY_INDEX, pkey_index);
	TAKE(IB_QP_PATH_MTU, path_mtu);
	TAKE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IB_QP_TIMEOUT, timeout);
	TAKE(IB_QP_RETRY_CNT, retry_cnt);
	TAKE(IB_QP_RNR_RETRY, rnr_retry);
	TAKE(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IB_QP_SQ_PSN, sq_psn);
	TAKE(IB_QP_RQ_PSN, rq_psn);
	TAKE(IB_QP_QKEY, qkey);
	TAKE(IB_QP_DEST_QPN, dest_qp_num);
	TAKE(IB_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IB_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
#undef TAKE
	qp->qkey = now->qkey;
	qp->dest_qpn = now->dest_qp_num;
	qp->access = now->qp_access_flags;
	qp->min_rnr_timer = now->min_rnr_timer;
	if (prep->av)
		swap(qp->av, prep->av);		/* readers use RCU; unprepare() frees the old one */
	if (prep->replay) {
		swap(qp->rq.resp.replay, prep->replay);
		qp->rq.resp.max_replay = prep->max_replay;
	}
}

static u8 mtu_shift_of(const struct roan_qp *qp)
{
	enum ib_mtu mtu = qp->attr.path_mtu;

	if (qp->transport == ROAN_TP_UD)	/* a datagram may be as long as the port allows */
		mtu = ib_mtu_int_to_enum(min(READ_ONCE(qp->dev->ndev->mtu) - ROAN_NET_HEADERS, 4096u));
	return ilog2(ib_mtu_enum_to_int(mtu));
}

static void start_receiving(struct roan_qp *qp)
	__must_hold(&qp->rq.lock)
{
	const struct roan_responder_cfg cfg = {
		.transport = qp->transport,
		.mtu_shift = qp->mtu_shift,
		.max_dest_rd_atomic = qp->attr.max_dest_rd_atomic,
		.rq_psn = qp->attr.rq_psn & PSN_MASK,
	};

	roan_responder_reset(&qp->rq.resp, &cfg);
	qp->rq.seen_dup = 0;
	qp->rq.seen_oos = 0;
}

static struct roan_requester_cfg requester_cfg(const struct roan_qp *qp)
{
	return (struct roan_requester_cfg) {
		.transport = qp->transport,
		.mtu_shift = qp->mtu_shift,
		.retry_cnt = qp->attr.retry_cnt,
		.rnr_retry = qp->attr.rnr_retry,
		.timeout = qp->attr.timeout,
		.max_rd_atomic = qp->attr.max_rd_atomic,
		.sq_psn = qp->attr.sq_psn & PSN_MASK,
		.window = ROAN_WINDOW_PKTS,
	};
}

static void start_sending(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	const struct roan_requester_cfg cfg = requester_cfg(qp);

	roan_requester_reset(&qp->sq.req, &cfg);
	roan_linger_reset(&qp->sq);
	qp->sq.seen_resent = 0;
	qp->sq.seen_timeouts = 0;
	qp->sq.seen_seq_naks = 0;
	qp->sq.seen_rnr_naks = 0;
	qp->sq.seen_implied = 0;
	qp->sq.seen_stale = 0;
}

static void drain(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	roan_requester_drain(&qp->sq.req, true, ktime_get_ns());
	qp->sq.sqd_notify = qp->attr.en_sqd_async_notify;
}

/* Both directions forget everything; what was posted is gone without a completion (10.3.1.1). */
static void forget(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	start_sending(qp);
	start_receiving(qp);
	roan_ring_discard(&qp->sq.ring);
	if (!qp->srq)
		roan_ring_discard(&qp->rq.ring);
	qp->rq.cur.taken = false;
	qp->comm_est = false;
	qp->failing = false;
	roan_flow_reset(&qp->sq.flow);
	roan_flow_reset(&qp->rq.flow);
}

static void flush_both(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	roan_flush_sq(qp);
	roan_flush_rq(qp);
	if (qp->srq)
		roan_later(&qp->later, ROAN_DO_EV_LAST_WQE);
}

static void enter(struct roan_qp *qp, enum ib_qp_state next)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	enum ib_qp_state last = qp->state;

	if (next == IB_QPS_RTR)
		qp->mtu_shift = mtu_shift_of(qp);
	set_state(qp, next);
	switch (next) {
	case IB_QPS_RESET:
		return forget(qp);
	case IB_QPS_RTR:
		return start_receiving(qp);
	case IB_QPS_RTS:
		if (last == IB_QPS_RTR)
			start_sending(qp);
		roan_requester_drain(&qp->sq.req, false, 0);
		return;
	case IB_QPS_SQD:
		if (last == IB_QPS_RTS)
			drain(qp);
		return;
	case IB_QPS_ERR:
		return flush_both(qp);
	default:
		return;
	}
}

/* Attributes that may change while the QP runs, or stands in SQD (table 91). */
static void tune(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	const struct roan_requester_cfg cfg = requester_cfg(qp);
	u32 sq_psn = qp->sq.req.cfg.sq_psn;

	qp->sq.req.cfg = cfg;
	qp->sq.req.cfg.sq_psn = sq_psn;
}

static int change(struct roan_qp *qp, enum ib_qp_state cur, enum ib_qp_state next, const struct ib_qp_attr *attr, int mask,
		  struct prepared *prep)
{
	int err = -EINVAL;

	lock_queues(qp);
	if (qp->state == cur) {		/* it may have failed meanwhile */
		err = 0;
		take_attr(qp, attr, mask, prep);
		if (next != cur || next == IB_QPS_RESET || next == IB_QPS_ERR)
			enter(qp, next);
		if (cur == IB_QPS_RTS || cur == IB_QPS_SQD)
			tune(qp);
	}
	unlock_queues(qp);
	return err;
}

static int modify(struct roan_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur = READ_ONCE(qp->state);
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;
	struct prepared prep = {};
	int err;

	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != cur)
		return -EINVAL;
	if (!ib_modify_qp_is_ok(cur, next, qp->ib.qp_type, mask))
		return -EINVAL;
	err = check_attr(qp, attr, mask);
	if (err)
		return err;
	err = prepare(qp, attr, mask, &prep);
	if (!err)
		err = change(qp, cur, next, attr, mask, &prep);
	unprepare(&prep);
	if (err)
		return err;
	if (next == IB_QPS_RESET)
		hrtimer_cancel(&qp->sq.timer);
	roan_send(qp);		/* posted before RTS, or held by SQD; also tells SQ_DRAINED if there is nothing to drain */
	return 0;
}

int roan_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	err = modify(qp, attr, mask);
	mutex_unlock(&qp->mutex);
	return err;
}

int roan_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct roan_qp *qp = to_roan_qp(ibqp);

	mutex_lock(&qp->mutex);
	*attr = qp->attr;
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	say_caps(qp, &attr->cap);
	if (qp->av)
		roan_av_query(qp->av, &attr->ah_attr);
	if (attr->qp_state == IB_QPS_RTS || attr->qp_state == IB_QPS_SQD) {
		spin_lock_bh(&qp->sq.lock);
		attr->sq_psn = qp->sq.req.next_psn;
		attr->sq_draining = attr->qp_state == IB_QPS_SQD && !roan_requester_drained(&qp->sq.req);
		spin_unlock_bh(&qp->sq.lock);
	}
	mutex_unlock(&qp->mutex);

	*init = (struct ib_qp_init_attr) {
		.event_handler = ibqp->event_handler,
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = attr->cap,
		.sq_sig_type = qp->sq.sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = ibqp->qp_type,
	};
	return 0;
}

/* ---- failure and other things that come later ---- */

void roan_qp_fail(struct roan_qp *qp)
{
	WRITE_ONCE(qp->failing, true);
	roan_later(&qp->later, ROAN_DO_FAIL);
}

/*
 * To the error state; or, if it is there, flush what was posted since. Who was reset meanwhile, and perhaps connected
 * again, is not the one that failed.
 */
static void fall(struct roan_qp *qp)
{
	lock_queues(qp);
	if (qp->state == IB_QPS_ERR) {
		roan_flush_sq(qp);
		roan_flush_rq(qp);
	} else if (qp->state != IB_QPS_RESET && qp->failing) {
		enter(qp, IB_QPS_ERR);
	}
	unlock_queues(qp);
}

static void tell(struct roan_qp *qp, unsigned long bits)
{
	static const struct {
		enum roan_later_bit bit;
		enum ib_event_type type;
	} events[] = {
		{ ROAN_DO_EV_COMM_EST,	 IB_EVENT_COMM_EST },
		{ ROAN_DO_EV_SQ_DRAINED, IB_EVENT_SQ_DRAINED },
		{ ROAN_DO_EV_REQ_ERR,	 IB_EVENT_QP_REQ_ERR },
		{ ROAN_DO_EV_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR },
		{ ROAN_DO_EV_FATAL,	 IB_EVENT_QP_FATAL },
		{ ROAN_DO_EV_LAST_WQE,	 IB_EVENT_QP_LAST_WQE_REACHED },
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

void roan_qp_run(struct roan_qp *qp, unsigned long bits)
{
	if (bits & BIT(ROAN_DO_FAIL))
		fall(qp);
	if (bits & BIT(ROAN_DO_RESPOND))
		roan_respond(qp);
	if (bits & BIT(ROAN_DO_SEND))
		roan_send(qp);
	tell(qp, bits);
	roan_qp_put(qp);
}

/* Each QP that programs and peers can find, with a reference for the time of the call. Process context. */
static void visit_qps(void (*visit)(struct roan_qp *qp, const void *what), const void *what)
{
	struct roan_qp_ref *ref;
	unsigned long qpn;

	rcu_read_lock();
	xa_for_each(&qpns, qpn, ref) {
		struct roan_qp *qp = ref_take(ref);

		if (qp) {
			visit(qp, what);
			roan_qp_put(qp);
		}
		cond_resched_rcu();
	}
	rcu_read_unlock();
}

static bool stands_on(const struct roan_qp *qp, const struct net_device *ndev)
{
	const struct roan_av *av = READ_ONCE(qp->av);	/* visited under RCU */

	return av && av->ifindex == ndev->ifindex && roan_net_is(qp->dev->rnet, dev_net(ndev));
}

static void fail_if_on(struct roan_qp *qp, const void *ndev)
{
	if (!stands_on(qp, ndev))
		return;
	fall(qp);
	roan_later(&qp->later, ROAN_DO_EV_FATAL);
}

void roan_qp_netdev_gone(const struct net_device *ndev)
{
	visit_qps(fail_if_on, ndev);
}

static void flush_if_of(struct roan_qp *qp, const void *dev)
{
	if (qp->user && qp->dev == dev)
		fall(qp);
}

/* A program that only polls would wait for ever: the core destroys its QPs, and that flushes nothing. */
void roan_qp_device_gone(const struct roan_dev *dev)
{
	visit_qps(flush_if_of, dev);
}

/* ---- death ---- */

int roan_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct roan_qp *qp = to_roan_qp(ibqp);

	roan_mcast_detach_all(qp);
	unpublish(qp);
	lock_queues(qp);
	set_state(qp, IB_QPS_RESET);	/* nothing is sent, received, flushed or armed any more */
	unlock_queues(qp);
	hrtimer_cancel(&qp->sq.timer);
	roan_qp_put(qp);
	wait_for_completion(&qp->gone);

	free_queues(qp);
	roan_av_free(qp->av);
	kfree_rcu(qp->ref, rcu);
	return 0;
}
