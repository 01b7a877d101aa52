// SPDX-License-Identifier: GPL-2.0
/* Module init and exit. Starts the parts of the driver in order, and stops them in the reverse order. */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include "base/base.h"
#include "flow/flow.h"
#include "mem/mem.h"
#include "net/net.h"
#include "rx/rx.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

static int net_init(void)
{
	return roan_net_init(roan_recv);
}

/* Started from the first to the last, stopped from the last to the first. */
static const struct {
	int (*init)(void);	/* or NULL */
	void (*exit)(void);
} parts[] = {
	{ roan_crc_init,		roan_crc_exit },
	{ NULL,				rcu_barrier },	/* RCU callbacks must not run in freed module text */
	{ NULL,				roan_user_mem_exit },
	{ roan_deferred_init,		roan_deferred_exit },
	{ roan_odp_init,		roan_odp_exit },
	{ roan_flush_worker_init,	roan_flush_worker_exit },
	{ roan_qp_init,			roan_qp_exit },
	{ roan_tx_inflight_init,	roan_tx_inflight_exit },
	{ roan_qos_init,		roan_qos_exit },
	{ roan_dmabuf_init,		roan_dmabuf_exit },
	{ roan_dm_bar_init,		roan_dm_bar_exit },
	{ NULL,				roan_tx_page_pool_exit },
	{ net_init,			roan_net_exit },
	{ roan_parent_init,		roan_parent_exit },
	{ roan_client_init,		roan_client_exit },	/* once stopped, no device and no packet is left */
	{ roan_netdev_notifier_init,	roan_netdev_notifier_exit },	/* once stopped, no unregistration is queued */
	{ roan_gid_notifiers_init,	roan_gid_notifiers_exit },
	{ roan_link_init,		roan_link_exit },		/* once stopped, no device is added */
};

static void parts_stop(size_t n)
{
	while (n--)
		parts[n].exit();
}

static int __init roan_init(void)
{
	size_t n;
	int err;

	for (n = 0; n < ARRAY_SIZE(parts); n++) {
		err = parts[n].init ? parts[n].init() : 0;
		if (err) {
			parts_stop(n);
			return err;
		}
	}
	return 0;
}

static void __exit roan_exit(void)
{
	parts_stop(ARRAY_SIZE(parts));
}

module_init(roan_init);
module_exit(roan_exit);

MODULE_DESCRIPTION("RoCE v2 over any network device");
MODULE_LICENSE("GPL");
#ifdef ROAN_VERSION
MODULE_VERSION(ROAN_VERSION);
#endif
