// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is not there yet (on-demand paging) costs time and nothing else: each request behind it has the status it would
 * have had. Memory that will not come, or not for this use, is refused to who asked, and to nobody else.
 */
#include "features.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096
#define PAGES	(4 * PAGE)

struct absent {
	uint8_t *mem;		/* nobody has touched it */
	struct ibv_mr *mr;
};

static bool absent_register(struct absent *a, struct vt_dev *d)
{
	a->mr = ibv_reg_mr(d->pd, a->mem, PAGES, (RIGHTS & ~IBV_ACCESS_MW_BIND) | IBV_ACCESS_ON_DEMAND);
	return a->mr;
}

static bool absent_open(struct absent *a, struct vt_dev *d)
{
	a->mem = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->mem == MAP_FAILED)
		vt_die("mmap");
	return absent_register(a, d);
}

static void absent_close(struct absent *a)
{
	if (a->mr && ibv_dereg_mr(a->mr))
		vt_die("dereg_mr");
	munmap(a->mem, PAGES);
}

static int post_two(struct pair *p, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr[0].send_flags = IBV_SEND_SIGNALED;
	wr[1].send_flags = IBV_SEND_SIGNALED;
	wr[0].next = &wr[1];
	return ibv_post_send(p->qp[0], wr, &bad);
}

/* The responder has no page for the READ yet when it refuses the WRITE: first the one is answered, then the other. */
static void refusal_behind_an_absent_page(struct vt_dev *d)
{
	enum ibv_wc_status first, second;
	struct absent a;
	struct pair p;
	int err = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	if (absent_open(&a, d)) {
		struct ibv_sge sge = sge_at(&p, 0, 64);
		struct ibv_send_wr wr[2] = {
			{ .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1, .wr.rdma = { (uintptr_t)a.mem, a.mr->rkey } },
			{ .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			  .wr.rdma = { (uintptr_t)p.buf, p.mr->rkey ^ 0x5500 } },
		};

		err = post_two(&p, wr);
	}
	first = status_of(p.scq[0], 5000);
	second = status_of(p.scq[0], 5000);
	vt_ok(!err && first == IBV_WC_SUCCESS && refused_by_peer(second, IBV_WC_REM_ACCESS_ERR),
	      "READ of a page not there yet, then a WRITE with a wrong key: each has its status (%s)", ibv_wc_status_str(first));
	pair_close(&p);
	absent_close(&a);
	while (async_event(d->ctx, 0) >= 0)
		;
}

/*
 * The response cannot be placed yet, and the ACK behind it is no sign of loss: a QP without retries goes on. An emulated CPU may
 * stand still for longer than the ACK timeout of other tests.
 */
static void response_for_an_absent_page(struct vt_dev *d)
{
	const struct vt_conn conn = { .timeout = 17, .retry = 0, .rnr_retry = 7, .min_rnr_timer = 1 };
	enum ibv_wc_status first, second;
	struct absent a;
	struct pair p;
	int err = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, &conn);
	if (absent_open(&a, d)) {
		struct ibv_sge place = { (uintptr_t)a.mem, 64, a.mr->lkey }, sge = sge_at(&p, 0, 64);
		struct ibv_send_wr wr[2] = {
			{ .opcode = IBV_WR_RDMA_READ, .sg_list = &place, .num_sge = 1, .wr.rdma = { (uintptr_t)p.buf, p.mr->rkey } },
			{ .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			  .wr.rdma = { (uintptr_t)p.buf + 4096, p.mr->rkey } },
		};

		err = post_two(&p, wr);
	}
	first = status_of(p.scq[0], 5000);
	second = status_of(p.scq[0], 5000);
	vt_ok(!err && first == IBV_WC_SUCCESS && second == IBV_WC_SUCCESS,
	      "READ into a page not there yet, then a WRITE: no retry is spent (%s)", ibv_wc_status_str(first));
	pair_close(&p);
	absent_close(&a);
}

#define SLOW	(1 << 20)	/* of a device that takes half a second, more than all retries of this: */
static const struct vt_conn impatient = { .timeout = 14, .retry = 1, .rnr_retry = 5, .min_rnr_timer = 1 };

/* Nothing of it is in memory. */
static bool slow_open(struct absent *a, struct vt_dev *d, const char *device)
{
	int fd = open(device, O_RDWR);

	if (fd < 0 || posix_fadvise(fd, 0, SLOW, POSIX_FADV_DONTNEED))
		vt_die("%s", device);
	a->mem = mmap(NULL, SLOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (a->mem == MAP_FAILED)
		vt_die("mmap");
	close(fd);
	a->mr = ibv_reg_mr(d->pd, a->mem, SLOW, (RIGHTS & ~IBV_ACCESS_MW_BIND) | IBV_ACCESS_ON_DEMAND);
	return a->mr;
}

static void slow_close(struct absent *a)
{
	if (a->mr && ibv_dereg_mr(a->mr))
		vt_die("dereg_mr");
	munmap(a->mem, SLOW);
}

/* The first packet of a message has left when there is nothing to put into the second: its silent receiver is not at fault. */
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
	vt_ok(!err && status == IBV_WC_SUCCESS, "WRITE whose second packet is long in coming: no retry is spent (%s)",
	      ibv_wc_status_str(status));
	pair_close(&p);
	slow_close(&a);
}

static enum ibv_wc_status read_slow(struct vt_dev *d, const char *device, const struct vt_conn *conn)
{
	enum ibv_wc_status status;
	struct absent a;
	struct pair p;
	int i, err = -1;

	pair_open(&p, d, IBV_QPT_RC, 64, conn);
	for (i = 0; i < 20; i++)	/* it knows how long a round trip takes, and so when to ask early */
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
	slow_close(&a);
	return status;
}

/* A peer that asks again is told to come later; but not as soon as it asks, as it may be one that cannot be told. */
static void slow_sources(struct vt_dev *d)
{
	const struct vt_conn never_later = { .timeout = 14, .retry = 7, .rnr_retry = 0, .min_rnr_timer = 1 };
	enum ibv_wc_status status;
	int tries = 3;		/* on a busy machine 20 ms may be 50 */

	status = read_slow(d, slow_device, &impatient);
	vt_ok(status == IBV_WC_SUCCESS, "READ of a page that is long in coming: the peer's few retries are enough (%s)",
	      ibv_wc_status_str(status));
	do {
		status = read_slow(d, slowish_device, &never_later);
	} while (status == IBV_WC_RNR_RETRY_EXC_ERR && --tries);
	vt_ok(status == IBV_WC_SUCCESS, "READ of a page that takes 20 ms, by a peer without RNR retries (%s)", ibv_wc_status_str(status));
}

static void test_slow_pages(struct vt_dev *d)
{
	if (!slow_device || !slowish_device || wire_loses) {
		vt_ok_skip("pages that are long in coming", slow_device ? "with few retries, and the wire loses" : "no null_blk");
		return;
	}
	slow_payload(d);
	slow_sources(d);
}

static enum ibv_wc_status by_peer_on(struct pair *p, const struct absent *a, enum ibv_wr_opcode op, size_t off, uint32_t len)
{
	struct ibv_sge sge = sge_at(p, 0, len);
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED };

	if (!a->mr)
		return NO_COMPLETION;
	wr.wr.rdma.remote_addr = (uintptr_t)a->mem + off;
	wr.wr.rdma.rkey = a->mr->rkey;
	return post(p, 0, wr) ? NO_COMPLETION : status_of(p->scq[0], 5000);
}

/* Each on a pair of its own, as a refusal ends it. */
static enum ibv_wc_status by_peer(struct vt_dev *d, const struct absent *a, enum ibv_wr_opcode op)
{
	enum ibv_wc_status status;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	status = by_peer_on(&p, a, op, 0, 64);
	pair_close(&p);
	return status;
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

/* What is there to be read is no less refused to who writes. */
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
	      "WRITE to a page that may only be read: refused (%s)", ibv_wc_status_str(status));
	status = as_read_target(d, &a);
	vt_ok(status == IBV_WC_LOC_PROT_ERR, "READ into a page that may only be read: refused (%s)", ibv_wc_status_str(status));
	status = as_receive(d, &a);
	vt_ok(status == IBV_WC_LOC_PROT_ERR, "receive into a page that may only be read: refused (%s)", ibv_wc_status_str(status));
	status = by_peer(d, &a, IBV_WR_RDMA_READ);
	vt_ok(status == IBV_WC_SUCCESS, "READ of it: as before (%s)", ibv_wc_status_str(status));
	absent_close(&a);
}

/* One packet for two pages that are not mapped; then the second one is. */
static void refused_once(struct vt_dev *d)
{
	enum ibv_wc_status first, status;
	struct pair p, q;
	struct absent a;

	absent_open(&a, d);
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);		/* now: these map memory, too, perhaps there */
	pair_open(&q, d, IBV_QPT_RC, 64, NULL);
	if (munmap(a.mem, 2 * PAGE))
		vt_die("munmap");
	first = by_peer_on(&p, &a, IBV_WR_RDMA_WRITE, PAGE - 64, 128);
	if (mmap(a.mem + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		vt_die("mmap");
	status = by_peer_on(&q, &a, IBV_WR_RDMA_WRITE, PAGE, 64);
	vt_ok(refused_by_peer(first, IBV_WC_REM_ACCESS_ERR) && status == IBV_WC_SUCCESS,
	      "WRITE to a page refused to another before it was mapped: done (%s)", ibv_wc_status_str(status));
	pair_close(&q);
	pair_close(&p);
	absent_close(&a);
}

/* The kernel itself has no address for it: it is as if nothing were there. */
static void secret(struct vt_dev *d, int fd)
{
	enum ibv_wc_status status;
	struct absent a;

	if (ftruncate(fd, PAGES))
		vt_die("ftruncate");
	a.mem = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (a.mem == MAP_FAILED)
		vt_die("mmap");
	memset(a.mem, 1, PAGES);
	absent_register(&a, d);
	status = by_peer(d, &a, IBV_WR_RDMA_READ);
	vt_ok(refused_by_peer(status, IBV_WC_REM_ACCESS_ERR), "READ of secret memory: refused (%s)", ibv_wc_status_str(status));
	status = by_peer(d, &a, IBV_WR_RDMA_WRITE);
	vt_ok(refused_by_peer(status, IBV_WC_REM_ACCESS_ERR), "WRITE to secret memory: refused (%s)", ibv_wc_status_str(status));
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

static void test_refusals(struct vt_dev *d)
{
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
	if (wire_loses)
		vt_ok_skip("READ into a page not there yet", "without retries, and the wire loses");
	else
		response_for_an_absent_page(d);
	test_refusals(d);
}
