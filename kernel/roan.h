/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The structs of the device, the user context, address vectors and the QP. From the other folders this header includes
 * only types. The functions of a folder are declared in its own header, and each file includes the headers of the
 * folders that it calls. The transport rules are in core/.
 */
#ifndef ROAN_H
#define ROAN_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_addr.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/roan-abi.h>

#include "base/deferred.h"
#include "base/mem_charge.h"
#include "base/queue_types.h"
#include "core/crc/icrc.h"
#include "core/transport/ud.h"
#include "flow/flow_types.h"
#include "mem/mem_types.h"
#include "tx/tx_types.h"

/*
 * ---- limits, reported by query_device() ----
 * Enforced where an object is made, but for the numbers of QPs, CQs, SRQs and PDs: memory is charged for each.
 */
#define ROAN_MAX_QP		(1024 * 1024)
#define ROAN_MAX_WR		(32 * 1024)
#define ROAN_MAX_SGE		32
#define ROAN_MAX_INLINE		512
/* About as many CQs or SRQs as one process can map: one mapping per ring, and vm.max_map_count is 65530 by default. */
#define ROAN_MAX_CQ		(64 * 1024)
#define ROAN_MAX_SRQ		(64 * 1024)
#define ROAN_MAX_CQE		((1 << 22) - 1)
#define ROAN_MAX_MR		(1024 * 1024)	/* keys: memory regions and memory windows together */
#define ROAN_MAX_DM		(64u << 20)	/* bytes of one allocation */
#define ROAN_MAX_PD		(1024 * 1024)
#define ROAN_MAX_AH		(1024 * 1024)
#define ROAN_MAX_COMP_CNTR	(64 * 1024)	/* one mapping each */
#define ROAN_MAX_RD_ATOMIC	128
/* 512 MiB in pages of 4 KiB: net/smc registers a buffer, up to that size, as one region, and reads no limit. */
#define ROAN_MAX_FAST_REG_PAGES	(128 * 1024)
#define ROAN_MAX_MCAST_ATTACH	8192		/* attachments of QPs to groups: of all QPs to all groups */
#define ROAN_MAX_MCAST_QPS	1024		/* QPs per group */
#define ROAN_MCAST_HASH_BITS	10
/* What one user may hold of a device: user_share.h */
#define ROAN_USER_MCAST_ATTACH	256
#define ROAN_USER_AH		(ROAN_MAX_AH / 8)
#define ROAN_USER_KEY		(ROAN_MAX_MR / 8)
#define ROAN_USER_COMP_CNTR	(ROAN_MAX_COMP_CNTR / 8)
#define ROAN_MAX_MSG		0x80000000u
#define ROAN_GID_TABLE		256		/* an address handle has 8 bits for the index */
#define ROAN_MAX_UNDER_WAY	512		/* WQEs fetched from the send ring and not completed, per QP */

struct roan_net;
struct roan_qp;
struct roan_limiter;
struct roan_dm_bar;
struct roan_parent;
struct roan_stats;
struct roan_user;
struct roan_comp_counts;

/* ---- devices: device.c ---- */

/* cc_param/any_interface */
enum roan_any_interface {
	ROAN_OWN_INTERFACE,		/* packets come, and leave, by the interface of their QP's GID */
	ROAN_COME_BY_ANY_INTERFACE,
	ROAN_SEND_BY_ANY_INTERFACE,	/* and leave by the one that routes choose */
};

struct roan_dev {
	struct ib_device ib;
	struct net_device *ndev;	/* held from newlink to dealloc */
	netdevice_tracker ndev_tracker;
	struct roan_parent *parent;	/* ib.dev.parent; parent.c */
	struct roan_net *rnet;		/* of dev_net(ndev); ip_hook.c */
	struct list_head net_link;	/* rnet->devs, RCU */
	struct hlist_node ndev_link;	/* ndev_devs of ip_hook.c, RCU */
	bool port_active_sent;		/* the last port event was PORT_ACTIVE; RTNL */

	__be64 sys_image_guid;		/* netdev.c; const */
	bool l3;			/* the interface has no link-layer addresses: gid.c; const */
	bool addr_removed;		/* since the last scan of its addresses */
	int missed_scans;		/* their number when scans last found the device: gid.c */
	struct work_struct gid_scan;	/* of the addresses: gid.c */

	struct rhashtable keys;		/* key index -> struct roan_key; key.c */
	struct roan_dm_bar *dm_bar;	/* source of device memory, dm_bar.c; NULL: kernel memory */
	u64 dm_limit;			/* bytes of kernel memory that device memory may take; dm.c */
	atomic64_t dm_used;		/* of these, in bytes */
	struct xarray ahs;		/* ah_num -> struct roan_av */
	u32 ah_next;
	struct roan_qp_ref __rcu *gsi;	/* QP 1 */

	struct roan_cc_dev cc;
	struct hlist_head peers[1 << ROAN_PEER_HASH_BITS];	/* struct roan_peer; peer.c */
	struct roan_qos qos;
	struct list_head qos_link;	/* dcb_prio.c */
	struct roan_pfc pfc;
	struct roan_odp_rxq odp_rxq;
	bool standard_wire;		/* no extensions: cc_param/peer_mode. READ/WRITE_ONCE */
	u8 any_interface;		/* enum roan_any_interface: cc_param. READ/WRITE_ONCE */
	struct roan_sq_poller poller;

	/* struct roan_mcast; changed under RTNL, RCU readers; mcast.c */
	struct hlist_head mcast[1 << ROAN_MCAST_HASH_BITS];
	u32 n_mcast;			/* attachments of QPs to groups; mcast.c */
	atomic_t n_comp_cntr;		/* completion counters; comp_cntr.c */
	struct work_struct speed_work;	/* reads the link speed; port_speed.c */
	struct list_head users;		/* struct roan_user; user_share.c */

	bool removing;	/* user QPs are flushed and may enter only RESET and ERR; read under queue locks */
	struct roan_stats __percpu *stats;
};

struct roan_ucontext {
	struct ib_ucontext ib;
	struct roan_user *user;		/* that opened it; referenced, const */
	struct roan_db_hints db_hints;
	struct mm_struct *mm;	/* of the process that opened it; referenced; const */
	bool one_mapping;	/* the provider has ROAN_FEATURE_ONE_MAPPING; const */
};

struct roan_pd {
	struct ib_pd ib;
};

/* ---- addresses: pd_ah.c ---- */

/* Address vector: destination and header fields of packets. Const once published, but for @same_iface; RCU-freed. */
struct roan_av {
	union ib_gid sgid;		/* local address; IPv4 as a v4-mapped IPv6 address */
	union ib_gid dgid;
	bool multicast;
	u8  tclass;			/* DSCP and ECN bits set by the application */
	u8  ttl;
	u8  sl;
	u8  dmac[ETH_ALEN];		/* as given, for query_ah(); packets take theirs from the neighbour table */
	u32 flow_label;
	u16 sport;			/* UDP source port: flow entropy */
	u8  static_rate;		/* enum ib_rate; stored for queries only */
	int ifindex;			/* netdev of @sgid: dev->ndev, or a VLAN on it that may be removed earlier */
	const struct ib_gid_attr *sgid_attr;	/* holds a reference */
	u32 ah_num;
	union {
		struct ib_pd *pd;	/* of an address handle */
		struct roan_qp *qp;	/* of a connected QP's vector */
	};
	union {
		struct list_head same_iface;	/* QPs' vectors, until freed: net/iface_qps.c; lock of rnet->avs */
		struct rcu_head rcu;
	};
};

struct roan_ah {
	struct ib_ah ib;
	struct roan_av *av;
	struct roan_user *user;		/* whose share it counts against; NULL: none */
};

/*
 * The entry of a QPN in the lookup table, and the count of the QP's skbs in flight in the stack. It outlives the QP and
 * these skbs by an RCU grace period, so destroy_qp() does not wait for one.
 */
struct roan_qp_ref {
	refcount_t refs;
	struct roan_qp *qp;
	struct rcu_head rcu;
	struct roan_tx_inflight tx_inflight;
} __aligned(ROAN_TX_INFLIGHT_ALIGN);

/* Attributes set by modify_qp() that no packet needs. Written under both queue locks and mutex, read under either. */
struct roan_qp_attr {
	u32 port_num;
	u16 pkey_index;
	u8  path_mtu;			/* enum ib_mtu */
	u8  max_rd_atomic;
	u8  max_dest_rd_atomic;
	u8  timeout;
	u8  retry_cnt;
	u8  rnr_retry;
	bool en_sqd_async_notify;	/* for the next transition to SQD */
	u32 sq_psn;
	u32 rq_psn;
	u32 rate_limit;			/* kbit/s; 0: none */
};

/*
 * Responder resources of a QP: the next power of two. mlx4, mlx5 and hns round max_rd_atomic up to it, so as many READs
 * and atomics of a peer with the same value are outstanding.
 */
static inline u32 roan_resp_resources(u8 max_dest_rd_atomic)
{
	return max_dest_rd_atomic ? roundup_pow_of_two(max_dest_rd_atomic) : 0;
}

/* Up to 2 KiB, a slab of the kernel, also with a somewhat larger struct ib_qp: verbs/scale.sh measures an idle QP. */
struct roan_qp {
	struct ib_qp ib;
	struct roan_dev *dev;
	struct roan_qp_ref *ref;
	struct completion released;	/* completed when the last reference is dropped */
	struct roan_deferred deferred;
	struct mutex mutex;		/* modify, query, netlink readers; uverbs takes only a read lock */

	/*
	 * Written under both queue locks, by modify_qp() also under mutex. Stable under either queue lock, not under
	 * mutex: SQE, ERR, and RESET before destruction are entered without it.
	 */
	enum ib_qp_state state;
	bool user;
	u8  transport;			/* enum roan_transport */
	u8  mtu_shift;
	u8  ext_version;		/* sent to the peer: ROAN_EXT_VERSION, or 0. Set at INIT->RTR */
	u16 pkey;
	u8  min_rnr_timer;
	bool block_self_mcast;		/* it gets no copy of its own multicast datagrams; const */
	u32 qkey;
	u32 dest_qpn;
	u32 access;			/* remote access allowed, IB_ACCESS_REMOTE_* */
	struct roan_av __rcu *av;	/* connected QPs; replaced under both queue locks and mutex; see roan_qp_av() */
	struct roan_cq *scq, *rcq;
	struct roan_srq *srq;
	struct roan_comp_counts *comp_counts;	/* comp_count.h; NULL: none attached. mutex; READ_ONCE() without */
	struct ib_ucontext *uctx;	/* NULL: of a kernel consumer */
	u64 handle;			/* qp_handle of its CQEs: the provider's, or struct ib_qp (kernel consumer) */
	struct roan_mem_charge charge;	/* for the WQE shadow and the requester's state, at their largest */
	struct roan_mem_charge resp_charge;	/* for the responder resources; mutex */
	struct roan_qp_attr attr;
	u32 n_mcast;			/* number of @mcast */
	struct list_head mcast;		/* struct roan_mcast_member; the core destroys no QP that has any. mcast.c */
	/*
	 * The QP's algorithm: 1 + enum roan_cc_algo, or 0: the device's. With ROAN_CC_PINNED if the administrator
	 * chose. mutex; READ_ONCE() without
	 */
	u8  cc_override;
	u8  cc_program;			/* the program's choice: in effect unless the administrator chose. mutex */
	u32 admin_rate_cap;		/* kbit/s; 0: none. mutex; READ_ONCE() without */
	struct roan_peer *peer;		/* of an RC QP that is connected to roan; referenced; mutex and sq.lock */
	struct roan_limiter *limiter;	/* qp_rate.h; NULL until needed, then kept until the QP is destroyed */
	struct roan_fault_list *faults;	/* odp_fault.c; const */
	struct list_head pfc_link;	/* pfc_rx.c: list of QPs blocked by PFC; holds a reference; pfc->lock */
	u64 pfc_wait_since;		/* ns: when it entered that list; pfc->lock */
	u64 pfc_waited;			/* ns: total time in that list before @pfc_wait_since; pfc->lock */
	u8  pfc_blocked_mask;		/* the blocked queues, 1 << enum roan_queue_id; pfc->lock or READ_ONCE() */
	bool comm_est_sent;		/* COMM_EST was raised since the last RESET */
	bool sq_polled;			/* sq_poller.c polls the send ring, so it needs no doorbell; sq.lock */
	bool err_pending;		/* ERR requested since the last RESET, which clears it under both queue locks */
	/* UC, UD: a send failed and SQE is requested; entering SQE, ERR or RESET clears it under both queue locks */
	bool sqe_pending;
	bool last_wqe_due;		/* LAST_WQE_REACHED is raised when the send queue is flushed; sq.lock */

	struct roan_sq sq ____cacheline_aligned_in_smp;
	struct roan_rq rq ____cacheline_aligned_in_smp;
};

/* The address vector of a connected QP, or NULL before it is set. Needs rcu_read_lock(), a queue lock or qp->mutex. */
static inline const struct roan_av *roan_qp_av(const struct roan_qp *qp)
{
	return rcu_dereference_check(qp->av, lockdep_is_held(&qp->sq.lock) || lockdep_is_held(&qp->rq.lock) ||
					     lockdep_is_held(&qp->mutex));
}

/* ---- conversions ---- */

#define ROAN_DEFINE_TO(name, core)								\
static inline struct roan_##name *to_roan_##name(struct ib_##core *ib)			\
{											\
	return container_of(ib, struct roan_##name, ib);				\
}

ROAN_DEFINE_TO(dev, device)
ROAN_DEFINE_TO(ucontext, ucontext)
ROAN_DEFINE_TO(ah, ah)
ROAN_DEFINE_TO(mr, mr)
ROAN_DEFINE_TO(mw, mw)
ROAN_DEFINE_TO(cq, cq)
ROAN_DEFINE_TO(srq, srq)
ROAN_DEFINE_TO(qp, qp)
#undef ROAN_DEFINE_TO

#endif /* ROAN_H */
