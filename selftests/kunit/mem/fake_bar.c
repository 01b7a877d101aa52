// SPDX-License-Identifier: GPL-2.0
/* Implements fake_bar.h. */
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "fake_bar.h"

#ifdef CONFIG_INDIRECT_IOMEM
#include <linux/logic_iomem.h>

#define BAR_START	0x5a0000000000ull
#define BAR_SIZE	(4ull << 20)

static u8 *backing;
static atomic_t mapped;

static unsigned long bar_read(void *priv, unsigned int offset, int size)
{
	unsigned long value = 0;

	memcpy(&value, priv + offset, size);
	return value;
}

static void bar_write(void *priv, unsigned int offset, int size, unsigned long value)
{
	memcpy(priv + offset, &value, size);
}

static void bar_copy_from(void *priv, void *to, unsigned int offset, int size)
{
	memcpy(to, priv + offset, size);
}

static void bar_copy_to(void *priv, unsigned int offset, const void *from, int size)
{
	memcpy(priv + offset, from, size);
}

static void bar_unmap(void *priv)
{
	atomic_dec(&mapped);
}

static const struct logic_iomem_ops accessors = {
	.read		= bar_read,
	.write		= bar_write,
	.copy_from	= bar_copy_from,
	.copy_to	= bar_copy_to,
	.unmap		= bar_unmap,
};

static long bar_map(unsigned long offset, size_t size, const struct logic_iomem_ops **ops, void **priv)
{
	*ops = &accessors;
	*priv = backing + offset;
	atomic_inc(&mapped);
	return 0;
}

static const struct logic_iomem_region_ops region_ops = { .map = bar_map };

/* logic_iomem has no function to remove a region. So the resource stays allocated after rmmod; nothing else maps it. */
static int add_region(struct fake_bar *bar)
{
	static phys_addr_t start;
	struct resource *res;
	int tries;

	if (!start) {
		for (tries = 0; tries < 64; tries++) {
			res = kzalloc(sizeof(*res), GFP_KERNEL);
			if (!res)
				return -ENOMEM;
			*res = DEFINE_RES_MEM_NAMED(BAR_START + tries * BAR_SIZE, BAR_SIZE, "fake BAR");
			if (!logic_iomem_add_region(res, &region_ops))
				break;
			kfree(res);	/* added when this module was loaded before */
		}
		if (tries == 64)
			return -EBUSY;
		start = res->start;
	}
	bar->start = start;
	bar->size = BAR_SIZE;
	return 0;
}

int fake_bar_get(struct fake_bar *bar)
{
	int err;

	backing = vzalloc(BAR_SIZE);
	if (!backing)
		return -ENOMEM;
	err = add_region(bar);
	if (err)
		vfree(backing);
	return err;
}

void fake_bar_put(struct fake_bar *bar)
{
	WARN_ON(atomic_read(&mapped));
	vfree(backing);
	backing = NULL;
}

#else

#define QEMU_VENDOR	0x1234
#define QEMU_STDVGA	0x1111

int fake_bar_get(struct fake_bar *bar)
{
	struct pci_dev *pdev = pci_get_device(QEMU_VENDOR, QEMU_STDVGA, NULL);
	int err;

	if (!pdev)
		return -ENODEV;
	err = pci_enable_device_mem(pdev);
	if (!err) {
		err = pci_request_region(pdev, 0, "fake BAR");
		if (!err) {
			bar->start = pci_resource_start(pdev, 0);
			bar->size = pci_resource_len(pdev, 0);
			bar->owner = pdev;
			return 0;
		}
		pci_disable_device(pdev);
	}
	pci_dev_put(pdev);
	return err;
}

void fake_bar_put(struct fake_bar *bar)
{
	struct pci_dev *pdev = bar->owner;

	pci_release_region(pdev, 0);
	pci_disable_device(pdev);
	pci_dev_put(pdev);
}

#endif
