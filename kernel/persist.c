// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH to persistence writes back what the CPUs' caches have of a range, line by line. Of some kilobytes that is done at
 * once; a region may have terabytes, so a worker does the rest, and the request waits for it as for memory that is absent.
 */
#include <linux/sched.h>
#include "roan.h"

#define AT_ONCE	SZ_64K	/* a thousand lines */

/* The key keeps the region while this works, and the reference the queue pair. */
static void write_back(struct work_struct *work)
{
	struct roan_qp *qp = container_of(work, struct roan_qp, rq.write_back.work);
	struct roan_write_back *wb = &qp->rq.write_back;
	struct roan_mr *mr = wb->mr;
	u64 off = wb->off, left = READ_ONCE(wb->len);
	u32 n;

	for (; left; left -= n, off += n) {
		n = min_t(u64, left, SZ_1M);
		roan_write_back(mr, off, n);
		cond_resched();
	}
	roan_key_put(&mr->k);

	spin_lock_bh(&qp->rq.lock);
	wb->busy = false;
	wb->done = wb->len;
	spin_unlock_bh(&qp->rq.lock);
	roan_later(&qp->later, ROAN_DO_RESUME);
	roan_qp_put(qp);
}

void roan_write_back_init(struct roan_write_back *wb)
{
	INIT_WORK(&wb->work, write_back);
}

u32 roan_persist(struct roan_qp *qp, struct roan_mr *mr, u64 off, u64 len)
{
	struct roan_write_back *wb = &qp->rq.write_back;

	lockdep_assert_held(&qp->rq.lock);
	if (len <= AT_ONCE) {
		roan_write_back(mr, off, len);
		return ROAN_VERR_NONE;
	}
	if (wb->busy)
		return ROAN_VERR_ABSENT;
	if (wb->done && wb->key == mr->k.key && wb->off == off && wb->len == len) {
		wb->done = false;
		return ROAN_VERR_NONE;
	}
	refcount_inc(&mr->k.refs);	/* not zero: the caller is inside */
	roan_qp_get(qp);
	wb->mr = mr;
	wb->key = mr->k.key;
	wb->off = off;
	wb->len = len;
	wb->busy = true;
	wb->done = false;
	roan_paging_work(&wb->work);
	return ROAN_VERR_ABSENT;
}

void roan_persist_forget(struct roan_qp *qp)
{
	qp->rq.write_back.done = false;
	WRITE_ONCE(qp->rq.write_back.len, 0);
}
