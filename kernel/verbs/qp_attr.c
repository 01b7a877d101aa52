// SPDX-License-Identifier: GPL-2.0
/* Which attributes ibv_modify_qp() accepts. Which transitions it allows, and what they do: qp_state.c. */
#include "base/base.h"
#include "base/ip_udp_hdr.h"
#include "flow/flow.h"
#include "net/net.h"
#include "verbs/verbs.h"

/* Programs with a fixed path MTU of 4096 fail on an interface of 1500 bytes: the log says what the interface needs. */
static bool qp_mtu_fits(const struct roan_qp *qp, int path_mtu)
{
	unsigned int need = path_mtu + ROAN_NET_HEADERS, mtu = READ_ONCE(qp->dev->ndev->mtu);

	if (need <= mtu)
		return true;
	pr_warn_ratelimited("roan: %s: QP %u: path MTU %d needs an interface MTU of %u, %s has %u\n",
			    dev_name(&qp->dev->ib.dev), qp->ib.qp_num, path_mtu, need, netdev_name(qp->dev->ndev), mtu);
	return false;
}

int roan_qp_check_attr(const struct roan_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	/* REARM only prepares a QP for an alternate path, which the core refuses for RoCE ports. */
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state > IB_MIG_REARM)
		return -EOPNOTSUPP;
	if (mask & IB_QP_RATE_LIMIT && qp->ib.qp_type == IB_QPT_GSI)
		return -EINVAL;
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU && !qp_mtu_fits(qp, ib_mtu_enum_to_int(attr->path_mtu)))
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > ROAN_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > ROAN_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return -EINVAL;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num > QPN_MASK)
		return -EINVAL;
	return 0;
}

/*
 * A route may take less than the interface: IPsec, `ip route ... mtu`. Packets have DF set, so each longer one would be
 * dropped in this host, and the QP fail later. Without a route: no answer. What the network has said may be forged or
 * old: the log has it, no more.
 */
int roan_qp_check_route_mtu(const struct roan_qp *qp, const struct roan_av *av, enum ib_mtu path_mtu)
{
	u32 headers = roan_l3_len(!roan_gid_v4(&av->sgid)) + sizeof(struct udphdr) + ROAN_DATA_HEADERS + ROAN_ICRC_LEN;
	u32 need = ib_mtu_enum_to_int(path_mtu) + headers;
	u32 reported, mtu = roan_net_route_mtu(qp->dev, av, roan_qos_tclass(qp->dev, av), &reported);

	if (!mtu || need <= reported)
		return 0;
	if (need <= mtu) {
		pr_warn_ratelimited("roan: %s: QP %u: path MTU %d needs packets of %u bytes; by an ICMP report or router advertisement the way to %pI6c takes %u\n",
				    dev_name(&qp->dev->ib.dev), qp->ib.qp_num, ib_mtu_enum_to_int(path_mtu), need,
				    &av->dgid, reported);
		return 0;
	}
	pr_warn_ratelimited("roan: %s: QP %u: path MTU %d needs packets of %u bytes, the route to %pI6c takes %u: use a smaller path MTU\n",
			    dev_name(&qp->dev->ib.dev), qp->ib.qp_num, ib_mtu_enum_to_int(path_mtu), need, &av->dgid,
			    mtu);
	return -EINVAL;
}
