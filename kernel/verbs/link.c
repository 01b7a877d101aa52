// SPDX-License-Identifier: GPL-2.0
/*
 * `rdma link add NAME type TYPE netdev IF`: type roan always, and type rxe while the parameter answer_rxe is set, so
 * that scripts written for rdma_rxe run unmodified.
 *
 * A link type belongs to one module: rdma_link_register() warns if it is registered already, and the core looks for a
 * module only if it is not. So answer_rxe cannot be set while rdma_rxe is loaded, and rdma_rxe cannot be loaded while
 * answer_rxe is set: both fail with EBUSY and a line in the log.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <rdma/rdma_netlink.h>
#include "verbs/verbs.h"

#define RXE	"rdma_rxe"

static struct rdma_link_ops roan_link_ops = { .type = "roan", .newlink = roan_device_add };
static struct rdma_link_ops rxe_link_ops = { .type = "rxe", .newlink = roan_device_add };
MODULE_ALIAS_RDMA_LINK("roan");

/* Protects the variables below. Taken inside the core's lock of module notifiers, outside that of link types. */
static DEFINE_MUTEX(answer_lock);
static bool answer_rxe;		/* the parameter */
static bool answering;		/* rxe_link_ops is registered; equals answer_rxe between roan_link_init() and _exit() */
static bool link_ready;		/* roan_link_init() has run: changes of the parameter take effect at once */
static bool rxe_announced;	/* rdma_rxe was announced since roan_link_init(), and has not gone */

/*
 * The core has no exported list of modules or link types, but each loaded module has a kobject in the kset of our own.
 * Not found is a module in the few instructions between its announcement and its kobject, if our notifier was not yet
 * registered at the announcement: the administrator loaded both modules at the same instant. If roan is built in, its
 * notifier is registered before any module is loaded.
 */
static bool rxe_has_kobject(void)
{
#ifdef MODULE
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *kobj = modules ? kset_find_obj(modules, RXE) : NULL;

	kobject_put(kobj);
	return kobj;
#else
	return false;
#endif
}

static bool rxe_loaded(void)
{
	return IS_BUILTIN(CONFIG_RDMA_RXE) || rxe_announced || rxe_has_kobject();
}

static int set_answering(bool on)
{
	lockdep_assert_held(&answer_lock);
	if (on == answering)
		return 0;
	if (on && rxe_loaded()) {
		pr_err("roan: answer_rxe: %s is loaded and has link type rxe: unload it first (rmmod %s)\n",
		       RXE, RXE);
		return -EBUSY;
	}
	if (on)
		rdma_link_register(&rxe_link_ops);
	else
		rdma_link_unregister(&rxe_link_ops);	/* waits for a running `rdma link add` */
	answering = on;
	return 0;
}

static int answer_rxe_set(const char *val, const struct kernel_param *kp)
{
	bool on;
	int err = kstrtobool(val, &on);

	if (err)
		return err;
	mutex_lock(&answer_lock);
	if (link_ready)
		err = set_answering(on);
	if (!err)
		answer_rxe = on;
	mutex_unlock(&answer_lock);
	return err;
}

static const struct kernel_param_ops answer_rxe_ops = { .set = answer_rxe_set, .get = param_get_bool };
module_param_cb(answer_rxe, &answer_rxe_ops, &answer_rxe, 0644);
MODULE_PARM_DESC(answer_rxe, "`rdma link add ... type rxe` makes a roan device, and rdma_rxe is not loaded (default: N)");

#ifdef CONFIG_MODULES
static int module_event(struct notifier_block *nb, unsigned long state, void *data)
{
	const struct module *mod = data;
	int err = 0;

	if (strcmp(mod->name, RXE))
		return NOTIFY_DONE;
	mutex_lock(&answer_lock);
	if (state == MODULE_STATE_COMING && answering) {
		pr_err("roan: %s is not loaded, as roan has link type rxe: write N to /sys/module/roan/parameters/answer_rxe first\n",
		       RXE);
		err = -EBUSY;
	} else {
		rxe_announced = state != MODULE_STATE_GOING;
	}
	mutex_unlock(&answer_lock);
	return notifier_from_errno(err);
}
#else
#define module_event	NULL	/* never registered */
#endif

static struct notifier_block module_notifier = { .notifier_call = module_event };

int roan_link_init(void)
{
	int err = register_module_notifier(&module_notifier);	/* before set_answering() looks for the module */

	if (err)
		return err;
	mutex_lock(&answer_lock);
	err = set_answering(answer_rxe);
	link_ready = !err;
	mutex_unlock(&answer_lock);
	if (err) {
		unregister_module_notifier(&module_notifier);
		return err;
	}
	rdma_link_register(&roan_link_ops);
	return 0;
}

void roan_link_exit(void)
{
	rdma_link_unregister(&roan_link_ops);
	mutex_lock(&answer_lock);
	link_ready = false;
	set_answering(false);
	mutex_unlock(&answer_lock);
	unregister_module_notifier(&module_notifier);
}
