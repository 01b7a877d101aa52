// SPDX-License-Identifier: GPL-2.0
/* Several paths of a QP: kernel/core/transport/requester_paths.c. */
#include "requester_sack_fixture.h"

#define TRAIN	4

/* @n packets of one WRITE are sent, of 48, over @n_paths paths. */
static struct req_fixture *sent_by_paths(struct kunit *test, u32 n_paths, u32 n)
{
	struct roan_requester_cfg cfg = rc;
	struct req_fixture *f;

	cfg.sack = true;
	cfg.mtu_shift = SACK_MTU_SHIFT;
	f = req_fixture_with(test, cfg);
	f->r.paths = kunit_kzalloc(test, sizeof(*f->r.paths), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->r.paths);
	f->r.paths->n = n_paths;
	f->r.min_rtt = kunit_kzalloc(test, sizeof(*f->r.min_rtt), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->r.min_rtt);
	roan_requester_reset(&f->r, &cfg);
	f->r.peer_sacks = true;
	post(f, ROAN_OP_WRITE, 48 << SACK_MTU_SHIFT);
	while (n--)
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	return f;
}

static u8 path_of(const struct req_fixture *f, u32 n)
{
	return f->r.paths->path_of[psn_add(PSN0, n) % ROAN_PATH_PSNS];
}

/* Packets @from to @to are received in order, @us after the last ones. */
static void received(struct req_fixture *f, u32 from, u32 to, u32 us)
{
	f->now += us * NSEC_PER_USEC;
	for (; from <= to; from++)
		ack(f, from);
}

static void next__uses_one_path_until_the_peer_sends_sacks(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 8, 0);
	u32 i;

	f->r.peer_sacks = false;
	for (i = 0; i < 3 * TRAIN; i++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.path, 0);
	}
	f->r.peer_sacks = true;
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_NE(test, f->e.path, 0);
}

static void next__changes_the_path_after_each_train(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 4, 4 * TRAIN);
	u32 i, used = 0;

	for (i = 0; i < 4 * TRAIN; i++) {
		KUNIT_EXPECT_EQ(test, path_of(f, i), path_of(f, i / TRAIN * TRAIN));
		used |= 1u << path_of(f, i);
	}
	KUNIT_EXPECT_EQ(test, used, 0xfu);
}

/* What this host has dropped is in flight by no path, and is sent again. */
static void unsent__is_not_in_flight(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 2 * TRAIN);
	u32 of_second = path_of(f, TRAIN), sent = f->r.paths->path[of_second].last_sent;

	KUNIT_EXPECT_EQ(test, f->r.paths->n_in_flight, 2u * TRAIN);
	KUNIT_ASSERT_TRUE(test, roan_requester_unsent(&f->r, psn_add(PSN0, TRAIN)));
	KUNIT_EXPECT_EQ(test, f->r.paths->n_in_flight, TRAIN);
	KUNIT_EXPECT_EQ(test, f->r.paths->path[of_second].in_flight, 0);
	KUNIT_EXPECT_EQ(test, (u16)(sent - f->r.paths->path[of_second].last_sent), TRAIN);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, TRAIN));
}

static void batch_count__ends_with_the_train(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 4, 1);

	KUNIT_ASSERT_EQ(test, roan_requester_next(&f->r, f->now, &f->e), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, roan_requester_batch_count(&f->r, &f->e, 15), TRAIN - 2u);
}

/* Packets 0 to 3 went by one path, 4 to 7 by another, 8 to 11 by the first. */
static void sacked__counts_packets_of_the_same_path_only(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 3 * TRAIN);

	f->holes.any_lost = true;
	KUNIT_ASSERT_EQ(test, path_of(f, 0), path_of(f, 2 * TRAIN));
	KUNIT_ASSERT_NE(test, path_of(f, 0), path_of(f, TRAIN));
	sack(f, 0, 0x78);		/* 4 to 7 are received */
	KUNIT_EXPECT_FALSE(test, f->r.repair_left);
	sack(f, 0, 0xf8);		/* and 8 */
	KUNIT_EXPECT_TRUE(test, f->r.repair_left);
	expect_packet(test, f, 0, true);
	expect_packet(test, f, 1, true);
}

/* The copies leave 200 us later (pacer_edt), or another CPU sent them after the time that this one has. */
static void sacked__waits_for_copies_that_have_not_left(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 3 * TRAIN);
	u32 n;

	f->holes.any_lost = true;
	f->r.paths->rtt_ns = 20000;
	f->r.paths->max_rtt_ns = 20000;
	sack(f, 0, 0xf8);		/* 4 to 8 are received */
	for (n = 0; f->r.repair_left; n++) {
		KUNIT_ASSERT_EQ(test, roan_requester_next(&f->r, f->now, &f->e), ROAN_NEXT_PACKET);
		roan_requester_sent(&f->r, &f->e, f->now + 200000);
	}
	KUNIT_EXPECT_EQ(test, n, (u32)TRAIN);
	f->now += 20000;
	sack(f, 0, 0x1f8);		/* and 9 */
	KUNIT_EXPECT_FALSE(test, f->r.repair_left);
	KUNIT_EXPECT_LT(test, roan_requester_reorder_deadline(&f->r), f->now + 200000 + 100000);
}

static void sacked__takes_a_packet_as_lost_when_all_others_would_have_arrived(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 2 * TRAIN);
	u8 failed = path_of(f, TRAIN);
	u64 at;

	received(f, 0, TRAIN - 1, 20);	/* 20 us by one path */
	while (send_one(f) == ROAN_NEXT_PACKET)
		;
	f->now += 15 * NSEC_PER_USEC;
	sack(f, TRAIN, 0x8);		/* 8 is received, by the path of 0 */
	KUNIT_EXPECT_EQ(test, path_of(f, 2 * TRAIN), path_of(f, 0));
	KUNIT_EXPECT_FALSE(test, f->r.repair_left);
	at = roan_requester_reorder_deadline(&f->r);
	KUNIT_ASSERT_LE(test, at, f->now + 100 * NSEC_PER_USEC);
	f->now = at;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	KUNIT_EXPECT_TRUE(test, f->r.paths->path[failed].failed);
	expect_packet(test, f, TRAIN, true);
	KUNIT_EXPECT_NE(test, f->e.path, failed);
}

/* The same, but the path has delivered something to another CPU, which read the clock after this one. */
static void sacked__path_that_delivered_to_another_cpu_has_not_failed(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 2 * TRAIN);
	struct roan_path *path = &f->r.paths->path[path_of(f, TRAIN)];

	received(f, 0, TRAIN - 1, 20);
	while (send_one(f) == ROAN_NEXT_PACKET)
		;
	f->now += 15 * NSEC_PER_USEC;
	sack(f, TRAIN, 0x8);
	f->now = roan_requester_reorder_deadline(&f->r);
	path->received_at = f->now + 1000;
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	KUNIT_EXPECT_FALSE(test, path->failed);
	KUNIT_EXPECT_EQ(test, f->r.paths->n_failed, 0u);
}

static void next__sends_single_packets_by_a_failed_path(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 0);
	struct roan_paths *p = f->r.paths;
	u32 i, by[2] = {};

	p->path[1].failed = true;
	p->n_failed = 1;
	p->probe_at = f->now;
	p->rtt_ns = p->max_rtt_ns = 20000;
	for (i = 0; i < 5 * TRAIN; i++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		by[f->e.path]++;
	}
	KUNIT_EXPECT_EQ(test, by[1], 1u);
	KUNIT_EXPECT_GT(test, p->probe_at, f->now + 20000);
	for (i = 0; path_of(f, i) != 1; i++)
		;
	received(f, 0, i, 20);
	KUNIT_EXPECT_FALSE(test, p->path[1].failed);
	KUNIT_EXPECT_EQ(test, p->n_failed, 0u);
}

/* With pacer_edt packets are handed over up to 200 us before they leave. */
static void next__path_whose_packets_leave_later_is_in_use(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 4, 0);
	u32 i;

	f->r.paths->rtt_ns = 20000;
	for (i = 0; i < 8 * TRAIN; i++) {
		KUNIT_ASSERT_EQ(test, roan_requester_next(&f->r, f->now, &f->e), ROAN_NEXT_PACKET);
		roan_requester_sent(&f->r, &f->e, f->now + 200000);
		KUNIT_EXPECT_EQ(test, path_of(f, i), path_of(f, i / TRAIN * TRAIN));
		KUNIT_EXPECT_GT(test, f->r.paths->path[f->e.path].share, 16u);
	}
	received(f, 0, 0, 100);		/* it left early all the same */
	KUNIT_EXPECT_EQ(test, f->r.paths->rtt_ns, 20000u);
	KUNIT_EXPECT_EQ(test, f->r.paths->max_rtt_ns, 0u);
}

static void next__waits_when_the_window_is_full(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 0);
	bool ackreq = false;
	u32 n;

	f->r.paths->window.size = 10 * 256;
	for (n = 0; send_one(f) == ROAN_NEXT_PACKET; n++)
		ackreq = f->e.ackreq;
	KUNIT_EXPECT_EQ(test, n, 10u);
	KUNIT_EXPECT_TRUE(test, ackreq);
	received(f, 0, 1, 20);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
}

/* The second path takes five times as long. */
static void received__lowers_the_share_of_a_slow_path(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 0);
	struct roan_paths *p = f->r.paths;
	u32 i, n, from;
	u8 slow = 1;

	for (i = 0; i < 5; i++) {
		for (n = 0, from = f->r.next_psn - PSN0; n < 2 * TRAIN; n++)
			KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		for (n = from & PSN_MASK; n < (from & PSN_MASK) + 2 * TRAIN; n++)
			if (path_of(f, n) == slow)
				p->sent_at[psn_add(PSN0, n) % ROAN_PATH_PSNS] -= 80 * NSEC_PER_USEC;
		received(f, from & PSN_MASK, (from & PSN_MASK) + 2 * TRAIN - 1, 20);
	}
	KUNIT_EXPECT_LT(test, p->path[slow].share, p->path[!slow].share);
}

/* A round trip of 200 us is an excess if another QP has measured 20 us to the same peer, and none otherwise. */
static void received__compares_with_the_peers_shortest_round_trip(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 16);
	struct roan_paths *p = f->r.paths;

	p->window.size = 200 * 256;
	received(f, 0, 0, 200);
	KUNIT_EXPECT_EQ(test, f->r.min_rtt->ns, 200u * NSEC_PER_USEC);
	KUNIT_EXPECT_GT(test, p->window.size, 200u * 256);
	f->r.min_rtt->ns = 20 * NSEC_PER_USEC;
	p->window.size = 200 * 256;
	p->window.psn = PSN0;
	received(f, 1, 1, 0);
	KUNIT_EXPECT_EQ(test, f->r.min_rtt->ns, 20u * NSEC_PER_USEC);
	KUNIT_EXPECT_LT(test, p->window.size, 200u * 256);
}

static void min_rtt__time_of_another_cpu(struct kunit *test)
{
	struct roan_min_rtt min_rtt = {};
	u64 now = 5ull << 20;

	roan_min_rtt_sample(&min_rtt, 20000, now);
	roan_min_rtt_sample(&min_rtt, 90000, now - 1000);
	KUNIT_EXPECT_EQ(test, min_rtt.ns, 20000u);
	roan_min_rtt_sample(&min_rtt, 90000, now + 9 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, min_rtt.ns, 20000u);
	roan_min_rtt_sample(&min_rtt, 90000, now + 11 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, min_rtt.ns, 90000u);
}

/* The smaller the window, the longer a round trip may take before it is an excess. */
static void received__lets_a_small_window_grow(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 16);
	struct roan_paths *p = f->r.paths;

	f->r.min_rtt->ns = 20 * NSEC_PER_USEC;
	p->window.size = 70 * 256;
	p->window.psn = PSN0;
	received(f, 0, 0, 90);
	KUNIT_EXPECT_GT(test, p->window.size, 70u * 256);
	p->window.size = 250 * 256;
	p->window.psn = PSN0;
	received(f, 1, 1, 0);
	KUNIT_EXPECT_LT(test, p->window.size, 250u * 256);
}

/* The window was last reduced three quarters of all PSNs ago. */
static void received__reduces_the_window_after_a_long_time(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 16);
	struct roan_paths *p = f->r.paths;

	f->r.min_rtt->ns = 20 * NSEC_PER_USEC;
	p->window.size = 200 * 256;
	p->window.psn = psn_add(PSN0, PSN_MASK / 4);
	received(f, 0, 0, 200);
	KUNIT_EXPECT_LT(test, p->window.size, 200u * 256);
}

/* A quarter of the window is acknowledged at a time: more would leave in one burst when it is. */
static void next__asks_for_an_ack_each_quarter_of_the_window(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 0);
	u32 n;

	f->r.paths->window.size = 32 * 256;
	for (n = 1; n <= 16; n++) {
		KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
		KUNIT_EXPECT_EQ(test, f->e.ackreq, n % 8 == 0);
	}
}

static void reset__keeps_the_window_of_psns_small(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 2, 0);
	struct roan_requester_cfg cfg = f->r.cfg;

	cfg.psn_window = 65536;
	roan_requester_reset(&f->r, &cfg);
	KUNIT_EXPECT_EQ(test, f->r.cfg.psn_window, (u32)ROAN_PATH_PSNS);
}

/* As the driver half does after the first SACK of a QP with one path. */
static void set_paths__limits_packets_in_flight(struct kunit *test)
{
	struct req_fixture *f = sent(test, 3);
	struct roan_paths *p = kunit_kzalloc(test, roan_paths_size(1), GFP_KERNEL);
	struct roan_min_rtt min_rtt = {};
	u32 n;

	KUNIT_ASSERT_NOT_NULL(test, p);
	f->r.min_rtt = &min_rtt;
	f->r.peer_sacks = true;
	roan_requester_set_paths(&f->r, p);
	KUNIT_EXPECT_EQ(test, p->n_in_flight, 0u);	/* those sent before are not known */
	p->window.size = 4 * 256;
	for (n = 0; send_one(f) == ROAN_NEXT_PACKET; n++)
		KUNIT_EXPECT_EQ(test, f->e.path, 0);
	KUNIT_EXPECT_EQ(test, n, 4u);
	sack(f, 0, 0x3c);		/* 3 to 6 are received */
	KUNIT_EXPECT_EQ(test, p->n_in_flight, 0u);
	KUNIT_EXPECT_GT(test, p->window.size, 4u * 256);
}

/* With one path all packets keep their order, whatever the time: as without struct roan_paths. */
static void set_paths__leaves_loss_to_reordering(struct kunit *test)
{
	struct req_fixture *f = sent_after_loss(test, 1);
	struct roan_paths *p = kunit_kzalloc(test, roan_paths_size(1), GFP_KERNEL);
	struct roan_min_rtt min_rtt = {};

	KUNIT_ASSERT_NOT_NULL(test, p);
	f->r.min_rtt = &min_rtt;
	f->r.peer_sacks = true;
	roan_requester_set_paths(&f->r, p);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	f->now += 20 * NSEC_PER_USEC;
	sack(f, 0, 0x1);
	expect_packet(test, f, 0, true);
	KUNIT_EXPECT_FALSE(test, p->path[0].failed);
	KUNIT_EXPECT_EQ(test, p->n, 1u);
}

enum { FIRST = 0x0d, MIDDLE, LAST, ONLY };	/* opcodes of READ responses */

/* A READ of 16 packets over @n_paths paths. A window has 64, and 8 requests may be outstanding: so it needs two. */
static struct req_fixture *read_by_paths(struct kunit *test, u32 n_paths)
{
	struct req_fixture *f = sent_by_paths(test, n_paths, 48);

	f->r.cfg.max_rd_atomic = 8;
	ack(f, 47);
	KUNIT_ASSERT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	post(f, ROAN_OP_READ, 16 << SACK_MTU_SHIFT);
	return f;
}

/* Responses @from to @to of the READ, all of a request. */
static void responded(struct req_fixture *f, u32 from, u32 to)
{
	u32 n;

	respond(f, from == to ? ONLY : FIRST, 48 + from, 1 << SACK_MTU_SHIFT);
	for (n = from + 1; n < to; n++)
		respond(f, MIDDLE, 48 + n, 1 << SACK_MTU_SHIFT);
	if (from != to)
		respond(f, LAST, 48 + to, 1 << SACK_MTU_SHIFT);
}

static void read__gives_each_request_a_path(struct kunit *test)
{
	struct req_fixture *f = read_by_paths(test, 4);

	KUNIT_EXPECT_EQ(test, send_all(f), 2);
	KUNIT_EXPECT_EQ(test, f->e.npsn, 8);
	KUNIT_EXPECT_EQ(test, f->e.offset, 8 << SACK_MTU_SHIFT);
	KUNIT_EXPECT_NE(test, path_of(f, 48), path_of(f, 56));
	KUNIT_EXPECT_EQ(test, f->r.paths->n_awaited, 16);
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 2);
	responded(f, 8, 15);		/* the second request is answered first */
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	responded(f, 0, 7);
	KUNIT_EXPECT_EQ(test, retired(f), ROAN_ST_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->r.n_resent, 0);
	KUNIT_EXPECT_EQ(test, f->r.paths->n_awaited, 0);
	KUNIT_EXPECT_EQ(test, f->r.rd_outstanding, 0);
}

/* The last response shows what is missing of its request; of another one, only the time does. */
static void read__is_lost_when_it_was_overtaken_on_its_path(struct kunit *test)
{
	struct req_fixture *f = read_by_paths(test, 4);
	u8 failed;

	send_all(f);
	failed = path_of(f, 48);
	f->now += 20 * NSEC_PER_USEC;
	respond(f, FIRST, 56, 1 << SACK_MTU_SHIFT);
	respond(f, LAST, 63, 1 << SACK_MTU_SHIFT);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 57));
	KUNIT_EXPECT_EQ(test, f->e.npsn, 6);
	KUNIT_EXPECT_NE(test, f->e.path, failed);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
	f->now = roan_requester_reorder_deadline(&f->r);
	KUNIT_EXPECT_EQ(test, roan_requester_timer(&f->r, f->now), ROAN_EV_REPAIR);
	KUNIT_ASSERT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, 48));
	KUNIT_EXPECT_EQ(test, f->e.npsn, 8);
	KUNIT_EXPECT_TRUE(test, f->r.paths->path[failed].failed);
	KUNIT_EXPECT_NE(test, f->e.path, failed);
}

/* With pacer_edt the request was to leave 200 us later, but the interface has a queue that does not wait. */
static void read__answered_before_it_was_to_leave_gives_no_sample(struct kunit *test)
{
	struct req_fixture *f = read_by_paths(test, 4);
	struct roan_paths *p = f->r.paths;
	u32 window = p->read_window.size;

	KUNIT_ASSERT_EQ(test, roan_requester_next(&f->r, f->now, &f->e), ROAN_NEXT_PACKET);
	roan_requester_sent(&f->r, &f->e, f->now + 200 * NSEC_PER_USEC);
	f->now += 20 * NSEC_PER_USEC;
	responded(f, 0, 7);
	KUNIT_EXPECT_EQ(test, p->max_read_ns, 0u);
	KUNIT_EXPECT_EQ(test, p->min_read.ns, 0u);
	KUNIT_EXPECT_EQ(test, p->read_window.size, window);
	KUNIT_EXPECT_EQ(test, p->n_awaited, 0u);
}

static void read__waits_when_the_window_is_full(struct kunit *test)
{
	struct req_fixture *f = read_by_paths(test, 4);

	f->r.paths->read_window.size = 8 * ROAN_WINDOW_ONE;
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_WAIT);
	respond(f, FIRST, 48, 1 << SACK_MTU_SHIFT);	/* soon: the window grows */
	KUNIT_EXPECT_GT(test, f->r.paths->read_window.size, 8 * ROAN_WINDOW_ONE);
	f->r.paths->read_window.size = 64 * ROAN_WINDOW_ONE;
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
}

/* So many WRITEs came since the last READ that the numbers of packets have wrapped: a response is still on its way. */
static void read__is_not_overtaken_by_an_old_one(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 1, 0);
	u32 n;

	f->r.start_window = f->r.cfg.psn_window;
	send_all(f);
	for (n = 47; f->r.paths->path[0].last_sent < S16_MAX + 1000; n += 48) {
		ack(f, n);
		KUNIT_ASSERT_EQ(test, retired(f), ROAN_ST_SUCCESS);
		post(f, ROAN_OP_WRITE, 48 << SACK_MTU_SHIFT);
		KUNIT_ASSERT_EQ(test, send_all(f), 48);
	}
	ack(f, n);
	post(f, ROAN_OP_READ, 4 << SACK_MTU_SHIFT);
	KUNIT_ASSERT_EQ(test, send_all(f), 1);
	respond(f, FIRST, n + 1, 1 << SACK_MTU_SHIFT);
	respond(f, MIDDLE, n + 3, 1 << SACK_MTU_SHIFT);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);	/* the last one shows that the second is lost */
	respond(f, LAST, n + 4, 1 << SACK_MTU_SHIFT);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_PACKET);
	KUNIT_EXPECT_EQ(test, f->e.psn, psn_add(PSN0, n + 2));
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);	/* once */
}

/* What a response shows as executed is not missing, whatever a SACK said of it. */
static void read__answered_request_is_not_missing(struct kunit *test)
{
	struct req_fixture *f = read_by_paths(test, 4);

	send_all(f);
	sack(f, 48, 1 << 7);		/* 56 is received, 48 is not */
	KUNIT_EXPECT_TRUE(test, f->r.any_holes);
	respond(f, MIDDLE, 50, 1 << SACK_MTU_SHIFT);
	KUNIT_EXPECT_FALSE(test, f->r.any_holes);
	KUNIT_EXPECT_EQ(test, send_one(f), ROAN_NEXT_IDLE);
}

/* Of four paths with trains at 0, 10, 20 and 30 us: by the shares of those used within the time, and its own. */
static void part__is_the_share_of_the_paths_in_use(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 4, 0);
	struct roan_path *path = f->r.paths->path;
	u64 t = f->now;
	u32 i;

	for (i = 0; i < 4; i++)
		path[i].sent_at = t + i * 10 * NSEC_PER_USEC;
	t += 30 * NSEC_PER_USEC;
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1200, 50 * NSEC_PER_USEC, t), 300);
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 3, 1200, 20 * NSEC_PER_USEC, t), 400);
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1200, 20 * NSEC_PER_USEC, t), 300);	/* and itself */
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1200, 0, t + 1), 1200);
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1200, 5 * NSEC_PER_USEC, t - 1), 600);	/* a later departure */
	path[1].share /= 4;
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 1, 1300, 50 * NSEC_PER_USEC, t), 100);
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1300, 50 * NSEC_PER_USEC, t), 400);
}

/* A port that is none of a path's, a peer that knows no paths, or a QP with one: the whole. */
static void part__is_the_whole_without_a_path(struct kunit *test)
{
	struct req_fixture *f = sent_by_paths(test, 4, 0);
	const u64 within = NSEC_PER_SEC;

	KUNIT_EXPECT_LT(test, roan_paths_part(&f->r, 3, 1000, within, f->now), 1000u);
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 4, 1000, within, f->now), 1000);
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0x3fff, 1000, within, f->now), 1000);
	f->r.peer_sacks = false;
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1000, within, f->now), 1000);
	f->r.peer_sacks = true;
	f->r.paths->n = 1;
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1000, within, f->now), 1000);
	f->r.paths = NULL;
	KUNIT_EXPECT_EQ(test, roan_paths_part(&f->r, 0, 1000, within, f->now), 1000);
}

static struct kunit_case requester_paths_cases[] = {
	KUNIT_CASE(next__uses_one_path_until_the_peer_sends_sacks),
	KUNIT_CASE(next__changes_the_path_after_each_train),
	KUNIT_CASE(unsent__is_not_in_flight),
	KUNIT_CASE(batch_count__ends_with_the_train),
	KUNIT_CASE(sacked__counts_packets_of_the_same_path_only),
	KUNIT_CASE(sacked__waits_for_copies_that_have_not_left),
	KUNIT_CASE(sacked__takes_a_packet_as_lost_when_all_others_would_have_arrived),
	KUNIT_CASE(sacked__path_that_delivered_to_another_cpu_has_not_failed),
	KUNIT_CASE(next__sends_single_packets_by_a_failed_path),
	KUNIT_CASE(next__path_whose_packets_leave_later_is_in_use),
	KUNIT_CASE(next__waits_when_the_window_is_full),
	KUNIT_CASE(received__lowers_the_share_of_a_slow_path),
	KUNIT_CASE(received__compares_with_the_peers_shortest_round_trip),
	KUNIT_CASE(min_rtt__time_of_another_cpu),
	KUNIT_CASE(received__lets_a_small_window_grow),
	KUNIT_CASE(received__reduces_the_window_after_a_long_time),
	KUNIT_CASE(next__asks_for_an_ack_each_quarter_of_the_window),
	KUNIT_CASE(part__is_the_share_of_the_paths_in_use),
	KUNIT_CASE(part__is_the_whole_without_a_path),
	KUNIT_CASE(set_paths__limits_packets_in_flight),
	KUNIT_CASE(set_paths__leaves_loss_to_reordering),
	KUNIT_CASE(reset__keeps_the_window_of_psns_small),
	KUNIT_CASE(read__gives_each_request_a_path),
	KUNIT_CASE(read__is_lost_when_it_was_overtaken_on_its_path),
	KUNIT_CASE(read__answered_before_it_was_to_leave_gives_no_sample),
	KUNIT_CASE(read__waits_when_the_window_is_full),
	KUNIT_CASE(read__is_not_overtaken_by_an_old_one),
	KUNIT_CASE(read__answered_request_is_not_missing),
	{}
};

static struct kunit_suite requester_paths_suite = {
	.name = "requester_paths",
	.test_cases = requester_paths_cases,
};

kunit_test_suite(requester_paths_suite);
