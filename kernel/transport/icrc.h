/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC (IBTA vol. 1, 7.8.1; RoCEv2 annex A17.3.3): CRC-32 over 64 ones in place of the LRH, the IP and UDP
 * headers and the BTH with the fields that routers change set to ones, the extended headers, payload and padding.
 */
#ifndef ROAN_ICRC_H
#define ROAN_ICRC_H

#include "host.h"

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
 * The state behind the BTH (12 bytes) of the packet whose IPv4 identification is @id (IPv6: 0), to continue with
 * roan_crc32() over everything after it: extended headers, payload, padding.
 */
u32 roan_icrc_start(const struct roan_icrc_head *head, u16 id, const u8 *bth);

/* The four bytes at the end of the packet, as they stand there. */
static inline void roan_icrc_put(u32 state, u8 *at)
{
	put_unaligned_le32(~state, at);
}

static inline bool roan_icrc_equal(u32 state, const u8 *at)
{
	return get_unaligned_le32(at) == (u32)~state;
}

#endif /* ROAN_ICRC_H */
