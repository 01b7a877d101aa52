/* SPDX-License-Identifier: GPL-2.0 */
/* A responder with helpers. For responder_*test.c. */
#ifndef RESPONDER_FIXTURE_H
#define RESPONDER_FIXTURE_H

#include <kunit/test.h>
#include "core/transport/responder.h"

#define MTU	256
#define PSN0	0xfffffe	/* every case crosses the PSN wrap */
#define VA	0x1000
#define RKEY	0x77

struct resp_fixture {
	struct roan_responder r;
	struct roan_resp_res resp_res[4];
	struct roan_early_set early_set;
	struct roan_request exec;
	struct roan_response a;
};

static inline struct resp_fixture *resp_fixture_with(struct kunit *test, u8 transport, u8 max_dest_rd_atomic)
{
	const struct roan_responder_cfg cfg = {
		.transport = transport, .mtu_shift = 8, .max_dest_rd_atomic = max_dest_rd_atomic, .rq_psn = PSN0,
	};
	struct resp_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->r.resp_res = f->resp_res;
	f->r.early_set = &f->early_set;
	f->r.max_resp_res = ARRAY_SIZE(f->resp_res);
	roan_responder_reset(&f->r, &cfg);
	return f;
}

static inline struct resp_fixture *resp_fixture(struct kunit *test)
{
	return resp_fixture_with(test, ROAN_TP_RC, 2);
}

static inline struct roan_pkt request(u8 opcode, u32 n, u16 len, u32 dma_len)
{
	return (struct roan_pkt) {
		.info = roan_opcode(opcode), .opcode = opcode, .psn = psn_add(PSN0, n), .payload_len = len,
		.dma_len = dma_len, .va = VA, .rkey = RKEY, .ackreq = true,
	};
}

/* What comes after a gap is not kept. */
static inline enum roan_verdict admit(struct resp_fixture *f, struct roan_pkt pkt)
{
	enum roan_verdict verdict = roan_responder_admit(&f->r, &pkt, &f->exec);

	if (verdict == ROAN_V_GAP)
		roan_responder_gap(&f->r, 0);
	return verdict;
}

/* Admits and executes. */
static inline enum roan_verdict take(struct resp_fixture *f, struct roan_pkt pkt)
{
	enum roan_verdict verdict = admit(f, pkt);

	if (verdict != ROAN_V_EXECUTE)
		return verdict;
	if (roan_op_needs_response(pkt.info->op))
		roan_responder_done_op(&f->r, &pkt, 4711);
	else
		roan_responder_done(&f->r, &pkt);
	return verdict;
}

/* Takes the next response and returns its opcode; -1: none. */
static inline int owed(struct resp_fixture *f)
{
	if (!roan_responder_next(&f->r, ROAN_AETH_UNLIMITED, &f->a))
		return -1;
	roan_responder_sent(&f->r, &f->a);
	return f->a.opcode;
}

/* The syndrome of the next response, if the present MSN has @credits. */
static inline int owed_syndrome(struct resp_fixture *f, u8 credits)
{
	return roan_responder_next(&f->r, credits, &f->a) ? f->a.syndrome : -1;
}

static inline void expect_nak(struct kunit *test, struct resp_fixture *f, u8 nak, u32 n)
{
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_NAK | nak);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, n));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

#endif /* RESPONDER_FIXTURE_H */
