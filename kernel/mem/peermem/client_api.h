/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The peer-memory interface, as its clients (nvidia-peermem and others) know it: names, layout and order of calls are
 * theirs. A client says which addresses of a program are its memory, and lends that memory to a network device.
 */
#ifndef ROAN_PEERMEM_CLIENT_API_H
#define ROAN_PEERMEM_CLIENT_API_H

#include <linux/device.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#define IB_PEER_MEMORY_NAME_MAX	64
#define IB_PEER_MEMORY_VER_MAX	16	/* the last byte 1: what is registered is a struct peer_memory_client_ex */

#define PEER_MEM_INVALIDATE_UNMAPS	(1 << 0)	/* after an invalidation the client unmaps and puts by itself */

/* acquire, get_pages, dma_map ... dma_unmap, put_pages, release. acquire answers 1 for an address that is the client's. */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	int (*acquire)(unsigned long addr, size_t size, void *private_data, char *name, void **context);
	int (*get_pages)(unsigned long addr, size_t size, int write, int force, struct sg_table *sg, void *context,
			 u64 core_context);
	int (*dma_map)(struct sg_table *sg, void *context, struct device *dma_device, int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg, void *context, struct device *dma_device);
	void (*put_pages)(struct sg_table *sg, void *context);
	unsigned long (*get_page_size)(void *context);
	void (*release)(void *context);
};

struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;
	u32 flags;
};

/* From get_pages on, at any time; when it returns nobody touches the memory. May sleep. */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

/* @invalidate NULL: the client never takes memory back by itself. NULL: out of memory. */
void *ib_register_peer_memory_client(const struct peer_memory_client *client, invalidate_peer_memory *invalidate);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif /* ROAN_PEERMEM_CLIENT_API_H */
