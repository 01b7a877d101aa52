// SPDX-License-Identifier: GPL-2.0
/*
 * Sends PFC pause frames for the priorities in cc_param/pfc_emit_mask while many received bytes are queued behind
 * page faults (odp_rxqueue.c). Builds and sends the frames and has the timer that repeats XOFF. Does not decide when
 * to send XOFF or XON (core/flow/pfc_rules.c), and does not receive frames (pfc_rx.c). Costs nothing while no packet
 * is queued.
 */
#include <linux/etherdevice.h>
#include <linux/pkt_sched.h>
#include "base/stats.h"
#include "base/trace.h"
#include "flow/flow.h"

static enum roan_pfc_tx_action pfc_tx_action(struct roan_pfc_tx *out, u8 prio, u64 backlog, u64 now)
{
	const struct roan_pfc_params *params = &out->dev->pfc.params;
	u64 longest = roan_pfc_quanta_ns(ROAN_PFC_MAX_QUANTA, roan_pfc_link_speed(out->dev));

	if (!roan_pfc_prio_enabled(out->dev, READ_ONCE(params->pfc_emit_mask), prio))
		return roan_pfc_tx_off(&out->tx_state);
	return roan_pfc_tx_decide_wd(&out->tx_state, params, backlog, longest, now);
}

static void pfc_tx_frame(struct roan_dev *dev, u8 prio, u16 quanta)
{
	struct roan_pfc_frame f = { .enabled = BIT(prio) };
	struct net_device *ndev = dev->ndev;
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(ndev) + ROAN_PFC_FRAME_LEN, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		roan_count(dev, tx_no_memory);
		return;
	}
	f.quanta[prio] = quanta;
	skb_reserve(skb, LL_RESERVED_SPACE(ndev));
	skb_reset_mac_header(skb);
	roan_pfc_frame_build(skb_put(skb, ROAN_PFC_FRAME_LEN), ndev->dev_addr, &f);
	skb_set_network_header(skb, ETH_HLEN);
	skb->dev = ndev;
	skb->protocol = htons(ETH_P_PAUSE);
	skb->priority = TC_PRIO_CONTROL;
	this_cpu_inc(dev->stats->count[ROAN_CNT_tx_prio0_pause + prio]);
	dev_queue_xmit(skb);
}

/* The lock is held until the frame is handed over, so that the last frame on the wire matches the state. */
static void pfc_tx_run(struct roan_pfc_tx *out)
	__must_hold(&out->lock)
{
	struct roan_dev *dev = out->dev;
	u8 prio = out - dev->pfc.out;
	u64 backlog = atomic_read(&dev->odp_rxq.of_prio[prio]), now = ktime_get_ns();
	enum roan_pfc_tx_action what = pfc_tx_action(out, prio, backlog, now);
	u64 when = roan_pfc_tx_deadline(&out->tx_state, &dev->pfc.params, now);

	lockdep_assert_held(&out->lock);
	if (what != ROAN_PFC_TX_NONE) {
		trace_roan_pfc_tx(dev, prio, backlog, what);
		pfc_tx_frame(dev, prio, what == ROAN_PFC_TX_XOFF ? ROAN_PFC_MAX_QUANTA : 0);
	}
	if (out->trips_counted != out->tx_state.watchdog_trips) {
		out->trips_counted = out->tx_state.watchdog_trips;
		roan_count(dev, pfc_tx_watchdog);
	}
	if (when)
		hrtimer_start(&out->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart pfc_tx_timer_fn(struct hrtimer *timer)
{
	struct roan_pfc_tx *out = container_of(timer, struct roan_pfc_tx, timer);

	spin_lock(&out->lock);
	pfc_tx_run(out);
	spin_unlock(&out->lock);
	return HRTIMER_NORESTART;
}

void roan_pfc_tx_update(struct roan_dev *dev, u8 prio)
{
	struct roan_pfc_tx *out = &dev->pfc.out[prio];

	spin_lock_bh(&out->lock);
	pfc_tx_run(out);
	spin_unlock_bh(&out->lock);
}

void roan_pfc_tx_init(struct roan_dev *dev)
{
	struct roan_pfc_tx *out;

	for (out = dev->pfc.out; out < dev->pfc.out + ROAN_PRIORITIES; out++) {
		out->dev = dev;
		spin_lock_init(&out->lock);
		roan_hrtimer_setup(&out->timer, pfc_tx_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	}
}

void roan_pfc_tx_exit(struct roan_dev *dev)
{
	u32 i;

	for (i = 0; i < ROAN_PRIORITIES; i++)
		hrtimer_cancel(&dev->pfc.out[i].timer);
}
