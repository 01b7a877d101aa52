/* SPDX-License-Identifier: GPL-2.0 */
/*
 * verbs_stress in two halves: stress_ops.c defines each operation, how to post it and its result; verbs_stress.c has
 * the two sides and the sequence.
 */
#ifndef STRESS_H
#define STRESS_H

#include "../verbs_test.h"

enum op {
	OP_SEND, OP_SEND_IMM, OP_SEND_INV, OP_WRITE, OP_WRITE_IMM, OP_READ, OP_CAS, OP_FAA, OP_ATOMIC_WRITE, NR_OPS
};

extern const char *const op_name[NR_OPS];

#define MAX_SGE		4
#define MAX_QPS		32
#define MAX_BATCH	512
#define GAP		64	/* bytes that must not change, between pieces of a message and around a target */
#define GRH		40

/* Settings that both sides share; the client decides and sends them. */
struct cfg {
	uint64_t seed;
	uint32_t type;		/* enum ibv_qp_type */
	uint32_t nr_qps;
	uint32_t batch;		/* operations in flight at a time, over all QPs */
	uint32_t nr_batches;
	uint32_t max_len;	/* bytes of the longest message */
	uint32_t mtu;		/* bytes; sizes cluster around its multiples */
	uint32_t ops;		/* mask of 1 << enum op */
	uint32_t srq, events, late_recv, lossy, both, never_empty;	/* booleans */
};

/* One operation: a pure function of (seed, direction, batch, index), so both sides can compute it. */
struct plan {
	enum op op;
	uint32_t len;
	uint64_t seed;		/* of the payload */
	uint64_t before;	/* seed of the target's contents before the operation */
	uint32_t imm;
	uint32_t at;		/* offset in the target slot, a multiple of 8 for atomics */
	uint64_t operand;	/* FAA: addend; CAS: the new value */
	uint32_t cuts[MAX_SGE];	/* lengths of the pieces; their sum is len */
	uint8_t nr_sge;
	bool hit;		/* CAS: the compare value matches */
	bool swapped;		/* the target's CPU has the other byte order: atomics take the 8 bytes for another number */
	bool use_inline, signaled, fence, solicited, use_ex;
};

struct plan make_plan(const struct cfg *c, int direction, uint32_t batch, uint32_t index);
bool op_takes_recv(enum op op);
uint64_t plan_old(const struct plan *p);	/* the 8 bytes before an atomic */
uint64_t plan_new(const struct plan *p);	/* and after it */

static inline size_t slot_size(const struct cfg *c)
{
	return (c->max_len + 16 + GRH + (MAX_SGE + 2) * GAP + 4095) & ~4095ul;
}

/* Memory and addresses of one operation. */
struct place {
	uint8_t *local;		/* this side's slot */
	uint32_t lkey;
	uint64_t remote;	/* the peer's slot */
	uint32_t rkey;
	uint32_t inv_rkey;	/* SEND_INV */
	struct ibv_ah *ah;	/* UD */
	uint32_t remote_qpn;
	uint32_t max_inline;
};

/* A request with everything it points to. */
struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[MAX_SGE];
};

/* Fills this side's slot as the operation needs. */
void plan_fill_local(const struct plan *p, const struct place *at);
void plan_request(const struct plan *p, const struct place *at, uint64_t wr_id, bool last, struct request *r);
int post_ex(struct ibv_qp_ex *qp, const struct plan *p, const struct request *r);
/* Returns NULL, or a sentence that describes the error. */
const char *plan_check_local(const struct plan *p, const struct place *at);
const char *plan_check_target(const struct plan *p, const uint8_t *slot, size_t size, bool partial_ok);
enum ibv_wc_opcode plan_wc_opcode(const struct plan *p);

#endif
