// SPDX-License-Identifier: GPL-2.0
/*
 * Memory keys: allocates them, finds them, and waits until no CPU uses an invalidated one. Does not decide what a key
 * names (mr.c, mw.c) nor which accesses it allows (mr_access.c).
 *
 * A key is 24 bits of index and 8 bits of variant. The low 20 bits of the index are the slot in dev->keys; the other
 * 4 bits and the variant are random. So a key cannot be computed from its neighbours, and a stale key rarely matches
 * the next key in its slot.
 *
 * Packets take no references. Each CPU stores the one key that it holds in a hazard pointer in its own cache line. It
 * holds the key with softirqs off, for one train of packets at most, or for one write-back by flush_worker.c.
 * Invalidating a key is rare and reads the hazard pointers of all CPUs.
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

/* Spins: the CPU that holds the key does not block, and copies one train of packets or writes back 64 KiB at most. */
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

/*
 * Softirqs are preemptible, also by the caller on this CPU: block on the holder's lock, so that it inherits our
 * priority.
 */
static void key_rt_wait(struct roan_key_hazard *there)
{
	spin_lock(&there->busy);
	spin_unlock(&there->busy);
}
#endif

#ifdef CONFIG_LOCKDEP
/* For lockdep, holding a key is a read lock and roan_key_synchronize() is a write lock. */
static struct lockdep_map inside_map = STATIC_LOCKDEP_MAP_INIT("roan_key_hazard", &inside_map);
#endif

int roan_key_insert(struct roan_dev *dev, struct roan_key *k)
{
	u32 slot;
	int err;

	refcount_set(&k->refs, 1);
	init_completion(&k->released);
	/* Allocate the slot empty, then store the key: a reader never sees an incomplete entry. */
	err = xa_alloc_cyclic(&dev->keys, &slot, NULL, XA_LIMIT(1, SLOT_MASK), &dev->key_next, GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;
	k->key = (get_random_u32() & ~(SLOT_MASK << 8)) | slot << 8;
	xa_store(&dev->keys, slot, k, GFP_KERNEL_ACCOUNT);	/* cannot fail: the slot is allocated */
	return 0;
}

void roan_key_remove(struct roan_dev *dev, struct roan_key *k)
{
	xa_erase(&dev->keys, k->key >> 8 & SLOT_MASK);
	roan_key_synchronize(k);		/* a CPU that holds the key may still take a reference */
	roan_key_put(k);
	wait_for_completion(&k->released);
}

/* ---- hazard pointers: the packet path ---- */

static struct roan_key *key_load(struct roan_dev *dev, u32 key)
{
	return xa_load(&dev->keys, key >> 8 & SLOT_MASK);
}

static void key_clear(struct roan_key_hazard *here)
{
	/*
	 * Both releases pair with the last barrier of roan_key_synchronize(): the accesses of this CPU to the memory
	 * come before those of its owner after the invalidation.
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
	/*
	 * Pairs with the first barrier of roan_key_synchronize(): this CPU sees the key invalid, or it sees @here->key.
	 */
	smp_store_mb(here->key, k);
	return k;
}

void roan_key_acquire_mr(const struct roan_key *k)
{
	/* Release as in key_clear(): the window may have been bound to another region at the previous packet. */
	smp_store_release(&this_cpu_ptr(&roan_key_hazard)->mr_key, k);
}

void roan_key_drop(void)
{
	struct roan_key_hazard *here = this_cpu_ptr(&roan_key_hazard);

	here->keep_held = false;
	if (here->key)
		key_clear(here);
}

/*
 * A waiter must not hold a key itself, or two waiters would deadlock. The caller can hold one only if softirqs are
 * disabled here, so drop it in that case. The rest is the lockdep check.
 */
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
	smp_mb();	/* pairs with roan_key_acquire_slow(): the key is invalid before the hazard pointers are read */
	for_each_online_cpu(cpu) {
		struct roan_key_hazard *there = per_cpu_ptr(&roan_key_hazard, cpu);

		while (READ_ONCE(there->key) == k || READ_ONCE(there->mr_key) == k)
			key_rt_wait(there);
	}
	smp_mb();	/* pairs with key_clear() */
}

/* ---- references: all other users ---- */

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
