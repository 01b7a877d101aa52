/* SPDX-License-Identifier: GPL-2.0 */
/*
 * crc_vpclmul.c includes this once for each width of a vector: WIDTH bytes, of instructions that TARGET allows. FAR, NEXT and
 * LAST are the constants, as many as a vector has halves of 128 bits, by which it is brought ROAN_VPCLMUL_MIN bytes
 * ahead, one vector ahead, and all of its 128 bits to where its last ones are.
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
typedef long long NAME(factor) __attribute__((vector_size(WIDTH)));	/* as the builtin has it */

/* Each 128 bits of @v times those of @by: first half by first half, second by second. */
TARGET static inline vec ahead(vec v, vec by)
{
	return (vec)CLMUL((factor)v, (factor)by, 0x00) ^ (vec)CLMUL((factor)v, (factor)by, 0x11);
}

/* The next vector, copied to @to + @at unless that is NULL. */
TARGET static inline vec take(void *to, const void *p, size_t at)
{
	vec v = *(const unaligned *)(p + at);

	if (to)
		*(unaligned *)(to + at) = v;
	return v;
}

/* The CRC from state 0 of these 16 bytes: what is left of them, with 32 zeros behind, when they are divided by P. */
TARGET static inline u32 remainder(u64 first, u64 second)
{
	const vec by_96 = { BY_96 }, by_64 = { BY_64 }, by_inverse = { X64_BY_P }, by_p = { P };
	vec v;
	u64 e, q;

	/* The first 64 of those 160 bits are taken out: 96 are left. */
	v = (vec)CLMUL((factor)(vec) { first }, (factor)by_96, 0) ^ (vec) { second << 32, second >> 32 };
	/* The first 32 of those: 64. */
	e = v[1] ^ ((vec)CLMUL((factor)v, (factor)by_64, 0))[1];
	/* The first 32 of those, times the inverse, are the quotient. */
	q = ((vec)CLMUL((factor)(vec) { (u32)e }, (factor)by_inverse, 0))[0];
	return (e ^ ((vec)CLMUL((factor)(vec) { (u32)q }, (factor)by_p, 0))[0]) >> 32;
}

/* What is added to the first 128 bits of a message for what came before it. */
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

	/* The loops over vectors and words are unrolled, so that these are in registers. */
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
