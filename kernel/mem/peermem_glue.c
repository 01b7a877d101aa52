// SPDX-License-Identifier: GPL-2.0
/*
 * The side of roan.ko of the peer-memory interface: passes an address range that cannot be pinned to roan_peermem.ko
 * (kernel/mem/peermem/), if that module is loaded. Does not know the clients.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include "mem/mem.h"

static const struct roan_peermem_ops *ops;
static DEFINE_MUTEX(lock);	/* ops; held until their module is referenced */

int roan_peermem_ops_set(const struct roan_peermem_ops *new)
{
	int err = 0;

	mutex_lock(&lock);
	if (new && ops)
		err = -EBUSY;
	else
		ops = new;
	mutex_unlock(&lock);
	return err;
}
EXPORT_SYMBOL_GPL(roan_peermem_ops_set);

/*
 * Wrappers for roan_peermem.ko: mr.c and iomem.c are also linked into the KUnit suites and therefore export no symbols.
 */
void roan_peermem_revoke(struct roan_mr *mr)
{
	roan_mr_revoke(mr);
}
EXPORT_SYMBOL_GPL(roan_peermem_revoke);

struct roan_iomem *roan_peermem_iomem_alloc(u32 n_pieces, u8 shift, u64 off)
{
	return roan_iomem_alloc(n_pieces, shift, off);
}
EXPORT_SYMBOL_GPL(roan_peermem_iomem_alloc);

int roan_peermem_claim(struct roan_mr *mr, u64 start)
{
	const struct roan_peermem_ops *asked;
	int err;

	mutex_lock(&lock);
	asked = ops && try_module_get(ops->owner) ? ops : NULL;
	mutex_unlock(&lock);
	if (!asked)
		return -EFAULT;
	err = asked->claim(mr, start, roan_pci_parent(to_roan_dev(mr->ib.device)));
	if (err) {
		module_put(asked->owner);
		return err;
	}
	mr->kind = ROAN_MR_PEERMEM;
	mr->peermem_ops = asked;
	return 0;
}

void roan_peermem_release(struct roan_mr *mr)
{
	mr->peermem_ops->release(mr);
	module_put(mr->peermem_ops->owner);
}
