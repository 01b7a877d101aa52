/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC (IBTA vol. 1, 7.8.1; RoCEv2 annex A17.3.3): CRC-32 over 64 ones in place of the LRH, the IP and UDP
 * headers and the BTH with the fields that routers change set to ones, the extended headers, payload and padding.
 */
#ifndef ROAN_ICRC_H
#define ROAN_ICRC_H

#include "core/core_env.h"

/*
 * The state after the UDP header. It is equal for all packets of a flow with the same length, but for the IPv4
 * identification, so it is computed once per train.
 */
struct roan_icrc_head {
	u32 state;
	u16 id;		/* identification included in @state; IPv6: 0 */
};

/*
 * Computes @head from the IP and UDP headers (network byte order, with the lengths that the packet has on the wire).
 * IPv4: @ip is 20 bytes, no options. IPv6: 40 bytes.
 */
void roan_icrc_head4(struct roan_icrc_head *head, const u8 *ip, const u8 *udp);
void roan_icrc_head6(struct roan_icrc_head *head, const u8 *ip6, const u8 *udp);

/*
 * Returns the state after @len contiguous bytes of a packet from its BTH on. The buffer must be private: one byte is
 * masked meanwhile. @id: IPv4 identification (IPv6: 0).
 */
u32 roan_icrc_state(const struct roan_icrc_head *head, u16 id, u8 *bth, size_t len);

/*
 * An ICRC in progress. The BTH stays pending until the payload is added: with the state it makes 16 bytes, which cost
 * nothing when they are folded with the payload (crc_vpclmul.h), but a table walk over them would take as long as much
 * of the payload.
 */
struct roan_icrc {
	u32 state;	/* after the UDP header while @bth_waits, else after all bytes added */
	bool bth_waits;
	u8 bth[12];	/* masked as the ICRC requires */
};

/* Starts @icrc with the headers and the BTH (12 bytes) of the packet with IPv4 identification @id (IPv6: 0). */
void roan_icrc_start(struct roan_icrc *icrc, const struct roan_icrc_head *head, u16 id, const u8 *bth);

/* If @bth_waits: returns the 16 bytes whose CRC from state 0 is the state after the BTH. */
static inline void roan_icrc_bth_block(const struct roan_icrc *icrc, u8 block[16])
{
	put_unaligned_le32(0, block);
	memcpy(block + 4, icrc->bth, 12);
	put_unaligned_le32(get_unaligned_le32(icrc->bth) ^ icrc->state, block + 4);
}

/* Returns the state after all bytes so far, for roan_crc32(). */
static inline u32 roan_icrc_finish(struct roan_icrc *icrc)
{
	if (icrc->bth_waits)
		icrc->state = roan_crc32(icrc->state, icrc->bth, sizeof(icrc->bth));
	icrc->bth_waits = false;
	return icrc->state;
}

/* Writes the ICRC: the last four bytes of the packet. */
static inline void roan_icrc_put(struct roan_icrc *icrc, u8 *at)
{
	put_unaligned_le32(~roan_icrc_finish(icrc), at);
}

static inline bool roan_icrc_equal(struct roan_icrc *icrc, const u8 *at)
{
	return get_unaligned_le32(at) == (u32)~roan_icrc_finish(icrc);
}

#endif /* ROAN_ICRC_H */
