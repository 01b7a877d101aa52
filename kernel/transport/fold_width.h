/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fold.c includes this once for each width of a vector: WIDTH bytes, of instructions that TARGET allows. FAR, NEXT and
 * LAST are the constants, as many as a vector has halves of 128 bits, by which it is brought ROAN_FOLD_MIN bytes ahead,
 * one vector ahead, and all of its 128 bits to where its last ones are.
 */
typedef u64 NAME(vec) __attribute__((vector_size(WIDTH)));
typedef u64 NAME(unaligned) __attribute__((vector_size(WIDTH))) __aligned(1);
typedef long long NAME(factor) __attribute__((vector_size(WIDTH)));	/* as the builtin has it */

TARGET static inline NAME(vec) NAME(load)(const void *p)
{
	return *(const NAME(unaligned) *)p;
}

/* Each 128 bits of @v times those of @by: first half by first half, second by second. */
TARGET static inline NAME(vec) NAME(ahead)(NAME(vec) v, NAME(vec) by)
{
	return (NAME(vec))CLMUL((NAME(factor))v, (NAME(factor))by, 0x00) ^
	       (NAME(vec))CLMUL((NAME(factor))v, (NAME(factor))by, 0x11);
}

TARGET static size_t NAME(fold)(u32 crc, const void *p, size_t len, u8 *left)
{
	enum { VECS = ROAN_FOLD_MIN / WIDTH, WORDS = WIDTH / 8 };
	const NAME(vec) far = { FAR }, next = { NEXT }, last = { LAST };
	NAME(vec) a[VECS], v;
	size_t done = ROAN_FOLD_MIN;
	u64 half[2];
	int i;

	/* The loops over vectors and words are unrolled, so that these are in registers. */
	UNROLL for (i = 0; i < VECS; i++)
		a[i] = NAME(load)(p + i * WIDTH);
	a[0] ^= (NAME(vec)) { crc };
	for (; len - done >= ROAN_FOLD_MIN; done += ROAN_FOLD_MIN)
		UNROLL for (i = 0; i < VECS; i++)
			a[i] = NAME(ahead)(a[i], far) ^ NAME(load)(p + done + i * WIDTH);
	v = a[0];
	UNROLL for (i = 1; i < VECS; i++)
		v = NAME(ahead)(v, next) ^ a[i];
	for (; len - done >= WIDTH; done += WIDTH)
		v = NAME(ahead)(v, next) ^ NAME(load)(p + done);

	half[0] = v[WORDS - 2];
	half[1] = v[WORDS - 1];
	v = NAME(ahead)(v, last);
	UNROLL for (i = 0; i < WORDS; i++)
		half[i % 2] ^= v[i];
	memcpy(left, half, ROAN_FOLD_LEFT);
	return done;
}
