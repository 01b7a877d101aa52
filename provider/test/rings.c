// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Drives the provider through the real libibverbs with this program as its kernel: ioctl() and mmap() below
 * answer what the uverbs calls would. Checks what lands in the rings and when the doorbell rings. No device and no
 * module is needed; nothing is said here about the real kernel. Run by check.sh.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/roan-abi.h>

#define RING_SIZE	65536
#define SLOTS		4
#define SECOND_RING	4096	/* bytes from the start of a mapping that has two */

static uint8_t *rings[16];	/* by mmap offset / RING_SIZE; 0 is not used */
static unsigned int num_rings;
static unsigned int doorbells, rung_for;	/* calls, and the queue pairs they named */
static int failures;

#define EXPECT(what)								\
	do {									\
		if (!(what)) {							\
			printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #what);	\
			failures++;						\
		}								\
	} while (0)

static bool one_mapping;	/* for the two rings of a queue pair */

static struct roan_ring_desc new_ring(uint32_t slot_size)
{
	num_rings++;
	return (struct roan_ring_desc) {
		.mmap_offset = num_rings * RING_SIZE,
		.mmap_size = RING_SIZE,
		.slots_offset = sizeof(struct roan_ring_ctl),
		.slot_size = slot_size,
		.slot_count = SLOTS,
	};
}

static struct roan_create_qp_resp new_queues(void)
{
	struct roan_create_qp_resp resp = { .sq = new_ring(128) };

	if (!one_mapping) {
		resp.rq = new_ring(48);
	} else {
		resp.rq = resp.sq;
		resp.rq.slot_size = 48;
		resp.rq.slots_offset = SECOND_RING + sizeof(struct roan_ring_ctl);
	}
	return resp;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *map;

	if (!(flags & MAP_SHARED) || off < RING_SIZE || off > num_rings * RING_SIZE)
		return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
	map = (void *)syscall(SYS_mmap, NULL, len, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	rings[off / RING_SIZE] = map;
	return map;
}

static void answer(const struct ib_uverbs_ioctl_hdr *hdr, void *out)
{
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_GET_CONTEXT)
		*(struct roan_alloc_ucontext_resp *)out = (struct roan_alloc_ucontext_resp) {
			.db_hints = new_ring(sizeof(struct roan_db_hint)),
		};
	if (hdr->object_id == UVERBS_OBJECT_CQ && hdr->method_id == UVERBS_METHOD_CQ_CREATE)
		*(struct roan_create_cq_resp *)out = (struct roan_create_cq_resp) { new_ring(64) };
	if (hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == UVERBS_METHOD_QP_CREATE)
		*(struct roan_create_qp_resp *)out = new_queues();
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *hdr;
	va_list args;
	int i;

	va_start(args, request);
	hdr = va_arg(args, void *);
	va_end(args);
	if (request != RDMA_VERBS_IOCTL)
		return syscall(SYS_ioctl, fd, request, hdr);
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == 0 && hdr->num_attrs == 1) {
		errno = ENOSPC;		/* the library's question whether there are ioctls */
		return -1;
	}
	if (hdr->driver_id != ROAN_DRIVER_ID) {
		errno = EINVAL;
		return -1;
	}
	if (hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == ROAN_METHOD_QP_DOORBELL) {
		doorbells++;
		rung_for += hdr->num_attrs;
	}
	for (i = 0; i < hdr->num_attrs; i++)	/* no events were told of it */
		if ((hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == UVERBS_METHOD_QP_DESTROY &&
		     hdr->attrs[i].attr_id == UVERBS_ATTR_DESTROY_QP_RESP) ||
		    (hdr->object_id == UVERBS_OBJECT_CQ && hdr->method_id == UVERBS_METHOD_CQ_DESTROY &&
		     hdr->attrs[i].attr_id == UVERBS_ATTR_DESTROY_CQ_RESP))
			memset((void *)(uintptr_t)hdr->attrs[i].data, 0, hdr->attrs[i].len);
	if (hdr->object_id == UVERBS_OBJECT_ASYNC_EVENT)
		hdr->attrs[0].data_s64 = dup(fd);
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == 0x1001)	/* the driver's part of the answer */
			answer(hdr, (void *)(uintptr_t)hdr->attrs[i].data);
	/* The caps stay what was asked for. */
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == UVERBS_METHOD_QP_CREATE &&
		    hdr->attrs[i].attr_id == UVERBS_ATTR_CREATE_QP_RESP_CAP)
			*(struct ib_uverbs_qp_cap *)(uintptr_t)hdr->attrs[i].data = (struct ib_uverbs_qp_cap) {
				.max_send_wr = 3, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2,
				.max_inline_data = 32,
			};
	return 0;
}

static struct roan_send_wqe *send_slot(uint8_t *sq, unsigned int i)
{
	return (struct roan_send_wqe *)(sq + sizeof(struct roan_ring_ctl) + i % SLOTS * 128);
}

static void post_send__fills_slots_and_rings(struct ibv_qp *qp, uint8_t *sq)
{
	struct roan_ring_ctl *ctl = (void *)sq;
	struct ibv_sge sge[3] = { { .addr = 0x1000, .length = 5, .lkey = 7 } };
	struct ibv_send_wr *bad, wr = { .wr_id = 11, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };

	wr.wr.rdma.remote_addr = 0xabcdef;
	wr.wr.rdma.rkey = 99;
	wr.send_flags = IBV_SEND_SIGNALED;
	qp->state = IBV_QPS_INIT;
	EXPECT(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
	qp->state = IBV_QPS_RTS;
	doorbells = 0;
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 0);	/* the kernel is awake */
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

/* The receive ring of a queue pair, by itself or behind the send ring. */
static void post_recv__fills_slots(struct ibv_qp *qp, uint8_t *rq)
{
	struct roan_ring_ctl *ctl = (void *)rq;
	struct roan_recv_wqe *slot = (void *)(rq + sizeof(*ctl) + 48);
	struct ibv_sge sge = { .addr = 0x2000, .length = 9, .lkey = 8 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 31, .sg_list = &sge, .num_sge = 1 };

	qp->state = IBV_QPS_INIT;
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

static uint32_t *noticed(uint8_t *notices, unsigned int i)
{
	return &((struct roan_db_hint *)(notices + sizeof(struct roan_ring_ctl)))[i % SLOTS].qpn;
}

/* While the kernel lingers a notice does, one a QP, until the poster waits: then one call rings for all. */
static void poll__rings_for_what_was_noticed(struct ibv_qp *qp[2], struct ibv_cq_ex *ex, uint8_t *sq[2], uint8_t *notices)
{
	struct roan_ring_ctl *ctl = (void *)notices, *sq_ctl[2] = { (void *)sq[0], (void *)sq[1] };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
	unsigned int i;
	struct ibv_wc wc;

	doorbells = rung_for = 0;
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 0);
	for (i = 0; i < 2; i++) {
		qp[i]->state = IBV_QPS_RTS;
		sq_ctl[i]->kernel.index = sq_ctl[i]->user.index;
		sq_ctl[i]->kernel.flags = ROAN_RING_NEED_DOORBELL;
	}
	for (i = 0; i < 4; i++)
		EXPECT(ibv_post_send(qp[i & 1], &wr, &bad) == 0 && doorbells == 0);
	EXPECT(ctl->user.index == 2 && *noticed(notices, 0) == qp[0]->qp_num && *noticed(notices, 1) == qp[1]->qp_num);
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 1 && rung_for == 0);
	ctl->kernel.index = 2;
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 1);
	EXPECT(ibv_post_send(qp[0], &wr, &bad) == 0 && doorbells == 1 && ctl->user.index == 3);	/* a new one */
	EXPECT(ibv_start_poll(ex, &attr) == ENOENT && doorbells == 2);
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 2);	/* another thread: it was rung for */
	sq_ctl[0]->kernel.index = sq_ctl[0]->user.index;
	sq_ctl[1]->kernel.index = sq_ctl[1]->user.index;
	ctl->kernel.index = 3;
	EXPECT(ibv_post_send(qp[1], &wr, &bad) == 0 && ibv_req_notify_cq(cq, 0) == 0 && doorbells == 3);
	ctl->kernel.flags = ROAN_RING_NEED_DOORBELL;		/* it lingers no more */
	ctl->kernel.index = 4;
	EXPECT(ibv_post_send(qp[0], &wr, &bad) == 0 && doorbells == 4 && rung_for == 1);
	ctl->kernel.flags = 0;
	ctl->kernel.index = ctl->user.index - SLOTS;		/* full, and of others: it has gone around */
	*noticed(notices, 3) = 99;
	EXPECT(ibv_post_send(qp[1], &wr, &bad) == 0 && doorbells == 5 && rung_for == 2);
	ctl->kernel.index = ctl->user.index;
}

/* Where an answer is due nobody need ring, but what is posted could leave at once: who waits for it had better ask. */
static void poll__asks_for_what_could_leave(struct ibv_qp *qp, struct ibv_cq *cq, uint8_t *sq, uint8_t *notices)
{
	struct roan_ring_ctl *ctl = (void *)notices, *sq_ctl = (void *)sq;
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };
	uint32_t first = ctl->user.index;
	struct ibv_wc wc;

	doorbells = rung_for = 0;
	sq_ctl->kernel.index = sq_ctl->user.index;
	sq_ctl->kernel.flags = ROAN_RING_ACK_PENDING;
	sq_ctl->kernel.notify_at = sq_ctl->user.index + 2;
	ctl->kernel.index = first;
	ctl->kernel.flags = ROAN_RING_NEED_DOORBELL;		/* nobody looks there, and nobody has to */
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 0 && ctl->user.index == first);	/* not for one */
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 0);
	EXPECT(ctl->user.index == first + 1 && *noticed(notices, first) == qp->qp_num);
	EXPECT(ibv_poll_cq(cq, 1, &wc) == 0 && doorbells == 1 && rung_for == 0);
	ctl->kernel.index = first + 1 - SLOTS;			/* no room: the answer will do */
	*noticed(notices, first) = 99;
	sq_ctl->kernel.index = sq_ctl->user.index;
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0 && doorbells == 1 && ctl->user.index == first + 1);
	ctl->kernel.index = ctl->user.index;
	sq_ctl->kernel.flags = 0;				/* at work: not even that */
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
	EXPECT(ctl->user.index == 0);
	EXPECT(ibv_next_poll(cq) == 0 && cq->status == IBV_WC_RETRY_EXC_ERR && ctl->user.index == 1);
	EXPECT(ibv_wc_read_wc_flags(cq) == (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
	EXPECT(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	EXPECT(ctl->user.index == 2);
	ctl->kernel.index = 4;
	EXPECT(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, wc) == 1 && ctl->user.index == 3);
	EXPECT(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 1) == 0 && ctl->user.arm_solicited == 1 && ctl->user.arm_next == 1);
}

static void forget__keeps_what_is_read(struct ibv_cq_ex *cq, uint8_t *ring, struct ibv_qp_init_attr_ex *qp_attr)
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
	/* The one that is read, and nothing else. */
	cqe[0] = (struct roan_cqe) { .wr_id = 1, .qp_num = 10 };
	ctl->kernel.index = 1;
	EXPECT(ibv_start_poll(cq, &attr) == 0 && cq->wr_id == 1);
	EXPECT(ibv_destroy_qp(qp[0]) == 0);
	EXPECT(ibv_wc_read_qp_num(cq) == 10 && ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	EXPECT(ctl->user.index == 1);
	/* Another's is read, of ours there are some behind it, and at the end another's again. */
	cqe[1] = (struct roan_cqe) { .wr_id = 2, .qp_num = 12 };
	cqe[2] = (struct roan_cqe) { .wr_id = 3, .qp_num = 11 };
	cqe[3] = (struct roan_cqe) { .wr_id = 4, .qp_num = 12 };
	ctl->kernel.index = 4;
	EXPECT(ibv_start_poll(cq, &attr) == 0 && cq->wr_id == 2);
	EXPECT(ibv_destroy_qp(qp[1]) == 0);
	EXPECT(ibv_wc_read_qp_num(cq) == 12 && ctl->user.index == 2);
	EXPECT(ibv_next_poll(cq) == 0 && cq->wr_id == 4);
	EXPECT(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	EXPECT(ctl->user.index == 4);
	EXPECT(ibv_destroy_qp(qp[2]) == 0);
}

int main(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = SLOTS, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_qp_init_attr_ex qp_attr = {
		.cap = { .max_send_wr = 3, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 32 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_cq_ex *cq, *alone;
	struct ibv_qp *qp, *both[2];

	if (!ctx) {
		printf("FAIL: no device or it does not open\n");
		return 1;
	}
	qp_attr.pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq_ex(ctx, &cq_attr);
	if (!qp_attr.pd || !cq) {
		printf("FAIL: no PD or CQ\n");
		return 1;
	}
	qp_attr.send_cq = qp_attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp_ex(ctx, &qp_attr);
	if (!qp) {
		printf("FAIL: no QP\n");
		return 1;
	}
	((struct roan_ring_ctl *)rings[1])->kernel.flags = ROAN_RING_NEED_DOORBELL;	/* nobody lingers */
	post_recv__fills_slots(qp, rings[4]);
	post_send__fills_slots_and_rings(qp, rings[3]);
	wr__posts_all_or_nothing(qp, rings[3]);
	EXPECT(((struct roan_ring_ctl *)rings[1])->user.index == 0);
	EXPECT(ibv_destroy_qp(qp) == 0);
	both[0] = ibv_create_qp_ex(ctx, &qp_attr);
	both[1] = ibv_create_qp_ex(ctx, &qp_attr);
	if (!both[0] || !both[1]) {
		printf("FAIL: no more QPs\n");
		return 1;
	}
	one_mapping = true;
	qp = ibv_create_qp_ex(ctx, &qp_attr);
	if (!qp) {
		printf("FAIL: no QP of one mapping\n");
		return 1;
	}
	post_recv__fills_slots(qp, rings[num_rings] + SECOND_RING);
	post_send__fills_slots_and_rings(qp, rings[num_rings]);
	EXPECT(ibv_destroy_qp(qp) == 0);
	both[0]->qp_num = 17;
	both[1]->qp_num = 18;
	((struct roan_ring_ctl *)rings[1])->kernel.flags = 0;
	poll__rings_for_what_was_noticed(both, cq, (uint8_t *[]){ rings[num_rings - 4], rings[num_rings - 2] }, rings[1]);
	poll__asks_for_what_could_leave(both[0], ibv_cq_ex_to_cq(cq), rings[num_rings - 4], rings[1]);
	poll__gives_entries_back(cq, rings[2]);
	EXPECT(ibv_destroy_qp(both[0]) == 0 && ibv_destroy_qp(both[1]) == 0);
	EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	cq_attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	alone = ibv_create_cq_ex(ctx, &cq_attr);
	if (!alone) {
		printf("FAIL: no CQ for one thread\n");
		return 1;
	}
	forget__keeps_what_is_read(alone, rings[num_rings], &qp_attr);
	EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(alone)) == 0);
	EXPECT(ibv_dealloc_pd(qp_attr.pd) == 0);
	EXPECT(ibv_close_device(ctx) == 0);
	ibv_free_device_list(list);
	printf(failures ? "FAIL\n" : "ok rings\n");
	return failures != 0;
}
