// SPDX-License-Identifier: GPL-2.0
/* Which path the next packets take, and how many (requester_paths.c measures the paths). */
#include "core/transport/requester_priv.h"

#define TRAIN_PKTS	4		/* more arrive less in order, and wait longer for each other on a slow path */
#define UNUSED_RTTS	32		/* round trips without a packet, after which a path is tried again */

/* A path that gets a single packet now, or the request for @n, to see whether and when it arrives. */
static bool path_to_try(struct roan_paths *p, u32 n, u64 now, u32 *which)
{
	struct roan_path *path = &p->path[p->try_next];
	u32 longest;

	*which = p->try_next;
	p->try_next = (p->try_next + 1) % p->n;
	if (path->failed)
		return now >= p->probe_at;
	longest = max(p->rtt_ns, p->read_ns);
	/* Signed: sent_at may be a departure time. */
	if (!longest || (s64)(now - path->sent_at) <= (s64)UNUSED_RTTS * n * longest)
		return false;
	roan_path_start_again(path);
	return true;
}

/* Returns the path that would have the fewest packets in flight for its share, with one more train. */
static u32 path_least_used(const struct roan_paths *p)
{
	u32 i = p->in_use, best = (i + 1) % p->n, least = U32_MAX, n, used;

	for (n = 0; n < p->n; n++) {
		i = (i + 1) % p->n;
		used = (p->path[i].in_flight + TRAIN_PKTS) * ROAN_PATH_SHARE_MAX / p->path[i].share;
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

static void path_begin_train(struct roan_paths *p, const struct roan_tx_desc *d, u64 now)
{
	if (p->n == 1 || (p->one && !p->path[0].failed)) {
		p->in_use = 0;
		p->train_left = ROAN_PATH_PSNS;
		return;
	}
	p->train_left = 1;
	if (d->repair)
		p->in_use = path_newest(p);
	if (d->repair || path_to_try(p, d->npsn, now, &p->in_use))
		return;
	p->train_left = TRAIN_PKTS;
	p->in_use = path_least_used(p);
}

/* Packets that the window allows. */
static u32 path_window_left(const struct roan_paths *p)
{
	u32 most = roan_path_window_packets(&p->window);

	return most - min(p->n_in_flight, most);
}

/* The responses that @d requests do not fit into the window with those that are awaited. */
static bool path_read_must_wait(const struct roan_paths *p, const struct roan_tx_desc *d)
{
	return p->n_awaited && p->n_awaited + d->npsn > roan_path_window_packets(&p->read_window);
}

bool roan_paths_next(struct roan_requester *r, struct roan_tx_desc *d, u64 now)
{
	bool request = roan_op_needs_response(roan_requester_wqe(r, d->index)->op);
	struct roan_paths *p = r->paths;

	if (!d->repair && request && path_read_must_wait(p, d))
		return false;
	if (!r->peer_sacks) {
		p->in_use = 0;
		p->train_left = 0;
		return true;
	}
	/* The window may have shrunk, and the last packet had no AckReq: one more has. */
	if (!d->repair && !path_window_left(p) && !r->since_ackreq)
		return false;
	if (!p->train_left || d->repair)
		path_begin_train(p, d, now);
	d->path = p->in_use;
	d->ackreq |= path_window_left(p) <= 1 && !request;
	return true;
}

u32 roan_paths_batch(const struct roan_requester *r)
{
	const struct roan_paths *p = r->paths;

	if (!r->peer_sacks)
		return U32_MAX;
	return min(p->train_left, max(path_window_left(p), 2u) - 1) - 1;
}

/* So many that the requests that the peer takes fill the window. */
u8 roan_paths_read_piece(const struct roan_requester *r)
{
	u32 window = roan_path_window_packets(&r->paths->read_window), piece = TRAIN_PKTS;
	u32 reads = roan_requester_max_reads(r);

	while (piece * reads < window && piece < r->cfg.psn_window)
		piece *= 2;
	return piece < r->cfg.psn_window ? min(piece, 128u) : 0;
}
