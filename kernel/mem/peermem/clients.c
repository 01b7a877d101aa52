// SPDX-License-Identifier: GPL-2.0
/*
 * Clients of the peer-memory interface: registration, unregistration, and /sys/kernel/mm/memory_peers. Does not
 * handle their memory: mr.c does.
 *
 * Other RDMA stacks export the same two symbols. So they are in a module of their own, which need not be loaded.
 */
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include "mem/peermem/internal.h"

DEFINE_MUTEX(peermem_lock);	/* the list of clients, and each client's list of regions */
static LIST_HEAD(clients);
static struct kobject *peers_dir;

/* ---- references ---- */

void peermem_client_put(struct peermem_client *client)
{
	roan_put(&client->refs, &client->released);
}

static struct peermem_client *client_get_at(struct list_head *at)
{
	struct peermem_client *client = NULL;

	if (at != &clients) {
		client = list_entry(at, struct peermem_client, link);
		refcount_inc(&client->refs);
	}
	return client;
}

struct peermem_client *peermem_client_first(void)
{
	struct peermem_client *client;

	mutex_lock(&peermem_lock);
	client = client_get_at(clients.next);
	mutex_unlock(&peermem_lock);
	return client;
}

struct peermem_client *peermem_client_next(struct peermem_client *client)
{
	struct peermem_client *next;

	mutex_lock(&peermem_lock);
	/* A client that was unregistered meanwhile is no longer in the list, so it has no successor. */
	next = list_empty(&client->link) ? NULL : client_get_at(client->link.next);
	mutex_unlock(&peermem_lock);
	peermem_client_put(client);
	return next;
}

/* ---- sysfs ---- */

static ssize_t version_show(struct kobject *dir, struct kobj_attribute *attr, char *buf)
{
	const struct peermem_client *client = container_of(attr, struct peermem_client, version);

	return sysfs_emit(buf, "%.*s\n", IB_PEER_MEMORY_VER_MAX - 1, client->ops->version);
}

static int client_show(struct peermem_client *client)
{
	char name[IB_PEER_MEMORY_NAME_MAX];
	int err;

	strscpy(name, client->ops->name, sizeof(name));
	client->dir = kobject_create_and_add(name, peers_dir);
	if (!client->dir)
		return -ENOMEM;
	sysfs_attr_init(&client->version.attr);
	client->version.attr.name = "version";
	client->version.attr.mode = 0444;
	client->version.show = version_show;
	err = sysfs_create_file(client->dir, &client->version.attr);
	if (err)
		kobject_put(client->dir);
	return err;
}

/* mm_kobj is not exported to modules, so get the kobject from its kernfs node. */
static struct kobject *create_peers_dir(void)
{
	struct kernfs_node *mm = kernfs_find_and_get(kernel_kobj->sd, "mm");
	struct kobject *dir;

	if (!mm)
		return NULL;
	dir = kobject_create_and_add("memory_peers", mm->priv);
	kernfs_put(mm);
	return dir;
}

/* ---- registration ---- */

static u32 client_flags(const struct peer_memory_client *ops)
{
	const struct peer_memory_client_ex *ex = container_of(ops, struct peer_memory_client_ex, client);

	if (ops->version[IB_PEER_MEMORY_VER_MAX - 1] != 1 ||
	    ex->ex_size < offsetofend(struct peer_memory_client_ex, flags))
		return 0;
	return ex->flags;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *ops, invalidate_peer_memory *invalidate)
{
	struct peermem_client *client;

	if (!ops->acquire || !ops->get_pages || !ops->dma_map || !ops->dma_unmap || !ops->put_pages ||
	    !ops->get_page_size || !ops->release)
		return NULL;
	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return NULL;
	client->ops = ops;
	client->unmaps = client_flags(ops) & PEER_MEM_INVALIDATE_UNMAPS;
	client->no_device = client_flags(ops) & PEER_MEM_NO_DEVICE;
	INIT_LIST_HEAD(&client->regions);
	refcount_set(&client->refs, 1);
	init_completion(&client->released);
	if (client_show(client)) {
		kfree(client);
		return NULL;
	}
	if (invalidate)
		*invalidate = peermem_invalidate;
	mutex_lock(&peermem_lock);
	list_add_tail(&client->link, &clients);
	mutex_unlock(&peermem_lock);
	return client;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

static struct roan_peermem_mr *client_pop_mr(struct peermem_client *client)
{
	struct roan_peermem_mr *mem;

	mutex_lock(&peermem_lock);
	mem = list_first_entry_or_null(&client->regions, struct roan_peermem_mr, link);
	if (mem) {
		list_del_init(&mem->link);
		refcount_inc(&mem->refs);
	}
	mutex_unlock(&peermem_lock);
	return mem;
}

/* Revokes all regions of the client's memory. When this returns, the client's code may be unloaded. */
void ib_unregister_peer_memory_client(void *reg_handle)
{
	struct peermem_client *client = reg_handle;
	struct roan_peermem_mr *mem;

	mutex_lock(&peermem_lock);
	list_del_init(&client->link);	/* no new acquire(), except by threads that have a reference already */
	mutex_unlock(&peermem_lock);
	while ((mem = client_pop_mr(client))) {
		peermem_reclaim(mem);
		peermem_put(mem);
	}
	peermem_client_put(client);
	wait_for_completion(&client->released);
	sysfs_remove_file(client->dir, &client->version.attr);
	kobject_put(client->dir);
	kfree(client);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

static int __init peermem_init(void)
{
	int err;

	peers_dir = create_peers_dir();
	if (!peers_dir)
		return -ENOMEM;
	err = roan_peermem_ops_set(&peermem_ops);
	if (err)
		kobject_put(peers_dir);
	return err;
}

/* No client and no region is left: clients pin the module by its symbols, regions by roan.ko's module reference. */
static void __exit peermem_exit(void)
{
	roan_peermem_ops_set(NULL);
	kobject_put(peers_dir);
}

module_init(peermem_init);
module_exit(peermem_exit);

MODULE_DESCRIPTION("Peer-memory clients of roan");
MODULE_LICENSE("GPL");
#ifdef ROAN_VERSION
MODULE_VERSION(ROAN_VERSION);
#endif
