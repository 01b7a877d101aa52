/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types of keys, regions and windows, and of a QP's pending page faults and write-backs. No functions: see mem/mem.h.
 */
#ifndef ROAN_MEM_TYPES_H
#define ROAN_MEM_TYPES_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct roan_dmabuf;
struct roan_odp;
struct roan_peermem_ops;
struct roan_user;

/*
 * The object that an L_Key or R_Key names. Part of a region's or window's own allocation, which is RCU-freed. The
 * packet path holds it through a per-CPU hazard pointer while it accesses the memory; other users have a reference.
 * Removal waits for both: after dereg_mr() no CPU accesses the memory.
 */
struct roan_key {
	refcount_t refs;	/* 1 until removed, plus one per bound window, worker, and WR on the key itself */
	bool is_mw;
	u32 key;		/* index << 8 | variant; REG_MR and bind change the variant of FRMRs and windows */
	struct rhash_head node;	/* roan_dev.keys */
	struct completion released;	/* the last reference was dropped */
	struct roan_user *user;	/* whose share it counts against, set before it is inserted; NULL: none */
	struct rcu_head rcu;
};

enum roan_mr_kind { ROAN_MR_DMA, ROAN_MR_USER, ROAN_MR_FAST, ROAN_MR_DMABUF, ROAN_MR_DM, ROAN_MR_PEERMEM, ROAN_MR_ODP };
enum roan_mr_state { ROAN_MR_FREE, ROAN_MR_VALID, ROAN_MR_DEAD, ROAN_MR_REVOKED };

/*
 * A region of I/O memory: pieces of equal size, each with its own mapping. Const while the region is valid; kvfree().
 */
struct roan_iomem {
	u64 off;		/* bytes: offset of the region's first byte in piece[0] */
	u32 n;			/* number of pieces */
	u8  shift;		/* log 2 of the bytes of a piece */
	void __iomem *piece[];
};

/* Physical buffer list of an FRMR: blocks of ib_mr.page_size bytes. Const while the region is valid; kvfree(). */
struct roan_pbl {
	u64 length;		/* bytes of the region */
	u32 off;		/* bytes: offset of the region's first byte in block[0] */
	u32 n;			/* number of blocks */
	u8  shift;		/* log 2 of the bytes of a block */
	void *block[];		/* kernel virtual, like all DMA addresses of a device without DMA; each is contiguous */
};

struct roan_mr {
	struct ib_mr ib;
	struct roan_key key;
	u8  kind;		/* enum roan_mr_kind */
	u8  state;		/* enum roan_mr_state; FREE: an FRMR before REG_MR or invalidated. READ/WRITE_ONCE */
	u32 access;		/* enum ib_access_flags, optional bits masked off */
	u64 iova;		/* address of the first byte in packets and SGEs: @ib.iova, or 0 if zero-based */
	u64 length;		/* bytes */
	/*
	 * Location of the bytes: @pages, @pbl, @io or @odp. If all four are NULL: contiguous kernel virtual memory at
	 * @vaddr.
	 */
	u32 page_off;		/* bytes: offset of the first byte in pages[0] */
	u32 n_pages;		/* number of @pages, or of blocks of @pbl */
	struct page **pages;
	struct roan_pbl *pbl;	/* FAST: the list of the last REG_MR */
	struct roan_iomem *io;
	struct roan_odp *odp;
	void *vaddr;		/* NULL for DMA, whose addresses are kernel virtual */
	union {			/* the owner of the memory */
		struct ib_umem *umem;		/* USER */
		struct roan_dmabuf *dmabuf;	/* DMABUF */
		struct roan_peermem_mr *peermem;	/* PEERMEM */
		struct roan_dm_bar_mr *bar_region;	/* DM, if allocated from a BAR */
	};
	const struct roan_peermem_ops *peermem_ops;	/* PEERMEM */
	/* FAST: roan_map_mr_sg() fills it, also while the region is valid; REG_MR swaps it with @pbl if @next_valid */
	struct roan_pbl *pbl_next;
	u32 max_blocks;		/* FAST: capacity of either list */
	bool next_valid;
	spinlock_t map_lock;	/* FAST: both pointers, next_valid, FREE to VALID and back; _irqsave, leaf */
	atomic_t n_mws;		/* bound windows; dereg returns EBUSY while there are any. Negative: no new binds */
};

/* State of a memory window. Own allocation, RCU-freed: see struct roan_key. */
struct roan_mw_binding {
	struct roan_key key;
	struct ib_pd *pd;
	u8  type;		/* enum ib_mw_type */
	bool valid;
	bool destroying;	/* being deallocated: binds fail */
	u32 access;
	u64 addr;		/* address of the first byte in packets; 0 if the window is zero-based */
	u64 length;		/* bytes */
	u64 mr_off;		/* bytes: offset of the first byte in the region */
	u32 qpn;		/* type 2B: the QP it is bound to */
	struct roan_mr *mr;	/* its key is referenced while bound */
	spinlock_t lock;	/* all of the above; _bh, leaf */
};

struct roan_mw {
	struct ib_mw ib;
	struct roan_mw_binding *win;
};

/* What a QP's faults of one kind have accessed in sequence, with what was prefetched behind them. */
struct roan_fault_run {
	u32 key;	/* of the region */
	u64 start;	/* bytes: offset in the region */
	u64 end;
};

/* Page faults of a QP: pending, or failed and not yet reported to the retried request. */
struct roan_fault_list {
	struct roan_qp *qp;	/* const */
	spinlock_t lock;	/* _bh; only share->lock is taken under it */
	u32 n;
	struct list_head list;
	struct roan_fault_run run[2];	/* [1]: faults for writing */
	struct timer_list retry;	/* no memory for a fault: resumes the QP; holds a QP reference while pending */
};

/* What workers do for on-demand regions. */
enum roan_odp_job {
	ROAN_ODP_FAULT,
	ROAN_ODP_PREFETCH,	/* ibv_advise_mr() */
	ROAN_ODP_READ_AHEAD,	/* behind the range of a fault */
	ROAN_ODP_JOBS
};

/*
 * One user's part, on one device, of what on-demand paging shares among all users: workers, queued prefetches, bytes of
 * packets that wait (flow_types.h). A page fault may last for ever, as the user may supply the page. It is counted here
 * until it ends, also when its region, QP and context are gone. In struct roan_user
 */
struct roan_odp_share {
	atomic_t rxq_bytes;		/* rx/rx_kept.c */
	spinlock_t lock;		/* _bh, leaf: all below, odp_fault.qp, roan_odp.faults */
	struct list_head waiting[ROAN_ODP_JOBS];	/* odp_fault.queue, first come first served */
	u32 n_waiting[ROAN_ODP_JOBS];
	u32 n_running[ROAN_ODP_JOBS];
};

/* Write-back for a FLUSH to persistence; one per QP, under rq.lock. */
struct roan_flush_job {
	struct work_struct work;
	u32 key;		/* R_Key of the region */
	u64 off;		/* bytes: offset of the range in the region */
	u64 len;		/* bytes */
	u64 done_bytes;		/* bytes written back so far; only the worker accesses it while @busy */
	bool busy;		/* queued or running */
	bool wanted;		/* false: the worker stops early. Read without the lock */
	bool done;		/* complete; cleared when the FLUSH request is retried */
};

#endif /* ROAN_MEM_TYPES_H */
