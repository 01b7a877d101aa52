// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 by a sparse multiple of its polynomial. A message's CRC does not change when a multiple of the polynomial is
 * added to the message. One multiple has five terms only, x^300 + x^155 + x^117 + x^89 + 1 (none with five is shorter),
 * and its first two are more than 128 apart; so a word of 64 bits is taken out of the message by adding it again 145,
 * 183, 211 and 300 bits later. Word by word the message becomes its last five words, and their CRC is its CRC.
 *
 * The first byte's lowest bit comes first, so "later" is a shift to the left, and what falls out goes on in the next word.
 */
#include "core/crc/crc_shiftxor.h"

#define WORD	sizeof(u64)
#define WORDS	5	/* as far as a word reaches: 300 bits */
#define LEAST	(2 * WORDS * WORD)	/* bytes: five words to take out, and five more that they are added to */

/* What was added to the next five words. */
struct added {
	u64 to[WORDS];
};

static inline void take_out(struct added *a, u64 word)
{
	word ^= a->to[0];
	a->to[0] = a->to[1];
	a->to[1] = a->to[2] ^ word << (145 - 128) ^ word << (183 - 128);
	a->to[2] = a->to[3] ^ word >> (192 - 145) ^ word >> (192 - 183) ^ word << (211 - 192);
	a->to[3] = a->to[4] ^ word >> (256 - 211) ^ word << (300 - 256);
	a->to[4] = word >> (320 - 300);
}

/* Word @i behind @p; if @to is not NULL, it is copied there on its way. */
static __always_inline u64 word(void *to, const void *p, int i)
{
	u64 w = get_unaligned_le64(p + i * WORD);

	if (to)
		put_unaligned_le64(w, to + i * WORD);
	return w;
}

/* Made twice, with and without @to. */
static __always_inline u32 sum(u32 crc, void *to, const void *p, size_t len)
{
	struct added a = { { crc } };
	u64 last[WORDS];
	int i;

	for (; len >= LEAST; p += sizeof(last), len -= sizeof(last)) {
		/* Five at a time, so that nothing has to move along in @a. */
		take_out(&a, word(to, p, 0));
		take_out(&a, word(to, p, 1));
		take_out(&a, word(to, p, 2));
		take_out(&a, word(to, p, 3));
		take_out(&a, word(to, p, 4));
		if (to)
			to += sizeof(last);
	}
	if (to) {
		memcpy(to, p, len);
		p = to;		/* its source may change meanwhile */
	}
	for (i = 0; i < WORDS; i++)
		put_unaligned_le64(get_unaligned_le64(p + i * WORD) ^ a.to[i], &last[i]);
	crc = roan_crc32(0, last, sizeof(last));
	return roan_crc32(crc, p + sizeof(last), len - sizeof(last));
}

u32 roan_crc32_sparse(u32 crc, const void *p, size_t len)
{
	return len < LEAST ? roan_crc32(crc, p, len) : sum(crc, NULL, p, len);
}

u32 roan_crc32_sparse_copy(u32 crc, void *to, const void *p, size_t len)
{
	if (len >= LEAST)
		return sum(crc, to, p, len);
	memcpy(to, p, len);
	return roan_crc32(crc, to, len);
}
