/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Priority flow control (802.1Qbb): what a pause frame says, whether packets of a priority may leave, when a peer is to be
 * told to stop or to go on. Frames, times and backlogs in, verdicts out; who waits for the end of a pause, and where frames
 * come from, is pfc_rx.c's.
 *
 * A priority that heeds pauses:
 *
 *	a frame enables its class, time > 0	nothing leaves until now + time; a later frame replaces the time (XOFF)
 *	... time 0				packets leave again (XON)
 *	neither					packets leave again when the time is over
 *
 * The watchdog bounds what frames can do, forged or not: once a packet has been held back for watchdog_ms without a single one
 * of its priority having left, pauses of that priority are ignored for restore_ms. Gaps too short for a packet to slip
 * through do not count as ends, however many frames come: what is timed is the wait, not the frame.
 *
 *	if (!roan_pfc_rx_clear(p, now))				one or two loads, without a lock
 *		if (roan_pfc_rx_blocked(p, params, now))		with the caller's lock
 *			wait until roan_pfc_rx_deadline(p, params), or until heard() says ENDED
 *
 * Zeroed is a valid state. Time is ns, any epoch, never 0. Concurrency: the caller's lock, one per priority, but for open().
 */
#ifndef ROAN_PFC_RULES_H
#define ROAN_PFC_RULES_H

#include "core/core_env.h"

#define ROAN_PRIORITIES		8
#define ROAN_PFC_FRAME_LEN	60	/* bytes without FCS: MAC control frames have this length and no other */
#define ROAN_PFC_MAX_QUANTA		0xffff	/* quanta: the longest pause one frame can ask for */

/*
 * The tunables, once; cc_param/NAME. Each is read with READ_ONCE(), so a change counts from the next event on.
 * X(name, unit, min, max, default, meaning)
 */
#define ROAN_PFC_PARAMS(X)									\
	X(pfc_prio_mask, "bits", 0, 255, 0, "priorities that heed pauses; 0: PFC is off")	\
	X(pfc_watchdog_ms, "ms", 1, 60000, 200, "longest that packets are held back without one having left")	\
	X(pfc_restore_ms, "ms", 1, 60000, 400, "pauses are ignored so long after that")	\
	X(pfc_emit_mask, "bits", 0, 255, 0, "priorities whose sender is told to stop when much of it waits here")	\
	X(pfc_emit_xoff, "KB", 1, 16384, 256, "more than this waits: stop")	\
	X(pfc_emit_xon, "KB", 0, 16384, 128, "no more than this waits: go on")

#define X(name, unit, min, max, def, meaning) u32 name;
struct roan_pfc_params {
	ROAN_PFC_PARAMS(X)
};
#undef X

#define X(name, unit, min, max, def, meaning) ROAN_PFC_PARAM_##name,
enum roan_pfc_param { ROAN_PFC_PARAMS(X) ROAN_PFC_NUM_PARAMS };
#undef X

void roan_pfc_params_default(struct roan_pfc_params *params);
u32 roan_pfc_param_get(const struct roan_pfc_params *params, enum roan_pfc_param which);
/* False: out of range, and nothing changed. */
bool roan_pfc_param_set(struct roan_pfc_params *params, enum roan_pfc_param which, u32 value);

/* ---- frames ---- */

struct roan_pfc_frame {
	u8  enabled;			/* bit n: priority n has a time */
	u16 quanta[ROAN_PRIORITIES];	/* 512 bit times of the link each; of priorities not enabled meaningless */
};

enum roan_pfc_parse_result {
	ROAN_PFC_PARSE_OK,
	ROAN_PFC_PARSE_LENGTH,	/* not as long as a MAC control frame is */
	ROAN_PFC_PARSE_DEST,	/* not to 01:80:C2:00:00:01 */
	ROAN_PFC_PARSE_OPCODE,	/* another MAC control frame: the pause of a whole link, for one */
	ROAN_PFC_PARSE_VECTOR,	/* enables classes that do not exist */
};

/* @frame: @len bytes from the destination address on, without FCS. */
enum roan_pfc_parse_result roan_pfc_frame_parse(const u8 *frame, u32 len, struct roan_pfc_frame *out);
/* @address: the sender's own. */
void roan_pfc_frame_build(u8 frame[ROAN_PFC_FRAME_LEN], const u8 address[6], const struct roan_pfc_frame *in);

/* How long so many quanta last at @link bit/s, which is not 0; rounded up: a pause never ends early. */
u64 roan_pfc_quanta_ns(u16 quanta, u64 link);

/* ---- heeding them ---- */

struct roan_pfc_rx_state {
	u64 until;		/* ns: nothing leaves before; 0: never paused */
	u64 block_start_ns;	/* ns: since then somebody has waited and nobody has left; 0: nobody waits */
	u64 ignore_until;	/* ns: the watchdog lets no pause through before; 0: it never had to */
	u32 watchdog_trips;	/* how often it had to */
};

enum roan_pfc_rx_event {
	ROAN_PFC_RX_BEGUN,
	ROAN_PFC_RX_EXTENDED,	/* was paused already: until another time now */
	ROAN_PFC_RX_ENDED,	/* XON: whoever waits may go */
	ROAN_PFC_RX_NO_CHANGE,	/* XON, but nothing was paused */
	ROAN_PFC_RX_IGNORED,	/* the watchdog's doing */
};

/* A frame enabled this priority for @ns; 0: XON. */
enum roan_pfc_rx_event roan_pfc_rx_pause(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 ns,
					 u64 now);

/* Surely not paused, and nothing to note. */
static inline bool roan_pfc_rx_clear(const struct roan_pfc_rx_state *p, u64 now)
{
	return now >= READ_ONCE(p->until) && !READ_ONCE(p->block_start_ns);
}

/* Somebody has a packet: must it wait? Notes that it does, or that it left. */
bool roan_pfc_rx_blocked(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 now);
/* The same, of whoever waits already: may they go? */
bool roan_pfc_rx_still_blocked(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 now);
/* ns: when lasts() will say no, if no frame comes. Paused now. */
u64 roan_pfc_rx_deadline(const struct roan_pfc_rx_state *p, const struct roan_pfc_params *params);

/* ---- telling a peer ---- */

struct roan_pfc_tx_state {
	bool xoff_sent;		/* the peer was told to stop, and not yet to go on */
	u64 refresh_at;		/* ns: then it must be told again */
	u64 xoff_since;		/* ns: off since then; only tell_host() has these three */
	u64 holdoff_until;	/* ns: nothing is told before */
	u32 watchdog_trips;	/* how often it was off too long */
};

enum roan_pfc_tx_action { ROAN_PFC_TX_NONE, ROAN_PFC_TX_XOFF, ROAN_PFC_TX_XON };

/*
 * What was received and not yet passed on is @backlog bytes now. XOFF is for ROAN_PFC_MAX_QUANTA quanta, which last
 * @max_ns, and
 * is told again after half of that. To be asked at each change of the backlog, and at refresh_at while off.
 */
enum roan_pfc_tx_action roan_pfc_tx_decide(struct roan_pfc_tx_state *t, u64 backlog, u64 xoff, u64 xon, u64 max_ns,
					   u64 now);

/*
 * The same for a host, by its parameters and under its watchdog: a peer that has been off for pfc_watchdog_ms is told to go on,
 * and nothing more for pfc_restore_ms. What waits may wait for a disk, or for ever, and others share the priority.
 */
enum roan_pfc_tx_action roan_pfc_tx_decide_wd(struct roan_pfc_tx_state *t, const struct roan_pfc_params *params,
					      u64 backlog,
					  u64 max_ns, u64 now);
/* Nothing is to be told any more: who is off goes on, and all but the count is forgotten. */
enum roan_pfc_tx_action roan_pfc_tx_off(struct roan_pfc_tx_state *t);
/* ns: to be asked then at the latest; 0: at a change of the backlog. */
u64 roan_pfc_tx_deadline(const struct roan_pfc_tx_state *t, const struct roan_pfc_params *params, u64 now);

#endif /* ROAN_PFC_RULES_H */
