// SPDX-License-Identifier: GPL-2.0
/*
 * The fake GPU as a client of the peer-memory interface. A program's mapping of /dev/roan_gpu is its memory, in pages
 * of 64 KiB that are in the BAR in reverse order. munmap() invalidates the memory, also if it is registered.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "fake_gpu_priv.h"
#include "mem/peermem/client_api.h"

struct peer_alloc {
	struct list_head link;		/* allocs */
	struct list_head contexts;
	struct mm_struct *mm;
	unsigned long start;
	u64 size;
	u32 chunk;
	u8 __iomem *io;			/* all of it, in the order of the BAR */
};

struct peer_context {
	struct list_head link;		/* alloc->contexts, while it has pages */
	struct mm_struct *mm;
	unsigned long addr;
	u64 size;
	u64 core_context;
	struct sg_table sgt;
};

static bool unmaps;
module_param(unmaps, bool, 0644);
MODULE_PARM_DESC(unmaps, "the peer client itself unmaps memory that it invalidates; read when it registers");
static bool unmapping;

static bool pci_only;
module_param(pci_only, bool, 0644);
MODULE_PARM_DESC(pci_only, "the peer client maps for PCI devices only, like NVIDIA's; read when it registers");

static bool late;
module_param(late, bool, 0644);
MODULE_PARM_DESC(late, "get_pages() invalidates the region before, which may have been released");
static u64 newest;			/* core_context; lock */

static uint put_ms;
module_param(put_ms, uint, 0644);
MODULE_PARM_DESC(put_ms, "duration of put_pages() of the peer client");

static uint map_ms;
module_param(map_ms, uint, 0644);
MODULE_PARM_DESC(map_ms, "duration of get_page_size() of the peer client, which is called after dma_map()");

static uint early;
module_param(early, uint, 0444);
MODULE_PARM_DESC(early, "invalidations that returned during a registration or, unless the client unmaps, put_pages()");
static atomic_t in_use;			/* threads in functions that such an invalidation has to wait for */

static LIST_HEAD(allocs);
static DEFINE_MUTEX(lock);		/* all lists; not held over a call into the core */
static DEFINE_MUTEX(unmaps_lock);	/* held over an invalidation, if the client unmaps; taken by put_pages() */
static void *registered;
static invalidate_peer_memory invalidate;

static struct peer_alloc *find(struct mm_struct *mm, unsigned long addr, u64 size)
{
	struct peer_alloc *alloc;

	list_for_each_entry(alloc, &allocs, link)
		if (alloc->mm == mm && addr >= alloc->start && size <= alloc->size &&
		    addr - alloc->start <= alloc->size - size)
			return alloc;
	return NULL;
}

/* Returns where byte @off of the program's range is in @alloc->io. */
static u8 __iomem *where(struct peer_alloc *alloc, u64 off)
{
	u64 page = off / FAKE_CHUNK, last = alloc->size / FAKE_CHUNK - 1;

	return alloc->io + (last - page) * FAKE_CHUNK + off % FAKE_CHUNK;
}

/* ---- the client's side of the interface ---- */

static int acquire(unsigned long addr, size_t size, void *private_data, char *name, void **context)
{
	struct peer_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	bool ours;

	if (!ctx)
		return 0;
	mutex_lock(&lock);
	ours = find(current->mm, addr, size);
	mutex_unlock(&lock);
	if (!ours) {
		kfree(ctx);
		return 0;
	}
	INIT_LIST_HEAD(&ctx->link);
	ctx->mm = current->mm;
	ctx->addr = addr;
	ctx->size = size;
	*context = ctx;
	return 1;
}

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *sg, void *context,
		     u64 core_context)
{
	struct peer_context *ctx = context;
	struct peer_alloc *alloc;
	u64 before;
	int err = -EINVAL;

	mutex_lock(&lock);
	alloc = find(ctx->mm, addr, size);
	if (alloc) {
		ctx->core_context = core_context;
		list_add(&ctx->link, &alloc->contexts);
		err = 0;
	}
	before = newest;
	newest = core_context;
	mutex_unlock(&lock);
	if (late)
		invalidate(registered, before);
	return err;
}

static int dma_map(struct sg_table *sgt, void *context, struct device *dev, int dmasync, int *nmap)
{
	struct peer_context *ctx = context;
	u64 first, last;
	struct peer_alloc *alloc;
	struct scatterlist *sg;
	int i, err = -EINVAL;

	WARN_ON(pci_only && !dev);	/* NVIDIA's accesses fields of a struct pci_dev around @dev */
	mutex_lock(&lock);
	alloc = find(ctx->mm, ctx->addr, ctx->size);
	if (!alloc)
		goto unlock;
	first = (ctx->addr - alloc->start) / FAKE_CHUNK;
	last = (ctx->addr + ctx->size - 1 - alloc->start) / FAKE_CHUNK;
	err = sg_alloc_table(sgt, last - first + 1, GFP_KERNEL);
	if (err)
		goto unlock;
	for_each_sg(sgt->sgl, sg, sgt->nents, i) {
		sg_set_page(sg, NULL, FAKE_CHUNK, 0);
		sg_dma_address(sg) = fake_bar_bus(alloc->chunk) + (where(alloc, (first + i) * FAKE_CHUNK) - alloc->io);
		sg_dma_len(sg) = FAKE_CHUNK;
	}
	*nmap = sgt->nents;
	ctx->sgt = *sgt;
unlock:
	mutex_unlock(&lock);
	return err;
}

static int dma_unmap(struct sg_table *sgt, void *context, struct device *dev)
{
	return 0;
}

static void forget(struct peer_context *ctx)
{
	mutex_lock(&lock);
	list_del_init(&ctx->link);
	mutex_unlock(&lock);
}

static void put_pages(struct sg_table *sgt, void *context)
{
	if (!unmapping)
		atomic_inc(&in_use);
	if (put_ms)
		msleep(put_ms);
	if (unmapping)
		mutex_lock(&unmaps_lock);
	forget(context);
	if (unmapping)
		mutex_unlock(&unmaps_lock);
	else
		atomic_dec(&in_use);
}

static unsigned long get_page_size(void *context)
{
	atomic_inc(&in_use);
	if (map_ms)
		msleep(map_ms);
	atomic_dec(&in_use);
	return FAKE_CHUNK;
}

static void release(void *context)
{
	struct peer_context *ctx = context;

	forget(ctx);
	sg_free_table(&ctx->sgt);
	kfree(ctx);
}

static struct peer_memory_client_ex client = {
	.client = {
		.name		= "fake_gpu",
		.version	= { '1', '.', '0', [IB_PEER_MEMORY_VER_MAX - 1] = 1 },
		.acquire	= acquire,
		.get_pages	= get_pages,
		.dma_map	= dma_map,
		.dma_unmap	= dma_unmap,
		.put_pages	= put_pages,
		.get_page_size	= get_page_size,
		.release	= release,
	},
	.ex_size = sizeof(client),
};

/* ---- mappings of programs ---- */

static u64 pop_context(struct peer_alloc *alloc)
{
	struct peer_context *ctx;
	u64 core_context = 0;

	mutex_lock(&lock);
	ctx = list_first_entry_or_null(&alloc->contexts, struct peer_context, link);
	if (ctx) {
		core_context = ctx->core_context;
		list_del_init(&ctx->link);
	}
	mutex_unlock(&lock);
	return core_context;
}

static void vma_close(struct vm_area_struct *vma)
{
	struct peer_alloc *alloc = vma->vm_private_data;
	u64 core_context;

	mutex_lock(&lock);
	list_del(&alloc->link);		/* it can no longer be acquired */
	mutex_unlock(&lock);
	if (unmapping)
		mutex_lock(&unmaps_lock);
	while ((core_context = pop_context(alloc))) {
		invalidate(registered, core_context);
		early += !!atomic_read(&in_use);
	}
	if (unmapping)
		mutex_unlock(&unmaps_lock);
	iounmap(alloc->io);
	fake_chunks_put(alloc->chunk, alloc->size / FAKE_CHUNK);
	kfree(alloc);
}

static int vma_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

static const struct vm_operations_struct vma_ops = {
	.close		= vma_close,
	.may_split	= vma_may_split,
};

/* The range has addresses only, as GPU memory has for the CPU: an access raises SIGBUS. */
int fake_peer_mmap(struct file *file, struct vm_area_struct *vma)
{
	u64 size = vma->vm_end - vma->vm_start;
	struct peer_alloc *alloc;
	int err;

	if (!IS_ALIGNED(vma->vm_start, FAKE_CHUNK) || !IS_ALIGNED(size, FAKE_CHUNK))
		return -EINVAL;
	alloc = kzalloc(sizeof(*alloc), GFP_KERNEL);
	if (!alloc)
		return -ENOMEM;
	err = fake_chunks_get(size / FAKE_CHUNK, &alloc->chunk);
	if (err)
		goto err_free;
	err = -ENOMEM;
	alloc->io = ioremap_wc(fake_bar_bus(alloc->chunk), size);
	if (!alloc->io)
		goto err_put;
	INIT_LIST_HEAD(&alloc->contexts);
	alloc->mm = vma->vm_mm;
	alloc->start = vma->vm_start;
	alloc->size = size;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_private_data = alloc;
	vma->vm_ops = &vma_ops;
	mutex_lock(&lock);
	list_add(&alloc->link, &allocs);
	mutex_unlock(&lock);
	return 0;

err_put:
	fake_chunks_put(alloc->chunk, size / FAKE_CHUNK);
err_free:
	kfree(alloc);
	return err;
}

static int copy_run(unsigned long addr, void *bounce, u32 n, bool write)
{
	struct peer_alloc *alloc;

	mutex_lock(&lock);
	alloc = find(current->mm, addr, n);
	if (alloc && write)
		memcpy_toio(where(alloc, addr - alloc->start), bounce, n);
	else if (alloc)
		memcpy_fromio(bounce, where(alloc, addr - alloc->start), n);
	wmb();	/* the copy is visible before the ioctl returns */
	mutex_unlock(&lock);
	return alloc ? 0 : -EINVAL;
}

/* The program's buffer is copied without the lock: that may fault, and munmap() takes the lock. */
int fake_peer_copy(const struct fake_gpu_copy *ask, void *bounce)
{
	u64 done;
	u32 n;

	for (done = 0; done < ask->len; done += n) {
		void __user *user = u64_to_user_ptr(ask->user + done);
		unsigned long addr = ask->offset + done;

		n = min_t(u64, ask->len - done, PAGE_SIZE - addr % PAGE_SIZE);
		if (ask->write && copy_from_user(bounce, user, n))
			return -EFAULT;
		if (copy_run(addr, bounce, n, ask->write))
			return -EINVAL;
		if (!ask->write && copy_to_user(user, bounce, n))
			return -EFAULT;
	}
	return 0;
}

int fake_peer_init(void)
{
	unmapping = unmaps;
	client.flags = (unmapping ? PEER_MEM_INVALIDATE_UNMAPS : 0) | (pci_only ? 0 : PEER_MEM_NO_DEVICE);
	registered = ib_register_peer_memory_client(&client.client, &invalidate);
	return registered ? 0 : -ENOMEM;
}

void fake_peer_exit(void)
{
	if (registered)
		ib_unregister_peer_memory_client(registered);
}

int fake_peer_leave(void)
{
	static DEFINE_MUTEX(leaving);
	int err;

	mutex_lock(&leaving);
	fake_peer_exit();
	err = fake_peer_init();
	mutex_unlock(&leaving);
	return err;
}
