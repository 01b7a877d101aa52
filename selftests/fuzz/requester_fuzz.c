// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the requester: posted work, send budgets, arbitrary responses and elapsed time come from fuzz bytes, four
 * bytes per step. Invariants: indices and PSNs stay in order; every WQE retires once, in order; after an error only
 * flushed ones follow.
 */
#include "core/transport/requester.h"

#define MUST(c)	do { if (!(c)) abort(); } while (0)
#define SLOTS	16

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Only PSNs that are sent and not acknowledged; what is sent again, or was, is among those missing. */
static void check_holes(const struct roan_requester *r)
{
	u32 n = 0, all = 0, psn;

	if (!r->holes) {
		MUST(!r->any_holes && !r->repair_by_sack);
		return;
	}
	for (psn = r->una_psn; psn_diff(psn, r->end_psn) < 0; psn = psn_add(psn, 1))
		n += psn_set_has(r->holes->missing, ROAN_HOLES, psn);
	for (psn = 0; psn < ROAN_HOLES; psn++) {
		all += psn_set_has(r->holes->missing, ROAN_HOLES, psn);
		MUST(psn_set_has(r->holes->missing, ROAN_HOLES, psn) ||
		     !(psn_set_has(r->holes->again, ROAN_HOLES, psn) || psn_set_has(r->holes->tried, ROAN_HOLES, psn)));
	}
	MUST(n == all && r->any_holes == !!all);
}

/* The counts of packets in flight, and of responses awaited, agree, and each is sent and not acknowledged. */
static void check_paths(const struct roan_requester *r)
{
	const struct roan_paths *p = r->paths;
	u32 of_path[ROAN_MAX_PATHS] = {}, failed = 0, ahead = 0, awaited = 0, psn;

	MUST(p || !r->auto_paths || !(r->auto_paths->epoch || r->auto_paths->several));
	if (!p)
		return;
	MUST(p->n >= 1 && p->n <= ROAN_MAX_PATHS && p->in_use < p->n && p->try_next < p->n);
	for (psn = 0; psn < ROAN_PATH_PSNS; psn++)
		of_path[p->path_of[psn]] += psn_set_has(p->in_flight, ROAN_PATH_PSNS, psn) +
					    psn_set_has(p->awaited, ROAN_PATH_PSNS, psn);
	for (psn = r->una_psn; psn_diff(psn, r->end_psn) < 0; psn = psn_add(psn, 1)) {
		ahead += psn_set_has(p->in_flight, ROAN_PATH_PSNS, psn);
		awaited += psn_set_has(p->awaited, ROAN_PATH_PSNS, psn);
	}
	MUST(ahead == p->n_in_flight && awaited == p->n_awaited);
	ahead += awaited;
	MUST(!r->auto_paths || (p == r->auto_paths->memory && p->n <= ROAN_AUTO_PATHS));
	MUST(!r->auto_paths || p->trial == !!r->auto_paths->epoch);
	for (u32 i = 0; i < p->n; i++) {
		MUST(of_path[i] == p->path[i].in_flight && ahead >= of_path[i]);
		ahead -= of_path[i];
		failed += p->path[i].failed;
		MUST(p->path[i].share);
	}
	MUST(!ahead && failed == p->n_failed && p->window.size >= ROAN_WINDOW_ONE && p->read_window.size >= ROAN_WINDOW_ONE);
}

/*
 * A packet that was overtaken is to be sent again, or the timer will see to it within a second. If the clock leaps, it
 * may be 2^31 ns more: the times of packets have 32 bits.
 */
static void check_overtaken(const struct roan_requester *r, u64 now)
{
	const struct roan_holes *h = r->holes;
	u64 deadline = roan_requester_deadline(r);

	for (u32 psn = 0; h && psn < ROAN_HOLES; psn++)
		if (psn_set_has(h->missing, ROAN_HOLES, psn) && !psn_set_has(h->again, ROAN_HOLES, psn) &&
		    (h->overtakers[psn] || (r->paths && r->paths->n > 1 && r->paths->rtt_ns)))
			MUST(h->lost_at <= now + NSEC_PER_SEC + (1ull << 31) && deadline && deadline <= h->lost_at);
}

/* What is placed early or requested again is behind una_psn; a hole to be requested is sent, and not to be sent again anyway. */
static void check_reads(const struct roan_requester *r)
{
	const struct roan_early_reads *e = &r->reads;
	u32 placed = 0, ahead = 0, requested = 0, again = 0, psn;

	for (psn = 0; psn < ROAN_EARLY_RESPONSES; psn++) {
		placed += psn_set_has(e->placed, ROAN_EARLY_RESPONSES, psn);
		requested += psn_set_has(e->requested, ROAN_EARLY_RESPONSES, psn);
		MUST(!psn_set_has(e->placed, ROAN_EARLY_RESPONSES, psn) || !psn_set_has(e->requested, ROAN_EARLY_RESPONSES, psn));
	}
	for (psn = r->una_psn; psn_diff(psn, r->end_psn) < 0; psn = psn_add(psn, 1)) {
		ahead += psn_set_has(e->placed, ROAN_EARLY_RESPONSES, psn);
		again += psn_set_has(e->requested, ROAN_EARLY_RESPONSES, psn);
	}
	MUST(placed == ahead && requested == again && (e->any || !(placed || requested)));
	MUST(!e->any || psn_diff(e->answered_psn, r->end_psn) <= 0);
	MUST(!e->lost_at || (psn_diff(e->lost_psn, e->late_psn) <= 0 && psn_diff(e->late_psn, e->answered_psn) <= 0));
	MUST(!e->hole_left || (psn_diff(e->hole_psn, r->una_psn) >= 0 && psn_diff(psn_add(e->hole_psn, e->hole_left), r->next_psn) <= 0));
	MUST(!e->hole_left || (e->hole_index - r->una < r->tail - r->una && !roan_requester_wqe(r, e->hole_index)->completed));
}

static void check(const struct roan_requester *r)
{
	u32 left = r->tail - r->retire;

	MUST(left <= SLOTS);
	MUST(r->una - r->retire <= left);
	MUST(r->next - r->una <= r->tail - r->una);
	MUST(psn_diff(r->end_psn, r->una_psn) >= 0);
	MUST(psn_diff(r->next_psn, r->una_psn) >= 0 && psn_diff(r->end_psn, r->next_psn) >= 0);
	MUST(r->cfg.transport != ROAN_TP_RC || psn_diff(r->end_psn, r->una_psn) <= r->cfg.psn_window);
	MUST(!r->repair_left || (psn_diff(r->repair_psn, r->una_psn) >= 0 && psn_diff(r->repair_psn, r->next_psn) < 0));
	MUST(!r->repair_left || (r->repair_index - r->una < r->tail - r->una && !roan_requester_wqe(r, r->repair_index)->completed));
	MUST(!r->repair_by_sack || !r->repair_left || psn_set_has(r->holes->again, ROAN_HOLES, r->repair_psn));
	MUST(r->any_holes || !r->repair_by_sack || !r->repair_left);
	check_holes(r);
	check_paths(r);
	check_reads(r);
	MUST(r->rd_outstanding <= r->cfg.max_rd_atomic);
	MUST(r->retries_left <= r->cfg.retry_cnt && r->rnr_left <= r->cfg.rnr_retry);
}

static void post(struct roan_requester *r, const u8 *d)
{
	static const u8 ops[] = {
		ROAN_OP_SEND, ROAN_OP_WRITE, ROAN_OP_READ, ROAN_OP_CMP_SWAP, ROAN_OP_FETCH_ADD, ROAN_OP_ATOMIC_WRITE,
		ROAN_OP_FLUSH, ROAN_OP_LOCAL,
	};
	u32 index;
	struct roan_tx_wqe *w = roan_requester_slot(r, &index);

	if (!w)
		return;
	memset(w, 0, sizeof(*w));
	w->op = ops[d[1] & 7];
	w->ext = d[1] >> 3 & 3;
	w->fence = d[1] & 0x20;
	w->solicited = d[1] & 0x40;
	w->len = d[2] == 255 ? 1u << 31 : d[2] << (d[3] & 15);
	roan_requester_queued(r);
	for (u32 n = d[3] >> 4; n && !roan_requester_full(r); n--)
		roan_requester_queue_same(r);
}

static void send(struct roan_requester *r, u32 budget, u64 now)
{
	struct roan_tx_desc e;
	u32 alike;

	while (budget--) {
		enum roan_next next = roan_requester_next(r, now, &e);

		if (next == ROAN_NEXT_LOCAL) {
			roan_requester_local_done(r, e.index);
		} else if (next == ROAN_NEXT_PACKET && budget % 8 == 5) {
			roan_requester_hold(r, e.psn);
			return;
		} else if (next == ROAN_NEXT_PACKET) {
			MUST(roan_opcode(e.opcode)->op == roan_requester_wqe(r, e.index)->op);
			alike = budget & 1 ? roan_requester_batch_count(r, &e, 100) : 0;
			if (e.single_pkt)
				MUST(alike < r->tail - e.index);
			else
				MUST((u64)e.offset +
				     (alike + 1ull) * e.len <= max(roan_requester_wqe(r, e.index)->len, 8u));
			e.npsn += alike;
			roan_requester_sent(r, &e, now);
		} else {
			return;
		}
		check(r);
	}
}

/* The next round trip is as if a trial of several paths, or an epoch of one, had taken its time, with a @gain. */
static void hurry(struct roan_requester *r, struct roan_paths *paths, bool gain, u64 now)
{
	struct roan_auto_paths *a = r->auto_paths;

	if (a->wants_memory)
		roan_requester_give_paths(r, paths);
	a->next_at = now;
	if (a->epoch) {
		a->rate = (a->epoch % 2 && a->epoch > 1) == gain ? U32_MAX : 0;
		return;
	}
	a->since = now;
	a->psn = psn_add(r->una_psn, -(1 << 20));
	a->index = r->una;
	a->idle_ns = r->idle_ns;
}

static void receive(struct roan_requester *r, struct roan_paths *paths, const u8 *d, u64 now)
{
	static const u8 opcodes[] = { 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x11, ROAN_OPCODE_SACK, 0x12 };
	struct roan_pkt pkt = {
		.opcode = opcodes[d[1] & 7], .info = roan_opcode(opcodes[d[1] & 7]), .syndrome = d[3], .msn = d[1] >> 3,
		.psn = psn_add(r->una_psn, (s32)(s8)d[2] / 4),
		.payload_len = d[3] & 1 ? 1u << r->cfg.mtu_shift : d[3], .ext_version = d[0] >> 3 & 1,
		.sack = { .needless = d[0] >> 4, .received = { d[3] * 0x010101u >> (d[1] >> 3), d[2] & d[3] & 1 } },
	};
	u32 index, offset;

	pkt.sack.highest_psn = psn_add(pkt.psn, 1 + (d[0] & 0x80 ? d[3] & 63 : d[1] >> 3));
	if (pkt.info->op == ROAN_OP_ACK)
		roan_requester_acked(r, &pkt, now);
	else if (pkt.info->op == ROAN_OP_SACK && !r->paths && r->cfg.sack && d[2] & 1) {
		if (r->auto_paths)
			roan_requester_give_paths(r, paths);
		roan_requester_set_paths(r, paths);
	}
	else if (pkt.info->op == ROAN_OP_SACK)
		roan_requester_sacked(r, &pkt, now);
	else if (roan_requester_response(r, &pkt, now, &index, &offset) == ROAN_RESP_PLACE) {
		MUST((u64)offset + pkt.payload_len <= max(roan_requester_wqe(r, index)->len, pkt.payload_len + 0u));
		if (d[3] == 0xfe)
			roan_requester_fail(r, index, ROAN_ST_LOC_PROT_ERR);
		else
			roan_requester_placed(r, &pkt, now);
	}
}

static void retire(struct roan_requester *r, u32 *expected)
{
	static enum roan_status before;
	enum roan_status status;
	u32 index;

	if (!*expected)
		before = ROAN_ST_SUCCESS;
	while (roan_requester_retired(r, &index, &status)) {
		MUST(index == (*expected)++);
		MUST(before == ROAN_ST_SUCCESS || status == ROAN_ST_WR_FLUSH_ERR);
		before = status;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct roan_tx_wqe work[SLOTS];
	static struct roan_requester r;
	static const u8 n_paths[] = { 1, 0, 8, ROAN_MAX_PATHS };	/* 0: automatic */
	static struct roan_auto_paths auto_paths;
	static struct roan_holes holes;
	static struct roan_min_rtt min_rtt;
	static struct roan_paths paths;
	struct roan_requester_cfg cfg;
	u32 expected = 0;
	u64 now = 1;

	if (size < 4)
		return 0;
	cfg = (struct roan_requester_cfg) {
		.transport = data[0] & 7 ? ROAN_TP_RC : data[0] & 8 ? ROAN_TP_UC : ROAN_TP_UD,
		.mtu_shift = 8 + (data[0] >> 4) % 5, .retry_cnt = data[1] & 7, .rnr_retry = data[1] >> 3 & 7,
		.timeout = data[2] & 31, .max_rd_atomic = data[2] >> 5, .sq_psn = PSN_MASK - 3, .psn_window = 1 +
			(data[3] & 63), .sack = data[3] & 64,
	};
	r.work = work;
	r.mask = SLOTS - 1;
	r.holes = data[3] & 128 ? NULL : &holes;
	min_rtt = (struct roan_min_rtt) {};
	r.min_rtt = &min_rtt;
	paths.n = n_paths[data[1] >> 6];
	r.paths = paths.n > 1 && cfg.transport == ROAN_TP_RC ? &paths : NULL;
	auto_paths = (struct roan_auto_paths) {};
	r.auto_paths = !n_paths[data[1] >> 6] && cfg.transport == ROAN_TP_RC ? &auto_paths : NULL;
	roan_requester_reset(&r, &cfg);

	for (size_t at = 4; at + 4 <= size; at += 4) {
		const u8 *d = data + at;

		switch (d[0] & 7) {
		case 0:
		case 1:
			post(&r, d);
			break;
		case 2:
		case 3:
			if (d[2] & 1)
				roan_requester_release(&r, now);
			send(&r, d[1], now);
			break;
		case 4:
		case 5:
			if (r.auto_paths && d[0] & 64)
				hurry(&r, &paths, d[0] & 32, now);
			if (cfg.transport == ROAN_TP_RC)
				receive(&r, &paths, d, now);
			break;
		case 6:
			now += (u64)d[1] << (d[2] & 31);
			roan_requester_timer(&r, now);
			break;
		default:
			roan_requester_drain(&r, d[1] & 1);
			break;
		}
		retire(&r, &expected);
		check(&r);
		check_overtaken(&r, now);
	}
	roan_requester_flush(&r);
	retire(&r, &expected);
	MUST(expected == r.tail && r.retire == r.tail);
	return 0;
}
