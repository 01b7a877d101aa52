// SPDX-License-Identifier: GPL-2.0
/* Call types: methods of the ioctl() interface, from a table of their attributes. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <string.h>

enum attr_type {
	OLD,		/* handle of an object of .kind; a file descriptor if it is of such a kind */
	NEW,		/* the same, made by the call */
	NUMBER,		/* 8 bytes or fewer, inline; .from says which */
	BYTES,		/* a pointer to .size bytes */
	OUT,		/* .size bytes */
};

enum source { ANY, SMALL, CONSTANT, ADDRESS, LENGTH, ACCESS, ZERO_BASED, FEATURES, TYPE };

enum role { NONE, LKEY, RKEY, QPN, DESC };

struct attr {
	uint16_t id;
	uint8_t type, kind, size, from, optional, role;
	uint64_t constant;
};

struct method {
	const char *name;
	uint16_t weight, object, id;
	struct attr attrs[15];
};

#define A_OLD(i, k)		{ .id = (i), .type = OLD, .kind = (k) }
#define A_MAYBE(i, k)		{ .id = (i), .type = OLD, .kind = (k), .optional = 1 }
#define A_NEW(i, k)		{ .id = (i), .type = NEW, .kind = (k) }
#define A_NUM(i, s, f)		{ .id = (i), .type = NUMBER, .size = (s), .from = (f) }
#define A_OPT(i, s, f)		{ .id = (i), .type = NUMBER, .size = (s), .from = (f), .optional = 1 }
#define A_BYTES(i, s)		{ .id = (i), .type = BYTES, .size = (s) }
#define A_OUT(i, s)		{ .id = (i), .type = OUT, .size = (s) }
#define A_ROLE(i, s, r)		{ .id = (i), .type = OUT, .size = (s), .role = (r) }
#define A_UHW			{ .id = UVERBS_ATTR_UHW_IN, .type = NUMBER, .size = 8, .from = FEATURES, .optional = 1 }

static const struct method methods[] = {
	{ "info_handles", 3, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, {
		A_NUM(UVERBS_ATTR_INFO_OBJECT_ID, 8, SMALL), A_OUT(UVERBS_ATTR_INFO_TOTAL_HANDLES, 4), A_OUT(UVERBS_ATTR_INFO_HANDLES_LIST, 64) } },
	{ "query_port", 2, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, {
		A_NUM(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1, SMALL), A_OUT(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp_ex)) } },
	{ "query_context", 4, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, {
		A_OUT(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4), A_OUT(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8), A_OUT(UVERBS_ATTR_UHW_OUT, 48) } },
	{ "query_gid_table", 2, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, {
		A_NUM(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, CONSTANT), A_NUM(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, TYPE),
		A_OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 200), A_OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8) } },
	{ "query_gid_entry", 2, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, {
		A_NUM(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 4, SMALL), A_NUM(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 4, SMALL),
		A_NUM(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, TYPE), A_OUT(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(struct ib_uverbs_gid_entry)) } },
	{ "cq_create", 8, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, {
		A_NEW(UVERBS_ATTR_CREATE_CQ_HANDLE, CQ), A_NUM(UVERBS_ATTR_CREATE_CQ_CQE, 4, SMALL), A_NUM(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, ANY),
		A_MAYBE(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, CHANNEL), A_NUM(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, TYPE),
		A_OPT(UVERBS_ATTR_CREATE_CQ_FLAGS, 4, TYPE), A_OUT(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4), A_MAYBE(UVERBS_ATTR_CREATE_CQ_EVENT_FD, ASYNC),
		A_ROLE(UVERBS_ATTR_UHW_OUT, sizeof(struct roan_create_cq_resp), DESC), A_UHW } },
	{ "cq_destroy", 6, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, {
		A_OLD(UVERBS_ATTR_DESTROY_CQ_HANDLE, CQ), A_OUT(UVERBS_ATTR_DESTROY_CQ_RESP, 8), A_UHW } },
	{ "qp_create", 12, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, {
		A_NEW(UVERBS_ATTR_CREATE_QP_HANDLE, QP), A_OLD(UVERBS_ATTR_CREATE_QP_PD_HANDLE, PD), A_MAYBE(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, SRQ),
		A_OLD(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, CQ), A_OLD(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, CQ),
		A_NUM(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, ANY), A_BYTES(UVERBS_ATTR_CREATE_QP_CAP, sizeof(struct ib_uverbs_qp_cap)),
		A_NUM(UVERBS_ATTR_CREATE_QP_TYPE, 8, TYPE), A_OPT(UVERBS_ATTR_CREATE_QP_FLAGS, 4, TYPE), A_MAYBE(UVERBS_ATTR_CREATE_QP_EVENT_FD, ASYNC),
		A_OUT(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(struct ib_uverbs_qp_cap)), A_ROLE(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, QPN),
		A_ROLE(UVERBS_ATTR_UHW_OUT, sizeof(struct roan_create_qp_resp), DESC) } },
	{ "qp_destroy", 6, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, {
		A_OLD(UVERBS_ATTR_DESTROY_QP_HANDLE, QP), A_OUT(UVERBS_ATTR_DESTROY_QP_RESP, 4), A_UHW } },
	{ "qp_cc", 12, UVERBS_OBJECT_QP, ROAN_METHOD_QP_CC, {
		A_OLD(ROAN_ATTR_QP_CC_HANDLE, QP), A_BYTES(ROAN_ATTR_QP_CC_REQ, sizeof(struct roan_qp_cc)) } },
	{ "srq_create", 6, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, {
		A_NEW(UVERBS_ATTR_CREATE_SRQ_HANDLE, SRQ), A_OLD(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, PD), A_NUM(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, ANY),
		A_NUM(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, SMALL), A_NUM(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, SMALL), A_NUM(UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, TYPE),
		A_NUM(UVERBS_ATTR_CREATE_SRQ_TYPE, 8, TYPE), A_MAYBE(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, ASYNC), A_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4),
		A_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4), A_ROLE(UVERBS_ATTR_UHW_OUT, sizeof(struct roan_create_srq_resp), DESC) } },
	{ "srq_destroy", 4, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, {
		A_OLD(UVERBS_ATTR_DESTROY_SRQ_HANDLE, SRQ), A_OUT(UVERBS_ATTR_DESTROY_SRQ_RESP, 4), A_UHW } },
	{ "wq_create", 1, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, {
		A_NEW(UVERBS_ATTR_CREATE_WQ_HANDLE, WQ), A_OLD(UVERBS_ATTR_CREATE_WQ_PD_HANDLE, PD), A_OLD(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, CQ),
		A_NUM(UVERBS_ATTR_CREATE_WQ_USER_HANDLE, 8, ANY), A_NUM(UVERBS_ATTR_CREATE_WQ_TYPE, 8, TYPE), A_NUM(UVERBS_ATTR_CREATE_WQ_MAX_WR, 4, SMALL),
		A_NUM(UVERBS_ATTR_CREATE_WQ_MAX_SGE, 4, SMALL), A_OUT(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4), A_OUT(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4) } },
	{ "flow_action_create", 1, UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_ESP_CREATE, {
		A_NEW(UVERBS_ATTR_CREATE_FLOW_ACTION_ESP_HANDLE, FLOW_ACTION), A_BYTES(UVERBS_ATTR_FLOW_ACTION_ESP_ATTRS, 32) } },
	{ "dm_alloc", 12, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, {
		A_NEW(UVERBS_ATTR_ALLOC_DM_HANDLE, DM), A_NUM(UVERBS_ATTR_ALLOC_DM_LENGTH, 8, LENGTH), A_NUM(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, TYPE), A_UHW } },
	{ "dm_free", 6, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, { A_OLD(UVERBS_ATTR_FREE_DM_HANDLE, DM) } },
	{ "dm_map", 6, UVERBS_OBJECT_DM, ROAN_METHOD_DM_MAP, {
		A_OLD(ROAN_ATTR_DM_MAP_HANDLE, DM), A_ROLE(ROAN_ATTR_DM_MAP_RESP, sizeof(struct roan_dm_desc), DESC) } },
	{ "dm_copy", 8, UVERBS_OBJECT_DM, ROAN_METHOD_DM_COPY, {
		A_OLD(ROAN_ATTR_DM_COPY_HANDLE, DM), A_BYTES(ROAN_ATTR_DM_COPY_REQ, sizeof(struct roan_dm_copy)) } },
	{ "dm_export", 6, UVERBS_OBJECT_DM, ROAN_METHOD_DM_EXPORT, {
		A_OLD(ROAN_ATTR_DM_EXPORT_HANDLE, DM), A_ROLE(ROAN_ATTR_DM_EXPORT_FD, 4, DESC) } },
	{ "dm_mr_reg", 10, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, {
		A_NEW(UVERBS_ATTR_REG_DM_MR_HANDLE, MR), A_NUM(UVERBS_ATTR_REG_DM_MR_OFFSET, 8, TYPE), A_NUM(UVERBS_ATTR_REG_DM_MR_LENGTH, 8, LENGTH),
		A_OLD(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, PD), A_NUM(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, 4, ZERO_BASED), A_OLD(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, DM),
		A_ROLE(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, 4, LKEY), A_ROLE(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, 4, RKEY) } },
	{ "dmabuf_mr_reg", 10, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, {
		A_NEW(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, MR), A_OLD(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, PD), A_NUM(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, TYPE),
		A_NUM(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, LENGTH), A_NUM(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, ADDRESS), { .id = UVERBS_ATTR_REG_DMABUF_MR_FD, .type = OLD, .kind = DMABUF, .size = 4 },
		A_NUM(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, ACCESS), A_ROLE(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, LKEY),
		A_ROLE(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, RKEY) } },
	{ "mr_destroy", 8, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, { A_OLD(UVERBS_ATTR_DESTROY_MR_HANDLE, MR), A_UHW } },
	{ "advise_mr", 12, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, {
		A_OLD(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, PD), A_NUM(UVERBS_ATTR_ADVISE_MR_ADVICE, 8, TYPE), A_NUM(UVERBS_ATTR_ADVISE_MR_FLAGS, 4, TYPE),
		A_BYTES(UVERBS_ATTR_ADVISE_MR_SGE_LIST, 48) } },
	{ "query_mr", 4, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, {
		A_OLD(UVERBS_ATTR_QUERY_MR_HANDLE, MR), A_OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4), A_OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4),
		A_OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8), A_OUT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8) } },
	{ "counters_create", 1, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, { A_NEW(UVERBS_ATTR_CREATE_COUNTERS_HANDLE, COUNTERS), A_UHW } },
	{ "async_event_alloc", 3, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, { A_NEW(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, ASYNC) } },
	{ "mw_destroy", 4, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, { A_OLD(UVERBS_ATTR_DESTROY_MW_HANDLE, MW), A_UHW } },
	{ "pd_destroy", 3, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, { A_OLD(UVERBS_ATTR_DESTROY_PD_HANDLE, PD), A_UHW } },
	{ "ah_destroy", 4, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, { A_OLD(UVERBS_ATTR_DESTROY_AH_HANDLE, AH), A_UHW } },
	{ 0 }
};

static uint64_t number(const struct attr *at, uint8_t b)
{
	static const uint64_t features[] = { 0, 0, 0, 1, 2, 1ull << 63 };

	switch (at->from) {
	case SMALL: return amount(b);
	case CONSTANT: return b < 200 ? 32 : value(b);
	case ADDRESS: return address(b);
	case LENGTH: return length(b);
	case ACCESS: return b < 200 ? 0xf : b < 240 ? b & 0x1f : value(b);
	case ZERO_BASED: return (b < 240 ? b & 0x1f : value(b)) | (b < 250 ? 0x20 : 0);
	case FEATURES: return features[b % 6];
	case TYPE: return b < 128 ? 0 : b < 240 ? b % 8 : value(b);
	default: return value(b);
	}
}

/* Contents of the structures that a method takes a pointer to. */
static void fill(struct run *r, int c, const struct method *m, uint8_t *to, const uint8_t *a)
{
	static const char *const algos[] = { "dcqcn", "swift", "fixed", "none", "device", "", "nosuch", "0123456789abcdef" };
	struct object *mr = pick(r, c, MR, a[8]);
	int i;

	if (m->id == UVERBS_METHOD_QP_CREATE && m->object == UVERBS_OBJECT_QP) {
		*(struct ib_uverbs_qp_cap *)to = (struct ib_uverbs_qp_cap) { amount(a[9]), amount(a[10]), 1 + a[11] % 6, 1 + a[12] % 6, a[13] };
	} else if (m->id == ROAN_METHOD_QP_CC && m->object == UVERBS_OBJECT_QP) {
		memcpy(to, algos[a[9] % 8], a[9] % 8 == 7 ? 16 : strlen(algos[a[9] % 8]));
	} else if (m->id == ROAN_METHOD_DM_COPY && m->object == UVERBS_OBJECT_DM) {
		*(struct roan_dm_copy *)to = (struct roan_dm_copy) { a[9] < 200 ? 0 : value(a[9]), length(a[10]), address(a[11]), a[12] & 1, a[13] / 250 };
	} else if (m->object == UVERBS_OBJECT_MR) {
		for (i = 0; i < 3; i++)
			((struct ib_uverbs_sge *)to)[i] = (struct ib_uverbs_sge) { mr ? mr->addr : address(a[9]), length(a[10 + i]), mr ? mr->lkey : a[8] };
	} else {
		memcpy(to, a, 15);
	}
}

static void damage(struct ib_uverbs_attr *attrs, uint32_t *n, uint16_t *object, uint16_t *method, const uint8_t *a)
{
	struct ib_uverbs_attr *at = &attrs[a[13] % *n];

	switch (a[14] % 8) {
	case 0: at->attr_id ^= 1 << a[12] % 13; break;
	case 1: at->len = a[12] < 128 ? a[12] : value(a[12]); break;
	case 2: at->data = a[12] < 128 ? a[12] : value(a[12]); break;
	case 3: at->flags = a[12]; break;
	case 4: at->attr_data.reserved = a[12]; break;
	case 5: *at = attrs[--*n]; break;
	case 6: *method ^= 1 << a[12] % 3; break;
	case 7: *object ^= 1 << a[12] % 4; break;
	}
}

static struct object *new_object(struct run *r, int c, const struct method *m, const struct ib_uverbs_attr *attrs, uint64_t (*out)[32], uint32_t n,
				 const uint8_t *at)
{
	struct object *o = NULL;
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (m->attrs[at[i]].type == NEW && attrs[i].attr_id == m->attrs[at[i]].id) {
			o = add(r, c, m->attrs[at[i]].kind, attrs[i].data);
			o->addr = (uintptr_t)arena;
			o->length = 4096;
		}
	}
	for (i = 0; o && i < n; i++) {
		const struct attr *spec = &m->attrs[at[i]];

		switch (spec->role) {
		case LKEY: o->lkey = out[i][0]; break;
		case RKEY: o->rkey = out[i][0]; break;
		case QPN: o->num = out[i][0]; break;
		case DESC:
			if (m->object != UVERBS_OBJECT_SRQ && m->object != UVERBS_OBJECT_CQ && m->object != UVERBS_OBJECT_QP)
				break;
			map_ring(r, c, &o->ring[0], (void *)out[i]);
			if (m->object == UVERBS_OBJECT_QP && ((struct roan_create_qp_resp *)out[i])->rq.mmap_offset != o->ring[0].desc.mmap_offset)
				map_ring(r, c, &o->ring[1], &((struct roan_create_qp_resp *)out[i])->rq);
			break;
		}
	}
	return o;
}

static void method(struct run *r, const uint8_t *a, const struct method *m)
{
	/* A wrong length may be any: the kernel writes that much, or clears it. */
	static struct { uint64_t out[15][32]; uint8_t rest[UINT16_MAX]; } room;
	uint64_t (*out)[32] = room.out, bytes[15][8] = { 0 };
	struct ib_uverbs_attr attrs[16] = { 0 };
	uint16_t object = m->object, id = m->id;
	uint8_t at[16];
	uint32_t n = 0, i;
	int c = ctx_of(a), err;

	if (context(r, c) < 0)
		return;
	for (i = 0; i < 15 && (!i || m->attrs[i].id); i++) {
		const struct attr *spec = &m->attrs[i];
		uint8_t b = a[1 + i % 12];
		struct ib_uverbs_attr *to = &attrs[n];

		if (spec->optional && (b & 3 || (spec->type == OLD && !pick(r, c, spec->kind, b))))
			continue;
		to->attr_id = spec->id;
		to->flags = spec->optional ? 0 : UVERBS_ATTR_F_MANDATORY;
		switch (spec->type) {
		case OLD:
			to->len = spec->size;
			to->data = handle(r, c, spec->kind, b);
			break;
		case NUMBER:
			to->len = spec->size;
			to->data = number(spec, b) & (~0ull >> (64 - 8 * spec->size));
			break;
		case BYTES:
			fill(r, c, m, (uint8_t *)bytes[n], a);
			to->len = spec->size;
			to->data = (uintptr_t)bytes[n];
			if (spec->size <= 8)
				memcpy(&to->data, bytes[n], spec->size);
			break;
		case OUT:
			memset(out[n], 0, sizeof(out[n]));
			to->len = spec->size;
			to->data = (uintptr_t)out[n];
			break;
		}
		at[n++] = i;
	}
	if (wrong(a))
		damage(attrs, &n, &object, &id, a);
	err = do_ioctl(r, c, object, id, attrs, n);
	if (err || wrong(a))
		return;
	new_object(r, c, m, attrs, out, n, at);
	if (m->object == UVERBS_OBJECT_DM && m->id == ROAN_METHOD_DM_EXPORT)
		add(r, c, DMABUF, (int)out[1][0]);
	if (m->object == UVERBS_OBJECT_DM && m->id == ROAN_METHOD_DM_MAP) {
		const struct roan_dm_desc *dm = (void *)out[1];
		const struct roan_ring_desc desc = { .mmap_offset = dm->mmap_offset, .mmap_size = (dm->length + 4095) & ~4095u, .slot_count = 1 };

		if (pick(r, c, DM, a[1]))
			map_ring(r, c, &pick(r, c, DM, a[1])->ring[0], &desc);
	}
	if (strstr(m->name, "destroy") || !strcmp(m->name, "dm_free"))
		forget(r, c, m->attrs[0].kind, attrs[0].data);
}

static void any_method(struct run *r, const uint8_t *a)
{
	uint32_t total = 0, i, at = (a[13] | a[14] << 8);

	for (i = 0; methods[i].name; i++)
		total += methods[i].weight;
	at %= total;
	for (i = 0; at >= methods[i].weight; i++)
		at -= methods[i].weight;
	method(r, a, &methods[i]);
}

/* A method whose number and attributes are arbitrary. */
static void any_ioctl(struct run *r, const uint8_t *a)
{
	struct ib_uverbs_attr attrs[8] = { 0 };
	uint64_t out[64];
	uint32_t n = a[3] % 8, i;
	int c = ctx_of(a);

	for (i = 0; i < n; i++)
		attrs[i] = (struct ib_uverbs_attr) { .attr_id = (a[4 + i] & 0x80 ? 0x1000 : 0) + a[4 + i] % 16, .len = a[6 + i],
						     .data = a[7 + i] & 1 ? value(a[7 + i]) : (uintptr_t)out, .flags = a[14] & 1 };
	if (context(r, c) >= 0)
		do_ioctl(r, c, a[1] % 24, a[2] % 8 + (a[2] & 0x80 ? 0x1000 : 0), attrs, n);
}

const struct call_type ioctl_calls[] = {
	{ "method", 120, any_method }, { "any_ioctl", 10, any_ioctl },
	{ 0 }
};
