/* SPDX-License-Identifier: GPL-2.0 */
/* 24-bit sequence numbers. Never compare two PSNs with < or >: they wrap (IBTA vol. 1, 9.7.1). */
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

#endif /* ROAN_PSN_H */
