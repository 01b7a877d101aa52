// SPDX-License-Identifier: GPL-2.0
/*
 * An MPI program that checks its results: allreduce, alltoall and broadcast with many sizes. Every rank checks every
 * element it receives. The options of mpirun select the transport. Exits with 0 only if all elements are right.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_ELEMENTS	(1 << 18)	/* 2 MiB of long */

static long bad;

static void expect(long got, long want, const char *what, int n, int i)
{
	if (got == want)
		return;
	if (bad++ < 5)
		fprintf(stderr, "%s of %d elements: element %d is %ld, expected %ld\n", what, n, i, got, want);
}

static void allreduce(long *in, long *out, int n, int rank, int ranks)
{
	long sum_ranks = (long)ranks * (ranks - 1) / 2;
	int i;

	for (i = 0; i < n; i++)
		in[i] = (long)rank * 1000003 + i;
	MPI_Allreduce(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		expect(out[i], sum_ranks * 1000003 + (long)ranks * i, "allreduce", n, i);
}

static void alltoall(long *in, long *out, int n, int rank, int ranks)
{
	int each = n / ranks, i;

	for (i = 0; i < each * ranks; i++)
		in[i] = ((long)rank << 32) + i;
	MPI_Alltoall(in, each, MPI_LONG, out, each, MPI_LONG, MPI_COMM_WORLD);
	for (i = 0; i < each * ranks; i++)
		expect(out[i], ((long)(i / each) << 32) + (long)rank * each + i % each, "alltoall", n, i);
}

static void bcast(long *buf, int n, int rank, int root)
{
	int i;

	for (i = 0; i < n; i++)
		buf[i] = rank == root ? 77 * (long)n + i : -1;
	MPI_Bcast(buf, n, MPI_LONG, root, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		expect(buf[i], 77 * (long)n + i, "bcast", n, i);
}

int main(int argc, char **argv)
{
	long *in = malloc(MAX_ELEMENTS * sizeof(*in)), *out = malloc(MAX_ELEMENTS * sizeof(*out)), all;
	int rank, ranks, n, times;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!in || !out || ranks < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (n = ranks; n <= MAX_ELEMENTS; n *= 4) {
		for (times = 0; times < 3; times++) {
			allreduce(in, out, n, rank, ranks);
			alltoall(in, out, n, rank, ranks);
			bcast(in, n, rank, times % ranks);
		}
	}
	MPI_Reduce(&bad, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%d ranks, %ld wrong elements\n", ranks, all);
	MPI_Finalize();
	return all != 0;
}
