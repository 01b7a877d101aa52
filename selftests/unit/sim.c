// SPDX-License-Identifier: GPL-2.0
/*
 * Transport simulator: two endpoints, each with a requester and a responder, and a link that drops, duplicates, delays,
 * reorders and corrupts packets, is slow, and carries forged ones. Time is virtual, and one seed determines the run.
 * Some peers support SACK and some keep nothing after a gap, as standard ones do; work requests and receives may be
 * wrong, and retries may run out. Memory, results, completions, PSN and MSN must be those of the model (model.h),
 * whatever the link did.
 *
 *   sim [--seeds N]     seeds 1 to N, in two processes
 *   sim --packets N     as many seeds as N packets take, in one process
 *   sim --seed S [-v]   one seed; -v: print every packet
 */
#include "sim.h"

static void draw_link(struct sim *sim)
{
	static const u32 loss[] = { 0, 0, 10, 50, 150 }, reorder[] = { 0, 0, 50, 200 }, copies[] = { 0, 0, 50 };
	static const u32 slowness[] = { 0, 0, 0, 8, 80 };	/* 1 Gbit/s, 100 Mbit/s */
	static const u32 corruption[] = { 0, 0, 20 }, forgery[] = { 0, 0, 100 };

	sim->loss = loss[sim_below(sim, ARRAY_SIZE(loss))];
	sim->reorder = reorder[sim_below(sim, ARRAY_SIZE(reorder))];
	sim->copies = copies[sim_below(sim, ARRAY_SIZE(copies))];
	sim->corruption = corruption[sim_below(sim, ARRAY_SIZE(corruption))];
	sim->forgery = forgery[sim_below(sim, ARRAY_SIZE(forgery))];
	sim->mtu_shift = 8 + min(sim_below(sim, 5), sim_below(sim, 5));
	/*
	 * Sometimes more than the requester's sets of holes and early responses have. With more loss a peer that keeps
	 * nothing would be sent all of them hundreds of times.
	 */
	sim->max_packets = sim->mtu_shift == 8 && sim->loss <= 50 && sim_one_in(sim, 8) ? 300 : 40;
	sim->chatty_drain = sim_one_in(sim, 5);
	sim->ns_per_byte = slowness[sim_below(sim, ARRAY_SIZE(slowness))];
	sim->link_ends = sim_one_in(sim, 20) ? sim->now + sim_below(sim, 1000000) : 0;
	sim->wrong = sim_one_in(sim, 3);
	sim->faults = sim_one_in(sim, 3);
	sim->violations = sim->forgery && sim_one_in(sim, 4);
	sim->few_retries = !sim->loss && !sim->corruption && !sim->link_ends && sim_one_in(sim, 2);
	sim->full_queues = !sim->few_retries && sim_one_in(sim, 3);
}

static u64 earliest(u64 a, u64 b)
{
	return !a || (b && b < a) ? b : a;
}

/* Time of the next packet, timer or doorbell. 0: none. */
static u64 next_step(const struct sim *sim)
{
	u64 at = 0;

	for (u32 i = 0; i < sim->n_flights; i++)
		at = earliest(at, sim->flights[i].at);
	for (int i = 0; i < 2; i++) {
		at = earliest(at, roan_requester_deadline(&sim->sides[i].req));
		at = earliest(at, sim->sides[i].kick_at);
		at = earliest(at, sim->sides[i].payload_fault_until);
		at = earliest(at, sim->sides[i].sink_fault_until);
		at = earliest(at, sim->sides[i].source_fault_until);
		at = earliest(at, sim->sides[i].nak_at);
	}
	return at;
}

/* Time of the next event. 0: none, which is a hang unless all is done. */
static u64 next_event(const struct sim *sim)
{
	return earliest(next_step(sim), earliest(sim->sides[0].refill_at, sim->sides[1].refill_at));
}

static bool all_done(const struct sim *sim)
{
	return sim->sides[0].retired == sim->sides[0].n_jobs && sim->sides[1].retired == sim->sides[1].n_jobs &&
	       !sim->n_flights;
}

static void run_side(struct sim *sim, struct side *s)
{
	if (s->kick_at && s->kick_at <= sim->now)
		s->kick_at = 0;
	sim_respond(sim, s);
	sim_request(sim, s);
}

void sim_run(struct sim *sim)
{
	sim->now = 1000;
	draw_link(sim);
	for (int i = 0; i < 2; i++)
		sim_side_init(sim, i);
	for (sim->steps = 0; ; ) {
		u64 at;

		for (int i = 0; i < 2; i++)
			run_side(sim, &sim->sides[i]);
		if (all_done(sim))
			break;
		at = next_event(sim);
		SIM_CHECK(sim, at, "nothing will ever happen again");
		sim->steps += at == next_step(sim);	/* receives are posted every 70 us, however long a timeout is */
		SIM_CHECK(sim, sim->steps < 5000ull * sim->max_packets, "no end in sight");
		sim->now = max(sim->now, at);
		sim_deliver_due(sim);
	}
	for (int i = 0; i < 2; i++)
		sim_side_finish(sim, &sim->sides[i]);
	sim_free(sim);
}
