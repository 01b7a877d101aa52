// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for the kernel's copies of send WQEs (the WQE shadow) and the requester's state of each. Decides how many
 * there is space for; wqe_fetch.c fills them. A QP begins with FIRST_SLOTS, so that thousands of idle QPs take little
 * memory, and gets more when it has more WQEs in progress, or loses packets. Also finds the WQEs that use a key.
 */
#include "base/base.h"
#include "tx/tx.h"

#define FIRST_SLOTS	2
#define GROWTH_FACTOR	4

#define KEY_STEPS	512	/* requests and their entries that are looked at in search of a key */

static bool shadow_alloc(const struct roan_sq *sq, u32 slots, void **shadow, struct roan_tx_wqe **work, gfp_t gfp)
{
	*shadow = kcalloc(slots, sq->shadow_size, gfp);
	*work = kcalloc(slots, sizeof(**work), gfp);
	if (*shadow && *work)
		return true;
	kfree(*shadow);
	kfree(*work);
	return false;
}

int roan_wqe_shadow_init(struct roan_sq *sq)
{
	u32 slots = min_t(u32, sq->ring.mask + 1, FIRST_SLOTS);
	struct roan_tx_wqe *work;
	void *shadow;

	sq->shadow_size = offsetof(struct roan_wqe_shadow, wqe) + sq->ring.slot_size;
	if (!shadow_alloc(sq, slots, &shadow, &work, GFP_KERNEL_ACCOUNT))
		return -ENOMEM;
	sq->shadow = shadow;
	sq->req.work = work;
	sq->req.mask = slots - 1;
	return 0;
}

void roan_wqe_shadow_free(struct roan_sq *sq)
{
	kfree(sq->shadow);
	kfree(sq->req.work);
}

static u32 shadow_max_slots(const struct roan_sq *sq)
{
	return min_t(u32, sq->ring.mask + 1, ROAN_MAX_UNDER_WAY);
}

size_t roan_wqe_shadow_max_bytes(const struct roan_sq *sq)
{
	return (size_t)shadow_max_slots(sq) * (sq->shadow_size + sizeof(*sq->req.work));
}

bool roan_wqe_shadow_may_grow(const struct roan_sq *sq)
{
	return sq->req.mask + 1 < shadow_max_slots(sq);
}

bool roan_wqe_shadow_grow(struct roan_sq *sq)
	__must_hold(&sq->lock)
{
	u32 slots = min((sq->req.mask + 1) * GROWTH_FACTOR, shadow_max_slots(sq));
	struct roan_requester *req = &sq->req;
	struct roan_tx_wqe *work;
	void *shadow;
	u32 i;

	lockdep_assert_held(&sq->lock);
	if (!roan_wqe_shadow_may_grow(sq) ||
	    !shadow_alloc(sq, slots, &shadow, &work, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN))
		return false;
	for (i = req->retire; i != req->tail; i++) {
		work[i & (slots - 1)] = *roan_requester_wqe(req, i);
		memcpy(shadow + (size_t)(i & (slots - 1)) * sq->shadow_size, roan_sq_shadow(sq, i), sq->shadow_size);
	}
	roan_wqe_shadow_free(sq);
	sq->shadow = shadow;
	req->work = work;
	req->mask = slots - 1;
	return true;
}

bool roan_wqe_shadow_uses_key(const struct roan_sq *sq, u32 end, u32 key)
{
	u32 steps = KEY_STEPS;
	u32 i, n;

	for (i = sq->req.retire; i != end; i++) {
		struct roan_wqe_shadow *shadow = roan_sq_shadow(sq, i);
		const struct roan_sge *sges = roan_wqe_sges(&shadow->wqe);

		n = shadow->vendor_err || shadow->wqe.flags & ROAN_SEND_INLINE ? 0 : shadow->wqe.num_sge;
		if (steps <= n)
			return true;
		steps -= n + 1;
		while (n--)
			if (!((sges[n].lkey ^ key) >> 8))	/* another variant is the same region */
				return true;
	}
	return false;
}

void roan_sq_alloc_holes(struct roan_qp *qp)
{
	struct roan_requester *req = &qp->sq.req;

	lockdep_assert_held(&qp->sq.lock);
	if (!req->holes && req->cfg.sack)
		WRITE_ONCE(req->holes, roan_qp_zalloc(qp, sizeof(*req->holes), GFP_ATOMIC));
}

/* A QP that finds out itself how many paths it uses keeps the memory, and may use all of it in a trial. */
static struct roan_paths *sq_paths_memory(struct roan_qp *qp)
{
	struct roan_auto_paths *auto_paths = qp->sq.req.auto_paths;
	struct roan_paths *paths;

	if (auto_paths && auto_paths->memory)
		return auto_paths->memory;
	paths = roan_qp_zalloc(qp, roan_paths_size(auto_paths ? ROAN_AUTO_PATHS : 1), GFP_ATOMIC);
	if (auto_paths)
		roan_requester_give_paths(&qp->sq.req, paths);
	return paths;
}

void roan_sq_alloc_trial(struct roan_qp *qp)
{
	lockdep_assert_held(&qp->sq.lock);
	sq_paths_memory(qp);
}

void roan_sq_alloc_window(struct roan_qp *qp)
{
	struct roan_requester *req = &qp->sq.req;
	struct roan_paths *paths;

	lockdep_assert_held(&qp->sq.lock);
	if (req->paths || !req->min_rtt || !req->cfg.sack || req->cfg.psn_window > ROAN_PATH_PSNS)
		return;
	paths = sq_paths_memory(qp);
	if (paths)
		roan_requester_set_paths(req, paths);
}
