// SPDX-License-Identifier: GPL-2.0
/*
 * Priority flow control: receives pause frames and blocks QPs until a pause ends. Off until cc_param/pfc_prio_mask
 * contains a priority. Works only with network drivers that pass pause frames to the stack. Does not decide what a
 * frame means or how long a pause lasts (core/flow/pfc_rules.c), and does not send frames (pfc_tx.c).
 *
 * CNPs, and ACKs with no blocked data before them, are not checked here: a pause never blocks them.
 */
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"

#define MAX_WAKE	256	/* QPs woken at once; the timer expires at once again for the others */
#define UNKNOWN_LINK	10000000000ULL	/* bit/s; the speed that virtual links report */

static const u8 pause_address[ETH_ALEN] __aligned(2) = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };

u64 roan_pfc_link_speed(const struct roan_dev *dev)
{
	return roan_link_speed(dev) ?: UNKNOWN_LINK;
}

bool roan_pfc_prio_enabled(struct roan_dev *dev, u32 mask, u8 prio)
{
	return mask & BIT(prio) && prio != READ_ONCE(roan_cc_params_of(dev)->cnp_802p_prio);
}

/* ---- blocked QPs ---- */

static void pfc_count_trips(struct roan_pfc_prio *prio)
{
	if (likely(prio->trips_counted == prio->pause.watchdog_trips))
		return;
	roan_count_n(prio->dev, pfc_storm, (u32)(prio->pause.watchdog_trips - prio->trips_counted));
	prio->trips_counted = prio->pause.watchdog_trips;
}

static void pfc_dequeue(struct roan_qp *qp)
{
	struct roan_pfc *pfc = &qp->dev->pfc;
	u64 now = ktime_get_ns();

	list_del_init(&qp->pfc_link);
	WRITE_ONCE(qp->pfc_blocked_mask, 0);
	qp->pfc_waited += now - qp->pfc_wait_since;
	if (!--pfc->n_waiting)
		pfc->waited += now - pfc->wait_since;
	roan_qp_put(qp);
}

static void pfc_wake_prio(struct roan_pfc_prio *prio)
{
	struct roan_qp *qp, *next;
	u32 most = MAX_WAKE;

	lockdep_assert_held(&prio->dev->pfc.lock);
	list_for_each_entry_safe(qp, next, &prio->blocked_qps, pfc_link) {
		if (!most--) {
			prio->timer_at = ktime_get_ns();
			hrtimer_start(&prio->timer, ns_to_ktime(prio->timer_at), HRTIMER_MODE_ABS_SOFT);
			return;
		}
		roan_kick_queues(qp, qp->pfc_blocked_mask);
		pfc_dequeue(qp);
	}
}

/* A timer that is armed for an earlier time stays: it finds the pause extended, and is armed again. */
static void pfc_arm_timer(struct roan_pfc_prio *prio)
{
	u64 when = roan_pfc_rx_deadline(&prio->pause, &prio->dev->pfc.params);

	lockdep_assert_held(&prio->dev->pfc.lock);
	if (list_empty(&prio->blocked_qps) || (prio->timer_at && prio->timer_at <= when))
		return;
	prio->timer_at = when;
	hrtimer_start(&prio->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart pfc_timer_fn(struct hrtimer *timer)
{
	struct roan_pfc_prio *prio = container_of(timer, struct roan_pfc_prio, timer);
	struct roan_pfc *pfc = &prio->dev->pfc;

	spin_lock(&pfc->lock);
	prio->timer_at = 0;
	if (roan_pfc_rx_still_blocked(&prio->pause, &pfc->params, ktime_get_ns()))
		pfc_arm_timer(prio);
	else
		pfc_wake_prio(prio);
	pfc_count_trips(prio);
	spin_unlock(&pfc->lock);
	return HRTIMER_NORESTART;
}

static void pfc_enqueue(struct roan_qp *qp, u8 side, struct roan_pfc_prio *prio)
{
	struct roan_pfc *pfc = &qp->dev->pfc;

	if (list_empty(&qp->pfc_link)) {
		roan_qp_get(qp);
		qp->pfc_wait_since = ktime_get_ns();
		if (!pfc->n_waiting++)
			pfc->wait_since = qp->pfc_wait_since;
	}
	list_move_tail(&qp->pfc_link, &prio->blocked_qps);	/* a datagram QP may be in another priority's list */
	WRITE_ONCE(qp->pfc_blocked_mask, qp->pfc_blocked_mask | BIT(side));
	pfc_arm_timer(prio);
}

bool roan_pfc_check_blocked(struct roan_qp *qp, u8 side, u8 prio)
{
	struct roan_pfc *pfc = &qp->dev->pfc;
	struct roan_pfc_prio *p = &pfc->prio[prio % ROAN_PRIORITIES];
	bool blocks;
	u64 now;

	if (!READ_ONCE(p->pause.until))
		return false;
	now = ktime_get_ns();
	if (roan_pfc_rx_clear(&p->pause, now))
		return false;
	spin_lock(&pfc->lock);
	blocks = roan_pfc_rx_blocked(&p->pause, &pfc->params, now);
	if (blocks)
		pfc_enqueue(qp, side, p);
	pfc_count_trips(p);
	spin_unlock(&pfc->lock);
	return blocks;
}

u64 roan_pfc_waited(struct roan_dev *dev)
{
	struct roan_pfc *pfc = &dev->pfc;
	u64 waited;

	spin_lock_bh(&pfc->lock);
	waited = pfc->waited;
	if (pfc->n_waiting)
		waited += ktime_get_ns() - pfc->wait_since;
	spin_unlock_bh(&pfc->lock);
	return waited;
}

u64 roan_pfc_qp_waited(struct roan_qp *qp)
{
	struct roan_pfc *pfc = &qp->dev->pfc;
	u64 waited;

	spin_lock_bh(&pfc->lock);
	waited = qp->pfc_waited;
	if (!list_empty(&qp->pfc_link))
		waited += ktime_get_ns() - qp->pfc_wait_since;
	spin_unlock_bh(&pfc->lock);
	return waited;
}

void roan_pfc_cancel(struct roan_qp *qp)
{
	struct roan_pfc *pfc = &qp->dev->pfc;

	spin_lock_bh(&pfc->lock);
	if (!list_empty(&qp->pfc_link))
		pfc_dequeue(qp);
	spin_unlock_bh(&pfc->lock);
}

/* ---- frames ---- */

/* A frame contains @quanta for priority @i. softirq */
static void pfc_rx_class(struct roan_dev *dev, u32 i, u16 quanta)
{
	struct roan_pfc *pfc = &dev->pfc;
	struct roan_pfc_prio *prio = &pfc->prio[i];
	enum roan_pfc_rx_event event = ROAN_PFC_RX_IGNORED;
	u64 ns = roan_pfc_quanta_ns(quanta, roan_pfc_link_speed(dev));

	this_cpu_inc(dev->stats->count[ROAN_CNT_rx_prio0_pause + i]);
	spin_lock(&pfc->lock);
	if (roan_pfc_prio_enabled(dev, READ_ONCE(pfc->params.pfc_prio_mask), i))
		event = roan_pfc_rx_pause(&prio->pause, &pfc->params, ns, ktime_get_ns());
	if (event == ROAN_PFC_RX_ENDED)
		pfc_wake_prio(prio);
	else if (event == ROAN_PFC_RX_EXTENDED)
		pfc_arm_timer(prio);	/* the pause may have become shorter */
	pfc_count_trips(prio);
	spin_unlock(&pfc->lock);
	trace_roan_pfc_rx(dev, i, ns, event);
	if (event == ROAN_PFC_RX_IGNORED)
		roan_count(dev, pause_ignored);
	else if (event == ROAN_PFC_RX_BEGUN || event == ROAN_PFC_RX_EXTENDED)
		roan_count(dev, pause_honoured);
}

static void pfc_rx_frame(struct roan_dev *dev, const struct roan_pfc_frame *f)
{
	u32 i;

	for (i = 0; i < ROAN_PRIORITIES; i++)
		if (f->enabled & BIT(i))
			pfc_rx_class(dev, i, f->quanta[i]);
}

/* softirq. The skb may be shared, so it is only read. skb->data is behind the Ethernet header. */
static int pfc_rcv(struct sk_buff *skb, struct net_device *ndev, struct packet_type *pt, struct net_device *orig)
{
	struct roan_dev *dev = container_of(pt, struct roan_dev, pfc.ptype);
	u8 frame[ROAN_PFC_FRAME_LEN] = {};
	struct roan_pfc_frame f;
	u32 len = skb->len + ETH_HLEN;

	if (skb->pkt_type == PACKET_OTHERHOST || skb_mac_header_len(skb) != ETH_HLEN)
		goto out;
	memcpy(frame, skb_mac_header(skb), ETH_HLEN);
	if (skb_copy_bits(skb, 0, frame + ETH_HLEN, min_t(u32, skb->len, sizeof(frame) - ETH_HLEN)))
		len = 0;
	switch (roan_pfc_frame_parse(frame, len, &f)) {
	case ROAN_PFC_PARSE_OK:
		pfc_rx_frame(dev, &f);
		break;
	case ROAN_PFC_PARSE_LENGTH:
		roan_count(dev, rx_pause_length);
		break;
	case ROAN_PFC_PARSE_DEST:
		roan_count(dev, rx_pause_dest);
		break;
	case ROAN_PFC_PARSE_OPCODE:
		roan_count(dev, rx_pause_opcode);
		break;
	case ROAN_PFC_PARSE_VECTOR:
		roan_count(dev, rx_pause_vector);
		break;
	}
out:
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

/* ---- on and off ---- */

/* An interface that is being unregistered flushes its addresses and must not get another one. */
static int pfc_listen(struct roan_dev *dev)
{
	int err;

	if (dev->ndev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	err = dev_mc_add(dev->ndev, pause_address);
	if (err)
		return err;
	dev_add_pack(&dev->pfc.ptype);
	dev->pfc.rx_registered = true;
	return 0;
}

static void pfc_stop_listening(struct roan_dev *dev)
{
	dev_remove_pack(&dev->pfc.ptype);	/* waits until no CPU runs pfc_rcv() */
	dev_mc_del(dev->ndev, pause_address);
	dev->pfc.rx_registered = false;
}

/* Ends the pauses of priorities that are no longer in pfc_prio_mask. */
static void pfc_release_all(struct roan_pfc *pfc)
{
	u32 i;

	spin_lock_bh(&pfc->lock);
	for (i = 0; i < ROAN_PRIORITIES; i++) {
		if (READ_ONCE(pfc->params.pfc_prio_mask) & BIT(i))
			continue;
		WRITE_ONCE(pfc->prio[i].pause.until, 0);
		WRITE_ONCE(pfc->prio[i].pause.block_start_ns, 0);
		pfc->prio[i].pause.ignore_until = 0;
		pfc_wake_prio(&pfc->prio[i]);
	}
	spin_unlock_bh(&pfc->lock);
}

int roan_pfc_set(struct roan_dev *dev, enum roan_pfc_param which, u32 value)
{
	struct roan_pfc *pfc = &dev->pfc;
	int err = 0;
	u32 i;

	if (dev->l3 && value && (which == ROAN_PFC_PARAM_pfc_prio_mask || which == ROAN_PFC_PARAM_pfc_emit_mask))
		return -EOPNOTSUPP;	/* pause frames are Ethernet frames */
	rtnl_lock();
	if (which == ROAN_PFC_PARAM_pfc_prio_mask && value && !pfc->rx_registered)
		err = pfc_listen(dev);
	if (!err && !roan_pfc_param_set(&pfc->params, which, value))
		err = -ERANGE;
	if (pfc->rx_registered && !pfc->params.pfc_prio_mask)
		pfc_stop_listening(dev);
	rtnl_unlock();
	pfc_release_all(pfc);
	for (i = 0; i < ROAN_PRIORITIES; i++)
		roan_pfc_tx_update(dev, i);
	return err;
}

void roan_pfc_init(struct roan_dev *dev)
{
	struct roan_pfc *pfc = &dev->pfc;
	u32 i;

	roan_pfc_params_default(&pfc->params);
	spin_lock_init(&pfc->lock);
	pfc->ptype = (struct packet_type) {
		.type = htons(ETH_P_PAUSE), .dev = dev->ndev, .func = pfc_rcv,
	};
	for (i = 0; i < ROAN_PRIORITIES; i++) {
		pfc->prio[i].dev = dev;
		INIT_LIST_HEAD(&pfc->prio[i].blocked_qps);
		roan_hrtimer_setup(&pfc->prio[i].timer, pfc_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	}
	roan_pfc_tx_init(dev);
}

void roan_pfc_exit(struct roan_dev *dev)
{
	u32 i;

	if (dev->pfc.rx_registered) {
		rtnl_lock();
		pfc_stop_listening(dev);
		rtnl_unlock();
	}
	for (i = 0; i < ROAN_PRIORITIES; i++)
		hrtimer_cancel(&dev->pfc.prio[i].timer);
	roan_pfc_tx_exit(dev);
}
