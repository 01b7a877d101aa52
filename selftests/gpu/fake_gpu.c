// SPDX-License-Identifier: GPL-2.0
/*
 * A module that acts as a GPU, for machines without one: exports dma-bufs over ordinary memory and over a BAR, moves
 * them while they are imported, and can refuse or fail to map them. fake_gpu.h has the ioctls.
 */
#include <linux/bitmap.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/io.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "../kunit/mem/fake_bar.h"
#include "fake_gpu_priv.h"

ROAN_IMPORT_NS(DMA_BUF);
MODULE_DESCRIPTION("A fake GPU, for tests");
MODULE_LICENSE("GPL");

#define MAX_CHUNKS	1024

struct gpu_buf {
	struct iosys_map map;		/* the memory, for this module and for importers */
	u64 size;
	u32 flags;
	u32 chunk;			/* the first one, if it is in the BAR */
	atomic_t mapped;
	atomic_t pinned;
};

static struct fake_bar bar;		/* start 0: no BAR */
static DECLARE_BITMAP(used, MAX_CHUNKS);
static DEFINE_MUTEX(bar_lock);		/* used; creation of the BAR */

/* ---- memory ---- */

int fake_chunks_get(u32 n, u32 *first)
{
	int err = 0;

	mutex_lock(&bar_lock);
	if (!bar.start)
		err = fake_bar_get(&bar);
	if (!err) {
		u32 all = min_t(u64, bar.size / FAKE_CHUNK, MAX_CHUNKS);

		*first = bitmap_find_next_zero_area(used, all, 0, n, 0);
		if (*first < all)
			bitmap_set(used, *first, n);
		else
			err = -ENOSPC;
	}
	mutex_unlock(&bar_lock);
	return err;
}

static u32 chunks(const struct gpu_buf *gpu)
{
	return DIV_ROUND_UP(gpu->size, FAKE_CHUNK);
}

void fake_chunks_put(u32 first, u32 n)
{
	mutex_lock(&bar_lock);
	bitmap_clear(used, first, n);
	mutex_unlock(&bar_lock);
}

phys_addr_t fake_bar_bus(u32 chunk)
{
	return bar.start + chunk * FAKE_CHUNK;
}

static int take_memory(struct gpu_buf *gpu)
{
	void __iomem *io;
	void *mem;
	int err;

	if (!(gpu->flags & FAKE_GPU_BAR)) {
		mem = vzalloc(gpu->size);
		if (!mem)
			return -ENOMEM;
		iosys_map_set_vaddr(&gpu->map, mem);
		return 0;
	}
	err = fake_chunks_get(chunks(gpu), &gpu->chunk);
	if (err)
		return err;
	io = ioremap_wc(fake_bar_bus(gpu->chunk), gpu->size);
	if (!io) {
		fake_chunks_put(gpu->chunk, chunks(gpu));
		return -ENOMEM;
	}
	iosys_map_set_vaddr_iomem(&gpu->map, io);
	return 0;
}

static void give_memory(struct gpu_buf *gpu)
{
	WARN_ON(atomic_read(&gpu->mapped) || atomic_read(&gpu->pinned));
	if (gpu->map.is_iomem) {
		iounmap(gpu->map.vaddr_iomem);
		fake_chunks_put(gpu->chunk, chunks(gpu));
	} else {
		vfree(gpu->map.vaddr);
	}
}

/* ---- a dma-buf ---- */

static struct sg_table *no_dma(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void no_dma_end(struct dma_buf_attachment *attach, struct sg_table *sgt, enum dma_data_direction dir)
{
}

/* Moves the buffer to other pages at pin, as amdgpu moves buffers to system memory. The old pages are then invalid. */
static int migrate(struct dma_buf *buf)
{
	struct gpu_buf *gpu = buf->priv;
	void *old = gpu->map.vaddr, *new = vzalloc(gpu->size);

	if (!new)
		return -ENOMEM;
	dma_buf_move_notify(buf);
	memcpy(new, old, gpu->size);
	iosys_map_set_vaddr(&gpu->map, new);
	vfree(old);
	return 0;
}

static int pin(struct dma_buf_attachment *attach)
{
	struct gpu_buf *gpu = attach->dmabuf->priv;
	int err;

	if (gpu->flags & FAKE_GPU_MIGRATES && !atomic_read(&gpu->pinned)) {
		err = migrate(attach->dmabuf);
		if (err)
			return err;
	}
	atomic_inc(&gpu->pinned);
	return 0;
}

static void unpin(struct dma_buf_attachment *attach)
{
	struct gpu_buf *gpu = attach->dmabuf->priv;

	atomic_dec(&gpu->pinned);
}

static int attach_pins(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	return pin(attach);
}

static void detach_unpins(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	unpin(attach);
}

static bool adrift(const struct gpu_buf *gpu)
{
	return gpu->flags & FAKE_GPU_MOVES && !atomic_read(&gpu->pinned);
}

static int vmap_buf(struct dma_buf *buf, struct iosys_map *map)
{
	struct gpu_buf *gpu = buf->priv;

	if (gpu->flags & FAKE_GPU_FAILS)
		return -EIO;
	if (WARN_ON(adrift(gpu)))
		return -EBUSY;
	atomic_inc(&gpu->mapped);
	*map = gpu->map;
	return 0;
}

static void vunmap_buf(struct dma_buf *buf, struct iosys_map *map)
{
	struct gpu_buf *gpu = buf->priv;

	WARN_ON(adrift(gpu));
	atomic_dec(&gpu->mapped);
}

static void release(struct dma_buf *buf)
{
	give_memory(buf->priv);
	kfree(buf->priv);
}

static const struct dma_buf_ops still = {
	.map_dma_buf	= no_dma,
	.unmap_dma_buf	= no_dma_end,
	.vmap		= vmap_buf,
	.vunmap		= vunmap_buf,
	.release	= release,
};

static const struct dma_buf_ops moving = {
	.pin		= pin,
	.unpin		= unpin,
	.map_dma_buf	= no_dma,
	.unmap_dma_buf	= no_dma_end,
	.vmap		= vmap_buf,
	.vunmap		= vunmap_buf,
	.release	= release,
};

static const struct dma_buf_ops attached = {
	.attach		= attach_pins,
	.detach		= detach_unpins,
	.map_dma_buf	= no_dma,
	.unmap_dma_buf	= no_dma_end,
	.vmap		= vmap_buf,
	.vunmap		= vunmap_buf,
	.release	= release,
};

static const struct dma_buf_ops unmappable = {
	.map_dma_buf	= no_dma,
	.unmap_dma_buf	= no_dma_end,
	.release	= release,
};

static const struct dma_buf_ops *ops_of(u32 flags)
{
	if (flags & FAKE_GPU_UNMAPPABLE)
		return &unmappable;
	if (!(flags & FAKE_GPU_MOVES))
		return &still;
	return flags & FAKE_GPU_ATTACHED ? &attached : &moving;
}

/* ---- ioctls ---- */

static int export(struct fake_gpu_export *ask)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct gpu_buf *gpu;
	struct dma_buf *buf;
	int err;

	if (!ask->size || ask->size > 16ull << 20)
		return -EINVAL;
	gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	if (!gpu)
		return -ENOMEM;
	gpu->size = PAGE_ALIGN(ask->size);
	gpu->flags = ask->flags;
	err = take_memory(gpu);
	if (err)
		goto err_free;
	info.ops = ops_of(gpu->flags);
	info.size = gpu->size;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = gpu;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		err = PTR_ERR(buf);
		goto err_give;
	}
	ask->fd = dma_buf_fd(buf, O_RDWR | O_CLOEXEC);
	if (ask->fd < 0) {
		dma_buf_put(buf);
		return ask->fd;
	}
	return 0;

err_give:
	give_memory(gpu);
err_free:
	kfree(gpu);
	return err;
}

static struct dma_buf *get_ours(int fd)
{
	struct dma_buf *buf = dma_buf_get(fd);

	if (!IS_ERR(buf) && buf->owner != THIS_MODULE) {
		dma_buf_put(buf);
		return ERR_PTR(-EINVAL);
	}
	return buf;
}

static int copy_piece(struct gpu_buf *gpu, const struct fake_gpu_copy *ask, u64 done, void *bounce, u32 n)
{
	void __user *user = u64_to_user_ptr(ask->user + done);

	if (ask->write) {
		if (copy_from_user(bounce, user, n))
			return -EFAULT;
		iosys_map_memcpy_to(&gpu->map, ask->offset + done, bounce, n);
		return 0;
	}
	iosys_map_memcpy_from(bounce, &gpu->map, ask->offset + done, n);
	return copy_to_user(user, bounce, n) ? -EFAULT : 0;
}

static int copy_buf(const struct fake_gpu_copy *ask, void *bounce)
{
	struct dma_buf *buf = get_ours(ask->fd);
	int err = -EINVAL;
	u64 done;
	u32 n;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	if (ask->offset <= buf->size && ask->len <= buf->size - ask->offset) {
		err = 0;
		for (done = 0; done < ask->len && !err; done += n) {
			n = min_t(u64, ask->len - done, PAGE_SIZE);
			err = copy_piece(buf->priv, ask, done, bounce, n);
		}
		wmb();	/* the copy is visible before the ioctl returns */
	}
	dma_buf_put(buf);
	return err;
}

static int copy(const struct fake_gpu_copy *ask)
{
	void *bounce = (void *)__get_free_page(GFP_KERNEL);
	int err;

	if (!bounce)
		return -ENOMEM;
	err = ask->fd < 0 ? fake_peer_copy(ask, bounce) : copy_buf(ask, bounce);
	free_page((unsigned long)bounce);
	return err;
}

static int move(int fd)
{
	struct dma_buf *buf = get_ours(fd);
	struct gpu_buf *gpu;
	int err = 0;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	gpu = buf->priv;
	dma_resv_lock(buf->resv, NULL);
	if (gpu->flags & FAKE_GPU_ATTACHED && !adrift(gpu)) {
		err = -EBUSY;
	} else {
		dma_buf_move_notify(buf);
		iosys_map_memset(&gpu->map, 0, FAKE_GPU_POISON, gpu->size);
	}
	dma_resv_unlock(buf->resv);
	dma_buf_put(buf);
	return err;
}

static long gpu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct fake_gpu_export wish;
	struct fake_gpu_copy bytes;
	__s32 fd;
	int err;

	switch (cmd) {
	case FAKE_GPU_EXPORT:
		if (copy_from_user(&wish, user, sizeof(wish)))
			return -EFAULT;
		err = export(&wish);
		return err ?: copy_to_user(user, &wish, sizeof(wish)) ? -EFAULT : 0;
	case FAKE_GPU_COPY:
		return copy_from_user(&bytes, user, sizeof(bytes)) ? -EFAULT : copy(&bytes);
	case FAKE_GPU_MOVE:
		return copy_from_user(&fd, user, sizeof(fd)) ? -EFAULT : move(fd);
	case FAKE_GPU_LEAVE:
		return fake_peer_leave();
	}
	return -ENOTTY;
}

static const struct file_operations gpu_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= gpu_ioctl,
	.mmap		= fake_peer_mmap,
};

static struct miscdevice gpu_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "roan_gpu",
	.fops	= &gpu_fops,
};

static int __init gpu_init(void)
{
	int err = fake_peer_init();

	if (err)
		return err;
	err = misc_register(&gpu_device);
	if (err)
		fake_peer_exit();
	return err;
}

static void __exit gpu_exit(void)
{
	misc_deregister(&gpu_device);
	fake_peer_exit();
	if (bar.start)
		fake_bar_put(&bar);
}

module_init(gpu_init);
module_exit(gpu_exit);
