// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory in a PCI device's BAR. The administrator writes a BAR to the attribute dm_bar of a roan device; later
 * allocations are pieces of that BAR. Does not decide which memory an allocation gets (dm.c), does not copy for packets
 * (iomem.c).
 *
 * The BAR's PCI device has no driver, so a bus notifier reports its removal. Pieces then stay allocated, but without
 * memory: regions are revoked and copies fail. When the notifier returns, no CPU accesses the BAR.
 *
 * One mutex covers all of this, including PCI lookup and claim. The removal notifier takes it too, so a device found
 * under it cannot be removed before its BAR is in the list.
 */
#include <linux/bitmap.h>
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/security.h>
#include <linux/uaccess.h>
#include "mem/mem.h"

struct roan_dm_bar {
	struct list_head link;		/* bars */
	struct list_head pieces;
	struct pci_dev *pdev;		/* NULL: removed */
	void __iomem *io;		/* the whole BAR; valid while @pdev is set */
	unsigned long *used;		/* one bit per page */
	u64 size;			/* bytes */
	u32 users;			/* number of roan devices that use it, plus pieces */
	int nr;				/* BAR number */
};

struct roan_dm_bar_mem {
	struct list_head link;		/* bar->pieces */
	struct list_head regions;
	struct roan_dm_bar *bar;
	u64 off;			/* bytes in the BAR */
	u64 size;			/* bytes, a multiple of PAGE_SIZE */
};

struct roan_dm_bar_mr {
	struct list_head link;		/* piece->regions */
	struct roan_mr *mr;
};

static LIST_HEAD(bars);
static DEFINE_MUTEX(lock);		/* all of the above, and roan_dev.dm_bar of all devices */

/* ---- the BAR ---- */

static int bar_claim_pci(struct roan_dm_bar *bar)
{
	struct pci_dev *pdev = bar->pdev;
	int err;

	if (!pci_resource_len(pdev, bar->nr))
		return -ENXIO;
	if (!(pci_resource_flags(pdev, bar->nr) & IORESOURCE_MEM) || !PAGE_ALIGNED(pci_resource_start(pdev, bar->nr)))
		return -EOPNOTSUPP;
	bar->size = pci_resource_len(pdev, bar->nr);
	if (bar->size < PAGE_SIZE || bar->size >> PAGE_SHIFT > INT_MAX)
		return -EOPNOTSUPP;
	if (pdev->dev.driver)
		return -EBUSY;
	bar->used = kvcalloc(BITS_TO_LONGS(bar->size >> PAGE_SHIFT), sizeof(long), GFP_KERNEL_ACCOUNT);
	if (!bar->used)
		return -ENOMEM;
	/* Without a driver it counts as idle: it could lose its power, and the BAR's content, with its bridge. */
	err = pm_runtime_resume_and_get(&pdev->dev);
	if (err)
		goto err_free;
	err = pci_enable_device_mem(pdev);
	if (err)
		goto err_put_power;
	err = pci_request_region(pdev, bar->nr, "roan");
	if (err)
		goto err_disable;
	bar->io = ioremap_wc(pci_resource_start(pdev, bar->nr), bar->size);
	if (bar->io)
		return 0;
	err = -ENOMEM;
	pci_release_region(pdev, bar->nr);
err_disable:
	pci_disable_device(pdev);
err_put_power:
	pm_runtime_put(&pdev->dev);
err_free:
	kvfree(bar->used);
	return err;
}

/*
 * The device is being removed, or the BAR has no user left. No CPU accesses it: regions were revoked, or there are
 * none.
 */
static void bar_unclaim_pci(struct roan_dm_bar *bar)
{
	iounmap(bar->io);
	pci_release_region(bar->pdev, bar->nr);
	pci_disable_device(bar->pdev);
	pm_runtime_put(&bar->pdev->dev);
	pci_dev_put(bar->pdev);
	bar->pdev = NULL;
}

static void bar_put(struct roan_dm_bar *bar)
{
	if (!bar || --bar->users)
		return;
	if (bar->pdev)
		bar_unclaim_pci(bar);
	list_del(&bar->link);
	kvfree(bar->used);
	kfree(bar);
}

/* Takes over the caller's reference to @pdev, also on error. */
static struct roan_dm_bar *bar_get(struct pci_dev *pdev, int nr)
{
	struct roan_dm_bar *bar;
	int err = -ENOMEM;

	list_for_each_entry(bar, &bars, link)
		if (bar->pdev == pdev && bar->nr == nr) {
			pci_dev_put(pdev);
			bar->users++;
			return bar;
		}
	bar = kzalloc(sizeof(*bar), GFP_KERNEL_ACCOUNT);
	if (!bar)
		goto err_put;
	bar->pdev = pdev;
	bar->nr = nr;
	bar->users = 1;
	INIT_LIST_HEAD(&bar->pieces);
	err = bar_claim_pci(bar);
	if (err)
		goto err_free;
	list_add(&bar->link, &bars);
	return bar;

err_free:
	kfree(bar);
err_put:
	pci_dev_put(pdev);
	return ERR_PTR(err);
}

/* @text: PCI device name, slash, BAR number; for example 0000:01:00.0/2 */
static struct roan_dm_bar *bar_get_by_name(const char *text)
{
	char *name = kstrdup(text, GFP_KERNEL), *number;
	struct roan_dm_bar *bar = ERR_PTR(-EINVAL);
	struct device *device;
	unsigned int nr;

	if (!name)
		return ERR_PTR(-ENOMEM);
	number = strrchr(name, '/');
	if (!number)
		goto out;
	*number++ = '\0';
	if (kstrtouint(number, 10, &nr) || nr >= PCI_STD_NUM_BARS)
		goto out;
	device = bus_find_device_by_name(&pci_bus_type, NULL, name);
	bar = device ? bar_get(to_pci_dev(device), nr) : ERR_PTR(-ENODEV);
out:
	kfree(name);
	return bar;
}

/* ---- sysfs attribute dm_bar ---- */

static struct roan_dev *bar_roan_dev(struct device *device)
{
	return rdma_device_to_drv_device(device, struct roan_dev, ib);
}

static ssize_t dm_bar_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct roan_dm_bar *bar;
	ssize_t n;

	mutex_lock(&lock);
	bar = bar_roan_dev(device)->dm_bar;
	if (!bar)
		n = sysfs_emit(buf, "none\n");
	else
		n = bar->pdev ? sysfs_emit(buf, "%s/%d\n", pci_name(bar->pdev), bar->nr) : sysfs_emit(buf, "gone\n");
	mutex_unlock(&lock);
	return n;
}

/* Existing allocations keep their memory. */
static ssize_t dm_bar_store(struct device *device, struct device_attribute *attr, const char *buf, size_t n)
{
	int err = capable(CAP_SYS_RAWIO) ? security_locked_down(LOCKDOWN_PCI_ACCESS) : -EPERM;
	struct roan_dev *dev = bar_roan_dev(device);
	struct roan_dm_bar *bar = NULL;

	if (err)
		return err;
	mutex_lock(&lock);
	if (!sysfs_streq(buf, "none"))
		bar = bar_get_by_name(buf);
	if (!IS_ERR(bar)) {
		bar_put(dev->dm_bar);
		dev->dm_bar = bar;
	}
	mutex_unlock(&lock);
	return IS_ERR(bar) ? PTR_ERR(bar) : n;
}
DEVICE_ATTR_RW(dm_bar);

void roan_dm_bar_detach(struct roan_dev *dev)
{
	mutex_lock(&lock);
	bar_put(dev->dm_bar);
	dev->dm_bar = NULL;
	mutex_unlock(&lock);
}

/* ---- pieces of a BAR ---- */

static struct roan_dm_bar_mem *bar_carve(struct roan_dm_bar *bar, u64 size, struct roan_dm_bar_mem *piece)
{
	unsigned long all = bar->size >> PAGE_SHIFT, n = PAGE_ALIGN(size) >> PAGE_SHIFT, at;

	if (!bar->pdev)
		return ERR_PTR(-ENODEV);
	at = bitmap_find_next_zero_area(bar->used, all, 0, n, 0);
	if (at >= all)
		return ERR_PTR(-ENOMEM);
	bitmap_set(bar->used, at, n);
	piece->off = (u64)at << PAGE_SHIFT;
	piece->size = (u64)n << PAGE_SHIFT;
	piece->bar = bar;
	INIT_LIST_HEAD(&piece->regions);
	list_add(&piece->link, &bar->pieces);
	bar->users++;
	memset_io(bar->io + piece->off, 0, piece->size);	/* it may hold another process's data */
	return piece;
}

struct roan_dm_bar_mem *roan_dm_bar_alloc(struct roan_dev *dev, u64 size)
{
	struct roan_dm_bar_mem *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT), *piece = NULL;

	if (!fresh)	/* not allocated under the mutex: it takes long at a cgroup's limit */
		return ERR_PTR(-ENOMEM);
	mutex_lock(&lock);
	if (dev->dm_bar)
		piece = bar_carve(dev->dm_bar, size, fresh);
	mutex_unlock(&lock);
	if (piece != fresh)
		kfree(fresh);
	return piece;
}

void roan_dm_bar_free(struct roan_dm_bar_mem *piece)
{
	struct roan_dm_bar *bar = piece->bar;

	mutex_lock(&lock);
	WARN_ON_ONCE(!list_empty(&piece->regions));
	list_del(&piece->link);
	bitmap_clear(bar->used, piece->off >> PAGE_SHIFT, piece->size >> PAGE_SHIFT);
	bar_put(bar);
	mutex_unlock(&lock);
	kfree(piece);
}

/* The caller has set @mr valid: once it is in the list it may be revoked. */
int roan_dm_bar_reg_mr(struct roan_dm_bar_mem *piece, struct roan_mr *mr, u64 off)
{
	struct roan_dm_bar_mr *region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	int err = -ENODEV;

	if (!region)
		return -ENOMEM;
	mr->io = roan_iomem_alloc(1, 63, off);
	if (!mr->io) {
		err = -ENOMEM;
		goto err_free;
	}
	mutex_lock(&lock);
	if (!piece->bar->pdev)
		goto err_unlock;
	mr->io->piece[0] = piece->bar->io + piece->off;
	mr->bar_region = region;
	region->mr = mr;
	list_add(&region->link, &piece->regions);
	mutex_unlock(&lock);
	return 0;

err_unlock:
	mutex_unlock(&lock);
	kvfree(mr->io);
err_free:
	kfree(region);
	return err;
}

void roan_dm_bar_dereg_mr(struct roan_mr *mr)
{
	mutex_lock(&lock);
	list_del(&mr->bar_region->link);
	mutex_unlock(&lock);
	kfree(mr->bar_region);
	kvfree(mr->io);
}

/* Copies @n bytes, at most PAGE_SIZE, between @bounce and the piece. */
static int bar_copy_chunk(const struct roan_dm_bar_mem *piece, u64 off, void *bounce, u32 n, bool write)
{
	int err = -ENODEV;

	mutex_lock(&lock);
	if (piece->bar->pdev) {
		void __iomem *at = piece->bar->io + piece->off + off;

		err = 0;
		if (write)
			memcpy_toio(at, bounce, n);
		else
			memcpy_fromio(bounce, at, n);
		wmb();	/* flush write-combining buffers before the ioctl returns */
	}
	mutex_unlock(&lock);
	return err;
}

/* User memory is not accessed under the mutex, because a user page fault may take arbitrarily long. */
int roan_dm_bar_copy(const struct roan_dm_bar_mem *piece, u64 off, void __user *user, u64 len, bool write)
{
	void *bounce = (void *)__get_free_page(GFP_KERNEL);
	int err = 0;
	u32 n;

	if (!bounce)
		return -ENOMEM;
	for (; len && !err; len -= n, off += n, user += n) {
		n = min_t(u64, len, PAGE_SIZE);
		if (write && copy_from_user(bounce, user, n))
			err = -EFAULT;
		if (!err)
			err = bar_copy_chunk(piece, off, bounce, n, write);
		if (!err && !write && copy_to_user(user, bounce, n))
			err = -EFAULT;
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
	}
	free_page((unsigned long)bounce);
	return err;
}

/* ---- removal of the PCI device ---- */

static void bar_revoke_mrs(struct roan_dm_bar *bar)
{
	struct roan_dm_bar_mr *region;
	struct roan_dm_bar_mem *piece;

	list_for_each_entry(piece, &bar->pieces, link)
		list_for_each_entry(region, &piece->regions, link)
			roan_mr_begin_revoke(region->mr);
	/* Once: programs can register many regions, and the mutex stops all allocations of device memory meanwhile. */
	synchronize_rcu();
	bar_unclaim_pci(bar);
}

static int bar_bus_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct roan_dm_bar *bar;

	if (event != BUS_NOTIFY_REMOVED_DEVICE)	/* a lookup on the bus no longer finds the device */
		return NOTIFY_DONE;
	mutex_lock(&lock);
	list_for_each_entry(bar, &bars, link)
		if (bar->pdev && &bar->pdev->dev == data)
			bar_revoke_mrs(bar);
	mutex_unlock(&lock);
	return NOTIFY_DONE;
}

static struct notifier_block bus_watch = { .notifier_call = bar_bus_event };

int roan_dm_bar_init(void)
{
	return bus_register_notifier(&pci_bus_type, &bus_watch);
}

void roan_dm_bar_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &bus_watch);
}
