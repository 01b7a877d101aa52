// SPDX-License-Identifier: GPL-2.0
/*
 * Walks an skb packet by packet: UDP GSO and GRO put many packets of one flow into one skb. Finds the bytes of each
 * packet, and verifies its ICRC over the headers that the packet has on the wire by itself. Does not parse transport
 * headers: core/transport/wire.c does.
 */
#include "base/base.h"
#include "base/ip_udp_hdr.h"
#include "core/crc/crc_vpclmul.h"
#include "rx/rx.h"

/* Finds the contiguous chunk of the skb that contains byte @off. False: the byte is in a frag list, or not mapped. */
static bool rx_find_chunk(struct roan_rx_ctx *rx, u32 off)
{
	const struct skb_shared_info *shinfo = skb_shinfo(rx->skb);
	u32 start = skb_headlen(rx->skb), size;
	int i;

	if (off < start) {
		rx->chunk = rx->skb->data;
		rx->chunk_off = 0;
		rx->chunk_len = start;
		return true;
	}
	for (i = 0; i < shinfo->nr_frags; i++, start += size) {
		size = skb_frag_size(&shinfo->frags[i]);
		if (off - start >= size)
			continue;
		rx->chunk = skb_frag_address(&shinfo->frags[i]);
		rx->chunk_off = start;
		rx->chunk_len = rx->chunk ? size : 0;
		return rx->chunk;
	}
	return false;
}

/* Returns where byte @off of the skb lies, and in @run the contiguous bytes from there. NULL: use skb_copy_bits(). */
static const u8 *rx_peek(struct roan_rx_ctx *rx, u32 off, u32 *run)
{
	/* Packets are walked forward and chunks are long, so the last chunk usually matches. */
	if (off - rx->chunk_off >= rx->chunk_len && !rx_find_chunk(rx, off))
		return NULL;
	off -= rx->chunk_off;
	*run = rx->chunk_len - off;
	return rx->chunk + off;
}

/* Inlined, as most lengths are constants. */
static __always_inline bool rx_copy_bytes(struct roan_rx_ctx *rx, u32 off, void *to, u32 len)
{
	const u8 *from;
	u32 run;

	from = rx_peek(rx, off, &run);
	if (!from || run < len)
		return !skb_copy_bits(rx->skb, off, to, len);
	memcpy(to, from, len);
	return true;
}

bool roan_rx_next(struct roan_rx_ctx *rx)
{
	u32 n;

	if (rx->len) {
		rx->off += rx->len;
		rx->seg_idx++;
	}
	if (rx->off >= rx->end)
		return false;
	rx->len = rx->end - rx->off;
	if (rx->seg_len)
		rx->len = min(rx->len, rx->seg_len);
	if (likely(rx->len >= sizeof(rx->head)))
		return rx_copy_bytes(rx, rx->off, rx->head, sizeof(rx->head));
	n = rx->len;
	memset(rx->head + n, 0, sizeof(rx->head) - n);
	return rx_copy_bytes(rx, rx->off, rx->head, n);
}

struct roan_payload roan_rx_payload(struct roan_rx_ctx *rx)
{
	u32 off = rx->off + rx->pkt.payload_off, run;
	const u8 *bytes = rx_peek(rx, off, &run);

	if (unlikely(!bytes || run < rx->pkt.payload_len))
		return roan_payload_skb(rx->skb, off);
	return roan_payload_bytes(bytes);
}

/* For bytes that rx_peek() does not find. */
static noinline void rx_icrc_add_scattered(struct roan_icrc *icrc, const struct roan_rx_ctx *rx, u32 from, u32 len)
{
	struct skb_seq_state seq;
	const u8 *data;
	u32 done, n;

	skb_prepare_seq_read(rx->skb, from, from + len, &seq);
	for (done = 0; (n = skb_seq_read(done, &data, &seq)); done += n) {
		n = min(n, len - done);		/* the piece may extend beyond @len, to the end of its frag */
		roan_icrc_add(icrc, data, n);
	}
}

/* Adds @len bytes of the skb, from @from on. */
static void rx_icrc_add_skb(struct roan_icrc *icrc, struct roan_rx_ctx *rx, u32 from, u32 len)
{
	const u8 *data;
	u32 n;

	for (; len && (data = rx_peek(rx, from, &n)); from += n, len -= n) {
		n = min(n, len);
		roan_icrc_add(icrc, data, n);
	}
	if (unlikely(len))
		rx_icrc_add_scattered(icrc, rx, from, len);
}

/*
 * For packets shorter than ROAN_VPCLMUL_MIN. The first bytes are taken from the copy in rx->head: roan_icrc_state()
 * masks a byte of its input while it runs.
 */
static bool rx_short_icrc_with_id(struct roan_rx_ctx *rx, u16 id, const u8 *icrc)
{
	u32 len = rx->len - ROAN_ICRC_LEN, copied = min_t(u32, len, sizeof(rx->head));
	struct roan_icrc own = { .state = roan_icrc_state(&rx->icrc, id, rx->head, copied) };

	rx_icrc_add_skb(&own, rx, rx->off + copied, len - copied);
	return roan_icrc_equal(&own, icrc);
}

static bool rx_icrc_with_id(struct roan_rx_ctx *rx, u16 id, const u8 *icrc)
{
	struct roan_icrc own;

	if (rx->len < ROAN_VPCLMUL_MIN)
		return rx_short_icrc_with_id(rx, id, icrc);
	roan_icrc_start(&own, &rx->icrc, id, rx->head);
	rx_icrc_add_skb(&own, rx, rx->off + ROAN_BTH_LEN, rx->len - ROAN_BTH_LEN - ROAN_ICRC_LEN);
	return roan_icrc_equal(&own, icrc);
}

static void rx_icrc_head(struct roan_rx_ctx *rx, u16 id)
{
	u8 l3[40], udp[8];

	memcpy(l3, rx->ip, sizeof(l3));
	memcpy(udp, rx->udp, sizeof(udp));
	roan_l3_set_lengths(l3, udp, rx->ipv6, rx->len, id);
	roan_l3_icrc_head(&rx->icrc, l3, udp, rx->ipv6);
	rx->icrc_len = rx->len;
}

bool roan_rx_icrc_ok(struct roan_rx_ctx *rx)
{
	u16 id = rx->ipv6 ? 0 : get_unaligned_be16(rx->ip + ROAN_IP4_ID);
	u8 icrc[ROAN_ICRC_LEN];

	if (rx->len < ROAN_MIN_PACKET)
		return false;
	if (!rx_copy_bytes(rx, rx->off + rx->len - ROAN_ICRC_LEN, icrc, sizeof(icrc)))
		return false;
	if (rx->icrc_len != rx->len)
		rx_icrc_head(rx, id);
	if (rx->ipv6 || !rx->seg_idx || rx->ip_id_fixed)
		return rx_icrc_with_id(rx, id, icrc);
	if (rx_icrc_with_id(rx, id + rx->seg_idx, icrc))
		return true;
	/* GRO also merges packets that all have the same identification, and does not record it: try that case, too. */
	if (!rx_icrc_with_id(rx, id, icrc))
		return false;
	rx->ip_id_fixed = true;
	return true;
}
