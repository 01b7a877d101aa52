// SPDX-License-Identifier: GPL-2.0
/*
 * The state of a queue pair: modify_qp, query_qp, and the transitions to SQE and ERR. Does not decide which transitions
 * are legal: ib_core does (ib_modify_qp_is_ok(), IBTA vol. 1, 10.3.1). tx/send.c and rx/rx_request.c apply the state to
 * packets.
 */
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "net/net.h"
#include "rx/rx.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

/* ---- both queue locks, held together only to change the state ---- */

static void qp_lock_queues(struct roan_qp *qp)
	__acquires(&qp->sq.lock) __acquires(&qp->rq.lock)
{
	spin_lock_bh(&qp->sq.lock);
	spin_lock(&qp->rq.lock);
}

static void qp_unlock_queues(struct roan_qp *qp)
	__releases(&qp->rq.lock) __releases(&qp->sq.lock)
{
	spin_unlock(&qp->rq.lock);
	spin_unlock_bh(&qp->sq.lock);
}

static void qp_set_state(struct roan_qp *qp, enum ib_qp_state state)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	lockdep_assert_held(&qp->sq.lock);
	lockdep_assert_held(&qp->rq.lock);
	trace_roan_qp_state(qp, qp->state, state);
	WRITE_ONCE(qp->state, state);
}

/*
 * A message may have completed here while the CPU that received it has not yet sent the ACK, or goes on with messages
 * behind it. Without an ACK the peer would repeat it to a QP that does not answer, and report an error for what has
 * arrived. READ responses that are due leave first, if nothing holds them back, such as the rate, a pause or a page.
 */
static void qp_stop_responding(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	roan_responder_stop(&qp->rq.resp);
	roan_respond_locked(qp);
}

/* ---- modify and query ---- */

/* Objects that modify_qp allocates and frees outside the queue locks. */
struct modify_res {
	struct roan_av *av;
	struct roan_peer *peer;		/* SQD: of @av; after the swap, the old one */
	struct roan_resp_res *resp_res;	/* the larger array; after the swap, the old one */
	struct roan_mem_charge resp_charge;	/* likewise */
};

static int qp_prepare(struct roan_qp *qp, const struct ib_qp_attr *attr, int mask, struct modify_res *prep)
{
	if (mask & IB_QP_AV) {
		u32 entropy = qp->ib.qp_num ^ (mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->dest_qpn) << 8;
		struct roan_av *av = roan_qp_av_create(qp, &attr->ah_attr, entropy);

		if (IS_ERR(av))
			return PTR_ERR(av);
		prep->av = av;
		if (roan_connected(qp)) {
			bool new_mtu = mask & IB_QP_PATH_MTU;
			int err = roan_qp_check_route_mtu(qp, av, new_mtu ? attr->path_mtu : qp->attr.path_mtu);

			if (err)
				return err;
		}
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && qp->uctx) {
		size_t bytes = roan_resp_resources(attr->max_dest_rd_atomic) * sizeof(*prep->resp_res);
		u32 pages = bytes >> PAGE_SHIFT;
		int err = pages > qp->resp_charge.pages ? roan_mem_charge(&prep->resp_charge, pages) : 0;

		if (err)
			return err;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic && READ_ONCE(qp->state) == IB_QPS_SQD) {
		prep->resp_res = kcalloc(roan_resp_resources(attr->max_dest_rd_atomic), sizeof(*prep->resp_res),
					 GFP_KERNEL_ACCOUNT);
		if (!prep->resp_res)
			return -ENOMEM;
	}
	return 0;
}

static void qp_unprepare(struct modify_res *prep)
{
	roan_qp_av_free(prep->av);
	roan_peer_put(prep->peer);
	kfree(prep->resp_res);
	roan_mem_uncharge(&prep->resp_charge);
}

/* Enlarges the array of responder resources. A lower limit keeps the array and its contents. */
static void qp_allow_reads(struct roan_qp *qp, struct modify_res *prep)
	__must_hold(&qp->rq.lock)
{
	struct roan_responder *resp = &qp->rq.resp;
	u32 n = roan_resp_resources(qp->attr.max_dest_rd_atomic);

	if (prep->resp_charge.pages > qp->resp_charge.pages)
		swap(prep->resp_charge, qp->resp_charge);
	if (qp->state == IB_QPS_INIT && n > resp->max_resp_res) {
		swap(resp->resp_res, prep->resp_res);	/* the first READ or atomic allocates a new array */
		resp->max_resp_res = 0;
	} else if (prep->resp_res && resp->resp_res && n > resp->cfg.max_dest_rd_atomic) {
		prep->resp_res = roan_responder_set_resources(resp, prep->resp_res, n);
	}
}

/* Stores the attributes that @mask names. */
static void qp_copy_attr(struct roan_qp *qp, const struct ib_qp_attr *attr, int mask, struct modify_res *prep)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
#define COPY_ATTR(bit, field) do { if (mask & (bit)) qp->attr.field = attr->field; } while (0)
	COPY_ATTR(IB_QP_PORT, port_num);
	COPY_ATTR(IB_QP_PKEY_INDEX, pkey_index);
	COPY_ATTR(IB_QP_PATH_MTU, path_mtu);
	COPY_ATTR(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY_ATTR(IB_QP_TIMEOUT, timeout);
	COPY_ATTR(IB_QP_SQ_PSN, sq_psn);
	COPY_ATTR(IB_QP_RQ_PSN, rq_psn);
	COPY_ATTR(IB_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	COPY_ATTR(IB_QP_RATE_LIMIT, rate_limit);
#undef COPY_ATTR
	if (mask & IB_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IB_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_ACCESS_FLAGS)
		qp->access = attr->qp_access_flags;
	/* Three bits. Programs that set 10 or 255 mean "many". */
	if (mask & IB_QP_RETRY_CNT)
		qp->attr.retry_cnt = min_t(u8, attr->retry_cnt, 7);
	if (mask & IB_QP_RNR_RETRY)
		qp->attr.rnr_retry = min_t(u8, attr->rnr_retry, 7);
	/* Adapters store the logarithm, so that 0 is 1. */
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = max_t(u8, attr->max_rd_atomic, 1);
	/* Five bits. Adapters drop the others, and a program sets 32. */
	if (mask & IB_QP_MIN_RNR_TIMER)
		qp->min_rnr_timer = attr->min_rnr_timer & ROAN_AETH_VALUE_MASK;
	if (prep->av)
		/* Publishes the filled-in vector (release). qp_unprepare() frees the old one after a grace period. */
		prep->av = rcu_replace_pointer(qp->av, prep->av,
					       lockdep_is_held(&qp->sq.lock) && lockdep_is_held(&qp->rq.lock));
	qp_allow_reads(qp, prep);
}

static u8 qp_mtu_shift(const struct roan_qp *qp)
{
	/* UD: as adapters have it. A datagram too long for the port is dropped, without an error (C10-93.1.1). */
	return ilog2(ib_mtu_enum_to_int(qp->transport == ROAN_TP_UD ? IB_MTU_4096 : qp->attr.path_mtu));
}

static u8 qp_ext_version(const struct roan_qp *qp)
{
	return qp->transport == ROAN_TP_RC && !READ_ONCE(qp->dev->standard_wire) ? ROAN_EXT_VERSION : 0;
}

static void qp_start_receiving(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	const struct roan_responder_cfg cfg = {
		.transport = qp->transport,
		.mtu_shift = qp->mtu_shift,
		.max_dest_rd_atomic = roan_resp_resources(qp->attr.max_dest_rd_atomic),
		.rq_psn = qp->attr.rq_psn & PSN_MASK,
		.sack = qp->ext_version,
	};

	roan_odp_rxq_drop(qp);
	roan_early_drop(qp);
	roan_responder_reset(&qp->rq.resp, &cfg);
	roan_key_limit_reset(&qp->rq.key_limit, cfg.rq_psn);
	qp->rq.fault_wait = false;
	qp->rq.reply_sport = 0;
	roan_np_reset(qp);
	WRITE_ONCE(qp->sq.kick_at, 0);
	qp->sq.n_dropped = 0;
	qp->rq.n_dropped = 0;
}

static struct roan_requester_cfg qp_requester_cfg(const struct roan_qp *qp)
{
	return (struct roan_requester_cfg) {
		.transport = qp->transport,
		.mtu_shift = qp->mtu_shift,
		.retry_cnt = qp->attr.retry_cnt,
		.rnr_retry = qp->attr.rnr_retry,
		.timeout = qp->attr.timeout,
		.max_rd_atomic = qp->attr.max_rd_atomic,
		.sq_psn = qp->attr.sq_psn & PSN_MASK,
		.psn_window = READ_ONCE(qp->dev->cc.params[roan_rate_algo(qp)].window_packets),
		.sack = qp->ext_version,
	};
}

static void qp_start_sending(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	const struct roan_requester_cfg cfg = qp_requester_cfg(qp);

	roan_requester_reset(&qp->sq.req, &cfg);
	qp->sq.rx_fault_wait = false;
	qp->sq.ack_timer_stopped = false;
	qp->sq.seen_resent = 0;
	qp->sq.seen_timeouts = 0;
	qp->sq.seen_rto = 0;
	qp->sq.seen_seq_naks = 0;
	qp->sq.seen_rnr_naks = 0;
	qp->sq.seen_implied = 0;
	qp->sq.seen_stale = 0;
	qp->sq.timed_since = 0;
}

static void qp_drain_sq(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	roan_requester_drain(&qp->sq.req, true);
	qp->sq.sqd_notify = qp->attr.en_sqd_async_notify;
}

/* Resets both queues. Posted work requests are dropped without a completion (IBTA vol. 1, 10.3.1.1). */
static void qp_reset_queues(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	qp_start_sending(qp);
	qp_start_receiving(qp);
	roan_rate_stop(qp);
	roan_odp_cancel(qp);
	roan_flush_job_cancel(qp);
	roan_ring_discard(&qp->sq.ring);
	if (!qp->srq) {
		roan_ring_discard(&qp->rq.ring);
		roan_ring_unpark(&qp->rq.ring);		/* receives need a doorbell only in ERR */
	}
	qp->rq.cur.taken = false;
	qp->comm_est_sent = false;
	qp->err_pending = false;
	qp->sqe_pending = false;
	qp->last_wqe_due = false;
	qp->attr.rate_limit = 0;
	qp->attr.en_sqd_async_notify = 0;
	roan_dst_cache_reset(&qp->sq.flow);
	roan_dst_cache_reset(&qp->rq.flow);
}

static void qp_flush_both(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	qp->sqe_pending = false;
	roan_odp_rxq_drop(qp);
	roan_early_drop(qp);
	roan_flush_job_cancel(qp);
	roan_flush_rq(qp);
	roan_flush_sq(qp);
}

/* Before SQE to RTS, which would send what is left in the ring. Process context. */
static void qp_flush_sqe(struct roan_qp *qp)
{
	u32 rounds = ROAN_FLUSH_ROUNDS;

	while (rounds-- && !roan_flush(qp))
		cond_resched();
}

/* SQE to RTS, UC and UD only (10.3.1.6). qp_flush_sqe() has flushed what was posted in SQE, also without a doorbell. */
static void qp_resume_sending(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	roan_flush_sq(qp);
	roan_requester_resume(&qp->sq.req);
}

/* Nothing arms the timer again before the QP has work. */
static void qp_stop_timer(struct roan_qp *qp)
{
	hrtimer_cancel(&qp->sq.timer);
	spin_lock_bh(&qp->sq.lock);
	qp->sq.timer_at = 0;
	spin_unlock_bh(&qp->sq.lock);
}

static void qp_enter_state(struct roan_qp *qp, enum ib_qp_state next)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	enum ib_qp_state last = qp->state;

	if (next == IB_QPS_RTR) {
		qp->mtu_shift = qp_mtu_shift(qp);
		qp->ext_version = qp_ext_version(qp);
	}
	if (next == IB_QPS_RESET || next == IB_QPS_ERR)
		qp_stop_responding(qp);
	qp_set_state(qp, next);
	switch (next) {
	case IB_QPS_RESET:
		return qp_reset_queues(qp);
	case IB_QPS_RTR:
		qp_start_receiving(qp);
		return roan_rate_start(qp);	/* the QP sends READ responses from RTR on */
	case IB_QPS_RTS:
		if (last == IB_QPS_RTR) {
			qp_start_sending(qp);
			roan_rate_update_cfg(qp);
		} else if (last == IB_QPS_SQE) {
			qp_resume_sending(qp);
		}
		roan_requester_drain(&qp->sq.req, false);
		qp->attr.en_sqd_async_notify = 0;	/* to be set with each transition to SQD */
		return;
	case IB_QPS_SQD:
		if (last == IB_QPS_RTS)
			qp_drain_sq(qp);
		return;
	case IB_QPS_SQE:
		qp->sqe_pending = false;
		roan_flush_sq(qp);
		return;
	case IB_QPS_ERR:
		qp->last_wqe_due |= qp->srq && last != IB_QPS_ERR;
		return qp_flush_both(qp);
	default:
		return;
	}
}

/* Applies attributes that may change in RTS, SQD or SQE (IBTA vol. 1, table 91). */
static void qp_tune(struct roan_qp *qp)
	__must_hold(&qp->sq.lock) __must_hold(&qp->rq.lock)
{
	const struct roan_requester_cfg cfg = qp_requester_cfg(qp);

	roan_requester_update_cfg(&qp->sq.req, &cfg);
	roan_rate_update_cfg(qp);
}

static int qp_change_state(struct roan_qp *qp, enum ib_qp_state cur, enum ib_qp_state next,
			   const struct ib_qp_attr *attr, int mask, struct modify_res *prep)
{
	int err = 0;

	qp_lock_queues(qp);
	/* Under the locks: either roan_qp_flush_on_device() sees the new state, or this sees dev->removing. */
	if (qp->user && next != IB_QPS_RESET && next != IB_QPS_ERR && READ_ONCE(qp->dev->removing)) {
		err = -EIO;
	} else if (qp->state != cur) {
		err = -ESTALE;		/* the QP failed since the checks: check again */
	} else if (prep->av && roan_net_ifindex(qp->dev, prep->av->sgid_attr) != prep->av->ifindex) {
		/*
		 * Its interface is unregistered. That takes the number away, waits for a grace period, then calls
		 * roan_qp_disconnect(). If the number is still found here, that takes the locks later and sees the
		 * new state and vector.
		 */
		err = -ENETUNREACH;
	} else {
		qp_copy_attr(qp, attr, mask, prep);
		if (cur == IB_QPS_SQD && mask & IB_QP_AV)
			roan_qp_change_path(qp, &prep->peer);
		if (next != cur || next == IB_QPS_RESET || next == IB_QPS_ERR)
			qp_enter_state(qp, next);
		qp->rq.resp.cfg.denied_ops = roan_qp_denied_ops(qp->access);
		if (cur == IB_QPS_RTS || cur == IB_QPS_SQD || cur == IB_QPS_SQE)
			qp_tune(qp);
	}
	qp_unlock_queues(qp);
	return err;
}

/* Enters a pending ERR or SQE, so a program that polled the error completion sees the new state. Process, mutex held */
static void qp_sync_error(struct roan_qp *qp)
{
	if ((READ_ONCE(qp->err_pending) && READ_ONCE(qp->state) != IB_QPS_ERR) || READ_ONCE(qp->sqe_pending))
		roan_qp_enter_err(qp);
}

static int qp_modify(struct roan_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur = READ_ONCE(qp->state);
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;
	struct modify_res prep = {};
	int err;

	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != cur)
		return -EINVAL;
	/* The core accepts a rate limit only for raw packet QPs, so it is checked here. */
	if (!ib_modify_qp_is_ok(cur, next, qp->ib.qp_type, mask & ~IB_QP_RATE_LIMIT) ||
	    (mask & IB_QP_RATE_LIMIT && next != IB_QPS_RTS))
		return -EINVAL;
	err = roan_qp_check_attr(qp, attr, mask);
	if (err)
		return err;
	err = qp_prepare(qp, attr, mask, &prep);
	if (!err && cur == IB_QPS_SQD && mask & IB_QP_AV)
		err = roan_qp_find_peer(qp, prep.av, &prep.peer);
	if (!err && (next == IB_QPS_RTR || next == IB_QPS_RTS))
		err = roan_rate_prepare(qp, mask & IB_QP_RATE_LIMIT);
	if (!err && cur == IB_QPS_RTR && next == IB_QPS_RTS)
		err = roan_qp_alloc_paths(qp);
	if (!err && cur == IB_QPS_SQE && next == IB_QPS_RTS)
		qp_flush_sqe(qp);
	if (!err)
		err = qp_change_state(qp, cur, next, attr, mask, &prep);
	qp_unprepare(&prep);
	if (err)
		return err;
	if (next == IB_QPS_RESET)
		qp_stop_timer(qp);
	if (next != IB_QPS_INIT && next != IB_QPS_RTR)
		roan_send(qp);	/* WQEs posted before RTS or held in SQD; raises SQ_DRAINED if nothing is outstanding */
	return 0;
}

int roan_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	int err;

	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT))
		return -EOPNOTSUPP;
	err = roan_udata_none(udata);
	if (err)
		return err;
	mutex_lock(&qp->mutex);
	do {
		qp_sync_error(qp);
		err = qp_modify(qp, attr, mask);
	} while (err == -ESTALE);	/* only SQE and ERR are entered concurrently: two retries at most */
	mutex_unlock(&qp->mutex);
	if (!err && mask & IB_QP_STATE && attr->qp_state == IB_QPS_RESET)
		roan_cq_forget_qp(qp);
	return err;
}

static void qp_fill_attr(const struct roan_qp *qp, struct ib_qp_attr *attr)
{
	const struct roan_qp_attr *set = &qp->attr;
	enum ib_qp_state state = READ_ONCE(qp->state);

	*attr = (struct ib_qp_attr) {
		.qp_state = state,
		.cur_qp_state = state,
		.path_mtu = set->path_mtu,
		.qkey = qp->qkey,
		.rq_psn = set->rq_psn,
		.sq_psn = set->sq_psn,
		.dest_qp_num = qp->dest_qpn,
		.qp_access_flags = qp->access,
		.pkey_index = set->pkey_index,
		.en_sqd_async_notify = set->en_sqd_async_notify,
		.max_rd_atomic = set->max_rd_atomic,
		.max_dest_rd_atomic = set->max_dest_rd_atomic,
		.min_rnr_timer = qp->min_rnr_timer,
		.port_num = set->port_num,
		.timeout = set->timeout,
		.retry_cnt = set->retry_cnt,
		.rnr_retry = set->rnr_retry,
		.rate_limit = set->rate_limit,
	};
}

/*
 * A PSN is reported only if @mask names it, else as 0: netlink, which shows QPs to every user of the host, names none.
 * The PSN set at modify would help a forger as well, as counters show how many packets were sent since.
 */
int roan_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	const struct roan_av *av;

	mutex_lock(&qp->mutex);
	qp_sync_error(qp);
	qp_fill_attr(qp, attr);
	roan_qp_caps(qp, &attr->cap);
	av = roan_qp_av(qp);
	if (av)
		roan_av_query(av, &attr->ah_attr);
	if (!(mask & IB_QP_RQ_PSN))
		attr->rq_psn = 0;
	else if (roan_connected(qp) && attr->qp_state >= IB_QPS_RTR && attr->qp_state <= IB_QPS_SQE)
		attr->rq_psn = READ_ONCE(qp->rq.resp.epsn);
	if (attr->qp_state >= IB_QPS_RTS && attr->qp_state <= IB_QPS_SQE) {
		spin_lock_bh(&qp->sq.lock);
		attr->sq_psn = qp->sq.req.next_psn;
		attr->sq_draining = attr->qp_state == IB_QPS_SQD && !roan_requester_drained(&qp->sq.req);
		spin_unlock_bh(&qp->sq.lock);
	}
	if (!(mask & IB_QP_SQ_PSN))
		attr->sq_psn = 0;
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

/* ---- failure and destruction ---- */

static bool qp_is_sending(const struct roan_qp *qp)
{
	return qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD;
}

/*
 * Enters ERR or SQE as requested by err_pending or sqe_pending. RESET clears the requests, so a QP that was reset (and
 * perhaps connected again) meanwhile keeps its state.
 */
void roan_qp_enter_err(struct roan_qp *qp)
{
	qp_lock_queues(qp);
	if (qp->state != IB_QPS_RESET && qp->state != IB_QPS_ERR && qp->err_pending)
		qp_enter_state(qp, IB_QPS_ERR);
	else if (qp->sqe_pending && qp_is_sending(qp))
		qp_enter_state(qp, IB_QPS_SQE);
	qp_unlock_queues(qp);
}

bool roan_qp_disconnect(struct roan_qp *qp, int ifindex)
{
	bool connected;

	qp_lock_queues(qp);
	connected = qp->state >= IB_QPS_RTR && qp->state <= IB_QPS_SQE && roan_qp_av(qp)->ifindex == ifindex;
	if (connected) {
		WRITE_ONCE(qp->err_pending, true);
		qp_enter_state(qp, IB_QPS_ERR);
	}
	qp_unlock_queues(qp);
	return connected;
}

/* Before destruction: stops sending, receiving, flushing and all timers of the QP. Process context */
void roan_qp_quiesce(struct roan_qp *qp)
{
	qp_lock_queues(qp);
	qp_stop_responding(qp);
	qp_set_state(qp, IB_QPS_RESET);
	roan_odp_rxq_drop(qp);
	roan_early_drop(qp);
	roan_flush_job_cancel(qp);
	qp_unlock_queues(qp);
	hrtimer_cancel(&qp->sq.timer);
	roan_rate_cancel(qp);
	roan_pfc_cancel(qp);
}
