// SPDX-License-Identifier: GPL-2.0
/*
 * Trains. Built trains are segmented by the kernel's UDP GSO; every resulting packet must have the ICRC of its own
 * headers. Trains to parse are built in the layouts that GRO, GSO or a netdev may deliver. Routes are faked in stubs.c.
 */
#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/gso.h>
#include <net/ip6_checksum.h>
#include <net/udp.h>
#include "fakes.h"

#define FIRST_ID	0xfffe		/* a train of four crosses 2^16 */
#define BTH_RESV8A	4		/* the one byte of a BTH that the ICRC leaves out */

static struct roan_av av_of(bool ipv6)
{
	struct roan_av av = { .tclass = 0x62, .ttl = 64, .flow_label = 0x12345, .sport = 0xc123 };
	u8 *s = av.sgid.raw, *d = av.dgid.raw;

	if (ipv6) {
		s[0] = 0xfd;
		d[0] = 0xfd;
	} else {
		s[10] = 0xff;
		s[11] = 0xff;
		d[10] = 0xff;
		d[11] = 0xff;
		s[12] = 10;
		d[12] = 10;
	}
	s[15] = 1;
	d[15] = 2;
	return av;
}

static u32 l3_of(bool ipv6)
{
	return ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

/* Byte @i of packet @n, without ICRC. The first twelve resemble a BTH. */
static u8 packet_byte(u32 n, u32 i)
{
	return n * 31 + i * 3 + (i >> 8);
}

static void add_packet(struct kunit *test, struct roan_train *t, u32 n, u32 len)
{
	u8 *p = roan_gso_reserve(t, len);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (i = 0; i < len - ROAN_ICRC_LEN; i++)
		p[i] = packet_byte(n, i);
	roan_gso_commit(t);
}

/* Builds and sends packets; the skbs are in fake_sent. A length of 0 ends the list. */
static void build(struct kunit *test, struct roan_dst_cache *flow, bool ipv6, const u32 *lens)
{
	struct roan_av av = av_of(ipv6);
	struct fake *f = test->priv;
	struct roan_train t;
	u32 n;

	local_bh_disable();
	roan_gso_begin(&t, &f->dev, flow, &av);
	for (n = 0; lens[n]; n++)
		add_packet(test, &t, n, lens[n]);
	roan_gso_xmit(&t);
	local_bh_enable();
}

/* ---- building ---- */

/* The ICRC of a whole packet, from its IP header on, computed with crc32_le(). */
static u32 icrc_of(const u8 *packet, u32 len, bool ipv6)
{
	u32 l3 = l3_of(ipv6);
	u8 head[8 + 40 + 8 + 12];

	memset(head, 0xff, 8);
	memcpy(head + 8, packet, l3 + 20);
	if (ipv6) {
		head[8] |= 0x0f;
		memset(head + 9, 0xff, 3);
		head[8 + 7] = 0xff;
	} else {
		head[8 + 1] = 0xff;
		head[8 + 8] = 0xff;
		memset(head + 8 + 10, 0xff, 2);
	}
	memset(head + 8 + l3 + 6, 0xff, 2);
	head[8 + l3 + 8 + BTH_RESV8A] = 0xff;
	return ~crc32_le(crc32_le(~0, head, 8 + l3 + 20), packet + l3 + 20, len - l3 - 20 - ROAN_ICRC_LEN);
}

/* Checks one packet as on the wire: @skb is linear and begins with its IP header. */
static void check_packet(struct kunit *test, const struct sk_buff *skb, bool ipv6, u32 n, u32 len, u16 id)
{
	u32 l3 = l3_of(ipv6), udp_len = len + 8, i;
	const u8 *p = skb->data, *bth = p + l3 + 8;

	KUNIT_ASSERT_EQ(test, skb->len, l3 + udp_len);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(p + l3), 0xc123);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(p + l3 + 2), ROAN_UDP_PORT);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(p + l3 + 4), udp_len);
	if (ipv6) {
		KUNIT_EXPECT_EQ(test, get_unaligned_be16(p + 4), udp_len);
		KUNIT_EXPECT_EQ(test, get_unaligned_be32(p), 0x66212345u);
	} else {
		KUNIT_EXPECT_EQ(test, get_unaligned_be16(p + 2), udp_len + l3);
		KUNIT_EXPECT_EQ(test, get_unaligned_be16(p + 4), id);
		KUNIT_EXPECT_EQ(test, p[1], 0x62);
	}
	for (i = 0; i < len - ROAN_ICRC_LEN && bth[i] == packet_byte(n, i); i++)
		;
	KUNIT_EXPECT_EQ_MSG(test, i, len - ROAN_ICRC_LEN, "packet %u has other bytes", n);
	KUNIT_EXPECT_EQ_MSG(test, get_unaligned_le32(bth + len - 4), icrc_of(p, skb->len, ipv6), "ICRC of packet %u", n);
}

static bool udp_checksum_ok(const struct sk_buff *skb, bool ipv6)
{
	u32 l3 = l3_of(ipv6), len = skb->len - l3;
	__wsum sum = skb_checksum(skb, l3, len, 0);

	if (ipv6)
		return !csum_ipv6_magic(&ipv6_hdr(skb)->saddr, &ipv6_hdr(skb)->daddr, len, IPPROTO_UDP, sum);
	return !csum_tcpudp_magic(ip_hdr(skb)->saddr, ip_hdr(skb)->daddr, len, IPPROTO_UDP, sum);
}

struct shape {
	const char *what;
	bool ipv6;
	u32 lens[6];
};

static const struct shape shapes[] = {
	{ "two small ones, IPv4", false, { 32, 32 } },
	{ "the smallest, IPv4", false, { 16, 16, 16 } },
	{ "1 KB packets, the last shorter, IPv4", false, { 1044, 1044, 1044, 1044, 40 } },
	{ "4 KB packets, IPv4", false, { 4116, 4116, 4116, 4116 } },
	{ "a small first, IPv4", false, { 256, 256, 20 } },
	{ "1 KB packets, the last shorter, IPv6", true, { 1044, 1044, 1044, 1044, 40 } },
	{ "4 KB packets, IPv6", true, { 4116, 4116, 4116 } },
	{ "two small ones, IPv6", true, { 48, 48 } },
};

static void shape_desc(const struct shape *s, char *desc)
{
	strscpy(desc, s->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_desc);

static void every_cut_packet_has_its_icrc(struct kunit *test)
{
	const struct shape *s = test->param_value;
	struct roan_dst_cache flow = { .ip_id = FIRST_ID };
	struct sk_buff *train, *list, *skb, *next;
	struct fake *f = test->priv;
	u32 n = 0, bytes = 0;

	build(test, &flow, s->ipv6, s->lens);
	KUNIT_ASSERT_EQ(test, skb_queue_len(&fake_sent), 1u);
	train = __skb_dequeue(&fake_sent);
	KUNIT_EXPECT_EQ(test, skb_shinfo(train)->gso_size, s->lens[0]);
	KUNIT_EXPECT_TRUE(test, train->ip_summed == CHECKSUM_PARTIAL);
	KUNIT_EXPECT_EQ(test, skb_checksum_start_offset(train), (int)l3_of(s->ipv6));
	KUNIT_EXPECT_EQ(test, train->csum_offset, offsetof(struct udphdr, check));
	KUNIT_EXPECT_EQ(test, train->priority, 3u);	/* of tclass 0x62, for an interface without DCB */
	KUNIT_EXPECT_TRUE(test, skb_shinfo(train)->gso_type == SKB_GSO_UDP_L4);

	/* As dev_hard_start_xmit() does for a device without offloads. */
	train->dev = &f->ndev;
	skb_reset_mac_header(train);
	skb_reset_mac_len(train);
	list = skb_gso_segment(train, 0);
	KUNIT_EXPECT_EQ(test, skb_shinfo(train)->gso_segs, (u16)(flow.ip_id - FIRST_ID));
	kfree_skb(train);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(list));
	for (skb = list; skb; skb = next, n++) {
		next = skb->next;
		KUNIT_EXPECT_EQ(test, skb_linearize(skb), 0);
		check_packet(test, skb, s->ipv6, n, s->lens[n], FIRST_ID + n);
		KUNIT_EXPECT_TRUE(test, udp_checksum_ok(skb, s->ipv6));
		bytes += s->lens[n];
		skb_mark_not_on_list(skb);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, s->lens[n], 0u);
	KUNIT_EXPECT_EQ(test, flow.ip_id, (u16)(FIRST_ID + n));
	KUNIT_EXPECT_EQ(test, fake_count(ROAN_CNT_sent_pkts), (u64)n);
	KUNIT_EXPECT_EQ(test, fake_count(ROAN_CNT_sent_bytes), (u64)bytes);
	KUNIT_EXPECT_EQ(test, fake_count(ROAN_CNT_sent_skbs), 1ull);
}

/* Checks the next sent skb and frees it. Returns the number of its packets. */
static u32 next_skb(struct kunit *test, u32 *n, const u32 *lens, u16 id)
{
	struct sk_buff *skb = __skb_dequeue(&fake_sent);
	u32 pkts, len = 0, i;

	if (!skb)
		return 0;
	pkts = skb_shinfo(skb)->gso_segs ?: 1;
	for (i = 0; i < pkts; i++)
		len += lens[*n + i];
	KUNIT_EXPECT_EQ(test, skb->len, len + 28);
	KUNIT_EXPECT_EQ(test, skb_linearize(skb), 0);
	if (pkts == 1)
		check_packet(test, skb, false, *n, lens[*n], id + *n);
	*n += pkts;
	kfree_skb(skb);
	return pkts;
}

static void a_train_has_equal_packets(struct kunit *test)
{
	/* A longer packet starts a new train; a shorter one is the last of its train. */
	static const u32 lens[] = { 100, 200, 200, 60, 200, 300, 300, 0 };
	struct roan_dst_cache flow = { .ip_id = FIRST_ID };
	u32 n = 0;

	build(test, &flow, false, lens);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, FIRST_ID), 1u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, FIRST_ID), 3u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, FIRST_ID), 1u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, FIRST_ID), 2u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, FIRST_ID), 0u);
}

static void train_obeys_the_device_limits(struct kunit *test)
{
	static const u32 lens[] = { 1000, 1000, 1000, 1000, 1000, 0 };
	struct roan_dst_cache flow = {};
	struct fake *f = test->priv;
	u32 n = 0;

	f->ndev.gso_max_segs = 2;
	build(test, &flow, false, lens);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 2u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 2u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 1u);

	f->ndev.gso_max_segs = GSO_MAX_SEGS;
	f->ndev.gso_max_size = 3028;	/* three packets with IP and UDP headers */
	flow.ip_id = 0;
	n = 0;
	build(test, &flow, false, lens);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 3u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 2u);

	f->ndev.gso_max_size = 3027;
	flow.ip_id = 0;
	n = 0;
	build(test, &flow, false, lens);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 2u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 2u);
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 0), 1u);

	f->ndev.gso_max_size = GSO_LEGACY_MAX_SIZE;
	f->ndev.features = NETIF_F_SG;	/* no checksum offload */
	flow.ip_id = 0;
	n = 0;
	build(test, &flow, false, lens);
	while (next_skb(test, &n, lens, 0))
		;
	KUNIT_EXPECT_EQ(test, n, 5u);
	KUNIT_EXPECT_EQ(test, fake_count(ROAN_CNT_sent_skbs), 3ull + 2 + 3 + 5);
}

static void dropped_packets_leave_nothing(struct kunit *test)
{
	static const u32 lens[] = { 100, 0 };
	struct roan_dst_cache flow = { .ip_id = 7 };
	struct roan_av av = av_of(false);
	struct fake *f = test->priv;
	struct roan_train t;
	u32 n = 0;

	local_bh_disable();
	roan_gso_begin(&t, &f->dev, &flow, &av);
	KUNIT_EXPECT_NOT_NULL(test, roan_gso_reserve(&t, 500));
	roan_gso_abort(&t);
	roan_gso_xmit(&t);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fake_sent), 0u);
	KUNIT_EXPECT_EQ(test, flow.ip_id, 7);

	add_packet(test, &t, 0, 100);
	KUNIT_EXPECT_NOT_NULL(test, roan_gso_reserve(&t, 100));
	roan_gso_abort(&t);
	roan_gso_xmit(&t);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, next_skb(test, &n, lens, 7), 1u);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fake_sent), 0u);
	KUNIT_EXPECT_EQ(test, flow.ip_id, 8);

	fake_no_route = true;
	local_bh_disable();
	KUNIT_EXPECT_NULL(test, roan_gso_reserve(&t, 100));
	roan_gso_xmit(&t);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fake_sent), 0u);
	KUNIT_EXPECT_EQ(test, fake_count(ROAN_CNT_sent_pkts), 1ull);
}

/* ---- parsing ---- */

/* As kernel/net/ip_hook.c fills it, for an skb that begins with its IP header. */
static struct roan_rx_ctx rx_of(struct sk_buff *skb, bool ipv6, u32 seg_len)
{
	struct roan_rx_ctx rx = { .skb = skb, .ipv6 = ipv6, .seg_len = seg_len };
	u32 l3 = l3_of(ipv6);

	skb_copy_bits(skb, 0, rx.ip, l3);
	skb_copy_bits(skb, l3, rx.udp, sizeof(rx.udp));
	rx.off = l3 + sizeof(struct udphdr);
	rx.end = skb->len;
	return rx;
}

/* Parses the whole skb and checks the lengths of its packets. Bit n of the result: the ICRC of packet n is right. */
static u32 walk(struct kunit *test, struct roan_rx_ctx *rx, const u32 *lens)
{
	u32 good = 0, n = 0;

	while (roan_rx_next(rx)) {
		KUNIT_EXPECT_EQ(test, rx->seg_idx, n);
		KUNIT_EXPECT_EQ(test, rx->len, lens[n]);
		if (roan_rx_icrc_ok(rx))
			good |= 1u << n;
		n++;
		if (n > 8)
			break;
	}
	KUNIT_EXPECT_EQ(test, lens[n], 0u);
	return good;
}

static struct sk_buff *built(struct kunit *test, bool ipv6, const u32 *lens)
{
	struct roan_dst_cache flow = { .ip_id = FIRST_ID };

	build(test, &flow, ipv6, lens);
	KUNIT_ASSERT_EQ(test, skb_queue_len(&fake_sent), 1u);
	return __skb_dequeue(&fake_sent);
}

static u32 all_of(const u32 *lens)
{
	u32 n = 0;

	while (lens[n])
		n++;
	return (1u << n) - 1;
}

static void walker_sees_what_was_built(struct kunit *test)
{
	const struct shape *s = test->param_value;
	struct sk_buff *skb = built(test, s->ipv6, s->lens);
	struct roan_rx_ctx rx = rx_of(skb, s->ipv6, s->lens[0]);
	u32 n;

	KUNIT_EXPECT_EQ(test, walk(test, &rx, s->lens), all_of(s->lens));
	KUNIT_EXPECT_FALSE(test, rx.ip_id_fixed);
	rx = rx_of(skb, s->ipv6, s->lens[0]);
	for (n = 0; roan_rx_next(&rx); n++) {
		u32 i, have = min_t(u32, s->lens[n] - ROAN_ICRC_LEN, ROAN_MAX_HEADERS);

		for (i = 0; i < have && rx.head[i] == packet_byte(n, i); i++)
			;
		KUNIT_EXPECT_EQ(test, i, have);
	}
	kfree_skb(skb);
}

/* Copies @skb with its payload in frags of @frag bytes: some in the skb itself, the rest in skbs on its frag_list. */
static struct sk_buff *in_pieces(struct kunit *test, const struct sk_buff *skb, u32 head, u32 frag)
{
	struct sk_buff *whole = alloc_skb(head, GFP_KERNEL), *at = whole, **link = &skb_shinfo(whole)->frag_list;
	u32 off = head;

	skb_copy_bits(skb, 0, skb_put(whole, head), head);
	while (off < skb->len) {
		struct page *page = alloc_page(GFP_KERNEL);
		u32 n = min(frag, skb->len - off);
		int i = skb_shinfo(at)->nr_frags;

		KUNIT_ASSERT_NOT_NULL(test, page);
		if (i == 5) {
			at = alloc_skb(0, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, at);
			*link = at;
			link = &at->next;
			i = 0;
		}
		skb_copy_bits(skb, off, page_address(page) + 3, n);
		skb_add_rx_frag(at, i, page, 3, n, PAGE_SIZE);
		if (at != whole) {
			whole->len += n;
			whole->data_len += n;
		}
		off += n;
	}
	KUNIT_EXPECT_EQ(test, whole->len, skb->len);
	return whole;
}

static void packets_lie_across_frags(struct kunit *test)
{
	static const u32 lens[] = { 1044, 1044, 1044, 40, 0 };
	static const u32 frags[] = { 97, 160, 1000, 1044, 1045, 4000 };
	int i, v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct sk_buff *skb = built(test, v6, lens);

		for (i = 0; i < ARRAY_SIZE(frags); i++) {
			struct sk_buff *pieces = in_pieces(test, skb, l3_of(v6) + 8 + i, frags[i]);
			struct roan_rx_ctx rx = rx_of(pieces, v6, lens[0]);

			KUNIT_EXPECT_EQ_MSG(test, walk(test, &rx, lens), 0xfu, "frags of %u", frags[i]);
			kfree_skb(pieces);
		}
		kfree_skb(skb);
	}
}

static void any_flipped_bit_is_seen(struct kunit *test)
{
	static const u32 lens[] = { 64, 64, 20, 0 };
	u32 bit, wrong = 0;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct sk_buff *skb = built(test, v6, lens);
		u32 payload = l3_of(v6) + 8;

		KUNIT_ASSERT_EQ(test, skb_linearize(skb), 0);
		for (bit = 0; bit < (64 + 64 + 20) * 8; bit++) {
			u32 pkt = bit / 512, byte = bit / 8 - pkt * 64;
			u32 want = byte == BTH_RESV8A ? 7 : 7 & ~(1u << pkt);
			struct roan_rx_ctx rx;

			skb->data[payload + bit / 8] ^= 1 << (bit & 7);
			rx = rx_of(skb, v6, lens[0]);
			wrong += walk(test, &rx, lens) != want;
			skb->data[payload + bit / 8] ^= 1 << (bit & 7);
		}
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0u);
}

/*
 * Header bytes that routers may change, and some that they may not. Lengths are not in the list: the parser sets them.
 */
static void headers_are_covered(struct kunit *test)
{
	static const u32 lens[] = { 64, 0 };
	static const u8 routers4[] = { 1, 8, 10, 11, 20 + 6, 20 + 7 };
	static const u8 fixed4[] = { 0, 4, 5, 6, 9, 12, 15, 16, 19, 20, 21, 22, 23 };
	static const u8 routers6[] = { 1, 2, 3, 7, 40 + 6, 40 + 7 };
	static const u8 fixed6[] = { 0, 6, 8, 23, 24, 39, 40, 41, 42, 43 };
	int v6, i;

	for (v6 = 0; v6 < 2; v6++) {
		struct sk_buff *skb = built(test, v6, lens);
		const u8 *routers = v6 ? routers6 : routers4, *fixed = v6 ? fixed6 : fixed4;

		for (i = 0; i < ARRAY_SIZE(routers4); i++) {
			struct roan_rx_ctx rx;

			skb->data[routers[i]] ^= 0x80;
			rx = rx_of(skb, v6, 0);
			KUNIT_EXPECT_EQ_MSG(test, walk(test, &rx, lens), 1u, "byte %u", routers[i]);
			skb->data[routers[i]] ^= 0x80;
		}
		for (i = 0; i < (v6 ? ARRAY_SIZE(fixed6) : ARRAY_SIZE(fixed4)); i++) {
			struct roan_rx_ctx rx;

			skb->data[fixed[i]] ^= 0x80;
			rx = rx_of(skb, v6, 0);
			KUNIT_EXPECT_EQ_MSG(test, walk(test, &rx, lens), 0u, "byte %u", fixed[i]);
			skb->data[fixed[i]] ^= 0x80;
		}
		kfree_skb(skb);
	}
}

/*
 * The skb that GRO makes of 64-byte packets with IPv4 identifications @ids: the first packet and the others' payloads.
 */
static struct sk_buff *merged(struct kunit *test, const u16 *ids, int n)
{
	static const u32 lens[] = { 64, 0 };
	struct sk_buff *first = NULL, **link = NULL;
	int i;

	for (i = 0; i < n; i++) {
		struct roan_dst_cache flow = { .ip_id = ids[i] };
		struct sk_buff *skb;

		build(test, &flow, false, lens);
		skb = __skb_dequeue(&fake_sent);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		if (!first) {
			first = skb;
			link = &skb_shinfo(skb)->frag_list;
			continue;
		}
		__skb_pull(skb, 28);
		first->len += skb->len;
		first->data_len += skb->len;
		*link = skb;
		link = &skb->next;
	}
	return first;
}

static void identifications_increment_or_are_fixed(struct kunit *test)
{
	static const u32 lens[] = { 64, 64, 64, 64, 0 };
	static const struct {
		u16 ids[4];
		u32 good;
		bool fixed;
	} cases[] = {
		{ { 5, 6, 7, 8 }, 0xf, false },
		{ { 0xfffe, 0xffff, 0, 1 }, 0xf, false },
		{ { 5, 5, 5, 5 }, 0xf, true },
		{ { 5, 5, 7, 5 }, 0xb, true },		/* neither fixed nor incrementing */
		{ { 5, 7, 7, 8 }, 0xd, false },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sk_buff *skb = merged(test, cases[i].ids, 4);
		struct roan_rx_ctx rx = rx_of(skb, false, 64);

		KUNIT_EXPECT_EQ_MSG(test, walk(test, &rx, lens), cases[i].good, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, rx.ip_id_fixed, cases[i].fixed, "case %d", i);
		kfree_skb(skb);
	}
}

static void truncated_packets_are_refused(struct kunit *test)
{
	static const u32 lens[] = { 64, 0 };
	struct sk_buff *skb = built(test, false, lens);
	struct roan_rx_ctx rx;
	u32 len;

	for (len = 1; len < 64; len++) {
		rx = rx_of(skb, false, 0);
		rx.end = rx.off + len;
		KUNIT_ASSERT_TRUE(test, roan_rx_next(&rx));
		KUNIT_EXPECT_EQ(test, rx.len, len);
		KUNIT_EXPECT_FALSE(test, roan_rx_icrc_ok(&rx));
		KUNIT_EXPECT_FALSE(test, roan_rx_next(&rx));
	}
	rx = rx_of(skb, false, 0);
	rx.end = rx.off;
	KUNIT_EXPECT_FALSE(test, roan_rx_next(&rx));
	rx = rx_of(skb, false, 0);
	rx.end++;	/* a wrong end beyond the skb: nothing may be read */
	KUNIT_EXPECT_TRUE(test, !roan_rx_next(&rx) || !roan_rx_icrc_ok(&rx));
	kfree_skb(skb);
}

static struct kunit_case train_cases[] = {
	KUNIT_CASE_PARAM(every_cut_packet_has_its_icrc, shape_gen_params),
	KUNIT_CASE(a_train_has_equal_packets),
	KUNIT_CASE(train_obeys_the_device_limits),
	KUNIT_CASE(dropped_packets_leave_nothing),
	KUNIT_CASE_PARAM(walker_sees_what_was_built, shape_gen_params),
	KUNIT_CASE(packets_lie_across_frags),
	KUNIT_CASE(any_flipped_bit_is_seen),
	KUNIT_CASE(headers_are_covered),
	KUNIT_CASE(identifications_increment_or_are_fixed),
	KUNIT_CASE(truncated_packets_are_refused),
	{}
};

static struct kunit_suite train_suite = {
	.name = "roan_gso",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = train_cases,
};
kunit_test_suite(train_suite);
