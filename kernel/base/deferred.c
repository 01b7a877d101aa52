// SPDX-License-Identifier: GPL-2.0
/*
 * Things to do soon, in softirq, with no lock held: upcalls into consumers, the rest of a long send, the fall into the
 * error state. One list a CPU, drained by a tasklet. An item is on at most one list; what is to be done is a set of bits
 * in it, so asking twice costs nothing.
 */
#include <linux/interrupt.h>
#include "base/deferred.h"

struct todo {
	struct llist_head list;
	struct llist_node *rest;	/* what a burst's end left of it */
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct todo, todos);
DEFINE_PER_CPU(u32, roan_burst);

#define QUEUED	(BITS_PER_LONG - 1)	/* on a list, or about to be */

/* Any context, interrupts on or off. The caller has a reference to the holder; this takes one of its own. */
void roan_later(struct roan_later *later, enum roan_later_bit what)
{
	struct todo *todo;
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
static void run_list(struct tasklet_struct *tasklet)
{
	struct todo *todo = from_tasklet(todo, tasklet, tasklet);
	struct llist_node *node = todo->rest ?: llist_reverse_order(llist_del_all(&todo->list));

	roan_burst_begin();
	while (node && !roan_burst_full()) {
		struct roan_later *later = llist_entry(node, struct roan_later, node);

		node = node->next;	/* before it may be queued again */
		/* The item is off the list: from the xchg on it may be queued again, also by run(). */
		later->run(later, xchg(&later->bits, 0) & ~BIT(QUEUED));
	}
	todo->rest = node;
	if (node || !llist_empty(&todo->list))
		tasklet_schedule(tasklet);
}

int roan_later_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct todo *todo = per_cpu_ptr(&todos, cpu);

		init_llist_head(&todo->list);
		tasklet_setup(&todo->tasklet, run_list);
	}
	return 0;
}

/* Every holder is gone, so every list is empty; a tasklet may still be on its way out. */
void roan_later_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&todos, cpu)->tasklet);
}
