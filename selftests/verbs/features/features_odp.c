// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging: a page that is not present delays a request and has no other effect; later requests keep the
 * statuses they would have had. A page that cannot be faulted in, or not for this access, fails the request for it and
 * no other.
 */
#include "features.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret	-1	/* on s390x: ENOSYS */
#endif
#define PAGES	(4 * PAGE)

bool absent_register(struct absent *a, struct vt_dev *d)
{
	a->mr = ibv_reg_mr(d->pd, a->mem, a->len, (RIGHTS & ~IBV_ACCESS_MW_BIND) | IBV_ACCESS_ON_DEMAND);
	return a->mr;
}

void absent_map(struct absent *a, size_t len, int flags, int fd)
{
	a->len = len;
	a->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (a->mem == MAP_FAILED)
		vt_die("mmap");
}

static bool absent_open(struct absent *a, struct vt_dev *d)
{
	absent_map(a, PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	return absent_register(a, d);
}

void absent_close(struct absent *a)
{
	if (a->mr && ibv_dereg_mr(a->mr))
		vt_die("dereg_mr");
	munmap(a->mem, a->len);
}

static int post_two(struct pair *p, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr[0].send_flags = IBV_SEND_SIGNALED;
	wr[1].send_flags = IBV_SEND_SIGNALED;
	wr[0].next = &wr[1];
	return ibv_post_send(p->qp[0], wr, &bad);
}

static struct ibv_sge place_of(const struct absent *a)
{
	return (struct ibv_sge) { (uintptr_t)a->mem, 64, a->mr->lkey };
}

/*
 * Posts a READ of 64 bytes at @from to @place, and a WRITE with @rkey to the pair's memory behind it. Returns an error of
 * posting; @status: of both.
 */
static int read_then_write(struct pair *p, struct ibv_sge place, void *from, uint32_t from_rkey, uint32_t rkey,
			   enum ibv_wc_status status[2])
{
	struct ibv_sge sge = sge_at(p, 0, 64);
	struct ibv_send_wr wr[2] = {
		{ .opcode = IBV_WR_RDMA_READ, .sg_list = &place, .num_sge = 1, .wr.rdma = { (uintptr_t)from, from_rkey } },
		{ .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .wr.rdma = { (uintptr_t)p->buf + 4096, rkey } },
	};
	int err = post_two(p, wr);

	status[0] = status_of(p->scq[0], 5000);
	status[1] = status_of(p->scq[0], 5000);
	return err;
}

/* The READ's page is not present when the WRITE behind it is refused: the READ response is sent first, then the NAK. */
static void refusal_behind_an_absent_page(struct vt_dev *d)
{
	enum ibv_wc_status status[2] = { NO_COMPLETION, NO_COMPLETION };
	struct absent a;
	struct pair p;
	int err = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	if (absent_open(&a, d))
		err = read_then_write(&p, sge_at(&p, 0, 64), a.mem, a.mr->rkey, p.mr->rkey ^ 0x5500, status);
	vt_ok(!err && status[0] == IBV_WC_SUCCESS && refused_by_peer(status[1], IBV_WC_REM_ACCESS_ERR),
	      "READ of a page not present, then a WRITE with a wrong key: each has its own status (%s)",
	      ibv_wc_status_str(status[0]));
	pair_close(&p);
	absent_close(&a);
	while (async_event(d->ctx, 0) >= 0)
		;
}

/*
 * The READ response cannot be placed yet. The ACK of the WRITE behind it must not count as a lost response: this QP has
 * no retries. Its ACK timeout is longer than in other tests, as an emulated CPU may stall for longer than those.
 */
static void response_for_an_absent_page(struct vt_dev *d)
{
	const struct vt_conn conn = { .timeout = 21, .retry = 0, .rnr_retry = 7, .min_rnr_timer = 1 };
	enum ibv_wc_status status[2] = { NO_COMPLETION, NO_COMPLETION };
	struct absent a;
	struct pair p;
	int err = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, &conn);
	if (absent_open(&a, d))
		err = read_then_write(&p, place_of(&a), p.buf, p.mr->rkey, p.mr->rkey, status);
	vt_ok(!err && status[0] == IBV_WC_SUCCESS && status[1] == IBV_WC_SUCCESS,
	      "READ into a page not present, then a WRITE: no retry is used (%s)", ibv_wc_status_str(status[0]));
	pair_close(&p);
	absent_close(&a);
}

/*
 * The NAK of the WRITE comes while the READ response cannot be placed, and the peer sends neither again: the READ ends
 * then, not after eight ACK timeouts of 1 s.
 */
static void refusal_during_a_page_fault(struct vt_dev *d)
{
	const struct vt_conn conn = { .timeout = 18, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 1 };
	enum ibv_wc_status status[2] = { NO_COMPLETION, NO_COMPLETION };
	struct absent a;
	struct pair p;
	int err = -1;
	bool ok;

	pair_open(&p, d, IBV_QPT_RC, 64, &conn);
	if (absent_open(&a, d))
		err = read_then_write(&p, place_of(&a), p.buf, p.mr->rkey, p.mr->rkey ^ 0x5500, status);
	ok = status[0] == IBV_WC_SUCCESS ? refused_by_peer(status[1], IBV_WC_REM_ACCESS_ERR) :
	     status[0] == IBV_WC_RETRY_EXC_ERR && status[1] == IBV_WC_WR_FLUSH_ERR;
	vt_ok(!err && ok, "READ into a page not present, then a WRITE with a wrong key: ends without a timeout (%s)",
	      ibv_wc_status_str(status[0]));
	pair_close(&p);
	absent_close(&a);
	while (async_event(d->ctx, 0) >= 0)
		;
}

#define SLOW	(1 << 20)	/* bytes; the device takes half a second a page, more than all retries of: */
static const struct vt_conn impatient = { .timeout = 14, .retry = 1, .rnr_retry = 5, .min_rnr_timer = 1 };

bool slow_open(struct absent *a, struct vt_dev *d, const char *device)
{
	int fd = open(device, O_RDWR);

	if (fd < 0 || posix_fadvise(fd, 0, SLOW, POSIX_FADV_DONTNEED))
		vt_die("%s", device);
	absent_map(a, SLOW, MAP_SHARED, fd);
	close(fd);
	return absent_register(a, d);
}

/* The second packet waits for its page in the sender: the ACK timer must not count that as silence of the receiver. */
static void slow_payload(struct vt_dev *d)
{
	enum ibv_wc_status status;
	struct absent a;
	struct pair p;
	int err = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, &impatient);
	if (slow_open(&a, d, slow_device)) {
		struct ibv_sge sges[2] = { sge_at(&p, 0, 4096), { (uintptr_t)a.mem, 64, a.mr->lkey } };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = sges, .num_sge = 2, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p.buf + BUF / 2, p.mr->rkey },
		};

		err = post(&p, 0, wr);
	}
	status = status_of(p.scq[0], 5000);
	vt_ok(!err && status == IBV_WC_SUCCESS, "WRITE whose second packet waits for a page: no retry is used (%s)",
	      ibv_wc_status_str(status));
	pair_close(&p);
	absent_close(&a);
}

/* Milliseconds from the completion of a WRITE to that of the next one, whose page takes 500 ms. -1: an error. */
static int64_t waits_alone(struct vt_dev *d)
{
	int64_t ms = -1;
	struct absent a;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	if (slow_open(&a, d, slow_device)) {
		struct ibv_sge sges[2] = { sge_at(&p, 0, 64), { (uintptr_t)a.mem, 64, a.mr->lkey } };
		struct ibv_send_wr wr[2] = {
			{ .sg_list = &sges[0], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			  .wr.rdma = { (uintptr_t)p.buf + BUF / 2, p.mr->rkey } },
			{ .sg_list = &sges[1], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			  .wr.rdma = { (uintptr_t)p.buf + BUF / 2, p.mr->rkey } },
		};

		if (!post_two(&p, wr) && !status_of(p.scq[0], 5000)) {
			ms = vt_now_ms();
			ms = status_of(p.scq[0], 5000) ? -1 : (int64_t)vt_now_ms() - ms;
		}
	}
	pair_close(&p);
	absent_close(&a);
	return ms;
}

/* The first one has no AckReq, as the second is to follow at once. */
static void earlier_request_completes(struct vt_dev *d)
{
	int64_t ms = 0;
	int tries;

	for (tries = 0; tries < 3 && ms >= 0 && ms < 100; tries++)	/* a guest may stand still meanwhile */
		ms = waits_alone(d);
	vt_ok(ms >= 100, "a WRITE completes while the next one waits for a page (%d ms earlier)", (int)ms);
}

static enum ibv_wc_status read_slow(struct vt_dev *d, const char *device, const struct vt_conn *conn)
{
	enum ibv_wc_status status;
	struct absent a;
	struct pair p;
	int i, err = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, conn);
	for (i = 0; i < 20; i++)	/* the requester measures the round trip, so it probes early */
		if (post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 4096, 8, 0) || status_of(p.scq[0], 5000))
			vt_die("a write");
	if (slow_open(&a, d, device)) {
		struct ibv_sge sge = sge_at(&p, 0, 64);
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)a.mem, a.mr->rkey },
		};

		err = post(&p, 0, wr);
	}
	status = err ? NO_COMPLETION : status_of(p.scq[0], 5000);
	pair_close(&p);
	absent_close(&a);
	return status;
}

/*
 * A duplicate READ is answered by RNR NAK while its page is faulted in. The first duplicates are not, as the peer may
 * have no RNR retries.
 */
static void slow_sources(struct vt_dev *d)
{
	const struct vt_conn never_later = { .timeout = 14, .retry = 7, .rnr_retry = 0, .min_rnr_timer = 1 };
	enum ibv_wc_status status;
	int tries = 20;		/* a busy machine may take 50 ms instead of 20 */

	status = read_slow(d, slow_device, &impatient);
	vt_ok(status == IBV_WC_SUCCESS, "READ of a page that takes 500 ms: the peer's few retries are enough (%s)",
	      ibv_wc_status_str(status));
	do {
		status = read_slow(d, slowish_device, &never_later);
	} while (status == IBV_WC_RNR_RETRY_EXC_ERR && --tries);
	vt_ok(status == IBV_WC_SUCCESS,
	      "READ of a page that takes 20 ms, by a peer without RNR retries (%s)", ibv_wc_status_str(status));
}

enum ibv_wc_status by_peer_on(struct pair *p, const struct absent *a, enum ibv_wr_opcode op, size_t off, uint32_t len)
{
	struct ibv_sge sge = sge_at(p, 0, len);
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED };

	if (!a->mr)
		return NO_COMPLETION;
	wr.wr.rdma.remote_addr = (uintptr_t)a->mem + off;
	wr.wr.rdma.rkey = a->mr->rkey;
	return post(p, 0, wr) ? NO_COMPLETION : status_of(p->scq[0], 5000);
}

/* A prefetch of the same user takes seconds. Memory of another region is read ahead all the same. */
static void read_ahead_beside_a_prefetch(struct vt_dev *d)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct absent slow, a;
	struct ibv_sge sge;
	struct pair p;
	char file[128];
	long faults;
	size_t off;

	snprintf(file, sizeof(file), "/proc/1/root/sys/class/infiniband/%s/ports/1/hw_counters/page_faults",
		 ibv_get_device_name(d->ctx->device));
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	absent_map(&a, 4 << 20, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memset(a.mem, 1, a.len);
	if (!slow_open(&slow, d, slow_device) || !absent_register(&a, d))
		vt_die("reg_mr");
	sge = (struct ibv_sge) { (uintptr_t)slow.mem, SLOW, slow.mr->lkey };
	if (ibv_advise_mr(d->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1))
		vt_die("advise_mr");
	faults = vt_number(file, "");
	for (off = 0; off < a.len && !status; off += BUF / 2)
		status = by_peer_on(&p, &a, IBV_WR_RDMA_WRITE, off, BUF / 2);
	faults = vt_number(file, "") - faults;
	vt_ok(!status && faults > 0 && faults < 100, "WRITEs to 4 MiB beside a prefetch: %ld page faults", faults);
	pair_close(&p);
	absent_close(&slow);
	absent_close(&a);
}

static void test_slow_pages(struct vt_dev *d)
{
	if (!slow_device || !slowish_device || wire_loses) {
		vt_ok_skip("pages that take long to fault in",
		slow_device ? "has few retries, and WIRE loses packets" : "no null_blk");
		return;
	}
	slow_payload(d);
	earlier_request_completes(d);
	slow_sources(d);
	read_ahead_beside_a_prefetch(d);
	test_odp_resend(d);
}

/* Each case uses a new pair, as the refusal ends the QP. */
static enum ibv_wc_status by_peer(struct vt_dev *d, const struct absent *a, enum ibv_wr_opcode op)
{
	enum ibv_wc_status status;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	status = by_peer_on(&p, a, op, 0, 64);
	pair_close(&p);
	return status;
}

/* Values of enum ibv_odp_transport_cap_bits and ib_uverbs_device_cap_flags, which older headers lack. */
#define ODP_FLUSH		(1u << 6)
#define ODP_ATOMIC_WRITE	(1u << 7)
#define CAP_ATOMIC_WRITE	(1ull << 40)
#define ATOMIC_WRITE		((enum ibv_wr_opcode)15)

/* What the device can do it can do with on-demand memory, too, and says so. */
static void newer_operations(struct vt_dev *d)
{
	const uint32_t rc = d->attr.odp_caps.per_transport_caps.rc_odp_caps;
	const uint64_t caps = d->attr.device_cap_flags_ex;
	enum ibv_wc_status status;
	struct absent a;
	struct pair p;

	vt_ok(!(caps & CAP_FLUSH_GLOBAL) == !(rc & ODP_FLUSH), "the device announces FLUSH of on-demand memory");
	if (!(caps & CAP_ATOMIC_WRITE)) {
		vt_ok_skip("ATOMIC_WRITE to a page not present", "the device has no ATOMIC_WRITE");
		return;
	}
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	memset(p.buf, 0x77, 8);
	absent_open(&a, d);
	status = by_peer_on(&p, &a, ATOMIC_WRITE, 8, 8);
	vt_ok(rc & ODP_ATOMIC_WRITE && status == IBV_WC_SUCCESS && !memcmp(a.mem + 8, p.buf, 8),
	      "ATOMIC_WRITE to a page not present, which the device announces (%s)", ibv_wc_status_str(status));
	pair_close(&p);
	absent_close(&a);
}

static enum ibv_wc_status as_read_target(struct vt_dev *d, const struct absent *a)
{
	enum ibv_wc_status status = NO_COMPLETION;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	if (a->mr) {
		struct ibv_sge sge = { (uintptr_t)a->mem, 64, a->mr->lkey };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p.buf, p.mr->rkey },
		};

		if (!post(&p, 0, wr))
			status = status_of(p.scq[0], 5000);
	}
	pair_close(&p);
	return status;
}

static enum ibv_wc_status as_receive(struct vt_dev *d, const struct absent *a)
{
	enum ibv_wc_status status = NO_COMPLETION;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	if (a->mr) {
		struct ibv_sge sge = { (uintptr_t)a->mem, 64, a->mr->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

		if (!ibv_post_recv(p.qp[1], &wr, &bad) && !post_op(&p, 0, IBV_WR_SEND, 0, 0, 64, 0))
			status = status_of(p.rcq[1], 5000);
	}
	pair_close(&p);
	return status;
}

/* A page mapped read-only is present for READ, yet a WRITE to it must be refused. */
static void read_only(struct vt_dev *d)
{
	enum ibv_wc_status first, status;
	struct absent a;

	absent_open(&a, d);
	memset(a.mem, 1, PAGES);
	if (mprotect(a.mem, PAGES, PROT_READ))
		vt_die("mprotect");
	first = by_peer(d, &a, IBV_WR_RDMA_READ);
	status = by_peer(d, &a, IBV_WR_RDMA_WRITE);
	vt_ok(first == IBV_WC_SUCCESS && refused_by_peer(status, IBV_WC_REM_ACCESS_ERR),
	      "WRITE to a read-only page: refused (%s)", ibv_wc_status_str(status));
	status = as_read_target(d, &a);
	vt_ok(status == IBV_WC_LOC_PROT_ERR, "READ into a read-only page: refused (%s)", ibv_wc_status_str(status));
	status = as_receive(d, &a);
	vt_ok(status == IBV_WC_LOC_PROT_ERR, "receive into a read-only page: refused (%s)", ibv_wc_status_str(status));
	status = by_peer(d, &a, IBV_WR_RDMA_READ);
	vt_ok(status == IBV_WC_SUCCESS, "READ of it: succeeds (%s)", ibv_wc_status_str(status));
	absent_close(&a);
}

/* One packet to two pages without a mapping is refused. Then the second page is mapped: another QP can write to it. */
static void refused_once(struct vt_dev *d)
{
	enum ibv_wc_status first, status;
	struct pair p, q;
	struct absent a;

	absent_open(&a, d);
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);		/* before munmap(): it maps memory, perhaps into the hole */
	pair_open(&q, d, IBV_QPT_RC, 64, NULL);
	if (munmap(a.mem, 2 * PAGE))
		vt_die("munmap");
	first = by_peer_on(&p, &a, IBV_WR_RDMA_WRITE, PAGE - 64, 128);
	if (mmap(a.mem + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		vt_die("mmap");
	status = by_peer_on(&q, &a, IBV_WR_RDMA_WRITE, PAGE, 64);
	vt_ok(refused_by_peer(first, IBV_WC_REM_ACCESS_ERR) && status == IBV_WC_SUCCESS,
	      "WRITE to a page that was refused to another QP before it was mapped: succeeds (%s)",
	      ibv_wc_status_str(status));
	pair_close(&q);
	pair_close(&p);
	absent_close(&a);
}

#define SPARSE_STEP	(256 << 10)	/* bytes: further than any prefetch */
#define SPARSE_WRITES	(RESIDENT_MAX / SPARSE_STEP)

int resident(uint8_t *mem, size_t len)
{
	static unsigned char present[RESIDENT_MAX / 4096];
	int n = 0;

	if (mincore(mem, len, present))
		vt_die("mincore");
	for (size_t i = 0; i < len / PAGE; i++)
		n += present[i] & 1;
	return n;
}

static enum ibv_wc_status write_sparse(struct pair *p, const struct absent *a)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	for (size_t i = 0; i < SPARSE_WRITES && !status; i++)
		status = by_peer_on(p, a, IBV_WR_RDMA_WRITE, i * SPARSE_STEP, 8);
	return status;
}

/* What is prefetched behind a page fault grows with what is written in sequence: a sparse region stays sparse. */
static void sparse(struct vt_dev *d)
{
	const size_t len = SPARSE_WRITES * SPARSE_STEP;
	enum ibv_wc_status status;
	struct absent a;
	struct pair p;
	int pages;

	absent_map(&a, len, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	madvise(a.mem, len, MADV_NOHUGEPAGE);	/* EINVAL: this kernel has none */
	absent_register(&a, d);
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	status = write_sparse(&p, &a);
	usleep(100000);		/* a prefetch is not waited for */
	pages = resident(a.mem, len);
	vt_ok(!status && pages >= SPARSE_WRITES && pages < 2 * SPARSE_WRITES,
	      "%d WRITEs to pages not present, far from each other: %d pages of memory (%s)", SPARSE_WRITES, pages,
	      ibv_wc_status_str(status));
	pair_close(&p);
	absent_close(&a);
}

/* memfd_secret pages have no kernel mapping: access must fail as for an unmapped page. */
static void secret(struct vt_dev *d, int fd)
{
	enum ibv_wc_status status;
	struct absent a;

	if (ftruncate(fd, PAGES))
		vt_die("ftruncate");
	absent_map(&a, PAGES, MAP_SHARED, fd);
	memset(a.mem, 1, PAGES);
	absent_register(&a, d);
	status = by_peer(d, &a, IBV_WR_RDMA_READ);
	vt_ok(refused_by_peer(status, IBV_WC_REM_ACCESS_ERR),
	      "READ of secret memory: refused (%s)", ibv_wc_status_str(status));
	status = by_peer(d, &a, IBV_WR_RDMA_WRITE);
	vt_ok(refused_by_peer(status, IBV_WC_REM_ACCESS_ERR),
	      "WRITE to secret memory: refused (%s)", ibv_wc_status_str(status));
	status = as_receive(d, &a);
	vt_ok(status == IBV_WC_LOC_PROT_ERR, "receive into secret memory: refused (%s)", ibv_wc_status_str(status));
	absent_close(&a);
}

static void test_secret(struct vt_dev *d)
{
	int fd = syscall(SYS_memfd_secret, 0);

	if (fd < 0) {
		vt_ok_skip("secret memory", "no memfd_secret");
		return;
	}
	secret(d, fd);
	close(fd);
}

static int advise(struct ibv_pd *pd, const struct absent *a)
{
	struct ibv_sge sge = { .addr = (uintptr_t)a->mem, .length = PAGE, .lkey = a->mr->lkey };

	return ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

/* The errors do not tell which keys exist in other PDs. */
static void refused_advice(struct vt_dev *d)
{
	struct ibv_pd *other = ibv_alloc_pd(d->ctx);
	int err, foreign, right, unknown;
	struct absent a;

	if (!other || !absent_open(&a, d))
		vt_die("PD or MR");
	err = advise(d->pd, &a);
	foreign = advise(other, &a);
	a.mr->lkey ^= 0x100;
	unknown = advise(d->pd, &a);
	a.mr->lkey ^= 0x100;
	absent_close(&a);
	absent_map(&a, PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	a.mr = ibv_reg_mr(d->pd, a.mem, a.len, IBV_ACCESS_ON_DEMAND);
	right = a.mr ? advise(d->pd, &a) : -1;
	absent_close(&a);
	vt_ok(!err && foreign == ENOENT && unknown == ENOENT && right == EPERM && !ibv_dealloc_pd(other),
	      "prefetch of another PD's region is refused as that of an unknown key (%d, %d, %d), without the right: %d",
	      err, foreign, unknown, right);
}

static void test_refusals(struct vt_dev *d)
{
	refused_advice(d);
	test_secret(d);
	read_only(d);
	refused_once(d);
	while (async_event(d->ctx, 0) >= 0)
		;
}

void test_paging(struct vt_dev *d)
{
	test_slow_pages(d);
	refusal_behind_an_absent_page(d);
	if (wire_loses) {
		vt_ok_skip("READ into a page not present", "has no retries, and WIRE loses packets");
		vt_ok_skip("READ into a page not present, then a WRITE with a wrong key", "WIRE may lose the NAK");
	} else {
		response_for_an_absent_page(d);
		refusal_during_a_page_fault(d);
	}
	newer_operations(d);
	sparse(d);
	test_refusals(d);
}
