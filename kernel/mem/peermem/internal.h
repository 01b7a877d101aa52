/* SPDX-License-Identifier: GPL-2.0 */
/* Internal interface of roan_peermem.ko between clients.c (clients) and mr.c (regions of their memory). */
#ifndef ROAN_PEERMEM_INTERNAL_H
#define ROAN_PEERMEM_INTERNAL_H

#include "mem/mem.h"
#include "mem/peermem/client_api.h"

struct peermem_client {
	struct list_head link;			/* in the list of clients; peermem_lock */
	struct list_head regions;		/* peermem_lock */
	const struct peer_memory_client *ops;	/* owned by the client */
	bool unmaps;				/* PEER_MEM_INVALIDATE_UNMAPS */
	bool no_device;				/* PEER_MEM_NO_DEVICE */
	refcount_t refs;			/* a region drops its reference after ops->release() */
	struct completion released;
	struct kobject *dir;
	struct kobj_attribute version;
};

enum peermem_state {
	PEERMEM_NEW,			/* claim in progress: invalidation and unregistration wait for @claimed */
	PEERMEM_ACTIVE,
	PEERMEM_RELEASED,		/* the thread that set it releases the memory */
};

struct roan_peermem_mr {
	refcount_t refs;
	struct peermem_client *client;
	struct roan_mr *mr;		/* valid until @release_done */
	void *context;			/* from the client's acquire() */
	u32 cookie;			/* the core_context of the client: identifies this region */
	bool unmaps;			/* as @client's, which may be gone */
	struct list_head link;		/* client->regions, peermem_lock */
	spinlock_t lock;		/* state */
	enum peermem_state state;
	unsigned long ctx_released;	/* bit 0: ops->release(@context) was called */
	struct completion claimed;	/* ACTIVE, or RELEASED because the claim failed */
	struct completion unmapped;	/* RELEASED, and no CPU accesses the memory */
	struct completion release_done;	/* and the client has its pages back */
	bool got_pages;
	bool mapped;
	struct device *dma_device;	/* NULL if the interface has no PCI device */
	struct sg_table sgt;
	void __iomem **maps;
	u32 n_maps;
};

extern struct mutex peermem_lock;
struct peermem_client *peermem_client_first(void);			/* a reference, or NULL */
struct peermem_client *peermem_client_next(struct peermem_client *client);	/* puts @client */
void peermem_client_put(struct peermem_client *client);

extern const struct roan_peermem_ops peermem_ops;
int peermem_invalidate(void *reg_handle, u64 ticket);
void peermem_reclaim(struct roan_peermem_mr *mem);	/* the client unregisters; the caller has a reference */
void peermem_put(struct roan_peermem_mr *mem);

#endif /* ROAN_PEERMEM_INTERNAL_H */
