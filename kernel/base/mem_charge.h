/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charges kernel memory that a program causes. To its RLIMIT_MEMLOCK: the same counter (VmPin), check and errors as
 * ib_umem_get(), so it counts like the rings that an adapter's driver pins in user memory. To its memory cgroup: where
 * the allocation runs in softirq or a worker. Decides no sizes.
 */
#ifndef ROAN_MEM_CHARGE_H
#define ROAN_MEM_CHARGE_H

#include <linux/types.h>

struct mem_cgroup;
struct mm_struct;

struct roan_mem_charge {
	struct mm_struct *mm;	/* referenced; NULL: nothing is charged */
	u32 pages;
};

/*
 * The caller's process, in process context. 0 pages: no charge. -ENOMEM: RLIMIT_MEMLOCK would be exceeded and the
 * caller lacks CAP_IPC_LOCK; -EPERM: the limit is 0, likewise.
 */
int roan_mem_charge(struct roan_mem_charge *charge, u32 pages);
/* Any process may call it, also after the charged process has exited. A zeroed charge is accepted. */
void roan_mem_uncharge(struct roan_mem_charge *charge);

/*
 * Between the two calls, allocations with __GFP_ACCOUNT on this CPU or in this task are charged to the memory cgroup of
 * the process that owns @mm. @mm NULL: as without the calls. Process context or softirq; @mm must be referenced.
 */
struct roan_memcg_scope {
	struct mem_cgroup *payer, *before;
};

void roan_memcg_enter(struct roan_memcg_scope *scope, struct mm_struct *mm);
void roan_memcg_leave(struct roan_memcg_scope *scope);

/*
 * False: all processes of @mm have exited, and only references keep its pages. New ones would be charged to no cgroup,
 * and nothing could be killed to free them. Always true in a kernel without memory cgroups.
 */
bool roan_mm_has_process(const struct mm_struct *mm);

#endif /* ROAN_MEM_CHARGE_H */
