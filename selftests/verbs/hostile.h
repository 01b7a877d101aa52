/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program that does not keep to the rules: it writes the rings of its own queues as it likes. Here is what the parts
 * of the test share. Objects are made by libibverbs and the provider; the rings are found in the process's mappings,
 * and their slots by the wr_id of a request posted the ordinary way, so that no layout is assumed that roan-abi.h does
 * not promise.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <rdma/roan-abi.h>
#include "verbs_test.h"

#define SLOTS		16	/* asked for; a power of two, so the ring has as many */
#define MAX_SGE		4
#define MAX_INLINE	64
#define MAX_MAPS	64	/* of rings, of a process */
#define AREA		4096	/* bytes of the region, between two guards of the same size */

struct hring {
	struct roan_ring_ctl *ctl;
	uint8_t *slots;
	size_t slot_size;
	uint8_t *map;		/* with another ring of the QP, perhaps */
	size_t map_size;
};

struct region {
	uint8_t *mem;		/* guard, area, guard */
	struct ibv_mr *mr;	/* the area, all rights */
	struct ibv_mr *local;	/* the area, no rights but reading */
	struct ibv_mr *foreign;	/* the area, in another protection domain */
	struct ibv_pd *other_pd;
	uint32_t stale;		/* key of a region that is gone */
};

/* A QP with its rings laid open, and an honest peer in the same process. */
struct rig {
	struct vt_dev *d;
	struct region *r;
	enum ibv_qp_type type;
	struct ibv_cq *cq, *peer_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *peer;
	struct ibv_ah *ah;
	struct hring sq, rq, cqr;	/* rq: of the SRQ if there is one */
};

void rig_up(struct rig *g, struct vt_dev *d, struct region *r, enum ibv_qp_type type, bool srq);
void rig_down(struct rig *g);
int try_reconnect(struct rig *g);	/* RESET -> RTS on both sides, completions thrown away; errno */
void rig_reconnect(struct rig *g);	/* the same where it must succeed */

/* The control blocks at the beginning of this process's mappings of rings: how many. */
int ring_ctls(struct roan_ring_ctl *ctl[MAX_MAPS]);
/* The slot that the next sq_post() or rq_post() hands over, n slots ahead; zeroed. */
void *ring_slot_at(struct hring *ring, uint32_t n);
void ring_advance(struct hring *ring, uint32_t n);
void post_write(struct rig *g, uint64_t wr_id);	/* an empty WRITE, by hand; no bell */
int doorbell(struct ibv_qp *qp);	/* errno */
int doorbell_of(int fd, uint32_t handle);
int doorbell_bare(int fd);		/* for no QP: only the context's notices */
int doorbell_as(int fd, uint16_t len, uint64_t data);	/* whatever the call says of its handles; up to 8 bytes are @data itself */
int peer_send(struct rig *g, uint32_t len);
int peer_recv(struct rig *g);

/* Waits for the asynchronous event @type; others are acknowledged and passed over. */
bool event_came(struct ibv_context *ctx, enum ibv_event_type type, int ms);
enum ibv_qp_state state_of(struct ibv_qp *qp);
void drain_cq(struct ibv_cq *cq, int ms);
bool guards_whole(const struct region *r);
bool still_works(struct vt_dev *d, struct region *r);	/* a new pair carries a message, right to the byte */

void rings_cases(struct vt_dev *d, struct region *r);	/* hostile_rings.c */
void raw_cases(struct vt_dev *d, struct region *r);	/* hostile_raw.c */

#endif
