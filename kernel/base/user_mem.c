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

#define CHECK_EVERY	((unsigned long)HZ / 10)
#define CHECK_SHARE	50	/* looking takes at most this part of a CPU, whatever is retained */
#define PIECE_ORDER	4	/* pages of a mapping are allocated 16 at a time where memory is not fragmented */

static LIST_HEAD(retained);		/* struct roan_mmap.retained_link */
static DEFINE_MUTEX(retained_lock);

static void user_mem_free(struct roan_mmap *map)
{
	if (map->used)
		atomic64_sub((u64)map->n_pages << PAGE_SHIFT, map->used);
	vfree(map->buf);
	roan_mem_uncharge(&map->charge);
	kfree(map);
}

/*
 * A page has a reference of @map->buf, one for each mapping, and one for each direct access to a mapping. The search
 * starts at the page that ended the last one, as a program may keep any page mapped for ever.
 */
static bool user_mem_mapped(struct roan_mmap *map)
{
	u32 i;

	for (i = 0; i < map->n_pages; i++) {
		u32 at = (map->seen + i) % map->n_pages;

		if (page_count(map->pages[at]) > 1) {
			map->seen = at;
			return true;
		}
	}
	return false;
}

bool roan_user_mem_free_unmapped(void)
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
	u64 began = ktime_get_ns();

	if (roan_user_mem_free_unmapped())
		schedule_delayed_work(to_delayed_work(work),
				      max(CHECK_EVERY, nsecs_to_jiffies(CHECK_SHARE * (ktime_get_ns() - began))));
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

void roan_user_mem_forget(atomic64_t *used)
{
	struct roan_mmap *map;

	mutex_lock(&retained_lock);
	list_for_each_entry(map, &retained, retained_link)
		if (map->used == used)
			map->used = NULL;
	mutex_unlock(&retained_lock);
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
	roan_user_mem_free_unmapped();
	return roan_mem_charge(&map->charge, map->n_pages);
}

/* Allocates up to @max pages in one piece, as large as memory has one. Returns their number, 0: there is no memory. */
static u32 user_mem_alloc_piece(struct page **pages, u32 max)
{
	u32 order, i;

	for (order = min_t(u32, ilog2(max), PIECE_ORDER);; order--) {
		struct page *page = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN |
						(order ? __GFP_NORETRY : 0), order);

		if (page) {
			split_page(page, order);
			for (i = 0; i < 1u << order; i++)
				pages[i] = page + i;
			return i;
		}
		if (!order)
			return 0;
	}
}

static int user_mem_alloc_pages(struct roan_mmap *map)
{
	u32 i, n;

	map->pages = kvcalloc(map->n_pages, sizeof(*map->pages), GFP_KERNEL_ACCOUNT);
	if (!map->pages)
		return -ENOMEM;
	for (i = 0; i < map->n_pages; i += n) {
		n = fatal_signal_pending(current) ? 0 : user_mem_alloc_piece(&map->pages[i], map->n_pages - i);
		if (!n)
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

	/* The OOM killer does not attribute pages that are not mapped. So refuse more than all RAM at once. */
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
