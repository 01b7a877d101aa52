/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The IP and UDP headers of one packet of a GSO skb. The skb's own headers hold the lengths of the whole skb; the ICRC
 * covers the headers that each packet has on the wire.
 */
#ifndef ROAN_IP_UDP_HDR_H
#define ROAN_IP_UDP_HDR_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include "core/crc/icrc.h"

#define ROAN_IP4_ID		4	/* byte offsets in the headers */
#define ROAN_IP4_TOTAL_LEN	2
#define ROAN_IP6_PAYLOAD_LEN	4
#define ROAN_UDP_LEN		4

static inline u32 roan_l3_len(bool ipv6)
{
	return ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

/* Sets the lengths and the IPv4 identification @id for a single packet of @len bytes from BTH to ICRC. */
static inline void roan_l3_set_lengths(u8 *l3, u8 *udp, bool ipv6, u32 len, u16 id)
{
	u32 udp_len = len + sizeof(struct udphdr);

	if (ipv6) {
		put_unaligned_be16(udp_len, l3 + ROAN_IP6_PAYLOAD_LEN);
	} else {
		put_unaligned_be16(udp_len + sizeof(struct iphdr), l3 + ROAN_IP4_TOTAL_LEN);
		put_unaligned_be16(id, l3 + ROAN_IP4_ID);
	}
	put_unaligned_be16(udp_len, udp + ROAN_UDP_LEN);
}

static inline void roan_l3_icrc_head(struct roan_icrc_head *head, const u8 *l3, const u8 *udp, bool ipv6)
{
	if (ipv6)
		roan_icrc_head6(head, l3, udp);
	else
		roan_icrc_head4(head, l3, udp);
}

#endif /* ROAN_IP_UDP_HDR_H */
