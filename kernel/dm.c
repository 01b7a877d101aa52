// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: a device without any lends the kernel's, which programs may map but never pin, and which counts against
 * the control group of who asked for it. Regions of it are pages like any others.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_std_types.h>
#define UVERBS_MODULE_NAME roan_dm
#include <rdma/uverbs_named_ioctl.h>
#include "roan.h"

struct roan_dm {
	struct ib_dm ib;
	struct roan_mmap *map;	/* owns the memory, which lasts as long as somebody has it mapped */
};

static struct roan_dm *to_roan_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct roan_dm, ib);
}

/* As vmalloc_user(), but accounted. The mapping owns the pages. */
static void *alloc_mapped(u32 n_pages)
{
	struct page **pages = kvcalloc(n_pages, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	void *buf;
	u32 i;

	if (!pages)
		return NULL;
	for (i = 0; i < n_pages; i++) {
		pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages[i])
			goto err_free;
	}
	buf = vmap(pages, n_pages, VM_USERMAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (buf)
		return buf;
err_free:
	while (i--)
		__free_page(pages[i]);
	kvfree(pages);
	return NULL;
}

struct ib_dm *roan_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx, struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	struct roan_dm *dm;
	void *buf;

	if (!attr->length || attr->alignment > PAGE_SHIFT)
		return ERR_PTR(-EINVAL);
	if (attr->length > ROAN_MAX_DM)
		return ERR_PTR(-ENOMEM);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	buf = alloc_mapped(PAGE_ALIGN(attr->length) >> PAGE_SHIFT);
	if (!buf)
		goto err_free;
	dm->map = roan_map_for_user(buf, PAGE_ALIGN(attr->length), uctx);
	if (!dm->map)
		goto err_unmap;
	return &dm->ib;

err_unmap:
	vfree(buf);
err_free:
	kfree(dm);
	return ERR_PTR(-ENOMEM);
}

int roan_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct roan_dm *dm = to_roan_dm(ibdm);

	rdma_user_mmap_entry_remove(&dm->map->entry);	/* ends in roan_mmap_free() */
	kfree(dm);
	return 0;
}

/* The core checked that it lies within the memory; a region of no bytes is one. Addresses count from 0. */
struct ib_mr *roan_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	void *first = to_roan_dm(ibdm)->map->buf + attr->offset;
	u32 access = attr->access_flags & ~(IB_ACCESS_OPTIONAL | IB_ZERO_BASED);
	struct roan_mr *mr;
	int err;
	u32 i;

	if (access & ~(ROAN_ACCESS_SUPPORTED & ~IB_ACCESS_FLUSH_PERSISTENT))
		return ERR_PTR(-EOPNOTSUPP);
	mr = roan_mr_alloc(pd, ROAN_MR_DM);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = -ENOMEM;
	mr->page_off = offset_in_page(first);
	mr->n_pages = PAGE_ALIGN(mr->page_off + attr->length) >> PAGE_SHIFT;
	mr->pages = kvmalloc_array(mr->n_pages, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		goto err_free;
	for (i = 0; i < mr->n_pages; i++)
		mr->pages[i] = vmalloc_to_page(first + i * PAGE_SIZE);
	mr->length = mr->ib.length = attr->length;
	mr->access = access;
	mr->state = ROAN_MR_VALID;
	err = roan_mr_publish(mr);
	if (err)
		goto err_free;
	return &mr->ib;

err_free:
	kvfree(mr->pages);
	kfree(mr);
	return ERR_PTR(err);
}

/* Where a program maps it, so that it may copy without us. Whoever imports the memory asks the same. */
static int UVERBS_HANDLER(ROAN_METHOD_DM_MAP)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, ROAN_ATTR_DM_MAP_HANDLE);
	struct roan_dm_desc desc = {};

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	desc.mmap_offset = rdma_user_mmap_get_offset(&to_roan_dm(ibdm)->map->entry);
	desc.length = ibdm->length;
	return uverbs_copy_to(attrs, ROAN_ATTR_DM_MAP_RESP, &desc, sizeof(desc));
}

DECLARE_UVERBS_NAMED_METHOD(ROAN_METHOD_DM_MAP,
	UVERBS_ATTR_IDR(ROAN_ATTR_DM_MAP_HANDLE, UVERBS_OBJECT_DM, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(ROAN_ATTR_DM_MAP_RESP, UVERBS_ATTR_TYPE(struct roan_dm_desc), UA_MANDATORY));

ADD_UVERBS_METHODS(roan_dm_methods, UVERBS_OBJECT_DM, &UVERBS_METHOD(ROAN_METHOD_DM_MAP));

const struct uapi_definition roan_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &roan_dm_methods),
	{}
};
