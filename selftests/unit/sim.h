/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of the simulator:
 *	sim.c			virtual time, the run, the command line
 *	sim_jobs.c		draws the work requests, the receives and what is wrong with them
 *	sim_requester.c		stands in for the driver half at the requester
 *	sim_responder.c		the same at the responder
 *	sim_link.c		the link
 *	sim_forge.c		forged packets
 *	sim_check.c		compares with the model (model.h)
 */
#ifndef ROAN_SIM_H
#define ROAN_SIM_H

#include <sys/wait.h>
#include <unistd.h>
#include "core/transport/requester.h"
#include "core/transport/responder.h"
#include "model.h"

#define SIM_JOBS	MODEL_REQUESTS
#define SIM_QUEUE	16	/* work slots, a power of two */
#define SIM_RESP_RES	16	/* at first; more are added */
#define SIM_FLIGHTS	4096
#define SIM_KEPT	64	/* packets kept after a gap, at most */

/* A packet in flight. The payload of a request is not copied, as its source does not change; that of a response is. */
struct flight {
	u64 at;
	u8 to;
	u8 head[ROAN_MAX_HEADERS];
	u32 len;		/* BTH to ICRC */
	const u8 *payload;
	u8 *copy;		/* to be freed */
};

/* How a work request ended. */
struct job {
	bool barrier;
	u8 status;		/* enum roan_status */
	u8 *sink;		/* READ: local buffer */
	u64 result;		/* atomics */
	u32 executed;		/* LOCAL: times */
};

/* The requester's half is about this side's work requests, the responder's about the peer's. */
struct side {
	u8 id;
	struct roan_requester req;
	struct roan_tx_wqe work[SIM_QUEUE];
	struct roan_holes holes;
	struct roan_paths paths;
	struct roan_auto_paths auto_paths;
	struct roan_min_rtt min_rtt;
	u32 path_delay[ROAN_MAX_PATHS];	/* ns, beyond that of the link */
	u32 failing;			/* packets by this path and each fourth after it are lost from @fails_at until @works_at */
	u64 fails_at, works_at;
	struct model_request requests[SIM_JOBS];
	struct job jobs[SIM_JOBS];
	struct model model;	/* of @requests, which the peer executes */
	u32 n_jobs, posted, retired;
	u32 depth;		/* maximum of posted and not retired jobs */
	bool tail_answered;	/* the last packet before end_psn had AckReq, or gets a response anyway */
	bool gives_up;		/* few retries */
	bool misled;		/* by a forged response to its oldest request */
	u64 silent_from;	/* its packets do not say any more that it supports SACK; 0: never */
	u64 nak_at;		/* a NAK is due then; 0: none */
	u64 kick_at;		/* sending continues then: the budget was spent, or the queue full; 0: none */
	bool queue_full;	/* in this round, from packet @dropped_psn on */
	u32 dropped_psn;
	u64 line_free_at;	/* the slow line has sent all packets by then */
	u64 payload_fault_until;	/* the payload to send is not in memory; 0: it is */
	u64 sink_fault_until;	/* a response cannot be placed yet, and further ones are dropped; 0: no page fault */

	struct roan_responder resp;
	u32 n_resp_res;		/* allocated with the first request that needs one */
	struct roan_early_set early_set;
	u8 *memory;
	u8 *recv_bufs[SIM_JOBS];
	u32 recvs_posted, recvs_taken;	/* how many of the peer's model.recvs */
	struct model_cqe cqes[SIM_JOBS + 1];
	u32 n_cqes;
	u32 packets;		/* of the peer's current request that were executed; READ: response packets requested */
	bool credits;
	bool violated;		/* by a forged request, in place of the peer's next one */
	u64 refill_at;		/* more receives are posted then; 0: all are */
	u64 source_fault_until;	/* a READ response cannot be sent yet; 0: no page fault */
	u32 keeps;		/* packets that this side keeps after a gap, 0..SIM_KEPT; changes at @keeps_changes_at */
	u64 keeps_changes_at;	/* 0: never */
	struct flight kept[SIM_KEPT];
	u32 n_kept;
};

struct sim {
	u64 seed, random, now, steps;
	const u8 *input;		/* the fuzzer's: choices are drawn from it first */
	size_t input_left;
	bool verbose, chatty_drain;
	bool wrong;			/* work requests or receives may be wrong */
	bool faults;			/* memory may be absent for a while */
	bool few_retries;		/* three to seven; nothing is lost */
	bool full_queues;		/* a host may drop what it sends itself, and knows it */
	bool violations;		/* forged packets may violate the protocol, and end a connection */
	u32 loss, reorder, copies, corruption, forgery;	/* per 1000 packets */
	u64 link_ends;			/* no packet arrives from then on; 0: never */
	u32 ns_per_byte;		/* a slow line with an unlimited queue before it; 0: no limit */
	u32 max_packets;		/* of a request */
	u8 mtu_shift;
	struct side sides[2];
	u32 n_flights;
	struct flight flights[SIM_FLIGHTS];
};

struct sim_totals {
	u64 packets, lost, copies, corrupt, forged, trials, chosen;
	u64 jobs[ROAN_ST_GENERAL_ERR + 1];	/* by enum roan_status */
};
extern struct sim_totals sim_totals;

#define SIM_CHECK(sim, ok, ...)							\
	do {									\
		if (!(ok)) {							\
			printf("not ok: seed %llu, %llu ns, %s:%d: ", (unsigned long long)(sim)->seed,	\
			       (unsigned long long)(sim)->now, __FILE__, __LINE__);	\
			printf(__VA_ARGS__);					\
			printf("\n");						\
			fflush(stdout);						\
			sim_failed();						\
		}								\
	} while (0)

static inline u32 sim_below(struct sim *sim, u32 n)
{
	u64 x = sim->random;
	u32 chosen = 0;

	if (n <= 1)
		return 0;
	if (sim->input_left) {
		for (u32 most = n - 1; most && sim->input_left; most >>= 8, sim->input_left--)
			chosen = chosen << 8 | *sim->input++;
		return chosen % n;
	}
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	sim->random = x;
	return (x >> 20) % n;
}

static inline bool sim_one_in(struct sim *sim, u32 n)
{
	return !sim_below(sim, n);
}

static inline bool sim_happens(struct sim *sim, u32 per_thousand)
{
	return per_thousand && sim_below(sim, 1000) < per_thousand;
}

static inline struct side *sim_peer(struct sim *sim, const struct side *s)
{
	return &sim->sides[!s->id];
}

/* sim.c, and the fuzzer */
void sim_run(struct sim *sim);
void sim_failed(void) __attribute__((noreturn));

/* sim_jobs.c */
void sim_side_init(struct sim *sim, int id);

/* sim_requester.c */
void sim_request(struct sim *sim, struct side *s);
void sim_take_response(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const u8 *payload);
bool sim_supports_sack(const struct sim *sim, const struct side *s);

/* sim_responder.c */
void sim_take_request(struct sim *sim, struct side *s, const struct roan_pkt *pkt, const struct flight *f);
void sim_respond(struct sim *sim, struct side *s);
void sim_set_resources(struct side *s, u32 n);

/* sim_link.c */
void sim_transmit(struct sim *sim, struct side *s, u32 path, struct roan_pkt *pkt, const u8 *payload, u32 len);
void sim_deliver_due(struct sim *sim);
void sim_received(struct sim *sim, struct side *s, const struct flight *f);

/* sim_forge.c */
void sim_forge(struct sim *sim, struct side *s);

/* sim_check.c */
void sim_check_request(struct sim *sim, const struct side *s, const struct roan_pkt *pkt, const struct roan_request *exec,
		       const u8 *payload);
void sim_check_retired(struct sim *sim, struct side *s, u32 index);
void sim_side_finish(struct sim *sim, struct side *s);
void sim_free(struct sim *sim);

#endif /* ROAN_SIM_H */
