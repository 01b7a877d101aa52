// SPDX-License-Identifier: GPL-2.0
/*
 * Building and parsing are inverse for every opcode. Short packets are refused without a read past their end. The
 * arithmetic of PSNs.
 */
#include <kunit/test.h>
#include "core/transport/psn.h"
#include "core/transport/wire.h"

static const struct roan_pkt full = {
	.pad = 1, .syndrome = 0x65, .flush_type = 3, .flush_level = 1, .solicited = true, .ackreq = true, .migreq = true,
	.becn = true, .pkey = 0x8123, .qpn = 0xabcdef, .psn = 0xfedcba, .msn = 0x123456, .rkey = 0xdeadbeef,
	.dma_len = 0x80000001, .va = 0x1122334455667788, .compare = 0x99aabbccddeeff00, .swap_add = 0x0f1e2d3c4b5a6978,
	.orig = 0x8796a5b4c3d2e1f0, .inv_rkey = 0xcafebabe, .qkey = 0x80010000, .src_qpn = 0x654321, .ext_version = 5, .copy = true,
	.sack = { .needless = 0xa5, .highest_psn = 0xfedcbb, .received = { 0x80000001, 2, 0x12345678, 0, 0xc0000000 } },
};

static void expect_extended(struct kunit *test, const struct roan_pkt *p)
{
	u16 h = p->info->headers;
	bool target = h & (ROAN_H_RETH | ROAN_H_ATOMIC);

	KUNIT_EXPECT_EQ(test, p->qkey, h & ROAN_H_DETH ? full.qkey : 0);
	KUNIT_EXPECT_EQ(test, p->src_qpn, h & ROAN_H_DETH ? full.src_qpn : 0);
	KUNIT_EXPECT_EQ(test, p->flush_type, h & ROAN_H_FETH ? full.flush_type : 0);
	KUNIT_EXPECT_EQ(test, p->flush_level, h & ROAN_H_FETH ? full.flush_level : 0);
	KUNIT_EXPECT_EQ(test, p->va, target ? full.va : 0);
	KUNIT_EXPECT_EQ(test, p->rkey, target ? full.rkey : 0);
	KUNIT_EXPECT_EQ(test, p->dma_len, h & ROAN_H_RETH ? full.dma_len : 0);
	KUNIT_EXPECT_EQ(test, p->compare, h & ROAN_H_ATOMIC ? full.compare : 0);
	KUNIT_EXPECT_EQ(test, p->swap_add, h & ROAN_H_ATOMIC ? full.swap_add : 0);
	KUNIT_EXPECT_EQ(test, p->syndrome, h & ROAN_H_AETH ? full.syndrome : 0);
	KUNIT_EXPECT_EQ(test, p->msn, h & ROAN_H_AETH ? full.msn : 0);
	KUNIT_EXPECT_EQ(test, p->orig, h & ROAN_H_ATOMIC_ACK ? full.orig : 0);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(p->imm), h & ROAN_H_IMM ? 0x01020304u : 0);
	KUNIT_EXPECT_EQ(test, p->inv_rkey, h & ROAN_H_IETH ? full.inv_rkey : 0);
	if (h & ROAN_H_SACK)
		KUNIT_EXPECT_EQ(test, memcmp(&p->sack, &full.sack, sizeof(full.sack)), 0);
}

static void build_then_parse_is_identity(struct kunit *test)
{
	int code;

	for (code = 0; code < 256; code++) {
		const struct roan_opcode *o = roan_opcode(code);
		struct roan_pkt in = full, out;
		u8 buf[ROAN_MAX_HEADERS] = {};
		size_t n;

		if (o->op == ROAN_OP_NONE)
			continue;
		in.opcode = code;
		in.pad = o->payload ? full.pad : 0;
		in.imm = cpu_to_be32(0x01020304);
		n = roan_wire_build(buf, &in);
		KUNIT_ASSERT_EQ_MSG(test, n, o->header_len, "opcode %#x", code);
		n += o->payload ? 7 + in.pad : 0;
		KUNIT_ASSERT_EQ(test, roan_wire_parse(buf, n + ROAN_ICRC_LEN, &out), ROAN_PARSE_OK);
		KUNIT_EXPECT_PTR_EQ(test, out.info, o);
		KUNIT_EXPECT_EQ(test, out.pad, in.pad);
		KUNIT_EXPECT_TRUE(test, out.solicited && out.ackreq && out.migreq && out.becn && !out.fecn);
		KUNIT_EXPECT_EQ(test, out.pkey, in.pkey);
		KUNIT_EXPECT_EQ(test, out.qpn, in.qpn);
		KUNIT_EXPECT_EQ(test, out.psn, in.psn);
		KUNIT_EXPECT_EQ(test, out.ext_version, in.ext_version);
		KUNIT_EXPECT_TRUE(test, out.copy);
		KUNIT_EXPECT_EQ(test, out.payload_off, o->header_len);
		KUNIT_EXPECT_EQ(test, out.payload_len, o->payload ? 7 : 0);
		expect_extended(test, &out);
	}
}

/* The bits beside FECN and BECN, a byte of the DETH: sent as 0, ignored on receipt. The seven beside AckReq: 0 unless set. */
static void reserved_bits_are_ignored(struct kunit *test)
{
	struct roan_pkt in = { .opcode = 0x64, .pkey = 0xffff, .qkey = 0x80010000, .src_qpn = 5 };
	struct roan_pkt plain = {}, noisy = {};
	u8 buf[ROAN_MAX_HEADERS] = {};
	size_t n = roan_wire_build(buf, &in) + 8 + ROAN_ICRC_LEN;

	KUNIT_EXPECT_EQ(test, buf[4], 0);
	KUNIT_EXPECT_EQ(test, buf[8], 0);
	KUNIT_EXPECT_EQ(test, buf[16], 0);
	KUNIT_ASSERT_EQ(test, roan_wire_parse(buf, n, &plain), ROAN_PARSE_OK);
	buf[4] = 0x3f;
	buf[8] = 0x7f;
	buf[16] = 0xff;
	KUNIT_ASSERT_EQ(test, roan_wire_parse(buf, n, &noisy), ROAN_PARSE_OK);
	KUNIT_EXPECT_EQ(test, noisy.ext_version, 0xf);
	KUNIT_EXPECT_TRUE(test, noisy.copy);
	KUNIT_EXPECT_FALSE(test, noisy.ackreq);
	noisy.ext_version = 0;
	noisy.copy = false;
	KUNIT_EXPECT_EQ(test, memcmp(&plain, &noisy, sizeof(plain)), 0);
}

/* The upper 26 bits of the FETH. */
static void reserved_bits_of_a_flush_are_ignored(struct kunit *test)
{
	struct roan_pkt in = { .opcode = 0x1c, .flush_type = ROAN_FLUSH_GLOBAL, .flush_level = ROAN_FLUSH_MR };
	struct roan_pkt out = {};
	u8 buf[ROAN_MAX_HEADERS] = {};
	size_t n = roan_wire_build(buf, &in) + ROAN_ICRC_LEN;

	KUNIT_EXPECT_EQ(test, get_unaligned_be32(buf + ROAN_BTH_LEN), ROAN_FLUSH_MR << 4 | ROAN_FLUSH_GLOBAL);
	put_unaligned_be32(0xffffffc0 | ROAN_FLUSH_MR << 4 | ROAN_FLUSH_GLOBAL, buf + ROAN_BTH_LEN);
	KUNIT_ASSERT_EQ(test, roan_wire_parse(buf, n, &out), ROAN_PARSE_OK);
	KUNIT_EXPECT_EQ(test, out.flush_type, ROAN_FLUSH_GLOBAL);
	KUNIT_EXPECT_EQ(test, out.flush_level, ROAN_FLUSH_MR);
}

static void mark_of_one_bit_is_no_version(struct kunit *test)
{
	static const u8 versions[16] = { 0, 0, 0, 3, 0, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15 };
	struct roan_pkt in = { .opcode = 0x04, .pkey = 0xffff }, out = {};
	u8 buf[ROAN_MAX_HEADERS] = {};
	size_t n = roan_wire_build(buf, &in) + 8 + ROAN_ICRC_LEN;

	for (buf[8] = 1; buf[8] < 0x10; buf[8]++) {
		KUNIT_ASSERT_EQ(test, roan_wire_parse(buf, n, &out), ROAN_PARSE_OK);
		KUNIT_EXPECT_EQ(test, out.ext_version, versions[buf[8]]);
	}
	KUNIT_EXPECT_EQ(test, versions[ROAN_EXT_VERSION], ROAN_EXT_VERSION);
}

/* Each length gets an allocation of exactly that size, so that ASan and KASAN report a read past the end. */
static void truncation_is_refused(struct kunit *test)
{
	struct roan_pkt in = full, out;
	u8 whole[ROAN_MAX_HEADERS];
	int code, len;

	for (code = 0; code < 256; code++) {
		const struct roan_opcode *o = roan_opcode(code);

		if (o->op == ROAN_OP_NONE)
			continue;
		in.opcode = code;
		in.pad = 0;
		roan_wire_build(whole, &in);
		for (len = 1; len < o->header_len + ROAN_ICRC_LEN; len++) {
			int have = min_t(int, len, o->header_len);
			u8 *cut = kunit_kzalloc(test, have, GFP_KERNEL);

			KUNIT_ASSERT_NOT_NULL(test, cut);
			memcpy(cut, whole, have);
			KUNIT_EXPECT_EQ_MSG(test, roan_wire_parse(cut, len, &out), ROAN_PARSE_SHORT, "opcode %#x, %d bytes",
					    code, len);
		}
	}
}

static void refusals(struct kunit *test)
{
	u8 b[ROAN_MAX_HEADERS] = { 0x04, 0x00, 0xff, 0xff, 0, 0, 0, 7 };
	struct roan_pkt p;

	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 16, &p), ROAN_PARSE_OK);
	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 17, &p), ROAN_PARSE_SHORT);
	b[1] = 0x30;				/* pad 3: needs a payload */
	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 16, &p), ROAN_PARSE_SHORT);
	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 20, &p), ROAN_PARSE_OK);
	KUNIT_EXPECT_EQ(test, p.payload_len, 1);
	b[1] = 0x01;
	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 16, &p), ROAN_PARSE_VERSION);
	b[1] = 0;
	b[0] = 0x1e;
	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 16, &p), ROAN_PARSE_OPCODE);
	KUNIT_EXPECT_EQ(test, p.qpn, 7u);
	b[0] = 0x11;				/* an ACK carries no payload */
	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 20, &p), ROAN_PARSE_OK);
	KUNIT_EXPECT_EQ(test, roan_wire_parse(b, 24, &p), ROAN_PARSE_SHORT);
}

static void ack_timeouts_have_a_least_value(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, roan_timeout_ns(0), 0);
	for (u8 code = 1; code <= 10; code++)
		KUNIT_EXPECT_EQ(test, roan_timeout_ns(code), 4096ull << 10);
	KUNIT_EXPECT_EQ(test, roan_timeout_ns(11), 4096ull << 11);
	KUNIT_EXPECT_EQ(test, roan_timeout_ns(31), 4096ull << 31);
}

static void rnr_timers_grow(struct kunit *test)
{
	int i;

	KUNIT_EXPECT_EQ(test, roan_rnr_ns(0), 655360000ull);
	KUNIT_EXPECT_EQ(test, roan_rnr_ns(1), 10000ull);
	KUNIT_EXPECT_EQ(test, roan_rnr_ns(25), 61440000ull);
	KUNIT_EXPECT_EQ(test, roan_rnr_ns(31), 491520000ull);
	for (i = 2; i < 32; i++)
		KUNIT_EXPECT_GT(test, roan_rnr_ns(i), roan_rnr_ns(i - 1));
	for (i = 5; i < 32; i++)		/* from 0.03 ms on, two codes double the time */
		KUNIT_EXPECT_EQ(test, roan_rnr_ns(i), 2 * roan_rnr_ns(i - 2));

	for (i = 1; i < 32; i++) {
		KUNIT_EXPECT_EQ(test, roan_rnr_code(roan_rnr_ns(i)), i);
		KUNIT_EXPECT_EQ(test, roan_rnr_code(roan_rnr_ns(i) - 1), max(i - 1, 1));
	}
	KUNIT_EXPECT_EQ(test, roan_rnr_code(U64_MAX), 31);
}

static void credit_codes_are_inverse(struct kunit *test)
{
	int i;

	for (i = 0; i <= 30; i++) {
		KUNIT_EXPECT_EQ(test, roan_credit_code(roan_credits_of(i)), i);
		if (i)
			KUNIT_EXPECT_EQ(test, roan_credit_code(roan_credits_of(i) - 1), i - 1);
		if (i > 3)
			KUNIT_EXPECT_EQ(test, roan_credits_of(i), 2 * roan_credits_of(i - 2));
	}
	KUNIT_EXPECT_EQ(test, roan_credit_code(U32_MAX), 30);
}

/* ---- PSN arithmetic at the wrap and at a distance of 2^23 ---- */

static void psn_add_wraps(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, psn_add(0xffffff, 1), 0u);
	KUNIT_EXPECT_EQ(test, psn_add(0xfffff0, 0x20), 0x10u);
	KUNIT_EXPECT_EQ(test, psn_add(5, (u32)-6), 0xffffffu);
}

static void psn_diff_is_signed(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, psn_diff(7, 7), 0);
	KUNIT_EXPECT_EQ(test, psn_diff(0, 0xffffff), 1);
	KUNIT_EXPECT_EQ(test, psn_diff(0xffffff, 0), -1);
	KUNIT_EXPECT_EQ(test, psn_diff(0x7fffff, 0), 0x7fffff);
	KUNIT_EXPECT_EQ(test, psn_diff(0, 0x7fffff), -0x7fffff);
	KUNIT_EXPECT_EQ(test, psn_diff(0x3fffff, 0xc00000), 0x7fffff);
}

static void psn_within_is_half_open(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, psn_within(0xfffffe, 0xfffffe, 4));
	KUNIT_EXPECT_TRUE(test, psn_within(1, 0xfffffe, 4));
	KUNIT_EXPECT_FALSE(test, psn_within(2, 0xfffffe, 4));
	KUNIT_EXPECT_FALSE(test, psn_within(0xfffffd, 0xfffffe, 4));
	KUNIT_EXPECT_FALSE(test, psn_within(9, 9, 0));
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(build_then_parse_is_identity),
	KUNIT_CASE(reserved_bits_are_ignored),
	KUNIT_CASE(reserved_bits_of_a_flush_are_ignored),
	KUNIT_CASE(mark_of_one_bit_is_no_version),
	KUNIT_CASE(truncation_is_refused),
	KUNIT_CASE(refusals),
	KUNIT_CASE(ack_timeouts_have_a_least_value),
	KUNIT_CASE(rnr_timers_grow),
	KUNIT_CASE(credit_codes_are_inverse),
	KUNIT_CASE(psn_add_wraps),
	KUNIT_CASE(psn_diff_is_signed),
	KUNIT_CASE(psn_within_is_half_open),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "roan_wire",
	.test_cases = wire_cases,
};
kunit_test_suite(wire_suite);
