// SPDX-License-Identifier: GPL-2.0
/* The rules of priority flow control; see pfc_rules.h. Knows no device, no queue and no timer. */
#include "core/flow/pfc_rules.h"

/* ---- parameters ---- */

struct bounds {
	u32 min, max, def;
};

#define X(name, unit, lo, hi, dflt, meaning)	\
	[ROAN_PFC_PARAM_##name] = { .min = lo, .max = hi, .def = dflt },
static const struct bounds bounds[ROAN_PFC_NUM_PARAMS] = { ROAN_PFC_PARAMS(X) };
#undef X

static_assert(sizeof(struct roan_pfc_params) == ROAN_PFC_NUM_PARAMS * sizeof(u32), "all are u32");

void roan_pfc_params_default(struct roan_pfc_params *params)
{
	u32 *value = (u32 *)params;
	u32 i;

	for (i = 0; i < ROAN_PFC_NUM_PARAMS; i++)
		value[i] = bounds[i].def;
}

u32 roan_pfc_param_get(const struct roan_pfc_params *params, enum roan_pfc_param which)
{
	return READ_ONCE(((const u32 *)params)[which]);
}

bool roan_pfc_param_set(struct roan_pfc_params *params, enum roan_pfc_param which, u32 value)
{
	if (value < bounds[which].min || value > bounds[which].max)
		return false;
	WRITE_ONCE(((u32 *)params)[which], value);
	return true;
}

/* ---- frames: 802.3 31D, 802.1Qbb 36.2 ---- */

#define TYPE_OPCODE	0x88080101	/* MAC control, then class-based flow control */
#define AT_SOURCE	6
#define AT_TYPE		12
#define AT_VECTOR	16
#define AT_TIMES	18
#define QUANTUM_BITS	512

static const u8 pause_address[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };

enum roan_pfc_parse_result roan_pfc_frame_parse(const u8 *frame, u32 len, struct roan_pfc_frame *out)
{
	u32 vector, i;

	if (len != ROAN_PFC_FRAME_LEN)
		return ROAN_PFC_PARSE_LENGTH;
	if (memcmp(frame, pause_address, sizeof(pause_address)))
		return ROAN_PFC_PARSE_DEST;
	if (get_unaligned_be32(frame + AT_TYPE) != TYPE_OPCODE)
		return ROAN_PFC_PARSE_OPCODE;
	vector = get_unaligned_be16(frame + AT_VECTOR);
	if (vector > 0xff)
		return ROAN_PFC_PARSE_VECTOR;
	out->enabled = vector;
	for (i = 0; i < ROAN_PRIORITIES; i++)
		out->quanta[i] = get_unaligned_be16(frame + AT_TIMES + 2 * i);
	return ROAN_PFC_PARSE_OK;
}

void roan_pfc_frame_build(u8 frame[ROAN_PFC_FRAME_LEN], const u8 address[6], const struct roan_pfc_frame *in)
{
	u32 i;

	memset(frame, 0, ROAN_PFC_FRAME_LEN);
	memcpy(frame, pause_address, sizeof(pause_address));
	memcpy(frame + AT_SOURCE, address, 6);
	put_unaligned_be32(TYPE_OPCODE, frame + AT_TYPE);
	put_unaligned_be16(in->enabled, frame + AT_VECTOR);
	for (i = 0; i < ROAN_PRIORITIES; i++)
		put_unaligned_be16(in->enabled & BIT(i) ? in->quanta[i] : 0, frame + AT_TIMES + 2 * i);
}

u64 roan_pfc_quanta_ns(u16 quanta, u64 link)
{
	return div64_u64((u64)quanta * QUANTUM_BITS * NSEC_PER_SEC + link - 1, link);
}

/* ---- pause frames received ---- */

static u64 pause_watchdog_ns(const struct roan_pfc_params *params)
{
	return (u64)READ_ONCE(params->pfc_watchdog_ms) * NSEC_PER_MSEC;
}

/* Applies the watchdog if it was due before @now. */
static void pause_watchdog(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 now)
{
	u64 end = p->block_start_ns + pause_watchdog_ns(params);

	if (!p->block_start_ns || p->until <= end || now < end)
		return;
	WRITE_ONCE(p->until, end);
	WRITE_ONCE(p->block_start_ns, 0);
	p->ignore_until = end + (u64)READ_ONCE(params->pfc_restore_ms) * NSEC_PER_MSEC;
	p->watchdog_trips++;
}

enum roan_pfc_rx_event roan_pfc_rx_pause(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 ns,
					 u64 now)
{
	bool was;

	pause_watchdog(p, params, now);
	was = now < p->until;
	if (!ns) {
		if (!was)
			return ROAN_PFC_RX_NO_CHANGE;
		WRITE_ONCE(p->until, now);
		return ROAN_PFC_RX_ENDED;
	}
	if (now < p->ignore_until)
		return ROAN_PFC_RX_IGNORED;
	/*
	 * The last pause ended more than the watchdog time ago and no packet was sent since: the blocked QPs are gone.
	 * Reset the watchdog.
	 */
	if (!was && now - p->until >= pause_watchdog_ns(params))
		WRITE_ONCE(p->block_start_ns, 0);
	WRITE_ONCE(p->until, now + ns);
	return was ? ROAN_PFC_RX_EXTENDED : ROAN_PFC_RX_BEGUN;
}

bool roan_pfc_rx_still_blocked(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 now)
{
	pause_watchdog(p, params, now);
	return now < p->until;
}

bool roan_pfc_rx_blocked(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 now)
{
	bool blocks = roan_pfc_rx_still_blocked(p, params, now);

	if (!blocks)
		WRITE_ONCE(p->block_start_ns, 0);
	else if (!p->block_start_ns)
		WRITE_ONCE(p->block_start_ns, now);
	return blocks;
}

u64 roan_pfc_rx_deadline(const struct roan_pfc_rx_state *p, const struct roan_pfc_params *params)
{
	return p->block_start_ns ? min(p->until, p->block_start_ns + pause_watchdog_ns(params)) : p->until;
}

/* ---- pause frames sent ---- */

enum roan_pfc_tx_action roan_pfc_tx_decide(struct roan_pfc_tx_state *t, u64 backlog, u64 xoff, u64 xon, u64 max_ns,
					   u64 now)
{
	if (t->xoff_sent && backlog <= xon) {
		t->xoff_sent = false;
		return ROAN_PFC_TX_XON;
	}
	if (t->xoff_sent ? now < t->refresh_at : backlog <= xoff)
		return ROAN_PFC_TX_NONE;
	t->xoff_sent = true;
	t->refresh_at = now + max_ns / 2;
	return ROAN_PFC_TX_XOFF;
}

#define KB	1024ull

static u64 xoff_watchdog_at(const struct roan_pfc_tx_state *t, const struct roan_pfc_params *params)
{
	return t->xoff_since + pause_watchdog_ns(params);
}

enum roan_pfc_tx_action roan_pfc_tx_decide_wd(struct roan_pfc_tx_state *t, const struct roan_pfc_params *params,
					      u64 backlog, u64 max_ns, u64 now)
{
	u64 xoff = READ_ONCE(params->pfc_emit_xoff) * KB;
	u64 xon = min(READ_ONCE(params->pfc_emit_xon) * KB, xoff);
	bool was = t->xoff_sent;
	enum roan_pfc_tx_action what;

	if (now < t->holdoff_until)
		return ROAN_PFC_TX_NONE;
	if (was && now >= xoff_watchdog_at(t, params)) {
		t->xoff_sent = false;
		t->holdoff_until = now + (u64)READ_ONCE(params->pfc_restore_ms) * NSEC_PER_MSEC;
		t->watchdog_trips++;
		return ROAN_PFC_TX_XON;
	}
	what = roan_pfc_tx_decide(t, backlog, xoff, xon, max_ns, now);
	if (t->xoff_sent && !was)
		t->xoff_since = now;
	return what;
}

enum roan_pfc_tx_action roan_pfc_tx_off(struct roan_pfc_tx_state *t)
{
	enum roan_pfc_tx_action what = t->xoff_sent ? ROAN_PFC_TX_XON : ROAN_PFC_TX_NONE;

	*t = (struct roan_pfc_tx_state) { .watchdog_trips = t->watchdog_trips };
	return what;
}

u64 roan_pfc_tx_deadline(const struct roan_pfc_tx_state *t, const struct roan_pfc_params *params, u64 now)
{
	if (t->xoff_sent)
		return min(t->refresh_at, xoff_watchdog_at(t, params));
	return now < t->holdoff_until ? t->holdoff_until : 0;
}
