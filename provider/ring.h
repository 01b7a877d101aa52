/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The user's half of a shared ring, and every memory barrier of the provider; the kernel's half is kernel/base/ring.c. What
 * a slot means is not known here, and nothing here locks: the owner of the queue does.
 */
#ifndef ROAN_PROVIDER_RING_H
#define ROAN_PROVIDER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/roan-abi.h>

struct ring {
	struct roan_ring_ctl *ctl;	/* NULL: there is no such ring */
	uint8_t *slots;
	size_t map_size;		/* bytes from ctl on; 0: the mapping is another ring's, which unmaps it */
	uint32_t mask;			/* slot_count - 1 */
	uint32_t slot_size;		/* bytes */
	uint32_t index;			/* ours: tail of what we post, head of what we poll. Under the queue's lock */
};

int ring_map(struct ring *ring, int fd, const struct roan_ring_desc *desc);	/* 0 or a positive errno */
int ring_within(struct ring *ring, const struct ring *first, const struct roan_ring_desc *desc);	/* its mapping */
void ring_unmap(struct ring *ring);

static inline void *ring_slot(const struct ring *ring, uint32_t index)
{
	return ring->slots + (size_t)(index & ring->mask) * ring->slot_size;
}

/* ---- rings we fill ---- */

/* May slot @tail be written, if the queue holds at most @limit requests? */
static inline bool ring_has_space(const struct ring *ring, uint32_t tail, uint32_t limit)
{
	/* Pairs with the release in kernel/base/ring.c roan_ring_publish(): the kernel is done with the slots below. */
	return tail - __atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_ACQUIRE) < limit;
}

/* Hands the kernel all slots below @tail. */
static inline void ring_post(struct ring *ring, uint32_t tail)
{
	ring->index = tail;
	/* Pairs with the acquire in kernel/base/ring.c roan_ring_pending(): the slots below the tail are written. */
	__atomic_store_n(&ring->ctl->user.index, tail, __ATOMIC_RELEASE);
}

/* enum roan_ring_flags. None: the kernel is at work on the ring. */
static inline uint32_t ring_flags(const struct ring *ring)
{
	/*
	 * Pairs with the full barrier in kernel/base/ring.c roan_ring_park(): either we see the flag, or the kernel
	 * sees the tail stored above.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->ctl->kernel.flags, __ATOMIC_RELAXED);
}

/* False: the kernel is at work on the ring, or is going to be. */
static inline bool ring_idle(const struct ring *ring)
{
	return ring_flags(ring) & ROAN_RING_NEED_DOORBELL;
}

/* Where whoever posts last left it; for others than him. */
static inline uint32_t ring_tail(const struct ring *ring)
{
	return __atomic_load_n(&ring->ctl->user.index, __ATOMIC_RELAXED);
}

/* Is slot @index posted, and not taken by the kernel? */
static inline bool ring_has_index(const struct ring *ring, uint32_t index)
{
	uint32_t head = __atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_RELAXED);

	return index - head < ring_tail(ring) - head;
}

/* Has the kernel taken all that was posted? */
static inline bool ring_drained(const struct ring *ring)
{
	return __atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_RELAXED) == ring_tail(ring);
}

/* ---- the ring we empty ---- */

/* Entry @index, or NULL if it is not written yet. */
static inline const struct roan_cqe *ring_cqe(const struct ring *ring, uint32_t index)
{
	/* Pairs with the release in kernel/base/ring.c roan_ring_cqe_done(): the entry is whole. */
	if (__atomic_load_n(&ring->ctl->kernel.index, __ATOMIC_ACQUIRE) == index)
		return NULL;
	return ring_slot(ring, index);
}

/* Gives the kernel back all entries below @head. */
static inline void ring_polled(struct ring *ring, uint32_t head)
{
	ring->index = head;
	/* Pairs with the acquire in kernel/base/ring.c roan_ring_cqe_slot(): we read the slots below the head. */
	__atomic_store_n(&ring->ctl->user.index, head, __ATOMIC_RELEASE);
}

static inline void ring_arm(struct ring *ring, bool solicited_only)
{
	uint32_t *word = solicited_only ? &ring->ctl->user.arm_solicited : &ring->ctl->user.arm_next;

	__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
	/*
	 * Pairs with the full barrier in kernel/base/ring.c roan_ring_armed(): either the kernel sees that the queue is armed,
	 * or the caller's next poll sees the entry.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif /* ROAN_PROVIDER_RING_H */
