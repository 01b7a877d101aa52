// SPDX-License-Identifier: GPL-2.0
/*
 * Records which basic blocks of a roan.ko that was built with COVERAGE=y have run, in every context. The kernel's own
 * KCOV records a task's system calls only, but reception, timers and workers run elsewhere.
 *
 * /sys/kernel/debug/roan_coverage, read or mapped MAP_SHARED, is a struct roan_coverage. User space may change its bits
 * at any time.
 */
#include <linux/bitops.h>
#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include "coverage.h"

static struct roan_coverage *map;
static unsigned long text, text_size;

/* The compiler puts a call of this at the start of each basic block. */
void __sanitizer_cov_trace_pc(void);
notrace void __sanitizer_cov_trace_pc(void)
{
	unsigned long at = (unsigned long)__builtin_return_address(0) - READ_ONCE(text);

	if (at >= READ_ONCE(text_size) || test_bit(at, map->bits))
		return;
	if (!test_and_set_bit(at, map->bits))
		__sync_fetch_and_add(&map->set, 1);
}
EXPORT_SYMBOL(__sanitizer_cov_trace_pc);

static int module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct module *mod = data;

	if (strcmp(mod->name, "roan"))
		return NOTIFY_DONE;
	if (event == MODULE_STATE_COMING) {
		map->text = (unsigned long)mod->mem[MOD_TEXT].base;
		WRITE_ONCE(text, map->text);
		WRITE_ONCE(text_size, min_t(unsigned long, mod->mem[MOD_TEXT].size, ROAN_COVERAGE_BITS));
	}
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = module_event };

static int coverage_mmap(struct file *file, struct vm_area_struct *vma)
{
	return remap_vmalloc_range(vma, map, vma->vm_pgoff);
}

static ssize_t coverage_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	return simple_read_from_buffer(to, size, pos, map, sizeof(*map));
}

static const struct file_operations fops = { .owner = THIS_MODULE, .mmap = coverage_mmap, .read = coverage_read };
static struct dentry *dentry;

static int __init coverage_init(void)
{
	map = vmalloc_user(sizeof(*map));
	if (!map)
		return -ENOMEM;
	dentry = debugfs_create_file_unsafe("roan_coverage", 0600, NULL, NULL, &fops);
	return register_module_notifier(&notifier);
}

static void __exit coverage_exit(void)
{
	unregister_module_notifier(&notifier);
	debugfs_remove(dentry);
	vfree(map);
}

module_init(coverage_init);
module_exit(coverage_exit);
MODULE_DESCRIPTION("basic blocks of roan.ko that have run");
MODULE_LICENSE("GPL");
