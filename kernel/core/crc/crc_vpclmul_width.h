/* SPDX-License-Identifier: GPL-2.0 */
/*
 * crc_vpclmul.c includes this file once for each vector width: WIDTH in bytes, TARGET the instruction sets. FAR, NEXT
 * and LAST have one constant for each 64 bits of a vector. They move a vector ROAN_VPCLMUL_MIN bytes ahead, one vector
 * ahead, and all 128-bit parts of a vector to its last one.
 */
#define vec		NAME(vec)
#define unaligned	NAME(unaligned)
#define factor		NAME(factor)
#define ahead		NAME(ahead)
#define take		NAME(take)
#define remainder	NAME(remainder)
#define start		NAME(start)

typedef u64 NAME(vec) __attribute__((vector_size(WIDTH)));
typedef u64 NAME(unaligned) __attribute__((vector_size(WIDTH))) __aligned(1);
typedef long long NAME(factor) __attribute__((vector_size(WIDTH)));	/* operand type of the builtin */

/* Multiplies each 128 bits of @v with those of @by: first half by first half, second by second. */
TARGET static inline vec ahead(vec v, vec by)
{
	return (vec)CLMUL((factor)v, (factor)by, 0x00) ^ (vec)CLMUL((factor)v, (factor)by, 0x11);
}

/* Reads the next vector; copies it to @to + @at unless @to is NULL. */
TARGET static inline vec take(void *to, const void *p, size_t at)
{
	vec v = *(const unaligned *)(p + at);

	if (to)
		*(unaligned *)(to + at) = v;
	return v;
}

/* The CRC of these 16 bytes from state 0: the remainder modulo P of them followed by 32 zero bits. */
TARGET static inline u32 remainder(u64 first, u64 second)
{
	const vec by_96 = { BY_96 }, by_64 = { BY_64 }, by_inverse = { X64_BY_P }, by_p = { P };
	vec v;
	u64 e, q;

	/* Remove the first 64 of these 160 bits: 96 are left. */
	v = (vec)CLMUL((factor)(vec) { first }, (factor)by_96, 0) ^ (vec) { second << 32, second >> 32 };
	/* Remove the first 32 of these: 64 are left. */
	e = v[1] ^ ((vec)CLMUL((factor)v, (factor)by_64, 0))[1];
	/* The first 32 of these times the inverse are the quotient. */
	q = ((vec)CLMUL((factor)(vec) { (u32)e }, (factor)by_inverse, 0))[0];
	return (e ^ ((vec)CLMUL((factor)(vec) { (u32)q }, (factor)by_p, 0))[0]) >> 32;
}

/* What to add to the first 128 bits of a message for the bytes before it. */
TARGET static inline vec start(u32 crc, const u8 *before)
{
	const vec by_128 = { BY_128 };
	u64 half[2];

	if (!before)
		return (vec) { crc };
	memcpy(half, before, sizeof(half));
	return ahead((vec) { half[0], half[1] }, by_128);
}

TARGET static size_t NAME(fold)(u32 *crc, const u8 *before, void *to, const void *p, size_t len)
{
	enum { VECS = ROAN_VPCLMUL_MIN / WIDTH, WORDS = WIDTH / 8 };
	const vec far = { FAR }, next = { NEXT }, last = { LAST }, by_128 = { BY_128 };
	vec a[VECS], v;
	size_t done = ROAN_VPCLMUL_MIN;
	u64 half[2], word[2];
	int i;

	/* The loops over vectors and words are unrolled, so that a[] and half[] stay in registers. */
#pragma GCC unroll 8
	for (i = 0; i < VECS; i++)
		a[i] = take(to, p, i * WIDTH);
	a[0] ^= start(*crc, before);
	for (; len - done >= ROAN_VPCLMUL_MIN; done += ROAN_VPCLMUL_MIN)
#pragma GCC unroll 8
		for (i = 0; i < VECS; i++) {
			v = take(to, p, done + i * WIDTH);
			a[i] = ahead(a[i], far) ^ v;
		}
	v = a[0];
#pragma GCC unroll 8
	for (i = 1; i < VECS; i++)
		v = ahead(v, next) ^ a[i];
	for (; len - done >= WIDTH; done += WIDTH)
		v = ahead(v, next) ^ take(to, p, done);

	half[0] = v[WORDS - 2];
	half[1] = v[WORDS - 1];
	v = ahead(v, last);
#pragma GCC unroll 8
	for (i = 0; i < WORDS; i++)
		half[i % 2] ^= v[i];
	for (; len - done >= sizeof(word); done += sizeof(word)) {
		memcpy(word, p + done, sizeof(word));
		if (to)
			memcpy(to + done, word, sizeof(word));
		v = ahead((vec) { half[0], half[1] }, by_128);
		half[0] = v[0] ^ word[0];
		half[1] = v[1] ^ word[1];
	}
	*crc = remainder(half[0], half[1]);
	return done;
}

#undef vec
#undef unaligned
#undef factor
#undef ahead
#undef take
#undef remainder
#undef start
