// SPDX-License-Identifier: GPL-2.0
/*
 * Peer memory that ends in two ways at once: one thread deregisters the region, which takes as long as the client's
 * put_pages() (parameter put_ms of the fake GPU), and meanwhile the program unmaps the memory. The client counts
 * invalidations that returned before put_pages() had: it would give such memory to another program too early.
 *	peer_race -d DEV
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../verbs/verbs_test.h"
#include "mem.h"

#define PARAMETERS	"/sys/module/roan_fake_gpu/parameters/"
#define LEN		(256 * 1024)

static unsigned int early(void)
{
	FILE *f = fopen(PARAMETERS "early", "r");
	unsigned int n;

	if (!f || fscanf(f, "%u", &n) != 1)
		vt_die("parameter early of the fake GPU");
	fclose(f);
	return n;
}

static void put_ms(unsigned int ms)
{
	FILE *f = fopen(PARAMETERS "put_ms", "w");

	if (!f || fprintf(f, "%u", ms) < 1 || fclose(f))
		vt_die("parameter put_ms of the fake GPU");
}

static void *dereg(void *arg)
{
	struct mem *m = arg;

	return (void *)(long)mem_dereg(m);
}

int main(int argc, char **argv)
{
	unsigned int before, after;
	pthread_t thread;
	struct vt_dev d;
	struct mem m;
	void *err;

	if (argc != 3 || strcmp(argv[1], "-d"))
		return 2;
	alarm(60);
	vt_open(&d, argv[2], false, -1, 0);
	before = early();
	put_ms(400);
	if (mem_get(&m, d.pd, "peer", LEN, IBV_ACCESS_LOCAL_WRITE) || pthread_create(&thread, NULL, dereg, &m))
		vt_die("peer memory");
	usleep(100000);
	munmap(m.map, m.map_len);
	after = early();
	pthread_join(thread, &err);
	put_ms(0);
	vt_ok(!err && after == before, "an invalidation during a deregistration returns after put_pages()");
	vt_close(&d);
	return vt_done();
}
