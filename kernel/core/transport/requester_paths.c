// SPDX-License-Identifier: GPL-2.0
/*
 * Several paths: which UDP source port the next packets get. Routers and bonds that choose a path by it (ECMP) then
 * send the packets of one QP by all paths there are. Only to a peer that sends SACKs: it keeps what comes early, and
 * says what has arrived.
 *
 * - A path gets a few packets at a time, a train. The packets in flight on the paths are proportional to their shares.
 *   A share rises while the path's round trip is shorter than that of the others, and falls while it is longer: so
 *   packets take the same time by all paths, a slow one carries less, and they arrive nearly in order.
 * - The packets in flight by all paths together have a window, which grows while round trips are near the shortest one
 *   and shrinks with the excess, as in Swift. A lost packet's copy then does not wait in a long queue, while the next
 *   messages, which wait for it, fill the window of PSNs. That holds for one path, too: a QP with one has struct
 *   roan_paths from its first SACK on.
 * - Within a path packets keep their order: only packets of the same path overtake one that is lost. Without such a
 *   packet it is lost when all others that take longest have arrived. If the path delivers nothing in that time, it
 *   has failed: others take its packets, and single ones, ever more seldom, show whether it delivers again.
 * - A path that was not used for long may have become better: it gets single packets, too.
 */
#include "core/transport/requester_priv.h"

#define TRAIN_PKTS	4		/* more arrive less in order, and wait longer for each other on a slow path */
#define SHARE_START	1024
#define SHARE_MIN	16
#define SHARE_MAX	4096
#define SHARE_GAIN	8		/* this part of the relative difference between round trips */
#define WINDOW_ONE	256		/* one packet */
#define WINDOW_MIN	(16 * TRAIN_PKTS * WINDOW_ONE)	/* round trips vary with the hosts' load, too */
#define WINDOW_MAX	(ROAN_PATH_PSNS * WINDOW_ONE)
#define WINDOW_CUT	8		/* this part of the relative excess of the round trip */
#define EXCESS		(24ull * NSEC_PER_SEC)	/* bytes * ns: 24 us in a window of 1 MB, 240 us in one of 100 KB */
#define MIN_RTT_LIFE	(10ull * NSEC_PER_SEC >> 20)	/* paths change */
#define MAX_RTT_DECAY	256		/* packets, roughly */
#define UNUSED_RTTS	32		/* round trips without a packet, after which a path is tried again */
#define MAX_BACKOFF	10
#define LATEST_MAX_NS	NSEC_PER_SEC
#define PROBE_MAX_NS	NSEC_PER_SEC

void roan_paths_reset(struct roan_requester *r)
{
	struct roan_paths *p = r->paths;
	u32 n = p->n, i;

	memset(p, 0, roan_paths_size(n));
	p->n = n;
	p->window = WINDOW_MIN;
	p->window_psn = r->cfg.sq_psn;
	r->cfg.psn_window = min_t(u32, r->cfg.psn_window, ROAN_PATH_PSNS);
	for (i = 0; i < p->n; i++)
		p->path[i].share = SHARE_START;
}

void roan_requester_set_paths(struct roan_requester *r, struct roan_paths *paths)
{
	paths->n = 1;
	WRITE_ONCE(r->paths, paths);	/* it is displayed without a lock */
	roan_paths_reset(r);
	paths->window = WINDOW_MAX;	/* as until now */
	paths->window_psn = r->end_psn;
}

void roan_paths_forget(struct roan_requester *r)
{
	struct roan_paths *p = r->paths;
	u32 i;

	memset(p->in_flight, 0, sizeof(p->in_flight));
	p->n_in_flight = 0;
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

/* A path that gets a single packet now, to see whether and when it arrives. */
static bool path_to_try(struct roan_paths *p, u64 now, u32 *which)
{
	struct roan_path *path = &p->path[p->try_next];

	*which = p->try_next;
	p->try_next = (p->try_next + 1) % p->n;
	if (path->failed)
		return now >= path->probe_at;
	if (!p->rtt_ns || now - path->sent_at <= UNUSED_RTTS * (u64)p->rtt_ns)
		return false;
	path->share = SHARE_MIN;
	path->rtt_ns = 0;
	return true;
}

/* Returns the path that would have the fewest packets in flight for its share, with one more train. */
static u32 path_least_used(const struct roan_paths *p)
{
	u32 i = p->in_use, best = (i + 1) % p->n, least = U32_MAX, n, used;

	for (n = 0; n < p->n; n++) {
		i = (i + 1) % p->n;
		used = (p->path[i].in_flight + TRAIN_PKTS) * SHARE_MAX / p->path[i].share;
		if (p->path[i].failed || used >= least)
			continue;
		least = used;
		best = i;
	}
	return best;
}

/* The path that has delivered last. */
static u32 path_newest(const struct roan_paths *p)
{
	u32 best = 0, i;

	for (i = 1; i < p->n; i++)
		if (p->path[best].failed || (!p->path[i].failed && p->path[i].received_at > p->path[best].received_at))
			best = i;
	return best;
}

static void path_begin_train(struct roan_paths *p, bool repair, u64 now)
{
	if (p->n == 1) {
		p->train_left = ROAN_PATH_PSNS;
		return;
	}
	p->train_left = 1;
	if (repair)
		p->in_use = path_newest(p);
	if (repair || path_to_try(p, now, &p->in_use))
		return;
	p->train_left = TRAIN_PKTS;
	p->in_use = path_least_used(p);
}

/* Packets that the window allows. */
static u32 path_window_left(const struct roan_paths *p)
{
	return p->window / WINDOW_ONE - min(p->n_in_flight, p->window / WINDOW_ONE);
}

bool roan_paths_next(struct roan_requester *r, struct roan_tx_desc *d, u64 now)
{
	struct roan_paths *p = r->paths;

	if (!r->peer_sacks) {
		p->in_use = 0;
		p->train_left = 0;
		return true;
	}
	/* The window may have shrunk, and the last packet had no AckReq: one more has. */
	if (!d->repair && !path_window_left(p) && !r->since_ackreq)
		return false;
	if (!p->train_left || d->repair)
		path_begin_train(p, d->repair, now);
	d->path = p->in_use;
	d->ackreq |= path_window_left(p) <= 1 && !roan_op_needs_response(roan_requester_wqe(r, d->index)->op);
	return true;
}

u32 roan_paths_window(const struct roan_requester *r)
{
	return r->peer_sacks ? r->paths->window / WINDOW_ONE : U32_MAX;
}

u32 roan_paths_batch(const struct roan_requester *r)
{
	const struct roan_paths *p = r->paths;

	if (!r->peer_sacks)
		return U32_MAX;
	return min(p->train_left, max(path_window_left(p), 2u) - 1) - 1;
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

/* ns after which a packet does not arrive any more, by any path. 0: not known; with one path only overtakers tell. */
static u32 path_latest(const struct roan_paths *p)
{
	u64 ns = max(2ull * p->rtt_ns, p->max_rtt_ns + p->max_rtt_ns / 2ull) << p->backoff;

	if (p->n == 1)
		return 0;
	return min_t(u64, ns, LATEST_MAX_NS);
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

	for (i = 0; i < n; i++)
		path_add(p, psn_add(d->psn, i), d->resend || d->repair || request, now);
	p->train_left -= min(p->train_left, n);
	path->sent_at = now;
	if (path->failed) {
		path->probe_at = now + min_t(u64, (u64)path_latest(p) << path->backoff, PROBE_MAX_NS);
		path->backoff = min(path->backoff + 1, MAX_BACKOFF);
	}
	path_limit_wait(r, now);
}

/* ---- packets received ---- */

/* Mean over the paths that are in use: of their round trips, or of their shares. 0: none is. */
static u32 path_mean(const struct roan_paths *p, bool shares)
{
	u32 i, n = 0;
	u64 sum = 0;

	for (i = 0; i < p->n; i++) {
		if (p->path[i].failed || !p->path[i].rtt_ns || !p->path[i].in_flight)
			continue;
		sum += shares ? p->path[i].share : p->path[i].rtt_ns;
		n++;
	}
	return n ? div_u64(sum, n) : 0;
}

static void path_adapt_share(struct roan_paths *p, struct roan_path *path)
{
	u32 mean = path_mean(p, false), rtt = path->rtt_ns, i;

	if (rtt < mean)
		path->share += div_u64((u64)path->share * (mean - rtt), mean) / SHARE_GAIN;
	else
		path->share -= div_u64((u64)path->share * (rtt - mean), rtt) / SHARE_GAIN;
	path->share = max(path->share, SHARE_MIN);
	if (path->share <= SHARE_MAX)
		return;
	for (i = 0; i < p->n; i++)
		p->path[i].share = max(p->path[i].share / 2, SHARE_MIN);
}

/*
 * ns that a round trip may take longer than the shortest one: half of that, or EXCESS by the window, if it is more. So
 * of QPs that share a queue those with small windows get more, and the burst of a small window is no excess. The round
 * trips of one path differ less than those of several: half as much is accepted.
 */
static u32 path_excess(const struct roan_requester *r, u32 min_rtt)
{
	const struct roan_paths *p = r->paths;
	u64 bytes = ((u64)p->window << r->cfg.mtu_shift) / WINDOW_ONE;
	u64 ns = max_t(u64, min_rtt / 2, div64_u64(EXCESS, bytes));

	return min_t(u64, p->n > 1 ? ns : ns / 2, NSEC_PER_SEC);
}

/*
 * The excess reduces it once for each window sent. It grows by a packet for each window received; before the first
 * excess it doubles.
 */
static void path_adapt_window(struct roan_requester *r, u32 psn, u32 ns)
{
	struct roan_paths *p = r->paths;
	u32 min_rtt = READ_ONCE(r->min_rtt->ns), target = min_rtt + path_excess(r, min_rtt);

	if (ns <= target) {
		p->window += p->window_known ? WINDOW_ONE * WINDOW_ONE / p->window : WINDOW_ONE;
	} else if (psn_diff(psn, p->window_psn) >= 0) {
		p->window -= div_u64((u64)p->window * (ns - target), ns) / WINDOW_CUT;
		p->window_psn = r->end_psn;
		p->window_known = true;
	}
	p->window = clamp_t(u32, p->window, WINDOW_MIN, WINDOW_MAX);
}

void roan_min_rtt_sample(struct roan_requester *r, u64 ns, u64 now)
{
	u32 least = READ_ONCE(r->min_rtt->ns), at = now >> 20, age = at - READ_ONCE(r->min_rtt->at);

	if (least && ns > least && age < MIN_RTT_LIFE)
		return;
	if (ns == least && !age)
		return;		/* most often: the cache line stays shared */
	WRITE_ONCE(r->min_rtt->ns, min_t(u64, ns, NSEC_PER_SEC));
	WRITE_ONCE(r->min_rtt->at, at);
}

static void path_measure(struct roan_requester *r, struct roan_path *path, u32 ns, u64 now)
{
	struct roan_paths *p = r->paths;

	roan_min_rtt_sample(r, ns, now);
	p->max_rtt_ns = max(ns, p->max_rtt_ns - p->max_rtt_ns / MAX_RTT_DECAY);
	p->rtt_ns = p->rtt_ns ? p->rtt_ns - p->rtt_ns / 64 + ns / 64 : ns;
	p->backoff = 0;
	if (!path->rtt_ns && path->share == SHARE_MIN && ns <= p->rtt_ns)
		path->share = max(path_mean(p, true), SHARE_MIN);
	path->rtt_ns = path->rtt_ns ? path->rtt_ns - path->rtt_ns / 4 + ns / 4 : ns;
}

static void path_is_back(struct roan_paths *p, struct roan_path *path)
{
	path->failed = false;
	path->backoff = 0;
	path->share = SHARE_MIN;
	path->rtt_ns = 0;
	p->n_failed--;
}

/* The peer has received packet @psn. Perhaps that is known already. */
static void path_received(struct roan_requester *r, u32 psn, u64 now)
{
	struct roan_paths *p = r->paths;
	struct roan_path *path = path_of(p, psn);
	bool not_timed = psn_set_has(p->not_timed, ROAN_PATH_PSNS, psn), first;
	u32 at = psn % ROAN_PATH_PSNS, ns = max((u32)now - p->sent_at[at], 1u);

	if (!path_remove(p, psn))
		return;
	if (not_timed && ns < READ_ONCE(r->min_rtt->ns))
		return;		/* the first one, by another path perhaps */
	path->received_at = now;
	if (path->failed)
		path_is_back(p, path);
	if (path_ahead(path, p->number[at]) < 0)
		path->last_received = p->number[at];
	/* Copies give no RTT sample (Karn). READs give none: the peer takes time to read the data. */
	if (not_timed)
		return;
	first = !p->rtt_ns;
	path_measure(r, path, ns, now);
	if (first)
		path_limit_wait(r, now);
	path_adapt_window(r, psn, ns);
	if (path_ahead(path, path->adapt_at) < 0)
		return;
	path->adapt_at = path->last_sent;
	path_adapt_share(p, path);
}

void roan_paths_progress(struct roan_requester *r, u32 from, u64 now)
{
	u32 n = min_t(u32, psn_diff(r->una_psn, from), ROAN_PATH_PSNS);

	for (; n; n--, from = psn_add(from, 1))
		path_received(r, from, now);
}

void roan_paths_sacked(struct roan_requester *r, const struct roan_pkt *pkt, u64 now)
{
	s32 n = min(psn_diff(pkt->sack.highest_psn, pkt->psn), ROAN_SACK_PSNS), i;

	for (i = 0; i < n; i++)
		if (roan_sack_has(&pkt->sack, i))
			path_received(r, psn_add(pkt->psn, 1 + i), now);
}

/* ---- packets lost ---- */

void roan_paths_lost(struct roan_requester *r, u32 psn)
{
	path_remove(r->paths, psn);
}

u32 roan_paths_overtakers(const struct roan_requester *r, u32 psn)
{
	const struct roan_paths *p = r->paths;
	u32 at = psn % ROAN_PATH_PSNS;

	return max(path_ahead(&p->path[p->path_of[at]], p->number[at]), 0);
}

/* A copy has expired. Copies give no RTT sample, so a time that is too short would stay so: it doubles, as an RTO. */
static void path_back_off(struct roan_paths *p, u64 now)
{
	if (now - p->backoff_at < path_latest(p))
		return;
	p->backoff_at = now;
	p->backoff = min(p->backoff + 1, MAX_BACKOFF);
}

static void path_fails(struct roan_paths *p, struct roan_path *path, u64 now)
{
	if (!path->failed) {
		p->n_failed++;
		path->probe_at = now + path_latest(p);
	}
	path->failed = true;
	path->failed_at = path->last_sent;
	if (path == &p->path[p->in_use])
		p->train_left = 0;
}

bool roan_paths_expired(struct roan_requester *r, u32 psn, u64 now, u64 *at)
{
	struct roan_paths *p = r->paths;
	struct roan_path *path = path_of(p, psn);
	u16 number = p->number[psn % ROAN_PATH_PSNS];
	u32 since = (u32)now - p->sent_at[psn % ROAN_PATH_PSNS], latest = path_latest(p);

	if (path->failed && (s16)(number - path->failed_at) <= 0)
		return true;
	if (!latest)
		return false;
	if (since < latest) {
		*at = min(*at, now + latest - since);
		return false;
	}
	if (now - path->received_at >= since)
		path_fails(p, path, now);
	if (psn_set_has(p->not_timed, ROAN_PATH_PSNS, psn))
		path_back_off(p, now);
	return true;
}
