/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shell's structs, but for the queues' (queues.h), and who may call what. The rules of the transport are in
 * transport/; here is everything that has a lifetime, a lock or an skb. The locking essay is at the end.
 */
#ifndef ROAN_H
#define ROAN_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_addr.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/roan-abi.h>

#include "rx/odp_rxqueue.h"
#include "flow/tx_inflight.h"
#include "base/deferred.h"
#include "tx/doorbell_batch.h"
#include "mem/mr.h"
#include "flow/pfc.h"
#include "tx/sq_poller.h"
#include "base/queue_types.h"
#include "base/stats.h"
#include "core/cc/cc.h"
#include "core/cc/np.h"
#include "core/transport/ud.h"
#include "core/crc/icrc.h"
#include "core/transport/requester.h"
#include "core/transport/responder.h"

/* ---- limits: what query_device says and create_* enforce ---- */
#define ROAN_MAX_QP		(1 << 20)
#define ROAN_MAX_WR		(1 << 15)
#define ROAN_MAX_SGE		32
#define ROAN_MAX_INLINE		512
#define ROAN_MAX_CQ		(1 << 20)
#define ROAN_MAX_CQE		((1 << 22) - 1)
#define ROAN_MAX_MR		(1 << 20)	/* keys: regions and windows together */
#define ROAN_MAX_DM		(64u << 20)	/* bytes of one allocation */
#define ROAN_MAX_PD		(1 << 20)
#define ROAN_MAX_AH		(1 << 20)
#define ROAN_MAX_SRQ		(1 << 17)
#define ROAN_MAX_RD_ATOMIC	128
#define ROAN_MAX_FAST_REG_PAGES	512
#define ROAN_MAX_MCAST_GRP	8192
#define ROAN_MAX_MCAST_ATTACH	256		/* QPs per group */
#define ROAN_MAX_MSG		(1u << 31)
#define ROAN_GID_TABLE		1024
#define ROAN_MAX_UNDER_WAY	512		/* works taken from the ring and not finished, per QP */

#define ROAN_NET_HEADERS	(sizeof(struct ipv6hdr) + sizeof(struct udphdr) + ROAN_MAX_HEADERS + ROAN_ICRC_LEN)
#define ROAN_HEADROOM		(LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

struct roan_net;
struct roan_qp;
struct roan_rx;		/* train.h */

/* ---- priorities: qos.c ---- */

#define ROAN_DSCPS	64

struct roan_qos {
	u8  prio[ROAN_DSCPS];	/* DSCP -> skb->priority, 0..7; READ/WRITE_ONCE */
	u32 traffic_class;	/* of packets whose QP or address handle says nothing; cc_param */
};

/* ---- congestion control: cnp.c, limit.c; the rules are cc/'s ---- */

struct roan_cc_dev {
	u32 algo;		/* enum roan_cc_algo; READ/WRITE_ONCE */
	u64 link;		/* bit/s, as the interface says; 0: it does not. Written under RTNL */
	u32 link_speed;		/* Mb/s, as cc_param says; 0: as the interface says. READ/WRITE_ONCE */
	struct roan_cc_params params[ROAN_CC_NUM_ALGOS];	/* cc_param; READ/WRITE_ONCE of each value */
	struct roan_np np_port;	/* see np.h: raced for */
	struct roan_np_hosts np_hosts;
};

/* ---- devices: device.c ---- */

struct roan_dev {
	struct ib_device ib;
	struct net_device *ndev;	/* held from newlink to dealloc */
	netdevice_tracker ndev_tracker;
	struct roan_net *rnet;		/* of dev_net(ndev); net.c */
	struct list_head on_net;	/* rnet->devs, RCU */
	bool port_told;			/* the last port event told said active; under RTNL */

	struct xarray keys;		/* key index -> struct roan_key */
	u32 key_next;			/* cyclic allocation */
	struct roan_bar *dm_bar;	/* device memory comes from there; bar.c. NULL: from the kernel */
	struct xarray ahs;		/* ah_num -> struct roan_av */
	u32 ah_next;
	struct roan_qp_ref __rcu *gsi;	/* QP 1 */

	struct roan_cc_dev cc;
	struct roan_qos qos;
	struct list_head on_qos;	/* qos.c */
	struct roan_pfc pfc;
	struct roan_backlog backlog;
	struct roan_poller poller;

	struct list_head mcast;		/* struct roan_mcast, RCU readers; mcast.c */
	u32 n_mcast;

	bool going;			/* users' QPs were flushed, and none may start again; read under queue locks */
	struct roan_stats __percpu *stats;
};

struct roan_uctx {
	struct ib_ucontext ib;
	struct roan_notices notices;
	bool one_mapping;	/* the provider knows how to find the two rings of a QP in one; const */
};

struct roan_pd {
	struct ib_pd ib;
};

/* ---- addresses: pd_ah.c ---- */

/* Where packets go and what they look like on the way. Const once published; RCU-freed. */
struct roan_av {
	union ib_gid sgid;		/* our address; IPv4 as a v4-mapped IPv6 address */
	union ib_gid dgid;
	bool ipv6;
	bool multicast;
	u8  tclass;			/* DSCP and ECN bits as the application set them */
	u8  ttl;
	u8  sl;
	u8  dmac[ETH_ALEN];		/* from the CM or the core; only multicast uses it */
	u32 flow_label;
	u16 sport;			/* UDP source port: the flow's entropy */
	u8  static_rate;		/* enum ib_rate; 0: as fast as the port */
	int ifindex;			/* of the sgid's netdev, ours or an upper one (VLAN), which may leave before us */
	const struct ib_gid_attr *sgid_attr;	/* own reference */
	u32 ah_num;
	struct ib_pd *pd;
	struct rcu_head rcu;
};

struct roan_ah {
	struct ib_ah ib;
	struct roan_av *av;
};

/*
 * What a packet's QPN leads to, and where skbs of the QP are counted. Outlives both by a grace period, so that destroying a QP
 * needs none.
 */
struct roan_qp_ref {
	refcount_t refs;
	struct roan_qp *qp;
	struct rcu_head rcu;
	struct roan_below below;
} __aligned(ROAN_BELOW_ALIGN);

struct roan_qp {
	struct ib_qp ib;
	struct roan_dev *dev;
	struct roan_qp_ref *ref;
	struct completion gone;		/* the last reference was dropped */
	struct roan_later later;
	struct mutex mutex;		/* modify, query, destroy: uverbs takes only a read lock */

	/* Written under both queue locks (and mutex, but for the fall to ERR); read under any of the three. */
	enum ib_qp_state state;
	bool user;
	u8  transport;			/* enum roan_transport */
	u8  mtu_shift;
	u16 pkey;
	u32 qkey;
	u32 dest_qpn;
	u32 access;			/* remote access allowed, IB_ACCESS_REMOTE_* */
	u8  min_rnr_timer;
	struct roan_av *av;		/* connected QPs; const while state >= RTR */
	struct roan_pd *pd;
	struct roan_cq *scq, *rcq;
	struct roan_srq *srq;
	struct ib_ucontext *uctx;
	struct ib_qp_attr attr;		/* as set, for query */
	u32 n_mcast;			/* groups attached to */
	u8  own_algo;			/* 1 + enum roan_cc_algo; 0: the device's. mutex; READ_ONCE() without */
	u32 admin_cap;			/* kbit/s; 0: none. The same */
	struct roan_limiter *limiter;	/* limit.h; NULL until needed, then there until the QP is destroyed */
	struct roan_asks asks;		/* paging.c */
	struct list_head on_pfc;	/* pfc.c: waits for the end of a pause, with a reference; pfc->lock */
	u8  pfc_sides;			/* ... for these, 1 << enum roan_side */
	bool comm_est;			/* COMM_EST was told */
	bool watched;			/* poller.c looks at the send ring: nobody has to ring; sq.lock */
	bool failing;			/* asked to fail since the last RESET, which clears it under both queue locks */
	bool sq_failing;		/* UC, UD: a send failed, asked to SQE; cleared there, by ERR and by RESET, as above */

	struct roan_sq sq ____cacheline_aligned_in_smp;
	struct roan_rq rq ____cacheline_aligned_in_smp;
};

/*
 * The traffic class a packet leaves with: the path's own; if that is 0 the class selector of its service level; if there
 * is neither, the device's default. @av may be NULL: a datagram QP has none.
 */
static inline u8 roan_qos_tclass(const struct roan_dev *dev, const struct roan_av *av)
{
	if (av && av->tclass)
		return av->tclass;
	return av && av->sl ? (av->sl & 7) << 5 : READ_ONCE(dev->qos.traffic_class);
}

static inline u8 roan_qos_prio(const struct roan_dev *dev, u8 tclass)
{
	return READ_ONCE(dev->qos.prio[tclass >> 2]);
}

/* The set in force: that of the device's algorithm. */
static inline struct roan_cc_params *roan_cc_params_of(struct roan_dev *dev)
{
	return &dev->cc.params[READ_ONCE(dev->cc.algo)];
}

/* ---- conversions ---- */

#define ROAN_TO(name, core)								\
static inline struct roan_##name *to_roan_##name(struct ib_##core *ib)			\
{											\
	return container_of(ib, struct roan_##name, ib);				\
}
ROAN_TO(dev, device)
ROAN_TO(uctx, ucontext)
ROAN_TO(pd, pd)
ROAN_TO(ah, ah)
ROAN_TO(mr, mr)
ROAN_TO(mw, mw)
ROAN_TO(cq, cq)
ROAN_TO(srq, srq)
ROAN_TO(qp, qp)
#undef ROAN_TO

static inline bool roan_gid_v4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid);
}

static inline bool roan_gid_equal(const union ib_gid *a, const union ib_gid *b)
{
	return a->global.subnet_prefix == b->global.subnet_prefix && a->global.interface_id == b->global.interface_id;
}

static inline struct roan_depth *roan_depth_of(struct roan_qp *qp, u8 side)
{
	return side == ROAN_SIDE_SQ ? &qp->sq.depth : &qp->rq.depth;
}

/* @sides: BIT(enum roan_side) of the queues that may go on. Else as roan_later(). */
static inline void roan_sides_later(struct roan_qp *qp, unsigned long sides)
{
	if (sides & BIT(ROAN_SIDE_SQ))
		roan_later(&qp->later, ROAN_DO_SEND);
	if (sides & BIT(ROAN_SIDE_RQ))
		roan_later(&qp->later, ROAN_DO_RESPOND);
}

static inline bool roan_connected(const struct roan_qp *qp)
{
	return qp->transport != ROAN_TP_UD;
}

/* ---- doors, by file ---- */

/* main.c, device.c, uctx.c */
extern const struct ib_device_ops roan_dev_ops;			/* device.c: all verbs */
int roan_device_add(const char *name, struct net_device *ndev);	/* rtnl not held */
void roan_device_gone(struct net_device *ndev);			/* netdev leaves: unregister queued */
int roan_device_init(void);	/* netdev notifier, rdma_link */
void roan_device_exit(void);
int roan_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata);
void roan_dealloc_ucontext(struct ib_ucontext *uctx);
void roan_disassociate_ucontext(struct ib_ucontext *uctx);
int roan_query_ucontext(struct ib_ucontext *uctx, struct uverbs_attr_bundle *attrs);

/* udata helpers, uctx.c: -EINVAL for short or trailing non-zero input; -ENOSPC/-EFAULT for output. 0-length output ok */
int roan_udata_in(struct ib_udata *udata, void *req, size_t size);
int roan_udata_none(struct ib_udata *udata);	/* -EINVAL if there is any input but zeros; NULL is fine */
int roan_udata_out(struct ib_udata *udata, const void *resp, size_t size);

/* pd_ah.c */
int roan_alloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int roan_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int roan_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int roan_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int roan_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int roan_destroy_ah(struct ib_ah *ah, u32 flags);
/* New address vector from verbs attributes; ERR_PTR(-EINVAL ...). @entropy seeds the UDP source port. */
struct roan_av *roan_av_create(struct roan_dev *dev, const struct rdma_ah_attr *attr, u32 entropy);
void roan_av_free(struct roan_av *av);			/* RCU-delayed; NULL is fine */
void roan_av_query(const struct roan_av *av, struct rdma_ah_attr *attr);
struct roan_av *roan_av_find(struct roan_dev *dev, u32 ah_num);	/* rcu_read_lock held */

/* cq.c */
int roan_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs);
int roan_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata);
int roan_pre_destroy_cq(struct ib_cq *cq);
int roan_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);
int roan_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc);
int roan_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
void roan_cq_post(struct roan_cq *cq, const struct roan_cqe *cqe);	/* any of our contexts; takes cq->lock */
void roan_cq_run(struct roan_cq *cq, unsigned long bits);		/* later.c only: upcalls; drops the reference */

/* srq.c */
int roan_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int roan_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata);
int roan_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr);
int roan_destroy_srq(struct ib_srq *srq, struct ib_udata *udata);
int roan_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
enum roan_fetch { ROAN_FETCH_OK, ROAN_FETCH_EMPTY, ROAN_FETCH_BAD };	/* BAD: *verr says why */
enum roan_fetch roan_srq_fetch(struct roan_srq *srq, struct roan_recv *recv, u32 *verr);
void roan_srq_run(struct roan_srq *srq, unsigned long bits);
/* Copies the slot at the ring's index into @recv and consumes it. Caller holds the queue's lock. Shared by RQ and SRQ. */
enum roan_fetch roan_recv_fetch(struct roan_ring *ring, u32 max_sge, struct roan_recv *recv, u32 *verr);
int roan_recv_post(struct roan_ring *ring, u32 max_sge, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);

/* qp.c, qp_state.c */
int roan_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int roan_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int roan_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);
int roan_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);
struct roan_qp *roan_qp_ref_take(struct roan_qp_ref *ref);	/* RCU or better; NULL: it is gone, or @ref is NULL */
struct roan_qp *roan_qp_find(u32 qpn);			/* takes a reference; NULL. Any context */
struct roan_qp *roan_qp_find_gsi(struct roan_dev *dev);
void roan_qp_get(struct roan_qp *qp);			/* the caller has one already */
void roan_qp_put(struct roan_qp *qp);
void roan_qp_flush(struct roan_qp *qp);			/* any context, any lock: what was posted in ERR, later */
void roan_qp_fail(struct roan_qp *qp);			/* sq.lock or rq.lock held: to ERR, later */
void roan_qp_fail_sq(struct roan_qp *qp);		/* the same, sq.lock held: a send failed. RC to ERR, others to SQE */
bool roan_qp_cut(struct roan_qp *qp);			/* no lock held: to ERR at once, if it is connected, which it says */
void roan_qp_fall(struct roan_qp *qp);			/* now; no queue lock held */
void roan_qp_halt(struct roan_qp *qp);			/* before it is destroyed; process context */
void roan_qp_caps(const struct roan_qp *qp, struct ib_qp_cap *cap);
void roan_qp_run(struct roan_qp *qp, unsigned long bits);
/* Process context. Connected QPs whose address is on a netdev that leaves; all QPs of programs, of a device that does. */
void roan_qp_netdev_gone(const struct net_device *ndev);
void roan_qp_device_gone(const struct roan_dev *dev);
int roan_qp_init(void);
void roan_qp_exit(void);

/* doorbell.c: the uverbs method */
extern const struct uapi_definition roan_uapi_defs[];
/* Send. @answered, or NULL: the last QP whose peer waits for what was sent, with a reference of its own. */
void roan_doorbell_look(struct roan_qp *qp, struct roan_qp **answered);

/* turn.c: conversations on one CPU */
bool roan_turn_answered(struct roan_qp *qp);
void roan_turn_pass(struct roan_qp *qp);
/* Something came from the peer. rq.lock held */
static inline void roan_turn_comes(struct roan_qp *qp)
{
	if (unlikely(qp->rq.listener))
		wake_up_process(qp->rq.listener);
}

/* post.c: kernel consumers */
int roan_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int roan_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);

/* mirror.c */
int roan_mirror_init(struct roan_sq *sq);
void roan_mirror_free(struct roan_sq *sq);
bool roan_mirror_may_grow(const struct roan_sq *sq);
bool roan_mirror_grow(struct roan_sq *sq);	/* sq.lock held; false: no larger, or no memory, and then as before */

/* fetch.c, send.c */
u32 roan_fetch(struct roan_qp *qp, u32 most);		/* sq.lock held: ring -> mirror and requester, as there is room, at @most; how many */
void roan_send(struct roan_qp *qp);		/* process or softirq; takes sq.lock */
void roan_send_acked(struct roan_qp *qp);	/* the same after an answer came, in softirq */
void roan_send_locked(struct roan_qp *qp);	/* sq.lock held */
void roan_sq_arm(struct roan_qp *qp);		/* sq.lock held: set the timer to the requester's deadline */
enum hrtimer_restart roan_sq_timer(struct hrtimer *timer);

/* recv.c, request.c, respond.c */
void roan_recv(struct roan_rx *rx);		/* softirq, from net.c: every packet of the skb; the skb stays the caller's */
void roan_recv_request(struct roan_qp *qp, struct roan_rx *rx);		/* request.c */
void roan_recv_response(struct roan_qp *qp, struct roan_rx *rx);
void roan_recv_datagram(struct roan_qp *qp, struct roan_rx *rx);	/* request.c */
void roan_respond(struct roan_qp *qp);		/* send what the responder owes; takes rq.lock */

/* complete.c */
void roan_complete_send(struct roan_qp *qp, u32 index, enum roan_status status, u32 verr);	/* sq.lock held */
void roan_complete_recv(struct roan_qp *qp, const struct roan_cqe *partial, enum roan_status status, u32 verr); /* rq.lock */
void roan_flush_sq(struct roan_qp *qp);		/* sq.lock held, state ERR or SQE */
void roan_flush_rq(struct roan_qp *qp);		/* rq.lock held, state ERR */

/* choose.c: a QP's own congestion control */
extern const struct uapi_definition roan_choose_defs[];
extern const struct attribute_group roan_choose_group;

/* qos.c, cc_param.c */
int roan_qos_init(void);
void roan_qos_exit(void);
void roan_qos_add_dev(struct roan_dev *dev);
void roan_qos_del_dev(struct roan_dev *dev);
void roan_qos_refresh(struct roan_dev *dev);	/* from the interface's DCB application table */
void roan_cc_param_init(struct roan_cc_dev *cc);
extern const struct attribute_group *roan_port_groups[];

/* cnp.c */
void roan_ce_marked(struct roan_qp *qp, const struct roan_rx *rx);	/* softirq */

/* net.c */
int roan_net_init(void);			/* pernet operations */
void roan_net_exit(void);
struct roan_net *roan_net_get(struct net *net);	/* sockets and hook; ERR_PTR(-EADDRINUSE): rdma_rxe or another has 4791 */
void roan_net_put(struct roan_net *rnet);
bool roan_net_is(const struct roan_net *rnet, const struct net *net);
void roan_net_add_dev(struct roan_net *rnet, struct roan_dev *dev);
void roan_net_del_dev(struct roan_net *rnet, struct roan_dev *dev);	/* waits a grace period */
struct roan_dev *roan_net_dev_for(const struct roan_rx *rx);	/* whose interface or address it is; RCU */
bool roan_net_is_to(const struct roan_rx *rx, const struct roan_dev *dev);	/* may it be this one's? RCU */
struct roan_dev *roan_net_next_dev(const struct roan_rx *rx, struct roan_dev *prev);	/* multicast: all that listen; RCU */
bool roan_flow_ready(struct roan_flow *flow, struct roan_dev *dev, const struct roan_av *av);	/* route valid, or looked up */
void roan_flow_reset(struct roan_flow *flow);
int roan_net_xmit(struct roan_dev *dev, struct sk_buff *skb, struct roan_flow *flow, bool ipv6);
int roan_net_join(struct roan_dev *dev, const union ib_gid *mgid);	/* process context, takes rtnl */
void roan_net_leave(struct roan_dev *dev, const union ib_gid *mgid);
/* For the GRH slot of a UD receive: 40 bytes, an IPv4 header in the last 20. */
void roan_rx_grh(const struct roan_rx *rx, u8 grh[ROAN_GRH_LEN]);

/* mcast.c */
int roan_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int roan_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
void roan_mcast_detach_all(struct roan_qp *qp);			/* destroy_qp */
/* Calls roan_recv_datagram() for every member; returns how many. softirq */
u32 roan_mcast_deliver(struct roan_dev *dev, struct roan_rx *rx);

/* mad.c, stats.c, restrack.c */
int roan_process_mad(struct ib_device *dev, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		     const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey_index);
struct rdma_hw_stats *roan_alloc_port_stats(struct ib_device *dev, u32 port);
int roan_get_hw_stats(struct ib_device *dev, struct rdma_hw_stats *stats, u32 port, int index);
u64 roan_stats_sum(const struct roan_dev *dev, enum roan_counter which);
int roan_fill_res_qp(struct sk_buff *msg, struct ib_qp *qp);
int roan_fill_res_cq(struct sk_buff *msg, struct ib_cq *cq);
int roan_fill_res_mr(struct sk_buff *msg, struct ib_mr *mr);
int roan_fill_res_srq(struct sk_buff *msg, struct ib_srq *srq);

/* crc.c: roan_crc32() of core/core_env.h */
void roan_icrc_add(struct roan_icrc *icrc, const void *p, size_t len);
void roan_icrc_copy(struct roan_icrc *icrc, void *to, const void *from, size_t len);	/* read once if it can be; NULL: a copy */
int roan_crc_init(void);
void roan_crc_exit(void);
const char *roan_crc_name(void);	/* the way that was found to be the fastest */

/*
 * LOCKING
 *
 * Contexts: P process (verbs), D doorbell (the uverbs method), S softirq (receive, the later list), T the soft
 * hrtimer. A kernel consumer may call post_send(), post_recv(), poll_cq() and req_notify_cq() with interrupts off; these
 * touch only the user's half of a ring, under an irqsave lock of their own, and leave the rest to later.c.
 *
 * Order, complete:  qp->mutex -> sq.lock -> rq.lock -> srq->lock -> cq->lock.  window->lock is a leaf.
 * So are asks->lock, pfc->lock, notices->lock and poller->lock. sq.lock, rq.lock, srq->lock and cq->lock are spin_lock_bh. sq.lock
 * and rq.lock are held together only where the state of the QP changes (qp_state.c). post_lock and poll_lock are irqsave
 * and taken with nothing else. A region's map_lock is irqsave, too, and a leaf: consumers map in any context.
 *
 * Nothing calls up (comp_handler, event_handler) or transmits into its own receive path under a lock: upcalls go through
 * roan_later(), and every packet, also to ourselves, goes through the IP stack and the backlog; one that tc redirects from
 * our egress to an ingress does since 6.8, and in 6.1 as Debian has it.
 *
 * An error found on the receive or the send side makes its own half refuse further work at once (requester.failed,
 * responder.failed) and calls roan_qp_fail(); later.c then takes both locks in order and does the rest.
 *
 * LIFETIME
 *
 * A packet's QPN finds a struct roan_qp_ref under RCU; the reference taken from it keeps the QP. destroy_qp() unlinks the
 * ref, sets the state to RESET, stops the timer, drops its own reference and waits for the others: no time-out, no grace
 * period (the ref itself is RCU-freed). Keys: the same, but packets take no reference to them: each CPU says which key
 * it is inside (key.c), and whoever takes one out of force or away waits until all have left it. What is inside stays so
 * for a train of packets or 64 KiB of write-back at most, with softirqs off, and waits for neither sq.lock nor rq.lock, under
 * which others wait for it. Address vectors: RCU only, they are used inside one read section.
 * CQs, SRQs and PDs outlive their QPs (the core counts users); what may still be queued on the later list holds a reference.
 * The ref also counts the skbs of the QP that have not left (below.c), and outlives them; so does the module.
 * Ring memory belongs to its mmap entry and outlives the queue while it is mapped.
 */

#endif /* ROAN_H */
