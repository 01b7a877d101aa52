/* SPDX-License-Identifier: GPL-2.0 */
/* What sim.c (time and the link) and sim_endpoint.c (an endpoint) share. */
#ifndef ROAN_SIM_H
#define ROAN_SIM_H

#include <sys/wait.h>
#include <unistd.h>
#include "core/transport/requester.h"
#include "core/transport/responder.h"

#define SIM_JOBS	24
#define SIM_QUEUE	16	/* work slots, a power of two */
#define SIM_REPLAY	16
#define SIM_FLIGHTS	4096

/* A work request, and what became of it. */
struct job {
	u8 op, rider;
	bool fence, solicited;
	u32 len;
	u8 *region;		/* at the peer, @len bytes */
	u8 *sink;		/* READ: here */
	u64 result;		/* atomics */
	u32 ordinal;		/* of the jobs of this kind before it, for atomics and for those that take a receive WQE */
	u32 executed;		/* times the peer did it */
};

struct side {
	u8 id;
	struct roan_requester req;
	struct roan_responder resp;
	struct roan_tx_wqe work[SIM_QUEUE];
	struct roan_resp_res replay[SIM_REPLAY];

	struct job jobs[SIM_JOBS];
	u32 n_jobs, posted, retired, local_done;
	u32 depth;		/* most jobs posted and not retired */
	bool tail_answered;	/* the packet that ends at end_psn asked for an answer when it last left */

	u64 counter, cell;	/* targets of the peer's FETCH_ADDs and CMP_SWAPs */
	u32 last_executed;	/* 1 + index of the peer's job last executed: they may only go up */
	u32 recvs;		/* receive WQEs used up */
	u32 recv_wqes;		/* and still posted */
	bool limited;		/* receive WQEs come late */
	bool credits;
	u64 refill_at;
	u64 kick_at;		/* left something undone */
	u64 line_free_at;	/* what it gave to a slow line has left by then */
};

/* One packet on its way. The payload is not copied: its source never changes. */
struct flight {
	u64 at;
	u8 to;
	u8 head[ROAN_MAX_HEADERS];
	u32 len;		/* BTH to ICRC */
	const u8 *payload;
};

struct sim {
	u64 seed, random, now, steps;
	bool verbose, chatty_drain;
	u32 loss, reorder, copies;	/* of 1000 packets */
	u32 ns_per_byte;		/* a slow line, with a queue in front of it that takes everything; 0: as fast as they come */
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
