// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into a User-Mode Linux that runs in virtual time: getrandom() returns a fixed sequence, and opening
 * /dev/random fails. As the clock is virtual too, every run of a script is the same.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	static uint64_t x = 1;
	size_t i;

	(void)flags;
	for (i = 0; i < len; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		((uint8_t *)buf)[i] = x >> 56;
	}
	return len;
}

int open64(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	if (!strcmp(path, "/dev/random")) {
		errno = ENOENT;
		return -1;
	}
	return next(path, flags, mode);
}
