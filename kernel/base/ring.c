// SPDX-License-Identifier: GPL-2.0
/*
 * Shared rings: their layout, and every memory barrier of the kernel's half. The user's half is in
 * provider/ring.h; for kernel consumers it is at the end of this file. Does not interpret the slots.
 */
#include <linux/vmalloc.h>
#include "base/ring.h"

/* slots follow the control block; users rely on it for the second ring of a mapping */
#define SLOTS_OFFSET	sizeof(struct roan_ring_ctl)

/* ---- memory ---- */

static u32 plan_slots(const struct roan_ring_alloc_req *plan)
{
	return roundup_pow_of_two(plan->slots);
}

static u32 plan_slot_size(const struct roan_ring_alloc_req *plan)
{
	return ALIGN(plan->slot_size, 16);
}

/* Bytes of one ring, padded so that the control block of the next one begins on a cache line of its own. */
static size_t plan_bytes(const struct roan_ring_alloc_req *plan)
{
	return ALIGN(SLOTS_OFFSET + (size_t)plan_slots(plan) * plan_slot_size(plan), sizeof(struct roan_user_line));
}

static void ring_init(const struct roan_ring_alloc_req *plan, void *at)
{
	*plan->ring = (struct roan_ring) {
		.ctl = at,
		.slots = at + SLOTS_OFFSET,
		.mask = plan_slots(plan) - 1,
		.slot_size = plan_slot_size(plan),
	};
}

static void ring_fill_desc(const struct roan_ring_alloc_req *plan, const struct roan_mmap *map, size_t size)
{
	if (!plan->desc)
		return;
	*plan->desc = (struct roan_ring_desc) {
		.mmap_offset = rdma_user_mmap_get_offset(&map->entry),
		.mmap_size = size,
		.slots_offset = plan->ring->slots - map->buf,
		.slot_size = plan->ring->slot_size,
		.slot_count = plan->ring->mask + 1,
	};
}

int roan_rings_alloc(const struct roan_ring_alloc_req *plan, u32 n, struct ib_ucontext *uctx)
{
	struct roan_mmap *map = NULL;
	size_t size = 0;
	void *buf, *at;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!plan[i].slots || plan[i].slots > 1u << 24 || plan[i].slot_size > 1u << 16)
			return -EINVAL;
		size += plan_bytes(&plan[i]);
	}
	size = PAGE_ALIGN(size);
	if (size > U32_MAX)		/* roan_ring_desc.mmap_size is 32 bits wide */
		return -EINVAL;
	if (uctx) {
		map = roan_user_mem_alloc(size, uctx);
		if (IS_ERR(map))
			return PTR_ERR(map);
	}
	buf = map ? map->buf : vzalloc(size);
	if (!buf)
		return -ENOMEM;
	for (i = 0, at = buf; i < n; at += plan_bytes(&plan[i++])) {
		ring_init(&plan[i], at);
		plan[i].ring->shares_memory = i;
		if (map)
			ring_fill_desc(&plan[i], map, size);
	}
	plan[0].ring->map = map;
	return 0;
}

int roan_ring_alloc(struct roan_ring *ring, u32 slots, u32 slot_size, struct ib_ucontext *uctx,
		    struct roan_ring_desc *desc)
{
	const struct roan_ring_alloc_req plan = { .ring = ring, .slots = slots, .slot_size = slot_size, .desc = desc };

	return roan_rings_alloc(&plan, 1, uctx);
}

void roan_ring_free(struct roan_ring *ring)
{
	if (ring->map)
		rdma_user_mmap_entry_remove(&ring->map->entry);	/* the last reference calls roan_mmap_free() */
	else if (!ring->shares_memory)
		vfree(ring->ctl);
	memset(ring, 0, sizeof(*ring));
}

/* ---- rings the kernel consumes: SQ, RQ, SRQ ---- */

u32 roan_ring_pending(const struct roan_ring *ring)
{
	/* Pairs with the release in provider/ring.h ring_post(): the slots below the tail are written. */
	return smp_load_acquire(&ring->ctl->user.index) - ring->index;
}

void roan_ring_copy(const struct roan_ring *ring, u32 offset, void *to, u32 len)
{
	if (WARN_ON_ONCE(offset > ring->slot_size || len > ring->slot_size - offset))
		return;
	memcpy(to, roan_ring_slot(ring, ring->index) + offset, len);
	barrier();	/* the compiler must not read the slot again: only the copy is checked and used */
}

void roan_ring_publish(struct roan_ring *ring, u32 index)
{
	/*
	 * Pairs with the acquire in provider/ring.h ring_head(): the kernel has read the slots below @index, and
	 * cqe_until covers them.
	 */
	smp_store_release(&ring->ctl->kernel.index, index);
}

void roan_ring_discard(struct roan_ring *ring)
{
	ring->index = READ_ONCE(ring->ctl->user.index);
	roan_ring_publish(ring, ring->index);
}

bool roan_ring_park(struct roan_ring *ring, u32 flag)
{
	WRITE_ONCE(ring->ctl->kernel.flags, flag);
	/*
	 * Pairs with the full barrier in provider/ring.h ring_flags(): either the poster sees the flag, or this read
	 * sees the tail that it stored before.
	 */
	smp_mb();
	if (READ_ONCE(ring->ctl->user.index) == ring->index)
		return false;
	roan_ring_unpark(ring);
	return true;
}

bool roan_ring_park_ack_pending(struct roan_ring *ring, u32 worth)
{
	WRITE_ONCE(ring->ctl->kernel.notify_at, ring->index + worth);
	return roan_ring_park(ring, ROAN_RING_ACK_PENDING);
}

void roan_ring_unpark(struct roan_ring *ring)
{
	/* No barrier needed: a poster that still sees the flag only rings once more than necessary. */
	if (READ_ONCE(ring->ctl->kernel.flags))
		WRITE_ONCE(ring->ctl->kernel.flags, 0);
}

bool roan_ring_pop_hint(struct roan_ring *ring, u32 *qpn)
{
	u32 pending = roan_ring_pending(ring);

	if (unlikely(roan_ring_corrupt(ring, pending))) {
		roan_ring_discard(ring);
		return false;
	}
	if (!pending)
		return false;
	roan_ring_copy(ring, offsetof(struct roan_db_hint, qpn), qpn, sizeof(*qpn));
	roan_ring_consume(ring);
	roan_ring_publish(ring, ring->index);
	/*
	 * Pairs with the full barrier in provider/ring.h ring_flags() of the send queue: either the poster sees that
	 * its hint was taken and adds another one, or the kernel sees what it posted.
	 */
	smp_mb();
	return true;
}

int roan_ring_move_posted(struct roan_ring *ring, struct roan_ring *fresh, struct roan_ring_resize *move, u32 most)
{
	u32 left;

	if (!move->begun)
		*move = (struct roan_ring_resize) { .begun = true, .at = ring->index, .tail = ring->index +
						    roan_ring_pending(ring) };
	left = move->tail - ring->index;
	if (left > ring->mask + 1 || left > fresh->mask + 1)
		return -EINVAL;
	if (move->tail - move->at > left)
		/* fetching has overtaken the copy: all slots moved so far are consumed */
		move->at = ring->index;
	for (; move->at != move->tail; move->at++, most--) {
		if (!most)
			return -EAGAIN;
		memcpy(roan_ring_slot(fresh, move->at), roan_ring_slot(ring, move->at), ring->slot_size);
	}
	fresh->index = ring->index;
	roan_ring_publish(fresh, fresh->index);
	WRITE_ONCE(fresh->ctl->user.index, move->tail);
	swap(*ring, *fresh);
	return 0;
}

/* ---- the ring the kernel produces: CQ ---- */

struct roan_cqe *roan_ring_cqe_slot(struct roan_ring *ring)
{
	/*
	 * Pairs with the release in provider/ring.h ring_polled(): the user has read the slots below its head. If the
	 * user's head is not within one ring length behind the tail, the ring counts as full: only this user loses
	 * completions.
	 */
	u32 used = ring->index - smp_load_acquire(&ring->ctl->user.index);

	return used <= ring->mask ? roan_ring_slot(ring, ring->index) : NULL;
}

void roan_ring_cqe_done(struct roan_ring *ring)
{
	ring->index++;
	/* Pairs with the acquire in provider/ring.h ring_cqe(): the entry is complete. */
	smp_store_release(&ring->ctl->kernel.index, ring->index);
}

void roan_ring_flag_overflow(struct roan_ring *ring)
{
	WRITE_ONCE(ring->ctl->kernel.flags, ROAN_RING_OVERFLOW);
}

int roan_ring_move_cqes(struct roan_ring *ring, struct roan_ring *fresh, u32 *head, u32 most)
{
	u32 n;

	if (!fresh->index)
		*head = READ_ONCE(ring->ctl->user.index);
	n = ring->index - *head;
	if (n > ring->mask + 1 || n > fresh->mask + 1 || n < fresh->index)
		return -EINVAL;
	for (; fresh->index != n; most--) {
		if (!most)
			return -EAGAIN;
		memcpy(roan_ring_slot(fresh, fresh->index), roan_ring_slot(ring, *head + fresh->index),
		       sizeof(struct roan_cqe));
		roan_ring_cqe_done(fresh);
	}
	WRITE_ONCE(fresh->ctl->user.arm_next, READ_ONCE(ring->ctl->user.arm_next));
	WRITE_ONCE(fresh->ctl->user.arm_solicited, READ_ONCE(ring->ctl->user.arm_solicited));
	swap(*ring, *fresh);
	return 0;
}

void roan_ring_armed(const struct roan_ring *ring, u32 *arm_next, u32 *arm_solicited)
{
	/*
	 * Pairs with the full barrier in provider/ring.h ring_arm(): either the kernel sees that the CQ is armed, or
	 * the program sees the entry when it polls once more after arming, as verbs require.
	 */
	smp_mb();
	*arm_next = READ_ONCE(ring->ctl->user.arm_next);
	*arm_solicited = READ_ONCE(ring->ctl->user.arm_solicited);
}

/* ---- the user's half, for kernel consumers ---- */

void *roan_ring_post_slot(struct roan_ring *ring, u32 ahead)
{
	u32 tail = ring->ctl->user.index + ahead;	/* trusted: a kernel consumer's ring is not mapped */

	/* Pairs with the release in roan_ring_publish(). */
	if (tail - smp_load_acquire(&ring->ctl->kernel.index) > ring->mask)
		return NULL;
	return roan_ring_slot(ring, tail);
}

void roan_ring_post(struct roan_ring *ring, u32 n)
{
	/* Pairs with the acquire in roan_ring_pending(). */
	smp_store_release(&ring->ctl->user.index, ring->ctl->user.index + n);
}

bool roan_ring_poll(struct roan_ring *ring, struct roan_cqe *cqe)
{
	u32 head = ring->ctl->user.index;

	if (roan_ring_empty(ring))
		return false;
	memcpy(cqe, roan_ring_slot(ring, head), sizeof(*cqe));
	/* Pairs with the acquire in roan_ring_cqe_slot(). */
	smp_store_release(&ring->ctl->user.index, head + 1);
	return true;
}

/* The entries to keep move up to the tail, and the head follows. The kernel may append entries meanwhile. */
void roan_ring_forget_cqes(struct roan_ring *ring, u64 qp_handle)
{
	/* Pairs with the release in roan_ring_cqe_done(). */
	u32 to = smp_load_acquire(&ring->ctl->kernel.index);
	u32 head = ring->ctl->user.index, from = to;

	while (from != head) {
		const struct roan_cqe *cqe = roan_ring_slot(ring, --from);

		if (cqe->qp_handle == qp_handle)
			continue;
		if (--to != from)
			memcpy(roan_ring_slot(ring, to), cqe, sizeof(*cqe));
	}
	/* Pairs with the acquire in roan_ring_cqe_slot(). */
	smp_store_release(&ring->ctl->user.index, to);
}

void roan_ring_arm(struct roan_ring *ring, bool solicited_only)
{
	u32 *word = solicited_only ? &ring->ctl->user.arm_solicited : &ring->ctl->user.arm_next;

	WRITE_ONCE(*word, *word + 1);
	smp_mb();	/* Pairs with roan_ring_armed(). */
}

bool roan_ring_idle(const struct roan_ring *ring)
{
	smp_mb();	/* Pairs with roan_ring_park(), as ring_flags() in provider/ring.h does. */
	return READ_ONCE(ring->ctl->kernel.flags) & ROAN_RING_NEED_DOORBELL;
}

bool roan_ring_empty(const struct roan_ring *ring)
{
	/* Pairs with the release in roan_ring_cqe_done(). */
	return smp_load_acquire(&ring->ctl->kernel.index) == READ_ONCE(ring->ctl->user.index);
}
