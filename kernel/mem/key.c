// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: their numbers, how they are found, and how whoever takes one away knows that nobody uses it any more. What they
 * name is mr.c's and mw.c's; what may be done with it is mr_access.c's to say.
 *
 * A key is 24 bits of index and 8 of variant. The low 20 bits of the index are the slot in dev->keys, the other 4 and the
 * variant are random: a key cannot be guessed from its neighbours, nor is a stale one taken for its slot's next owner.
 *
 * Packets take no references. Each CPU says which key it is inside, in a cache line of its own, and is inside one at a
 * time, with softirqs off, for a train of packets at most, or for what flush_worker.c writes back at a time. Taking a key out of
 * force is rare, and asks all CPUs.
 */
#include <linux/cpumask.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include "mem/mem.h"

#define SLOT_MASK	(ROAN_MAX_MR - 1)

#ifndef CONFIG_PREEMPT_RT
DEFINE_PER_CPU_ALIGNED(struct roan_key_hazard, roan_key_hazard);

static void key_rt_lock(struct roan_key_hazard *here) { }
static void key_rt_unlock(struct roan_key_hazard *here) { }

/* Whoever is inside runs, is copying a train of packets or writing 64 KiB back at most, and waits for nothing. */
static void key_rt_wait(struct roan_key_hazard *there)
{
	cpu_relax();
}
#else
DEFINE_PER_CPU_ALIGNED(struct roan_key_hazard,
		       roan_key_hazard) = { .busy = __SPIN_LOCK_UNLOCKED(roan_key_hazard.busy) };

static void key_rt_lock(struct roan_key_hazard *here)
{
	spin_lock(&here->busy);
}

static void key_rt_unlock(struct roan_key_hazard *here)
{
	spin_unlock(&here->busy);
}

/* Softirqs are preempted, on this very CPU and by us: whoever is inside has to get to run, with our priority. */
static void key_rt_wait(struct roan_key_hazard *there)
{
	spin_lock(&there->busy);
	spin_unlock(&there->busy);
}
#endif

#ifdef CONFIG_LOCKDEP
/* To be inside is to hold what others wait for. */
static struct lockdep_map inside_map = STATIC_LOCKDEP_MAP_INIT("roan_key_hazard", &inside_map);
#endif

int roan_key_insert(struct roan_dev *dev, struct roan_key *k)
{
	u32 slot;
	int err;

	refcount_set(&k->refs, 1);
	init_completion(&k->released);
	/* The slot first, the key into it next: an entry is visible only when it is whole. */
	err = xa_alloc_cyclic(&dev->keys, &slot, NULL, XA_LIMIT(1, SLOT_MASK), &dev->key_next, GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;
	k->key = (get_random_u32() & ~(SLOT_MASK << 8)) | slot << 8;
	xa_store(&dev->keys, slot, k, GFP_KERNEL_ACCOUNT);	/* the slot is there: cannot fail */
	return 0;
}

void roan_key_remove(struct roan_dev *dev, struct roan_key *k)
{
	xa_erase(&dev->keys, k->key >> 8 & SLOT_MASK);
	roan_key_synchronize(k);		/* who is inside may yet take a reference */
	roan_key_put(k);
	wait_for_completion(&k->released);
}

/* ---- packets ---- */

static struct roan_key *key_load(struct roan_dev *dev, u32 key)
{
	return xa_load(&dev->keys, key >> 8 & SLOT_MASK);
}

static void key_clear(struct roan_key_hazard *here)
{
	/*
	 * Both pair with roan_key_synchronize()'s last barrier: what we did to the memory comes before what its owner
	 * does next.
	 */
	smp_store_release(&here->mr_key, NULL);
	smp_store_release(&here->key, NULL);	/* as above */
	key_rt_unlock(here);
	lock_map_release(&inside_map);
}

struct roan_key *roan_key_acquire_slow(struct roan_dev *dev, u32 key)
{
	struct roan_key *k = key_load(dev, key);
	struct roan_key_hazard *here;

	if (!k || READ_ONCE(k->key) != key)
		return NULL;
	here = this_cpu_ptr(&roan_key_hazard);
	if (here->key)
		key_clear(here);
	lock_map_acquire_read(&inside_map);
	key_rt_lock(here);
	here->dev = dev;
	/* Pairs with roan_key_synchronize()'s first barrier: we see that the key is out of force, or it sees us. */
	smp_store_mb(here->key, k);
	return k;
}

void roan_key_acquire_mr(const struct roan_key *k)
{
	/* As in key_clear(): the window may have been of another region a packet ago. */
	smp_store_release(&this_cpu_ptr(&roan_key_hazard)->mr_key, k);
}

void roan_key_drop(void)
{
	struct roan_key_hazard *here = this_cpu_ptr(&roan_key_hazard);

	here->keep_held = false;
	if (here->key)
		key_clear(here);
}

/* Who waits must not be waited for. Only with softirqs off is this CPU sure to be ours, and only then are we inside. */
static void key_drop_own(void)
{
	if (in_softirq())
		roan_key_drop();
	local_bh_disable();
	lock_map_acquire(&inside_map);
	lock_map_release(&inside_map);
	local_bh_enable();
}

void roan_key_synchronize(const struct roan_key *k)
{
	int cpu;

	key_drop_own();
	smp_mb();	/* pairs with roan_key_acquire_slow(): the key is out of force before we look who is inside */
	for_each_online_cpu(cpu) {
		struct roan_key_hazard *there = per_cpu_ptr(&roan_key_hazard, cpu);

		while (READ_ONCE(there->key) == k || READ_ONCE(there->mr_key) == k)
			key_rt_wait(there);
	}
	smp_mb();	/* pairs with key_clear() */
}

/* ---- all others ---- */

struct roan_key *roan_key_find_slot(struct roan_dev *dev, u32 key)
{
	struct roan_key *k;

	rcu_read_lock();
	k = key_load(dev, key);
	if (k && (READ_ONCE(k->key) ^ key) >> 8)
		k = NULL;
	if (k && !refcount_inc_not_zero(&k->refs))
		k = NULL;
	rcu_read_unlock();
	return k;
}

struct roan_key *roan_key_find(struct roan_dev *dev, u32 key)
{
	struct roan_key *k = roan_key_find_slot(dev, key);

	if (k && READ_ONCE(k->key) != key) {
		roan_key_put(k);
		k = NULL;
	}
	return k;
}

void roan_key_put(struct roan_key *k)
{
	if (refcount_dec_and_test(&k->refs))
		complete(&k->released);
}
