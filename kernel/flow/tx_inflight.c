// SPDX-License-Identifier: GPL-2.0
/*
 * Back-pressure of our own host's queues: the shell's half. An skb's destructor runs when the adapter has sent it, when
 * software cuts it in front of the adapter, when it is dropped, or when it comes into another namespace's IP stack; some
 * drivers and disciplines (loopback, netem) call it at once. All that is given to a queue of this host and can wait there is
 * counted, no matter which queue it is. Where there is none, as above a veth, nothing is: that is the peer's time, not ours.
 *
 * The destructor may run anywhere, interrupts off, under locks of others and of ours, when the QP is long gone. So all it
 * touches is the ref: one atomic operation tells it what is left, and whether it was the last. ACKs and CNPs are not counted:
 * they are small, and nobody holds them back.
 */
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/wait.h>
#include <net/sch_generic.h>
#include "base/base.h"
#include "flow/flow.h"

/* roan_below.size: the send queue's in the low half, the responder's above; ALIVE while there is a QP. */
#define SIDE_SHIFT	32
#define SIDE_MASK	0x3fffffff
#define ALIVE		BIT_ULL(62)

/* The destructor's argument: the ref's address, and in the bits that are zero there: */
#define ARG_SIDE	BIT(6)
#define ARG_SIZE	(BIT(6) - 1)	/* KiB, less one */
static_assert(sizeof(struct roan_qp_ref) == ROAN_BELOW_ALIGN);	/* a power of two, by which kmalloc() aligns */

static atomic_t refs;			/* that are not freed */
static DECLARE_WAIT_QUEUE_HEAD(all_gone);

static u32 part(u64 size, u8 side)
{
	return size >> (side * SIDE_SHIFT) & SIDE_MASK;
}

static struct roan_depth *roan_depth_of(struct roan_qp *qp, u8 side)
{
	return side == ROAN_SIDE_SQ ? &qp->sq.depth : &qp->rq.depth;
}

static void free_ref(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct roan_qp_ref, rcu));
	if (atomic_dec_and_test(&refs))
		wake_up_all(&all_gone);
}

static void call(struct roan_qp_ref *ref, u8 side)
{
	struct roan_qp *qp = roan_qp_ref_take(ref);

	if (!qp)
		return;
	roan_sides_later(qp, BIT(side));
	roan_qp_put(qp);
}

/* Any context. From the subtraction on only the read section keeps the ref. */
static void has_left(struct sk_buff *skb)
{
	unsigned long arg = (unsigned long)skb_shinfo(skb)->destructor_arg;
	struct roan_qp_ref *ref = (struct roan_qp_ref *)(arg & ~(ROAN_BELOW_ALIGN - 1ul));
	struct roan_below *below = &ref->below;
	u8 side = arg & ARG_SIDE ? ROAN_SIDE_RQ : ROAN_SIDE_SQ;
	u64 left;

	rcu_read_lock();
	if (side == ROAN_SIDE_SQ)
		WRITE_ONCE(below->left_at, ktime_get_coarse_ns());
	left = atomic64_sub_return((u64)((arg & ARG_SIZE) + 1) << (side * SIDE_SHIFT), &below->size);
	if (!left)
		call_rcu(&ref->rcu, free_ref);
	else if (unlikely(part(left, side) < READ_ONCE(below->wake[side])) && xchg(&below->wake[side], 0))
		call(ref, side);
	rcu_read_unlock();
}

void roan_below_add(struct roan_qp *qp, u8 side, struct sk_buff *skb)
{
	u32 size = clamp_t(u32, DIV_ROUND_UP(skb->len, 1024), 1, ARG_SIZE + 1);

	roan_depth_gave(roan_depth_of(qp, side), size);
	atomic64_add((u64)size << (side * SIDE_SHIFT), &qp->ref->below.size);
	skb_shinfo(skb)->destructor_arg = (void *)((unsigned long)qp->ref | (side ? ARG_SIDE : 0) | (size - 1));
	skb->destructor = has_left;
}

static u32 size_of(const struct roan_qp *qp, u8 side)
{
	return part(atomic64_read(&qp->ref->below.size), side);
}

bool roan_below_waits(struct roan_qp *qp, u8 side, u32 wake)
{
	struct roan_below *below = &qp->ref->below;

	WRITE_ONCE(below->wake[side], max(READ_ONCE(below->wake[side]), wake));
	smp_mb();	/* pairs with the subtraction: either it sees that we wait, or we see what it left */
	if (size_of(qp, side) >= wake)
		return true;
	/*
	 * A larger value is of a wait before this one. Its size is undercut, too, and the subtraction that did it may not have
	 * looked at the value yet: without it, that wait has no other end.
	 */
	if (xchg(&below->wake[side], 0) > wake)
		roan_sides_later(qp, BIT(side));
	return false;
}

/* Can anything wait below @dev? Not if it hands on at once what it gets and stands on no other device. */
static bool can_wait(const struct net_device *dev)
{
	return rcu_dereference(netdev_get_tx_queue(dev, 0)->qdisc)->enqueue || !list_empty(&dev->adj_list.lower);
}

bool roan_below_turn(struct roan_qp *qp, u8 side, const struct dst_entry *dst)
{
	if (dst && !can_wait(dst->dev))
		return false;
	roan_depth_look(roan_depth_of(qp, side), size_of(qp, side), ktime_get_ns());
	return true;
}

bool roan_below_full(struct roan_qp *qp, u8 side, u32 bytes)
{
	return !roan_depth_open(roan_depth_of(qp, side), size_of(qp, side) + bytes / 1024);
}

bool roan_below_full_waits(struct roan_qp *qp, u8 side)
{
	return roan_below_waits(qp, side, roan_depth_full(roan_depth_of(qp, side)));
}

/* ---- life ---- */

void roan_below_begin(struct roan_qp_ref *ref)
{
	atomic64_set(&ref->below.size, ALIVE);
	atomic_inc(&refs);
}

void roan_below_end(struct roan_qp_ref *ref)
{
	if (!atomic64_sub_return(ALIVE, &ref->below.size))
		call_rcu(&ref->rcu, free_ref);
}

/* Whoever has an skb of ours would call into text that is gone. */
void roan_below_exit(void)
{
	wait_event_idle(all_gone, !atomic_read(&refs));
}
