/* SPDX-License-Identifier: GPL-2.0 */
/* A requester, with a few functions that stand in for the driver half. For requester_*test.c. */
#ifndef REQUESTER_FIXTURE_H
#define REQUESTER_FIXTURE_H

#include <kunit/test.h>
#include "core/transport/requester.h"

#define SLOTS	64
#define MTU	256
#define PSN0	0xfffffe	/* every case crosses the PSN wrap */

struct bench {
	struct roan_requester r;
	struct roan_tx_wqe work[SLOTS];
	struct roan_tx_desc e;
	u64 now;
};

static inline struct bench *bench_with(struct kunit *test, struct roan_requester_cfg cfg)
{
	struct bench *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	b->r.work = b->work;
	b->r.mask = SLOTS - 1;
	b->now = 1000;
	roan_requester_reset(&b->r, &cfg);
	return b;
}

static const struct roan_requester_cfg rc = {
	.transport = ROAN_TP_RC, .mtu_shift = 8, .retry_cnt = 2, .rnr_retry = 2, .timeout = 10, .max_rd_atomic = 2,
	.sq_psn = PSN0, .psn_window = 64,
};

static inline struct bench *bench(struct kunit *test)
{
	return bench_with(test, rc);
}

static inline struct roan_tx_wqe *post_work(struct bench *b, struct roan_tx_wqe work)
{
	u32 index;
	struct roan_tx_wqe *w = roan_requester_slot(&b->r, &index);

	if (w) {
		*w = work;
		roan_requester_queued(&b->r);
	}
	return w;
}

static inline struct roan_tx_wqe *post(struct bench *b, u8 op, u32 len)
{
	return post_work(b, (struct roan_tx_wqe) { .op = op, .len = len });
}

/* Posts @n more WQEs that are marked as like the previous one. */
static inline void post_again(struct bench *b, u32 n)
{
	while (n--)
		roan_requester_queue_same(&b->r);
}

/* Sends a packet and up to @more further ones of the same batch. */
static inline enum roan_next send_some(struct bench *b, u32 more)
{
	enum roan_next next = roan_requester_next(&b->r, b->now, &b->e);

	if (next != ROAN_NEXT_PACKET)
		return next;
	b->e.npsn += roan_requester_batch_count(&b->r, &b->e, more);
	roan_requester_sent(&b->r, &b->e, b->now);
	return next;
}

static inline enum roan_next send_one(struct bench *b)
{
	return send_some(b, 0);
}

static inline enum roan_next send_alike(struct bench *b)
{
	return send_some(b, U32_MAX);
}

static inline u32 send_all(struct bench *b)
{
	u32 n = 0;

	while (send_one(b) == ROAN_NEXT_PACKET)
		n++;
	return n;
}

static inline enum roan_event answer(struct bench *b, u8 syndrome, u32 n, u32 msn)
{
	const struct roan_pkt pkt = {
		.info = roan_opcode(0x11), .opcode = 0x11, .psn = psn_add(PSN0, n), .syndrome = syndrome, .msn = msn,
	};

	return roan_requester_acked(&b->r, &pkt, b->now);
}

static inline enum roan_event ack(struct bench *b, u32 n)
{
	return answer(b, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, n, 0);
}

/* Receives a READ response or atomic ACK. @syndrome and @msn are used if the opcode has an AETH. */
static inline enum roan_resp_action respond_with(struct bench *b, u8 opcode, u32 n, u16 len, u8 syndrome, u32 msn)
{
	const struct roan_pkt pkt = {
		.info = roan_opcode(opcode), .opcode = opcode, .psn = psn_add(PSN0, n), .payload_len = len,
		.syndrome = syndrome, .msn = msn,
	};
	u32 index, offset;
	enum roan_resp_action take = roan_requester_response(&b->r, &pkt, b->now, &index, &offset);

	if (take == ROAN_RESP_PLACE)
		roan_requester_placed(&b->r, &pkt, b->now);
	return take;
}

static inline enum roan_resp_action respond(struct bench *b, u8 opcode, u32 n, u16 len)
{
	return respond_with(b, opcode, n, len, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, 0);
}

/* Retires the next finished WQE and returns its status; -1: none. */
static inline int retired(struct bench *b)
{
	enum roan_status status;
	u32 index;

	return roan_requester_retired(&b->r, &index, &status) ? (int)status : -1;
}

#endif /* REQUESTER_FIXTURE_H */
