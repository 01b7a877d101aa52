// SPDX-License-Identifier: GPL-2.0
/* Draws the work requests of a side, the peer's receives, and what is wrong with them. */
#include "sim.h"

#define NOISE 65536

/* Payload: random bytes that depend on side, job and offset, so that misplaced bytes are detected. */
static u8 noise[NOISE + (1 << 18)];

static const u8 *bytes_of(const struct side *s, u32 job)
{
	return noise + (s->id * 31337 + job * 977) % NOISE;
}

static __attribute__((constructor)) void make_noise(void)
{
	u32 x = 1;

	for (size_t i = 0; i < sizeof(noise); i++) {
		x = x * 1664525 + 1013904223;
		noise[i] = x >> 24;
	}
}

static u32 draw_len(struct sim *sim)
{
	u32 mtu = 1u << sim->mtu_shift;

	switch (sim_below(sim, 4)) {
	case 0:
		return sim_below(sim, mtu + 2);
	case 1:
		return sim_below(sim, 4) * mtu;
	case 2:
		return sim_below(sim, 6 * mtu);
	default:
		return sim_below(sim, sim->max_packets * mtu);
	}
}

static u64 draw_va(struct sim *sim, const struct side *s, const struct model_request *r)
{
	u32 room = s->model.memory_len - r->len;
	bool aligned = r->op != ROAN_OP_WRITE && r->op != ROAN_OP_READ;
	/* The first bytes are zero at first, so that some CMP_SWAPs find what they compare with. */
	u32 at = sim_one_in(sim, 2) ? sim_below(sim, 64) : sim_below(sim, room + 1);

	return MODEL_VA + (aligned ? at & ~7u : at);
}

/* Makes one thing wrong, if the operation has it. */
static void draw_wrong(struct sim *sim, const struct side *s, struct model_request *r)
{
	switch (sim_below(sim, 8)) {
	case 0:
		r->rkey++;
		break;
	case 1:
		r->va += sim_one_in(sim, 2) ? 1ull << 40 : s->model.memory_len;
		break;
	case 2:
		if (r->op != ROAN_OP_WRITE && r->op != ROAN_OP_READ)
			r->va++;
		break;
	case 3:
		if (r->op == ROAN_OP_WRITE || r->ext == ROAN_EXT_INV) {
			r->imm += r->ext == ROAN_EXT_INV;
			r->ext = ROAN_EXT_INV;
		}
		break;
	case 4:
		r->readable = sim_below(sim, r->len + 1);
		break;
	case 5:
		r->no_sink = true;
		break;
	case 6:
		r->gone = true;
		break;
	default:
		r->local_fails = true;
		break;
	}
}

static void draw_request(struct sim *sim, struct side *s, u32 i)
{
	static const u8 ops[] = {
		ROAN_OP_SEND, ROAN_OP_SEND, ROAN_OP_WRITE, ROAN_OP_WRITE, ROAN_OP_WRITE, ROAN_OP_READ, ROAN_OP_READ,
		ROAN_OP_FETCH_ADD, ROAN_OP_CMP_SWAP, ROAN_OP_ATOMIC_WRITE, ROAN_OP_FLUSH, ROAN_OP_LOCAL,
	};
	struct model_request *r = &s->requests[i];

	r->op = ops[sim_below(sim, ARRAY_SIZE(ops))];
	r->fence = sim_one_in(sim, 6);
	if (i && sim_one_in(sim, 2)) {		/* like the previous one, as in real programs */
		const struct model_request *before = &s->requests[i - 1];

		r->op = before->op;
		r->ext = before->op == ROAN_OP_WRITE && before->ext == ROAN_EXT_INV ? ROAN_EXT_NONE : before->ext;
		r->fence = before->fence;
		r->solicited = before->solicited;
		r->len = before->len;
	} else if (r->op == ROAN_OP_SEND || r->op == ROAN_OP_WRITE) {
		r->ext = sim_below(sim, r->op == ROAN_OP_SEND ? ROAN_EXT_INV + 1 : ROAN_EXT_INV);
		r->solicited = sim_one_in(sim, 4);
		r->len = draw_len(sim);
	} else if (r->op == ROAN_OP_READ) {
		r->len = draw_len(sim);
	} else if (r->op != ROAN_OP_LOCAL && r->op != ROAN_OP_FLUSH) {
		r->len = 8;
	}
	r->va = draw_va(sim, s, r);
	r->rkey = MODEL_RKEY;
	r->imm = r->ext == ROAN_EXT_INV ? MODEL_INV_KEY : i << 24 | 0x123456;
	r->compare = sim_below(sim, 3);
	r->swap_add = sim_below(sim, 3);
	r->data = bytes_of(s, i);
	r->readable = r->len;
	if (sim->wrong && sim_one_in(sim, 8))
		draw_wrong(sim, s, r);
	s->jobs[i].barrier = sim_one_in(sim, 12);
	if (r->op == ROAN_OP_READ)
		s->jobs[i].sink = calloc(1, r->len + 1);
}

/* As many receives at the peer as the requests take; wrong ones are too short, unregistered or missing. */
static void draw_recvs(struct sim *sim, struct side *s, bool may_miss)
{
	struct side *peer = sim_peer(sim, s);
	struct model *m = &s->model;
	bool wrong;

	for (u32 i = 0; i < s->n_jobs; i++) {
		const struct model_request *r = &s->requests[i];
		struct model_recv *recv = &m->recvs[m->n_recvs];

		if (!model_takes_recv(r))
			continue;
		wrong = sim->wrong && r->readable == r->len;	/* not both ends: either might fail first */
		if (may_miss && wrong && sim_one_in(sim, 8))
			return;
		recv->len = r->op == ROAN_OP_SEND ? r->len + sim_one_in(sim, 2) * sim_below(sim, 100) : 0;
		if (wrong && sim_one_in(sim, 16))
			recv->len = sim_below(sim, r->len + 1);
		recv->unregistered = wrong && recv->len >= r->len && sim_one_in(sim, 16);
		recv->buf = calloc(1, recv->len + 1);
		peer->recv_bufs[m->n_recvs++] = calloc(1, recv->len + 1);
	}
}

static void init_model(struct sim *sim, struct side *s, const struct roan_requester_cfg *cfg, u32 resources)
{
	/* Some requests overlap, and so show their order. */
	u32 memory = sim->max_packets * 3 / 2 << sim->mtu_shift;
	struct side *peer = sim_peer(sim, s);

	s->model = (struct model) {
		.mtu = 1 << sim->mtu_shift, .max_rd_atomic = cfg->max_rd_atomic,
		.max_dest_rd_atomic = resources, .psn = cfg->sq_psn, .requests = s->requests, .n_requests = s->n_jobs,
		.memory = malloc(memory), .memory_len = memory,
	};
	memcpy(s->model.memory, noise + s->id, memory);
	memset(s->model.memory, 0, 64);
	peer->memory = malloc(memory);
	memcpy(peer->memory, s->model.memory, memory);
}

static void draw_timing(struct sim *sim, struct side *s)
{
	static const u32 keeps[] = { 0, 0, 3, SIM_KEPT, SIM_KEPT };

	s->depth = 1 + sim_below(sim, SIM_QUEUE);
	s->keeps = keeps[sim_below(sim, ARRAY_SIZE(keeps))];
	s->silent_from = sim_below(sim, 4) ? 0 : sim->now + 1 + sim_below(sim, 1000000);
	s->keeps_changes_at = sim_below(sim, 4) ? 0 : sim->now + sim_below(sim, 1000000);
}

/* Some are longer than others, and some runs have one that fails for a while. */
static void draw_paths(struct sim *sim, struct side *s)
{
	if (sim_below(sim, 2))
		return;
	if (sim_one_in(sim, 3)) {
		s->req.auto_paths = &s->auto_paths;
	} else {
		s->req.paths = &s->paths;
		s->paths.n = 1 + sim_below(sim, sim_below(sim, 2) ? ROAN_MAX_PATHS : 4);
	}
	for (u32 i = 0; i < ROAN_MAX_PATHS; i++)
		s->path_delay[i] = sim_below(sim, 4) ? 0 : sim_below(sim, 30000);
	sim->reorder = max(sim->reorder, 1u);	/* it is a link that reorders packets, then */
	if (sim->few_retries || sim_below(sim, 2))
		return;
	sim->loss = max(sim->loss, 1u);		/* it is a link that loses packets, then */
	s->failing = sim_below(sim, 4);
	s->fails_at = sim->now + sim_below(sim, 300000);
	s->works_at = s->fails_at + sim_below(sim, 3000000);
}

void sim_side_init(struct sim *sim, int id)
{
	static const u32 windows[] = { 1, 2, 4, 8, 16, 64, 256, 65536 };
	struct side *s = &sim->sides[id], *peer = &sim->sides[!id];
	u32 psn = sim_below(sim, 2) ? psn_add(0, -sim_below(sim, 100)) : sim_below(sim, 1 << 24);
	u8 timeout = sim->ns_per_byte ? 16 : sim_below(sim, 2) ? 8 : 14;	/* longer than the delay of the slow line */
	bool no_more_recvs = sim->wrong && sim_one_in(sim, 4);
	struct roan_requester_cfg req = {
		.transport = ROAN_TP_RC, .mtu_shift = sim->mtu_shift, .retry_cnt = 50, .rnr_retry = 7, .timeout = timeout,
		.max_rd_atomic = 1 + sim_below(sim, SIM_RESP_RES), .sq_psn = psn,
		.psn_window = windows[sim_below(sim, ARRAY_SIZE(windows))], .sack = sim_below(sim, 3),
	};
	struct roan_responder_cfg resp = {
		.transport = ROAN_TP_RC, .mtu_shift = sim->mtu_shift, .max_dest_rd_atomic = req.max_rd_atomic, .rq_psn = psn,
		.sack = true,
	};

	s->id = id;
	s->gives_up = sim->link_ends || sim_one_in(sim, 20);
	if (s->gives_up)
		req.retry_cnt = sim_below(sim, 8);
	else if (sim->few_retries)
		req.retry_cnt = 3 + sim_below(sim, 5);
	if (no_more_recvs)
		req.rnr_retry = sim_below(sim, 7);
	if (sim->wrong && sim_one_in(sim, 16))
		req.max_rd_atomic = 0;
	if (sim->wrong && sim_one_in(sim, 16))
		resp.max_dest_rd_atomic = 0;
	s->req.work = s->work;
	s->req.mask = SIM_QUEUE - 1;
	s->req.holes = sim_below(sim, 16) ? &s->holes : NULL;	/* NULL: no memory for it */
	s->req.min_rtt = &s->min_rtt;
	draw_paths(sim, s);
	roan_requester_reset(&s->req, &req);
	peer->n_resp_res = resp.max_dest_rd_atomic;
	peer->resp.early_set = &peer->early_set;
	roan_responder_reset(&peer->resp, &resp);
	draw_timing(sim, s);
	s->n_jobs = 1 + sim_below(sim, SIM_JOBS);
	init_model(sim, s, &req, resp.max_dest_rd_atomic);
	for (u32 i = 0; i < s->n_jobs; i++)
		draw_request(sim, s, i);
	draw_recvs(sim, s, no_more_recvs);
	peer->credits = sim_below(sim, 2);
	peer->recvs_posted = s->model.n_recvs;
	if (!no_more_recvs && sim_one_in(sim, 3)) {
		peer->recvs_posted = min(sim_below(sim, 3), s->model.n_recvs);
		peer->refill_at = sim->now + 1;
	}
}
