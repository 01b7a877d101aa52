// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registration with libibverbs, contexts, and mapping of the kernel's memory. The verbs are in the other files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "roan.h"

/* ---- mappings ---- */

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;	/* the lists of all contexts */

struct roan_mapping *roan_map(struct ibv_context *ctx, size_t size, int prot, uint64_t offset)
{
	struct roan_mapping **first = &to_roan_context(ctx)->mappings;
	struct roan_mapping *map = malloc(sizeof(*map));

	if (!map)
		return NULL;
	map->size = size;
	map->at = mmap(NULL, size, prot, MAP_SHARED, ctx->cmd_fd, offset);
	if (map->at == MAP_FAILED) {
		free(map);
		return NULL;
	}
	pthread_mutex_lock(&mappings_lock);
	map->link = first;
	map->next = *first;
	if (map->next)
		map->next->link = &map->next;
	*first = map;
	pthread_mutex_unlock(&mappings_lock);
	return map;
}

void roan_unmap(struct roan_mapping *map)
{
	pthread_mutex_lock(&mappings_lock);
	*map->link = map->next;
	if (map->next)
		map->next->link = map->link;
	pthread_mutex_unlock(&mappings_lock);
	munmap(map->at, map->size);
	free(map);
}

/* ---- rings ---- */

/* A wrong description from the kernel must not cause writes outside the mapping. */
static bool ring_desc_valid(const struct roan_ring_desc *desc)
{
	return desc->slot_count && !(desc->slot_count & (desc->slot_count - 1)) &&
	       desc->slots_offset >= sizeof(struct roan_ring_ctl) &&
	       desc->slots_offset + (uint64_t)desc->slot_size * desc->slot_count <= desc->mmap_size;
}

/* All of @ring but its mapping. */
static void ring_set(struct ring *ring, void *ctl, uint8_t *slots, const struct roan_ring_desc *desc)
{
	ring->ctl = ctl;
	ring->slots = slots;
	ring->mask = desc->slot_count - 1;
	ring->slot_size = desc->slot_size;
	ring->index = ring->ctl->user.index;	/* not 0 after a resize: the kernel moved the pending entries */
}

int ring_map(struct ring *ring, struct ibv_context *ctx, const struct roan_ring_desc *desc)
{
	memset(ring, 0, sizeof(*ring));
	if (!desc->mmap_size)
		return 0;
	if (!ring_desc_valid(desc))
		return EPROTO;
	ring->map = roan_map(ctx, desc->mmap_size, PROT_READ | PROT_WRITE, desc->mmap_offset);
	if (!ring->map)
		return errno;
	ring_set(ring, ring->map->at, ring->map->at + desc->slots_offset, desc);
	return 0;
}

int ring_reserve(struct ring_space *space, const struct ring *ring, uint32_t slots)
{
	size_t page = sysconf(_SC_PAGESIZE), n = 1;

	if (slots > 1u << 24)	/* the kernel makes none so long, and 32 bits have no power of two for any number */
		return EINVAL;
	while (n < slots)
		n <<= 1;
	n = n * ring->slot_size + (ring->slots - (uint8_t *)ring->ctl);
	space->size = (n + page - 1) & ~(page - 1);
	space->at = mmap(NULL, space->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return space->at == MAP_FAILED ? errno : 0;
}

void ring_release(const struct ring_space *space)
{
	munmap(space->at, space->size);
}

int ring_replace(struct ring *ring, int fd, const struct roan_ring_desc *desc, const struct ring_space *space)
{
	bool fits = desc->mmap_size <= space->size;	/* no: a kernel whose rings are larger */
	uint8_t *at;

	if (!fits)
		ring_release(space);
	if (!ring_desc_valid(desc))
		return EPROTO;
	at = mmap(fits ? space->at : NULL, desc->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED | (fits ? MAP_FIXED : 0),
		  fd, desc->mmap_offset);
	if (at == MAP_FAILED)
		return errno;	/* the reservation, if any is left, is not released: another thread may use its addresses */
	if (fits && desc->mmap_size < space->size)
		munmap(at + desc->mmap_size, space->size - desc->mmap_size);
	munmap(ring->map->at, ring->map->size);
	ring->map->at = at;
	ring->map->size = desc->mmap_size;
	ring_set(ring, at, at + desc->slots_offset, desc);
	return 0;
}

int ring_within(struct ring *ring, const struct ring *first, const struct roan_ring_desc *desc)
{
	uint8_t *slots = (uint8_t *)first->ctl + desc->slots_offset;

	memset(ring, 0, sizeof(*ring));
	if (!ring_desc_valid(desc) || desc->mmap_size != first->map->size)
		return EPROTO;
	ring_set(ring, slots - sizeof(struct roan_ring_ctl), slots, desc);
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (ring->map)
		roan_unmap(ring->map);
	memset(ring, 0, sizeof(*ring));
}

/* ---- methods for which libibverbs has no stable call ---- */

#define MAX_ATTRS	11

int roan_ioctl(struct ibv_context *ctx, uint16_t object, uint16_t method, struct ib_uverbs_attr *attrs, uint16_t n)
{
	union {
		struct ib_uverbs_ioctl_hdr hdr;
		uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + MAX_ATTRS * sizeof(struct ib_uverbs_attr)];
	} call = { .room = { 0 } };

	if (n > MAX_ATTRS)
		return EINVAL;
	call.hdr.length = sizeof(call.hdr) + n * sizeof(*attrs);
	call.hdr.object_id = object;
	call.hdr.method_id = method;
	call.hdr.num_attrs = n;
	call.hdr.driver_id = ROAN_DRIVER_ID;
	memcpy(call.hdr.attrs, attrs, n * sizeof(*attrs));
	if (ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &call.hdr))
		return errno;
	memcpy(attrs, call.hdr.attrs, n * sizeof(*attrs));
	return 0;
}

int roan_ioctl_or_unsupported(struct ibv_context *ctx, uint16_t object, uint16_t method, struct ib_uverbs_attr *attrs,
			      uint16_t n)
{
	return roan_or_unsupported(roan_ioctl(ctx, object, method, attrs, n));
}

int roan_ioctl_destroy(struct ibv_context *ctx, uint16_t object, uint16_t method, struct ib_uverbs_attr *handle)
{
	int err = roan_ioctl(ctx, object, method, handle, 1);

	return err == EIO && verbs_allow_disassociate_destroy ? 0 : err;
}

/* ---- contexts ---- */

/*
 * A mapping of an object that is not destroyed has a reference to the context's file. While there is one the kernel
 * does not end the context: its QPs stay connected, its memory regions registered, and its rings charged.
 */
static void free_context(struct ibv_context *ctx)
{
	struct roan_context *roan = to_roan_context(ctx);

	while (roan->mappings)
		roan_unmap(roan->mappings);
	verbs_uninit_context(&roan->vctx);
	free(roan);
}

/*
 * Not query_ece and set_ece, as this device has no options to agree on. With them programs exchange vendor IDs, and an
 * adapter refuses that of another vendor: NCCL then gives up the connection. It goes on if one end has no ECE.
 */
static const struct verbs_context_ops context_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = roan_alloc_dm,
	.alloc_mw = roan_alloc_mw,
	.alloc_parent_domain = roan_alloc_parent_domain,
	.alloc_pd = roan_alloc_pd,
	.alloc_td = roan_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = roan_bind_mw,
	.cq_event = roan_cq_event,
	.create_ah = roan_create_ah,
	.create_cq = roan_create_cq,
	.create_cq_ex = roan_create_cq_ex,
	.create_qp = roan_create_qp,
	.create_qp_ex = roan_create_qp_ex,
	.create_srq = roan_create_srq,
	.dealloc_mw = roan_dealloc_mw,
	.dealloc_pd = roan_dealloc_pd,
	.dealloc_td = roan_dealloc_td,
	.dereg_mr = roan_dereg_mr,
	.destroy_ah = roan_destroy_ah,
	.destroy_cq = roan_destroy_cq,
	.destroy_qp = roan_destroy_qp,
	.destroy_srq = roan_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = free_context,
	.free_dm = roan_free_dm,
	.get_srq_num = roan_get_srq_num,
	.import_dm = roan_import_dm,
	.import_mr = roan_import_mr,
	.import_pd = roan_import_pd,
	.modify_cq = roan_modify_cq,
	.modify_qp = roan_modify_qp,
	.modify_qp_rate_limit = roan_modify_qp_rate_limit,
	.modify_srq = roan_modify_srq,
	.poll_cq = roan_poll_cq,
	.post_recv = roan_post_recv,
	.post_send = roan_post_send,
	.post_srq_recv = roan_post_srq_recv,
	.query_device_ex = roan_query_device_ex,
	.query_port = roan_query_port,
	.query_qp = roan_query_qp,
	.query_rt_values = roan_query_rt_values,
	.query_srq = roan_query_srq,
	.reg_dm_mr = roan_reg_dm_mr,
	.reg_dmabuf_mr = roan_reg_dmabuf_mr,
	.reg_mr = roan_reg_mr,
	.req_notify_cq = roan_req_notify_cq,
	.rereg_mr = roan_rereg_mr,
	.resize_cq = roan_resize_cq,
	.unimport_dm = roan_unimport_dm,
	.unimport_mr = roan_unimport_mr,
	.unimport_pd = roan_unimport_pd,
#if ROAN_RDMA_CORE >= 59
	.alloc_dmah = roan_alloc_dmah,
	.dealloc_dmah = roan_dealloc_dmah,
	.reg_mr_ex = roan_reg_mr_ex,
#endif
#if ROAN_RDMA_CORE >= 62
	.dm_export_dmabuf_fd = roan_dm_export_dmabuf_fd,
	.query_port_speed = roan_query_port_speed,
#endif
#if ROAN_RDMA_CORE >= 65
	.create_comp_cntr = roan_create_comp_cntr,
	.destroy_comp_cntr = roan_destroy_comp_cntr,
	.inc_comp_cntr = ibv_cmd_inc_comp_cntr,
	.inc_err_comp_cntr = ibv_cmd_inc_err_comp_cntr,
	.qp_attach_comp_cntr = roan_qp_attach_comp_cntr,
	.query_comp_cntr_caps = roan_query_comp_cntr_caps,
	.read_comp_cntr = roan_read_comp_cntr,
	.read_err_comp_cntr = roan_read_err_comp_cntr,
	.set_comp_cntr = ibv_cmd_set_comp_cntr,
	.set_err_comp_cntr = ibv_cmd_set_err_comp_cntr,
#endif
};

/* Not for an imported context: it has no hint ring, because the ring has one producer, the context that was opened. */
static int get_context(struct roan_context *roan)
{
	ROAN_CMD_REQ(ib_uverbs_get_context, roan_alloc_ucontext_req) cmd = {
		.roan.features = ROAN_FEATURE_ONE_MAPPING,
	};
	ROAN_RESP(ib_uverbs_get_context_resp, roan_alloc_ucontext_resp) resp = { 0 };
	int err;

	_Static_assert(offsetof(typeof(cmd), roan) == 16, "request of GET_CONTEXT");
	_Static_assert(offsetof(typeof(resp), roan) == 8, "response of GET_CONTEXT");
#if ROAN_PABI >= 57
	err = ibv_cmd_get_context(&roan->vctx, &cmd, sizeof(cmd), NULL, &resp, sizeof(resp));
#else
	err = ibv_cmd_get_context(&roan->vctx, &cmd, sizeof(cmd), &resp, sizeof(resp));
#endif
	roan_lock_init(&roan->db_hints.lock, roan->single_threaded);	/* all thread domains share the ring */
	roan->qp_handles = resp.roan.features & ROAN_FEATURE_QP_HANDLE;
	return err ?: ring_map(&roan->db_hints.ring, &roan->vctx.context, &resp.roan.db_hints);
}

#define KNOWN_FEATURES	(ROAN_FEATURE_ONE_MAPPING | ROAN_FEATURE_QP_HANDLE)

/* The provider that created the context may be newer, and its features change what this one relies on. */
static int query_context(struct roan_context *roan)
{
	struct roan_alloc_ucontext_resp resp = { 0 };
	struct ib_uverbs_attr attr = {
		.attr_id = ROAN_ATTR_QUERY_CONTEXT_RESP, .len = sizeof(resp), .data = (uintptr_t)&resp,
	};
	int err = ibv_cmd_query_context(&roan->vctx.context, NULL);

	err = err ?: roan_ioctl(&roan->vctx.context, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, &attr, 1);
	roan->qp_handles = resp.features & ROAN_FEATURE_QP_HANDLE;
	if (!err && resp.features & ~(uint64_t)KNOWN_FEATURES)
		err = EPROTONOSUPPORT;
	return err;
}

/*
 * libibverbs 59 to 61 and 62 to 63 register providers under the same name, but their operations are at different offsets.
 * struct verbs_context is longer in each release that adds an operation; libibverbs stores the length in it.
 */
static int check_release(const struct roan_context *roan)
{
	if (roan->vctx.sz == sizeof(roan->vctx))
		return 0;
	fprintf(stderr, "libroan: built for another release of rdma-core than this libibverbs: build it anew\n");
	return EPROTONOSUPPORT;
}

/* Takes ownership of @cmd_fd, also on failure. */
static struct verbs_context *make_context(struct ibv_device *ibdev, int cmd_fd, bool import)
{
	struct roan_context *roan;
	int err;

	roan = _verbs_init_and_alloc_context(ibdev, cmd_fd, sizeof(*roan),
					     (struct verbs_context *)offsetof(struct roan_context, vctx),
					     ROAN_DRIVER_ID);
	if (!roan)
		return NULL;
	roan->single_threaded = getenv("ROAN_SINGLE_THREADED") != NULL;
	roan->one_cpu = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	err = check_release(roan);
	if (!err)
		err = import ? query_context(roan) : get_context(roan);
	if (err) {
		verbs_uninit_context(&roan->vctx);
		free(roan);
		errno = err;
		return NULL;
	}
	verbs_set_ops(&roan->vctx, &context_ops);
	return &roan->vctx;
}

static struct verbs_context *alloc_context(struct ibv_device *ibdev, int cmd_fd, void *private_data)
{
	(void)private_data;
	return make_context(ibdev, cmd_fd, false);
}

static struct verbs_context *import_context(struct ibv_device *ibdev, int cmd_fd)
{
	return make_context(ibdev, cmd_fd, true);
}

/* ---- devices ---- */

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs)
{
	(void)sysfs;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

/* Matched by driver id; by name if the device list has no driver ids. */
static const struct verbs_match_ent match_table[] = {
	{ .kind = VERBS_MATCH_DRIVER_ID, .u.driver_id = ROAN_DRIVER_ID },
	{ .kind = VERBS_MATCH_MODALIAS, .u.modalias = "rdma_device:*Nroan*" },
	{ .kind = VERBS_MATCH_SENTINEL },
};

#ifdef _STATIC_LIBRARY_BUILD_	/* by rdma-core's cmake files */
#define device_ops	verbs_provider_roan	/* the name that a statically linked libibverbs expects */
extern const struct verbs_device_ops device_ops;
#else
static
#endif
const struct verbs_device_ops device_ops = {
	.name = "roan",
	.match_min_abi_version = ROAN_UVERBS_ABI_VERSION,
	.match_max_abi_version = ROAN_UVERBS_ABI_VERSION,
	.match_table = match_table,
	.alloc_context = alloc_context,
	.import_context = import_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};

static __attribute__((constructor)) void register_driver(void)
{
	verbs_register_driver(&device_ops);
}
