/* SPDX-License-Identifier: GPL-2.0 */
/* What programs say to /dev/roan_gpu, the module that plays a GPU. A dma-buf is named by its descriptor. */
#ifndef ROAN_FAKE_GPU_H
#define ROAN_FAKE_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum fake_gpu_flags {
	FAKE_GPU_BAR		= 1 << 0,	/* the memory is behind a bus: a dma-buf's mapping is I/O memory */
	FAKE_GPU_MOVES		= 1 << 1,	/* not pinned unless an importer pins it */
	FAKE_GPU_UNMAPPABLE	= 1 << 2,	/* no mapping for the CPU */
	FAKE_GPU_FAILS		= 1 << 3,	/* mapping fails */
	FAKE_GPU_ATTACHED	= 1 << 4,	/* with MOVES: it is attaching that pins, and importers are never told of moves */
	FAKE_GPU_MIGRATES	= 1 << 5,	/* with MOVES, not BAR: it is pinned elsewhere than it was */
};

struct fake_gpu_export {
	__u64 size;		/* rounded up to pages */
	__u32 flags;		/* enum fake_gpu_flags */
	__s32 fd;		/* out */
};

struct fake_gpu_copy {		/* by the GPU's own hands, whoever else has it mapped */
	__u64 offset;		/* in the dma-buf; an address of the caller's mapping if there is none, @fd -1 */
	__u64 len;
	__u64 user;
	__s32 fd;
	__u32 write;
};

/*
 * Importers are told that it moves; then its old place is filled with FAKE_GPU_POISON, which nobody may touch. EBUSY: it is
 * ATTACHED, and somebody has it pinned.
 */
#define FAKE_GPU_POISON		0xdd

#define FAKE_GPU_EXPORT		_IOWR('R', 1, struct fake_gpu_export)
#define FAKE_GPU_COPY		_IOW('R', 2, struct fake_gpu_copy)
#define FAKE_GPU_MOVE		_IOW('R', 3, __s32)
#define FAKE_GPU_LEAVE		_IO('R', 4)	/* the peer client goes, and comes back */

#endif /* ROAN_FAKE_GPU_H */
