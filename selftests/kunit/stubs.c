// SPDX-License-Identifier: GPL-2.0
/*
 * Stubs for functions of objects that are not linked here: routes, transmission, deferred work. They only record the
 * call.
 */
#include "fakes.h"
#include "mem/odp_priv.h"

struct sk_buff_head fake_sent;
bool fake_no_route;
struct dst_entry *fake_dst;
u32 fake_absent_psn;

static DEFINE_PER_CPU(struct roan_stats, counts);
DEFINE_PER_CPU(u32, roan_tx_budget_used);

bool roan_dst_cache_get(struct roan_dst_cache *flow, struct roan_dev *dev, const struct roan_av *av, u8 tclass,
			u16 sport)
{
	if (fake_no_route)
		return false;
	flow->dst = fake_dst;
	return true;
}

int roan_net_xmit(struct roan_dev *dev, struct sk_buff *skb, struct roan_dst_cache *flow, bool ipv6)
{
	skb->protocol = htons(ipv6 ? ETH_P_IPV6 : ETH_P_IP);
	__skb_queue_tail(&fake_sent, skb);
	return 0;
}

/* Only sets the bit, for the case to check: no work is queued and no reference taken. */
void roan_defer(struct roan_deferred *item, enum roan_deferred_bit what)
{
	set_bit(what, &item->bits);
}

void roan_qp_request_flush(struct roan_qp *qp)
{
	roan_defer(&qp->deferred, ROAN_DEFER_FLUSH);
}

/* No request is in progress when a case flushes. */
void roan_complete_send(struct roan_qp *qp, u32 index, enum roan_status status, u32 vendor_err)
{
}

void roan_complete_refused(struct roan_qp *qp)
{
}

/* No peermem client. */
int roan_peermem_claim(struct roan_mr *mr, u64 start)
{
	return -EFAULT;
}

void roan_mr_trace(const struct roan_mr *mr, int err)
{
}

void roan_dm_bar_dereg_mr(struct roan_mr *mr)
{
}

void roan_peermem_release(struct roan_mr *mr)
{
}

struct roan_stats __percpu *fake_stats(void)
{
	return &counts;
}

u64 fake_count(enum roan_counter which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(counts, cpu).count[which];
	return sum;
}

void fake_counts_reset(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&counts, cpu), 0, sizeof(counts));
}

/* No fault worker: pages that are not present stay so. */
u32 roan_odp_request_fault(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write, bool response)
{
	return ROAN_VERR_PENDING;
}

void roan_odp_cancel_region(struct roan_odp *odp)
{
}

/* No flush worker. */
u32 roan_flush_job_start(struct roan_qp *qp, u32 key, u64 off, u64 len)
{
	return ROAN_VERR_UNWRITTEN;
}

void roan_odp_fault_done(struct roan_mr *mr, struct roan_qp *qp, u64 pos, u64 len, bool write)
{
}

void roan_request_execute(struct roan_qp *qp, struct roan_rx_ctx *rx)
{
	rx->still_blocked = psn_diff(rx->pkt.psn, fake_absent_psn) >= 0;
}

void roan_pfc_tx_update(struct roan_dev *dev, u8 prio)
{
}

/* No QP is ever found. */
struct roan_qp *roan_qp_find(u32 qpn)
{
	return NULL;
}

struct roan_qp *roan_qp_get_rcu(struct roan_qp_ref *ref)
{
	return ref->qp;
}

void roan_qp_get(struct roan_qp *qp)
{
}

void roan_qp_put(struct roan_qp *qp)
{
}

void roan_qp_kick(struct roan_qp *qp, struct roan_qp **answered)
{
}
