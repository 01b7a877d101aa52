/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared rings, the kernel's half. Every barrier on ring memory is here and names its pair in provider/ring.h. Our own
 * index lives in struct roan_ring, which is not mapped; what the ring's kernel line shows is a copy for the user.
 */
#ifndef ROAN_RING_H
#define ROAN_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/roan-abi.h>

/* Memory that a user may map: a ring, or device memory. The buffer dies with the entry's last reference. */
struct roan_mmap {
	struct rdma_user_mmap_entry entry;
	void *buf;
};

struct roan_ring {
	struct roan_ring_ctl *ctl;
	void *slots;
	struct roan_mmap *map;	/* NULL: a kernel consumer's ring, vfree()d */
	bool shares_memory;	/* in another ring's memory, which goes with that one */
	u32 index;		/* ours: head of SQ, RQ, SRQ; tail of CQ. Under the queue's lock */
	u32 mask;		/* slots - 1 */
	u32 slot_size;
};

/* A ring to be made. */
struct roan_ring_alloc_req {
	struct roan_ring *ring;
	u32 slots;			/* will be rounded up to a power of two */
	u32 slot_size;			/* bytes; up to a multiple of 16 */
	struct roan_ring_desc *desc;	/* filled for the user; NULL: nobody asks */
};

/*
 * Process context. Makes @n rings in one piece of memory, which is the first one's. @uctx NULL: for a kernel consumer.
 * -ENOMEM, or -EINVAL when the size overflows: then none is made.
 */
int roan_rings_alloc(const struct roan_ring_alloc_req *plan, u32 n, struct ib_ucontext *uctx);
int roan_ring_alloc(struct roan_ring *ring, u32 slots, u32 slot_size, struct ib_ucontext *uctx,
		    struct roan_ring_desc *desc);
void roan_ring_free(struct roan_ring *ring);	/* fine on a zeroed ring */

/* As vmalloc_user(), but on the account of the caller's control group. @size: whole pages. vfree(). */
void *roan_alloc_mapped(size_t size);
/* @buf is VM_USERMAP and becomes the entry's; NULL leaves it the caller's. Ends with rdma_user_mmap_entry_remove(). */
struct roan_mmap *roan_map_for_user(void *buf, size_t size, struct ib_ucontext *uctx);

/* ops.mmap and ops.mmap_free */
int roan_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void roan_mmap_free(struct rdma_user_mmap_entry *entry);

/* ---- rings we consume: SQ, RQ, SRQ. Caller holds the queue's lock. Any context. ---- */

/* Slots posted and not fetched. More than there are slots: the user scribbled over its index. */
u32 roan_ring_pending(const struct roan_ring *ring);
/* The tail as the user has it now, without the lock, and for comparing only: the slots below may not be looked at yet. */
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

/* Copy @len bytes at @offset of the slot at our index. Each byte of a slot is to be copied at most once. */
void roan_ring_copy(const struct roan_ring *ring, u32 offset, void *to, u32 len);
/* The same of its first bytes, for a length known to the compiler, and no longer than any slot of the ring. */
static __always_inline void roan_ring_copy_head(const struct roan_ring *ring, void *to, size_t len)
{
	memcpy(to, roan_ring_slot(ring, ring->index), len);
	barrier();	/* from here on only the copy is looked at */
}

static inline void roan_ring_consume(struct roan_ring *ring)
{
	ring->index++;
}

void roan_ring_publish(struct roan_ring *ring, u32 index);	/* let the user reuse slots below @index */
void roan_ring_discard(struct roan_ring *ring);			/* forget what is posted (QP to RESET) */

struct roan_ring_resize {
	bool begun;		/* false at first */
	u32 at, tail;
};

/*
 * What is posted and not fetched goes into @fresh, whose slots are as large, under the same indices; when all has, the two
 * change places. At @most so many a call; -EAGAIN: call again, with the same *@move. Meanwhile more may be fetched, but what
 * is posted is lost. -EINVAL: it does not fit, or the tail makes no sense.
 */
int roan_ring_move_posted(struct roan_ring *ring, struct roan_ring *fresh, struct roan_ring_resize *move, u32 most);

/*
 * Whether posters must ring. leave(): set @flag (enum roan_ring_flags), full barrier, and say whether something was posted
 * meanwhile (then clear it and look again). awake(): clear it before looking.
 */
bool roan_ring_park(struct roan_ring *ring, u32 flag);
static inline bool roan_ring_enable_doorbell(struct roan_ring *ring)
{
	return roan_ring_park(ring, ROAN_RING_NEED_DOORBELL);
}

/* leave() because an answer is due; who has posted @worth since may ask for more to be sent before it comes. */
bool roan_ring_park_ack_pending(struct roan_ring *ring, u32 worth);
void roan_ring_unpark(struct roan_ring *ring);

/* Takes the next notice of a context: a QPN, anybody's or nobody's. False: none. A tail that cannot be is forgotten. */
bool roan_ring_pop_hint(struct roan_ring *ring, u32 *qpn);

/* ---- the ring we produce: CQ. Caller holds cq->lock. ---- */

struct roan_cqe *roan_ring_cqe_slot(struct roan_ring *ring);	/* NULL: full */
void roan_ring_cqe_done(struct roan_ring *ring);		/* advance and release it */
void roan_ring_flag_overflow(struct roan_ring *ring);
/*
 * What is not polled yet moves into @fresh, and when all of it has, the two change places. At @most so many entries a
 * call; -EAGAIN: call again, with the *@head that the first call found. -EINVAL: it does not fit, or the head makes no sense.
 * The user knows where @fresh can be mapped: no word of its line is believed.
 */
int roan_ring_move_cqes(struct roan_ring *ring, struct roan_ring *fresh, u32 *head, u32 most);

/* Full barrier, then what the user asked for since. Pairs with the arming store. */
void roan_ring_armed(const struct roan_ring *ring, u32 *arm_next, u32 *arm_solicited);

/* ---- the user's half, for kernel consumers (ib_post_send(), ib_poll_cq() ...) ---- */

void *roan_ring_post_slot(struct roan_ring *ring, u32 ahead);	/* @ahead: slots filled and not yet posted; NULL: full */
void roan_ring_post(struct roan_ring *ring, u32 n);
bool roan_ring_poll(struct roan_ring *ring, struct roan_cqe *cqe);
void roan_ring_arm(struct roan_ring *ring, bool solicited_only);
bool roan_ring_empty(const struct roan_ring *ring);
bool roan_ring_idle(const struct roan_ring *ring);	/* after roan_ring_post(): must the kernel's half be told? */

#endif /* ROAN_RING_H */
