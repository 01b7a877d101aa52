// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH to persistence writes back what the CPUs' caches have of a range, line by line. Of some kilobytes that is done at
 * once; a region may have terabytes, so a worker does the rest, and the request waits for it as for memory that is absent.
 */
#include <linux/sched.h>
#include "base/base.h"
#include "mem/mem.h"

#define TURN	SZ_16M		/* before others have theirs */
#define WRITERS	4		/* what keeps a CPU busy needs not one for each QP */

static struct workqueue_struct *writers;

static bool unfinished(const struct roan_write_back *wb)
{
	return wb->at < wb->len && READ_ONCE(wb->wanted);
}

/* The reference keeps the QP. The region is asked for anew each time: it may be gone, or have other memory. */
static void write_back(struct work_struct *work)
{
	struct roan_qp *qp = container_of(work, struct roan_qp, rq.write_back.work);
	struct roan_write_back *wb = &qp->rq.write_back;
	u64 end = min_t(u64, wb->len, wb->at + TURN);
	u32 verr = ROAN_VERR_NONE, n;

	while (!verr && wb->at < end && unfinished(wb)) {
		n = min_t(u64, end - wb->at, ROAN_WRITE_BACK_MOST);
		local_bh_disable();
		verr = roan_write_back(qp, wb->key, wb->off + wb->at, n);
		local_bh_enable();
		wb->at += n;
		cond_resched();
	}
	if (!verr && unfinished(wb)) {
		queue_work(writers, work);
		return;
	}
	spin_lock_bh(&qp->rq.lock);
	wb->busy = false;
	wb->done = !verr && wb->wanted;
	spin_unlock_bh(&qp->rq.lock);
	roan_later(&qp->later, ROAN_DO_RESUME);
	roan_qp_put(qp);
}

void roan_write_back_init(struct roan_write_back *wb)
{
	INIT_WORK(&wb->work, write_back);
}

u32 roan_persist(struct roan_qp *qp, u32 key, u64 off, u64 len)
{
	struct roan_write_back *wb = &qp->rq.write_back;

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
	wb->at = 0;
	wb->busy = true;
	wb->done = false;
	wb->wanted = true;
	queue_work(writers, &wb->work);
	return ROAN_VERR_UNWRITTEN;
}

void roan_persist_forget(struct roan_qp *qp)
{
	struct roan_write_back *wb = &qp->rq.write_back;

	lockdep_assert_held(&qp->rq.lock);
	wb->done = false;
	WRITE_ONCE(wb->wanted, false);
	if (!wb->busy || !cancel_work(&wb->work))
		return;
	wb->busy = false;	/* its turn would have come after those of all other QPs */
	roan_qp_put(qp);	/* the worker's; the caller has one of its own */
}

int roan_persist_init(void)
{
	writers = alloc_workqueue("roan_writers", WQ_UNBOUND, WRITERS);
	return writers ? 0 : -ENOMEM;
}

void roan_persist_exit(void)
{
	destroy_workqueue(writers);
}
