// SPDX-License-Identifier: GPL-2.0
/*
 * Errors of ibv_reg_dmabuf_mr(), with their errno: libraries use it to find out whether a device supports GPU memory. A
 * buffer that is registered must not move until it is deregistered.
 *   reg_errors -d DEV [-p]
 * -p: instead, memory of a peer client that maps for PCI devices only, as DEV's interface has none, and of one that
 * invalidates late.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "../verbs/verbs_test.h"
#include "fake_gpu.h"
#include "mem.h"

#define RW	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct vt_dev dev;

static void refused(int want, const char *what, int fd, uint64_t off, size_t len, uint64_t iova, int access)
{
	struct ibv_mr *mr;
	int err;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(dev.pd, off, len, iova, fd, access);
	err = mr ? 0 : errno;
	if (mr)
		ibv_dereg_mr(mr);
	vt_ok(err == want, "%s: %s", what, strerror(err));
}

static int export(uint32_t flags)
{
	struct fake_gpu_export ask = { .size = 64 << 10, .flags = flags };

	if (ioctl(mem_gpu(), FAKE_GPU_EXPORT, &ask))
		vt_die("the fake GPU has no memory: %s", strerror(errno));
	return ask.fd;
}

static int move(int fd)
{
	__s32 which = fd;

	return ioctl(mem_gpu(), FAKE_GPU_MOVE, &which) ? errno : 0;
}

/* An exporter that pins a buffer when it is attached. */
static void held(void)
{
	int fd = export(FAKE_GPU_MOVES | FAKE_GPU_ATTACHED);
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(dev.pd, 0, 65536, 0, fd, RW);

	vt_ok(mr && move(fd) == EBUSY, "a buffer pinned by attaching does not move while it is registered");
	vt_ok(mr && !ibv_dereg_mr(mr) && !move(fd), "and can move after deregistration");
	close(fd);
	fd = export(FAKE_GPU_MOVES | FAKE_GPU_ATTACHED | FAKE_GPU_FAILS);
	refused(EOPNOTSUPP, "pinned by attaching, but cannot be mapped", fd, 0, 4096, 0, RW);
	vt_ok(!move(fd), "it does not stay pinned");
	close(fd);
}

static void set(const char *parameter, bool on)
{
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/roan_fake_gpu/parameters/%s", parameter);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%d", on) < 1 || fclose(f))
		vt_die("parameter %s of the fake GPU", parameter);
}

/* The client reads the parameter when it registers. */
static void pci_only(bool on)
{
	set("pci_only", on);
	if (mem_client_leaves())
		vt_die("the fake GPU's client does not register again");
}

/* Registers memory of the client and deregisters it. Returns 0 or the errno. */
static int try_peer(void)
{
	struct mem m;
	int err = mem_get(&m, dev.pd, "peer", 65536, RW);

	if (!err)
		mem_put(&m);
	return err;
}

static void without_pci(void)
{
	int err;

	pci_only(true);
	err = try_peer();
	vt_ok(err == EOPNOTSUPP, "peer memory of a client that needs a PCI device, and there is none: %s", strerror(err));
	pci_only(false);
	err = try_peer();
	vt_ok(!err, "of one that needs none: %s", strerror(err));
}

/* A client may invalidate a region while it is deregistered. That must not hit the next one. */
static void late_invalidation(void)
{
	int err = 0;

	set("late", true);
	for (int i = 0; i < 3 && !err; i++)
		err = try_peer();
	set("late", false);
	vt_ok(!err, "peer memory, with an invalidation of the region before: %s", strerror(err));
}

static void dmabufs(void)
{
	int fd, null = open("/dev/null", O_RDWR);

	refused(EBADF, "a probe as NCCL and libfabric make it", -1, 0, 0, 0, 0);
	refused(EBADF, "a probe as UCX makes it", -1, 0, 4096, 0, RW);
	refused(EINVAL, "a file that is not a dma-buf", null, 0, 4096, 0, RW);
	fd = export(0);
	refused(EINVAL, "length 0", fd, 0, 0, 0, RW);
	refused(EINVAL, "one byte more than its size", fd, 0, 65537, 0, RW);
	refused(EINVAL, "an offset beyond its end", fd, 65536, 1, 0, RW);
	refused(EINVAL, "an offset that wraps", fd, -4096ull, 8192, 0, RW);
	refused(EINVAL, "an address that wraps", fd, 0, 8192, -4096ull, RW);
	refused(EINVAL, "remote write without local write", fd, 0, 4096, 0, IBV_ACCESS_REMOTE_WRITE);
	refused(0, "the whole buffer", fd, 0, 65536, -65536ull, RW | IBV_ACCESS_RELAXED_ORDERING);
	close(fd);
	fd = export(FAKE_GPU_UNMAPPABLE);
	refused(EOPNOTSUPP, "an exporter without a CPU mapping", fd, 0, 4096, 0, RW);
	close(fd);
	fd = export(FAKE_GPU_FAILS);
	refused(EOPNOTSUPP, "an exporter that fails to map", fd, 0, 4096, 0, RW);
	close(fd);
	held();
}

int main(int argc, char **argv)
{
	bool peer = false;
	int o;

	while ((o = getopt(argc, argv, "d:p")) > 0) {
		if (o == 'd')
			vt_open(&dev, optarg, false, -1, 0);
		else if (o == 'p')
			peer = true;
	}
	if (!dev.ctx)
		return 2;
	if (mem_gpu() < 0)
		vt_skip("no fake GPU");
	if (peer) {
		without_pci();
		late_invalidation();
	} else {
		dmabufs();
	}
	vt_close(&dev);
	return vt_done();
}
