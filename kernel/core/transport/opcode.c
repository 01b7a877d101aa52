// SPDX-License-Identifier: GPL-2.0
/*
 * The opcode table (IBTA vol. 1, table 38): one row per opcode; everything else about an opcode is derived from its
 * row. Does not decide whether a packet is allowed where it arrives: responder.c, requester_rx.c and ud.h do.
 */
#include "core/transport/opcode.h"

enum {
	BTH = 12,
	LEN_DETH = 8, LEN_FETH = 4, LEN_RETH = 16, LEN_ATOMIC = 28, LEN_AETH = 4, LEN_ATOMIC_ACK = 8, LEN_IMM = 4,
	LEN_IETH = 4, LEN_CNP = 16, LEN_SACK = 24,
};

#define HEADER_BYTES(h)							\
	(BTH + ((h) & ROAN_H_DETH ? LEN_DETH : 0) + ((h) & ROAN_H_FETH ? LEN_FETH : 0) +	\
	 ((h) & ROAN_H_RETH ? LEN_RETH : 0) + ((h) & ROAN_H_ATOMIC ? LEN_ATOMIC : 0) +		\
	 ((h) & ROAN_H_AETH ? LEN_AETH : 0) + ((h) & ROAN_H_ATOMIC_ACK ? LEN_ATOMIC_ACK : 0) +	\
	 ((h) & ROAN_H_IMM ? LEN_IMM : 0) + ((h) & ROAN_H_IETH ? LEN_IETH : 0) +		\
	 ((h) & ROAN_H_CNP ? LEN_CNP : 0) + ((h) & ROAN_H_SACK ? LEN_SACK : 0))

/* Rows: R(transport, opcode without the bits of the transport, operation, segment, extension, headers, payload). */

/* RC and UC use the same codes for SEND and WRITE. */
#define SENDS_AND_WRITES(R, tp)						\
	R(tp, 0x00, SEND,  FIRST,  NONE, 0, true)			\
	R(tp, 0x01, SEND,  MIDDLE, NONE, 0, true)			\
	R(tp, 0x02, SEND,  LAST,   NONE, 0, true)			\
	R(tp, 0x03, SEND,  LAST,   IMM,  ROAN_H_IMM, true)		\
	R(tp, 0x04, SEND,  ONLY,   NONE, 0, true)			\
	R(tp, 0x05, SEND,  ONLY,   IMM,  ROAN_H_IMM, true)		\
	R(tp, 0x06, WRITE, FIRST,  NONE, ROAN_H_RETH, true)		\
	R(tp, 0x07, WRITE, MIDDLE, NONE, 0, true)			\
	R(tp, 0x08, WRITE, LAST,   NONE, 0, true)			\
	R(tp, 0x09, WRITE, LAST,   IMM,  ROAN_H_IMM, true)		\
	R(tp, 0x0a, WRITE, ONLY,   NONE, ROAN_H_RETH, true)		\
	R(tp, 0x0b, WRITE, ONLY,   IMM,  ROAN_H_RETH | ROAN_H_IMM, true)

/* Each combination of operation, segment and extension once: RC has all but that of the CNP. */
#define RC_AND_CNP(R)							\
	SENDS_AND_WRITES(R, RC)						\
	R(RC, 0x0c, READ,	  ONLY,   NONE, ROAN_H_RETH, false)	\
	R(RC, 0x0d, READ_RESP,	  FIRST,  NONE, ROAN_H_AETH, true)	\
	R(RC, 0x0e, READ_RESP,	  MIDDLE, NONE, 0, true)		\
	R(RC, 0x0f, READ_RESP,	  LAST,   NONE, ROAN_H_AETH, true)	\
	R(RC, 0x10, READ_RESP,	  ONLY,   NONE, ROAN_H_AETH, true)	\
	R(RC, 0x11, ACK,	  ONLY,   NONE, ROAN_H_AETH, false)	\
	R(RC, 0x12, ATOMIC_ACK,	  ONLY,   NONE, ROAN_H_AETH | ROAN_H_ATOMIC_ACK, false)	\
	R(RC, 0x13, CMP_SWAP,	  ONLY,   NONE, ROAN_H_ATOMIC, false)	\
	R(RC, 0x14, FETCH_ADD,	  ONLY,   NONE, ROAN_H_ATOMIC, false)	\
	R(RC, 0x16, SEND,	  LAST,   INV,  ROAN_H_IETH, true)	\
	R(RC, 0x17, SEND,	  ONLY,   INV,  ROAN_H_IETH, true)	\
	R(RC, 0x1c, FLUSH,	  ONLY,   NONE, ROAN_H_FETH | ROAN_H_RETH, false)	\
	R(RC, 0x1d, ATOMIC_WRITE, ONLY,   NONE, ROAN_H_RETH, true)	\
	R(CNP, 0x01, CNP,	  ONLY,   NONE, ROAN_H_CNP, false)

#define ROW(tp, code, _op, _seg, _rider, _headers, _payload)		\
	[ROAN_TP_##tp << 5 | (code)] = {				\
		.transport = ROAN_TP_##tp, .op = ROAN_OP_##_op, .seg = ROAN_SEG_##_seg,	\
		.ext = ROAN_EXT_##_rider, .headers = (_headers),	\
		.header_len = HEADER_BYTES(_headers), .payload = (_payload),	\
	},

const struct roan_opcode roan_opcodes[256] = {
	RC_AND_CNP(ROW)
	SENDS_AND_WRITES(ROW, UC)
	ROW(UD, 0x04, SEND, ONLY, NONE, ROAN_H_DETH, true)
	ROW(UD, 0x05, SEND, ONLY, IMM,  ROAN_H_DETH | ROAN_H_IMM, true)
	/* The bits of the transport are those of the manufacturer's range; only RC has it. */
	[ROAN_OPCODE_SACK] = {
		.transport = ROAN_TP_RC, .op = ROAN_OP_SACK, .seg = ROAN_SEG_ONLY, .headers = ROAN_H_AETH | ROAN_H_SACK,
		.header_len = HEADER_BYTES(ROAN_H_AETH | ROAN_H_SACK),
	},
};

#define CODE(tp, code, op, seg, rider, headers, payload)		\
	[ROAN_OP_##op][ROAN_SEG_##seg][ROAN_EXT_##rider] = (code),

/*
 * Opcode, without the transport bits, by operation, segment and extension (2 bits each). A combination without an
 * opcode has 0, as SEND FIRST has: roan_opcode_of() refuses it, as the operations differ.
 */
static const u8 codes[][4][4] = { RC_AND_CNP(CODE) };

u8 roan_opcode_of(enum roan_transport tp, enum roan_op op, enum roan_seg seg, enum roan_ext rider)
{
	u8 code;

	if (op == ROAN_OP_NONE || op >= ARRAY_SIZE(codes) || seg > ROAN_SEG_ONLY || rider > ROAN_EXT_INV ||
	    tp > ROAN_TP_XRC)
		return ROAN_OPCODE_INVALID;
	if (!roan_seg_ends(seg))
		rider = ROAN_EXT_NONE;
	code = tp << 5 | codes[op][seg][rider];
	return roan_opcode(code)->op == op ? code : ROAN_OPCODE_INVALID;
}
