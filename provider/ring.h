/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The user side of a shared ring, with every memory barrier of the provider. The kernel side is kernel/base/ring.c.
 * This file does not know what a slot holds, and takes no lock: the caller holds the queue's lock.
 */
#ifndef ROAN_PROVIDER_RING_H
#define ROAN_PROVIDER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/roan-abi.h>

struct ibv_context;
struct roan_mapping;

struct ring {
	struct roan_ring_ctl *ctl;	/* NULL: no such ring */
	uint8_t *slots;
	struct roan_mapping *map;	/* starts at @ctl; NULL: the ring that owns the mapping unmaps it */
	uint32_t mask;			/* slot_count - 1 */
	uint32_t slot_size;		/* bytes */
	uint32_t index;			/* SQ, RQ, SRQ, hints: tail; CQ: head. Under the queue's lock */
};

/* 0 or a positive errno */
int ring_map(struct ring *ring, struct ibv_context *ctx, const struct roan_ring_desc *desc);

/*
 * A resize. The kernel moves the queue to the new ring before the program can map it, so the address space is reserved
 * before that: the mapping can then fail only for lack of kernel memory. ring_reserve(): enough for @slots entries like
 * those of @ring; 0 or a positive errno. Then either ring_replace(), which unmaps the old ring, or ring_release(). If
 * ring_replace() fails @ring is the old ring, which the kernel no longer uses.
 */
struct ring_space {
	void *at;
	size_t size;
};

int ring_reserve(struct ring_space *space, const struct ring *ring, uint32_t slots);
int ring_replace(struct ring *ring, int fd, const struct roan_ring_desc *desc, const struct ring_space *space);
void ring_release(const struct ring_space *space);
/* @ring lies in the mapping of @first; 0 or EPROTO */
int ring_within(struct ring *ring, const struct ring *first, const struct roan_ring_desc *desc);
void ring_unmap(struct ring *ring);

static inline void *ring_slot(const struct ring *ring, uint32_t index)
{
	return ring->slots + (size_t)(index & ring->mask) * ring->slot_size;
}

/* ---- rings that the program fills: SQ, RQ, SRQ, doorbell hints ---- */

/* The kernel no longer reads the slots below the returned index. */
static inline uint32_t ring_head(const struct ring *ring)
{
	/* Pairs with the release in kernel/base/ring.c roan_ring_publish(); cqe_until covers these slots, too. */
	return __atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_ACQUIRE);
}

/*
 * The slots below the returned index may be written. @polled: from ring_set_polled(), 0 before that. A slot that the
 * kernel has read stays in use until its CQE is polled, so that no more CQEs come than the program has room for.
 */
static inline uint32_t ring_free_until(const struct ring *ring, const uint32_t *polled)
{
	uint32_t head = ring_head(ring);
	uint32_t cqe_until = __atomic_load_n(&ring->ctl->kernel.cqe_until, __ATOMIC_RELAXED);
	/* Pairs with the release in ring_set_polled(): another thread may have polled the CQE. */
	uint32_t seen = __atomic_load_n(polled, __ATOMIC_ACQUIRE);

	return seen == cqe_until ? head : seen;
}

/* The CQE of the slot below @until was read. Under the lock of the CQ, not of the ring. */
static inline void ring_set_polled(uint32_t *polled, uint32_t until)
{
	/* Pairs with the acquire in ring_free_until(): the kernel read the slot before it wrote the CQE. */
	__atomic_store_n(polled, until, __ATOMIC_RELEASE);
}

/* Passes all slots below @tail to the kernel. */
static inline void ring_post(struct ring *ring, uint32_t tail)
{
	ring->index = tail;
	/* Pairs with the acquire in kernel/base/ring.c roan_ring_pending(): the slots below the tail are written. */
	__atomic_store_n(&ring->ctl->user.index, tail, __ATOMIC_RELEASE);
}

/* enum roan_ring_flags, read after a full barrier. 0: the kernel will read the ring without a doorbell. */
static inline uint32_t ring_flags(const struct ring *ring)
{
	/*
	 * Pairs with the full barrier in kernel/base/ring.c roan_ring_park(): either this load sees the flag, or the
	 * kernel sees the tail that ring_post() stored.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->ctl->kernel.flags, __ATOMIC_RELAXED);
}

/* True: the kernel does not read the ring until a doorbell. */
static inline bool ring_idle(const struct ring *ring)
{
	return ring_flags(ring) & ROAN_RING_NEED_DOORBELL;
}

/* The posted tail, for a reader that is not the producer. */
static inline uint32_t ring_tail(const struct ring *ring)
{
	return __atomic_load_n(&ring->ctl->user.index, __ATOMIC_RELAXED);
}

/* True if slot @index is posted and the kernel has not consumed it. */
static inline bool ring_has_index(const struct ring *ring, uint32_t index)
{
	uint32_t head = __atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_RELAXED);

	return index - head < ring_tail(ring) - head;
}

/* True if the kernel has consumed every posted slot. */
static inline bool ring_drained(const struct ring *ring)
{
	return __atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_RELAXED) == ring_tail(ring);
}

/* ---- the ring that the program empties: CQ ---- */

/* Entry @index, or NULL if it is not written yet. */
static inline const struct roan_cqe *ring_cqe(const struct ring *ring, uint32_t index)
{
	/* Pairs with the release in kernel/base/ring.c roan_ring_cqe_done(): the entry is completely written. */
	if (__atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_ACQUIRE) == index)
		return NULL;
	return ring_slot(ring, index);
}

/* The index of the next entry to poll, for a caller that does not hold the lock of polling. */
static inline uint32_t ring_cq_head(const struct ring *ring)
{
	/* Pairs with the release in ring_polled(): the kernel's index that ring_cqe() then reads is not below this one. */
	return __atomic_load_n(&ring->ctl->user.index, __ATOMIC_ACQUIRE);
}

/* Returns all entries below @head to the kernel. */
static inline void ring_polled(struct ring *ring, uint32_t head)
{
	ring->index = head;
	/*
	 * Pairs with the acquire in kernel/base/ring.c roan_ring_cqe_slot(): the slots below the head have been read. And
	 * with that in ring_cq_head().
	 */
	__atomic_store_n(&ring->ctl->user.index, head, __ATOMIC_RELEASE);
}

static inline void ring_arm(struct ring *ring, bool solicited_only)
{
	uint32_t *word = solicited_only ? &ring->ctl->user.arm_solicited : &ring->ctl->user.arm_next;

	__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
	/*
	 * Pairs with the full barrier in kernel/base/ring.c roan_ring_armed(): either the kernel sees that the queue is
	 * armed, or the caller's next poll sees the entry. And with the acquire in poll.c cq_polled().
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif /* ROAN_PROVIDER_RING_H */
