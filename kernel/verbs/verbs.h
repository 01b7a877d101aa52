/* SPDX-License-Identifier: GPL-2.0 */
/*
 * verbs: entry points for uverbs, the RDMA core, sysfs and netlink. Decides what may be created, with which limits, and
 * the state of a QP. Moves no data. Process context, except post, poll and arm of a kernel consumer, which may be
 * called with interrupts disabled.
 * Locks: qp->mutex, then the queue locks. post_lock and poll_lock are taken alone, except in a resize: srq->post_lock
 * -> srq->lock and cq->poll_lock -> cq->lock.
 */
#ifndef ROAN_VERBS_H
#define ROAN_VERBS_H

#include "roan.h"

/* device.c, ucontext.c */
extern const struct ib_device_ops roan_dev_ops;			/* device.c: all verbs */
int roan_device_add(const char *name, struct net_device *ndev);	/* RTNL not held */
int roan_client_init(void);
void roan_client_exit(void);
int roan_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata);
void roan_dealloc_ucontext(struct ib_ucontext *uctx);
void roan_disassociate_ucontext(struct ib_ucontext *uctx);
int roan_query_ucontext(struct ib_ucontext *uctx, struct uverbs_attr_bundle *attrs);
extern const struct uapi_definition roan_ucontext_defs[];

/* netdev_events.c */
/* False also if the netdev's MTU is too small for the smallest path MTU, 256 bytes. */
bool roan_port_up(const struct net_device *ndev);
void roan_report_port_event(struct ib_device *dev, struct net_device *ndev, unsigned long what);	/* RTNL held */
int roan_netdev_notifier_init(void);
void roan_netdev_notifier_exit(void);

/* parent.c: the device above the ib_device in sysfs; one for each */
int roan_parent_add(struct roan_dev *dev);	/* before ib_register_device(); takes RTNL */
void roan_parent_del(struct roan_dev *dev);	/* after device_del() of the ib_device; takes RTNL; no-op without one */
void roan_parent_show_netdev(struct roan_dev *dev);	/* RTNL held; net/ has the present name of a netdev */
/* RTNL held; before the netdev leaves sysfs, and before it leaves its namespace */
void roan_parent_hide_netdev(struct roan_dev *dev);
int roan_parent_init(void);
void roan_parent_exit(void);

extern const struct attribute_group roan_device_group;	/* sysfs_device.c */

/* port_speed.c */
void roan_port_speed_init(struct roan_dev *dev);
void roan_port_speed_exit(struct roan_dev *dev);	/* the device is unregistered, or never was registered */
bool roan_port_speed_update(struct roan_dev *dev);		/* RTNL held; true if the speed changed */
/* @upper: an interface that @ndev joined or left, or NULL. RTNL held */
void roan_port_speed_netdev_event(struct net_device *ndev, struct net_device *upper);
int roan_query_port_speed(struct ib_device *dev, u32 port, u64 *speed);
void roan_query_port_rate(struct roan_dev *dev, struct ib_port_attr *attr);	/* speed and width; RTNL not held */

/* dmah.c, comp_cntr.c: empty on kernels without these objects */
extern const struct ib_device_ops roan_dmah_ops;
extern const struct ib_device_ops roan_comp_cntr_ops;
extern const struct uapi_definition roan_comp_cntr_defs[];

/* link.c */
int roan_link_init(void);	/* link types roan and, if answer_rxe is set, rxe; -EBUSY: rdma_rxe is loaded */
void roan_link_exit(void);	/* no device is added from here on */

/* netdev.c: which interfaces can have a device, and the GUIDs that it takes from its interface */
int roan_netdev_check(const char *name, struct net_device *ndev);	/* -EOPNOTSUPP: can have no device; logs why */
void roan_set_guids(struct roan_dev *dev);	/* before roan_net_add_dev(), one device at a time */

/* gid.c: which IP addresses are GIDs of a device, and scans of them */
void roan_gid_init(struct roan_dev *dev);	/* before the device is registered */
void roan_gid_disable(struct roan_dev *dev);	/* address events may not find the device from here on */
void roan_gid_enable(struct roan_dev *dev);	/* they do; scans again if addresses changed meanwhile */
void roan_gid_exit(struct roan_dev *dev);	/* the device is unregistered, or never was registered */
int roan_gid_notifiers_init(void);
void roan_gid_notifiers_exit(void);

/* pd_ah.c */
int roan_alloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int roan_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int roan_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int roan_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int roan_destroy_ah(struct ib_ah *ah, u32 flags);
/* A new address vector from verbs attributes, or ERR_PTR(). @entropy selects the UDP source port. Process context */
struct roan_av *roan_qp_av_create(struct roan_qp *qp, const struct rdma_ah_attr *attr, u32 entropy);
void roan_qp_av_free(struct roan_av *av);		/* after a grace period; NULL is allowed */
void roan_av_query(const struct roan_av *av, struct rdma_ah_attr *attr);

/* cq.c */
int roan_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs);
int roan_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata);
int roan_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);
int roan_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc);
/* A kernel consumer's QP is reset or destroyed, and posts no CQE any more: removes those not polled. */
void roan_cq_forget_qp(const struct roan_qp *qp);
int roan_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);

/* srq.c */
int roan_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int roan_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata);
int roan_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr);
int roan_destroy_srq(struct ib_srq *srq, struct ib_udata *udata);

/* qp_attr.c: 0, or -EINVAL or -EOPNOTSUPP. A path MTU that does not fit is logged */
int roan_qp_check_attr(const struct roan_qp *qp, const struct ib_qp_attr *attr, int mask);
int roan_qp_check_route_mtu(const struct roan_qp *qp, const struct roan_av *av, enum ib_mtu path_mtu);

/* qp.c, qp_state.c */
int roan_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int roan_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int roan_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);
int roan_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);
/* RTR, RTS, SQD, SQE, with a vector of that interface: to ERR, and returns true; else false. No queue lock held */
bool roan_qp_disconnect(struct roan_qp *qp, int ifindex);
void roan_qp_enter_err(struct roan_qp *qp);			/* at once; no queue lock held */
void roan_qp_quiesce(struct roan_qp *qp);			/* before it is destroyed; process context */
void roan_qp_caps(const struct roan_qp *qp, struct ib_qp_cap *cap);

/* RC requests that a QP's access rights do not allow, for the responder. FLUSHes are checked in mem/mr_access.c. */
static inline u16 roan_qp_denied_ops(u32 access)
{
	return (access & IB_ACCESS_REMOTE_WRITE ? 0 : BIT(ROAN_OP_WRITE) | BIT(ROAN_OP_ATOMIC_WRITE)) |
	       (access & IB_ACCESS_REMOTE_READ ? 0 : BIT(ROAN_OP_READ)) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? 0 : BIT(ROAN_OP_CMP_SWAP) | BIT(ROAN_OP_FETCH_ADD));
}

/* Process context. Fail the connected QPs whose address is on @ndev; flush all user QPs of @dev. */
void roan_qp_fail_on_netdev(const struct net_device *ndev);
void roan_qp_flush_on_device(const struct roan_dev *dev);
/* kpost.c: kernel consumers */
int roan_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int roan_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int roan_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);

/* qp_cc.c: congestion control of one QP */
extern const struct uapi_definition roan_qp_cc_defs[];
extern const struct attribute_group roan_qp_cc_group;
/* For RTR to RTS, by cc_param/paths: nothing is sent yet, and responses are dropped. 0, or -ENOMEM. */
int roan_qp_alloc_paths(struct roan_qp *qp);
/* The peer of @av, with a reference; NULL: the QP has none. 0, or -ENOMEM. Sleeps */
int roan_qp_find_peer(struct roan_qp *qp, const struct roan_av *av, struct roan_peer **peer);
/* The QP takes *@peer, which becomes the old one. sq.lock held */
void roan_qp_change_path(struct roan_qp *qp, struct roan_peer **peer);
void roan_qp_free_paths(struct roan_paths *paths, struct roan_auto_paths *auto_paths);

/* sysfs_latency.c */
extern const struct attribute_group roan_latency_group;

/* sysfs_cc.c */
void roan_cc_param_init(struct roan_cc_dev *cc);
extern const struct attribute_group *roan_port_groups[];

/* mcast.c */
int roan_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int roan_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
void roan_mcast_netdev_event(struct roan_dev *dev, struct net_device *ndev, bool gone);	/* RTNL held */
/* pma.c, restrack.c */
int roan_get_hw_stats(struct ib_device *dev, struct rdma_hw_stats *stats, u32 port, int index);
int roan_process_mad(struct ib_device *dev, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		     const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey_index);
int roan_fill_res_qp(struct sk_buff *msg, struct ib_qp *qp);
int roan_fill_res_cq(struct sk_buff *msg, struct ib_cq *cq);
int roan_fill_res_mr(struct sk_buff *msg, struct ib_mr *mr);
int roan_fill_res_srq(struct sk_buff *msg, struct ib_srq *srq);

#endif /* ROAN_VERBS_H */
