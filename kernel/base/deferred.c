// SPDX-License-Identifier: GPL-2.0
/*
 * Things to do soon, in softirq, with no lock held: upcalls into consumers, the rest of a long send, the fall into the
 * error state. One list a CPU, drained by a tasklet. An item is on at most one list; what is to be done is a set of bits
 * in it, so asking twice costs nothing.
 */
#include <linux/interrupt.h>
#include "base/deferred.h"

struct deferred_cpu {
	struct llist_head list;
	struct llist_node *remaining;	/* what a burst's end left of it */
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct deferred_cpu, todos);
DEFINE_PER_CPU(u32, roan_tx_budget_used);

#define QUEUED	(BITS_PER_LONG - 1)	/* on a list, or about to be */

/* Any context, interrupts on or off. The caller has a reference to the holder; this takes one of its own. */
void roan_defer(struct roan_deferred *later, enum roan_deferred_bit what)
{
	struct deferred_cpu *todo;
	unsigned long flags;

	set_bit(what, &later->bits);
	if (test_and_set_bit(QUEUED, &later->bits))
		return;
	refcount_inc(later->refs);
	local_irq_save(flags);	/* stay on this CPU */
	todo = this_cpu_ptr(&todos);
	if (llist_add(&later->node, &todo->list))
		tasklet_schedule(&todo->tasklet);
	local_irq_restore(flags);
}

/* A dead CPU's tasklet is moved to another; it brings its own list along. */
static void deferred_run_list(struct tasklet_struct *tasklet)
{
	struct deferred_cpu *todo = from_tasklet(todo, tasklet, tasklet);
	struct llist_node *node = todo->remaining ?: llist_reverse_order(llist_del_all(&todo->list));

	roan_tx_budget_reset();
	while (node && !roan_tx_budget_exhausted()) {
		struct roan_deferred *later = llist_entry(node, struct roan_deferred, node);

		node = node->next;	/* before it may be queued again */
		/* The item is off the list: from the xchg on it may be queued again, also by run(). */
		later->run(later, xchg(&later->bits, 0) & ~BIT(QUEUED));
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

/* Every holder is gone, so every list is empty; a tasklet may still be on its way out. */
void roan_deferred_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&todos, cpu)->tasklet);
}
