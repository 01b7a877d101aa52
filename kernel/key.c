// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: their numbers, how they are found, and how whoever takes one away knows that nobody uses it any more. What they
 * name is mr.c's and mw.c's; what may be done with it is place.c's to say.
 *
 * A key is 24 bits of index and 8 of variant. The low 20 bits of the index are the slot in dev->keys, the other 4 and the
 * variant are random: a key cannot be guessed from its neighbours, nor is a stale one taken for its slot's next owner.
 *
 * Packets take no references. Each CPU says which key it is inside, in a cache line of its own, and is inside one at a
 * time, with softirqs off. Taking a key out of force is rare, and asks all CPUs.
 */
#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include "roan.h"

#define SLOT_MASK	(ROAN_MAX_MR - 1)

struct inside {
	const struct roan_key *key;	/* the one that was looked up */
	const struct roan_key *region;	/* that of the region behind it, if it is a window's */
};

static DEFINE_PER_CPU_ALIGNED(struct inside, inside);

int roan_key_insert(struct roan_dev *dev, struct roan_key *k)
{
	u32 slot;
	int err;

	refcount_set(&k->refs, 1);
	init_completion(&k->gone);
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
	roan_key_wait_left(k);		/* who is inside may yet take a reference */
	roan_key_put(k);
	wait_for_completion(&k->gone);
}

/* ---- packets ---- */

static struct roan_key *look_up(struct roan_dev *dev, u32 key)
{
	return xa_load(&dev->keys, key >> 8 & SLOT_MASK);
}

struct roan_key *roan_key_enter(struct roan_dev *dev, u32 key)
{
	struct roan_key *k = look_up(dev, key);

	if (!k || READ_ONCE(k->key) != key)
		return NULL;
	/* Pairs with roan_key_wait_left()'s first barrier: we see that the key is out of force, or it sees us. */
	smp_store_mb(this_cpu_ptr(&inside)->key, k);
	return k;
}

void roan_key_enter_region(const struct roan_key *k)
{
	WRITE_ONCE(this_cpu_ptr(&inside)->region, k);
}

void roan_key_leave(void)
{
	struct inside *here = this_cpu_ptr(&inside);

	/* Both pair with roan_key_wait_left()'s last barrier: what we did to the memory comes before what its owner does next. */
	smp_store_release(&here->region, NULL);
	smp_store_release(&here->key, NULL);	/* as above */
}

/* Spins: whoever is inside is copying a packet, and waits for nothing. */
void roan_key_wait_left(const struct roan_key *k)
{
	int cpu;

	smp_mb();	/* pairs with roan_key_enter(): the key is out of force before we look who is inside */
	for_each_online_cpu(cpu) {
		const struct inside *there = per_cpu_ptr(&inside, cpu);

		while (READ_ONCE(there->key) == k || READ_ONCE(there->region) == k)
			cpu_relax();
	}
	smp_mb();	/* pairs with roan_key_leave() */
}

/* ---- all others ---- */

struct roan_key *roan_key_find_slot(struct roan_dev *dev, u32 key)
{
	struct roan_key *k;

	rcu_read_lock();
	k = look_up(dev, key);
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
		complete(&k->gone);
}
