// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Creating, modifying and destroying the objects that have rings: CQs, SRQs, QPs. Posting and polling are in post.c,
 * post_ex.c and poll.c.
 */
#include <stdlib.h>
#include <string.h>
#include "roan.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns @pd with a reference if it is a parent domain, else NULL: the kernel counts the users of a plain PD. */
static struct roan_pd *pd_get_parent(struct ibv_pd *pd)
{
	struct roan_pd *parent = pd ? to_roan_pd(pd) : NULL;

	if (!parent || !parent->real)
		return NULL;
	atomic_fetch_add(&parent->users, 1);
	return parent;
}

static void pd_put_parent(struct roan_pd *parent)
{
	if (parent)
		atomic_fetch_sub(&parent->users, 1);
}

static bool is_lock_free(struct ibv_context *ctx, const struct roan_pd *parent)
{
	return to_roan_context(ctx)->single_threaded || (parent && parent->td);
}

static void wq_set_max_wr(struct roan_wq *wq, uint32_t max_wr)
{
	wq->max_wr = wq->ring.ctl ? min_u32(max_wr, wq->ring.mask + 1) : 0;
}

static int wq_map(struct roan_wq *wq, struct ibv_context *ctx, const struct roan_ring_desc *desc, uint32_t max_wr)
{
	int err = ring_map(&wq->ring, ctx, desc);

	if (!err)
		wq_set_max_wr(wq, max_wr);
	return err;
}

/* ---- memory of the provider's structs ---- */

/*
 * Returns zeroed memory, or NULL. *@lent: it came from the program's allocator, and pd_put_memory() must return it
 * there. @pd: from pd_get_parent(); the reference is dropped on failure.
 */
static void *pd_get_memory(struct roan_pd *pd, size_t size, uint64_t type, bool *lent)
{
	void *memory = IBV_ALLOCATOR_USE_DEFAULT;

	if (pd && pd->alloc)
		memory = pd->alloc(&pd->ibv, pd->context, size, 64, type);
	*lent = memory != IBV_ALLOCATOR_USE_DEFAULT;
	if (!*lent)
		memory = calloc(1, size);
	else if (memory)
		memset(memory, 0, size);
	else
		errno = ENOMEM;
	if (!memory)
		pd_put_parent(pd);
	return memory;
}

/* Frees @memory and drops the reference to @pd, after the kernel has destroyed the object. */
static void pd_put_memory(struct roan_pd *pd, void *memory, uint64_t type, bool lent)
{
	if (lent)
		pd->free(&pd->ibv, pd->context, memory, type);
	else
		free(memory);
	pd_put_parent(pd);
}

/* ---- completion queues ---- */

static struct roan_cq *create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel, int vector,
				 struct ibv_pd *pd, bool single)
{
	ROAN_CMD(ib_uverbs_create_cq) cmd = { 0 };
	ROAN_RESP(ib_uverbs_create_cq_resp, roan_create_cq_resp) resp = { 0 };
	struct roan_pd *parent;
	struct roan_cq *cq;
	bool lent;
	int err;

	_Static_assert(offsetof(typeof(resp), roan) == 8, "response of CREATE_CQ");
	if (cqe <= 0) {
		errno = EINVAL;
		return NULL;
	}
	parent = pd_get_parent(pd);
	cq = pd_get_memory(parent, sizeof(*cq), ROANDV_RES_TYPE_CQ, &lent);
	if (!cq)
		return NULL;
	cq->pd = parent;
	cq->lent = lent;
	err = ibv_cmd_create_cq(ctx, cqe, channel, vector, &cq->vcq.cq, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto err_free;
	err = ring_map(&cq->ring, ctx, &resp.roan.cq);
	if (!err && !cq->ring.ctl)
		err = EPROTO;
	if (err)
		goto err_destroy;
	roan_lock_init(&cq->lock, single || is_lock_free(ctx, cq->pd));
	roan_lock_init(&cq->arm_lock, single || is_lock_free(ctx, cq->pd));
	return cq;

err_destroy:
	/*
	 * ibv_cmd_destroy_cq() uses these to wait for acknowledged events; libibverbs initialises them only after
	 * success.
	 */
	pthread_mutex_init(&cq->vcq.cq.mutex, NULL);
	pthread_cond_init(&cq->vcq.cq.cond, NULL);
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_free:
	pd_put_memory(parent, cq, ROANDV_RES_TYPE_CQ, lent);
	errno = err;
	return NULL;
}

struct ibv_cq *roan_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel, int vector)
{
	struct roan_cq *cq = create_cq(ctx, cqe, channel, vector, NULL, false);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *roan_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	/* IGNORE_OVERRUN is a promise of the program, that no completion comes while the CQ is full. Nothing depends on it. */
	const uint32_t known_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct ibv_pd *pd = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL;
	struct roan_cq *cq;

	if (attr->comp_mask & ~known || flags & ~known_flags || !roan_wc_flags_ok(attr->wc_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->cqe > INT32_MAX || (pd && !to_roan_pd(pd)->real)) {
		errno = EINVAL;
		return NULL;
	}
	cq = create_cq(ctx, attr->cqe, attr->channel, attr->comp_vector, pd,
		       flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	if (!cq)
		return NULL;
	roan_fill_poll_ops(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/*
 * Moderation is accepted without an effect: query_device_ex() announces none, but UCCL sets it on each extended CQ and
 * stops if that fails. An event then comes with the first completion, earlier than the program allowed.
 */
int roan_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	(void)cq;
	return attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE ? EOPNOTSUPP : 0;
}

/* The kernel moves the unpolled entries and the arm counters into a new ring, so polling and arming are locked out. */
int roan_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	ROAN_CMD(ib_uverbs_resize_cq) cmd = { 0 };
	ROAN_RESP(ib_uverbs_resize_cq_resp, roan_create_cq_resp) resp = { 0 };
	struct roan_cq *cq = to_roan_cq(ibcq);
	struct ring_space space;
	int err;

	_Static_assert(offsetof(typeof(resp), roan) == 8, "resize_cq response");
	if (cqe <= 0)
		return EINVAL;
	roan_lock(&cq->lock);
	roan_lock(&cq->arm_lock);
	err = ring_reserve(&space, &cq->ring, (uint32_t)cqe + 1);	/* the kernel makes more than requested */
	if (err)
		goto out_unlock;
	err = ibv_cmd_resize_cq(ibcq, cqe, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		ring_release(&space);
	else
		err = ring_replace(&cq->ring, ibcq->context->cmd_fd, &resp.roan.cq, &space);
out_unlock:
	roan_unlock(&cq->arm_lock);
	roan_unlock(&cq->lock);
	return err;
}

int roan_destroy_cq(struct ibv_cq *ibcq)
{
	struct roan_cq *cq = to_roan_cq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	if (err)
		return err;
	ring_unmap(&cq->ring);
	pd_put_memory(cq->pd, cq, ROANDV_RES_TYPE_CQ, cq->lent);
	return 0;
}

/* ---- shared receive queues ---- */

struct ibv_srq *roan_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	ROAN_CMD(ib_uverbs_create_srq) cmd = { 0 };
	ROAN_RESP(ib_uverbs_create_srq_resp, roan_create_srq_resp) resp = { 0 };
	struct roan_pd *parent = pd_get_parent(pd);
	struct ibv_srq *ibsrq;
	struct roan_srq *srq;
	bool lent;
	int err;

	_Static_assert(offsetof(typeof(resp), roan) == 16, "create_srq response");
	srq = pd_get_memory(parent, sizeof(*srq), ROANDV_RES_TYPE_SRQ, &lent);
	if (!srq)
		return NULL;
	srq->pd = parent;
	srq->lent = lent;
	ibsrq = &srq->vsrq.srq;
	err = ibv_cmd_create_srq(pd, ibsrq, attr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto err_free;
	err = wq_map(&srq->rq, pd->context, &resp.roan.rq, attr->attr.max_wr);
	if (!err && !srq->rq.ring.ctl)
		err = EPROTO;
	if (err)
		goto err_destroy;
	srq->rq.max_sge = attr->attr.max_sge;
	srq->vsrq.srq_type = IBV_SRQT_BASIC;
	srq->vsrq.srq_num = resp.roan.srq_num;
	roan_lock_init(&srq->rq.lock, is_lock_free(pd->context, srq->pd));
	return ibsrq;

err_destroy:
	ibv_cmd_destroy_srq(ibsrq);
err_free:
	pd_put_memory(parent, srq, ROANDV_RES_TYPE_SRQ, lent);
	errno = err;
	return NULL;
}

int roan_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	ROAN_CMD_REQ(ib_uverbs_modify_srq, roan_modify_srq_req) cmd = { 0 };
	struct roan_srq *srq = to_roan_srq(ibsrq);
	struct roan_modify_srq_resp resp = { 0 };
	bool resize = mask & IBV_SRQ_MAX_WR;
	struct ring_space space;
	int err = 0;

	_Static_assert(offsetof(typeof(cmd), roan) == 24, "modify_srq request");
	cmd.roan.resp_addr = (uintptr_t)&resp;
	cmd.roan.resp_size = sizeof(resp);
	roan_lock(&srq->rq.lock);	/* posting is locked out while the kernel moves the receives */
	if (resize)
		err = ring_reserve(&space, &srq->rq.ring, attr->max_wr);
	if (err)
		goto out_unlock;
	err = ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd));
	if (resize && (err || !resp.rq.mmap_size)) {
		ring_release(&space);
	} else if (resize) {
		err = ring_replace(&srq->rq.ring, ibsrq->context->cmd_fd, &resp.rq, &space);
		if (!err)
			wq_set_max_wr(&srq->rq, attr->max_wr);
	}
out_unlock:
	roan_unlock(&srq->rq.lock);
	return err;
}

int roan_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	ROAN_CMD(ib_uverbs_query_srq) cmd = { 0 };

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

int roan_destroy_srq(struct ibv_srq *ibsrq)
{
	struct roan_srq *srq = to_roan_srq(ibsrq);
	int err = ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	ring_unmap(&srq->rq.ring);
	pd_put_memory(srq->pd, srq, ROANDV_RES_TYPE_SRQ, srq->lent);
	return 0;
}

int roan_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	*num = to_roan_srq(srq)->vsrq.srq_num;
	return 0;
}

/* ---- queue pairs ---- */

/*
 * Marks the QP as one with ibv_wr_* calls. Releases 36..43, 44 and 45..56 of libibverbs share a symbol version, but the
 * mark follows a list of operations that grew: its place is found by calling the function that looks for it. At another
 * place the mark would be half of the pointer to an operation, which programs compare with NULL: librpma does. The
 * operations must not be set yet.
 */
static void qp_mark_extended(struct roan_qp *qp)
{
	const uint32_t mark = VERBS_QP_EX;
#if ROAN_PABI == 34 && __SIZEOF_POINTER__ == 8
	static const size_t places[] = { 360, 352, 344, 0 };
	const size_t *at;

	for (at = places; *at; at++) {
		memcpy(qp->pad + *at, &mark, sizeof(mark));
		if (ibv_qp_to_qp_ex(&qp->vqp.qp))
			return;
		memset(qp->pad + *at, 0, sizeof(mark));
	}
#endif
	qp->vqp.comp_mask |= mark;
}

static uint32_t qp_create_flags(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
}

static int qp_check_init(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
		return EINVAL;
	if (attr->comp_mask & ~known || qp_create_flags(attr) & ~IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && !roan_send_ops_ok(attr->qp_type, attr->send_ops_flags))
		return EOPNOTSUPP;
	return 0;
}

static int qp_map_rings(struct roan_qp *qp, struct ibv_context *ctx, const struct roan_create_qp_resp *resp)
{
	int err = ring_map(&qp->sq.ring, ctx, &resp->sq);

	if (err)
		return err;
	if (!qp->sq.ring.ctl)
		return EPROTO;
	if (resp->rq.mmap_size && resp->rq.mmap_offset == resp->sq.mmap_offset)
		err = ring_within(&qp->rq.ring, &qp->sq.ring, &resp->rq);
	else
		err = ring_map(&qp->rq.ring, ctx, &resp->rq);
	if (err)
		ring_unmap(&qp->sq.ring);
	return err;
}

static int qp_map_queues(struct roan_qp *qp, struct ibv_qp_init_attr_ex *attr, const struct roan_create_qp_resp *resp)
{
	struct ibv_context *ctx = attr->pd->context;
	const struct ibv_qp_cap *cap = &attr->cap;
	bool unlocked;
	int err;

	err = qp_map_rings(qp, ctx, resp);
	if (err)
		return err;
	wq_set_max_wr(&qp->sq, cap->max_send_wr);
	wq_set_max_wr(&qp->rq, cap->max_recv_wr);
	qp->sq.max_sge = cap->max_send_sge;
	qp->sq.max_inline = cap->max_inline_data;
	qp->rq.max_sge = cap->max_recv_sge;
	qp->sq.cqe_frees = to_roan_context(ctx)->qp_handles;
	qp->rq.cqe_frees = to_roan_context(ctx)->qp_handles;
	unlocked = is_lock_free(ctx, qp->pd);
	roan_lock_init(&qp->sq.lock, unlocked);
	roan_lock_init(&qp->rq.lock, unlocked);
	return 0;
}

/*
 * ROAN_CC, for programs that do not use roandv.h. If the algorithm does not support this QP type, or the administrator
 * leaves programs no choice, the device's setting stays.
 */
static int qp_set_cc(struct ibv_qp *qp)
{
	const char *algo = getenv("ROAN_CC");
	int err = algo ? roandv_set_cc(qp, algo) : 0;

	return err == EOPNOTSUPP || err == EPERM ? 0 : err;
}

struct ibv_qp *roan_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	ROAN_CMD_REQ(ib_uverbs_create_qp, roan_create_qp_req) cmd = { 0 };
	ROAN_RESP(ib_uverbs_create_qp_resp, roan_create_qp_resp) resp = { 0 };
	size_t cmd_size = offsetof(typeof(cmd), roan);
	const uint32_t given = attr->comp_mask;
	struct roan_pd *parent;
	struct roan_qp *qp;
	bool lent;
	int err;

	_Static_assert(offsetof(typeof(cmd), roan) == 64, "create_qp request");
	_Static_assert(offsetof(typeof(resp), roan) == 32, "create_qp response");
	errno = qp_check_init(attr);
	if (errno)
		return NULL;
	parent = pd_get_parent(attr->pd);
	qp = pd_get_memory(parent, sizeof(*qp), ROANDV_RES_TYPE_QP, &lent);
	if (!qp)
		return NULL;
	qp->pd = parent;
	qp->lent = lent;
	if (to_roan_context(ctx)->qp_handles) {
		cmd.roan.qp_handle = (uintptr_t)qp;
		cmd_size = sizeof(cmd);
	}
	if (qp_create_flags(attr)) {
		cmd.roan.flags = ROAN_QP_BLOCK_SELF_MCAST;
		cmd_size = sizeof(cmd);
	}
	attr->comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;	/* libibverbs' function does not take them */
	err = ibv_cmd_create_qp_ex(ctx, &qp->vqp, attr, &cmd, cmd_size, &resp, sizeof(resp));
	attr->comp_mask = given;
	if (err)
		goto err_free;
	err = qp_set_cc(&qp->vqp.qp) ?: qp_map_queues(qp, attr, &resp.roan);
	if (err)
		goto err_destroy;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp_mark_extended(qp);
		roan_fill_wr_ops(&qp->vqp.qp_ex, attr->send_ops_flags);
	}
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	pd_put_memory(parent, qp, ROANDV_RES_TYPE_QP, lent);
	errno = err;
	return NULL;
}

struct ibv_qp *roan_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = roan_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

static void cq_forget_qp(struct ibv_qp *qp, uint32_t qpn)
{
	roan_cq_forget(qp->send_cq, qpn);
	if (qp->recv_cq != qp->send_cq)
		roan_cq_forget(qp->recv_cq, qpn);
}

/* After a reset no request is outstanding, and no CQE is left to be polled: all slots may be written. */
static void wq_forget_cqes(struct roan_wq *wq)
{
	if (!wq->ring.ctl)
		return;
	roan_lock(&wq->lock);
	wq->free_until = ring_head(&wq->ring);
	ring_set_polled(&wq->polled, __atomic_load_n(&wq->ring.ctl->kernel.cqe_until, __ATOMIC_RELAXED));
	roan_unlock(&wq->lock);
}

/* The command for all attributes. The older one ends before the rate limit, and libibverbs refuses it there. */
static int modify_qp_ex(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_modify_qp core;
	} cmd = { 0 };
	struct ib_uverbs_ex_modify_qp_resp resp = { 0 };

	return ibv_cmd_modify_qp_ex(qp, attr, mask, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

int roan_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	ROAN_CMD(ib_uverbs_modify_qp) cmd = { 0 };
	struct roan_qp *qp = to_roan_qp(ibqp);
	int err = mask & IBV_QP_RATE_LIMIT ? modify_qp_ex(ibqp, attr, mask) :
		  ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));

	if (err || !(mask & IBV_QP_STATE))
		return err;
	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_RESET) {
		cq_forget_qp(ibqp, ibqp->qp_num);
		wq_forget_cqes(&qp->sq);
		wq_forget_cqes(&qp->rq);
	}
	return 0;
}

/* rate_limit in kbit/s, 0: no limit. Burst size and packet size cannot be set. */
int roan_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *limit)
{
	struct ibv_qp_attr attr = { .rate_limit = limit->rate_limit };

	if (limit->comp_mask || limit->max_burst_sz || limit->typical_pkt_sz)
		return EOPNOTSUPP;
	return modify_qp_ex(qp, &attr, IBV_QP_RATE_LIMIT);
}

int roan_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	ROAN_CMD(ib_uverbs_query_qp) cmd = { 0 };

	return ibv_cmd_query_qp(qp, attr, mask, init, &cmd, sizeof(cmd));
}

int roan_destroy_qp(struct ibv_qp *ibqp)
{
	struct roan_qp *qp = to_roan_qp(ibqp);
	int err = ibv_cmd_destroy_qp(ibqp);

	if (err)
		return err;
	cq_forget_qp(ibqp, ibqp->qp_num);
	ring_unmap(&qp->sq.ring);
	ring_unmap(&qp->rq.ring);
	pd_put_memory(qp->pd, qp, ROANDV_RES_TYPE_QP, qp->lent);
	return 0;
}
