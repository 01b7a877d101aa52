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

/* roan_tx_inflight.size: the send queue's in the low half, the responder's above; ALIVE while there is a QP. */
#define QUEUE_SHIFT	32
#define QUEUE_MASK	0x3fffffff
#define ALIVE		BIT_ULL(62)

/* The destructor's argument: the ref's address, and in the bits that are zero there: */
#define ARG_QUEUE	BIT(6)
#define ARG_SIZE	(BIT(6) - 1)	/* KiB, less one */
static_assert(sizeof(struct roan_qp_ref) == ROAN_TX_INFLIGHT_ALIGN);	/* a power of two, by which kmalloc() aligns */

static atomic_t refs;			/* that are not freed */
static DECLARE_WAIT_QUEUE_HEAD(all_gone);

static u32 inflight_kb(u64 size, u8 side)
{
	return size >> (side * QUEUE_SHIFT) & QUEUE_MASK;
}

static struct roan_inflight_limit *roan_inflight_limit_of(struct roan_qp *qp, u8 side)
{
	return side == ROAN_QUEUE_SQ ? &qp->sq.depth : &qp->rq.depth;
}

static void inflight_free_ref(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct roan_qp_ref, rcu));
	if (atomic_dec_and_test(&refs))
		wake_up_all(&all_gone);
}

static void inflight_kick(struct roan_qp_ref *ref, u8 side)
{
	struct roan_qp *qp = roan_qp_get_rcu(ref);

	if (!qp)
		return;
	roan_kick_queues(qp, BIT(side));
	roan_qp_put(qp);
}

/* Any context. From the subtraction on only the read section keeps the ref. */
static void inflight_skb_freed(struct sk_buff *skb)
{
	unsigned long arg = (unsigned long)skb_shinfo(skb)->destructor_arg;
	struct roan_qp_ref *ref = (struct roan_qp_ref *)(arg & ~(ROAN_TX_INFLIGHT_ALIGN - 1ul));
	struct roan_tx_inflight *below = &ref->tx_inflight;
	u8 side = arg & ARG_QUEUE ? ROAN_QUEUE_RQ : ROAN_QUEUE_SQ;
	u64 left;

	rcu_read_lock();
	if (side == ROAN_QUEUE_SQ)
		WRITE_ONCE(below->last_free_ns, ktime_get_coarse_ns());
	left = atomic64_sub_return((u64)((arg & ARG_SIZE) + 1) << (side * QUEUE_SHIFT), &below->total_kb);
	if (!left)
		call_rcu(&ref->rcu, inflight_free_ref);
	else if (unlikely(inflight_kb(left, side) < READ_ONCE(below->wake_kb[side])) && xchg(&below->wake_kb[side], 0))
		inflight_kick(ref, side);
	rcu_read_unlock();
}

void roan_tx_inflight_charge(struct roan_qp *qp, u8 side, struct sk_buff *skb)
{
	u32 size = clamp_t(u32, DIV_ROUND_UP(skb->len, 1024), 1, ARG_SIZE + 1);

	roan_inflight_limit_add(roan_inflight_limit_of(qp, side), size);
	atomic64_add((u64)size << (side * QUEUE_SHIFT), &qp->ref->tx_inflight.total_kb);
	skb_shinfo(skb)->destructor_arg = (void *)((unsigned long)qp->ref | (side ? ARG_QUEUE : 0) | (size - 1));
	skb->destructor = inflight_skb_freed;
}

static u32 inflight_queue_kb(const struct roan_qp *qp, u8 side)
{
	return inflight_kb(atomic64_read(&qp->ref->tx_inflight.total_kb), side);
}

bool roan_tx_inflight_arm(struct roan_qp *qp, u8 side, u32 wake)
{
	struct roan_tx_inflight *below = &qp->ref->tx_inflight;

	WRITE_ONCE(below->wake_kb[side], max(READ_ONCE(below->wake_kb[side]), wake));
	smp_mb();	/* pairs with the subtraction: either it sees that we wait, or we see what it left */
	if (inflight_queue_kb(qp, side) >= wake)
		return true;
	/*
	 * A larger value is of a wait before this one. Its size is undercut, too, and the subtraction that did it may not have
	 * looked at the value yet: without it, that wait has no other end.
	 */
	if (xchg(&below->wake_kb[side], 0) > wake)
		roan_kick_queues(qp, BIT(side));
	return false;
}

/* Can anything wait below @dev? Not if it hands on at once what it gets and stands on no other device. */
static bool inflight_can_queue(const struct net_device *dev)
{
	return rcu_dereference(netdev_get_tx_queue(dev, 0)->qdisc)->enqueue || !list_empty(&dev->adj_list.lower);
}

bool roan_tx_inflight_begin_round(struct roan_qp *qp, u8 side, const struct dst_entry *dst)
{
	if (dst && !inflight_can_queue(dst->dev))
		return false;
	roan_inflight_limit_update(roan_inflight_limit_of(qp, side), inflight_queue_kb(qp, side), ktime_get_ns());
	return true;
}

bool roan_tx_inflight_over(struct roan_qp *qp, u8 side, u32 bytes)
{
	return !roan_inflight_limit_allows(roan_inflight_limit_of(qp, side), inflight_queue_kb(qp, side) +
					   bytes / 1024);
}

bool roan_below_full_waits(struct roan_qp *qp, u8 side)
{
	return roan_tx_inflight_arm(qp, side, roan_inflight_limit_hit(roan_inflight_limit_of(qp, side)));
}

/* ---- life ---- */

void roan_tx_inflight_init(struct roan_qp_ref *ref)
{
	atomic64_set(&ref->tx_inflight.total_kb, ALIVE);
	atomic_inc(&refs);
}

void roan_tx_inflight_put(struct roan_qp_ref *ref)
{
	if (!atomic64_sub_return(ALIVE, &ref->tx_inflight.total_kb))
		call_rcu(&ref->rcu, inflight_free_ref);
}

/* Whoever has an skb of ours would call into text that is gone. */
void roan_tx_inflight_exit(void)
{
	wait_event_idle(all_gone, !atomic_read(&refs));
}
