// SPDX-License-Identifier: GPL-2.0
/*
 * The send queue poller: a kernel thread of a device that polls send rings, so that posting costs no system call and
 * packets are built on another CPU than the program's. Off by default; the device attribute poll_idle_us turns it on.
 * While it has rings to poll, the thread never sleeps. Decides which rings are polled; does not decide what is sent
 * (send.c).
 *
 * A QP is added when a WQE of it is fetched, which takes a first doorbell. From then on its ring needs neither
 * doorbells nor hints. A ring without new WQEs for poll_idle_us is released, and needs a doorbell again. When no ring
 * is left for that time the thread sleeps, and the next doorbell wakes it.
 *
 * A ring whose thread does not run is delayed by a time slice, which is worse than a system call. So the thread takes
 * rings only while it runs and has a CPU to itself: as soon as another task is runnable there, ksoftirqd included, it
 * releases all of them.
 *
 * Only the thread removes a QP, and it holds a reference: destroy_qp() waits until the thread polls that QP next.
 */
#include <linux/kthread.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include "base/base.h"
#include "tx/tx.h"

#define MAX_POLLED	256		/* rings per pass; posters to further rings use doorbells */
#define MAX_IDLE_US	1000000
#define YIELD_MS	10		/* with no CPU to itself, the thread waits this long before it tries again */

struct roan_sq_poller_entry {
	struct roan_qp *qp;
	u32 tail;			/* of its ring, at the last poll */
	u64 since;			/* ns: when @tail last changed */
};

/* ---- which rings ---- */

static void poller_set_state(struct roan_sq_poller *p, enum roan_sq_poller_state state)
{
	spin_lock_bh(&p->lock);
	WRITE_ONCE(p->state, state);
	spin_unlock_bh(&p->lock);
}

static void poller_add(struct roan_sq_poller *p, struct roan_qp *qp)
	__must_hold(&p->lock)
{
	roan_qp_get(qp);
	qp->sq_polled = true;
	p->polled[p->n_polled] = (struct roan_sq_poller_entry) {
		.qp = qp, .tail = qp->sq.ring.index, .since = ktime_get_ns(),
	};
	WRITE_ONCE(p->n_polled, p->n_polled + 1);
}

void roan_sq_poller_add(struct roan_qp *qp)
	__must_hold(&qp->sq.lock)
{
	struct roan_sq_poller *p = &qp->dev->poller;

	lockdep_assert_held(&qp->sq.lock);
	if (READ_ONCE(p->n_polled) == MAX_POLLED)
		return;
	spin_lock(&p->lock);
	if (p->state == ROAN_POLLER_SLEEPING) {
		WRITE_ONCE(p->state, ROAN_POLLER_OFF);
		wake_up_process(p->task);
	} else if (p->state == ROAN_POLLER_POLLING && p->n_polled < MAX_POLLED) {
		poller_add(p, qp);
	}
	spin_unlock(&p->lock);
}

/* Reads n_polled under the lock, which also orders the array entries. */
static u32 poller_count(struct roan_sq_poller *p)
{
	u32 n;

	spin_lock_bh(&p->lock);
	n = p->n_polled;
	spin_unlock_bh(&p->lock);
	return n;
}

/*
 * Stops polling ring @i. roan_send_locked() makes the poster ring again, and sends what it posted before; the ring may
 * then be added again.
 */
static void poller_release(struct roan_sq_poller *p, u32 i)
{
	struct roan_qp *qp = p->polled[i].qp;

	spin_lock_bh(&p->lock);
	WRITE_ONCE(p->n_polled, p->n_polled - 1);
	p->polled[i] = p->polled[p->n_polled];
	spin_unlock_bh(&p->lock);

	spin_lock_bh(&qp->sq.lock);
	qp->sq_polled = false;
	roan_send_locked(qp);
	spin_unlock_bh(&qp->sq.lock);
	roan_qp_put(qp);
}

static void poller_release_all(struct roan_sq_poller *p)
{
	u32 i;

	poller_set_state(p, ROAN_POLLER_OFF);
	for (i = poller_count(p); i--;)
		poller_release(p, i);
}

/* ---- the thread ---- */

/*
 * Sends if the tail has moved since the last poll. WQEs that cannot be sent now are left to other events (ACK, timer,
 * deferred work). False: no new WQEs for @idle_ns, or the QP is in neither RTS nor SQD.
 */
static bool poller_poll_sq(struct roan_sq_poller_entry *entry, u64 now, u64 idle_ns)
{
	struct roan_qp *qp = entry->qp;
	u32 tail = roan_ring_tail(&qp->sq.ring);
	enum ib_qp_state state = READ_ONCE(qp->state);

	if (tail != entry->tail) {
		entry->tail = tail;
		entry->since = now;
		roan_send(qp);
	}
	return now - entry->since < idle_ns && (state == IB_QPS_RTS || state == IB_QPS_SQD);
}

/*
 * Returns true if no other task is runnable on this CPU. A kernel without CONFIG_SMP has no CPU for the thread alone,
 * so there it yields to other tasks. That makes nothing faster, but UML, which is used to find memory and lock errors,
 * is such a kernel.
 */
static bool poller_cpu_free(void)
{
	if (!single_task_running()) {
		if (IS_ENABLED(CONFIG_SMP))
			return false;
		yield();
	}
	cond_resched_tasks_rcu_qs();	/* for Tasks RCU; here hardly any task can have become runnable */
	return true;
}

/* True: there was no ring to poll for poll_idle_us. False: another task needs the CPU, or the thread is to stop. */
static bool poller_loop(struct roan_sq_poller *p)
{
	u64 busy_at = ktime_get_ns();	/* ns: when there last was a ring, at first when the loop began */
	bool idle = false;

	poller_set_state(p, ROAN_POLLER_POLLING);
	while (!idle && poller_cpu_free() && !kthread_should_stop()) {
		u64 idle_ns = READ_ONCE(p->idle_us) * (u64)NSEC_PER_USEC;
		u32 i = poller_count(p);
		u64 now = ktime_get_ns();	/* read after the count, so that it is not before any entry's @since */

		if (i)
			busy_at = now;
		idle = now - busy_at >= idle_ns;
		while (i--) {
			if (!poller_poll_sq(&p->polled[i], now, idle_ns))
				poller_release(p, i);
			cond_resched();
		}
		cpu_relax();
	}
	poller_release_all(p);
	return idle;
}

static void poller_sleep(struct roan_sq_poller *p)
{
	set_current_state(TASK_IDLE);	/* before the state: a doorbell that sees SLEEPING wakes the thread */
	poller_set_state(p, ROAN_POLLER_SLEEPING);
	if (!kthread_should_stop())
		schedule();
	__set_current_state(TASK_RUNNING);
	poller_set_state(p, ROAN_POLLER_OFF);
}

static int poller_thread(void *poller)
{
	struct roan_sq_poller *p = poller;

	while (!kthread_should_stop()) {
		if (!poller_loop(p))
			schedule_timeout_idle(msecs_to_jiffies(YIELD_MS));
		poller_sleep(p);
	}
	return 0;
}

/* ---- on and off ---- */

static DEFINE_MUTEX(switching);

static int poller_start(struct roan_dev *dev)
	__must_hold(&switching)
{
	struct roan_sq_poller *p = &dev->poller;
	struct task_struct *task;

	p->polled = kcalloc(MAX_POLLED, sizeof(*p->polled), GFP_KERNEL);
	if (!p->polled)
		return -ENOMEM;
	task = kthread_create(poller_thread, p, "roan_poll/%s", dev_name(&dev->ib.dev));
	if (IS_ERR(task)) {
		kfree(p->polled);
		return PTR_ERR(task);
	}
	p->task = task;
	wake_up_process(task);
	return 0;
}

/* The thread has released every ring before it exits. */
static void poller_stop(struct roan_sq_poller *p)
	__must_hold(&switching)
{
	kthread_stop(p->task);
	p->task = NULL;
	kfree(p->polled);
}

static int poller_set_idle(struct roan_dev *dev, u32 idle_us)
{
	struct roan_sq_poller *p = &dev->poller;
	int err = 0;

	mutex_lock(&switching);
	if (idle_us && !p->task)
		err = poller_start(dev);
	else if (!idle_us && p->task)
		poller_stop(p);
	if (!err)
		WRITE_ONCE(p->idle_us, idle_us);
	mutex_unlock(&switching);
	return err;
}

static ssize_t poll_idle_us_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct roan_dev *dev = rdma_device_to_drv_device(device, struct roan_dev, ib);

	return sysfs_emit(buf, "%u\n", READ_ONCE(dev->poller.idle_us));
}

static ssize_t poll_idle_us_store(struct device *device, struct device_attribute *attr, const char *buf, size_t n)
{
	struct roan_dev *dev = rdma_device_to_drv_device(device, struct roan_dev, ib);
	u32 idle_us;
	int err = kstrtou32(buf, 0, &idle_us);

	if (!err && idle_us > MAX_IDLE_US)
		err = -ERANGE;
	return err ?: poller_set_idle(dev, idle_us) ?: n;
}
DEVICE_ATTR_RW(poll_idle_us);

void roan_sq_poller_init(struct roan_sq_poller *p)
{
	spin_lock_init(&p->lock);
}

void roan_sq_poller_exit(struct roan_dev *dev)
{
	poller_set_idle(dev, 0);
}
