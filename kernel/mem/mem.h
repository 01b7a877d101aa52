/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mem: memory keys, regions and windows, and the copies between packets and registered memory.
 * Decides which memory a key names, which QP may access it and how, and how a page fault is resolved.
 * Does not decide what a packet means, its PSN, or what the requester and responder do about an error or a page fault.
 * Locks: spinlocks (win->lock, mr->map_lock and those of each file) are leaves, but share->lock is taken under
 * qp->faults->lock; mutexes stay inside mem/.
 * Contexts: checks and copies run in softirq or process context and never sleep; (de)registration is process context.
 */
#ifndef ROAN_MEM_H
#define ROAN_MEM_H

#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <rdma/roan-abi.h>
#include "mem/payload.h"
#include "roan.h"

#define ROAN_ACCESS_REMOTE	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define ROAN_ACCESS_SUPPORTED	(ROAN_ACCESS_REMOTE | IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND |		\
				 IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT)
#define ROAN_ACCESS_USER	(ROAN_ACCESS_SUPPORTED | IB_ZERO_BASED)	/* of a process's memory */

struct device;
struct device_attribute;
struct module;
struct roan_icrc;
struct roan_pkt;
struct uapi_definition;
struct uverbs_attr_bundle;

/*
 * Further return values of the functions below that return 0 or enum roan_vendor_err. They are no errors: the request
 * is executed again when the QP resumes. The ABI does not define these values, because no completion carries them.
 */
enum roan_not_yet {
	ROAN_VERR_PENDING	= 1 << 16,	/* on-demand paging: a page is not present, page fault pending */
	ROAN_VERR_UNWRITTEN,			/* the write-back for a FLUSH to persistence is not complete */
};

/* ---- keys, regions, windows: key.c, mr.c, mw.c ---- */

/* key.c; the functions before roan_key_acquire(): process context */
int roan_key_table_init(struct roan_dev *dev);
void roan_key_table_exit(struct roan_dev *dev);	/* all keys have been removed */
/*
 * Sets k->key to a random value. -ENOMEM: also if the device or k->user has all keys that it may have. @k is not freed
 * before an RCU grace period after its removal.
 */
int roan_key_insert(struct roan_dev *dev, struct roan_key *k);
void roan_key_unpublish(struct roan_dev *dev, struct roan_key *k);	/* no lookup finds the key any more */
void roan_key_remove(struct roan_dev *dev, struct roan_key *k);	/* unpublishes, and waits for all users of the key */
/*
 * Hazard pointer: the key that this CPU holds. roan_key_acquire() returns the key whose 32 bits equal @key, or NULL.
 * The caller then checks that the MR or window is valid. An invalidator clears the valid state and calls
 * roan_key_synchronize(): after that no CPU uses the key. Softirqs are off from roan_key_acquire() to
 * roan_key_release(); a CPU holds one key at a time.
 *
 * Most packets of a train access the same memory. roan_key_hold() keeps the hazard pointer set after
 * roan_key_release(), so that the next packet to the same key skips the lookup. roan_key_drop() clears it. While it
 * is set, do not block on a queue lock, because its holder may wait in roan_key_synchronize(): use
 * roan_queue_lock_drop_key(). The longest wait in roan_key_synchronize() is therefore one train of packets, or one
 * write-back of 64 KiB to persistent memory (flush_worker.c).
 */
struct roan_key_hazard {
	struct roan_key *key;		/* the key that was looked up; NULL: none held */
	const struct roan_key *mr_key;	/* @key is a window's: the key of the region it is bound to */
	const struct roan_dev *dev;	/* the device of @key */
	bool keep_held;			/* roan_key_hold(): roan_key_release() does not clear @key */
#ifdef CONFIG_PREEMPT_RT
	spinlock_t busy;		/* locked while this CPU holds a key: key.c */
#endif
};
DECLARE_PER_CPU_ALIGNED(struct roan_key_hazard, roan_key_hazard);

/* roan_key_acquire() of a key that this CPU does not hold yet */
struct roan_key *roan_key_acquire_slow(struct roan_dev *dev, u32 key);
static inline struct roan_key *roan_key_acquire(struct roan_dev *dev, u32 key)
{
	struct roan_key *k = this_cpu_read(roan_key_hazard.key);

	if (k && READ_ONCE(k->key) == key && this_cpu_read(roan_key_hazard.dev) == dev)
		return k;
	return roan_key_acquire_slow(dev, key);
}

/* The held key is a window's: also hold @k, the key of its region. win->lock held. */
void roan_key_acquire_mr(const struct roan_key *k);
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

/* Waits until no CPU holds @k; first drops the key that the caller holds. */
void roan_key_synchronize(const struct roan_key *k);
/* Takes a queue lock; drops the held key if the lock is contended. softirq */
static inline void roan_queue_lock_drop_key(spinlock_t *lock)
	__acquires(lock)
{
	if (likely(spin_trylock(lock)))
		return;
	roan_key_drop();
	spin_lock(lock);
}

/* These two return a reference, which roan_key_put() drops, or NULL. */
struct roan_key *roan_key_find(struct roan_dev *dev, u32 key);	/* matches all 32 bits */
struct roan_key *roan_key_find_index(struct roan_dev *dev, u32 key);	/* ignores the 8 variant bits */
void roan_key_put(struct roan_key *k);

/* The address of a region's first byte in requests; @iova: the address given at registration. */
static inline u64 roan_mr_first(u64 iova, int access)
{
	return access & IB_ZERO_BASED ? 0 : iova;
}

/* mr.c */
struct roan_mr *roan_mr_alloc(struct ib_pd *pd, enum roan_mr_kind kind);	/* ERR_PTR */
/* Last step of every registration: publishes the key. With @err set it releases the memory and frees @mr; ERR_PTR. */
struct ib_mr *roan_mr_finish(struct roan_mr *mr, int err);
void roan_mr_trace(const struct roan_mr *mr, int err);	/* mr_trace.c: the region was registered, or failed */
int roan_mr_check_range(u64 start, u64 length, u64 iova);	/* 0 or -EINVAL */
struct ib_mr *roan_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *roan_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata);
struct ib_mr *roan_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
				 struct ib_pd *pd, struct ib_udata *udata);
struct ib_mr *roan_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg);
int roan_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int n, unsigned int *offset);
int roan_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
/*
 * Marks the region revoked; the key stays until dereg_mr(). When this returns, no CPU accesses the memory. Sleeps for
 * an RCU grace period, which covers all accesses because they run with softirqs off. Takes no lock.
 */
void roan_mr_revoke(struct roan_mr *mr);
/* For many regions: the caller waits for the grace period after the last one. */
void roan_mr_begin_revoke(struct roan_mr *mr);
/*
 * Work requests; softirq or process context, sq.lock held unless noted. Return 0 or enum roan_vendor_err. When an
 * invalidation returns 0, no CPU accesses the memory through that key. Nor does one through the old key of a window
 * when roan_mw_bind() returns 0.
 */
u32 roan_mr_reg(struct roan_qp *qp, const struct roan_send_wqe *wqe);
u32 roan_key_invalidate_local(struct roan_qp *qp, u32 key);
u32 roan_key_invalidate_remote(struct roan_qp *qp, u32 rkey);	/* rq.lock held */

/* mw.c */
int roan_alloc_mw(struct ib_mw *mw, struct ib_udata *udata);
int roan_dealloc_mw(struct ib_mw *mw);
u32 roan_mw_bind(struct roan_qp *qp, const struct roan_send_wqe *wqe);	/* 0 or enum roan_vendor_err */
u32 roan_mw_invalidate(struct roan_qp *qp, struct roan_mw_binding *win, u32 key);	/* 0 or enum roan_vendor_err */

/*
 * mr_access.c: copies between packets and registered memory. Softirq or process context; never sleeps. All return 0,
 * enum roan_vendor_err, or enum roan_not_yet (retry when @qp resumes), and access nothing unless the whole range is
 * allowed. A length of 0 is always allowed, for any key. Local access: L_Keys of @list.pd, which is the QP's PD, or
 * the SRQ's PD for a receive taken from an SRQ. A kernel QP may also use local_dma_lkey, whose addresses are kernel
 * virtual. Bytes that are read are added to @icrc.
 */
struct roan_sge_list {
	const struct roan_sge *sge;
	u32 n;
	const struct ib_pd *pd;
	bool response;		/* the target of a response: see roan_odp_response_waits() */
};

u32 roan_gather(struct roan_qp *qp, struct roan_sge_list list, u32 offset, void *to, u32 len, struct roan_icrc *icrc);
u32 roan_scatter(struct roan_qp *qp, struct roan_sge_list list, u32 offset, struct roan_payload from, u32 len);
u32 roan_remote_check(struct roan_qp *qp, u32 rkey, u64 va, u64 len, u32 access);	/* IB_ACCESS_REMOTE_* ... */
u32 roan_remote_write(struct roan_qp *qp, u32 rkey, u64 va, struct roan_payload from, u32 len);
u32 roan_remote_read(struct roan_qp *qp, u32 rkey, u64 va, void *to, u32 len, struct roan_icrc *icrc);
/* An atomic or ATOMIC_WRITE: CPU-coherent; 8-aligned. @orig: as roan_atomic_execute() */
u32 roan_remote_atomic(struct roan_qp *qp, const struct roan_pkt *pkt, u64 *orig);
u32 roan_remote_flush(struct roan_qp *qp, const struct roan_pkt *pkt);		/* rq.lock held */
/* Writes back the cache lines of [@off, @off + @len) of a region; @len <= ROAN_WRITE_BACK_MAX. Softirqs off. */
u32 roan_mr_write_back(struct roan_qp *qp, u32 rkey, u64 off, u32 len);
/* Executes the atomic or ATOMIC_WRITE of @pkt with a CPU instruction; returns the old value, of ATOMIC_WRITE 0. */
u64 roan_atomic_execute(u64 *word, const struct roan_pkt *pkt);

/* dmabuf.c */
struct ib_mr *roan_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd, int access);
void roan_dmabuf_release(struct roan_mr *mr);	/* @mr has no key: removed, or not inserted yet */
struct device *roan_pci_parent(const struct roan_dev *dev);	/* the interface's PCI device, or NULL */
int roan_dmabuf_init(void);
void roan_dmabuf_exit(void);

/* dm.c */
extern struct device_attribute dev_attr_dm_limit;
void roan_dm_init(struct roan_dev *dev);
struct ib_dm *roan_alloc_dm(struct ib_device *dev, struct ib_ucontext *uctx, struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int roan_dealloc_dm(struct ib_dm *dm, struct uverbs_attr_bundle *attrs);
struct ib_mr *roan_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm, struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs);
extern const struct uapi_definition roan_dm_defs[];

/* dm_export.c: the file of a new dma-buf of @map, or ERR_PTR. Process context */
struct file *roan_dm_export(struct roan_mmap *map);

/* dm_bar.c: device memory from a PCI device's BAR. Process context. */
extern struct device_attribute dev_attr_dm_bar;
void roan_dm_bar_detach(struct roan_dev *dev);
struct roan_dm_bar_mem *roan_dm_bar_alloc(struct roan_dev *dev, u64 size);	/* NULL: no BAR configured; ERR_PTR */
void roan_dm_bar_free(struct roan_dm_bar_mem *piece);
int roan_dm_bar_reg_mr(struct roan_dm_bar_mem *piece, struct roan_mr *mr, u64 off);
void roan_dm_bar_dereg_mr(struct roan_mr *mr);	/* @mr has no key: removed, or not inserted yet */
int roan_dm_bar_copy(const struct roan_dm_bar_mem *piece, u64 off, void __user *user, u64 len, bool write);
int roan_dm_bar_init(void);
void roan_dm_bar_exit(void);

/*
 * peermem_glue.c, and the functions that roan_peermem.ko registers with it. claim() fills @mr->io and @mr->peermem if
 * [@start, @start + @mr->length) is a client's memory, else it returns -EFAULT. From a successful claim() to
 * release() the client may revoke the region. @pci may be NULL; then -EOPNOTSUPP, if the client needs a device.
 */
struct roan_peermem_ops {
	struct module *owner;
	int (*claim)(struct roan_mr *mr, u64 start, struct device *pci);
	void (*release)(struct roan_mr *mr);
};

int roan_peermem_ops_set(const struct roan_peermem_ops *ops);	/* NULL: unregister. -EBUSY: already registered */
void roan_peermem_revoke(struct roan_mr *mr);
struct roan_iomem *roan_peermem_iomem_alloc(u32 n_pieces, u8 shift, u64 off);
int roan_peermem_claim(struct roan_mr *mr, u64 start);
void roan_peermem_release(struct roan_mr *mr);

/*
 * iomem.c: I/O memory, from byte @pos of the region on. Softirq or process context. When a write returns, its bytes
 * have left the CPU's write-combining buffers.
 */
struct roan_iomem *roan_iomem_alloc(u32 n_pieces, u8 shift, u64 off);
void roan_iomem_read(const struct roan_iomem *io, u64 pos, void *to, u32 len);
u32 roan_iomem_write(const struct roan_iomem *io, u64 pos, struct roan_payload from, u32 len);
u32 roan_iomem_atomic(const struct roan_iomem *io, u64 pos, const struct roan_pkt *pkt, u64 *orig);

/* ---- odp.c: on-demand paged regions ---- */

int roan_odp_init(void);
void roan_odp_exit(void);
extern const struct ib_odp_caps roan_odp_caps;	/* what works with on-demand memory */

/*
 * Registers a region of the current process's memory; ERR_PTR. @start 0 with @length U64_MAX: implicit region, the
 * whole address space including later mappings.
 */
struct ib_mr *roan_odp_reg_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata);
/* Call after the last reference to the region's key was dropped. Sleeps. */
void roan_odp_destroy(struct roan_odp *odp);

/*
 * Accesses from byte @pos of the region on. Return 0; ROAN_VERR_PENDING: a page is not present for this access, bytes
 * of the pages before it may have been copied, and the caller requests a fault; ROAN_VERR_BAD_RANGE: the range is
 * outside the address space, or the process has exited. Softirq or process context.
 */
u32 roan_odp_read(struct roan_odp *odp, u64 pos, void *to, u32 len);
u32 roan_odp_write(struct roan_odp *odp, u64 pos, struct roan_payload from, u32 len);
u32 roan_odp_atomic(struct roan_odp *odp, u64 pos, const struct roan_pkt *pkt, u64 *orig);

/* odp_fault.c */

#define ROAN_FAULT_RNR_TIMER	10	/* AETH code, 0.32 ms: a request found no space to wait for its page */

/*
 * Queues a page fault on [@pos, @pos + @len) to a worker; @qp resumes afterwards and retries the access. Returns
 * ROAN_VERR_PENDING; or ROAN_VERR_BAD_RANGE, once, if the same fault of @qp was queued before and failed. The caller
 * holds the region's key. @response: sq.lock held, the range is the target of a response. Softirq or process context.
 */
u32 roan_odp_request_fault(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write, bool response);
/* A fault requested for a @response has not ended yet. sq.lock held */
bool roan_odp_response_waits(struct roan_qp *qp);
/* The access succeeded: deletes the record of an earlier failed fault of the same range. */
void roan_odp_fault_done(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write);
struct roan_fault_list *roan_fault_list_alloc(struct roan_qp *qp);	/* kfree() it; NULL: no memory */
void roan_odp_cancel(struct roan_qp *qp);	/* @qp retries no access: drops the references of its faults */

/* odp_advise.c */
int roan_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags, struct ib_sge *sges, u32 n,
		   struct uverbs_attr_bundle *attrs);

/* ---- flush_worker.c: FLUSH to persistence ---- */

#define ROAN_WRITE_BACK_MAX	SZ_64K	/* bytes per call: 1024 cache lines, with softirqs off */

void roan_flush_job_init(struct roan_flush_job *wb);
/*
 * Queues the write-back of [@off, @off + @len) of the region @key to a worker. Returns ROAN_VERR_UNWRITTEN: @qp
 * resumes when the worker finishes or fails, and the caller then checks and retries the same request. Returns 0 if
 * the worker has finished this range. Softirq or process context, rq.lock held.
 */
u32 roan_flush_job_start(struct roan_qp *qp, u32 key, u64 off, u64 len);
/* The request will not be retried: a running worker stops soon. rq.lock held; the caller has its own QP reference. */
void roan_flush_job_cancel(struct roan_qp *qp);
int roan_flush_worker_init(void);
void roan_flush_worker_exit(void);

#endif /* ROAN_MEM_H */
