// SPDX-License-Identifier: GPL-2.0
/* Charges against RLIMIT_MEMLOCK, and allocations charged to another process's memory cgroup. See mem_charge.h. */
#include <linux/capability.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include "base/mem_charge.h"

int roan_mem_charge(struct roan_mem_charge *charge, u32 pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	unsigned long pinned;

	if (!pages)
		return 0;
	if (!can_do_mlock())
		return -EPERM;
	pinned = atomic64_add_return(pages, &mm->pinned_vm);
	if (pinned > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	*charge = (struct roan_mem_charge) { .mm = mm, .pages = pages };
	return 0;
}

void roan_mem_uncharge(struct roan_mem_charge *charge)
{
	if (!charge->mm)
		return;
	atomic64_sub(charge->pages, &charge->mm->pinned_vm);
	mmdrop(charge->mm);
	*charge = (struct roan_mem_charge) {};
}

void roan_memcg_enter(struct roan_memcg_scope *scope, struct mm_struct *mm)
{
	/* Looked up each time: a process may move to another group. */
	scope->payer = mm ? get_mem_cgroup_from_mm(mm) : NULL;
	if (scope->payer)
		scope->before = set_active_memcg(scope->payer);
}

void roan_memcg_leave(struct roan_memcg_scope *scope)
{
	if (!scope->payer)
		return;
	set_active_memcg(scope->before);
	mem_cgroup_put(scope->payer);
}

bool roan_mm_has_process(const struct mm_struct *mm)
{
#ifdef CONFIG_MEMCG
	return rcu_access_pointer(mm->owner);
#else
	return true;
#endif
}
