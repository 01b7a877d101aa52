/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BTH opcodes: one table with the meaning of each of the 256 values (IBTA vol. 1, 9.2, table 38; RoCEv2 annex for
 * CNP).
 */
#ifndef ROAN_OPCODE_H
#define ROAN_OPCODE_H

#include "core/core_env.h"

enum roan_transport {		/* bits 7..5 of the opcode */
	ROAN_TP_RC	= 0,
	ROAN_TP_UC	= 1,
	ROAN_TP_RD	= 2,
	ROAN_TP_UD	= 3,
	ROAN_TP_CNP	= 4,
	ROAN_TP_XRC	= 5,
};

enum roan_op {
	ROAN_OP_NONE,		/* unknown opcode */
	/* requests */
	ROAN_OP_SEND,
	ROAN_OP_WRITE,
	ROAN_OP_READ,
	ROAN_OP_CMP_SWAP,
	ROAN_OP_FETCH_ADD,
	ROAN_OP_ATOMIC_WRITE,
	ROAN_OP_FLUSH,
	/* responses */
	ROAN_OP_READ_RESP,
	ROAN_OP_ACK,
	ROAN_OP_ATOMIC_ACK,
	ROAN_OP_SACK,		/* roan's own: sack.h */
	/* neither */
	ROAN_OP_CNP,
	/* not on the wire: local work in the order of the send queue (LOCAL_INV, BIND_MW, REG_MR) */
	ROAN_OP_LOCAL,
};

enum roan_seg {
	ROAN_SEG_FIRST,
	ROAN_SEG_MIDDLE,
	ROAN_SEG_LAST,
	ROAN_SEG_ONLY,
};

/* What a message carries besides its payload, in the LAST or ONLY packet. */
enum roan_ext {
	ROAN_EXT_NONE,
	ROAN_EXT_IMM,
	ROAN_EXT_INV,
};

enum roan_headers {		/* extended headers, in wire order after the BTH */
	ROAN_H_DETH	= 1 << 0,	/* 8 bytes */
	ROAN_H_FETH	= 1 << 1,	/* 4 */
	ROAN_H_RETH	= 1 << 2,	/* 16 */
	ROAN_H_ATOMIC	= 1 << 3,	/* 28 */
	ROAN_H_AETH	= 1 << 4,	/* 4 */
	ROAN_H_ATOMIC_ACK = 1 << 5,	/* 8 */
	ROAN_H_IMM	= 1 << 6,	/* 4 */
	ROAN_H_IETH	= 1 << 7,	/* 4 */
	ROAN_H_CNP	= 1 << 8,	/* 16 reserved bytes */
	ROAN_H_SACK	= 1 << 9,	/* 24 */
};

struct roan_opcode {
	u8  transport;		/* enum roan_transport */
	u8  op;			/* enum roan_op; ROAN_OP_NONE: unknown opcode */
	u8  seg;		/* enum roan_seg */
	u8  ext;		/* enum roan_ext */
	u16 headers;		/* enum roan_headers */
	u8  header_len;		/* bytes, BTH and all extended headers */
	bool payload;		/* payload may follow the headers */
};

#define ROAN_OPCODE_CNP		0x81
#define ROAN_OPCODE_SACK	0xc0	/* the manufacturer's range begins here */
#define ROAN_OPCODE_INVALID	0xff

/* roan_opcode() is never NULL; ->op is ROAN_OP_NONE for values that neither the standard nor roan defines. */
extern const struct roan_opcode roan_opcodes[256];
static inline const struct roan_opcode *roan_opcode(u8 opcode)
{
	return &roan_opcodes[opcode];
}

/*
 * Returns the opcode of a packet, or ROAN_OPCODE_INVALID if there is no such packet (UD WRITE, UC READ ...). @rider,
 * the extension, is ignored on FIRST and MIDDLE packets.
 */
u8 roan_opcode_of(enum roan_transport tp, enum roan_op op, enum roan_seg seg, enum roan_ext rider);

static inline bool roan_seg_starts(enum roan_seg seg)
{
	return seg == ROAN_SEG_FIRST || seg == ROAN_SEG_ONLY;
}

static inline bool roan_seg_ends(enum roan_seg seg)
{
	return seg == ROAN_SEG_LAST || seg == ROAN_SEG_ONLY;
}

static inline bool roan_op_is_response(enum roan_op op)
{
	return op == ROAN_OP_READ_RESP || op == ROAN_OP_ACK || op == ROAN_OP_ATOMIC_ACK || op == ROAN_OP_SACK;
}

/* Operations completed by a response of their own, not by an ACK. */
static inline bool roan_op_needs_response(enum roan_op op)
{
	return op == ROAN_OP_READ || op == ROAN_OP_CMP_SWAP || op == ROAN_OP_FETCH_ADD || op == ROAN_OP_ATOMIC_WRITE ||
	       op == ROAN_OP_FLUSH;
}

#endif /* ROAN_OPCODE_H */
