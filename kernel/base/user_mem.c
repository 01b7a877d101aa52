// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a program maps: allocation, charge, mapping, and its end. Does not know what the memory is for.
 *
 * A mapping holds references to its pages, but not to the mmap entry: the RDMA core offers that for contiguous memory
 * only, and operations of this module's own on the VMA would keep the module loaded. So a program can keep the pages of
 * a destroyed ring mapped. Such memory is retained: it stays allocated and charged until none of its pages is mapped.
 * A worker looks every CHECK_EVERY, and so does an allocation that would exceed the limit.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include "base/user_mem.h"

#define CHECK_EVERY	(HZ / 10)

static LIST_HEAD(retained);		/* struct roan_mmap.retained_link */
static DEFINE_MUTEX(retained_lock);

static void user_mem_free(struct roan_mmap *map)
{
	vfree(map->buf);
	roan_mem_uncharge(&map->charge);
	kfree(map);
}

/* A page has a reference of @map->buf, one for each mapping, and one for each direct access to a mapping. */
static bool user_mem_mapped(const struct roan_mmap *map)
{
	u32 i;

	for (i = 0; i < map->n_pages; i++)
		if (page_count(map->pages[i]) > 1)
			return true;
	return false;
}

/* Frees the retained memory that is no longer mapped. True: some is still mapped. */
static bool free_unmapped(void)
{
	struct roan_mmap *map, *next;
	bool left;

	mutex_lock(&retained_lock);
	list_for_each_entry_safe(map, next, &retained, retained_link) {
		cond_resched();
		if (user_mem_mapped(map))
			continue;
		list_del(&map->retained_link);
		user_mem_free(map);
	}
	left = !list_empty(&retained);
	mutex_unlock(&retained_lock);
	return left;
}

static void check_retained_work(struct work_struct *work)
{
	if (free_unmapped())
		schedule_delayed_work(to_delayed_work(work), CHECK_EVERY);
}

static DECLARE_DELAYED_WORK(check_retained, check_retained_work);

void roan_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct roan_mmap *map = container_of(entry, struct roan_mmap, entry);

	if (!user_mem_mapped(map)) {
		user_mem_free(map);
		return;
	}
	mutex_lock(&retained_lock);
	list_add_tail(&map->retained_link, &retained);
	mutex_unlock(&retained_lock);
	schedule_delayed_work(&check_retained, CHECK_EVERY);
}

/* Pages that are still mapped live until they are unmapped; their charge ends here. */
void roan_user_mem_exit(void)
{
	struct roan_mmap *map, *next;

	cancel_delayed_work_sync(&check_retained);
	list_for_each_entry_safe(map, next, &retained, retained_link)
		user_mem_free(map);
}

static int user_mem_charge(struct roan_mmap *map)
{
	int err = roan_mem_charge(&map->charge, map->n_pages);

	if (err != -ENOMEM)
		return err;
	free_unmapped();
	return roan_mem_charge(&map->charge, map->n_pages);
}

static int user_mem_alloc_pages(struct roan_mmap *map)
{
	u32 i;

	map->pages = kvcalloc(map->n_pages, sizeof(*map->pages), GFP_KERNEL_ACCOUNT);
	if (!map->pages)
		return -ENOMEM;
	for (i = 0; i < map->n_pages; i++) {
		map->pages[i] = fatal_signal_pending(current) ? NULL : alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!map->pages[i])
			goto err_free;
	}
	/* On success vfree(map->buf) frees the pages and the array. */
	map->buf = vmap(map->pages, map->n_pages, VM_USERMAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (map->buf)
		return 0;
err_free:
	while (i--)
		__free_page(map->pages[i]);
	kvfree(map->pages);
	return -ENOMEM;
}

struct roan_mmap *roan_user_mem_alloc(size_t size, struct ib_ucontext *uctx)
{
	struct roan_mmap *map;
	int err;

	/* The OOM killer does not attribute pages that are not mapped. So refuse more than the machine's RAM at once. */
	if (size >> PAGE_SHIFT > totalram_pages())
		return ERR_PTR(-ENOMEM);
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->n_pages = size >> PAGE_SHIFT;
	err = user_mem_charge(map);
	if (err)
		goto err_free;
	err = user_mem_alloc_pages(map);
	if (err)
		goto err_uncharge;
	err = rdma_user_mmap_entry_insert(uctx, &map->entry, size);
	if (!err)
		return map;

	vfree(map->buf);
	err = -ENOMEM;
err_uncharge:
	roan_mem_uncharge(&map->charge);
err_free:
	kfree(map);
	return ERR_PTR(err);
}

int roan_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	int err;

	entry = rdma_user_mmap_entry_get(uctx, vma);	/* checks VM_SHARED and the length */
	if (!entry)
		return -EINVAL;
	err = remap_vmalloc_range(vma, container_of(entry, struct roan_mmap, entry)->buf, 0);
	rdma_user_mmap_entry_put(entry);
	return err;
}
