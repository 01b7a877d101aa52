// SPDX-License-Identifier: GPL-2.0
/*
 * Several paths: which UDP source port the next packets get. Routers and bonds that choose a path by it (ECMP) then
 * send the packets of one QP by all paths there are. Only to a peer that sends SACKs: it keeps what comes early, and
 * says what has arrived. To others there is one path.
 *
 * - A path gets a few packets at a time, a train. The packets in flight on the paths are proportional to their shares.
 *   A share rises while the path's round trip is shorter than that of the others, and falls while it is longer: so
 *   packets take the same time by all paths, a slow one carries less, and they arrive nearly in order.
 * - The packets in flight by all paths together have a window (core/cc/path_window.h). That holds for one path, too: a
 *   QP with one has struct roan_paths from its first SACK on, or the first READ response that is missing.
 * - Within a path packets keep their order: only packets of the same path overtake one that is lost. Without such a
 *   packet it counts as lost after 1.5 times the longest recent round trip. If the path delivers nothing in that time,
 *   it has failed: others take its packets. Single packets, at growing intervals, show whether it delivers again: by
 *   one failed path at a time, as each lost one makes all later packets wait.
 * - A path that was not used for long may have become better: it gets single packets, too.
 */
#include "core/transport/requester_priv.h"

#define SHARE_START	1024
#define SHARE_GAIN	8		/* this part of the relative difference between round trips */
#define MAX_RTT_DECAY	256		/* packets, roughly */
#define MAX_BACKOFF	10
#define LATEST_MAX_NS	NSEC_PER_SEC
#define PROBE_MAX_NS	NSEC_PER_SEC

static void paths_clear(struct roan_requester *r, struct roan_paths *p)
{
	u32 n = p->n, i;

	memset(p, 0, roan_paths_size(n));
	p->n = n;
	roan_path_window_reset(&p->window, false, r->cfg.sq_psn);
	roan_path_window_reset(&p->read_window, false, r->cfg.sq_psn);
	r->cfg.psn_window = min_t(u32, r->cfg.psn_window, ROAN_PATH_PSNS);
	/* With several paths p->window limits the packets in flight from the beginning. */
	r->start_window = n > 1 ? r->cfg.psn_window : min(r->start_window, r->cfg.psn_window);
	for (i = 0; i < p->n; i++)
		p->path[i].share = SHARE_START;
}

void roan_paths_reset(struct roan_requester *r)
{
	paths_clear(r, r->paths);
}

void roan_requester_set_paths(struct roan_requester *r, struct roan_paths *paths)
{
	paths->n = 1;
	paths_clear(r, paths);
	roan_path_window_reset(&paths->window, true, r->end_psn);	/* as until now */
	roan_path_window_reset(&paths->read_window, true, r->end_psn);
	WRITE_ONCE(r->paths, paths);	/* last, as it is displayed without a lock */
}

void roan_paths_set_number(struct roan_requester *r, u32 n)
{
	struct roan_paths *p = r->paths;
	u32 i;

	for (i = n; i < p->n; i++)
		p->path[0].in_flight += p->path[i].in_flight;
	for (i = 1; i < n; i++)
		p->path[i] = (struct roan_path) { .share = SHARE_START };
	if (n == 1)
		memset(p->path_of, 0, sizeof(p->path_of));
	p->path[0].failed = false;
	p->n_failed = 0;
	p->in_use = 0;
	p->try_next = 0;
	p->train_left = 0;
	WRITE_ONCE(p->n, n);
}

void roan_paths_forget(struct roan_requester *r)
{
	struct roan_paths *p = r->paths;
	u32 i;

	memset(p->in_flight, 0, sizeof(p->in_flight));
	memset(p->awaited, 0, sizeof(p->awaited));
	p->n_in_flight = 0;
	p->n_awaited = 0;
	for (i = 0; i < p->n; i++)
		p->path[i].in_flight = 0;
}

/* ---- choice of a path ---- */

static struct roan_path *path_of(struct roan_paths *p, u32 psn)
{
	return &p->path[p->path_of[psn % ROAN_PATH_PSNS]];
}

/* By how many packets of the path the newest one received was sent after packet @number; negative: before. */
static s16 path_ahead(const struct roan_path *path, u16 number)
{
	return path->last_received - number;
}

/* ---- packets sent ---- */

/* Not in flight any more, on the path by which it was sent. False: it was not. */
static bool path_remove(struct roan_paths *p, u32 psn)
{
	if (!psn_set_has(p->in_flight, ROAN_PATH_PSNS, psn))
		return false;
	psn_set_remove(p->in_flight, ROAN_PATH_PSNS, psn);
	path_of(p, psn)->in_flight--;
	p->n_in_flight--;
	return true;
}

static void path_add(struct roan_paths *p, u32 psn, bool not_timed, u64 now)
{
	struct roan_path *path = &p->path[p->in_use];
	u32 at = psn % ROAN_PATH_PSNS;

	path_remove(p, psn);
	psn_set_add(p->in_flight, ROAN_PATH_PSNS, psn);
	if (not_timed)
		psn_set_add(p->not_timed, ROAN_PATH_PSNS, psn);
	else
		psn_set_remove(p->not_timed, ROAN_PATH_PSNS, psn);
	p->path_of[at] = p->in_use;
	p->number[at] = ++path->last_sent;
	p->sent_at[at] = now;
	path->in_flight++;
	p->n_in_flight++;
}

/* ns after which what takes @mean_ns, and @max_ns at most, does not arrive any more. */
static u32 path_longer_than(const struct roan_paths *p, u32 mean_ns, u32 max_ns)
{
	u64 ns = max(2ull * mean_ns, max_ns + max_ns / 2ull) << p->backoff;

	return min_t(u64, ns, LATEST_MAX_NS);
}

/* ns after which a packet does not arrive any more, by any path. 0: not known; with one path only overtakers tell. */
static u32 path_latest(const struct roan_paths *p)
{
	if (p->n == 1)
		return 0;
	if (!p->rtt_ns)		/* there were READs only, and their responses take longer than ACKs */
		return path_longer_than(p, p->read_ns, p->max_read_ns);
	return path_longer_than(p, p->rtt_ns, p->max_rtt_ns);
}

/* Response @psn is not awaited any more, from the path by which the request for it was sent. False: it was not. */
static bool path_remove_response(struct roan_paths *p, u32 psn)
{
	if (!psn_set_has(p->awaited, ROAN_PATH_PSNS, psn))
		return false;
	psn_set_remove(p->awaited, ROAN_PATH_PSNS, psn);
	path_of(p, psn)->in_flight--;
	p->n_awaited--;
	return true;
}

/* No READ was answered since so many packets that their numbers have wrapped: last_read must not look as if ahead. */
static void path_age_last_read(struct roan_path *path)
{
	if ((s16)(path->last_sent - path->last_read) < 0)
		path->last_read = path->last_sent - S16_MAX;
}

/* The responses to request @d are awaited by the path in use. */
static void path_await(struct roan_paths *p, const struct roan_tx_desc *d, u64 now)
{
	u32 i, psn;

	path_age_last_read(&p->path[p->in_use]);
	for (i = 0; i < d->npsn; i++) {
		psn = psn_add(d->psn, i);
		psn_set_add(p->awaited, ROAN_PATH_PSNS, psn);
		if (d->resend || d->repair)
			psn_set_remove(p->asked_once, ROAN_PATH_PSNS, psn);
		else
			psn_set_add(p->asked_once, ROAN_PATH_PSNS, psn);
		p->path_of[psn % ROAN_PATH_PSNS] = p->in_use;
		p->number[psn % ROAN_PATH_PSNS] = p->path[p->in_use].last_sent;
		p->sent_at[psn % ROAN_PATH_PSNS] = now;
	}
	p->path[p->in_use].in_flight += d->npsn;
	p->n_awaited += d->npsn;
}

/* What is missing now and in flight has arrived or expired by then. */
static void path_limit_wait(struct roan_requester *r, u64 now)
{
	if (r->any_holes && path_latest(r->paths))
		r->holes->lost_at = min(r->holes->lost_at, now + path_latest(r->paths));
}

void roan_paths_sent(struct roan_requester *r, const struct roan_tx_desc *d, u64 now)
{
	struct roan_paths *p = r->paths;
	struct roan_path *path = &p->path[p->in_use];
	bool request = roan_op_needs_response(roan_requester_wqe(r, d->index)->op);
	u32 n = request ? 1 : d->npsn, i;	/* the other PSNs are those of the response */

	for (i = 0; request && i < d->npsn; i++)
		path_remove_response(p, psn_add(d->psn, i));
	for (i = 0; i < n; i++)
		path_add(p, psn_add(d->psn, i), d->resend || d->repair || request, now);
	if (request)
		path_await(p, d, now);
	p->train_left -= min(p->train_left, d->npsn);
	path->sent_at = now;
	if (path->failed) {
		p->probe_at = now + min_t(u64, (u64)path_latest(p) << p->probe_backoff, PROBE_MAX_NS);
		p->probe_backoff = min(p->probe_backoff + 1, MAX_BACKOFF);
	}
	path_limit_wait(r, now);
}

/* ---- packets received ---- */

enum path_value { PATH_SHARE, PATH_RTT, PATH_READ };

static u32 path_value(const struct roan_path *path, enum path_value what)
{
	switch (what) {
	case PATH_RTT:
		return path->rtt_ns;
	case PATH_READ:
		return path->read_ns;
	default:
		return path->rtt_ns || path->read_ns ? path->share : 0;
	}
}

/* Mean over the paths that are in use. 0: none is. */
static u32 path_mean(const struct roan_paths *p, enum path_value what)
{
	u32 value;
	u32 i, n = 0;
	u64 sum = 0;

	for (i = 0; i < p->n; i++) {
		value = path_value(&p->path[i], what);
		if (p->path[i].failed || !value || !p->path[i].in_flight)
			continue;
		sum += value;
		n++;
	}
	return n ? div_u64(sum, n) : 0;
}

/* By the path's round trips, or by what READs take; once for each. @number: of the packet that was measured. */
static void path_adapt_share(struct roan_paths *p, struct roan_path *path, enum path_value what, u16 number)
{
	u32 mean = path_mean(p, what), rtt = path_value(path, what), i;

	if ((s16)(number - path->adapt_at) < 0)
		return;
	path->adapt_at = path->last_sent;
	if (rtt < mean)
		path->share += div_u64((u64)path->share * (mean - rtt), mean) / SHARE_GAIN;
	else
		path->share -= div_u64((u64)path->share * (rtt - mean), rtt) / SHARE_GAIN;
	path->share = max(path->share, ROAN_PATH_SHARE_MIN);
	if (path->share <= ROAN_PATH_SHARE_MAX)
		return;
	for (i = 0; i < p->n; i++)
		p->path[i].share = max(p->path[i].share / 2, ROAN_PATH_SHARE_MIN);
}

/* The round trip of @n packets from @psn on took @ns. */
static void path_adapt_window(struct roan_requester *r, struct roan_path_window *w, u32 min_ns, u32 psn, u32 n, u32 ns)
{
	const struct roan_path_sample sample = {
		.psn = psn, .end_psn = r->end_psn, .n = n, .ns = ns, .min_ns = min_ns, .mtu_shift = r->cfg.mtu_shift,
		.several = r->paths->n > 1 && !r->paths->trial,
	};

	roan_path_window_adapt(w, &sample);
}

/* Returns the path's @smoothed value with sample @ns added. A path tried again that is not slow is used at once. */
static u32 path_smoothed(struct roan_paths *p, struct roan_path *path, u32 smoothed, u32 ns, u32 mean)
{
	if (smoothed)
		return smoothed - smoothed / 4 + ns / 4;
	if (path->share == ROAN_PATH_SHARE_MIN && ns <= mean)
		path->share = max(path_mean(p, PATH_SHARE), ROAN_PATH_SHARE_MIN);
	return ns;
}

/* Packets of several paths that only come later than others count as lost, too, until more is known of the paths. */
static void path_count(struct roan_paths *p, bool lost)
{
	if (p->n == 1)
		roan_path_window_count(&p->window, lost);
}

static void path_measure(struct roan_requester *r, struct roan_path *path, u32 ns, u64 now)
{
	struct roan_paths *p = r->paths;

	roan_min_rtt_sample(r->min_rtt, ns, now);
	p->max_rtt_ns = max(ns, p->max_rtt_ns - p->max_rtt_ns / MAX_RTT_DECAY);
	p->rtt_ns = p->rtt_ns ? p->rtt_ns - p->rtt_ns / 64 + ns / 64 : ns;
	p->backoff = 0;
	path->rtt_ns = path_smoothed(p, path, path->rtt_ns, ns, p->rtt_ns);
}

static void path_is_back(struct roan_paths *p, struct roan_path *path, u64 now)
{
	path->failed = false;
	roan_path_start_again(path);
	p->n_failed--;
	p->probe_at = now;	/* others may have failed for the same reason */
	p->probe_backoff = 0;
}

/* The peer has received packet @psn, as a SACK says or a later ACK or response. Perhaps that is known already. */
static void path_received(struct roan_requester *r, u32 psn, bool sacked, u64 now)
{
	struct roan_paths *p = r->paths;
	struct roan_path *path = path_of(p, psn);
	bool not_timed = psn_set_has(p->not_timed, ROAN_PATH_PSNS, psn), first;
	u32 at = psn % ROAN_PATH_PSNS, ns = max((u32)now - p->sent_at[at], 1u);

	if (!path_remove(p, psn))
		return;
	path_count(p, false);
	if (not_timed && ns < READ_ONCE(r->min_rtt->ns))
		return;		/* the first one, by another path perhaps */
	path->received_at = now;
	if (path->failed)
		path_is_back(p, path, now);
	if (path_ahead(path, p->number[at]) < 0)
		path->last_received = p->number[at];
	if ((s32)ns < 0)
		return;		/* it left before its departure time */
	/* Copies give no RTT sample (Karn). Nor do responses to READs: the peer takes time to read the data. */
	if (not_timed && !(sacked && psn_set_has(p->asked_once, ROAN_PATH_PSNS, psn)))
		return;
	first = !p->rtt_ns;
	path_measure(r, path, ns, now);
	if (first)
		path_limit_wait(r, now);
	path_adapt_window(r, &p->window, READ_ONCE(r->min_rtt->ns), psn, 1, ns);
	path_adapt_share(p, path, PATH_RTT, path->last_received);
}

/* The first response shows how long others wait on this path: the later ones, how long the peer takes to send them. */
static void path_measure_read(struct roan_requester *r, struct roan_path *path, u32 psn, u32 ns, u64 now)
{
	struct roan_paths *p = r->paths;

	roan_min_rtt_sample(&p->min_read, ns, now);
	p->backoff = 0;
	p->max_read_ns = max(ns, p->max_read_ns - p->max_read_ns / 16);
	p->read_ns = p->read_ns ? p->read_ns - p->read_ns / 16 + ns / 16 : ns;
	path->read_ns = path_smoothed(p, path, path->read_ns, ns, p->read_ns);
	path_adapt_window(r, &p->read_window, p->min_read.ns, psn, roan_paths_read_piece(r) ?: 1, ns);
}

/* The response before it belongs to another request. */
static bool path_is_first_response(const struct roan_paths *p, u32 psn)
{
	u32 at = psn % ROAN_PATH_PSNS, before = psn_add(psn, -1u) % ROAN_PATH_PSNS;

	return p->number[before] != p->number[at] || p->path_of[before] != p->path_of[at];
}

void roan_paths_response(struct roan_requester *r, u32 psn, u64 now)
{
	struct roan_paths *p = r->paths;
	struct roan_path *path = path_of(p, psn);
	u32 at = psn % ROAN_PATH_PSNS, ns = max((u32)now - p->sent_at[at], 1u);

	if (!path_remove_response(p, psn))
		return;
	path->received_at = now;
	if (path->failed)
		path_is_back(p, path, now);
	if (!psn_set_has(p->asked_once, ROAN_PATH_PSNS, psn))
		return;
	if ((s16)(p->number[at] - path->last_read) > 0)
		path->last_read = p->number[at];
	if ((s32)ns < 0 || !path_is_first_response(p, psn))
		return;		/* < 0: the request left before its departure time */
	path_measure_read(r, path, psn, ns, now);
	path_adapt_share(p, path, PATH_READ, p->number[at]);
}

void roan_paths_progress(struct roan_requester *r, u32 from, u64 now)
{
	u32 n = min_t(u32, psn_diff(r->una_psn, from), ROAN_PATH_PSNS);

	for (; n; n--, from = psn_add(from, 1)) {
		path_received(r, from, false, now);
		path_remove_response(r->paths, from);
	}
}

void roan_paths_sacked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	s32 n = min(psn_diff(pkt->sack.highest_psn, pkt->psn), ROAN_SACK_PSNS), i;

	for (i = 0; i < n; i++)
		if (roan_sack_has(&pkt->sack, i))
			path_received(r, psn_add(pkt->psn, 1 + i), true, now);
}

u32 roan_paths_part(const struct roan_requester *r, u32 path, u32 whole, u64 within, u64 now)
{
	const struct roan_paths *p = r->paths;
	u32 i, sum;

	if (!p || !r->peer_sacks || path >= p->n)
		return whole;
	sum = p->path[path].share;
	for (i = 0; i < p->n; i++)
		if (i != path && (s64)(now - p->path[i].sent_at) <= (s64)within)
			sum += p->path[i].share;
	return whole * p->path[path].share / sum;
}

void roan_paths_unsent(struct roan_requester *r, u32 psn)
{
	struct roan_paths *p = r->paths;

	for (; psn != r->next_psn; psn = psn_add(psn, 1)) {
		if (path_remove(p, psn))
			path_of(p, psn)->last_sent--;
		path_remove_response(p, psn);
	}
}

/* ---- packets lost ---- */

void roan_paths_lost(struct roan_requester *r, u32 psn)
{
	if (path_remove(r->paths, psn))
		path_count(r->paths, true);
}

u32 roan_paths_overtakers(const struct roan_requester *r, u32 psn)
{
	const struct roan_paths *p = r->paths;
	u32 at = psn % ROAN_PATH_PSNS;

	return max(path_ahead(&p->path[p->path_of[at]], p->number[at]), 0);
}

static void path_fails(struct roan_paths *p, struct roan_path *path, u64 now)
{
	if (!path->failed && !p->n_failed++) {
		p->probe_at = now + path_latest(p);
		p->probe_backoff = 0;
	}
	path->failed = true;
	path->failed_at = path->last_sent;
	if (path == &p->path[p->in_use])
		p->train_left = 0;
}

/*
 * Packet @psn, or a response to it, is lost, @since ns after it was sent. Signed: another CPU may have stored a time
 * later than @now.
 */
static void path_check(struct roan_paths *p, u32 psn, u32 since, u64 now)
{
	if ((s64)(now - path_of(p, psn)->received_at) >= (s64)since)
		path_fails(p, path_of(p, psn), now);
}

/* The peer answers old requests before new ones, and within a path packets keep their order. */
bool roan_paths_overtaken(const struct roan_requester *r, u32 psn)
{
	const struct roan_paths *p = r->paths;
	u32 at = psn % ROAN_PATH_PSNS;

	return psn_set_has(p->awaited, ROAN_PATH_PSNS, psn) &&
	       (s16)(p->path[p->path_of[at]].last_read - p->number[at]) > 0;
}

void roan_paths_response_lost(struct roan_requester *r, u32 psn, u64 now)
{
	struct roan_paths *p = r->paths;

	if (psn_set_has(p->awaited, ROAN_PATH_PSNS, psn))
		path_check(p, psn, (u32)now - p->sent_at[psn % ROAN_PATH_PSNS], now);
}

u64 roan_paths_read_wait_ns(const struct roan_requester *r)
{
	const struct roan_paths *p = r->paths;

	if (p->n == 1 || !r->peer_sacks)
		return 0;
	return path_longer_than(p, p->read_ns, p->max_read_ns) ?: roan_reorder_wait_ns(r, 1);
}

/* A copy has expired. Copies give no RTT sample, so a time that is too short would stay so: it doubles, as an RTO. */
static void path_back_off(struct roan_paths *p, u64 now)
{
	if ((s64)(now - p->backoff_at) < (s64)path_latest(p))
		return;
	p->backoff_at = now;
	p->backoff = min(p->backoff + 1, MAX_BACKOFF);
}

bool roan_paths_expired(struct roan_requester *r, u32 psn, u64 now, u64 *at)
{
	struct roan_paths *p = r->paths;
	struct roan_path *path = path_of(p, psn);
	u16 number = p->number[psn % ROAN_PATH_PSNS];
	s32 since = (u32)now - p->sent_at[psn % ROAN_PATH_PSNS], latest = path_latest(p);	/* < 0: leaves later */

	if (path->failed && (s16)(number - path->failed_at) <= 0)
		return true;
	if (!latest)
		return false;
	if (since < latest) {
		*at = min(*at, now + latest - since);
		return false;
	}
	path_check(p, psn, since, now);
	if (psn_set_has(p->not_timed, ROAN_PATH_PSNS, psn))
		path_back_off(p, now);
	return true;
}
