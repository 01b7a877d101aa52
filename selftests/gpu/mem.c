// SPDX-License-Identifier: GPL-2.0
/* The kinds of memory of mem.h: how each is allocated, registered and accessed by its owner. */
#define _GNU_SOURCE
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../verbs/verbs_test.h"
#include "drm.h"
#include "fake_gpu.h"

#define IOVA	0x700000000000ull
#define SHIFTED	(4096 + 512)	/* offset of regions in a dma-buf: not at its start, and not page-aligned */

struct mem_kind {
	const char *name;
	int (*open)(struct mem *m, const struct mem_kind *kind);
	uint32_t flags;		/* enum fake_gpu_flags */
};

int mem_gpu(void)
{
	static int fd = -2;

	if (fd == -2)
		fd = open("/dev/roan_gpu", O_RDWR | O_CLOEXEC);
	return fd;
}

static int map_fd(struct mem *m)
{
	m->map_len = (m->off + m->len + 4095) & ~4095ul;
	m->map = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (m->map == MAP_FAILED) {
		m->map = NULL;
		return errno;
	}
	m->p = (uint8_t *)m->map + m->off;
	return 0;
}

static int open_user(struct mem *m, const struct mem_kind *kind)
{
	(void)kind;
	m->map_len = m->len + 8192;
	m->map = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->map == MAP_FAILED) {
		m->map = NULL;
		return errno;
	}
	m->off = 512;
	m->p = (uint8_t *)m->map + m->off;
	return 0;
}

#define HUGE_POOL	1	/* hugetlb pages; else transparent huge pages */
#define MOST_HUGE	(64ul << 20)	/* with pages of 64 KiB a huge one has 512 MiB */

/* Bytes of a huge page: of both kinds, as far as these tests run. */
static size_t huge_page(void)
{
	long kib = vt_number("/proc/meminfo", "Hugepagesize:");

	return kib > 0 ? (size_t)kib * 1024 : 2ul << 20;
}

/* The pool has so many pages left. */
static bool huge_pages_free(long n)
{
	return vt_number("/proc/meminfo", "HugePages_Free:") >= n;
}

/* The region begins a few pages before the end of a huge page, so it is in two of them. */
static int open_huge(struct mem *m, const struct mem_kind *kind)
{
	bool pool = kind->flags == HUGE_POOL;
	size_t huge = huge_page();
	uint8_t *at;
	FILE *f;
	int kib = 0;

	if (pool ? !huge_pages_free(3) : huge > MOST_HUGE)
		return ENODEV;
	m->map_len = 3 * huge;
	m->map = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (pool ? MAP_HUGETLB : 0), -1, 0);
	if (m->map == MAP_FAILED) {
		m->map = NULL;
		return pool ? ENODEV : errno;
	}
	at = (uint8_t *)(((uintptr_t)m->map + huge - 1) & ~(huge - 1));
	m->p = at + huge - 3 * getpagesize() + 512;
	if (pool)
		return 0;
	if (madvise(m->map, m->map_len, MADV_HUGEPAGE))
		return ENODEV;
	memset(at, 0, 2 * huge);
	/* The kernel may refuse transparent huge pages: check that it did not. */
	f = popen("awk '/^AnonHugePages/ { n += $2 } END { print n }' /proc/$PPID/smaps", "r");
	if (!f || fscanf(f, "%d", &kib) != 1 || kib < (int)(2 * huge / 1024))
		kib = 0;
	if (f)
		pclose(f);
	return kib ? 0 : ENODEV;
}

static int open_udmabuf(struct mem *m, const struct mem_kind *kind)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC };
	bool huge = kind->flags == HUGE_POOL;
	int dev = open("/dev/udmabuf", O_RDWR), memfd;

	if (dev < 0)
		return ENODEV;
	m->off = SHIFTED;
	memfd = memfd_create("udmabuf", MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB : 0));
	if (huge && (memfd < 0 || !huge_pages_free(1)))
		return ENODEV;
	create.memfd = memfd;
	create.size = huge ? huge_page() : (m->off + m->len + getpagesize() - 1) & -(size_t)getpagesize();
	if (memfd < 0 || ftruncate(memfd, create.size) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return errno;
	/* The kernel takes a huge page that it has to allocate for a udmabuf from the reserved ones: 6.12's DEBUG_VM stops. */
	if (huge && fallocate(memfd, 0, 0, create.size))
		return errno;
	m->fd = ioctl(dev, UDMABUF_CREATE, &create);
	close(dev);
	close(memfd);
	return m->fd < 0 ? errno : map_fd(m);
}

static int open_heap(struct mem *m, const struct mem_kind *kind)
{
	struct dma_heap_allocation_data alloc = { .fd_flags = O_RDWR | O_CLOEXEC };
	int dev = open("/dev/dma_heap/system", O_RDWR);

	(void)kind;
	if (dev < 0)
		return ENODEV;
	m->off = SHIFTED;
	alloc.len = m->off + m->len;
	if (ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &alloc)) {
		close(dev);
		return errno;
	}
	close(dev);
	m->fd = alloc.fd;
	return map_fd(m);
}

#define DRM_SHOWN	1	/* displayed */

static int open_drm(struct mem *m, const struct mem_kind *kind)
{
	bool shown = kind->flags == DRM_SHOWN;
	int fd;

	m->off = SHIFTED;
	fd = drm_export(shown ? "bochs-drm" : "vgem", m->off + m->len, shown);
	if (fd < 0)
		return -fd;
	m->fd = fd;
	return map_fd(m);
}

static int open_gpu(struct mem *m, const struct mem_kind *kind)
{
	struct fake_gpu_export ask = { .flags = kind->flags };

	if (mem_gpu() < 0)
		return ENODEV;
	m->off = SHIFTED;
	ask.size = m->off + m->len;
	if (ioctl(mem_gpu(), FAKE_GPU_EXPORT, &ask))
		return errno;
	m->fd = ask.fd;
	return 0;
}

/* An address range without CPU access; pages of the GPU have 64 KiB. */
static int open_peer(struct mem *m, const struct mem_kind *kind)
{
	size_t page = 65536;
	void *at;

	(void)kind;
	if (mem_gpu() < 0)
		return ENODEV;
	m->peer = true;
	m->off = SHIFTED;
	m->map_len = (m->off + m->len + page - 1) & ~(page - 1);
	at = mmap(NULL, m->map_len + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return errno;
	at = (void *)(((uintptr_t)at + page - 1) & ~(page - 1));
	at = mmap(at, m->map_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mem_gpu(), 0);
	if (at == MAP_FAILED)
		return errno;
	m->map = at;
	return 0;
}

static int open_dm(struct mem *m, const struct mem_kind *kind)
{
	struct ibv_alloc_dm_attr attr = { .length = m->len + 4096 + 512 };

	(void)kind;
	m->dm = ibv_alloc_dm(m->ctx, &attr);
	m->off = SHIFTED;
	return m->dm ? 0 : errno;
}

#define ODP_ALL		1	/* a region over the whole address space */
#define ODP_SHAKEN	2	/* its pages are unmapped all the time, with their contents kept */

/* Pages of a file: unmapped pages stay in the file, and the next access maps them again. */
static void *shake(void *arg)
{
	struct mem *m = arg;
	uint64_t dice = 1;
	size_t at;

	while (!__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE)) {
		at = vt_mix(dice++) % m->map_len & ~4095ul;
		madvise((uint8_t *)m->map + at, m->map_len - at < 65536 ? m->map_len - at : 65536, MADV_DONTNEED);
		usleep(200);
	}
	return NULL;
}

static int open_odp(struct mem *m, const struct mem_kind *kind)
{
	int err;

	m->fd = memfd_create("odp", 0);
	m->off = 512;
	if (m->fd < 0 || ftruncate(m->fd, m->len + 8192))
		return errno;
	err = map_fd(m);
	close(m->fd);
	m->fd = -1;
	m->odp = true;
	if (err || kind->flags != ODP_SHAKEN)
		return err;
	m->shaken = true;
	return pthread_create(&m->shaker, NULL, shake, m);
}

static const struct mem_kind kinds[] = {
	{ "user", open_user, 0 },
	{ "hugetlb", open_huge, HUGE_POOL },
	{ "thp", open_huge, 0 },
	{ "odp", open_odp, 0 },
	{ "odp-all", open_odp, ODP_ALL },
	{ "odp-shaken", open_odp, ODP_SHAKEN },
	{ "udmabuf", open_udmabuf, 0 },
	{ "udmabuf-huge", open_udmabuf, HUGE_POOL },
	{ "heap", open_heap, 0 },
	{ "vgem", open_drm, 0 },
	{ "vram", open_drm, DRM_SHOWN },
	{ "gpu", open_gpu, 0 },
	{ "gpu-moves", open_gpu, FAKE_GPU_MOVES },
	{ "gpu-attached", open_gpu, FAKE_GPU_MOVES | FAKE_GPU_ATTACHED },
	{ "gpu-migrates", open_gpu, FAKE_GPU_MOVES | FAKE_GPU_MIGRATES },
	{ "bar", open_gpu, FAKE_GPU_BAR },
	{ "bar-moves", open_gpu, FAKE_GPU_BAR | FAKE_GPU_MOVES },
	{ "dm", open_dm, 0 },
	{ "peer", open_peer, 0 },
	{ "unmappable", open_gpu, FAKE_GPU_UNMAPPABLE },
	{ "fails", open_gpu, FAKE_GPU_FAILS },
};

static int reg(struct mem *m, struct ibv_pd *pd, unsigned int access)
{
	if (m->dm) {
		m->mr = ibv_reg_dm_mr(pd, m->dm, m->off, m->len, access | IBV_ACCESS_ZERO_BASED);
	} else if (m->peer) {
		m->addr = (uintptr_t)m->map + m->off;
		m->mr = ibv_reg_mr(pd, (void *)(uintptr_t)m->addr, m->len, access);
	} else if (m->odp) {
		m->addr = (uintptr_t)m->p;
		if (m->kind->flags == ODP_ALL)
			m->mr = ibv_reg_mr(pd, NULL, SIZE_MAX, access | IBV_ACCESS_ON_DEMAND);
		else
			m->mr = ibv_reg_mr(pd, m->p, m->len, access | IBV_ACCESS_ON_DEMAND);
	} else if (m->fd < 0) {
		m->addr = (uintptr_t)m->p;
		m->mr = ibv_reg_mr(pd, m->p, m->len, access);
	} else {
		m->addr = IOVA + m->off % getpagesize();
		m->mr = ibv_reg_dmabuf_mr(pd, m->off, m->len, m->addr, m->fd, access);
	}
	return m->mr ? 0 : errno;
}

int mem_get(struct mem *m, struct ibv_pd *pd, const char *kind, size_t len, unsigned int access)
{
	size_t i;
	int err;

	memset(m, 0, sizeof(*m));
	m->fd = -1;
	m->len = len;
	m->ctx = pd->context;
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, kind))
			m->kind = &kinds[i];
	if (!m->kind)
		vt_die("no such kind of memory: %s", kind);
	err = m->kind->open(m, m->kind);
	if (!err)
		err = reg(m, pd, access);
	/* udmabuf of some kernels maps huge pages wrongly. Test that first: such a kernel does not have this kind. */
	if (err == EOPNOTSUPP && !strcmp(kind, "udmabuf-huge"))
		err = ENODEV;
	if (err)
		mem_put(m);
	return err;
}

int mem_dereg(struct mem *m)
{
	int err = m->mr ? ibv_dereg_mr(m->mr) : 0;

	if (!err)
		m->mr = NULL;
	return err;
}

void mem_put(struct mem *m)
{
	if (mem_dereg(m))
		vt_die("dereg_mr");
	__atomic_store_n(&m->stop, true, __ATOMIC_RELEASE);
	if (m->shaken)
		pthread_join(m->shaker, NULL);
	m->shaken = false;
	if (m->map)
		munmap(m->map, m->map_len);
	if (m->fd >= 0)
		close(m->fd);
	if (m->dm && ibv_free_dm(m->dm))
		vt_die("free_dm");
	m->dm = NULL;
	m->map = NULL;
	m->fd = -1;
}

static void gpu_copy(struct mem *m, size_t off, uint64_t user, size_t len, bool write)
{
	struct fake_gpu_copy bytes = { .offset = (m->peer ? (uintptr_t)m->map : 0) + m->off + off, .len = len, .user = user, .fd = m->fd, .write = write };

	if (ioctl(mem_gpu(), FAKE_GPU_COPY, &bytes))
		vt_die("the GPU cannot reach its memory: %s", strerror(errno));
}

/* The device copies whole words: read the bytes around the range first. */
static void dm_copy(struct mem *m, size_t off, uint8_t *user, size_t len, bool write)
{
	size_t from = (m->off + off) & ~3ul, to = (m->off + off + len + 3) & ~3ul;
	uint8_t *words = malloc(to - from);

	if (!words || ibv_memcpy_from_dm(words, m->dm, from, to - from))
		vt_die("device memory cannot be read");
	if (write)
		memcpy(words + m->off + off - from, user, len);
	else
		memcpy(user, words + m->off + off - from, len);
	if (write && ibv_memcpy_to_dm(m->dm, from, words, to - from))
		vt_die("device memory cannot be written");
	free(words);
}

void mem_write(struct mem *m, size_t off, const void *from, size_t len)
{
	if (m->dm)
		dm_copy(m, off, (uint8_t *)from, len, true);
	else if (m->p)
		memcpy(m->p + off, from, len);
	else
		gpu_copy(m, off, (uintptr_t)from, len, true);
}

void mem_read(struct mem *m, size_t off, void *to, size_t len)
{
	if (m->dm)
		dm_copy(m, off, to, len, false);
	else if (m->p)
		memcpy(to, m->p + off, len);
	else
		gpu_copy(m, off, (uintptr_t)to, len, false);
}

int mem_client_leaves(void)
{
	return ioctl(mem_gpu(), FAKE_GPU_LEAVE) ? errno : 0;
}

bool mem_endless(const struct mem *m)
{
	return m->odp && m->kind->flags == ODP_ALL;
}

int mem_move(struct mem *m)
{
	if (!m->peer)
		return ioctl(mem_gpu(), FAKE_GPU_MOVE, &m->fd) ? errno : 0;
	if (munmap(m->map, m->map_len))
		return errno;
	m->map = NULL;
	return 0;
}
