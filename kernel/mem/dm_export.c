// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory as a dma-buf (ibv_dm_export_dmabuf_fd()). The memory is pages of the kernel, so any importer can use
 * it: a device by its DMA, a CPU by vmap, a program by mmap. The RDMA core's export of mmap entries
 * (ops.mmap_get_pfns) is not used: it describes one physical range of a PCI BAR and has no mapping for the CPU.
 *
 * The dma-buf holds a reference to the first page, which keeps the memory allocated and charged after its ib_dm is
 * freed, as a mapping does (base/user_mem.c).
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include "base/user_mem.h"
#include "mem/mem.h"

static struct sg_table *dm_export_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct roan_mmap *map = attach->dmabuf->priv;
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	int err;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(sgt, map->pages, map->n_pages, 0, (size_t)map->n_pages << PAGE_SHIFT,
					GFP_KERNEL);
	if (err)
		goto err_free;
	err = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (!err)
		return sgt;
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(err);
}

static void dm_export_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt, enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int dm_export_vmap(struct dma_buf *buf, struct iosys_map *to)
{
	iosys_map_set_vaddr(to, ((struct roan_mmap *)buf->priv)->buf);
	return 0;
}

/* dma_buf_mmap() has checked the range. */
static int dm_export_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	return remap_vmalloc_range(vma, ((struct roan_mmap *)buf->priv)->buf, vma->vm_pgoff);
}

static void dm_export_release(struct dma_buf *buf)
{
	put_page(((struct roan_mmap *)buf->priv)->pages[0]);
}

/* An importer may map it at any time, and the pages never move: there is nothing to pin. */
static const struct dma_buf_ops dm_export_ops = {
	.map_dma_buf	= dm_export_map,
	.unmap_dma_buf	= dm_export_unmap,
	.vmap		= dm_export_vmap,
	.mmap		= dm_export_mmap,
	.release	= dm_export_release,
};

struct file *roan_dm_export(struct roan_mmap *map)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;

	info.ops = &dm_export_ops;
	info.size = (size_t)map->n_pages << PAGE_SHIFT;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = map;
	get_page(map->pages[0]);
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		put_page(map->pages[0]);
		return ERR_CAST(buf);
	}
	return buf->file;
}
