// SPDX-License-Identifier: GPL-2.0
/*
 * Limit of the bytes in flight, driver half: counts the bytes of a QP that are in flight in the stack, that is in this
 * host's qdiscs and NIC rings. Does not decide how large the limit is: core/flow/inflight_limit.c does. ACKs and CNPs
 * are not counted; they are small and never wait.
 *
 * Counting uses the skb destructor. It runs when the NIC has sent the skb, when software GSO segments it before the
 * NIC, when it is dropped, or when it enters the IP stack of another namespace. Some drivers and qdiscs (loopback,
 * netem) call it at once, as fq does for skbs without a socket, so they have one: @owner. Nothing is counted on a
 * device without a queue (veth): packets do not wait there in this host.
 *
 * The destructor may run in any context, with interrupts off, under any lock including those of this driver, and
 * after the QP was destroyed. So it accesses only struct roan_qp_ref and drops the reference to skb->sk. One atomic
 * operation returns the bytes left and whether this was the last user.
 */
#include <linux/if_vlan.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/dst.h>
#include <net/sch_generic.h>
#include <net/sock.h>
#include "base/base.h"
#include "flow/flow.h"

/* roan_tx_inflight.total_kb: bits 0-29 the send queue's KiB, bits 32-61 the responder's, ALIVE while the QP exists. */
#define QUEUE_SHIFT	32
#define QUEUE_MASK	0x3fffffff
#define ALIVE		BIT_ULL(62)

/* The destructor's argument: the address of struct roan_qp_ref, and in its low 7 bits, which are 0: */
#define ARG_QUEUE	BIT(6)
#define ARG_SIZE	(BIT(6) - 1)	/* KiB - 1 */
static_assert(sizeof(struct roan_qp_ref) == ROAN_TX_INFLIGHT_ALIGN);	/* kmalloc() aligns power-of-two sizes */

/*
 * skb->sk of counted skbs that fq may get: not connected, so that fq finds their flow by the packet's hash. Of the
 * first namespace, as skbs may outlive any other. No reference is counted: it stays until the last skb is freed.
 */
static struct socket *owner;
#define OWNER_BYTES_MAX	BIT(30)

static atomic_t refs;			/* struct roan_qp_ref not yet freed */
static DECLARE_WAIT_QUEUE_HEAD(all_gone);

static u32 inflight_kb(u64 size, u8 side)
{
	return size >> (side * QUEUE_SHIFT) & QUEUE_MASK;
}

static struct roan_inflight_limit *roan_inflight_limit_of(struct roan_qp *qp, u8 side)
{
	return side == ROAN_QUEUE_SQ ? &qp->sq.inflight_limit : &qp->rq.inflight_limit;
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

/* Any context. After the subtraction only the RCU read section keeps @ref alive. */
static void inflight_skb_freed(struct sk_buff *skb)
{
	unsigned long arg = (unsigned long)skb_shinfo(skb)->destructor_arg;
	struct roan_qp_ref *ref = (struct roan_qp_ref *)(arg & ~(ROAN_TX_INFLIGHT_ALIGN - 1ul));
	struct roan_tx_inflight *inflight = &ref->tx_inflight;
	u8 side = arg & ARG_QUEUE ? ROAN_QUEUE_RQ : ROAN_QUEUE_SQ;
	u64 left;

	if (unlikely(skb->sk && skb->sk != owner->sk))	/* set_socket6() of net/route.c */
		sock_put(skb->sk);
	rcu_read_lock();
	if (side == ROAN_QUEUE_SQ)
		WRITE_ONCE(inflight->last_free_ns, ktime_get_coarse_ns());
	left = atomic64_sub_return((u64)((arg & ARG_SIZE) + 1) << (side * QUEUE_SHIFT), &inflight->total_kb);
	if (!left)
		call_rcu(&ref->rcu, inflight_free_ref);
	else if (unlikely(inflight_kb(left, side) < READ_ONCE(inflight->wake_kb[side])) &&
		 xchg(&inflight->wake_kb[side], 0))
		inflight_kick(ref, side);
	rcu_read_unlock();
}

static bool inflight_has_queue(const struct net_device *dev)
{
	return rcu_dereference(netdev_get_tx_queue(dev, 0)->qdisc)->enqueue;
}

/*
 * A queue of the device, or of those below a VLAN, bond or macvlan. Not below tunnels, and not with IPsec: ESP adds to
 * the bytes of the socket what sock_wfree() would take off. Nor where a BPF program of the route takes the socket's
 * namespace. A tunnel that has a queue, or a firewall that changes the route, may still lead to ESP: the sum of what it
 * has added must not overflow.
 */
static bool inflight_fq_may_get(const struct dst_entry *dst)
{
	const struct net_device *dev = dst->dev;

	return !dst_xfrm(dst) && !dst->lwtstate &&
	       (inflight_has_queue(dev) || is_vlan_dev(dev) || netif_is_lag_master(dev) || netif_is_macvlan(dev)) &&
	       refcount_read(&owner->sk->sk_wmem_alloc) < OWNER_BYTES_MAX;
}

void roan_tx_inflight_charge(struct roan_qp *qp, u8 side, struct sk_buff *skb, const struct dst_entry *dst)
{
	u32 size = clamp_t(u32, DIV_ROUND_UP(skb->len, 1024), 1, ARG_SIZE + 1);

	roan_inflight_limit_add(roan_inflight_limit_of(qp, side), size);
	atomic64_add((u64)size << (side * QUEUE_SHIFT), &qp->ref->tx_inflight.total_kb);
	skb_shinfo(skb)->destructor_arg = (void *)((unsigned long)qp->ref | (side ? ARG_QUEUE : 0) | (size - 1));
	skb->destructor = inflight_skb_freed;
	if (inflight_fq_may_get(dst))
		skb->sk = owner->sk;
}

static u32 inflight_queue_kb(const struct roan_qp *qp, u8 side)
{
	return inflight_kb(atomic64_read(&qp->ref->tx_inflight.total_kb), side);
}

bool roan_tx_inflight_arm(struct roan_qp *qp, u8 side, u32 wake)
{
	struct roan_tx_inflight *inflight = &qp->ref->tx_inflight;
	u32 before = READ_ONCE(inflight->wake_kb[side]);

	WRITE_ONCE(inflight->wake_kb[side], max(before, wake));
	smp_mb();	/* pairs with the atomic subtraction: either it sees wake_kb, or we see its result */
	if (inflight_queue_kb(qp, side) >= wake)
		return true;
	/*
	 * An earlier wait has ended as well. The destructor that ended it may not have read wake_kb yet and now finds
	 * 0, so run the queue here.
	 */
	if (xchg(&inflight->wake_kb[side], 0) && before)
		roan_kick_queues(qp, BIT(side));
	return false;
}

/*
 * Returns false if skbs cannot wait in this host: @dev has no queue (noqueue) and no lower device. RCU read lock held.
 */
static bool inflight_can_queue(const struct net_device *dev)
{
	return inflight_has_queue(dev) || !list_empty(&dev->adj_list.lower);
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

/* What was dropped left at once: that must not count as a fast queue. */
void roan_tx_inflight_dropped(struct roan_qp *qp, u8 side)
{
	roan_inflight_limit_init(roan_inflight_limit_of(qp, side));
}

bool roan_tx_inflight_arm_full(struct roan_qp *qp, u8 side)
{
	return roan_tx_inflight_arm(qp, side, roan_inflight_limit_hit(roan_inflight_limit_of(qp, side)));
}

/* A wait for 1 KiB is not one of packets: the ACK timer waits for the last packet to leave. */
bool roan_tx_inflight_waits(const struct roan_qp *qp)
{
	const u32 *wake_kb = qp->ref->tx_inflight.wake_kb;

	return READ_ONCE(wake_kb[ROAN_QUEUE_SQ]) > 1 || READ_ONCE(wake_kb[ROAN_QUEUE_RQ]) > 1;
}

/* ---- lifetime ---- */

void roan_tx_inflight_add(struct roan_qp_ref *ref)
{
	atomic64_set(&ref->tx_inflight.total_kb, ALIVE);
	atomic_inc(&refs);
}

void roan_tx_inflight_put(struct roan_qp_ref *ref)
{
	if (!atomic64_sub_return(ALIVE, &ref->tx_inflight.total_kb))
		call_rcu(&ref->rcu, inflight_free_ref);
}

static long inflight_create_owner(void *unused)
{
	return sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP, &owner);
}

/* By a kernel thread: a socket is of its creator's cgroup, and rules for that of modprobe are not meant for packets. */
int roan_tx_inflight_init(void)
{
	return work_on_cpu(raw_smp_processor_id(), inflight_create_owner, NULL);
}

/* An skb still in the stack would call a destructor in unloaded module text. */
void roan_tx_inflight_exit(void)
{
	wait_event_idle(all_gone, !atomic_read(&refs));
	refcount_set(&owner->sk->sk_wmem_alloc, 1);	/* what ESP has added would keep the socket */
	sock_release(owner);
}
