/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many packets may be in flight by all paths of a QP. The window grows while round trips are near the shortest
 * one, and shrinks with the excess, as in Swift. A lost packet's copy then does not wait in a long queue, while the
 * next messages, which wait for it, fill the window of PSNs. Requests have one, if the peer sends SACKs, and the
 * responses to READs another, for any peer.
 *
 * Concurrency: that of the requester for struct roan_path_window. Many QPs share a struct roan_min_rtt, without a lock.
 */
#ifndef ROAN_PATH_WINDOW_H
#define ROAN_PATH_WINDOW_H

#include "core/core_env.h"
#include "core/transport/psn.h"

#define ROAN_PATH_PSNS	256	/* the PSN window of a QP with several paths */
#define ROAN_WINDOW_ONE	256	/* one packet */

struct roan_path_window {
	u32 size;		/* the most packets; 1/ROAN_WINDOW_ONE packet */
	u32 psn;		/* it is reduced again when this is received */
	bool known;		/* it was reduced */
	u32 n_counted, n_lost;	/* packets received or lost since the last @size of them */
};

/*
 * The shortest recent round trip: to a peer, or from READs of a QP to their first responses. All QPs to a peer share
 * the former, without a lock: a sample that is lost to another one comes again.
 */
struct roan_min_rtt {
	u32 ns;			/* 0: none measured */
	u32 at;			/* when, in units of 2^20 ns */
};

/* @n packets from @psn on took @ns; the shortest round trip took @min_ns, and packets before @end_psn are sent. */
struct roan_path_sample {
	u32 psn, end_psn;
	u32 n;
	u32 ns, min_ns;
	u8  mtu_shift;
	bool several;		/* paths */
};

/* @open: as large as possible; else small, and it doubles until a round trip is long. */
void roan_path_window_reset(struct roan_path_window *w, bool open, u32 psn);
/*
 * A packet was received, or is @lost. If that is more than an eighth of a window, it did not fit into a queue, and the
 * window shrinks by as much; if the window is small, more than a sixteenth.
 */
void roan_path_window_count(struct roan_path_window *w, bool lost);
void roan_path_window_adapt(struct roan_path_window *w, const struct roan_path_sample *sample);
/* A round trip of @ns was measured, of a packet that was sent once. */
void roan_min_rtt_sample(struct roan_min_rtt *min_rtt, u64 ns, u64 now);

static inline u32 roan_path_window_packets(const struct roan_path_window *w)
{
	return w->size / ROAN_WINDOW_ONE;
}

#endif /* ROAN_PATH_WINDOW_H */
