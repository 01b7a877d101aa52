// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows, types 1 and 2B: allocation, bind, invalidation. A window gives access to a part of a region under
 * its own key. Does not check accesses through a window: mr_access.c does.
 */
#include "base/base.h"
#include "mem/mem.h"

int roan_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct roan_mw *mw = to_roan_mw(ibmw);
	struct roan_mw_binding *win;
	int err;

	err = roan_udata_none(udata);
	if (err)
		return err;
	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		return -EINVAL;
	win = kzalloc(sizeof(*win), GFP_KERNEL_ACCOUNT);
	if (!win)
		return -ENOMEM;
	spin_lock_init(&win->lock);
	win->key.is_mw = true;
	win->key.user = roan_pd_user(ibmw->pd);
	win->pd = ibmw->pd;
	win->type = ibmw->type;
	err = roan_key_insert(to_roan_dev(ibmw->device), &win->key);
	if (err) {
		kfree(win);
		return err;
	}
	mw->win = win;
	ibmw->rkey = win->key.key;
	return 0;
}

/* Detaches the region from the window. The caller calls mw_put_mr() after dropping the lock. */
static struct roan_mr *mw_unbind(struct roan_mw_binding *win)
	__must_hold(&win->lock)
{
	struct roan_mr *mr = win->mr;

	lockdep_assert_held(&win->lock);
	win->valid = false;
	win->mr = NULL;
	return mr;
}

static void mw_put_mr(struct roan_mr *mr)
{
	if (!mr)
		return;
	atomic_dec(&mr->n_mws);
	roan_key_put(&mr->key);
}

int roan_dealloc_mw(struct ib_mw *ibmw)
{
	struct roan_mw_binding *win = to_roan_mw(ibmw)->win;
	struct roan_mr *mr;

	spin_lock_bh(&win->lock);
	win->destroying = true;	/* a concurrent bind fails */
	mr = mw_unbind(win);
	spin_unlock_bh(&win->lock);
	mw_put_mr(mr);
	roan_key_remove(to_roan_dev(ibmw->device), &win->key);
	kfree_rcu(win, key.rcu);
	return 0;
}

/* Checks that @wqe may bind a window to @mr (10.6.7.2.6). */
static u32 mw_check_mr(struct roan_qp *qp, const struct roan_mr *mr, const struct roan_send_wqe *wqe)
{
	u64 off = wqe->bind.addr - mr->iova;

	if (mr->kind != ROAN_MR_USER && mr->kind != ROAN_MR_DM)
		return ROAN_VERR_BAD_BIND;
	/* Pairs with the release in mr.c: the fields that describe the region were written before it became valid. */
	if (smp_load_acquire(&mr->state) != ROAN_MR_VALID)
		return ROAN_VERR_BAD_KEY;
	if (mr->ib.pd != qp->ib.pd)
		return ROAN_VERR_BAD_PD;
	if (!(mr->access & IB_ACCESS_MW_BIND))
		return ROAN_VERR_BAD_ACCESS;
	if (mr->access & IB_ZERO_BASED)		/* rdma_rxe and adapters refuse it as well */
		return ROAN_VERR_BAD_BIND;
	if (wqe->bind.access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(mr->access & IB_ACCESS_LOCAL_WRITE))
		return ROAN_VERR_BAD_ACCESS;
	if (wqe->bind.addr < mr->iova || off > mr->length || wqe->bind.length > mr->length - off)
		return ROAN_VERR_BAD_RANGE;
	return ROAN_VERR_NONE;
}

/* On success *@mr has a key reference and is counted in n_mws; mw_put_mr() drops both. */
static u32 mw_get_mr(struct roan_qp *qp, const struct roan_send_wqe *wqe, struct roan_mr **mr)
{
	struct roan_key *k = roan_key_find(qp->dev, wqe->bind.mr_lkey);
	u32 verr;

	if (!k)
		return ROAN_VERR_BAD_KEY;
	verr = k->is_mw ? ROAN_VERR_BAD_KEY : ROAN_VERR_NONE;
	*mr = container_of(k, struct roan_mr, key);
	/*
	 * A count makes a deregistration of the region fail, so a QP of another PD must not raise it: its user may have
	 * guessed the key. Re-registration may change the PD here; mw_check_mr() compares it again.
	 */
	if (!verr && READ_ONCE((*mr)->ib.pd) != qp->ib.pd)
		verr = ROAN_VERR_BAD_PD;
	if (!verr && !atomic_inc_unless_negative(&(*mr)->n_mws))	/* dereg or rereg runs */
		verr = ROAN_VERR_BAD_KEY;
	if (verr) {
		roan_key_put(k);
		return verr;
	}
	/* n_mws > 0 excludes re-registration, so the checked fields do not change. */
	verr = mw_check_mr(qp, *mr, wqe);
	if (verr)
		mw_put_mr(*mr);
	return verr;
}

/*
 * The R_Key of the window after the bind: the consumer chooses the low 8 bits, the index stays. The upper 24 bits in
 * the request are ignored, like rdma_rxe and adapters do.
 */
static u32 new_key(const struct roan_mw_binding *win, const struct roan_send_wqe *wqe)
{
	return (win->key.key & ~0xffu) | (wqe->bind.new_rkey & 0xff);
}

/* Checks the request alone and against the state of the window. */
static u32 mw_check_bind(struct roan_qp *qp, const struct roan_mw_binding *win, const struct roan_send_wqe *wqe)
{
	if (win->destroying)
		return ROAN_VERR_BAD_KEY;
	if (!roan_connected(qp) || wqe->bind.access & ~(ROAN_ACCESS_REMOTE | IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED))
		return ROAN_VERR_BAD_BIND;
	if (wqe->bind.access & IB_ZERO_BASED && win->type != IB_MW_TYPE_2)
		return ROAN_VERR_BAD_BIND;
	/* Each bind of a type 1 window must change its R_Key; for type 2 the consumer chooses (10.6.7.2). */
	if (win->type == IB_MW_TYPE_1 && new_key(win, wqe) == win->key.key)
		return ROAN_VERR_BAD_BIND;
	/* Type 2: a bind requires the free state, and only an invalidation unbinds (10.6.7.2.2). */
	if (win->type == IB_MW_TYPE_2 && (!wqe->bind.length || win->valid))
		return ROAN_VERR_BAD_BIND;
	return ROAN_VERR_NONE;
}

static u32 mw_bind(struct roan_qp *qp, struct roan_mw_binding *win, const struct roan_send_wqe *wqe)
{
	struct roan_mr *mr = NULL;
	u32 verr;

	if (win->pd != qp->ib.pd)	/* first: errors of the region would tell that the window exists */
		return ROAN_VERR_BAD_PD;
	if (wqe->bind.length) {
		verr = mw_get_mr(qp, wqe, &mr);
		if (verr)
			return verr;
	}
	spin_lock_bh(&win->lock);
	verr = mw_check_bind(qp, win, wqe);
	if (!verr) {
		struct roan_mr *old = mw_unbind(win);

		win->access = wqe->bind.access & ROAN_ACCESS_REMOTE;
		win->addr = wqe->bind.access & IB_ZERO_BASED ? 0 : wqe->bind.addr;
		win->length = wqe->bind.length;
		win->mr_off = mr ? wqe->bind.addr - mr->iova : 0;
		win->qpn = qp->ib.qp_num;
		win->mr = mr;
		win->valid = mr;
		WRITE_ONCE(win->key.key, new_key(win, wqe));
		mr = old;
	}
	spin_unlock_bh(&win->lock);
	/* A type 1 window was bound: its old R_Key must have no user left when the bind completes. */
	if (!verr && mr)
		roan_key_synchronize(&win->key);
	mw_put_mr(mr);
	return verr;
}

u32 roan_mw_bind(struct roan_qp *qp, const struct roan_send_wqe *wqe)
{
	struct roan_key *k = roan_key_find_index(qp->dev, wqe->bind.mw_rkey);
	u32 verr;

	if (!k)
		return ROAN_VERR_BAD_KEY;
	verr = k->is_mw ? mw_bind(qp, container_of(k, struct roan_mw_binding, key), wqe) : ROAN_VERR_BAD_KEY;
	roan_key_put(k);
	return verr;
}

/*
 * Type 2 only, and only by the QP it is bound to. A bind of length 0 unbinds type 1. @key is compared again: since the
 * look-up the window may have been invalidated, and bound under another key.
 */
u32 roan_mw_invalidate(struct roan_qp *qp, struct roan_mw_binding *win, u32 key)
{
	u32 verr = ROAN_VERR_BAD_KEY;
	struct roan_mr *mr = NULL;

	spin_lock_bh(&win->lock);
	if (win->pd != qp->ib.pd) {
		verr = ROAN_VERR_BAD_PD;
	} else if (win->type == IB_MW_TYPE_2 && win->valid && win->key.key == key && win->qpn == qp->ib.qp_num) {
		mr = mw_unbind(win);
		verr = ROAN_VERR_NONE;
	}
	spin_unlock_bh(&win->lock);
	mw_put_mr(mr);
	return verr;
}
