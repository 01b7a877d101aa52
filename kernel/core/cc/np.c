// SPDX-License-Identifier: GPL-2.0
/*
 * What distinguishes senders: the slot of a host in the table of notification points, and the senders of a datagram QP.
 * roan_np_cnp_due() in np.h decides whether a CNP is due.
 */
#include "core/cc/np.h"

/* Multiplicative hash; never 0, which marks an empty slot. */
static u64 np_hash(const u8 address[16])
{
	u64 h = get_unaligned_be64(address) * 0x9e3779b97f4a7c15ULL;

	h = ((h ^ h >> 32) + get_unaligned_be64(address + 8)) * 0x9e3779b97f4a7c15ULL;
	return h ? h : 1;
}

struct roan_np *roan_np_host(struct roan_np_hosts *hosts, const u8 address[16])
{
	u64 hash = np_hash(address);
	struct roan_np *np = &hosts->slot[hash >> (64 - ROAN_NP_HOSTS_SHIFT)];

	if (READ_ONCE(np->host_hash) != hash) {
		WRITE_ONCE(np->last, 0);
		WRITE_ONCE(np->cnp_pending, false);
		WRITE_ONCE(np->host_hash, hash);
	}
	return np;
}

bool roan_np_sender_due(struct roan_np *np, const u8 address[16], u32 qpn, bool ce, u32 interval_us, u64 now)
{
	u64 sender = np_hash(address) ^ qpn;

	if (!ce)	/* one that is too late ends with any sender's datagram */
		return (np->host_hash == sender || roan_np_too_late(np->last, interval_us, now)) &&
			roan_np_cnp_pending(np, interval_us, now);
	np->host_hash = sender;
	return roan_np_cnp_due(np, interval_us, now);
}
