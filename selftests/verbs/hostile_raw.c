// SPDX-License-Identifier: GPL-2.0
/*
 * System calls as no provider makes them, on a uverbs file of our own: driver data with bits that nobody knows, answers
 * that do not fit, mappings that are not ours, doorbells for things that are no QP. Each has one errno.
 */
#define _GNU_SOURCE
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* A command of the write() interface: header, core request, driver data. */
struct call {
	uint32_t command;
	const void *core;
	size_t core_len;
	void *resp;		/* core answer and the driver's behind it */
	size_t resp_len;
	const void *udata;
	size_t udata_len;
};

/* errno; the first field of every core request is the address of the answer. */
static int do_call(int fd, const struct call *c)
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

static bool is(int got, int want, const char *what)
{
	if (got != want)
		printf("# %s: %s, expected %s\n", what, strerror(got), strerror(want));
	return got == want;
}

static int open_raw(struct vt_dev *d)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", d->ctx->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		vt_die("%s: %s", path, strerror(errno));
	return fd;
}

static const uint64_t zeros[2], unknown[2] = { 0, 1ull << 63 };

/* A context of its own, with this driver data. */
static int context_with(struct vt_dev *d, const void *udata, size_t len, int *fd_out)
{
	struct {
		struct ib_uverbs_get_context_resp core;
		struct roan_alloc_ucontext_resp roan;
	} resp;
	struct ib_uverbs_get_context core = { 0 };
	int fd = open_raw(d);
	int err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_GET_CONTEXT, &core, sizeof(core), &resp, sizeof(resp),
					       udata, len });

	if (!err)
		close(resp.core.async_fd);
	if (fd_out)
		*fd_out = fd;
	else
		close(fd);
	return err;
}

static void contexts(struct vt_dev *d)
{
	vt_ok(is(context_with(d, unknown, 4, NULL), EINVAL, "cut"), "context: driver data cut short");
	vt_ok(is(context_with(d, unknown, 16, NULL), EINVAL, "long"), "context: unknown driver data behind ours");
	vt_ok(is(context_with(d, zeros, 16, NULL), 0, "zeros"), "context: zeros behind ours are fine");
}

struct raw_cq {
	struct ib_uverbs_create_cq_resp core;
	struct roan_create_cq_resp roan;
};

static int raw_cq(int fd, const void *udata, size_t len, struct raw_cq *resp, size_t resp_len)
{
	struct ib_uverbs_create_cq core = { .cqe = 15, .comp_channel = -1 };

	memset(resp, 0, sizeof(*resp));
	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_CREATE_CQ, &core, sizeof(core), resp,
						resp_len, udata, len });
}

static int raw_pd(int fd, const void *udata, size_t len, uint32_t *handle)
{
	struct ib_uverbs_alloc_pd core = { 0 };
	struct ib_uverbs_alloc_pd_resp resp;
	int err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_ALLOC_PD, &core, sizeof(core), &resp, sizeof(resp),
					       udata, len });

	*handle = resp.pd_handle;
	return err;
}

static int raw_qp(int fd, uint32_t pd, uint32_t cq, const void *udata, size_t len, uint32_t *handle, size_t driver_room)
{
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct roan_create_qp_resp roan;
	} resp;
	struct ib_uverbs_create_qp core = {
		.pd_handle = pd, .send_cq_handle = cq, .recv_cq_handle = cq, .max_send_wr = 4, .max_recv_wr = 4,
		.max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_RC,
	};
	int err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_CREATE_QP, &core, sizeof(core), &resp,
					       sizeof(resp.core) + driver_room, udata, len });

	*handle = resp.core.qp_handle;
	return err;
}

static int raw_srq(int fd, uint32_t pd, const void *udata, size_t len)
{
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct roan_create_srq_resp roan;
	} resp;
	struct ib_uverbs_create_srq core = { .pd_handle = pd, .max_wr = 4, .max_sge = 1 };

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_CREATE_SRQ, &core, sizeof(core), &resp, sizeof(resp),
					    udata, len });
}

static int raw_mr(int fd, uint32_t pd, const void *udata, size_t len)
{
	static uint8_t mem[64];
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_reg_mr core = {
		.pd_handle = pd, .start = (uintptr_t)mem, .hca_va = (uintptr_t)mem, .length = sizeof(mem),
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_REG_MR, &core, sizeof(core), &resp,
						sizeof(resp), udata, len });
}

static int raw_mw(int fd, uint32_t pd, const void *udata, size_t len)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ib_uverbs_alloc_mw core = { .pd_handle = pd, .mw_type = IBV_MW_TYPE_1 };

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_ALLOC_MW, &core, sizeof(core), &resp,
						sizeof(resp), udata, len });
}

static int destroy_qp(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_qp_resp resp;
	struct ib_uverbs_destroy_qp core = { .qp_handle = handle };

	return do_call(fd, &(struct call) { IB_USER_VERBS_CMD_DESTROY_QP, &core, sizeof(core), &resp,
						sizeof(resp), NULL, 0 });
}

static void driver_data(int fd, uint32_t pd, uint32_t cq)
{
	struct raw_cq scratch;
	uint32_t handle;

	vt_ok(is(raw_pd(fd, unknown, 16, &handle), EINVAL, "PD"), "alloc_pd: unknown driver data");
	vt_ok(is(raw_cq(fd, unknown, 16, &scratch, sizeof(scratch)), EINVAL, "CQ"), "create_cq: unknown driver data");
	vt_ok(is(raw_qp(fd, pd, cq, unknown, 16, &handle, sizeof(struct roan_create_qp_resp)), EINVAL, "QP"),
	      "create_qp: unknown driver data");
	vt_ok(is(raw_srq(fd, pd, unknown, 16), EINVAL, "SRQ"), "create_srq: unknown driver data");
	vt_ok(is(raw_mr(fd, pd, unknown, 16), EINVAL, "MR"), "reg_mr: unknown driver data");
	vt_ok(is(raw_mw(fd, pd, unknown, 16), EINVAL, "MW"), "alloc_mw: unknown driver data");
	vt_ok(is(raw_cq(fd, zeros, 16, &scratch, sizeof(scratch)), 0, "CQ"), "create_cq: zeros are fine");
	vt_ok(is(raw_mr(fd, pd, zeros, 16), 0, "MR"), "reg_mr: zeros are fine");
	vt_ok(is(raw_cq(fd, NULL, 0, &scratch, sizeof(scratch.core) + 8), ENOSPC, "CQ"),
	      "create_cq: no room for the answer");
	vt_ok(is(raw_qp(fd, pd, cq, NULL, 0, &handle, 8), ENOSPC, "QP"), "create_qp: no room for the answer");
}

static int map_errno(int fd, size_t len, int flags, uint64_t offset)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, offset);

	if (at == MAP_FAILED)
		return errno;
	munmap(at, len);
	return 0;
}

static void mappings(struct vt_dev *d, int fd, const struct raw_cq *cq)
{
	const struct roan_ring_desc *desc = &cq->roan.cq;
	struct ib_uverbs_destroy_cq core = { .cq_handle = cq->core.cq_handle };
	struct ib_uverbs_destroy_cq_resp resp;
	size_t len = desc->mmap_size;
	struct roan_ring_ctl *ctl;
	int other, err;

	vt_ok(is(map_errno(fd, len, MAP_PRIVATE, desc->mmap_offset), EINVAL, "private"), "mmap: a private mapping");
	vt_ok(is(map_errno(fd, len + 4096, MAP_SHARED, desc->mmap_offset), EINVAL, "longer"),
	      "mmap: longer than the ring");
	vt_ok(is(map_errno(fd, len, MAP_SHARED, desc->mmap_offset + (1ull << 40)), EINVAL, "elsewhere"),
	      "mmap: where nothing is");
	vt_ok(map_errno(fd, len, MAP_SHARED, 0x7ffffffff000ull) == EINVAL, "mmap: far beyond every ring");
	if (context_with(d, zeros, 8, &other))
		vt_die("second context");
	vt_ok(is(map_errno(other, len, MAP_SHARED, desc->mmap_offset), EINVAL, "other"),
	      "mmap: another context's ring");
	close(other);

	ctl = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, desc->mmap_offset);
	vt_ok(ctl != MAP_FAILED, "mmap: as described");
	if (ctl == MAP_FAILED)
		return;
	err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_DESTROY_CQ, &core, sizeof(core), &resp,
						sizeof(resp), NULL, 0 });
	memset(ctl, 0x77, len);
	vt_ok(is(err, 0, "destroy_cq") && is(map_errno(fd, len, MAP_SHARED, desc->mmap_offset), EINVAL, "again"),
	      "a ring outlives its queue where it is mapped, and cannot be mapped again");
	munmap(ctl, len);
}

static int bell(int fd, uint16_t nr_attrs, uint16_t attr_id, uint64_t handle, uint32_t driver)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[2];
	} call = {
		.hdr = { .object_id = UVERBS_OBJECT_QP, .method_id = ROAN_METHOD_QP_DOORBELL, .num_attrs = nr_attrs,
			 .driver_id = driver },
		.attr = { { .attr_id = ROAN_ATTR_QP_DOORBELL_HANDLES, .len = 4, .flags = UVERBS_ATTR_F_MANDATORY,
			    .data = handle },
			  { .attr_id = attr_id, .len = 8, .flags = UVERBS_ATTR_F_MANDATORY } },
	};

	call.hdr.length = sizeof(call.hdr) + nr_attrs * sizeof(call.attr[0]);
	return ioctl(fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

/* Many handles in one call; @len is what the call says of them. */
static int bell_many(int fd, const uint32_t *handles, uint16_t len)
{
	return doorbell_as(fd, len, (uintptr_t)handles);
}

static void many_bells(int fd, uint32_t qp)
{
	uint32_t handles[ROAN_MAX_BELLS + 1];
	int i;

	for (i = 0; i <= ROAN_MAX_BELLS; i++)
		handles[i] = qp;
	vt_ok(is(bell_many(fd, handles, 4 * ROAN_MAX_BELLS), 0, "most"), "doorbell: as many as may be, all the same QP");
	vt_ok(bell_many(fd, handles, 4 * (ROAN_MAX_BELLS + 1)), "doorbell: one more");
	vt_ok(bell_many(fd, handles, 4 * 3 + 1), "doorbell: a part of a handle");
	vt_ok(bell_many(fd, handles, 0), "doorbell: none of them");
	vt_ok(is(bell_many(fd, (const uint32_t *)64, 4 * 3), EFAULT, "nowhere"), "doorbell: handles that are nowhere");
	handles[2] = 0x12345678;
	vt_ok(is(bell_many(fd, handles, 4 * 3), ENOENT, "one of them"), "doorbell: one of them does not exist");
}

static void bells(int fd, uint32_t pd, uint32_t cq)
{
	uint32_t qp;

	if (raw_qp(fd, pd, cq, NULL, 0, &qp, sizeof(struct roan_create_qp_resp)))
		vt_die("create_qp");
	vt_ok(is(bell(fd, 1, 0, qp, ROAN_DRIVER_ID), 0, "reset"), "doorbell: a QP in RESET has nothing to do");
	vt_ok(is(bell(fd, 1, 0, 0x12345678, ROAN_DRIVER_ID), ENOENT, "none"), "doorbell: no such handle");
	vt_ok(bell(fd, 1, 0, cq, ROAN_DRIVER_ID), "doorbell: a CQ's handle is refused");
	vt_ok(is(bell(fd, 0, 0, 0, ROAN_DRIVER_ID), EINVAL, "absent"), "doorbell: no handle");
	vt_ok(is(bell(fd, 2, 0x1001, qp, ROAN_DRIVER_ID), EPROTONOSUPPORT, "unknown"), "doorbell: unknown attribute");
	vt_ok(bell(fd, 1, 0, qp, ROAN_DRIVER_ID + 1), "doorbell: another driver's");
	many_bells(fd, qp);
	vt_ok(is(destroy_qp(fd, qp), 0, "destroy"), "the QP goes away");
	vt_ok(is(bell(fd, 1, 0, qp, ROAN_DRIVER_ID), ENOENT, "gone"), "doorbell: a QP that is gone");
}

void raw_cases(struct vt_dev *d)
{
	struct raw_cq cq, map_cq;
	uint32_t pd;
	int fd;

	contexts(d);
	if (context_with(d, zeros, 8, &fd) || raw_pd(fd, NULL, 0, &pd) || raw_cq(fd, NULL, 0, &cq, sizeof(cq)) ||
	    raw_cq(fd, NULL, 0, &map_cq, sizeof(map_cq)))
		vt_die("a context made by hand: %s", strerror(errno));
	driver_data(fd, pd, cq.core.cq_handle);
	mappings(d, fd, &map_cq);
	bells(fd, pd, cq.core.cq_handle);
	close(fd);	/* with objects alive: the kernel cleans up */
}
