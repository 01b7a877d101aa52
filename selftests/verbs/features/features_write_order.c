// SPDX-License-Identifier: GPL-2.0
/*
 * A program that polls one byte of a WRITE, instead of a completion, finds written what comes before it: before the
 * last byte, and in a WRITE of up to 512 bytes before any 8 bytes.
 */
#include "features.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS	2000

struct writer {
	struct pair p;
	uint32_t len;
	size_t offset;		/* of the next WRITE */
	atomic_int go;		/* the round that the thread begins; -1: the end */
	atomic_int done;	/* the round of the last completed WRITE */
};

/* The copy may begin at either end, by the alignment of both sides. */
static size_t where(int round, int step)
{
	return BUF / 2 + round % 64 * step;
}

static uint8_t value(int round)
{
	return round % 255 + 1;
}

static void *write_each_round(void *arg)
{
	struct writer *w = arg;
	int round, last = 0;

	while ((round = atomic_load(&w->go)) >= 0) {
		if (round == last) {
			sched_yield();
			continue;
		}
		memset(w->p.buf, value(round), w->len);
		if (post_op(&w->p, 0, IBV_WR_RDMA_WRITE, 0, w->offset, w->len, 0) ||
		    status_of(w->p.scq[0], 20000) != IBV_WC_SUCCESS)
			vt_die("WRITE");
		atomic_store(&w->done, round);
		last = round;
	}
	return NULL;
}

/* What comes before the polled byte is read once it has arrived. */
static bool rest_has_arrived(const volatile uint8_t *to, uint32_t len, uint8_t byte)
{
	atomic_thread_fence(memory_order_acquire);
	for (uint32_t i = 0; i < len; i++)
		if (to[i] != byte)
			return false;
	return true;
}

/* Polls the byte at @polled of each WRITE. The WRITEs begin @step bytes apart. */
static void poll_writes(struct writer *w, uint32_t polled, int step)
{
	pthread_t thread;
	int n, early = 0;

	atomic_store(&w->go, 0);
	memset(w->p.buf + BUF / 2, 0, BUF / 2);
	if (pthread_create(&thread, NULL, write_each_round, w))
		vt_die("pthread_create");
	for (n = 1; n <= ROUNDS; n++) {
		const volatile uint8_t *to = w->p.buf + where(n, step);
		uint64_t end = vt_now_ms() + 20000;

		w->offset = where(n, step);
		atomic_store(&w->go, n);
		while (to[polled] != value(n) && vt_now_ms() < end)
			;
		if (to[polled] != value(n))
			break;
		early += !rest_has_arrived(to, polled == w->len - 1 ? polled : polled & ~7u, value(n));
		while (atomic_load(&w->done) != n)
			sched_yield();
	}
	atomic_store(&w->go, -1);
	pthread_join(thread, NULL);
	vt_ok(n > ROUNDS && !early, "RC: byte %u of a WRITE of %u bytes arrives after those before it (%d of %d rounds, %d times too early)",
	      polled, w->len, n - 1, ROUNDS, early);
}

void test_write_order(struct vt_dev *d)
{
	struct writer w = { .len = 128u << d->mtu };

	pair_open(&w.p, d, IBV_QPT_RC, 64, NULL);
	poll_writes(&w, w.len - 1, 1);
	w.len = 64;
	poll_writes(&w, 24, 64);	/* UCCL: struct FifoItem */
	poll_writes(&w, 40, 64);	/* NCCL: struct ncclIbSendFifo */
	poll_writes(&w, 63, 1);
	w.len = 512;
	poll_writes(&w, 40, 64);	/* the same, several entries at once */
	poll_writes(&w, 488, 64);
	pair_close(&w.p);
}
