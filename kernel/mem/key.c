// SPDX-License-Identifier: GPL-2.0
/*
 * Memory keys: allocates them, finds them, and waits until no CPU uses an invalidated one. Does not decide what a key
 * names (mr.c, mw.c) nor which accesses it allows (mr_access.c).
 *
 * A key is 24 bits of index and 8 bits of variant, all random: no key says anything about another one. Indices are
 * drawn until a free one is found, and are found again in a hash table, dev->keys. Index 0 is not used, as lkey 0 is
 * local_dma_lkey. One guess of a key finds one of N live keys with a probability of N / 2^32; but REG_MR and binds let
 * a consumer choose the variant, and a peer that was given an earlier variant knows the index. core/transport/
 * key_limit.h bounds the guesses.
 *
 * Packets take no references. Each CPU stores the one key that it holds in a hazard pointer in its own cache line. It
 * holds the key with softirqs off, for one train of packets at most, or for one write-back by flush_worker.c.
 * Invalidating a key is rarer than its use, and reads the hazard pointers of all CPUs.
 */
#include <linux/cpumask.h>
#include <linux/jhash.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include "base/user_share.h"
#include "mem/mem.h"

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

/* ---- the table: index -> key ---- */

static u32 key_index(const struct roan_key *k)
{
	return READ_ONCE(k->key) >> 8;
}

static u32 table_hash(const void *index, u32 len, u32 seed)
{
	return jhash_1word(*(const u32 *)index, seed);
}

static u32 table_obj_hash(const void *k, u32 len, u32 seed)
{
	return jhash_1word(key_index(k), seed);
}

static int table_cmp(struct rhashtable_compare_arg *arg, const void *k)
{
	return key_index(k) != *(const u32 *)arg->key;
}

static const struct rhashtable_params table_params = {
	.head_offset = offsetof(struct roan_key, node),
	.key_len = sizeof(u32),
	.max_size = ROAN_MAX_MR / 2,	/* buckets; a full table refuses more than twice as many entries */
	.hashfn = table_hash,
	.obj_hashfn = table_obj_hash,
	.obj_cmpfn = table_cmp,
	.automatic_shrinking = true,
};

int roan_key_table_init(struct roan_dev *dev)
{
	return rhashtable_init(&dev->keys, &table_params);
}

void roan_key_table_exit(struct roan_dev *dev)
{
	rhashtable_destroy(&dev->keys);
}

int roan_key_insert(struct roan_dev *dev, struct roan_key *k)
{
	u32 index;
	int err;

	err = roan_share_take(k->user, ROAN_SHARE_KEY);
	if (err)
		return err;
	refcount_set(&k->refs, 1);
	init_completion(&k->released);
	do {
		k->key = get_random_u32();
		index = k->key >> 8;
		err = index ? rhashtable_lookup_insert_key(&dev->keys, &index, &k->node, table_params) : -EEXIST;
	} while (err == -EEXIST);	/* at most one index in 16 is taken */
	if (err) {
		roan_share_give(k->user, ROAN_SHARE_KEY);
		return -ENOMEM;
	}
	return 0;
}

void roan_key_unpublish(struct roan_dev *dev, struct roan_key *k)
{
	rhashtable_remove_fast(&dev->keys, &k->node, table_params);
}

void roan_key_remove(struct roan_dev *dev, struct roan_key *k)
{
	roan_key_unpublish(dev, k);
	roan_key_synchronize(k);		/* a CPU that holds the key may still take a reference */
	roan_key_put(k);
	wait_for_completion(&k->released);
	roan_share_give(k->user, ROAN_SHARE_KEY);
}

/* rcu_read_lock() held */
static struct roan_key *key_load(struct roan_dev *dev, u32 key)
{
	u32 index = key >> 8;

	return rhashtable_lookup(&dev->keys, &index, table_params);
}

/* ---- hazard pointers: the packet path ---- */

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
	struct roan_key_hazard *here;
	struct roan_key *k;

	rcu_read_lock();	/* for lockdep: softirqs are off, so @k stays after the unlock */
	k = key_load(dev, key);
	rcu_read_unlock();
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

struct roan_key *roan_key_find_index(struct roan_dev *dev, u32 key)
{
	struct roan_key *k;

	rcu_read_lock();
	k = key_load(dev, key);
	if (k && !refcount_inc_not_zero(&k->refs))
		k = NULL;
	rcu_read_unlock();
	return k;
}

struct roan_key *roan_key_find(struct roan_dev *dev, u32 key)
{
	struct roan_key *k = roan_key_find_index(dev, key);

	if (k && READ_ONCE(k->key) != key) {
		roan_key_put(k);
		k = NULL;
	}
	return k;
}

void roan_key_put(struct roan_key *k)
{
	roan_put(&k->refs, &k->released);
}
