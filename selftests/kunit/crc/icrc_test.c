// SPDX-License-Identifier: GPL-2.0
/* The invariant CRC: two independently computed vectors, and the set of covered header bits. */
#include <kunit/test.h>
#include "core/crc/icrc.h"

struct headers {
	u8 ip[40];
	u8 udp[8];
	u8 bth[12];
};

/* Arbitrary test data: byte i of each header is start + i * step. The payload is 0, 1, ... 63. */
static void fill(u8 *p, int n, u8 start, u8 step)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = start + i * step;
}

static struct roan_icrc icrc_of(const struct headers *h, bool v6)
{
	struct roan_icrc_head head;
	struct roan_icrc icrc;
	u8 payload[64];

	if (v6)
		roan_icrc_head6(&head, h->ip, h->udp);
	else
		roan_icrc_head4(&head, h->ip, h->udp);
	roan_icrc_start(&icrc, &head, head.id, h->bth);
	fill(payload, sizeof(payload), 0, 1);
	icrc.state = roan_crc32(roan_icrc_finish(&icrc), payload, sizeof(payload));
	return icrc;
}

static u32 state_of(const struct headers *h, bool v6)
{
	return icrc_of(h, v6).state;
}

static void make(struct headers *h, bool v6)
{
	if (v6)
		fill(h->ip, 40, 0x60, 5);
	else
		fill(h->ip, 20, 0x45, 7);
	fill(h->udp, 8, 0x12, 3);
	fill(h->bth, 12, 0x04, 11);
}

/*
 * Expected: Python's zlib.crc32 over 8 bytes 0xff, the headers above with the masked fields all ones, and the payload.
 */
static void vectors(struct kunit *test)
{
	struct headers h = {};
	struct roan_icrc v4, v6;
	u8 at[4];

	make(&h, false);
	v4 = icrc_of(&h, false);
	KUNIT_EXPECT_EQ(test, (u32)~v4.state, 0x657a4f2bu);
	roan_icrc_put(&v4, at);
	KUNIT_EXPECT_EQ(test, at[0], 0x2b);
	KUNIT_EXPECT_EQ(test, at[3], 0x65);
	KUNIT_EXPECT_TRUE(test, roan_icrc_equal(&v4, at));
	make(&h, true);
	v6 = icrc_of(&h, true);
	KUNIT_EXPECT_EQ(test, (u32)~v6.state, 0x84f16c36u);
	KUNIT_EXPECT_FALSE(test, roan_icrc_equal(&v6, at));
}

/* Computed in place, the result is the same and the packet is unchanged. */
static void whole(struct kunit *test)
{
	struct roan_icrc_head head;
	struct headers h = {};
	u8 pkt[12 + 64 + 4];

	make(&h, false);
	memcpy(pkt, h.bth, 12);
	fill(pkt + 12, 64, 0, 1);
	roan_icrc_head4(&head, h.ip, h.udp);
	put_unaligned_le32(~roan_icrc_state(&head, head.id, pkt, 12 + 64), pkt + 12 + 64);
	KUNIT_EXPECT_EQ(test, get_unaligned_le32(pkt + 12 + 64), 0x657a4f2bu);
	KUNIT_EXPECT_EQ(test, memcmp(pkt, h.bth, 12), 0);
	make(&h, true);
	roan_icrc_head6(&head, h.ip, h.udp);
	put_unaligned_le32(~roan_icrc_state(&head, 0, pkt, 12 + 64), pkt + 12 + 64);
	KUNIT_EXPECT_EQ(test, get_unaligned_le32(pkt + 12 + 64), 0x84f16c36u);
}

/* Starting with a packet's IPv4 identification equals starting with another one and replacing it afterwards. */
static void start__identification(struct kunit *test)
{
	struct roan_icrc_head own, other;
	struct headers h = {};
	struct roan_icrc a, b;
	u32 id;

	make(&h, false);
	roan_icrc_head4(&other, h.ip, h.udp);
	for (id = 0; id <= 0xffff; id++) {
		put_unaligned_be16(id, h.ip + 4);
		roan_icrc_head4(&own, h.ip, h.udp);
		roan_icrc_start(&a, &own, id, h.bth);
		roan_icrc_start(&b, &other, id, h.bth);
		if (roan_icrc_finish(&a) != roan_icrc_finish(&b))
			break;
	}
	KUNIT_EXPECT_EQ(test, id, 0x10000u);
}

/* CRC state and BTH as one 16-byte block equal the state followed by the BTH. */
static void block(struct kunit *test)
{
	struct roan_icrc_head head;
	struct headers h = {};
	struct roan_icrc icrc;
	u8 bytes[16];

	make(&h, false);
	roan_icrc_head4(&head, h.ip, h.udp);
	roan_icrc_start(&icrc, &head, head.id, h.bth);
	roan_icrc_bth_block(&icrc, bytes);
	KUNIT_EXPECT_EQ(test, roan_crc32(0, bytes, sizeof(bytes)), roan_icrc_finish(&icrc));
	KUNIT_EXPECT_EQ(test, roan_crc32(0, bytes, sizeof(bytes)), roan_icrc_finish(&icrc));	/* finishing twice */
}

/* Flips each bit of the @n bytes at @p: the ICRC must change, except for the bits in @mask[i] of byte i. */
static void flip(struct kunit *test, struct headers *h, bool v6, u8 *p, int n, const u8 *mask)
{
	u32 before = state_of(h, v6);
	int bit;

	for (bit = 0; bit < n * 8; bit++) {
		u8 one = 1 << (bit & 7);
		bool same;

		p[bit / 8] ^= one;
		same = state_of(h, v6) == before;
		p[bit / 8] ^= one;
		KUNIT_EXPECT_EQ_MSG(test, same, !!(mask[bit / 8] & one), "byte %d bit %d of %d", bit / 8, bit & 7, n);
	}
}

static const u8 udp_mask[8] = { [6] = 0xff, [7] = 0xff };
static const u8 bth_mask[12] = { [4] = 0xff };

static void masked_fields_v4(struct kunit *test)
{
	static const u8 ip_mask[20] = { [1] = 0xff, [8] = 0xff, [10] = 0xff, [11] = 0xff };
	struct headers h = {};

	make(&h, false);
	flip(test, &h, false, h.ip, 20, ip_mask);
	flip(test, &h, false, h.udp, 8, udp_mask);
	flip(test, &h, false, h.bth, 12, bth_mask);
}

static void masked_fields_v6(struct kunit *test)
{
	static const u8 ip_mask[40] = { 0x0f, 0xff, 0xff, 0xff, [7] = 0xff };
	struct headers h = {};

	make(&h, true);
	flip(test, &h, true, h.ip, 40, ip_mask);
	flip(test, &h, true, h.udp, 8, udp_mask);
	flip(test, &h, true, h.bth, 12, bth_mask);
}

static struct kunit_case icrc_cases[] = {
	KUNIT_CASE(vectors),
	KUNIT_CASE(whole),
	KUNIT_CASE(start__identification),
	KUNIT_CASE(block),
	KUNIT_CASE(masked_fields_v4),
	KUNIT_CASE(masked_fields_v6),
	{}
};

static struct kunit_suite icrc_suite = {
	.name = "roan_icrc",
	.test_cases = icrc_cases,
};
kunit_test_suite(icrc_suite);
