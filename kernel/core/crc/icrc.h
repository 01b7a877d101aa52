/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC (IBTA vol. 1, 7.8.1; RoCEv2 annex A17.3.3): CRC-32 over 64 ones in place of the LRH, the IP and UDP
 * headers and the BTH with the fields that routers change set to ones, the extended headers, payload and padding.
 */
#ifndef ROAN_ICRC_H
#define ROAN_ICRC_H

#include "core/core_env.h"

/*
 * The state behind the UDP header: the same for all packets of a flow that have the same length, but for the
 * identification of IPv4, so it is computed once a train.
 */
struct roan_icrc_head {
	u32 state;
	u16 id;		/* the identification in it; IPv6: 0 */
};

/*
 * The IP and UDP headers of the packet (network order, the lengths it has on the wire by itself). IPv4: @ip is 20 bytes,
 * no options. IPv6: 40 bytes.
 */
void roan_icrc_head4(struct roan_icrc_head *head, const u8 *ip, const u8 *udp);
void roan_icrc_head6(struct roan_icrc_head *head, const u8 *ip6, const u8 *udp);

/*
 * The state behind @len bytes of a packet from its BTH on, in one piece that is ours: one byte of it is masked meanwhile. @id: its
 * IPv4 identification (IPv6: 0).
 */
u32 roan_icrc_state(const struct roan_icrc_head *head, u16 id, u8 *bth, size_t len);

/*
 * An ICRC under way. The BTH waits for what comes behind it: with the state it makes 16 bytes, which cost nothing beside
 * a payload that is folded (crc_vpclmul.h), and would take as long as a good part of that by a table.
 */
struct roan_icrc {
	u32 state;	/* behind the UDP header; once the BTH does not wait, behind all that was taken in */
	bool bth_waits;
	u8 bth[12];	/* as the ICRC has it */
};

/* Up to the BTH (12 bytes) of the packet whose IPv4 identification is @id (IPv6: 0). */
void roan_icrc_start(struct roan_icrc *icrc, const struct roan_icrc_head *head, u16 id, const u8 *bth);

/* If the BTH waits: the 16 bytes whose CRC, from a state of 0, is the state behind it. */
static inline void roan_icrc_bth_block(const struct roan_icrc *icrc, u8 block[16])
{
	put_unaligned_le32(0, block);
	memcpy(block + 4, icrc->bth, 12);
	put_unaligned_le32(get_unaligned_le32(icrc->bth) ^ icrc->state, block + 4);
}

/* The state behind all so far, to go on with by roan_crc32(). */
static inline u32 roan_icrc_finish(struct roan_icrc *icrc)
{
	if (icrc->bth_waits)
		icrc->state = roan_crc32(icrc->state, icrc->bth, sizeof(icrc->bth));
	icrc->bth_waits = false;
	return icrc->state;
}

/* The four bytes at the end of the packet, as they stand there. */
static inline void roan_icrc_put(struct roan_icrc *icrc, u8 *at)
{
	put_unaligned_le32(~roan_icrc_finish(icrc), at);
}

static inline bool roan_icrc_equal(struct roan_icrc *icrc, const u8 *at)
{
	return get_unaligned_le32(at) == (u32)~roan_icrc_finish(icrc);
}

#endif /* ROAN_ICRC_H */
