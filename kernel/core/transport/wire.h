/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet bytes <-> struct roan_pkt. Every length is checked here; the other files read neither network bytes nor
 * packet lengths. Offsets count from the first byte of the BTH.
 */
#ifndef ROAN_WIRE_H
#define ROAN_WIRE_H

#include "core/core_env.h"
#include "core/transport/opcode.h"
#include "core/transport/psn.h"
#include "core/transport/sack.h"

#define ROAN_UDP_PORT		4791
#define ROAN_BTH_LEN		12
#define ROAN_ICRC_LEN		4
#define ROAN_MAX_HEADERS	40	/* BTH + AtomicETH, or AETH and SACK: the longest sent or accepted */
#define ROAN_DATA_HEADERS	32	/* BTH, RETH and ImmDt: the longest before a payload of the path MTU */
#define ROAN_MIN_PACKET		(ROAN_BTH_LEN + ROAN_ICRC_LEN)
#define ROAN_GRH_LEN		40
#define ROAN_QPN_MULTICAST	0xffffff
#define ROAN_DEFAULT_PKEY	0xffff

enum roan_syndrome {		/* AETH syndrome; bits 6..5 are the kind (IBTA vol. 1, 9.7.5.2.1) */
	ROAN_AETH_ACK		= 0x00,	/* low 5 bits: credit count code */
	ROAN_AETH_RNR		= 0x20,	/* low 5 bits: timer code */
	ROAN_AETH_NAK		= 0x60,	/* low 5 bits: enum roan_nak */
	ROAN_AETH_KIND_MASK	= 0x60,
	ROAN_AETH_VALUE_MASK	= 0x1f,
	ROAN_AETH_UNLIMITED	= 0x1f,	/* credit code: no end-to-end flow control */
};

enum roan_nak {
	ROAN_NAK_PSN_SEQUENCE	= 0,
	ROAN_NAK_INVALID_REQUEST = 1,
	ROAN_NAK_REMOTE_ACCESS	= 2,
	ROAN_NAK_REMOTE_OPERATION = 3,
};

enum roan_flush_type {		/* FETH PLT, a set */
	ROAN_FLUSH_GLOBAL	= 1,
	ROAN_FLUSH_PERSISTENT	= 2,
};

enum roan_flush_level {
	ROAN_FLUSH_RANGE	= 0,
	ROAN_FLUSH_MR		= 1,
};

/* One packet in host byte order. Fields of headers that the opcode does not have are 0, except @sack. */
struct roan_pkt {
	const struct roan_opcode *info;	/* parse: never NULL; build: ignored */
	u8  opcode;
	u8  pad;		/* bytes of padding after the payload, 0..3 */
	u8  syndrome;		/* AETH */
	u8  flush_type;		/* FETH: enum roan_flush_type, a set */
	u8  flush_level;	/* FETH: enum roan_flush_level */
	u8  ext_version;	/* of roan's extensions that the sender has; 0: none. BTH, behind AckReq, as @copy */
	bool solicited;
	bool ackreq;
	bool copy;		/* sent again because a SACK shows it as lost */
	bool migreq;
	bool fecn;
	bool becn;
	u16 pkey;
	u16 sport;		/* UDP source port that the response is to have; 0: any */
	u32 qpn;		/* destination */
	u32 psn;
	u32 msn;		/* AETH */
	u32 rkey;		/* RETH, AtomicETH */
	u32 dma_len;		/* RETH */
	u64 va;			/* RETH, AtomicETH */
	u64 compare;		/* AtomicETH */
	u64 swap_add;		/* AtomicETH; ATOMIC_WRITE: payload as on the wire, copied by the driver half */
	u64 orig;		/* AtomicAckETH */
	__be32 imm;		/* ImmDt, as on the wire */
	u32 inv_rkey;		/* IETH */
	u32 qkey;		/* DETH */
	u32 src_qpn;		/* DETH */
	struct roan_sack sack;	/* valid if the opcode has it */
	u16 payload_off;	/* = length of the headers */
	u16 payload_len;	/* without padding and ICRC */
};

enum roan_parse {
	ROAN_PARSE_OK,
	ROAN_PARSE_SHORT,	/* length does not fit the opcode, or is not a multiple of four bytes */
	ROAN_PARSE_VERSION,	/* transport header version is not 0 */
	ROAN_PARSE_OPCODE,	/* unknown opcode */
};

/*
 * @head: the first min(@len, ROAN_MAX_HEADERS) bytes of the packet. @len: bytes from BTH to ICRC inclusive. The BTH
 * fields of @pkt are valid on ROAN_PARSE_OPCODE, too.
 */
enum roan_parse roan_wire_parse(const u8 *head, size_t len, struct roan_pkt *pkt);

/*
 * Writes BTH and the extended headers of pkt->opcode. @buf has ROAN_MAX_HEADERS bytes. Returns the bytes written. Uses
 * pkt->pad; ignores pkt->info, payload_off and payload_len.
 */
size_t roan_wire_build(u8 *buf, const struct roan_pkt *pkt);

/* Bytes of padding that make @payload_len a multiple of four. */
static inline u8 roan_wire_pad(u32 payload_len)
{
	return -payload_len & 3;
}

/* RNR timer code (0..31) -> ns (IBTA vol. 1, table 45). */
u64 roan_rnr_ns(u8 code);
/* Code of the longest time not above @ns, at least 1, the shortest. */
u8 roan_rnr_code(u64 ns);

/* Credit count code (0..30) -> receive WQEs (IBTA vol. 1, table 46), and the largest code not above @credits. */
u32 roan_credits_of(u8 code);
u8 roan_credit_code(u32 credits);

/*
 * Local ACK timeout code (1..31) -> ns: 4.096 us * 2^code, at least 4.2 ms. 0 -> 0: never. Adapters have a longer least
 * timeout (ConnectX-2: 500 ms), rdma_rxe has one of a jiffy. Programs that set code 1 or 4 depend on it: a host under
 * load does not answer in microseconds.
 */
#define ROAN_LEAST_TIMEOUT	10
static inline u64 roan_timeout_ns(u8 code)
{
	return code ? 4096ull << max_t(u8, code & 0x1f, ROAN_LEAST_TIMEOUT) : 0;
}

#endif /* ROAN_WIRE_H */
