// SPDX-License-Identifier: GPL-2.0
/*
 * Makes a bridge a lossless switch: a queueing discipline for its ports that sends and honours pause frames, by the
 * rules of kernel/core/flow/pfc_rules.c. It keeps packets in order. While the other end of the link has sent XOFF,
 * packets stay. If a port holds more than `xoff` bytes that arrived by one interface, XOFF is sent there, and XON when
 * `xoff` - `gap` are left.
 *
 *	tc qdisc add dev p1 parent 10:1 handle 20: lossless		`tc -s`: overlimits are the XOFFs that were sent
 *
 * A pause frame is sent as soon as the excess packet arrives, past the queues of its port. Rates and marks are the task
 * of other disciplines above this one. All traffic has one priority: use no port for packets that must not wait.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/pkt_sched.h>
#include "core/flow/pfc_rules.h"

#define PRIO	3	/* of all traffic */

MODULE_DESCRIPTION("A port of a switch that pauses who sends too much, for tests");
MODULE_LICENSE("GPL");

static ulong xoff = 512000;
module_param(xoff, ulong, 0644);
MODULE_PARM_DESC(xoff, "of ports made from now on: bytes held of one interface, above which its sender pauses");
static ulong gap = 2200;
module_param(gap, ulong, 0444);
MODULE_PARM_DESC(gap, "bytes below xoff with which the sender goes on");
static ulong limit = 12 << 20;
module_param(limit, ulong, 0444);
MODULE_PARM_DESC(limit, "bytes a port may hold");
static ulong mbps = 40000;
module_param(mbps, ulong, 0444);
MODULE_PARM_DESC(mbps, "Mb/s by which quanta count, on both ends of every link");

struct port {
	spinlock_t lock;		/* _bh; all below but what says otherwise; taken inside the qdisc's */
	struct Qdisc *sch;
	u64 xoff;
	struct xarray sources;		/* struct source, by interface index */
	struct packet_type frames;	/* receives pause frames from the other end of the link */
	struct roan_pfc_rx_state pause;
	struct roan_pfc_params params;
	struct qdisc_watchdog watchdog;	/* the end of a pause */
};

/* An interface through which packets of this queue arrived. Exists as long as the port. */
struct source {
	struct port *port;
	int ifindex;
	u64 held;			/* bytes of its packets in the queue */
	struct roan_pfc_tx_state teller;
	struct hrtimer refresh;		/* the next XOFF, until XON is sent */
};

/* ---- sending pause frames ---- */

static u64 quanta_ns(u16 quanta)
{
	return roan_pfc_quanta_ns(quanta, mbps * 1000000);
}

static void send_frame(struct net_device *dev, u16 quanta)
{
	struct roan_pfc_frame f = { .enabled = BIT(PRIO), .quanta[PRIO] = quanta };
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(dev) + ROAN_PFC_FRAME_LEN, GFP_ATOMIC);

	if (!skb)
		return;
	skb_reserve(skb, LL_RESERVED_SPACE(dev));
	roan_pfc_frame_build(skb_put(skb, ROAN_PFC_FRAME_LEN), dev->dev_addr, &f);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = htons(ETH_P_PAUSE);
	skb->dev = dev;
	dev_direct_xmit(skb, 0);
}

static void tell(struct source *s)
{
	u64 max_ns = quanta_ns(ROAN_PFC_MAX_QUANTA);
	struct port *p = s->port;
	struct net_device *dev;
	u16 quanta = 0;

	lockdep_assert_held(&p->lock);
	switch (roan_pfc_tx_decide(&s->teller, s->held, p->xoff, p->xoff - gap, max_ns, ktime_get_ns())) {
	case ROAN_PFC_TX_NONE:
		return;
	case ROAN_PFC_TX_XOFF:
		quanta = ROAN_PFC_MAX_QUANTA;
		p->sch->qstats.overlimits++;
		hrtimer_start(&s->refresh, ns_to_ktime(s->teller.refresh_at), HRTIMER_MODE_ABS_SOFT);
		break;
	case ROAN_PFC_TX_XON:
		break;
	}
	rcu_read_lock();
	dev = dev_get_by_index_rcu(dev_net(qdisc_dev(p->sch)), s->ifindex);
	if (dev)
		send_frame(dev, quanta);
	rcu_read_unlock();
}

/* Refreshes XOFF, unless XON has been sent. */
static enum hrtimer_restart refresh(struct hrtimer *timer)
{
	struct source *s = container_of(timer, struct source, refresh);

	spin_lock(&s->port->lock);
	if (s->teller.xoff_sent)
		tell(s);
	spin_unlock(&s->port->lock);
	return HRTIMER_NORESTART;
}

/* Returns NULL without memory. */
static struct source *source_of(struct port *p, int ifindex)
{
	struct source *s = xa_load(&p->sources, ifindex);

	lockdep_assert_held(&p->lock);
	if (s)
		return s;
	s = kzalloc(sizeof(*s), GFP_ATOMIC);
	if (!s)
		return NULL;
	s->port = p;
	s->ifindex = ifindex;
	roan_hrtimer_setup(&s->refresh, refresh, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	if (xa_is_err(xa_store(&p->sources, ifindex, s, GFP_ATOMIC))) {
		kfree(s);
		return NULL;
	}
	return s;
}

/* ---- receiving pause frames ---- */

/* softirq; the skb may be shared. Its data begins behind the Ethernet header. */
static int frame_rcv(struct sk_buff *skb, struct net_device *dev, struct packet_type *pt, struct net_device *orig)
{
	struct port *p = container_of(pt, struct port, frames);
	struct roan_pfc_frame f;
	u8 frame[ROAN_PFC_FRAME_LEN];

	if (skb->protocol != htons(ETH_P_PAUSE) || skb->len != sizeof(frame) - ETH_HLEN)
		goto out;
	memcpy(frame, skb_mac_header(skb), ETH_HLEN);
	if (skb_copy_bits(skb, 0, frame + ETH_HLEN, skb->len) ||
	    roan_pfc_frame_parse(frame, sizeof(frame), &f) != ROAN_PFC_PARSE_OK || !(f.enabled & BIT(PRIO)))
		goto out;
	spin_lock(&p->lock);
	roan_pfc_rx_pause(&p->pause, &p->params, quanta_ns(f.quanta[PRIO]), ktime_get_ns());
	spin_unlock(&p->lock);
	__netif_schedule(qdisc_root(p->sch));	/* dequeue evaluates the new state */
out:
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

static bool paused(struct port *p)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&p->lock);
	if (roan_pfc_rx_clear(&p->pause, now) || !roan_pfc_rx_blocked(&p->pause, &p->params, now))
		return false;
	qdisc_watchdog_schedule_ns(&p->watchdog, roan_pfc_rx_deadline(&p->pause, &p->params));
	return true;
}

/* ---- the queue ---- */

static int lossless_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct port *p = qdisc_priv(sch);
	struct source *s;

	spin_lock(&p->lock);
	s = source_of(p, skb->skb_iif);
	if (!s || sch->qstats.backlog + qdisc_pkt_len(skb) > limit) {
		spin_unlock(&p->lock);
		return qdisc_drop(skb, sch, to_free);
	}
	s->held += qdisc_pkt_len(skb);
	tell(s);
	spin_unlock(&p->lock);
	return qdisc_enqueue_tail(skb, sch);
}

static struct sk_buff *lossless_dequeue(struct Qdisc *sch)
{
	struct port *p = qdisc_priv(sch);
	struct sk_buff *skb = NULL;
	struct source *s;

	spin_lock(&p->lock);
	if (sch->q.head && !paused(p))
		skb = qdisc_dequeue_head(sch);
	if (skb) {
		s = xa_load(&p->sources, skb->skb_iif);
		s->held -= qdisc_pkt_len(skb);
		tell(s);
	}
	spin_unlock(&p->lock);
	return skb;
}

static void lossless_reset(struct Qdisc *sch)
{
	struct port *p = qdisc_priv(sch);
	struct source *s;
	unsigned long i;

	qdisc_reset_queue(sch);
	qdisc_watchdog_cancel(&p->watchdog);
	spin_lock_bh(&p->lock);
	xa_for_each(&p->sources, i, s)
		s->held = 0;		/* the next packet, or the refresh, tells */
	spin_unlock_bh(&p->lock);
}

static int lossless_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct port *p = qdisc_priv(sch);

	spin_lock_init(&p->lock);
	p->sch = sch;
	p->xoff = max(READ_ONCE(xoff), gap);
	xa_init(&p->sources);
	roan_pfc_params_default(&p->params);
	qdisc_watchdog_init(&p->watchdog, sch);
	/* ETH_P_ALL: a bridge takes its ports' frames before handlers of a single protocol are called. */
	p->frames = (struct packet_type) {
		.type = htons(ETH_P_ALL), .dev = qdisc_dev(sch), .func = frame_rcv, .ignore_outgoing = true,
	};
	dev_add_pack(&p->frames);
	return 0;
}

static void lossless_destroy(struct Qdisc *sch)
{
	struct port *p = qdisc_priv(sch);
	struct source *s;
	unsigned long i;

	dev_remove_pack(&p->frames);
	qdisc_watchdog_cancel(&p->watchdog);
	xa_for_each(&p->sources, i, s) {
		hrtimer_cancel(&s->refresh);
		kfree(s);
	}
	xa_destroy(&p->sources);
}

static struct Qdisc_ops lossless_ops __read_mostly = {
	.id = "lossless",
	.priv_size = sizeof(struct port),
	.enqueue = lossless_enqueue,
	.dequeue = lossless_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = lossless_init,
	.reset = lossless_reset,
	.destroy = lossless_destroy,
	.owner = THIS_MODULE,
};

static int __init lossless_module_init(void)
{
	return mbps ? register_qdisc(&lossless_ops) : -ERANGE;
}

static void __exit lossless_module_exit(void)
{
	unregister_qdisc(&lossless_ops);
}

module_init(lossless_module_init);
module_exit(lossless_module_exit);
