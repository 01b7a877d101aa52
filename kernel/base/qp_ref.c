// SPDX-License-Identifier: GPL-2.0
/*
 * QP numbers, lookup of a QP by number, and QP references. Also the functions by which any part of the driver requests
 * a QP's transition to ERR or SQE; verbs/qp_state.c performs the transition, in softirq.
 */
#include <linux/random.h>
#include <linux/rcupdate_wait.h>
#include <linux/xarray.h>
#include "base/base.h"

/* 0 and 1 are management QPs; the others below 16 stay unused, so that a wrong number is noticed */
#define FIRST_QPN	16
#define LAST_QPN	(QPN_MASK - 1)	/* 0xffffff is multicast */

/* QPN -> struct roan_qp_ref, all devices */
static DEFINE_XARRAY_FLAGS(qpns, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
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

/* ---- references ---- */

struct roan_qp *roan_qp_get_rcu(struct roan_qp_ref *ref)
{
	return ref && refcount_inc_not_zero(&ref->refs) ? ref->qp : NULL;
}

struct roan_qp *roan_qp_find(u32 qpn)
{
	struct roan_qp *qp;

	rcu_read_lock();
	qp = roan_qp_get_rcu(xa_load(&qpns, qpn));
	rcu_read_unlock();
	return qp;
}

struct roan_qp *roan_qp_find_gsi(struct roan_dev *dev)
{
	struct roan_qp *qp;

	rcu_read_lock();
	qp = roan_qp_get_rcu(rcu_dereference(dev->gsi));
	rcu_read_unlock();
	return qp;
}

void roan_qp_get(struct roan_qp *qp)
{
	refcount_inc(&qp->ref->refs);
}

void roan_qp_put(struct roan_qp *qp)
{
	roan_put(&qp->ref->refs, &qp->released);
}

/* ---- QP numbers ---- */

int roan_qp_publish(struct roan_qp *qp)
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

void roan_qp_unpublish(struct roan_qp *qp)
{
	if (qp->ib.qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	else
		xa_erase_bh(&qpns, qp->ib.qp_num);
}

void roan_qp_for_each(void (*visit)(struct roan_qp *qp, const void *what), const void *what)
{
	struct roan_qp_ref *ref;
	unsigned long qpn;

	rcu_read_lock();
	xa_for_each(&qpns, qpn, ref) {
		struct roan_qp *qp = roan_qp_get_rcu(ref);

		if (qp) {
			visit(qp, what);
			roan_qp_put(qp);
		}
		cond_resched_rcu();
	}
	rcu_read_unlock();
}

/* ---- failure ---- */

void roan_qp_request_flush(struct roan_qp *qp)
{
	roan_defer(&qp->deferred, ROAN_DEFER_FLUSH);
}

void roan_qp_set_err(struct roan_qp *qp)
{
	WRITE_ONCE(qp->err_pending, true);
	roan_defer(&qp->deferred, ROAN_DEFER_ERR);
}

void roan_sq_set_err(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	if (qp->transport == ROAN_TP_RC)
		return roan_qp_set_err(qp);
	lockdep_assert_held(&qp->sq.lock);
	WRITE_ONCE(qp->sqe_pending, true);
	roan_defer(&qp->deferred, ROAN_DEFER_ERR);
}
