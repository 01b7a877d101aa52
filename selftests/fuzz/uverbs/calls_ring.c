// SPDX-License-Identifier: GPL-2.0
/* Call types: the mapped rings. Requests are posted and completions polled without system calls, then doorbells rung. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A ring's control block and slots in its mapping, which a QP's two rings may share. */
struct view {
	struct roan_ring_ctl *ctl;
	uint8_t *slots;
	const struct roan_ring_desc *desc;
};

static bool view(const struct object *o, int which, struct view *v)
{
	uint8_t *base = (uint8_t *)o->ring[which].ctl;

	v->desc = &o->ring[which].desc;
	if (!base && which && v->desc->mmap_size && v->desc->mmap_offset == o->ring[0].desc.mmap_offset)
		base = (uint8_t *)o->ring[0].ctl;
	if (!base || !v->desc->slot_count)
		return false;
	v->slots = base + v->desc->slots_offset;
	v->ctl = (void *)(v->slots - sizeof(struct roan_ring_ctl));
	return true;
}

static void *slot(const struct view *v, uint32_t index)
{
	return v->slots + (index & (v->desc->slot_count - 1)) * v->desc->slot_size;
}

static void publish(const struct view *v, uint32_t index)
{
	__atomic_store_n(&v->ctl->user.index, index, __ATOMIC_SEQ_CST);
	++*calls_done;
}

/* Scatter entries in regions of the context; their number. */
static uint32_t fill_sges(struct run *r, int c, struct roan_sge *sge, uint32_t max, const uint8_t *a)
{
	uint32_t n = a[10] % 4, i;

	for (i = 0; i < n && i < max; i++) {
		struct object *mr = pick(r, c, MR, a[4] + i);

		if (!mr)
			return i;
		sge[i].addr = mr->addr + (a[7] < 240 ? value(a[7] % 24) : value(a[7]));
		sge[i].length = length(a[6] + i) / (a[6] & 1 ? 1 : 16);
		sge[i].lkey = a[4] < 250 ? mr->lkey : mr->lkey + a[4] - 252;
	}
	return i;
}

/* Mostly the entries that are there. */
static uint32_t sge_count(uint32_t filled, const uint8_t *a)
{
	return a[10] < 230 ? filled : a[10] < 250 ? a[10] - 226 : a[10];
}

static void fill_send(struct run *r, int c, const struct object *qp, struct roan_send_wqe *w, uint32_t room, const uint8_t *a)
{
	static const uint8_t opcodes[] = { 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 14, 15 };
	int d = qp->peer_ctx;
	bool window = a[5] & 0x40;
	struct object *target = pick(r, d, window ? MW : MR, a[5]), *local = pick(r, c, MR, a[4]), *mw = pick(r, c, MW, a[5]), *ah;
	uint64_t remote = target && !window ? target->addr : local ? local->addr : address(a[5]);
	struct roan_sge *sge = (void *)(w + 1);
	struct object *peer = &r->ctx[d].obj[QP][qp->peer];

	memset(w, 0, sizeof(*w));
	w->wr_id = ++r->wr_id;
	w->opcode = a[2] < 250 ? opcodes[a[2] % ARRAY_SIZE(opcodes)] : a[2];
	w->flags = a[3] < 250 ? (a[3] & 0xf) & ~(a[3] & 0x30 ? ROAN_SEND_INLINE : 0) : a[3];
	w->imm = a[9];
	if (a[7] >= 200)
		remote += value(a[7] * 5);
	switch (w->opcode) {
	case ROAN_WR_ATOMIC_CMP_AND_SWP:
	case ROAN_WR_ATOMIC_FETCH_AND_ADD:
		w->atomic.remote_addr = a[7] < 240 ? remote & ~7ull : remote;
		w->atomic.rkey = target ? target->rkey : a[5];
		w->atomic.compare_add = value(a[8]);
		break;
	case ROAN_WR_FLUSH:
		w->flush.remote_addr = remote;
		w->flush.rkey = target ? target->rkey : a[5];
		w->flush.length = length(a[6]);
		w->flush.type = 1 + a[9] % 3;
		w->flush.level = a[9] / 4 % 2;
		return;
	case ROAN_WR_BIND_MW:
		w->bind.addr = remote;
		w->bind.length = length(a[6]);
		w->bind.mr_lkey = local ? local->lkey : a[4];
		w->bind.mw_rkey = mw ? mw->rkey : a[5];
		w->bind.new_rkey = w->bind.mw_rkey + 1;
		w->bind.access = a[9] & 0x2f;
		if (mw)
			mw->rkey = (mw->rkey & ~0xffu) | (w->bind.new_rkey & 0xff);
		return;
	case ROAN_WR_LOCAL_INV:
		w->inv_key = a[9] & 1 && mw ? mw->rkey : local ? local->rkey : a[9];
		return;
	case ROAN_WR_SEND_WITH_INV:
		w->inv_key = target ? target->rkey : a[9];
		break;
	default:
		w->rdma.remote_addr = remote;
		w->rdma.rkey = target ? target->rkey : a[5];
	}
	if (qp->type == IB_UVERBS_QPT_UD) {
		ah = pick(r, c, AH, a[9]);
		w->ud.ah_num = ah ? ah->num : a[9];
		w->ud.remote_qpn = peer->num && a[5] < 230 ? peer->num : a[5] % 2 ? 0xffffff : a[5];
		w->ud.remote_qkey = a[8] < 230 ? 0x11111111 : value(a[8]);
	}
	if (w->flags & ROAN_SEND_INLINE)
		w->inline_len = a[6] < 200 ? a[6] % (room + 1) : value(a[6]);
	else
		w->num_sge = sge_count(fill_sges(r, c, sge, room / sizeof(*sge), a), a);
}

/* a[1]: QP, a[2]: opcode, a[3]: flags, a[4..7]: local and remote memory, a[8]: how many, a[11]: doorbell. */
static void post_send(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct object *qp = pick(r, c, QP, a[1]);
	struct view v;
	uint32_t tail, n = 1 + (a[8] & 0x40 ? a[8] % 24 : 0), i;
	struct roan_send_wqe *w;

	if (!qp || !view(qp, 0, &v))
		return;
	tail = v.ctl->user.index;
	for (i = 0; i < n; i++) {
		w = slot(&v, tail + i);
		fill_send(r, c, qp, w, v.desc->slot_size - sizeof(*w), a);
		if (wrong(a))
			((uint8_t *)w)[a[13] % v.desc->slot_size] = a[14];
	}
	publish(&v, tail + n);
	if (a[11] < 200)
		ring_doorbell(r, c, &qp->handle, 1);
}

static void fill_recv(struct run *r, int c, const struct view *v, uint32_t n, const uint8_t *a)
{
	uint32_t tail = v->ctl->user.index, i;
	struct roan_recv_wqe *w;

	for (i = 0; i < n; i++) {
		w = slot(v, tail + i);
		*w = (struct roan_recv_wqe) { .wr_id = ++r->wr_id };
		w->num_sge = sge_count(fill_sges(r, c, (void *)(w + 1), (v->desc->slot_size - sizeof(*w)) / 16, a), a);
		if (wrong(a))
			((uint8_t *)w)[a[13] % v->desc->slot_size] = a[14];
	}
	publish(v, tail + n);
}

static void post_recv(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	struct object *o = pick(r, c, a[2] & 1 ? SRQ : QP, a[1]);
	struct view v;

	if (o && view(o, !(a[2] & 1), &v))
		fill_recv(r, c, &v, 1 + a[8] % 12, a);
}

/* Takes completions; a[2] decides whether the CQ is armed too, and whether its head moves. */
static void poll_cq(struct run *r, const uint8_t *a)
{
	struct object *cq = pick(r, ctx_of(a), CQ, a[1]);
	struct view v;
	uint32_t head, tail;

	if (!cq || !view(cq, 0, &v))
		return;
	head = v.ctl->user.index;
	tail = __atomic_load_n(&v.ctl->kernel.index, __ATOMIC_ACQUIRE);
	if (a[2] & 1)
		++v.ctl->user.arm_next;
	if (a[2] & 2)
		++v.ctl->user.arm_solicited;
	if (a[2] & 4)
		publish(&v, head == tail ? head : head + 1);
	else
		publish(&v, tail);
}

static void doorbell(struct run *r, const uint8_t *a)
{
	uint32_t handles[ROAN_MAX_DOORBELL_QPS], n = a[1] < 240 ? a[1] % 8 : a[1] - 239, i;
	int c = ctx_of(a);

	if (context(r, c) < 0)
		return;
	for (i = 0; i < n && i < ROAN_MAX_DOORBELL_QPS; i++)
		handles[i] = handle(r, c, QP, a[2] + i);
	ring_doorbell(r, c, handles, i);
}

static void hint(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a);
	const struct ring *ring = &r->ctx[c].hints;
	struct object o = { .ring[0] = *ring };
	uint32_t n = 1 + a[3] % 8, i, tail;
	struct object *qp;
	struct view v;

	if (!view(&o, 0, &v))
		return;
	tail = v.ctl->user.index;
	for (i = 0; i < n; i++) {
		qp = pick(r, c, QP, a[2] + i);
		*(struct roan_db_hint *)slot(&v, tail + i) = (struct roan_db_hint) { .qpn = qp && a[2] < 240 ? qp->num : value(a[2]) };
	}
	publish(&v, tail + n);
	if (a[4] & 1)
		ring_doorbell(r, c, NULL, 0);
}

/* Stores into any word of any ring. */
static void scribble(struct run *r, const uint8_t *a)
{
	static const enum kind kinds[] = { CQ, QP, SRQ };
	int c = ctx_of(a);
	struct object *o = pick(r, c, kinds[a[1] % 3], a[2]);
	const struct ring *ring = o ? &o->ring[0] : &r->ctx[c].hints;
	uint32_t words = ring->desc.mmap_size / 4, i, n = 1 + a[6] % 16;

	if (!ring->ctl)
		return;
	for (i = 0; i < n; i++)
		((uint32_t *)ring->ctl)[a[3] < 128 ? (a[3] + i) % 64 : ((a[3] | a[4] << 8) + i) % words] = value(a[5] + i);
	++*calls_done;
}

/* Moves a user index by a jump. */
static void jump(struct run *r, const uint8_t *a)
{
	static const enum kind kinds[] = { CQ, QP, SRQ };
	struct object *o = pick(r, ctx_of(a), kinds[a[1] % 3], a[2]);
	struct view v;

	if (o && view(o, a[1] % 3 == 1 && a[3] & 1, &v))
		publish(&v, v.ctl->user.index + value(a[4]));
}

static void map_again(struct run *r, const uint8_t *a)
{
	static const enum kind kinds[] = { CQ, QP, SRQ };
	int c = ctx_of(a), d = a[3] < 220 ? c : !c;
	struct object *o = pick(r, c, kinds[a[1] % 3], a[2]);
	struct roan_ring_desc desc = o ? o->ring[0].desc : r->ctx[c].hints.desc;
	int prot = a[6] < 200 ? PROT_READ | PROT_WRITE : a[6] % 8, flags = a[7] < 220 ? MAP_SHARED : MAP_PRIVATE;
	void *at;

	if (context(r, d) < 0)
		return;
	if (wrong(a)) {
		desc.mmap_size += value(a[4]) * 4096;
		desc.mmap_offset += value(a[5]) * 4096;
	}
	++*calls_done;
	at = mmap(NULL, desc.mmap_size, prot, flags, r->ctx[d].fd, desc.mmap_offset);
	if (at == MAP_FAILED)
		return;
	if (a[8] & 1 && prot & PROT_WRITE)
		*(volatile uint32_t *)at = value(a[8]);
	if (a[8] & 2)
		mprotect(at, desc.mmap_size, PROT_READ);
	if (a[8] & 4)
		madvise(at, desc.mmap_size, MADV_DONTNEED);
	munmap(at, desc.mmap_size);
}

static void pause_us(struct run *r, const uint8_t *a)
{
	(void)r;
	usleep(a[1] < 230 ? 20 * a[1] : 20000);
}

const struct call_type ring_calls[] = {
	{ "post_send", 160, post_send }, { "post_recv", 80, post_recv }, { "poll_cq", 60, poll_cq }, { "doorbell", 25, doorbell },
	{ "hint", 15, hint }, { "scribble", 12, scribble }, { "jump", 8, jump }, { "map_again", 6, map_again }, { "pause", 12, pause_us },
	{ 0 }
};
