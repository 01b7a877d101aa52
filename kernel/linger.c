// SPDX-License-Identifier: GPL-2.0
/*
 * When to look at a send ring again without being asked. A program that streams small messages over a short path rings
 * for each of them, because each is acknowledged before the next is posted. So when bells come in quick succession the
 * kernel leaves the doorbell off and looks again a little later; what has gathered by then leaves as one train. If
 * little has, it was a program that waits for answers, and it is left alone for longer and longer.
 *
 * The time is an upper bound. ROAN_RING_LINGERS tells the poster, and one that has nothing to do but wait for completions
 * rings at once (provider/bell.c), for all it has posted.
 */
#include "roan.h"

#define QUICK_NS	(1000 * NSEC_PER_USEC)	/* bells closer than this are a stream, perhaps */
#define LINGER_NS	(20 * NSEC_PER_USEC)
#define MAX_BATCH_NS	(200 * NSEC_PER_USEC)
#define WORTH		4			/* work requests gathered that make lingering worth it */
#define MIN_PATIENCE	16			/* quick bells before it is tried first */
#define MAX_PATIENCE	8192			/* doubled each time it was in vain, from one up where it had been worth it */

void roan_linger_reset(struct roan_sq *sq)
{
	sq->bell_at = 0;
	sq->linger_at = 0;
	sq->quick_bells = 0;
	sq->gathered = 0;
	sq->found_at = 0;
	sq->patience = MIN_PATIENCE;
}

/* A doorbell came. sq->lock held */
void roan_linger_bell(struct roan_sq *sq, u64 now)
{
	lockdep_assert_held(&sq->lock);
	sq->quick_bells = now - sq->bell_at < QUICK_NS ? sq->quick_bells + 1 : 0;
	sq->bell_at = now;
}

/* A look at the ring that began at @began found @fetched work requests. sq->lock held */
void roan_linger_found(struct roan_sq *sq, u64 began, u32 fetched)
{
	lockdep_assert_held(&sq->lock);
	if (!fetched)
		return;
	sq->gathered += fetched;
	sq->found_at = began;
}

/*
 * Nobody else will look at the ring: shall we? True: sq->linger_at says when. The wait is in proportion to what the last
 * batch took from fetching to acknowledgement: on one CPU the poster gets to run only then. sq->lock held
 */
bool roan_linger(struct roan_sq *sq)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&sq->lock);
	if (now < sq->linger_at)
		return true;		/* an answer brought us here; the time is not up */
	if (sq->linger_at && sq->gathered < WORTH) {
		sq->linger_at = 0;
		sq->quick_bells = 0;
		sq->patience = clamp(sq->patience * 2, 1, MAX_PATIENCE);
		return false;
	}
	if (!sq->linger_at && sq->quick_bells < sq->patience)
		return false;
	if (sq->linger_at)
		sq->patience = 0;	/* a stream: if its poster does not get to run in time once, the next bell will do */
	sq->gathered = 0;
	sq->linger_at = now + LINGER_NS + 2 * min(now - sq->found_at, MAX_BATCH_NS);
	return true;
}
