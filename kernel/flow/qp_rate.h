/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The limiter of a QP: congestion control, pacer, and pacing timer. Requests and READ responses share it, because both
 * go to the same peer.
 *
 * It is allocated on first need: a CNP, a rate cap, a window, or an algorithm that limits from the start. An idle QP
 * has neither limiter nor timer. Does not contain the algorithms: core/cc does.
 */
#ifndef ROAN_QP_RATE_H
#define ROAN_QP_RATE_H

#include "roan.h"
#include "core/cc/pacer.h"

struct roan_limiter {
	struct roan_qp *qp;
	spinlock_t lock;		/* _bh; taken under a queue lock or none */
	/* no limit and no event subscribed: the packet path skips the limiter. WRITE_ONCE, read without lock */
	bool bypass;
	bool active;			/* @cc was started for the current connection */
	u8  last_side;			/* enum roan_queue_id: was allowed to send last; read without lock */
	u64 now;			/* ns: start of the last pacer round, or time of the last event */
	u64 edt_ns;			/* ns: earliest departure time of the last train handed to fq early */
	struct roan_cc cc;
	struct roan_pacer pacer;

	/* sq.lock: departure time (ns, 0: none) and PSN of the packet for the RTT sample */
	u64 rtt_sample_ns;
	u32 rtt_sample_psn;

	unsigned long blocked_mask;	/* queues that wait for @timer, 1 << enum roan_queue_id; atomic */
	struct hrtimer timer;		/* soft; runs them at their send time. Started under @lock */
};

/* State of the limiter in one send round: on the stack, in struct roan_train. */
struct roan_tx_round {
	struct roan_limiter *limiter;	/* checks each packet; NULL: no limit */
	u64 edt_ns;			/* ns: earliest departure time of the skb being built; 0: at once */
	u32 byte_budget;		/* wire bytes that the pacer still allows in this round */
	u32 wire_overhead;		/* bytes per packet on the wire outside BTH to ICRC */
	bool blocked;			/* the last packet must wait */
	bool rtt_probe;			/* the RTT sample is a packet of this round */
};

/* The QP's limiter; NULL if it has none or the packet path may skip it. Any context. */
static inline struct roan_limiter *roan_limiter_of(const struct roan_qp *qp)
{
	struct roan_limiter *l = READ_ONCE(qp->limiter);

	return unlikely(l) && !READ_ONCE(l->bypass) ? l : NULL;
}

/*
 * While the rate is limited the queue that runs first takes all that may leave at that time. True: it is the turn of
 * the send queue. Any context.
 */
static inline bool roan_rate_requests_first(const struct roan_qp *qp)
{
	const struct roan_limiter *l = roan_limiter_of(qp);

	return unlikely(l) && READ_ONCE(l->last_side) == ROAN_QUEUE_RQ;
}

/* The ports of a QP's paths differ, and that of path 0 is the QP's own. They are in the range that RoCE v2 names. */
static inline u16 roan_path_sport(const struct roan_av *av, u8 path)
{
	return IB_ROCE_UDP_ENCAP_VALID_PORT_MIN | ((av->sport + path) & 0x3fff);
}

static inline u32 roan_path_of_sport(const struct roan_av *av, u16 sport)
{
	return (sport - av->sport) & 0x3fff;
}

/* qp_rate.c */
bool roan_rate_has_own_algo(const struct roan_qp *qp);	/* false: the device's */
enum roan_cc_algo roan_rate_algo(const struct roan_qp *qp);	/* the algorithm it runs, or would run with a limiter */
/*
 * True if packets of this priority are sent as ECT(0): because the QP reacts to CNPs; for QP 1, which does not, because
 * the device's algorithm does.
 */
bool roan_rate_uses_ecn(const struct roan_qp *qp, u8 prio);
/*
 * Allocates the limiter if it is needed. Called before the transitions to RTR and RTS, and, with @cap, before a rate
 * cap is set. 0 or -ENOMEM; process context, qp->mutex held.
 */
int roan_rate_prepare(struct roan_qp *qp, bool cap);
void roan_rate_start(struct roan_qp *qp);		/* the connection starts; sq.lock held */
void roan_rate_update_cfg(struct roan_qp *qp);		/* cap or algorithm may have changed; sq.lock held */
void roan_rate_stop(struct roan_qp *qp);		/* RESET; both queue locks held */
void roan_rate_cancel(struct roan_qp *qp);		/* after the last RESET: stops the timer. Process context */
/*
 * A CNP from @from was received; @sport: the UDP source port of the packet that was marked, 0: not known. softirq, no
 * queue lock held.
 */
void roan_rp_cnp_received(struct roan_qp *qp, const union ib_gid *from, u16 sport);
/*
 * Returns true if this request packet may leave. False: the pacer will run the queue again, or the window is full and
 * the next ACK will. Sets @desc->ackreq if no further packet may follow soon. sq.lock held.
 */
bool roan_rate_admit_request(struct roan_qp *qp, struct roan_tx_round *round, struct roan_tx_desc *desc);
/*
 * This host has dropped @bytes of the wire bytes admitted: the pacer admits them again. The send queue does not wait
 * for the pacer: the caller runs it again. sq.lock held.
 */
void roan_rate_unsent(struct roan_limiter *l, u32 bytes);
/* ns: an ACK must not leave before, so that it does not overtake READ responses in fq; 0: at once. rq.lock held */
u64 roan_rate_ack_edt(struct roan_limiter *l);
/* The same as roan_rate_admit_request() for a READ response; no window, no AckReq. rq.lock held */
bool roan_rate_admit_response(struct roan_qp *qp, struct roan_tx_round *round, const struct roan_response *answer);
/*
 * roan_rate_acked(): an ACK or response with @psn was processed; una_psn was @una before. roan_rate_lost(): a loss was
 * detected, for example by the ACK timer. sq.lock held.
 */
void roan_rate_acked(struct roan_qp *qp, struct roan_limiter *l, u32 una, u32 psn, u64 now);
void roan_rate_lost(struct roan_limiter *l, enum roan_cc_loss why, u64 now);

#endif /* ROAN_QP_RATE_H */
