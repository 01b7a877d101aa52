/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The peer-memory interface between RDMA drivers and clients (nvidia-peermem and others). Existing clients define its
 * names, layouts and the order of calls, so nothing here may change. A client identifies the addresses of a program
 * that are its memory and maps that memory for a network device.
 */
#ifndef ROAN_PEERMEM_CLIENT_API_H
#define ROAN_PEERMEM_CLIENT_API_H

#include <linux/bits.h>
#include <linux/device.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#define IB_PEER_MEMORY_NAME_MAX	64
#define IB_PEER_MEMORY_VER_MAX	16	/* last byte 1: the client is a struct peer_memory_client_ex */

/* After an invalidation the client itself does what dma_unmap() and put_pages() would do. */
#define PEER_MEM_INVALIDATE_UNMAPS	BIT(0)
/*
 * Known to roan only: dma_map() and dma_unmap() may be called without a device. Other clients take @dma_device for part
 * of a struct pci_dev without looking at it.
 */
#define PEER_MEM_NO_DEVICE		BIT(31)

/*
 * Order of calls: acquire, get_pages, dma_map ... dma_unmap, put_pages, release. acquire returns 1 if the address is
 * the client's.
 */
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

/* The client may call it at any time after get_pages. When it returns, no CPU accesses the memory. May sleep. */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

/*
 * @invalidate returns the function that revokes a region; NULL: the client never revokes memory. Returns a handle, or
 * NULL if a callback is missing or memory is short.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *client, invalidate_peer_memory *invalidate);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif /* ROAN_PEERMEM_CLIENT_API_H */
