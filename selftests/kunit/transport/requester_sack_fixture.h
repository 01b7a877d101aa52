/* SPDX-License-Identifier: GPL-2.0 */
/* A requester whose peer sends SACKs. For requester_sack_test.c and requester_reorder_test.c. */
#ifndef REQUESTER_SACK_FIXTURE_H
#define REQUESTER_SACK_FIXTURE_H

#include "requester_fixture.h"

#define SACK_MTU_SHIFT	12

/* @n packets of one WRITE are sent, of 48, to a peer that sends SACKs. */
static inline struct req_fixture *sent(struct kunit *test, u32 n)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.sack = true;
	cfg.mtu_shift = SACK_MTU_SHIFT;
	f = req_fixture_with(test, cfg);
	post(f, ROAN_OP_WRITE, 48 << SACK_MTU_SHIFT);
	while (n--)
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	return f;
}

/* The same; a loss was repaired, and no reordering seen: what a SACK shows as missing is lost. */
static inline struct req_fixture *sent_after_loss(struct kunit *test, u32 n)
{
	struct req_fixture *f = sent(test, n);

	f->holes.any_lost = true;
	return f;
}

/* The peer misses packet @n first; of the next ones it has received those in @received (bit 0: @n + 1). */
static inline enum roan_event sack_of(struct req_fixture *f, u32 n, u32 received, u8 needless)
{
	struct roan_pkt pkt = {
		.info = roan_opcode(ROAN_OPCODE_SACK), .opcode = ROAN_OPCODE_SACK, .psn = psn_add(PSN0, n),
		.syndrome = ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, .ext_version = ROAN_EXT_VERSION,
		.sack = { .needless = needless, .received = { received } },
	};
	u32 i;

	for (i = 0; i < 32; i++)
		if (received >> i & 1)
			pkt.sack.highest_psn = psn_add(pkt.psn, 1 + i);
	return roan_requester_sacked(&f->r, &pkt, f->now);
}

static inline enum roan_event sack(struct req_fixture *f, u32 n, u32 received)
{
	return sack_of(f, n, received, 0);
}

static inline void expect_packet(struct kunit *test, struct req_fixture *f, u32 n, bool resend)
{
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, n));
	KUNIT_EXPECT_EQ(test, f->e.offset, n << SACK_MTU_SHIFT);
	KUNIT_EXPECT_EQ(test, f->e.resend, resend);
	KUNIT_EXPECT_TRUE(test, !resend || f->e.ackreq);
}

/* A round trip is known: 20 us. */
static inline void know_rtt(struct req_fixture *f)
{
	f->r.peer_sacks = true;
	roan_rtt_sample(&f->r.rtt, 20000);
}

#endif /* REQUESTER_SACK_FIXTURE_H */
