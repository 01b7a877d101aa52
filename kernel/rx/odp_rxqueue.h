/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that wait, in order, for memory that a worker brings: of a QP, and how much of a device's. */
#ifndef ROAN_BACKLOG_H
#define ROAN_BACKLOG_H

#include <linux/atomic.h>
#include <linux/types.h>
#include "core/flow/pfc_rules.h"

struct roan_qp;
struct roan_rx;

/* Bytes of all QPs of a device; written where packets wait, and only then. */
struct roan_backlog {
	atomic_t bytes;
	atomic_t of_prio[ROAN_PRIORITIES];
};

/* All with rq.lock held. */
bool roan_backlog_add(struct roan_qp *qp, struct roan_rx *rx);	/* behind all others; false: no room. What waits stays in its place */
bool roan_backlog_has(const struct roan_qp *qp, u32 psn);	/* somebody waits: is this PSN, or a later one, among them? */
void roan_backlog_run(struct roan_qp *qp);		/* executes them, until one must wait still */
void roan_backlog_drop(struct roan_qp *qp);		/* the QP receives no more */

/* request.c: what waited is admitted and executed, or waits again. RCU; the QP can receive. */
void roan_request_execute(struct roan_qp *qp, struct roan_rx *rx);

#endif /* ROAN_BACKLOG_H */
