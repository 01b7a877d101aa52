// SPDX-License-Identifier: GPL-2.0
/* Common to both simulations: an event queue ordered by time, a random number generator, marking. */
#include <stdlib.h>
#include "ccsim.h"

double random_unit(u64 *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*seed >> 11) * 0x1p-53;
}

/* ---- events: a binary heap ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void event_add(struct events *events, struct event e)
{
	u32 i = events->n++;

	if (events->n > events->room) {
		events->room = events->room ? 2 * events->room : 1024;
		events->heap = realloc(events->heap, events->room * sizeof(*events->heap));
		if (!events->heap)
			abort();
	}
	for (; i && earlier(&e, &events->heap[(i - 1) / 2]); i = (i - 1) / 2)
		events->heap[i] = events->heap[(i - 1) / 2];
	events->heap[i] = e;
}

struct event event_take(struct events *events)
{
	struct event *heap = events->heap, first = heap[0], last = heap[--events->n];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < events->n) {
		if (child + 1 < events->n && earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!earlier(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* ---- marking ---- */

double red_probability(const struct red *red, double queue)
{
	if (queue <= red->kmin)
		return 0;
	return queue > red->kmax ? 1 : red->pmax * (queue - red->kmin) / (red->kmax - red->kmin);
}

bool red_counts(struct red_state *state, double p, u64 *seed)
{
	if (p <= 0 || p >= 1) {
		state->count = -1;
		return p >= 1;
	}
	if (++state->count && state->count * p >= state->random) {
		state->count = 0;
		state->random = random_unit(seed);
		return true;
	}
	if (!state->count)
		state->random = random_unit(seed);
	return false;
}
