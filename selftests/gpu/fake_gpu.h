/* SPDX-License-Identifier: GPL-2.0 */
/* ioctls of /dev/roan_gpu, the module that acts as a GPU. A dma-buf is named by its file descriptor. */
#ifndef ROAN_FAKE_GPU_H
#define ROAN_FAKE_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum fake_gpu_flags {
	FAKE_GPU_BAR		= 1 << 0,	/* memory of a BAR: the CPU mapping is I/O memory */
	FAKE_GPU_MOVES		= 1 << 1,	/* can move unless an importer pins it */
	FAKE_GPU_UNMAPPABLE	= 1 << 2,	/* no mapping for the CPU */
	FAKE_GPU_FAILS		= 1 << 3,	/* mapping fails */
	FAKE_GPU_ATTACHED	= 1 << 4,	/* with MOVES: attach pins it, and move_notify is never called */
	FAKE_GPU_MIGRATES	= 1 << 5,	/* with MOVES, not BAR: pinning moves it to other pages */
};

struct fake_gpu_export {
	__u64 size;		/* rounded up to pages */
	__u32 flags;		/* enum fake_gpu_flags */
	__s32 fd;		/* out */
};

struct fake_gpu_copy {		/* access by the GPU itself, independent of other mappings */
	__u64 offset;		/* in the dma-buf; with @fd -1 an address in the caller's mapping */
	__u64 len;
	__u64 user;
	__s32 fd;
	__u32 write;
};

/*
 * Moves the buffer: calls move_notify of importers, then fills the old memory with FAKE_GPU_POISON, which must not be
 * accessed any more. EBUSY: it is ATTACHED and pinned.
 */
#define FAKE_GPU_POISON		0xdd

#define FAKE_GPU_EXPORT		_IOWR('R', 1, struct fake_gpu_export)
#define FAKE_GPU_COPY		_IOW('R', 2, struct fake_gpu_copy)
#define FAKE_GPU_MOVE		_IOW('R', 3, __s32)
#define FAKE_GPU_LEAVE		_IO('R', 4)	/* the peer client unregisters and registers again */

#endif /* ROAN_FAKE_GPU_H */
