/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tx: from a doorbell to skbs handed to the IP stack, and completions.
 * Decides which WQEs are fetched, and how packets become GSO skbs.
 * Does not decide what is sent (core/transport), nor when it may leave (flow).
 * Locks: sq.lock for the send queue, rq.lock for responses; cq->lock is taken under either.
 * Contexts: the poster's (doorbell), softirq (ACK received, deferred work), and soft timers.
 */
#ifndef ROAN_TX_H
#define ROAN_TX_H

#include <linux/device.h>
#include "roan.h"

struct page_frag;
struct roan_rx_ctx;
struct uapi_definition;

/* ---- doorbell.c, doorbell_batch.c, sq_poller.c, cpu_yield.c ---- */

extern const struct uapi_definition roan_doorbell_defs[];	/* the doorbell method */
/* Runs the send queue. @answered, or NULL: set to the last QP whose peer waits for what was sent, with a reference. */
void roan_qp_kick(struct roan_qp *qp, struct roan_qp **answered);

void roan_db_hints_init(struct roan_db_hints *hints);
int roan_db_hints_alloc(struct roan_ucontext *uctx, struct roan_ring_desc *desc);
void roan_db_hints_free(struct roan_db_hints *hints);	/* no QP or call of the context is left */
/* a doorbell came at @began, ns: polls the hint ring */
void roan_db_batch_ring(struct roan_ucontext *uctx, u64 began, struct roan_qp **answered);
void roan_db_batch_account(struct roan_qp *qp, u32 n);	/* @n WQEs were fetched, after a doorbell or not */
void roan_db_batch_set_cpu(struct roan_qp *qp, bool waits);	/* @waits: sends are deferred here. Softirqs off */

extern struct device_attribute dev_attr_poll_idle_us;
void roan_sq_poller_init(struct roan_sq_poller *poller);
void roan_sq_poller_exit(struct roan_dev *dev);	/* no QP is left, and the sysfs attributes are gone */
void roan_sq_poller_add(struct roan_qp *qp);	/* sq.lock held: WQEs of a QP that is not polled were fetched */

/* cpu_yield.c: request and response on one CPU */
bool roan_yield_wanted(struct roan_qp *qp);
void roan_yield(struct roan_qp *qp);
/* The peer has sent something: wakes the poster that sleeps in roan_yield(). rq.lock held */
static inline void roan_yield_wake(struct roan_qp *qp)
{
	if (unlikely(qp->rq.yield_waiter))
		wake_up_process(qp->rq.yield_waiter);
}

/* ---- wqe_shadow.c, wqe_fetch.c, send.c, sq_timer.c, tx_response.c ---- */

int roan_wqe_shadow_init(struct roan_sq *sq);
void roan_wqe_shadow_free(struct roan_sq *sq);
size_t roan_wqe_shadow_max_bytes(const struct roan_sq *sq);	/* after init: the memory that it may grow to */
bool roan_wqe_shadow_may_grow(const struct roan_sq *sq);
bool roan_wqe_shadow_grow(struct roan_sq *sq);	/* sq.lock held; false: at maximum or no memory, unchanged */
/*
 * sq.lock held. True if an uncompleted request before @end has a local buffer in the region of @key, or if there are
 * too many to look at all.
 */
bool roan_wqe_shadow_uses_key(const struct roan_sq *sq, u32 end, u32 key);

/*
 * sq.lock held, before the requester handles a SACK, or a timeout with a peer that sends SACKs: memory for what they
 * show as lost, which idle QPs do not need. Without memory nothing changes.
 */
void roan_sq_alloc_holes(struct roan_qp *qp);
/*
 * sq.lock held, before the requester handles a SACK: from the first one on, which shows a gap, the packets in flight
 * have a window. Not without: it costs a tenth of the instructions of a message of 64 bytes.
 */
void roan_sq_alloc_window(struct roan_qp *qp);
/* sq.lock held: memory for a trial of several paths, which idle QPs do not need. Without memory there is none. */
void roan_sq_alloc_trial(struct roan_qp *qp);

/* sq.lock held: moves up to @most WQEs from the ring to the WQE shadow and the requester; returns how many */
u32 roan_wqe_fetch(struct roan_qp *qp, u32 most);
void roan_send(struct roan_qp *qp);		/* process or softirq; takes sq.lock */
void roan_send_acked(struct roan_qp *qp);	/* the same after responses were received; softirq */
void roan_send_locked(struct roan_qp *qp);	/* sq.lock held */
/* the timer of the send queue also runs roan_respond() at @at, ns; takes sq.lock */
void roan_sq_arm_respond(struct roan_qp *qp, u64 at);
void roan_sq_arm(struct roan_qp *qp);		/* sq.lock held: sets the timer to what is due first */
void roan_sq_resume_at(struct roan_qp *qp, u64 at);	/* sq.lock held, before roan_sq_arm(): runs again at @at, ns */
/* sq.lock held: true until the time of roan_sq_resume_at() */
static inline bool roan_sq_waits(const struct roan_qp *qp, u64 now)
{
	return unlikely(qp->sq.n_dropped) && qp->sq.kick_at & BIT(ROAN_QUEUE_SQ) && now < qp->sq.kick_at;
}

/* ns that a queue waits after this host has dropped an skb of it. Each call doubles the next wait, up to 8 ms. */
u64 roan_dropped_wait_ns(u8 *n_dropped);
enum hrtimer_restart roan_sq_timer(struct hrtimer *timer);

static inline bool roan_tx_may_respond(const struct roan_qp *qp)
{
	return qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD;
}

void roan_respond(struct roan_qp *qp);		/* sends the responses that are due; takes rq.lock */
/*
 * The same with rq.lock held; roan_respond() is to follow if the QP goes on responding. Returns when it is to run
 * again, ns, for a NAK that waits, or a response that this host has dropped; 0: for none.
 */
u64 roan_respond_locked(struct roan_qp *qp);
void roan_np_ce_received(struct roan_qp *qp, const struct roan_rx_ctx *rx);	/* softirq, RCU; takes rq.lock */
/* A connection begins or ends: a CNP that is pending is not for the next peer. rq.lock held */
void roan_np_reset(struct roan_qp *qp);

/* ---- completion.c, cq_post.c ---- */

void roan_complete_send(struct roan_qp *qp, u32 index, enum roan_status status, u32 verr);	/* sq.lock held */
/* rq.lock held */
void roan_complete_recv(struct roan_qp *qp, const struct roan_cqe *partial, enum roan_status status, u32 verr);
/* rq.lock held: the receive in progress, with the error of rq.cur.failed, or flushed */
void roan_complete_refused(struct roan_qp *qp);

void roan_cq_post(struct roan_cq *cq, const struct roan_cqe *cqe);	/* process or softirq; takes cq->lock */
/* The event of an armed CQ, for an entry that came before the arming. The same contexts and lock */
void roan_cq_raise_armed(struct roan_cq *cq);

/* ---- request_time.c ---- */

/* sq.lock held. The request @index is fetched, and none is timed; the timed one is completed, and its slot is kept. */
void roan_request_time_begin(struct roan_qp *qp, u32 index, u64 now);
void roan_request_time_end(struct roan_qp *qp, enum roan_status status, u64 now);

/* ---- flush.c ---- */

/* Each call flushes so many requests of a program's queue and defers the remainder. True: nothing is left. */
#define ROAN_FLUSH_SLOTS	32
#define ROAN_FLUSH_ROUNDS	(ROAN_MAX_WR / ROAN_FLUSH_SLOTS + 1)	/* calls that flush what was posted before */
bool roan_flush_sq(struct roan_qp *qp);		/* sq.lock held, state ERR or SQE */
bool roan_flush_rq(struct roan_qp *qp);		/* rq.lock held, state ERR */
bool roan_flush(struct roan_qp *qp);		/* process or softirq: both, in one of these states; takes the locks */

/* ---- tx_page_pool.c: per-CPU memory that packets are written to ---- */

/*
 * Returns a page with at least @len bytes at its offset, and more up to its size. A caller that uses them takes a
 * reference to the page and advances the offset; otherwise it changes neither. @first: the bytes need not continue what
 * was written last. NULL: no memory. Softirqs stay off until the bytes are written.
 */
struct page_frag *roan_tx_page_get(u32 len, bool first);
void roan_tx_page_pool_exit(void);	/* frees the pages; no QP is left to send */

#endif /* ROAN_TX_H */
