// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of the data path, and prefetch (odp_advise.c). The data path runs in softirq and cannot sleep: it
 * queues a fault here without changing any state of the request, and retries when a worker has resolved the fault:
 *
 *	page is not present for		meanwhile
 *	payload to send			the send queue stops before it (sq.req.held)
 *	target of a response		responses are dropped (sq.rx_fault_wait), then the requester retransmits
 *	source of a READ response	responses are deferred (rq.fault_wait); duplicate requests get an RNR NAK
 *	target of a request		it and all requests that follow are queued (odp_rxqueue.c)
 *
 * If a page cannot be faulted in, only the QP that requested it gets the error, on its next attempt. Another QP may
 * need another access, or retry later, so it queues its own fault. Does not map pages: odp.c does.
 *
 * A page that its owner supplies (FUSE, userfaultfd()) may never come, and the kernel cannot end such a fault. So a
 * running fault keeps nothing but its region's struct roan_odp, the address space and this module: QP, key, context
 * and device can go away meanwhile. A user has at most max_running workers; its other faults wait in its share.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/workqueue.h>
#include "base/base.h"
#include "mem/mem.h"
#include "mem/odp_priv.h"

#define READ_AHEAD_MAX	SZ_128K	/* bytes prefetched behind the range of a fault, for the next packets */

/*
 * Per QP. Twice the number of accesses that usually wait at a time (see above), because a failed fault stays in the
 * list if its access is never retried, and a packet that was held may need its page no more.
 */
#define MAX_FAULTS	8

/* Workers of a user on a device. The workqueues of faults and read-ahead have WQ_MAX_ACTIVE (512) each. */
static const u32 max_running[ROAN_ODP_JOBS] = {
	[ROAN_ODP_FAULT] = 16, [ROAN_ODP_PREFETCH] = 1, [ROAN_ODP_READ_AHEAD] = 4,
};

/* Of each kind, of a user, waiting for a worker. Beyond it ibv_advise_mr() faults in itself; nothing is read ahead. */
#define MAX_PREFETCHES	64

/* UC and UD do not have RECV here: they drop a message if a page that it is to fill is not present. */
const struct ib_odp_caps roan_odp_caps = {
	.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT,
	.per_transport_caps = {
		.rc_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
			       IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV | IB_ODP_SUPPORT_FLUSH |
			       IB_ODP_SUPPORT_ATOMIC_WRITE,
		.uc_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_WRITE,
		.ud_odp_caps = IB_ODP_SUPPORT_SEND,
	},
};

struct odp_fault {
	struct work_struct work;
	struct list_head link;	/* qp->faults->list, faults->lock; empty: cancelled, or a prefetch */
	struct list_head queue;	/* share->waiting, if @waits; share->lock */
	struct list_head on_region;	/* odp->faults while @qp is set, else empty; share->lock */
	struct roan_odp_share *share;	/* the region's: valid while the fault waits or runs */
	struct roan_odp *odp;	/* referenced while running; while waiting roan_odp_cancel_region() removes the fault */
	/* Referenced. NULL: a prefetch, or cancelled, or the worker has taken the reference. share->lock */
	struct roan_qp *qp;
	enum roan_odp_job job;
	enum roan_odp_access access;
	bool waits;		/* for a worker; share->lock */
	bool failed;		/* the worker failed, and the access was not retried yet; faults->lock */
	bool response;		/* a response waits for it; faults->lock */
	u32 key;		/* of the region */
	unsigned long failed_at;	/* jiffies */
	u64 pos;
	u64 len;
	u64 behind;		/* bytes to prefetch behind the range */
};

static struct workqueue_struct *pagers[ROAN_ODP_JOBS];

/* ---- faults of a QP: faults->lock ---- */

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

/* The worker has taken @fault's reference of @qp. @fault may be freed when this returns. */
static void fault_finish(struct odp_fault *fault, struct roan_qp *qp, bool failed)
{
	struct roan_fault_list *faults = qp->faults;

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

/* ---- workers of a user: share->lock ---- */

static void share_start(struct roan_odp_share *share, struct odp_fault *fault)
	__must_hold(&share->lock)
{
	fault->waits = false;
	refcount_inc(&fault->odp->refs);	/* not 0: while a fault waits its region is not destroyed */
	share->n_running[fault->job]++;
	queue_work(pagers[fault->job], &fault->work);
}

static void share_add(struct roan_odp_share *share, struct odp_fault *fault)
	__must_hold(&share->lock)
{
	if (share->n_running[fault->job] < max_running[fault->job]) {
		share_start(share, fault);
		return;
	}
	fault->waits = true;
	list_add_tail(&fault->queue, &share->waiting[fault->job]);
	share->n_waiting[fault->job]++;
}

static void share_remove_waiting(struct roan_odp_share *share, struct odp_fault *fault)
	__must_hold(&share->lock)
{
	list_del(&fault->queue);
	share->n_waiting[fault->job]--;
	fault->waits = false;
}

/* Takes the QP reference of @fault, or NULL. */
static struct roan_qp *fault_take_qp(struct odp_fault *fault)
	__must_hold(&fault->share->lock)
{
	struct roan_qp *qp = fault->qp;

	fault->qp = NULL;
	list_del_init(&fault->on_region);
	return qp;
}

/* @fault has run: its worker takes the QP reference, or NULL, and the next fault of the user gets a worker. */
static struct roan_qp *share_finish(struct roan_odp_share *share, struct odp_fault *fault)
{
	struct odp_fault *next;
	struct roan_qp *qp;

	spin_lock_bh(&share->lock);
	qp = fault_take_qp(fault);
	share->n_running[fault->job]--;
	next = list_first_entry_or_null(&share->waiting[fault->job], struct odp_fault, queue);
	if (next) {
		share_remove_waiting(share, next);
		share_start(share, next);
	}
	spin_unlock_bh(&share->lock);
	return qp;
}

static void read_ahead(const struct odp_fault *fault);

/* rmmod fails with EAGAIN while a fault runs, as it could not end before the fault does. */
static int fault_resolve(const struct odp_fault *fault)
{
	int err;

	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	err = roan_odp_fault_in(fault->odp, fault->pos, fault->len, fault->access);
	if (!err && fault->job == ROAN_ODP_FAULT)
		read_ahead(fault);
	module_put(THIS_MODULE);	/* roan_odp_exit() waits for the rest of fault_work() */
	return err;
}

static void fault_work(struct work_struct *work)
{
	struct odp_fault *fault = container_of(work, struct odp_fault, work);
	struct roan_odp *odp = fault->odp;
	struct roan_qp *qp;
	int err;

	err = fault_resolve(fault);
	if (err == -ENOMEM || err == -EBUSY)
		usleep_range(1000, 2000);	/* the QP retries at once: limit the rate */
	qp = share_finish(fault->share, fault);
	if (qp) {
		fault_finish(fault, qp, err && err != -ENOMEM && err != -EBUSY);
		roan_defer(&qp->deferred, ROAN_DEFER_RESTART);
		roan_qp_put(qp);
	} else {
		kfree(fault);
	}
	roan_odp_put(odp);
}

/* Without a worker yet: share_add() gives it one. */
static struct odp_fault *fault_alloc(struct roan_odp *odp, u32 key, enum roan_odp_job job, u64 pos, u64 len,
				     enum roan_odp_access want, gfp_t gfp)
{
	struct odp_fault *fault = kzalloc(sizeof(*fault), gfp);

	if (!fault)
		return NULL;
	INIT_WORK(&fault->work, fault_work);
	INIT_LIST_HEAD(&fault->link);
	INIT_LIST_HEAD(&fault->on_region);
	fault->share = &odp->user->odp;
	fault->odp = odp;
	fault->job = job;
	fault->key = key;
	fault->pos = pos;
	fault->len = len;
	fault->access = want;
	return fault;
}

/* Queues a prefetch, or frees it and returns false: too many of this user's wait, or its region is being destroyed. */
static bool prefetch_add(struct odp_fault *fault)
{
	struct roan_odp_share *share = fault->share;
	bool add;

	spin_lock_bh(&share->lock);
	/* While @dev is set roan_odp_cancel_region() is still to come, and finds @fault. */
	add = READ_ONCE(fault->odp->dev) && share->n_waiting[fault->job] < MAX_PREFETCHES;
	if (add)
		share_add(share, fault);
	spin_unlock_bh(&share->lock);
	if (!add)
		kfree(fault);
	return add;
}

bool roan_odp_prefetch(struct roan_mr *mr, u64 pos, u64 len, enum roan_odp_access want)
{
	struct odp_fault *fault = fault_alloc(mr->odp, mr->key.key, ROAN_ODP_PREFETCH, pos, len, want,
					      GFP_KERNEL_ACCOUNT);

	return fault && prefetch_add(fault);
}

/*
 * What is in memory is mapped before the QP goes on. The rest by another worker: a page behind the range may never
 * come, and the QP that waits for the range does not need it.
 */
static void read_ahead(const struct odp_fault *fault)
{
	u64 end = fault->pos + fault->len;
	u64 more = min(fault->behind, fault->odp->length - end);
	struct odp_fault *next;
	int err;

	if (!more)
		return;
	err = roan_odp_fault_in(fault->odp, end, more, ROAN_ODP_PRESENT);
	if (err && err != -EBUSY)
		return;
	next = fault_alloc(fault->odp, fault->key, ROAN_ODP_READ_AHEAD, end, more, fault->access,
			   GFP_KERNEL | __GFP_NOWARN);
	if (next)
		prefetch_add(next);
}

/* ---- the data path ---- */

static enum roan_odp_access fault_access(bool write)
{
	return write ? ROAN_ODP_WRITE : ROAN_ODP_READ;
}

/*
 * Bytes to prefetch behind the range of a fault: at most as many as the QP has accessed in sequence, so that WRITEs far
 * from each other do not multiply the memory of a sparse region. A prefetch takes whole pages; one that is late does
 * not end the sequence.
 */
static u64 read_ahead_len(struct roan_fault_run *run, u32 key, u64 pos, u64 len)
{
	u64 end = pos + len, behind;

	if (run->key != key || pos < run->start || pos > run->end + PAGE_SIZE) {
		*run = (struct roan_fault_run) { .key = key, .start = pos, .end = end };
		return 0;
	}
	behind = min_t(u64, max(run->end, end) - run->start, READ_AHEAD_MAX);
	run->end = max(run->end, end + behind);
	return behind;
}

/* NULL: no memory */
static struct odp_fault *fault_queue(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len,
				     enum roan_odp_access want)
	__must_hold(&qp->faults->lock)
{
	struct odp_fault *fault = fault_alloc(mr->odp, mr->key.key, ROAN_ODP_FAULT, pos, len, want,
					      GFP_ATOMIC | __GFP_NOWARN);

	if (!fault)
		return NULL;
	roan_qp_get(qp);
	fault->qp = qp;
	fault->behind = read_ahead_len(&qp->faults->run[want == ROAN_ODP_WRITE], mr->key.key, pos, len);
	list_add_tail(&fault->link, &qp->faults->list);
	qp->faults->n++;
	roan_count(qp->dev, page_faults);
	spin_lock(&fault->share->lock);
	list_add_tail(&fault->on_region, &mr->odp->faults);
	share_add(fault->share, fault);
	spin_unlock(&fault->share->lock);
	return fault;
}

#define RETRY_JIFFIES	2	/* until memory is tried for again */

static void retry_timer_fn(struct timer_list *timer)
{
	struct roan_qp *qp = container_of(timer, struct roan_fault_list, retry)->qp;

	roan_defer(&qp->deferred, ROAN_DEFER_RESTART);
	roan_qp_put(qp);
}

static void fault_retry_later(struct roan_qp *qp)
{
	roan_qp_get(qp);
	if (mod_timer(&qp->faults->retry, jiffies + RETRY_JIFFIES))
		roan_qp_put(qp);	/* it was pending and has a reference */
}

struct roan_fault_list *roan_fault_list_alloc(struct roan_qp *qp)
{
	struct roan_fault_list *faults = kzalloc(sizeof(*faults), GFP_KERNEL_ACCOUNT);

	if (!faults)
		return NULL;
	faults->qp = qp;
	spin_lock_init(&faults->lock);
	INIT_LIST_HEAD(&faults->list);
	timer_setup(&faults->retry, retry_timer_fn, 0);
	return faults;
}

u32 roan_odp_request_fault(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write, bool response)
{
	struct roan_fault_list *faults = qp->faults;
	u32 verr = ROAN_VERR_PENDING;
	struct odp_fault *fault;

	spin_lock_bh(&faults->lock);
	fault = fault_find(faults, mr, pos, len, fault_access(write));
	if (fault && fault->failed) {
		fault_remove(faults, fault);
		fault = NULL;
		verr = ROAN_VERR_BAD_RANGE;
	} else if (!fault && fault_has_slot(faults)) {	/* list full: @qp resumes after another fault, and retries */
		fault = fault_queue(mr, qp, pos, len, fault_access(write));
		if (!fault)
			fault_retry_later(qp);
	}
	if (fault)
		fault->response |= response;
	spin_unlock_bh(&faults->lock);
	return verr;
}

bool roan_odp_response_waits(struct roan_qp *qp)
{
	const struct odp_fault *fault;
	bool waits = false;

	spin_lock_bh(&qp->faults->lock);
	list_for_each_entry(fault, &qp->faults->list, link)
		waits |= fault->response && !fault->failed;
	spin_unlock_bh(&qp->faults->lock);
	return waits;
}

void roan_odp_fault_done(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write)
{
	struct roan_fault_list *faults = qp->faults;
	struct odp_fault *fault;

	spin_lock_bh(&faults->lock);
	fault = fault_find(faults, mr, pos, len, fault_access(write));
	if (fault && fault->failed)
		fault_remove(faults, fault);
	spin_unlock_bh(&faults->lock);
}

/* Removes @fault from its QP's list. Then its worker frees it, if it runs; else this function does. */
static void fault_cancel(struct roan_fault_list *faults, struct odp_fault *fault)
	__must_hold(&faults->lock)
{
	struct roan_odp_share *share = fault->share;
	struct roan_qp *qp;
	bool waits;

	list_del_init(&fault->link);
	faults->n--;
	if (fault->failed) {
		kfree(fault);
		return;
	}
	spin_lock(&share->lock);
	qp = fault_take_qp(fault);
	waits = fault->waits;
	if (waits)
		share_remove_waiting(share, fault);
	spin_unlock(&share->lock);
	if (waits)
		kfree(fault);
	if (qp)
		roan_qp_put(qp);	/* not the last: the caller has one */
}

/* @odp: only faults of this region; NULL: all */
static void faults_cancel(struct roan_qp *qp, const struct roan_odp *odp)
{
	struct roan_fault_list *faults = qp->faults;
	struct odp_fault *fault, *next;

	spin_lock_bh(&faults->lock);
	list_for_each_entry_safe(fault, next, &faults->list, link) {
		if (!odp || fault->odp == odp)
			fault_cancel(faults, fault);
	}
	spin_unlock_bh(&faults->lock);
}

void roan_odp_cancel(struct roan_qp *qp)
{
	faults_cancel(qp, NULL);
}

static void share_free_waiting(struct roan_odp_share *share, const struct roan_odp *odp, enum roan_odp_job job)
	__must_hold(&share->lock)
{
	struct odp_fault *fault, *next;

	list_for_each_entry_safe(fault, next, &share->waiting[job], queue) {
		if (fault->odp == odp) {
			share_remove_waiting(share, fault);
			kfree(fault);
		}
	}
}

/* A QP, referenced, with a fault of the region; NULL: none. */
static struct roan_qp *region_qp(struct roan_odp *odp)
{
	struct roan_odp_share *share = &odp->user->odp;
	struct roan_qp *qp = NULL;
	struct odp_fault *fault;

	spin_lock_bh(&share->lock);
	fault = list_first_entry_or_null(&odp->faults, struct odp_fault, on_region);
	if (fault) {
		qp = fault->qp;
		roan_qp_get(qp);
	}
	spin_unlock_bh(&share->lock);
	return qp;
}

/* The data path has no key of the region any more: it adds no fault; and prefetch_add() no prefetch. */
void roan_odp_cancel_region(struct roan_odp *odp)
{
	struct roan_odp_share *share = &odp->user->odp;
	struct roan_qp *qp;

	spin_lock_bh(&share->lock);
	share_free_waiting(share, odp, ROAN_ODP_PREFETCH);
	share_free_waiting(share, odp, ROAN_ODP_READ_AHEAD);
	spin_unlock_bh(&share->lock);
	while ((qp = region_qp(odp))) {
		faults_cancel(qp, odp);
		roan_defer(&qp->deferred, ROAN_DEFER_RESTART);	/* its retry finds that the key is gone */
		roan_qp_put(qp);
		cond_resched();
	}
}

int roan_odp_init(void)
{
	pagers[ROAN_ODP_FAULT] = alloc_workqueue("roan_pagers", WQ_UNBOUND, WQ_MAX_ACTIVE);
	pagers[ROAN_ODP_PREFETCH] = alloc_workqueue("roan_prefetch", WQ_UNBOUND, 0);
	pagers[ROAN_ODP_READ_AHEAD] = alloc_workqueue("roan_read_ahead", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (pagers[ROAN_ODP_FAULT] && pagers[ROAN_ODP_PREFETCH] && pagers[ROAN_ODP_READ_AHEAD])
		return 0;
	roan_odp_exit();
	return -ENOMEM;
}

void roan_odp_exit(void)
{
	int job;

	for (job = 0; job < ROAN_ODP_JOBS; job++) {
		if (pagers[job])
			destroy_workqueue(pagers[job]);
	}
}
