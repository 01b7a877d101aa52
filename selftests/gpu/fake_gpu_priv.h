/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations shared by the files of the fake GPU. */
#ifndef ROAN_FAKE_GPU_PRIV_H
#define ROAN_FAKE_GPU_PRIV_H

#include <linux/fs.h>
#include <linux/types.h>
#include "fake_gpu.h"

/* Names that differ between kernels; kernel/compat/probe.sh looks for them. */
#ifndef HAVE_VM_FLAGS_SET
#define vm_flags_set(vma, flags)	((vma)->vm_flags |= (flags))
#endif
#ifdef HAVE_DMABUF_INVALIDATE
#define dma_buf_move_notify		dma_buf_invalidate_mappings
#endif

#define FAKE_CHUNK	65536ull	/* allocation unit of the BAR, and page size of peer memory */

/* fake_gpu.c: the BAR */
int fake_chunks_get(u32 n, u32 *first);
void fake_chunks_put(u32 first, u32 n);
phys_addr_t fake_bar_bus(u32 chunk);

/* fake_peer.c */
int fake_peer_init(void);
void fake_peer_exit(void);
int fake_peer_leave(void);
int fake_peer_mmap(struct file *file, struct vm_area_struct *vma);
int fake_peer_copy(const struct fake_gpu_copy *ask, void *bounce);	/* @ask->offset: in the caller's mapping */

#endif /* ROAN_FAKE_GPU_PRIV_H */
