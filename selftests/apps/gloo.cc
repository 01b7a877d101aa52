// SPDX-License-Identifier: GPL-2.0
/*
 * Gloo's collectives over its ibverbs transport, every element checked by every rank. With several devices each
 * collective runs over each device: a Gloo context has one device, as one of PyTorch's has. Exits with 0 only if all
 * elements are right.
 *	gloo FOLDER RANK RANKS DEVICE GID-INDEX [DEVICE GID-INDEX]...	FOLDER: empty, for the ranks to find each other
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <gloo/allgather_ring.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/ibverbs/device.h>

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Elements = std::vector<int64_t>;

static const int SIZES[] = { 1, 1000, 1 << 17 };	/* of 8 bytes */
static const int TIMES = 3;
static long bad;

/* Gloo aborts if a buffer is destroyed before its last send has completed. So programs keep algorithms, and their data. */
template <class T, class... Arguments> static T &keep(Arguments &&...arguments)
{
	return *new T(std::forward<Arguments>(arguments)...);
}

static void expect(int64_t got, int64_t want, const char *what, int n, int i)
{
	if (got != want && bad++ < 5)
		fprintf(stderr, "%s of %d elements: element %d is %ld, expected %ld\n", what, n, i, (long)got, (long)want);
}

template <class Algorithm> static void allreduce(const char *what, const Context &c, int n)
{
	int64_t sum_ranks = (int64_t)c->size * (c->size - 1) / 2;
	Elements &v = keep<Elements>(n);
	Algorithm &algorithm = keep<Algorithm>(c, std::vector<int64_t *>{ v.data() }, n);
	gloo::BarrierAllToAll &barrier = keep<gloo::BarrierAllToAll>(c);

	for (int t = 0; t < TIMES; t++) {
		for (int i = 0; i < n; i++)
			v[i] = (int64_t)c->rank * 1000003 + i + t;
		algorithm.run();
		for (int i = 0; i < n; i++)
			expect(v[i], sum_ranks * 1000003 + (int64_t)c->size * (i + t), what, n, i);
		/* A peer that is in the next run of AllreduceBcube overwrites what this rank has not read yet. */
		barrier.run();
	}
}

static void broadcast(const Context &c, int n)
{
	for (int root = 0; root < c->size; root++) {
		Elements &v = keep<Elements>(n);
		auto &algorithm = keep<gloo::BroadcastOneToAll<int64_t>>(c, std::vector<int64_t *>{ v.data() }, n, root);

		for (int i = 0; i < n; i++)
			v[i] = c->rank == root ? 77 * n + i : -1;
		algorithm.run();
		for (int i = 0; i < n; i++)
			expect(v[i], 77 * n + i, "broadcast", n, i);
	}
}

static void allgather(const Context &c, int n)
{
	Elements &in = keep<Elements>(n), &out = keep<Elements>(n * c->size);
	auto &algorithm = keep<gloo::AllgatherRing<int64_t>>(c, std::vector<const int64_t *>{ in.data() }, out.data(), n);

	for (int i = 0; i < n; i++)
		in[i] = ((int64_t)c->rank << 32) + i;
	algorithm.run();
	for (int i = 0; i < n * c->size; i++)
		expect(out[i], ((int64_t)(i / n) << 32) + i % n, "allgather", n, i);
}

static void collectives(const Context &c, int n)
{
	allreduce<gloo::AllreduceRing<int64_t>>("ring allreduce", c, n);
	allreduce<gloo::AllreduceRingChunked<int64_t>>("chunked ring allreduce", c, n);
	allreduce<gloo::AllreduceHalvingDoubling<int64_t>>("halving-doubling allreduce", c, n);
	allreduce<gloo::AllreduceBcube<int64_t>>("bcube allreduce", c, n);
	broadcast(c, n);
	allgather(c, n);
}

int main(int argc, char **argv)
{
	if (argc < 6 || argc % 2) {
		fprintf(stderr, "usage: gloo FOLDER RANK RANKS DEVICE GID-INDEX [DEVICE GID-INDEX]...\n");
		return 2;
	}
	int rank = atoi(argv[2]), ranks = atoi(argv[3]);
	std::vector<Context> contexts;
	gloo::rendezvous::FileStore files(argv[1]);

	for (int i = 4; i < argc; i += 2) {
		auto device = gloo::transport::ibverbs::CreateDevice({ argv[i], 1, atoi(argv[i + 1]) });
		gloo::rendezvous::PrefixStore store(std::to_string(i), files);	/* peers may have other device names */

		contexts.push_back(std::make_shared<gloo::rendezvous::Context>(rank, ranks));
		contexts.back()->connectFullMesh(store, device);
	}
	for (int n : SIZES)
		for (const Context &c : contexts)
			collectives(c, n);
	/* A rank that exits stops answering: wait for the others. */
	for (const Context &c : contexts)
		keep<gloo::BarrierAllToAll>(c).run();
	files.set("done" + std::to_string(rank), {});
	for (int i = 0; i < ranks; i++)
		files.wait({ "done" + std::to_string(i) });
	printf("rank %d of %d, %ld wrong elements\n", rank, ranks, bad);
	fflush(nullptr);
	_exit(bad != 0);	/* without destructors */
}
