/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fuzzer of roan's user interface. A program is a sequence of calls; a call is an index into the table of call types and
 * argument bytes. Every sequence of bytes is a valid program, so that a mutation need not know the types.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "coverage.h"
#include "roan-abi.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_CALLS	48

struct call {
	uint8_t op;
	uint8_t arg[15];
};

struct program {
	uint32_t n;
	struct call calls[MAX_CALLS];
};

/* Kinds of objects that a program holds; those from CHANNEL on are file descriptors. */
enum kind {
	PD, CQ, QP, SRQ, MR, MW, AH, DM, XRCD, WQ, RWQ_TABLE, FLOW, FLOW_ACTION, COUNTERS, CHANNEL, ASYNC, DMABUF, KINDS
};

#define MAX_OBJECTS	16
#define CONTEXTS	2	/* one on each of the two devices */

struct ring {
	struct roan_ring_ctl *ctl;	/* NULL: not mapped */
	struct roan_ring_desc desc;
};

struct object {
	uint32_t handle;		/* or file descriptor */
	uint32_t num;			/* QPN, SRQ number, AH number */
	uint32_t lkey, rkey;
	uint64_t addr, length;
	uint32_t type, psn;		/* of a QP */
	uint8_t peer_ctx, peer;		/* a connected QP's */
	struct ring ring[2];		/* QP: SQ, RQ; CQ and SRQ: the first */
};

struct context {
	int fd;				/* -1: closed */
	bool opening;			/* by ioctl */
	struct ring hints;
	uint32_t n[KINDS];		/* objects ever made */
	struct object obj[KINDS][MAX_OBJECTS];
};

/* State of a running program. */
struct run {
	struct context ctx[CONTEXTS];
	uint64_t wr_id;
	bool devices_changed;		/* set them up again afterwards */
	bool sysfs_changed, memory_changed, wire_changed;
	int children;
};

struct call_type {
	const char *name;
	uint32_t weight;		/* how often the generator takes it */
	void (*run)(struct run *r, const uint8_t *a);
};

/* By convention a[0] bit 0 is the context and bit 7 says that something is to be wrong. */
static inline int ctx_of(const uint8_t *a) { return a[0] % CONTEXTS; }
static inline bool wrong(const uint8_t *a) { return a[0] & 0x80; }

extern const struct call_type write_calls[], ioctl_calls[], ring_calls[], system_calls[], packet_calls[];
extern const struct call_type *types[256];
extern uint32_t nr_types;
const struct call_type *type_of(const struct call *c);
int type_named(const char *name);

/* state.c: objects, values, system calls that are counted */
#define ARENA		(1ul << 20)
extern uint8_t *arena;				/* memory that programs register, of ARENA bytes */
extern uint64_t *calls_done;			/* calls of all programs */
extern bool verbose;				/* print each call */
void state_init(void);
void run_begin(struct run *r);
void run_end(struct run *r);
int context(struct run *r, int c);		/* the context's file, opened if need be */
bool context_open(struct run *r, int c, uint64_t features, bool by_ioctl);
void context_close(struct run *r, int c);
struct object *add(struct run *r, int c, enum kind kind, uint32_t handle);
void forget(struct run *r, int c, enum kind kind, uint32_t handle);
struct object *pick(struct run *r, int c, enum kind kind, uint8_t which);	/* NULL if there is none */
uint32_t handle(struct run *r, int c, enum kind kind, uint8_t which);
uint64_t value(uint8_t which);
uint32_t amount(uint8_t which);			/* mostly small */
uint64_t length(uint8_t which);
uint64_t address(uint8_t which);
bool map_ring(struct run *r, int c, struct ring *ring, const struct roan_ring_desc *desc);
void read_events(int fd);

/* devices.c: the two devices, their addresses and files */
struct device {
	char name[32], netdev[16], netns[16], path[64];
	uint32_t index;
	uint8_t gid[16][16];
	uint32_t gids;
};
extern struct device devices[CONTEXTS];
extern int raw_socket;
void devices_find(void);
void devices_repair(struct run *r);
int in_netns(const char *name);
int netlink_send(int cmd, int flags, const void *attrs, size_t len, void *answer, size_t room);

/* uverbs.c: one system call of the uverbs file */
struct wcmd {
	uint32_t command;			/* IB_USER_VERBS_CMD_*, or with EX */
	void *core;
	uint32_t core_len;
	void *resp;
	uint32_t resp_len;
	const void *udata;
	uint32_t udata_len;
	void *uresp;
	uint32_t uresp_len;
};
#define EX	IB_USER_VERBS_CMD_FLAG_EXTENDED
int do_write(struct run *r, int c, const struct wcmd *w, const uint8_t *a);	/* 0 or errno */
int do_ioctl(struct run *r, int c, uint16_t object, uint16_t method, struct ib_uverbs_attr *attrs, uint32_t n);
void ring_doorbell(struct run *r, int c, const uint32_t *handles, uint32_t n);

/* create.c */
void connect_qp(struct run *r, int c, struct object *qp, int peer_ctx, const struct object *peer, const uint8_t *a);
void make_pair(struct run *r, const uint8_t *a);
struct object *create_qp(struct run *r, int c, const uint8_t *a);
struct object *create_cq(struct run *r, int c, const uint8_t *a);
struct object *create_srq(struct run *r, int c, const uint8_t *a);
struct object *reg_mr(struct run *r, int c, const uint8_t *a);
struct object *create_ah(struct run *r, int c, const uint8_t *a);
struct object *alloc_pd(struct run *r, int c, const uint8_t *a);

/* program.c */
uint64_t random_number(void);
void random_seed(uint64_t seed);
void program_generate(struct program *p);
void program_mutate(struct program *p, const struct program *other);
uint32_t program_seed(uint32_t n, struct program *p);	/* false beyond the last */
void program_print(FILE *f, const struct program *p);
bool program_read(FILE *f, struct program *p);
void program_write(FILE *f, const struct program *p);
void program_run(const struct program *p);

#endif
