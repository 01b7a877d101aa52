// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of dma-buf memory, accessed through the exporter's CPU mapping (vmap). A software device cannot use DMA
 * addresses, and an importer must not look for struct pages; so a dma-buf without vmap is refused. Does not copy:
 * mr_access.c and iomem.c do.
 *
 * Some exporters move their memory unless it is pinned. Pinning requires an attachment, and with many exporters the
 * attachment itself pins. Exporters check the attached device: it is the interface's PCI device if it has one, else a
 * platform device of this module.
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
	struct dma_buf_attachment *attach;	/* NULL: the mapping alone pins the memory */
	bool pinned;				/* dma_buf_pin() succeeded; dynamic attachments only */
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
	pr_info_ratelimited("roan: %s: a dma-buf of %s cannot be registered: %s\n", dev_name(&ibdev->dev),
			    buf->exp_name, why);
}

struct device *roan_pci_parent(const struct roan_dev *dev)
{
	struct device *up;

	for (up = dev->ndev->dev.parent; up; up = up->parent)
		if (dev_is_pci(up))
			return up;
	return NULL;
}

/* The exporter moves or withdraws the memory although it is pinned. Called with its reservation lock held. */
static void dmabuf_move_notify(struct dma_buf_attachment *attach)
{
	roan_mr_revoke(attach->importer_priv);
}

static const struct dma_buf_attach_ops attach_ops = { .ROAN_MOVE_NOTIFY = dmabuf_move_notify };

/*
 * An exporter without a pin callback pins at attach. If such an exporter returns -ENOSYS, it supports no attachment
 * (drm_gem_map_attach() of video memory for the CPU only); such memory is pinned by mapping it.
 */
static int dmabuf_attach(struct roan_mr *mr)
{
	struct roan_dmabuf *from = mr->dmabuf;
	struct device *attach_dev = roan_pci_parent(to_roan_dev(mr->ib.device)) ?: &attachable->dev;
	bool may_pin = from->buf->ops->pin;
	struct dma_buf_attachment *at;

	at = dma_buf_dynamic_attach(from->buf, attach_dev, may_pin ? &attach_ops : NULL, mr);
	if (!IS_ERR(at)) {
		from->attach = at;
		return 0;
	}
	if (!may_pin && PTR_ERR(at) == -ENOSYS)
		return 0;
	dmabuf_log_refusal(mr->ib.device, from->buf, "it may move, and attaching to it, to pin it, failed");
	return PTR_ERR(at) == -ENOMEM ? -ENOMEM : -EOPNOTSUPP;
}

/*
 * dma_buf_pin() may move the buffer and call dmabuf_move_notify(), which revokes a valid MR. So set it valid
 * afterwards.
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
		dma_buf_detach(from->buf, from->attach);	/* no dmabuf_move_notify() after this */
}

/*
 * udmabuf of Linux 6.12 maps the first 4 KiB of a huge page repeatedly, so writes would silently go to the wrong
 * place. Compare neighbouring pages of a vmalloc mapping to detect it. The pages are only compared, not accessed.
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
		cond_resched();
	}
	return false;
}

/* On cache-coherent machines one dma_buf_begin_cpu_access() per region is enough. */
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

/* Also for a registration that failed half-way. */
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

/* Libraries probe for dma-buf support with fd -1 and length 0, and expect EBADF. So check the descriptor first. */
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
	/* FLUSH_PERSISTENT is not supported, and neither is ZERO_BASED: @iova 0 has the same effect. */
	if (access & ~(ROAN_ACCESS_SUPPORTED & ~IB_ACCESS_FLUSH_PERSISTENT))
		return ERR_PTR(-EOPNOTSUPP);
	mr = roan_mr_alloc(pd, ROAN_MR_DMABUF);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->dmabuf = kzalloc(sizeof(*mr->dmabuf), GFP_KERNEL_ACCOUNT);
	if (!mr->dmabuf)
		return roan_mr_finish(mr, -ENOMEM);
	mr->access = access;
	mr->iova = iova;
	mr->ib.iova = iova;
	mr->length = length;
	mr->ib.length = length;
	mr->state = ROAN_MR_FREE;	/* until it is pinned */
	err = dmabuf_get(mr, fd, offset, length) ?: dmabuf_pin(mr) ?: dmabuf_map(mr, offset);
	return roan_mr_finish(mr, err);
}
