// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory (ibv_alloc_dm()). Decides where an allocation comes from, and the limit of a device. By default it is
 * kernel memory, charged to the caller (base/user_mem.c); programs can map it but not pin it, and its regions use pages
 * like other regions. If the administrator has configured a BAR (dm_bar.c), it is a piece of that BAR; programs cannot
 * map it and copy through an ioctl. Does not manage BARs (dm_bar.c) and does not copy for packets (mr_access.c,
 * iomem.c).
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <rdma/uverbs_ioctl.h>
#define UVERBS_MODULE_NAME roan_dm
#include <rdma/uverbs_named_ioctl.h>
#include "base/user_mem.h"
#include "mem/mem.h"

struct roan_dm {
	struct ib_dm ib;
	struct roan_mmap *map;	/* owns the memory, which is freed after the last unmap */
	struct roan_dm_bar_mem *piece;	/* instead of @map: a piece of a BAR */
};

static struct roan_dm *to_roan_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct roan_dm, ib);
}

void roan_dm_init(struct roan_dev *dev)
{
	dev->dm_limit = (u64)totalram_pages() / 8 << PAGE_SHIFT;
}

static bool dm_take(struct roan_dev *dev, u64 length)
{
	if (atomic64_add_return(length, &dev->dm_used) <= READ_ONCE(dev->dm_limit))
		return true;
	atomic64_sub(length, &dev->dm_used);
	return false;
}

static int dm_from_kernel(struct ib_ucontext *uctx, struct roan_dm *dm, u64 length)
{
	struct roan_dev *dev = to_roan_dev(uctx->device);
	struct roan_mmap *map;

	length = PAGE_ALIGN(length);
	if (!dm_take(dev, length)) {
		roan_user_mem_free_unmapped();
		if (!dm_take(dev, length))
			return -ENOMEM;
	}
	map = roan_user_mem_alloc(length, uctx);
	if (IS_ERR(map)) {
		atomic64_sub(length, &dev->dm_used);
		return PTR_ERR(map);
	}
	map->used = &dev->dm_used;	/* until the pages are freed, which a program that maps them delays */
	dm->map = map;
	return 0;
}

struct ib_dm *roan_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx, struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	struct roan_dm *dm;
	int err;

	if (!attr->length || attr->alignment > PAGE_SHIFT)
		return ERR_PTR(-EINVAL);
	if (attr->length > ROAN_MAX_DM)
		return ERR_PTR(-ENOMEM);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->piece = roan_dm_bar_alloc(to_roan_dev(ibdev), attr->length);
	err = PTR_ERR_OR_ZERO(dm->piece);
	if (!err && !dm->piece)
		err = dm_from_kernel(uctx, dm, attr->length);
	if (!err)
		return &dm->ib;
	kfree(dm);
	return ERR_PTR(err);
}

int roan_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct roan_dm *dm = to_roan_dm(ibdm);

	if (dm->piece)
		roan_dm_bar_free(dm->piece);
	else
		rdma_user_mmap_entry_remove(&dm->map->entry);	/* ends in roan_mmap_free() */
	kfree(dm);
	return 0;
}

static ssize_t dm_limit_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(rdma_device_to_drv_device(device, struct roan_dev, ib)->dm_limit));
}

/* Existing allocations stay. */
static ssize_t dm_limit_store(struct device *device, struct device_attribute *attr, const char *buf, size_t n)
{
	struct roan_dev *dev = rdma_device_to_drv_device(device, struct roan_dev, ib);
	u64 bytes;
	int err = kstrtou64(buf, 0, &bytes);

	if (err)
		return err;
	if (bytes > S64_MAX)
		return -EINVAL;
	WRITE_ONCE(dev->dm_limit, bytes);
	return n;
}
DEVICE_ATTR_RW(dm_limit);

static int dm_set_pages(struct roan_mr *mr, const struct roan_dm *dm, u64 offset)
{
	mr->page_off = offset_in_page(offset);
	mr->n_pages = PAGE_ALIGN(mr->page_off + mr->length) >> PAGE_SHIFT;
	mr->pages = kvmalloc_array(mr->n_pages, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		return -ENOMEM;
	memcpy(mr->pages, &dm->map->pages[offset >> PAGE_SHIFT], mr->n_pages * sizeof(*mr->pages));
	return 0;
}

/* The core has checked that the range lies in the allocation. Length 0 is allowed. Addresses are zero-based. */
struct ib_mr *roan_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	u32 access = attr->access_flags & ~(IB_ACCESS_OPTIONAL | IB_ZERO_BASED);
	struct roan_dm *dm = to_roan_dm(ibdm);
	struct roan_mr *mr;

	if (access & ~(ROAN_ACCESS_SUPPORTED & ~IB_ACCESS_FLUSH_PERSISTENT))
		return ERR_PTR(-EOPNOTSUPP);
	mr = roan_mr_alloc(pd, ROAN_MR_DM);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->length = attr->length;
	mr->ib.length = attr->length;
	mr->access = access;
	mr->state = ROAN_MR_VALID;	/* before roan_dm_bar_reg_mr(): after it the region may be revoked */
	return roan_mr_finish(mr, dm->piece ? roan_dm_bar_reg_mr(dm->piece, mr, attr->offset) :
				  dm_set_pages(mr, dm, attr->offset));
}

/* Returns the mmap offset and the length, for a provider that allocates or imports the memory. */
static int UVERBS_HANDLER(ROAN_METHOD_DM_MAP)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, ROAN_ATTR_DM_MAP_HANDLE);
	struct roan_dm_desc desc = { .mmap_offset = ROAN_DM_UNMAPPED };

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	if (to_roan_dm(ibdm)->map)
		desc.mmap_offset = rdma_user_mmap_get_offset(&to_roan_dm(ibdm)->map->entry);
	desc.length = ibdm->length;
	return uverbs_copy_to_struct_or_zero(attrs, ROAN_ATTR_DM_MAP_RESP, &desc, sizeof(desc));
}

/* Copies from or to a piece of a BAR, which cannot be mapped. */
static int UVERBS_HANDLER(ROAN_METHOD_DM_COPY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, ROAN_ATTR_DM_COPY_HANDLE);
	struct roan_dm_copy req;
	int err;

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	err = uverbs_copy_from_or_zero(&req, attrs, ROAN_ATTR_DM_COPY_REQ);
	if (err)
		return err;
	if (req.reserved || req.write > 1 || req.offset > ibdm->length || req.length > ibdm->length - req.offset)
		return -EINVAL;
	if (!to_roan_dm(ibdm)->piece)
		return -EOPNOTSUPP;
	return roan_dm_bar_copy(to_roan_dm(ibdm)->piece, req.offset, u64_to_user_ptr(req.user), req.length, req.write);
}

/* Returns a dma-buf of the memory. The descriptor appears in the process once nothing can fail any more. */
static int UVERBS_HANDLER(ROAN_METHOD_DM_EXPORT)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, ROAN_ATTR_DM_EXPORT_HANDLE);
	struct file *file;
	s32 fd;
	int err;

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	if (!to_roan_dm(ibdm)->map)
		return -EOPNOTSUPP;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = roan_dm_export(to_roan_dm(ibdm)->map);
	err = IS_ERR(file) ? PTR_ERR(file) : uverbs_copy_to(attrs, ROAN_ATTR_DM_EXPORT_FD, &fd, sizeof(fd));
	if (err) {
		put_unused_fd(fd);
		if (!IS_ERR(file))
			fput(file);
		return err;
	}
	fd_install(fd, file);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	ROAN_METHOD_DM_MAP,
	UVERBS_ATTR_IDR(ROAN_ATTR_DM_MAP_HANDLE, UVERBS_OBJECT_DM, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(ROAN_ATTR_DM_MAP_RESP, UVERBS_ATTR_STRUCT(struct roan_dm_desc, length), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(
	ROAN_METHOD_DM_COPY,
	UVERBS_ATTR_IDR(ROAN_ATTR_DM_COPY_HANDLE, UVERBS_OBJECT_DM, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(ROAN_ATTR_DM_COPY_REQ, UVERBS_ATTR_STRUCT(struct roan_dm_copy, reserved), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(
	ROAN_METHOD_DM_EXPORT,
	UVERBS_ATTR_IDR(ROAN_ATTR_DM_EXPORT_HANDLE, UVERBS_OBJECT_DM, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(ROAN_ATTR_DM_EXPORT_FD, UVERBS_ATTR_TYPE(s32), UA_MANDATORY));

ADD_UVERBS_METHODS(roan_dm_methods, UVERBS_OBJECT_DM, &UVERBS_METHOD(ROAN_METHOD_DM_MAP),
		   &UVERBS_METHOD(ROAN_METHOD_DM_COPY), &UVERBS_METHOD(ROAN_METHOD_DM_EXPORT));

const struct uapi_definition roan_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &roan_dm_methods),
	{}
};
