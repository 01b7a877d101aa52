/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's structs, and the functions that one of its files calls in another. Layouts that libibverbs fixes are
 * in verbs_private.h, those that the kernel fixes in rdma/roan-abi.h.
 */
#ifndef ROAN_PROVIDER_H
#define ROAN_PROVIDER_H

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <rdma/ib_user_verbs.h>
#include "verbs_private.h"
#include "ring.h"
#include "roandv.h"

/* Values in the rings are passed to and from verbs without translation, so the numbers must be equal. */
#define ROAN_SAME(ours, verbs)	_Static_assert((int)(ours) == (int)(verbs), #ours " is " #verbs)

/* A spinlock that does nothing if the program promised to use the object from one thread at a time. */
struct roan_lock {
	pthread_spinlock_t spin;
	bool unused;
};

static inline void roan_lock_init(struct roan_lock *lock, bool unused)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->unused = unused;
}

static inline void roan_lock(struct roan_lock *lock)
{
	if (!lock->unused)
		pthread_spin_lock(&lock->spin);
}

static inline void roan_unlock(struct roan_lock *lock)
{
	if (!lock->unused)
		pthread_spin_unlock(&lock->spin);
}

struct ib_uverbs_attr;

/* doorbell.c: the context's ring of doorbell hints, the QPs whose send rings the kernel should read soon. */
struct roan_db_hints {
	struct roan_lock lock;		/* serialises producers; innermost: taken with sq.lock held */
	struct ring ring;		/* ctl NULL: no such ring; every idle send ring needs a doorbell */
	uint32_t rung_index;		/* a doorbell covers all hints below this index; atomic, without @lock */
};

/*
 * Memory of the kernel that is mapped: a ring, device memory or a counter. Not part of an object's struct, which may be
 * the program's memory (roan_pd.alloc): a closed context does not depend on it.
 */
struct roan_mapping {
	struct roan_mapping *next;	/* of the same context */
	struct roan_mapping **link;	/* what points to this one */
	uint8_t *at;
	size_t size;			/* bytes */
};

struct roan_context {
	struct verbs_context vctx;
	struct roan_db_hints db_hints;
	struct roan_mapping *mappings;	/* list; roan.c has its lock */
	bool single_threaded;		/* environment variable ROAN_SINGLE_THREADED */
	bool one_cpu;			/* the machine has one CPU: an empty poll yields it */
	bool qp_handles;		/* the kernel knows ROAN_FEATURE_QP_HANDLE */
};

struct roan_td {
	struct ibv_td ibv;
	atomic_uint users;		/* parent domains that use it */
};

struct roan_pd {
	struct ibv_pd ibv;
	struct roan_pd *real;		/* parent domain: its protection domain; else NULL */
	struct roan_td *td;		/* parent domain: may be NULL */
	atomic_uint users;		/* parent domains of this one, or queues made with this parent domain */
	/*
	 * Parent domain: the program's allocators, or NULL. They allocate the provider's structs of queues and QPs. The
	 * rings are always memory of the kernel.
	 */
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type);
	void (*free)(struct ibv_pd *pd, void *context, void *memory, uint64_t type);
	void *context;
};

struct roan_dm {
	struct ibv_dm ibv;
	struct roan_mapping *map;	/* NULL: not mappable, copied by ROAN_METHOD_DM_COPY */
	uint64_t length;		/* bytes, as allocated */
};

struct roan_ah {
	struct ibv_ah ibv;
	uint32_t ah_num;		/* goes into send WQEs */
};

/* What a program has done with the events of a CQ: poll.c, "events". */
enum roan_cq_events {
	CQ_POLLED,			/* polled since it took an event or armed the CQ, or did neither yet */
	CQ_EVENT_TAKEN,			/* took an event and has not polled since */
	CQ_ARMED_AFTER_EVENT,		/* armed the CQ then, and has not polled since */
	CQ_SOLICITED_AFTER_EVENT,	/* the same, for solicited entries only */
};

struct roan_cq {
	struct verbs_cq vcq;		/* first: libibverbs uses the address of this member */
	struct roan_lock lock;		/* ring, current; held from start_poll to end_poll */
	struct roan_lock arm_lock;	/* nests inside @lock: arming needs a stable @ring only */
	struct ring ring;
	enum roan_cq_events events;	/* atomic, without a lock; beside @ring, as each poll reads it */
	struct roan_cqe current;	/* extended: copy of the entry being read */
	struct roan_pd *pd;		/* parent domain it was made with, or NULL */
	bool lent;			/* this struct came from that domain's allocator */
};

/* A ring of work requests and its limits. */
struct roan_wq {
	struct roan_lock lock;
	struct ring ring;
	uint32_t max_wr;		/* outstanding requests, at most the number of slots */
	uint32_t max_sge;
	uint32_t max_inline;		/* bytes */
	bool cqe_frees;			/* a slot is in use until its CQE is polled, not only until the kernel has read it */
	uint32_t free_until;		/* slots below may be written, as far as known. Under @lock */
	uint32_t polled;		/* slots below it have their completions polled; ring_set_polled() */
};

/* True if slot @tail may be written. wq->lock held. */
static inline bool roan_wq_has_space(struct roan_wq *wq, uint32_t tail)
{
	uint32_t until;

	if (tail - wq->free_until < wq->max_wr)
		return true;
	until = wq->cqe_frees ? ring_free_until(&wq->ring, &wq->polled) : ring_head(&wq->ring);
	if (tail - until < tail - wq->free_until)	/* else behind slots that need no poll, perhaps by more than 2^31 */
		wq->free_until = until;
	return tail - wq->free_until < wq->max_wr;
}

/* Copies a scatter/gather list to @to, in a slot. */
static inline void roan_copy_sges(void *to, const struct ibv_sge *list, size_t n)
{
	struct roan_sge *sges = to;

	for (size_t i = 0; i < n; i++)
		sges[i] = (struct roan_sge) { .addr = list[i].addr, .length = list[i].length, .lkey = list[i].lkey };
}

struct roan_srq {
	struct verbs_srq vsrq;		/* first */
	struct roan_wq rq;
	struct roan_pd *pd;		/* parent domain it was made with, or NULL */
	bool lent;			/* this struct came from that domain's allocator */
};

/*
 * rdma-core 45 added a function pointer before verbs_qp.comp_mask without changing the symbol version. So struct
 * roan_qp reserves the size of the larger struct, for whichever release it is built.
 */
#define VERBS_QP_SIZE	384

struct roan_qp {
	union {
		struct verbs_qp vqp;	/* first */
		uint8_t pad[VERBS_QP_SIZE];
	};
	struct roan_wq sq;
	struct roan_wq rq;		/* no ring with an SRQ */
	struct roan_pd *pd;		/* parent domain it was made with, or NULL */
	bool lent;			/* this struct came from that domain's allocator */
	/* Set by modify_qp only. In ibv_qp.state a query of another thread may store an older state afterwards. */
	enum ibv_qp_state state;
	uint32_t hint_index;		/* index of the QP's last hint in the context's ring; sq.lock */
	/* between wr_start and wr_complete, sq.lock held: */
	struct roan_send_wqe *wqe;	/* being filled; NULL: none, setters do nothing */
	uint32_t tail;			/* slots below are filled; those from sq.ring.index on are not posted */
	int err;			/* the first error; wr_complete returns it */
};

static inline struct roan_context *to_roan_context(struct ibv_context *ctx)
{
	return (struct roan_context *)((char *)ctx - offsetof(struct roan_context, vctx.context));
}

static inline struct roan_dm *to_roan_dm(struct ibv_dm *dm)
{
	return (struct roan_dm *)dm;
}

static inline struct roan_pd *to_roan_pd(struct ibv_pd *pd)
{
	return (struct roan_pd *)pd;
}

static inline struct roan_cq *to_roan_cq(struct ibv_cq *cq)
{
	return (struct roan_cq *)cq;
}

static inline struct roan_cq *to_roan_cq_ex(struct ibv_cq_ex *cq)
{
	return (struct roan_cq *)cq;
}

static inline struct roan_srq *to_roan_srq(struct ibv_srq *srq)
{
	return (struct roan_srq *)srq;
}

static inline struct roan_qp *to_roan_qp(struct ibv_qp *qp)
{
	return (struct roan_qp *)qp;
}

static inline struct roan_qp *to_roan_qp_ex(struct ibv_qp_ex *qp)
{
	return (struct roan_qp *)qp;
}

/* Layout of libibverbs' commands: header, core part, driver's part without a gap. */
#define ROAN_CMD(core)		struct { struct ib_uverbs_cmd_hdr hdr; struct core core; }
#define ROAN_CMD_REQ(core, req)	struct { struct ib_uverbs_cmd_hdr hdr; struct core core; struct req roan; }
#define ROAN_RESP(core, resp)	struct { struct core core; struct resp roan; }

/* ---- roan.c ---- */
/* Maps @size bytes of the kernel, until roan_unmap() or the end of the context. NULL: errno is set. */
struct roan_mapping *roan_map(struct ibv_context *ctx, size_t size, int prot, uint64_t offset);
void roan_unmap(struct roan_mapping *map);
int roan_ioctl(struct ibv_context *ctx, uint16_t object, uint16_t method, struct ib_uverbs_attr *attrs, uint16_t n);
/* The error of an ioctl, but EOPNOTSUPP if the kernel does not know the object or the method. */
static inline int roan_or_unsupported(int err)
{
	return err == EPROTONOSUPPORT || err == ENOTTY ? EOPNOTSUPP : err;
}

int roan_ioctl_or_unsupported(struct ibv_context *ctx, uint16_t object, uint16_t method, struct ib_uverbs_attr *attrs,
			      uint16_t n);

/*
 * Destroys an object of the kernel. If the device is removed, the kernel has done that; the call succeeds if the
 * environment variable RDMAV_ALLOW_DISASSOC_DESTROY is set, like libibverbs' own ones.
 */
int roan_ioctl_destroy(struct ibv_context *ctx, uint16_t object, uint16_t method, struct ib_uverbs_attr *handle);

/* Attributes of up to 8 bytes are passed inline, at the lowest address of the word, in either byte order. */
static inline uint64_t roan_inline_u32(uint32_t value)
{
	uint64_t word = 0;

	memcpy(&word, &value, sizeof(value));
	return word;
}

/* ---- pd_mr_ah.c, cq_qp_srq.c: entries of struct verbs_context_ops ---- */
int roan_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int roan_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
int roan_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed);
int roan_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
struct ibv_pd *roan_alloc_pd(struct ibv_context *ctx);
int roan_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *roan_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int roan_dealloc_td(struct ibv_td *td);
struct ibv_pd *roan_alloc_parent_domain(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr);
struct ibv_pd *roan_import_pd(struct ibv_context *ctx, uint32_t handle);
void roan_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *roan_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access);
struct ibv_mr *roan_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
/*
 * Registers an MR that copies @like. attrs[0] receives the handle, the last two attributes the keys; all are mandatory.
 */
struct ibv_mr *roan_reg_by_ioctl(struct ibv_pd *pd, uint16_t method, struct ib_uverbs_attr *attrs, uint16_t n,
				 const struct verbs_mr *like);
int roan_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access);
int roan_dereg_mr(struct verbs_mr *mr);
struct ibv_mr *roan_import_mr(struct ibv_pd *pd, uint32_t handle);
void roan_unimport_mr(struct ibv_mr *mr);
struct ibv_dm *roan_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int roan_free_dm(struct ibv_dm *dm);
struct ibv_dm *roan_import_dm(struct ibv_context *ctx, uint32_t handle);
void roan_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *roan_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t length, unsigned int access);
int roan_dm_export_dmabuf_fd(struct ibv_dm *dm);
struct ibv_mw *roan_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int roan_dealloc_mw(struct ibv_mw *mw);
struct ibv_ah *roan_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int roan_destroy_ah(struct ibv_ah *ah);

struct ibv_cq *roan_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel, int vector);
struct ibv_cq_ex *roan_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int roan_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int roan_resize_cq(struct ibv_cq *cq, int cqe);
int roan_destroy_cq(struct ibv_cq *cq);
struct ibv_srq *roan_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int roan_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int roan_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int roan_destroy_srq(struct ibv_srq *srq);
int roan_get_srq_num(struct ibv_srq *srq, uint32_t *num);
struct ibv_qp *roan_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *roan_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int roan_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int roan_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *limit);
int roan_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
int roan_destroy_qp(struct ibv_qp *qp);

/* ---- dmah.c, comp_cntr.c ---- */
struct ibv_dmah *roan_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *init);
int roan_dealloc_dmah(struct ibv_dmah *dmah);
struct ibv_mr *roan_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *init);
int roan_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps, size_t size);
struct ibv_comp_cntr *roan_create_comp_cntr(struct ibv_context *ctx, struct ibv_comp_cntr_init_attr *init);
int roan_destroy_comp_cntr(struct ibv_comp_cntr *cntr);
int roan_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int roan_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int roan_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, struct ibv_qp_attach_comp_cntr_attr *attr);

/* ---- post.c ---- */
int roan_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int roan_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int roan_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int roan_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* Bit n: a QP of @type has the operation ROAN_WR_* of that number. 0: there is no QP of that type. */
uint32_t roan_allowed_ops(enum ibv_qp_type type);
/* Fills the bind part of @wqe. For a type 2 window, sets mw->rkey to the new R_Key. */
void roan_fill_bind(struct roan_send_wqe *wqe, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info);

/* ---- doorbell.c ---- */
void roan_ring_doorbell(struct roan_qp *qp);
/* after ring_post(), sq.lock held; adds a doorbell hint if that is enough. True: the caller must ring */
bool roan_needs_doorbell(struct roan_qp *qp);
bool roan_db_hints_flush(struct ibv_context *ctx);	/* before the program waits; true: it rang */

/* ---- post_ex.c ---- */
bool roan_send_ops_ok(enum ibv_qp_type type, uint64_t send_ops);
void roan_fill_wr_ops(struct ibv_qp_ex *qp, uint64_t send_ops);

/* ---- poll.c ---- */
int roan_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
void roan_cq_forget(struct ibv_cq *cq, uint32_t qpn);
int roan_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void roan_cq_event(struct ibv_cq *cq);
bool roan_wc_flags_ok(uint64_t wc_flags);
void roan_fill_poll_ops(struct ibv_cq_ex *cq, uint64_t wc_flags);

#endif /* ROAN_PROVIDER_H */
