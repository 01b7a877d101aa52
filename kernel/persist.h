/* SPDX-License-Identifier: GPL-2.0 */
/* FLUSH to persistence: of a queue pair at most one is long at a time, as what follows it waits. */
#ifndef ROAN_PERSIST_H
#define ROAN_PERSIST_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct roan_mr;
struct roan_qp;

/* Of a QP, under rq.lock. */
struct roan_write_back {
	struct work_struct work;
	struct roan_mr *mr;	/* a reference to its key, while busy */
	u32 key;		/* of @mr */
	u64 off;		/* bytes from the region's first */
	u64 len;		/* 0: nobody waits for it */
	bool busy;
	bool done;		/* and the request that it was for has not been tried again */
};

void roan_write_back_init(struct roan_write_back *wb);
/*
 * Writes back what caches have of [@off, @off + @len) of @mr. 0; or ROAN_VERR_ABSENT: that takes a while, @qp is resumed when it
 * is done, and the same request then finds it so. softirq, rq.lock held, inside the region's key.
 */
u32 roan_persist(struct roan_qp *qp, struct roan_mr *mr, u64 off, u64 len);
void roan_persist_forget(struct roan_qp *qp);	/* rq.lock held: nobody will try again */

#endif /* ROAN_PERSIST_H */
