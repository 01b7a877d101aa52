/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The limiter of a QP: its congestion control, its pacer, and its place in the queue of those who wait for their time. Both
 * directions share it: what the QP sends of its own and the READ responses it owes go to the same peer.
 *
 * A QP has none until it is needed: a CNP, a cap, or an algorithm that measures from the start. qp_rate.c makes it and tells it
 * of events, pacing_timer.c wakes whoever it held back.
 */
#ifndef ROAN_QP_RATE_H
#define ROAN_QP_RATE_H

#include <linux/timerqueue.h>
#include "roan.h"
#include "core/cc/pacer.h"

struct roan_pacing_queue;

struct roan_limiter {
	struct roan_qp *qp;
	spinlock_t lock;		/* _bh; taken under the lock of a queue, or under none */
	/* nothing is limited, nothing is wanted: not asked at all. WRITE_ONCE, read without lock */
	bool bypass;
	bool active;			/* cc is of the connection's present life */
	u64 now;			/* ns: when a turn last began */
	u64 edt_ns;			/* ns: when the last train that was handed over before its time leaves */
	struct roan_cc cc;
	struct roan_pacer pacer;

	/* sq.lock: the packet whose acknowledgement will be timed; ns, 0: none */
	u64 rtt_sample_ns;
	u32 rtt_sample_psn;

	/* pacing_timer.c */
	unsigned long blocked_mask;	/* 1 << enum roan_queue_id; atomic */
	struct roan_pacing_queue *pacing_queue;	/* where it is or was queued; lock */
	struct timerqueue_node node;	/* the wheel's lock, as all below */
	bool queued;			/* holds a reference to the QP */
};

/* What a round of sending has of the limiter: on the stack, inside struct roan_train. */
struct roan_tx_round {
	struct roan_limiter *limiter;	/* decides about each packet; NULL: none */
	u64 edt_ns;			/* earliest departure time of what is built now; 0: at once */
	u32 byte_budget;		/* bytes that the pacer still allows in this round */
	u32 wire_overhead;		/* bytes of each packet on the wire besides those from BTH to ICRC */
	bool blocked;			/* the last packet may not leave yet */
	bool rtt_probe;			/* a packet of this round is timed */
};

/* The QP's limiter if there is anything to ask it. Any context. */
static inline struct roan_limiter *roan_limiter_of(const struct roan_qp *qp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter);

	return unlikely(l) && !READ_ONCE(l->bypass) ? l : NULL;
}

/* qp_rate.c */
enum roan_cc_algo roan_rate_algo(const struct roan_qp *qp);	/* the one it runs, or would */
/* data of this priority leaves as ECT(0): marks will be heeded */
bool roan_rate_uses_ecn(const struct roan_qp *qp, u8 prio);
/* Before RTR and RTS, or a @cap that comes; process context, qp->mutex held. */
int roan_rate_prepare(struct roan_qp *qp, bool cap);
void roan_rate_start(struct roan_qp *qp);		/* the connection begins; sq.lock held */
void roan_rate_update_cfg(struct roan_qp *qp);		/* its cap or algorithm may have changed; sq.lock held */
void roan_rate_stop(struct roan_qp *qp);		/* RESET; both locks held */
/* a CNP from that address. softirq, no queue lock */
void roan_rp_cnp_received(struct roan_qp *qp, const union ib_gid *from);
/*
 * May this packet leave? False: not now, and the QP will be called again; or, in_flight being too much, with the next ACK.
 * sq.lock held. Makes the packet ask for an ACK if none may follow it.
 */
bool roan_rate_admit_request(struct roan_qp *qp, struct roan_tx_round *round, struct roan_tx_desc *emit);
/* ns: what follows READ responses may not leave before; 0: at once. rq.lock held */
u64 roan_rate_ack_edt(struct roan_limiter *l);
/* rq.lock held */
bool roan_rate_admit_response(struct roan_qp *qp, struct roan_tx_round *round, const struct roan_response *answer);
/* An answer was taken in, una_psn was @una before, or time ran out; sq.lock held. */
void roan_rate_acked(struct roan_qp *qp, struct roan_limiter *l, u32 una, u32 psn, u64 now);
void roan_rate_lost(struct roan_limiter *l, enum roan_cc_loss why, u64 now);

/* pacing_timer.c */
void roan_pacing_wait(struct roan_limiter *l, enum roan_queue_id side, u64 at);	/* l->lock held */
/* whoever waits may go at @at, if that is earlier; l->lock held */
void roan_pacing_reschedule(struct roan_limiter *l, u64 at);
void roan_pacing_cancel(struct roan_limiter *l);		/* process context */
void roan_pacing_init(void);
void roan_pacing_exit(void);

#endif /* ROAN_QP_RATE_H */
