/* SPDX-License-Identifier: GPL-2.0 */
/* Registered memory of any kind this machine has, for tests that work with every kind. */
#ifndef ROAN_SELFTEST_MEM_H
#define ROAN_SELFTEST_MEM_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem {
	const struct mem_kind *kind;
	struct ibv_mr *mr;
	struct ibv_context *ctx;
	struct ibv_dm *dm;
	uint64_t addr;		/* of the first byte, for SGEs and for the peer */
	size_t len;
	size_t off;		/* of the first byte in the dma-buf */
	uint8_t *p;		/* the first byte, if the program has it mapped */
	void *map;
	size_t map_len;
	bool peer;		/* @map is a mapping of the fake GPU's memory */
	int fd;
	bool odp, shaken, stop;
	pthread_t shaker;
};

/* @kind: a name in mem.c's table. Returns 0 or an errno; ENODEV: this machine has no such memory. */
int mem_get(struct mem *m, struct ibv_pd *pd, const char *kind, size_t len, unsigned int access);
int mem_dereg(struct mem *m);	/* the region only; 0 or an errno */
void mem_put(struct mem *m);	/* frees everything */

/* Access by the owner, without RDMA. */
void mem_write(struct mem *m, size_t off, const void *from, size_t len);
void mem_read(struct mem *m, size_t off, void *to, size_t len);

bool mem_endless(const struct mem *m);	/* true if the region is the whole address space */
int mem_gpu(void);		/* descriptor of the fake GPU, or -1 */
int mem_client_leaves(void);	/* peer: the client unregisters, which invalidates all memory */
int mem_move(struct mem *m);	/* gpu-moves, gpu-migrates, bar-moves, peer: invalidates registered memory */

#endif
