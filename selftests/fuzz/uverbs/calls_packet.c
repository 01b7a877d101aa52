// SPDX-License-Identifier: GPL-2.0
/*
 * Call types: a packet with a right ICRC from the second host to a QP of the first device; a pause frame from there; what
 * the wire between the hosts loses, repeats, delays and reorders.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "devices.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/pkt_sched.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

static uint32_t crc32(uint32_t crc, const uint8_t *p, size_t n)
{
	int bit;

	while (n--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* The invariant CRC of an IPv4 packet: fields that routers change count as ones. */
static uint32_t icrc(const uint8_t *packet, size_t len)
{
	uint8_t masked[40];
	uint32_t crc;

	memset(masked, 0xff, 8);
	crc = crc32(~0u, masked, 8);
	memcpy(masked, packet, 40);
	masked[1] = masked[8] = masked[10] = masked[11] = 0xff;		/* TOS, TTL, checksum */
	masked[26] = masked[27] = 0xff;					/* UDP's checksum */
	masked[32] = 0xff;						/* reserved in the BTH */
	crc = crc32(crc, masked, 40);
	return ~crc32(crc, packet + 40, len - 40);
}

static void packet(struct run *r, const uint8_t *a)
{
	struct object *qp = pick(r, 0, QP, a[1]), *mr = pick(r, 0, MR, a[6]);
	uint8_t buf[1200] = { 0 };
	struct iphdr *ip = (void *)buf;
	struct udphdr *udp = (void *)(ip + 1);
	uint32_t *bth = (void *)(udp + 1), *ext = bth + 3, crc;
	uint32_t body = a[7] < 240 ? a[7] / 8 * 4 + (a[7] & 1) * 256 : value(a[7]) % 1024 & ~3u, len;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a070001) };
	uint64_t addr = mr ? mr->addr : address(a[6]);

	len = 28 + 12 + 16 + body;
	*ip = (struct iphdr) { .version = 4, .ihl = 5, .tot_len = htons(len + 4), .id = htons(1), .frag_off = htons(IP_DF), .ttl = 64,
			       .tos = a[11], .protocol = IPPROTO_UDP, .saddr = htonl(0x0a070002), .daddr = to.sin_addr.s_addr };
	*udp = (struct udphdr) { .source = htons(0xc000 | a[12]), .dest = htons(4791), .len = htons(len + 4 - 20) };
	bth[0] = htonl((uint32_t)(a[2] < 240 ? (a[2] % 9 == 8 ? 0x64 : a[2] % 9 == 7 ? 0x81 : a[2] % 32) : a[2]) << 24 | (a[3] & 0xf0) << 16 |
		       (a[3] & 3) << 20 | (a[4] < 240 ? 0xffff : a[4]));
	bth[1] = htonl(qp && a[1] < 240 ? qp->num : a[1]);
	bth[2] = htonl((a[5] & 0x80 ? 1u << 31 : 0) | (((qp ? qp->psn : 0) + (a[5] & 0x40 ? -(a[5] & 7) : a[5] & 7)) & 0xffffff));
	if (a[8] & 1) {				/* AETH, or DETH */
		ext[0] = htonl(a[8] & 2 ? 0x11111111 : (uint32_t)a[9] << 24 | a[10]);
		ext[1] = htonl(1);
	} else {				/* RETH or AtomicETH */
		ext[0] = htonl(addr >> 32);
		ext[1] = htonl(addr);
		ext[2] = htonl(mr ? mr->rkey : a[9]);
		ext[3] = htonl(a[10] < 200 ? body : value(a[10]));
	}
	if (wrong(a))
		buf[28 + a[13] % 60] ^= a[14];
	crc = icrc(buf, len);
	if (a[9] == 255)
		crc++;
	memcpy(buf + len, &crc, 4);
	++*calls_done;
	sendto(raw_socket, buf, len + 4, MSG_DONTWAIT, (void *)&to, sizeof(to));
}

/* A PFC frame, mostly valid. */
static void pause_frame(struct run *r, const uint8_t *a)
{
	uint8_t frame[60] = { 0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x08, 1, 1, 0, a[1] };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8808), .sll_halen = 6, .sll_ifindex = link_index };
	int i;

	(void)r;
	for (i = 0; i < 8; i++)
		frame[18 + 2 * i] = a[2 + i];
	if (wrong(a))
		frame[12 + a[13] % 24] ^= a[14];
	++*calls_done;
	sendto(link_socket, frame, a[11] < 240 ? 60 : a[12] % 60, MSG_DONTWAIT, (void *)&to, sizeof(to));
}

/* Any of these may be zero. run_end() restores the wire. */
static void wire(struct run *r, const uint8_t *a)
{
	const uint32_t percent = ~0u / 100;

	r->wire_changed = true;
	set_wire(ctx_of(a), &(struct tc_netem_qopt) {
		.limit = a[1] < 240 ? 1000 : a[1] % 8, .loss = a[2] & 1 ? a[2] % 32 * percent : 0, .duplicate = a[3] & 1 ? a[3] % 16 * percent : 0,
		.latency = a[4] & 1 ? a[4] * 64 : 0, .jitter = a[4] & 1 ? a[5] * 64 : 0, .gap = a[6] & 1 ? 1 + a[6] % 8 : 0 });
}

const struct call_type packet_calls[] = {
	{ "packet", 50, packet }, { "pause_frame", 6, pause_frame }, { "wire", 10, wire },
	{ 0 }
};
