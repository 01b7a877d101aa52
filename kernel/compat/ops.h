/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adapters for members of struct ib_device_ops whose type differs between kernels. verbs/device.c includes this last
 * and uses, inside its table:
 *   ROAN_CQ_OPS		sets create_cq and resize_cq, and their successors for user CQs
 *   .reg_user_mr = ROAN_REG_USER_MR
 *   .reg_user_mr_dmabuf = roan_compat_reg_dmabuf
 * The roan_*() functions have the types of Linux 6.12.
 */
#ifndef ROAN_COMPAT_OPS_H
#define ROAN_COMPAT_OPS_H

#ifdef HAVE_RESIZE_USER_CQ
static inline int roan_compat_resize_cq(struct ib_cq *cq, unsigned int cqe, struct ib_udata *udata)
{
	return cqe > INT_MAX ? -EINVAL : roan_resize_cq(cq, cqe, udata);
}

#define ROAN_RESIZE_CQ_OP	.resize_user_cq = roan_compat_resize_cq
#else
#define ROAN_RESIZE_CQ_OP	.resize_cq = roan_resize_cq
#endif

#if defined(HAVE_CREATE_USER_CQ)
#define ROAN_CQ_OPS	.create_cq = roan_create_cq, .create_user_cq = roan_create_cq, ROAN_RESIZE_CQ_OP
#elif defined(HAVE_CREATE_CQ_ATTRS)
#define ROAN_CQ_OPS	.create_cq = roan_create_cq, ROAN_RESIZE_CQ_OP
#else
/* Older cores pass only the udata, but it is a member of a bundle: rdma_udata_to_drv_context() relies on that, too. */
static inline int roan_compat_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	return roan_create_cq(cq, attr, udata ? container_of(udata, struct uverbs_attr_bundle, driver_udata) : NULL);
}

#define ROAN_CQ_OPS	.create_cq = roan_compat_create_cq, ROAN_RESIZE_CQ_OP
#endif

#ifdef HAVE_REG_MR_DMAH
static inline struct ib_mr *roan_compat_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
						    struct ib_dmah *dmah, struct ib_udata *udata)
{
	return roan_reg_user_mr(pd, start, length, iova, access, udata);	/* @dmah: verbs/dmah.c */
}

#define ROAN_REG_USER_MR	roan_compat_reg_user_mr
#else
#define ROAN_REG_USER_MR	roan_reg_user_mr
#endif

#if defined(HAVE_REG_MR_DMAH)
static inline struct ib_mr *roan_compat_reg_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd,
						   int access, struct ib_dmah *dmah, struct uverbs_attr_bundle *attrs)
{
	return roan_reg_user_mr_dmabuf(pd, offset, length, iova, fd, access);
}
#elif defined(HAVE_REG_DMABUF_ATTRS)
static inline struct ib_mr *roan_compat_reg_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd,
						   int access, struct uverbs_attr_bundle *attrs)
{
	return roan_reg_user_mr_dmabuf(pd, offset, length, iova, fd, access);
}
#else
static inline struct ib_mr *roan_compat_reg_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd,
						   int access, struct ib_udata *udata)
{
	return roan_reg_user_mr_dmabuf(pd, offset, length, iova, fd, access);
}
#endif

#endif /* ROAN_COMPAT_OPS_H */
