/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Priority flow control (802.1Qbb): what a pause frame means, whether packets of a priority may be sent, when to send
 * XOFF or XON to a peer. Frames, times and backlogs in, decisions out. flow/pfc_rx.c receives frames and keeps the QPs
 * that wait; flow/pfc_tx.c sends frames.
 *
 * A priority with PFC enabled:
 *
 *	a frame enables its class, time > 0	nothing is sent until now + time; a later frame replaces the time (XOFF)
 *	... time 0				packets are sent again (XON)
 *	no further frame			packets are sent again when the time is over
 *
 * The watchdog bounds the effect of frames, forged or not: if a packet has been held back for pfc_watchdog_ms without
 * any packet of its priority having been sent, pauses of that priority are ignored for pfc_restore_ms. Gaps too short
 * to send a packet do not end the measurement, however many frames come: the watchdog measures the wait, not the
 * frames.
 *
 *	if (!roan_pfc_rx_clear(p, now))				one or two loads, without a lock
 *		if (roan_pfc_rx_blocked(p, params, now))		with the caller's lock
 *			wait until roan_pfc_rx_deadline(p, params), or until roan_pfc_rx_pause() returns ENDED
 *
 * A zeroed state is valid. Time is ns, any epoch, never 0. Concurrency: the caller's lock; roan_pfc_rx_clear()
 * needs none.
 */
#ifndef ROAN_PFC_RULES_H
#define ROAN_PFC_RULES_H

#include "core/core_env.h"

#define ROAN_PRIORITIES		8
#define ROAN_PFC_FRAME_LEN	60	/* bytes without FCS: the only valid length of a MAC control frame */
#define ROAN_PFC_MAX_QUANTA		0xffff	/* quanta: the longest pause of one frame */

/*
 * The parameters, defined once; sysfs cc_param/NAME, table in Documentation/qos-pfc.md. Each is read with READ_ONCE(),
 * so a change applies from the next event on.
 *
 * X(name, unit, min, max, default, meaning)
 */
#define ROAN_PFC_PARAMS(X)									\
	X(pfc_prio_mask, "bits", 0, 255, 0, "priorities that obey pauses; 0: PFC is off")	\
	X(pfc_watchdog_ms, "ms", 1, 60000, 200, "longest time that packets are held back and none is sent")	\
	X(pfc_restore_ms, "ms", 1, 60000, 400, "time for which pauses are ignored after that")	\
	X(pfc_emit_mask, "bits", 0, 255, 0, "priorities whose senders are paused when their backlog grows")	\
	X(pfc_emit_xoff, "KB", 1, 16384, 256, "backlog above which XOFF is sent")	\
	X(pfc_emit_xon, "KB", 0, 16384, 128, "backlog at which XON is sent")

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
/* Returns false and changes nothing if @value is out of range. */
bool roan_pfc_param_set(struct roan_pfc_params *params, enum roan_pfc_param which, u32 value);

/* ---- frames ---- */

struct roan_pfc_frame {
	u8  enabled;			/* bit n: priority n has a time */
	u16 quanta[ROAN_PRIORITIES];	/* units of 512 bit times of the link; undefined for priorities not enabled */
};

enum roan_pfc_parse_result {
	ROAN_PFC_PARSE_OK,
	ROAN_PFC_PARSE_LENGTH,	/* not the length of a MAC control frame */
	ROAN_PFC_PARSE_DEST,	/* not to 01:80:C2:00:00:01 */
	ROAN_PFC_PARSE_OPCODE,	/* another MAC control frame, for example 802.3x link pause */
	ROAN_PFC_PARSE_VECTOR,	/* enables classes that do not exist */
};

/* @frame: @len bytes from the destination address on, without FCS. */
enum roan_pfc_parse_result roan_pfc_frame_parse(const u8 *frame, u32 len, struct roan_pfc_frame *out);
/* @address: MAC address of the sending interface. */
void roan_pfc_frame_build(u8 frame[ROAN_PFC_FRAME_LEN], const u8 address[6], const struct roan_pfc_frame *in);

/* Duration of @quanta at @link bit/s (not 0); rounded up, so that a pause never ends early. */
u64 roan_pfc_quanta_ns(u16 quanta, u64 link);

/* ---- pause frames received ---- */

struct roan_pfc_rx_state {
	u64 until;		/* ns: end of the pause; 0: never paused */
	u64 block_start_ns;	/* ns: packets have waited since then and none was sent; 0: none waits */
	u64 ignore_until;	/* ns: the watchdog ignores pauses until then; 0: never tripped */
	u32 watchdog_trips;	/* times the watchdog tripped */
};

enum roan_pfc_rx_event {
	ROAN_PFC_RX_BEGUN,
	ROAN_PFC_RX_EXTENDED,	/* was paused already: now until another time */
	ROAN_PFC_RX_ENDED,	/* XON: blocked QPs may send */
	ROAN_PFC_RX_NO_CHANGE,	/* XON, but nothing was paused */
	ROAN_PFC_RX_IGNORED,	/* muted by the watchdog */
};

/* Handles a frame that enables this priority for @ns; 0: XON. */
enum roan_pfc_rx_event roan_pfc_rx_pause(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 ns,
					 u64 now);

/* True if certainly not paused, and no wait is recorded. No lock needed. */
static inline bool roan_pfc_rx_clear(const struct roan_pfc_rx_state *p, u64 now)
{
	return now >= READ_ONCE(p->until) && !READ_ONCE(p->block_start_ns);
}

/* True if a packet to be sent now must wait. Records the start of the wait, or that a packet was sent. */
bool roan_pfc_rx_blocked(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 now);
/* The same for packets that wait already; records nothing. */
bool roan_pfc_rx_still_blocked(struct roan_pfc_rx_state *p, const struct roan_pfc_params *params, u64 now);
/* ns: when roan_pfc_rx_still_blocked() becomes false if no frame comes. Call only while paused. */
u64 roan_pfc_rx_deadline(const struct roan_pfc_rx_state *p, const struct roan_pfc_params *params);

/* ---- pause frames sent ---- */

struct roan_pfc_tx_state {
	bool xoff_sent;		/* XOFF was sent, and no XON since */
	u64 refresh_at;		/* ns: when XOFF must be renewed */
	/* ns: when XOFF began; this and the next two are used by roan_pfc_tx_decide_wd() only */
	u64 xoff_since;
	u64 holdoff_until;	/* ns: no frame is sent before */
	u32 watchdog_trips;	/* times the watchdog ended an XOFF */
};

enum roan_pfc_tx_action { ROAN_PFC_TX_NONE, ROAN_PFC_TX_XOFF, ROAN_PFC_TX_XON };

/*
 * Decides whether to send a frame; @backlog: bytes received and still queued. An XOFF lasts ROAN_PFC_MAX_QUANTA
 * quanta, which are @max_ns, and is renewed after half of that. Call it at each change of the backlog, and at
 * refresh_at while XOFF.
 */
enum roan_pfc_tx_action roan_pfc_tx_decide(struct roan_pfc_tx_state *t, u64 backlog, u64 xoff, u64 xon, u64 max_ns,
					   u64 now);

/*
 * The same for a host, with its parameters and watchdog: after pfc_watchdog_ms of XOFF it sends XON and then no frame
 * for pfc_restore_ms. The queued packets may wait for a disk, or for ever, and other traffic shares the priority.
 */
enum roan_pfc_tx_action roan_pfc_tx_decide_wd(struct roan_pfc_tx_state *t, const struct roan_pfc_params *params,
					      u64 backlog, u64 max_ns, u64 now);
/* PFC sending is turned off: returns XON if XOFF is active, and resets all state but the watchdog count. */
enum roan_pfc_tx_action roan_pfc_tx_off(struct roan_pfc_tx_state *t);
/* ns: when to call roan_pfc_tx_decide_wd() at the latest; 0: only when the backlog changes. */
u64 roan_pfc_tx_deadline(const struct roan_pfc_tx_state *t, const struct roan_pfc_params *params, u64 now);

#endif /* ROAN_PFC_RULES_H */
