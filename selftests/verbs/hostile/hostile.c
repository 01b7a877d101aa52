// SPDX-License-Identifier: GPL-2.0
/*
 * hostile -d DEV: what a program can do to the rings that it shares with the kernel, and to the system calls around
 * them. Each misuse has one right result: an errno, a completion status with its vendor_err, or an asynchronous event.
 * No byte is written outside an MR, no queue hangs, and afterwards the device works for other programs.
 *
 * Here: WQE slots of send and receive queues. hostile_rings.c: ring indices and concurrent overwriting; hostile_raw.c:
 * driver data, mmap and ioctls.
 */
#define _GNU_SOURCE
#include "hostile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC)

enum place { GOOD, BAD_KEY, STALE_KEY, FOREIGN_PD, NO_RIGHT, PAST_END, BEFORE, WRAPS, UNALIGNED };

static void put_place(const struct region *r, enum place p, uint32_t len, uint64_t *addr, uint32_t *key, bool remote)
{
	uint64_t area = (uintptr_t)r->mem + AREA;

	*addr = area;
	*key = remote ? r->mr->rkey : r->mr->lkey;
	switch (p) {
	case GOOD:
		break;
	case BAD_KEY:
		*key ^= 0x00abcd00;
		break;
	case STALE_KEY:
		*key = r->stale;
		break;
	case FOREIGN_PD:
		*key = remote ? r->foreign->rkey : r->foreign->lkey;
		break;
	case NO_RIGHT:
		*key = remote ? r->local->rkey : r->local->lkey;
		break;
	case PAST_END:
		*addr = area + AREA - len + 8;
		break;
	case BEFORE:
		*addr = area - 8;
		break;
	case WRAPS:
		*addr = -(uint64_t)(len / 2);
		break;
	case UNALIGNED:
		*addr = area + 4;
		break;
	}
}

struct slot_case {
	const char *name;
	uint8_t opcode, flags, num_sge;
	uint32_t inline_len;
	uint32_t len;		/* of each SGE */
	enum place local, remote;
	int status;
	uint32_t verr;		/* 0: not checked */
	enum ibv_qp_type type;	/* 0: RC */
};

#define W	ROAN_WR_RDMA_WRITE
#define RD	ROAN_WR_RDMA_READ
#define S	ROAN_WR_SEND
#define OP_ERR	IBV_WC_LOC_QP_OP_ERR
#define LEN_ERR	IBV_WC_LOC_LEN_ERR
#define PROT	IBV_WC_LOC_PROT_ERR
#define REM	IBV_WC_REM_ACCESS_ERR

#define V_BAD_ACCESS	ROAN_VERR_BAD_ACCESS
#define V_BAD_AH	ROAN_VERR_BAD_AH
#define V_BAD_FLAGS	ROAN_VERR_BAD_FLAGS
#define V_BAD_KEY	ROAN_VERR_BAD_KEY
#define V_BAD_OPCODE	ROAN_VERR_BAD_OPCODE
#define V_BAD_RANGE	ROAN_VERR_BAD_RANGE
#define V_BAD_SGE	ROAN_VERR_BAD_SGE
#define V_PEER_NAK	ROAN_VERR_PEER_NAK
#define V_TOO_LONG	ROAN_VERR_TOO_LONG

static const struct slot_case slot_cases[] = {
	{ "flag 0x10", S, 0x10, .status = OP_ERR, .verr = V_BAD_FLAGS },
	{ "flag 0x80", W, 0x80, .status = OP_ERR, .verr = V_BAD_FLAGS },
	{ "READ inline", RD, ROAN_SEND_INLINE, .inline_len = 8, .status = OP_ERR, .verr = V_BAD_FLAGS },
	{ "inline data and SGEs", S, ROAN_SEND_INLINE, 1, 8, 8, .status = OP_ERR, .verr = V_BAD_FLAGS },
	{ "inline longer than the slot", S, ROAN_SEND_INLINE, .inline_len = 4096, .status = LEN_ERR,
	  .verr = V_TOO_LONG },
	{ "inline of 4 GiB - 1", W, ROAN_SEND_INLINE, .inline_len = ~0u, .status = LEN_ERR, .verr = V_TOO_LONG },
	{ "one SGE too many", S, 0, MAX_SGE + 1, 0, 8, .status = OP_ERR, .verr = V_BAD_SGE },
	{ "255 SGEs", W, 0, 255, 0, 8, .status = OP_ERR, .verr = V_BAD_SGE },
	{ "lengths that add up over 32 bits", S, 0, 4, 0, 0x40000001, .status = LEN_ERR, .verr = V_TOO_LONG },
	{ "a message of 4 GiB - 1", W, 0, 1, 0, ~0u, .status = LEN_ERR, .verr = V_TOO_LONG },
	{ "SEND: unknown L_Key", S, 0, 1, 0, 64, BAD_KEY, .status = PROT, .verr = V_BAD_KEY },
	{ "SEND: L_Key of a deregistered region", S, 0, 1, 0, 64, STALE_KEY, .status = PROT, .verr = V_BAD_KEY },
	{ "SEND: L_Key of another PD", S, 0, 1, 0, 64, FOREIGN_PD, .status = PROT, .verr = V_BAD_KEY },
	{ "SEND: past the end", S, 0, 1, 0, 64, PAST_END, .status = PROT, .verr = V_BAD_RANGE },
	{ "SEND: before the start", S, 0, 1, 0, 64, BEFORE, .status = PROT, .verr = V_BAD_RANGE },
	{ "SEND: address wraps", S, 0, 1, 0, 64, WRAPS, .status = PROT, .verr = V_BAD_RANGE },
	{ "WRITE: second entry past the end", W, 0, 2, 0, AREA, PAST_END, .status = PROT },
	{ "READ into a region without local write", RD, 0, 1, 0, 64, NO_RIGHT, .status = PROT,
	  .verr = V_BAD_ACCESS },
	{ "READ into the end of a region", RD, 0, 1, 0, 64, PAST_END, .status = PROT, .verr = V_BAD_RANGE },
	{ "atomic into another PD", ROAN_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, 8, FOREIGN_PD, .status = PROT },
	{ "atomic of 7 bytes", ROAN_WR_ATOMIC_CMP_AND_SWP, 0, 1, 0, 7, .status = LEN_ERR, .verr = V_TOO_LONG },
	{ "atomic without an SGE for the result", ROAN_WR_ATOMIC_CMP_AND_SWP, .status = LEN_ERR, .verr = V_TOO_LONG },
	{ "ATOMIC_WRITE of 4 bytes", ROAN_WR_ATOMIC_WRITE, 0, 1, 0, 4, .status = LEN_ERR, .verr = V_TOO_LONG },
	{ "WRITE: unknown R_Key", W, 0, 1, 0, 64, .remote = BAD_KEY, .status = REM, .verr = V_PEER_NAK },
	{ "WRITE: R_Key of a deregistered region", W, 0, 1, 0, 64, .remote = STALE_KEY, .status = REM,
	  .verr = V_PEER_NAK },
	{ "WRITE: R_Key of another PD", W, 0, 1, 0, 64, .remote = FOREIGN_PD, .status = REM, .verr = V_PEER_NAK },
	{ "WRITE: no remote write right", W, 0, 1, 0, 64, .remote = NO_RIGHT, .status = REM, .verr = V_PEER_NAK },
	{ "WRITE: past the end", W, 0, 1, 0, 64, .remote = PAST_END, .status = REM, .verr = V_PEER_NAK },
	{ "WRITE: before the start", W, 0, 1, 0, 64, .remote = BEFORE, .status = REM, .verr = V_PEER_NAK },
	{ "WRITE: remote address wraps", W, 0, 1, 0, 64, .remote = WRAPS, .status = REM, .verr = V_PEER_NAK },
	{ "READ: unknown R_Key", RD, 0, 1, 0, 64, .remote = BAD_KEY, .status = REM, .verr = V_PEER_NAK },
	{ "READ: no remote read right", RD, 0, 1, 0, 64, .remote = NO_RIGHT, .status = REM, .verr = V_PEER_NAK },
	{ "READ: past the end", RD, 0, 1, 0, 64, .remote = PAST_END, .status = REM, .verr = V_PEER_NAK },
	{ "READ: remote address wraps", RD, 0, 1, 0, 64, .remote = WRAPS, .status = REM, .verr = V_PEER_NAK },
	{ "atomic: past the end", ROAN_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, 8, .remote = PAST_END, .status = REM,
	  .verr = V_PEER_NAK },
	{ "atomic: unaligned", ROAN_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, 8, .remote = UNALIGNED,
	  .status = IBV_WC_REM_INV_REQ_ERR, .verr = V_PEER_NAK },
	{ "ATOMIC_WRITE: unaligned", ROAN_WR_ATOMIC_WRITE, 0, 1, 0, 8, .remote = UNALIGNED,
	  .status = IBV_WC_REM_INV_REQ_ERR, .verr = V_PEER_NAK },
	{ "FLUSH without a type", ROAN_WR_FLUSH, .remote = GOOD, .status = REM, .verr = V_PEER_NAK },
	{ "LOCAL_INV of an unknown key", ROAN_WR_LOCAL_INV, .remote = BAD_KEY, .status = OP_ERR, .verr = V_BAD_KEY },
	{ "LOCAL_INV of a window of another PD", ROAN_WR_LOCAL_INV, .remote = FOREIGN_PD, .status = OP_ERR,
	  .verr = V_BAD_KEY },
	{ "bind of an unknown window", ROAN_WR_BIND_MW, .remote = BAD_KEY, .status = IBV_WC_MW_BIND_ERR,
	  .verr = V_BAD_KEY },
	{ "bind of a window of another PD", ROAN_WR_BIND_MW, .remote = FOREIGN_PD, .status = IBV_WC_MW_BIND_ERR,
	  .verr = V_BAD_KEY },
	{ "bind to a region of another PD", ROAN_WR_BIND_MW, .local = FOREIGN_PD, .status = IBV_WC_MW_BIND_ERR,
	  .verr = V_BAD_KEY },
	{ "REG_MR from user space", ROAN_WR_REG_MR, .status = OP_ERR, .verr = V_BAD_OPCODE },
	{ "UC: unknown L_Key", W, 0, 1, 0, 64, BAD_KEY, .status = PROT, .verr = V_BAD_KEY, .type = IBV_QPT_UC },
	{ "UC: 255 SGEs", S, 0, 255, 0, 8, .status = OP_ERR, .verr = V_BAD_SGE, .type = IBV_QPT_UC },
	{ "UD: longer than the MTU", S, 0, 2, 0, AREA, .status = LEN_ERR, .verr = V_TOO_LONG, .type = IBV_QPT_UD },
	{ "UD: unknown address handle", S, 0, 1, 0, 8, .status = OP_ERR, .verr = V_BAD_AH, .type = IBV_QPT_UD },
};

static uint32_t window_key(const struct region *r, enum place p)
{
	if (p == BAD_KEY)
		return r->mr->lkey ^ 0x00abcd00;
	return p == FOREIGN_PD ? r->foreign_window->rkey : r->window->rkey;
}

static void fill_slot(struct rig *g, const struct slot_case *c, struct roan_send_wqe *w)
{
	struct roan_sge *sge = (void *)(w + 1);
	int i;

	w->wr_id = 0xbad;
	w->opcode = c->opcode;
	w->flags = c->flags | ROAN_SEND_SIGNALED;
	w->num_sge = c->num_sge;
	w->inline_len = c->inline_len;
	for (i = 0; i < MAX_SGE && i < c->num_sge; i++) {
		sge[i].length = c->len;
		put_place(g->r, c->local, c->len, (uint64_t *)&sge[i].addr, &sge[i].lkey, false);
	}
	switch (c->opcode) {
	case ROAN_WR_ATOMIC_CMP_AND_SWP:
	case ROAN_WR_ATOMIC_FETCH_AND_ADD:
		put_place(g->r, c->remote, c->len, (uint64_t *)&w->atomic.remote_addr, &w->atomic.rkey, true);
		break;
	case ROAN_WR_FLUSH:
		put_place(g->r, c->remote, c->len, (uint64_t *)&w->flush.remote_addr, &w->flush.rkey, true);
		break;
	case ROAN_WR_LOCAL_INV:
		w->inv_key = window_key(g->r, c->remote);
		break;
	case ROAN_WR_BIND_MW:
		w->bind.mr_lkey = c->local == FOREIGN_PD ? g->r->foreign->lkey : g->r->mr->lkey;
		w->bind.mw_rkey = window_key(g->r, c->remote);
		w->bind.new_rkey = w->bind.mw_rkey + 1;
		w->bind.addr = ~0ull - 4;
		w->bind.length = ~0ull;
		break;
	default:
		put_place(g->r, c->remote, c->len, (uint64_t *)&w->rdma.remote_addr, &w->rdma.rkey, true);
		break;
	}
	if (g->type == IBV_QPT_UD) {
		w->ud.ah_num = 0x00fffff0;
		w->ud.remote_qpn = g->peer->qp_num;
		w->ud.remote_qkey = VT_QKEY;
	}
}

/* Each slot has one completion, with the expected vendor_err. */
static bool slot_answer(struct rig *g, const struct slot_case *c)
{
	struct ibv_wc wc;
	int err;

	fill_slot(g, c, ring_slot_at(&g->sq, 0));
	ring_advance(&g->sq, 1);
	err = doorbell(g->qp);
	if (err || !vt_poll(g->cq, &wc, 5000)) {
		printf("# %s: %s\n", c->name, err ? strerror(err) : "no completion");
		return false;
	}
	if (wc.status == (enum ibv_wc_status)c->status && wc.wr_id == 0xbad && (!c->verr || wc.vendor_err == c->verr))
		return true;
	printf("# %s: %s, vendor_err %u, wr_id %#llx\n", c->name, ibv_wc_status_str(wc.status), wc.vendor_err,
	       (unsigned long long)wc.wr_id);
	return false;
}

static void send_slots(struct vt_dev *d, struct region *r)
{
	enum ibv_qp_state failed;
	uint64_t end;
	struct rig g;
	size_t i;
	bool ok;

	for (i = 0; i < sizeof(slot_cases) / sizeof(slot_cases[0]); i++) {
		const struct slot_case *c = &slot_cases[i];

		rig_up(&g, d, r, c->type ?: IBV_QPT_RC, false);
		ok = slot_answer(&g, c);
		failed = g.type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE;
		/* The completion is visible before the QP's state has changed. */
		for (end = vt_now_ms() + 20000; state_of(g.qp) != failed && vt_now_ms() < end;)
			usleep(1000);
		vt_ok(ok && state_of(g.qp) == failed && guards_whole(r), "send slot: %s", c->name);
		rig_down(&g);
	}
}

static bool known(enum ibv_qp_type type, unsigned int op)
{
	switch (op) {
	case ROAN_WR_SEND:
	case ROAN_WR_SEND_WITH_IMM:
		return true;
	case ROAN_WR_RDMA_WRITE:
	case ROAN_WR_RDMA_WRITE_WITH_IMM:
	case ROAN_WR_LOCAL_INV:
	case ROAN_WR_BIND_MW:
		return type != IBV_QPT_UD;
	case ROAN_WR_RDMA_READ:
	case ROAN_WR_ATOMIC_CMP_AND_SWP:
	case ROAN_WR_ATOMIC_FETCH_AND_ADD:
	case ROAN_WR_SEND_WITH_INV:
	case ROAN_WR_FLUSH:
	case ROAN_WR_ATOMIC_WRITE:
		return type == IBV_QPT_RC;
	}
	return false;
}

/* Posts every opcode that the QP type does not support. */
static void opcodes(struct vt_dev *d, struct region *r, enum ibv_qp_type type, const char *name)
{
	unsigned int op, bad = 0, n = 0;
	struct rig g;

	rig_up(&g, d, r, type, false);
	for (op = 0; op < 256; op++) {
		const struct slot_case c = { "opcode", .opcode = op, .status = OP_ERR, .verr = ROAN_VERR_BAD_OPCODE };

		if (known(type, op))
			continue;
		if (!slot_answer(&g, &c)) {
			printf("# opcode %u\n", op);
			bad++;
		}
		n++;
		rig_reconnect(&g);
				/* RESET discards posted work: the ring starts at its current index. */
	}
	rig_down(&g);
	vt_ok(!bad && n > 200, "%s: %u unsupported opcodes are refused", name, n);
}

static const struct recv_case {
	const char *name;
	uint32_t num_sge, len;
	enum place local;
	int recv, send;
} recv_cases[] = {
	{ "2^32 - 1 SGEs", ~0u, 64, GOOD, IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_OP_ERR },
	{ "one SGE too many", MAX_SGE + 1, 64, GOOD, IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_OP_ERR },
	{ "lengths that add up over 32 bits", 4, 0xc0000000, GOOD, IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_OP_ERR },
	{ "unknown L_Key", 1, 64, BAD_KEY, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "L_Key of another PD", 1, 64, FOREIGN_PD, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "region without local write", 1, 64, NO_RIGHT, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "past the end", 1, 64, PAST_END, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "address wraps", 1, 64, WRAPS, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
	{ "too short for the message", 1, 8, GOOD, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR },
	{ "no SGE", 0, 0, GOOD, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR },
};

static void bad_recv(struct rig *g, const struct recv_case *c)
{
	struct roan_recv_wqe *w = ring_slot_at(&g->rq, 0);
	struct roan_sge *sge = (void *)(w + 1);
	int i;

	w->wr_id = 0xbad;
	w->num_sge = c->num_sge;
	for (i = 0; i < MAX_SGE; i++) {
		sge[i].length = c->len;
		put_place(g->r, c->local, c->len, (uint64_t *)&sge[i].addr, &sge[i].lkey, false);
	}
	ring_advance(&g->rq, 1);
}

static void recv_slots(struct vt_dev *d, struct region *r, bool srq)
{
	const size_t n = sizeof(recv_cases) / sizeof(recv_cases[0]);
	const struct recv_case *c;
	struct ibv_wc here, there;
	struct rig g;
	bool ok;

	for (c = recv_cases; c < recv_cases + n; c++) {
		rig_up(&g, d, r, IBV_QPT_RC, srq);
		bad_recv(&g, c);
		here.status = there.status = -1;
		ok = !peer_send(&g, 64) && vt_poll(g.cq, &here, 5000) && vt_poll(g.peer_cq, &there, 5000) &&
		     here.status == (enum ibv_wc_status)c->recv && here.wr_id == 0xbad &&
		     there.status == (enum ibv_wc_status)c->send && guards_whole(r);
		if (!ok)
			printf("# receive: %d; sender: %d\n", here.status, there.status);
		vt_ok(ok, "%s slot: %s", srq ? "SRQ" : "receive", c->name);
		rig_down(&g);
	}
}

/* UC and UD messages may get lost on the link: try again. */
static bool sent_until_heard(struct rig *g, struct ibv_wc *wc)
{
	int i;

	for (i = 0; i < 5; i++)
		if (!peer_send(g, 64) && vt_poll(g->cq, wc, 1000))
			return true;
	return false;
}

/* UC and UD do not NAK: the sender's request succeeds, and the receive completes in error. */
static void unanswered_recv_slots(struct vt_dev *d, struct region *r, enum ibv_qp_type type, const char *name)
{
	const struct recv_case *c;
	struct ibv_wc wc;
	struct rig g;
	bool ok;

	for (c = recv_cases; c->recv == IBV_WC_LOC_QP_OP_ERR; c++) {
		rig_up(&g, d, r, type, false);
		bad_recv(&g, c);
		wc.status = -1;
		ok = sent_until_heard(&g, &wc) && wc.status == IBV_WC_LOC_QP_OP_ERR && wc.wr_id == 0xbad &&
		     state_of(g.qp) == IBV_QPS_ERR;
		if (!ok)
			printf("# receive: %d\n", wc.status);
		vt_ok(ok && guards_whole(r), "%s receive slot: %s", name, c->name);
		rig_down(&g);
	}
}

static void region_up(struct region *r, struct vt_dev *d)
{
	struct ibv_mr *gone;

	r->mem = mmap(NULL, 3 * AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(r->mem, 0xa5, 3 * AREA);
	r->other_pd = ibv_alloc_pd(d->ctx);
	r->mr = ibv_reg_mr(d->pd, r->mem + AREA, AREA, ALL_ACCESS | IBV_ACCESS_MW_BIND);
	r->local = ibv_reg_mr(d->pd, r->mem + AREA, AREA, 0);
	r->foreign = ibv_reg_mr(r->other_pd, r->mem + AREA, AREA, ALL_ACCESS);
	gone = ibv_reg_mr(d->pd, r->mem + AREA, AREA, ALL_ACCESS);
	r->window = ibv_alloc_mw(d->pd, IBV_MW_TYPE_1);
	r->foreign_window = ibv_alloc_mw(r->other_pd, IBV_MW_TYPE_1);
	if (!r->mr || !r->local || !r->foreign || !gone || !r->window || !r->foreign_window)
		vt_die("reg_mr, alloc_mw: %s", strerror(errno));
	r->stale = gone->rkey;
	ibv_dereg_mr(gone);
}

static void region_down(struct region *r)
{
	if (ibv_dealloc_mw(r->window) || ibv_dealloc_mw(r->foreign_window))
		vt_die("a window is still in use");
	if (ibv_dereg_mr(r->mr) || ibv_dereg_mr(r->local) || ibv_dereg_mr(r->foreign) || ibv_dealloc_pd(r->other_pd))
		vt_die("a region or its PD is still in use");
}

int main(int argc, char **argv)
{
	struct region r;
	struct vt_dev d;
	int opt;
	const char *name = NULL;

	while ((opt = getopt(argc, argv, "d:")) != -1)
		if (opt == 'd')
			name = optarg;
	alarm(500);	/* a hang must end as a failure */
	setvbuf(stdout, NULL, _IOLBF, 0);
	vt_open(&d, name, false, -1, 0);
	region_up(&r, &d);
	send_slots(&d, &r);
	opcodes(&d, &r, IBV_QPT_RC, "RC");
	opcodes(&d, &r, IBV_QPT_UC, "UC");
	opcodes(&d, &r, IBV_QPT_UD, "UD");
	recv_slots(&d, &r, false);
	recv_slots(&d, &r, true);
	unanswered_recv_slots(&d, &r, IBV_QPT_UC, "UC");
	unanswered_recv_slots(&d, &r, IBV_QPT_UD, "UD");
	vt_ok(still_works(&d, &r), "after bad slots the device works");
	rings_cases(&d, &r);
	vt_ok(still_works(&d, &r), "after bad rings the device works");
	raw_cases(&d, &r);
	growth_cases(&d);
	undone_creations(&d);
	vt_ok(still_works(&d, &r), "after bad system calls the device works");
	region_down(&r);
	vt_close(&d);
	return vt_done();
}
