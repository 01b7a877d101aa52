// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload that counts the system calls of a verbs program: ioctl(), read(), write(), poll(), sched_yield()
 * and usleep() of libc. strace would change the count: it stops the program at each call, meanwhile the kernel sends all
 * that is posted and goes idle, and so the next post needs a doorbell, which is one more system call.
 *	LD_PRELOAD=count_syscalls.so COUNT_FILE=FILE PROGRAM	writes the count to FILE when the program exits
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long calls;

#define REAL(name) ({ static typeof(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name); \
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); real; })

int ioctl(int fd, unsigned long request, ...)
{
	static int (*real)(int fd, unsigned long request, void *arg);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!real)
		real = dlsym(RTLD_NEXT, "ioctl");
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return real(fd, request, arg);
}

ssize_t read(int fd, void *p, size_t n) { return REAL(read)(fd, p, n); }
ssize_t write(int fd, const void *p, size_t n) { return REAL(write)(fd, p, n); }
int poll(struct pollfd *fds, nfds_t n, int ms) { return REAL(poll)(fds, n, ms); }
int sched_yield(void) { return REAL(sched_yield)(); }
int usleep(useconds_t us) { return REAL(usleep)(us); }

__attribute__((destructor)) static void write_count(void)
{
	const char *name = getenv("COUNT_FILE");
	FILE *f = name ? fopen(name, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "%lu\n", calls);
	fclose(f);
}
