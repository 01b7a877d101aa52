// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred work, run in softirq with no locks held: completion upcalls, the remainder of long sends, transitions to
 * ERR. Each CPU has one list and one tasklet that drains it. An item is on at most one list; its work is a set of
 * bits, so setting a bit twice runs it once. Does not know what the bits do: the owner's run() does.
 */
#include <linux/interrupt.h>
#include "base/deferred.h"

struct deferred_cpu {
	struct llist_head list;
	struct llist_node *remaining;	/* items left over when the transmit budget was exhausted */
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct deferred_cpu, todos);
DEFINE_PER_CPU(u32, roan_tx_budget_used);

#define QUEUED	(BITS_PER_LONG - 1)	/* bit of roan_deferred.bits: on a list, or about to be */

/*
 * Any context, interrupts on or off. The caller holds a reference to the owner of @item; this takes another one,
 * which run() drops.
 */
void roan_defer(struct roan_deferred *item, enum roan_deferred_bit what)
{
	struct deferred_cpu *todo;
	unsigned long flags;

	set_bit(what, &item->bits);
	if (test_and_set_bit(QUEUED, &item->bits))
		return;
	refcount_inc(item->refs);
	local_irq_save(flags);	/* stay on this CPU */
	todo = this_cpu_ptr(&todos);
	if (llist_add(&item->node, &todo->list))
		tasklet_schedule(&todo->tasklet);
	local_irq_restore(flags);
}

/*
 * When a CPU goes offline its tasklet moves to another CPU; the list is found through the tasklet, so it moves as
 * well.
 */
static void deferred_run_list(struct tasklet_struct *tasklet)
{
	struct deferred_cpu *todo = from_tasklet(todo, tasklet, tasklet);
	struct llist_node *node = todo->remaining ?: llist_reverse_order(llist_del_all(&todo->list));

	roan_tx_budget_reset();
	while (node && !roan_tx_budget_exhausted()) {
		struct roan_deferred *item = llist_entry(node, struct roan_deferred, node);

		node = node->next;	/* read before run() can queue the item again */
		/* The item is off the list. From the xchg on it may be queued again, also by run() itself. */
		item->run(item, xchg(&item->bits, 0) & ~BIT(QUEUED));
	}
	todo->remaining = node;
	if (node || !llist_empty(&todo->list))
		tasklet_schedule(tasklet);
}

int roan_deferred_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct deferred_cpu *todo = per_cpu_ptr(&todos, cpu);

		init_llist_head(&todo->list);
		tasklet_setup(&todo->tasklet, deferred_run_list);
	}
	return 0;
}

/* All owners are gone, so all lists are empty; a tasklet may still be returning. */
void roan_deferred_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&todos, cpu)->tasklet);
}
