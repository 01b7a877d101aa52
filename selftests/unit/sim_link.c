// SPDX-License-Identifier: GPL-2.0
/*
 * The link: loses, duplicates, delays, reorders and corrupts packets. Corrupt ones are parsed, and then dropped by
 * their ICRC.
 */
#include "core/crc/icrc.h"
#include "sim.h"

struct sim_totals sim_totals;

static void put_on_link(struct sim *sim, struct side *from, u32 path, const struct flight *f, bool response)
{
	struct flight *to = &sim->flights[sim->n_flights];

	if (sim->n_flights == SIM_FLIGHTS) {
		sim->loss = max(sim->loss, 1u);		/* it is a link that loses packets, then */
		sim_totals.lost++;
		return;
	}
	from->line_free_at = max(from->line_free_at, sim->now) + (u64)f->len * sim->ns_per_byte;
	*to = *f;
	to->to = !from->id;
	to->at = from->line_free_at + 5000 + from->path_delay[path] + (sim_happens(sim, sim->reorder) ? sim_below(sim, 40000) : 0);
	if (response && f->payload) {
		to->copy = malloc(f->len);
		memcpy(to->copy, f->payload, f->len - roan_opcode(f->head[0])->header_len - ROAN_ICRC_LEN - (f->head[1] >> 4 & 3));
		to->payload = to->copy;
	}
	sim->n_flights++;
}

static bool path_fails(const struct sim *sim, const struct side *s, u32 path)
{
	return path % 4 == s->failing && sim->now >= s->fails_at && sim->now < s->works_at;
}

void sim_transmit(struct sim *sim, struct side *s, u32 path, struct roan_pkt *pkt, const u8 *payload, u32 len)
{
	bool lost = sim_happens(sim, sim->loss) || (sim->link_ends && sim->now >= sim->link_ends) || path_fails(sim, s, path);
	bool response = roan_op_is_response(roan_opcode(pkt->opcode)->op);
	struct flight f = { .payload = payload };

	pkt->pad = roan_wire_pad(len);
	f.len = roan_wire_build(f.head, pkt) + len + pkt->pad + ROAN_ICRC_LEN;
	sim_totals.packets++;
	sim_totals.lost += lost;
	if (sim->verbose)
		printf("%10llu %c opcode %02x psn %06x len %5u%s syndrome %02x msn %u%s\n", (unsigned long long)sim->now,
		       'A' + s->id, pkt->opcode, pkt->psn, len, pkt->ackreq ? " ackreq" : "", pkt->syndrome, pkt->msn,
		       lost ? " LOST" : "");
	if (lost)
		return;
	put_on_link(sim, s, path, &f, response);
	if (!sim_happens(sim, sim->copies))
		return;
	sim_totals.copies++;
	put_on_link(sim, s, path, &f, response);
}

static u32 icrc_of(const u8 *head, u32 header_len)
{
	static const u8 ip[20] = { 0x45 }, udp[8];
	struct roan_icrc_head start;
	u8 copy[ROAN_MAX_HEADERS];

	memcpy(copy, head, header_len);
	roan_icrc_head4(&start, ip, udp);
	return roan_icrc_state(&start, 0, copy, header_len);
}

/* Changes some bits of the headers. True: the receiver drops the packet. */
static bool corrupted(struct sim *sim, struct flight *f)
{
	u32 header_len = roan_opcode(f->head[0])->header_len, bits = 1 + sim_below(sim, 3);
	u32 before = icrc_of(f->head, header_len);
	struct roan_pkt pkt;

	while (bits--) {
		u32 bit = sim_below(sim, header_len * 8);

		f->head[bit / 8] ^= 1 << bit % 8;
	}
	sim_totals.corrupt++;
	roan_wire_parse(f->head, f->len, &pkt);
	return icrc_of(f->head, header_len) != before;
}

/* ---- delivery ---- */

void sim_received(struct sim *sim, struct side *s, const struct flight *f)
{
	struct roan_pkt pkt;

	SIM_CHECK(sim, roan_wire_parse(f->head, f->len, &pkt) == ROAN_PARSE_OK, "side %u cannot parse", s->id);
	if (roan_op_is_response(pkt.info->op))
		sim_take_response(sim, s, &pkt, f->payload);
	else
		sim_take_request(sim, s, &pkt, f);
}

void sim_deliver_due(struct sim *sim)
{
	static struct flight due[SIM_FLIGHTS];
	u32 n_due = 0, n_left = 0;

	for (u32 i = 0; i < sim->n_flights; i++) {
		if (sim->flights[i].at > sim->now)
			sim->flights[n_left++] = sim->flights[i];
		else
			due[n_due++] = sim->flights[i];
	}
	sim->n_flights = n_left;
	for (u32 i = 0; i < n_due; i++) {
		struct side *s = &sim->sides[due[i].to];

		if (!sim_happens(sim, sim->corruption) || !corrupted(sim, &due[i]))
			sim_received(sim, s, &due[i]);
		if (sim_happens(sim, sim->forgery))
			sim_forge(sim, s);
		free(due[i].copy);
	}
}
