/* SPDX-License-Identifier: GPL-2.0 */
/* The thread of a device that looks at send rings, so that nobody need ring. What it is good for stands in poller.c. */
#ifndef ROAN_POLLER_H
#define ROAN_POLLER_H

#include <linux/device.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

struct roan_dev;
struct roan_qp;
struct roan_watch;

enum roan_poller_state {
	ROAN_POLLER_AWAY,	/* there is no thread, or it has to leave its CPU to others: everybody rings */
	ROAN_POLLER_ASLEEP,	/* who rings wakes it */
	ROAN_POLLER_LOOKING,	/* it runs */
};

struct roan_poller {
	spinlock_t lock;		/* _bh, a leaf: of the next two, and of what is added to @watched */
	enum roan_poller_state state;	/* READ_ONCE() without */
	u32 n_watched;			/* READ_ONCE() without; only the thread makes it smaller */
	struct roan_watch *watched;	/* the thread's, in no order; there while @task is */
	struct task_struct *task;	/* NULL: off */
	u32 idle_us;			/* a ring with nothing new for so long is left alone; 0: off. READ/WRITE_ONCE */
};

extern struct device_attribute dev_attr_poll_idle_us;
void roan_poller_init(struct roan_poller *poller);
void roan_poller_exit(struct roan_dev *dev);	/* it has no QP any more, and nobody reaches its attributes */
void roan_poller_found(struct roan_qp *qp);	/* sq.lock held: work of an unwatched QP was fetched */

#endif /* ROAN_POLLER_H */
