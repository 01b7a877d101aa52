// SPDX-License-Identifier: GPL-2.0
/*
 * What a system call that does nothing takes, and one that does nothing but let another program run on the same CPU. A
 * message costs one, and in some labs that is most of its latency. Prints both in µs, each the fastest of a few rounds.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	9
#define CALLS	2000

enum turn { OURS, THEIRS };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void call(void *unused)
{
	(void)unused;
	syscall(SYS_getppid);	/* not through a C library that might remember it */
}

static void there_and_back(void *shared)
{
	volatile enum turn *turn = shared;

	*turn = THEIRS;
	while (*turn != OURS)
		sched_yield();
}

static double fastest(void (*f)(void *arg), void *arg)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		double start = now_us(), took;

		for (int i = 0; i < CALLS; i++)
			f(arg);
		took = (now_us() - start) / CALLS;
		if (!round || took < best)
			best = took;
	}
	return best;
}

static void stay_on_this_cpu(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

/* Half of what it takes to let the other one run and to be let run by it. */
static double hand_over(void)
{
	void *shared = mmap(NULL, sizeof(enum turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile enum turn *turn = shared;
	double took;
	pid_t other;

	if (shared == MAP_FAILED)
		return 0;
	stay_on_this_cpu();
	other = fork();
	if (other < 0)
		return 0;
	while (!other) {
		while (*turn != THEIRS)
			sched_yield();
		*turn = OURS;
	}
	took = fastest(there_and_back, shared) / 2;
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return took;
}

int main(void)
{
	double empty = fastest(call, NULL);

	printf("%.3f %.3f\n", empty, hand_over());
	return 0;
}
