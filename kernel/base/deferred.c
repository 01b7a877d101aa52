// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred work, run in softirq with no locks held: completion upcalls, the remainder of long sends, transitions to
 * ERR. Each CPU has two lists and one tasklet that drains them in rounds. An item is on at most one list; its work is
 * a set of bits, so setting a bit twice runs it once. Does not know what the bits do: the owner's run() does.
 *
 * A round ends when ROUND_NS (of bulk work: BULK_ROUND_NS) have passed or the transmit budget is exhausted. The tasklet
 * is then scheduled again: softirqs of other subsystems run between two rounds, and under load the rounds continue in
 * ksoftirqd, which shares the CPU fairly with other tasks. One item is not interrupted, so each run() has a bound of
 * its own.
 */
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include "base/deferred.h"

#define ROUND_NS	(500 * NSEC_PER_USEC)
#define BULK_ROUND_NS	(100 * NSEC_PER_USEC)

struct deferred_list {
	struct llist_head added;
	struct llist_node *remaining;	/* taken off @added, and left over when the round ended */
};

struct deferred_cpu {
	struct deferred_list prompt;
	struct deferred_list bulk;	/* queued for ROAN_DEFER_FLUSH: others do not wait for it */
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct deferred_cpu, deferred_cpus);
DEFINE_PER_CPU(u32, roan_tx_budget_used);

#define QUEUED	(BITS_PER_LONG - 1)	/* bit of roan_deferred.bits: on a list, or about to be */

/*
 * Any context, interrupts on or off. The caller holds a reference to the owner of @item; this takes another one,
 * which is dropped after run(). A run() that sees the bit sees what the caller wrote before.
 */
void roan_defer(struct roan_deferred *item, enum roan_deferred_bit what)
{
	struct deferred_cpu *queues;
	struct deferred_list *list;

	smp_mb__before_atomic();	/* what the caller wrote: pairs with the xchg() of deferred_run_list() */
	set_bit(what, &item->bits);
	preempt_disable();	/* no other task can queue the item until it is on the list; and stay on this CPU */
	if (!test_and_set_bit(QUEUED, &item->bits)) {
		refcount_inc(item->refs);
		queues = this_cpu_ptr(&deferred_cpus);
		list = what == ROAN_DEFER_FLUSH ? &queues->bulk : &queues->prompt;
		if (llist_add(&item->node, &list->added))
			tasklet_schedule(&queues->tasklet);
	}
	preempt_enable();
}

/* Runs items of @list, at least one, until it is empty or the round ends. Returns true if any is left. */
static bool deferred_run_list(struct deferred_list *list, u64 end)
{
	struct llist_node *node = list->remaining ?: llist_reverse_order(llist_del_all(&list->added));

	while (node) {
		struct roan_deferred *item = llist_entry(node, struct roan_deferred, node);

		node = node->next;	/* read before the item can be queued again, or its owner freed */
		/* The item is off the list. From the xchg on it may be queued again, also by run() itself. */
		item->run(item, xchg(&item->bits, 0) & ~BIT(QUEUED));
		roan_put(item->refs, item->released);
		if (node && (roan_tx_budget_exhausted() || ktime_get_ns() >= end))
			break;
	}
	list->remaining = node;
	return node || !llist_empty(&list->added);
}

/*
 * One round. When a CPU goes offline its tasklet moves to another CPU; the lists are found through the tasklet, so they
 * move as well.
 */
static void deferred_run_round(struct tasklet_struct *tasklet)
{
	struct deferred_cpu *queues = from_tasklet(queues, tasklet, tasklet);
	bool more;

	roan_tx_budget_reset();
	more = deferred_run_list(&queues->prompt, ktime_get_ns() + ROUND_NS);
	more |= deferred_run_list(&queues->bulk, ktime_get_ns() + BULK_ROUND_NS);
	if (more)
		tasklet_schedule(tasklet);
}

int roan_deferred_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct deferred_cpu *queues = per_cpu_ptr(&deferred_cpus, cpu);

		init_llist_head(&queues->prompt.added);
		init_llist_head(&queues->bulk.added);
		tasklet_setup(&queues->tasklet, deferred_run_round);
	}
	return 0;
}

/* All owners are gone, so all lists are empty; a tasklet may still be returning. */
void roan_deferred_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&deferred_cpus, cpu)->tasklet);
}
