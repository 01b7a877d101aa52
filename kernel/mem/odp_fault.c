// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of the data path, and prefetch (ibv_advise_mr()). The data path runs in softirq and cannot sleep: it
 * queues a fault here without changing any state of the request, and retries when a worker has resolved the fault:
 *
 *	page is not present for		meanwhile
 *	payload to send			the send queue stops (sq.fault_wait)
 *	target of a response		responses are dropped (sq.rx_fault_wait), then the requester retransmits
 *	source of a READ response	responses are deferred (rq.fault_wait); duplicate requests get an RNR NAK
 *	target of a request		it and all requests that follow are queued (odp_rxqueue.c)
 *
 * If a page cannot be faulted in, only the QP that requested it gets the error, on its next attempt. Another QP may
 * need another access, or retry later, so it queues its own fault. Does not map pages: odp.c does.
 */
#include <linux/delay.h>
#include <linux/workqueue.h>
#include "base/base.h"
#include "mem/mem.h"
#include "mem/odp_priv.h"

#define PREFETCH_BYTES	SZ_128K	/* faulted in behind the range, for the next packets; errors are ignored */

/*
 * Per QP. Twice the number of accesses that can wait at a time (see above), because a failed fault stays in the list
 * if its access is never retried.
 */
#define MAX_FAULTS	8

struct odp_fault {
	struct work_struct work;
	struct list_head link;	/* qp->faults.list; empty: cancelled, or a prefetch */
	struct roan_mr *mr;	/* its key is referenced until the worker finishes */
	struct roan_qp *qp;	/* referenced until the worker finishes; NULL: a prefetch */
	u32 key;		/* of @mr */
	bool failed;		/* the worker failed, and the access was not retried yet */
	unsigned long failed_at;	/* jiffies */
	u64 pos;
	u64 len;
	enum roan_odp_access access;
};

static struct workqueue_struct *pagers;

static void fault_remove(struct roan_fault_list *faults, struct odp_fault *fault)
	__must_hold(&faults->lock)
{
	list_del(&fault->link);
	faults->n--;
	kfree(fault);
}

/*
 * Jiffies. An access is retried within a round trip; a failed fault that is older will not be retried and is deleted.
 */
#define FAILED_LIFE	HZ

static struct odp_fault *fault_find(struct roan_fault_list *faults, const struct roan_mr *mr, u64 pos, u64 len,
				    enum roan_odp_access want)
	__must_hold(&faults->lock)
{
	struct odp_fault *fault, *next;

	list_for_each_entry_safe(fault, next, &faults->list, link) {
		if (fault->failed && time_after(jiffies, fault->failed_at + FAILED_LIFE))
			fault_remove(faults, fault);
		else if (fault->key == mr->key.key && fault->pos == pos && fault->len == len && fault->access == want)
			return fault;
	}
	return NULL;
}

/* If the list is full, deletes the oldest failed fault; if its access is retried after all, it is queued again. */
static bool fault_has_slot(struct roan_fault_list *faults)
	__must_hold(&faults->lock)
{
	struct odp_fault *fault;

	if (faults->n < MAX_FAULTS)
		return true;
	list_for_each_entry(fault, &faults->list, link) {
		if (fault->failed) {
			fault_remove(faults, fault);
			return true;
		}
	}
	return false;
}

/* @fault may be freed when this returns. */
static void fault_finish(struct odp_fault *fault, bool failed)
{
	struct roan_fault_list *faults = &fault->qp->faults;

	spin_lock_bh(&faults->lock);
	if (list_empty(&fault->link)) {
		kfree(fault);
	} else if (failed) {
		fault->failed = true;
		fault->failed_at = jiffies;
	} else {
		fault_remove(faults, fault);
	}
	spin_unlock_bh(&faults->lock);
}

static void fault_prefetch(const struct odp_fault *fault)
{
	u64 end = fault->pos + fault->len;
	u64 more = min_t(u64, PREFETCH_BYTES, fault->mr->length - end);

	if (more)
		roan_odp_fault_in(fault->mr->odp, end, more, fault->access);
}

static void fault_work(struct work_struct *work)
{
	struct odp_fault *fault = container_of(work, struct odp_fault, work);
	struct roan_qp *qp = fault->qp;
	int err;

	roan_count(to_roan_dev(fault->mr->ib.device), page_faults);
	err = roan_odp_fault_in(fault->mr->odp, fault->pos, fault->len, fault->access);
	if (!err && qp)
		fault_prefetch(fault);
	if (err == -ENOMEM)
		usleep_range(1000, 2000);	/* the QP retries at once: limit the rate */
	roan_key_put(&fault->mr->key);
	if (!qp) {
		kfree(fault);
		return;
	}
	fault_finish(fault, err && err != -ENOMEM && err != -EBUSY);
	roan_defer(&qp->deferred, ROAN_DEFER_RESTART);
	roan_qp_put(qp);
}

static struct odp_fault *fault_queue(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len,
				     enum roan_odp_access want)
{
	struct odp_fault *fault = kzalloc(sizeof(*fault), GFP_ATOMIC | __GFP_NOWARN);

	if (!fault)
		return NULL;
	INIT_WORK(&fault->work, fault_work);
	INIT_LIST_HEAD(&fault->link);
	refcount_inc(&mr->key.refs);	/* not 0: the caller has a reference or holds the key */
	fault->mr = mr;
	fault->qp = qp;
	if (qp)
		roan_qp_get(qp);
	fault->key = mr->key.key;
	fault->pos = pos;
	fault->len = len;
	fault->access = want;
	queue_work(pagers, &fault->work);
	return fault;
}

static enum roan_odp_access fault_access(bool write)
{
	return write ? ROAN_ODP_WRITE : ROAN_ODP_READ;
}

u32 roan_odp_request_fault(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write)
{
	struct roan_fault_list *faults = &qp->faults;
	u32 verr = ROAN_VERR_PENDING;
	struct odp_fault *fault;

	spin_lock_bh(&faults->lock);
	fault = fault_find(faults, mr, pos, len, fault_access(write));
	if (fault && fault->failed) {
		fault_remove(faults, fault);
		verr = ROAN_VERR_BAD_RANGE;
	} else if (!fault && fault_has_slot(faults)) {	/* list full: @qp resumes after another fault, and retries */
		fault = fault_queue(mr, qp, pos, len, fault_access(write));
		if (fault) {
			list_add_tail(&fault->link, &faults->list);
			faults->n++;
		} else {
			roan_defer(&qp->deferred, ROAN_DEFER_RESTART);	/* out of memory: retry soon */
		}
	}
	spin_unlock_bh(&faults->lock);
	return verr;
}

void roan_odp_fault_done(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write)
{
	struct roan_fault_list *faults = &qp->faults;
	struct odp_fault *fault;

	spin_lock_bh(&faults->lock);
	fault = fault_find(faults, mr, pos, len, fault_access(write));
	if (fault && fault->failed)
		fault_remove(faults, fault);
	spin_unlock_bh(&faults->lock);
}

void roan_odp_cancel(struct roan_qp *qp)
{
	struct roan_fault_list *faults = &qp->faults;
	struct odp_fault *fault, *next;

	spin_lock_bh(&faults->lock);
	list_for_each_entry_safe(fault, next, &faults->list, link) {
		list_del_init(&fault->link);	/* the worker frees a pending one */
		if (fault->failed)
			kfree(fault);
	}
	faults->n = 0;
	spin_unlock_bh(&faults->lock);
}

/* ---- ibv_advise_mr() ---- */

static int advise_mr_range(struct roan_mr *mr, const struct ib_sge *sge, enum roan_odp_access want, bool wait)
{
	u64 pos = sge->addr - mr->iova;

	if (sge->addr < mr->iova || pos > mr->length || sge->length > mr->length - pos)
		return -EFAULT;
	if (!sge->length)
		return 0;
	if (wait)
		return roan_odp_fault_in(mr->odp, pos, sge->length, want);
	roan_count(to_roan_dev(mr->ib.device), page_prefetch);
	return fault_queue(mr, NULL, pos, sge->length, want) ? 0 : -ENOMEM;
}

/* The on-demand paged region with this key, with a reference; NULL if there is none. */
static struct roan_mr *find_paged(struct roan_dev *dev, u32 lkey)
{
	struct roan_mr *mr = NULL;
	struct roan_key *k;

	k = roan_key_find(dev, lkey);
	if (k && !k->is_mw && container_of(k, struct roan_mr, key)->odp)
		mr = container_of(k, struct roan_mr, key);
	else if (k)
		roan_key_put(k);
	return mr;
}

static int advise_one(struct ib_pd *pd, const struct ib_sge *sge, enum roan_odp_access want, bool wait)
{
	struct roan_mr *mr = find_paged(to_roan_dev(pd->device), sge->lkey);
	int err = -EPERM;

	if (!mr)
		return -ENOENT;
	if (mr->ib.pd == pd && (want != ROAN_ODP_WRITE || mr->access & IB_ACCESS_LOCAL_WRITE))
		err = advise_mr_range(mr, sge, want, wait);
	roan_key_put(&mr->key);
	return err;
}

int roan_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags, struct ib_sge *sges, u32 n,
		   struct uverbs_attr_bundle *attrs)
{
	enum roan_odp_access want;
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
