// SPDX-License-Identifier: GPL-2.0
/* Command line of the simulator: sim.c has the usage. */
#include "sim.h"

void sim_failed(void)
{
	_exit(1);
}

static void run_seed(u64 seed, bool verbose)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	sim->seed = seed;
	sim->random = seed * 0x9e3779b97f4a7c15ull + 1;
	sim->verbose = verbose;
	sim_run(sim);
	free(sim);
}

static void print_totals(void)
{
	static const char * const names[] = {
		"success", "local length error", "local QP operation error", "", "local protection error", "flushed",
		"window bind error", "bad response", "local access error", "remote invalid request", "remote access error",
		"remote operation error", "retries exceeded", "RNR retries exceeded",
	};
	const struct sim_totals *t = &sim_totals;

	printf("%llu packets: %llu lost, %llu duplicated, %llu corrupt, %llu forged\n", (unsigned long long)t->packets,
	       (unsigned long long)t->lost, (unsigned long long)t->copies, (unsigned long long)t->corrupt,
	       (unsigned long long)t->forged);
	printf("%llu trials of several paths, which were chosen by %llu QPs\n", (unsigned long long)t->trials,
	       (unsigned long long)t->chosen);
	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		if (t->jobs[i])
			printf("%10llu work requests: %s\n", (unsigned long long)t->jobs[i], names[i]);
}

static int run_packets(u64 packets)
{
	u64 seed = 0;

	while (sim_totals.packets < packets)
		run_seed(++seed, false);
	print_totals();
	printf("ok: %llu seeds\n", (unsigned long long)seed);
	return 0;
}

/* Each process takes every n-th seed. */
static int run_seeds(u64 seeds)
{
	int workers = 2, failed = 0, status;

	for (int k = 0; k < workers; k++) {
		pid_t pid = fork();

		if (pid) {
			failed |= pid < 0;
			continue;
		}
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
	u64 seeds = 5000, seed = 0, packets = 0;
	bool verbose = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			verbose = true;
		else if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
			seeds = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--packets") && i + 1 < argc)
			packets = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
		else
			return fprintf(stderr, "sim [--seeds N] | --packets N | --seed S [-v]\n"), 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (packets)
		return run_packets(packets);
	if (!seed)
		return run_seeds(seeds);
	run_seed(seed, verbose);
	printf("ok: seed %llu\n", (unsigned long long)seed);
	return 0;
}
