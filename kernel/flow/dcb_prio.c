// SPDX-License-Identifier: GPL-2.0
/*
 * Maps a packet's DSCP to skb->priority, which mqprio, ETS, PFC and the PCP of a VLAN use. The priority is that of
 * the interface's DCB application table: the entry for the DSCP, else the entry for UDP port 4791. Without either it is
 * the class selector, DSCP >> 3. The stack's own table (rt_tos2priority()) would make most RoCE DSCPs best
 * effort. One table per device, so that a train costs one load.
 * Does not choose the DSCP: roan_qos_tclass() does.
 */
#include <linux/dcbnl.h>
#include <net/dcbevent.h>
#include <net/dcbnl.h>
#include "flow/flow.h"

static LIST_HEAD(devices);		/* roan_dev.qos_link */
static DEFINE_SPINLOCK(devices_lock);	/* _bh; a spinlock, because the DCB event runs in atomic context */

#if IS_ENABLED(CONFIG_DCB)
/* The highest of several priorities of one application, as in the stack. -1: the table has no entry. */
static int highest_prio(u8 priorities)
{
	return fls(priorities) - 1;
}

static int dcb_port_prio(struct net_device *ndev)
{
	struct dcb_app app = { .selector = IEEE_8021QAZ_APP_SEL_DGRAM, .protocol = ROAN_UDP_PORT };
	u8 mask = dcb_ieee_getapp_mask(ndev, &app);

	app.selector = IEEE_8021QAZ_APP_SEL_ANY;
	return highest_prio(mask | dcb_ieee_getapp_mask(ndev, &app));
}

static void dcb_read_app_table(struct net_device *ndev, u8 prio[ROAN_DSCPS])
{
	struct dcb_ieee_app_dscp_map map;
	int by_port = dcb_port_prio(ndev);
	int dscp;

	dcb_ieee_getapp_dscp_prio_mask_map(ndev, &map);
	for (dscp = 0; dscp < ROAN_DSCPS; dscp++) {
		if (map.map[dscp])
			prio[dscp] = highest_prio(map.map[dscp]);
		else if (by_port >= 0)
			prio[dscp] = by_port;
	}
}
#else
static void dcb_read_app_table(struct net_device *ndev, u8 prio[ROAN_DSCPS])
{
}
#endif

void roan_qos_refresh(struct roan_dev *dev)
{
	u8 prio[ROAN_DSCPS];
	int dscp;

	for (dscp = 0; dscp < ROAN_DSCPS; dscp++)
		prio[dscp] = dscp >> 3;
	dcb_read_app_table(dev->ndev, prio);
	for (dscp = 0; dscp < ROAN_DSCPS; dscp++)
		WRITE_ONCE(dev->qos.prio[dscp], prio[dscp]);
}

/* The event has only the ifindex, which is unique per network namespace only. An unneeded refresh is harmless. */
static int dcb_app_event(struct notifier_block *nb, unsigned long what, void *ptr)
{
	const struct dcb_app_type *app = ptr;
	struct roan_dev *dev;

	if (what != DCB_APP_EVENT)
		return NOTIFY_DONE;
	spin_lock_bh(&devices_lock);
	list_for_each_entry(dev, &devices, qos_link)
		if (dev->ndev->ifindex == app->ifindex)
			roan_qos_refresh(dev);
	spin_unlock_bh(&devices_lock);
	return NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = dcb_app_event };

/* Added to the list before the refresh, so that a change in between is not missed. */
void roan_qos_add_dev(struct roan_dev *dev)
{
	spin_lock_bh(&devices_lock);
	list_add(&dev->qos_link, &devices);
	roan_qos_refresh(dev);
	spin_unlock_bh(&devices_lock);
}

void roan_qos_del_dev(struct roan_dev *dev)
{
	spin_lock_bh(&devices_lock);
	list_del_init(&dev->qos_link);
	spin_unlock_bh(&devices_lock);
}

int roan_qos_init(void)
{
	return register_dcbevent_notifier(&notifier);
}

void roan_qos_exit(void)
{
	unregister_dcbevent_notifier(&notifier);
}
