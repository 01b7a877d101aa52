/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets on their way: a train being built (gso.c), an skb being taken apart (gso.c, ip_hook.c, recv.c). Both live on
 * the stack of whoever sends or receives.
 */
#ifndef ROAN_GSO_H
#define ROAN_GSO_H

#include <net/inet_ecn.h>
#include "flow/qp_rate.h"
#include "mem/mem.h"
#include "net/net.h"
#include "base/base.h"
#include "flow/flow.h"

/*
 * A train being built: packets of one flow, back to back in one skb; UDP GSO cuts it, if anybody has to. On the stack of
 * roan_send() or roan_respond(). All packets but the last have seg_len bytes.
 */
struct roan_train {
	struct roan_dev *dev;
	struct roan_dst_cache *flow;
	const struct roan_av *av;
	struct sk_buff *skb;
	u8 *cur;		/* the packet being added */
	u32 len;		/* its bytes, BTH to ICRC */
	u32 crc_len;		/* as many are in icrc; 0: all are taken in when it is sealed */
	struct roan_icrc icrc;	/* behind them */
	u32 seg_len;		/* bytes of the first packet */
	u32 n;			/* packets, sealed ones */
	struct page_frag *frag;	/* where the packet added last lies, unless in the linear part */
	u32 n_slots;		/* up to so many of seg_len have a place there; 0: the next has to be found one */
	u32 slots_end;		/* ... offset behind the last such place */
	u8 *next_slot;		/* ... where the next one is */
	u32 pending_len;	/* ... bytes of those sealed, of which the skb does not know yet */
	u32 bytes;		/* of them */
	u32 max_pkts;		/* what this flow's device takes; 1: no GSO */
	u32 max_bytes;		/* the same */
	u8  l3[40];		/* IP header template */
	u8  udp[8];
	struct roan_pkt pkt;	/* headers of the packet being added; what they have in common is written once a turn */
	u8  tclass;		/* DSCP and ECN of every packet */
	u8  prio;		/* skb->priority */
	struct roan_icrc_head head;	/* of a packet of head_len bytes */
	u32 head_len;
	bool sw_gso;		/* not by the device: each packet will be an skb */
	struct roan_tx_round round;	/* what the limiter allows */
	bool pfc_enabled;	/* pause frames are heeded: pfc_rx.c is asked before each packet */
	bool pfc_blocked;	/* ... and said no to the last one */
	u64 edt_ns;		/* ns: an fq below keeps what is built until then; 0: it leaves at once */
	bool tx_counted;	/* it can wait below, in a queue of this host, and is counted (tx_inflight.c): */
	struct roan_qp *qp;	/* ... whose it is; NULL: nobody asked */
	u8  side;		/* ... of which queue, enum roan_queue_id */
	bool sealed_short;	/* the last packet added was shorter */
};

void roan_gso_begin(struct roan_train *t, struct roan_dev *dev, struct roan_dst_cache *flow, const struct roan_av *av);
u8 *roan_gso_reserve_slow(struct roan_train *t, u32 len);	/* roan_gso_reserve()'s, where no place is reserved */
/*
 * Room for one more packet of @len bytes (BTH to ICRC inclusive), contiguous and writable; sends what is there first if
 * this one cannot join. NULL: no route or memory, counted; the packet is lost as if the wire had lost it.
 */
static inline u8 *roan_gso_reserve(struct roan_train *t, u32 len)
{
	if (unlikely(t->n >= t->n_slots || len != t->seg_len || t->sealed_short))
		return roan_gso_reserve_slow(t, len);
	t->len = len;
	t->crc_len = 0;
	t->cur = t->next_slot;
	return t->cur;
}

/*
 * The first @headers bytes of the packet are written. The ICRC so far, for who writes @payload bytes and adds them to it. NULL:
 * they are few, and taken in together with the headers when the packet is sealed.
 */
struct roan_icrc *roan_gso_crc_begin(struct roan_train *t, u32 headers, u32 payload);
/* A queue that is counted (flow/tx_inflight.h): is too much below for one more packet? Then the train has left. */
bool roan_train_full_below(struct roan_train *t);
/* What is added from here on is due at @due. */
static inline void roan_gso_set_edt(struct roan_train *t, u64 due)
{
	t->sealed_short |= t->edt_ns != due;
	t->edt_ns = due;
}

void roan_gso_commit(struct roan_train *t);	/* the packet's bytes are written up to the ICRC: compute that */
void roan_gso_abort(struct roan_train *t);	/* forget the packet added last and not sealed */
void roan_gso_xmit(struct roan_train *t);	/* to the IP stack; nothing is fine */
/* The ECN field of packets added from here on; those there leave first, for a train is cut from one header. */
static inline void roan_gso_set_ecn(struct roan_train *t, u8 ecn)
{
	if ((t->tclass & INET_ECN_MASK) == ecn)
		return;
	roan_gso_xmit(t);
	t->tclass = (t->tclass & ~INET_ECN_MASK) | ecn;
}

#endif /* ROAN_GSO_H */
