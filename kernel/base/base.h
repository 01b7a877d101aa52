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

/* ---- udata.c ---- */

/* Input: -EINVAL if too short or if trailing bytes are not 0; -EFAULT. Output: -ENOSPC, -EFAULT; length 0 is fine. */
int roan_udata_in(struct ib_udata *udata, void *req, size_t size);
int roan_udata_none(struct ib_udata *udata);	/* -EINVAL if any input byte is not 0; NULL is accepted */
int roan_udata_out(struct ib_udata *udata, const void *resp, size_t size);

/* ---- qp_ref.c ---- */

/* RCU read side; NULL: the QP is being destroyed, or @ref is NULL */
struct roan_qp *roan_qp_get_rcu(struct roan_qp_ref *ref);
struct roan_qp *roan_qp_find(u32 qpn);			/* takes a reference; NULL: no such QP. Any context */
struct roan_qp *roan_qp_find_gsi(struct roan_dev *dev);
void roan_qp_get(struct roan_qp *qp);			/* the caller already holds a reference */
void roan_qp_put(struct roan_qp *qp);
int roan_qp_publish(struct roan_qp *qp);	/* assigns the QP number and makes the QP findable; 0 or -errno */
void roan_qp_unpublish(struct roan_qp *qp);	/* lookups no longer find the QP */
/* Calls @visit for each published QP but GSI QPs, with a reference held, under rcu_read_lock(). Process context. */
void roan_qp_for_each(void (*visit)(struct roan_qp *qp, const void *what), const void *what);
/* Softirq takes the QP to ERR if err_pending is set, and flushes what was posted in ERR. Any context, any lock held. */
void roan_qp_request_flush(struct roan_qp *qp);
void roan_qp_set_err(struct roan_qp *qp);			/* sq.lock or rq.lock held: QP to ERR, in softirq */
/* A send failed: RC QPs go to ERR, others to SQE, in softirq. Caller holds sq.lock. */
void roan_sq_set_err(struct roan_qp *qp);
int roan_qp_init(void);
void roan_qp_exit(void);

/* ---- stats.c ---- */

struct rdma_hw_stats *roan_alloc_port_stats(struct ib_device *dev, u32 port);
int roan_get_hw_stats(struct ib_device *dev, struct rdma_hw_stats *stats, u32 port, int index);
u64 roan_stats_sum(const struct roan_dev *dev, enum roan_counter which);

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
 * LOCKING
 *
 * Contexts: P process (verbs), D doorbell (the uverbs method), S softirq (receive, the later list), T the soft
 * hrtimer. A kernel consumer may call post_send(), post_recv(), poll_cq() and req_notify_cq() with interrupts off; these
 * touch only the user's half of a ring, under an irqsave lock of their own, and leave the rest to deferred.c.
 *
 * Order, complete:  qp->mutex -> sq.lock -> rq.lock -> srq->lock -> cq->lock.  window->lock is a leaf.
 * So are asks->lock, pfc->lock, notices->lock and poller->lock. sq.lock, rq.lock, srq->lock and cq->lock are spin_lock_bh. sq.lock
 * and rq.lock are held together only where the state of the QP changes (qp_state.c). post_lock and poll_lock are irqsave
 * and taken with nothing else. A region's map_lock is irqsave, too, and a leaf: consumers map in any context.
 *
 * Nothing calls up (comp_handler, event_handler) or transmits into its own receive path under a lock: upcalls go through
 * roan_defer(), and every packet, also to ourselves, goes through the IP stack and the backlog; one that tc redirects
 * from our egress to an ingress does since 6.8, and in 6.1 as Debian has it.
 *
 * An error found on the receive or the send side makes its own half refuse further work at once (requester.failed,
 * responder.failed) and calls roan_qp_set_err(); deferred.c then takes both locks in order and does the rest.
 *
 * LIFETIME
 *
 * A packet's QPN finds a struct roan_qp_ref under RCU; the reference taken from it keeps the QP. destroy_qp() unlinks the
 * ref, sets the state to RESET, stops the timer, drops its own reference and waits for the others: no time-out, no grace
 * period (the ref itself is RCU-freed). Keys: the same, but packets take no reference to them: each CPU says which key
 * it is inside (key.c), and whoever takes one out of force or away waits until all have left it. What is inside stays so
 * for a train of packets or 64 KiB of write-back at most, with softirqs off, and waits for neither sq.lock nor rq.lock, under
 * which others wait for it. Address vectors: RCU only, they are used inside one read section.
 * CQs, SRQs and PDs outlive their QPs (the core counts users); what may still be queued on the later list holds a reference.
 * The ref also counts the skbs of the QP that have not left (tx_inflight.c), and outlives them; so does the module.
 * Ring memory belongs to its mmap entry and outlives the queue while it is mapped.
 */

#endif /* ROAN_BASE_H */
