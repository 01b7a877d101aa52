// SPDX-License-Identifier: GPL-2.0
/*
 * The parent of an ib_device in sysfs: an auxiliary device roan.rdma.N below the netdev's own bus device, or, for a
 * virtual netdev, below /sys/devices/virtual/roan/netdev. Libraries read it through /sys/class/infiniband/NAME/device:
 * whether it exists, its place in the PCI tree, numa_node, local_cpus, and net/ with the netdev.
 *
 *   /sys/devices/pci0000:00/0000:00:03.0/roan.rdma.0/infiniband/roan0	netdev of a PCI adapter
 *   /sys/devices/virtual/roan/netdev/roan.rdma.1/infiniband/roan1	veth, bridge, bond ...
 *
 * No driver binds to it. A child of the PCI device itself would make PCI providers of libibverbs match, and udev rename
 * the ib_device. Without CONFIG_AUXILIARY_BUS it is a device of the same name and place on no bus.
 *
 * Lifetime: it is deleted after the ib_device (dealloc_driver()) and before the netdev is released. Unregistering the
 * netdev waits for that release, and drivers unregister their netdevs before their bus device is deleted, so a parent
 * never outlives its own.
 */
#include <linux/auxiliary_bus.h>
#include <linux/idr.h>
#include <linux/kobject.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/topology.h>
#include <linux/wait_bit.h>
#include "verbs/verbs.h"

struct roan_parent {
	/*
	 * net/smc takes the parent of any ib_device for the dev of a struct pci_dev and reads vendor and device, which
	 * lie before it: here they are 0.
	 */
	u8 as_pci_dev[offsetof(struct pci_dev, dev)];
	struct auxiliary_device aux;
	struct kobject *net;		/* the folder net/; NULL if the netdev is not there. RTNL */
	char net_name[IFNAMSIZ];	/* the name in it */
};

static_assert(offsetof(struct roan_parent, aux.dev) == offsetof(struct pci_dev, dev));

static struct class parent_class = { .name = "roan" };
static struct device *virtual_root;	/* above the parents of virtual netdevs */
static DEFINE_IDA(parent_ids);
static atomic_t parent_objects;		/* not yet released; their release() is in this module */

static struct roan_parent *to_parent(struct device *device)
{
	return container_of(device, struct roan_parent, aux.dev);
}

static void parent_object_released(void)
{
	rcu_read_lock();	/* roan_parent_exit() waits until this has returned */
	if (atomic_dec_and_test(&parent_objects))
		wake_up_var(&parent_objects);
	rcu_read_unlock();
}

/* ---- attributes ---- */

/* Read from the bus device, because its NUMA node can be overridden in sysfs. */
static int parent_node(const struct device *device)
{
	return dev_to_node(device->parent);
}

static const struct cpumask *parent_cpus(const struct device *device)
{
	return parent_node(device) == NUMA_NO_NODE ? cpu_online_mask : cpumask_of_node(parent_node(device));
}

static ssize_t numa_node_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", parent_node(device));
}
static DEVICE_ATTR_RO(numa_node);

static ssize_t local_cpus_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%*pb\n", cpumask_pr_args(parent_cpus(device)));
}
static DEVICE_ATTR_RO(local_cpus);

static ssize_t local_cpulist_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%*pbl\n", cpumask_pr_args(parent_cpus(device)));
}
static DEVICE_ATTR_RO(local_cpulist);

static struct attribute *parent_attrs[] = {
	&dev_attr_numa_node.attr,
	&dev_attr_local_cpus.attr,
	&dev_attr_local_cpulist.attr,
	NULL
};
ATTRIBUTE_GROUPS(parent);

/* ---- net/: as below a PCI device, its entry is visible in the namespace of the netdev only ---- */

static const struct kobj_ns_type_operations *net_folder_ns_type(ROAN_CONST_KOBJECT *kobj)
{
	return &net_ns_type_operations;
}

static void net_folder_release(struct kobject *kobj)
{
	kfree(kobj);
	parent_object_released();
}

static const struct kobj_type net_folder_type = {
	.release	= net_folder_release,
	.sysfs_ops	= &kobj_sysfs_ops,
	.child_ns_type	= net_folder_ns_type,
};

void roan_parent_hide_netdev(struct roan_dev *dev)
{
	struct roan_parent *parent = dev->parent;

	ASSERT_RTNL();
	if (!parent->net)
		return;
	kobject_del(parent->net);
	kobject_put(parent->net);
	parent->net = NULL;
}

static int parent_link_netdev(struct roan_parent *parent, struct net_device *ndev)
{
	struct kobject *net = kzalloc(sizeof(*net), GFP_KERNEL);
	int err;

	if (!net)
		return -ENOMEM;
	atomic_inc(&parent_objects);
	err = kobject_init_and_add(net, &net_folder_type, &parent->aux.dev.kobj, "net");
	if (!err)
		err = sysfs_create_link(net, &ndev->dev.kobj, ndev->name);
	if (err) {
		kobject_put(net);
		return err;
	}
	parent->net = net;
	strscpy(parent->net_name, ndev->name, sizeof(parent->net_name));
	return 0;
}

void roan_parent_show_netdev(struct roan_dev *dev)
{
	struct roan_parent *parent = dev->parent;
	int err;

	ASSERT_RTNL();
	if (dev->ndev->reg_state != NETREG_REGISTERED) {
		roan_parent_hide_netdev(dev);
		return;
	}
	if (parent->net && !strcmp(parent->net_name, dev->ndev->name))
		return;
	roan_parent_hide_netdev(dev);
	err = parent_link_netdev(parent, dev->ndev);
	if (err)
		pr_warn_ratelimited("roan: %s: no link to it in sysfs (error %d): programs may not find its address\n",
				    netdev_name(dev->ndev), err);
}

/* ---- creation and removal ---- */

/* On s390 net/smc also reads the PCI function, through the bus: it is 0, too. */
static void parent_set_pci_bus(struct roan_parent *parent)
{
#ifdef CONFIG_S390
	static struct zpci_dev function;
	static struct zpci_bus bus = { .function = { &function } };

	to_pci_dev(&parent->aux.dev)->sysdata = &bus;
#endif
}

static void parent_release(struct device *device)
{
	kfree(to_parent(device));
	parent_object_released();
}

static int parent_init(struct auxiliary_device *aux)
{
	if (IS_ENABLED(CONFIG_AUXILIARY_BUS))
		return auxiliary_device_init(aux);
	device_initialize(&aux->dev);
	return 0;
}

static int parent_register(struct auxiliary_device *aux)
{
	if (IS_ENABLED(CONFIG_AUXILIARY_BUS))
		return auxiliary_device_add(aux);
	return dev_set_name(&aux->dev, "%s.%s.%u", KBUILD_MODNAME, aux->name, aux->id) ?: device_add(&aux->dev);
}

/* The netdev's PCI, virtio, USB or platform device. The parent of a wireless netdev is its wiphy, on no bus. */
static struct device *parent_bus_device(const struct net_device *ndev)
{
	struct device *device = ndev->dev.parent;

	while (device && !device->bus)
		device = device->parent;
	return device ?: virtual_root;
}

int roan_parent_add(struct roan_dev *dev)
{
	struct roan_parent *parent = kzalloc(sizeof(*parent), GFP_KERNEL);
	struct auxiliary_device *aux;
	int err;

	if (!parent)
		return -ENOMEM;
	aux = &parent->aux;
	err = ida_alloc(&parent_ids, GFP_KERNEL);
	if (err < 0)
		goto err_free;
	parent_set_pci_bus(parent);
	aux->id = err;
	aux->name = "rdma";
	aux->dev.parent = parent_bus_device(dev->ndev);
	aux->dev.groups = parent_groups;
	aux->dev.release = parent_release;
	err = parent_init(aux);
	if (err)
		goto err_ida;
	atomic_inc(&parent_objects);
	err = parent_register(aux);
	if (err)
		goto err_uninit;
	dev->parent = parent;
	dev->ib.dev.parent = &aux->dev;
	rtnl_lock();
	roan_parent_show_netdev(dev);
	rtnl_unlock();
	return 0;

err_uninit:
	ida_free(&parent_ids, aux->id);
	auxiliary_device_uninit(aux);
	return err;
err_ida:
	ida_free(&parent_ids, aux->id);
err_free:
	kfree(parent);
	return err;
}

void roan_parent_del(struct roan_dev *dev)
{
	struct auxiliary_device *aux;

	if (!dev->parent)
		return;
	aux = &dev->parent->aux;
	rtnl_lock();
	roan_parent_hide_netdev(dev);
	rtnl_unlock();
	auxiliary_device_delete(aux);
	ida_free(&parent_ids, aux->id);
	auxiliary_device_uninit(aux);
	dev->parent = NULL;
}

int roan_parent_init(void)
{
	int err = class_register(&parent_class);

	if (err)
		return err;
	virtual_root = device_create(&parent_class, NULL, 0, NULL, "netdev");
	if (!IS_ERR(virtual_root))
		return 0;
	class_unregister(&parent_class);
	return PTR_ERR(virtual_root);
}

/* Waits for consumers that still hold a parent, such as an iSER session. No device is left. */
void roan_parent_exit(void)
{
	while (!wait_var_event_timeout(&parent_objects, !atomic_read(&parent_objects), 10 * HZ))
		pr_warn("roan: unloading waits for a consumer that holds a device's parent: log out iSER sessions\n");
	synchronize_rcu();
	device_unregister(virtual_root);
	class_unregister(&parent_class);
}
