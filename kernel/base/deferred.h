/* SPDX-License-Identifier: GPL-2.0 */
/* Things to do soon, in softirq on this CPU, with no lock held: a list of what has any. */
#ifndef ROAN_LATER_H
#define ROAN_LATER_H

#include <linux/llist.h>
#include <linux/types.h>

enum roan_later_kind { ROAN_LATER_QP, ROAN_LATER_CQ, ROAN_LATER_SRQ };

enum roan_later_bit {
	/* QP */
	ROAN_DO_SEND,		/* look at the SQ */
	ROAN_DO_RESPOND,	/* responses are owed */
	ROAN_DO_RESUME,		/* memory came: what rested for want of it goes on */
	ROAN_DO_FAIL,		/* to the error state */
	ROAN_DO_EV_FATAL,	/* async events to tell */
	ROAN_DO_EV_REQ_ERR,
	ROAN_DO_EV_ACCESS_ERR,
	ROAN_DO_EV_COMM_EST,
	ROAN_DO_EV_SQ_DRAINED,
	ROAN_DO_EV_LAST_WQE,
	/* CQ */
	ROAN_DO_NOTIFY,
	ROAN_DO_CQ_ERR,
	/* SRQ */
	ROAN_DO_SRQ_LIMIT,
	ROAN_DO_SRQ_ERR,
};

struct roan_later {
	struct llist_node node;
	unsigned long bits;	/* enum roan_later_bit, atomic; not empty = queued or about to run */
	u8 kind;		/* enum roan_later_kind */
};

void roan_later(struct roan_later *later, enum roan_later_bit what);	/* caller has a reference to its holder */
int roan_later_init(void);
void roan_later_exit(void);

#endif /* ROAN_LATER_H */
