// SPDX-License-Identifier: GPL-2.0
/* System calls on a uverbs file of the test's own, with core request and driver data as given. */
#define _GNU_SOURCE
#include "hostile_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const uint64_t zeros[3], unknown[3] = { 0, 1ull << 63, 1ull << 63 };

/* Returns the errno. The first field of each core request is the address of the response. */
int do_call(int fd, const struct call *c)
{
	uint64_t room[64] = { 0 };
	uint8_t *buf = (void *)room;
	struct ib_uverbs_cmd_hdr *hdr = (void *)buf;
	size_t len = sizeof(*hdr) + c->core_len + c->udata_len;
	uint64_t resp = (uintptr_t)c->resp;

	hdr->command = c->command;
	hdr->in_words = len / 4;
	hdr->out_words = c->resp_len / 4;
	memcpy(buf + sizeof(*hdr), c->core, c->core_len);
	if (c->resp)
		memcpy(buf + sizeof(*hdr), &resp, sizeof(resp));
	memcpy(buf + sizeof(*hdr) + c->core_len, c->udata, c->udata_len);
	return write(fd, buf, len) == (ssize_t)len ? 0 : errno;
}

bool is(int got, int want, const char *what)
{
	if (got != want)
		printf("# %s: %s, expected %s\n", what, strerror(got), strerror(want));
	return got == want;
}

int open_raw(struct vt_dev *d)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", d->ctx->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		vt_die("%s: %s", path, strerror(errno));
	return fd;
}

int raw_context(int fd, const void *udata, size_t len, struct raw_context *resp, size_t resp_len)
{
	struct ib_uverbs_get_context core = { 0 };
	int err;

	memset(resp, 0xee, sizeof(*resp));
	err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_GET_CONTEXT, &core, sizeof(core), resp, resp_len, udata, len });
	if (!err)
		close(resp->core.async_fd);
	return err;
}

/* Creates a context with this driver data. */
int context_with(struct vt_dev *d, const void *udata, size_t len, int *fd_out)
{
	struct raw_context resp;
	int fd = open_raw(d);
	int err = raw_context(fd, udata, len, &resp, sizeof(resp));

	if (fd_out)
		*fd_out = fd;
	else
		close(fd);
	return err;
}

int raw_cq(int fd, const void *udata, size_t len, struct raw_cq *resp, size_t resp_len)
{
	struct ib_uverbs_create_cq core = { .cqe = 15, .comp_channel = -1 };

	memset(resp, 0, sizeof(*resp));
	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_CREATE_CQ, &core, sizeof(core), resp,
						resp_len, udata, len });
}

int raw_pd(int fd, const void *udata, size_t len, uint32_t *handle)
{
	struct ib_uverbs_alloc_pd core = { 0 };
	struct ib_uverbs_alloc_pd_resp resp;
	int err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_ALLOC_PD, &core, sizeof(core), &resp, sizeof(resp),
					       udata, len });

	*handle = resp.pd_handle;
	return err;
}

int raw_qp(int fd, uint32_t pd, uint32_t cq, const void *udata, size_t len, struct raw_qp *resp, size_t driver_room)
{
	struct ib_uverbs_create_qp core = {
		.pd_handle = pd, .send_cq_handle = cq, .recv_cq_handle = cq, .max_send_wr = 4, .max_recv_wr = 4,
		.max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_RC,
	};

	memset(resp, 0, sizeof(*resp));
	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_CREATE_QP, &core, sizeof(core), resp,
						sizeof(resp->core) + driver_room, udata, len });
}

int raw_srq(int fd, uint32_t pd, const void *udata, size_t len, uint32_t *handle)
{
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct roan_create_srq_resp roan;
	} resp;
	struct ib_uverbs_create_srq core = { .pd_handle = pd, .max_wr = 4, .max_sge = 1 };
	int err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_CREATE_SRQ, &core, sizeof(core), &resp, sizeof(resp),
					       udata, len });

	*handle = resp.core.srq_handle;
	return err;
}

int raw_mr(int fd, uint32_t pd, const void *udata, size_t len, uint32_t *handle)
{
	static uint8_t mem[64];
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_reg_mr core = {
		.pd_handle = pd, .start = (uintptr_t)mem, .hca_va = (uintptr_t)mem, .length = sizeof(mem),
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	int err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_REG_MR, &core, sizeof(core), &resp, sizeof(resp),
					       udata, len });

	*handle = resp.mr_handle;
	return err;
}

int destroy_qp(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_qp_resp resp;
	struct ib_uverbs_destroy_qp core = { .qp_handle = handle };

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_DESTROY_QP, &core, sizeof(core), &resp,
						sizeof(resp), NULL, 0 });
}
