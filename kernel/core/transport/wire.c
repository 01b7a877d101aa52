// SPDX-License-Identifier: GPL-2.0
/*
 * Packet bytes to struct roan_pkt and back (IBTA vol. 1, 9.2 and 9.3). Every length is checked here and nowhere else.
 * Does not read the payload and does not verify the ICRC.
 */
#include "core/transport/wire.h"

/* BTH bytes, by position: opcode, flags, pkey, resv8a, dest QP, ackreq and resv7, PSN. */
#define BTH_SE		0x80	/* byte 1 */
#define BTH_MIG		0x40
#define BTH_PAD_SHIFT	4
#define BTH_TVER	0x0f
#define BTH_FECN	0x80	/* byte 4 */
#define BTH_BECN	0x40
#define BTH_ACKREQ	0x80	/* byte 8 */
/* Reserved in the standard: sent as 0, ignored on receipt, covered by the ICRC. 0x30: reserved here, too. */
#define BTH_COPY	0x40
#define BTH_EXT_VERSION	0x0f

/* All extended headers that most requests have; they come first in wire order. */
#define ADDRESS_HEADERS	(ROAN_H_DETH | ROAN_H_FETH | ROAN_H_RETH | ROAN_H_ATOMIC)

static u32 get_be24(const u8 *p)
{
	return p[0] << 16 | p[1] << 8 | p[2];
}

static void put_be24(u32 v, u8 *p)
{
	p[0] = v >> 16;
	p[1] = v >> 8;
	p[2] = v;
}

/* Other vendors may mark packets by one reserved bit, as for adaptive routing: such a value is no version. */
static u8 parse_version(u8 b)
{
	u8 version = b & BTH_EXT_VERSION;

	return version & (version - 1) ? version : 0;
}

static void parse_bth(const u8 *b, struct roan_pkt *pkt)
{
	pkt->opcode = b[0];
	pkt->solicited = b[1] & BTH_SE;
	pkt->migreq = b[1] & BTH_MIG;
	pkt->pad = b[1] >> BTH_PAD_SHIFT & 3;
	pkt->pkey = get_unaligned_be16(b + 2);
	pkt->fecn = b[4] & BTH_FECN;
	pkt->becn = b[4] & BTH_BECN;
	pkt->qpn = get_be24(b + 5);
	pkt->ackreq = b[8] & BTH_ACKREQ;
	pkt->copy = b[8] & BTH_COPY;
	pkt->ext_version = parse_version(b[8]);
	pkt->psn = get_be24(b + 9);
}

/* Field by field: a memset of all of @pkt takes longer than parsing the headers. */
static void clear_extended(struct roan_pkt *pkt)
{
	pkt->syndrome = 0;
	pkt->flush_type = 0;
	pkt->flush_level = 0;
	pkt->msn = 0;
	pkt->rkey = 0;
	pkt->dma_len = 0;
	pkt->va = 0;
	pkt->compare = 0;
	pkt->swap_add = 0;
	pkt->orig = 0;
	pkt->imm = 0;
	pkt->inv_rkey = 0;
	pkt->qkey = 0;
	pkt->src_qpn = 0;
	pkt->payload_off = 0;
	pkt->payload_len = 0;
}

static void parse_sack(const u8 *b, struct roan_sack *sack)
{
	u32 i;

	sack->needless = b[0];
	sack->highest_psn = get_be24(b + 1);
	for (i = 0; i < ROAN_SACK_WORDS; i++)
		sack->received[i] = get_unaligned_be32(b + 4 + 4 * i);
}

static void build_sack(const struct roan_sack *sack, u8 *b)
{
	u32 i;

	b[0] = sack->needless;
	put_be24(sack->highest_psn, b + 1);
	for (i = 0; i < ROAN_SACK_WORDS; i++)
		put_unaligned_be32(sack->received[i], b + 4 + 4 * i);
}

/* The caller has checked that info->header_len bytes are present. */
static void parse_extended(const u8 *b, u16 headers, struct roan_pkt *pkt)
{
	b += ROAN_BTH_LEN;
	if (headers & ROAN_H_DETH) {
		pkt->qkey = get_unaligned_be32(b);
		pkt->src_qpn = get_be24(b + 5);
		b += 8;
	}
	if (headers & ROAN_H_FETH) {
		u32 feth = get_unaligned_be32(b);

		pkt->flush_type = feth & 0xf;
		pkt->flush_level = feth >> 4 & 3;
		b += 4;
	}
	if (headers & (ROAN_H_RETH | ROAN_H_ATOMIC)) {
		pkt->va = get_unaligned_be64(b);
		pkt->rkey = get_unaligned_be32(b + 8);
		b += 12;
	}
	if (headers & ROAN_H_RETH) {
		pkt->dma_len = get_unaligned_be32(b);
		b += 4;
	}
	if (headers & ROAN_H_ATOMIC) {
		pkt->swap_add = get_unaligned_be64(b);
		pkt->compare = get_unaligned_be64(b + 8);
		b += 16;
	}
	if (!(headers & ~ADDRESS_HEADERS))
		return;
	if (headers & ROAN_H_AETH) {
		pkt->syndrome = b[0];
		pkt->msn = get_be24(b + 1);
		b += 4;
	}
	if (headers & ROAN_H_ATOMIC_ACK) {
		pkt->orig = get_unaligned_be64(b);
		b += 8;
	}
	if (unlikely(headers & ROAN_H_SACK))
		parse_sack(b, &pkt->sack);
	if (headers & ROAN_H_IMM) {
		memcpy(&pkt->imm, b, sizeof(pkt->imm));
		b += 4;
	}
	if (headers & ROAN_H_IETH)
		pkt->inv_rkey = get_unaligned_be32(b);
}

enum roan_parse roan_wire_parse(const u8 *head, size_t len, struct roan_pkt *pkt)
{
	size_t overhead, payload;

	if (len < ROAN_MIN_PACKET || len > U16_MAX || len & 3) {
		*pkt = (struct roan_pkt) { .info = roan_opcode(ROAN_OPCODE_INVALID) };
		return ROAN_PARSE_SHORT;
	}
	parse_bth(head, pkt);
	clear_extended(pkt);
	pkt->info = roan_opcode(ROAN_OPCODE_INVALID);
	if (head[1] & BTH_TVER)
		return ROAN_PARSE_VERSION;
	pkt->info = roan_opcode(pkt->opcode);
	if (pkt->info->op == ROAN_OP_NONE)
		return ROAN_PARSE_OPCODE;

	overhead = pkt->info->header_len + ROAN_ICRC_LEN + pkt->pad;
	if (len < overhead)
		return ROAN_PARSE_SHORT;
	payload = len - overhead;
	if (payload && !pkt->info->payload)	/* without payload there is no padding: lengths are multiples of four */
		return ROAN_PARSE_SHORT;
	parse_extended(head, pkt->info->headers, pkt);
	pkt->payload_off = pkt->info->header_len;
	pkt->payload_len = payload;
	return ROAN_PARSE_OK;
}

static void build_bth(u8 *b, const struct roan_pkt *pkt)
{
	b[0] = pkt->opcode;
	b[1] = (pkt->solicited ? BTH_SE : 0) | (pkt->migreq ? BTH_MIG : 0) | (pkt->pad & 3) << BTH_PAD_SHIFT;
	put_unaligned_be16(pkt->pkey, b + 2);
	b[4] = (pkt->fecn ? BTH_FECN : 0) | (pkt->becn ? BTH_BECN : 0);
	put_be24(pkt->qpn, b + 5);
	b[8] = (pkt->ackreq ? BTH_ACKREQ : 0) | (pkt->copy ? BTH_COPY : 0) | (pkt->ext_version & BTH_EXT_VERSION);
	put_be24(pkt->psn, b + 9);
}

size_t roan_wire_build(u8 *buf, const struct roan_pkt *pkt)
{
	u16 headers = roan_opcode(pkt->opcode)->headers;
	u8 *b = buf + ROAN_BTH_LEN;

	build_bth(buf, pkt);
	if (headers & ROAN_H_DETH) {
		put_unaligned_be32(pkt->qkey, b);
		b[4] = 0;
		put_be24(pkt->src_qpn, b + 5);
		b += 8;
	}
	if (headers & ROAN_H_FETH) {
		put_unaligned_be32((pkt->flush_type & 0xf) | (pkt->flush_level & 3) << 4, b);
		b += 4;
	}
	if (headers & (ROAN_H_RETH | ROAN_H_ATOMIC)) {
		put_unaligned_be64(pkt->va, b);
		put_unaligned_be32(pkt->rkey, b + 8);
		b += 12;
	}
	if (headers & ROAN_H_RETH) {
		put_unaligned_be32(pkt->dma_len, b);
		b += 4;
	}
	if (headers & ROAN_H_ATOMIC) {
		put_unaligned_be64(pkt->swap_add, b);
		put_unaligned_be64(pkt->compare, b + 8);
		b += 16;
	}
	if (!(headers & ~ADDRESS_HEADERS))
		return b - buf;
	if (headers & ROAN_H_AETH) {
		b[0] = pkt->syndrome;
		put_be24(pkt->msn, b + 1);
		b += 4;
	}
	if (headers & ROAN_H_ATOMIC_ACK) {
		put_unaligned_be64(pkt->orig, b);
		b += 8;
	}
	if (headers & ROAN_H_IMM) {
		memcpy(b, &pkt->imm, sizeof(pkt->imm));
		b += 4;
	}
	if (headers & ROAN_H_IETH) {
		put_unaligned_be32(pkt->inv_rkey, b);
		b += 4;
	}
	if (headers & ROAN_H_CNP) {
		memset(b, 0, 16);
		b += 16;
	}
	if (headers & ROAN_H_SACK) {
		build_sack(&pkt->sack, b);
		b += ROAN_SACK_LEN;
	}
	return b - buf;
}

/* RNR timer, microseconds by code (IBTA vol. 1, table 45). */
static const u32 rnr_us[32] = {
	655360,	   10,	   20,	   30,	   40,	   60,	   80,	  120,
	   160,	  240,	  320,	  480,	  640,	  960,	 1280,	 1920,
	  2560,	 3840,	 5120,	 7680,	10240,	15360,	20480,	30720,
	 40960,	61440,	81920, 122880, 163840, 245760, 327680, 491520,
};

u64 roan_rnr_ns(u8 code)
{
	return (u64)rnr_us[code & 31] * 1000;
}

u8 roan_rnr_code(u64 ns)
{
	u8 code = 31;

	while (code > 1 && roan_rnr_ns(code) > ns)
		code--;
	return code;
}

/* End-to-end credits by code (IBTA vol. 1, table 46). */
static const u16 credits[31] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
	6144, 8192, 12288, 16384, 24576, 32768,
};

u32 roan_credits_of(u8 code)
{
	return credits[min_t(u8, code, ARRAY_SIZE(credits) - 1)];
}

u8 roan_credit_code(u32 n)
{
	u8 code = ARRAY_SIZE(credits) - 1;

	while (credits[code] > n)
		code--;
	return code;
}
