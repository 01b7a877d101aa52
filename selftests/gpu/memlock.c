// SPDX-License-Identifier: GPL-2.0
/*
 * Accounting of registered memory: pinned pages count against RLIMIT_MEMLOCK of an unprivileged user until the region
 * ends in any way; on-demand memory does not count; device memory and rings are charged to the memory cgroup. No packet
 * is sent.
 *   memlock -d DEV [-g CGROUP]		CGROUP: a folder below /sys/fs/cgroup with memory accounting
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../verbs/verbs_test.h"
#include "mem.h"

#define KIB	1024l
#define LIMIT	(1024 * KIB)
#define NOBODY	65534

static struct vt_dev dev;
static uint8_t *memory;			/* 2 * LIMIT */

static long context_kib;	/* charged for what exists when the limit is set: the rings of the context */

/* Pinned for regions. */
static long pinned_kib(void)
{
	return vt_number("/proc/self/status", "VmPin:") - context_kib;
}

/* Returns the pages pinned on this machine. With several CPUs their per-CPU counts are first added up. */
static long pins(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "w");

	if (f) {
		fputs("1", f);
		fclose(f);
	}
	return vt_number("/proc/vmstat", "nr_foll_pin_acquired ") - vt_number("/proc/vmstat", "nr_foll_pin_released ");
}

static struct ibv_mr *reg(size_t length, int access)
{
	errno = 0;
	return ibv_reg_mr(dev.pd, memory, length, IBV_ACCESS_LOCAL_WRITE | access);
}

static void pins_kib(bool ok, long want, const char *what)
{
	long is = pinned_kib();

	vt_ok(ok && is == want, "%s: %ld KiB", what, is);
}

static void within_the_limit(void)
{
	struct ibv_mr *a = reg(LIMIT / 2, 0), *b;

	pins_kib(a, 512, "half of the limit is accounted");
	b = reg(LIMIT * 3 / 4, 0);
	pins_kib(!b && errno == ENOMEM, 512, "three quarters more are refused and not accounted");
	pins_kib(ibv_rereg_mr(a, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, LIMIT * 3 / 4, 0) && errno == ENOMEM, 512,
		 "rereg_mr: old and new memory together exceed the limit");
	pins_kib(!ibv_rereg_mr(a, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, LIMIT / 4, 0), 256,
		 "rereg_mr to a quarter of the limit");
	b = reg(LIMIT * 3 / 4, 0);
	pins_kib(b, 1024, "the rest of the limit can be registered");
	pins_kib(!ibv_dereg_mr(a) && b && !ibv_dereg_mr(b), 0, "after deregistration nothing is accounted");
	a = reg(2 * LIMIT, IBV_ACCESS_ON_DEMAND);
	pins_kib(a, 0, "on-demand memory is not accounted");
	vt_ok(!ibv_dereg_mr(a), "on-demand memory is deregistered");
}

static void become_nobody(void)
{
	struct rlimit limit;

	context_kib += pinned_kib();
	limit.rlim_cur = limit.rlim_max = LIMIT + context_kib * KIB;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(NOBODY) || setuid(NOBODY))
		vt_die("setuid to nobody: %s", strerror(errno));
}

/* The pages are not the program's: it registers more of a peer client's memory than it may pin. */
static void of_a_peer_client(void)
{
	struct rlimit none = {};
	struct ibv_mr *mr;
	struct mem m;
	int err = mem_get(&m, dev.pd, "peer", 2 * LIMIT, IBV_ACCESS_LOCAL_WRITE);

	pins_kib(!err, 0, "twice the limit of a peer client's memory is not accounted");
	if (!err)
		mem_put(&m);
	if (setrlimit(RLIMIT_MEMLOCK, &none))
		vt_die("setrlimit: %s", strerror(errno));
	err = mem_get(&m, dev.pd, "peer", LIMIT, IBV_ACCESS_LOCAL_WRITE);
	vt_ok(!err, "a program that may pin nothing registers a peer client's memory: %s", strerror(err));
	if (!err)
		mem_put(&m);
	mr = reg(LIMIT, 0);
	vt_ok(!mr && errno == EPERM, "its own memory is refused: %s", strerror(errno));
}

/* A child process that is killed with a region. */
static void killed(void)
{
	long before = pins(), with;
	int up[2], status;
	char c;
	pid_t pid;

	if (pipe(up))
		vt_die("pipe");
	pid = fork();
	if (!pid) {
		vt_open(&dev, ibv_get_device_name(dev.ctx->device), false, -1, 0);
		become_nobody();
		memset(memory, 1, LIMIT);
		c = reg(LIMIT, 0) && pinned_kib() == LIMIT / KIB;
		if (write(up[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	vt_ok(read(up[0], &c, 1) == 1 && c, "a program pins up to the limit");
	with = pins();
	vt_ok(with - before == LIMIT / getpagesize(), "vmstat counts them as pinned: %ld pages", with - before);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	with = pins();
	vt_ok(with == before, "after it was killed %ld pages are still pinned", with - before);
}

static char current[256];		/* memory.current of the group */

/* Bytes that the group may have charged in advance: 64 pages for each CPU. */
static long precharge(void)
{
	return 64 * sysconf(_SC_PAGESIZE) * sysconf(_SC_NPROCESSORS_ONLN);
}

static void is_charged(long before, const char *what)
{
	long with = vt_number(current, "");

	vt_ok(with - before >= (16 << 20) - precharge(), "16 MiB of %s are charged: %ld KiB", what, (with - before) / KIB);
}

/* The kernel frees rings and device memory within 0.1 s after they were unmapped. */
static void is_uncharged(long before)
{
	long after;
	int i;

	for (i = 0; i < 100; i++) {
		after = vt_number(current, "");
		if (after - before <= precharge())
			break;
		usleep(50000);
	}
	vt_ok(after - before <= precharge(), "and uncharged: %ld KiB", (after - before) / KIB);
}

static void group(const char *cgroup)
{
	struct ibv_alloc_dm_attr attr = { .length = 16 << 20 };
	char file[256], text[32];
	struct ibv_dm *dm;
	struct ibv_cq *cq;
	long before;
	int fd;

	snprintf(file, sizeof(file), "%s/cgroup.procs", cgroup);
	snprintf(text, sizeof(text), "%d", getpid());
	fd = open(file, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		vt_die("%s: %s", file, strerror(errno));
	close(fd);
	snprintf(current, sizeof(current), "%s/memory.current", cgroup);

	before = vt_number(current, "");
	dm = ibv_alloc_dm(dev.ctx, &attr);
	is_charged(before, "device memory");
	vt_ok(dm && !ibv_free_dm(dm), "freed");
	is_uncharged(before);

	before = vt_number(current, "");
	cq = ibv_create_cq(dev.ctx, (1 << 18) - 1, NULL, NULL, 0);	/* 64 bytes each */
	is_charged(before, "a completion queue");
	vt_ok(cq && !ibv_destroy_cq(cq), "destroyed");
	is_uncharged(before);
}

int main(int argc, char **argv)
{
	const char *cgroup = NULL;
	int o;

	while ((o = getopt(argc, argv, "d:g:")) != -1) {
		switch (o) {
		case 'd': vt_open(&dev, optarg, false, -1, 0); break;
		case 'g': cgroup = optarg; break;
		default: return 2;
		}
	}
	if (!dev.ctx)
		return 2;
	memory = mmap(NULL, 2 * LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		vt_die("memory");
	if (cgroup)
		group(cgroup);
	killed();
	mem_gpu();		/* as root, as the device file is not open to others */
	become_nobody();
	within_the_limit();
	of_a_peer_client();
	vt_close(&dev);
	return vt_done();
}
