// SPDX-License-Identifier: GPL-2.0
/* The window of the packets in flight by the paths of a QP: path_window.h. */
#include "core/cc/path_window.h"

#define WINDOW_MIN	(64 * ROAN_WINDOW_ONE)	/* round trips vary with the hosts' load, too */
#define WINDOW_LEAST	(4 * ROAN_WINDOW_ONE)	/* if more do not fit into the queue */
#define WINDOW_MAX	(ROAN_PATH_PSNS * ROAN_WINDOW_ONE)
#define WINDOW_CUT	8		/* this part of the relative excess of the round trip */
#define EXCESS		(24ull * NSEC_PER_SEC)	/* bytes * ns: 24 us in a window of 1 MB, 240 us in one of 100 KB */
#define MIN_RTT_LIFE	(10ull * NSEC_PER_SEC >> 20)	/* paths change */

void roan_path_window_reset(struct roan_path_window *w, bool open, u32 psn)
{
	*w = (struct roan_path_window) { .size = open ? WINDOW_MAX : WINDOW_MIN, .psn = psn };
}

/*
 * ns that a round trip may take longer than the shortest one: half of that, or EXCESS by the window, if it is more. So
 * of QPs that share a queue those with small windows get more, and the burst of a small window is no excess. The round
 * trips of one path differ less than those of several: half as much is accepted.
 */
static u32 window_excess(const struct roan_path_window *w, const struct roan_path_sample *sample)
{
	u64 bytes = ((u64)w->size << sample->mtu_shift) / ROAN_WINDOW_ONE;
	u64 ns = max_t(u64, sample->min_ns / 2, div64_u64(EXCESS, bytes));

	return min_t(u64, sample->several ? ns : ns / 2, NSEC_PER_SEC);
}

void roan_path_window_count(struct roan_path_window *w, bool lost)
{
	u32 size = w->size / ROAN_WINDOW_ONE;

	w->n_lost += lost;
	if (++w->n_counted < size)
		return;
	if (w->n_lost > (w->size < WINDOW_MIN ? size / 16 + 1 : size / 8)) {
		w->size = max_t(u32, (size - min(w->n_lost, size)) * ROAN_WINDOW_ONE, WINDOW_LEAST);
		w->known = true;
	}
	w->n_counted = 0;
	w->n_lost = 0;
}

/* @psn was sent before the last reduction. Not psn_diff(): that may have been more than half of all PSNs ago. */
static bool window_is_reduced_for(const struct roan_path_window *w, u32 psn)
{
	return psn_within(psn, psn_add(w->psn, -ROAN_PATH_PSNS), ROAN_PATH_PSNS);
}

/* The excess reduces it once for each window sent. It grows by one for each window received; before that it doubles. */
void roan_path_window_adapt(struct roan_path_window *w, const struct roan_path_sample *sample)
{
	u32 target = sample->min_ns + window_excess(w, sample), ns = sample->ns, size = w->size;

	if (ns <= target) {
		w->size += sample->n * ROAN_WINDOW_ONE * (w->known ? ROAN_WINDOW_ONE : w->size) / w->size;
	} else if (!window_is_reduced_for(w, sample->psn)) {
		w->size -= div_u64((u64)w->size * (ns - target), ns) / (w->known ? WINDOW_CUT : 1);
		w->size = max_t(u32, w->size, size < WINDOW_MIN ? WINDOW_LEAST : WINDOW_MIN);
		w->psn = sample->end_psn;
		w->known = true;
	}
	w->size = min_t(u32, w->size, WINDOW_MAX);
}

void roan_min_rtt_sample(struct roan_min_rtt *min_rtt, u64 ns, u64 now)
{
	u32 least = READ_ONCE(min_rtt->ns), at = now >> 20, age = at - READ_ONCE(min_rtt->at);

	/* The age may be -1: another CPU read the clock after this one, and came first. */
	if (least && ns > least && age + 1 < MIN_RTT_LIFE)
		return;
	if (ns == least && !age)
		return;		/* most often: the cache line stays shared */
	WRITE_ONCE(min_rtt->ns, min_t(u64, ns, NSEC_PER_SEC));
	WRITE_ONCE(min_rtt->at, at);
}
