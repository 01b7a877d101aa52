// SPDX-License-Identifier: GPL-2.0
/* An endpoint of the simulator: posts random jobs, stands in for the driver half, and checks the results. */
#include "sim.h"

#define NOISE 65536

/* Payload: random bytes that depend on side, job and offset, so that misplaced bytes are detected. */
static u8 noise[NOISE + (1 << 18)];

static const u8 *bytes_of(const struct side *s, u32 job, u32 offset)
{
	return noise + (s->id * 31337 + job * 977) % NOISE + offset;
}

static __attribute__((constructor)) void make_noise(void)
{
	u32 x = 1;

	for (size_t i = 0; i < sizeof(noise); i++) {
		x = x * 1664525 + 1013904223;
		noise[i] = x >> 24;
	}
}

static struct side *peer_of(struct sim *sim, const struct side *s)
{
	return &sim->sides[!s->id];
}

static bool takes_wqe(const struct job *j)
{
	return j->op == ROAN_OP_SEND || (j->op == ROAN_OP_WRITE && j->rider == ROAN_EXT_IMM);
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
		return sim_below(sim, 40 * mtu);
	}
}

static void draw_job(struct sim *sim, struct side *s, u32 i)
{
	static const u8 ops[] = {
		ROAN_OP_SEND, ROAN_OP_SEND, ROAN_OP_WRITE, ROAN_OP_WRITE, ROAN_OP_WRITE, ROAN_OP_READ, ROAN_OP_READ,
		ROAN_OP_FETCH_ADD, ROAN_OP_CMP_SWAP, ROAN_OP_ATOMIC_WRITE, ROAN_OP_FLUSH, ROAN_OP_LOCAL,
	};
	struct job *j = &s->jobs[i];

	j->op = ops[sim_below(sim, ARRAY_SIZE(ops))];
	j->fence = !sim_below(sim, 6);
	if (i && sim_below(sim, 2)) {		/* like the previous job, as in real programs */
		const struct job *before = &s->jobs[i - 1];

		j->op = before->op;
		j->rider = before->rider;
		j->fence = before->fence;
		j->solicited = before->solicited;
		j->len = before->len;
	} else if (j->op == ROAN_OP_SEND || j->op == ROAN_OP_WRITE) {
		j->rider = sim_below(sim, 2) ? ROAN_EXT_IMM : ROAN_EXT_NONE;
		j->solicited = !sim_below(sim, 4);
		j->len = draw_len(sim);
	} else if (j->op == ROAN_OP_READ) {
		j->len = draw_len(sim);
	} else if (j->op != ROAN_OP_LOCAL && j->op != ROAN_OP_FLUSH) {
		j->len = 8;
	}
	j->region = calloc(1, j->len + 1);
	for (u32 k = 0; k < i; k++)
		j->ordinal += takes_wqe(j) ? takes_wqe(&s->jobs[k]) : s->jobs[k].op == j->op;
	if (j->op == ROAN_OP_READ) {
		memcpy(j->region, bytes_of(s, i, 0), j->len);
		j->sink = calloc(1, j->len + 1);
	}
}

void sim_side_init(struct sim *sim, int id)
{
	static const u32 windows[] = { 1, 2, 4, 8, 16, 64, 256, 65536 }, keeps[] = { 0, 0, 3, SIM_KEPT, SIM_KEPT };
	struct side *s = &sim->sides[id];
	u32 psn = sim_below(sim, 2) ? psn_add(0, -sim_below(sim, 100)) : sim_below(sim, 1 << 24);
	u8 timeout = sim->ns_per_byte ? 16 : sim_below(sim, 2) ? 8 : 14;	/* longer than the delay of the slow line */
	const struct roan_requester_cfg req = {
		.transport = ROAN_TP_RC, .mtu_shift = sim->mtu_shift, .retry_cnt = 200, .rnr_retry = 7, .timeout = timeout,
		.max_rd_atomic = 1 + sim_below(sim, SIM_RESP_RES), .sq_psn = psn,
		.psn_window = windows[sim_below(sim, ARRAY_SIZE(windows))], .sack = sim_below(sim, 3),
		.paths = 1 + sim_below(sim, sim_below(sim, 2) ? ROAN_MAX_PATHS : 4),
	};
	const struct roan_responder_cfg resp = {
		.transport = ROAN_TP_RC, .mtu_shift = sim->mtu_shift, .max_dest_rd_atomic = req.max_rd_atomic, .rq_psn = psn,
		.sack = true,
	};
	struct side *peer = &sim->sides[!id];

	s->id = id;
	s->req.work = s->work;
	s->req.mask = SIM_QUEUE - 1;
	s->req.holes = sim->seed % 16 ? &s->holes : NULL;	/* NULL: no memory for it */
	s->req.paths = sim_below(sim, 2) ? &s->paths : NULL;
	for (u32 i = 0; i < ROAN_MAX_PATHS; i++)
		s->path_delay[i] = sim_below(sim, 4) ? 0 : sim_below(sim, 30000);
	s->fails = sim_below(sim, 4);
	s->fails_at = sim->now + sim_below(sim, 300000);
	s->works_at = s->fails_at + (sim_below(sim, 2) ? sim_below(sim, 3000000) : 0);
	roan_requester_reset(&s->req, &req);
	peer->resp.resp_res = peer->resp_res;
	peer->resp.max_resp_res = SIM_RESP_RES;
	peer->resp.early_set = &peer->early_set;
	roan_responder_reset(&peer->resp, &resp);
	s->depth = 1 + sim_below(sim, SIM_QUEUE);
	s->limited = !sim_below(sim, 3);
	s->credits = sim_below(sim, 2);
	s->recv_wqes = s->limited ? sim_below(sim, 3) : 1000;
	s->n_jobs = 1 + sim_below(sim, SIM_JOBS);
	for (u32 i = 0; i < s->n_jobs; i++)
		draw_job(sim, s, i);
	if (s->limited)
		s->refill_at = sim->now + 1;
	s->keeps = keeps[sim_below(sim, ARRAY_SIZE(keeps))];
	s->silent_from = sim_below(sim, 4) ? 0 : sim->now + 1 + sim_below(sim, 1000000);
	s->keeps_changes_at = sim_below(sim, 4) ? 0 : sim->now + sim_below(sim, 1000000);
}

/* ---- the link ---- */

static void put_on_link(struct sim *sim, struct side *from, const struct flight *f, u32 path)
{
	SIM_CHECK(sim, sim->n_flights < SIM_FLIGHTS, "too many packets in flight");
	from->line_free_at = max(from->line_free_at, sim->now) + (u64)f->len * sim->ns_per_byte;
	sim->flights[sim->n_flights] = *f;
	sim->flights[sim->n_flights].to = !from->id;
	sim->flights[sim->n_flights].at = from->line_free_at + 5000 + from->path_delay[path] +
					  (sim_below(sim, 1000) < sim->reorder ? sim_below(sim, 40000) : 0);
	sim->n_flights++;
}

static bool path_fails(const struct sim *sim, const struct side *s, u32 path)
{
	return s->req.paths && path % 4 == s->fails && sim->now >= s->fails_at && sim->now < s->works_at;
}

static void transmit(struct sim *sim, struct side *s, struct roan_pkt *pkt, u32 path, const u8 *payload, u32 len)
{
	struct flight f = { .payload = payload };
	bool lost = sim_below(sim, 1000) < sim->loss || path_fails(sim, s, path);

	pkt->pad = roan_wire_pad(len);
	f.len = roan_wire_build(f.head, pkt) + len + pkt->pad + ROAN_ICRC_LEN;
	if (sim->verbose)
		printf("%10llu %c opcode %02x psn %06x len %5u%s syndrome %02x msn %u%s\n", (unsigned long long)sim->now,
		       'A' + s->id, pkt->opcode, pkt->psn, len, pkt->ackreq ? " ackreq" : "", pkt->syndrome, pkt->msn,
		       lost ? " LOST" : "");
	if (lost)
		return;
	put_on_link(sim, s, &f, path);
	if (sim_below(sim, 1000) < sim->copies)
		put_on_link(sim, s, &f, path);
}

/* Some sides say so at first, and later do not. */
static bool supports_sack(const struct sim *sim, const struct side *s)
{
	return !s->silent_from || sim->now < s->silent_from;
}

/* ---- sending ---- */

static void post(struct sim *sim, struct side *s)
{
	while (s->posted < s->n_jobs && s->posted - s->retired < s->depth) {
		const struct job *j = &s->jobs[s->posted];
		u32 index;
		struct roan_tx_wqe *w = roan_requester_slot(&s->req, &index);

		SIM_CHECK(sim, w && index == s->posted, "no slot for job %u", s->posted);
		*w = (struct roan_tx_wqe) {
			.op = j->op, .ext = j->rider, .fence = j->fence, .solicited = j->solicited, .len = j->len,
		};
		roan_requester_queued(&s->req);
		s->posted++;
		if (sim_below(sim, 4) == 0)
			break;
	}
}

static void retire(struct sim *sim, struct side *s)
{
	enum roan_status status;
	u32 index;

	while (roan_requester_retired(&s->req, &index, &status)) {
		SIM_CHECK(sim, index == s->retired, "side %u: job %u retired, not %u", s->id, index, s->retired);
		SIM_CHECK(sim, status == ROAN_ST_SUCCESS, "side %u: job %u: status %u", s->id, index, status);
		s->retired++;
	}
}

static bool is_remote_op(u8 op)
{
	return op != ROAN_OP_SEND && op != ROAN_OP_WRITE && op != ROAN_OP_LOCAL;
}

static void check_fence(struct sim *sim, const struct side *s, u32 index)
{
	if (!s->jobs[index].fence)
		return;
	for (u32 i = s->retired; i < index; i++)
		SIM_CHECK(sim, !is_remote_op(s->jobs[i].op) || s->work[i & (SIM_QUEUE - 1)].completed,
			  "side %u: fenced job %u started before job %u finished", s->id, index, i);
}

/* Sends the packet and some of its batch. Returns the number of packets. */
static u32 send_alike(struct sim *sim, struct side *s, struct roan_tx_desc *e)
{
	const struct job *j = &s->jobs[e->index];
	struct roan_pkt pkt = {
		.opcode = e->opcode, .psn = e->psn, .ackreq = e->ackreq, .copy = e->copy, .solicited = e->solicited, .pkey = ROAN_DEFAULT_PKEY,
		.ext_version = s->req.cfg.sack && supports_sack(sim, s), .rkey = e->index + 1, .va = (u64)e->index << 32, .dma_len = j->len, .imm = cpu_to_be32(e->index),
	};
	u32 n;

	if (j->op == ROAN_OP_READ) {
		pkt.va += e->offset;
		pkt.dma_len = e->len;
	}
	pkt.swap_add = j->op == ROAN_OP_CMP_SWAP ? j->ordinal + 1 : 1;
	pkt.compare = j->ordinal;
	if (!s->work[e->index & (SIM_QUEUE - 1)].started)
		check_fence(sim, s, e->index);
	n = 1 + sim_below(sim, 1 + roan_requester_batch_count(&s->req, e, 15));
	for (u32 i = 0; i < n; i++, pkt.psn = psn_add(pkt.psn, 1)) {
		u32 index = roan_tx_desc_index(e, i);

		pkt.rkey = index + 1;
		if (e->single_pkt) {
			pkt.va = (u64)index << 32;
			pkt.imm = cpu_to_be32(index);
		}
		transmit(sim, s, &pkt, e->path, bytes_of(s, index, roan_tx_desc_offset(e, i)),
			 j->op == ROAN_OP_READ ? 0 : e->len);
	}
	e->npsn += n - 1;
	roan_requester_sent(&s->req, e, sim->now);
	SIM_CHECK(sim, psn_diff(s->req.end_psn, s->req.una_psn) >= 0, "side %u: una passed end", s->id);
	SIM_CHECK(sim, psn_diff(s->req.end_psn, s->req.una_psn) <= s->req.cfg.psn_window, "side %u: window exceeded",
		  s->id);
	SIM_CHECK(sim, s->req.rd_outstanding <= s->req.cfg.max_rd_atomic, "side %u: too many READs and atomics", s->id);
	if (psn_add(e->psn, e->npsn) == s->req.end_psn)
		s->tail_answered = e->ackreq || is_remote_op(j->op);
	return n;
}

/* Sends what the requester allows, or a part of it. */
static void send_some(struct sim *sim, struct side *s)
{
	u32 budget = 1 + sim_below(sim, 24);
	struct roan_tx_desc e;

	while (budget--) {
		enum roan_next next = roan_requester_next(&s->req, sim->now, &e);

		if (next == ROAN_NEXT_PACKET) {
			budget -= min(send_alike(sim, s, &e) - 1, budget);
		} else if (next == ROAN_NEXT_LOCAL) {
			check_fence(sim, s, e.index);
			s->jobs[e.index].executed++;
			roan_requester_local_done(&s->req, e.index);
		} else {
			SIM_CHECK(sim, !roan_requester_outstanding(&s->req) || s->req.rnr_until ||
				  s->req.next_psn != s->req.end_psn || s->tail_answered,
				  "side %u: silent, and nobody will answer up to %06x", s->id, s->req.end_psn);
			return;
		}
	}
	s->kick_at = sim->now + 1 + sim_below(sim, 3000);
}

static void drain(struct sim *sim, struct side *s)
{
	if (s->req.sqd) {
		if (roan_requester_drained(&s->req))
			roan_requester_drain(&s->req, false, sim->now);
	} else if (sim->chatty_drain && !sim_below(sim, 8)) {
		roan_requester_drain(&s->req, true, sim->now);
		s->kick_at = sim->now + 1;
	}
	if (s->req.sqd && roan_requester_drained(&s->req))
		s->kick_at = sim->now + 1;
}

/* ---- responding ---- */

static void answer(struct sim *sim, struct side *s)
{
	u32 budget = 1 + sim_below(sim, 24);
	u8 credits = s->credits ? roan_credit_code(s->recv_wqes) : ROAN_AETH_UNLIMITED;
	const struct side *peer = peer_of(sim, s);
	struct roan_response a;

	s->resp.cfg.sack = supports_sack(sim, s);
	while (roan_responder_next(&s->resp, credits, &a)) {
		struct roan_pkt pkt = {
			.opcode = a.opcode, .psn = a.psn, .syndrome = a.syndrome, .msn = a.msn, .orig = a.orig,
			.pkey = ROAN_DEFAULT_PKEY, .ext_version = supports_sack(sim, s),
		};

		if (a.opcode == ROAN_OPCODE_SACK)
			roan_responder_fill_sack(&s->resp, &pkt.sack);
		if (!budget--) {
			s->kick_at = sim->now + 1 + sim_below(sim, 3000);
			return;
		}
		transmit(sim, s, &pkt, sim_below(sim, ROAN_MAX_PATHS), a.len ? peer->jobs[a.va >> 32].region + (u32)a.va : NULL, a.len);
		roan_responder_sent(&s->resp, &a);
	}
}

/* The peer's job @j was executed here. */
static void executed(struct sim *sim, struct side *s, struct job *j)
{
	u32 number = j - peer_of(sim, s)->jobs + 1;

	SIM_CHECK(sim, number > s->last_executed, "side %u executed job %u after %u", s->id, number - 1, s->last_executed - 1);
	s->last_executed = number;
	j->executed++;
}

static struct job *recv_job(struct sim *sim, struct side *s)
{
	struct side *peer = peer_of(sim, s);

	for (u32 i = 0; i < peer->n_jobs; i++)
		if (takes_wqe(&peer->jobs[i]) && peer->jobs[i].ordinal == s->recvs)
			return &peer->jobs[i];
	SIM_CHECK(sim, false, "side %u: a message too many", s->id);
	return NULL;
}

static void place(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct roan_request *exec,
		  const u8 *payload)
{
	bool send = pkt->info->op == ROAN_OP_SEND;
	bool wqe = exec->ends && (send || pkt->info->ext == ROAN_EXT_IMM);
	struct job *j;
	u32 offset;

	if ((send && exec->starts) || (wqe && !send)) {
		if (!s->recv_wqes) {
			roan_responder_rnr(&s->resp, 1 + sim_below(sim, 4));
			return;
		}
		s->recv_wqes--;
	}
	j = send ? recv_job(sim, s) : &peer_of(sim, s)->jobs[exec->rkey - 1];
	offset = send ? exec->offset : (u32)exec->va;
	SIM_CHECK(sim, offset + pkt->payload_len <= j->len, "side %u: beyond the end of the message", s->id);
	if (pkt->payload_len)
		memcpy(j->region + offset, payload, pkt->payload_len);
	if (wqe) {
		SIM_CHECK(sim, j == recv_job(sim, s), "side %u: wrong message", s->id);
		SIM_CHECK(sim, pkt->info->ext != ROAN_EXT_IMM ||
			  be32_to_cpu(pkt->imm) == j - peer_of(sim, s)->jobs, "side %u: wrong immediate", s->id);
		s->recvs++;
	}
	if (exec->ends) {
		SIM_CHECK(sim, exec->msg_len == j->len, "side %u: message of %u bytes, not %u", s->id, exec->msg_len, j->len);
		executed(sim, s, j);
	}
	roan_responder_done(&s->resp, pkt);
}

static void execute(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct roan_request *exec,
		    const u8 *payload)
{
	struct side *peer = peer_of(sim, s);
	u64 orig;

	switch (pkt->info->op) {
	case ROAN_OP_SEND:
	case ROAN_OP_WRITE:
		place(sim, s, pkt, exec, payload);
		return;
	case ROAN_OP_READ:
		/* A long READ is split; its first piece counts. */
		if (!(u32)exec->va)
			executed(sim, s, &peer->jobs[exec->rkey - 1]);
		roan_responder_read(&s->resp, pkt);
		return;
	case ROAN_OP_FETCH_ADD:
		executed(sim, s, &peer->jobs[exec->rkey - 1]);
		orig = s->counter;
		s->counter += pkt->swap_add;
		roan_responder_atomic(&s->resp, pkt, orig);
		return;
	case ROAN_OP_CMP_SWAP:
		executed(sim, s, &peer->jobs[exec->rkey - 1]);
		orig = s->cell;
		if (s->cell == pkt->compare)
			s->cell = pkt->swap_add;
		roan_responder_atomic(&s->resp, pkt, orig);
		return;
	case ROAN_OP_ATOMIC_WRITE:
		memcpy(peer->jobs[exec->rkey - 1].region, payload, 8);
		fallthrough;
	default:
		executed(sim, s, &peer->jobs[exec->rkey - 1]);
		roan_responder_done_op(&s->resp, pkt);
		return;
	}
}

/* ---- receiving ---- */

static void take_response(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const u8 *payload)
{
	u32 index, offset;
	struct job *j;

	if (pkt->info->op == ROAN_OP_ACK) {
		SIM_CHECK(sim, roan_requester_acked(&s->req, pkt, sim->now) != ROAN_EV_FAILED,
			  "side %u failed on an ACK, syndrome %02x psn %06x", s->id, pkt->syndrome, pkt->psn);
		return;
	}
	if (pkt->info->op == ROAN_OP_SACK) {
		SIM_CHECK(sim, roan_requester_sacked(&s->req, pkt, sim->now) != ROAN_EV_FAILED, "side %u failed on a SACK", s->id);
		return;
	}
	switch (roan_requester_response(&s->req, pkt, sim->now, &index, &offset)) {
	case ROAN_RESP_PLACE:
		j = &s->jobs[index];
		if (j->op == ROAN_OP_READ && pkt->payload_len) {
			SIM_CHECK(sim, offset + pkt->payload_len <= j->len, "side %u: READ too long", s->id);
			memcpy(j->sink + offset, payload, pkt->payload_len);
		} else {
			j->result = pkt->orig;
		}
		roan_requester_placed(&s->req, pkt, sim->now);
		return;
	case ROAN_RESP_FAILED:
		SIM_CHECK(sim, false, "side %u failed on a response, psn %06x", s->id, pkt->psn);
		return;
	default:
		return;
	}
}

static u32 psn_of(const struct flight *f)
{
	struct roan_pkt pkt;

	roan_wire_parse(f->head, f->len, &pkt);
	return pkt.psn;
}

static void keep(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct flight *f)
{
	if (s->keeps_changes_at && sim->now > s->keeps_changes_at) {
		s->keeps = s->keeps ? 0 : SIM_KEPT;
		s->keeps_changes_at = 0;
	}
	for (u32 i = 0; i < s->n_kept; i++)
		if (psn_of(&s->kept[i]) == pkt->psn)
			return;
	if (s->n_kept >= s->keeps || !roan_responder_may_keep(&s->resp, pkt))
		return;
	s->kept[s->n_kept++] = *f;
	roan_responder_kept(&s->resp, pkt);
}

/* Executes kept packets that are next. Sometimes it stops, and goes on later. */
static void run_kept(struct sim *sim, struct side *s)
{
	struct flight f;
	bool ran = false;
	u32 i = 0;

	while (i < s->n_kept) {
		s32 ahead = psn_diff(psn_of(&s->kept[i]), s->resp.epsn);

		if (ahead > 0) {
			i++;
			continue;
		}
		if (!ahead && !sim_below(sim, 20)) {
			s->kick_at = sim->now + 1 + sim_below(sim, 3000);
			return;
		}
		f = s->kept[i];
		s->kept[i] = s->kept[--s->n_kept];
		sim_received(sim, s, &f);
		ran = true;
		i = 0;
	}
	if (ran)
		roan_responder_next_gap(&s->resp);
}

void sim_received(struct sim *sim, struct side *s, const struct flight *f)
{
	struct roan_pkt pkt;
	struct roan_request exec;
	u32 epsn = s->resp.epsn;
	enum roan_verdict verdict;

	SIM_CHECK(sim, roan_wire_parse(f->head, f->len, &pkt) == ROAN_PARSE_OK, "side %u cannot parse", s->id);
	if (roan_op_is_response(pkt.info->op)) {
		take_response(sim, s, &pkt, f->payload);
		return;
	}
	verdict = roan_responder_admit(&s->resp, &pkt, &exec);
	SIM_CHECK(sim, verdict != ROAN_V_INVALID, "side %u refused psn %06x", s->id, pkt.psn);
	SIM_CHECK(sim, s->resp.epsn == epsn, "side %u: admission moved the expected PSN", s->id);
	if (verdict == ROAN_V_EXECUTE)
		execute(sim, s, &pkt, &exec, f->payload);
	else if (verdict == ROAN_V_GAP || verdict == ROAN_V_EARLY)
		keep(sim, s, &pkt, f);
}

static bool all_received(struct sim *sim, struct side *s)
{
	return peer_of(sim, s)->retired == peer_of(sim, s)->n_jobs;
}

void sim_side_run(struct sim *sim, struct side *s)
{
	if (s->kick_at && s->kick_at <= sim->now)
		s->kick_at = 0;
	if (s->refill_at && s->refill_at <= sim->now) {
		s->recv_wqes += sim_below(sim, 3);
		s->refill_at = all_received(sim, s) ? 0 : sim->now + 20000 + sim_below(sim, 100000);
	}
	roan_requester_timer(&s->req, sim->now);
	run_kept(sim, s);
	answer(sim, s);
	retire(sim, s);
	post(sim, s);
	drain(sim, s);
	send_some(sim, s);
	retire(sim, s);
	if (s->posted < s->n_jobs && s->posted - s->retired < s->depth && !s->kick_at)
		s->kick_at = sim->now + 1;
}

void sim_side_finish(struct sim *sim, struct side *s)
{
	SIM_CHECK(sim, !roan_requester_outstanding(&s->req), "side %u: all done, yet something is outstanding", s->id);
	for (u32 i = 0; i < s->n_jobs; i++) {
		struct job *j = &s->jobs[i];

		SIM_CHECK(sim, j->executed == 1, "side %u: job %u executed %u times", s->id, i, j->executed);
		if (j->op == ROAN_OP_FETCH_ADD || j->op == ROAN_OP_CMP_SWAP)
			SIM_CHECK(sim, j->result == j->ordinal, "side %u: atomic %u returned %llu", s->id, i,
				  (unsigned long long)j->result);
		else if (j->op != ROAN_OP_FLUSH && j->op != ROAN_OP_LOCAL)
			SIM_CHECK(sim, !memcmp(j->sink ? j->sink : j->region, bytes_of(s, i, 0), j->len),
				  "side %u: job %u: wrong bytes", s->id, i);
		free(j->region);
		free(j->sink);
	}
}
