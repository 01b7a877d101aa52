/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by sim.c (virtual time and the link) and sim_endpoint.c (an endpoint). */
#ifndef ROAN_SIM_H
#define ROAN_SIM_H

#include <sys/wait.h>
#include <unistd.h>
#include "core/transport/requester.h"
#include "core/transport/responder.h"

#define SIM_JOBS	24
#define SIM_QUEUE	16	/* work slots, a power of two */
#define SIM_RESP_RES	16
#define SIM_FLIGHTS	4096

#define SIM_KEPT	64	/* packets kept after a gap, at most */

/* A packet in flight. The payload is not copied: its source does not change. */
struct flight {
	u64 at;
	u8 to;
	u8 head[ROAN_MAX_HEADERS];
	u32 len;		/* BTH to ICRC */
	const u8 *payload;
};

/* A work request and its result. */
struct job {
	u8 op, rider;
	bool fence, solicited;
	u32 len;
	u8 *region;		/* target or source at the peer, @len bytes */
	u8 *sink;		/* READ: local buffer */
	u64 result;		/* atomics */
	u32 ordinal;		/* number of earlier jobs with the same opcode, or that consume a receive WQE too */
	u32 executed;		/* times the peer executed it */
};

struct side {
	u8 id;
	struct roan_requester req;
	struct roan_responder resp;
	struct roan_tx_wqe work[SIM_QUEUE];
	struct roan_holes holes;
	struct roan_paths paths;
	u32 path_delay[ROAN_MAX_PATHS];		/* ns, beyond that of the link */
	u32 fails;		/* requests by this path and each fourth after it are lost from @fails_at until @works_at */
	u64 fails_at, works_at;
	struct roan_resp_res resp_res[SIM_RESP_RES];
	struct roan_early_set early_set;

	struct job jobs[SIM_JOBS];
	u32 n_jobs, posted, retired, local_done;
	u32 depth;		/* maximum of posted and not retired jobs */
	bool tail_answered;	/* the last packet before end_psn had AckReq, or gets a response anyway */

	u64 counter, cell;	/* targets of the peer's FETCH_ADDs and CMP_SWAPs */
	u32 last_executed;	/* 1 + index of the peer's last executed job; must increase */
	u32 recvs;		/* consumed receive WQEs */
	u32 recv_wqes;		/* posted receive WQEs */
	bool limited;		/* receive WQEs are posted late */
	bool credits;
	u64 refill_at;
	u64 kick_at;		/* sending continues then (budget was spent); 0: none */
	u64 line_free_at;	/* the slow line has sent all packets by then */

	u32 keeps;		/* packets that this side keeps after a gap, 0..SIM_KEPT; changes at @keeps_changes_at */
	u64 keeps_changes_at;	/* 0: never */
	u64 silent_from;	/* its packets do not say any more that it supports SACK; 0: never */
	struct flight kept[SIM_KEPT];
	u32 n_kept;
};

struct sim {
	u64 seed, random, now, steps;
	bool verbose, chatty_drain;
	u32 loss, reorder, copies;	/* per 1000 packets */
	u32 ns_per_byte;		/* a slow line with an unlimited queue before it; 0: no limit */
	u8 mtu_shift;
	struct side sides[2];
	u32 n_flights;
	struct flight flights[SIM_FLIGHTS];
};

#define SIM_CHECK(sim, ok, ...)							\
	do {									\
		if (!(ok)) {							\
			printf("not ok: seed %llu, %llu ns, %s:%d: ", (unsigned long long)(sim)->seed,	\
			       (unsigned long long)(sim)->now, __FILE__, __LINE__);	\
			printf(__VA_ARGS__);					\
			printf("\n");						\
			fflush(stdout);						\
			_exit(1);						\
		}								\
	} while (0)

static inline u32 sim_below(struct sim *sim, u32 n)
{
	u64 x = sim->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	sim->random = x;
	return (x >> 20) % n;
}

void sim_side_init(struct sim *sim, int id);
void sim_side_run(struct sim *sim, struct side *s);
void sim_side_finish(struct sim *sim, struct side *s);
void sim_received(struct sim *sim, struct side *s, const struct flight *f);

#endif /* ROAN_SIM_H */
