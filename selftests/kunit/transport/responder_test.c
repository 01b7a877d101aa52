// SPDX-License-Identifier: GPL-2.0
/* responder.c, rule by rule. Long runs over a lossy link are in the simulator (selftests/unit/sim.c). */
#include "responder_fixture.h"

static void admit__message_of_three_packets(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	KUNIT_EXPECT_EQ(test, take(f, request(0x06, 0, MTU, 600)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_TRUE(test, f->exec.starts);
	KUNIT_EXPECT_EQ(test, f->exec.total, 600);
	KUNIT_EXPECT_EQ(test, take(f, request(0x07, 1, MTU, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, f->exec.va, VA + MTU);
	KUNIT_EXPECT_EQ(test, f->r.msn, 0);
	KUNIT_EXPECT_EQ(test, take(f, request(0x08, 2, 88, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_TRUE(test, f->exec.ends);
	KUNIT_EXPECT_EQ(test, f->exec.msg_len, 600);
	KUNIT_EXPECT_EQ(test, f->exec.rkey, RKEY);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);			/* one ACK for all */
	KUNIT_EXPECT_EQ(test, f->a.psn, 0);
	KUNIT_EXPECT_EQ(test, f->a.msn, 1);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

static void admit__what_breaks_a_rule(struct kunit *test)
{
	static const struct {
		int before;		/* FIRST of a message under way; -1: none */
		u8 opcode;
		u16 len;
		u32 dma_len;
	} bad[] = {
		{ -1, 0x01, MTU, 0 }, { -1, 0x02, 8, 0 },	/* MIDDLE, LAST without FIRST */
		{ 0x00, 0x00, MTU, 0 }, { 0x00, 0x04, 8, 0 },	/* FIRST, ONLY within a message */
		{ 0x00, 0x07, MTU, 0 },			/* WRITE within a SEND */
		{ 0x00, 0x0c, 0, 8 },			/* READ within a SEND */
		{ -1, 0x00, MTU - 4, 0 },		/* FIRST that is not full */
		{ 0x00, 0x01, MTU - 4, 0 },		/* MIDDLE that is not full */
		{ 0x00, 0x02, 0, 0 },			/* empty LAST */
		{ -1, 0x04, MTU + 4, 0 },		/* more than an MTU */
		{ -1, 0x0a, 8, 12 },			/* less than announced */
		{ -1, 0x0a, 8, 4 },			/* more than announced */
		{ 0x06, 0x08, 4, 0 },			/* LAST that falls short of 600 */
		{ -1, 0x06, MTU, MTU - 4 },		/* FIRST with more than announced */
		{ -1, 0x06, MTU, 0x80000001 }, { -1, 0x0c, 0, 0x80000001 },	/* message too long */
		{ -1, 0x1d, 4, 8 },			/* ATOMIC_WRITE of four bytes */
		{ -1, 0x11, 0, 0 },			/* not a request */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct resp_fixture *f = resp_fixture(test);
		u32 n = 0;

		if (bad[i].before >= 0)
			KUNIT_EXPECT_EQ(test, take(f, request(bad[i].before, n++, MTU, 600)), ROAN_V_EXECUTE);
		KUNIT_EXPECT_EQ_MSG(test, take(f, request(bad[i].opcode, n, bad[i].len, bad[i].dma_len)), ROAN_V_INVALID,
				    "row %d", (int)i);
		expect_nak(test, f, ROAN_NAK_INVALID_REQUEST, n);
		KUNIT_EXPECT_EQ(test, take(f, request(0x04, n, 8, 0)), ROAN_V_DROP);
	}
}

/* A SEND names no length in its first packet. */
static void admit__send_of_more_than_2_31_bytes(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	KUNIT_EXPECT_EQ(test, take(f, request(0x00, 0, MTU, 0)), ROAN_V_EXECUTE);
	f->r.msg_bytes = 0x80000000u - MTU;
	KUNIT_EXPECT_EQ(test, take(f, request(0x01, 1, MTU, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x02, 2, 4, 0)), ROAN_V_INVALID);
	expect_nak(test, f, ROAN_NAK_INVALID_REQUEST, 2);
}

static void admit__atomics_are_aligned(struct kunit *test)
{
	static const u8 opcodes[] = { 0x13, 0x14, 0x1d };

	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct roan_pkt pkt = request(opcodes[i], 0, opcodes[i] == 0x1d ? 8 : 0, 8);
		struct resp_fixture *f = resp_fixture(test);

		pkt.va += 4;
		KUNIT_EXPECT_EQ(test, take(f, pkt), ROAN_V_INVALID);
	}
}

static void admit__no_resources_no_read(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture_with(test, ROAN_TP_RC, 0);

	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_INVALID);
}

static void admit__what_the_qp_does_not_allow(struct kunit *test)
{
	static const struct { u8 opcode, op; u16 len; } requests[] = {
		{ 0x0a, ROAN_OP_WRITE, 8 }, { 0x06, ROAN_OP_WRITE, MTU }, { 0x0b, ROAN_OP_WRITE, 8 },
		{ 0x0a, ROAN_OP_WRITE, 0 }, { 0x0c, ROAN_OP_READ, 0 }, { 0x13, ROAN_OP_CMP_SWAP, 0 },
		{ 0x14, ROAN_OP_FETCH_ADD, 0 }, { 0x1d, ROAN_OP_ATOMIC_WRITE, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct roan_pkt pkt = request(requests[i].opcode, 0, requests[i].len,
					      requests[i].opcode == 0x06 ? MTU + 1 : requests[i].len);
		struct resp_fixture *f = resp_fixture(test);

		f->r.cfg.denied_ops = ~BIT(requests[i].op);
		KUNIT_EXPECT_EQ(test, admit(f, pkt), ROAN_V_EXECUTE);
		f->r.cfg.denied_ops = BIT(requests[i].op);
		KUNIT_EXPECT_EQ(test, admit(f, pkt), ROAN_V_INVALID);
		expect_nak(test, f, ROAN_NAK_INVALID_REQUEST, 0);
	}
}

static void admit__more_reads_than_agreed(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 1, 0, 8)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 2, 0, 8)), ROAN_V_INVALID);
}

static void admit__without_resources_no_read(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture_with(test, ROAN_TP_RC, 0);

	f->r.resp_res = NULL;
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_INVALID);
}

/*
 * A response is repeated when a new READ arrives: the requester has the response, so the new READ takes the resource.
 */
static void admit__new_read_takes_a_repeated_ones_resource(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0c, 0, 0, 8));
	take(f, request(0x0c, 1, 0, 8));
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 2, 0, 8)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

static void admit__gap_is_reported_once(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x04, 0, 8, 0));
	owed(f);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 2, 8, 0)), ROAN_V_GAP);
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 1);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 3, 8, 0)), ROAN_V_EARLY);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 1, 8, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 4, 8, 0)), ROAN_V_GAP);
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 2);
}

/* Admits a packet that is early, and keeps it. */
static enum roan_verdict keep(struct resp_fixture *f, struct roan_pkt pkt)
{
	enum roan_verdict verdict = admit(f, pkt);

	roan_responder_kept(&f->r, &pkt);
	return verdict;
}

static struct roan_pkt without_ackreq(struct roan_pkt pkt)
{
	pkt.ackreq = false;
	return pkt;
}

/* One ACK covers the missing packet and the kept ones, also if none of them requests it. */
static void admit__kept_packets_are_acknowledged_at_once(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	KUNIT_EXPECT_EQ(test, keep(f, without_ackreq(request(0x04, 1, 8, 0))), ROAN_V_GAP);
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 0);
	KUNIT_EXPECT_EQ(test, keep(f, without_ackreq(request(0x04, 2, 8, 0))), ROAN_V_EARLY);
	KUNIT_EXPECT_EQ(test, take(f, without_ackreq(request(0x04, 0, 8, 0))), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, without_ackreq(request(0x04, 1, 8, 0))), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	KUNIT_EXPECT_EQ(test, take(f, without_ackreq(request(0x04, 2, 8, 0))), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

static void stop__acknowledges_what_was_executed(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	roan_responder_stop(&f->r);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	take(f, without_ackreq(request(0x04, 0, 8, 0)));
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	roan_responder_stop(&f->r);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.psn, PSN0);
	roan_responder_stop(&f->r);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	take(f, without_ackreq(request(0x04, 1, 8, 0)));
	admit(f, request(0x04, 3, 8, 0));
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 2);
	roan_responder_stop(&f->r);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

/* The response to a READ acknowledges what was executed before it; the ACK of what comes behind it follows it. */
static void stop__acknowledges_what_no_response_has(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, without_ackreq(request(0x04, 0, 8, 0)));
	take(f, request(0x0c, 1, 0, 8));
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	roan_responder_stop(&f->r);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	take(f, request(0x0c, 2, 0, 8));
	take(f, without_ackreq(request(0x04, 3, 8, 0)));
	roan_responder_stop(&f->r);
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 3));
}

/* Two gaps: a NAK for the second one is due without another packet from the peer. */
static void admit__next_gap_is_reported_when_the_first_is_filled(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	keep(f, request(0x04, 1, 8, 0));
	keep(f, request(0x04, 3, 8, 0));
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 0);
	take(f, request(0x04, 0, 8, 0));
	take(f, request(0x04, 1, 8, 0));
	KUNIT_EXPECT_TRUE(test, roan_responder_next_gap(&f->r, true, 0, 0));
	KUNIT_EXPECT_FALSE(test, roan_responder_next_gap(&f->r, true, 0, 0));
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 2);
	take(f, request(0x04, 2, 8, 0));
	take(f, request(0x04, 3, 8, 0));
	KUNIT_EXPECT_FALSE(test, roan_responder_next_gap(&f->r, true, 0, 0));
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED);
}

/* The missing packet was only reordered, and comes before the NAK is sent: there is no NAK. */
static void admit__reordered_packet_cancels_the_nak(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	keep(f, request(0x04, 1, 8, 0));
	take(f, request(0x04, 0, 8, 0));
	take(f, request(0x04, 1, 8, 0));
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_ACK | ROAN_AETH_UNLIMITED);
}

/* After an RNR NAK the requester repeats everything, and a packet far ahead is not one of its own. */
static void admit__not_everything_early_is_kept(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);
	struct roan_pkt near = request(0x04, ROAN_EARLY_WINDOW - 1, 8, 0), far = request(0x04, ROAN_EARLY_WINDOW, 8, 0);

	KUNIT_EXPECT_TRUE(test, roan_responder_may_keep(&f->r, &near));
	KUNIT_EXPECT_FALSE(test, roan_responder_may_keep(&f->r, &far));
	KUNIT_EXPECT_EQ(test, admit(f, request(0x04, 0, 8, 0)), ROAN_V_EXECUTE);
	roan_responder_rnr(&f->r, 1);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 1, 8, 0)), ROAN_V_DROP);
}

/* The missing packet arrives before the NAK is sent: the NAK then names the next missing PSN. */
static void admit__late_nak_names_the_present_gap(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 1, 8, 0)), ROAN_V_GAP);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 0, 8, 0)), ROAN_V_EXECUTE);
	expect_nak(test, f, ROAN_NAK_PSN_SEQUENCE, 1);
}

static void admit__duplicate_send_is_acknowledged(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x04, 0, 8, 0));
	take(f, request(0x0a, 1, 8, 8));
	owed(f);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 0, 8, 0)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 1));
	KUNIT_EXPECT_EQ(test, f->a.msn, 2);
}

/* An ACK with the PSN of a READ looks like its response to a standard requester, which may have lost that. */
static void next__ack_never_names_a_read(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0a, 0, 8, 8));
	take(f, request(0x0c, 1, 0, 2 * MTU));
	take(f, request(0x14, 3, 0, 0));
	KUNIT_EXPECT_EQ(test, owed(f), 0x0d);
	KUNIT_EXPECT_EQ(test, owed(f), 0x0f);
	KUNIT_EXPECT_EQ(test, owed(f), 0x12);
	for (int again = 0; again < 2; again++) {
		KUNIT_EXPECT_EQ(test, owed(f), 0x11);
		KUNIT_EXPECT_EQ(test, f->a.psn, PSN0);
		KUNIT_EXPECT_EQ(test, owed(f), -1);
		KUNIT_EXPECT_EQ(test, take(f, request(0x0a, 0, 8, 8)), ROAN_V_DUPLICATE);
	}
	take(f, request(0x04, 4, 8, 0));
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 4));
}

/* Nor after so many READs that the last SEND has the PSN of a new request. */
static void next__ack_after_many_reads_is_an_old_one(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);
	u32 n = 0;

	take(f, request(0x04, n++, 8, 0));
	for (u32 i = 0; i < 5; i++, n += 1 << 22) {
		take(f, request(0x0c, n, 0, MTU << 22));
		f->r.n_pending = 0;		/* as if all responses were sent */
		f->resp_res[i % 2].pending = false;
	}
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_LT(test, psn_diff(f->a.psn, psn_add(PSN0, n)), -(1 << 22));
}

static void admit__duplicate_atomic_repeats_the_result(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x14, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, owed(f), 0x12);
	KUNIT_EXPECT_EQ(test, take(f, request(0x14, 0, 0, 0)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x12);
	KUNIT_EXPECT_EQ(test, f->a.orig, 4711);
	KUNIT_EXPECT_EQ(test, take(f, request(0x13, 0, 0, 0)), ROAN_V_DROP);	/* another operation */
}

/* The number of responder resources doubles during a connection. */
static void set_resources__more_keeps_what_is_there(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);
	struct roan_resp_res more[4] = {};
	u32 i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x14, i, 0, 0)), ROAN_V_EXECUTE);
		KUNIT_EXPECT_EQ(test, owed(f), 0x12);
	}
	KUNIT_EXPECT_PTR_EQ(test, roan_responder_set_resources(&f->r, more, 4), (struct roan_resp_res *)f->resp_res);
	KUNIT_EXPECT_EQ(test, take(f, request(0x14, 0, 0, 0)), ROAN_V_DROP);	/* forgotten before */
	for (i = 1; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, take(f, request(0x14, i, 0, 0)), ROAN_V_DUPLICATE);
		KUNIT_EXPECT_EQ(test, owed(f), 0x12);
	}
	for (i = 3; i < 7; i++)
		KUNIT_EXPECT_EQ(test, take(f, request(0x14, i, 0, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x14, 7, 0, 0)), ROAN_V_INVALID);
}

static void admit__duplicate_read_within_the_first(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);
	struct roan_pkt rest = request(0x0c, 2, 0, 600 - 2 * MTU);

	take(f, request(0x0c, 0, 0, 600));
	KUNIT_EXPECT_EQ(test, owed(f), 0x0d);
	KUNIT_EXPECT_EQ(test, owed(f), 0x0e);
	KUNIT_EXPECT_EQ(test, owed(f), 0x0f);
	rest.va += 2 * MTU;
	KUNIT_EXPECT_EQ(test, take(f, rest), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 2));
	KUNIT_EXPECT_EQ(test, f->a.va, VA + 2 * MTU);
	KUNIT_EXPECT_EQ(test, f->a.len, 88);
	rest.dma_len++;
	KUNIT_EXPECT_EQ(test, take(f, rest), ROAN_V_DROP);
	rest.dma_len -= 2;
	KUNIT_EXPECT_EQ(test, take(f, rest), ROAN_V_DROP);
	rest.dma_len++;
	rest.rkey++;
	KUNIT_EXPECT_EQ(test, take(f, rest), ROAN_V_DROP);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

static void admit__forgotten_read_is_dropped(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	for (u32 n = 0; n < 3; n++) {
		take(f, request(0x0c, n, 0, 8));
		owed(f);
	}
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 8)), ROAN_V_DROP);
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 1, 0, 8)), ROAN_V_DUPLICATE);
}

static void uc__next_first_resynchronises(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture_with(test, ROAN_TP_UC, 0);

	KUNIT_EXPECT_EQ(test, take(f, request(0x20, 0, MTU, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x22, 2, 8, 0)), ROAN_V_DROP);
	KUNIT_EXPECT_EQ(test, take(f, request(0x22, 1, 8, 0)), ROAN_V_DROP);
	KUNIT_EXPECT_EQ(test, take(f, request(0x20, 9, MTU, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x22, 10, 8, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x2a, 11, 8, 4)), ROAN_V_INVALID);
	KUNIT_EXPECT_EQ(test, take(f, request(0x24, 12, 8, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_FALSE(test, f->r.nak_due);
}

static void rnr__drops_until_the_retransmission(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	KUNIT_EXPECT_EQ(test, admit(f, request(0x04, 0, 8, 0)), ROAN_V_EXECUTE);
	roan_responder_rnr(&f->r, 5);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_RNR | 5);
	KUNIT_EXPECT_EQ(test, f->a.psn, PSN0);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 1, 8, 0)), ROAN_V_DROP);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 0, 8, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 1, 8, 0)), ROAN_V_EXECUTE);
}

static void nak__refuses_and_ends(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0c, 0, 0, 8));
	admit(f, request(0x0a, 1, 8, 8));
	roan_responder_nak(&f->r, ROAN_NAK_REMOTE_ACCESS);
	KUNIT_EXPECT_EQ(test, owed(f), 0x10);	/* the response to what came before it */
	expect_nak(test, f, ROAN_NAK_REMOTE_ACCESS, 1);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 1, 8, 0)), ROAN_V_DROP);
}

static void next__nothing_overtakes_a_read(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0c, 0, 0, 300));
	take(f, request(0x14, 2, 0, 0));
	take(f, request(0x04, 3, 8, 0));
	KUNIT_EXPECT_EQ(test, owed(f), 0x0d);
	KUNIT_EXPECT_EQ(test, f->a.msn, 1);
	KUNIT_EXPECT_EQ(test, owed_syndrome(f, 4), ROAN_AETH_ACK | 5);	/* 4 credits at MSN 3: 6, code 5, at MSN 1 */
	KUNIT_EXPECT_EQ(test, owed(f), 0x0f);
	KUNIT_EXPECT_EQ(test, owed(f), 0x12);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.msn, 3);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
}

static void fail__becomes_a_nak(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0c, 0, 0, 600));
	owed(f);
	KUNIT_EXPECT_TRUE(test, roan_responder_next(&f->r, 0, &f->a));
	roan_responder_fail(&f->r, &f->a, ROAN_NAK_REMOTE_ACCESS);
	expect_nak(test, f, ROAN_NAK_REMOTE_ACCESS, 1);
}

static void set_resources__memory_may_come_with_the_first_read(struct kunit *test)
{
	const struct roan_responder_cfg cfg = { .transport = ROAN_TP_RC, .mtu_shift = 8, .max_dest_rd_atomic = 2 };
	struct resp_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct roan_pkt read = request(0x0c, 0, 0, 8), write = request(0x0a, 0, 8, 8);

	KUNIT_ASSERT_NOT_NULL(test, f);
	roan_responder_reset(&f->r, &cfg);
	write.psn = 0;
	KUNIT_EXPECT_EQ(test, take(f, write), ROAN_V_EXECUTE);
	read.psn = 1;
	roan_responder_set_resources(&f->r, f->resp_res, 2);
	KUNIT_EXPECT_EQ(test, take(f, read), ROAN_V_EXECUTE);
	read.psn = 2;
	KUNIT_EXPECT_EQ(test, take(f, read), ROAN_V_EXECUTE);
	read.psn = 3;
	KUNIT_EXPECT_EQ(test, admit(f, read), ROAN_V_INVALID);	/* a third READ, with two unanswered */
	roan_responder_reset(&f->r, &cfg);
	KUNIT_EXPECT_EQ(test, f->r.cfg.max_dest_rd_atomic, 2);	/* the memory stays */
}

/*
 * The requester has all responses and invalidates the key while a repeated READ is still being answered. The QP does
 * not fail, and later requests are acknowledged. Each further repetition of the READ gets a NAK.
 */
static void fail__too_late_to_matter(struct kunit *test)
{
	struct resp_fixture *f = resp_fixture(test);

	take(f, request(0x0c, 0, 0, 600));
	while (owed(f) != -1)
		;
	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
	KUNIT_EXPECT_EQ(test, owed(f), 0x0d);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 3, 8, 0)), ROAN_V_EXECUTE);
	KUNIT_EXPECT_TRUE(test, roan_responder_next(&f->r, 0, &f->a));
	KUNIT_EXPECT_FALSE(test, roan_responder_fail(&f->r, &f->a, ROAN_NAK_REMOTE_ACCESS));
	KUNIT_EXPECT_FALSE(test, f->r.failed);
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_NAK | ROAN_NAK_REMOTE_ACCESS);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 1));
	KUNIT_EXPECT_EQ(test, owed(f), 0x11);
	KUNIT_EXPECT_EQ(test, f->a.syndrome, ROAN_AETH_UNLIMITED);
	KUNIT_EXPECT_EQ(test, f->a.psn, psn_add(PSN0, 3));
	KUNIT_EXPECT_EQ(test, owed(f), -1);

	KUNIT_EXPECT_EQ(test, take(f, request(0x0c, 0, 0, 600)), ROAN_V_DUPLICATE);
	expect_nak(test, f, ROAN_NAK_REMOTE_ACCESS, 0);
	KUNIT_EXPECT_EQ(test, owed(f), -1);
	KUNIT_EXPECT_EQ(test, take(f, request(0x04, 4, 8, 0)), ROAN_V_EXECUTE);
}

static struct kunit_case responder_cases[] = {
	KUNIT_CASE(admit__message_of_three_packets),
	KUNIT_CASE(admit__what_breaks_a_rule),
	KUNIT_CASE(admit__send_of_more_than_2_31_bytes),
	KUNIT_CASE(admit__atomics_are_aligned),
	KUNIT_CASE(set_resources__memory_may_come_with_the_first_read),
	KUNIT_CASE(admit__no_resources_no_read),
	KUNIT_CASE(admit__what_the_qp_does_not_allow),
	KUNIT_CASE(admit__more_reads_than_agreed),
	KUNIT_CASE(admit__without_resources_no_read),
	KUNIT_CASE(admit__new_read_takes_a_repeated_ones_resource),
	KUNIT_CASE(admit__gap_is_reported_once),
	KUNIT_CASE(admit__kept_packets_are_acknowledged_at_once),
	KUNIT_CASE(stop__acknowledges_what_was_executed),
	KUNIT_CASE(stop__acknowledges_what_no_response_has),
	KUNIT_CASE(admit__next_gap_is_reported_when_the_first_is_filled),
	KUNIT_CASE(admit__reordered_packet_cancels_the_nak),
	KUNIT_CASE(admit__not_everything_early_is_kept),
	KUNIT_CASE(admit__late_nak_names_the_present_gap),
	KUNIT_CASE(admit__duplicate_send_is_acknowledged),
	KUNIT_CASE(next__ack_never_names_a_read),
	KUNIT_CASE(next__ack_after_many_reads_is_an_old_one),
	KUNIT_CASE(admit__duplicate_atomic_repeats_the_result),
	KUNIT_CASE(set_resources__more_keeps_what_is_there),
	KUNIT_CASE(admit__duplicate_read_within_the_first),
	KUNIT_CASE(admit__forgotten_read_is_dropped),
	KUNIT_CASE(uc__next_first_resynchronises),
	KUNIT_CASE(rnr__drops_until_the_retransmission),
	KUNIT_CASE(nak__refuses_and_ends),
	KUNIT_CASE(next__nothing_overtakes_a_read),
	KUNIT_CASE(fail__becomes_a_nak),
	KUNIT_CASE(fail__too_late_to_matter),
	{}
};

static struct kunit_suite responder_suite = {
	.name = "responder",
	.test_cases = responder_cases,
};

kunit_test_suite(responder_suite);
