// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes PFC. Receiving: any sequence of frames, valid or not, for one priority with unlimited data. An accepted frame
 * must be rebuilt to the same bytes, and nothing is blocked longer than the watchdog time. Sending: any course of a
 * backlog. The peer must be paused without a gap while the rules demand it, and never longer than the watchdog time.
 */
#include "core/flow/pfc_rules.h"

#define MUST(c)	do { if (!(c)) abort(); } while (0)
#define LINK	10000000000ULL

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/*
 * The parser ignores bytes behind the times and the times of disabled classes. A copy with these bytes cleared must
 * equal the rebuilt frame.
 */
static bool take(const u8 *data, u32 len, struct roan_pfc_frame *f)
{
	u8 *frame = malloc(len ? len : 1);	/* exact size, so that ASan reports a read past the end */
	u8 again[ROAN_PFC_FRAME_LEN];
	bool ok;
	u32 i;

	if (!frame)
		abort();
	memcpy(frame, data, len);
	ok = roan_pfc_frame_parse(frame, len, f) == ROAN_PFC_PARSE_OK;
	if (ok) {
		memset(frame + 34, 0, len - 34);
		for (i = 0; i < ROAN_PRIORITIES; i++)
			if (!(f->enabled & BIT(i)))
				memset(frame + 18 + 2 * i, 0, 2);
		roan_pfc_frame_build(again, frame + 6, f);
		MUST(!memcmp(again, frame, sizeof(again)));
	}
	free(frame);
	return ok;
}

#define MAX_NS	(3 * (u64)NSEC_PER_MSEC)

static void tell(const u8 *data, size_t size, const struct roan_pfc_params *params)
{
	u64 now = 1000, backlog = 0, since = 0, paused_until = 0, next, when;
	struct roan_pfc_tx_state t = {};
	bool was;

	for (; size >= 2; data += 2, size -= 2) {
		next = now + ((u64)data[0] << (data[1] & 31));
		when = roan_pfc_tx_deadline(&t, params, now);
		MUST(!when || when > now);
		if (when && when <= next)
			next = when;		/* the timer fires first; skip the remaining time */
		else
			backlog = (u64)data[1] << 11;
		now = next;
		was = t.xoff_sent;
		MUST(!was || now < paused_until);	/* the refresh must come before the pause ends */
		switch (roan_pfc_tx_decide_wd(&t, params, backlog, MAX_NS, now)) {
		case ROAN_PFC_TX_XOFF:
			MUST(backlog > params->pfc_emit_xon * 1024);
			since = was ? since : now;
			paused_until = now + MAX_NS;
			break;
		case ROAN_PFC_TX_XON:
			MUST(was && !t.xoff_sent);
			MUST(now - since <= params->pfc_watchdog_ms * (u64)NSEC_PER_MSEC);
			break;
		case ROAN_PFC_TX_NONE:
			MUST(was == t.xoff_sent);
			break;
		}
		MUST(t.xoff_sent || t.holdoff_until > now || backlog <= params->pfc_emit_xoff * 1024);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct roan_pfc_params params;
	struct roan_pfc_rx_state p = {};
	struct roan_pfc_frame f;
	u64 now = 1000, held = 0, next;
	size_t at;
	u32 len;

	take(data, min_t(size_t, size, 100), &f);
	roan_pfc_params_default(&params);
	tell(data, size, &params);
	for (at = 0; at + 4 <= size; at += 4) {
		/* Mostly pause times; sometimes a whole frame, with its length in the byte before. */
		next = now + ((u64)data[at] << (data[at + 1] & 31));
		if (held && roan_pfc_rx_deadline(&p, &params) <= next) {	/* the timer fires first */
			now = roan_pfc_rx_deadline(&p, &params);
			MUST(!roan_pfc_rx_still_blocked(&p, &params, now) && !roan_pfc_rx_blocked(&p, &params, now));
			held = 0;
		}
		now = next;
		len = data[at + 1] & 0x40 ? min_t(size_t, data[at + 2], size - at - 4) : 0;
		if (len && take(data + at + 4, len, &f) && f.enabled & 8)
			roan_pfc_rx_pause(&p, &params, roan_pfc_quanta_ns(f.quanta[3], LINK), now);
		else if (data[at + 1] & 0x80)
			roan_pfc_rx_pause(&p, &params, (u64)data[at + 2] << (data[at + 3] & 31), now);
		if (roan_pfc_rx_clear(&p, now) || !roan_pfc_rx_blocked(&p, &params, now)) {
			held = 0;
			continue;
		}
		held = held ? held : now;
		MUST(now - held < params.pfc_watchdog_ms * (u64)NSEC_PER_MSEC);
		MUST(roan_pfc_rx_deadline(&p, &params) > now);
		MUST(roan_pfc_rx_deadline(&p, &params) <= held + params.pfc_watchdog_ms * (u64)NSEC_PER_MSEC);
	}
	return 0;
}
