/* SPDX-License-Identifier: GPL-2.0 */
/* A requester, with a few functions that stand in for the driver half. For requester_*test.c. */
#ifndef REQUESTER_FIXTURE_H
#define REQUESTER_FIXTURE_H

#include <kunit/test.h>
#include "core/transport/requester.h"

#define SLOTS	64
#define MS	1000000ull
#define MTU	256
#define PSN0	0xfffffe	/* every case crosses the PSN wrap */

struct req_fixture {
	struct roan_requester r;
	struct roan_tx_wqe work[SLOTS];
	struct roan_holes holes;
	struct roan_tx_desc e;
	u64 now;
};

static inline struct req_fixture *req_fixture_with(struct kunit *test, struct roan_requester_cfg cfg)
{
	struct req_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->r.work = f->work;
	f->r.mask = SLOTS - 1;
	f->r.holes = &f->holes;
	f->now = 1000;
	roan_requester_reset(&f->r, &cfg);
	f->r.start_window = cfg.psn_window;	/* as of a QP that has sent for a while */
	return f;
}

static const struct roan_requester_cfg rc = {
	.transport = ROAN_TP_RC, .mtu_shift = 8, .retry_cnt = 2, .rnr_retry = 2, .timeout = 10, .max_rd_atomic = 2,
	.sq_psn = PSN0, .psn_window = 64,
};

static inline struct req_fixture *req_fixture(struct kunit *test)
{
	return req_fixture_with(test, rc);
}

static inline struct roan_tx_wqe *post_work(struct req_fixture *f, struct roan_tx_wqe work)
{
	u32 index;
	struct roan_tx_wqe *w = roan_requester_slot(&f->r, &index);

	if (w) {
		*w = work;
		roan_requester_queued(&f->r);
	}
	return w;
}

static inline struct roan_tx_wqe *post(struct req_fixture *f, u8 op, u32 len)
{
	return post_work(f, (struct roan_tx_wqe) { .op = op, .len = len });
}

/* Posts @n more WQEs that are marked as like the previous one. */
static inline void post_again(struct req_fixture *f, u32 n)
{
	while (n--)
		roan_requester_queue_same(&f->r);
}

/* Sends a packet and up to @more further ones of the same batch. */
static inline enum roan_next send_some(struct req_fixture *f, u32 more)
{
	enum roan_next next = roan_requester_next(&f->r, f->now, &f->e);

	if (next != ROAN_NEXT_PACKET)
		return next;
	f->e.npsn += roan_requester_batch_count(&f->r, &f->e, more);
	roan_requester_sent(&f->r, &f->e, f->now);
	return next;
}

static inline enum roan_next send_one(struct req_fixture *f)
{
	return send_some(f, 0);
}

static inline enum roan_next send_alike(struct req_fixture *f)
{
	return send_some(f, U32_MAX);
}

static inline u32 send_all(struct req_fixture *f)
{
	u32 n = 0;

	while (send_one(f) == ROAN_NEXT_PACKET)
		n++;
	return n;
}

static inline enum roan_event answer(struct req_fixture *f, u8 syndrome, u32 n, u32 msn)
{
	const struct roan_pkt pkt = {
		.info = roan_opcode(0x11), .opcode = 0x11, .psn = psn_add(PSN0, n), .syndrome = syndrome, .msn = msn,
		.ext_version = f->r.cfg.sack,
	};

	return roan_requester_acked(&f->r, &pkt, f->now);
}

static inline enum roan_event ack(struct req_fixture *f, u32 n)
{
	return answer(f, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, n, 0);
}

/* The peer is known to drop what it receives after a gap: a sequence NAK makes the requester go back. */
static inline void peer_drops(struct req_fixture *f)
{
	f->r.go_back_left = 1;
}

static inline enum roan_event sequence_nak(struct req_fixture *f, u32 n)
{
	return answer(f, ROAN_AETH_NAK | ROAN_NAK_PSN_SEQUENCE, n, 0);
}

/* Receives a READ response or atomic ACK. @syndrome and @msn are used if the opcode has an AETH. */
static inline enum roan_resp_action respond_with(struct req_fixture *f, u8 opcode, u32 n, u16 len, u8 syndrome, u32 msn)
{
	const struct roan_pkt pkt = {
		.info = roan_opcode(opcode), .opcode = opcode, .psn = psn_add(PSN0, n), .payload_len = len,
		.syndrome = syndrome, .msn = msn, .ext_version = f->r.cfg.sack,
	};
	u32 index, offset;
	enum roan_resp_action take = roan_requester_response(&f->r, &pkt, f->now, &index, &offset);

	if (take == ROAN_RESP_PLACE)
		roan_requester_placed(&f->r, &pkt, f->now);
	return take;
}

static inline enum roan_resp_action respond(struct req_fixture *f, u8 opcode, u32 n, u16 len)
{
	return respond_with(f, opcode, n, len, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, 0);
}

/* Retires the next finished WQE and returns its status; -1: none. */
static inline int retired(struct req_fixture *f)
{
	enum roan_status status;
	u32 index;

	return roan_requester_retired(&f->r, &index, &status) ? (int)status : -1;
}

static inline struct req_fixture *slow_req_fixture(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;

	cfg.timeout = 14;	/* 67 ms */
	return req_fixture_with(test, cfg);
}

/* A requester with an SRTT of 2 ms and so an RTO of 6 ms. */
static inline struct req_fixture *req_fixture_with_rtt(struct kunit *test)
{
	struct req_fixture *f = slow_req_fixture(test);

	post(f, ROAN_OP_SEND, 8);
	send_all(f);
	f->now += 2 * MS;
	ack(f, 0);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	return f;
}

/* A requester that has sent four packets without an ACK, and has sent the first one again as a probe. */
static inline struct req_fixture *req_fixture_with_probe(struct kunit *test)
{
	struct req_fixture *f = req_fixture_with_rtt(test);

	post(f, ROAN_OP_SEND, 3 * MTU);
	post(f, ROAN_OP_SEND, 8);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 1));
	KUNIT_EXPECT_TRUE(test, f->e.ackreq);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	return f;
}

#endif /* REQUESTER_FIXTURE_H */
