/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Selective acknowledgment (SACK): between two roan hosts the responder reports which packets it has received after a
 * gap, so that each lost one is sent again once. Not part of the standard; Documentation/wire-extensions.md has the
 * format and how two hosts agree.
 */
#ifndef ROAN_SACK_H
#define ROAN_SACK_H

#include "core/core_env.h"

/* BTH: version of the extensions that the sender of a packet supports. 3: SACK. 0, 1, 2, 4, 8: the standard only. */
#define ROAN_EXT_VERSION	3

#define ROAN_SACK_LEN		24	/* bytes, behind BTH and AETH */
#define ROAN_SACK_WORDS		5
#define ROAN_SACK_PSNS		(32 * ROAN_SACK_WORDS)

/* The packet's PSN is the oldest that is missing: all before it are acknowledged. */
struct roan_sack {
	u8  needless;		/* copies received of requests that had arrived, in all, modulo 256 */
	u32 highest_psn;	/* of the requests received: greater than the packet's PSN */
	/* Bit i of all words together, the lowest first: the request with PSN + 1 + i is received and kept. */
	u32 received[ROAN_SACK_WORDS];
};

/* True if PSN + 1 + @i is received. */
static inline bool roan_sack_has(const struct roan_sack *sack, u32 i)
{
	return sack->received[i / 32] >> (i % 32) & 1;
}

/* Returns how many requests from PSN + 1 + @i on are received, as far as the bits show. */
static inline u32 roan_sack_count(const struct roan_sack *sack, u32 i)
{
	u32 word = i / 32, n;

	if (word >= ROAN_SACK_WORDS)
		return 0;
	n = hweight32(sack->received[word] >> (i % 32));
	while (++word < ROAN_SACK_WORDS)
		n += hweight32(sack->received[word]);
	return n;
}

#endif /* ROAN_SACK_H */
