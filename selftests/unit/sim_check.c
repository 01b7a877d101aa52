// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the transport with the model: each request when it is executed, each completion when it comes, and at the end
 * memory, receives, PSN and MSN.
 */
#include "sim.h"

/* LOCAL work requests do not reach the responder. */
static void execute_local_ones(struct model *m)
{
	while (m->next < m->n_requests && m->requests[m->next].op == ROAN_OP_LOCAL && model_executes(m))
		model_execute(m);
}

static void check_address(struct sim *sim, const struct side *s, const struct model_request *r, const struct roan_pkt *pkt,
			  u64 va, u32 rkey)
{
	u64 expected = r->va + (u64)s->packets * sim_peer(sim, s)->model.mtu;

	SIM_CHECK(sim, va == expected && rkey == r->rkey, "side %u psn %06x: address %llx, not %llx", s->id, pkt->psn,
		  (unsigned long long)va, (unsigned long long)expected);
}

static void check_payload(struct sim *sim, const struct side *s, const struct model_request *r, const struct roan_pkt *pkt,
			  const struct roan_request *exec, const u8 *payload)
{
	u32 mtu = sim_peer(sim, s)->model.mtu, offset = s->packets * mtu;
	bool solicited = r->solicited && (r->op == ROAN_OP_SEND || r->ext == ROAN_EXT_IMM);	/* what takes a receive */

	SIM_CHECK(sim, pkt->payload_len == min(r->len - offset, mtu), "side %u psn %06x: %u bytes at %u of %u", s->id, pkt->psn,
		  pkt->payload_len, offset, r->len);
	SIM_CHECK(sim, !pkt->payload_len || !memcmp(payload, r->data + offset, pkt->payload_len),
		  "side %u psn %06x: other bytes", s->id, pkt->psn);
	SIM_CHECK(sim, exec->starts == !offset && exec->ends == (offset + pkt->payload_len == r->len) &&
		  exec->msg_len == offset + pkt->payload_len, "side %u psn %06x: wrong position", s->id, pkt->psn);
	SIM_CHECK(sim, !exec->ends || (pkt->info->ext == r->ext && pkt->solicited == solicited),
		  "side %u psn %06x: other kind of last packet", s->id, pkt->psn);
	if (exec->ends && r->ext != ROAN_EXT_NONE)
		SIM_CHECK(sim, (r->ext == ROAN_EXT_IMM ? be32_to_cpu(pkt->imm) : pkt->inv_rkey) == r->imm,
			  "side %u psn %06x: other immediate data or key", s->id, pkt->psn);
}

/* Before packet @pkt of a request is executed at @s; @exec is NULL if it is refused. */
void sim_check_request(struct sim *sim, const struct side *s, const struct roan_pkt *pkt, const struct roan_request *exec,
		       const u8 *payload)
{
	struct model *m = &sim_peer(sim, s)->model;
	const struct model_request *r;
	u32 left;

	execute_local_ones(m);
	SIM_CHECK(sim, m->next < m->n_requests, "side %u: a request too many, psn %06x", s->id, pkt->psn);
	r = &m->requests[m->next];
	SIM_CHECK(sim, pkt->info->op == r->op && pkt->psn == psn_add(m->psn, s->packets),
		  "side %u psn %06x: operation %u, not %u of job %u", s->id, pkt->psn, pkt->info->op, r->op, m->next);
	if (!exec)
		return;
	switch (r->op) {
	case ROAN_OP_WRITE:
		check_address(sim, s, r, pkt, exec->va, exec->rkey);
		SIM_CHECK(sim, !exec->starts || exec->total == r->len, "side %u psn %06x: length", s->id, pkt->psn);
		fallthrough;
	case ROAN_OP_SEND:
		check_payload(sim, s, r, pkt, exec, payload);
		break;
	case ROAN_OP_READ:
		check_address(sim, s, r, pkt, exec->va, exec->rkey);
		left = r->len - s->packets * m->mtu;
		SIM_CHECK(sim, exec->total == min_t(u64, left, (u64)r->read_packets * m->mtu), "side %u psn %06x: length %u",
			  s->id, pkt->psn, exec->total);
		break;
	case ROAN_OP_FETCH_ADD:
	case ROAN_OP_CMP_SWAP:
		SIM_CHECK(sim, pkt->swap_add == r->swap_add && pkt->compare == r->compare, "side %u psn %06x: operands", s->id,
			  pkt->psn);
		check_address(sim, s, r, pkt, exec->va, exec->rkey);
		break;
	case ROAN_OP_ATOMIC_WRITE:
		SIM_CHECK(sim, !memcmp(payload, r->data, 8), "side %u psn %06x: other bytes", s->id, pkt->psn);
		check_address(sim, s, r, pkt, exec->va, exec->rkey);
		break;
	}
}

/*
 * The link may have lost the NAK of a responder that answers nothing any more, or a response before it. A response that
 * overtakes another one may be dropped, too.
 */
static bool may_give_up(struct sim *sim, const struct side *s)
{
	bool perfect = !sim->loss && !sim->reorder && !sim->corruption && !sim->faults &&
		       !sim->full_queues;

	return s->gives_up || (sim_peer(sim, s)->resp.failed && (!perfect || sim_peer(sim, s)->violated));
}

/* Work request @index of @s has completed. */
void sim_check_retired(struct sim *sim, struct side *s, u32 index)
{
	struct model *m = &s->model;
	bool flushed = index && s->jobs[index - 1].status != ROAN_ST_SUCCESS;
	u8 status = s->jobs[index].status, expected;

	execute_local_ones(m);
	if (flushed) {
		SIM_CHECK(sim, status == ROAN_ST_WR_FLUSH_ERR, "side %u: job %u: status %u after an error", s->id, index, status);
		return;
	}
	SIM_CHECK(sim, index <= m->next, "side %u: job %u completed, but %u was not executed", s->id, index, m->next);
	if ((status == ROAN_ST_BAD_RESP_ERR && s->misled) || (status == ROAN_ST_REM_INV_REQ_ERR && sim_peer(sim, s)->violated))
		return;
	expected = index < m->next ? m->requests[index].status : model_status(m);
	SIM_CHECK(sim, status != ROAN_ST_SUCCESS || index < m->next, "side %u: job %u completed before it was executed", s->id,
		  index);
	SIM_CHECK(sim, status == expected || (status == ROAN_ST_RETRY_EXC_ERR && may_give_up(sim, s)),
		  "side %u: job %u: status %u, not %u", s->id, index, status, expected);
	SIM_CHECK(sim, sim_peer(sim, s)->resp.failed || (status != ROAN_ST_REM_INV_REQ_ERR && status != ROAN_ST_REM_ACCESS_ERR &&
		  status != ROAN_ST_REM_OP_ERR), "side %u: job %u: status %u, but the responder has not failed", s->id, index, status);
}

static void check_results(struct sim *sim, const struct side *s)
{
	for (u32 i = 0; i < s->n_jobs; i++) {
		const struct model_request *r = &s->requests[i];
		const struct job *j = &s->jobs[i];

		if (j->status != ROAN_ST_SUCCESS)
			continue;
		if (r->op == ROAN_OP_FETCH_ADD || r->op == ROAN_OP_CMP_SWAP)
			SIM_CHECK(sim, j->result == r->orig, "side %u: atomic %u returned %llx, not %llx", s->id, i,
				  (unsigned long long)j->result, (unsigned long long)r->orig);
		else if (r->op == ROAN_OP_LOCAL)
			SIM_CHECK(sim, j->executed == 1, "side %u: local job %u executed %u times", s->id, i, j->executed);
		for (u32 k = 0; r->op == ROAN_OP_READ && k < r->len; k++)
			SIM_CHECK(sim, model_may_read(&s->model, i, k, j->sink[k]), "side %u: job %u: wrong byte %u", s->id, i, k);
	}
}

static void check_receives(struct sim *sim, const struct side *peer, const struct model *m)
{
	SIM_CHECK(sim, peer->n_cqes == m->n_cqes, "side %u: %u receives completed, not %u", peer->id, peer->n_cqes, m->n_cqes);
	for (u32 i = 0; i < m->n_cqes; i++) {
		const struct model_cqe *a = &peer->cqes[i], *b = &m->cqes[i];

		SIM_CHECK(sim, a->status == b->status, "side %u: receive %u: status %u, not %u", peer->id, i, a->status, b->status);
		SIM_CHECK(sim, a->op == b->op && a->ext == b->ext && a->solicited == b->solicited && a->byte_len == b->byte_len &&
			  a->imm == b->imm, "side %u: receive %u completed otherwise", peer->id, i);
	}
	for (u32 i = 0; i < m->n_recvs; i++)
		SIM_CHECK(sim, (i < m->n_cqes && m->cqes[i].status != ROAN_ST_SUCCESS) ||
			  !memcmp(peer->recv_bufs[i], m->recvs[i].buf, m->recvs[i].len), "side %u: receive %u: wrong bytes",
			  peer->id, i);
}

static void check_responder(struct sim *sim, struct side *s)
{
	struct side *peer = sim_peer(sim, s);
	struct model *m = &s->model;
	u32 psn = psn_add(m->psn, peer->packets), at = 0;

	SIM_CHECK(sim, peer->resp.epsn == psn, "side %u: expected PSN %06x, not %06x", peer->id, peer->resp.epsn, psn);
	if (!peer->packets)
		SIM_CHECK(sim, peer->resp.msn == psn_add(m->msn, 0), "side %u: MSN %u, not %u", peer->id, peer->resp.msn, m->msn);
	if (peer->packets)
		model_execute_part(m, peer->packets);
	while (at < m->memory_len && peer->memory[at] == m->memory[at])
		at++;
	SIM_CHECK(sim, at == m->memory_len, "side %u: memory differs at %u", peer->id, at);
	check_receives(sim, peer, m);
}

static void free_side(struct side *s)
{
	for (u32 i = 0; i < s->n_jobs; i++) {
		free(s->requests[i].read);
		free(s->jobs[i].sink);
	}
	for (u32 i = 0; i < s->model.n_recvs; i++)
		free(s->model.recvs[i].buf);
	for (u32 i = 0; i < SIM_JOBS; i++)
		free(s->recv_bufs[i]);
	free(s->model.memory);
	free(s->memory);
	free(s->resp.resp_res);
}

void sim_side_finish(struct sim *sim, struct side *s)
{
	SIM_CHECK(sim, !roan_requester_outstanding(&s->req), "side %u: all done, yet something is outstanding", s->id);
	SIM_CHECK(sim, s->jobs[s->n_jobs - 1].status != ROAN_ST_SUCCESS || s->model.next == s->n_jobs,
		  "side %u: all completed, %u executed", s->id, s->model.next);
	check_results(sim, s);
	check_responder(sim, s);
	sim_totals.trials += s->auto_paths.n_trials;
	sim_totals.chosen += s->auto_paths.several;
}

void sim_free(struct sim *sim)
{
	for (int i = 0; i < 2; i++)
		free_side(&sim->sides[i]);
}
