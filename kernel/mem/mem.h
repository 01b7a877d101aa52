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
	ROAN_VERR_ABSENT	= 1 << 16,	/* on-demand paged memory is not there yet */
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
 * us to leave: roan_lock_outside(). So nobody waits for longer than a train takes,
 * or 64 KiB that go from caches to persistent memory (flush_worker.c).
 */
struct roan_inside {
	struct roan_key *key;		/* the one that was looked up */
	const struct roan_key *region;	/* that of the region behind it, if it is a window's */
	const struct roan_dev *dev;	/* whose @key is */
	bool stays;
#ifdef CONFIG_PREEMPT_RT
	spinlock_t busy;		/* somebody is inside: key.c */
#endif
};
DECLARE_PER_CPU_ALIGNED(struct roan_inside, roan_inside);

struct roan_key *roan_key_look_up(struct roan_dev *dev, u32 key);	/* key.c's: enter(), another one than the last */
static inline struct roan_key *roan_key_enter(struct roan_dev *dev, u32 key)
{
	struct roan_key *k = this_cpu_read(roan_inside.key);

	if (k && READ_ONCE(k->key) == key && this_cpu_read(roan_inside.dev) == dev)
		return k;
	return roan_key_look_up(dev, key);
}

void roan_key_enter_region(const struct roan_key *k);	/* also this one, of a window that is entered; its lock held */
void roan_key_part(void);
static inline void roan_key_leave(void)
{
	if (!this_cpu_read(roan_inside.stays))
		roan_key_part();
}

static inline void roan_key_stay(void)
{
	this_cpu_write(roan_inside.stays, true);
}

void roan_key_wait_left(const struct roan_key *k);	/* if the caller is inside one, it parts with it */
/* Takes a queue's lock. softirq */
static inline void roan_lock_outside(spinlock_t *lock)
	__acquires(lock)
{
	if (likely(spin_trylock(lock)))
		return;
	roan_key_part();
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
u32 roan_mw_invalidate(struct roan_qp *qp, struct roan_window *win);	/* the same */

/*
 * mr_access.c: bytes between packets and registered memory. Any of our contexts; never sleeps. All return 0 or
 * enum roan_vendor_err (or enum roan_not_yet: not refused, ask again: it is under way, and @qp will be resumed),
 * and touch nothing unless the whole range is allowed. A length of 0 is always allowed, whatever the key. Local: L_Keys
 * of the list's PD, which is the QP's, but that of the SRQ for what was taken from one (of a kernel QP also local_dma_lkey:
 * addresses are kernel virtual). What is read goes into @icrc on its way.
 */
struct roan_sges {
	const struct roan_sge *sge;
	u32 n;
	const struct ib_pd *pd;
};

/* What is placed. In one piece, mostly. */
struct roan_source {
	const u8 *bytes;	/* NULL: in pieces, and */
	const struct sk_buff *skb;	/* ... from its byte @off on */
	u32 off;
};

static inline struct roan_source roan_from_bytes(const void *bytes)
{
	return (struct roan_source) { .bytes = bytes };
}

static inline struct roan_source roan_from_skb(const struct sk_buff *skb, u32 off)
{
	return (struct roan_source) { .skb = skb, .off = off };
}

u32 roan_gather(struct roan_qp *qp, struct roan_sges list, u32 offset, void *to, u32 len, struct roan_icrc *icrc);
u32 roan_scatter(struct roan_qp *qp, struct roan_sges list, u32 offset, struct roan_source from, u32 len);
u32 roan_remote_check(struct roan_qp *qp, u32 rkey, u64 va, u64 len, u32 access);	/* IB_ACCESS_REMOTE_* ... */
u32 roan_remote_write(struct roan_qp *qp, u32 rkey, u64 va, struct roan_source from, u32 len);
u32 roan_remote_read(struct roan_qp *qp, u32 rkey, u64 va, void *to, u32 len, struct roan_icrc *icrc);
u32 roan_remote_atomic(struct roan_qp *qp, const struct roan_pkt *pkt, u64 *orig);	/* CPU-coherent; 8-aligned */
u32 roan_remote_atomic_write(struct roan_qp *qp, u32 rkey, u64 va, u64 value);
u32 roan_remote_flush(struct roan_qp *qp, const struct roan_pkt *pkt);		/* rq.lock held */
/* What caches have of bytes @off to @off + @len, at most ROAN_WRITE_BACK_MOST, of a region's; flush_worker.c's. Softirqs off. */
u32 roan_write_back(struct roan_qp *qp, u32 rkey, u64 off, u32 len);
u64 roan_atomic(u64 *word, const struct roan_pkt *pkt);	/* what @pkt asks for, as the CPU does it; what was there */

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
void roan_bar_forget(struct roan_dev *dev);
struct roan_bar_piece *roan_bar_lend(struct roan_dev *dev, u64 size);	/* NULL: no BAR was named; ERR_PTR */
void roan_bar_return(struct roan_bar_piece *piece);
int roan_bar_region(struct roan_bar_piece *piece, struct roan_mr *mr, u64 off);
void roan_bar_region_end(struct roan_mr *mr);
int roan_bar_copy(const struct roan_bar_piece *piece, u64 off, void __user *user, u64 len, bool write);
int roan_bar_init(void);
void roan_bar_exit(void);

/*
 * peermem_glue.c, and what roan_peermem.ko gives it. claim() fills @mr->io and @mr->peer if [@start, @start + @mr->length) is a
 * client's memory, else it says -EFAULT; from then on the region may be revoked. @pci may be NULL. release() ends it.
 */
struct roan_peer_ops {
	struct module *owner;
	int (*claim)(struct roan_mr *mr, u64 start, struct device *pci);
	void (*release)(struct roan_mr *mr);
};
int roan_peer_ops_set(const struct roan_peer_ops *ops);	/* NULL: no more. -EBUSY: there are some already */
void roan_peer_revoke(struct roan_mr *mr);
struct roan_io *roan_peer_io(u32 n_pieces, u8 shift, u64 off);
int roan_peer_claim(struct roan_mr *mr, u64 start);
void roan_peer_release(struct roan_mr *mr);

/* iomem.c: I/O memory, byte @pos of the region on. Any of our contexts; what was written is on its way when they return. */
struct roan_io *roan_io_alloc(u32 n_pieces, u8 shift, u64 off);
void roan_io_read(const struct roan_io *io, u64 pos, void *to, u32 len);
void roan_io_write(const struct roan_io *io, u64 pos, const void *from, u32 len);
u32 roan_io_write_skb(const struct roan_io *io, u64 pos, const struct sk_buff *skb, u32 off, u32 len);
u32 roan_io_atomic(const struct roan_io *io, u64 pos, const struct roan_pkt *pkt, u64 *orig);
u32 roan_io_atomic_write(const struct roan_io *io, u64 pos, u64 value);

/* ---- odp.c: on-demand paged regions ---- */

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

/* odp_fault.c */

#define ROAN_ABSENT_RNR_TIMER	10	/* AETH code, 0.32 ms: of what could not be kept until its page comes */

/*
 * Has a worker bring [@pos, @pos + @len) in; then @qp is resumed, and tries again. ROAN_VERR_ABSENT; or, if it was asked the
 * same before and the process has nothing there that may be used so, ROAN_VERR_BAD_RANGE, once. The caller is inside the
 * region's key. Any context.
 */
u32 roan_odp_ask(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write);
/* What was asked for was there after all: if it was refused, that is past. */
void roan_odp_had(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write);
void roan_odp_forget(struct roan_qp *qp);	/* nobody will try again */
int roan_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags, struct ib_sge *sges, u32 n,
		   struct uverbs_attr_bundle *attrs);

/* ---- flush_worker.c: FLUSH to persistence ---- */

#define ROAN_WRITE_BACK_MOST	SZ_64K	/* bytes at a time: a thousand lines, with softirqs off */

void roan_write_back_init(struct roan_write_back *wb);
/*
 * A worker is to write back what caches have of [@off, @off + @len) of the region @key. 0: it has; or ROAN_VERR_UNWRITTEN: @qp is
 * resumed when that is done, or cannot be, and the same request is then to be checked and tried again. Any context, rq.lock held.
 */
u32 roan_persist(struct roan_qp *qp, u32 key, u64 off, u64 len);
/* Nobody will try again; a worker at work stops soon. rq.lock held, and a reference of the caller's own. */
void roan_persist_forget(struct roan_qp *qp);
int roan_persist_init(void);
void roan_persist_exit(void);

#endif /* ROAN_MEM_H */
