// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 by a sparse multiple of its polynomial. Adding a multiple of the polynomial to a message does not change its
 * CRC. One multiple has only five terms, x^300 + x^155 + x^117 + x^89 + 1 (none with five is shorter), and its first
 * two are more than 128 apart. So a word of 64 bits is removed from the message by adding it again 145, 183, 211 and
 * 300 bits later. Word by word the message is reduced to its last five words, whose CRC is the CRC of the message.
 *
 * The lowest bit of the first byte is the first bit, so "later" is a shift to the left; bits shifted out continue in
 * the next word.
 */
#include "core/crc/crc_shiftxor.h"

#define WORD	sizeof(u64)
#define WORDS	5	/* a word affects 300 bits: the next five words */
/* bytes: five words to remove, and the five words that they are added to */
#define MIN_BYTES	(2 * WORDS * WORD)

/* Pending additions to the next five words. */
struct carry {
	u64 to[WORDS];
};

static inline void carry_take(struct carry *a, u64 word)
{
	word ^= a->to[0];
	a->to[0] = a->to[1];
	a->to[1] = a->to[2] ^ word << (145 - 128) ^ word << (183 - 128);
	a->to[2] = a->to[3] ^ word >> (192 - 145) ^ word >> (192 - 183) ^ word << (211 - 192);
	a->to[3] = a->to[4] ^ word >> (256 - 211) ^ word << (300 - 256);
	a->to[4] = word >> (320 - 300);
}

/* Reads word @i from @p; copies it to @to unless that is NULL. */
static __always_inline u64 shiftxor_word(void *to, const void *p, int i)
{
	/* A program may write its memory meanwhile. READ_ONCE() is for aligned words. */
	u64 w = data_race(get_unaligned_le64(p + i * WORD));

	OPTIMIZER_HIDE_VAR(w);	/* not read again: the sum must be that of the copy */
	if (to)
		put_unaligned_le64(w, to + i * WORD);
	return w;
}

/* Inlined twice: with and without @to. */
static __always_inline u32 shiftxor_sum(u32 crc, void *to, const void *p, size_t len)
{
	struct carry a = { { crc } };
	u64 last[WORDS];
	int i;

	for (; len >= MIN_BYTES; p += sizeof(last), len -= sizeof(last)) {
		/* Five words per round, so that the compiler keeps @a in registers without moves. */
		carry_take(&a, shiftxor_word(to, p, 0));
		carry_take(&a, shiftxor_word(to, p, 1));
		carry_take(&a, shiftxor_word(to, p, 2));
		carry_take(&a, shiftxor_word(to, p, 3));
		carry_take(&a, shiftxor_word(to, p, 4));
		if (to)
			to += sizeof(last);
	}
	if (to) {
		memcpy(to, p, len);
		p = to;		/* the source may change meanwhile; use the copy */
	}
	for (i = 0; i < WORDS; i++)
		put_unaligned_le64(get_unaligned_le64(p + i * WORD) ^ a.to[i], &last[i]);
	crc = roan_crc32(0, last, sizeof(last));
	return roan_crc32(crc, p + sizeof(last), len - sizeof(last));
}

u32 roan_crc32_shiftxor(u32 crc, const void *p, size_t len)
{
	return len < MIN_BYTES ? roan_crc32(crc, p, len) : shiftxor_sum(crc, NULL, p, len);
}

u32 roan_crc32_shiftxor_copy(u32 crc, void *to, const void *p, size_t len)
{
	if (len >= MIN_BYTES)
		return shiftxor_sum(crc, to, p, len);
	memcpy(to, p, len);
	return roan_crc32(crc, to, len);
}
