// SPDX-License-Identifier: GPL-2.0
/*
 * A queueing discipline that marks as switches with a shared buffer do: a packet is judged when it leaves, by the bytes
 * it leaves behind. Linux's red judges a packet when it arrives, so a mark is as old as the queue is long when it is
 * seen.
 *
 *	tc qdisc add dev p1 parent 1:1 handle 10: egress_red
 *
 * A packet that leaves up to `kmin` bytes behind is not marked, one that leaves more than `kmax` always is. Between the
 * two the probability rises to `ppm` millionths. Each packet is judged separately, by numbers that are the same in
 * every run.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>

#define MILLION	1000000

MODULE_DESCRIPTION("A queue that marks what leaves it, for tests");
MODULE_LICENSE("GPL");

static uint kmin = 5000;
module_param(kmin, uint, 0444);
MODULE_PARM_DESC(kmin, "bytes left behind up to which nothing is marked");
static uint kmax = 200000;
module_param(kmax, uint, 0444);
MODULE_PARM_DESC(kmax, "bytes left behind above which everything is marked");
static uint ppm = 10000;
module_param(ppm, uint, 0444);
MODULE_PARM_DESC(ppm, "of a million packets so many are marked at kmax");
static uint limit = 12 << 20;
module_param(limit, uint, 0444);
MODULE_PARM_DESC(limit, "bytes a queue may hold");

struct judge {
	struct rnd_state numbers;
	u32 marked;
};

static bool marks(struct judge *j, u32 left)
{
	if (left <= kmin)
		return false;
	return left > kmax ||
	       prandom_u32_state(&j->numbers) % MILLION < div_u64((u64)(left - kmin) * ppm, kmax - kmin);
}

static int egress_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (sch->qstats.backlog + qdisc_pkt_len(skb) > limit)
		return qdisc_drop(skb, sch, to_free);
	return qdisc_enqueue_tail(skb, sch);
}

static struct sk_buff *egress_dequeue(struct Qdisc *sch)
{
	struct judge *j = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_dequeue_head(sch);

	if (skb && marks(j, sch->qstats.backlog) && INET_ECN_set_ce(skb))
		j->marked++;
	return skb;
}

static int egress_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct judge *j = qdisc_priv(sch);

	prandom_seed_state(&j->numbers, 1);
	return 0;
}

static int egress_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct judge *j = qdisc_priv(sch);
	struct tc_red_xstats stats = { .marked = j->marked };

	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

static struct Qdisc_ops egress_ops __read_mostly = {
	.id = "egress_red",
	.priv_size = sizeof(struct judge),
	.enqueue = egress_enqueue,
	.dequeue = egress_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = egress_init,
	.reset = qdisc_reset_queue,
	.dump_stats = egress_dump_stats,
	.owner = THIS_MODULE,
};

static int __init egress_module_init(void)
{
	return kmin < kmax && ppm <= MILLION ? register_qdisc(&egress_ops) : -ERANGE;
}

static void __exit egress_module_exit(void)
{
	unregister_qdisc(&egress_ops);
}

module_init(egress_module_init);
module_exit(egress_module_exit);
