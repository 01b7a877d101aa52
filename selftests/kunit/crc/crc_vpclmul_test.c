// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 by folding, in both widths: equal to bit_by_bit() for every length, alignment and bit, without reading past
 * the end.
 */
#include <kunit/test.h>
#include "core/crc/crc_vpclmul.h"
#include "crc_bits.h"

#define LONGEST		600	/* more than two rounds of the main loop, some vectors, some bytes */
#define ALIGNMENTS	16

/* @to: destination of the copy, or NULL. */
static u32 folded(struct kunit *test, u32 bits, u32 crc, u8 *to, const u8 *p, size_t len)
{
	size_t done;

	KUNIT_ASSERT_TRUE(test, roan_crc_fpu_begin());
	done = roan_crc32_vpclmul(bits, &crc, NULL, to, p, len);
	roan_crc_fpu_end();
	KUNIT_ASSERT_LE(test, done, len);
	KUNIT_ASSERT_LT(test, len - done, (size_t)16);
	if (to)
		KUNIT_ASSERT_MEMEQ(test, to, p, done);
	return bit_by_bit(crc, p + done, len - done);
}

static void needs(struct kunit *test, u32 bits)
{
	if (!roan_crc_fpu_possible(bits))
		kunit_skip(test, "this CPU has no VPCLMULQDQ of %u bits", bits);
}

/* Each message ends at the end of its allocation, so that KASAN reports a read past it. Every second one is copied. */
static void every_length(struct kunit *test, u32 bits)
{
	u8 *to = kunit_kzalloc(test, LONGEST, GFP_KERNEL);
	size_t len, size;
	u8 *p;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, to);
	needs(test, bits);
	for (size = LONGEST; size < LONGEST + ALIGNMENTS; size++) {
		p = kunit_kzalloc(test, size, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, p);
		for (i = 0; i < size; i++)
			p[i] = (i * 1664525u + size * 1013904223u) >> 13;
		for (len = ROAN_VPCLMUL_MIN; len <= LONGEST; len++)
			KUNIT_ASSERT_EQ_MSG(test, folded(test, bits, ~0u - len, len % 2 ? to : NULL, p + size - len, len),
					    bit_by_bit(~0u - len, p + size - len, len), "the last %d bytes of %d",
					    (int)len, (int)size);
	}
}

/* Sets each bit of message and state alone. A CRC is linear, so this covers every constant. */
static void every_bit(struct kunit *test, u32 bits)
{
	u8 *p = kunit_kzalloc(test, LONGEST, GFP_KERNEL);
	int bit;

	KUNIT_ASSERT_NOT_NULL(test, p);
	needs(test, bits);
	for (bit = 0; bit < LONGEST * 8; bit++) {
		p[bit / 8] = 1 << bit % 8;
		KUNIT_ASSERT_EQ_MSG(test, folded(test, bits, 0, NULL, p, LONGEST), bit_by_bit(0, p, LONGEST), "bit %d", bit);
		p[bit / 8] = 0;
	}
	for (bit = 0; bit < 32; bit++)
		KUNIT_ASSERT_EQ_MSG(test, folded(test, bits, 1u << bit, NULL, p, LONGEST), bit_by_bit(1u << bit, p, LONGEST),
				    "bit %d of the state", bit);
}

/*
 * Sets each bit of the 16-byte block before the message. That block replaces the state, so the old state must not
 * matter.
 */
static void every_bit_before(struct kunit *test, u32 bits)
{
	u8 *p = kunit_kzalloc(test, 16 + ROAN_VPCLMUL_MIN, GFP_KERNEL);
	u32 crc;
	int bit;

	KUNIT_ASSERT_NOT_NULL(test, p);
	needs(test, bits);
	for (bit = 0; bit < 16 * 8; bit++) {
		crc = bit;
		p[bit / 8] = 1 << bit % 8;
		KUNIT_ASSERT_TRUE(test, roan_crc_fpu_begin());
		roan_crc32_vpclmul(bits, &crc, p, NULL, p + 16, ROAN_VPCLMUL_MIN);
		roan_crc_fpu_end();
		KUNIT_ASSERT_EQ_MSG(test, crc, bit_by_bit(0, p, 16 + ROAN_VPCLMUL_MIN), "bit %d", bit);
		p[bit / 8] = 0;
	}
}

static void every_length__256(struct kunit *test)
{
	every_length(test, 256);
}

static void every_length__512(struct kunit *test)
{
	every_length(test, 512);
}

static void every_bit__256(struct kunit *test)
{
	every_bit(test, 256);
}

static void every_bit__512(struct kunit *test)
{
	every_bit(test, 512);
}

static void every_bit_before__256(struct kunit *test)
{
	every_bit_before(test, 256);
}

static void every_bit_before__512(struct kunit *test)
{
	every_bit_before(test, 512);
}

static struct kunit_case fold_cases[] = {
	KUNIT_CASE(every_length__256),
	KUNIT_CASE(every_length__512),
	KUNIT_CASE(every_bit__256),
	KUNIT_CASE(every_bit__512),
	KUNIT_CASE(every_bit_before__256),
	KUNIT_CASE(every_bit_before__512),
	{}
};

static struct kunit_suite fold_suite = {
	.name = "roan_crc_vpclmul",
	.test_cases = fold_cases,
};
kunit_test_suite(fold_suite);
