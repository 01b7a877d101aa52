/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The notification point: decides whether a packet received with CE causes a CNP now. At most one CNP per
 * min_time_between_cnps and scope: the QP, the source host, or the port. Always on, whatever algorithm the QP uses for
 * sending. Not used for CE on ACKs and CNPs, which cause no CNP.
 *
 * A CE packet within the interval causes a CNP after its end (SIGCOMM'15, section 3.1): the CNP is pending, and the
 * QP's next packet, with CE or not, triggers it, unless it comes more than ROAN_NP_PENDING_NS later: the queue that was
 * marked is gone. There is no timer, so a flow that stops gets no CNP. Without this, senders make a tenth fewer cuts
 * than in the published model, and queues are a fifth to a quarter longer.
 *
 *	due = ce ? roan_np_cnp_due(np, interval, now) : roan_np_cnp_pending(&the QP's own, interval, now)
 *
 * A pending CNP belongs to one QP, so use roan_np_cnp_pending() only with a QP's own notification point: scope qp. Many
 * senders may share that of a datagram QP: roan_np_sender_due().
 *
 * The driver half passes the struct roan_np of the scope: one in the QP, one in the port, or roan_np_host() of a table
 * that the device has for scope `dip`. Two hosts may share a slot of it: the new host gets a CNP and takes over the
 * slot, because one CNP too many does less harm than one too few.
 *
 * Concurrency: a QP's own is under its rq.lock. Shared ones are used without a lock, on purpose: each field is one
 * load and one store, and a race causes at most one additional CNP.
 */
#ifndef ROAN_NP_H
#define ROAN_NP_H

#include "core/core_env.h"

enum roan_cnp_scope { ROAN_CNP_PER_QP, ROAN_CNP_PER_DIP, ROAN_CNP_PER_PORT };

#define ROAN_NP_HOSTS_SHIFT	8
#define ROAN_NP_PENDING_NS	NSEC_PER_SEC	/* ns after the interval; far longer than any queue lasts */

struct roan_np {
	u64 last;		/* ns: the last CNP; 0: never */
	bool cnp_pending;	/* a CE packet arrived within the interval */
	u64 host_hash;		/* of the host, in roan_np_hosts; of the last marked sender, in a datagram QP */
};

struct roan_np_hosts {
	struct roan_np slot[1 << ROAN_NP_HOSTS_SHIFT];
};

/*
 * A CE packet at @now. True: send a CNP now, which is recorded as sent. False: it is pending. @interval_us:
 * min_time_between_cnps.
 */
static inline bool roan_np_cnp_due(struct roan_np *np, u32 interval_us, u64 now)
{
	u64 last = READ_ONCE(np->last);

	/* Signed: another CPU may have stored a time later than @now. */
	if (last && (s64)(now - last) < (s64)interval_us * NSEC_PER_USEC) {
		if (!READ_ONCE(np->cnp_pending))	/* do not write to a shared cache line for each packet */
			WRITE_ONCE(np->cnp_pending, true);
		return false;
	}
	WRITE_ONCE(np->last, now);
	WRITE_ONCE(np->cnp_pending, false);
	return true;
}

/* True if a CNP that became pending in the interval from @last on is not sent any more. */
static inline bool roan_np_too_late(u64 last, u32 interval_us, u64 now)
{
	return (s64)(now - last) > (s64)interval_us * NSEC_PER_USEC + (s64)ROAN_NP_PENDING_NS;
}

/* Any other packet of the QP at @now. True: send the pending CNP. A single test if there is no congestion. */
static inline bool roan_np_cnp_pending(struct roan_np *np, u32 interval_us, u64 now)
{
	if (likely(!READ_ONCE(np->cnp_pending)))
		return false;
	if (!roan_np_too_late(READ_ONCE(np->last), interval_us, now))
		return roan_np_cnp_due(np, interval_us, now);
	WRITE_ONCE(np->cnp_pending, false);
	return false;
}

/*
 * A datagram from QP @qpn at @address, with CE or without, at @now. True: send that QP a CNP now, which is recorded as
 * sent. The pending one is for the sender of the last marked datagram: those of others do not send it.
 */
bool roan_np_sender_due(struct roan_np *np, const u8 address[16], u32 qpn, bool ce, u32 interval_us, u64 now);

/*
 * The ports of a peer's QP that has several paths, modulo their number: an interval for each, and its own pending CNP.
 * The QP's next packet from the port sends it. Under rq.lock.
 */
#define ROAN_NP_PORTS	64

struct roan_np_ports {
	u64 pending;			/* 1 << port */
	u64 last[ROAN_NP_PORTS];	/* ns: the last CNP; 0: never */
};

/* @port was the only one until now. @ports is zeroed. */
static inline void roan_np_split(struct roan_np_ports *ports, u16 port, struct roan_np *np)
{
	ports->last[port % ROAN_NP_PORTS] = np->last;
	ports->pending = (u64)np->cnp_pending << port % ROAN_NP_PORTS;
	np->cnp_pending = false;
}

/*
 * Drops the pending CNP of @port if it is too late, and that of one other port, which may send nothing any more: each
 * packet drops at most one of those.
 */
static inline void roan_np_forget_late(struct roan_np_ports *ports, u32 port, u32 interval_us, u64 now)
{
	if (likely(!ports->pending))
		return;
	if (roan_np_too_late(ports->last[__builtin_ctzll(ports->pending)], interval_us, now))
		ports->pending &= ports->pending - 1;
	if (roan_np_too_late(ports->last[port], interval_us, now))
		ports->pending &= ~(1ull << port);
}

/* A packet from @port, with CE or without, at @now. True: send a CNP now, which is recorded as sent. */
static inline bool roan_np_port_due(struct roan_np_ports *ports, u16 port, bool ce, u32 interval_us, u64 now)
{
	u32 i = port % ROAN_NP_PORTS;

	if (!ce) {
		roan_np_forget_late(ports, i, interval_us, now);
		if (!(ports->pending >> i & 1))
			return false;
	}
	if (ports->last[i] && (s64)(now - ports->last[i]) < (s64)interval_us * NSEC_PER_USEC) {
		ports->pending |= 1ull << i;
		return false;
	}
	ports->last[i] = now;
	ports->pending &= ~(1ull << i);
	return true;
}

/* Returns the slot of the host with this 16-byte address. */
struct roan_np *roan_np_host(struct roan_np_hosts *hosts, const u8 address[16]);

#endif /* ROAN_NP_H */
