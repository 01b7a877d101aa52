// SPDX-License-Identifier: GPL-2.0
/*
 * A fake DCB driver, for machines without one: gives interface `netdev` of the loading process's network namespace a
 * DCB application table (`dcb app add dev ...`) and PFC state (`dcb pfc set dev ...`) until unload; the interface cannot
 * be removed before. No virtual interface supports DCB by itself. The table is the kernel's own. An adapter would also
 * program its classifier and obey pauses; here is neither.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>

MODULE_DESCRIPTION("A fake DCB driver, for tests");
MODULE_LICENSE("GPL");

static char *netdev = "";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "interface that takes DCB application tables");

static struct ieee_pfc pfc = { .pfc_cap = 8 };	/* RTNL */

static int fake_getpfc(struct net_device *dev, struct ieee_pfc *out)
{
	*out = pfc;
	return 0;
}

static int fake_setpfc(struct net_device *dev, struct ieee_pfc *in)
{
	pfc.pfc_en = in->pfc_en;
	return 0;
}

/* The core keeps the application table itself. */
static const struct dcbnl_rtnl_ops ops = { .ieee_getpfc = fake_getpfc, .ieee_setpfc = fake_setpfc };
static struct net_device *given;
static netdevice_tracker tracker;

static int __init fake_dcb_init(void)
{
	int err = -ENODEV;

	rtnl_lock();
	given = __dev_get_by_name(current->nsproxy->net_ns, netdev);
	if (given && !given->dcbnl_ops) {
		netdev_hold(given, &tracker, GFP_KERNEL);
		given->dcbnl_ops = &ops;
		err = 0;
	}
	rtnl_unlock();
	return err;
}

static void __exit fake_dcb_exit(void)
{
	rtnl_lock();
	given->dcbnl_ops = NULL;
	netdev_put(given, &tracker);
	rtnl_unlock();
}

module_init(fake_dcb_init);
module_exit(fake_dcb_exit);
