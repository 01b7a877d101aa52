// SPDX-License-Identifier: GPL-2.0
/* See memory_usage.h. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "memory_usage.h"
#include "verbs_test.h"

#define MOST	8192

static struct mapping {
	void *at;		/* NULL: unmapped */
	size_t length;
} mappings[MOST];
static unsigned int n_mappings;
static size_t total;

bool usage_keep_mapped;

/* Called by several threads at once. */
void *mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	void *got = (void *)syscall(SYS_mmap, at, length, prot, flags, fd, offset);
	unsigned int i;

	if (fd < 0 || !(flags & MAP_SHARED) || got == MAP_FAILED)
		return got;
	__atomic_add_fetch(&total, (length + PAGE - 1) / PAGE * PAGE, __ATOMIC_RELAXED);
	i = __atomic_fetch_add(&n_mappings, 1, __ATOMIC_RELAXED) % MOST;
	mappings[i] = (struct mapping) { got, length };
	return got;
}

int munmap(void *at, size_t length)
{
	unsigned int i;

	for (i = 0; i < MOST; i++)
		if (mappings[i].at == at) {
			if (usage_keep_mapped)
				return 0;
			mappings[i].at = NULL;
		}
	return syscall(SYS_munmap, at, length);
}

size_t usage_mapped(void)
{
	return total;
}

void usage_unmap_all(void)
{
	unsigned int i;

	for (i = 0; i < MOST; i++) {
		if (mappings[i].at)
			syscall(SYS_munmap, mappings[i].at, mappings[i].length);
		mappings[i].at = NULL;
	}
}

long usage_pinned(void)
{
	return KIB * vt_number("/proc/self/status", "VmPin:");
}

bool usage_pinned_becomes(long bytes)
{
	int i;

	for (i = 0; i < 100 && usage_pinned() != bytes; i++)
		usleep(50000);
	return usage_pinned() == bytes;
}
