// SPDX-License-Identifier: GPL-2.0
/*
 * What packets write to on-demand memory is kept as if the program had written it: reclaim drops pages that nothing was
 * written to, and no other; writeback brings all of a file to its device. Pages under writeback can be faulted in.
 */
#define _GNU_SOURCE
#include "features.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define LEN		(1 << 20)
#define WRITTEN		65536		/* from the start; read-ahead does not reach the second half */

static size_t bytes_kept(const struct absent *a, uint8_t byte)
{
	size_t n = 0;

	while (n < WRITTEN && a->mem[n] == byte)
		n++;
	return n;
}

/* Pages that are present, writable, and that reclaim may drop: freed by MADV_FREE, or holes of shared memory. */
static bool map_clean(struct absent *a, int flags)
{
	absent_map(a, LEN, flags | MAP_ANONYMOUS, -1);
	madvise(a->mem, LEN, MADV_NOHUGEPAGE);	/* EINVAL: this kernel has none */
	if (flags & MAP_SHARED) {
		for (size_t off = 0; off < LEN; off += PAGE)
			(void)*(volatile uint8_t *)(a->mem + off);
		return true;
	}
	memset(a->mem, 1, LEN);
	return !madvise(a->mem, LEN, MADV_FREE);
}

static void written_by_peer(struct vt_dev *d, int flags, const char *name)
{
	enum ibv_wc_status status;
	struct absent a = { 0 };
	struct pair p;
	size_t kept;
	int left;

	if (!map_clean(&a, flags) || !absent_register(&a, d))
		vt_die("%s memory", name);
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	memset(p.buf, 0x77, WRITTEN);
	status = by_peer_on(&p, &a, IBV_WR_RDMA_WRITE, 0, WRITTEN);
	if (madvise(a.mem, LEN, MADV_PAGEOUT))
		vt_die("MADV_PAGEOUT");
	left = resident(a.mem + LEN / 2, LEN / 2);
	kept = bytes_kept(&a, 0x77);
	vt_ok(!status && kept == WRITTEN && left < (int)(LEN / 2 / PAGE),
	      "reclaim of %s memory keeps %zu of %d bytes that a peer wrote, and %d of %d clean pages",
	      name, kept, WRITTEN, left, (int)(LEN / 2 / PAGE));
	pair_close(&p);
	absent_close(&a);
}

static bool write_file(struct pair *p, const struct absent *a, uint8_t byte)
{
	memset(p->buf, byte, WRITTEN);
	return by_peer_on(p, a, IBV_WR_RDMA_WRITE, 0, WRITTEN) == IBV_WC_SUCCESS;
}

static size_t same_on_device(int fd, struct pair *p)
{
	size_t n = 0;

	if (fsync(fd) || posix_fadvise(fd, 0, WRITTEN, POSIX_FADV_DONTNEED) ||
	    pread(fd, p->buf + BUF / 2, WRITTEN, 0) != WRITTEN)
		vt_die("%s", slowish_device);
	while (n < WRITTEN && p->buf[n] == p->buf[BUF / 2 + n])
		n++;
	return n;
}

/* After msync() the pages are clean, and still mapped. */
static void written_to_file(struct vt_dev *d)
{
	struct absent a = { 0 };
	struct pair p;
	size_t same;
	bool ok;
	int fd;

	if (!slowish_device) {
		vt_ok_skip("a peer's WRITEs to a mapped file reach its device", "no null_blk");
		return;
	}
	fd = open(slowish_device, O_RDWR);
	if (fd < 0)
		vt_die("%s", slowish_device);
	absent_map(&a, LEN, MAP_SHARED, fd);
	if (!absent_register(&a, d))
		vt_die("reg_mr");
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	ok = write_file(&p, &a, 0x55) && !msync(a.mem, LEN, MS_SYNC) && write_file(&p, &a, 0x66);
	absent_close(&a);
	same = same_on_device(fd, &p);
	vt_ok(ok && same == WRITTEN,
	      "a peer's WRITEs to a mapped file, before and after msync(), reach its device: %zu bytes", same);
	pair_close(&p);
	close(fd);
}

/* Pages that are in memory, under writeback for 500 ms, and not mapped: MADV_PAGEOUT unmaps and marks dirty pages. */
static void open_under_writeback(struct absent *a, struct vt_dev *d)
{
	static uint8_t data[LEN];
	int fd = open(slow_device, O_RDWR);

	memset(data, 0x44, LEN);
	if (fd < 0 || pwrite(fd, data, LEN, 0) != LEN)
		vt_die("%s", slow_device);
	absent_map(a, LEN, MAP_SHARED, fd);
	if (!absent_register(a, d) || memcmp(a->mem, data, LEN) || madvise(a->mem, LEN, MADV_PAGEOUT) ||
	    sync_file_range(fd, 0, LEN, SYNC_FILE_RANGE_WRITE))
		vt_die("writeback");
	close(fd);
}

/* filemap_fault() takes the mark for a request of read-ahead, and maps no such page if it may release mmap_lock. */
static void under_writeback(struct vt_dev *d)
{
	enum ibv_wc_status read, written;
	struct absent a = { 0 };
	struct pair p;
	bool same;

	if (!slow_device) {
		vt_ok_skip("a peer reads and writes a mapped file under writeback", "no null_blk");
		return;
	}
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	open_under_writeback(&a, d);
	read = by_peer_on(&p, &a, IBV_WR_RDMA_READ, 0, WRITTEN);
	same = p.buf[0] == 0x44 && !memcmp(p.buf, a.mem, WRITTEN);
	memset(p.buf, 0x33, WRITTEN);
	written = by_peer_on(&p, &a, IBV_WR_RDMA_WRITE, LEN / 2, WRITTEN);
	same = same && !memcmp(p.buf, a.mem + LEN / 2, WRITTEN);
	vt_ok(!read && !written && same, "a peer reads and writes a mapped file under writeback (%s, %s)",
	      ibv_wc_status_str(read), ibv_wc_status_str(written));
	pair_close(&p);
	absent_close(&a);
}

void test_reclaim(struct vt_dev *d)
{
	written_by_peer(d, MAP_PRIVATE, "freed");
	written_by_peer(d, MAP_SHARED, "shared");
	written_to_file(d);
	under_writeback(d);
}
