/* SPDX-License-Identifier: GPL-2.0 */
/* FLUSH to persistence: of a queue pair at most one is long at a time, as what follows it waits. */
#ifndef ROAN_PERSIST_H
#define ROAN_PERSIST_H

#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct roan_qp;

#define ROAN_WRITE_BACK_MOST	SZ_64K	/* bytes at a time: a thousand lines, with softirqs off */

/* Of a QP, under rq.lock. */
struct roan_write_back {
	struct work_struct work;
	u32 key;		/* the region's */
	u64 off;		/* bytes from its first */
	u64 len;
	u64 at;			/* the worker's: how much has been written back */
	bool busy;
	bool wanted;		/* or else the worker may stop */
	bool done;		/* and the request that it was for has not been tried again */
};

void roan_write_back_init(struct roan_write_back *wb);
/*
 * A worker is to write back what caches have of [@off, @off + @len) of the region @key. 0: it has; or ROAN_VERR_ABSENT: @qp is
 * resumed when that is done, or cannot be, and the same request is then to be checked and tried again. Any context, rq.lock held.
 */
u32 roan_persist(struct roan_qp *qp, u32 key, u64 off, u64 len);
/* Nobody will try again; a worker at work stops soon. rq.lock held, and a reference of the caller's own. */
void roan_persist_forget(struct roan_qp *qp);
int roan_persist_init(void);
void roan_persist_exit(void);

#endif /* ROAN_PERSIST_H */
