// SPDX-License-Identifier: GPL-2.0
/*
 * Every operation between two hosts, with source and target in memory of any kind. All bytes are compared on both
 * sides, including those that must not change.
 *   memory -d DEV -m KIND			the target; waits for the source
 *   memory -d DEV -m KIND -c HOST		the source; prints KTAP
 *   memory -d DEV -m KIND -c HOST -b MS		no tests: each for MS ms, prints "WRITE n READ n", MiB/s
 * Exits with 4 if a side does not have this kind of memory.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../verbs/verbs_test.h"
#include "mem.h"

#define LEN	(300 * 1024 + 40)
#define PORT	18533
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define WAIT_MS	15000

struct side {
	struct vt_dev dev;
	struct mem mem;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int peer;		/* the side channel */
	uint64_t addr;		/* address of the target's region, as the source uses it */
	uint32_t rkey;
	bool lossy;		/* the link loses packets */
	bool endless;		/* the target's region is the whole address space, mapped in part */
};

enum what { FILL, CHECK, RECV, RECEIVED, WORD, PEEK, END };

/* A command from source to target. The reply is one word: the value for WORD and PEEK, otherwise 0 for success. */
struct order {
	uint64_t seed;		/* FILL, CHECK: seed outside the piece; WORD: the value */
	uint64_t inner;		/* CHECK: seed of the piece */
	uint64_t off;
	uint64_t len;
	uint32_t what;
	uint32_t pad;
};

struct hello {
	struct vt_addr qp;
	uint64_t addr;
	uint32_t rkey;
	int32_t err;
	uint64_t endless;
};

static uint8_t scratch[LEN];

static void fill(struct mem *m, uint64_t seed)
{
	vt_fill(scratch, LEN, seed, 0);
	mem_write(m, 0, scratch, LEN);
}

/* True if [@off, @off + @len) has the bytes of @inner from its start, and the rest those of @seed. */
static bool intact(struct mem *m, uint64_t seed, uint64_t inner, size_t off, size_t len)
{
	mem_read(m, 0, scratch, LEN);
	return vt_diff(scratch, off, seed, 0) == off && vt_diff(scratch + off, len, inner, 0) == len &&
	       vt_diff(scratch + off + len, LEN - off - len, seed, off + len) == LEN - off - len;
}

static void post_recv(struct side *s, uint64_t off, uint64_t len)
{
	struct ibv_sge sge = { .addr = s->mem.addr + off, .length = len, .lkey = s->mem.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(s->qp, &wr, &bad))
		vt_die("post_recv");
}

static enum ibv_wc_status wait_one(struct side *s)
{
	struct ibv_wc wc;

	if (!vt_poll(s->cq, &wc, WAIT_MS))
		vt_die("no completion within %d s", WAIT_MS / 1000);
	return wc.status;
}

/* ---- the target ---- */

static uint64_t obey(struct side *s, const struct order *o)
{
	uint64_t word = o->seed;

	switch (o->what) {
	case FILL:
		fill(&s->mem, o->seed);
		return 0;
	case CHECK:
		return !intact(&s->mem, o->seed, o->inner, o->off, o->len);
	case RECV:
		post_recv(s, o->off, o->len);
		return 0;
	case RECEIVED:
		return wait_one(s);
	case WORD:
		mem_write(&s->mem, o->off, &word, sizeof(word));
		return 0;
	case PEEK:
		mem_read(&s->mem, o->off, &word, sizeof(word));
		return word;
	}
	return 0;
}

static void serve(struct side *s)
{
	struct order o;
	uint64_t answer;

	do {
		vt_recv(s->peer, &o, sizeof(o));
		answer = obey(s, &o);
		vt_send(s->peer, &answer, sizeof(answer));
	} while (o.what != END);
}

/* ---- the source ---- */

static uint64_t order(struct side *s, enum what what, uint64_t seed, uint64_t off, uint64_t len, uint64_t inner)
{
	struct order o = { .what = what, .seed = seed, .off = off, .len = len, .inner = inner };
	uint64_t answer;

	vt_send(s->peer, &o, sizeof(o));
	vt_recv(s->peer, &answer, sizeof(answer));
	return answer;
}

static enum ibv_wc_status do_one(struct side *s, struct ibv_send_wr *wr, uint64_t off, uint64_t len)
{
	struct ibv_sge sge = { .addr = s->mem.addr + off, .length = len, .lkey = s->mem.mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(s->qp, wr, &bad))
		vt_die("post_send");
	return wait_one(s);
}

static const struct span { uint64_t here, there, len; } spans[] = {
	{ 0, 0, 1 }, { 3, 5, 61 }, { 4090, 1, 4096 }, { 8, 65530, 70001 }, { 0, 0, LEN }, { LEN - 3, LEN - 3, 3 },
};

static void write_or_send(struct side *s, bool send)
{
	struct ibv_send_wr wr = { .opcode = send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE };
	size_t i;

	for (i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		const struct span *sp = &spans[i];
		uint64_t old = vt_mix(i + 100), new = vt_mix(i + 200 + send);
		bool ok;

		vt_fill(scratch, sp->len, new, 0);
		mem_write(&s->mem, sp->here, scratch, sp->len);
		order(s, FILL, old, 0, 0, 0);
		if (send)
			order(s, RECV, 0, sp->there, sp->len, 0);
		wr.wr.rdma.remote_addr = s->addr + sp->there;
		wr.wr.rdma.rkey = s->rkey;
		ok = do_one(s, &wr, sp->here, sp->len) == IBV_WC_SUCCESS;
		if (ok && send)
			ok = order(s, RECEIVED, 0, 0, 0, 0) == IBV_WC_SUCCESS;
		vt_ok(ok && !order(s, CHECK, old, sp->there, sp->len, new), "%s of %llu bytes from +%llu to +%llu",
		      send ? "SEND" : "WRITE", (unsigned long long)sp->len, (unsigned long long)sp->here,
		      (unsigned long long)sp->there);
	}
}

static void read_all(struct side *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
	size_t i;

	for (i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		const struct span *sp = &spans[i];
		uint64_t old = vt_mix(i + 300), new = vt_mix(i + 400);
		bool ok;

		/* The target's pattern starts at its first byte: the piece that was read continues it. */
		order(s, FILL, new, 0, 0, 0);
		fill(&s->mem, old);
		wr.wr.rdma.remote_addr = s->addr + sp->there;
		wr.wr.rdma.rkey = s->rkey;
		ok = do_one(s, &wr, sp->here, sp->len) == IBV_WC_SUCCESS;
		mem_read(&s->mem, 0, scratch, LEN);
		vt_ok(ok && vt_diff(scratch, sp->here, old, 0) == sp->here &&
		      vt_diff(scratch + sp->here, sp->len, new, sp->there) == sp->len &&
		      vt_diff(scratch + sp->here + sp->len, LEN - sp->here - sp->len, old, sp->here + sp->len) ==
		      LEN - sp->here - sp->len,
		      "READ of %llu bytes from +%llu to +%llu", (unsigned long long)sp->len,
		      (unsigned long long)sp->there, (unsigned long long)sp->here);
	}
}

static bool atomic(struct side *s, enum ibv_wr_opcode op, uint64_t compare_add, uint64_t swap, uint64_t before,
		   uint64_t after)
{
	struct ibv_send_wr wr = { .opcode = op };
	uint64_t word = 0;

	wr.wr.atomic.remote_addr = s->addr + 8192;
	wr.wr.atomic.rkey = s->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	if (do_one(s, &wr, 4096, sizeof(word)) != IBV_WC_SUCCESS)
		return false;
	mem_read(&s->mem, 4096, &word, sizeof(word));
	return word == before && order(s, PEEK, 0, 8192, 0, 0) == after;
}

static void atomics(struct side *s)
{
	order(s, WORD, 40, 8192, 0, 0);
	vt_ok(atomic(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 40, 42), "fetch and add");
	vt_ok(atomic(s, IBV_WR_ATOMIC_CMP_AND_SWP, 41, 7, 42, 42), "compare and swap, not equal");
	vt_ok(atomic(s, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7, 42, 7), "compare and swap, equal");
}

static void beyond(struct side *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	uint64_t old = vt_mix(500);
	enum ibv_wc_status status;

	order(s, FILL, old, 0, 0, 0);
	fill(&s->mem, vt_mix(501));
	wr.wr.rdma.remote_addr = s->endless ? 4096 : s->addr + LEN - 9000;
	wr.wr.rdma.rkey = s->rkey;
	status = do_one(s, &wr, 0, 9001);
	/* On a lossy link the NAK may be lost, and a responder in ERR does not repeat it. */
	vt_ok((status == IBV_WC_REM_ACCESS_ERR || (s->lossy && status == IBV_WC_RETRY_EXC_ERR)) &&
	      !order(s, CHECK, old, 0, 0, 0),
	      s->endless ? "WRITE to an unmapped address is refused" : "WRITE one byte past the end is refused, and nothing is written");
}

/* ---- bandwidth ---- */

#define DEPTH	8

/* Transfers the whole region repeatedly, with DEPTH requests outstanding. */
static double mib_per_s(struct side *s, enum ibv_wr_opcode op, uint64_t ms)
{
	struct ibv_sge sge = { .addr = s->mem.addr, .length = LEN, .lkey = s->mem.mr->lkey };
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t start = vt_now_ms(), now = start, posted = 0, done = 0;

	wr.wr.rdma.remote_addr = s->addr;
	wr.wr.rdma.rkey = s->rkey;
	do {
		for (; now - start < ms && posted - done < DEPTH; posted++)
			if (ibv_post_send(s->qp, &wr, &bad))
				vt_die("post_send");
		if (wait_one(s) != IBV_WC_SUCCESS)
			vt_die("a request failed");
		done++;
		now = vt_now_ms();
	} while (now - start < ms || done < posted);
	return (double)done * LEN / (1 << 20) * 1000 / (now - start);
}

static void measure(struct side *s, uint64_t ms)
{
	double write;

	mib_per_s(s, IBV_WR_RDMA_WRITE, 50);	/* makes all pages present */
	write = mib_per_s(s, IBV_WR_RDMA_WRITE, ms);
	printf("WRITE %.1f READ %.1f\n", write, mib_per_s(s, IBV_WR_RDMA_READ, ms));
}

/* ---- both sides ---- */

static void set_up(struct side *s, const char *dev, const char *kind, const char *host)
{
	struct vt_conn conn = { .type = IBV_QPT_RC, .access = ACCESS, .psn = 0xfffff0, .timeout = 16, .retry = 7,
				.rnr_retry = 7, .min_rnr_timer = 6 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct hello mine = { 0 }, theirs;

	vt_open(&s->dev, dev, false, -1, 0);
	mine.err = mem_get(&s->mem, s->dev.pd, kind, LEN, ACCESS);
	if (mine.err && mine.err != ENODEV)
		vt_die("%s memory: %s", kind, strerror(mine.err));
	if (!mine.err) {
		s->cq = ibv_create_cq(s->dev.ctx, 16, NULL, NULL, 0);
		init.send_cq = init.recv_cq = s->cq;
		s->qp = s->cq ? ibv_create_qp(s->dev.pd, &init) : NULL;
		if (!s->qp || vt_qp_init(s->qp, &conn))
			vt_die("queues");
		mine.qp = (struct vt_addr) { .gid = s->dev.gid, .qpn = s->qp->qp_num, .psn = conn.psn, .mtu = s->dev.mtu };
		mine.addr = s->mem.addr;
		mine.rkey = s->mem.mr->rkey;
		mine.endless = mem_endless(&s->mem);
	}
	s->peer = host ? vt_connect(host, PORT) : vt_listen_accept(PORT);
	vt_send(s->peer, &mine, sizeof(mine));
	vt_recv(s->peer, &theirs, sizeof(theirs));
	if (mine.err || theirs.err)
		vt_skip("this kind of memory does not exist here");
	s->addr = theirs.addr;
	s->rkey = theirs.rkey;
	s->endless = theirs.endless;
	if (vt_qp_connect(&s->dev, s->qp, &conn, &theirs.qp))
		vt_die("connecting");
	vt_send(s->peer, &mine, sizeof(mine));	/* both are ready to send */
	vt_recv(s->peer, &theirs, sizeof(theirs));
}

int main(int argc, char **argv)
{
	const char *dev = NULL, *kind = "user", *host = NULL;
	static struct side s;
	uint64_t ms = 0;
	int o;

	while ((o = getopt(argc, argv, "d:m:c:b:L")) != -1) {
		switch (o) {
		case 'd': dev = optarg; break;
		case 'm': kind = optarg; break;
		case 'c': host = optarg; break;
		case 'b': ms = strtoull(optarg, NULL, 0); break;
		case 'L': s.lossy = true; break;
		default: return 2;
		}
	}
	set_up(&s, dev, kind, host);
	if (!host) {
		serve(&s);
	} else if (ms) {
		measure(&s, ms);
		order(&s, END, 0, 0, 0, 0);
	} else {
		write_or_send(&s, false);
		write_or_send(&s, true);
		read_all(&s);
		atomics(&s);
		beyond(&s);
		order(&s, END, 0, 0, 0, 0);
	}
	ibv_destroy_qp(s.qp);
	ibv_destroy_cq(s.cq);
	mem_put(&s.mem);
	vt_close(&s.dev);
	return host && !ms ? vt_done() : 0;
}
