// SPDX-License-Identifier: GPL-2.0
/*
 * Sends congestion notification packets: the sender of a received packet with CE set gets a CNP, if one is due
 * (core/cc/np.h). A CNP is built where the packet was received. It bypasses the QP's queues, is not paced, has its own
 * DSCP and priority, and is never acknowledged. Does not handle received CNPs: flow/qp_rate.c reduces the rate.
 */
#include <net/inet_ecn.h>
#include "base/base.h"
#include "base/trace.h"
#include "flow/flow.h"
#include "net/net.h"
#include "tx/gso.h"
#include "tx/tx.h"

/* CE on ACKs, SACKs, atomic responses and CNPs is ignored: no rate of their sender could be reduced for it. */
static bool cnp_is_data(const struct roan_pkt *pkt)
{
	switch (pkt->info->op) {
	case ROAN_OP_CNP:
	case ROAN_OP_ACK:
	case ROAN_OP_SACK:
	case ROAN_OP_ATOMIC_ACK:
		return false;
	default:
		return true;
	}
}

/*
 * A datagram QP accepts packets from any address, so a datagram also names the QP that gets the CNP. Only a sender that
 * knows the Q_Key is answered: a packet that is refused causes no CNP, not even a pending one.
 */
static bool cnp_is_accepted(const struct roan_qp *qp, const struct roan_pkt *pkt)
	__must_hold(&qp->rq.lock)
{
	return roan_connected(qp) || roan_ud_admit(pkt, qp->qkey, 1u << qp->mtu_shift) == ROAN_UD_DELIVER;
}

static struct roan_np *cnp_np_of(struct roan_qp *qp, const struct roan_rx_ctx *rx, const struct roan_cc_params *params)
{
	switch (READ_ONCE(params->cnp_scope)) {
	case ROAN_CNP_PER_DIP:
		return roan_np_host(&qp->dev->cc.np_hosts, rx->saddr.raw);
	case ROAN_CNP_PER_PORT:
		return &qp->dev->cc.np_port;
	default:
		return &qp->rq.np;
	}
}

/*
 * A request of a roan peer: the CNP has its UDP source port, which tells the peer the path, and the version, which says
 * so. The ports of READ responses are this host's choice.
 */
static bool cnp_names_path(const struct roan_qp *qp, const struct roan_pkt *pkt)
{
	return roan_connected(qp) && qp->ext_version && pkt->ext_version && !roan_op_is_response(pkt->info->op);
}

/* The ports of @pkt's sender, if it has several. NULL also without memory: there is one interval for all. */
static struct roan_np_ports *cnp_ports(struct roan_qp *qp, const struct roan_rx_ctx *rx)
	__must_hold(&qp->rq.lock)
{
	struct roan_rq *rq = &qp->rq;

	if (!cnp_names_path(qp, &rx->pkt))
		return NULL;
	if (!roan_responder_is_near(&rq->resp, rx->pkt.psn))
		return rq->np_ports;
	if (!rq->np_sport)
		rq->np_sport = roan_rx_sport(rx);
	if (rq->np_ports || rq->np_sport == roan_rx_sport(rx))
		return rq->np_ports;
	rq->np_ports = roan_qp_zalloc(qp, sizeof(*rq->np_ports), GFP_ATOMIC);
	if (rq->np_ports)
		roan_np_split(rq->np_ports, rq->np_sport, &rq->np);
	return rq->np_ports;
}

static bool cnp_is_due(struct roan_qp *qp, const struct roan_rx_ctx *rx, const struct roan_cc_params *params, u64 now)
	__must_hold(&qp->rq.lock)
{
	bool own = READ_ONCE(params->cnp_scope) == ROAN_CNP_PER_QP || !rx->ce;
	u32 interval = READ_ONCE(params->min_time_between_cnps);
	struct roan_np *np = &qp->rq.np;
	struct roan_np_ports *ports;

	if (!own)
		return roan_np_cnp_due(cnp_np_of(qp, rx, params), interval, now);
	if (!roan_connected(qp))
		return roan_np_sender_due(np, rx->saddr.raw, rx->pkt.src_qpn, rx->ce, interval, now);
	ports = cnp_ports(qp, rx);
	if (ports)
		return roan_np_port_due(ports, roan_rx_sport(rx), rx->ce, interval, now);
	return rx->ce ? roan_np_cnp_due(np, interval, now) : roan_np_cnp_pending(np, interval, now);
}

/*
 * Addresses a CNP to the source of the received packet, as a datagram QP has no address vector of its own. A CNP takes
 * the route of the QP's ACKs, whatever its own DSCP.
 */
static void cnp_fill_av(struct roan_av *av, const struct roan_qp *qp, const struct roan_rx_ctx *rx)
{
	const struct roan_av *own = roan_qp_av(qp);

	*av = (struct roan_av) {
		.sgid = rx->daddr,
		.dgid = rx->saddr,
		.tclass = own ? own->tclass : 0,
		.sl = own ? own->sl : 0,
		.flow_label = own ? own->flow_label : 0,
		.ttl = own ? own->ttl : 64,
		.sport = own ? own->sport :
			rdma_flow_label_to_udp_sport(rdma_calc_flow_label(qp->ib.qp_num, rx->pkt.src_qpn)),
		.ifindex = own ? own->ifindex : rx->in->ifindex,
	};
}

static void cnp_send(struct roan_qp *qp, const struct roan_rx_ctx *rx, const struct roan_cc_params *params)
	__must_hold(&qp->rq.lock)
{
	const struct roan_pkt cnp = {
		.opcode = ROAN_OPCODE_CNP,
		.becn = true,
		.pkey = ROAN_DEFAULT_PKEY,
		.qpn = roan_connected(qp) ? qp->dest_qpn : rx->pkt.src_qpn,
		.ext_version = cnp_names_path(qp, &rx->pkt) ? qp->ext_version : 0,
	};
	struct roan_dst_cache route = {};	/* datagram QP: not kept, the next CNP may go elsewhere */
	struct roan_train train;
	struct roan_av av;
	u8 *at;

	cnp_fill_av(&av, qp, rx);
	roan_gso_begin(&train, qp->dev, roan_connected(qp) ? &qp->rq.flow : &route, &av);
	if (cnp.ext_version)	/* not in @av: the route would be looked up again, and again for the next ACK */
		roan_gso_set_sport(&train, roan_rx_sport(rx));
	train.tclass = READ_ONCE(params->cnp_dscp) << 2 | INET_ECN_NOT_ECT;
	train.prio = READ_ONCE(params->cnp_802p_prio);
	at = roan_gso_reserve(&train, roan_opcode(ROAN_OPCODE_CNP)->header_len + ROAN_ICRC_LEN);
	if (at) {
		roan_wire_build(at, &cnp);
		roan_gso_commit(&train);
		roan_gso_xmit(&train);
		roan_count(qp->dev, np_cnp_sent);
		trace_roan_cnp(qp, cnp.qpn, true);
	}
	roan_dst_cache_reset(&route);
}

/*
 * The packet in @rx passed all checks, and has CE set or comes while a CNP is pending. softirq, RCU; takes rq.lock
 */
void roan_np_ce_received(struct roan_qp *qp, const struct roan_rx_ctx *rx)
{
	const struct roan_cc_params *params = roan_cc_params_of(qp->dev);
	struct roan_rq *rq = &qp->rq;
	u64 now = ktime_get_ns();

	if (!cnp_is_data(&rx->pkt) || qp->ib.qp_type == IB_QPT_GSI)
		return;
	spin_lock(&rq->lock);
	if (qp->state >= IB_QPS_RTR && qp->state <= IB_QPS_SQE && cnp_is_accepted(qp, &rx->pkt)) {
		if (rx->ce)
			roan_count(qp->dev, np_ecn_marked_roce_packets);
		if (cnp_is_due(qp, rx, params, now))
			cnp_send(qp, rx, params);
		WRITE_ONCE(rq->cnp_pending, rq->np.cnp_pending || (rq->np_ports && rq->np_ports->pending));
	}
	spin_unlock(&rq->lock);
}

void roan_np_reset(struct roan_qp *qp)
{
	struct roan_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	rq->np = (struct roan_np) {};
	rq->np_sport = 0;
	if (rq->np_ports)
		memset(rq->np_ports, 0, sizeof(*rq->np_ports));
	WRITE_ONCE(rq->cnp_pending, false);
}
