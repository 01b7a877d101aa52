// SPDX-License-Identifier: GPL-2.0
/*
 * Copies from and to I/O memory: memory behind a bus, without struct pages, accessed through I/O accessors. Does not
 * check access rights (mr_access.c) and does not obtain the memory (dmabuf.c, dm_bar.c, peermem/mr.c).
 *
 * Writes leave the CPU's write-combining buffers before the functions return. Reads are slow unless the CPU fetches
 * whole lines of a write-combined mapping. That needs MOVNTDQA, which compilers do not emit by themselves.
 */
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include "mem/mem.h"

#if IS_ENABLED(CONFIG_X86_64) && !IS_ENABLED(CONFIG_UML)
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

#define LINE	64u

/* Copies the whole 64-byte lines of [@from, @from + @len); returns the number of bytes. @from is 16-byte aligned. */
static u32 iomem_stream(void *to, const void __iomem *from, u32 len)
{
	const u8 *at = (const u8 __force *)from;
	u32 left;

	if (len < LINE || !boot_cpu_has(X86_FEATURE_XMM4_1) || !irq_fpu_usable())
		return 0;
	kernel_fpu_begin();
	for (left = len; left >= LINE; left -= LINE, at += LINE, to += LINE)
		asm volatile("movntdqa   (%0), %%xmm0\n"
			     "movntdqa 16(%0), %%xmm1\n"
			     "movntdqa 32(%0), %%xmm2\n"
			     "movntdqa 48(%0), %%xmm3\n"
			     "movdqu %%xmm0,   (%1)\n"
			     "movdqu %%xmm1, 16(%1)\n"
			     "movdqu %%xmm2, 32(%1)\n"
			     "movdqu %%xmm3, 48(%1)\n"
			     : : "r" (at), "r" (to) : "memory");
	kernel_fpu_end();
	return len - left;
}
#else
static u32 iomem_stream(void *to, const void __iomem *from, u32 len)
{
	return 0;
}
#endif

static void iomem_read_chunk(void *to, const void __iomem *from, u32 len)
{
	u32 head = min_t(u32, len, -(uintptr_t)from & 15);
	u32 done;

	memcpy_fromio(to, from, head);
	done = head + iomem_stream(to + head, from + head, len - head);
	memcpy_fromio(to + done, from + done, len - done);
}

/* Address of byte @pos of the region; *@run: contiguous bytes from there, at most @len. */
static void __iomem *iomem_at(const struct roan_iomem *io, u64 pos, u32 len, u32 *run)
{
	u64 size = 1ull << io->shift;
	u64 in_piece;

	pos += io->off;
	in_piece = pos & (size - 1);
	*run = min_t(u64, len, size - in_piece);
	return io->piece[pos >> io->shift] + in_piece;
}

void roan_iomem_read(const struct roan_iomem *io, u64 pos, void *to, u32 len)
{
	u32 run;

	for (; len; len -= run, pos += run, to += run) {
		const void __iomem *from = iomem_at(io, pos, len, &run);

		iomem_read_chunk(to, from, run);
	}
}

u32 roan_iomem_write(const struct roan_iomem *io, u64 pos, struct roan_payload from, u32 len)
{
	u8 bounce[256];
	u32 run;

	for (; len; len -= run, pos += run, from = roan_payload_skip(from, run)) {
		void __iomem *to = iomem_at(io, pos, len, &run);

		if (!from.bytes) {
			run = min_t(u32, run, sizeof(bounce));
			if (!roan_payload_read(from, 0, bounce, run))
				return ROAN_VERR_BAD_RANGE;	/* cannot happen: the parser checked the length */
		}
		memcpy_toio(to, from.bytes ?: bounce, run);
	}
	wmb();	/* flush write-combining buffers before the completion of this write */
	return ROAN_VERR_NONE;
}

/* The 8-byte word at @pos; NULL if it is not aligned or not in one piece. */
static void __iomem *iomem_word_at(const struct roan_iomem *io, u64 pos)
{
	u32 run;
	void __iomem *word = iomem_at(io, pos, sizeof(u64), &run);

	return run == sizeof(u64) && IS_ALIGNED((uintptr_t)word, sizeof(u64)) ? word : NULL;
}

/*
 * The bus has no locked cycles. So these atomics are atomic only among themselves, not with accesses by CPUs or by
 * the memory's device. One lock for all regions, because two regions may cover the same memory. _bh, leaf.
 */
static DEFINE_SPINLOCK(atomics);

u32 roan_iomem_atomic(const struct roan_iomem *io, u64 pos, const struct roan_pkt *pkt, u64 *orig)
{
	void __iomem *word = iomem_word_at(io, pos);

	if (!word)
		return ROAN_VERR_UNALIGNED;
	spin_lock_bh(&atomics);
	if (pkt->info->op == ROAN_OP_ATOMIC_WRITE) {
		*orig = 0;
		wmb();	/* earlier writes arrive before this one */
		__raw_writeq(pkt->swap_add, word);	/* the bytes as they are */
	} else {
		*orig = readq(word);
		if (pkt->info->op != ROAN_OP_CMP_SWAP)
			writeq(*orig + pkt->swap_add, word);
		else if (*orig == pkt->compare)
			writeq(pkt->swap_add, word);
	}
	wmb();	/* the next atomic reads the new value, and later writes arrive after it */
	spin_unlock_bh(&atomics);
	return ROAN_VERR_NONE;
}

struct roan_iomem *roan_iomem_alloc(u32 n_pieces, u8 shift, u64 off)
{
	struct roan_iomem *io = kvzalloc(struct_size(io, piece, n_pieces), GFP_KERNEL_ACCOUNT);

	if (!io)
		return NULL;
	io->n = n_pieces;
	io->shift = shift;
	io->off = off;
	return io;
}
