/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixtures for the suites of the driver half (outside core/): an ib_device that was never registered, two protection
 * domains, QPs without CQs, MRs whose pages are not in address order. Only the functions in stubs.c are mocks.
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
	struct roan_qp qp;		/* RC QP of a user in @pd, with all remote access rights */
	struct roan_qp other_qp;	/* a second one in the same PD */
	struct dst_entry dst;
	struct net_device ndev;		/* the device of the route */
	struct roan_icrc icrc;		/* over the bytes gathered and read so far */
};

/* For kunit_suite.init and .exit; test->priv is the struct fake. */
int fake_init(struct kunit *test);
void fake_exit(struct kunit *test);

#define FAKE_PAGES	4

/*
 * An MR of FAKE_PAGES pages in descending address order, so that a copy past the end of a page is detected. Byte i is
 * (u8)(i * 7 + 1); the bytes around the MR are FAKE_EDGE. Freed when the case ends.
 */
struct roan_mr *fake_region(struct kunit *test, u64 iova, u32 page_off, u64 length, u32 access);
u8 *fake_byte(const struct roan_mr *mr, u64 off);	/* address of byte @off */
#define FAKE_EDGE	0xee
static inline u8 fake_pattern(u64 off)
{
	return off * 7 + 1;
}

bool fake_edges_intact(const struct roan_mr *mr);	/* of the bytes around the MR */
u64 fake_changed(const struct roan_mr *mr);		/* number of bytes that differ from the pattern */

static inline struct roan_sge_list list_of(const struct fake *f, const struct roan_sge *sge, u32 n)
{
	return (struct roan_sge_list) { sge, n, f->qp.ib.pd };
}

/* The driver calls these with softirqs off, and a case runs in a task that may be preempted. */
#define WITH_BH_OFF(call) ({			\
	u32 verr_;				\
						\
	local_bh_disable();			\
	verr_ = (call);				\
	local_bh_enable();			\
	verr_;					\
})
#define roan_scatter(...)		WITH_BH_OFF(roan_scatter(__VA_ARGS__))
#define roan_gather(...)		WITH_BH_OFF(roan_gather(__VA_ARGS__))
#define roan_remote_check(...)		WITH_BH_OFF(roan_remote_check(__VA_ARGS__))
#define roan_remote_read(...)		WITH_BH_OFF(roan_remote_read(__VA_ARGS__))
#define roan_remote_write(...)		WITH_BH_OFF(roan_remote_write(__VA_ARGS__))
#define roan_remote_atomic(...)		WITH_BH_OFF(roan_remote_atomic(__VA_ARGS__))
#define roan_remote_flush(...)		WITH_BH_OFF(roan_remote_flush(__VA_ARGS__))

static inline u32 remote_atomic_write(struct fake *f, const struct roan_mr *mr, u64 va, u64 value)
{
	const struct roan_pkt pkt = {
		.info = roan_opcode(roan_opcode_of(ROAN_TP_RC, ROAN_OP_ATOMIC_WRITE, ROAN_SEG_ONLY, ROAN_EXT_NONE)),
		.rkey = mr->key.key, .va = va, .swap_add = value,
	};
	u64 orig;

	return roan_remote_atomic(&f->qp, &pkt, &orig);
}

/* stubs.c */
extern struct sk_buff_head fake_sent;	/* skbs passed to roan_net_xmit(), oldest first */
extern bool fake_no_route;		/* roan_dst_cache_get() fails */
extern struct dst_entry *fake_dst;	/* otherwise it returns this */
extern u32 fake_absent_psn;		/* roan_request_execute() is blocked from this PSN on */
u64 fake_count(enum roan_counter which);
void fake_counts_reset(void);
struct roan_stats __percpu *fake_stats(void);

#endif /* ROAN_KUNIT_FAKES_H */
