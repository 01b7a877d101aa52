// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH and ATOMIC_WRITE between two hosts, by the calls that rdma-core has since release 45. The target offers two
 * regions, one of which may be flushed; the initiator runs the cases and prints a KTAP line for each.
 *	flush -d DEV [-6] [-P FILE]	the target, for one initiator; -P: its memory is FILE, which is persistent
 *	flush -d DEV [-6] -c HOST	the initiator
 */
#include "verbs_test.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PORT		18620
#define LEN		65536u
#define SEED		0x666c757368ull
#define COMMON		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define SEND_OPS	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)
/* Bits of device_cap_flags_ex; values of enum ib_uverbs_device_cap_flags. */
#define CAP_FLUSH_GLOBAL	(1ull << 38)
#define CAP_FLUSH_PERSISTENT	(1ull << 39)
#define CAP_ATOMIC_WRITE	(1ull << 40)

/* What the target sends for each connection. */
struct offer {
	struct vt_addr addr;
	uint64_t base;
	uint32_t flushable;	/* key of an MR with FLUSH access */
	uint32_t plain;		/* key of an MR without it, same memory */
	uint32_t restless;	/* persistent memory: key of a large MR that is reregistered all the time */
	uint32_t persistent;	/* true if the memory is persistent */
	uint32_t may;		/* sent by the initiator: FLUSH access of the target's QP */
};

struct side {
	struct vt_dev d;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buf;		/* LEN bytes, and LEN more for data read back */
	struct ibv_mr *mr;
	struct ibv_mr *plain;
	struct ibv_mr *restless;
	bool persistent;
	struct offer peer;
	int fd;
};

#define LARGE		(32u << 20)	/* many mapping units of a DAX device */

static uint8_t *map_file(const char *name)
{
	int fd = open(name, O_RDWR);
	uint8_t *p = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd < 0 || p == MAP_FAILED)
		vt_die("%s: %s", name, strerror(errno));
	return p;
}

static void open_side(struct side *s, const char *name, bool v6, const char *file)
{
	vt_open(&s->d, name, v6, -1, 0);
	s->persistent = file;
	s->buf = file ? map_file(file) : aligned_alloc(4096, 2 * LEN);
	s->cq = ibv_create_cq(s->d.ctx, 64, NULL, NULL, 0);
	if (!s->buf || !s->cq)
		vt_die("objects: %s", strerror(errno));
	memset(s->buf, 0, 2 * LEN);
	s->mr = ibv_reg_mr(s->d.pd, s->buf, 2 * LEN, COMMON | IBV_ACCESS_FLUSH_GLOBAL |
			   (file ? IBV_ACCESS_FLUSH_PERSISTENT : 0));
	s->plain = ibv_reg_mr(s->d.pd, s->buf, 2 * LEN, COMMON);
	s->restless = ibv_reg_mr(s->d.pd, s->buf, 2 * LEN, COMMON | IBV_ACCESS_FLUSH_GLOBAL |
				 (file ? IBV_ACCESS_FLUSH_PERSISTENT : 0));
	if (!s->mr || !s->plain || !s->restless)
		vt_die("reg_mr: %s", strerror(errno));
}

static struct ibv_qp *create(struct side *s, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = type, .send_cq = s->cq, .recv_cq = s->cq, .cap = { 64, 1, 1, 1, 0 }, .pd = s->d.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = ops,
	};

	return ibv_create_qp_ex(s->d.ctx, &a);
}

static atomic_bool over;

/* Alternates between one page and all of it, as fast as possible. */
static void *change_memory(void *arg)
{
	struct side *s = arg;
	bool all = false;

	while (!over) {
		all = !all;
		if (ibv_rereg_mr(s->restless, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s->buf, all ? LARGE : 4096, 0))
			vt_die("rereg_mr: %s", strerror(errno));
	}
	return NULL;
}

/*
 * Connects a new pair of QPs, whose peer may flush as @may says; an error ends a pair. The target calls this as long as
 * the initiator does; false at the target: there are no more cases.
 */
static bool join_with(struct side *s, unsigned int may)
{
	struct vt_conn c = {
		.type = IBV_QPT_RC, .psn = 7, .timeout = 14, .retry = 7, .rnr_retry = 7,
	};
	struct offer me = { .base = (uintptr_t)s->buf, .flushable = s->mr->rkey, .plain = s->plain->rkey,
			    .restless = s->restless->rkey, .persistent = s->persistent, .may = may };
	uint8_t ready = 1;
	int err;

	vt_send(s->fd, &ready, 1);	/* both wait, so that no QP is destroyed while the other side uses it */
	vt_recv(s->fd, &ready, 1);
	if (!ready)
		return false;
	if (s->qp && ibv_destroy_qp(s->qp))
		vt_die("destroy_qp: %s", strerror(errno));
	s->qp = create(s, IBV_QPT_RC, SEND_OPS);
	if (!s->qp)
		vt_die("create_qp_ex: %s", strerror(errno));
	me.addr = (struct vt_addr) { .gid = s->d.gid, .qpn = s->qp->qp_num, .psn = 7, .mtu = s->d.mtu };
	vt_send(s->fd, &me, sizeof(me));
	vt_recv(s->fd, &s->peer, sizeof(s->peer));
	c.access = COMMON | s->peer.may;
	err = vt_qp_init(s->qp, &c);
	if (!err)
		err = vt_qp_connect(&s->d, s->qp, &c, &s->peer.addr);
	if (err)
		vt_die("connect: %s", strerror(err));
	vt_send(s->fd, &ready, 1);
	vt_recv(s->fd, &ready, 1);
	return true;
}

static bool join(struct side *s)
{
	return join_with(s, IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT);
}

static struct ibv_qp_ex *begin(struct side *s, uint64_t id)
{
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(s->qp);

	if (!q)
		vt_die("ibv_qp_to_qp_ex() fails");
	ibv_wr_start(q);
	q->wr_id = id;
	q->wr_flags = IBV_SEND_SIGNALED;
	return q;
}

/* Waits for the next completion, which must be of @id; @op gets its opcode on success. */
static enum ibv_wc_status done(struct side *s, uint64_t id, enum ibv_wc_opcode *op)
{
	struct ibv_wc wc;

	if (!vt_poll(s->cq, &wc, 5000))
		vt_die("no completion of request %u", (unsigned int)id);
	if (wc.wr_id != id)
		vt_die("completion of %u, wanted %u", (unsigned int)wc.wr_id, (unsigned int)id);
	if (wc.status)
		printf("# request %u: %s, vendor %#x\n", (unsigned int)id, ibv_wc_status_str(wc.status), wc.vendor_err);
	*op = wc.opcode;
	return wc.status;
}

static enum ibv_wc_status flush(struct side *s, uint32_t rkey, uint64_t off, size_t len, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *q = begin(s, 1);
	enum ibv_wc_opcode op = IBV_WC_SEND;
	enum ibv_wc_status status;

	ibv_wr_flush(q, rkey, s->peer.base + off, len, type, level);
	if (ibv_wr_complete(q))
		vt_die("posting a FLUSH: %s", strerror(errno));
	status = done(s, 1, &op);
	if (!status && op != IBV_WC_FLUSH)
		vt_die("a FLUSH completes as operation %d", op);
	return status;
}

static enum ibv_wc_status atomic_write(struct side *s, uint64_t off, uint64_t value)
{
	struct ibv_qp_ex *q = begin(s, 2);
	enum ibv_wc_opcode op = IBV_WC_SEND;
	enum ibv_wc_status status;

	ibv_wr_atomic_write(q, s->peer.flushable, s->peer.base + off, &value);
	if (ibv_wr_complete(q))
		vt_die("posting an ATOMIC_WRITE: %s", strerror(errno));
	status = done(s, 2, &op);
	if (!status && op != IBV_WC_ATOMIC_WRITE)
		vt_die("an ATOMIC_WRITE completes as operation %d", op);
	return status;
}

/* Reads the target's first @len bytes into the second half of the buffer. */
static const uint8_t *read_back(struct side *s, uint32_t len)
{
	struct ibv_qp_ex *q = begin(s, 3);
	enum ibv_wc_opcode op;

	ibv_wr_rdma_read(q, s->peer.flushable, s->peer.base);
	ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)s->buf + LEN, len);
	if (ibv_wr_complete(q) || done(s, 3, &op))
		vt_die("READ");
	return s->buf + LEN;
}

/* The use of FLUSH: WRITE a record, FLUSH it, then publish it by an 8-byte pointer (ATOMIC_WRITE). In one batch. */
static bool log_records(struct side *s, int n)
{
	uint8_t type = s->peer.persistent ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
	uint64_t published;
	uint32_t len;
	int i;

	for (i = 1; i <= n; i++) {
		struct ibv_qp_ex *q = begin(s, 10);
		enum ibv_wc_opcode op;

		len = 100 + i * 600;
		vt_fill(s->buf + 8, len, SEED + i, 0);
		ibv_wr_rdma_write(q, s->peer.flushable, s->peer.base + 8);
		ibv_wr_set_sge(q, s->mr->lkey, (uintptr_t)s->buf + 8, len);
		q->wr_id = 11;
		ibv_wr_flush(q, s->peer.flushable, s->peer.base + 8, len, type, IBV_FLUSH_RANGE);
		q->wr_id = 12;
		published = SEED + i;
		ibv_wr_atomic_write(q, s->peer.flushable, s->peer.base, &published);
		if (ibv_wr_complete(q) || done(s, 10, &op) || done(s, 11, &op) || done(s, 12, &op))
			return false;
		if (memcmp(read_back(s, 8 + len), &published, 8) || vt_diff(s->buf + LEN + 8, len, SEED + i, 0) != len)
			return false;
	}
	return true;
}

/* FLUSH of LEN / 2 is short, of all long (by a worker): later requests wait, and each is executed once. */
static bool long_ones(struct side *s, int n)
{
	struct ibv_qp_ex *q = begin(s, 0);
	const uint64_t value = SEED;
	enum ibv_wc_opcode op;
	int i;

	for (i = 0; i < 3 * n; i += 3) {
		q->wr_id = i;
		ibv_wr_flush(q, s->peer.flushable, s->peer.base, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
		q->wr_id = i + 1;
		ibv_wr_atomic_write(q, s->peer.flushable, s->peer.base, &value);
		q->wr_id = i + 2;
		ibv_wr_flush(q, s->peer.flushable, s->peer.base, LEN / 2, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	}
	if (ibv_wr_complete(q))
		return false;
	for (i = 0; i < 3 * n; i++)
		if (done(s, i, &op) || op != (i % 3 == 1 ? IBV_WC_ATOMIC_WRITE : IBV_WC_FLUSH))
			return false;
	return true;
}

/* While a worker writes back, the target may reregister the MR with another length. For a moment the key is invalid. */
static bool of_what_changes(struct side *s, int n)
{
	enum ibv_wc_status status;
	int i, refused = 0;

	for (i = 0; i < n; i++) {
		status = flush(s, s->peer.restless, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
		if (status && status != IBV_WC_REM_ACCESS_ERR)
			return false;
		if (status) {
			refused++;
			join(s);
		}
	}
	printf("# %d of %d came while the key was invalid\n", refused, n);
	return refused < n;
}

static void persist(struct side *s)
{
	const uint8_t both = IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT;

	vt_ok(!flush(s, s->peer.flushable, 1, 10000, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE), "FLUSH of a range to persistence");
	vt_ok(!flush(s, s->peer.flushable, 2 * LEN - 1, 1, both, IBV_FLUSH_RANGE), "FLUSH of the last byte, both types");
	vt_ok(!flush(s, s->peer.flushable, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR), "FLUSH of a whole region to persistence");
	vt_ok(long_ones(s, 20), "20 batches of FLUSH of all, ATOMIC_WRITE, FLUSH of half of it: each executed once, in order");
	vt_ok(of_what_changes(s, 100), "FLUSH of a whole region that is reregistered meanwhile");
}

static void initiate(struct side *s)
{
	uint64_t caps = s->d.attr.device_cap_flags_ex;
	struct ibv_qp *uc;
	int i;

	vt_ok(caps & CAP_FLUSH_GLOBAL && caps & CAP_ATOMIC_WRITE, "the device announces both operations");
	vt_ok(!s->peer.persistent || caps & CAP_FLUSH_PERSISTENT, "the device announces FLUSH to persistence if it has such memory");
	vt_ok(!ibv_reg_mr(s->d.pd, s->buf, LEN, COMMON | IBV_ACCESS_FLUSH_PERSISTENT),
	      "ordinary memory is not registered as persistent");
	uc = create(s, IBV_QPT_UC, IBV_QP_EX_WITH_FLUSH);
	vt_ok(!uc && errno == EOPNOTSUPP, "a UC QP with FLUSH is EOPNOTSUPP");
	vt_ok(log_records(s, 40), "40 batches of WRITE, FLUSH, ATOMIC_WRITE, read back");
	vt_ok(!flush(s, s->peer.flushable, 100, 5000, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), "FLUSH of a range");
	vt_ok(!flush(s, s->peer.flushable, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR), "FLUSH of a whole region");
	for (i = 0; i < 100 && !atomic_write(s, 64, ~(uint64_t)i); i++)
		;
	vt_ok(i == 100 && *(const uint64_t *)(read_back(s, 128) + 64) == ~(uint64_t)99, "100 ATOMIC_WRITEs, the last value stays");

	vt_ok(flush(s, s->peer.plain, 0, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_REM_ACCESS_ERR,
	      "FLUSH of a region without FLUSH access is a remote access error");
	join(s);
	vt_ok(flush(s, s->peer.flushable, 2 * LEN - 8, 9, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_REM_ACCESS_ERR,
	      "FLUSH past the end is a remote access error");
	join_with(s, 0);
	vt_ok(flush(s, s->peer.flushable, 0, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_REM_ACCESS_ERR,
	      "FLUSH by a QP without FLUSH access is a remote access error");
	join(s);
	if (s->peer.persistent)
		persist(s);
	vt_ok(flush(s, s->peer.persistent ? s->peer.plain : s->peer.flushable, 0, 8, IBV_FLUSH_PERSISTENT,
		    IBV_FLUSH_RANGE) == IBV_WC_REM_ACCESS_ERR,
	      "FLUSH to persistence without access to it is a remote access error");
	join(s);
	vt_ok(atomic_write(s, 4, 1) == IBV_WC_REM_INV_REQ_ERR, "ATOMIC_WRITE not aligned is an invalid request");
}

int main(int argc, char **argv)
{
	const char *name = NULL, *host = NULL, *file = NULL;
	struct side s = { 0 };
	pthread_t changes;
	bool v6 = false;
	uint8_t end = 0;
	int o;

	alarm(300);
	while ((o = getopt(argc, argv, "d:c:6P:")) != -1) {
		if (o == 'd')
			name = optarg;
		else if (o == 'c')
			host = optarg;
		else if (o == 'P')
			file = optarg;
		else if (o == '6')
			v6 = true;
		else
			return 2;
	}
	open_side(&s, name, v6, file);
	s.fd = host ? vt_connect(host, PORT) : vt_listen_accept(PORT);
	if (!host) {
		if (file && pthread_create(&changes, NULL, change_memory, &s))
			vt_die("pthread_create");
		while (join(&s))
			;
		over = true;
		if (file)
			pthread_join(changes, NULL);
		return 0;
	}
	join(&s);
	initiate(&s);
	vt_send(s.fd, &end, 1);
	return vt_done();
}
