// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH to persistence writes back the CPU cache lines of a range. mr_access.c does that at once for up to
 * ROAN_WRITE_BACK_MAX bytes. A longer range (a region may have terabytes) is written back here by a worker, and the
 * request waits as for a page fault. Does not check access rights and does not write back itself:
 * roan_mr_write_back() does both.
 */
#include <linux/sched.h>
#include "base/base.h"
#include "mem/mem.h"

#define FLUSH_SLICE	SZ_16M	/* bytes per run; then the item is queued again, behind those of other QPs */
#define MAX_WORKERS	4	/* concurrent; each keeps a CPU busy */

static struct workqueue_struct *writers;

static bool flush_job_pending(const struct roan_flush_job *wb)
{
	return wb->done_bytes < wb->len && READ_ONCE(wb->wanted);
}

/*
 * The item has a QP reference. The R_Key is looked up and checked for each piece, because the region may be
 * deregistered or re-registered meanwhile.
 */
static void flush_job_work(struct work_struct *work)
{
	struct roan_qp *qp = container_of(work, struct roan_qp, rq.flush_job.work);
	struct roan_flush_job *wb = &qp->rq.flush_job;
	u64 end = min_t(u64, wb->len, wb->done_bytes + FLUSH_SLICE);
	u32 verr = ROAN_VERR_NONE, n;

	while (!verr && wb->done_bytes < end && flush_job_pending(wb)) {
		n = min_t(u64, end - wb->done_bytes, ROAN_WRITE_BACK_MAX);
		local_bh_disable();
		verr = roan_mr_write_back(qp, wb->key, wb->off + wb->done_bytes, n);
		local_bh_enable();
		wb->done_bytes += n;
		cond_resched();
	}
	if (!verr && flush_job_pending(wb)) {
		queue_work(writers, work);
		return;
	}
	spin_lock_bh(&qp->rq.lock);
	wb->busy = false;
	wb->done = !verr && wb->wanted;
	spin_unlock_bh(&qp->rq.lock);
	roan_defer(&qp->deferred, ROAN_DEFER_RESTART);
	roan_qp_put(qp);
}

void roan_flush_job_init(struct roan_flush_job *wb)
{
	INIT_WORK(&wb->work, flush_job_work);
}

u32 roan_flush_job_start(struct roan_qp *qp, u32 key, u64 off, u64 len)
{
	struct roan_flush_job *wb = &qp->rq.flush_job;

	lockdep_assert_held(&qp->rq.lock);
	if (wb->busy)
		return ROAN_VERR_UNWRITTEN;
	if (wb->done && wb->key == key && wb->off == off && wb->len == len) {
		wb->done = false;
		return ROAN_VERR_NONE;
	}
	roan_qp_get(qp);
	wb->key = key;
	wb->off = off;
	wb->len = len;
	wb->done_bytes = 0;
	wb->busy = true;
	wb->done = false;
	wb->wanted = true;
	queue_work(writers, &wb->work);
	return ROAN_VERR_UNWRITTEN;
}

void roan_flush_job_cancel(struct roan_qp *qp)
{
	struct roan_flush_job *wb = &qp->rq.flush_job;

	lockdep_assert_held(&qp->rq.lock);
	wb->done = false;
	WRITE_ONCE(wb->wanted, false);
	if (!wb->busy || !cancel_work(&wb->work))
		return;
	wb->busy = false;	/* the item was removed from the queue and will not run */
	roan_qp_put(qp);	/* the item's reference; the caller has its own */
}

int roan_flush_worker_init(void)
{
	writers = alloc_workqueue("roan_writers", WQ_UNBOUND, MAX_WORKERS);
	return writers ? 0 : -ENOMEM;
}

void roan_flush_worker_exit(void)
{
	destroy_workqueue(writers);
}
