// SPDX-License-Identifier: GPL-2.0
/*
 * Driver details in `rdma resource show ... -dd`. Values are read without the queue locks: each value is consistent,
 * but together they are not a snapshot.
 */
#include <linux/capability.h>
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "net/net.h"
#include "verbs/verbs.h"

struct rt_attr {
	const char *name;
	u32 value;
	bool secret;	/* a PSN */
};

static u32 restrack_kbps(u64 bps)
{
	return min_t(u64, DIV_ROUND_UP_ULL(bps, 1000), U32_MAX);
}

/*
 * The state of the QP's congestion control. Without a limiter there is only the algorithm, whether it is the QP's own
 * and the administrator's choice, and the cap. No 64-bit values: the rdma tool fails on the padding that aligns them.
 */
static int restrack_put_limits(struct sk_buff *msg, struct roan_qp *qp)
{
	enum roan_cc_algo algo = roan_rate_algo(qp);
	struct roan_cc_state s = {};
	struct roan_limiter *l;

	mutex_lock(&qp->mutex);		/* destroy_qp() frees the limiter */
	l = READ_ONCE(qp->limiter);
	if (l) {
		spin_lock_bh(&l->lock);
		if (l->active) {
			algo = l->cc.algo;
			roan_cc_state(&l->cc, ktime_get_ns(), &s);
		}
		spin_unlock_bh(&l->lock);
	}
	mutex_unlock(&qp->mutex);
	if (rdma_nl_put_driver_string(msg, "cc", roan_cc_name(algo)) ||
	    rdma_nl_put_driver_u32(msg, "cc_own", roan_rate_has_own_algo(qp)) ||
	    rdma_nl_put_driver_u32(msg, "cc_admin", !!(READ_ONCE(qp->cc_override) & ROAN_CC_PINNED)) ||
	    rdma_nl_put_driver_u32(msg, "cap_kbps", READ_ONCE(qp->admin_rate_cap)))
		return -EMSGSIZE;
	if (!l)
		return 0;
	if (rdma_nl_put_driver_u32(msg, "rate_kbps", restrack_kbps(s.rate)) ||
	    rdma_nl_put_driver_u32(msg, "target_kbps", restrack_kbps(s.target)) ||
	    rdma_nl_put_driver_u32(msg, "alpha_1024", s.alpha) ||
	    rdma_nl_put_driver_u32(msg, "cc_window", min_t(u64, s.cwnd, U32_MAX)) ||
	    rdma_nl_put_driver_u32(msg, "rtt_ns", min_t(u64, s.rtt_ns, U32_MAX)) ||
	    rdma_nl_put_driver_u32(msg, "cnps", s.cnps) || rdma_nl_put_driver_u32(msg, "cuts", s.cuts))
		return -EMSGSIZE;
	return 0;
}

/*
 * Any user of the host may list QPs. Who knows a QP's next PSN can send packets in its name, so PSNs are shown only if
 * the requester's socket was opened with CAP_NET_ADMIN. A dump has that socket in msg->sk; the answer to a request for
 * one QP has no socket yet, and no PSNs.
 */
static bool restrack_shows_psns(const struct sk_buff *msg, const struct roan_qp *qp)
{
	return msg->sk && roan_net_sock_capable(qp->dev->rnet, msg->sk, CAP_NET_ADMIN);
}

static int restrack_put_all(struct sk_buff *msg, const struct rt_attr *d, int n, struct roan_qp *qp)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	bool psns = qp && restrack_shows_psns(msg, qp);
	int i;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < n; i++)
		if ((psns || !d[i].secret) && rdma_nl_put_driver_u32(msg, d[i].name, d[i].value))
			goto err_cancel;
	if (qp && restrack_put_limits(msg, qp))
		goto err_cancel;
	nla_nest_end(msg, table);
	return 0;

err_cancel:
	nla_nest_cancel(msg, table);
	return -EMSGSIZE;
}

static int restrack_put_attrs(struct sk_buff *msg, const struct rt_attr *d, int n)
{
	return restrack_put_all(msg, d, n, NULL);
}

/* What destroy_qp() may free meanwhile: it does so under qp->mutex, the ring first. */
struct restrack_waits {
	u32 posted;	/* work requests in the send ring that are not taken yet */
	bool paced;	/* the pacer holds a packet back */
	bool host;	/* the in-flight limit does: packets wait in this host's qdisc or NIC ring */
	u8  reorder;	/* tolerance for reordering, in packets */
	u32 paths, paths_failed, path_trials;
	bool paths_auto;
};

static struct restrack_waits restrack_waits_of(struct roan_qp *qp)
{
	const struct roan_ring *ring = &qp->sq.ring;
	struct restrack_waits w = { .paths = 1 };
	const struct roan_auto_paths *auto_paths;
	const struct roan_limiter *limiter;
	const struct roan_holes *holes;
	const struct roan_paths *paths;
	u32 taken;

	mutex_lock(&qp->mutex);
	if (ring->ctl) {
		taken = READ_ONCE(ring->index);
		smp_rmb();	/* the tail is read later, so it is not behind what is taken */
		/* The program may have written any index. */
		w.posted = min(roan_ring_tail(ring) - taken, ring->mask + 1);
		limiter = READ_ONCE(qp->limiter);	/* a CNP may bring the first one */
		w.paced = limiter && READ_ONCE(limiter->blocked_mask);
		w.host = roan_tx_inflight_waits(qp);
		holes = READ_ONCE(qp->sq.req.holes);
		paths = READ_ONCE(qp->sq.req.paths);	/* both are freed under qp->mutex only */
		auto_paths = READ_ONCE(qp->sq.req.auto_paths);
		w.paths = roan_paths_in_use(paths);
		w.paths_failed = paths ? READ_ONCE(paths->n_failed) : 0;
		w.paths_auto = auto_paths;
		w.path_trials = auto_paths ? READ_ONCE(auto_paths->n_trials) : 0;
		w.reorder = holes ? READ_ONCE(holes->reorder) : 0;
	}
	mutex_unlock(&qp->mutex);
	return w;
}

int roan_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	const struct roan_requester *req = &qp->sq.req;
	const struct roan_responder *resp = &qp->rq.resp;
	struct restrack_waits waits = restrack_waits_of(qp);
	const struct rt_attr d[] = {
		{ "mtu",		1u << READ_ONCE(qp->mtu_shift) },
		{ "una_psn",		READ_ONCE(req->una_psn), true },
		{ "next_psn",		READ_ONCE(req->next_psn), true },
		{ "end_psn",		READ_ONCE(req->end_psn), true },
		{ "window_pkts",	READ_ONCE(req->cfg.psn_window) },
		{ "sq_posted",		waits.posted },
		{ "sq_works",		READ_ONCE(req->tail) - READ_ONCE(req->retire) },
		{ "sq_unsent",		READ_ONCE(req->tail) - READ_ONCE(req->next) },
		{ "rd_outstanding",	READ_ONCE(req->rd_outstanding) },
		{ "max_rd_atomic",	roan_requester_max_reads(req) },
		{ "retries_left",	READ_ONCE(req->retries_left) },
		{ "rnr_left",		READ_ONCE(req->rnr_left) },
		{ "resent",		READ_ONCE(req->n_resent) },
		{ "peer_keeps",		READ_ONCE(req->peer_keeps) },
		{ "peer_sacks",		READ_ONCE(req->peer_sacks) },
		{ "reorder",		waits.reorder },
		{ "paths",		waits.paths },
		{ "paths_failed",	waits.paths_failed },
		{ "paths_auto",		waits.paths_auto },
		{ "path_trials",	waits.path_trials },
		{ "timeouts",		READ_ONCE(req->n_timeouts) },
		{ "early_resends",	READ_ONCE(req->n_rto) },
		{ "srtt_ns",		min_t(u64, READ_ONCE(req->rtt.srtt_ns), U32_MAX) },
		{ "seq_naks",		READ_ONCE(req->n_seq_naks) },
		{ "rnr_naks",		READ_ONCE(req->n_rnr_naks) },
		{ "epsn",		READ_ONCE(resp->epsn), true },
		{ "msn",		READ_ONCE(resp->msn) },
		{ "duplicates",		READ_ONCE(resp->n_duplicates) },
		{ "out_of_sequence",	READ_ONCE(resp->n_out_of_sequence) },
		{ "early_pkts",		READ_ONCE(qp->rq.early_pkts) },
		{ "nak_wait_ns",	READ_ONCE(resp->reorder.wait_ns) },
		{ "early_bytes",	READ_ONCE(qp->rq.early_bytes) },
		{ "rnr_sent",		READ_ONCE(resp->n_rnr) },
		{ "naks_sent",		READ_ONCE(resp->n_naks) },
		{ "groups",		READ_ONCE(qp->n_mcast) },
		{ "paced",		waits.paced },
		{ "host_wait",		waits.host },
		{ "fault_wait",		READ_ONCE(qp->sq.req.held) || READ_ONCE(qp->rq.fault_wait) },
		{ "rnr_wait",		!!READ_ONCE(req->rnr_until) },
		{ "paused",		!!READ_ONCE(qp->pfc_blocked_mask) },
		{ "paused_ms",		div_u64(roan_pfc_qp_waited(qp), NSEC_PER_MSEC) },
	};

	return restrack_put_all(msg, d, ARRAY_SIZE(d), qp);
}

int roan_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct roan_cq *cq = to_roan_cq(ibcq);
	const struct rt_attr d[] = {
		{ "slots",		READ_ONCE(cq->ring.mask) + 1 },
		{ "written",		READ_ONCE(cq->ring.index) },
		{ "overflowed",		READ_ONCE(cq->overflowed) },
	};

	return restrack_put_attrs(msg, d, ARRAY_SIZE(d));
}

int roan_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct roan_mr *mr = to_roan_mr(ibmr);
	const struct rt_attr d[] = {
		{ "kind",		mr->kind },
		{ "state",		READ_ONCE(mr->state) },
		{ "access",		READ_ONCE(mr->access) },
		{ "pages",		READ_ONCE(mr->n_pages) },
		{ "windows",		atomic_read(&mr->n_mws) },
	};

	return restrack_put_attrs(msg, d, ARRAY_SIZE(d));
}

int roan_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct roan_srq *srq = to_roan_srq(ibsrq);
	const struct rt_attr d[] = {
		{ "slots",		READ_ONCE(srq->ring.mask) + 1 },
		{ "fetched",		READ_ONCE(srq->ring.index) },
		{ "limit",		READ_ONCE(srq->limit) },
		{ "failed",		READ_ONCE(srq->failed) },
	};

	return restrack_put_attrs(msg, d, ARRAY_SIZE(d));
}
