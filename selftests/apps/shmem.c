// SPDX-License-Identifier: GPL-2.0
/*
 * An OpenSHMEM program that checks its results: puts, gets, strided puts, atomics, broadcast and reduction between all
 * pairs of PEs, in symmetric memory. The options of oshrun select the transport. Exits with 0 only if all elements are
 * right.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_ELEMENTS	(1 << 17)	/* 1 MiB of long */

static long bad, total;
static long psync_bcast[SHMEM_BCAST_SYNC_SIZE], psync_sum[SHMEM_REDUCE_SYNC_SIZE];
static long pwork[MAX_ELEMENTS / 2 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void expect(long got, long want, const char *what, int n, int i)
{
	if (got == want)
		return;
	if (bad++ < 5)
		fprintf(stderr, "%s of %d elements: element %d is %ld, expected %ld\n", what, n, i, got, want);
}

/* Each PE writes to the next one, which checks that, and then reads from the one before. */
static void put_get(long *mine, long *theirs, int n, int me, int pes)
{
	int next = (me + 1) % pes, before = (me + pes - 1) % pes, i;

	for (i = 0; i < n; i++)
		mine[i] = me * 1000003L + i;
	shmem_barrier_all();
	shmem_long_put(theirs, mine, n, next);
	shmem_barrier_all();
	for (i = 0; i < n; i++)
		expect(theirs[i], before * 1000003L + i, "put", n, i);
	shmem_barrier_all();
	shmem_long_get(theirs, mine, n, next);
	for (i = 0; i < n; i++)
		expect(theirs[i], next * 1000003L + i, "get", n, i);
	shmem_barrier_all();
	shmem_long_iput(theirs, mine, 2, 1, n / 2 < 64 ? n / 2 : 64, next);
	shmem_barrier_all();
	for (i = 0; i < n / 2 && i < 64; i++)
		expect(theirs[2 * i], before * 1000003L + i, "strided put", n, i);
	shmem_barrier_all();
}

static void collectives(long *mine, long *theirs, int n, int me, int pes)
{
	long sum_pes = (long)pes * (pes - 1) / 2;
	int i;

	for (i = 0; i < n; i++)
		mine[i] = me * 1000003L + i;
	shmem_barrier_all();
	shmem_broadcast64(theirs, mine, n, 1, 0, 0, pes, psync_bcast);
	shmem_barrier_all();
	for (i = 0; i < n && me != 1; i++)
		expect(theirs[i], 1000003L + i, "broadcast", n, i);
	shmem_long_sum_to_all(theirs, mine, n, 0, 0, pes, pwork, psync_sum);
	shmem_barrier_all();
	for (i = 0; i < n; i++)
		expect(theirs[i], sum_pes * 1000003L + (long)pes * i, "sum", n, i);
	shmem_barrier_all();
}

/*
 * All PEs add to a word of each PE; each PE swaps a word of the next one. No PE waits for a value by atomics of its own
 * memory: UCX executes 32-bit atomics, and with them all atomics, by the target's CPU, which must call the library.
 */
static void atomics(long *word, int me, int pes)
{
	int to, i, rounds = 50;

	word[0] = word[1] = 0;
	shmem_barrier_all();
	for (i = 0; i < rounds; i++) {
		for (to = 0; to < pes; to++) {
			if (i % 2)
				shmem_long_atomic_add(word, me + 1, to);
			else
				shmem_long_atomic_fetch_add(word, me + 1, to);
		}
	}
	for (i = 0; i < rounds; i++)
		expect(shmem_long_atomic_compare_swap(word + 1, i, i + 1, (me + 1) % pes), i, "compare and swap", 1, 0);
	shmem_barrier_all();
	expect(word[0], rounds * pes * (pes + 1L) / 2, "atomic add", 1, 0);
	expect(word[1], rounds, "compare and swap, at the end", 1, 0);
	shmem_barrier_all();
}

int main(void)
{
	long *mine, *theirs;
	int me, pes, n, i;

	shmem_init();
	me = shmem_my_pe();
	pes = shmem_n_pes();
	mine = shmem_malloc(MAX_ELEMENTS * sizeof(*mine));
	theirs = shmem_malloc(MAX_ELEMENTS * sizeof(*theirs));
	if (!mine || !theirs || pes < 2)
		shmem_global_exit(2);
	for (i = 0; i < SHMEM_BCAST_SYNC_SIZE; i++)
		psync_bcast[i] = SHMEM_SYNC_VALUE;
	for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
		psync_sum[i] = SHMEM_SYNC_VALUE;
	for (n = 2; n <= MAX_ELEMENTS; n *= 4) {
		put_get(mine, theirs, n, me, pes);
		collectives(mine, theirs, n, me, pes);
	}
	atomics(mine, me, pes);
	shmem_long_sum_to_all(&total, &bad, 1, 0, 0, pes, pwork, psync_sum);
	if (!me)
		printf("%d PEs, %ld wrong elements\n", pes, total);
	bad = total;
	shmem_finalize();
	return bad != 0;
}
