// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Polling and arming completion queues, plain and extended. The only system calls are the doorbell (doorbell.c), with
 * one CPU sched_yield(), and the request for a late event ("events"). Status, opcode and flags have the same numbers in
 * a struct roan_cqe as in verbs.
 */
#include <sched.h>
#include <string.h>
#include <time.h>
#include "roan.h"

ROAN_SAME(ROAN_CQE_GRH, IBV_WC_GRH);
ROAN_SAME(ROAN_CQE_WITH_IMM, IBV_WC_WITH_IMM);
ROAN_SAME(ROAN_CQE_WITH_INV, IBV_WC_WITH_INV);

#define VERBS_FLAGS	(ROAN_CQE_GRH | ROAN_CQE_WITH_IMM | ROAN_CQE_WITH_INV)

/*
 * A RoCE v2 datagram has no service level. mlx5's provider reports the type of the network header in this field, and
 * UCX expects that from every device: otherwise it reads the source address at the wrong offset and drops all UD
 * traffic.
 */
#define SL_UDP		0x8
#define SL_L3_IPV6	0x1
#define SL_L3_IPV4	0x2

static uint8_t wc_sl(const struct roan_cqe *cqe)
{
	if (!(cqe->flags & ROAN_CQE_GRH))
		return cqe->sl;
	return SL_UDP | (cqe->flags & ROAN_CQE_IPV4 ? SL_L3_IPV4 : SL_L3_IPV6);
}

/* Where the queue of @cqe's request keeps what is polled. NULL: the QP has no handle. */
static uint32_t *cqe_polled(const struct roan_cqe *cqe)
{
	struct roan_qp *qp = (struct roan_qp *)(uintptr_t)cqe->qp_handle;

	if (!qp)
		return NULL;
	return cqe->opcode & IBV_WC_RECV ? &qp->rq.polled : &qp->sq.polled;
}

/*
 * Returns the entries below @head to the kernel. Then the slots below @until may be posted again, not earlier: the CQE
 * of a request that is posted there would find a CQ full that is as long as the queue. @polled: cqe_polled(); the CQ is
 * locked, so the QP exists.
 */
static void cq_give_back(struct roan_cq *cq, uint32_t head, uint32_t *polled, uint32_t until)
{
	ring_polled(&cq->ring, head);
	if (polled)
		ring_set_polled(polled, until);
}

/* ---- events ---- */

/*
 * mlx4, mlx5 and others raise the event of an armed CQ also for an entry that was there before and is not polled. The
 * kernel compares the counts of armings only when it writes an entry. For an older entry libroan requests the event, by
 * a system call. Two kinds of programs depend on it:
 *  - those that poll until nothing is left, arm the CQ and wait: UCX;
 *  - those that take an event, arm the CQ, poll once and wait: the first RDMA patches of Redis.
 * Most programs take an event, arm the CQ, and poll until nothing is left. The system call would do nothing for them,
 * so after an event libroan looks for an entry at the end of the next poll. A program that takes an event, arms the CQ
 * and waits without a poll gets no event for what is there.
 */
static bool cq_has_entry(const struct roan_cq *cq, bool solicited_only)
{
	uint32_t index = ring_cq_head(&cq->ring);
	const struct roan_cqe *cqe;

	while ((cqe = ring_cqe(&cq->ring, index++)))
		if (!solicited_only || cqe->status || cqe->flags & ROAN_CQE_SOLICITED)
			return true;
	return false;
}

static void cq_request_event(struct roan_cq *cq, bool solicited_only)
{
	bool late;

	if (!cq->vcq.cq.channel)
		return;
	roan_lock(&cq->arm_lock);	/* keeps the ring */
	late = cq_has_entry(cq, solicited_only);
	roan_unlock(&cq->arm_lock);
	if (late)
		ibv_cmd_req_notify_cq(&cq->vcq.cq, solicited_only);
}

/* Called at the end of each poll, without cq->lock. */
static void cq_polled(struct roan_cq *cq)
{
	enum roan_cq_events before;

	if (__atomic_load_n(&cq->events, __ATOMIC_RELAXED) == CQ_POLLED)
		return;
	/* Pairs with the full barrier in ring_arm(): an entry that the kernel wrote before it saw the arming is seen. */
	before = __atomic_exchange_n(&cq->events, CQ_POLLED, __ATOMIC_ACQUIRE);
	if (before == CQ_ARMED_AFTER_EVENT || before == CQ_SOLICITED_AFTER_EVENT)
		cq_request_event(cq, before == CQ_SOLICITED_AFTER_EVENT);
}

/* libibverbs calls it in ibv_get_cq_event(). If the CQ was armed after an earlier event, the next poll still looks. */
void roan_cq_event(struct ibv_cq *cq)
{
	enum roan_cq_events polled = CQ_POLLED;

	__atomic_compare_exchange_n(&to_roan_cq(cq)->events, &polled, CQ_EVENT_TAKEN, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

int roan_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	enum roan_cq_events taken = CQ_EVENT_TAKEN, armed = solicited_only ? CQ_SOLICITED_AFTER_EVENT : CQ_ARMED_AFTER_EVENT;
	struct roan_cq *cq = to_roan_cq(ibcq);

	roan_lock(&cq->arm_lock);	/* not @lock: legal between start_poll and end_poll */
	ring_arm(&cq->ring, solicited_only);
	roan_unlock(&cq->arm_lock);
	if (!__atomic_compare_exchange_n(&cq->events, &taken, armed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		cq_request_event(cq, solicited_only);
	roan_db_hints_flush(ibcq->context);	/* the caller is about to sleep */
	return 0;
}

/* ---- plain ---- */

static void fill_wc(struct ibv_wc *wc, const struct roan_cqe *cqe)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm;	/* or the key that was invalidated: the same bytes in both unions */
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = cqe->flags & VERBS_FLAGS;
	wc->pkey_index = 0;		/* the P_Key table has one entry */
	wc->slid = 0;
	wc->sl = wc_sl(cqe);
	wc->dlid_path_bits = 0;
}

/*
 * After an empty poll. Rings for pending hints: otherwise the completion cannot come. With one CPU, the peer is often
 * another process of this machine that can only run if this one yields. With more CPUs the caller wants to poll without
 * a pause. True: poll again.
 */
static bool cq_idle_poll(struct roan_cq *cq)
{
	struct ibv_context *ctx = cq->vcq.cq.context;

	if (roan_db_hints_flush(ctx))
		return true;
	return to_roan_context(ctx)->one_cpu && !sched_yield();
}

/* One store of the head is for all entries of a queue in a row. */
static int cq_poll_plain(struct roan_cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t *polled = NULL, *before;
	uint32_t head, until = 0;
	const struct roan_cqe *cqe;
	int i;

	roan_lock(&cq->lock);
	head = cq->ring.index;
	for (i = 0; i < n; i++) {
		cqe = ring_cqe(&cq->ring, head + i);
		if (!cqe)
			break;
		before = polled;
		polled = cqe_polled(cqe);
		if (before && before != polled)
			cq_give_back(cq, head + i, before, until);
		fill_wc(&wc[i], cqe);
		until = cqe->wqe_index + 1;
	}
	if (i > 0)
		cq_give_back(cq, head + i, polled, until);
	roan_unlock(&cq->lock);
	return i;
}

int roan_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct roan_cq *cq = to_roan_cq(ibcq);
	int found = cq_poll_plain(cq, n, wc);

	if (!found && cq_idle_poll(cq))
		found = cq_poll_plain(cq, n, wc);
	cq_polled(cq);
	return found;
}

/*
 * Removes the unpolled CQEs of a QP that was reset or destroyed. The entries to keep move up to the tail, and the head
 * follows. The kernel may append entries meanwhile; they lie behind. A CQ without a lock can be between start_poll and
 * end_poll: the entry being read is a copy.
 */
void roan_cq_forget(struct ibv_cq *ibcq, uint32_t qpn)
{
	struct roan_cq *cq = to_roan_cq(ibcq);
	uint32_t head, from, to;

	roan_lock(&cq->lock);
	head = cq->ring.index;
	for (from = head; ring_cqe(&cq->ring, from); from++)
		;
	for (to = from; from != head;) {
		const struct roan_cqe *cqe = ring_slot(&cq->ring, --from);

		if (cqe->qp_num == qpn)
			continue;
		if (--to != from)
			memcpy(ring_slot(&cq->ring, to), cqe, sizeof(*cqe));
	}
	if (to != head)
		ring_polled(&cq->ring, to);
	roan_unlock(&cq->lock);
}

/* ---- extended: the program reads a copy of the entry, which is thus returned at once ---- */

static int cq_read_next(struct roan_cq *cq)
{
	const struct roan_cqe *cqe = ring_cqe(&cq->ring, cq->ring.index);

	if (!cqe)
		return ENOENT;
	cq->current = *cqe;
	cq->vcq.cq_ex.status = cqe->status;
	cq->vcq.cq_ex.wr_id = cqe->wr_id;
	cq_give_back(cq, cq->ring.index + 1, cqe_polled(&cq->current), cq->current.wqe_index + 1);
	return 0;
}

/* Keeps the lock on success only: libibverbs calls end_poll only after success. */
static int cq_read_next_locked(struct roan_cq *cq)
{
	int err;

	roan_lock(&cq->lock);
	err = cq_read_next(cq);
	if (err)
		roan_unlock(&cq->lock);
	return err;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct roan_cq *cq = to_roan_cq_ex(ibcq);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	err = cq_read_next_locked(cq);
	if (err && cq_idle_poll(cq))
		err = cq_read_next_locked(cq);
	if (err)
		cq_polled(cq);	/* else end_poll() calls it */
	return err;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	return cq_read_next(to_roan_cq_ex(ibcq));
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	roan_unlock(&to_roan_cq_ex(ibcq)->lock);
	cq_polled(to_roan_cq_ex(ibcq));
}

static const struct roan_cqe *cq_current(struct ibv_cq_ex *cq)
{
	return &to_roan_cq_ex(cq)->current;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->flags & VERBS_FLAGS;
}

/* Ethernet has no LIDs. */
static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return wc_sl(cq_current(cq));
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->timestamp_ns;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/*
 * A timestamp is a time of CLOCK_MONOTONIC. Both clocks run alike, so their difference at the time of reading is that
 * of the completion, unless the wall clock was set in between. An interruption between the calls makes the difference
 * wrong, so the pair with the shortest time around it counts.
 */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	uint64_t shortest = UINT64_MAX, difference = 0;
	int i;

	for (i = 0; i < 3; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC);
		uint64_t wall = clock_ns(CLOCK_REALTIME);
		uint64_t took = clock_ns(CLOCK_MONOTONIC) - before;

		if (took >= shortest)
			continue;
		shortest = took;
		difference = wall - (before + took / 2);
	}
	return cq_current(cq)->timestamp_ns + difference;
}

static uint16_t read_cvlan(struct ibv_cq_ex *cq)
{
	return cq_current(cq)->vlan;
}

bool roan_wc_flags_ok(uint64_t wc_flags)
{
	return !(wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN));
}

void roan_fill_poll_ops(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		cq->read_cvlan = read_cvlan;
}
