/* SPDX-License-Identifier: GPL-2.0 */
/* The payload of a packet, and its copy to memory that a program polls. */
#ifndef ROAN_PAYLOAD_H
#define ROAN_PAYLOAD_H

#include <linux/skbuff.h>
#include <linux/unaligned.h>

/* Source of the bytes to write. */
struct roan_payload {
	const u8 *bytes;	/* contiguous; NULL: the bytes are in @skb */
	const struct sk_buff *skb;
	u32 off;		/* first byte in @skb */
};

static inline struct roan_payload roan_payload_bytes(const void *bytes)
{
	return (struct roan_payload) { .bytes = bytes };
}

static inline struct roan_payload roan_payload_skb(const struct sk_buff *skb, u32 off)
{
	return (struct roan_payload) { .skb = skb, .off = off };
}

static inline struct roan_payload roan_payload_skip(struct roan_payload from, u32 len)
{
	if (from.bytes)
		from.bytes += len;
	from.off += len;
	return from;
}

/* False: @from is shorter. */
static inline bool roan_payload_read(struct roan_payload from, u32 off, void *to, u32 len)
{
	if (unlikely(!from.bytes))
		return !skb_copy_bits(from.skb, from.off + off, to, len);
	memcpy(to, from.bytes + off, len);
	return true;
}

/*
 * As roan_payload_read(), and what is copied last is the end, the last 8 bytes at once: MPI libraries and others poll
 * the last byte of a WRITE, and adapters write in the order of addresses. memcpy() does not: on x86 without FSRM it may
 * begin at the end, and another CPU may show the stores in any order.
 */
static inline bool roan_payload_write(struct roan_payload from, u32 off, void *to, u32 len)
{
	u32 body = len >= sizeof(u64) ? len - sizeof(u64) : 0;
	u64 end;

	if (body && !roan_payload_read(from, off, to, body))
		return false;
	smp_wmb();	/* pairs with the program's read barrier, or acquire, behind the load of the last byte */
	if (len < sizeof(end))
		return roan_payload_read(from, off, to, len);
	if (!roan_payload_read(from, off + body, &end, sizeof(end)))
		return false;
	put_unaligned(end, (u64 *)(to + body));
	return true;
}

#endif
