/* SPDX-License-Identifier: GPL-2.0 */
/* Receive rules of UD (and GSI) QPs. UC shares responder.h, sending shares requester.h. */
#ifndef ROAN_UD_H
#define ROAN_UD_H

#include "core/core_env.h"
#include "core/transport/wire.h"

enum roan_ud {
	ROAN_UD_DELIVER,
	ROAN_UD_BAD_QKEY,
	ROAN_UD_INVALID,	/* not a UD opcode, or more payload than the MTU */
};

/* @mtu: bytes. The P_Key is checked before. */
enum roan_ud roan_ud_admit(const struct roan_pkt *pkt, u32 qkey, u32 mtu);

/* P_Keys match if the low 15 bits do and one of both has full membership (10.9.3). */
bool roan_pkey_match(u16 a, u16 b);

#endif /* ROAN_UD_H */
