// SPDX-License-Identifier: GPL-2.0
/*
 * Stops ibv_modify_qp() of an RC or UC QP to RTR between the creation of its address vector and the change of its
 * state, in place of the check of the route's MTU, until Y is written to `go`. `stopped` is Y once a program is there.
 * Needs an ftrace that saves all registers (x86).
 */
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/module.h>

MODULE_DESCRIPTION("Stops ibv_modify_qp() in roan, for tests");
MODULE_LICENSE("GPL");

static bool stopped;
module_param(stopped, bool, 0444);
MODULE_PARM_DESC(stopped, "a program has been stopped");

static bool go;
module_param(go, bool, 0644);
MODULE_PARM_DESC(go, "programs go on");

static int wait_for_go(const void *qp, const void *av, int path_mtu)
{
	WRITE_ONCE(stopped, true);
	while (!READ_ONCE(go))
		msleep(20);
	return 0;
}

static void notrace replace(unsigned long ip, unsigned long parent, struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	instruction_pointer_set(ftrace_get_regs(fregs), (unsigned long)wait_for_go);
}

static struct ftrace_ops ops = { .func = replace, .flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY };
static unsigned char function[] = "roan_qp_check_route_mtu";

static int __init pause_connect_init(void)
{
	return ftrace_set_filter(&ops, function, sizeof(function) - 1, 1) ?: register_ftrace_function(&ops);
}

static void __exit pause_connect_exit(void)
{
	unregister_ftrace_function(&ops);
}

module_init(pause_connect_init);
module_exit(pause_connect_exit);
