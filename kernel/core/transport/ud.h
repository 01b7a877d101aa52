/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive rules of UD (and GSI) QPs (IBTA vol. 1, 9.8.3). UD has no NAK: the driver half drops and counts a refused
 * datagram. UC shares responder.h, sending shares requester.h.
 */
#ifndef ROAN_UD_H
#define ROAN_UD_H

#include "core/core_env.h"
#include "core/transport/wire.h"

#define ROAN_PKEY_FULL	0x8000
#define ROAN_PKEY_BASE	0x7fff

enum roan_ud {
	ROAN_UD_DELIVER,
	ROAN_UD_BAD_QKEY,
	ROAN_UD_INVALID,	/* not a UD opcode, or more payload than the MTU */
};

/* @mtu: bytes. The P_Key is checked before. */
static inline enum roan_ud roan_ud_admit(const struct roan_pkt *pkt, u32 qkey, u32 mtu)
{
	if (pkt->info->transport != ROAN_TP_UD || pkt->info->op != ROAN_OP_SEND || pkt->payload_len > mtu)
		return ROAN_UD_INVALID;
	return pkt->qkey == qkey ? ROAN_UD_DELIVER : ROAN_UD_BAD_QKEY;
}

/* P_Keys match if the low 15 bits do and one of both has full membership (10.9.3). */
static inline bool roan_pkey_match(u16 a, u16 b)
{
	return (a & ROAN_PKEY_BASE) == (b & ROAN_PKEY_BASE) && (a & ROAN_PKEY_BASE) && ((a | b) & ROAN_PKEY_FULL);
}

#endif /* ROAN_UD_H */
