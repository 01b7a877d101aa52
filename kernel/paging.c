// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for a page, and what happens meanwhile. The data path runs in softirq and cannot wait: it asks here, leaves
 * everything as if it had not looked, and goes on when the page is there.
 *
 *	payload to send is absent	the send queue rests (sq.absent), then goes on
 *	an answer cannot be placed	answers are dropped (sq.unplaced), then asked for again
 *	a READ's source is absent	answers rest (rq.absent), then go on; who asks again is told to come later
 *	a request's target is absent	it waits, and so does all that follows it (backlog.c)
 *
 * And prefetching, which is asking without waiting.
 */
#include <linux/delay.h>
#include <linux/workqueue.h>
#include "roan.h"
#include "odp_priv.h"

#define AHEAD	SZ_128K		/* brought along if it can be had: the next packets want it */

struct ask {
	struct work_struct work;
	struct roan_mr *mr;	/* a reference to its key */
	struct roan_qp *qp;	/* NULL, or a reference */
	u64 pos;
	u64 len;
	enum roan_odp_want want;
};

static struct workqueue_struct *pagers;

static void look_ahead(const struct ask *ask)
{
	u64 end = ask->pos + ask->len;
	u64 more = min_t(u64, AHEAD, ask->mr->length - end);

	if (more)
		roan_odp_bring(ask->mr->odp, end, more, ask->want, false);
}

static void answer(struct work_struct *work)
{
	struct ask *ask = container_of(work, struct ask, work);
	int err;

	roan_count(to_roan_dev(ask->mr->ib.device), page_faults);
	err = roan_odp_bring(ask->mr->odp, ask->pos, ask->len, ask->want, ask->qp);
	if (!err && ask->qp)
		look_ahead(ask);
	if (err == -ENOMEM)
		usleep_range(1000, 2000);	/* who waits will ask again */
	if (ask->qp) {
		roan_later(&ask->qp->later, ROAN_DO_RESUME);
		roan_qp_put(ask->qp);
	}
	roan_key_put(&ask->mr->k);
	kfree(ask);
}

static bool ask_for(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, enum roan_odp_want want)
{
	struct ask *ask = kmalloc(sizeof(*ask), GFP_ATOMIC | __GFP_NOWARN);

	if (!ask)
		return false;
	INIT_WORK(&ask->work, answer);
	refcount_inc(&mr->k.refs);	/* not zero: the caller has one */
	ask->mr = mr;
	ask->qp = qp;
	if (qp)
		roan_qp_get(qp);
	ask->pos = pos;
	ask->len = len;
	ask->want = want;
	queue_work(pagers, &ask->work);
	return true;
}

void roan_odp_ask(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write)
{
	if (!ask_for(mr, qp, pos, len, write ? ROAN_ODP_WRITE : ROAN_ODP_READ))
		roan_later(&qp->later, ROAN_DO_RESUME);		/* to try again, with luck */
}

/* What rested goes on. softirq, no lock held */
void roan_qp_resume(struct roan_qp *qp)
{
	struct roan_sq *sq = &qp->sq;

	spin_lock_bh(&sq->lock);
	if (sq->absent) {
		sq->absent = false;
		roan_requester_excused(&sq->req, ktime_get_ns());
	}
	if (sq->unplaced) {
		sq->unplaced = false;
		roan_requester_again(&sq->req, ktime_get_ns());
	}
	roan_send_locked(qp);
	spin_unlock_bh(&sq->lock);

	spin_lock_bh(&qp->rq.lock);
	qp->rq.absent = false;
	roan_backlog_run(qp);
	spin_unlock_bh(&qp->rq.lock);
	roan_respond(qp);
}

/* ---- ibv_advise_mr() ---- */

static int advise_range(struct roan_mr *mr, const struct ib_sge *sge, enum roan_odp_want want, bool wait)
{
	u64 pos = sge->addr - mr->iova;

	if (sge->addr < mr->iova || pos > mr->length || sge->length > mr->length - pos)
		return -EFAULT;
	if (!sge->length)
		return 0;
	if (wait)
		return roan_odp_bring(mr->odp, pos, sge->length, want, false);
	roan_count(to_roan_dev(mr->ib.device), page_prefetch);
	return ask_for(mr, NULL, pos, sge->length, want) ? 0 : -ENOMEM;
}

/* The region with a reference, or NULL: no such key, or it is not of this kind. */
static struct roan_mr *find_paged(struct roan_dev *dev, u32 lkey)
{
	struct roan_mr *mr = NULL;
	struct roan_key *k;

	k = roan_key_find(dev, lkey);
	if (k && !k->is_mw && container_of(k, struct roan_mr, k)->odp)
		mr = container_of(k, struct roan_mr, k);
	else if (k)
		roan_key_put(k);
	return mr;
}

static int advise_one(struct ib_pd *pd, const struct ib_sge *sge, enum roan_odp_want want, bool wait)
{
	struct roan_mr *mr = find_paged(to_roan_dev(pd->device), sge->lkey);
	int err = -EPERM;

	if (!mr)
		return -ENOENT;
	if (mr->ib.pd == pd && (want != ROAN_ODP_WRITE || mr->access & IB_ACCESS_LOCAL_WRITE))
		err = advise_range(mr, sge, want, wait);
	roan_key_put(&mr->k);
	return err;
}

int roan_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags, struct ib_sge *sges, u32 n,
		   struct uverbs_attr_bundle *attrs)
{
	enum roan_odp_want want;
	int err = 0;
	u32 i;

	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		want = ROAN_ODP_READ;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		want = ROAN_ODP_WRITE;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		want = ROAN_ODP_PRESENT;
		break;
	default:
		return -EOPNOTSUPP;
	}
	for (i = 0; i < n && !err; i++)
		err = advise_one(pd, &sges[i], want, flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
	return err;
}

int roan_odp_init(void)
{
	pagers = alloc_workqueue("roan_pagers", WQ_UNBOUND, 0);
	return pagers ? 0 : -ENOMEM;
}

void roan_odp_exit(void)
{
	destroy_workqueue(pagers);
}
