/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reference model of RC: what a list of work requests and a list of receives must result in, whatever the network does
 * to the packets. One request after the other is executed whole; there are no packets in flight, no acknowledgments,
 * no windows and no time. Written from the rules of IBTA vol. 1, chapters 9 and 10, and shares no code with the core
 * but the names of operations and statuses. The simulator (sim_check.c) compares the transport with it.
 */
#ifndef ROAN_MODEL_H
#define ROAN_MODEL_H

#include "core/transport/requester.h"

#define MODEL_VA	0x7f5e00012000ull	/* address of the responder's memory */
#define MODEL_RKEY	0x4711u			/* its key, with all rights */
#define MODEL_INV_KEY	0x4712u			/* the key that a SEND may invalidate */
#define MODEL_REQUESTS	24

/* A work request. It is wrong if the memory, key, address, length or operation that it names is. */
struct model_request {
	u8 op;			/* enum roan_op */
	u8 ext;			/* enum roan_ext */
	bool fence, solicited;
	u32 len;		/* atomics, ATOMIC_WRITE 8; FLUSH, LOCAL 0 */
	u64 va;
	u32 rkey;
	u64 swap_add, compare;
	u32 imm;		/* or the key to invalidate */
	const u8 *data;		/* SEND, WRITE, ATOMIC_WRITE */
	u32 readable;		/* bytes of @data that the requester can read; less than @len: a wrong L_Key or length */
	bool no_sink;		/* READ, atomic: the requester cannot store the response */
	bool gone;		/* READ: the memory is deregistered before the responses are sent */
	bool local_fails;	/* LOCAL */
	u32 read_packets;	/* READ: a longer one is sent as several of so many responses; set when posted */

	/* set by model_execute() */
	u8 status;		/* enum roan_status of the completion */
	u8 *read;		/* READ: @len bytes */
	u64 orig;		/* atomics */
};

struct model_recv {
	u32 len;
	bool unregistered;	/* nothing can be stored in it */
	u8 *buf;		/* @len bytes */
};

struct model_cqe {		/* of a receive. With an error only @status is valid */
	u8 status;		/* enum roan_status */
	u8 op, ext;		/* of the message */
	bool solicited;
	u32 byte_len;
	u32 imm;		/* or the invalidated key */
};

struct model {
	u32 mtu;
	u32 max_rd_atomic, max_dest_rd_atomic;
	struct model_request *requests;
	u32 n_requests;
	struct model_recv recvs[MODEL_REQUESTS];
	u32 n_recvs;
	u8 *memory;		/* of the responder, at MODEL_VA */
	u32 memory_len;

	u32 next;		/* so many requests were executed; the other fields are the state after them */
	u32 psn;
	u32 msn;
	u32 n_taken;		/* receives */
	struct model_cqe cqes[MODEL_REQUESTS + 1];
	u32 n_cqes;
};

/* PSNs of request @r. */
u32 model_packets(const struct model *m, const struct model_request *r);
bool model_takes_recv(const struct model_request *r);
/* How the next request completes, if the requests before it are executed. Not SUCCESS: no later one completes. */
enum roan_status model_status(const struct model *m);
/* True if the responder executes the next request; later ones may then be executed, too, however it completes. */
bool model_executes(const struct model *m);
void model_execute(struct model *m);
/* The responder refuses the next request: completes the receive that it took, if any, with an error. */
void model_refuse(struct model *m);
/* The first @packets packets of the next request, a SEND or WRITE, are executed. */
void model_execute_part(struct model *m, u32 packets);
/*
 * Requests behind a READ may change what it returns, unless one of them is fenced (10.8.3.3). True if READ @index may
 * return @byte at @offset.
 */
bool model_may_read(const struct model *m, u32 index, u32 offset, u8 byte);

#endif /* ROAN_MODEL_H */
