// SPDX-License-Identifier: GPL-2.0
/*
 * Writes payload to memory that a program may poll. Adapters write in the order of addresses, and programs rely on
 * that: NCCL and UCCL poll a field in the middle of an entry of 64 bytes, and write up to 8 entries at once; MPI
 * libraries poll the last byte of a WRITE of any length. So the bytes of at most IN_ORDER become visible in order, and
 * of more the last 8 last. memcpy() alone does not do that: on x86 without FSRM it may begin at the end, and another
 * CPU may show the stores in any order.
 */
#include <linux/unaligned.h>
#include "mem/payload.h"

#define IN_ORDER	512u

/* Visible at once, if they do not cross a cache line, and after what was stored before. */
static __always_inline void store_8_bytes(void *to, const u8 *bytes)
{
	smp_wmb();	/* pairs with the program's read barrier, or acquire, behind the load of a later byte */
	put_unaligned(get_unaligned((u64 *)bytes), (u64 *)to);
}

/* What is no multiple of 8 comes first. The first loop has as many instructions as memcpy(). */
static void store_in_order(void *to, const u8 *bytes, u32 len)
{
	const u8 *end = bytes + len;
	u32 head = len % sizeof(u64);

	smp_wmb();	/* pairs as the one above */
	memcpy(to, bytes, head);
	for (to += head, bytes += head; end - bytes >= 32; to += 32, bytes += 32) {
		store_8_bytes(to, bytes);
		store_8_bytes(to + 8, bytes + 8);
		store_8_bytes(to + 16, bytes + 16);
		store_8_bytes(to + 24, bytes + 24);
	}
	for (; bytes != end; to += 8, bytes += 8)
		store_8_bytes(to, bytes);
}

static noinline_for_stack bool write_from_skb(struct roan_payload from, u32 off, void *to, u32 len)
{
	u8 bytes[IN_ORDER];

	if (!roan_payload_read(from, off, bytes, len))
		return false;
	store_in_order(to, bytes, len);
	return true;
}

bool roan_payload_write(struct roan_payload from, u32 off, void *to, u32 len)
{
	u32 body = len > IN_ORDER ? len - sizeof(u64) : 0;

	if (body && !roan_payload_read(from, off, to, body))
		return false;
	if (unlikely(!from.bytes))
		return write_from_skb(from, off + body, to + body, len - body);
	store_in_order(to + body, from.bytes + off + body, len - body);
	return true;
}
