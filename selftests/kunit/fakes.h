/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of the shell stand on: an ib_device that was never registered, two protection domains, QPs that belong
 * to no queue, memory whose pages lie in no order. Below them nothing is a mock but what stubs.c names.
 */
#ifndef ROAN_KUNIT_FAKES_H
#define ROAN_KUNIT_FAKES_H

#include <kunit/test.h>
#include "base/base.h"
#include "mem/mem.h"
#include "rx/rx.h"
#include "tx/gso.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

struct fake {
	struct roan_dev dev;
	struct roan_pd pd;
	struct roan_pd other_pd;
	struct roan_qp qp;		/* a user's RC QP in pd, every remote access allowed */
	struct roan_qp other_qp;	/* another one in the same pd */
	struct dst_entry dst;
	struct net_device ndev;		/* where dst leads */
	struct roan_icrc icrc;		/* of what was gathered and read so far */
};

/* A suite's init and exit; test->priv is the struct fake. */
int fake_init(struct kunit *test);
void fake_exit(struct kunit *test);

#define FAKE_PAGES	4

/*
 * Registered user memory of FAKE_PAGES pages, each of which lies before the one it follows, so that whoever runs over a
 * page's end is seen. Byte i of the region is (u8)(i * 7 + 1), what lies around it FAKE_EDGE. Live until the case ends.
 */
struct roan_mr *fake_region(struct kunit *test, u64 iova, u32 page_off, u64 length, u32 access);
u8 *fake_byte(const struct roan_mr *mr, u64 off);	/* where byte @off of the region is */
#define FAKE_EDGE	0xee
static inline u8 fake_pattern(u64 off)
{
	return off * 7 + 1;
}

bool fake_edges_intact(const struct roan_mr *mr);	/* the bytes around the region */
u64 fake_changed(const struct roan_mr *mr);		/* how many bytes of the region have not the pattern */

static inline struct roan_sge_list list_of(const struct fake *f, const struct roan_sge *sge, u32 n)
{
	return (struct roan_sge_list) { sge, n, f->qp.ib.pd };
}

/* stubs.c */
extern struct sk_buff_head fake_sent;	/* what roan_net_xmit() was given, oldest first */
extern bool fake_no_route;		/* roan_dst_cache_get() says no */
extern struct dst_entry *fake_dst;	/* ... or routes by this */
u64 fake_count(enum roan_counter which);
void fake_counts_reset(void);
struct roan_stats __percpu *fake_stats(void);

#endif /* ROAN_KUNIT_FAKES_H */
