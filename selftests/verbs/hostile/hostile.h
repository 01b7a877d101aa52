/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program that breaks the rules: it writes the rings of its own queues directly. Declarations shared by the parts of
 * the test. Objects are made by libibverbs and the provider. The rings are found in the process's mappings, and their
 * slots by the wr_id of a request posted in the ordinary way, so the test relies on nothing but what roan-abi.h
 * promises.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <rdma/roan-abi.h>
#include "../verbs_test.h"

#define ALL_FEATURES	(ROAN_FEATURE_ONE_MAPPING | ROAN_FEATURE_QP_HANDLE)
#define SLOTS		16	/* requested; a power of two, so the ring has exactly as many */
#define MAX_SGE		4
#define MAX_INLINE	64
#define MAX_MAPS	64	/* ring mappings of a process */
#define AREA		4096	/* bytes of the region, between two guards of the same size */

struct hring {
	struct roan_ring_ctl *ctl;
	uint8_t *slots;
	size_t slot_size;
	uint8_t *map;		/* may also contain another ring of the QP */
	size_t map_size;
};

struct region {
	uint8_t *mem;		/* guard, area, guard */
	struct ibv_mr *mr;	/* the area, all access flags */
	struct ibv_mr *local;	/* the area, local read only */
	struct ibv_mr *foreign;	/* the area, in another protection domain */
	struct ibv_mw *window, *foreign_window;	/* type 1, in the PD of @mr and in that of @foreign */
	struct ibv_pd *other_pd;
	uint32_t stale;		/* key of a deregistered MR */
};

/* A QP whose rings the test accesses directly, and a well-behaved peer in the same process. */
struct rig {
	struct vt_dev *d;
	struct region *r;
	enum ibv_qp_type type;
	struct ibv_cq *cq, *peer_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *peer;
	struct ibv_ah *ah;
	struct hring sq, rq, cqr;	/* rq: the SRQ's ring if there is one */
};

void rig_up(struct rig *g, struct vt_dev *d, struct region *r, enum ibv_qp_type type, bool srq);
void rig_down(struct rig *g);
int try_reconnect(struct rig *g);	/* RESET -> RTS on both sides, completions discarded; errno */
void rig_reconnect(struct rig *g);	/* the same, must succeed */

/* Finds the control blocks at the start of this process's ring mappings. Returns how many. */
int ring_ctls(struct roan_ring_ctl *ctl[MAX_MAPS]);
/* Returns the slot that the next sq_post() or rq_post() publishes, n slots ahead; zeroed. */
void *ring_slot_at(struct hring *ring, uint32_t n);
void ring_advance(struct hring *ring, uint32_t n);
void post_write(struct rig *g, uint64_t wr_id);	/* writes an empty WRITE into the ring; no doorbell */
int doorbell(struct ibv_qp *qp);	/* errno */
int doorbell_of(int fd, uint32_t handle);
int doorbell_bare(int fd);		/* without a QP: only the context's doorbell hints */
int doorbell_as(int fd, uint16_t len, uint64_t data);	/* raw attribute of handles; with len <= 8 @data is inline */
uint64_t inline_u32(uint32_t value);	/* such @data: the core takes its first bytes, on any CPU */
int peer_send(struct rig *g, uint32_t len);
int peer_recv(struct rig *g);

/* Waits for the asynchronous event @type; acknowledges and ignores others. */
bool event_came(struct ibv_context *ctx, enum ibv_event_type type, int ms);
enum ibv_qp_state state_of(struct ibv_qp *qp);
void drain_cq(struct ibv_cq *cq, int ms);
bool guards_whole(const struct region *r);
bool still_works(struct vt_dev *d, struct region *r);	/* a new pair transfers a message without an error */

void rings_cases(struct vt_dev *d, struct region *r);	/* hostile_rings.c */
void raw_cases(struct vt_dev *d, struct region *r);	/* hostile_raw.c */
void growth_cases(struct vt_dev *d);	/* hostile_growth.c */
void undone_creations(struct vt_dev *d);	/* hostile_abort.c */

#endif
