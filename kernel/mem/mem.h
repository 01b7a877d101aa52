/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mem: which key names which memory, who may touch it, and the copies from and to it. Decides about keys, ranges, access rights
 * and page faults; not about packets or PSNs. Every copy runs in any of our contexts and never sleeps; registering and
 * deregistering are process context. Locks: window->lock, mr->map_lock, asks->lock and the locks of each file are leaves.
 */
#ifndef ROAN_MEM_H
#define ROAN_MEM_H

#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <rdma/roan-abi.h>
#include "roan.h"

#define ROAN_ACCESS_SUPPORTED	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |	\
				 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL |		\
				 IB_ACCESS_FLUSH_PERSISTENT)
#define ROAN_ACCESS_USER	(ROAN_ACCESS_SUPPORTED | IB_ZERO_BASED)	/* of a process's memory */

struct device;
struct device_attribute;
struct module;
struct roan_icrc;
struct roan_pkt;
struct uapi_definition;
struct uverbs_attr_bundle;

/*
 * What the functions below that return 0 or enum roan_vendor_err return as well: nothing is refused, and the request is
 * executed again when the QP is resumed. Values that the ABI does not have, as no completion carries them.
 */
enum roan_not_yet {
	ROAN_VERR_PENDING	= 1 << 16,	/* on-demand paged memory is not there yet */
	ROAN_VERR_UNWRITTEN,			/* what a FLUSH is to make persistent is still being written back */
};

/* ---- keys, regions, windows: key.c, mr.c, mw.c ---- */

/* key.c */
int roan_key_insert(struct roan_dev *dev, struct roan_key *k);	/* chooses k->key, unpredictable bits inside */
void roan_key_remove(struct roan_dev *dev, struct roan_key *k);	/* waits until nobody uses it; process context */
/*
 * Softirqs are off from enter() to leave(); one at a time. The key of exactly these 32 bits, or NULL; whether it is in force
 * is the caller's to ask now. Who takes it out of force, then waits, knows that all have left, and that none will be let in.
 *
 * Packets come in trains, most of them to the same memory. Who has said stay() is still inside after leave(), and enters the
 * same key again without looking it up, until part(). Meanwhile no queue's lock may be waited for, as who has it may wait for
 * us to leave: roan_queue_lock_drop_key(). So nobody waits for longer than a train takes,
 * or 64 KiB that go from caches to persistent memory (flush_worker.c).
 */
struct roan_key_hazard {
	struct roan_key *key;		/* the one that was looked up */
	const struct roan_key *mr_key;	/* that of the region behind it, if it is a window's */
	const struct roan_dev *dev;	/* whose @key is */
	bool keep_held;
#ifdef CONFIG_PREEMPT_RT
	spinlock_t busy;		/* somebody is inside: key.c */
#endif
};
DECLARE_PER_CPU_ALIGNED(struct roan_key_hazard, roan_key_hazard);

/* key.c's: enter(), another one than the last */
struct roan_key *roan_key_acquire_slow(struct roan_dev *dev, u32 key);
static inline struct roan_key *roan_key_acquire(struct roan_dev *dev, u32 key)
{
	struct roan_key *k = this_cpu_read(roan_key_hazard.key);

	if (k && READ_ONCE(k->key) == key && this_cpu_read(roan_key_hazard.dev) == dev)
		return k;
	return roan_key_acquire_slow(dev, key);
}

void roan_key_acquire_mr(const struct roan_key *k);	/* also this one, of a window that is entered; its lock held */
void roan_key_drop(void);
static inline void roan_key_release(void)
{
	if (!this_cpu_read(roan_key_hazard.keep_held))
		roan_key_drop();
}

static inline void roan_key_hold(void)
{
	this_cpu_write(roan_key_hazard.keep_held, true);
}

void roan_key_synchronize(const struct roan_key *k);	/* if the caller is inside one, it parts with it */
/* Takes a queue's lock. softirq */
static inline void roan_queue_lock_drop_key(spinlock_t *lock)
	__acquires(lock)
{
	if (likely(spin_trylock(lock)))
		return;
	roan_key_drop();
	spin_lock(lock);
}

/* A reference, put back with roan_key_put(). */
struct roan_key *roan_key_find(struct roan_dev *dev, u32 key);	/* exact match of all 32 bits, else NULL */
struct roan_key *roan_key_find_slot(struct roan_dev *dev, u32 key);	/* whatever its variant: for the owner */
void roan_key_put(struct roan_key *k);

/* The address of a region's first byte in requests; @iova: the one that the registration names. */
static inline u64 roan_mr_first(u64 iova, int access)
{
	return access & IB_ZERO_BASED ? 0 : iova;
}

/* mr.c */
struct roan_mr *roan_mr_alloc(struct ib_pd *pd, enum roan_mr_kind kind);	/* ERR_PTR */
/* The last step of every registration: from here the network can see it. If there was an @err, what it has got goes back. */
struct ib_mr *roan_mr_finish(struct roan_mr *mr, int err);
int roan_mr_check_range(u64 start, u64 length, u64 iova);	/* 0 or -EINVAL */
struct ib_mr *roan_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *roan_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata);
struct ib_mr *roan_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
				 struct ib_pd *pd, struct ib_udata *udata);
struct ib_mr *roan_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg);
int roan_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int n, unsigned int *offset);
int roan_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
/*
 * The memory goes, the key stays until dereg_mr(): when this returns nobody touches the memory any more. Sleeps for a
 * grace period, as all that touch memory do so with softirqs off; takes no lock.
 */
void roan_mr_revoke(struct roan_mr *mr);
/*
 * Work requests, softirq or process, sq.lock held. Return 0 or enum roan_vendor_err. What was invalidated, nobody touches
 * any more.
 */
u32 roan_mr_reg(struct roan_qp *qp, const struct roan_send_wqe *wqe);
u32 roan_key_invalidate_local(struct roan_qp *qp, u32 key);
u32 roan_key_invalidate_remote(struct roan_qp *qp, u32 rkey);	/* rq.lock held */

/* mw.c */
int roan_alloc_mw(struct ib_mw *mw, struct ib_udata *udata);
int roan_dealloc_mw(struct ib_mw *mw);
u32 roan_mw_bind(struct roan_qp *qp, const struct roan_send_wqe *wqe);	/* 0 or enum roan_vendor_err */
u32 roan_mw_invalidate(struct roan_qp *qp, struct roan_mw_binding *win);	/* the same */

/*
 * mr_access.c: bytes between packets and registered memory. Any of our contexts; never sleeps. All return 0 or
 * enum roan_vendor_err (or enum roan_not_yet: not refused, ask again: it is under way, and @qp will be resumed),
 * and touch nothing unless the whole range is allowed. A length of 0 is always allowed, whatever the key. Local: L_Keys
 * of the list's PD, which is the QP's, but that of the SRQ for what was taken from one (of a kernel QP also local_dma_lkey:
 * addresses are kernel virtual). What is read goes into @icrc on its way.
 */
struct roan_sge_list {
	const struct roan_sge *sge;
	u32 n;
	const struct ib_pd *pd;
};

/* What is placed. In one piece, mostly. */
struct roan_payload {
	const u8 *bytes;	/* NULL: in pieces, and */
	const struct sk_buff *skb;	/* ... from its byte @off on */
	u32 off;
};

static inline struct roan_payload roan_payload_bytes(const void *bytes)
{
	return (struct roan_payload) { .bytes = bytes };
}

static inline struct roan_payload roan_payload_skb(const struct sk_buff *skb, u32 off)
{
	return (struct roan_payload) { .skb = skb, .off = off };
}

u32 roan_gather(struct roan_qp *qp, struct roan_sge_list list, u32 offset, void *to, u32 len, struct roan_icrc *icrc);
u32 roan_scatter(struct roan_qp *qp, struct roan_sge_list list, u32 offset, struct roan_payload from, u32 len);
u32 roan_remote_check(struct roan_qp *qp, u32 rkey, u64 va, u64 len, u32 access);	/* IB_ACCESS_REMOTE_* ... */
u32 roan_remote_write(struct roan_qp *qp, u32 rkey, u64 va, struct roan_payload from, u32 len);
u32 roan_remote_read(struct roan_qp *qp, u32 rkey, u64 va, void *to, u32 len, struct roan_icrc *icrc);
u32 roan_remote_atomic(struct roan_qp *qp, const struct roan_pkt *pkt, u64 *orig);	/* CPU-coherent; 8-aligned */
u32 roan_remote_atomic_write(struct roan_qp *qp, u32 rkey, u64 va, u64 value);
u32 roan_remote_flush(struct roan_qp *qp, const struct roan_pkt *pkt);		/* rq.lock held */
/*
 * What caches have of bytes @off to @off + @len, at most ROAN_WRITE_BACK_MAX, of a region's; flush_worker.c's. Softirqs
 * off.
 */
u32 roan_mr_write_back(struct roan_qp *qp, u32 rkey, u64 off, u32 len);
/* what @pkt asks for, as the CPU does it; what was there */
u64 roan_atomic_execute(u64 *word, const struct roan_pkt *pkt);

/* dmabuf.c */
struct ib_mr *roan_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd, int access);
void roan_dmabuf_release(struct roan_mr *mr);	/* no key names it: gone, or there was none yet */
struct device *roan_pci_parent(const struct roan_dev *dev);	/* the adapter below the interface, or NULL */
int roan_dmabuf_init(void);
void roan_dmabuf_exit(void);

/* dm.c */
struct ib_dm *roan_alloc_dm(struct ib_device *dev, struct ib_ucontext *uctx, struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int roan_dealloc_dm(struct ib_dm *dm, struct uverbs_attr_bundle *attrs);
struct ib_mr *roan_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm, struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs);
void roan_dm_release(struct roan_mr *mr);	/* the key is gone */
extern const struct uapi_definition roan_dm_defs[];

/* dm_bar.c: device memory that is a PCI device's. Process context. */
extern struct device_attribute dev_attr_dm_bar;
void roan_dm_bar_detach(struct roan_dev *dev);
struct roan_dm_bar_mem *roan_dm_bar_alloc(struct roan_dev *dev, u64 size);	/* NULL: no BAR was named; ERR_PTR */
void roan_dm_bar_free(struct roan_dm_bar_mem *piece);
int roan_dm_bar_reg_mr(struct roan_dm_bar_mem *piece, struct roan_mr *mr, u64 off);
void roan_dm_bar_dereg_mr(struct roan_mr *mr);
int roan_dm_bar_copy(const struct roan_dm_bar_mem *piece, u64 off, void __user *user, u64 len, bool write);
int roan_dm_bar_init(void);
void roan_dm_bar_exit(void);

/*
 * peermem_glue.c, and what roan_peermem.ko gives it. claim() fills @mr->io and @mr->peermem if [@start, @start +
 * @mr->length) is a
 * client's memory, else it says -EFAULT; from then on the region may be revoked. @pci may be NULL. release() ends it.
 */
struct roan_peermem_ops {
	struct module *owner;
	int (*claim)(struct roan_mr *mr, u64 start, struct device *pci);
	void (*release)(struct roan_mr *mr);
};
int roan_peermem_ops_set(const struct roan_peermem_ops *ops);	/* NULL: no more. -EBUSY: there are some already */
void roan_peermem_revoke(struct roan_mr *mr);
struct roan_iomem *roan_peermem_iomem_alloc(u32 n_pieces, u8 shift, u64 off);
int roan_peermem_claim(struct roan_mr *mr, u64 start);
void roan_peermem_release(struct roan_mr *mr);

/* iomem.c: I/O memory, byte @pos of the region on. Any of our contexts; what was written is on its way when they return. */
struct roan_iomem *roan_iomem_alloc(u32 n_pieces, u8 shift, u64 off);
void roan_iomem_read(const struct roan_iomem *io, u64 pos, void *to, u32 len);
void roan_iomem_write(const struct roan_iomem *io, u64 pos, const void *from, u32 len);
u32 roan_iomem_write_skb(const struct roan_iomem *io, u64 pos, const struct sk_buff *skb, u32 off, u32 len);
u32 roan_iomem_atomic(const struct roan_iomem *io, u64 pos, const struct roan_pkt *pkt, u64 *orig);
u32 roan_iomem_atomic_write(const struct roan_iomem *io, u64 pos, u64 value);

/* ---- odp.c: on-demand paged regions ---- */

int roan_odp_init(void);
void roan_odp_exit(void);

/* A region of the current process's memory; ERR_PTR. @start 0 with all the length there is: whatever it has and will have. */
struct ib_mr *roan_odp_reg_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata);
/* After the last reference to the region's key is gone. Sleeps. */
void roan_odp_destroy(struct roan_odp *odp);

/*
 * Byte @pos of the region on. 0; ROAN_VERR_PENDING: some of it is not there for this use, and was not touched, perhaps
 * what comes before it was: ask for it; ROAN_VERR_BAD_RANGE: there will never be.
 */
u32 roan_odp_read(struct roan_odp *odp, u64 pos, void *to, u32 len);
u32 roan_odp_write(struct roan_odp *odp, u64 pos, const void *from, u32 len);
u32 roan_odp_write_skb(struct roan_odp *odp, u64 pos, const struct sk_buff *skb, u32 off, u32 len);
u32 roan_odp_atomic(struct roan_odp *odp, u64 pos, const struct roan_pkt *pkt, u64 *orig);
u32 roan_odp_atomic_write(struct roan_odp *odp, u64 pos, u64 value);

/* odp_fault.c */

#define ROAN_FAULT_RNR_TIMER	10	/* AETH code, 0.32 ms: of what could not be kept until its page comes */

/*
 * Has a worker bring [@pos, @pos + @len) in; then @qp is resumed, and tries again. ROAN_VERR_PENDING; or, if it was
 * asked the
 * same before and the process has nothing there that may be used so, ROAN_VERR_BAD_RANGE, once. The caller is inside the
 * region's key. Any context.
 */
u32 roan_odp_request_fault(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write);
/* What was asked for was there after all: if it was refused, that is past. */
void roan_odp_fault_done(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write);
void roan_odp_cancel(struct roan_qp *qp);	/* nobody will try again */
int roan_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags, struct ib_sge *sges, u32 n,
		   struct uverbs_attr_bundle *attrs);

/* ---- flush_worker.c: FLUSH to persistence ---- */

#define ROAN_WRITE_BACK_MAX	SZ_64K	/* bytes at a time: a thousand lines, with softirqs off */

void roan_flush_job_init(struct roan_flush_job *wb);
/*
 * A worker is to write back what caches have of [@off, @off + @len) of the region @key. 0: it has; or ROAN_VERR_UNWRITTEN: @qp is
 * resumed when that is done, or cannot be, and the same request is then to be checked and tried again. Any context, rq.lock held.
 */
u32 roan_flush_job_start(struct roan_qp *qp, u32 key, u64 off, u64 len);
/* Nobody will try again; a worker at work stops soon. rq.lock held, and a reference of the caller's own. */
void roan_flush_job_cancel(struct roan_qp *qp);
int roan_flush_worker_init(void);
void roan_flush_worker_exit(void);

#endif /* ROAN_MEM_H */
