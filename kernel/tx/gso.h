/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trains: the interface of gso.c, which builds GSO skbs. Decides nothing about what is sent or when. A train lives on
 * the stack of the function that sends: tx_round(), roan_respond() or cnp_send(). Softirqs off, under RCU.
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
 * A train being built: packets of one flow, back to back in one skb. The device segments it (UDP GSO), or the stack
 * does in software. All packets but the last have seg_len bytes.
 */
struct roan_train {
	struct roan_dev *dev;
	struct roan_dst_cache *flow;
	const struct roan_av *av;
	u16 sport;		/* UDP source port */
	struct sk_buff *skb;
	u8 *cur;		/* the packet being added; NULL: none */
	u32 len;		/* bytes of @cur, BTH to ICRC */
	u32 crc_len;		/* bytes of @cur that are added to @icrc; 0: roan_gso_commit() adds all */
	struct roan_icrc icrc;	/* running ICRC of @cur */
	u32 seg_len;		/* bytes of the first packet */
	u32 n;			/* packets committed */
	struct page_frag *frag;	/* page of the last packet added, unless that is in the linear part */
	u32 n_slots;		/* packets below this index have a slot reserved in @frag; 0: none */
	u32 slots_end;		/* offset in @frag behind the last reserved slot */
	u8 *next_slot;		/* the next reserved slot */
	u32 pending_len;	/* bytes of committed packets in slots that are not added to the skb yet */
	u32 bytes;		/* of all committed packets */
	u32 max_pkts;		/* per skb, for the device of the route; 1: no GSO */
	u32 max_bytes;		/* per skb, without IP and UDP headers */
	u8  l3[40];		/* IP header template */
	u8  udp[8];
	struct roan_pkt pkt;	/* headers of the packet being added; fields common to a round are written once */
	u8  tclass;		/* DSCP and ECN of every packet */
	u8  prio;		/* skb->priority */
	struct roan_icrc_head head;	/* ICRC state for packets of head_len bytes */
	u32 head_len;
	bool sw_gso;		/* the device does not segment: the stack makes an skb of each packet */
	struct roan_tx_round round;	/* pacing of this round */
	bool pfc_enabled;	/* PFC is on: roan_pfc_check_blocked() is called before each packet */
	bool pfc_blocked;	/* ... and has blocked the last one */
	u64 edt_ns;		/* ns: earliest departure time of packets being built, for the fq qdisc; 0: none */
	u32 first_psn;		/* of @skb; only if @pkt is used */
	u32 dropped_psn;	/* likewise, if @dropped: of the first skb dropped */
	u32 unsent_bytes;	/* on the wire, of packets that this host has dropped, or that were discarded */
	bool sent;		/* this host has taken an skb of the round */
	bool dropped;		/* ... or dropped one, as a queue was full */
	bool keeps_psns;	/* all count as sent: a repair is among them, or an earlier skb was dropped */
	bool tx_counted;	/* skbs can wait in this host, and are counted (flow/tx_inflight.c) */
	struct roan_qp *qp;	/* ... for this QP; NULL: @tx_counted is not valid yet */
	u8  side;		/* ... for this queue of it, enum roan_queue_id */
	bool sealed_short;	/* no packet can be added: the last one was shorter, or @edt_ns has changed */
};

void roan_gso_begin(struct roan_train *t, struct roan_dev *dev, struct roan_dst_cache *flow, const struct roan_av *av);
u8 *roan_gso_reserve_slow(struct roan_train *t, u32 len);	/* roan_gso_reserve(), no slot reserved */
/*
 * Returns @len contiguous, writable bytes (BTH to ICRC inclusive) for one more packet. Transmits the train first if the
 * packet cannot join it. NULL: no route or no memory, which is counted; the packet is then lost as if on the wire.
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
 * Called when the first @headers bytes of the packet are written. Returns the running ICRC for the caller to extend
 * over @payload bytes. NULL: the payload is short, and roan_gso_commit() computes the ICRC.
 */
struct roan_icrc *roan_gso_crc_begin(struct roan_train *t, u32 headers, u32 payload);
/*
 * For a counted queue (flow/tx_inflight.c): returns true if the in-flight limit does not allow one more packet. The
 * train is then transmitted, and the queue runs again when enough of its skbs are freed.
 */
bool roan_gso_inflight_full(struct roan_train *t);
/* Sets the earliest departure time of packets added from here on: @due ns, 0: none. Another time needs another skb. */
static inline void roan_gso_set_edt(struct roan_train *t, u64 due)
{
	t->sealed_short |= t->edt_ns != due;
	t->edt_ns = due;
}

void roan_gso_commit(struct roan_train *t);	/* the packet is written but for its ICRC: adds that */
void roan_gso_abort(struct roan_train *t);	/* drops the packet that was reserved last and not committed */
void roan_gso_xmit(struct roan_train *t);	/* hands the train to the IP stack; an empty train is fine */
void roan_gso_discard(struct roan_train *t);	/* its packets are not sent */
/* All packets of the round are ECT(0), whatever ECN bits the program set. Called before the first one is added. */
static inline void roan_gso_set_ect(struct roan_train *t)
{
	t->tclass = (t->tclass & ~INET_ECN_MASK) | INET_ECN_ECT_0;
}

/* Sets the UDP source port of packets added from here on. Another one needs another skb. */
static inline void roan_gso_set_sport(struct roan_train *t, u16 sport)
{
	if (t->sport == sport)
		return;
	roan_gso_xmit(t);
	t->sport = sport;
}

/* ---- the transmit budget of a softirq round (base/deferred.h) ---- */

/* A train counts as one skb if the device segments it, else as many as it has packets. */
static inline u32 roan_tx_budget_skbs(const struct roan_train *t)
{
	return t->sw_gso ? t->n : 1;
}

static inline void roan_tx_budget_charge(const struct roan_train *t)
{
	__this_cpu_add(roan_tx_budget_used, roan_tx_budget_skbs(t));
}

/* The same as roan_tx_budget_exhausted(), for when @t has been transmitted. */
static inline bool roan_tx_budget_exhausted_after(const struct roan_train *t)
{
	return __this_cpu_read(roan_tx_budget_used) + (t->skb ? roan_tx_budget_skbs(t) : 0) >= ROAN_TX_BUDGET;
}

#endif /* ROAN_GSO_H */
