/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared rings, the kernel's half. Every barrier on ring memory is in ring.c and names its pair in provider/ring.h.
 * The kernel uses the index in struct roan_ring, which is not mapped; the index in the ring's kernel line is a copy
 * for the user.
 */
#ifndef ROAN_RING_H
#define ROAN_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/roan-abi.h>
#include "base/user_mem.h"

struct roan_ring {
	struct roan_ring_ctl *ctl;
	void *slots;
	struct roan_mmap *map;	/* NULL: a kernel consumer's ring, vfree()d */
	bool shares_memory;	/* in the memory of another ring, which owns it */
	u32 index;		/* kernel's index: head of SQ, RQ, SRQ; tail of CQ. Under the queue's lock */
	u32 mask;		/* slots - 1 */
	u32 slot_size;
};

/* Request to allocate one ring. */
struct roan_ring_alloc_req {
	struct roan_ring *ring;
	u32 slots;			/* rounded up to a power of two */
	u32 slot_size;			/* bytes; rounded up to a multiple of 16 */
	struct roan_ring_desc *desc;	/* filled in for the user; NULL: not needed */
};

/*
 * Process context. Allocates @n rings in one piece of memory, which the first ring owns. @uctx NULL: for a kernel
 * consumer. -EINVAL if a size is out of range, or an error of roan_user_mem_alloc(); then no ring is allocated.
 */
int roan_rings_alloc(const struct roan_ring_alloc_req *plan, u32 n, struct ib_ucontext *uctx);
int roan_ring_alloc(struct roan_ring *ring, u32 slots, u32 slot_size, struct ib_ucontext *uctx,
		    struct roan_ring_desc *desc);
void roan_ring_free(struct roan_ring *ring);	/* a zeroed ring is accepted */

/* ---- rings the kernel consumes: SQ, RQ, SRQ. Caller holds the queue's lock. Any context. ---- */

/* Slots posted and not fetched. More than the ring has if the user overwrote its index: see roan_ring_corrupt(). */
u32 roan_ring_pending(const struct roan_ring *ring);
/* The user's tail, read without the queue's lock and without ordering: for comparison only, not for reading slots. */
static inline u32 roan_ring_tail(const struct roan_ring *ring)
{
	return READ_ONCE(ring->ctl->user.index);
}

static inline bool roan_ring_corrupt(const struct roan_ring *ring, u32 pending)
{
	return pending > ring->mask + 1;
}

static inline void *roan_ring_slot(const struct roan_ring *ring, u32 index)
{
	return ring->slots + (size_t)(index & ring->mask) * ring->slot_size;
}

/*
 * Copies @len bytes at @offset of the slot at the kernel's index. Copy each byte of a slot at most once: it may
 * change.
 */
void roan_ring_copy(const struct roan_ring *ring, u32 offset, void *to, u32 len);
/* The same for the first @len bytes, @len constant and not longer than a slot. */
static __always_inline void roan_ring_copy_head(const struct roan_ring *ring, void *to, size_t len)
{
	memcpy(to, roan_ring_slot(ring, ring->index), len);
	barrier();	/* the compiler must not read the slot again: only the copy is checked and used */
}

static inline void roan_ring_consume(struct roan_ring *ring)
{
	ring->index++;
}

/* The slot below @until gets a CQE. Before roan_ring_publish() of that slot. */
static inline void roan_ring_set_cqe_until(struct roan_ring *ring, u32 until)
{
	WRITE_ONCE(ring->ctl->kernel.cqe_until, until);
}

void roan_ring_publish(struct roan_ring *ring, u32 index);	/* the slots below @index have been read */
void roan_ring_discard(struct roan_ring *ring);			/* drop all posted slots (QP to RESET) */

struct roan_ring_resize {
	bool begun;		/* false at first */
	u32 at, tail;
};

/*
 * Moves the slots posted and not fetched to @fresh, under the same indices; both rings have the same slot size. When
 * all are moved it swaps the two rings. Moves at most @most slots per call; -EAGAIN: call again with the same *@move.
 * Between calls slots may be fetched; slots posted then are lost. -EINVAL: they do not fit, or the user's tail is
 * impossible.
 */
int roan_ring_move_posted(struct roan_ring *ring, struct roan_ring *fresh, struct roan_ring_resize *move, u32 most);

/*
 * Doorbell protocol. roan_ring_park() sets @flag (enum roan_ring_flags), executes a full barrier, and returns true if
 * slots were posted meanwhile; then the flag is clear again and the caller must look again. roan_ring_unpark() clears
 * the flag; call it before fetching.
 */
bool roan_ring_park(struct roan_ring *ring, u32 flag);
static inline bool roan_ring_enable_doorbell(struct roan_ring *ring)
{
	return roan_ring_park(ring, ROAN_RING_NEED_DOORBELL);
}

/*
 * Parks the ring because an ACK is due. When @worth more slots are posted the poster adds a doorbell hint, so that
 * more is sent before the ACK comes.
 */
bool roan_ring_park_ack_pending(struct roan_ring *ring, u32 worth);
void roan_ring_unpark(struct roan_ring *ring);

/*
 * Takes the next doorbell hint of a context. *@qpn is unchecked: any QP's number or none. False: no hint. If the tail
 * is impossible, all hints are dropped.
 */
bool roan_ring_pop_hint(struct roan_ring *ring, u32 *qpn);

/* ---- the ring the kernel produces: CQ. Caller holds cq->lock. ---- */

struct roan_cqe *roan_ring_cqe_slot(struct roan_ring *ring);	/* NULL: full */
void roan_ring_cqe_done(struct roan_ring *ring);		/* advance the tail (release) */
void roan_ring_flag_overflow(struct roan_ring *ring);
/*
 * Moves the entries not polled yet to @fresh; when all are moved it swaps the two rings. Moves at most @most entries
 * per call; -EAGAIN: call again with the same *@head, which the first call sets. -EINVAL: they do not fit, or the
 * user's head is impossible. The user may have mapped @fresh already, so nothing in its user line is trusted.
 */
int roan_ring_move_cqes(struct roan_ring *ring, struct roan_ring *fresh, u32 *head, u32 most);

/* Full barrier, then reads the user's arm counters. Pairs with the store that arms the CQ. */
void roan_ring_armed(const struct roan_ring *ring, u32 *arm_next, u32 *arm_solicited);

/* ---- the user's half, for kernel consumers (ib_post_send(), ib_poll_cq() ...) ---- */

void *roan_ring_post_slot(struct roan_ring *ring, u32 ahead);	/* @ahead: slots filled but not posted; NULL: full */
void roan_ring_post(struct roan_ring *ring, u32 n);
bool roan_ring_poll(struct roan_ring *ring, struct roan_cqe *cqe);
void roan_ring_forget_cqes(struct roan_ring *ring, u64 qp_handle);	/* removes the unpolled entries of this QP */
void roan_ring_arm(struct roan_ring *ring, bool solicited_only);
bool roan_ring_empty(const struct roan_ring *ring);
bool roan_ring_idle(const struct roan_ring *ring);	/* after roan_ring_post(): true if a doorbell is needed */

#endif /* ROAN_RING_H */
