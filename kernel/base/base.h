/* SPDX-License-Identifier: GPL-2.0 */
/*
 * base: the foundation of all other folders of kernel/: rings shared with user space, references to QPs, deferred
 * work, counters, tracepoints, CRC. Decides nothing about packets. Any context unless a comment names one. At the end:
 * the order of all locks, and lifetimes.
 */
#ifndef ROAN_BASE_H
#define ROAN_BASE_H

#include "base/deferred.h"
#include "base/queue_types.h"
#include "base/ring.h"
#include "base/stats.h"
#include "base/user_share.h"
#include "roan.h"

static inline bool roan_gid_v4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid);
}

static inline bool roan_gid_equal(const union ib_gid *a, const union ib_gid *b)
{
	return a->global.subnet_prefix == b->global.subnet_prefix && a->global.interface_id == b->global.interface_id;
}

/* @sides: BIT(enum roan_queue_id) of the queues to run. Contexts as for roan_defer(). */
static inline void roan_kick_queues(struct roan_qp *qp, unsigned long sides)
{
	if (sides & BIT(ROAN_QUEUE_SQ))
		roan_defer(&qp->deferred, ROAN_DEFER_SEND);
	if (sides & BIT(ROAN_QUEUE_RQ))
		roan_defer(&qp->deferred, ROAN_DEFER_RESPOND);
}

static inline bool roan_connected(const struct roan_qp *qp)
{
	return qp->transport != ROAN_TP_UD;
}

/* Returns the address vector of address handle number @ah_num of this device, or NULL. RCU read side. */
static inline struct roan_av *roan_av_find(struct roan_dev *dev, u32 ah_num)
{
	return xa_load(&dev->ahs, ah_num);
}

/*
 * As roan_memcg_enter(), for the program that owns @qp: for what packets and timers allocate for it. No effect for a
 * kernel consumer's QP.
 */
static inline void roan_memcg_enter_qp(struct roan_memcg_scope *scope, const struct roan_qp *qp)
{
	roan_memcg_enter(scope, qp->uctx ? to_roan_ucontext(qp->uctx)->mm : NULL);
}

/* Zeroed memory for @qp, charged to the program that owns it, or NULL without a warning. */
static inline void *roan_qp_zalloc(const struct roan_qp *qp, size_t size, gfp_t gfp)
{
	struct roan_memcg_scope scope;
	void *p;

	roan_memcg_enter_qp(&scope, qp);
	p = kzalloc(size, gfp | __GFP_ACCOUNT | __GFP_NOWARN);
	roan_memcg_leave(&scope);
	return p;
}

/* ---- udata.c ---- */

/*
 * Input: -EINVAL if it ends before @last, the last field of the first version of the struct, or if trailing bytes are
 * not 0; -EFAULT. Output, of any length: -EFAULT.
 */
#define roan_udata_in(udata, req, last)	\
	roan_udata_copy_in(udata, req, sizeof(*(req)), offsetofend(typeof(*(req)), last))
int roan_udata_copy_in(struct ib_udata *udata, void *req, size_t size, size_t first_size);
int roan_udata_no_input(struct ib_udata *udata);	/* -EINVAL: an input byte is not 0; -EFAULT. May be NULL */
int roan_udata_none(struct ib_udata *udata);	/* the same; zeroes the response */
int roan_udata_out(struct ib_udata *udata, const void *resp, size_t size);
int roan_resp_out(void __user *to, size_t room, const void *resp, size_t size);	/* the same, to @room bytes at @to */

/* ---- qp_ref.c ---- */

/* RCU read side; NULL: the QP is being destroyed, or @ref is NULL */
struct roan_qp *roan_qp_get_rcu(struct roan_qp_ref *ref);
struct roan_qp *roan_qp_find(u32 qpn);			/* takes a reference; NULL: no such QP. Any context */
struct roan_qp *roan_qp_find_gsi(struct roan_dev *dev);
void roan_qp_get(struct roan_qp *qp);			/* the caller already holds a reference */
void roan_qp_put(struct roan_qp *qp);
int roan_qp_publish(struct roan_qp *qp);	/* assigns the QP number and makes the QP findable; 0 or -errno */
void roan_qp_unpublish(struct roan_qp *qp);	/* lookups no longer find the QP */
/*
 * Calls @visit for each published QP but GSI QPs, with a reference held, under rcu_read_lock(). Process context.
 * @visit may call cond_resched_rcu().
 */
void roan_qp_for_each(void (*visit)(struct roan_qp *qp, const void *what), const void *what);
/* Softirq flushes what was posted in ERR or SQE. Any context, any lock held. */
void roan_qp_request_flush(struct roan_qp *qp);
void roan_qp_set_err(struct roan_qp *qp);			/* sq.lock or rq.lock held: QP to ERR, in softirq */
/* A send failed: RC QPs go to ERR, others to SQE, in softirq. Caller holds sq.lock. */
void roan_sq_set_err(struct roan_qp *qp);
int roan_qp_init(void);
void roan_qp_exit(void);

/* ---- stats.c ---- */

struct rdma_hw_stats *roan_alloc_port_stats(struct ib_device *dev, u32 port);
const char *roan_counter_name(enum roan_counter which);
u64 roan_stats_sum(const struct roan_dev *dev, enum roan_counter which);
void roan_stats_histogram(const struct roan_dev *dev, enum roan_latency which, struct roan_histogram *sum);

/* ---- crc.c ---- */

void roan_icrc_add(struct roan_icrc *icrc, const void *p, size_t len);
/*
 * Copies @len bytes and extends @icrc over them. @icrc NULL: copies only. @from is read once if the CRC method allows
 * it.
 */
void roan_icrc_copy(struct roan_icrc *icrc, void *to, const void *from, size_t len);
int roan_crc_init(void);
void roan_crc_exit(void);
const char *roan_crc_name(void);	/* of the CRC method in use */

/*
 * LOCKING (every lock, a drawing and the reasons: Documentation/locking.md)
 *
 * Contexts: P process (verbs, sysfs, netlink, workers), D doorbell (an ioctl of the poster), S softirq (receive,
 * deferred work), T soft hrtimer. Nothing runs in hard interrupts except skb destructors and what a kernel
 * consumer calls with interrupts off: post_send(), post_recv(), post_srq_recv(), poll_cq(), req_notify_cq(),
 * map_mr_sg(), create_ah(), destroy_ah(). These take irqsave locks only (post_lock, poll_lock, map_lock, that of
 * dev->ahs); with interrupts off post_send() defers the sending.
 *
 * Order, outermost first. "x -> a, b": a and b are taken under x, not under one another.
 *	qp->mutex -> sq.lock -> rq.lock -> srq->lock
 *	qp->mutex -> peers_mutex, retained_lock
 *	sq.lock, rq.lock -> cq->lock
 *	sq.lock, rq.lock -> limiter->lock, pfc->lock
 *	rq.lock -> lock of struct roan_pfc_tx -> locks of the queueing discipline
 *	sq.lock, rq.lock -> a key held by this CPU -> window->lock, chunk->lock, faults->lock, atomics (iomem.c)
 *	faults->lock -> share->lock (odp_fault.c)
 *	sq.lock -> poller->lock
 *	sq.lock, rq.lock -> mr->map_lock
 *	post_lock -> srq->lock; poll_lock -> cq->lock: only where a queue is resized
 *	writers (mcast.c), adding (device.c) -> RTNL
 *	adding (device.c) -> net_mutex, devices_lock
 * hints->lock is a leaf, taken under none of these. sq.lock and rq.lock of one QP are held together only where the
 * state of the QP changes (verbs/qp_state.c). No thread holds queue locks of two QPs.
 *
 * Upcalls run from deferred work with no lock held, except cq->upcall_lock over comp_handler():
 * roan_destroy_cq() takes it to wait for the handler. The handler may post and poll; it must not destroy the
 * CQ. event_handler() runs with no lock held.
 *
 * Packets are handed to the IP stack under the lock of their queue. They do not reach roan_recv() under it: a
 * packet to this host goes through a CPU's backlog, and so does one that tc redirects from egress to ingress
 * (since 6.8, and in Debian's 6.1).
 *
 * An error on one side of a QP stops that side at once (requester.failed, responder.failed) and calls
 * roan_qp_set_err(); deferred work then takes both locks in order and changes the state.
 *
 * LIFETIME
 *
 * QP: a QPN leads to a struct roan_qp_ref under RCU; a reference taken from it keeps the QP. destroy_qp()
 * unpublishes the ref, sets the state to RESET, cancels the timer, drops its reference and waits for the others:
 * for no grace period, and with no time-out. The ref is freed a grace period after the QP and its last skb
 * (tx_inflight.c). The module waits for that.
 *
 * Key: packets take no reference. A CPU stores the key it uses in a per-CPU hazard pointer (key.c), with softirqs
 * off, for one GSO skb or 64 KiB of write-back at most. An invalidator clears the valid state and waits until no
 * CPU has the key stored. It may hold a queue lock meanwhile, so a CPU that holds a key must not block on sq.lock
 * or rq.lock: roan_queue_lock_drop_key(). With PREEMPT_RT the hazard pointer has a lock, by which the waiter lends
 * its priority. roan_mr_revoke() leaves the key and waits for a grace period instead.
 *
 * Address vector: RCU only; used within one read section.
 *
 * CQ, SRQ, PD: outlive their QPs (the RDMA core counts users). Queued deferred work holds a reference to its QP,
 * CQ or SRQ.
 *
 * Ring memory: belongs to its mmap entry. It outlives the queue, and stays charged, while a program maps it.
 */

#endif /* ROAN_BASE_H */
