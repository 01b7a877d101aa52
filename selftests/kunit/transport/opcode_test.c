// SPDX-License-Identifier: GPL-2.0
/*
 * The opcode table: compared with its inverse and checked for consistency; header lengths compared with the standard.
 */
#include <kunit/test.h>
#include "core/transport/wire.h"

static void every_known_opcode_round_trips(struct kunit *test)
{
	int known = 0;
	int i;

	for (i = 0; i < 256; i++) {
		const struct roan_opcode *o = roan_opcode(i);

		if (o->op == ROAN_OP_NONE)
			continue;
		if (i == ROAN_OPCODE_SACK)	/* of RC, and outside of its range */
			continue;
		known++;
		KUNIT_EXPECT_EQ_MSG(test, i >> 5, o->transport, "opcode %#x", i);
		KUNIT_EXPECT_EQ_MSG(test, roan_opcode_of(o->transport, o->op, o->seg, o->ext), i, "opcode %#x", i);
		KUNIT_EXPECT_LE_MSG(test, o->header_len, ROAN_MAX_HEADERS, "opcode %#x", i);
		if (!roan_seg_ends(o->seg))
			KUNIT_EXPECT_EQ_MSG(test, o->ext, ROAN_EXT_NONE, "opcode %#x", i);
	}
	KUNIT_EXPECT_EQ(test, known, 25 + 12 + 2 + 1);
}

static void check_answer(struct kunit *test, int tp, int op, int seg, int rider)
{
	u8 code = roan_opcode_of(tp, op, seg, rider);
	const struct roan_opcode *o = roan_opcode(code);

	if (code == ROAN_OPCODE_INVALID)
		return;
	KUNIT_EXPECT_EQ_MSG(test, o->transport, tp, "opcode %#x", code);
	KUNIT_EXPECT_EQ_MSG(test, o->op, op, "opcode %#x", code);
	KUNIT_EXPECT_EQ_MSG(test, o->seg, seg, "opcode %#x", code);
	if (roan_seg_ends(seg))
		KUNIT_EXPECT_EQ_MSG(test, o->ext, rider, "opcode %#x", code);
}

/* Every combination of operation, segment (2 bits) and extension (2 bits; 3 is invalid and must be refused). */
static void opcodes_are_unique(struct kunit *test)
{
	int tp, op, rest;

	for (tp = 0; tp <= ROAN_TP_XRC; tp++)
		for (op = 0; op <= ROAN_OP_LOCAL; op++)
			for (rest = 0; rest < 16; rest++)
				check_answer(test, tp, op, rest & 3, rest >> 2);
}

static void invalid_combinations_have_no_opcode(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, roan_opcode(ROAN_OPCODE_INVALID)->op, ROAN_OP_NONE);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_UD, ROAN_OP_WRITE, ROAN_SEG_ONLY, 0), ROAN_OPCODE_INVALID);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_UC, ROAN_OP_READ, ROAN_SEG_ONLY, 0), ROAN_OPCODE_INVALID);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_UC, ROAN_OP_SEND, ROAN_SEG_ONLY, ROAN_EXT_INV),
			ROAN_OPCODE_INVALID);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_RC, ROAN_OP_LOCAL, ROAN_SEG_ONLY, 0), ROAN_OPCODE_INVALID);
}

static void known_numbers(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_RC, ROAN_OP_ACK, ROAN_SEG_ONLY, 0), 0x11);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_RC, ROAN_OP_FLUSH, ROAN_SEG_ONLY, 0), 0x1c);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_RC, ROAN_OP_ATOMIC_WRITE, ROAN_SEG_ONLY, 0), 0x1d);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_UD, ROAN_OP_SEND, ROAN_SEG_ONLY, ROAN_EXT_IMM), 0x65);
	KUNIT_EXPECT_EQ(test, roan_opcode_of(ROAN_TP_CNP, ROAN_OP_CNP, ROAN_SEG_ONLY, 0), ROAN_OPCODE_CNP);
	KUNIT_EXPECT_EQ(test, roan_opcode(0x13)->header_len, 40);
	KUNIT_EXPECT_EQ(test, roan_opcode(0x1c)->header_len, 32);
	KUNIT_EXPECT_EQ(test, roan_opcode(0x65)->header_len, 24);
	KUNIT_EXPECT_EQ(test, roan_opcode(ROAN_OPCODE_CNP)->header_len, 28);
}

static struct kunit_case opcode_cases[] = {
	KUNIT_CASE(every_known_opcode_round_trips),
	KUNIT_CASE(opcodes_are_unique),
	KUNIT_CASE(invalid_combinations_have_no_opcode),
	KUNIT_CASE(known_numbers),
	{}
};

static struct kunit_suite opcode_suite = {
	.name = "roan_opcode",
	.test_cases = opcode_cases,
};
kunit_test_suite(opcode_suite);
