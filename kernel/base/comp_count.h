/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion counters (ibv_create_comp_cntr()): the counts that a QP's completions go to. Does not create or attach
 * counters: verbs/comp_cntr.c does. On kernels without them nothing is compiled in.
 */
#ifndef ROAN_COMP_COUNT_H
#define ROAN_COMP_COUNT_H

#include "roan.h"

/* In the order of the bits of enum ib_qp_attach_comp_cntr_op. */
enum roan_comp_op {
	ROAN_COMP_SEND,
	ROAN_COMP_RECV,
	ROAN_COMP_READ,
	ROAN_COMP_REMOTE_READ,
	ROAN_COMP_WRITE,
	ROAN_COMP_REMOTE_WRITE,
	ROAN_NUM_COMP_OPS,
};

/* A counter's page, which the program maps: it may store anything there, so the kernel only adds to it. */
struct roan_comp_count {
	atomic64_t completed;	/* at the places of struct roan_comp_cntr_page */
	atomic64_t failed;
};

/* Of one QP; allocated when the first counter is attached. */
struct roan_comp_counts {
	struct roan_comp_count *of[ROAN_NUM_COMP_OPS];	/* NULL: not counted */
};

/* Any context; the caller keeps the QP. */
static inline struct roan_comp_counts *roan_comp_counts(const struct roan_qp *qp)
{
#ifdef HAVE_COMP_CNTR
	return READ_ONCE(qp->comp_counts);
#else
	return NULL;
#endif
}

static inline void roan_comp_count(const struct roan_qp *qp, enum roan_comp_op op, bool ok)
{
	const struct roan_comp_counts *counts = roan_comp_counts(qp);
	struct roan_comp_count *count;

	if (likely(!counts))
		return;
	count = READ_ONCE(counts->of[op]);
	if (!count)
		return;
	smp_mb__before_atomic();	/* the program sees, or may write again, the data of what it sees counted */
	atomic64_inc(ok ? &count->completed : &count->failed);
}

/* @opcode: enum roan_wr_opcode, of a program, so any value. Atomics and local operations are not counted. */
static inline void roan_comp_count_send(const struct roan_qp *qp, u8 opcode, bool ok)
{
	if (likely(!roan_comp_counts(qp)))
		return;
	switch (opcode) {
	case ROAN_WR_SEND:
	case ROAN_WR_SEND_WITH_IMM:
	case ROAN_WR_SEND_WITH_INV:
		roan_comp_count(qp, ROAN_COMP_SEND, ok);
		break;
	case ROAN_WR_RDMA_WRITE:
	case ROAN_WR_RDMA_WRITE_WITH_IMM:
		roan_comp_count(qp, ROAN_COMP_WRITE, ok);
		break;
	case ROAN_WR_RDMA_READ:
		roan_comp_count(qp, ROAN_COMP_READ, ok);
		break;
	}
}

#endif /* ROAN_COMP_COUNT_H */
