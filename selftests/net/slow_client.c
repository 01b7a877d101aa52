// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel consumer that takes long to leave a device: its remove() sleeps for `seconds`, as that of NVMe-oF may, which
 * ends its connections. A consumer that is loaded after roan leaves before programs lose their objects.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

MODULE_DESCRIPTION("A consumer of RDMA devices that takes long to leave, for tests");
MODULE_LICENSE("GPL");

static unsigned int seconds = 5;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long it takes");

static void slow_remove(struct ib_device *dev, void *data)
{
	ssleep(seconds);
}

static struct ib_client client = { .name = "roan_slow_client", .remove = slow_remove };

static int __init slow_client_init(void)
{
	return ib_register_client(&client);
}

static void __exit slow_client_exit(void)
{
	ib_unregister_client(&client);
}

module_init(slow_client_init);
module_exit(slow_client_exit);
