// SPDX-License-Identifier: GPL-2.0
/*
 * Start of the invariant CRC: the headers that routers may change in places, with these places set to ones. The payload
 * is the caller's to run through roan_crc32(), wherever it lies.
 */
#include "icrc.h"

#define IP4_TOS		1
#define IP4_TTL		8
#define IP4_CHECK	10	/* 2 bytes */
#define IP6_HOP_LIMIT	7
#define UDP_CHECK	6	/* 2 bytes */
#define BTH_RESV8A	4

/* The LRH that RoCE does not have: 64 ones (A17.3.3). CRC-32 of them is the same for every packet. */
static const u8 no_lrh[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static u8 *put_masked_udp_bth(u8 *p, const u8 *udp, const u8 *bth)
{
	memcpy(p, udp, 8);
	p[UDP_CHECK] = 0xff;
	p[UDP_CHECK + 1] = 0xff;
	p += 8;
	memcpy(p, bth, 12);
	p[BTH_RESV8A] = 0xff;
	return p + 12;
}

u32 roan_icrc_start4(const u8 *ip, const u8 *udp, const u8 *bth)
{
	u8 m[8 + 20 + 8 + 12], *p = m;

	memcpy(p, no_lrh, 8);
	p += 8;
	memcpy(p, ip, 20);
	p[IP4_TOS] = 0xff;
	p[IP4_TTL] = 0xff;
	p[IP4_CHECK] = 0xff;
	p[IP4_CHECK + 1] = 0xff;
	put_masked_udp_bth(p + 20, udp, bth);
	return roan_crc32(~0u, m, sizeof(m));
}

u32 roan_icrc_start6(const u8 *ip6, const u8 *udp, const u8 *bth)
{
	u8 m[8 + 40 + 8 + 12], *p = m;

	memcpy(p, no_lrh, 8);
	p += 8;
	memcpy(p, ip6, 40);
	p[0] |= 0x0f;		/* traffic class and flow label; the version stays */
	p[1] = 0xff;
	p[2] = 0xff;
	p[3] = 0xff;
	p[IP6_HOP_LIMIT] = 0xff;
	put_masked_udp_bth(p + 40, udp, bth);
	return roan_crc32(~0u, m, sizeof(m));
}
