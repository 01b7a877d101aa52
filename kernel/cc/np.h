/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The notification point: a packet came in with CE set; does its sender get a CNP now? At most one per
 * min_time_between_cnps and scope: the QP, the host it came from, or the whole port. Always on, whatever the QP runs
 * itself when sending. Not asked for CE on acknowledgements and CNPs, which are not answered.
 *
 * No timer: a CE packet inside the interval is not answered later. That loses the last CNP of a burst and nothing else.
 *
 * The shell takes the struct roan_np that the scope names: one in the QP, one in the port, or roan_np_host() of a table that
 * the device has if the scope is `dip`. Two hosts may meet in a slot of it: the newcomer is answered and takes the slot over,
 * because a CNP too many does less harm than one too few.
 *
 * Concurrency: a QP's own is under its receive lock. Those that QPs share are raced for on purpose: each field is one load and
 * one store, and the worst is a CNP more.
 */
#ifndef ROAN_NP_H
#define ROAN_NP_H

#include "host.h"

enum roan_cnp_scope { ROAN_CNP_PER_QP, ROAN_CNP_PER_DIP, ROAN_CNP_PER_PORT };

#define ROAN_NP_HOSTS_SHIFT	8

struct roan_np {
	u64 last;		/* ns: the last CNP; 0: never */
	u64 who;		/* roan_np_hosts only: hash of the address */
};

struct roan_np_hosts {
	struct roan_np slot[1 << ROAN_NP_HOSTS_SHIFT];
};

/* A CE packet at @now: true, send a CNP (and it counts as sent). @interval_us: min_time_between_cnps. */
static inline bool roan_np_due(struct roan_np *np, u32 interval_us, u64 now)
{
	u64 last = READ_ONCE(np->last);

	/* Signed: another CPU may have stored a later time than ours. */
	if (last && (s64)(now - last) < (s64)interval_us * NSEC_PER_USEC)
		return false;
	WRITE_ONCE(np->last, now);
	return true;
}

/* The slot of the host with this 16-byte address. */
struct roan_np *roan_np_host(struct roan_np_hosts *hosts, const u8 address[16]);

#endif /* ROAN_NP_H */
