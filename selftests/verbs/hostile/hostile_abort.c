// SPDX-License-Identifier: GPL-2.0
/*
 * Creations that the RDMA core undoes, because it cannot copy its own response: it then calls the driver's destroy
 * verb with the driver data of the creation, which the driver's response has overwritten meanwhile. The destroy must
 * succeed, or the core warns and keeps the object.
 */
#include "hostile.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROOM		64	/* driver data, and room for the driver's response */

/*
 * Writes a command. Its request ends at the end of a read-only page, in which the core's response would lie. The driver
 * data is at the beginning of the next page, and so is the driver's response. Returns the errno.
 */
static int call_undone(int fd, uint32_t command, void *core, size_t len, size_t core_resp)
{
	size_t page = sysconf(_SC_PAGESIZE), total = sizeof(struct ib_uverbs_cmd_hdr) + len + ROOM;
	uint8_t *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ib_uverbs_cmd_hdr *hdr = (void *)(mem + page - len - sizeof(*hdr));
	uint64_t resp = (uintptr_t)mem + page - core_resp;
	int err;

	if (mem == MAP_FAILED)
		vt_die("mmap: %s", strerror(errno));
	*hdr = (struct ib_uverbs_cmd_hdr) { command, total / 4, (core_resp + ROOM) / 4 };
	memcpy(hdr + 1, core, len);
	memcpy(hdr + 1, &resp, sizeof(resp));
	mprotect(mem, page, PROT_READ);
	err = write(fd, hdr, total) == (ssize_t)total ? 0 : errno;
	munmap(mem, 2 * page);
	return err;
}

void undone_creations(struct vt_dev *d)
{
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 16, NULL, NULL, 0);
	struct ib_uverbs_create_qp qp = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_RC,
	};
	struct ib_uverbs_create_srq srq = { .max_wr = 4, .max_sge = 1 };
	struct ib_uverbs_create_cq own_cq = { .cqe = 15, .comp_channel = -1 };
	int fd = d->ctx->cmd_fd;

	if (!pd || !cq)
		vt_die("a PD and a CQ: %s", strerror(errno));
	qp.pd_handle = srq.pd_handle = pd->handle;
	qp.send_cq_handle = qp.recv_cq_handle = cq->handle;
	vt_ok(call_undone(fd, IB_USER_VERBS_CMD_CREATE_CQ, &own_cq, sizeof(own_cq),
			  sizeof(struct ib_uverbs_create_cq_resp)) == EFAULT, "undone: a CQ");
	vt_ok(call_undone(fd, IB_USER_VERBS_CMD_CREATE_QP, &qp, sizeof(qp),
			  sizeof(struct ib_uverbs_create_qp_resp)) == EFAULT, "undone: a QP");
	vt_ok(call_undone(fd, IB_USER_VERBS_CMD_CREATE_SRQ, &srq, sizeof(srq),
			  sizeof(struct ib_uverbs_create_srq_resp)) == EFAULT, "undone: an SRQ");
	vt_ok(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd), "undone: nothing uses their PD and CQ");
}
