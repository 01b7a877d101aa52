// SPDX-License-Identifier: GPL-2.0
/* What is sent again after a SACK: what is lost, once for each loss. Reordering: requester_reorder_test.c. */
#include "requester_sack_fixture.h"

/* Holes 3, 5 and 6 of 10: each is sent once, then new packets. Further SACKs that say the same change nothing. */
static void sack__each_hole_once(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x39), ROAN_EV_REPAIR);		/* 4, 7, 8, 9 */
	KUNIT_EXPECT_EQ(test, f->r.una_psn, psn_add(PSN0, 3));
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x39), ROAN_EV_REPAIR);		/* two are left to be sent */
	expect_packet(test, f, 5, true);
	expect_packet(test, f, 6, true);
	expect_packet(test, f, 10, false);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x39), ROAN_EV_PROGRESS);
	KUNIT_EXPECT_EQ(test, sack(f, 5, 0xe), ROAN_EV_PROGRESS);
	expect_packet(test, f, 11, false);
	ack(f, 11);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 3);
	KUNIT_EXPECT_EQ(test, f->r.n_seq_naks, 1);
	KUNIT_EXPECT_FALSE(test, f->r.any_holes);
}

/* A packet behind the highest one received may be on its way. */
static void sack__nothing_behind_the_highest(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	sack(f, 3, 0x1);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 10, false);
}

/* Packet 10 was sent after the copy of 3 and was received, so that copy is lost, too. */
static void sack__lost_copy_is_sent_again(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	sack(f, 3, 0x1);
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x3f), ROAN_EV_PROGRESS);	/* 4 to 9: sent before the copy */
	expect_packet(test, f, 10, false);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x7f), ROAN_EV_REPAIR);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 11, false);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 2);
}

/* What is acknowledged meanwhile is not sent again. */
static void sack__acknowledged_is_not_sent(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	sack(f, 3, 0x4);		/* 3, 4 and 5 are missing */
	ack(f, 4);
	expect_packet(test, f, 5, true);
	expect_packet(test, f, 10, false);
	sack(f, 5, 0x4);		/* 6 and 7, which had been late, are not sent a second time */
	ack(f, 10);
	expect_packet(test, f, 11, false);
	KUNIT_EXPECT_FALSE(test, f->r.any_holes);
}

/* A SACK that was overtaken by a newer one makes nothing missing that the newer one says is received. */
static void sack__older_one_changes_nothing(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 20);
	int i;

	sack(f, 3, 0x2f);		/* 4 to 7 and 9 are received, 8 is not */
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 8, true);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, sack(f, 3, 0x1), ROAN_EV_PROGRESS);
		KUNIT_EXPECT_EQ(test, sack(f, 3, 0x27), ROAN_EV_PROGRESS);
		KUNIT_EXPECT_EQ(test, sack(f, 3, 0x2f), ROAN_EV_PROGRESS);
	}
	expect_packet(test, f, 20, false);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 2);
	KUNIT_EXPECT_EQ(test, f->r.n_seq_naks, 1);
}

/* The longest message has as many packets as there are PSNs between two that can be compared. */
static void sack__last_packet_of_the_longest_message(struct kunit *test)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;
	u32 last = (1u << 23) - 1;

	cfg.sack = true;
	f = req_fixture_with(test, cfg);
	f->holes.any_lost = true;
	post(f, ROAN_OP_WRITE, 1u << 31);
	send_one(f);
	f->r.una_psn = psn_add(PSN0, last - 2);		/* as if all before were acknowledged */
	f->r.next_psn = f->r.una_psn;
	f->r.end_psn = f->r.una_psn;
	KUNIT_EXPECT_EQ(test, send_all(f), 3);
	KUNIT_EXPECT_EQ(test, sack(f, last - 2, 0x1), ROAN_EV_REPAIR);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, last - 2));
	KUNIT_EXPECT_NE(test, send_one(f), ROAN_NEXT_PACKET);
	f->r.peer_sacks = true;
	roan_rtt_sample(&f->r.rtt, 20000);
	ack(f, last - 1);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, last));
}

/* A work request failed here: the packets that were sent of others are repeated from the missing one on. */
static void sack__after_a_local_failure(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 48);

	post(f, ROAN_OP_WRITE, MTU);
	roan_requester_fail(&f->r, 1, ROAN_ST_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, sack(f, 44, 0x1), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, send_all(f), 4);
}

/* Each of these claims what cannot be, or comes from a peer that has not agreed. */
static void sack__implausible_is_ignored(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);
	struct roan_pkt pkt = {
		.info = roan_opcode(ROAN_OPCODE_SACK), .opcode = ROAN_OPCODE_SACK, .psn = psn_add(PSN0, 3),
		.syndrome = ROAN_AETH_ACK | ROAN_AETH_UNLIMITED, .sack = { .highest_psn = psn_add(PSN0, 9), .received = { 0x20 } },
	};

	KUNIT_EXPECT_EQ(test, roan_requester_sacked(&f->r, &pkt, f->now), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x40), ROAN_EV_NOTHING);		/* 10 was not sent */
	KUNIT_EXPECT_EQ(test, sack(f, 11, 0x1), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0), ROAN_EV_NOTHING);
	pkt.ext_version = ROAN_EXT_VERSION;
	pkt.sack.received[0] = 0x61;		/* more than the highest */
	KUNIT_EXPECT_EQ(test, roan_requester_sacked(&f->r, &pkt, f->now), ROAN_EV_NOTHING);
	pkt.sack.highest_psn = psn_add(PSN0, 3);
	pkt.sack.received[0] = 0;
	KUNIT_EXPECT_EQ(test, roan_requester_sacked(&f->r, &pkt, f->now), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, f->r.una_psn, PSN0);
	ack(f, 5);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x1), ROAN_EV_NOTHING);		/* backwards */
	f->r.cfg.sack = false;
	KUNIT_EXPECT_EQ(test, sack(f, 6, 0x1), ROAN_EV_NOTHING);
	KUNIT_EXPECT_EQ(test, f->r.n_stale, 8);
	expect_packet(test, f, 10, false);
}

/* Responses with any PSN can be forged: what they say about the peer, and when they come, does not count. */
static void sack__version_of_stale_acks_is_ignored(struct kunit *test)
{
	struct req_fixture *f = sent(test, 10);
	u64 deadline;

	ack(f, 1);
	KUNIT_EXPECT_TRUE(test, f->r.peer_sacks);
	f->r.cfg.sack = false;			/* answer() then has version 0 */
	KUNIT_EXPECT_EQ(test, ack(f, PSN_MASK - 3000000), ROAN_EV_NOTHING);
	KUNIT_EXPECT_TRUE(test, f->r.peer_sacks);
	f->r.cfg.sack = true;
	roan_rtt_sample(&f->r.rtt, 20000);
	deadline = roan_requester_deadline(&f->r);
	f->now += 1000;
	KUNIT_EXPECT_EQ(test, respond(f, 0x10, PSN_MASK - 3000000, MTU), ROAN_RESP_STALE);
	KUNIT_EXPECT_EQ(test, respond(f, 0x10, 3000000, MTU), ROAN_RESP_STALE);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), deadline);
	KUNIT_EXPECT_EQ(test, respond(f, 0x10, 0, MTU), ROAN_RESP_STALE);	/* a late copy: the peer is there */
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), deadline + 1000);
}

/* The round trip is measured although an earlier packet is missing; not if the timed packet is missing itself. */
static void sack__gives_rtt_samples(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	f->r.timed_at = f->now;
	f->r.timed_psn = psn_add(PSN0, 5);
	f->now += 20000;
	sack(f, 3, 0x1);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
	sack(f, 3, 0x3);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 20000);
	f->r.timed_at = f->now;
	f->r.timed_psn = psn_add(PSN0, 6);
	sack(f, 3, 0xb);
	KUNIT_EXPECT_EQ(test, f->r.timed_at, 0);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
}

/*
 * Without a round trip measured, that of a copy is, whatever SACKs come meanwhile; only one copy is timed. A time-out
 * leaves the timed packet alone, if it is another one: the time-out may have been too short.
 */
static void sack__rtt_under_lasting_loss(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	f->r.timed_psn = psn_add(PSN0, 3);	/* lost: the answer to a later one took no longer */
	f->r.timed_at = f->now;
	f->now += 20000;
	sack(f, 3, 0x2);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, 20000);
	KUNIT_EXPECT_EQ(test, roan_requester_take_rtt(&f->r), 0);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 4, true);
	f->r.timed_psn = psn_add(PSN0, 6);	/* also lost, but a sample is known */
	f->r.timed_at = f->now;
	f->now += 10000;
	sack(f, 6, 0x2);
	KUNIT_EXPECT_EQ(test, f->r.rtt.srtt_ns, 20000);
	KUNIT_EXPECT_EQ(test, f->r.timed_at, 0);
	expect_packet(test, f, 6, true);
	ack(f, 9);
	f->r.since_ackreq = 0;
	f->r.peer_sacks = true;
	expect_packet(test, f, 10, false);
	expect_packet(test, f, 11, false);
	f->r.since_ackreq = 0;
	f->r.timed_at = f->now;
	f->r.timed_psn = psn_add(PSN0, 10);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	KUNIT_EXPECT_NE(test, f->r.timed_at, 0);
	expect_packet(test, f, 11, true);
	ack(f, 10);
	KUNIT_EXPECT_GT(test, roan_requester_take_rtt(&f->r), 20000);
}

/* The last packets are lost, and nothing shows it: after a while the last one is sent again, then all that it shows. */
static void sack__tail_loss(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	know_rtt(f);
	ack(f, 6);
	KUNIT_EXPECT_EQ(test, roan_requester_deadline(&f->r), f->now + ROAN_RTO_MIN_NS);
	f->r.since_ackreq = 0;			/* packet 9 had AckReq */
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_LT(test, f->now, 1000 + (u64)ROAN_RTO_MIN_NS);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 9, true);
	KUNIT_EXPECT_FALSE(test, f->e.copy);			/* it may have arrived */
	KUNIT_EXPECT_EQ(test, sack(f, 7, 0x2), ROAN_EV_REPAIR);
	expect_packet(test, f, 7, true);
	KUNIT_EXPECT_TRUE(test, f->e.copy);
	expect_packet(test, f, 8, true);
	ack(f, 9);
	KUNIT_EXPECT_EQ(test, f->r.repair_backoff, 0);
	expect_packet(test, f, 10, false);
}

/* Sends packet @n, the last one for now, with AckReq. Returns how long its answer is awaited, in ns. */
static u64 wait_for_the_last(struct kunit *test, struct req_fixture *f, u32 n)
{
	expect_packet(test, f, n, false);
	f->r.since_ackreq = 0;
	return roan_requester_deadline(&f->r) - f->now;
}

/* While nothing is lost the last packet has a millisecond; for a second after a loss it has two round trips. */
static void sack__quiet_path_waits_longer(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);
	u64 two_trips;

	know_rtt(f);
	two_trips = roan_rtt_repair_ns(&f->r.rtt);
	f->now += 10ull * NSEC_PER_SEC;
	ack(f, 9);
	KUNIT_EXPECT_EQ(test, wait_for_the_last(test, f, 10), NSEC_PER_MSEC);
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	expect_packet(test, f, 10, true);
	ack(f, 10);
	KUNIT_EXPECT_EQ(test, wait_for_the_last(test, f, 11), two_trips);
	f->now += 2ull * NSEC_PER_SEC;
	ack(f, 11);
	KUNIT_EXPECT_EQ(test, wait_for_the_last(test, f, 12), NSEC_PER_MSEC);
	ack(f, 12);
	f->r.holes = NULL;			/* nothing was ever lost */
	KUNIT_EXPECT_EQ(test, wait_for_the_last(test, f, 13), NSEC_PER_MSEC);
}

/* Without an answer the copies are sent again, ever later, and the RTO and the ACK timeout remain. */
static void sack__no_answer(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 48);
	u64 began, wait = 0;
	int i;

	know_rtt(f);
	sack(f, 3, 0x4);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 4, true);
	expect_packet(test, f, 5, true);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
		began = f->now;
		f->now = roan_requester_deadline(&f->r);
		KUNIT_EXPECT_GT(test, f->now - began, wait);
		wait = f->now - began;
		KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
		expect_packet(test, f, 3, true);
		expect_packet(test, f, 4, true);
		expect_packet(test, f, 5, true);
	}
	f->now = roan_requester_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_EXPECT_EQ(test, f->r.n_timeouts + f->r.rto_backoff, 1);
	expect_packet(test, f, 3, true);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	KUNIT_EXPECT_EQ(test, sack(f, 5, 0x3), ROAN_EV_REPAIR);		/* ends the RTO's probe */
	expect_packet(test, f, 5, true);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
}

/* Without memory for holes a SACK counts as a sequence NAK, and the timer changes nothing but its backoff. */
static void sack__without_memory(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 10);

	know_rtt(f);
	f->r.holes = NULL;
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x39), ROAN_EV_RETRY);
	expect_packet(test, f, 3, true);
	expect_packet(test, f, 10, false);
	KUNIT_EXPECT_EQ(test, sack(f, 3, 0x39), ROAN_EV_NOTHING);	/* once for each gap */
	KUNIT_EXPECT_FALSE(test, f->r.any_holes);
	ack(f, 10);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 1);
}

/* The last packet had no AckReq, as more of the message was to follow: the next one to end a burst still needs it. */
static void sacked__while_probing_remembers_that_the_tail_has_no_ackreq(struct kunit *test)
{
	struct req_fixture *f = sent(test, 3);

	know_rtt(f);
	f->r.peer_sacks = false;	/* an RTO, not the deadline of a SACK */
	f->now = roan_requester_deadline(&f->r);
	KUNIT_ASSERT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_RETRY);
	KUNIT_ASSERT_TRUE(test, f->r.rto_probe);
	expect_packet(test, f, 0, true);
	sack(f, 0, 0x1);
	KUNIT_EXPECT_FALSE(test, f->r.rto_probe);
	KUNIT_EXPECT_EQ(test, f->r.next_psn, f->r.end_psn);
	KUNIT_EXPECT_NE(test, f->r.since_ackreq, 0u);
}

static struct kunit_case requester_sack_cases[] = {
	KUNIT_CASE(sacked__while_probing_remembers_that_the_tail_has_no_ackreq),
	KUNIT_CASE(sack__each_hole_once),
	KUNIT_CASE(sack__nothing_behind_the_highest),
	KUNIT_CASE(sack__lost_copy_is_sent_again),
	KUNIT_CASE(sack__acknowledged_is_not_sent),
	KUNIT_CASE(sack__older_one_changes_nothing),
	KUNIT_CASE(sack__last_packet_of_the_longest_message),
	KUNIT_CASE(sack__after_a_local_failure),
	KUNIT_CASE(sack__implausible_is_ignored),
	KUNIT_CASE(sack__version_of_stale_acks_is_ignored),
	KUNIT_CASE(sack__gives_rtt_samples),
	KUNIT_CASE(sack__rtt_under_lasting_loss),
	KUNIT_CASE(sack__tail_loss),
	KUNIT_CASE(sack__quiet_path_waits_longer),
	KUNIT_CASE(sack__no_answer),
	KUNIT_CASE(sack__without_memory),
	{}
};

static struct kunit_suite requester_sack_suite = {
	.name = "requester_sack",
	.test_cases = requester_sack_cases,
};

kunit_test_suite(requester_sack_suite);
