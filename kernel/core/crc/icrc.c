// SPDX-License-Identifier: GPL-2.0
/*
 * Start of the invariant CRC: the packet's headers, with the fields that routers may change set to ones. The caller
 * adds the payload with roan_icrc_add(), wherever it lies.
 */
#include "core/crc/icrc.h"

#define IP4_TOS		1
#define IP4_TTL		8
#define IP4_CHECK	10	/* 2 bytes */
#define IP6_HOP_LIMIT	7
#define UDP_CHECK	6	/* 2 bytes */
#define BTH_RESV8A	4
#define IP4_ID		4	/* 2 bytes */

/* The LRH that RoCE does not have: 64 ones (A17.3.3). */
static const u8 no_lrh[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

/*
 * A CRC is linear: the effect of a bit of the IPv4 identification on the state after the UDP header depends on nothing
 * else. These are the CRCs, from state 0, of each bit alone followed by 22 bytes of zeros.
 */
static const u32 id_bit[16] = {
	0x9b73ead4, 0xed96d3e9, 0x005ca193, 0x00b94326, 0x0172864c, 0x02e50c98, 0x05ca1930, 0x0b943260,
	0x81256527, 0xd93bcc0f, 0x69069e5f, 0xd20d3cbe, 0x7f6b7f3d, 0xfed6fe7a, 0x26dcfab5, 0x4db9f56a,
};

static void put_masked_udp(u8 *p, const u8 *udp)
{
	memcpy(p, udp, 8);
	p[UDP_CHECK] = 0xff;
	p[UDP_CHECK + 1] = 0xff;
}

void roan_icrc_head4(struct roan_icrc_head *head, const u8 *ip, const u8 *udp)
{
	u8 m[8 + 20 + 8];

	memcpy(m, no_lrh, 8);
	memcpy(m + 8, ip, 20);
	m[8 + IP4_TOS] = 0xff;
	m[8 + IP4_TTL] = 0xff;
	m[8 + IP4_CHECK] = 0xff;
	m[8 + IP4_CHECK + 1] = 0xff;
	put_masked_udp(m + 28, udp);
	head->state = roan_crc32(~0u, m, sizeof(m));
	head->id = get_unaligned_be16(ip + IP4_ID);
}

void roan_icrc_head6(struct roan_icrc_head *head, const u8 *ip6, const u8 *udp)
{
	u8 m[8 + 40 + 8];

	memcpy(m, no_lrh, 8);
	memcpy(m + 8, ip6, 40);
	m[8] |= 0x0f;		/* traffic class and flow label; the version stays */
	m[8 + 1] = 0xff;
	m[8 + 2] = 0xff;
	m[8 + 3] = 0xff;
	m[8 + IP6_HOP_LIMIT] = 0xff;
	put_masked_udp(m + 48, udp);
	head->state = roan_crc32(~0u, m, sizeof(m));
	head->id = 0;
}

/* The state after the UDP header of the packet with identification @id. */
static u32 icrc_state_with_id(const struct roan_icrc_head *head, u16 id)
{
	u16 bits = head->id ^ id;
	u32 state = head->state;

	for (; bits; bits &= bits - 1)
		state ^= id_bit[__builtin_ctz(bits)];
	return state;
}

u32 roan_icrc_state(const struct roan_icrc_head *head, u16 id, u8 *bth, size_t len)
{
	u8 resv8a = bth[BTH_RESV8A];
	u32 state;

	bth[BTH_RESV8A] = 0xff;
	state = roan_crc32(icrc_state_with_id(head, id), bth, len);
	bth[BTH_RESV8A] = resv8a;
	return state;
}

void roan_icrc_start(struct roan_icrc *icrc, const struct roan_icrc_head *head, u16 id, const u8 *bth)
{
	icrc->state = icrc_state_with_id(head, id);
	memcpy(icrc->bth, bth, 12);
	icrc->bth[BTH_RESV8A] = 0xff;
	icrc->bth_waits = true;
}
