// SPDX-License-Identifier: GPL-2.0
/*
 * How many paths, if the QP finds that out itself (cc_param/paths 0): one, or ROAN_AUTO_PATHS. Nothing in the
 * network shows it: one of several links that is full looks like the only one. So a trial measures both.
 *
 *	measured: the time before | one | several | one | ... | several | one | then the better one, for 1 to 64 s
 *
 * - A trial begins when large messages have kept the QP busy for a while.
 * - Its epochs use one path and several by turns. What a QP gets varies, with the load of others and its own: several
 *   paths are chosen only if each epoch with them brought clearly more than the one before and the one after it. The
 *   first that did not ends the trial. An epoch in which there was not always something to send is repeated.
 * - While an epoch begins, packets of the one before are acknowledged, so its first part does not count. The last epoch
 *   has one path, so no packet of another one is in flight when the trial ends with one.
 * - During a trial all epochs have the rule for the window that holds for one path. A QP that had no window before, as
 *   the peer has sent no SACK, has none afterwards.
 *
 * All of it runs when a round trip was measured, so it costs nothing for each packet.
 */
#include "core/transport/requester_priv.h"

#define BEFORE_RTTS	16
#define BEFORE_NS	(2 * NSEC_PER_MSEC)
#define BEFORE_BYTES	(4 << 20)
#define EPOCH_RTTS	8
#define EPOCH_NS	NSEC_PER_MSEC
#define SETTLE		2		/* the part of an epoch's length that passes before it */
#define LAST_EPOCH	9		/* odd ones have one path, even ones several */
#define MAX_REPEATS	32		/* of a trial's epochs */
#define MAX_IDLE	16		/* at most this part of the time the QP had nothing to send */
#define GAIN_PERCENT	115
#define PAUSE_NS	NSEC_PER_SEC
#define MAX_PAUSE	6		/* doublings of it */

void roan_auto_paths_reset(struct roan_requester *r)
{
	struct roan_paths *memory = r->auto_paths->memory;

	*r->auto_paths = (struct roan_auto_paths) { .memory = memory };
	r->paths = NULL;
}

/* ---- measuring ---- */

static void auto_measure_from(struct roan_requester *r, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	a->since = now;
	a->psn = r->una_psn;
	a->index = r->una;
	a->idle_ns = r->idle_ns;
}

static bool auto_was_busy(const struct roan_requester *r, u64 now)
{
	const struct roan_auto_paths *a = r->auto_paths;

	return (s64)(r->idle_ns - a->idle_ns) <= (s64)((now - a->since) / MAX_IDLE);
}

static u32 auto_packets(const struct roan_requester *r)
{
	return psn_diff(r->una_psn, r->auto_paths->psn);
}

/* Packets/s, or near it. */
static u64 auto_rate(const struct roan_requester *r, u64 now)
{
	return div64_u64((u64)auto_packets(r) << 30, max(now - r->auto_paths->since, 1ull));
}

/* ---- a trial ---- */

/* From the next packet on. The window may grow at once. All paths count as just used, so none gets a single packet. */
static void auto_use(struct roan_requester *r, bool several, u64 now)
{
	struct roan_paths *p = r->paths;
	u32 i;

	p->one = !several;
	p->train_left = 0;
	p->window.known &= !several;
	p->read_window.known &= !several;
	for (i = 0; several && i < p->n; i++)
		p->path[i].sent_at = now;
}

static void auto_begin_epoch(struct roan_requester *r, u8 epoch, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	a->epoch = epoch;
	a->length = max_t(u64, EPOCH_RTTS * r->rtt.srtt_ns, EPOCH_NS);
	a->since = 0;
	a->next_at = now + a->length / SETTLE;
	auto_use(r, !(epoch % 2), now);
}

/* The trial ends, with the number of paths that is used from now on. */
static void auto_end(struct roan_requester *r, bool several, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	if (several != a->several)
		a->pause = 0;
	a->next_at = now + (PAUSE_NS << a->pause);
	a->pause = min(a->pause + 1, MAX_PAUSE);
	a->several = several;
	a->since = 0;
	a->epoch = 0;
	r->paths->trial = false;
	auto_use(r, several, now);
	if (several)
		return;
	roan_paths_set_number(r, 1);
	if (!a->had_window)
		WRITE_ONCE(r->paths, NULL);
}

/* No result: the number of paths stays. If it is one, packets of others may be in flight: an epoch with one passes. */
static void auto_give_up(struct roan_requester *r, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	if (a->several || a->epoch == LAST_EPOCH)
		return auto_end(r, a->several, now);
	a->better = false;
	auto_begin_epoch(r, LAST_EPOCH, now);
}

static void auto_end_epoch(struct roan_requester *r, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;
	u64 rate = auto_rate(r, now);

	if (a->epoch == 1)
		a->rate = max(a->rate, rate);
	else if (a->epoch % 2)
		a->better &= a->rate * 100 >= rate * GAIN_PERCENT;
	else
		a->better &= rate * 100 >= a->rate * GAIN_PERCENT;
	if (a->epoch > 1)
		a->rate = rate;
	if (a->epoch == LAST_EPOCH || (!a->better && a->epoch % 2))
		auto_end(r, a->better, now);
	else
		auto_begin_epoch(r, a->better ? a->epoch + 1 : LAST_EPOCH, now);
}

static void auto_trial(struct roan_requester *r, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;
	bool ends = a->epoch == LAST_EPOCH && !a->better;	/* its measurement does not matter */

	if (!a->since) {
		auto_measure_from(r, now);
		a->next_at = now + a->length;
	} else if ((a->epoch % 2 && r->paths->path[0].failed) || a->repeats > MAX_REPEATS) {
		auto_give_up(r, now);
	} else if (ends || auto_was_busy(r, now)) {
		auto_end_epoch(r, now);
	} else {
		a->repeats++;
		auto_begin_epoch(r, a->epoch, now);
	}
}

static void auto_begin(struct roan_requester *r, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	a->rate = a->several ? 0 : auto_rate(r, now);	/* without a window, perhaps */
	a->better = true;
	a->repeats = 0;
	a->n_trials++;
	if (!a->several) {
		a->had_window = r->paths;
		if (!r->paths)
			roan_requester_set_paths(r, a->memory);
		roan_paths_set_number(r, ROAN_AUTO_PATHS);
	}
	r->paths->trial = true;
	auto_begin_epoch(r, 1, now);
}

/* ---- whether there is a reason for one ---- */

static bool auto_possible(const struct roan_requester *r)
{
	if (!r->peer_sacks || !r->min_rtt || r->cfg.psn_window > ROAN_PATH_PSNS)
		return false;
	return !r->paths || !r->paths->path[0].failed;
}

/* Messages of several packets, or of large ones, as the oldest shows. */
static bool auto_is_bulk(const struct roan_requester *r)
{
	if (auto_packets(r) >= 2 * (r->una - r->auto_paths->index))
		return true;
	return r->retire != r->tail && roan_requester_wqe(r, r->retire)->len >= 1u << r->cfg.mtu_shift >> 1;
}

static void auto_consider(struct roan_requester *r, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	if (a->since && auto_possible(r) && auto_is_bulk(r) && auto_was_busy(r, now)) {
		if (auto_packets(r) < BEFORE_BYTES >> r->cfg.mtu_shift)
			return;
		if (a->memory)
			return auto_begin(r, now);
		a->wants_memory = true;
	}
	auto_measure_from(r, now);
	a->next_at = now + max_t(u64, BEFORE_RTTS * r->rtt.srtt_ns, BEFORE_NS);
}

void roan_auto_paths_step(struct roan_requester *r, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	if (likely(now < a->next_at))
		return;
	if (a->epoch)
		auto_trial(r, now);
	else
		auto_consider(r, now);
}

void roan_auto_paths_timed_out(struct roan_requester *r, u64 now)
{
	if (r->auto_paths->epoch)
		auto_give_up(r, now);
}
