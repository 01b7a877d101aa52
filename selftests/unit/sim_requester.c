// SPDX-License-Identifier: GPL-2.0
/* Stands in for the driver half at the requester: posts work requests, sends packets, places responses. */
#include "sim.h"

/* Some sides say so at first, and later do not. */
bool sim_supports_sack(const struct sim *sim, const struct side *s)
{
	return !s->silent_from || sim->now < s->silent_from;
}

/* The last work request is like @wqe and not sent yet. */
static bool same_as_last(const struct side *s, const struct roan_tx_wqe *wqe)
{
	const struct roan_tx_wqe *last = &s->work[(s->posted - 1) & (SIM_QUEUE - 1)];

	return s->posted != s->retired && !last->started && !last->completed && last->op == wqe->op && last->ext == wqe->ext &&
	       last->fence == wqe->fence && last->barrier == wqe->barrier && last->solicited == wqe->solicited &&
	       last->len == wqe->len;
}

static void post(struct sim *sim, struct side *s)
{
	while (s->posted < s->n_jobs && s->posted - s->retired < s->depth) {
		struct model_request *r = &s->requests[s->posted];
		struct roan_tx_wqe *w, wqe = {
			.op = r->op, .ext = r->ext, .fence = r->fence, .solicited = r->solicited, .len = r->len,
			.barrier = s->jobs[s->posted].barrier,
		};
		u32 index;

		if (same_as_last(s, &wqe)) {
			roan_requester_queue_same(&s->req);
		} else {
			w = roan_requester_slot(&s->req, &index);
			SIM_CHECK(sim, w && index == s->posted, "no slot for job %u", s->posted);
			*w = wqe;
			roan_requester_queued(&s->req);
		}
		r->read_packets = roan_requester_wqe(&s->req, s->posted)->piece ?: s->req.cfg.psn_window;
		s->posted++;
		if (sim_one_in(sim, 4))
			break;
	}
}

static void retire(struct sim *sim, struct side *s)
{
	enum roan_status status;
	u32 index;

	while (roan_requester_retired(&s->req, &index, &status)) {
		SIM_CHECK(sim, index == s->retired, "side %u: job %u retired, not %u", s->id, index, s->retired);
		s->jobs[index].status = status;
		sim_totals.jobs[status]++;
		sim_check_retired(sim, s, index);
		s->retired++;
	}
}

static bool is_remote_op(u8 op)
{
	return op != ROAN_OP_SEND && op != ROAN_OP_WRITE && op != ROAN_OP_LOCAL;
}

static void check_fence(struct sim *sim, const struct side *s, u32 index)
{
	for (u32 i = s->retired; i < index; i++) {
		bool done = s->work[i & (SIM_QUEUE - 1)].completed;

		SIM_CHECK(sim, done || !s->requests[index].fence || !is_remote_op(s->requests[i].op),
			  "side %u: fenced job %u started before job %u finished", s->id, index, i);
		SIM_CHECK(sim, done || !s->jobs[index].barrier, "side %u: job %u started before job %u finished", s->id, index, i);
	}
}

static void check_limits(struct sim *sim, const struct side *s)
{
	SIM_CHECK(sim, psn_diff(s->req.end_psn, s->req.una_psn) >= 0, "side %u: una passed end", s->id);
	SIM_CHECK(sim, psn_diff(s->req.end_psn, s->req.una_psn) <= s->req.cfg.psn_window, "side %u: window exceeded",
		  s->id);
	SIM_CHECK(sim, s->req.rd_outstanding <= s->req.cfg.max_rd_atomic, "side %u: too many READs and atomics", s->id);
}

/* Sends packet @i of @e, unless its payload cannot be read. */
static bool send_one(struct sim *sim, struct side *s, const struct roan_tx_desc *e, u32 i)
{
	u32 index = roan_tx_desc_index(e, i), offset = roan_tx_desc_offset(e, i);
	const struct model_request *r = &s->requests[index];
	bool read = r->op == ROAN_OP_READ;
	struct roan_pkt pkt = {
		.opcode = e->opcode, .psn = psn_add(e->psn, i), .ackreq = e->ackreq, .copy = e->copy,
		.solicited = e->solicited, .pkey = ROAN_DEFAULT_PKEY,
		.ext_version = s->req.cfg.sack && sim_supports_sack(sim, s) ? ROAN_EXT_VERSION : 0,
		.rkey = r->rkey, .va = read ? r->va + offset : r->va, .dma_len = read ? e->len : r->len,
		.imm = cpu_to_be32(r->imm), .inv_rkey = r->imm, .swap_add = r->swap_add, .compare = r->compare,
	};

	if (!read && e->len && offset + e->len > r->readable)
		return false;
	if (!s->queue_full)
		sim_transmit(sim, s, e->path, &pkt, r->data + offset, read ? 0 : e->len);
	return true;
}

/* True if the payload of packet @i of @e is not in memory, for a while. */
static bool payload_is_absent(struct sim *sim, struct side *s, const struct roan_tx_desc *e, u32 i)
{
	if (!sim->faults || s->requests[roan_tx_desc_index(e, i)].op == ROAN_OP_READ || !e->len || !sim_one_in(sim, 40))
		return false;
	s->payload_fault_until = sim->now + 1 + sim_below(sim, sim_one_in(sim, 4) ? 100000000 : 100000);
	roan_requester_hold(&s->req, psn_add(e->psn, i));
	return true;
}

/* Sends the packet and some of its batch. Returns the number of packets. */
static u32 send_batch(struct sim *sim, struct side *s, struct roan_tx_desc *e)
{
	u32 most = 1 + sim_below(sim, 1 + roan_requester_batch_count(&s->req, e, 15)), n = 0;
	bool absent = false;

	if (!s->work[e->index & (SIM_QUEUE - 1)].started)
		check_fence(sim, s, e->index);
	while (n < most && !(absent = payload_is_absent(sim, s, e, n)) && send_one(sim, s, e, n))
		n++;
	if (n) {
		e->npsn += n - 1;
		roan_requester_sent(&s->req, e, sim->now);
		check_limits(sim, s);
		if (psn_add(e->psn, e->npsn) == s->req.end_psn)
			s->tail_answered = e->ackreq || is_remote_op(s->requests[e->index].op);
	}
	if (n < most && !absent)
		roan_requester_fail(&s->req, roan_tx_desc_index(e, n), ROAN_ST_LOC_PROT_ERR);
	return max(n, 1u);
}

static void execute_local(struct sim *sim, struct side *s, u32 index)
{
	check_fence(sim, s, index);
	s->jobs[index].executed++;
	if (s->requests[index].local_fails)
		roan_requester_fail(&s->req, index, ROAN_ST_MW_BIND_ERR);
	else
		roan_requester_local_done(&s->req, index);
}

/* Sends what the requester allows, or a part of it. False: nothing is left that may be sent now. */
static bool send_round(struct sim *sim, struct side *s, bool *repairs)
{
	u32 budget = 1 + sim_below(sim, 24), room = sim->full_queues && sim_one_in(sim, 4) ? sim_below(sim, 12) : UINT32_MAX;
	struct roan_tx_desc e;

	while (budget--) {
		enum roan_next next = roan_requester_next(&s->req, sim->now, &e);

		if (next == ROAN_NEXT_PACKET) {
			if (!room-- && !s->queue_full) {
				s->queue_full = true;
				s->dropped_psn = e.psn;
			}
			*repairs |= e.repair;
			budget -= min(send_batch(sim, s, &e) - 1, budget);
		} else if (next == ROAN_NEXT_LOCAL) {
			execute_local(sim, s, e.index);
		} else {
			bool held = s->req.held && psn_diff(s->req.una_psn, s->req.held_psn) <= 0;

			SIM_CHECK(sim, !roan_requester_outstanding(&s->req) || s->req.rnr_until || s->req.failed || held ||
				  s->req.next_psn != s->req.end_psn || s->tail_answered,
				  "side %u: silent, and nobody will answer up to %06x", s->id, s->req.end_psn);
			return false;
		}
	}
	return true;
}

static void send_some(struct sim *sim, struct side *s)
{
	bool repairs = false, more;

	more = send_round(sim, s, &repairs);
	if (s->queue_full) {
		s->queue_full = false;
		more = true;
		if (!repairs)
			roan_requester_unsent(&s->req, s->dropped_psn);
	}
	if (more)
		s->kick_at = sim->now + 1 + sim_below(sim, 3000);
}

/* In SQD the limit of READs and atomics may be raised, at both ends. */
static void raise_limit(struct sim *sim, struct side *s)
{
	struct side *peer = sim_peer(sim, s);
	struct roan_requester_cfg cfg = s->req.cfg;

	if (!peer->resp.resp_res || !cfg.max_rd_atomic || sim_below(sim, 4))
		return;
	sim_set_resources(peer, peer->n_resp_res + 1 + sim_below(sim, 4));
	cfg.max_rd_atomic = peer->n_resp_res;
	roan_requester_update_cfg(&s->req, &cfg);
}

static void drain(struct sim *sim, struct side *s)
{
	if (s->req.sqd) {
		if (!roan_requester_drained(&s->req))
			return;
		raise_limit(sim, s);
		roan_requester_drain(&s->req, false);
	} else if (sim->chatty_drain && sim_one_in(sim, 8)) {
		roan_requester_drain(&s->req, true);
		s->kick_at = sim->now + 1;
	}
	if (s->req.sqd && roan_requester_drained(&s->req))
		s->kick_at = sim->now + 1;
}

void sim_request(struct sim *sim, struct side *s)
{
	if (s->sink_fault_until && s->sink_fault_until <= sim->now) {
		s->sink_fault_until = 0;
		roan_requester_retransmit(&s->req, sim->now);
	}
	if (s->payload_fault_until && s->payload_fault_until <= sim->now) {
		s->payload_fault_until = 0;
		roan_requester_release(&s->req, sim->now);
	}
	if (roan_requester_repair_is_held(&s->req))
		roan_requester_restart_timer(&s->req, sim->now);
	roan_requester_timer(&s->req, sim->now);
	retire(sim, s);
	post(sim, s);
	drain(sim, s);
	send_some(sim, s);
	retire(sim, s);
	if (s->posted < s->n_jobs && s->posted - s->retired < s->depth && !s->kick_at)
		s->kick_at = sim->now + 1;
}

static void place(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const u8 *payload, u32 index, u32 offset)
{
	const struct model_request *r = &s->requests[index];
	struct job *j = &s->jobs[index];

	if (sim->faults && r->len && sim_one_in(sim, 20)) {
		s->sink_fault_until = sim->now + 1 + sim_below(sim, 1000000);
		return;
	}
	if (r->no_sink && (pkt->payload_len || pkt->info->op == ROAN_OP_ATOMIC_ACK)) {
		roan_requester_fail(&s->req, index, ROAN_ST_LOC_PROT_ERR);
		return;
	}
	if (r->op == ROAN_OP_READ && pkt->payload_len) {
		SIM_CHECK(sim, offset + pkt->payload_len <= r->len, "side %u: READ too long", s->id);
		memcpy(j->sink + offset, payload, pkt->payload_len);
	} else {
		j->result = pkt->orig;
	}
	roan_requester_placed(&s->req, pkt, sim->now);
}

/* Runs are short: the next round trip is as if a trial, or an epoch of one, had taken its time. Most show a gain. */
static void hurry(struct sim *sim, struct side *s)
{
	struct roan_auto_paths *a = s->req.auto_paths;

	if (!a || !sim_one_in(sim, 4))
		return;
	if (a->wants_memory)
		roan_requester_give_paths(&s->req, sim_below(sim, 4) ? &s->paths : NULL);
	a->next_at = sim->now;
	if (a->epoch) {
		a->rate = (a->epoch % 2 && a->epoch > 1) == !sim_one_in(sim, 30) ? U32_MAX : 0;
		return;
	}
	a->since = sim->now;
	a->psn = psn_add(s->req.una_psn, -(1 << 20));
	a->index = s->req.una;
	a->idle_ns = s->req.idle_ns;
}

void sim_take_response(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const u8 *payload)
{
	u32 index, offset;

	if (s->sink_fault_until)
		return roan_requester_dropped(&s->req, pkt);
	hurry(sim, s);
	if (pkt->info->op == ROAN_OP_ACK) {
		roan_requester_acked(&s->req, pkt, sim->now);
		return;
	}
	if (pkt->info->op == ROAN_OP_SACK) {
		if (!s->req.paths && s->req.cfg.psn_window <= ROAN_PATH_PSNS && sim_one_in(sim, 2)) {
			if (s->req.auto_paths)
				roan_requester_give_paths(&s->req, &s->paths);
			roan_requester_set_paths(&s->req, &s->paths);
		}
		roan_requester_sacked(&s->req, pkt, sim->now);
		return;
	}
	if (s->req.reads.any && !s->req.paths && s->req.cfg.psn_window <= ROAN_PATH_PSNS && sim_one_in(sim, 4))
		roan_requester_set_paths(&s->req, &s->paths);
	if (roan_requester_response(&s->req, pkt, sim->now, &index, &offset) == ROAN_RESP_PLACE)
		place(sim, s, pkt, payload, index, offset);
}
