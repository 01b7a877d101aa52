// SPDX-License-Identifier: GPL-2.0
/* Priority flow control: frame format, duration and end of a pause, the receive watchdog, sending of XOFF and XON. */
#include <kunit/test.h>
#include "core/flow/pfc_rules.h"

#define MS	((u64)NSEC_PER_MSEC)
#define T0	(1000 * MS)
#define G	1000000000ULL

static const u8 source[6] = { 2, 4, 6, 8, 10, 12 };
static const struct roan_pfc_params params = {
	.pfc_prio_mask = 255, .pfc_watchdog_ms = 200, .pfc_restore_ms = 400, .pfc_emit_xoff = 100, .pfc_emit_xon = 50,
};

static void param__defaults_and_bounds(struct kunit *test)
{
	struct roan_pfc_params p = { 1, 2, 3 };

	roan_pfc_params_default(&p);
	KUNIT_EXPECT_EQ(test, p.pfc_prio_mask, 0);	/* off by default */
	KUNIT_EXPECT_EQ(test, p.pfc_watchdog_ms, 200);
	KUNIT_EXPECT_EQ(test, p.pfc_restore_ms, 400);
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_prio_mask, 255));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_prio_mask, 256));
	KUNIT_EXPECT_EQ(test, roan_pfc_param_get(&p, ROAN_PFC_PARAM_pfc_prio_mask), 255);
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_watchdog_ms, 1));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_watchdog_ms, 0));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_watchdog_ms, 60001));
	KUNIT_EXPECT_EQ(test, p.pfc_watchdog_ms, 1);
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_prio_mask, 0));
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_restore_ms, 1));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_restore_ms, 0));
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_restore_ms, 60000));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_restore_ms, 60001));
	KUNIT_EXPECT_EQ(test, p.pfc_restore_ms, 60000);
}

static void param__of_emission(struct kunit *test)
{
	struct roan_pfc_params p = { 1, 2, 3, 4, 5, 6 };

	roan_pfc_params_default(&p);
	KUNIT_EXPECT_EQ(test, p.pfc_emit_mask, 0);	/* off by default */
	KUNIT_EXPECT_EQ(test, p.pfc_emit_xoff, 256);
	KUNIT_EXPECT_EQ(test, p.pfc_emit_xon, 128);
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_mask, 255));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_mask, 256));
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_mask, 0));
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_xoff, 1));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_xoff, 0));
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_xoff, 16384));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_xoff, 16385));
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_xon, 0));
	KUNIT_EXPECT_TRUE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_xon, 16384));
	KUNIT_EXPECT_FALSE(test, roan_pfc_param_set(&p, ROAN_PFC_PARAM_pfc_emit_xon, 16385));
	KUNIT_EXPECT_EQ(test, p.pfc_emit_xon, 16384);
}

/* ---- frames ---- */

/* Priorities 3 and 4, as a switch writes it. */
static const u8 good[ROAN_PFC_FRAME_LEN] = {
	0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 2, 4, 6, 8, 10, 12, 0x88, 0x08, 0x01, 0x01, 0x00, 0x18,
	0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x12, 0x34,
};

static void frame_parse__what_a_switch_sends(struct kunit *test)
{
	struct roan_pfc_frame f;

	KUNIT_ASSERT_EQ(test, roan_pfc_frame_parse(good, sizeof(good), &f), ROAN_PFC_PARSE_OK);
	KUNIT_EXPECT_EQ(test, f.enabled, 0x18);
	KUNIT_EXPECT_EQ(test, f.quanta[3], 0xffff);
	KUNIT_EXPECT_EQ(test, f.quanta[4], 0x1234);
	KUNIT_EXPECT_EQ(test, f.quanta[0], 0);
	KUNIT_EXPECT_EQ(test, f.quanta[7], 0);
}

static void frame_parse__every_priority_has_its_place(struct kunit *test)
{
	struct roan_pfc_frame f;
	u8 frame[ROAN_PFC_FRAME_LEN];

	for (u32 i = 0; i < ROAN_PRIORITIES; i++) {
		memcpy(frame, good, sizeof(frame));
		memset(frame + 18, 0, 16);
		frame[17] = 1 << i;
		frame[18 + 2 * i] = 0xab;
		frame[19 + 2 * i] = 0xcd;
		KUNIT_ASSERT_EQ(test, roan_pfc_frame_parse(frame, sizeof(frame), &f), ROAN_PFC_PARSE_OK);
		KUNIT_EXPECT_EQ(test, f.enabled, 1 << i);
		for (u32 k = 0; k < ROAN_PRIORITIES; k++)
			KUNIT_EXPECT_EQ(test, f.quanta[k], k == i ? 0xabcd : 0);
	}
}

static void frame_parse__refuses_all_else(struct kunit *test)
{
	struct roan_pfc_frame f = { .enabled = 0xee };
	u8 frame[ROAN_PFC_FRAME_LEN + 4] = {};
	u32 i;

	memcpy(frame, good, sizeof(good));
	for (i = 0; i < ROAN_PFC_FRAME_LEN; i++)
		KUNIT_EXPECT_EQ(test, roan_pfc_frame_parse(frame, i, &f), ROAN_PFC_PARSE_LENGTH);
	KUNIT_EXPECT_EQ(test, roan_pfc_frame_parse(frame, 61, &f), ROAN_PFC_PARSE_LENGTH);
	KUNIT_EXPECT_EQ(test, roan_pfc_frame_parse(frame, 64, &f), ROAN_PFC_PARSE_LENGTH);
	for (i = 0; i < 6 * 8; i++) {
		frame[i / 8] ^= 1 << i % 8;
		KUNIT_EXPECT_EQ(test, roan_pfc_frame_parse(frame, ROAN_PFC_FRAME_LEN, &f), ROAN_PFC_PARSE_DEST);
		frame[i / 8] ^= 1 << i % 8;
	}
	for (i = 12 * 8; i < 16 * 8; i++) {
		frame[i / 8] ^= 1 << i % 8;
		KUNIT_EXPECT_EQ(test, roan_pfc_frame_parse(frame, ROAN_PFC_FRAME_LEN, &f), ROAN_PFC_PARSE_OPCODE);
		frame[i / 8] ^= 1 << i % 8;
	}
	for (i = 16 * 8; i < 17 * 8; i++) {	/* classes 8 to 15 */
		frame[i / 8] ^= 1 << i % 8;
		KUNIT_EXPECT_EQ(test, roan_pfc_frame_parse(frame, ROAN_PFC_FRAME_LEN, &f), ROAN_PFC_PARSE_VECTOR);
		frame[i / 8] ^= 1 << i % 8;
	}
	KUNIT_EXPECT_EQ(test, f.enabled, 0xee);		/* refused, and nothing written */
	frame[6] = 0xff;				/* the source address is ignored; ... */
	frame[17] = 0xff;
	frame[34] = 0xff;				/* ... and so are the bytes behind the times */
	KUNIT_EXPECT_EQ(test, roan_pfc_frame_parse(frame, ROAN_PFC_FRAME_LEN, &f), ROAN_PFC_PARSE_OK);
	KUNIT_EXPECT_EQ(test, f.enabled, 0xff);
}

static void frame_build__is_what_parse_takes(struct kunit *test)
{
	struct roan_pfc_frame in = { .enabled = 0x18, .quanta = { 9, 9, 9, 0xffff, 0x1234, 9, 9, 9 } };
	u8 frame[ROAN_PFC_FRAME_LEN];

	memset(frame, 0xa5, sizeof(frame));
	roan_pfc_frame_build(frame, source, &in);
	/* Byte for byte: classes that are not enabled have time 0. */
	KUNIT_EXPECT_EQ(test, memcmp(frame, good, sizeof(frame)), 0);
	in.enabled = 0x81;
	in.quanta[7] = 0x0102;
	roan_pfc_frame_build(frame, source, &in);
	KUNIT_EXPECT_EQ(test, frame[17], 0x81);
	KUNIT_EXPECT_EQ(test, frame[19], 9);
	KUNIT_EXPECT_EQ(test, frame[32], 1);
	KUNIT_EXPECT_EQ(test, frame[33], 2);
}

/* A quantum is 512 bit times at any link speed, rounded up to ns. */
static void quanta_ns__quanta_at_link_speeds(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(0, 10 * G), 0);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(1, G), 512);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(1, 10 * G), 52);		/* 51.2 */
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(5, 10 * G), 256);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(1, 100 * G), 6);		/* 5.12 */
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(25, 100 * G), 128);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(0xffff, G), 33553920);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(0xffff, 10 * G), 3355392);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(0xffff, 25 * G), 1342157);	/* 1342156.8 */
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(0xffff, 40 * G), 838848);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(0xffff, 100 * G), 335540);	/* 335539.2 */
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(0xffff, 1000000), 33553920000ULL);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(1, 800 * G), 1);
	KUNIT_EXPECT_EQ(test, roan_pfc_quanta_ns(2, 3), 341333333334ULL);	/* rounded up from ...333.3 */
}

/* ---- received pauses ---- */

static bool blocks(struct roan_pfc_rx_state *p, u64 now)
{
	return !roan_pfc_rx_clear(p, now) && roan_pfc_rx_blocked(p, &params, now);
}

static void rx_pause__lapses(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};

	KUNIT_EXPECT_TRUE(test, roan_pfc_rx_clear(&p, T0));
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_blocked(&p, &params, T0));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 1000, T0), ROAN_PFC_RX_BEGUN);
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_clear(&p, T0));
	KUNIT_EXPECT_TRUE(test, roan_pfc_rx_still_blocked(&p, &params, T0 + 999));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 1000);
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_clear(&p, T0 + 999));
	KUNIT_EXPECT_TRUE(test, roan_pfc_rx_clear(&p, T0 + 1000));	/* no QP was blocked */
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_still_blocked(&p, &params, T0 + 1000));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 0, T0 + 1000), ROAN_PFC_RX_NO_CHANGE);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 1, T0 + 1000), ROAN_PFC_RX_BEGUN);
}

static void rx_pause__the_last_frame_counts(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};

	roan_pfc_rx_pause(&p, &params, 1000, T0);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 1000, T0 + 999), ROAN_PFC_RX_EXTENDED);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 1999);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 10, T0 + 1000), ROAN_PFC_RX_EXTENDED);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 1010);		/* also a shorter time */
}

static void rx_pause__xon(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};

	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 0, T0), ROAN_PFC_RX_NO_CHANGE);
	roan_pfc_rx_pause(&p, &params, 1000, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0 + 1));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 0, T0 + 2), ROAN_PFC_RX_ENDED);
	/* Not clear until a QP has called roan_pfc_rx_blocked(), which records that it may send again. */
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_clear(&p, T0 + 2));
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_still_blocked(&p, &params, T0 + 2));
	KUNIT_EXPECT_FALSE(test, blocks(&p, T0 + 2));
	KUNIT_EXPECT_TRUE(test, roan_pfc_rx_clear(&p, T0 + 2));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 0, T0 + 3), ROAN_PFC_RX_NO_CHANGE);
}

/* ---- the watchdog ---- */

/* Continuous XOFF: after a QP was blocked for 200 ms the watchdog releases the priority and ignores XOFF for 400 ms. */
static void watchdog__ends_a_storm(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};
	u64 now;

	for (now = T0; now < T0 + 10 * MS; now += MS)
		KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 3 * MS, now),
				now == T0 ? ROAN_PFC_RX_BEGUN : ROAN_PFC_RX_EXTENDED);
	for (; now < T0 + 210 * MS; now += MS) {	/* a QP is blocked from 10 ms on */
		KUNIT_EXPECT_TRUE(test, blocks(&p, now));
		KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 3 * MS, now), ROAN_PFC_RX_EXTENDED);
	}
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 210 * MS);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0 + 210 * MS - 1));
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 0);
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_still_blocked(&p, &params, T0 + 210 * MS));
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 1);
	KUNIT_EXPECT_FALSE(test, blocks(&p, T0 + 210 * MS));
	for (now = T0 + 210 * MS; now < T0 + 610 * MS; now += MS) {
		KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 3 * MS, now), ROAN_PFC_RX_IGNORED);
		KUNIT_EXPECT_FALSE(test, blocks(&p, now));
	}
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 3 * MS, T0 + 610 * MS - 1), ROAN_PFC_RX_IGNORED);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 3 * MS, T0 + 610 * MS), ROAN_PFC_RX_BEGUN);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0 + 611 * MS));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 613 * MS);
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 1);
}

/* The watchdog expires before the next frame. That frame triggers it, with the time of expiry. */
static void watchdog__expires_between_frames(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};

	roan_pfc_rx_pause(&p, &params, 1000 * MS, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 200 * MS);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 1000 * MS, T0 + 599 * MS), ROAN_PFC_RX_IGNORED);
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 1);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 1000 * MS, T0 + 600 * MS), ROAN_PFC_RX_BEGUN);
}

/* After the watchdog expired and no QP sent, the blocked time of the next QP starts at its own first attempt. */
static void watchdog__restarts_with_the_next_qp(struct kunit *test)
{
	const struct roan_pfc_params hasty = { .pfc_watchdog_ms = 200, .pfc_restore_ms = 1 };
	struct roan_pfc_rx_state p = {};

	roan_pfc_rx_pause(&p, &hasty, 1000 * MS, T0);
	KUNIT_EXPECT_TRUE(test, roan_pfc_rx_blocked(&p, &hasty, T0));
	KUNIT_EXPECT_FALSE(test, roan_pfc_rx_still_blocked(&p, &hasty, T0 + 200 * MS));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &hasty, 1000 * MS, T0 + 201 * MS), ROAN_PFC_RX_BEGUN);
	KUNIT_EXPECT_TRUE(test, roan_pfc_rx_blocked(&p, &hasty, T0 + 202 * MS));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &hasty), T0 + 402 * MS);
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 1);
}

/* Consecutive pauses shorter than the watchdog time, with traffic between them, never trigger it. */
static void watchdog__progress_is_no_storm(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};
	u64 now = T0;

	for (u32 i = 0; i < 100; i++, now += 10 * MS) {
		KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 9 * MS, now), ROAN_PFC_RX_BEGUN);
		KUNIT_EXPECT_TRUE(test, blocks(&p, now + 1));
		KUNIT_EXPECT_FALSE(test, blocks(&p, now + 9 * MS));
	}
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 0);
}

/* Without traffic between the pauses the watchdog triggers, although XON frames come between the XOFFs. */
static void watchdog__gaps_without_traffic_do_not_count(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};
	u64 now = T0;

	roan_pfc_rx_pause(&p, &params, MS, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0));
	for (; now < T0 + 200 * MS; now += MS) {
		KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 0, now), ROAN_PFC_RX_ENDED);
		KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 2 * MS, now), ROAN_PFC_RX_BEGUN);
	}
	KUNIT_EXPECT_FALSE(test, blocks(&p, T0 + 200 * MS));
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 1);
}

/* A pause exactly as long as the watchdog time does not trigger it. */
static void watchdog__exact_limit(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};

	roan_pfc_rx_pause(&p, &params, 200 * MS, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0));
	KUNIT_EXPECT_FALSE(test, blocks(&p, T0 + 200 * MS));
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 0);
	roan_pfc_rx_pause(&p, &params, 200 * MS + 1, T0 + 300 * MS);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0 + 300 * MS));
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0 + 500 * MS - 1));
	KUNIT_EXPECT_FALSE(test, blocks(&p, T0 + 500 * MS));
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 1);
}

/* A QP was blocked and then went away. Its blocked time is not counted in a pause that begins much later. */
static void watchdog__forgets_a_qp_that_left(struct kunit *test)
{
	struct roan_pfc_rx_state p = {};

	roan_pfc_rx_pause(&p, &params, MS, T0);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 5 * MS, T0 + 201 * MS), ROAN_PFC_RX_BEGUN);
	KUNIT_EXPECT_TRUE(test, blocks(&p, T0 + 202 * MS));
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 206 * MS);
	KUNIT_EXPECT_EQ(test, p.watchdog_trips, 0);
	/* An extension does not restart the watchdog. */
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 300 * MS, T0 + 205 * MS), ROAN_PFC_RX_EXTENDED);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 300 * MS, T0 + 401 * MS), ROAN_PFC_RX_EXTENDED);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_deadline(&p, &params), T0 + 402 * MS);
}

/* ---- sent pauses ---- */

static void tx_decide__xoff_and_xon(struct kunit *test)
{
	struct roan_pfc_tx_state t = {};

	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 0, 100, 50, 1000, T0), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 100, 100, 50, 1000, T0), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_FALSE(test, t.xoff_sent);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 101, 100, 50, 1000, T0), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_TRUE(test, t.xoff_sent);
	KUNIT_EXPECT_EQ(test, t.refresh_at, T0 + 500);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 200, 100, 50, 1000, T0 + 499), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 51, 100, 50, 1000, T0 + 500), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, t.refresh_at, T0 + 1000);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 51, 100, 50, 1000, T0 + 501), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 50, 100, 50, 1000, T0 + 501), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_FALSE(test, t.xoff_sent);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 50, 100, 50, 1000, T0 + 1001), ROAN_PFC_TX_NONE);
}

/* With frames sent by these rules a receiver stays paused from XOFF to XON without a gap. */
static void tx_decide__keeps_the_receiver_paused(struct kunit *test)
{
	struct roan_pfc_tx_state t = {};
	struct roan_pfc_rx_state p = {};
	u64 ns = roan_pfc_quanta_ns(ROAN_PFC_MAX_QUANTA, 40 * G), now;

	for (now = T0; now < T0 + 100 * MS; now += 1000) {
		if (!t.xoff_sent || now >= t.refresh_at)
			KUNIT_ASSERT_EQ(test, roan_pfc_tx_decide(&t, 2, 1, 0, ns, now), ROAN_PFC_TX_XOFF);
		if (t.refresh_at == now + ns / 2)
			roan_pfc_rx_pause(&p, &params, ns, now + 5000);	/* delay of the wire */
		KUNIT_ASSERT_TRUE(test, roan_pfc_rx_still_blocked(&p, &params, now + 5000));
	}
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide(&t, 0, 1, 0, ns, now), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_EQ(test, roan_pfc_rx_pause(&p, &params, 0, now), ROAN_PFC_RX_ENDED);
}

#define KB	1024ull

static enum roan_pfc_tx_action decide(struct roan_pfc_tx_state *t, u64 backlog, u64 now)
{
	return roan_pfc_tx_decide_wd(t, &params, backlog, 10 * MS, now);
}

static void tx_decide_wd__thresholds_and_times(struct kunit *test)
{
	struct roan_pfc_tx_state t = {};

	KUNIT_EXPECT_EQ(test, decide(&t, 100 * KB, T0), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_deadline(&t, &params, T0), 0);
	KUNIT_EXPECT_EQ(test, decide(&t, 100 * KB + 1, T0), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_deadline(&t, &params, T0), T0 + 5 * MS);
	KUNIT_EXPECT_EQ(test, decide(&t, 50 * KB + 1, T0 + 4 * MS), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, decide(&t, 50 * KB + 1, T0 + 5 * MS), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_deadline(&t, &params, T0 + 5 * MS), T0 + 10 * MS);
	KUNIT_EXPECT_EQ(test, decide(&t, 50 * KB, T0 + 6 * MS), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_deadline(&t, &params, T0 + 6 * MS), 0);
	KUNIT_EXPECT_EQ(test, t.watchdog_trips, 0);
}

/* An XON threshold above XOFF counts as equal to XOFF; otherwise XOFF and XON would alternate. */
static void tx_decide_wd__xon_above_xoff(struct kunit *test)
{
	const struct roan_pfc_params p = { .pfc_watchdog_ms = 200, .pfc_emit_xoff = 10, .pfc_emit_xon = 100 };
	struct roan_pfc_tx_state t = {};

	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide_wd(&t, &p, 50 * KB, MS, T0), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide_wd(&t, &p, 10 * KB + 1, MS, T0), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_decide_wd(&t, &p, 10 * KB, MS, T0), ROAN_PFC_TX_XON);
}

/* A backlog that does not drain stops the peer for 200 ms, and then not for 400 ms. */
static void tx_decide_wd__watchdog(struct kunit *test)
{
	struct roan_pfc_tx_state t = {};

	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 198 * MS), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_deadline(&t, &params, T0 + 198 * MS), T0 + 200 * MS);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 200 * MS - 1), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, t.watchdog_trips, 0);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 200 * MS), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_EQ(test, t.watchdog_trips, 1);
	KUNIT_EXPECT_FALSE(test, t.xoff_sent);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_deadline(&t, &params, T0 + 200 * MS), T0 + 600 * MS);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 600 * MS - 1), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_deadline(&t, &params, T0 + 600 * MS), 0);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 600 * MS), ROAN_PFC_TX_XOFF);
	/* A new XOFF restarts the watchdog. */
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 800 * MS - 1), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, decide(&t, 0, T0 + 800 * MS - 1), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_EQ(test, t.watchdog_trips, 1);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 900 * MS), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 1099 * MS), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 1100 * MS), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_EQ(test, t.watchdog_trips, 2);
}

static void tx_decide_wd__end(struct kunit *test)
{
	struct roan_pfc_tx_state t = {};

	KUNIT_EXPECT_EQ(test, roan_pfc_tx_off(&t), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_off(&t), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_off(&t), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0), ROAN_PFC_TX_XOFF);
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 200 * MS), ROAN_PFC_TX_XON);
	KUNIT_EXPECT_EQ(test, roan_pfc_tx_off(&t), ROAN_PFC_TX_NONE);
	KUNIT_EXPECT_EQ(test, t.watchdog_trips, 1);
	/* roan_pfc_tx_off() cleared the 400 ms without XOFF */
	KUNIT_EXPECT_EQ(test, decide(&t, 200 * KB, T0 + 201 * MS), ROAN_PFC_TX_XOFF);
}

static struct kunit_case pause_cases[] = {
	KUNIT_CASE(param__defaults_and_bounds),
	KUNIT_CASE(param__of_emission),
	KUNIT_CASE(frame_parse__what_a_switch_sends),
	KUNIT_CASE(frame_parse__every_priority_has_its_place),
	KUNIT_CASE(frame_parse__refuses_all_else),
	KUNIT_CASE(frame_build__is_what_parse_takes),
	KUNIT_CASE(quanta_ns__quanta_at_link_speeds),
	KUNIT_CASE(rx_pause__lapses),
	KUNIT_CASE(rx_pause__the_last_frame_counts),
	KUNIT_CASE(rx_pause__xon),
	KUNIT_CASE(watchdog__ends_a_storm),
	KUNIT_CASE(watchdog__expires_between_frames),
	KUNIT_CASE(watchdog__restarts_with_the_next_qp),
	KUNIT_CASE(watchdog__progress_is_no_storm),
	KUNIT_CASE(watchdog__gaps_without_traffic_do_not_count),
	KUNIT_CASE(watchdog__exact_limit),
	KUNIT_CASE(watchdog__forgets_a_qp_that_left),
	KUNIT_CASE(tx_decide__xoff_and_xon),
	KUNIT_CASE(tx_decide__keeps_the_receiver_paused),
	KUNIT_CASE(tx_decide_wd__thresholds_and_times),
	KUNIT_CASE(tx_decide_wd__xon_above_xoff),
	KUNIT_CASE(tx_decide_wd__watchdog),
	KUNIT_CASE(tx_decide_wd__end),
	{}
};

static struct kunit_suite pause_suite = {
	.name = "roan_pfc_rules",
	.test_cases = pause_cases,
};
kunit_test_suite(pause_suite);
