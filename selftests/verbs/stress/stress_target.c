// SPDX-License-Identifier: GPL-2.0
/* The target side of verbs_stress: posts receives and checks every byte that arrived. */
#define _GNU_SOURCE
#include "stress_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *slot(struct side *s, uint8_t *base, uint32_t i)
{
	return base + slot_size(&s->c) * i;
}

/* A receive has several SGEs, cut at other places than the message. */
static void post_recv(struct side *s, uint32_t qpi)
{
	size_t size = s->c.max_len + GRH, cuts[3] = { size / 7, size / 3, size - size / 7 - size / 3 };
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;
	uint32_t i;
	uint8_t *p;
	int err, k;

	for (i = s->srq ? 0 : qpi; s->slot_busy[i]; i += s->srq ? 1 : s->c.nr_qps)
		;
	p = slot(s, s->recvs, i);
	for (k = 0; k < 3; p += cuts[k++] + GAP)
		sge[k] = (struct ibv_sge) { .addr = (uintptr_t)p, .length = cuts[k], .lkey = s->recv_mr->lkey };
	wr.wr_id = i;
	s->slot_busy[i] = true;
	err = s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp[qpi], &wr, &bad);
	if (err)
		vt_die("post_recv: %s", strerror(err));
}

void top_up(struct side *s)
{
	uint32_t i, want = s->srq ? s->c.batch : s->c.batch / s->c.nr_qps;

	for (i = 0; i < (s->srq ? 1 : s->c.nr_qps); i++)
		for (; s->posted[i] < want; s->posted[i]++)
			post_recv(s, i);
}

static size_t recv_diff(struct side *s, uint32_t slot_nr, const struct plan *p)
{
	size_t size = s->c.max_len + GRH, cuts[3] = { size / 7, size / 3, size - size / 7 - size / 3 };
	size_t skip = s->c.type == IBV_QPT_UD ? GRH : 0, pos = 0, left = p->len, n, bad;
	uint8_t *b = slot(s, s->recvs, slot_nr);
	int k;

	for (k = 0; k < 3 && left; b += cuts[k++] + GAP) {
		if (skip >= cuts[k]) {
			skip -= cuts[k];
			continue;
		}
		n = cuts[k] - skip < left ? cuts[k] - skip : left;
		bad = vt_diff(b + skip, n, p->seed, pos);
		if (bad < n)
			return pos + bad;
		pos += n;
		left -= n;
		skip = 0;
	}
	return p->len;
}

/* Gathers the network header of a datagram, which is in the same SGEs before the message. */
static bool grh_is_right(struct side *s, uint32_t slot_nr)
{
	size_t size = s->c.max_len + GRH, cuts[3] = { size / 7, size / 3, size - size / 7 - size / 3 }, n, got = 0;
	uint8_t *b = slot(s, s->recvs, slot_nr), grh[GRH];
	int k;

	for (k = 0; k < 3 && got < GRH; b += cuts[k++] + GAP) {
		n = cuts[k] < GRH - got ? cuts[k] : GRH - got;
		memcpy(grh + got, b, n);
		got += n;
	}
	return vt_grh_is(grh, &s->peer[0].gid, &s->dev.gid);
}

static void bind_window(struct side *s, uint32_t i)
{
	struct ibv_send_wr wr = {
		.wr_id = i, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = s->mw[i], .rkey = ibv_inc_rkey(s->mw[i]->rkey), .bind_info = {
			.mr = s->target_mr, .addr = (uintptr_t)slot(s, s->target, i), .length = slot_size(&s->c),
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE } },
	}, *bad;
	struct ibv_wc wc;
	int err = ibv_post_send(s->qp[i % s->c.nr_qps], &wr, &bad);

	if (err)
		vt_die("post of a bind: %s", strerror(err));
	if (!vt_poll(s->scq, &wc, 10000) || wc.status || wc.opcode != IBV_WC_BIND_MW || wc.wr_id != i)
		vt_die("bind of a window: status %s, opcode %d", ibv_wc_status_str(wc.status), wc.opcode);
	s->mw[i]->rkey = wr.bind_mw.rkey;
}

void target_prepare(struct side *s)
{
	uint32_t rkeys[MAX_BATCH] = { 0 }, i;

	s->left_in = 0;
	memset(s->next_in, 0, sizeof(s->next_in));
	for (i = 0; i < s->c.batch && (!s->active || s->c.both); i++) {
		s->in[i] = make_plan(&s->c, !s->active, s->batch_nr, i);
		vt_fill(slot(s, s->target, i), slot_size(&s->c), s->in[i].before, 0);
		s->left_in += op_takes_recv(s->in[i].op);
		if (s->in[i].op == OP_SEND_INV)
			bind_window(s, i);
		rkeys[i] = s->mw[i] ? s->mw[i]->rkey : 0;
	}
	s->expected += s->left_in;
	if (!s->c.late_recv && (!s->active || s->c.both))
		top_up(s);
	vt_send(s->fd, rkeys, sizeof(rkeys));
	vt_recv(s->fd, s->inv_rkey, sizeof(s->inv_rkey));
	swap_words(s, s->inv_rkey, MAX_BATCH);
}

static void judge_target(struct side *s, uint32_t i)
{
	bool loss = s->c.lossy && s->c.type != IBV_QPT_RC;
	const char *why = plan_check_target(&s->in[i], slot(s, s->target, i), slot_size(&s->c), loss);

	if (why)
		vt_die("batch %u op %u (%s, %u bytes): %s", s->batch_nr, i, op_name[s->in[i].op], s->in[i].len, why);
	s->done[s->in[i].op]++;
	s->judged++;
	s->judged_bytes += s->in[i].len;
}

static const char *recv_mismatch(struct side *s, const struct plan *p, uint32_t i, const struct ibv_wc *wc)
{
	static char why[160];
	size_t bad;

	if (wc->opcode != (p->op == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return "another kind of receive";
	if (wc->byte_len != p->len + (s->c.type == IBV_QPT_UD ? GRH : 0)) {
		snprintf(why, sizeof(why), "length %u instead of %u", wc->byte_len, p->len);
		return why;
	}
	if ((p->op == OP_SEND_IMM || p->op == OP_WRITE_IMM) &&
	    (!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) != p->imm))
		return "wrong or no immediate data";
	if (p->op == OP_SEND_INV &&
	    (!(wc->wc_flags & (IBV_WC_WITH_INV | (rxe_slips ? IBV_WC_IP_CSUM_OK : 0))) || wc->invalidated_rkey != s->mw[i]->rkey)) {
		snprintf(why, sizeof(why), "flags %x, invalidated key %x instead of %x", wc->wc_flags,
			 wc->invalidated_rkey, s->mw[i]->rkey);
		return why;
	}
	if (p->op == OP_SEND && wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		return "unexpected immediate data";
	if (s->c.type == IBV_QPT_UD && !(wc->wc_flags & IBV_WC_GRH))
		return "no GRH";
	if (s->c.type == IBV_QPT_UD && !grh_is_right(s, wc->wr_id))
		return "the GRH is not the peer's network header";
	if (p->op == OP_WRITE_IMM)
		return NULL;
	bad = recv_diff(s, wc->wr_id, p);
	if (bad == p->len)
		return NULL;
	snprintf(why, sizeof(why), "byte %zu of %u is wrong", bad, p->len);
	return why;
}

uint32_t qp_index(struct side *s, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < s->c.nr_qps; i++)
		if (s->qp[i]->qp_num == qpn)
			return i;
	vt_die("a completion for an unknown QP %u", qpn);
}

/* A datagram of an earlier batch, which waited in this host until the peer's link-layer address was known again. */
static bool is_late(struct side *s, uint32_t qpi, const struct ibv_wc *wc)
{
	uint32_t batch, i;

	for (batch = 0; s->c.lossy && s->c.type == IBV_QPT_UD && batch < s->batch_nr; batch++)
		for (i = qpi; i < s->c.batch; i += s->c.nr_qps) {
			struct plan p = make_plan(&s->c, !s->active, batch, i);

			if (!recv_mismatch(s, &p, i, wc))
				return true;
		}
	return false;
}

static void receive_is_used(struct side *s, uint32_t qpi, const struct ibv_wc *wc)
{
	s->slot_busy[wc->wr_id] = false;
	s->posted[s->srq ? 0 : qpi]--;
}

/*
 * Operations of a QP complete in order. So on RC, all operations before an arrived message must have taken effect. With
 * losses allowed the message is searched for among all: the network may duplicate and reorder datagrams, and a UC
 * responder accepts every first packet as the start of a message, whatever its PSN, so duplicates may arrive on UC,
 * too.
 */
void judge_recv(struct side *s, const struct ibv_wc *wc)
{
	uint32_t qpi = qp_index(s, wc->qp_num), i = s->next_in[qpi] * s->c.nr_qps + qpi;
	bool loss = s->c.lossy && s->c.type != IBV_QPT_RC;
	const char *why = "nothing was expected", *first = NULL;

	if (wc->status)
		vt_die("receive failed: %s", ibv_wc_status_str(wc->status));
	if (loss)
		i = qpi;
	for (; i < s->c.batch; i += s->c.nr_qps) {
		if (!op_takes_recv(s->in[i].op)) {
			if (!loss)
				judge_target(s, i);
			continue;
		}
		why = recv_mismatch(s, &s->in[i], i, wc);
		if (!why)
			break;
		if (!first)
			first = why;
		if (!loss)
			break;
	}
	if ((i >= s->c.batch || why) && is_late(s, qpi, wc))
		return receive_is_used(s, qpi, wc);
	if (i >= s->c.batch || why)
		vt_die("batch %u QP %u, receive of %u bytes, op %u: %s", s->batch_nr, qpi, wc->byte_len, i,
		       first ? first : why);
	if (!loss)
		s->next_in[qpi] = i / s->c.nr_qps + 1;
	if (!loss || s->in[i].op != OP_WRITE_IMM)
		judge_target(s, i);
	if (s->left_in)
		s->left_in--;
	receive_is_used(s, qpi, wc);
}

void target_finish(struct side *s)
{
	uint32_t q, i;

	for (q = 0; q < s->c.nr_qps && (!s->active || s->c.both); q++) {
		i = s->c.lossy && s->c.type != IBV_QPT_RC ? q : s->next_in[q] * s->c.nr_qps + q;
		for (; i < s->c.batch; i += s->c.nr_qps)
			if (!op_takes_recv(s->in[i].op))
				judge_target(s, i);
	}
	s->lost += s->left_in;
}
