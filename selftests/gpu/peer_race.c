// SPDX-License-Identifier: GPL-2.0
/*
 * Peer memory that the program unmaps while another thread deregisters or registers it, for as long as the client's
 * put_pages() or get_page_size() takes (parameters put_ms and map_ms of the fake GPU). The client counts invalidations
 * that returned too early: it would give such memory to another program, or free what dma_map() uses. A client that
 * unmaps the memory itself (parameter unmaps) holds a lock meanwhile that its put_pages() takes.
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

static struct vt_dev dev;

static unsigned int early(void)
{
	FILE *f = fopen(PARAMETERS "early", "r");
	unsigned int n;

	if (!f || fscanf(f, "%u", &n) != 1)
		vt_die("parameter early of the fake GPU");
	fclose(f);
	return n;
}

static void set(const char *parameter, unsigned int value)
{
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", parameter);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%u", value) < 1 || fclose(f))
		vt_die("parameter %s of the fake GPU", parameter);
}

static void *dereg(void *arg)
{
	return (void *)(long)mem_dereg(arg);
}

/* Either succeeds, and the region is revoked, or fails. */
static void *reg(void *arg)
{
	struct mem *m = arg;

	m->mr = ibv_reg_mr(dev.pd, m->map, LEN, IBV_ACCESS_LOCAL_WRITE);
	return m->mr ? (void *)(long)mem_dereg(m) : NULL;
}

static void unmapped_during(void *(*fn)(void *), const char *parameter, struct mem *m, const char *what)
{
	unsigned int before = early(), after;
	pthread_t thread;
	void *err;

	set(parameter, 400);
	if (pthread_create(&thread, NULL, fn, m))
		vt_die("thread");
	usleep(100000);
	munmap(m->map, m->map_len);
	after = early();
	pthread_join(thread, &err);
	set(parameter, 0);
	vt_ok(!err && after == before, "%s", what);
}

static void get(struct mem *m)
{
	if (mem_get(m, dev.pd, "peer", LEN, IBV_ACCESS_LOCAL_WRITE))
		vt_die("peer memory");
}

/* The client reads the parameter when it registers. */
static void both(bool unmaps)
{
	struct mem m;

	set("unmaps", unmaps);
	if (mem_client_leaves())
		vt_die("the fake GPU's client does not register again");
	get(&m);
	unmapped_during(dereg, "put_ms", &m, unmaps ? "an invalidation during a deregistration, the client unmaps" :
			"an invalidation during a deregistration");
	get(&m);
	if (mem_dereg(&m))
		vt_die("deregistration");
	unmapped_during(reg, "map_ms", &m, unmaps ? "an invalidation during a registration, the client unmaps" :
			"an invalidation during a registration");
}

int main(int argc, char **argv)
{
	bool unmaps;
	FILE *f;

	if (argc != 3 || strcmp(argv[1], "-d"))
		return 2;
	alarm(60);
	f = fopen(PARAMETERS "unmaps", "r");
	if (!f)
		vt_die("parameter unmaps of the fake GPU");
	unmaps = fgetc(f) == 'Y';
	fclose(f);
	vt_open(&dev, argv[2], false, -1, 0);
	both(!unmaps);
	both(unmaps);
	vt_close(&dev);
	return vt_done();
}
