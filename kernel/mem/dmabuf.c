// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of memory that another driver exports as a dma-buf, by the mapping it makes for the CPU. DMA addresses are
 * of no use here, and pages an importer may not look for; so what has no CPU mapping is refused.
 *
 * Some exporters move their memory about unless it is pinned. Only who is attached may pin, and with many exporters
 * it is attaching that pins. Attached is the adapter below the interface if there is one on PCI, as exporters look at
 * who asks; else a device of the module's own.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include "mem/mem.h"

ROAN_IMPORT_NS(DMA_BUF);

struct roan_dmabuf {
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;	/* NULL: its mapping alone keeps it where it is */
	bool pinned;				/* attached for moves, and kept from them; else attaching is all there is */
	struct iosys_map map;
};

static struct platform_device *attachable;

int roan_dmabuf_init(void)
{
	attachable = platform_device_register_simple("roan", PLATFORM_DEVID_NONE, NULL, 0);
	return PTR_ERR_OR_ZERO(attachable);
}

void roan_dmabuf_exit(void)
{
	platform_device_unregister(attachable);
}

static void dmabuf_log_refusal(struct ib_device *ibdev, const struct dma_buf *buf, const char *why)
{
	pr_info_ratelimited("roan: %s: a dma-buf of %s cannot be registered: %s\n", dev_name(&ibdev->dev), buf->exp_name,
			    why);
}

struct device *roan_pci_parent(const struct roan_dev *dev)
{
	struct device *up;

	for (up = dev->ndev->dev.parent; up; up = up->parent)
		if (dev_is_pci(up))
			return up;
	return NULL;
}

/* The exporter is about to move what it promised not to, or takes it away. Its reservation lock is held. */
static void dmabuf_move_notify(struct dma_buf_attachment *attach)
{
	roan_mr_revoke(attach->importer_priv);
}

static const struct dma_buf_attach_ops attach_ops = { .ROAN_MOVE_NOTIFY = dmabuf_move_notify };

/*
 * An exporter that cannot pin what is attached pins it when it is. ENOSYS: it has nothing for devices to attach to
 * (drm_gem_map_attach() of video memory that is for the CPU only); such memory is pinned by mapping it.
 */
static int dmabuf_attach(struct roan_mr *mr)
{
	struct roan_dmabuf *from = mr->dmabuf;
	struct device *who = roan_pci_parent(to_roan_dev(mr->ib.device)) ?: &attachable->dev;
	bool may_pin = from->buf->ops->pin;
	struct dma_buf_attachment *at;

	at = dma_buf_dynamic_attach(from->buf, who, may_pin ? &attach_ops : NULL, mr);
	if (!IS_ERR(at)) {
		from->attach = at;
		return 0;
	}
	if (!may_pin && PTR_ERR(at) == -ENOSYS)
		return 0;
	dmabuf_log_refusal(mr->ib.device, from->buf, "it may move, and its exporter lets nobody attach to pin it");
	return PTR_ERR(at) == -ENOMEM ? -ENOMEM : -EOPNOTSUPP;
}

/*
 * Pinning may itself move the memory, of which we are told as of any move: so only from then on may it be taken away.
 */
static int dmabuf_pin(struct roan_mr *mr)
{
	struct roan_dmabuf *from = mr->dmabuf;
	int err = dmabuf_attach(mr);

	if (err)
		return err;
	if (!from->buf->ops->pin) {
		mr->state = ROAN_MR_VALID;
		return 0;
	}
	dma_resv_lock(from->buf->resv, NULL);
	err = dma_buf_pin(from->attach);
	if (!err) {
		from->pinned = true;
		mr->state = ROAN_MR_VALID;
	}
	dma_resv_unlock(from->buf->resv);
	return err;
}

static void dmabuf_unpin(struct roan_dmabuf *from)
{
	if (from->pinned) {
		dma_resv_lock(from->buf->resv, NULL);
		dma_buf_unpin(from->attach);
		dma_resv_unlock(from->buf->resv);
	}
	if (from->attach)
		dma_buf_detach(from->buf, from->attach);	/* from here nobody calls dmabuf_move_notify() */
}

/*
 * udmabuf of 6.12 maps a huge page's first 4 KiB over and over: what is written would go astray, without a word. So
 * pages are looked at where the mapping is made of them, not to be used, but to be told apart.
 */
static bool dmabuf_maps_page_twice(const struct roan_dmabuf *from)
{
	struct page *page, *before = NULL;
	size_t off;

	if (from->map.is_iomem || !is_vmalloc_addr(from->map.vaddr))
		return false;
	for (off = 0; off < from->buf->size; off += PAGE_SIZE, before = page) {
		page = vmalloc_to_page(from->map.vaddr + off);
		if (page && page == before)
			return true;
	}
	return false;
}

/* Coherent machines need this once, not for every access. */
static int dmabuf_map(struct roan_mr *mr, u64 offset)
{
	struct roan_dmabuf *from = mr->dmabuf;
	int err;

	err = roan_dma_buf_vmap(from->buf, &from->map);
	if (err) {
		dmabuf_log_refusal(mr->ib.device, from->buf, "its exporter could not map it for the CPU");
		return err == -ENOMEM || err == -EINTR ? err : -EOPNOTSUPP;
	}
	if (dmabuf_maps_page_twice(from)) {
		dmabuf_log_refusal(mr->ib.device, from->buf, "its exporter maps one page in many places");
		err = -EOPNOTSUPP;
		goto err_unmap;
	}
	err = dma_buf_begin_cpu_access(from->buf, DMA_BIDIRECTIONAL);
	if (err)
		goto err_unmap;
	if (!from->map.is_iomem) {
		mr->vaddr = from->map.vaddr + offset;
		return 0;
	}
	mr->io = roan_iomem_alloc(1, 63, offset);
	if (!mr->io)
		return -ENOMEM;
	mr->io->piece[0] = from->map.vaddr_iomem;
	return 0;

err_unmap:
	roan_dma_buf_vunmap(from->buf, &from->map);
	iosys_map_clear(&from->map);
	return err;
}

/* Also where registration stopped half-way. */
void roan_dmabuf_release(struct roan_mr *mr)
{
	struct roan_dmabuf *from = mr->dmabuf;

	if (!from)
		return;
	if (iosys_map_is_set(&from->map)) {
		dma_buf_end_cpu_access(from->buf, DMA_BIDIRECTIONAL);
		roan_dma_buf_vunmap(from->buf, &from->map);
	}
	dmabuf_unpin(from);
	if (from->buf)
		dma_buf_put(from->buf);
	kvfree(mr->io);
	kfree(from);
}

/* Libraries probe with fd -1 and no length, and take EBADF for a yes: so the descriptor is looked at first. */
static int dmabuf_get(struct roan_mr *mr, int fd, u64 offset, u64 length)
{
	struct dma_buf *buf = dma_buf_get(fd);
	u64 end;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	mr->dmabuf->buf = buf;
	if (check_add_overflow(offset, length, &end) || end > buf->size)
		return -EINVAL;
	if (!length || roan_mr_check_range(offset, length, mr->iova))
		return -EINVAL;
	if (!buf->ops->vmap) {
		dmabuf_log_refusal(mr->ib.device, buf, "its exporter has no mapping for the CPU");
		return -EOPNOTSUPP;
	}
	return 0;
}

struct ib_mr *roan_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd, int access)
{
	struct roan_mr *mr;
	int err;

	access &= ~IB_ACCESS_OPTIONAL;
	/* Not persistent memory, and zero-based is what @iova 0 makes it. */
	if (access & ~(ROAN_ACCESS_SUPPORTED & ~IB_ACCESS_FLUSH_PERSISTENT))
		return ERR_PTR(-EOPNOTSUPP);
	mr = roan_mr_alloc(pd, ROAN_MR_DMABUF);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->dmabuf = kzalloc(sizeof(*mr->dmabuf), GFP_KERNEL_ACCOUNT);
	if (!mr->dmabuf)
		return roan_mr_finish(mr, -ENOMEM);
	mr->access = access;
	mr->iova = mr->ib.iova = iova;
	mr->length = mr->ib.length = length;
	mr->state = ROAN_MR_FREE;	/* until it is pinned */
	err = dmabuf_get(mr, fd, offset, length) ?: dmabuf_pin(mr) ?: dmabuf_map(mr, offset);
	return roan_mr_finish(mr, err);
}
