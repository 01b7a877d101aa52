// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 by shift and xor: known values, and comparison with bit_by_bit() for every length, alignment and initial
 * state.
 */
#include <kunit/test.h>
#include "core/crc/crc_shiftxor.h"
#include "crc_bits.h"

#define LONGEST	520

static void fill(u8 *p, size_t len, u32 seed)
{
	while (len--) {
		seed = seed * 1664525 + 1013904223;
		*p++ = seed >> 24;
	}
}

/* Expected: zlib.crc32 of Python over as many zeros, and over bytes 0, 1, ... 255, 0 ... */
static void vectors(struct kunit *test)
{
	u8 *p = kunit_kzalloc(test, 4096, GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, (u32)~roan_crc32_shiftxor(~0u, p, 4096), 0xc71c0011u);
	for (i = 0; i < 4096; i++)
		p[i] = i;
	KUNIT_EXPECT_EQ(test, (u32)~roan_crc32_shiftxor(~0u, p, 4096), 0xa2912082u);
}

static void every_length(struct kunit *test)
{
	u8 *p = kunit_kzalloc(test, LONGEST + 8, GFP_KERNEL), *copy = kunit_kzalloc(test, LONGEST + 8, GFP_KERNEL);
	size_t len, shift;
	u32 crc;

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	fill(p, LONGEST + 8, 1);
	for (len = 0; len <= LONGEST; len++) {
		shift = len % 8;
		crc = bit_by_bit(~0u - len, p + shift, len);
		KUNIT_ASSERT_EQ_MSG(test, roan_crc32_shiftxor(~0u - len, p + shift, len), crc, "%d bytes", (int)len);
		memset(copy, 0x5a, LONGEST + 8);
		KUNIT_ASSERT_EQ_MSG(test, roan_crc32_shiftxor_copy(~0u - len, copy + 7 - shift, p + shift, len), crc,
				    "%d bytes copied", (int)len);
		KUNIT_ASSERT_EQ_MSG(test, memcmp(copy + 7 - shift, p + shift, len), 0, "%d bytes copied", (int)len);
		KUNIT_ASSERT_EQ_MSG(test, copy[7 - shift + len], 0x5a, "a byte behind %d", (int)len);
	}
}

/* Sets each bit alone, so that a wrong shift distance shows. */
static void every_bit(struct kunit *test)
{
	u8 *p = kunit_kzalloc(test, 160, GFP_KERNEL);
	int bit;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (bit = 0; bit < 160 * 8; bit++) {
		p[bit / 8] = 1 << bit % 8;
		KUNIT_ASSERT_EQ_MSG(test, roan_crc32_shiftxor(0, p, 160), bit_by_bit(0, p, 160), "bit %d", bit);
		p[bit / 8] = 0;
	}
}

static struct kunit_case sparse_cases[] = {
	KUNIT_CASE(vectors),
	KUNIT_CASE(every_length),
	KUNIT_CASE(every_bit),
	{}
};

static struct kunit_suite sparse_suite = {
	.name = "roan_crc_shiftxor",
	.test_cases = sparse_cases,
};
kunit_test_suite(sparse_suite);
