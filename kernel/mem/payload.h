/* SPDX-License-Identifier: GPL-2.0 */
/* The payload of a packet, and its copy to memory that a program may poll. */
#ifndef ROAN_PAYLOAD_H
#define ROAN_PAYLOAD_H

#include <linux/skbuff.h>

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

/* As roan_payload_read(). See payload.c for the order in which the bytes become visible. */
bool roan_payload_write(struct roan_payload from, u32 off, void *to, u32 len);

#endif
