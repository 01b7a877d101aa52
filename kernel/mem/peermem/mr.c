// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of clients' memory: claim, CPU mapping, release and invalidation. Clients return DMA addresses; this file
 * maps the bus addresses behind them for the CPU, because a software device accesses memory with the CPU. Does not
 * copy (iomem.c) and does not manage clients (clients.c).
 *
 * No lock is held while a client's function is called, because it may call back. Three events end a region:
 * deregistration, invalidation, and unregistration of the client. The first one releases the memory, and those that
 * come later wait for it: when an invalidation returns, the client may give the memory to another program. A claim in
 * progress is waited for as well, as the client's dma_map() may still use what the client frees after an invalidation.
 * So a client must not invalidate a region from its own functions for that region.
 *
 * A client with PEER_MEM_INVALIDATE_UNMAPS may hold a lock over an invalidation that its dma_unmap() and put_pages()
 * take. So such an invalidation waits until no CPU accesses the memory, but not for these two.
 */
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "mem/peermem/internal.h"

static DEFINE_XARRAY_ALLOC1(tickets);	/* cookie -> struct roan_peermem_mr; peermem_lock */
static u32 next_cookie;			/* peermem_lock */

void peermem_put(struct roan_peermem_mr *mem)
{
	if (refcount_dec_and_test(&mem->refs))
		kfree(mem);
}

/* ---- calls to the client ---- */

static void peermem_put_pages(struct roan_peermem_mr *mem)
{
	const struct peer_memory_client *ops = mem->client->ops;

	if (mem->mapped)
		ops->dma_unmap(&mem->sgt, mem->context, mem->dma_device);
	if (mem->got_pages)
		ops->put_pages(&mem->sgt, mem->context);
	mem->mapped = false;
	mem->got_pages = false;
}

static void peermem_release_ctx(struct roan_peermem_mr *mem)
{
	if (test_and_set_bit(0, &mem->ctx_released))
		return;
	mem->client->ops->release(mem->context);
	peermem_client_put(mem->client);
}

static int peermem_get_pages(struct roan_peermem_mr *mem, u64 start, int *nmap)
{
	const struct peer_memory_client *ops = mem->client->ops;
	int err;

	err = ops->get_pages(start, mem->mr->length, 1, 1, &mem->sgt, mem->context, mem->cookie);
	if (err)
		return err;
	mem->got_pages = true;
	err = ops->dma_map(&mem->sgt, mem->context, mem->dma_device, 0, nmap);
	if (err)
		return err;
	mem->mapped = true;
	return 0;
}

/* ---- CPU mapping ---- */

static phys_addr_t peermem_phys_of(struct device *dev, dma_addr_t addr)
{
	struct iommu_domain *domain = dev ? iommu_get_domain_for_dev(dev) : NULL;

	return domain ? iommu_iova_to_phys(domain, addr) : addr;
}

static void peermem_unmap(struct roan_peermem_mr *mem)
{
	while (mem->n_maps)
		iounmap(mem->maps[--mem->n_maps]);
	kvfree(mem->maps);
	mem->maps = NULL;
}

/* Fills @phys with the bus address of each of the region's @n pieces of @size bytes. */
static int peermem_find_chunks(struct roan_peermem_mr *mem, int nmap, u64 size, u32 n, phys_addr_t *phys)
{
	struct scatterlist *sg;
	u32 found = 0;
	int i;

	for_each_sg(mem->sgt.sgl, sg, nmap, i) {
		u64 off;

		if (!IS_ALIGNED(sg_dma_address(sg), size) || !IS_ALIGNED(sg_dma_len(sg), size))
			return -EINVAL;
		for (off = 0; off < sg_dma_len(sg) && found < n; off += size)
			phys[found++] = peermem_phys_of(mem->dma_device, sg_dma_address(sg) + off);
	}
	return found == n ? 0 : -EINVAL;
}

/* Contiguous pieces share one mapping. */
static int peermem_map_chunks(struct roan_peermem_mr *mem, struct roan_iomem *io, const phys_addr_t *phys)
{
	u64 size = 1ull << io->shift;
	u32 i, run, k;

	mem->maps = kvcalloc(io->n, sizeof(*mem->maps), GFP_KERNEL_ACCOUNT);
	if (!mem->maps)
		return -ENOMEM;
	for (i = 0; i < io->n; i += run) {
		void __iomem *map;

		for (run = 1; i + run < io->n && phys[i + run] == phys[i] + run * size; run++)
			;
		map = ioremap_wc(phys[i], run * size);
		if (!map)
			return -ENOMEM;
		mem->maps[mem->n_maps++] = map;
		for (k = 0; k < run; k++)
			io->piece[i + k] = map + k * size;
	}
	return 0;
}

static int peermem_map(struct roan_peermem_mr *mem, u64 start, int nmap)
{
	u64 size = mem->client->ops->get_page_size(mem->context);
	phys_addr_t *phys;
	u64 off, n;
	int err;

	if (size < PAGE_SIZE || !is_power_of_2(size))
		return -EINVAL;
	off = start & (size - 1);
	n = DIV_ROUND_UP_ULL(off + mem->mr->length, size);
	if (n > U32_MAX)
		return -EINVAL;
	mem->mr->io = roan_peermem_iomem_alloc(n, ilog2(size), off);
	phys = kvmalloc_array(n, sizeof(*phys), GFP_KERNEL_ACCOUNT);
	err = mem->mr->io && phys ? peermem_find_chunks(mem, nmap, size, n, phys) : -ENOMEM;
	if (!err)
		err = peermem_map_chunks(mem, mem->mr->io, phys);
	kvfree(phys);
	return err;
}

/* ---- claim ---- */

/* A client may still invalidate a region that is gone, so its cookie is not used again at once. */
static int peermem_link(struct roan_peermem_mr *mem)
{
	int err = -EFAULT;

	mutex_lock(&peermem_lock);
	if (!list_empty(&mem->client->link)) {	/* else the client unregisters */
		err = min(xa_alloc_cyclic(&tickets, &mem->cookie, mem, xa_limit_32b, &next_cookie, GFP_KERNEL), 0);
		if (!err)
			list_add(&mem->link, &mem->client->regions);
	}
	mutex_unlock(&peermem_lock);
	return err;
}

static void peermem_unlink(struct roan_peermem_mr *mem)
{
	mutex_lock(&peermem_lock);
	list_del_init(&mem->link);
	xa_erase(&tickets, mem->cookie);
	mutex_unlock(&peermem_lock);
}

/* Takes over @context and the reference to @client, also on error. ERR_PTR */
static struct roan_peermem_mr *peermem_new(struct roan_mr *mr, struct peermem_client *client, void *context,
					   struct device *dev)
{
	struct roan_peermem_mr *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (mem) {
		mem->client = client;
		mem->unmaps = client->unmaps;
		mem->mr = mr;
		mem->context = context;
		mem->dma_device = dev;
		mem->state = PEERMEM_NEW;
		refcount_set(&mem->refs, 1);
		spin_lock_init(&mem->lock);
		INIT_LIST_HEAD(&mem->link);
		init_completion(&mem->claimed);
		init_completion(&mem->unmapped);
		init_completion(&mem->release_done);
		err = peermem_link(mem);
	}
	if (err) {
		client->ops->release(context);
		peermem_client_put(client);
		kfree(mem);
		return ERR_PTR(err);
	}
	return mem;
}

static void peermem_end_claim(struct roan_peermem_mr *mem, enum peermem_state state)
{
	spin_lock(&mem->lock);
	mem->state = state;
	spin_unlock(&mem->lock);
	complete_all(&mem->claimed);
}

/* Waits for a claim in progress. True: the caller is the first to end the region, and releases the memory. */
static bool peermem_end(struct roan_peermem_mr *mem)
{
	bool first;

	wait_for_completion(&mem->claimed);
	spin_lock(&mem->lock);
	first = mem->state == PEERMEM_ACTIVE;
	mem->state = PEERMEM_RELEASED;
	spin_unlock(&mem->lock);
	return first;
}

/* By the thread that ended the region, when no CPU accesses it any more. */
static void peermem_release_memory(struct roan_peermem_mr *mem, bool pages_too)
{
	peermem_unmap(mem);
	complete_all(&mem->unmapped);
	if (pages_too)
		peermem_put_pages(mem);
	complete_all(&mem->release_done);
}

static int peermem_claim_from(struct roan_mr *mr, u64 start, struct peermem_client *client, void *context,
			      struct device *dev)
{
	struct roan_peermem_mr *mem = peermem_new(mr, client, context, dev);
	int err, nmap = 0;

	if (IS_ERR(mem))
		return PTR_ERR(mem);
	err = peermem_get_pages(mem, start, &nmap);
	if (!err)
		err = peermem_map(mem, start, nmap);
	if (!err) {
		mr->peermem = mem;	/* before the region may be revoked */
		peermem_end_claim(mem, PEERMEM_ACTIVE);
		return 0;
	}
	peermem_end_claim(mem, PEERMEM_RELEASED);
	peermem_release_memory(mem, true);
	kvfree(mr->io);
	mr->io = NULL;
	peermem_unlink(mem);
	peermem_release_ctx(mem);
	peermem_put(mem);
	return err;
}

/* The memory is the client's, but there is no device for its dma_map(). */
static int peermem_refuse(struct roan_mr *mr, struct peermem_client *client, void *context)
{
	pr_info_ratelimited("roan: %s: memory of peer client %.*s cannot be registered: the interface has no PCI device\n",
			    dev_name(&mr->ib.device->dev), IB_PEER_MEMORY_NAME_MAX, client->ops->name);
	client->ops->release(context);
	peermem_client_put(client);
	return -EOPNOTSUPP;
}

static int peermem_claim(struct roan_mr *mr, u64 start, struct device *dev)
{
	struct peermem_client *client;
	void *context;

	for (client = peermem_client_first(); client; client = peermem_client_next(client)) {
		context = NULL;
		if (client->ops->acquire(start, mr->length, NULL, NULL, &context) != 1)
			continue;
		if (!dev && !client->no_device)
			return peermem_refuse(mr, client, context);
		return peermem_claim_from(mr, start, client, context, dev);
	}
	return -EFAULT;
}

/* ---- release and invalidation ---- */

static struct roan_peermem_mr *peermem_find(u64 ticket)
{
	struct roan_peermem_mr *mem;

	mutex_lock(&peermem_lock);
	mem = xa_load(&tickets, ticket);
	if (mem)
		refcount_inc(&mem->refs);	/* not 0: the region's reference outlives its entry in tickets */
	mutex_unlock(&peermem_lock);
	return mem;
}

int peermem_invalidate(void *reg_handle, u64 ticket)
{
	struct roan_peermem_mr *mem = peermem_find(ticket);

	if (!mem)
		return 0;
	if (peermem_end(mem)) {
		roan_peermem_revoke(mem->mr);
		peermem_release_memory(mem, !mem->unmaps);
	} else {
		wait_for_completion(mem->unmaps ? &mem->unmapped : &mem->release_done);
	}
	peermem_put(mem);
	return 0;
}

void peermem_reclaim(struct roan_peermem_mr *mem)
{
	if (peermem_end(mem)) {
		roan_peermem_revoke(mem->mr);
		peermem_release_memory(mem, true);
	} else {
		wait_for_completion(&mem->release_done);
	}
	peermem_release_ctx(mem);
}

/* The key has been removed: no CPU accesses the memory. */
static void peermem_release(struct roan_mr *mr)
{
	struct roan_peermem_mr *mem = mr->peermem;

	if (peermem_end(mem))
		peermem_release_memory(mem, true);
	else
		wait_for_completion(&mem->release_done);
	peermem_unlink(mem);
	peermem_release_ctx(mem);
	kvfree(mr->io);
	peermem_put(mem);
}

const struct roan_peermem_ops peermem_ops = {
	.owner		= THIS_MODULE,
	.claim		= peermem_claim,
	.release	= peermem_release,
};
