// SPDX-License-Identifier: GPL-2.0
/*
 * Builds trains: many packets of one flow in one GSO skb. Each packet gets its own ICRC, over the headers it will have
 * on the wire once UDP GSO has segmented the train. Decides which packets share an skb; does not decide what is sent
 * (send.c, tx_response.c, cnp.c). Routes are in net/route.c, sockets in net/ip_hook.c.
 *
 * The linear part of an skb holds the IP and UDP headers, and the first packet if that is small. Everything else lies
 * in pages (tx_page_pool.c) that are filled upwards, packet after packet, so that a whole train needs only a few frags.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/ip6_checksum.h>
#include <net/udp.h>

#include "base/base.h"
#include "base/ip_udp_hdr.h"
#include "core/crc/crc_vpclmul.h"
#include "flow/flow.h"
#include "mem/mem.h"
#include "net/net.h"
#include "tx/gso.h"
#include "tx/tx.h"

#define SMALL_PACKET	256	/* bytes; a first packet up to this size goes into the linear part */
#define TRAIN_PKTS	64	/* as many as GRO merges */

/* The source address decides: a multicast group in IPv6 notation is an IPv4 group if the source is IPv4. */
static bool gso_is_ipv6(const struct roan_train *t)
{
	return !roan_gid_v4(&t->av->sgid);
}

/* ---- building ---- */

void roan_gso_begin(struct roan_train *t, struct roan_dev *dev, struct roan_dst_cache *flow, const struct roan_av *av)
{
	memset(t, 0, sizeof(*t));
	t->dev = dev;
	t->flow = flow;
	t->av = av;
	t->sport = av ? av->sport : 0;
	t->tclass = roan_qos_tclass(dev, av);
	t->prio = roan_qos_prio(dev, t->tclass);
	/* av is NULL before the first packet of a datagram QP: assume the longer header, IPv6. */
	t->round.wire_overhead = ETH_HLEN + roan_l3_len(!av || gso_is_ipv6(t)) + sizeof(struct udphdr);
}

static void gso_write_headers(struct roan_train *t)
{
	const struct roan_av *av = t->av;
	struct udphdr *udp = (struct udphdr *)t->udp;

	memset(t->l3, 0, sizeof(t->l3));
	if (gso_is_ipv6(t)) {
		struct ipv6hdr *ip6 = (struct ipv6hdr *)t->l3;

		ip6_flow_hdr(ip6, t->tclass, htonl(av->flow_label & IB_GRH_FLOWLABEL_MASK));
		ip6->nexthdr = IPPROTO_UDP;
		ip6->hop_limit = av->ttl;
		memcpy(&ip6->saddr, &av->sgid, sizeof(ip6->saddr));
		memcpy(&ip6->daddr, &av->dgid, sizeof(ip6->daddr));
	} else {
		struct iphdr *ip = (struct iphdr *)t->l3;

		ip->version = 4;
		ip->ihl = 5;
		ip->tos = t->tclass;
		ip->frag_off = htons(IP_DF);
		ip->ttl = av->ttl;
		ip->protocol = IPPROTO_UDP;
		memcpy(&ip->saddr, av->sgid.raw + 12, 4);
		memcpy(&ip->daddr, av->dgid.raw + 12, 4);
	}
	udp->source = htons(t->sport);
	udp->dest = htons(ROAN_UDP_PORT);
	udp->len = 0;
	udp->check = 0;
}

/* GSO needs checksum offload: without it, software would read every byte again. Such a device gets single packets. */
static u32 gso_max_pkts(const struct roan_train *t)
{
	const struct net_device *dev = READ_ONCE(t->flow->dst->dev);
	netdev_features_t csum = NETIF_F_HW_CSUM | (gso_is_ipv6(t) ? NETIF_F_IPV6_CSUM : NETIF_F_IP_CSUM);

	if (!(dev->features & csum) || !(dev->features & NETIF_F_SG))
		return 1;
	return clamp_t(u32, READ_ONCE(dev->gso_max_segs), 1, TRAIN_PKTS);
}

/* The most bytes of packets in an skb, without IP and UDP headers. A first packet is accepted without this check. */
static u32 gso_max_bytes(const struct roan_train *t)
{
	u32 headers = roan_l3_len(gso_is_ipv6(t)) + sizeof(struct udphdr);

	return min_t(u32, max_t(u32, READ_ONCE(t->flow->dst->dev->gso_max_size), headers), U16_MAX) - headers;
}

static bool gso_can_join(const struct roan_train *t, u32 len)
{
	return !t->sealed_short && len <= t->seg_len && t->n < t->max_pkts && t->bytes + len <= t->max_bytes &&
	       skb_shinfo(t->skb)->nr_frags < MAX_SKB_FRAGS;
}

/* Uses the per-CPU NAPI pools: the receiver's napi_consume_skb() returns skbs to them (net/ip_hook.c). */
static struct sk_buff *gso_new_skb(u32 len)
{
	u32 size = SKB_DATA_ALIGN(ROAN_HEADROOM + len) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	void *head = napi_alloc_frag(size);
	struct sk_buff *skb;

	if (!head)
		return NULL;
	skb = napi_build_skb(head, size);
	if (!skb) {
		skb_free_frag(head);
		return NULL;
	}
	skb_reserve(skb, ROAN_HEADROOM);
	return skb;
}

static bool gso_start_skb(struct roan_train *t, u32 len)
{
	u32 linear = len <= SMALL_PACKET ? len : 0;

	if (!roan_dst_cache_get(t->flow, t->dev, t->av, roan_qos_tclass(t->dev, t->av), t->sport))
		return false;		/* roan_dst_cache_get() has counted it */
	t->skb = gso_new_skb(linear);
	if (!t->skb) {
		roan_count(t->dev, tx_no_memory);
		return false;
	}
	if (unlikely(t->edt_ns))
		skb_set_delivery_time(t->skb, t->edt_ns, ROAN_SKB_CLOCK_MONOTONIC);
	t->max_pkts = gso_max_pkts(t);
	t->max_bytes = gso_max_bytes(t);
	t->sw_gso = !(READ_ONCE(t->flow->dst->dev->features) & NETIF_F_GSO_UDP_L4);
	t->seg_len = len;
	t->first_psn = t->pkt.psn;
	t->n = 0;
	t->bytes = 0;
	t->sealed_short = false;
	gso_write_headers(t);
	return true;
}

static void gso_free_empty(struct roan_train *t)
{
	if (!t->skb || t->n)
		return;
	kfree_skb(t->skb);
	t->skb = NULL;
}

/* Accounts @bytes that were added to the skb's frags. */
static void gso_lengthen(struct sk_buff *skb, u32 bytes)
{
	skb->len += bytes;
	skb->data_len += bytes;
	skb->truesize += bytes;
}

/* Adds the packets in reserved slots to the skb's last frag, and releases unused slots. */
static void gso_commit_frags(struct roan_train *t)
{
	struct skb_shared_info *shinfo;

	if (!t->n_slots)
		return;
	shinfo = skb_shinfo(t->skb);
	skb_frag_size_add(&shinfo->frags[shinfo->nr_frags - 1], t->pending_len);
	gso_lengthen(t->skb, t->pending_len);
	if (t->frag->offset == t->slots_end)
		t->frag->offset -= (t->n_slots - t->n) * t->seg_len;
	t->n_slots = 0;
	t->pending_len = 0;
}

/* Reserves slots for more packets of the first one's length: as many as the page and the train have space for. */
static void gso_reserve_slots(struct roan_train *t)
{
	struct page_frag *pf = t->frag;
	u32 bytes = min(pf->size - pf->offset, t->max_bytes - min(t->bytes, t->max_bytes));
	u32 n = min(bytes / t->seg_len, t->max_pkts - min(t->n, t->max_pkts));

	if (!n)
		return;
	t->next_slot = page_address(pf->page) + pf->offset;
	pf->offset += n * t->seg_len;
	t->slots_end = pf->offset;
	t->n_slots = t->n + n;
}

/* roan_gso_reserve() for a packet without a reserved slot. */
u8 *roan_gso_reserve_slow(struct roan_train *t, u32 len)
{
	gso_commit_frags(t);
	if (t->skb && !gso_can_join(t, len))
		roan_gso_xmit(t);
	if (!t->skb && !gso_start_skb(t, len))
		return NULL;
	t->len = len;
	t->crc_len = 0;
	if (!t->n && len <= SMALL_PACKET) {
		t->cur = skb_tail_pointer(t->skb);
		return t->cur;
	}
	t->frag = roan_tx_page_get(len, !t->n);
	if (!t->frag) {
		roan_count(t->dev, tx_no_memory);
		gso_free_empty(t);
		return NULL;
	}
	t->cur = page_address(t->frag->page) + t->frag->offset;
	return t->cur;
}

static void gso_attach_frag(struct roan_train *t)
{
	struct page_frag *pf = t->frag;
	struct sk_buff *skb = t->skb;
	int i = skb_shinfo(skb)->nr_frags;

	if (skb_can_coalesce(skb, i, pf->page, pf->offset)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], t->len);
	} else {
		get_page(pf->page);
		skb_fill_page_desc(skb, i, pf->page, pf->offset, t->len);
	}
	pf->offset += t->len;
	gso_lengthen(skb, t->len);
	if (!t->sealed_short)
		gso_reserve_slots(t);
}

/* Makes t->head valid for the packet being added. Returns that packet's IPv4 identification; IPv6: 0. */
static u16 gso_icrc_head(struct roan_train *t)
{
	bool ipv6 = gso_is_ipv6(t);

	if (!t->n || t->len != t->head_len) {
		roan_l3_set_lengths(t->l3, t->udp, ipv6, t->len, t->flow->ip_id);
		roan_l3_icrc_head(&t->head, t->l3, t->udp, ipv6);
		t->head_len = t->len;
	}
	return ipv6 ? 0 : t->flow->ip_id + t->n;
}

struct roan_icrc *roan_gso_crc_begin(struct roan_train *t, u32 headers, u32 payload)
{
	u16 id;

	if (payload < ROAN_VPCLMUL_MIN)
		return NULL;
	id = gso_icrc_head(t);
	roan_icrc_start(&t->icrc, &t->head, id, t->cur);
	if (headers > ROAN_BTH_LEN)
		roan_icrc_add(&t->icrc, t->cur + ROAN_BTH_LEN, headers - ROAN_BTH_LEN);
	t->crc_len = headers + payload;
	return &t->icrc;
}

void roan_gso_commit(struct roan_train *t)
{
	u32 end = t->len - ROAN_ICRC_LEN;

	if (!t->crc_len) {
		u16 id = gso_icrc_head(t);

		put_unaligned_le32(~roan_icrc_state(&t->head, id, t->cur, end), t->cur + end);
	} else {
		if (t->crc_len < end)	/* padding */
			roan_icrc_add(&t->icrc, t->cur + t->crc_len, end - t->crc_len);
		roan_icrc_put(&t->icrc, t->cur + end);
	}

	t->cur = NULL;
	t->bytes += t->len;
	if (t->n++ < t->n_slots) {
		t->next_slot += t->len;
		t->pending_len += t->len;
		return;
	}
	t->sealed_short = t->len < t->seg_len;
	if (t->n == 1 && t->len <= SMALL_PACKET)
		skb_put(t->skb, t->len);
	else
		gso_attach_frag(t);
}

void roan_gso_abort(struct roan_train *t)
{
	t->cur = NULL;
	gso_free_empty(t);
}

/*
 * On a device that takes trains a single packet gets a UDP checksum, too, although the ICRC protects it better. GRO
 * does not hold a packet without a checksum: it delivers that at once, ahead of packets of the same flow that it still
 * holds.
 */
static void gso_finish_udp(struct roan_train *t, struct udphdr *udp, bool ipv6)
{
	struct sk_buff *skb = t->skb;
	u32 len = t->bytes + sizeof(*udp);

	if (t->max_pkts == 1) {
		skb->ip_summed = CHECKSUM_NONE;
		return;
	}
	if (ipv6) {
		const struct ipv6hdr *ip6 = (const struct ipv6hdr *)t->l3;

		udp->check = ~udp_v6_check(len, &ip6->saddr, &ip6->daddr, 0);
	} else {
		const struct iphdr *ip = (const struct iphdr *)t->l3;

		udp->check = ~udp_v4_check(len, ip->saddr, ip->daddr, 0);
	}
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	if (t->n == 1)
		return;
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_size = t->seg_len;
	skb_shinfo(skb)->gso_segs = t->n;
}

static void gso_count_unsent(struct roan_train *t)
{
	t->unsent_bytes += t->bytes + t->n * t->round.wire_overhead;
}

/* NET_XMIT_CN: an skb of this flow was dropped, perhaps an earlier one. */
static void gso_note_drop(struct roan_train *t, int err)
{
	if (!t->dropped)
		t->dropped_psn = t->first_psn;
	t->dropped = true;
	if (err == NET_XMIT_DROP)
		gso_count_unsent(t);
	else
		t->keeps_psns = true;
}

void roan_gso_xmit(struct roan_train *t)
{
	bool ipv6;
	struct sk_buff *skb = t->skb;
	int err;

	roan_key_drop();	/* the payload is complete */
	gso_commit_frags(t);
	gso_free_empty(t);
	if (!t->skb)
		return;
	ipv6 = gso_is_ipv6(t);
	roan_l3_set_lengths(t->l3, t->udp, ipv6, t->bytes, t->flow->ip_id);
	memcpy(skb_push(skb, sizeof(t->udp)), t->udp, sizeof(t->udp));
	skb_reset_transport_header(skb);
	gso_finish_udp(t, udp_hdr(skb), ipv6);
	memcpy(skb_push(skb, roan_l3_len(ipv6)), t->l3, roan_l3_len(ipv6));
	skb_reset_network_header(skb);
	skb->priority = t->prio;

	t->flow->ip_id += t->n;
	t->skb = NULL;
	roan_count_n(t->dev, sent_pkts, t->n);
	roan_count_n(t->dev, sent_bytes, t->bytes);
	roan_count(t->dev, sent_skbs);
	if (unlikely(t->av->multicast))
		roan_count_n(t->dev, sent_multicast_pkts, t->n);
	if (unlikely(skb->tstamp))
		roan_count(t->dev, sent_edt_skbs);
	if (t->tx_counted)
		roan_tx_inflight_charge(t->qp, t->side, skb, t->flow->dst);
	roan_tx_budget_charge(t);
	err = roan_net_xmit(t->dev, skb, t->flow, ipv6);
	t->sent |= !err;
	if (unlikely(err > 0))
		gso_note_drop(t, err);
	t->n = 0;
	t->bytes = 0;
}

void roan_gso_discard(struct roan_train *t)
{
	roan_key_drop();
	gso_commit_frags(t);
	gso_count_unsent(t);
	kfree_skb(t->skb);
	t->skb = NULL;
	t->n = 0;
	t->bytes = 0;
}

bool roan_gso_inflight_full(struct roan_train *t)
{
	if (!roan_tx_inflight_over(t->qp, t->side, t->bytes))
		return false;
	roan_gso_xmit(t);
	return roan_tx_inflight_arm_full(t->qp, t->side);
}
