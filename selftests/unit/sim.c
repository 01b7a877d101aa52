// SPDX-License-Identifier: GPL-2.0
/*
 * Transport simulator: two endpoints, each with a requester and a responder, and a link that drops, duplicates, delays
 * and reorders packets or is slow. Time is virtual, and one seed determines the run. Every request must complete once,
 * in order and with success, and every byte must be right. Only RC between correct peers: wrong peers are tested by
 * suites and fuzzers.
 *
 *   sim [--seeds N]     seeds 1 to N, in two processes
 *   sim --seed S [-v]   one seed; -v: print every packet
 */
#include "sim.h"

static void draw_link(struct sim *sim)
{
	static const u32 loss[] = { 0, 0, 10, 50, 150 }, reorder[] = { 0, 0, 50, 200 }, copies[] = { 0, 0, 50 };
	static const u32 slowness[] = { 0, 0, 0, 8, 80 };	/* 1 Gbit/s, 100 Mbit/s */

	sim->loss = loss[sim_below(sim, ARRAY_SIZE(loss))];
	sim->reorder = reorder[sim_below(sim, ARRAY_SIZE(reorder))];
	sim->copies = copies[sim_below(sim, ARRAY_SIZE(copies))];
	sim->mtu_shift = 8 + min(sim_below(sim, 5), sim_below(sim, 5));
	sim->chatty_drain = !sim_below(sim, 5);
	sim->ns_per_byte = slowness[sim_below(sim, ARRAY_SIZE(slowness))];
}

static u64 earliest(u64 a, u64 b)
{
	return !a || (b && b < a) ? b : a;
}

/* Time of the next packet, timer or doorbell. 0: none. */
static u64 next_step(const struct sim *sim)
{
	u64 at = 0;

	for (u32 i = 0; i < sim->n_flights; i++)
		at = earliest(at, sim->flights[i].at);
	for (int i = 0; i < 2; i++) {
		at = earliest(at, roan_requester_deadline(&sim->sides[i].req));
		at = earliest(at, sim->sides[i].kick_at);
	}
	return at;
}

/* Time of the next event. 0: none, which is a hang unless all is done. */
static u64 next_event(const struct sim *sim)
{
	return earliest(next_step(sim), earliest(sim->sides[0].refill_at, sim->sides[1].refill_at));
}

static bool all_done(const struct sim *sim)
{
	return sim->sides[0].retired == sim->sides[0].n_jobs && sim->sides[1].retired == sim->sides[1].n_jobs &&
	       !sim->n_flights;
}

static void deliver_due(struct sim *sim)
{
	for (u32 i = 0; i < sim->n_flights; ) {
		struct flight f = sim->flights[i];

		if (f.at > sim->now) {
			i++;
			continue;
		}
		sim->flights[i] = sim->flights[--sim->n_flights];
		sim_received(sim, &sim->sides[f.to], &f);
	}
}

static void run_seed(u64 seed, bool verbose)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	sim->seed = seed;
	sim->random = seed * 0x9e3779b97f4a7c15ull + 1;
	sim->verbose = verbose;
	sim->now = 1000;
	draw_link(sim);
	for (int i = 0; i < 2; i++)
		sim_side_init(sim, i);
	for (sim->steps = 0; ; ) {
		u64 at;

		for (int i = 0; i < 2; i++)
			sim_side_run(sim, &sim->sides[i]);
		if (all_done(sim))
			break;
		at = next_event(sim);
		SIM_CHECK(sim, at, "nothing will ever happen again");
		sim->steps += at == next_step(sim);	/* receive requests are posted every 70 us, however long a timeout is */
		SIM_CHECK(sim, sim->steps < 200000, "no end in sight");
		sim->now = max(sim->now, at);
		deliver_due(sim);
	}
	for (int i = 0; i < 2; i++)
		sim_side_finish(sim, &sim->sides[i]);
	free(sim);
}

/* Each process takes every n-th seed. */
static int run_seeds(u64 seeds)
{
	int workers = 2, failed = 0, status;

	for (int k = 0; k < workers; k++) {
		if (fork())
			continue;
		for (u64 seed = 1 + k; seed <= seeds; seed += workers)
			run_seed(seed, false);
		_exit(0);
	}
	while (wait(&status) > 0)
		failed |= status;
	printf("%s: %llu seeds\n", failed ? "not ok" : "ok", (unsigned long long)seeds);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	u64 seeds = 10000, seed = 0;
	bool verbose = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			verbose = true;
		else if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
			seeds = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
		else
			return fprintf(stderr, "sim [--seeds N] | --seed S [-v]\n"), 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!seed)
		return run_seeds(seeds);
	run_seed(seed, verbose);
	printf("ok: seed %llu\n", (unsigned long long)seed);
	return 0;
}
