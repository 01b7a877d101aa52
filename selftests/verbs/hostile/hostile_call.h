/* SPDX-License-Identifier: GPL-2.0 */
/* System calls on a uverbs file of the test's own. Each returns the errno, or 0. */
#ifndef HOSTILE_CALL_H
#define HOSTILE_CALL_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "hostile.h"

extern const uint64_t zeros[3], unknown[3];	/* unknown: the last bit is set, of 16 and of 24 bytes */

/* A command of the write() interface: header, core request, driver data. */
struct call {
	uint32_t command;
	const void *core;
	size_t core_len;
	void *resp;		/* the core's response, followed by the driver's */
	size_t resp_len;
	const void *udata;
	size_t udata_len;
};

struct raw_context {
	struct ib_uverbs_get_context_resp core;
	struct roan_alloc_ucontext_resp roan;
};

struct raw_cq {
	struct ib_uverbs_create_cq_resp core;
	struct roan_create_cq_resp roan;
};

struct raw_qp {
	struct ib_uverbs_create_qp_resp core;
	struct roan_create_qp_resp roan;
};

int do_call(int fd, const struct call *c);
bool is(int got, int want, const char *what);	/* prints both if they differ */
int open_raw(struct vt_dev *d);			/* the file; without a context */
int raw_context(int fd, const void *udata, size_t len, struct raw_context *resp, size_t resp_len);
/* On a new file. Without @fd_out the file is closed. */
int context_with(struct vt_dev *d, const void *udata, size_t len, int *fd_out);
int raw_pd(int fd, const void *udata, size_t len, uint32_t *handle);
int raw_cq(int fd, const void *udata, size_t len, struct raw_cq *resp, size_t resp_len);
int raw_qp(int fd, uint32_t pd, uint32_t cq, const void *udata, size_t len, struct raw_qp *resp, size_t driver_room);
int raw_srq(int fd, uint32_t pd, const void *udata, size_t len, uint32_t *handle);
int raw_mr(int fd, uint32_t pd, const void *udata, size_t len, uint32_t *handle);
int destroy_qp(int fd, uint32_t handle);

#endif
