/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-demand paged memory: regions of a process's address space whose pages come and go. odp.c knows which are there; here
 * are the doors to it. A region's bytes may be touched in any of our contexts, as any other's; what is missing then is
 * asked for, and comes from a worker.
 */
#ifndef ROAN_ODP_H
#define ROAN_ODP_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct roan_mr;
struct roan_odp;
struct roan_pkt;
struct roan_qp;

int roan_odp_init(void);
void roan_odp_exit(void);

/* A region of the current process's memory; ERR_PTR. @start 0 with all the length there is: whatever it has and will have. */
struct ib_mr *roan_reg_odp(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata);
/* After the last reference to the region's key is gone. Sleeps. */
void roan_odp_destroy(struct roan_odp *odp);

/*
 * Byte @pos of the region on. 0; ROAN_VERR_ABSENT: some of it is not there for this use, and was not touched, perhaps what
 * comes before it was: ask for it; ROAN_VERR_BAD_RANGE: there will never be.
 */
u32 roan_odp_read(struct roan_odp *odp, u64 pos, void *to, u32 len);
u32 roan_odp_write(struct roan_odp *odp, u64 pos, const void *from, u32 len);
u32 roan_odp_write_skb(struct roan_odp *odp, u64 pos, const struct sk_buff *skb, u32 off, u32 len);
u32 roan_odp_atomic(struct roan_odp *odp, u64 pos, const struct roan_pkt *pkt, u64 *orig);
u32 roan_odp_atomic_write(struct roan_odp *odp, u64 pos, u64 value);

/* paging.c */

#define ROAN_ABSENT_RNR_TIMER	10	/* AETH code, 0.32 ms: of what could not be kept until its page comes */

/* What a QP has asked for: on its way, or refused and not told yet. */
struct roan_asks {
	spinlock_t lock;	/* _bh, leaf */
	struct list_head list;
	u32 n;
};

/*
 * Has a worker bring [@pos, @pos + @len) in; then @qp is resumed, and tries again. ROAN_VERR_ABSENT; or, if it was asked the
 * same before and the process has nothing there that may be used so, ROAN_VERR_BAD_RANGE, once. The caller is inside the
 * region's key. Any context.
 */
u32 roan_odp_ask(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write);
/* What was asked for was there after all: if it was refused, that is past. */
void roan_odp_had(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write);
void roan_odp_forget(struct roan_qp *qp);	/* nobody will try again */
void roan_qp_resume(struct roan_qp *qp);	/* later.c only */
int roan_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags, struct ib_sge *sges, u32 n,
		   struct uverbs_attr_bundle *attrs);

#endif /* ROAN_ODP_H */
