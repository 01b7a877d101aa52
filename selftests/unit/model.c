// SPDX-License-Identifier: GPL-2.0
#include "model.h"

static bool is_atomic(const struct model_request *r)
{
	return r->op == ROAN_OP_FETCH_ADD || r->op == ROAN_OP_CMP_SWAP;
}

static bool needs_resource(const struct model_request *r)
{
	return is_atomic(r) || r->op == ROAN_OP_READ || r->op == ROAN_OP_ATOMIC_WRITE || r->op == ROAN_OP_FLUSH;
}

static bool carries_data(const struct model_request *r)
{
	return r->op == ROAN_OP_SEND || r->op == ROAN_OP_WRITE || r->op == ROAN_OP_ATOMIC_WRITE;
}

bool model_takes_recv(const struct model_request *r)
{
	return r->op == ROAN_OP_SEND || (r->op == ROAN_OP_WRITE && r->ext == ROAN_EXT_IMM);
}

u32 model_packets(const struct model *m, const struct model_request *r)
{
	if (r->op == ROAN_OP_LOCAL)
		return 0;
	return r->len <= m->mtu ? 1 : (r->len + m->mtu - 1) / m->mtu;
}

/* A request of length 0 does not check the key (9.7.4.1.5). */
static bool accessible(const struct model *m, const struct model_request *r)
{
	if (!r->len)
		return true;
	return r->rkey == MODEL_RKEY && r->va >= MODEL_VA && r->va - MODEL_VA + r->len <= m->memory_len;
}

/* The requester finds these before it sends the request, or the packet with the data. */
static enum roan_status refused_by_requester(const struct model *m, const struct model_request *r)
{
	if (r->op == ROAN_OP_LOCAL)
		return r->local_fails ? ROAN_ST_MW_BIND_ERR : ROAN_ST_SUCCESS;
	if (r->op == ROAN_OP_WRITE && r->ext == ROAN_EXT_INV)
		return ROAN_ST_LOC_QP_OP_ERR;
	if (needs_resource(r) && !m->max_rd_atomic)
		return ROAN_ST_LOC_QP_OP_ERR;
	if (carries_data(r) && r->readable < r->len)
		return ROAN_ST_LOC_PROT_ERR;
	return ROAN_ST_SUCCESS;
}

/* @recv_status: how the receive that it takes completes; SUCCESS: it takes none. */
static enum roan_status refused_by_responder(const struct model *m, const struct model_request *r, u8 *recv_status)
{
	const struct model_recv *recv = &m->recvs[m->n_taken];

	*recv_status = ROAN_ST_SUCCESS;
	if (needs_resource(r) && !m->max_dest_rd_atomic)
		return ROAN_ST_REM_INV_REQ_ERR;
	if ((is_atomic(r) || r->op == ROAN_OP_ATOMIC_WRITE) && r->va % 8)
		return ROAN_ST_REM_INV_REQ_ERR;
	if (r->op != ROAN_OP_SEND && !accessible(m, r)) {
		/* Only an only packet shows with the key that immediate data follows (11.6.2). */
		if (model_takes_recv(r) && model_packets(m, r) == 1 && m->n_taken < m->n_recvs)
			*recv_status = ROAN_ST_LOC_ACCESS_ERR;
		return ROAN_ST_REM_ACCESS_ERR;
	}
	if (model_takes_recv(r) && m->n_taken == m->n_recvs)
		return ROAN_ST_RNR_RETRY_EXC_ERR;
	if (r->op != ROAN_OP_SEND)
		return ROAN_ST_SUCCESS;
	if (r->len > recv->len) {
		*recv_status = ROAN_ST_LOC_LEN_ERR;
		return ROAN_ST_REM_INV_REQ_ERR;
	}
	if (r->len && recv->unregistered) {
		*recv_status = ROAN_ST_LOC_PROT_ERR;
		return ROAN_ST_REM_OP_ERR;
	}
	if (r->ext == ROAN_EXT_INV && r->imm != MODEL_INV_KEY) {
		*recv_status = ROAN_ST_LOC_ACCESS_ERR;
		return ROAN_ST_REM_ACCESS_ERR;
	}
	return ROAN_ST_SUCCESS;
}

bool model_executes(const struct model *m)
{
	const struct model_request *r = &m->requests[m->next];
	u8 recv_status;

	return refused_by_requester(m, r) == ROAN_ST_SUCCESS &&
	       refused_by_responder(m, r, &recv_status) == ROAN_ST_SUCCESS;
}

enum roan_status model_status(const struct model *m)
{
	const struct model_request *r = &m->requests[m->next];
	enum roan_status status = refused_by_requester(m, r);
	u8 recv_status;

	if (status == ROAN_ST_SUCCESS)
		status = refused_by_responder(m, r, &recv_status);
	if (status != ROAN_ST_SUCCESS)
		return status;
	if (r->op == ROAN_OP_READ && r->len && r->gone)
		return ROAN_ST_REM_ACCESS_ERR;
	if ((r->op == ROAN_OP_READ || is_atomic(r)) && r->len && r->no_sink)
		return ROAN_ST_LOC_PROT_ERR;
	return ROAN_ST_SUCCESS;
}

static void change_memory(struct model *m, struct model_request *r)
{
	u8 *at = m->memory + (r->len ? r->va - MODEL_VA : 0);
	u64 value;

	switch (r->op) {
	case ROAN_OP_WRITE:
	case ROAN_OP_ATOMIC_WRITE:
		if (r->len)
			memcpy(at, r->data, r->len);
		break;
	case ROAN_OP_READ:
		r->read = malloc(r->len + 1);
		if (r->len)
			memcpy(r->read, at, r->len);
		break;
	case ROAN_OP_FETCH_ADD:
	case ROAN_OP_CMP_SWAP:
		memcpy(&r->orig, at, sizeof(r->orig));
		value = r->op == ROAN_OP_FETCH_ADD ? r->orig + r->swap_add :
			r->orig == r->compare ? r->swap_add : r->orig;
		memcpy(at, &value, sizeof(value));
		break;
	}
}

static void take_recv(struct model *m, const struct model_request *r)
{
	struct model_recv *recv = &m->recvs[m->n_taken++];

	if (r->op == ROAN_OP_SEND && r->len)
		memcpy(recv->buf, r->data, r->len);
	m->cqes[m->n_cqes++] = (struct model_cqe) {
		.op = r->op, .ext = r->ext, .solicited = r->solicited, .byte_len = r->len,
		.imm = r->ext == ROAN_EXT_NONE ? 0 : r->imm,
	};
}

void model_execute(struct model *m)
{
	struct model_request *r = &m->requests[m->next];
	u32 packets = model_packets(m, r);

	r->status = model_status(m);
	if (r->op != ROAN_OP_LOCAL) {
		change_memory(m, r);
		if (model_takes_recv(r))
			take_recv(m, r);
		m->msn += r->op == ROAN_OP_READ ? (packets + r->read_packets - 1) / r->read_packets : 1;
	}
	m->psn = (m->psn + packets) % (1u << 24);
	m->next++;
}

void model_refuse(struct model *m)
{
	u8 recv_status;

	refused_by_responder(m, &m->requests[m->next], &recv_status);
	if (recv_status != ROAN_ST_SUCCESS)
		m->cqes[m->n_cqes++] = (struct model_cqe) { .status = recv_status };
}

void model_execute_part(struct model *m, u32 packets)
{
	struct model_request *r = &m->requests[m->next];
	u32 len = packets * m->mtu;

	if (r->op == ROAN_OP_SEND && len)
		memcpy(m->recvs[m->n_taken].buf, r->data, len);
	else if (r->op == ROAN_OP_WRITE && len)
		memcpy(m->memory + (r->va - MODEL_VA), r->data, len);
}

/* True if request @r stores @byte at @va. The results of atomics are not known any more: any byte. */
static bool stores(const struct model_request *r, u64 va, u8 byte)
{
	if (r->op == ROAN_OP_SEND || r->op == ROAN_OP_READ || va < r->va || va - r->va >= r->len)
		return false;
	return is_atomic(r) || r->data[va - r->va] == byte;
}

bool model_may_read(const struct model *m, u32 index, u32 offset, u8 byte)
{
	const struct model_request *read = &m->requests[index];

	if (read->read[offset] == byte)
		return true;
	for (u32 i = index + 1; i <= m->next && i < m->n_requests && !m->requests[i].fence; i++)
		if (stores(&m->requests[i], read->va + offset, byte))
			return true;
	return false;
}
