/* SPDX-License-Identifier: GPL-2.0 */
/* 24-bit sequence numbers, and sets of them. Never compare two PSNs with < or >: they wrap (IBTA vol. 1, 9.7.1). */
#ifndef ROAN_PSN_H
#define ROAN_PSN_H

#include "core/core_env.h"

#define PSN_MASK	0xffffffu
#define QPN_MASK	0xffffffu

static inline u32 psn_add(u32 psn, u32 n)
{
	return (psn + n) & PSN_MASK;
}

/* Distance from @b to @a; negative if @a is behind @b. Valid while they are less than 2^23 apart. */
static inline s32 psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/* True if @psn is in [first, first + n). @n < 2^23. */
static inline bool psn_within(u32 psn, u32 first, u32 n)
{
	return ((psn - first) & PSN_MASK) < n;
}

/*
 * A set of PSNs that lie within a window: one bit each, at the PSN's place in a circle of @size bits, a power of two
 * and at least the window. A PSN that leaves the window must be removed.
 */
#define ROAN_PSN_WORDS(size)	((size) / 32)

static inline bool psn_set_has(const u32 *set, u32 size, u32 psn)
{
	return set[(psn & (size - 1)) / 32] >> (psn & 31) & 1;
}

static inline void psn_set_add(u32 *set, u32 size, u32 psn)
{
	set[(psn & (size - 1)) / 32] |= 1u << (psn & 31);
}

static inline void psn_set_remove(u32 *set, u32 size, u32 psn)
{
	set[(psn & (size - 1)) / 32] &= ~(1u << (psn & 31));
}

/* Removes @n PSNs from @psn on. */
static inline void psn_set_remove_run(u32 *set, u32 size, u32 psn, u32 n)
{
	if (n >= size) {
		memset(set, 0, size / 8);
		return;
	}
	for (; n; n--, psn++)
		psn_set_remove(set, size, psn);
}

#endif /* ROAN_PSN_H */
