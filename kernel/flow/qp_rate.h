/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The limiter of a QP: its congestion control, its pacer, and its place in the queue of those who wait for their time. Both
 * directions share it: what the QP sends of its own and the READ responses it owes go to the same peer.
 *
 * A QP has none until it is needed: a CNP, a cap, or an algorithm that measures from the start. qp_rate.c makes it and tells it
 * of events, pacing_timer.c wakes whoever it held back.
 */
#ifndef ROAN_LIMIT_H
#define ROAN_LIMIT_H

#include <linux/timerqueue.h>
#include "roan.h"
#include "core/cc/pacer.h"

struct roan_wheel;

struct roan_limiter {
	struct roan_qp *qp;
	spinlock_t lock;		/* _bh; taken under the lock of a queue, or under none */
	bool open;			/* nothing is limited, nothing is wanted: not asked at all. WRITE_ONCE, read without lock */
	bool started;			/* cc is of the connection's present life */
	u64 now;			/* ns: when a turn last began */
	u64 due;			/* ns: when the last train that was handed over before its time leaves */
	struct roan_cc cc;
	struct roan_pacer pacer;

	/* sq.lock: the packet whose acknowledgement will be timed; ns, 0: none */
	u64 probe_at;
	u32 probe_psn;

	/* pacing_timer.c */
	unsigned long waiting;		/* 1 << enum roan_side; atomic */
	struct roan_wheel *wheel;	/* where it is or was queued; lock */
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

	return unlikely(l) && !READ_ONCE(l->open) ? l : NULL;
}

/* qp_rate.c */
enum roan_cc_algo roan_cc_algo(const struct roan_qp *qp);	/* the one it runs, or would */
bool roan_cc_marks(const struct roan_qp *qp, u8 prio);	/* data of this priority leaves as ECT(0): marks will be heeded */
/* Before RTR and RTS, or a @cap that comes; process context, qp->mutex held. */
int roan_limiter_prepare(struct roan_qp *qp, bool cap);
void roan_limiter_start(struct roan_qp *qp);		/* the connection begins; sq.lock held */
void roan_limiter_tune(struct roan_qp *qp);		/* its cap or algorithm may have changed; sq.lock held */
void roan_limiter_stop(struct roan_qp *qp);		/* RESET; both locks held */
void roan_cnp_heard(struct roan_qp *qp, const union ib_gid *from);	/* a CNP from that address. softirq, no queue lock */
/*
 * May this packet leave? False: not now, and the QP will be called again; or, in_flight being too much, with the next ACK.
 * sq.lock held. Makes the packet ask for an ACK if none may follow it.
 */
bool roan_limit_request(struct roan_qp *qp, struct roan_tx_round *round, struct roan_emit *emit);
/* ns: what follows READ responses may not leave before; 0: at once. rq.lock held */
u64 roan_limit_follows(struct roan_limiter *l);
bool roan_limit_response(struct roan_qp *qp, struct roan_tx_round *round, const struct roan_answer *answer); /* rq.lock held */
/* An answer was taken in, una_psn was @una before, or time ran out; sq.lock held. */
void roan_limit_acked(struct roan_qp *qp, struct roan_limiter *l, u32 una, u32 psn, u64 now);
void roan_limit_lost(struct roan_limiter *l, enum roan_cc_loss why, u64 now);

/* pacing_timer.c */
void roan_pace_wait(struct roan_limiter *l, enum roan_side side, u64 at);	/* l->lock held */
void roan_pace_moved(struct roan_limiter *l, u64 at);	/* whoever waits may go at @at, if that is earlier; l->lock held */
void roan_pace_cancel(struct roan_limiter *l);		/* process context */
void roan_pace_init(void);
void roan_pace_exit(void);

#endif /* ROAN_LIMIT_H */
