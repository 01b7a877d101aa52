// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tests the provider through the installed libibverbs, without a device or module: uverbs.c simulates both. Checks the
 * contents of the rings and when the provider rings the doorbell. It does not test the kernel. Run by check.sh.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include "expect.h"
#include "uverbs.h"

static void need(bool there, const char *what)
{
	if (there)
		return;
	printf("FAIL: no %s\n", what);
	exit(1);
}

static void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

static struct roan_send_wqe *send_slot(uint8_t *sq, unsigned int i)
{
	return (struct roan_send_wqe *)(sq + sizeof(struct roan_ring_ctl) + i % SLOTS * 128);
}

static void post_send__fills_slots_and_rings_doorbell(struct ibv_qp *qp, uint8_t *sq)
{
	struct roan_ring_ctl *ctl = (void *)sq;
	struct ibv_sge sge[3] = { { .addr = 0x1000, .length = 5, .lkey = 7 } };
	struct ibv_send_wr *bad, wr = { .wr_id = 11, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };

	wr.wr.rdma.remote_addr = 0xabcdef;
	wr.wr.rdma.rkey = 99;
	wr.send_flags = IBV_SEND_SIGNALED;
	set_state(qp, IBV_QPS_INIT);
	EXPECT(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
	set_state(qp, IBV_QPS_RTS);
	qp->state = IBV_QPS_RTR;	/* as ibv_query_qp() of another thread, which began before, stores it */
	doorbells = 0;
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 0);	/* no NEED_DOORBELL */
	EXPECT(ctl->user.index == 1 && send_slot(sq, 0)->wr_id == 11 && send_slot(sq, 0)->rdma.rkey == 99);
	ctl->kernel.flags = ROAN_RING_NEED_DOORBELL;
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 1);
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 2);
	EXPECT(ibv_post_send(qp, &wr, &bad) == ENOMEM && bad == &wr && doorbells == 2);	/* 3 of max_send_wr 3 */
	ctl->kernel.index = 3;
	wr.num_sge = 3;
	EXPECT(ibv_post_send(qp, &wr, &bad) == EINVAL);
	wr.num_sge = 1;
	wr.opcode = IBV_WR_TSO;
	EXPECT(ibv_post_send(qp, &wr, &bad) == EINVAL);
	EXPECT(ctl->user.index == 3);
}

/* The receive ring has its own mapping, or lies behind the send ring in one. */
static void post_recv__fills_slots(struct ibv_qp *qp, uint8_t *rq)
{
	struct roan_ring_ctl *ctl = (void *)rq;
	struct roan_recv_wqe *slot = (void *)(rq + sizeof(*ctl) + 48);
	struct ibv_sge sge = { .addr = 0x2000, .length = 9, .lkey = 8 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 31, .sg_list = &sge, .num_sge = 1 };

	set_state(qp, IBV_QPS_INIT);
	qp->state = IBV_QPS_RESET;	/* likewise */
	EXPECT(ibv_post_recv(qp, &wr, &bad) == 0 && ctl->user.index == 1);
	wr.wr_id = 32;
	EXPECT(ibv_post_recv(qp, &wr, &bad) == 0 && ctl->user.index == 2);
	EXPECT(slot->wr_id == 32 && ((struct roan_sge *)(slot + 1))->lkey == 8);
}

static void wr__posts_all_or_nothing(struct ibv_qp *qp, uint8_t *sq)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct roan_ring_ctl *ctl = (void *)sq;
	char text[33] = "inline";

	EXPECT(ex == (void *)qp);
	if (!ex)
		return;
	doorbells = 0;
	ibv_wr_start(ex);
	ex->wr_id = 21;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, 0x12345678);
	ibv_wr_set_inline_data(ex, text, 7);
	ibv_wr_rdma_write(ex, 5, 6);
	ibv_wr_set_sge(ex, 1, 2, 3);
	EXPECT(ctl->user.index == 3);
	EXPECT(ibv_wr_complete(ex) == 0 && ctl->user.index == 5 && doorbells == 1);
	EXPECT(send_slot(sq, 3)->inline_len == 7 && !strcmp((char *)(send_slot(sq, 3) + 1), "inline"));
	EXPECT(send_slot(sq, 3)->flags == (ROAN_SEND_SIGNALED | ROAN_SEND_INLINE));
	ctl->kernel.index = 5;
	ibv_wr_start(ex);
	ibv_wr_send_imm(ex, 0);
	ibv_wr_set_inline_data(ex, text, 33);		/* one byte too many */
	EXPECT(ibv_wr_complete(ex) == EINVAL && ctl->user.index == 5);
	ibv_wr_start(ex);
	ibv_wr_send_imm(ex, 0);
	ibv_wr_abort(ex);
	EXPECT(ctl->user.index == 5);
}

static uint32_t *hint_qpn(uint8_t *hints, unsigned int i)
{
	return &((struct roan_db_hint *)(hints + sizeof(struct roan_ring_ctl)))[i % SLOTS].qpn;
}

/* While the kernel batches doorbells a hint per QP is enough. An empty poll then rings once for all hints. */
static void poll__rings_for_hints(struct ibv_qp *qp[2], struct ibv_cq_ex *ex, uint8_t *sq[2], uint8_t *hints)
{
	struct roan_ring_ctl *ctl = (void *)hints, *sq_ctl[2] = { (void *)sq[0], (void *)sq[1] };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
	unsigned int i;
	struct ibv_wc wc;

	doorbells = rung_for = 0;
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 0);
	for (i = 0; i < 2; i++) {
		set_state(qp[i], IBV_QPS_RTS);
		sq_ctl[i]->kernel.index = sq_ctl[i]->user.index;
		sq_ctl[i]->kernel.flags = ROAN_RING_NEED_DOORBELL;
	}
	for (i = 0; i < 4; i++)
		EXPECT(ibv_post_send(qp[i & 1], &wr, &bad) == 0 && doorbells == 0);
	EXPECT(ctl->user.index == 2 && *hint_qpn(hints, 0) == qp[0]->qp_num && *hint_qpn(hints, 1) == qp[1]->qp_num);
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 1 && rung_for == 0);
	ctl->kernel.index = 2;
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 1);
	EXPECT(ibv_post_send(qp[0], &wr, &bad) == 0 && doorbells == 1 && ctl->user.index == 3);	/* a new hint */
	EXPECT(ibv_start_poll(ex, &attr) == ENOENT && doorbells == 2);
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 2);	/* as from another thread: already rung */
	sq_ctl[0]->kernel.index = sq_ctl[0]->user.index;
	sq_ctl[1]->kernel.index = sq_ctl[1]->user.index;
	ctl->kernel.index = 3;
	EXPECT(ibv_post_send(qp[1], &wr, &bad) == 0 && ibv_req_notify_cq(cq, 0) == 0 && doorbells == 3);
	ctl->kernel.flags = ROAN_RING_NEED_DOORBELL;		/* batching has ended */
	ctl->kernel.index = 4;
	EXPECT(ibv_post_send(qp[0], &wr, &bad) == 0 && doorbells == 4 && rung_for == 1);
	ctl->kernel.flags = 0;
	ctl->kernel.index = ctl->user.index - SLOTS;		/* full of hints of other QPs: it has wrapped */
	*hint_qpn(hints, 3) = 99;
	EXPECT(ibv_post_send(qp[1], &wr, &bad) == 0 && doorbells == 5 && rung_for == 2);
	ctl->kernel.index = ctl->user.index;
}

/* With an ACK pending posting needs no doorbell. Above notify_at it adds a hint, and an empty poll rings for it. */
static void poll__rings_above_notify_at(struct ibv_qp *qp, struct ibv_cq *cq, uint8_t *sq, uint8_t *hints)
{
	struct roan_ring_ctl *ctl = (void *)hints, *sq_ctl = (void *)sq;
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };
	uint32_t first = ctl->user.index;
	struct ibv_wc wc;

	doorbells = rung_for = 0;
	sq_ctl->kernel.index = sq_ctl->user.index;
	sq_ctl->kernel.flags = ROAN_RING_ACK_PENDING;
	sq_ctl->kernel.notify_at = sq_ctl->user.index + 2;
	ctl->kernel.index = first;
	ctl->kernel.flags = ROAN_RING_NEED_DOORBELL;	/* ignored */
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 0 && ctl->user.index == first);	/* below notify_at */
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 0);
	EXPECT(ctl->user.index == first + 1 && *hint_qpn(hints, first) == qp->qp_num);
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 1 && rung_for == 0);
	ctl->kernel.index = first + 1 - SLOTS;			/* full: sent when the ACK arrives */
	*hint_qpn(hints, first) = 99;
	sq_ctl->kernel.index = sq_ctl->user.index;
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 1 && ctl->user.index == first + 1);
	ctl->kernel.index = ctl->user.index;
	sq_ctl->kernel.flags = 0;				/* the kernel reads the SQ: no hint either */
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 1 && ctl->user.index == first + 1);
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 1);
}

static void poll__gives_entries_back(struct ibv_cq_ex *cq, uint8_t *ring)
{
	struct roan_ring_ctl *ctl = (void *)ring;
	struct roan_cqe *cqe = (void *)(ring + sizeof(*ctl));
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc[4];

	EXPECT(ibv_start_poll(cq, &attr) == ENOENT);
	EXPECT(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 4, wc) == 0);
	cqe[0] = (struct roan_cqe) { .wr_id = 1, .opcode = 0x80, .qp_num = 3, .timestamp_ns = 77 };
	cqe[1] = (struct roan_cqe) { .wr_id = 2, .status = IBV_WC_RETRY_EXC_ERR, .flags = 0xffff };
	ctl->kernel.index = 2;
	EXPECT(ibv_start_poll(cq, &attr) == 0 && cq->wr_id == 1 && ibv_wc_read_completion_ts(cq) == 77);
	EXPECT(ibv_wc_read_completion_wallclock_ns(cq) / 31557600000000000 - 50 < 50);	/* years: 2020 to 2069 */
	EXPECT(ctl->user.index == 1);
	EXPECT(ibv_next_poll(cq) == 0 && cq->status == IBV_WC_RETRY_EXC_ERR && ctl->user.index == 2);
	EXPECT(ibv_wc_read_wc_flags(cq) == (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
	EXPECT(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	EXPECT(ctl->user.index == 2);
	ctl->kernel.index = 4;
	EXPECT(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, wc) == 1 && ctl->user.index == 3);
	EXPECT(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 1) == 0 && ctl->user.arm_solicited == 1 && ctl->user.arm_next == 1);
}

static bool polled_from(struct ibv_cq *cq, uint8_t *ring, uint64_t wr_id)
{
	struct roan_ring_ctl *ctl = (void *)ring;
	struct roan_cqe *cqe = (void *)(ring + sizeof(*ctl));
	struct ibv_wc wc;

	cqe[ctl->kernel.index % SLOTS] = (struct roan_cqe) { .wr_id = wr_id };
	ctl->kernel.index++;
	return ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == wr_id;
}

/* The kernel must not be asked to move the queue before it is certain that the new ring can be mapped. */
static void resize_cq__without_address_space(struct ibv_cq *cq, uint8_t *ring)
{
	EXPECT(ibv_resize_cq(cq, INT_MAX) == EINVAL && resizes == 0);
	no_space = true;
	EXPECT(ibv_resize_cq(cq, 2 * SLOTS) == ENOMEM && resizes == 0);
	no_space = false;
	EXPECT(polled_from(cq, ring, 5));
	no_space_after_resize = true;
	EXPECT(ibv_resize_cq(cq, 2 * SLOTS) == 0 && resizes == 1);
	no_space = no_space_after_resize = false;
	EXPECT(polled_from(cq, rings[num_rings], 6));
}

static void forget__keeps_entry_being_read(struct ibv_cq_ex *cq, uint8_t *ring, struct ibv_qp_init_attr_ex *qp_attr)
{
	struct roan_ring_ctl *ctl = (void *)ring;
	struct roan_cqe *cqe = (void *)(ring + sizeof(*ctl));
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_qp *qp[3];
	int i;

	qp_attr->send_cq = qp_attr->recv_cq = ibv_cq_ex_to_cq(cq);
	for (i = 0; i < 3; i++) {
		qp[i] = ibv_create_qp_ex(qp_attr->pd->context, qp_attr);
		EXPECT(qp[i]);
		if (!qp[i])
			return;
		qp[i]->qp_num = 10 + i;
	}
	/* The CQ holds only the entry being read, of the destroyed QP. */
	cqe[0] = (struct roan_cqe) { .wr_id = 1, .qp_num = 10 };
	ctl->kernel.index = 1;
	EXPECT(ibv_start_poll(cq, &attr) == 0 && cq->wr_id == 1);
	EXPECT(ibv_destroy_qp(qp[0]) == 0);
	EXPECT(ibv_wc_read_qp_num(cq) == 10 && ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	EXPECT(ctl->user.index == 1);
	/* The entry being read is of another QP; behind it lie one of the destroyed QP and one of the other. */
	cqe[1] = (struct roan_cqe) { .wr_id = 2, .qp_num = 12 };
	cqe[2] = (struct roan_cqe) { .wr_id = 3, .qp_num = 11 };
	cqe[3] = (struct roan_cqe) { .wr_id = 4, .qp_num = 12 };
	ctl->kernel.index = 4;
	EXPECT(ibv_start_poll(cq, &attr) == 0 && cq->wr_id == 2);
	EXPECT(ibv_destroy_qp(qp[1]) == 0);
	EXPECT(ibv_wc_read_qp_num(cq) == 12 && ctl->user.index == 3);
	EXPECT(ibv_next_poll(cq) == 0 && cq->wr_id == 4);
	EXPECT(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	EXPECT(ctl->user.index == 4);
	EXPECT(ibv_destroy_qp(qp[2]) == 0);
}

/* main() has set RDMAV_ALLOW_DISASSOC_DESTROY. */
static void free_dm__of_removed_device(struct ibv_context *ctx)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);

	removed = true;
	EXPECT(dm && ibv_free_dm(dm) == 0);
	removed = false;
}

/* One number in the unit of a completion's timestamp, as mlx4 and mlx5 return it: programs read tv_nsec alone. */
static void query_rt_values__clock_is_in_tv_nsec(struct ibv_context *ctx)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct timespec now;
	int64_t ns;

	EXPECT(ibv_query_rt_values_ex(ctx, &values) == 0 && values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec - values.raw_clock.tv_nsec;
	EXPECT(sizeof(long) < 8 || (!values.raw_clock.tv_sec && ns >= 0 && ns < INT64_C(60000000000)));
}

/* The import owns the file descriptor, also if it fails. */
static void import_device__refuses_an_unknown_feature(struct ibv_context *ctx)
{
	struct ibv_context *imported;

	features_in_effect = ROAN_FEATURE_ONE_MAPPING | ROAN_FEATURE_QP_HANDLE;
	imported = ibv_import_device(dup(ctx->cmd_fd));
	EXPECT(imported && ibv_close_device(imported) == 0);
	features_in_effect = UINT64_C(1) << 63;
	EXPECT(!ibv_import_device(dup(ctx->cmd_fd)) && errno == EPROTONOSUPPORT);
}

static uint64_t lent_types[4];
static unsigned int num_lent;

static void *lend(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	EXPECT(pd && context == &num_lent && num_lent < 4);
	lent_types[num_lent++ % 4] = type;
	return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void take_back(struct ibv_pd *pd, void *context, void *memory, uint64_t type)
{
	EXPECT(pd && context == &num_lent && lent_types[--num_lent] == type);
	free(memory);
}

/* The manual page: the type's upper 32 bits are the driver's number. So one allocator can serve several drivers. */
static void allocator__gets_the_types_of_the_driver(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd, .alloc = lend, .free = take_back, .pd_context = &num_lent,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};
	struct ibv_qp_init_attr qp_attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &attr);
	struct ibv_qp *qp = parent ? ibv_create_qp(parent, &qp_attr) : NULL;

	EXPECT(qp && num_lent == 1 && lent_types[0] >> 32 == ROAN_DRIVER_ID && (uint32_t)lent_types[0]);
	EXPECT(qp && ibv_destroy_qp(qp) == 0 && num_lent == 0 && ibv_dealloc_pd(parent) == 0);
}

/* As with mlx5: an error of the call, not a completion that moves the QP to the error state. */
static void bind_mw__refused_at_once(struct ibv_pd *pd, struct ibv_qp *qp, uint8_t *sq)
{
	static uint8_t memory[8];
	struct ibv_mr *plain = ibv_reg_mr(pd, memory, 8, IBV_ACCESS_MW_BIND);
	const struct {
		struct ibv_mr *mr;
		unsigned int access;
		int err;
	} refused[] = {
		{ plain, IBV_ACCESS_ZERO_BASED, EINVAL },
		{ ibv_reg_mr(pd, memory, 8, IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED), 0, EINVAL },
		{ ibv_reg_mr(pd, memory, 8, IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND), 0, ENOTSUP },
		{ ibv_reg_dmabuf_mr(pd, 0, 8, 0, 0, IBV_ACCESS_MW_BIND), 0, ENOTSUP },
	};
	struct ibv_mw mw = { .context = pd->context, .pd = pd, .rkey = 0x700, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind bind = { .bind_info = { .length = 8 } };
	struct roan_ring_ctl *ctl = (void *)sq;
	uint32_t at = ctl->user.index;
	unsigned int i;

	ctl->kernel.index = at;
	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		bind.bind_info.mr = refused[i].mr;
		bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ | refused[i].access;
		EXPECT(refused[i].mr && ibv_bind_mw(qp, &mw, &bind) == refused[i].err);
		EXPECT(mw.rkey == 0x700 && ctl->user.index == at);
		if (i)
			EXPECT(ibv_dereg_mr(refused[i].mr) == 0);
	}
	bind.bind_info.mr = plain;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	EXPECT(plain && ibv_bind_mw(qp, &mw, &bind) == 0 && mw.rkey == 0x701 && ctl->user.index == at + 1);
	EXPECT(send_slot(sq, at)->opcode == ROAN_WR_BIND_MW && send_slot(sq, at)->bind.mw_rkey == 0x700);
	EXPECT(ibv_dereg_mr(plain) == 0);
}

extern bool verbs_allow_disassociate_destroy;	/* of libibverbs, from the environment variable */

/* A destroy that failed leaves its object as it was. ibv_close_device() ends all of the context, as with adapters. */
static void close_device__unmaps_what_is_left(struct ibv_device *device, struct ibv_qp_init_attr_ex *qp_attr)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 4096 };
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, SLOTS, NULL, NULL, 0) : NULL;
	struct ibv_qp *qp[2];
	struct ibv_dm *dm;

	need(cq, "context or CQ");
	dm_mappable = true;
	dm = ibv_alloc_dm(ctx, &dm_attr);
	qp_attr->pd = ibv_alloc_pd(ctx);
	qp_attr->send_cq = qp_attr->recv_cq = cq;
	qp[0] = ibv_create_qp_ex(ctx, qp_attr);
	qp[1] = ibv_create_qp_ex(ctx, qp_attr);
	need(dm && qp[0] && qp[1], "device memory or QPs");
	EXPECT(ibv_resize_cq(cq, 2 * SLOTS) == 0 && mapped == 5);
	EXPECT(ibv_destroy_qp(qp[0]) == 0 && mapped == 4);
	removed = true;
	verbs_allow_disassociate_destroy = false;
	EXPECT(ibv_destroy_qp(qp[1]) == EIO && ibv_destroy_cq(cq) == EIO && ibv_free_dm(dm) == EIO);
	EXPECT(mapped == 4);	/* the program may try again */
	EXPECT(ibv_close_device(ctx) == 0 && mapped == 0);
}

int main(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = SLOTS, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_qp_init_attr_ex qp_attr = {
		.cap = { .max_send_wr = 3, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 32 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_device **list = setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1) ? NULL : ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_cq_ex *cq, *unlocked_cq;
	uint8_t *unlocked_ring;
	struct ibv_qp *qp, *both[2];

	need(ctx, "device or it does not open");
	qp_attr.pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq_ex(ctx, &cq_attr);
	need(qp_attr.pd && cq, "PD or CQ");
	qp_attr.send_cq = qp_attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp_ex(ctx, &qp_attr);
	need(qp, "QP");
	((struct roan_ring_ctl *)rings[1])->kernel.flags = ROAN_RING_NEED_DOORBELL;	/* no batching */
	post_recv__fills_slots(qp, rings[4]);
	post_send__fills_slots_and_rings_doorbell(qp, rings[3]);
	wr__posts_all_or_nothing(qp, rings[3]);
	allocator__gets_the_types_of_the_driver(ctx, qp_attr.pd, ibv_cq_ex_to_cq(cq));
	bind_mw__refused_at_once(qp_attr.pd, qp, rings[3]);
	free_dm__of_removed_device(ctx);
	import_device__refuses_an_unknown_feature(ctx);
	query_rt_values__clock_is_in_tv_nsec(ctx);
	EXPECT(((struct roan_ring_ctl *)rings[1])->user.index == 0);
	EXPECT(ibv_destroy_qp(qp) == 0);
	both[0] = ibv_create_qp_ex(ctx, &qp_attr);
	both[1] = ibv_create_qp_ex(ctx, &qp_attr);
	need(both[0] && both[1], "more QPs");
	one_mapping = true;
	qp = ibv_create_qp_ex(ctx, &qp_attr);
	need(qp, "QP of one mapping");
	post_recv__fills_slots(qp, rings[num_rings] + SECOND_RING);
	post_send__fills_slots_and_rings_doorbell(qp, rings[num_rings]);
	EXPECT(ibv_destroy_qp(qp) == 0);
	both[0]->qp_num = 17;
	both[1]->qp_num = 18;
	((struct roan_ring_ctl *)rings[1])->kernel.flags = 0;
	poll__rings_for_hints(both, cq, (uint8_t *[]){ rings[num_rings - 4], rings[num_rings - 2] }, rings[1]);
	poll__rings_above_notify_at(both[0], ibv_cq_ex_to_cq(cq), rings[num_rings - 4], rings[1]);
	poll__gives_entries_back(cq, rings[2]);
	EXPECT(ibv_destroy_qp(both[0]) == 0 && ibv_destroy_qp(both[1]) == 0);
	EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	cq_attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	unlocked_cq = ibv_create_cq_ex(ctx, &cq_attr);
	need(unlocked_cq, "CQ for one thread");
	unlocked_ring = rings[num_rings];
	forget__keeps_entry_being_read(unlocked_cq, unlocked_ring, &qp_attr);
	resize_cq__without_address_space(ibv_cq_ex_to_cq(unlocked_cq), unlocked_ring);
	EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(unlocked_cq)) == 0);
	EXPECT(ibv_dealloc_pd(qp_attr.pd) == 0);
	EXPECT(mapped == 1 && ibv_close_device(ctx) == 0 && mapped == 0);
	close_device__unmaps_what_is_left(list[0], &qp_attr);
	ibv_free_device_list(list);
	printf(failures ? "FAIL\n" : "ok rings\n");
	return failures != 0;
}
