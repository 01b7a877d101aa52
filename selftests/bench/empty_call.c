// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how long a system call takes that does nothing, and a switch to another process on the same CPU
 * (sched_yield()). A message needs at least one such call, which is most of its latency in some labs. Prints both times
 * in µs, each the mean of CALLS calls in the fastest of ROUNDS rounds.
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

enum runner { PARENT, CHILD };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void call(void *unused)
{
	(void)unused;
	syscall(SYS_getppid);	/* not getppid(): a C library may cache its result */
}

static void switch_and_back(void *shared)
{
	volatile enum runner *next = shared;

	*next = CHILD;
	while (*next != PARENT)
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

/* Returns the µs of one switch, half of a switch to the child and back; 0 if it could not be measured. */
static double process_switch(void)
{
	void *shared = mmap(NULL, sizeof(enum runner), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile enum runner *next = shared;
	double took;
	pid_t child;

	if (shared == MAP_FAILED)
		return 0;
	stay_on_this_cpu();
	child = fork();
	if (child < 0)
		return 0;
	while (!child) {
		while (*next != CHILD)
			sched_yield();
		*next = PARENT;
	}
	took = fastest(switch_and_back, shared) / 2;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return took;
}

int main(void)
{
	double empty = fastest(call, NULL);

	printf("%.3f %.3f\n", empty, process_switch());
	return 0;
}
