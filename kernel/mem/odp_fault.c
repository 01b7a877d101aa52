// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for a page, and what happens meanwhile. The data path runs in softirq and cannot wait: it asks here, leaves
 * everything as if it had not looked, and goes on when the page is there.
 *
 *	payload to send is absent	the send queue rests (sq.absent), then goes on
 *	an answer cannot be placed	answers are dropped (sq.unplaced), then asked for again
 *	a READ's source is absent	answers rest (rq.absent), then go on; who asks again is told to come later
 *	a request's target is absent	it waits, and so does all that follows it (odp_rxqueue.c)
 *
 * What will not come is refused to the QP that asked, when it tries again, and to no other: the next may ask for another use,
 * or at another time.
 *
 * And prefetching, which is asking without waiting.
 */
#include <linux/delay.h>
#include <linux/workqueue.h>
#include "base/base.h"
#include "mem/mem.h"
#include "mem/odp_priv.h"

#define AHEAD	SZ_128K		/* brought along if it can be had: the next packets want it */

#define MAX_ASKS	8	/* of a QP; twice those who wait, for who asks and never comes again leaves a refusal behind */

struct ask {
	struct work_struct work;
	struct list_head on;	/* asks.list of @qp; empty: nobody waits */
	struct roan_mr *mr;	/* a reference to its key, until it is answered */
	struct roan_qp *qp;	/* NULL, or a reference, until it is answered */
	u32 key;		/* of @mr */
	bool refused;		/* answered so, and not told yet */
	unsigned long refused_at;	/* jiffies */
	u64 pos;
	u64 len;
	enum roan_odp_want want;
};

static struct workqueue_struct *pagers;

static void drop(struct roan_asks *asks, struct ask *ask)
	__must_hold(&asks->lock)
{
	list_del(&ask->on);
	asks->n--;
	kfree(ask);
}

/* Who waits tries again within a round trip. A refusal that nobody came for in this time is for nobody. */
#define REFUSAL_LASTS	HZ

static struct ask *find(struct roan_asks *asks, const struct roan_mr *mr, u64 pos, u64 len, enum roan_odp_want want)
	__must_hold(&asks->lock)
{
	struct ask *ask, *next;

	list_for_each_entry_safe(ask, next, &asks->list, on) {
		if (ask->refused && time_after(jiffies, ask->refused_at + REFUSAL_LASTS))
			drop(asks, ask);
		else if (ask->key == mr->k.key && ask->pos == pos && ask->len == len && ask->want == want)
			return ask;
	}
	return NULL;
}

/* The oldest refusal makes room: who still wants to know asks again. */
static bool has_room(struct roan_asks *asks)
	__must_hold(&asks->lock)
{
	struct ask *ask;

	if (asks->n < MAX_ASKS)
		return true;
	list_for_each_entry(ask, &asks->list, on) {
		if (ask->refused) {
			drop(asks, ask);
			return true;
		}
	}
	return false;
}

/* After this it may be gone. */
static void settle(struct ask *ask, bool refused)
{
	struct roan_asks *asks = &ask->qp->asks;

	spin_lock_bh(&asks->lock);
	if (list_empty(&ask->on)) {
		kfree(ask);
	} else if (refused) {
		ask->refused = true;
		ask->refused_at = jiffies;
	} else {
		drop(asks, ask);
	}
	spin_unlock_bh(&asks->lock);
}

static void look_ahead(const struct ask *ask)
{
	u64 end = ask->pos + ask->len;
	u64 more = min_t(u64, AHEAD, ask->mr->length - end);

	if (more)
		roan_odp_bring(ask->mr->odp, end, more, ask->want);
}

static void answer(struct work_struct *work)
{
	struct ask *ask = container_of(work, struct ask, work);
	struct roan_qp *qp = ask->qp;
	int err;

	roan_count(to_roan_dev(ask->mr->ib.device), page_faults);
	err = roan_odp_bring(ask->mr->odp, ask->pos, ask->len, ask->want);
	if (!err && qp)
		look_ahead(ask);
	if (err == -ENOMEM)
		usleep_range(1000, 2000);	/* who waits will ask again */
	roan_key_put(&ask->mr->k);
	if (!qp) {
		kfree(ask);
		return;
	}
	settle(ask, err && err != -ENOMEM && err != -EBUSY);
	roan_later(&qp->later, ROAN_DO_RESUME);
	roan_qp_put(qp);
}

static struct ask *ask_for(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, enum roan_odp_want want)
{
	struct ask *ask = kzalloc(sizeof(*ask), GFP_ATOMIC | __GFP_NOWARN);

	if (!ask)
		return NULL;
	INIT_WORK(&ask->work, answer);
	INIT_LIST_HEAD(&ask->on);
	refcount_inc(&mr->k.refs);	/* not zero: the caller has one, or is inside */
	ask->mr = mr;
	ask->qp = qp;
	if (qp)
		roan_qp_get(qp);
	ask->key = mr->k.key;
	ask->pos = pos;
	ask->len = len;
	ask->want = want;
	queue_work(pagers, &ask->work);
	return ask;
}

static enum roan_odp_want want_of(bool write)
{
	return write ? ROAN_ODP_WRITE : ROAN_ODP_READ;
}

u32 roan_odp_ask(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write)
{
	struct roan_asks *asks = &qp->asks;
	u32 verr = ROAN_VERR_ABSENT;
	struct ask *ask;

	spin_lock_bh(&asks->lock);
	ask = find(asks, mr, pos, len, want_of(write));
	if (ask && ask->refused) {
		drop(asks, ask);
		verr = ROAN_VERR_BAD_RANGE;
	} else if (!ask && has_room(asks)) {	/* no room: any answer resumes all, to ask then */
		ask = ask_for(mr, qp, pos, len, want_of(write));
		if (ask) {
			list_add_tail(&ask->on, &asks->list);
			asks->n++;
		} else {
			roan_later(&qp->later, ROAN_DO_RESUME);		/* to try again, with luck */
		}
	}
	spin_unlock_bh(&asks->lock);
	return verr;
}

void roan_odp_had(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write)
{
	struct roan_asks *asks = &qp->asks;
	struct ask *ask;

	spin_lock_bh(&asks->lock);
	ask = find(asks, mr, pos, len, want_of(write));
	if (ask && ask->refused)
		drop(asks, ask);
	spin_unlock_bh(&asks->lock);
}

void roan_odp_forget(struct roan_qp *qp)
{
	struct roan_asks *asks = &qp->asks;
	struct ask *ask, *next;

	spin_lock_bh(&asks->lock);
	list_for_each_entry_safe(ask, next, &asks->list, on) {
		list_del_init(&ask->on);	/* what is on its way ends by itself */
		if (ask->refused)
			kfree(ask);
	}
	asks->n = 0;
	spin_unlock_bh(&asks->lock);
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
		return roan_odp_bring(mr->odp, pos, sge->length, want);
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
