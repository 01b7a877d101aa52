/* SPDX-License-Identifier: GPL-2.0 */
/* A received skb that is being parsed: on the stack of the receive hook, or a copy kept behind a page fault. */
#ifndef ROAN_RX_CTX_H
#define ROAN_RX_CTX_H

#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>
#include "core/crc/icrc.h"
#include "core/transport/wire.h"

struct roan_net;

#define ROAN_NO_VLAN	0xffff

/* An skb of ours being taken apart. */
struct roan_rx_ctx {
	struct sk_buff *skb;
	struct net *net;
	struct roan_net *rnet;
	struct net_device *in;	/* the interface it came in by */
	bool ipv6;
	bool ce;		/* Congestion Experienced; speaks for all packets of the skb */
	bool multicast;
	bool ip_id_fixed;	/* GRO found constant IPv4 identifications */
	bool is_deferred;	/* a copy of odp_rxqueue.c's: its memory was absent, or that of a packet before it */
	bool still_blocked;	/* ... and its memory is absent still, or again */
	u16 vlan;		/* the VLAN's interface it came in by; ROAN_NO_VLAN: none */
	u8  ip[40];		/* the IP header as received */
	u8  udp[8];
	union ib_gid saddr;	/* IPv4 as v4-mapped */
	union ib_gid daddr;
	u32 off;		/* skb offset of the packet under the walker: its BTH */
	u32 len;		/* its bytes, BTH to ICRC */
	u32 end;		/* skb offset where the UDP payload ends */
	u32 seg_len;		/* bytes per packet, 0: a single one */
	u32 seg_idx;		/* index of the packet in the skb */
	u64 now;		/* ns, when the first response in the skb was looked at; 0: none yet */
	struct roan_icrc_head icrc;	/* of packets of icrc_len bytes */
	u32 icrc_len;
	const u8 *chunk;	/* the contiguous piece of the skb looked at last: where it lies, ... */
	u32 chunk_off;		/* ... the skb offset of its first byte, ... */
	u32 chunk_len;		/* ... bytes; 0: none yet */
	u8  head[ROAN_MAX_HEADERS];
	struct roan_pkt pkt;
};

#endif /* ROAN_RX_CTX_H */
