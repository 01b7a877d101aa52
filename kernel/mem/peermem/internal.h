/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of roan_peermem.ko have for each other: clients, and the regions of their memory. */
#ifndef ROAN_PEERMEM_H
#define ROAN_PEERMEM_H

#include "mem/mem.h"
#include "mem/peermem/client_api.h"

struct peer_client {
	struct list_head link;			/* clients, peermem_lock */
	struct list_head regions;		/* peermem_lock */
	const struct peer_memory_client *ops;	/* the client's own */
	bool unmaps;				/* PEER_MEM_INVALIDATE_UNMAPS */
	refcount_t refs;			/* a region's lasts until the client has its context back */
	struct completion gone;
	struct kobject *dir;
	struct kobj_attribute version;
};

enum peer_state {
	PEER_YOUNG,	/* the client is being asked; what takes it away now only says so */
	PEER_DOOMED,	/* ... it was taken away meanwhile */
	PEER_LEFT,	/* ... the client is about to leave, and has taken nothing away */
	PEER_LIVE,
	PEER_TAKEN,	/* by whoever made it so, who gives the memory back and completes @returned */
};

struct roan_peer_mem {
	refcount_t refs;
	struct peer_client *client;
	struct roan_mr *mr;		/* while it is registered: until @returned, whoever took it */
	void *context;			/* the client's */
	u32 ticket;			/* how the client names us */
	struct list_head link;		/* client->regions, peermem_lock */
	spinlock_t lock;		/* state */
	enum peer_state state;
	unsigned long released;		/* bit 0: the client has its context back */
	struct completion returned;
	bool got_pages;
	bool mapped;
	struct device *dma_device;	/* NULL where the interface is not on PCI */
	struct sg_table sgt;
	void __iomem **maps;
	u32 n_maps;
};

extern struct mutex peermem_lock;
struct peer_client *peer_client_first(void);			/* a reference, or NULL */
struct peer_client *peer_client_next(struct peer_client *client);	/* puts @client */
void peer_client_put(struct peer_client *client);

extern const struct roan_peer_ops peermem_ops;
int peermem_invalidate(void *reg_handle, u64 ticket);
void peermem_take_back(struct roan_peer_mem *mem);	/* the client leaves; the caller has a reference */
void peermem_put(struct roan_peer_mem *mem);

#endif /* ROAN_PEERMEM_H */
