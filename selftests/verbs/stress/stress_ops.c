// SPDX-License-Identifier: GPL-2.0
/*
 * An operation of verbs_stress: its shape (from the seed), its work request, its expected result. Independent of sides
 * and CQs.
 */
#include "stress.h"

#include <arpa/inet.h>
#include <byteswap.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const op_name[NR_OPS] = {
	"SEND", "SEND_IMM", "SEND_INV", "WRITE", "WRITE_IMM", "READ", "CAS", "FAA", "ATOMIC_WRITE"
};

static const enum ibv_wr_opcode wr_opcode[NR_OPS] = {
	[OP_SEND] = IBV_WR_SEND, [OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM, [OP_SEND_INV] = IBV_WR_SEND_WITH_INV,
	[OP_WRITE] = IBV_WR_RDMA_WRITE, [OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM, [OP_READ] = IBV_WR_RDMA_READ,
	[OP_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP, [OP_FAA] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[OP_ATOMIC_WRITE] = IBV_WR_ATOMIC_WRITE,
};

static bool is_atomic(enum op op)
{
	return op == OP_CAS || op == OP_FAA;
}

bool op_takes_recv(enum op op)
{
	return op <= OP_SEND_INV || op == OP_WRITE_IMM;
}

static uint32_t pick_len(const struct cfg *c, uint64_t r)
{
	const uint32_t sizes[] = {
		0, 1, 3, 4, 8, 64, 255, 256, c->mtu - 1, c->mtu, c->mtu + 1, 2 * c->mtu, 2 * c->mtu + 5, 7 * c->mtu,
		r % (c->max_len + 1), c->max_len,
	};
	uint32_t len = sizes[(r >> 40) % (sizeof(sizes) / sizeof(*sizes))];

	return len > c->max_len ? (r >> 8) % (c->max_len + 1) : len;
}

static enum op pick_op(uint32_t mask, uint64_t r)
{
	int n = __builtin_popcount(mask), k = r % n, op;

	for (op = 0; op < NR_OPS; op++)
		if (mask & (1u << op) && k-- == 0)
			break;
	return op;
}

static void cut(struct plan *p, uint64_t r)
{
	uint32_t left = p->len;
	int i, n = 1 + r % MAX_SGE;

	/* An atomic's result uses one SGE: the specification does not promise that 8 bytes may be split. */
	if (is_atomic(p->op) || p->op == OP_ATOMIC_WRITE)
		n = 1;
	for (i = 0; i < n - 1; i++) {
		r = vt_mix(r);
		p->cuts[i] = left ? r % (left + 1) : 0;
		left -= p->cuts[i];
	}
	p->cuts[n - 1] = left;
	p->nr_sge = n;
}

struct plan make_plan(const struct cfg *c, int direction, uint32_t batch, uint32_t index)
{
	uint64_t s = vt_mix(c->seed ^ vt_mix(((uint64_t)batch << 32 | index << 1) | direction));
	struct plan p = { .seed = vt_mix(s + 1), .before = vt_mix(s + 2), .imm = index, .operand = vt_mix(s + 3) };
	uint64_t flags = vt_mix(s + 4);

	p.op = pick_op(c->ops, vt_mix(s + 5));
	p.len = pick_len(c, vt_mix(s + 6));
	if (c->never_empty && !p.len)
		p.len = 1;
	if (is_atomic(p.op) || p.op == OP_ATOMIC_WRITE)
		p.len = 8;
	else
		p.at = vt_mix(s + 7) % 8;
	cut(&p, vt_mix(s + 8));
	p.hit = flags & 1;
	p.signaled = flags & 2;
	p.fence = c->type == IBV_QPT_RC && (flags & 0x1c) == 0;
	p.solicited = op_takes_recv(p.op) && flags & 0x20;
	p.use_inline = flags & 0x40;
	p.use_ex = flags & 0x80 || p.op == OP_ATOMIC_WRITE;
	return p;
}

uint64_t plan_old(const struct plan *p)
{
	uint64_t old;

	vt_fill(&old, 8, p->before, GAP + p->at);
	return p->swapped ? bswap_64(old) : old;
}

uint64_t plan_new(const struct plan *p)
{
	if (p->op == OP_FAA)
		return plan_old(p) + p->operand;
	return p->hit ? p->operand : plan_old(p);
}

/* Piece i of a message starts one gap after the end of the previous piece. */
static uint8_t *piece(const struct plan *p, uint8_t *slot, int i)
{
	uint8_t *at = slot + GAP;

	while (i-- > 0)
		at += p->cuts[i] + GAP;
	return at;
}

void plan_fill_local(const struct plan *p, const struct place *at)
{
	uint32_t pos = 0;
	int i;

	if (p->op == OP_READ || is_atomic(p->op)) {
		vt_fill(at->local, p->len + (p->nr_sge + 1) * GAP, ~p->seed, 0);
		return;
	}
	for (i = 0; i < p->nr_sge; i++) {
		vt_fill(piece(p, at->local, i), p->cuts[i], p->seed, pos);
		pos += p->cuts[i];
	}
}

void plan_request(const struct plan *p, const struct place *at, uint64_t wr_id, bool last, struct request *r)
{
	struct ibv_send_wr *wr = &r->wr;
	int i;

	memset(r, 0, sizeof(*r));
	for (i = 0; i < p->nr_sge; i++)
		r->sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)piece(p, at->local, i), .length = p->cuts[i], .lkey = at->lkey,
		};
	wr->wr_id = wr_id;
	wr->opcode = wr_opcode[p->op];
	wr->sg_list = r->sge;
	/* A zero length is expressed by no SGE half of the time, otherwise by an empty SGE. */
	wr->num_sge = p->len || p->hit ? p->nr_sge : 0;
	wr->send_flags = (p->signaled || last ? IBV_SEND_SIGNALED : 0) | (p->fence ? IBV_SEND_FENCE : 0) |
			 (p->solicited ? IBV_SEND_SOLICITED : 0);
	if (p->use_inline && p->len <= at->max_inline && p->op <= OP_WRITE_IMM)
		wr->send_flags |= IBV_SEND_INLINE;
	if (p->op == OP_SEND_INV)
		wr->invalidate_rkey = at->inv_rkey;
	else
		wr->imm_data = htonl(p->imm);
	if (at->ah) {
		wr->wr.ud.ah = at->ah;
		wr->wr.ud.remote_qpn = at->remote_qpn;
		wr->wr.ud.remote_qkey = VT_QKEY;
	} else if (is_atomic(p->op)) {
		wr->wr.atomic.remote_addr = at->remote + GAP + p->at;
		wr->wr.atomic.rkey = at->rkey;
		wr->wr.atomic.compare_add = p->op == OP_FAA ? p->operand : p->hit ? plan_old(p) : ~plan_old(p);
		wr->wr.atomic.swap = p->operand;
	} else {
		wr->wr.rdma.remote_addr = at->remote + GAP + p->at;
		wr->wr.rdma.rkey = at->rkey;
	}
}

/* Posts the same request by ibv_wr_*(). */
int post_ex(struct ibv_qp_ex *qp, const struct plan *p, const struct request *r)
{
	const struct ibv_send_wr *wr = &r->wr;
	struct ibv_data_buf bufs[MAX_SGE];
	int i;

	ibv_wr_start(qp);
	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
	switch (p->op) {
	case OP_SEND:
		ibv_wr_send(qp);
		break;
	case OP_SEND_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		break;
	case OP_SEND_INV:
		ibv_wr_send_inv(qp, wr->invalidate_rkey);
		break;
	case OP_WRITE:
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case OP_WRITE_IMM:
		ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case OP_READ:
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case OP_CAS:
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add,
				      wr->wr.atomic.swap);
		break;
	case OP_FAA:
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add);
		break;
	case OP_ATOMIC_WRITE:
		ibv_wr_atomic_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
				    (void *)(uintptr_t)r->sge[0].addr);
		return ibv_wr_complete(qp);
	case NR_OPS:
		return EINVAL;
	}
	if (wr->wr.ud.ah && qp->qp_base.qp_type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (wr->send_flags & IBV_SEND_INLINE) {
		for (i = 0; i < wr->num_sge; i++)
			bufs[i] = (struct ibv_data_buf) { (void *)(uintptr_t)r->sge[i].addr, r->sge[i].length };
		ibv_wr_set_inline_data_list(qp, wr->num_sge, bufs);
	} else {
		ibv_wr_set_sge_list(qp, wr->num_sge, wr->sg_list);
	}
	return ibv_wr_complete(qp);
}

const char *plan_check_local(const struct plan *p, const struct place *at)
{
	static char why[160];
	uint64_t old = plan_old(p);
	uint8_t *d;
	uint32_t pos = 0;
	size_t bad;
	int i;

	if (p->op != OP_READ && !is_atomic(p->op))
		return NULL;
	for (i = 0; i < p->nr_sge; pos += p->cuts[i++]) {
		d = piece(p, at->local, i);
		bad = vt_diff(d - GAP, GAP, ~p->seed, d - GAP - at->local);
		if (bad < GAP) {
			snprintf(why, sizeof(why), "a byte before piece %d was written", i);
			return why;
		}
		if (is_atomic(p->op)) {
			if (!memcmp(d, &old, 8))
				continue;
			return "the value returned by an atomic is wrong";
		}
		bad = vt_diff(d, p->cuts[i], p->before, GAP + p->at + pos);
		if (bad < p->cuts[i]) {
			snprintf(why, sizeof(why), "byte %zu of %u read is wrong", pos + bad, p->len);
			return why;
		}
	}
	d = piece(p, at->local, p->nr_sge) - GAP;
	return vt_diff(d, GAP, ~p->seed, d - at->local) < GAP ? "a byte behind the data was written" : NULL;
}

/* Each byte has its old or, up to a lost packet, its new value. With losses allowed each byte is judged alone. */
static size_t diff_either(const uint8_t *b, size_t len, const struct plan *p)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (vt_diff(b + i, 1, p->seed, i) != 1 && vt_diff(b + i, 1, p->before, GAP + p->at + i) != 1)
			break;
	return i;
}

const char *plan_check_target(const struct plan *p, const uint8_t *slot, size_t size, bool partial_ok)
{
	bool written = p->op == OP_WRITE || p->op == OP_WRITE_IMM || p->op == OP_ATOMIC_WRITE;
	size_t from = GAP + p->at, len = written || is_atomic(p->op) ? p->len : 0, bad;
	static char why[160];
	uint64_t now = plan_new(p);

	if (vt_diff(slot, from, p->before, 0) < from)
		return "a byte before the target was written";
	bad = vt_diff(slot + from + len, size - from - len, p->before, from + len);
	if (bad < size - from - len) {
		snprintf(why, sizeof(why), "byte %zu behind the target was written", bad);
		return why;
	}
	if (is_atomic(p->op))
		return memcmp(slot + from, &now, 8) ? "an atomic left a wrong value" : NULL;
	bad = partial_ok ? diff_either(slot + from, len, p) : vt_diff(slot + from, len, p->seed, 0);
	if (bad == len)
		return NULL;
	snprintf(why, sizeof(why), "byte %zu of %zu written is wrong", bad, len);
	return why;
}

enum ibv_wc_opcode plan_wc_opcode(const struct plan *p)
{
	switch (p->op) {
	case OP_WRITE:
	case OP_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case OP_READ:
		return IBV_WC_RDMA_READ;
	case OP_CAS:
		return IBV_WC_COMP_SWAP;
	case OP_FAA:
		return IBV_WC_FETCH_ADD;
	case OP_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return IBV_WC_SEND;
	}
}
