// SPDX-License-Identifier: GPL-2.0
/*
 * ibv_advise_mr(): prefetch of on-demand memory. Checks the ranges and the caller's right to them; odp_fault.c queues
 * the prefetch to a worker, or the call faults the range in itself.
 */
#include "base/base.h"
#include "mem/mem.h"
#include "mem/odp_priv.h"

/* In the caller, and in its time. */
static int prefetch_now(struct roan_mr *mr, u64 pos, u64 len, enum roan_odp_access want)
{
	int err;

	do {
		cond_resched();
		err = roan_odp_fault_in(mr->odp, pos, len, want);
	} while (err == -EBUSY);
	return err;
}

static int advise_mr_range(struct roan_mr *mr, const struct ib_sge *sge, enum roan_odp_access want, bool wait)
{
	u64 pos = sge->addr - mr->iova;

	if (sge->addr < mr->iova || pos > mr->length || sge->length > mr->length - pos)
		return -EFAULT;
	if (!sge->length)
		return 0;
	roan_count(to_roan_dev(mr->ib.device), page_prefetch);
	if (wait)
		return prefetch_now(mr, pos, sge->length, want);
	if (!roan_odp_prefetch(mr, pos, sge->length, want) && prefetch_now(mr, pos, sge->length, want) == -EINTR)
		return -EINTR;
	return 0;	/* as without FLUSH the caller does not learn of other errors */
}

/* The on-demand paged region with this key, with a reference; NULL if there is none. */
static struct roan_mr *find_paged(struct roan_dev *dev, u32 lkey)
{
	struct roan_mr *mr = NULL;
	struct roan_key *k;

	k = roan_key_find(dev, lkey);
	if (k && !k->is_mw && container_of(k, struct roan_mr, key)->odp)
		mr = container_of(k, struct roan_mr, key);
	else if (k)
		roan_key_put(k);
	return mr;
}

static int advise_one(struct ib_pd *pd, const struct ib_sge *sge, enum roan_odp_access want, bool wait)
{
	struct roan_mr *mr = find_paged(to_roan_dev(pd->device), sge->lkey);
	int err;

	if (!mr)
		return -ENOENT;
	if (mr->ib.pd != pd)
		err = -ENOENT;		/* a program must not learn which keys others have */
	else if (want == ROAN_ODP_WRITE && !(mr->access & IB_ACCESS_LOCAL_WRITE))
		err = -EPERM;
	else
		err = advise_mr_range(mr, sge, want, wait);
	roan_key_put(&mr->key);
	return err;
}

int roan_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags, struct ib_sge *sges, u32 n,
		   struct uverbs_attr_bundle *attrs)
{
	enum roan_odp_access want;
	int err = 0;
	u32 i;

	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		want = ROAN_ODP_READ;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		want = ROAN_ODP_WRITE;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		want = ROAN_ODP_PRESENT;
		break;
	default:
		return -EOPNOTSUPP;
	}
	for (i = 0; i < n && !err; i++)
		err = advise_one(pd, &sges[i], want, flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
	return err;
}
