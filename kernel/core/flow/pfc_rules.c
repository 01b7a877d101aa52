// SPDX-License-Identifier: GPL-2.0
/* The rules of priority flow control; see pfc_rules.h. Knows no device, no queue and no timer. */
#include "core/flow/pfc_rules.h"

/* ---- parameters ---- */

struct bounds {
	u32 min, max, def;
};

#define X(name, unit, lo, hi, dflt, meaning)	\
	[ROAN_PAUSE_PARAM_##name] = { .min = lo, .max = hi, .def = dflt },
static const struct bounds bounds[ROAN_PAUSE_NUM_PARAMS] = { ROAN_PAUSE_PARAMS(X) };
#undef X

static_assert(sizeof(struct roan_pause_params) == ROAN_PAUSE_NUM_PARAMS * sizeof(u32), "all are u32");

void roan_pause_params_default(struct roan_pause_params *params)
{
	u32 *value = (u32 *)params;
	u32 i;

	for (i = 0; i < ROAN_PAUSE_NUM_PARAMS; i++)
		value[i] = bounds[i].def;
}

u32 roan_pause_param_get(const struct roan_pause_params *params, enum roan_pause_param which)
{
	return READ_ONCE(((const u32 *)params)[which]);
}

bool roan_pause_param_set(struct roan_pause_params *params, enum roan_pause_param which, u32 value)
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

enum roan_pause_parse roan_pause_parse(const u8 *frame, u32 len, struct roan_pause_frame *out)
{
	u32 vector, i;

	if (len != ROAN_PAUSE_FRAME)
		return ROAN_PAUSE_LENGTH;
	if (memcmp(frame, pause_address, sizeof(pause_address)))
		return ROAN_PAUSE_DEST;
	if (get_unaligned_be32(frame + AT_TYPE) != TYPE_OPCODE)
		return ROAN_PAUSE_OPCODE;
	vector = get_unaligned_be16(frame + AT_VECTOR);
	if (vector > 0xff)
		return ROAN_PAUSE_VECTOR;
	out->enabled = vector;
	for (i = 0; i < ROAN_PRIORITIES; i++)
		out->quanta[i] = get_unaligned_be16(frame + AT_TIMES + 2 * i);
	return ROAN_PAUSE_OK;
}

void roan_pause_build(u8 frame[ROAN_PAUSE_FRAME], const u8 address[6], const struct roan_pause_frame *in)
{
	u32 i;

	memset(frame, 0, ROAN_PAUSE_FRAME);
	memcpy(frame, pause_address, sizeof(pause_address));
	memcpy(frame + AT_SOURCE, address, 6);
	put_unaligned_be32(TYPE_OPCODE, frame + AT_TYPE);
	put_unaligned_be16(in->enabled, frame + AT_VECTOR);
	for (i = 0; i < ROAN_PRIORITIES; i++)
		put_unaligned_be16(in->enabled & BIT(i) ? in->quanta[i] : 0, frame + AT_TIMES + 2 * i);
}

u64 roan_pause_ns(u16 quanta, u64 link)
{
	return div64_u64((u64)quanta * QUANTUM_BITS * NSEC_PER_SEC + link - 1, link);
}

/* ---- heeding ---- */

static u64 patience(const struct roan_pause_params *params)
{
	return (u64)READ_ONCE(params->pfc_watchdog_ms) * NSEC_PER_MSEC;
}

/* The watchdog, if it was due: everything else is as of @now afterwards. */
static void watch(struct roan_pause *p, const struct roan_pause_params *params, u64 now)
{
	u64 end = p->held_at + patience(params);

	if (!p->held_at || p->until <= end || now < end)
		return;
	WRITE_ONCE(p->until, end);
	WRITE_ONCE(p->held_at, 0);
	p->ignore_until = end + (u64)READ_ONCE(params->pfc_restore_ms) * NSEC_PER_MSEC;
	p->storms++;
}

enum roan_pause_event roan_pause_heard(struct roan_pause *p, const struct roan_pause_params *params, u64 ns, u64 now)
{
	bool was;

	watch(p, params, now);
	was = now < p->until;
	if (!ns) {
		if (!was)
			return ROAN_PAUSE_NO_CHANGE;
		WRITE_ONCE(p->until, now);
		return ROAN_PAUSE_ENDED;
	}
	if (now < p->ignore_until)
		return ROAN_PAUSE_IGNORED;
	/* Nobody left although they long could have: who waited is there no more. */
	if (!was && now - p->until >= patience(params))
		WRITE_ONCE(p->held_at, 0);
	WRITE_ONCE(p->until, now + ns);
	return was ? ROAN_PAUSE_EXTENDED : ROAN_PAUSE_BEGUN;
}

bool roan_pause_lasts(struct roan_pause *p, const struct roan_pause_params *params, u64 now)
{
	watch(p, params, now);
	return now < p->until;
}

bool roan_pause_blocks(struct roan_pause *p, const struct roan_pause_params *params, u64 now)
{
	bool blocks = roan_pause_lasts(p, params, now);

	if (!blocks)
		WRITE_ONCE(p->held_at, 0);
	else if (!p->held_at)
		WRITE_ONCE(p->held_at, now);
	return blocks;
}

u64 roan_pause_when(const struct roan_pause *p, const struct roan_pause_params *params)
{
	return p->held_at ? min(p->until, p->held_at + patience(params)) : p->until;
}

/* ---- telling ---- */

enum roan_pause_tell roan_pause_tell(struct roan_pause_teller *t, u64 backlog, u64 xoff, u64 xon, u64 max_ns, u64 now)
{
	if (t->off && backlog <= xon) {
		t->off = false;
		return ROAN_TELL_XON;
	}
	if (t->off ? now < t->refresh_at : backlog <= xoff)
		return ROAN_TELL_NOTHING;
	t->off = true;
	t->refresh_at = now + max_ns / 2;
	return ROAN_TELL_XOFF;
}

#define KB	1024ull

static u64 tired_at(const struct roan_pause_teller *t, const struct roan_pause_params *params)
{
	return t->since + patience(params);
}

enum roan_pause_tell roan_pause_tell_host(struct roan_pause_teller *t, const struct roan_pause_params *params, u64 backlog,
					  u64 max_ns, u64 now)
{
	u64 xoff = READ_ONCE(params->pfc_emit_xoff) * KB;
	u64 xon = min(READ_ONCE(params->pfc_emit_xon) * KB, xoff);
	bool was = t->off;
	enum roan_pause_tell what;

	if (now < t->mute_until)
		return ROAN_TELL_NOTHING;
	if (was && now >= tired_at(t, params)) {
		t->off = false;
		t->mute_until = now + (u64)READ_ONCE(params->pfc_restore_ms) * NSEC_PER_MSEC;
		t->storms++;
		return ROAN_TELL_XON;
	}
	what = roan_pause_tell(t, backlog, xoff, xon, max_ns, now);
	if (t->off && !was)
		t->since = now;
	return what;
}

enum roan_pause_tell roan_pause_tell_end(struct roan_pause_teller *t)
{
	enum roan_pause_tell what = t->off ? ROAN_TELL_XON : ROAN_TELL_NOTHING;

	*t = (struct roan_pause_teller) { .storms = t->storms };
	return what;
}

u64 roan_pause_tell_when(const struct roan_pause_teller *t, const struct roan_pause_params *params, u64 now)
{
	if (t->off)
		return min(t->refresh_at, tired_at(t, params));
	return now < t->mute_until ? t->mute_until : 0;
}
