// SPDX-License-Identifier: GPL-2.0
/*
 * A file system whose files have no content yet: reads of them, and page faults, wait until SIGUSR1 arrives, and find
 * zeros afterwards. After SIGUSR2 they wait again, after SIGHUP they fail (EIO). For stuck_fault.sh; any user may mount such a file system in a user
 * namespace of its own.
 *
 *	stuck_fuse FOLDER	files file0, file1 ... of 64 MiB in FOLDER; runs until it is unmounted
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIZE	(64u << 20)
#define FIRST	2	/* node of file0; 1 is the folder */

static volatile sig_atomic_t serves, fails;
static uint64_t waiting[4096];	/* requests that are not answered yet */
static uint32_t waiting_len[4096];
static int n_waiting, fuse;
static uint8_t zeros[1 << 20];

static void on_signal(int sig)
{
	serves = sig == SIGUSR1;
	fails = sig == SIGHUP;
}

static void answer(uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = sizeof(out) + len, .error = error, .unique = unique };
	struct iovec v[2] = { { &out, sizeof(out) }, { (void *)data, len } };

	if (writev(fuse, v, len ? 2 : 1) < 0 && errno != ENOENT)
		perror("answer");
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr) {
		.ino = node, .size = node == 1 ? 0 : SIZE, .blocks = SIZE / 512, .nlink = 1, .blksize = 4096,
		.mode = node == 1 ? S_IFDIR | 0777 : S_IFREG | 0666,
	};
}

static void lookup(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { .attr_valid = 1000, .entry_valid = 1000 };
	int n;

	if (sscanf(name, "file%d", &n) != 1 || n < 0)
		return answer(in->unique, -ENOENT, NULL, 0);
	out.nodeid = FIRST + n;
	out.attr = attr_of(out.nodeid);
	answer(in->unique, 0, &out, sizeof(out));
}

static void read_pages(const struct fuse_in_header *in, const struct fuse_read_in *req)
{
	if (serves)
		return answer(in->unique, 0, zeros, req->size);
	if (fails || n_waiting == 4096)
		return answer(in->unique, -EIO, NULL, 0);
	waiting_len[n_waiting] = req->size;
	waiting[n_waiting++] = in->unique;
}

static void answer_waiting(void)
{
	int i;

	for (i = 0; i < n_waiting; i++)
		answer(waiting[i], 0, zeros, waiting_len[i]);
	n_waiting = 0;
}

static void request(const struct fuse_in_header *in, const void *arg)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 65536,
		.max_readahead = 131072, .max_background = 1000, .congestion_threshold = 1000,
	};
	struct fuse_attr_out attr = { .attr_valid = 1000, .attr = attr_of(in->nodeid) };
	struct fuse_open_out opened = { .fh = 1 };
	struct fuse_write_out written = {};

	switch (in->opcode) {
	case FUSE_INIT:
		return answer(in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return lookup(in, arg);
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		return answer(in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return answer(in->unique, 0, &opened, sizeof(opened));
	case FUSE_READ:
		return read_pages(in, arg);
	case FUSE_WRITE:
		written.size = ((const struct fuse_write_in *)arg)->size;
		return answer(in->unique, 0, &written, sizeof(written));
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
		return answer(in->unique, 0, NULL, 0);
	default:
		return answer(in->unique, -ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static uint8_t buf[1 << 18] __attribute__((aligned(8)));
	struct sigaction act = { .sa_handler = on_signal };
	struct fuse_in_header *in = (void *)buf;
	char options[100];

	fuse = open("/dev/fuse", O_RDWR | O_NONBLOCK);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40777,user_id=0,group_id=0,allow_other", fuse);
	if (argc != 2 || fuse < 0 || mount("stuck", argv[1], "fuse", 0, options)) {
		perror("stuck_fuse");
		return 1;
	}
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR2, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	for (;;) {
		struct pollfd p = { .fd = fuse, .events = POLLIN };

		poll(&p, 1, 100);
		if (read(fuse, buf, sizeof(buf)) > 0)
			request(in, in + 1);
		else if (errno == ENODEV)
			return 0;
		if (serves)
			answer_waiting();
	}
}
