/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of roan_peermem.ko have for each other: clients, and the regions of their memory. */
#ifndef ROAN_PEERMEM_INTERNAL_H
#define ROAN_PEERMEM_INTERNAL_H

#include "mem/mem.h"
#include "mem/peermem/client_api.h"

struct peermem_client {
	struct list_head link;			/* clients, peermem_lock */
	struct list_head regions;		/* peermem_lock */
	const struct peer_memory_client *ops;	/* the client's own */
	bool unmaps;				/* PEER_MEM_INVALIDATE_UNMAPS */
	refcount_t refs;			/* a region's lasts until the client has its context back */
	struct completion released;
	struct kobject *dir;
	struct kobj_attribute version;
};

enum peermem_state {
	PEERMEM_NEW,	/* the client is being asked; what takes it away now only says so */
	PEERMEM_INVALIDATED_EARLY,	/* ... it was taken away meanwhile */
	PEERMEM_CLIENT_GONE,	/* ... the client is about to leave, and has taken nothing away */
	PEERMEM_ACTIVE,
	PEERMEM_RELEASED,	/* by whoever made it so, who gives the memory back and completes @returned */
};

struct roan_peermem_mr {
	refcount_t refs;
	struct peermem_client *client;
	struct roan_mr *mr;		/* while it is registered: until @release_done, whoever took it */
	void *context;			/* the client's */
	u32 cookie;			/* how the client names us */
	struct list_head link;		/* client->regions, peermem_lock */
	spinlock_t lock;		/* state */
	enum peermem_state state;
	unsigned long ctx_released;	/* bit 0: the client has its context back */
	struct completion release_done;
	bool got_pages;
	bool mapped;
	struct device *dma_device;	/* NULL where the interface is not on PCI */
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
void peermem_reclaim(struct roan_peermem_mr *mem);	/* the client leaves; the caller has a reference */
void peermem_put(struct roan_peermem_mr *mem);

#endif /* ROAN_PEERMEM_INTERNAL_H */
