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

static int __init roan_init(void)
{
	int err;

	err = roan_crc_init();
	if (err)
		return err;
	roan_deferred_init();
	err = roan_odp_init();
	if (err)
		goto err_deferred;
	err = roan_flush_worker_init();
	if (err)
		goto err_odp;
	roan_qp_init();
	err = roan_tx_inflight_init();
	if (err)
		goto err_qp;
	err = roan_qos_init();
	if (err)
		goto err_tx_inflight;
	err = roan_dmabuf_init();
	if (err)
		goto err_qos;
	err = roan_dm_bar_init();
	if (err)
		goto err_dmabuf;
	err = roan_net_init(roan_recv);
	if (err)
		goto err_dm_bar;
	err = roan_parent_init();
	if (err)
		goto err_net;
	err = roan_device_init();
	if (err)
		goto err_parent;
	return 0;

err_parent:
	roan_parent_exit();
err_net:
	roan_net_exit();
	roan_tx_page_pool_exit();
err_dm_bar:
	roan_dm_bar_exit();
err_dmabuf:
	roan_dmabuf_exit();
err_qos:
	roan_qos_exit();
err_tx_inflight:
	roan_tx_inflight_exit();
err_qp:
	roan_qp_exit();
	roan_flush_worker_exit();
err_odp:
	roan_odp_exit();
err_deferred:
	roan_deferred_exit();
	roan_crc_exit();
	return err;
}

static void __exit roan_exit(void)
{
	roan_device_exit();	/* from here on there is no device, no user context and no packet */
	roan_parent_exit();
	roan_net_exit();
	roan_tx_page_pool_exit();
	roan_dm_bar_exit();
	roan_dmabuf_exit();
	roan_qos_exit();
	roan_tx_inflight_exit();
	roan_qp_exit();
	roan_flush_worker_exit();
	roan_odp_exit();
	roan_deferred_exit();
	roan_user_mem_exit();
	rcu_barrier();		/* RCU callbacks must not run in freed module text */
	roan_crc_exit();
}

module_init(roan_init);
module_exit(roan_exit);

MODULE_DESCRIPTION("RoCE v2 over any network device");
MODULE_LICENSE("GPL");
#ifdef ROAN_VERSION
MODULE_VERSION(ROAN_VERSION);
#endif
