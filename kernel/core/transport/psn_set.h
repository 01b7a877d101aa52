/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A set of PSNs that lie within a window: one bit each, at the PSN's place in a circle of @size bits, a power of two
 * and at least the window. A PSN that leaves the window must be removed.
 */
#ifndef ROAN_PSN_SET_H
#define ROAN_PSN_SET_H

#include "core/transport/psn.h"

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

#endif /* ROAN_PSN_SET_H */
