/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parse state of a received skb: on the stack of the receive hook, or a copy in odp_rxqueue.c while a page fault is
 * pending, or in rx_early.c while an earlier request is missing.
 */
#ifndef ROAN_RX_CTX_H
#define ROAN_RX_CTX_H

#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>
#include "core/crc/icrc.h"
#include "core/transport/wire.h"

struct roan_net;

#define ROAN_NO_VLAN	0xffff
#define ROAN_VLAN_UNREAD	0xfffe	/* no VLAN ID either: they have 12 bits */

struct roan_rx_ctx {
	struct sk_buff *skb;
	struct net *net;
	struct roan_net *rnet;
	struct net_device *in;	/* receiving interface */
	bool ipv6;
	bool ce;		/* Congestion Experienced; valid for all packets of the skb */
	bool multicast;		/* or broadcast, which is a group that no QP has joined */
	bool from_this_host;	/* @multicast: this host has sent it, and this is the IP stack's copy */
	bool ip_id_fixed;	/* GRO found constant IPv4 identifications */
	bool is_deferred;	/* a copy in odp_rxqueue.c: a page fault was pending for this packet or one before it */
	bool still_blocked;	/* ... and a page fault is pending for it again */
	u16 vlan;		/* roan_net_vlan(), or ROAN_VLAN_UNREAD: only a datagram's completion has it */
	u8  ip[40];		/* the IP header as received */
	u8  udp[8];
	union ib_gid saddr;	/* IPv4 as v4-mapped */
	union ib_gid daddr;
	u32 off;		/* skb offset of the BTH of the current packet */
	u32 len;		/* bytes of the current packet, BTH to ICRC */
	u32 end;		/* skb offset where the UDP payload ends */
	u32 seg_len;		/* bytes per packet, 0: a single one */
	u32 seg_idx;		/* index of the current packet in the skb */
	u64 now;		/* ns, read at the first response in the skb; 0: not read yet */
	struct roan_icrc_head icrc;	/* header state for packets of icrc_len bytes */
	u32 icrc_len;
	const u8 *chunk;	/* contiguous piece of the skb used last: its address, */
	u32 chunk_off;		/* the skb offset of its first byte, */
	u32 chunk_len;		/* and its bytes; 0: none yet */
	u8  head[ROAN_MAX_HEADERS];
	struct roan_pkt pkt;
};

static inline u16 roan_rx_sport(const struct roan_rx_ctx *rx)
{
	return rx->udp[0] << 8 | rx->udp[1];
}

#endif /* ROAN_RX_CTX_H */
