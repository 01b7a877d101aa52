// SPDX-License-Identifier: GPL-2.0
/* Stands in for the driver half at the responder: executes requests, takes receives, keeps packets, responds. */
#include "sim.h"

static const struct model_recv *current_recv(struct sim *sim, const struct side *s)
{
	return &sim_peer(sim, s)->model.recvs[s->recvs_taken];
}

static void complete_recv(struct side *s, const struct model_cqe *cqe)
{
	s->recvs_taken++;
	s->cqes[s->n_cqes++] = *cqe;
}

/* Refuses the request; @recv_status is not SUCCESS if it fails its receive, too. The model must do the same. */
static void refuse(struct sim *sim, struct side *s, enum roan_nak nak, enum roan_status recv_status)
{
	static const u8 statuses[] = {
		[ROAN_NAK_INVALID_REQUEST] = ROAN_ST_REM_INV_REQ_ERR, [ROAN_NAK_REMOTE_ACCESS] = ROAN_ST_REM_ACCESS_ERR,
		[ROAN_NAK_REMOTE_OPERATION] = ROAN_ST_REM_OP_ERR,
	};
	struct model *m = &sim_peer(sim, s)->model;

	SIM_CHECK(sim, model_status(m) == statuses[nak], "side %u: job %u refused by NAK %u, but its status is to be %u", s->id,
		  m->next, nak, model_status(m));
	if (recv_status != ROAN_ST_SUCCESS)
		complete_recv(s, &(struct model_cqe) { .status = recv_status });
	model_refuse(m);
	if (!s->resp.failed)
		roan_responder_nak(&s->resp, nak);
}

static bool accessible(const struct side *s, const struct model *m, u32 rkey, u64 va, u32 len)
{
	return !len || (rkey == MODEL_RKEY && va >= MODEL_VA && va + len <= MODEL_VA + m->memory_len);
}

static void finish_message(struct sim *sim, struct side *s)
{
	model_execute(&sim_peer(sim, s)->model);
	s->packets = 0;
}

/* False: there is none; answered. */
static bool have_recv(struct sim *sim, struct side *s)
{
	if (s->recvs_taken < s->recvs_posted)
		return true;
	roan_responder_rnr(&s->resp, 1 + sim_below(sim, 4));
	return false;
}

static void execute_send(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct roan_request *exec,
			 const u8 *payload)
{
	const struct model_recv *recv = current_recv(sim, s);
	const struct model_request *r = &sim_peer(sim, s)->requests[sim_peer(sim, s)->model.next];
	bool inv = pkt->info->ext == ROAN_EXT_INV;

	if (exec->starts && !have_recv(sim, s))
		return;
	if (exec->msg_len > recv->len)
		return refuse(sim, s, ROAN_NAK_INVALID_REQUEST, ROAN_ST_LOC_LEN_ERR);
	if (pkt->payload_len && recv->unregistered)
		return refuse(sim, s, ROAN_NAK_REMOTE_OPERATION, ROAN_ST_LOC_PROT_ERR);
	if (pkt->payload_len)
		memcpy(s->recv_bufs[s->recvs_taken] + exec->offset, payload, pkt->payload_len);
	if (inv && pkt->inv_rkey != MODEL_INV_KEY)
		return refuse(sim, s, ROAN_NAK_REMOTE_ACCESS, ROAN_ST_LOC_ACCESS_ERR);
	s->packets++;
	roan_responder_done(&s->resp, pkt);
	if (!exec->ends)
		return;
	complete_recv(s, &(struct model_cqe) {
		.op = r->op, .ext = pkt->info->ext, .solicited = pkt->solicited, .byte_len = exec->msg_len,
		.imm = inv ? pkt->inv_rkey : be32_to_cpu(pkt->imm),
	});
	finish_message(sim, s);
}

static void execute_write(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct roan_request *exec,
			  const u8 *payload)
{
	const struct model *m = &sim_peer(sim, s)->model;
	bool wants_recv = exec->ends && pkt->info->ext == ROAN_EXT_IMM;

	if (exec->starts && !accessible(s, m, exec->rkey, exec->va, exec->total)) {
		if (wants_recv && s->recvs_posted == s->recvs_taken && s->recvs_posted < m->n_recvs)
			s->recvs_posted++;
		return refuse(sim, s, ROAN_NAK_REMOTE_ACCESS, wants_recv && s->recvs_taken < s->recvs_posted ?
			      ROAN_ST_LOC_ACCESS_ERR : ROAN_ST_SUCCESS);
	}
	if (wants_recv && !have_recv(sim, s))
		return;
	if (pkt->payload_len)
		memcpy(s->memory + (exec->va - MODEL_VA), payload, pkt->payload_len);
	s->packets++;
	roan_responder_done(&s->resp, pkt);
	if (wants_recv)
		complete_recv(s, &(struct model_cqe) {
			.op = ROAN_OP_WRITE, .ext = ROAN_EXT_IMM, .solicited = pkt->solicited, .byte_len = exec->msg_len,
			.imm = be32_to_cpu(pkt->imm),
		});
	if (exec->ends)
		finish_message(sim, s);
}

static void execute_read(struct sim *sim, struct side *s, const struct roan_pkt *pkt)
{
	struct model *m = &sim_peer(sim, s)->model;

	if (!accessible(s, m, pkt->rkey, pkt->va, pkt->dma_len))
		return refuse(sim, s, ROAN_NAK_REMOTE_ACCESS, ROAN_ST_SUCCESS);
	s->packets += max(1u, DIV_ROUND_UP(pkt->dma_len, m->mtu));
	roan_responder_done_op(&s->resp, pkt, 0);
	if (s->packets == model_packets(m, &m->requests[m->next]))
		finish_message(sim, s);
}

static void execute_atomic(struct sim *sim, struct side *s, const struct roan_pkt *pkt)
{
	struct model *m = &sim_peer(sim, s)->model;
	u64 orig, value;
	u8 *at;

	if (!accessible(s, m, pkt->rkey, pkt->va, 8))
		return refuse(sim, s, ROAN_NAK_REMOTE_ACCESS, ROAN_ST_SUCCESS);
	at = s->memory + (pkt->va - MODEL_VA);
	memcpy(&orig, at, 8);
	value = pkt->info->op == ROAN_OP_FETCH_ADD ? orig + pkt->swap_add : orig == pkt->compare ? pkt->swap_add : orig;
	memcpy(at, &value, 8);
	finish_message(sim, s);
	roan_responder_done_op(&s->resp, pkt, orig);
}

static void execute_atomic_write(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const u8 *payload)
{
	if (!accessible(s, &sim_peer(sim, s)->model, pkt->rkey, pkt->va, 8))
		return refuse(sim, s, ROAN_NAK_REMOTE_ACCESS, ROAN_ST_SUCCESS);
	memcpy(s->memory + (pkt->va - MODEL_VA), payload, 8);
	finish_message(sim, s);
	roan_responder_done_op(&s->resp, pkt, 0);
}

static void execute(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct roan_request *exec,
		    const u8 *payload)
{
	switch (pkt->info->op) {
	case ROAN_OP_SEND:
		return execute_send(sim, s, pkt, exec, payload);
	case ROAN_OP_WRITE:
		return execute_write(sim, s, pkt, exec, payload);
	case ROAN_OP_READ:
		return execute_read(sim, s, pkt);
	case ROAN_OP_FETCH_ADD:
	case ROAN_OP_CMP_SWAP:
		return execute_atomic(sim, s, pkt);
	case ROAN_OP_ATOMIC_WRITE:
		return execute_atomic_write(sim, s, pkt, payload);
	default:
		finish_message(sim, s);
		roan_responder_done_op(&s->resp, pkt, 0);
		return;
	}
}

/* ---- packets kept after a gap ---- */

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

/* When the first kept packet came, in PSN order. */
static u64 kept_since(const struct side *s)
{
	const struct flight *first = NULL;

	for (u32 i = 0; i < s->n_kept; i++)
		if (!first || psn_diff(psn_of(&s->kept[i]), psn_of(first)) < 0)
			first = &s->kept[i];
	return first ? first->at : 0;
}

/* Executes kept packets that are next. Sometimes it stops, and goes on later. */
static void run_kept(struct sim *sim, struct side *s)
{
	struct flight f;
	bool ran = false;
	u32 i = 0;

	s->resp.epsn_waits = false;
	while (i < s->n_kept) {
		s32 ahead = psn_diff(psn_of(&s->kept[i]), s->resp.epsn);

		if (ahead > 0) {
			i++;
			continue;
		}
		if (!ahead && sim_one_in(sim, 20)) {
			s->resp.epsn_waits = true;
			s->kick_at = sim->now + 1 + sim_below(sim, 3000);
			break;
		}
		f = s->kept[i];
		s->kept[i] = s->kept[--s->n_kept];
		sim_received(sim, s, &f);
		ran = true;
		i = 0;
	}
	roan_responder_next_gap(&s->resp, ran || s->resp.epsn_waits, kept_since(s), sim->now);
}

void sim_set_resources(struct side *s, u32 n)
{
	free(roan_responder_set_resources(&s->resp, calloc(n, sizeof(struct roan_resp_res)), n));
	s->n_resp_res = n;
}

void sim_take_request(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct flight *f)
{
	u32 epsn = s->resp.epsn;
	struct roan_request exec;
	enum roan_verdict verdict;

	if (roan_op_needs_response(pkt->info->op) && !s->resp.resp_res && s->n_resp_res)
		sim_set_resources(s, s->n_resp_res);
	verdict = roan_responder_admit(&s->resp, pkt, &exec);
	SIM_CHECK(sim, s->resp.epsn == epsn, "side %u: admission moved the expected PSN", s->id);
	if (verdict == ROAN_V_INVALID && s->violated)
		return;
	if (verdict == ROAN_V_EXECUTE) {
		sim_check_request(sim, s, pkt, &exec, f->payload);
		execute(sim, s, pkt, &exec, f->payload);
	} else if (verdict == ROAN_V_INVALID) {
		sim_check_request(sim, s, pkt, NULL, f->payload);
		refuse(sim, s, ROAN_NAK_INVALID_REQUEST, ROAN_ST_SUCCESS);
	} else if (verdict == ROAN_V_GAP || verdict == ROAN_V_EARLY) {
		keep(sim, s, pkt, f);
	} else if (verdict == ROAN_V_DUPLICATE) {
		roan_responder_duplicate(&s->resp, pkt, sim->now);
	}
	if (verdict == ROAN_V_GAP)
		roan_responder_gap(&s->resp, sim->now);
}

/* ---- responses ---- */

static void refill(struct sim *sim, struct side *s)
{
	const struct side *peer = sim_peer(sim, s);

	if (!s->refill_at || s->refill_at > sim->now)
		return;
	s->recvs_posted = min(s->recvs_posted + sim_below(sim, 3), peer->model.n_recvs);
	s->refill_at = peer->retired == peer->n_jobs ? 0 : sim->now + 20000 + sim_below(sim, 100000);
}

/* An RNR NAK may be sent meanwhile, for which the requester needs retries. */
static bool source_faults(struct sim *sim, struct side *s, const struct roan_response *a)
{
	return sim->faults && a->len && sim_peer(sim, s)->req.cfg.rnr_retry == 7 && sim_one_in(sim, 20);
}

/* Whether the READ that @a belongs to, which starts at or before it, is of memory that is gone. */
static bool source_is_gone(struct sim *sim, struct side *s, const struct roan_response *a)
{
	const struct model *m = &sim_peer(sim, s)->model;
	u32 psn = sim_peer(sim, s)->req.cfg.sq_psn;

	for (u32 i = 0; a->len && i < m->n_requests; i++) {
		u32 n = model_packets(m, &m->requests[i]);

		if (psn_within(a->psn, psn, n))
			return m->requests[i].gone;
		psn = psn_add(psn, n);
	}
	return false;
}

/* A standard requester takes an ACK with the PSN of a READ or atomic for its response, which may be lost. */
static void check_ack(struct sim *sim, struct side *s, const struct roan_response *a)
{
	const struct model *m = &sim_peer(sim, s)->model;
	u32 psn = sim_peer(sim, s)->req.cfg.sq_psn;

	if (s->resp.cfg.sack && s->resp.peer_supports_sack)
		return;
	for (u32 i = 0; i < m->n_requests; i++) {
		u32 n = model_packets(m, &m->requests[i]);

		SIM_CHECK(sim, !psn_within(a->psn, psn, n) || !roan_op_needs_response(m->requests[i].op),
			  "side %u: an ACK names job %u, which is a READ or atomic", s->id, i);
		psn = psn_add(psn, n);
	}
}

static void respond_with(struct sim *sim, struct side *s, const struct roan_response *a)
{
	struct roan_pkt pkt = {
		.opcode = a->opcode, .psn = a->psn, .syndrome = a->syndrome, .msn = a->msn, .orig = a->orig,
		.pkey = ROAN_DEFAULT_PKEY, .ext_version = sim_supports_sack(sim, s) ? ROAN_EXT_VERSION : 0,
	};

	if (a->opcode == ROAN_OPCODE_SACK)
		roan_responder_fill_sack(&s->resp, &pkt.sack);
	sim_transmit(sim, s, sim_below(sim, ROAN_MAX_PATHS), &pkt, a->len ? s->memory + (a->va - MODEL_VA) : NULL, a->len);
}

static void respond(struct sim *sim, struct side *s)
{
	u32 budget = 1 + sim_below(sim, 24);
	u8 credits = s->credits ? roan_credit_code(s->recvs_posted - s->recvs_taken) : ROAN_AETH_UNLIMITED;
	struct roan_response a;

	s->resp.cfg.sack = sim_supports_sack(sim, s);
	if (s->source_fault_until && (s->source_fault_until <= sim->now || roan_responder_unblocked(&s->resp)))
		s->source_fault_until = 0;
	while (!s->source_fault_until && roan_responder_next(&s->resp, credits, &a)) {
		SIM_CHECK(sim, a.resp_res != ROAN_NO_RESP_RES || !s->resp.n_pending, "side %u: an ACK overtakes others", s->id);
		if (!budget--) {
			s->kick_at = sim->now + 1 + sim_below(sim, 3000);
			return;
		}
		if (source_faults(sim, s, &a)) {
			roan_responder_block(&s->resp, &a, sim->now);
			if (!roan_responder_unblocked(&s->resp))
				s->source_fault_until = sim->now + 1 + sim_below(sim, sim_one_in(sim, 4) ? 100000000 : 100000);
		} else if (source_is_gone(sim, s, &a)) {
			roan_responder_fail(&s->resp, &a, ROAN_NAK_REMOTE_ACCESS);
		} else {
			if (a.resp_res == ROAN_NO_RESP_RES && (a.syndrome & ROAN_AETH_KIND_MASK) == ROAN_AETH_ACK)
				check_ack(sim, s, &a);
			respond_with(sim, s, &a);
			roan_responder_sent(&s->resp, &a);
		}
	}
	if (s->source_fault_until && roan_responder_defer_rnr(&s->resp, sim->now, &a))
		respond_with(sim, s, &a);
}

void sim_respond(struct sim *sim, struct side *s)
{
	refill(sim, s);
	run_kept(sim, s);
	s->nak_at = roan_responder_nak_waits(&s->resp) ? roan_responder_timer(&s->resp, sim->now) : 0;
	SIM_CHECK(sim, !s->nak_at || (s->n_kept && s->nak_at <= sim->now + NSEC_PER_MSEC), "side %u: a NAK waits for %llu", s->id,
		  (unsigned long long)s->nak_at);
	respond(sim, s);
}
