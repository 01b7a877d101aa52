// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH to persistence writes back what the CPUs' caches have of a range, line by line. Of some kilobytes that is
 * done at once; a region may have terabytes, so a worker does the rest, and the request waits for it as for memory
 * that is absent.
 */
#include <linux/sched.h>
#include "base/base.h"
#include "mem/mem.h"

#define FLUSH_SLICE	SZ_16M	/* before others have theirs */
#define MAX_WORKERS	4		/* what keeps a CPU busy needs not one for each QP */

static struct workqueue_struct *writers;

static bool flush_job_pending(const struct roan_flush_job *wb)
{
	return wb->done_bytes < wb->len && READ_ONCE(wb->wanted);
}

/* The reference keeps the QP. The region is asked for anew each time: it may be gone, or have other memory. */
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
	wb->busy = false;	/* its turn would have come after those of all other QPs */
	roan_qp_put(qp);	/* the worker's; the caller has one of its own */
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
