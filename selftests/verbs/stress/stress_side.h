/* SPDX-License-Identifier: GPL-2.0 */
/* One side of verbs_stress: its objects, and the functions of its two roles. */
#ifndef STRESS_SIDE_H
#define STRESS_SIDE_H

#include "stress.h"

#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
		 IBV_ACCESS_MW_BIND)

struct side {
	struct vt_dev dev;
	struct cfg c;
	int fd;				/* side channel */
	bool active;
	bool swapped;			/* the peer's CPU has the other byte order; what it sends by the side channel, too */
	struct ibv_comp_channel *chan;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[MAX_QPS];
	struct vt_addr peer[MAX_QPS];
	struct ibv_ah *ah[MAX_QPS];
	struct ibv_mw *mw[MAX_BATCH];
	uint32_t max_inline;
	bool has_ex;

	/* three areas of @batch slots each */
	uint8_t *local, *target, *recvs;
	struct ibv_mr *local_mr, *target_mr, *recv_mr;
	uint64_t remote;
	uint32_t rkey;
	uint32_t inv_rkey[MAX_BATCH];	/* R_Keys of the peer's windows */

	uint32_t batch_nr;
	struct plan out[MAX_BATCH], in[MAX_BATCH];
	uint32_t posted[MAX_QPS];	/* receives posted; [0] with an SRQ */
	bool slot_busy[MAX_BATCH];
	uint32_t next_in[MAX_QPS];	/* incoming operations below this index are checked */
	uint32_t next_out[MAX_QPS];
	uint32_t left_in, left_out;
	uint64_t done[NR_OPS], lost, expected;	/* the last two: messages that take a receive */
	uint64_t judged, judged_bytes;		/* of the peer's operations on this side's memory */
};

extern bool verbose, rxe_slips;	/* -v, -x */

/* Turns @n words that the peer sent into this CPU's byte order. */
void swap_words(const struct side *s, uint32_t *w, uint32_t n);

/* stress_target.c: the target side */
uint8_t *slot(struct side *s, uint8_t *base, uint32_t i);
void top_up(struct side *s);
void target_prepare(struct side *s);
uint32_t qp_index(struct side *s, uint32_t qpn);
void judge_recv(struct side *s, const struct ibv_wc *wc);
void target_finish(struct side *s);

#endif /* STRESS_SIDE_H */
