/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Functions of roan devices beyond the verbs, for programs. There is no library to link: each function is one ioctl and
 * works with any release of libroan. On a queue pair of another driver it returns an error of the RDMA core.
 */
#ifndef ROANDV_H
#define ROANDV_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/roan-abi.h>

/*
 * The resource types that the allocators of a parent domain get (ibv_alloc_parent_domain(3)): memory of libroan's own
 * for these objects. The rings are memory of the kernel.
 */
#define ROANDV_RES_TYPE_QP	((uint64_t)ROAN_DRIVER_ID << 32 | 1)
#define ROANDV_RES_TYPE_CQ	((uint64_t)ROAN_DRIVER_ID << 32 | 2)
#define ROANDV_RES_TYPE_SRQ	((uint64_t)ROAN_DRIVER_ID << 32 | 3)

/*
 * Sets the congestion control of one queue pair, in any state, from the next packet on. @algo: "none", "fixed",
 * "dcqcn", "dcqcn-mlx", "swift", or "device" for the device's setting. Returns 0, EINVAL (unknown algorithm),
 * EOPNOTSUPP (not available for this type of queue pair) or EPERM (the administrator has chosen), or another errno of
 * the ioctl.
 */
static inline int roandv_set_cc(struct ibv_qp *qp, const char *algo)
{
	struct roan_qp_cc req = { .algo = "" };
	union {
		struct ib_uverbs_ioctl_hdr hdr;
		uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + 2 * sizeof(struct ib_uverbs_attr)];
	} call = { .room = { 0 } };

	if (strlen(algo) >= sizeof(req.algo))
		return EINVAL;
	memcpy(req.algo, algo, strlen(algo));
	call.hdr.length = sizeof(call);
	call.hdr.object_id = UVERBS_OBJECT_QP;
	call.hdr.method_id = ROAN_METHOD_QP_CC;
	call.hdr.num_attrs = 2;
	call.hdr.driver_id = ROAN_DRIVER_ID;
	call.hdr.attrs[0].attr_id = ROAN_ATTR_QP_CC_HANDLE;
	call.hdr.attrs[0].flags = UVERBS_ATTR_F_MANDATORY;
	call.hdr.attrs[0].data = qp->handle;
	call.hdr.attrs[1].attr_id = ROAN_ATTR_QP_CC_REQ;
	call.hdr.attrs[1].flags = UVERBS_ATTR_F_MANDATORY;
	call.hdr.attrs[1].len = sizeof(req);
	call.hdr.attrs[1].data = (uintptr_t)&req;
	return ioctl(qp->context->cmd_fd, RDMA_VERBS_IOCTL, &call.hdr) ? errno : 0;
}

#endif /* ROANDV_H */
