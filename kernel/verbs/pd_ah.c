// SPDX-License-Identifier: GPL-2.0
/* Protection domains, address handles, and address vectors made from verbs attributes. Routes are in net/route.c. */
#include <linux/random.h>
#include <rdma/ib_cache.h>
#include "base/base.h"
#include "net/net.h"
#include "verbs/verbs.h"

#define DEFAULT_TTL	64

int roan_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return roan_udata_none(udata);
}

int roan_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return roan_udata_none(udata);
}

/* ---- address vectors ---- */

/*
 * A flow label or @entropy always gives the same port; different ones are spread over the range (RoCEv2 annex). A value
 * of more than 20 bits gives none: UCX sets ~0 for all its QPs, with which all traffic of two hosts would be one flow.
 */
static u16 av_source_port(u32 flow_label, u32 entropy)
{
	if (!flow_label || flow_label > IB_GRH_FLOWLABEL_MASK)
		flow_label = rdma_calc_flow_label(entropy & QPN_MASK, entropy >> 8 & QPN_MASK);
	return rdma_flow_label_to_udp_sport(flow_label);
}

/*
 * 0: not given. For a unicast address, 1 is what the core gives a path by AF_IB addresses, which says nothing about IP
 * routers. For a multicast address it is the program's: routers must not forward the datagrams.
 */
static u8 av_ttl(u8 hop_limit, bool multicast)
{
	return hop_limit > 1 || (hop_limit && multicast) ? hop_limit : DEFAULT_TTL;
}

/*
 * The source decides the IP version. A group of the other one would become some host's address. IPv4 groups have two
 * notations, ::ffff:a.b.c.d and ff0e::ffff:a.b.c.d. Unicast addresses are compared by the RDMA core.
 */
static bool av_families_agree(const union ib_gid *sgid, const union ib_gid *dgid)
{
	if (!rdma_is_multicast_addr((struct in6_addr *)dgid))
		return true;
	return roan_gid_v4(sgid) ? ipv4_is_multicast(*(__be32 *)&dgid->raw[12]) : !roan_gid_v4(dgid);
}

static struct roan_av *av_create(struct roan_dev *dev, const struct rdma_ah_attr *attr, u32 entropy, gfp_t gfp)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct ib_gid_attr *gid = grh->sgid_attr;
	struct roan_av *av;
	int ifindex;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !gid)
		return ERR_PTR(-EINVAL);
	if ((gid->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP && !dev->l3) || gid->device != &dev->ib)
		return ERR_PTR(-EINVAL);
	if (!av_families_agree(&gid->gid, &grh->dgid))
		return ERR_PTR(-EINVAL);
	ifindex = roan_net_ifindex(dev, gid);
	if (!ifindex)
		return ERR_PTR(-ENETUNREACH);
	av = kzalloc(sizeof(*av), gfp | __GFP_ACCOUNT);
	if (!av)
		return ERR_PTR(-ENOMEM);
	av->sgid = gid->gid;
	av->dgid = grh->dgid;
	av->multicast = rdma_is_multicast_addr((struct in6_addr *)&grh->dgid) ||
			(roan_gid_v4(&gid->gid) && ipv4_is_multicast(*(__be32 *)&grh->dgid.raw[12]));
	av->tclass = grh->traffic_class;
	av->ttl = av_ttl(grh->hop_limit, av->multicast);
	av->sl = rdma_ah_get_sl(attr);
	av->static_rate = rdma_ah_get_static_rate(attr);
	memcpy(av->dmac, attr->roce.dmac, ETH_ALEN);
	av->flow_label = grh->flow_label;
	av->sport = av_source_port(grh->flow_label, entropy);
	av->ifindex = ifindex;
	rdma_hold_gid_attr(gid);
	av->sgid_attr = gid;
	return av;
}

static void av_free(struct roan_av *av)
{
	rdma_put_gid_attr(av->sgid_attr);
	kfree_rcu(av, rcu);
}

struct roan_av *roan_qp_av_create(struct roan_qp *qp, const struct rdma_ah_attr *attr, u32 entropy)
{
	struct roan_av *av = av_create(qp->dev, attr, entropy, GFP_KERNEL);
	int err;

	if (IS_ERR(av))
		return av;
	av->qp = qp;
	err = roan_net_add_av(av);
	if (!err)
		return av;
	av_free(av);
	return ERR_PTR(err);
}

void roan_qp_av_free(struct roan_av *av)
{
	if (!av)
		return;
	roan_net_del_av(av);
	av_free(av);
}

void roan_av_query(const struct roan_av *av, struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_static_rate(attr, av->static_rate);
	rdma_ah_set_grh(attr, (union ib_gid *)&av->dgid, av->flow_label, av->sgid_attr->index, av->ttl, av->tclass);
	memcpy(attr->roce.dmac, av->dmac, ETH_ALEN);
}

/* ---- address handles ---- */

/* The CM creates and destroys handles with interrupts disabled: use irqsave locks and do not sleep. */

static int av_number(struct roan_dev *dev, struct roan_av *av)
{
	unsigned long flags;
	int err;

	xa_lock_irqsave(&dev->ahs, flags);
	err = __xa_alloc_cyclic(&dev->ahs, &av->ah_num, av, XA_LIMIT(1, ROAN_MAX_AH), &dev->ah_next, GFP_ATOMIC);
	xa_unlock_irqrestore(&dev->ahs, flags);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;	/* EBUSY: no number is free */
	return 0;
}

static void av_unnumber(struct roan_dev *dev, struct roan_av *av)
{
	unsigned long flags;

	xa_lock_irqsave(&dev->ahs, flags);
	__xa_erase(&dev->ahs, av->ah_num);
	xa_unlock_irqrestore(&dev->ahs, flags);
}

/*
 * A GSI consumer creates an address handle when it replies in its completion handler. GFP_ATOMIC only there: it ignores
 * the limit of a memory cgroup.
 */
int roan_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ? GFP_KERNEL : GFP_ATOMIC;
	struct roan_dev *dev = to_roan_dev(ibah->device);
	struct roan_ah *ah = to_roan_ah(ibah);
	struct roan_create_ah_resp resp;
	struct roan_av *av;
	int err;

	err = roan_udata_no_input(udata);
	if (err)
		return err;
	ah->user = roan_pd_user(ibah->pd);
	err = roan_share_take(ah->user, ROAN_SHARE_AH);
	if (err)
		return err;
	av = av_create(dev, init->ah_attr, get_random_u32(), gfp);
	if (IS_ERR(av)) {
		err = PTR_ERR(av);
		goto err_give;
	}
	av->pd = ibah->pd;
	err = av_number(dev, av);
	if (err)
		goto err_free;
	resp.ah_num = av->ah_num;
	err = roan_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_erase;
	ah->av = av;
	return 0;

err_erase:
	av_unnumber(dev, av);
err_free:
	av_free(av);
err_give:
	roan_share_give(ah->user, ROAN_SHARE_AH);
	return err;
}

int roan_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	roan_av_query(to_roan_ah(ibah)->av, attr);
	return 0;
}

/* Does not sleep. A datagram that is being sent uses the vector inside an RCU read section. */
int roan_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct roan_ah *ah = to_roan_ah(ibah);

	av_unnumber(to_roan_dev(ibah->device), ah->av);
	av_free(ah->av);
	roan_share_give(ah->user, ROAN_SHARE_AH);
	return 0;
}
