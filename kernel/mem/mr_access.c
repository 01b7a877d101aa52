// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes between packets and registered memory, and the checks without which nothing is touched: key, domain, access,
 * range. Callers know what the bytes mean; this room only knows where they may go.
 */
#include <linux/libnvdimm.h>
#include "base/base.h"
#include "mem/mem.h"

#define REMOTE_ACCESS		(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/* A range of a region that may be touched, as its key is entered. */
struct grip {
	struct roan_mr *mr;	/* NULL: kernel virtual address @va */
	u64 off;		/* bytes from the region's first */
	u64 va;
};

/* ---- checks ---- */

static u32 check_range(u64 base, u64 length, u64 va, u64 len)
{
	u64 off = va - base;

	if (va < base || off > length || len > length - off)
		return ROAN_VERR_BAD_RANGE;
	return ROAN_VERR_NONE;
}

static u32 check_state(const struct roan_mr *mr)
{
	/* Pairs with the release in mr.c: what describes an FRMR was written before it became valid. */
	u8 state = smp_load_acquire(&mr->state);

	if (likely(state == ROAN_MR_VALID))
		return ROAN_VERR_NONE;
	return state == ROAN_MR_REVOKED ? ROAN_VERR_REVOKED : ROAN_VERR_BAD_KEY;
}

/*
 * A key that was found may have become another's since: a fast registration or a bind of a window of type 1 gives what
 * it names a new one. Asked once that is known to be in force, or under the window's lock.
 */
static u32 check_key(const struct roan_key *k, u32 key)
{
	return likely(READ_ONCE(k->key) == key) ? ROAN_VERR_NONE : ROAN_VERR_BAD_KEY;
}

static u32 check_mr(const struct ib_pd *pd, const struct roan_mr *mr, u32 key, u32 access)
{
	u32 verr = check_state(mr) ?: check_key(&mr->k, key);

	if (verr)
		return verr;
	if (mr->ib.pd != pd)
		return ROAN_VERR_BAD_PD;
	if (access & ~mr->access)
		return ROAN_VERR_BAD_ACCESS;
	return ROAN_VERR_NONE;
}

static u32 check_window(const struct roan_qp *qp, const struct roan_window *win, u32 key, u64 va, u64 len, u32 access)
{
	if (check_key(&win->k, key) || !win->valid || (win->type == IB_MW_TYPE_2 && win->qpn != qp->ib.qp_num))
		return ROAN_VERR_BAD_KEY;
	if (win->pd != qp->ib.pd)
		return ROAN_VERR_BAD_PD;
	if (access & ~win->access)
		return ROAN_VERR_BAD_ACCESS;
	return check_state(win->mr) ?: check_range(win->addr, win->length, va, len);
}

static u32 grip_window(const struct roan_qp *qp, struct roan_window *win, u32 key, u64 va, u64 len, u32 access,
		       struct grip *grip)
{
	u32 verr;

	spin_lock_bh(&win->lock);
	verr = check_window(qp, win, key, va, len, access);
	if (!verr) {
		*grip = (struct grip) { .mr = win->mr, .off = win->mr_off + (va - win->addr), .va = va };
		roan_key_enter_region(&win->mr->k);	/* before the window's lock is dropped: it may be unbound then */
	}
	spin_unlock_bh(&win->lock);
	return verr;
}

static u32 grip_mr(const struct ib_pd *pd, struct roan_mr *mr, u32 key, u64 va, u64 len, u32 access,
		   struct grip *grip)
{
	u32 verr = check_mr(pd, mr, key, access) ?: check_range(mr->iova, mr->length, va, len);

	if (!verr)
		*grip = (struct grip) { .mr = mr, .off = va - mr->iova, .va = va };
	return verr;
}

/* What was gripped is let go with roan_key_leave(), and so is here what is refused. */
static u32 grip_remote(const struct roan_qp *qp, u32 rkey, u64 va, u64 len, u32 access, struct grip *grip)
{
	struct roan_key *k;
	u32 verr;

	if (access & REMOTE_ACCESS & ~qp->access)
		return ROAN_VERR_BAD_ACCESS;
	k = roan_key_enter(qp->dev, rkey);
	if (!k)
		return ROAN_VERR_BAD_KEY;
	if (k->is_mw)
		verr = grip_window(qp, container_of(k, struct roan_window, k), rkey, va, len, access, grip);
	else
		verr = grip_mr(qp->ib.pd, container_of(k, struct roan_mr, k), rkey, va, len, access, grip);
	if (verr)
		roan_key_leave();
	return verr;
}

/* All of a region, whatever address and length a request has. A window lends no right that asks for this. */
static u32 grip_whole(const struct roan_qp *qp, u32 rkey, u32 access, struct grip *grip)
{
	struct roan_key *k = roan_key_enter(qp->dev, rkey);
	u32 verr;

	if (!k)
		return ROAN_VERR_BAD_KEY;
	*grip = (struct grip) { .mr = container_of(k, struct roan_mr, k) };
	verr = k->is_mw ? ROAN_VERR_BAD_ACCESS : check_mr(qp->ib.pd, grip->mr, rkey, access);
	if (verr)
		roan_key_leave();
	return verr;
}

static u32 grip_local(const struct roan_qp *qp, const struct ib_pd *pd, u32 lkey, u64 va, u64 len, u32 access,
		      struct grip *grip)
{
	u32 verr = ROAN_VERR_BAD_KEY;
	struct roan_key *k;

	*grip = (struct grip) { .va = va };
	if (!lkey && !qp->user)		/* local_dma_lkey: kernel virtual addresses, kernel consumers only */
		return ROAN_VERR_NONE;
	k = roan_key_enter(qp->dev, lkey);
	if (!k)
		return verr;
	if (!k->is_mw)
		verr = grip_mr(pd, container_of(k, struct roan_mr, k), lkey, va, len, access, grip);
	if (verr)
		roan_key_leave();
	return verr;
}

/* ---- bytes ---- */

/* Memory that is reached by doors of its own. */
static bool is_far(const struct grip *grip)
{
	return unlikely(grip->mr && (grip->mr->io || grip->mr->odp));
}

/* Absent pages are asked for; @qp goes on when they are there, or will not come. */
static u32 await(struct roan_qp *qp, const struct grip *grip, u32 len, bool write, u32 verr)
{
	if (verr == ROAN_VERR_ABSENT)
		return roan_odp_ask(grip->mr, qp, grip->off, len, write);
	if (!verr && unlikely(!list_empty(&qp->asks.list)))
		roan_odp_had(grip->mr, qp, grip->off, len, write);
	return verr;
}

static u32 far_out(struct roan_qp *qp, const struct grip *grip, void *to, u32 len)
{
	if (grip->mr->odp)
		return await(qp, grip, len, false, roan_odp_read(grip->mr->odp, grip->off, to, len));
	roan_io_read(grip->mr->io, grip->off, to, len);
	return ROAN_VERR_NONE;
}

static u32 far_odp_in(struct roan_qp *qp, const struct grip *grip, struct roan_source from, u32 len)
{
	if (from.bytes)
		return await(qp, grip, len, true, roan_odp_write(grip->mr->odp, grip->off, from.bytes, len));
	return await(qp, grip, len, true, roan_odp_write_skb(grip->mr->odp, grip->off, from.skb, from.off, len));
}

static u32 far_in(struct roan_qp *qp, const struct grip *grip, struct roan_source from, u32 len)
{
	if (grip->mr->odp)
		return far_odp_in(qp, grip, from, len);
	if (!from.bytes)
		return roan_io_write_skb(grip->mr->io, grip->off, from.skb, from.off, len);
	roan_io_write(grip->mr->io, grip->off, from.bytes, len);
	return ROAN_VERR_NONE;
}

static u32 far_atomic(struct roan_qp *qp, const struct grip *grip, const struct roan_pkt *pkt, u64 *orig)
{
	if (grip->mr->odp)
		return await(qp, grip, sizeof(u64), true, roan_odp_atomic(grip->mr->odp, grip->off, pkt, orig));
	return roan_io_atomic(grip->mr->io, grip->off, pkt, orig);
}

static u32 far_atomic_write(struct roan_qp *qp, const struct grip *grip, u64 value)
{
	if (grip->mr->odp)
		return await(qp, grip, sizeof(u64), true, roan_odp_atomic_write(grip->mr->odp, grip->off, value));
	return roan_io_atomic_write(grip->mr->io, grip->off, value);
}

static void *in_list(const struct roan_list *list, u64 pos, u32 len, u32 *run)
{
	u32 size = 1u << list->shift, in_block;

	pos += list->off;
	in_block = pos & (size - 1);
	*run = min(len, size - in_block);
	return list->block[pos >> list->shift] + in_block;
}

/* Where byte @off of the gripped range lies, and how many bytes from there are contiguous, at most @len. Not for far memory. */
static void *at(const struct grip *grip, u64 off, u32 len, u32 *run)
{
	const struct roan_mr *mr = grip->mr;
	u64 pos;
	u32 i, in_page;

	*run = len;
	if (!mr)
		return (void *)(uintptr_t)(grip->va + off);
	if (!mr->pages)
		return mr->list ? in_list(mr->list, grip->off + off, len, run) : mr->base + (uintptr_t)(grip->off + off);
	pos = mr->page_off + grip->off + off;
	i = pos >> PAGE_SHIFT;
	in_page = offset_in_page(pos);
	*run = min_t(u32, len, PAGE_SIZE - in_page);
	return page_address(mr->pages[i]) + in_page;
}

static u32 copy_out(struct roan_qp *qp, const struct grip *grip, void *to, u32 len, struct roan_icrc *icrc)
{
	u64 off = 0;
	u32 run, verr;

	if (is_far(grip)) {
		verr = far_out(qp, grip, to, len);
		if (!verr && icrc)
			roan_icrc_add(icrc, to, len);
		return verr;
	}
	for (; len; len -= run, off += run, to += run) {
		const void *from = at(grip, off, len, &run);

		roan_icrc_copy(icrc, to, from, run);
	}
	return ROAN_VERR_NONE;
}

/*
 * What a packet brings is visible to every CPU before what a later packet brings, of the same message or of the next, so that
 * a program may poll its memory for a flag that the peer writes after the data. Pairs with the acquire, or the read barrier,
 * between the program's load of the flag and its loads of the data. The lock of the queue is what orders packets, but it is
 * held over a whole train of them, and its release comes after the last. Another CPU that takes the lock for the next train
 * orders that behind this one. A completion needs none of this: its index is stored with release. Atomics are ordered by
 * themselves. Within one packet, bytes may become visible in any order.
 */
static u32 copy_in(struct roan_qp *qp, const struct grip *grip, struct roan_source from, u32 len)
{
	u64 off = 0;
	u32 run;

	smp_wmb();
	if (is_far(grip))
		return far_in(qp, grip, from, len);
	for (; len; len -= run, off += run) {
		void *to = at(grip, off, len, &run);

		if (likely(from.bytes))
			memcpy(to, from.bytes + off, run);
		else if (skb_copy_bits(from.skb, from.off + off, to, run))
			return ROAN_VERR_BAD_RANGE;	/* the walker promised these bytes: cannot be */
	}
	return ROAN_VERR_NONE;
}

/* ---- scatter lists ---- */

/* The part of a scatter list that bytes [@offset, @offset + @len) of a message fall into, entry by entry. */
struct cursor {
	const struct roan_sge *sge;
	const struct ib_pd *pd;
	u32 left;		/* entries */
	u32 skip;		/* bytes into *sge */
};

static bool cursor_start(struct cursor *c, struct roan_sges list, u32 offset)
{
	*c = (struct cursor) { .sge = list.sge, .pd = list.pd, .left = list.n, .skip = offset };
	while (c->left && c->skip >= c->sge->length) {
		c->skip -= c->sge->length;
		c->sge++;
		c->left--;
	}
	return c->left;
}

/* The next piece of at most @len bytes, checked. */
static u32 cursor_grip(struct cursor *c, const struct roan_qp *qp, u32 len, u32 access, struct grip *grip, u32 *piece)
{
	u32 verr;
	u64 va;

	while (c->left && c->skip == c->sge->length) {
		c->skip = 0;
		c->sge++;
		c->left--;
	}
	if (!c->left)
		return ROAN_VERR_TOO_LONG;
	*piece = min(len, c->sge->length - c->skip);
	if (check_add_overflow(c->sge->addr, (u64)c->skip, &va))
		return ROAN_VERR_BAD_RANGE;
	verr = grip_local(qp, c->pd, c->sge->lkey, va, *piece, access, grip);
	c->skip += *piece;
	return verr;
}

/* Nothing is written unless all of it may be. */
static u32 check_all(const struct roan_qp *qp, struct roan_sges list, u32 offset, u32 len, u32 access)
{
	struct grip grip;
	struct cursor c;
	u32 piece, verr;

	if (!cursor_start(&c, list, offset))
		return ROAN_VERR_TOO_LONG;
	if (len <= c.sge->length - c.skip)
		return ROAN_VERR_NONE;		/* one piece: the copy itself checks it */
	for (; len; len -= piece) {
		verr = cursor_grip(&c, qp, len, access, &grip, &piece);
		if (verr)
			return verr;
		roan_key_leave();
	}
	return ROAN_VERR_NONE;
}

u32 roan_gather(struct roan_qp *qp, struct roan_sges list, u32 offset, void *to, u32 len, struct roan_icrc *icrc)
{
	struct grip grip;
	struct cursor c;
	u32 piece, verr;

	cursor_start(&c, list, offset);
	for (; len; len -= piece, to += piece) {
		verr = cursor_grip(&c, qp, len, 0, &grip, &piece);
		if (verr)
			return verr;
		verr = copy_out(qp, &grip, to, piece, icrc);
		roan_key_leave();
		if (verr)
			return verr;
	}
	return ROAN_VERR_NONE;
}

static struct roan_source skip(struct roan_source from, u32 len)
{
	if (from.bytes)
		from.bytes += len;
	from.off += len;
	return from;
}

u32 roan_scatter(struct roan_qp *qp, struct roan_sges list, u32 offset, struct roan_source from, u32 len)
{
	struct grip grip;
	struct cursor c;
	u32 piece, verr;

	if (!len)
		return ROAN_VERR_NONE;
	verr = check_all(qp, list, offset, len, IB_ACCESS_LOCAL_WRITE);
	if (verr)
		return verr;
	cursor_start(&c, list, offset);
	for (; len && !verr; len -= piece, from = skip(from, piece)) {
		verr = cursor_grip(&c, qp, len, IB_ACCESS_LOCAL_WRITE, &grip, &piece);
		if (verr)
			return verr;
		verr = copy_in(qp, &grip, from, piece);
		roan_key_leave();
	}
	return verr;
}

/* ---- the peer's requests ---- */

u32 roan_remote_check(struct roan_qp *qp, u32 rkey, u64 va, u64 len, u32 access)
{
	struct grip grip;
	u32 verr;

	/* Even a length of 0 needs the QP's leave; the key is not looked at then (9.7.4.1.5). */
	if (!len)
		return access & REMOTE_ACCESS & ~qp->access ? ROAN_VERR_BAD_ACCESS : ROAN_VERR_NONE;
	verr = grip_remote(qp, rkey, va, len, access, &grip);
	if (!verr)
		roan_key_leave();
	return verr;
}

u32 roan_remote_write(struct roan_qp *qp, u32 rkey, u64 va, struct roan_source from, u32 len)
{
	struct grip grip;
	u32 verr;

	if (!len)
		return ROAN_VERR_NONE;
	verr = grip_remote(qp, rkey, va, len, IB_ACCESS_REMOTE_WRITE, &grip);
	if (verr)
		return verr;
	verr = copy_in(qp, &grip, from, len);
	roan_key_leave();
	return verr;
}

u32 roan_remote_read(struct roan_qp *qp, u32 rkey, u64 va, void *to, u32 len, struct roan_icrc *icrc)
{
	struct grip grip;
	u32 verr;

	if (!len)
		return ROAN_VERR_NONE;
	verr = grip_remote(qp, rkey, va, len, IB_ACCESS_REMOTE_READ, &grip);
	if (verr)
		return verr;
	verr = copy_out(qp, &grip, to, len, icrc);
	roan_key_leave();
	return verr;
}

/* The eight bytes of memory at the grip as the CPU sees them: so remote atomics compose with local ones. */
static u64 *word_at(const struct grip *grip)
{
	u32 run;
	u64 *word = at(grip, 0, sizeof(u64), &run);

	/* The region's addresses and its memory may not be aligned alike. */
	return run == sizeof(u64) && IS_ALIGNED((uintptr_t)word, sizeof(u64)) ? word : NULL;
}

u64 roan_atomic(u64 *word, const struct roan_pkt *pkt)
{
	if (pkt->info->op == ROAN_OP_CMP_SWAP)
		return cmpxchg64(word, pkt->compare, pkt->swap_add);
	return atomic64_fetch_add(pkt->swap_add, (atomic64_t *)word);
}

static u32 atomic(struct roan_qp *qp, const struct grip *grip, const struct roan_pkt *pkt, u64 *orig)
{
	u64 *word;

	if (is_far(grip))
		return far_atomic(qp, grip, pkt, orig);
	word = word_at(grip);
	if (!word)
		return ROAN_VERR_UNALIGNED;
	*orig = roan_atomic(word, pkt);
	return ROAN_VERR_NONE;
}

u32 roan_remote_atomic(struct roan_qp *qp, const struct roan_pkt *pkt, u64 *orig)
{
	struct grip grip;
	u32 verr = grip_remote(qp, pkt->rkey, pkt->va, sizeof(u64), IB_ACCESS_REMOTE_ATOMIC, &grip);

	if (verr)
		return verr;
	verr = atomic(qp, &grip, pkt, orig);
	roan_key_leave();
	return verr;
}

static u32 atomic_write(struct roan_qp *qp, const struct grip *grip, u64 value)
{
	u64 *word;

	if (is_far(grip))
		return far_atomic_write(qp, grip, value);
	word = word_at(grip);
	if (!word)
		return ROAN_VERR_UNALIGNED;
	smp_store_release(word, value);		/* what came before it is visible before it */
	return ROAN_VERR_NONE;
}

u32 roan_remote_atomic_write(struct roan_qp *qp, u32 rkey, u64 va, u64 value)
{
	struct grip grip;
	u32 verr = grip_remote(qp, rkey, va, sizeof(u64), IB_ACCESS_REMOTE_WRITE, &grip);

	if (verr)
		return verr;
	verr = atomic_write(qp, &grip, value);
	roan_key_leave();
	return verr;
}

static u32 flush_access(const struct roan_pkt *pkt)
{
	return (pkt->flush_type & ROAN_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0) |
	       (pkt->flush_type & ROAN_FLUSH_PERSISTENT ? IB_ACCESS_FLUSH_PERSISTENT : 0);
}

/* mr.c gives IB_ACCESS_FLUSH_PERSISTENT to persistent memory only. */
static void write_back(const struct grip *grip, u32 len)
{
#ifdef CONFIG_ARCH_HAS_PMEM_API
	u32 pos, run;

	for (pos = 0; pos < len; pos += run) {
		void *from = at(grip, pos, len - pos, &run);

		arch_wb_cache_pmem(from, run);
	}
	wmb();		/* lines that were written back have arrived */
#endif
}

u32 roan_write_back(struct roan_qp *qp, u32 rkey, u64 off, u32 len)
{
	struct grip grip;
	u32 verr = grip_whole(qp, rkey, IB_ACCESS_FLUSH_PERSISTENT, &grip);

	if (verr)
		return verr;
	grip.off = off;
	verr = grip.mr->kind == ROAN_MR_USER ? check_range(0, grip.mr->length, off, len) : ROAN_VERR_BAD_ACCESS;
	if (!verr)
		write_back(&grip, len);
	roan_key_leave();
	return verr;
}

static u32 persist(struct roan_qp *qp, u32 rkey, const struct grip *grip, u64 len)
{
	if (len > ROAN_WRITE_BACK_MOST)
		return roan_persist(qp, rkey, grip->off, len);
	write_back(grip, len);
	return ROAN_VERR_NONE;
}

/* Global visibility is what a memory barrier gives on a machine whose CPUs do the writing. */
u32 roan_remote_flush(struct roan_qp *qp, const struct roan_pkt *pkt)
{
	u64 len = pkt->dma_len;
	struct grip grip;
	u32 verr;

	if (!pkt->flush_type || pkt->flush_type & ~(ROAN_FLUSH_GLOBAL | ROAN_FLUSH_PERSISTENT) ||
	    pkt->flush_level > ROAN_FLUSH_MR || flush_access(pkt) & ~qp->access)
		return ROAN_VERR_BAD_ACCESS;
	if (pkt->flush_level == ROAN_FLUSH_MR)
		verr = grip_whole(qp, pkt->rkey, flush_access(pkt), &grip);
	else
		verr = grip_remote(qp, pkt->rkey, pkt->va, len, flush_access(pkt), &grip);
	if (verr)
		return verr;
	if (pkt->flush_level == ROAN_FLUSH_MR)
		len = grip.mr->length;
	if (pkt->flush_type & ROAN_FLUSH_PERSISTENT && grip.mr->kind == ROAN_MR_USER)
		verr = persist(qp, pkt->rkey, &grip, len);
	if (grip.mr->io && len) {
		u8 byte;

		roan_io_read(grip.mr->io, grip.off, &byte, 1);	/* a read pushes the bus's writes before it */
	}
	smp_mb();	/* what was placed before, by any CPU that acknowledged it, before our answer */
	roan_key_leave();
	return verr;
}
