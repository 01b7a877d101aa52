// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of peers' memory: claimed, mapped for the CPU, taken back. Clients tell DMA addresses; where these lead on the
 * bus is mapped, as a software device touches memory with the CPU.
 *
 * No lock is held while a client is called, as it may call back. Who takes a region (its deregistration, an invalidation
 * or the client's leaving, whichever is first) gives the memory back; the others wait for that.
 */
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "mem/peermem/internal.h"

static DEFINE_XARRAY_ALLOC1(tickets);	/* peermem_lock, and its own */

void peermem_put(struct roan_peer_mem *mem)
{
	if (refcount_dec_and_test(&mem->refs))
		kfree(mem);
}

/* ---- the client's side ---- */

static void give_pages_back(struct roan_peer_mem *mem)
{
	const struct peer_memory_client *ops = mem->client->ops;

	if (mem->mapped)
		ops->dma_unmap(&mem->sgt, mem->context, mem->dma_device);
	if (mem->got_pages)
		ops->put_pages(&mem->sgt, mem->context);
	mem->mapped = mem->got_pages = false;
}

static void give_context_back(struct roan_peer_mem *mem)
{
	if (test_and_set_bit(0, &mem->released))
		return;
	mem->client->ops->release(mem->context);
	peer_client_put(mem->client);
}

static int get_pages(struct roan_peer_mem *mem, u64 start, int *nmap)
{
	const struct peer_memory_client *ops = mem->client->ops;
	int err;

	err = ops->get_pages(start, mem->mr->length, 1, 1, &mem->sgt, mem->context, mem->ticket);
	if (err)
		return err;
	mem->got_pages = true;
	err = ops->dma_map(&mem->sgt, mem->context, mem->dma_device, 0, nmap);
	if (err)
		return err;
	mem->mapped = true;
	return 0;
}

/* ---- mapped for the CPU ---- */

static phys_addr_t phys_of(struct device *dev, dma_addr_t addr)
{
	struct iommu_domain *domain = dev ? iommu_get_domain_for_dev(dev) : NULL;

	return domain ? iommu_iova_to_phys(domain, addr) : addr;
}

static void unmap(struct roan_peer_mem *mem)
{
	while (mem->n_maps)
		iounmap(mem->maps[--mem->n_maps]);
	kvfree(mem->maps);
	mem->maps = NULL;
}

/* The physical address of each of the region's pieces. */
static int find_pieces(struct roan_peer_mem *mem, int nmap, u64 size, u32 n, phys_addr_t *phys)
{
	struct scatterlist *sg;
	u32 found = 0;
	int i;

	for_each_sg(mem->sgt.sgl, sg, nmap, i) {
		u64 off;

		if (!IS_ALIGNED(sg_dma_address(sg), size) || !IS_ALIGNED(sg_dma_len(sg), size))
			return -EINVAL;
		for (off = 0; off < sg_dma_len(sg) && found < n; off += size)
			phys[found++] = phys_of(mem->dma_device, sg_dma_address(sg) + off);
	}
	return found == n ? 0 : -EINVAL;
}

/* Pieces that lie one after the other get one mapping. */
static int map_pieces(struct roan_peer_mem *mem, struct roan_io *io, const phys_addr_t *phys)
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

static int map_memory(struct roan_peer_mem *mem, u64 start, int nmap)
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
	mem->mr->io = roan_peer_io(n, ilog2(size), off);
	phys = kvmalloc_array(n, sizeof(*phys), GFP_KERNEL_ACCOUNT);
	err = mem->mr->io && phys ? find_pieces(mem, nmap, size, n, phys) : -ENOMEM;
	if (!err)
		err = map_pieces(mem, mem->mr->io, phys);
	kvfree(phys);
	return err;
}

/* ---- claiming ---- */

static int enlist(struct roan_peer_mem *mem)
{
	int err = -EFAULT;

	mutex_lock(&peermem_lock);
	if (!list_empty(&mem->client->link)) {	/* else it leaves */
		err = xa_alloc(&tickets, &mem->ticket, mem, xa_limit_32b, GFP_KERNEL);
		if (!err)
			list_add(&mem->link, &mem->client->regions);
	}
	mutex_unlock(&peermem_lock);
	return err;
}

static void strike(struct roan_peer_mem *mem)
{
	mutex_lock(&peermem_lock);
	list_del_init(&mem->link);
	xa_erase(&tickets, mem->ticket);
	mutex_unlock(&peermem_lock);
}

/* Owns @context and the reference to @client. */
static struct roan_peer_mem *new_region(struct roan_mr *mr, struct peer_client *client, void *context, struct device *dev)
{
	struct roan_peer_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (mem) {
		mem->client = client;
		mem->mr = mr;
		mem->context = context;
		mem->dma_device = dev;
		mem->state = PEER_YOUNG;
		refcount_set(&mem->refs, 1);
		spin_lock_init(&mem->lock);
		INIT_LIST_HEAD(&mem->link);
		init_completion(&mem->returned);
		err = enlist(mem);
	}
	if (err) {
		client->ops->release(context);
		peer_client_put(client);
		kfree(mem);
		return ERR_PTR(err);
	}
	return mem;
}

static enum peer_state advance(struct roan_peer_mem *mem, enum peer_state from, enum peer_state to)
{
	enum peer_state was;

	spin_lock(&mem->lock);
	was = mem->state;
	if (was == from)
		mem->state = to;
	spin_unlock(&mem->lock);
	return was;
}

static int take(struct roan_mr *mr, u64 start, struct peer_client *client, void *context, struct device *dev)
{
	struct roan_peer_mem *mem = new_region(mr, client, context, dev);
	int err, nmap = 0;

	if (IS_ERR(mem))
		return PTR_ERR(mem);
	err = get_pages(mem, start, &nmap);
	if (!err)
		err = map_memory(mem, start, nmap);
	if (!err) {
		mr->peer = mem;		/* before anybody may take it */
		if (advance(mem, PEER_YOUNG, PEER_LIVE) == PEER_YOUNG)
			return 0;
		err = -EFAULT;
	}
	unmap(mem);
	kvfree(mr->io);
	mr->io = NULL;
	mr->peer = NULL;
	if (mem->state != PEER_DOOMED || !client->unmaps)
		give_pages_back(mem);
	strike(mem);
	give_context_back(mem);
	peermem_put(mem);
	return err;
}

static int claim(struct roan_mr *mr, u64 start, struct device *dev)
{
	struct peer_client *client;
	void *context;

	for (client = peer_client_first(); client; client = peer_client_next(client)) {
		context = NULL;
		if (client->ops->acquire(start, mr->length, NULL, NULL, &context) == 1)
			return take(mr, start, client, context, dev);
	}
	return -EFAULT;
}

/* ---- taken back ---- */

/* Nobody may touch it, then nobody does, then nobody can. */
static void take_away(struct roan_peer_mem *mem, bool pages_too)
{
	roan_peer_revoke(mem->mr);
	unmap(mem);
	if (pages_too)
		give_pages_back(mem);
	complete_all(&mem->returned);
}

static struct roan_peer_mem *find(u64 ticket)
{
	struct roan_peer_mem *mem;

	mutex_lock(&peermem_lock);
	mem = xa_load(&tickets, ticket);
	if (mem)
		refcount_inc(&mem->refs);	/* the list's one is there as long as the ticket */
	mutex_unlock(&peermem_lock);
	return mem;
}

int peermem_invalidate(void *reg_handle, u64 ticket)
{
	struct roan_peer_mem *mem = find(ticket);

	if (!mem)
		return 0;
	advance(mem, PEER_YOUNG, PEER_DOOMED);
	advance(mem, PEER_LEFT, PEER_DOOMED);
	if (advance(mem, PEER_LIVE, PEER_TAKEN) == PEER_LIVE)
		take_away(mem, !mem->client->unmaps);
	peermem_put(mem);
	return 0;
}

void peermem_take_back(struct roan_peer_mem *mem)
{
	advance(mem, PEER_YOUNG, PEER_LEFT);
	switch (advance(mem, PEER_LIVE, PEER_TAKEN)) {
	case PEER_LIVE:
		take_away(mem, true);
		break;
	case PEER_TAKEN:
		wait_for_completion(&mem->returned);
		break;
	default:
		return;		/* whoever claims it gives everything back */
	}
	give_context_back(mem);
}

/* The key is gone: nobody touches the memory. */
static void release(struct roan_mr *mr)
{
	struct roan_peer_mem *mem = mr->peer;

	if (advance(mem, PEER_LIVE, PEER_TAKEN) == PEER_LIVE) {
		unmap(mem);
		give_pages_back(mem);
		complete_all(&mem->returned);
	} else {
		wait_for_completion(&mem->returned);
	}
	strike(mem);
	give_context_back(mem);
	kvfree(mr->io);
	peermem_put(mem);
}

const struct roan_peer_ops peermem_ops = {
	.owner		= THIS_MODULE,
	.claim		= claim,
	.release	= release,
};
