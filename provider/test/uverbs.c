// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See uverbs.h. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "uverbs.h"

uint8_t *rings[24];
int mapped;
unsigned int num_rings;
unsigned int doorbells, rung_for;
bool one_mapping;
bool no_space, no_space_after_resize;
unsigned int resizes;
uint64_t features_in_effect;
bool removed;
bool dm_mappable;

static struct roan_ring_desc new_ring(uint32_t slot_size)
{
	num_rings++;
	return (struct roan_ring_desc) {
		.mmap_offset = num_rings * RING_SIZE,
		.mmap_size = RING_SIZE,
		.slots_offset = sizeof(struct roan_ring_ctl),
		.slot_size = slot_size,
		.slot_count = SLOTS,
	};
}

static struct roan_create_qp_resp new_queues(void)
{
	struct roan_create_qp_resp resp = { .sq = new_ring(128) };

	if (!one_mapping) {
		resp.rq = new_ring(48);
	} else {
		resp.rq = resp.sq;
		resp.rq.slot_size = 48;
		resp.rq.slots_offset = SECOND_RING + sizeof(struct roan_ring_ctl);
	}
	return resp;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *map;

	if (no_space && !(flags & MAP_FIXED)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (!(flags & MAP_SHARED) || off < RING_SIZE || off > num_rings * RING_SIZE)
		return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
	map = (void *)syscall(SYS_mmap, addr, len, prot, flags | MAP_ANONYMOUS, -1, 0);
	rings[off / RING_SIZE] = map;
	mapped++;
	return map;
}

int munmap(void *addr, size_t len)
{
	unsigned int i;

	for (i = 1; i <= num_rings; i++)
		if (rings[i] == addr) {
			rings[i] = NULL;
			mapped--;
		}
	return syscall(SYS_munmap, addr, len);
}

/* The only legacy command here is the resize of a CQ. */
static void resize(struct roan_create_cq_resp *out)
{
	*out = (struct roan_create_cq_resp) { new_ring(64) };
	out->cq.mmap_size = 4096;
	out->cq.slot_count = 2 * SLOTS;
	resizes++;
	no_space = no_space_after_resize;
}

static void fill_response(const struct ib_uverbs_ioctl_hdr *hdr, void *out)
{
	if (hdr->object_id == UVERBS_OBJECT_DM && hdr->method_id == ROAN_METHOD_DM_MAP)
		*(struct roan_dm_desc *)out = (struct roan_dm_desc) {
			dm_mappable ? new_ring(0).mmap_offset : ROAN_DM_UNMAPPED, 4096,
		};
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_INVOKE_WRITE)
		resize(out);
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_GET_CONTEXT)
		*(struct roan_alloc_ucontext_resp *)out = (struct roan_alloc_ucontext_resp) {
			.db_hints = new_ring(sizeof(struct roan_db_hint)),
		};
	if (hdr->object_id == UVERBS_OBJECT_CQ && hdr->method_id == UVERBS_METHOD_CQ_CREATE)
		*(struct roan_create_cq_resp *)out = (struct roan_create_cq_resp) { new_ring(64) };
	if (hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == UVERBS_METHOD_QP_CREATE)
		*(struct roan_create_qp_resp *)out = new_queues();
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *hdr;
	va_list args;
	int i;

	va_start(args, request);
	hdr = va_arg(args, void *);
	va_end(args);
	if (request != RDMA_VERBS_IOCTL)
		return syscall(SYS_ioctl, fd, request, hdr);
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == 0 && hdr->num_attrs == 1) {
		errno = ENOSPC;		/* libibverbs probes for ioctl support: ENOSPC means yes */
		return -1;
	}
	if (hdr->driver_id != ROAN_DRIVER_ID) {
		errno = EINVAL;
		return -1;
	}
	if (removed && hdr->object_id != UVERBS_OBJECT_DEVICE) {
		errno = EIO;
		return -1;
	}
	if (hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == ROAN_METHOD_QP_DOORBELL) {
		doorbells++;
		rung_for += hdr->num_attrs;
	}
	for (i = 0; i < hdr->num_attrs; i++)	/* destroy responses: 0 events reported */
		if ((hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == UVERBS_METHOD_QP_DESTROY &&
		     hdr->attrs[i].attr_id == UVERBS_ATTR_DESTROY_QP_RESP) ||
		    (hdr->object_id == UVERBS_OBJECT_CQ && hdr->method_id == UVERBS_METHOD_CQ_DESTROY &&
		     hdr->attrs[i].attr_id == UVERBS_ATTR_DESTROY_CQ_RESP))
			memset((void *)(uintptr_t)hdr->attrs[i].data, 0, hdr->attrs[i].len);
	if (hdr->object_id == UVERBS_OBJECT_ASYNC_EVENT)
		hdr->attrs[0].data_s64 = dup(fd);
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_QUERY_CONTEXT &&
		    hdr->attrs[i].attr_id == ROAN_ATTR_QUERY_CONTEXT_RESP)
			*(struct roan_alloc_ucontext_resp *)(uintptr_t)hdr->attrs[i].data =
				(struct roan_alloc_ucontext_resp) { .features = features_in_effect };
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == 0x1001)	/* the driver's part of the response */
			fill_response(hdr, (void *)(uintptr_t)hdr->attrs[i].data);
	/* The capabilities are those that main() of rings.c requests. */
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->object_id == UVERBS_OBJECT_QP && hdr->method_id == UVERBS_METHOD_QP_CREATE &&
		    hdr->attrs[i].attr_id == UVERBS_ATTR_CREATE_QP_RESP_CAP)
			*(struct ib_uverbs_qp_cap *)(uintptr_t)hdr->attrs[i].data = (struct ib_uverbs_qp_cap) {
				.max_send_wr = 3, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2,
				.max_inline_data = 32,
			};
	return 0;
}
