// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of datagrams received by a UD QP (IBTA vol. 1, 9.8.3). UD has no NAK: the driver half drops and counts a
 * refused datagram.
 */
#include "core/transport/ud.h"

#define PKEY_FULL	0x8000
#define PKEY_BASE	0x7fff

bool roan_pkey_match(u16 a, u16 b)
{
	return (a & PKEY_BASE) == (b & PKEY_BASE) && (a & PKEY_BASE) && ((a | b) & PKEY_FULL);
}

enum roan_ud roan_ud_admit(const struct roan_pkt *pkt, u32 qkey, u32 mtu)
{
	if (pkt->info->transport != ROAN_TP_UD || pkt->info->op != ROAN_OP_SEND || pkt->payload_len > mtu)
		return ROAN_UD_INVALID;
	return pkt->qkey == qkey ? ROAN_UD_DELIVER : ROAN_UD_BAD_QKEY;
}
