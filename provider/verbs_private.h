/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The private interface between libibverbs and a provider, which no public header declares: layouts and prototypes, by
 * release of rdma-core. The names are those of libibverbs. Nothing here is specific to roan.
 *
 * The symbol version (34, 57, ...) does not identify the layout: struct verbs_qp and struct verbs_context_ops changed
 * without a new version. So all layouts are derived from the release, which the build takes from the installed library.
 * An unknown release does not compile.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <infiniband/verbs.h>

#ifndef ROAN_RDMA_CORE
#error "ROAN_RDMA_CORE must be the release of the rdma-core that is built for, 44 for 44.0"
#endif

#if ROAN_RDMA_CORE < 36
#error "rdma-core below 36 has other layouts"
#elif ROAN_RDMA_CORE <= 56
#define ROAN_PABI	34
#elif ROAN_RDMA_CORE <= 58
#define ROAN_PABI	57
#elif ROAN_RDMA_CORE <= 63
#define ROAN_PABI	59
#elif ROAN_RDMA_CORE == 64
#define ROAN_PABI	64
#elif ROAN_RDMA_CORE == 65
#define ROAN_PABI	65
#else
#error "the private layouts of this rdma-core are not known here"
#endif

/* ---- devices ---- */

enum verbs_match_kind {
	VERBS_MATCH_SENTINEL	= 0,
	VERBS_MATCH_PCI		= 1,
	VERBS_MATCH_MODALIAS	= 2,
	VERBS_MATCH_DRIVER_ID	= 3,
};

struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind;			/* enum verbs_match_kind */
};

struct verbs_list_node {
	struct verbs_list_node *next;
	struct verbs_list_node *prev;
};

struct verbs_sysfs_dev {
	struct verbs_list_node entry;
	void *provider_data;
	const struct verbs_match_ent *match;
	unsigned int flags;
	char sysfs_name[64];
	dev_t sysfs_cdev;
	char ibdev_name[64];
	char ibdev_path[256];
	char modalias[512];
	uint64_t node_guid;
	uint32_t driver_id;
	enum ibv_node_type node_type;
	int ibdev_idx;
	uint32_t num_ports;
	uint32_t abi_ver;
	struct timespec time_created;
};

struct verbs_device;

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;	/* never NULL: libibverbs does not check */
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs);
	struct verbs_context *(*alloc_context)(struct ibv_device *ibdev, int cmd_fd, void *private_data);
	struct verbs_context *(*import_context)(struct ibv_device *ibdev, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs);
	void (*uninit_device)(struct verbs_device *vdev);
};

struct verbs_device {
	struct ibv_device device;
	const struct verbs_device_ops *ops;
	atomic_int refcount;
	struct verbs_list_node entry;
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};

/* ---- objects ---- */

struct verbs_xrcd;

enum verbs_qp_mask {
	VERBS_QP_XRCD	= 1 << 0,
	VERBS_QP_EX	= 1 << 1,
};

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
	};
	uint32_t comp_mask;		/* enum verbs_qp_mask */
	struct verbs_xrcd *xrcd;
};

struct verbs_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
};

struct verbs_srq {
	struct ibv_srq srq;
	enum ibv_srq_type srq_type;
	struct verbs_xrcd *xrcd;
	struct ibv_cq *cq;
	uint32_t srq_num;
};

enum ibv_mr_type {
	IBV_MR_TYPE_MR,
	IBV_MR_TYPE_NULL_MR,
	IBV_MR_TYPE_IMPORTED_MR,
	IBV_MR_TYPE_DMABUF_MR,
};

struct verbs_mr {
	struct ibv_mr ibv_mr;
	enum ibv_mr_type mr_type;
	int access;
};

/* ---- operations of a provider, in the order of libibverbs ---- */

struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

struct verbs_context_ops {
	int (*advise_mr)(struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t, struct ibv_sge *, uint32_t);
#if ROAN_RDMA_CORE >= 64
	void *(*alloc_buf)(struct ibv_pd *, size_t, struct ibv_buf **);
#endif
	struct ibv_dm *(*alloc_dm)(struct ibv_context *, struct ibv_alloc_dm_attr *);
#if ROAN_RDMA_CORE >= 59
	struct ibv_dmah *(*alloc_dmah)(struct ibv_context *, struct ibv_dmah_init_attr *);
#endif
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *, enum ibv_mw_type);
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *);
	struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *, struct ibv_parent_domain_init_attr *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	struct ibv_td *(*alloc_td)(struct ibv_context *, struct ibv_td_init_attr *);
	void (*async_event)(struct ibv_context *, struct ibv_async_event *);
	int (*attach_counters_point_flow)(struct ibv_counters *, struct ibv_counter_attach_attr *, struct ibv_flow *);
	int (*attach_mcast)(struct ibv_qp *, const union ibv_gid *, uint16_t);
	int (*bind_mw)(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
	int (*close_xrcd)(struct ibv_xrcd *);
	void (*cq_event)(struct ibv_cq *);
	struct ibv_ah *(*create_ah)(struct ibv_pd *, struct ibv_ah_attr *);
#if ROAN_RDMA_CORE >= 65
	struct ibv_comp_cntr *(*create_comp_cntr)(struct ibv_context *, struct ibv_comp_cntr_init_attr *);
#endif
	struct ibv_counters *(*create_counters)(struct ibv_context *, struct ibv_counters_init_attr *);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, struct ibv_comp_channel *, int);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *, struct ibv_cq_init_attr_ex *);
	struct ibv_flow *(*create_flow)(struct ibv_qp *, struct ibv_flow_attr *);
	struct ibv_flow_action *(*create_flow_action_esp)(struct ibv_context *, struct ibv_flow_action_esp_attr *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *, struct ibv_qp_init_attr_ex *);
	struct ibv_rwq_ind_table *(*create_rwq_ind_table)(struct ibv_context *, struct ibv_rwq_ind_table_init_attr *);
	struct ibv_srq *(*create_srq)(struct ibv_pd *, struct ibv_srq_init_attr *);
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *, struct ibv_srq_init_attr_ex *);
	struct ibv_wq *(*create_wq)(struct ibv_context *, struct ibv_wq_init_attr *);
#if ROAN_RDMA_CORE >= 59
	int (*dealloc_dmah)(struct ibv_dmah *);
#endif
	int (*dealloc_mw)(struct ibv_mw *);
	int (*dealloc_pd)(struct ibv_pd *);
	int (*dealloc_td)(struct ibv_td *);
	int (*dereg_mr)(struct verbs_mr *);
	int (*destroy_ah)(struct ibv_ah *);
#if ROAN_RDMA_CORE >= 65
	int (*destroy_comp_cntr)(struct ibv_comp_cntr *);
#endif
	int (*destroy_counters)(struct ibv_counters *);
	int (*destroy_cq)(struct ibv_cq *);
	int (*destroy_flow)(struct ibv_flow *);
	int (*destroy_flow_action)(struct ibv_flow_action *);
	int (*destroy_qp)(struct ibv_qp *);
	int (*destroy_rwq_ind_table)(struct ibv_rwq_ind_table *);
	int (*destroy_srq)(struct ibv_srq *);
	int (*destroy_wq)(struct ibv_wq *);
	int (*detach_mcast)(struct ibv_qp *, const union ibv_gid *, uint16_t);
#if ROAN_RDMA_CORE >= 62
	int (*dm_export_dmabuf_fd)(struct ibv_dm *);
#endif
#if ROAN_RDMA_CORE >= 64
	void (*free_buf)(struct ibv_buf *);
#endif
	void (*free_context)(struct ibv_context *);
	int (*free_dm)(struct ibv_dm *);
	int (*get_srq_num)(struct ibv_srq *, uint32_t *);
	struct ibv_dm *(*import_dm)(struct ibv_context *, uint32_t);
	struct ibv_mr *(*import_mr)(struct ibv_pd *, uint32_t);
	struct ibv_pd *(*import_pd)(struct ibv_context *, uint32_t);
#if ROAN_RDMA_CORE >= 65
	int (*inc_comp_cntr)(struct ibv_comp_cntr *, uint64_t);
	int (*inc_err_comp_cntr)(struct ibv_comp_cntr *, uint64_t);
#endif
	int (*modify_cq)(struct ibv_cq *, struct ibv_modify_cq_attr *);
	int (*modify_flow_action_esp)(struct ibv_flow_action *, struct ibv_flow_action_esp_attr *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int (*modify_qp_rate_limit)(struct ibv_qp *, struct ibv_qp_rate_limit_attr *);
	int (*modify_srq)(struct ibv_srq *, struct ibv_srq_attr *, int);
	int (*modify_wq)(struct ibv_wq *, struct ibv_wq_attr *);
	struct ibv_qp *(*open_qp)(struct ibv_context *, struct ibv_qp_open_attr *);
	struct ibv_xrcd *(*open_xrcd)(struct ibv_context *, struct ibv_xrcd_init_attr *);
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
	int (*post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
	int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
	int (*post_srq_ops)(struct ibv_srq *, struct ibv_ops_wr *, struct ibv_ops_wr **);
	int (*post_srq_recv)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **);
#if ROAN_RDMA_CORE >= 65
	int (*qp_attach_comp_cntr)(struct ibv_qp *, struct ibv_comp_cntr *, struct ibv_qp_attach_comp_cntr_attr *);
	int (*query_comp_cntr_caps)(struct ibv_context *, struct ibv_comp_cntr_caps *, size_t);
#endif
	int (*query_device_ex)(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *,
			       size_t);
	int (*query_ece)(struct ibv_qp *, struct ibv_ece *);
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
#if ROAN_RDMA_CORE >= 62
	int (*query_port_speed)(struct ibv_context *, uint32_t, uint64_t *);
#endif
	int (*query_qp)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
	int (*query_qp_data_in_order)(struct ibv_qp *, enum ibv_wr_opcode, uint32_t);
	int (*query_rt_values)(struct ibv_context *, struct ibv_values_ex *);
	int (*query_srq)(struct ibv_srq *, struct ibv_srq_attr *);
#if ROAN_RDMA_CORE >= 65
	int (*read_comp_cntr)(struct ibv_comp_cntr *, uint64_t *);
#endif
	int (*read_counters)(struct ibv_counters *, uint64_t *, uint32_t, uint32_t);
#if ROAN_RDMA_CORE >= 65
	int (*read_err_comp_cntr)(struct ibv_comp_cntr *, uint64_t *);
#endif
	struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *, struct ibv_dm *, uint64_t, size_t, unsigned int);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, uint64_t, int);
#if ROAN_RDMA_CORE >= 59
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *, struct ibv_mr_init_attr *);
#endif
	int (*req_notify_cq)(struct ibv_cq *, int);
	int (*rereg_mr)(struct verbs_mr *, int, struct ibv_pd *, void *, size_t, int);
	int (*resize_cq)(struct ibv_cq *, int);
#if ROAN_RDMA_CORE >= 65
	int (*set_comp_cntr)(struct ibv_comp_cntr *, uint64_t);
#endif
	int (*set_ece)(struct ibv_qp *, struct ibv_ece *);
#if ROAN_RDMA_CORE >= 65
	int (*set_err_comp_cntr)(struct ibv_comp_cntr *, uint64_t);
#endif
	void (*unimport_dm)(struct ibv_dm *);
	void (*unimport_mr)(struct ibv_mr *);
	void (*unimport_pd)(struct ibv_pd *);
};

/* ---- functions of libibverbs; those that return int return 0 or a positive errno ---- */

struct ib_uverbs_ex_query_device_resp;
struct ibv_fd_arr;
struct ibv_command_buffer;

#define VERBS_CAT2(a, b)	a##b
#define VERBS_CAT(a, b)		VERBS_CAT2(a, b)
#define verbs_register_driver	VERBS_CAT(verbs_register_driver_, ROAN_PABI)

extern bool verbs_allow_disassociate_destroy;	/* environment variable RDMAV_ALLOW_DISASSOC_DESTROY */

void verbs_register_driver(const struct verbs_device_ops *ops);
void *_verbs_init_and_alloc_context(struct ibv_device *ibdev, int cmd_fd, size_t size, struct verbs_context *offset,
				    uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *vctx);
void verbs_set_ops(struct verbs_context *vctx, const struct verbs_context_ops *ops);

#if ROAN_PABI >= 57
int ibv_cmd_get_context(struct verbs_context *vctx, void *cmd, size_t cmd_size, struct ibv_fd_arr *fds, void *resp,
			size_t resp_size);
#else
int ibv_cmd_get_context(struct verbs_context *vctx, void *cmd, size_t cmd_size, void *resp, size_t resp_size);
#endif
int ibv_cmd_query_context(struct ibv_context *ctx, struct ibv_command_buffer *link);
int ibv_cmd_query_device_any(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp, size_t *resp_size);
int ibv_cmd_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, void *cmd, size_t cmd_size);

int ibv_cmd_alloc_pd(struct ibv_context *ctx, struct ibv_pd *pd, void *cmd, size_t cmd_size, void *resp,
		     size_t resp_size);
int ibv_cmd_dealloc_pd(struct ibv_pd *pd);
int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sges,
		      uint32_t n);
int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access, struct verbs_mr *mr,
		   void *cmd, size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_rereg_mr(struct verbs_mr *mr, uint32_t flags, void *addr, size_t length, uint64_t hca_va, int access,
		     struct ibv_pd *pd, void *cmd, size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_dereg_mr(struct verbs_mr *mr);
int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *mr, uint32_t handle);
int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw, void *cmd, size_t cmd_size,
		     void *resp, size_t resp_size);
int ibv_cmd_dealloc_mw(struct ibv_mw *mw);

int ibv_cmd_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel, int vector,
		      struct ibv_cq *cq, void *cmd, size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, void *cmd, size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int ibv_cmd_destroy_cq(struct ibv_cq *cq);

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr, void *cmd,
		       size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask, void *cmd, size_t cmd_size);
int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, void *cmd, size_t cmd_size);
int ibv_cmd_destroy_srq(struct ibv_srq *srq);

int ibv_cmd_create_qp_ex(struct ibv_context *ctx, struct verbs_qp *qp, struct ibv_qp_init_attr_ex *attr, void *cmd,
			 size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, void *cmd, size_t cmd_size);
int ibv_cmd_modify_qp_ex(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, void *cmd, size_t cmd_size, void *resp,
			 size_t resp_size);
int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init, void *cmd,
		     size_t cmd_size);
int ibv_cmd_destroy_qp(struct ibv_qp *qp);
int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

#if ROAN_RDMA_CORE >= 62
int ibv_cmd_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed);
#endif
#if ROAN_RDMA_CORE >= 65
int ibv_cmd_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps, size_t caps_size);
int ibv_cmd_destroy_comp_cntr(struct ibv_comp_cntr *cntr);
int ibv_cmd_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_cmd_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_cmd_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_cmd_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_cmd_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, struct ibv_qp_attach_comp_cntr_attr *attr);
#endif

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah, struct ibv_ah_attr *attr, void *resp, size_t resp_size);
int ibv_cmd_destroy_ah(struct ibv_ah *ah);

/* ---- layout checks, on x86-64 only: pthread_mutex_t has other sizes elsewhere ---- */

#ifdef __x86_64__
#define VERBS_SIZE(type, size)		_Static_assert(sizeof(struct type) == (size), "size of " #type)
#define VERBS_AT(type, member, at)	_Static_assert(offsetof(struct type, member) == (at), "place of " #member)

VERBS_SIZE(verbs_device_ops, 72);
VERBS_AT(verbs_device_ops, match_table, 16);
VERBS_AT(verbs_device_ops, alloc_context, 40);
VERBS_AT(verbs_device_ops, alloc_device, 56);
VERBS_SIZE(verbs_match_ent, 24);
VERBS_AT(verbs_match_ent, kind, 20);
VERBS_SIZE(verbs_sysfs_dev, 992);
VERBS_AT(verbs_sysfs_dev, ibdev_name, 112);
VERBS_AT(verbs_sysfs_dev, node_guid, 944);
VERBS_AT(verbs_sysfs_dev, abi_ver, 968);
VERBS_SIZE(verbs_device, 712);
VERBS_AT(verbs_device, ops, 664);
VERBS_AT(verbs_device, sysfs, 696);
VERBS_SIZE(verbs_mr, 56);
VERBS_AT(verbs_mr, mr_type, 48);
VERBS_SIZE(verbs_cq, 288);
VERBS_SIZE(verbs_srq, 160);
VERBS_AT(verbs_srq, srq_num, 152);
VERBS_AT(verbs_qp, comp_mask, sizeof(struct ibv_qp_ex));
VERBS_AT(verbs_context_ops, advise_mr, 0);

#if ROAN_RDMA_CORE <= 43
VERBS_SIZE(ibv_qp_ex, 344);
#elif ROAN_RDMA_CORE == 44
VERBS_SIZE(ibv_qp_ex, 352);
#else
VERBS_SIZE(ibv_qp_ex, 360);
#endif

/* size of the public context, size of the operations, offsets of some operations */
#if ROAN_RDMA_CORE <= 58
#define VERBS_EPOCH_ASSERTS(X)	X(648, 608, 40, 152, 312, 440, 544, 600)
#elif ROAN_RDMA_CORE <= 61
#define VERBS_EPOCH_ASSERTS(X)	X(672, 632, 48, 160, 328, 456, 560, 624)
#elif ROAN_RDMA_CORE <= 63
#define VERBS_EPOCH_ASSERTS(X)	X(680, 648, 48, 160, 336, 464, 576, 640)
#elif ROAN_RDMA_CORE == 64
#define VERBS_EPOCH_ASSERTS(X)	X(696, 664, 56, 168, 352, 480, 592, 656)
#else
#define VERBS_EPOCH_ASSERTS(X)	X(696, 744, 56, 176, 368, 512, 656, 736)
#endif
#define VERBS_CHECK(ctx_size, ops_size, at_alloc_pd, at_create_qp, at_free, at_send, at_mr, at_unimport)	\
	VERBS_SIZE(verbs_context, ctx_size);									\
	VERBS_SIZE(verbs_context_ops, ops_size);								\
	VERBS_AT(verbs_context_ops, alloc_pd, at_alloc_pd);							\
	VERBS_AT(verbs_context_ops, create_qp, at_create_qp);							\
	VERBS_AT(verbs_context_ops, free_context, at_free);							\
	VERBS_AT(verbs_context_ops, post_send, at_send);							\
	VERBS_AT(verbs_context_ops, reg_mr, at_mr);								\
	VERBS_AT(verbs_context_ops, unimport_pd, at_unimport)
VERBS_EPOCH_ASSERTS(VERBS_CHECK);
#endif /* __x86_64__ */

#endif /* VERBS_PRIVATE_H */
