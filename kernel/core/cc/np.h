/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The notification point: a packet came in with CE set; does its sender get a CNP now? At most one per
 * min_time_between_cnps and scope: the QP, the host it came from, or the whole port. Always on, whatever the QP runs
 * itself when sending. Not asked for CE on acknowledgements and CNPs, which are not answered.
 *
 * A CE packet inside the interval is answered at its end (SIGCOMM'15, section 3.1): a CNP is owed, and the QP's next packet,
 * marked or not, brings it. No timer, so only a flow that falls silent does not get it. Without this, senders hear of a tenth
 * fewer cuts than the published model has them, and the queue settles a fifth to a quarter higher.
 *
 *	due = ce ? roan_np_cnp_due(np, interval, now) : roan_np_cnp_pending(&the QP's own, interval, now)
 *
 * A CNP is owed to one QP, so only a QP's own notification point may be asked what it owes: scope qp.
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

#include "core/core_env.h"

enum roan_cnp_scope { ROAN_CNP_PER_QP, ROAN_CNP_PER_DIP, ROAN_CNP_PER_PORT };

#define ROAN_NP_HOSTS_SHIFT	8

struct roan_np {
	u64 last;		/* ns: the last CNP; 0: never */
	bool cnp_pending;	/* a CE packet came too soon after it */
	u64 host_hash;		/* roan_np_hosts only: hash of the address */
};

struct roan_np_hosts {
	struct roan_np slot[1 << ROAN_NP_HOSTS_SHIFT];
};

/* A CE packet at @now: true, send a CNP (and it counts as sent); false: it is owed. @interval_us: min_time_between_cnps. */
static inline bool roan_np_cnp_due(struct roan_np *np, u32 interval_us, u64 now)
{
	u64 last = READ_ONCE(np->last);

	/* Signed: another CPU may have stored a later time than ours. */
	if (last && (s64)(now - last) < (s64)interval_us * NSEC_PER_USEC) {
		if (!READ_ONCE(np->cnp_pending))	/* a shared one is not written for each packet */
			WRITE_ONCE(np->cnp_pending, true);
		return false;
	}
	WRITE_ONCE(np->last, now);
	WRITE_ONCE(np->cnp_pending, false);
	return true;
}

/* Any other packet of the QP at @now: true, send the CNP that was owed. One test where there is no congestion. */
static inline bool roan_np_cnp_pending(struct roan_np *np, u32 interval_us, u64 now)
{
	return unlikely(READ_ONCE(np->cnp_pending)) && roan_np_cnp_due(np, interval_us, now);
}

/* The slot of the host with this 16-byte address. */
struct roan_np *roan_np_host(struct roan_np_hosts *hosts, const u8 address[16]);

#endif /* ROAN_NP_H */
