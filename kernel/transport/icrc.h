/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC (IBTA vol. 1, 7.8.1; RoCEv2 annex A17.3.3): CRC-32 over 64 ones in place of the LRH, the IP and UDP
 * headers and the BTH with the fields that routers change set to ones, the extended headers, payload and padding.
 */
#ifndef ROAN_ICRC_H
#define ROAN_ICRC_H

#include "host.h"

/*
 * Both start functions take the packet's own IP header (network order, the lengths and the IPv4 identification this
 * very packet has on the wire), its UDP header and its BTH (12 bytes), and return a state to continue with
 * roan_crc32() over everything after the BTH: extended headers, payload, padding.
 * IPv4: @ip is 20 bytes, no options. IPv6: 40 bytes.
 */
u32 roan_icrc_start4(const u8 *ip, const u8 *udp, const u8 *bth);
u32 roan_icrc_start6(const u8 *ip6, const u8 *udp, const u8 *bth);

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
