// SPDX-License-Identifier: GPL-2.0
/*
 * Any sequence of frames, right or not, forged or not, against one priority that always has something to send: what is
 * accepted is built again to the same bytes, and nothing waits longer than the watchdog's bound.
 */
#include "../../kernel/cc/pause.h"

#define MUST(c)	do { if (!(c)) abort(); } while (0)
#define LINK	10000000000ULL

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Bytes behind the times, and times of classes not enabled, are ignored: a copy without them must be what build() makes. */
static bool take(const u8 *data, u32 len, struct roan_pause_frame *f)
{
	u8 *frame = malloc(len ? len : 1);	/* the parser may see no more than this */
	u8 again[ROAN_PAUSE_FRAME];
	bool ok;
	u32 i;

	if (!frame)
		abort();
	memcpy(frame, data, len);
	ok = roan_pause_parse(frame, len, f) == ROAN_PAUSE_OK;
	if (ok) {
		memset(frame + 34, 0, len - 34);
		for (i = 0; i < ROAN_PRIORITIES; i++)
			if (!(f->enabled & BIT(i)))
				memset(frame + 18 + 2 * i, 0, 2);
		roan_pause_build(again, frame + 6, f);
		MUST(!memcmp(again, frame, sizeof(again)));
	}
	free(frame);
	return ok;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct roan_pause_params params;
	struct roan_pause p = {};
	struct roan_pause_frame f;
	u64 now = 1000, held = 0, next;
	size_t at;
	u32 len;

	take(data, min_t(size_t, size, 100), &f);
	roan_pause_params_default(&params);
	for (at = 0; at + 4 <= size; at += 4) {
		/* Mostly times that matter; sometimes a whole frame, with its length in the byte before. */
		next = now + ((u64)data[at] << (data[at + 1] & 31));
		if (held && roan_pause_when(&p, &params) <= next) {	/* the timer wakes who waits */
			now = roan_pause_when(&p, &params);
			MUST(!roan_pause_lasts(&p, &params, now) && !roan_pause_blocks(&p, &params, now));
			held = 0;
		}
		now = next;
		len = data[at + 1] & 0x40 ? min_t(size_t, data[at + 2], size - at - 4) : 0;
		if (len && take(data + at + 4, len, &f) && f.enabled & 8)
			roan_pause_heard(&p, &params, roan_pause_ns(f.quanta[3], LINK), now);
		else if (data[at + 1] & 0x80)
			roan_pause_heard(&p, &params, (u64)data[at + 2] << (data[at + 3] & 31), now);
		if (roan_pause_open(&p, now) || !roan_pause_blocks(&p, &params, now)) {
			held = 0;
			continue;
		}
		held = held ? held : now;
		MUST(now - held < params.pfc_watchdog_ms * (u64)NSEC_PER_MSEC);
		MUST(roan_pause_when(&p, &params) > now);
		MUST(roan_pause_when(&p, &params) <= held + params.pfc_watchdog_ms * (u64)NSEC_PER_MSEC);
	}
	return 0;
}
