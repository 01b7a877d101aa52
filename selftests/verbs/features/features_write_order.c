// SPDX-License-Identifier: GPL-2.0
/* A program that polls the last byte of a WRITE, instead of a completion, finds the rest written. */
#include "features.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS	2000

struct writer {
	struct pair p;
	uint32_t len;
	atomic_int go;		/* the round that the thread begins; -1: the end */
	atomic_int done;	/* the round of the last completed WRITE */
};

/* The copy may begin at either end, by the alignment of both sides. */
static size_t where(int round)
{
	return BUF / 2 + round % 64;
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
		if (post_op(&w->p, 0, IBV_WR_RDMA_WRITE, 0, where(round), w->len, 0) ||
		    status_of(w->p.scq[0], 20000) != IBV_WC_SUCCESS)
			vt_die("WRITE");
		atomic_store(&w->done, round);
		last = round;
	}
	return NULL;
}

/* The bytes before the last are read once it has arrived. */
static bool rest_has_arrived(const volatile uint8_t *to, uint32_t len, uint8_t byte)
{
	atomic_thread_fence(memory_order_acquire);
	for (uint32_t i = 0; i < len; i++)
		if (to[i] != byte)
			return false;
	return true;
}

void test_write_order(struct vt_dev *d)
{
	struct writer w = { 0 };
	pthread_t thread;
	int n, early = 0;

	w.len = 128u << d->mtu;
	pair_open(&w.p, d, IBV_QPT_RC, 64, NULL);
	memset(w.p.buf + BUF / 2, 0, BUF / 2);
	if (pthread_create(&thread, NULL, write_each_round, &w))
		vt_die("pthread_create");
	for (n = 1; n <= ROUNDS; n++) {
		const volatile uint8_t *to = w.p.buf + where(n);
		uint64_t end = vt_now_ms() + 20000;

		atomic_store(&w.go, n);
		while (to[w.len - 1] != value(n) && vt_now_ms() < end)
			;
		if (to[w.len - 1] != value(n))
			break;
		early += !rest_has_arrived(to, w.len, value(n));
		while (atomic_load(&w.done) != n)
			sched_yield();
	}
	atomic_store(&w.go, -1);
	pthread_join(thread, NULL);
	vt_ok(n > ROUNDS && !early, "RC: the last byte of a WRITE of %u bytes arrives last (%d of %d rounds, %d times too early)",
	      w.len, n - 1, ROUNDS, early);
	pair_close(&w.p);
}
