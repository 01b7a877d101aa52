/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys, regions and windows, and what a QP remembers of page faults. Only types: mem/mem.h has the functions.
 */
#ifndef ROAN_MEM_TYPES_H
#define ROAN_MEM_TYPES_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct roan_dmabuf;
struct roan_odp;
struct roan_peermem_ops;

/*
 * What an L_Key or R_Key names. Own allocation, RCU-freed. Packets are inside it for as long as they touch what it names,
 * others have a reference; whoever takes the key away waits for both: after dereg_mr() nothing touches the memory.
 */
struct roan_key {
	refcount_t refs;	/* its own; of windows bound to it, of workers, of work requests that concern the key itself */
	bool is_mw;
	u32 key;		/* index << 8 | variant; the variant of FRMRs and windows changes */
	struct completion released;
	struct rcu_head rcu;
};

enum roan_mr_kind { ROAN_MR_DMA, ROAN_MR_USER, ROAN_MR_FAST, ROAN_MR_DMABUF, ROAN_MR_DM, ROAN_MR_PEERMEM, ROAN_MR_ODP };
enum roan_mr_state { ROAN_MR_FREE, ROAN_MR_VALID, ROAN_MR_DEAD, ROAN_MR_REVOKED };

/* A region of I/O memory: equal pieces, each mapped for itself. Const while the region is valid; kvfree(). */
struct roan_iomem {
	u64 off;		/* of the region's first byte in piece[0] */
	u32 n;			/* pieces */
	u8  shift;		/* bytes of a piece, log 2 */
	void __iomem *piece[];
};

/* What a consumer mapped into a fast region: blocks of the size it named. Const while the region is valid; kvfree(). */
struct roan_pbl {
	u64 length;		/* bytes of the region */
	u32 off;		/* of its first byte in block[0] */
	u32 n;			/* blocks */
	u8  shift;		/* bytes of a block, log 2 */
	void *block[];		/* kernel virtual, as "DMA addresses" of a device without DMA are: contiguous */
};

struct roan_mr {
	struct ib_mr ib;
	struct roan_key key;
	u8  kind;		/* enum roan_mr_kind */
	u8  state;		/* enum roan_mr_state; FREE: fast-register not (or no longer) in force. READ/WRITE_ONCE */
	u32 access;		/* enum ib_access_flags, optional bits masked off */
	u64 iova;		/* first byte, as the peer or an SGE names it: @ib.iova, or 0 of a zero-based region */
	u64 length;		/* bytes */
	/*
	 * Where the bytes are: in @pages, @pbl, @io or @odp; or, all NULL, from @vaddr on, contiguous kernel virtual
	 * memory.
	 */
	u32 page_off;		/* of the first byte in pages[0] */
	u32 n_pages;		/* or blocks of @pbl */
	struct page **pages;
	struct roan_pbl *pbl;	/* FAST: the one in force, or the last that was */
	struct roan_iomem *io;
	struct roan_odp *odp;
	void *vaddr;		/* NULL for DMA, whose addresses are kernel virtual */
	union {			/* who lent them */
		struct ib_umem *umem;		/* USER */
		struct roan_dmabuf *dmabuf;	/* DMABUF */
		struct roan_peermem_mr *peermem;	/* PEER */
		struct roan_dm_bar_mr *bar_region;	/* DM, if it is a BAR's */
	};
	const struct roan_peermem_ops *peermem_ops;	/* PEER */
	/* FAST: where a consumer maps, whatever is in force; REG_MR takes it if @next_valid */
	struct roan_pbl *pbl_next;
	u32 max_blocks;		/* FAST: of either list */
	bool next_valid;
	spinlock_t map_lock;	/* FAST: list, next, mapped, becoming valid; _irqsave, leaf */
	atomic_t n_mws;		/* bound to it; dereg says EBUSY while any is */
};

/* A bound memory window. Own allocation, as struct roan_key says. */
struct roan_mw_binding {
	struct roan_key key;
	struct ib_pd *pd;
	u8  type;		/* enum ib_mw_type */
	bool valid;
	bool destroying;	/* being deallocated: not to be bound again */
	u32 access;
	u64 addr;		/* first byte, as the peer names it; 0 if the window is zero-based */
	u64 length;
	u64 mr_off;		/* where that is: bytes from the region's first */
	u32 qpn;		/* type 2B: the QP it is bound to */
	struct roan_mr *mr;	/* referenced while bound */
	spinlock_t lock;	/* all of the above; _bh, leaf */
};

struct roan_mw {
	struct ib_mw ib;
	struct roan_mw_binding *win;
};

/* What a QP has asked for: on its way, or refused and not told yet. */
struct roan_fault_list {
	spinlock_t lock;	/* _bh, leaf */
	struct list_head list;
	u32 n;
};

/* Of a QP, under rq.lock. */
struct roan_flush_job {
	struct work_struct work;
	u32 key;		/* the region's */
	u64 off;		/* bytes from its first */
	u64 len;
	u64 done_bytes;		/* the worker's: how much has been written back */
	bool busy;
	bool wanted;		/* or else the worker may stop */
	bool done;		/* and the request that it was for has not been tried again */
};

#endif /* ROAN_MEM_TYPES_H */
