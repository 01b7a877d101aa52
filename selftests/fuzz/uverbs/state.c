// SPDX-License-Identifier: GPL-2.0
/* Objects that a program holds, and the values that argument bytes stand for. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

uint8_t *arena;

void state_init(void)
{
	arena = mmap((void *)0x200000000, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (arena == MAP_FAILED) {
		perror("arena");
		exit(2);
	}
}

uint64_t value(uint8_t which)
{
	static const uint64_t values[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256, 257, 512, 1000, 1023,
		1024, 2048, 4095, 4096, 4097, 5000, 8192, 10000, 16384, 32767, 32768, 65535, 65536, 100000, 0xfffff, 0x100000,
		0xffffff, 0x1000000, 10000000, 0x3fffffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x100000000,
		0x7fffffffffff, 1ull << 40, 1ull << 62, 1ull << 63, ~0ull - 4095, ~0ull - 1, ~0ull, 0x5555555555555555,
	};

	return values[which % ARRAY_SIZE(values)];
}

uint32_t amount(uint8_t which)
{
	return which < 240 ? 1 + which % 40 : value(which * 7);
}

uint64_t length(uint8_t which)
{
	static const uint64_t lengths[] = { 0, 1, 8, 8, 64, 100, 256, 1000, 1024, 4096, 4097, 5000, 9000, 16384, 65536, 131072, 262144 };

	return which < 240 ? lengths[which % ARRAY_SIZE(lengths)] : value(which * 5);
}

/* Mostly in the arena. */
uint64_t address(uint8_t which)
{
	return which < 240 ? (uintptr_t)arena + (which % 48) * 4096ul + (which % 5 ? 0 : which) : value(which * 11);
}

int context(struct run *r, int c)
{
	if (r->ctx[c].fd < 0)
		context_open(r, c, ROAN_FEATURE_ONE_MAPPING, false);
	return r->ctx[c].fd;
}

bool context_open(struct run *r, int c, uint64_t features, bool by_ioctl)
{
	struct context *x = &r->ctx[c];
	struct ib_uverbs_get_context core = { 0 };
	struct ib_uverbs_get_context_resp resp = { .async_fd = ~0u };
	struct roan_alloc_ucontext_resp roan = { 0 };
	uint32_t vectors;
	int err;

	if (x->fd >= 0)
		context_close(r, c);
	x->fd = open(devices[c].path, O_RDWR | O_CLOEXEC);
	if (x->fd < 0)
		return false;
	if (by_ioctl) {
		struct ib_uverbs_attr attrs[] = {
			{ .attr_id = UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, .len = 4, .data = (uintptr_t)&vectors },
			{ .attr_id = UVERBS_ATTR_UHW_IN, .len = 8, .data = features },
			{ .attr_id = UVERBS_ATTR_UHW_OUT, .len = sizeof(roan), .data = (uintptr_t)&roan },
		};
		x->opening = true;
		err = do_ioctl(r, c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, attrs, ARRAY_SIZE(attrs));
		x->opening = false;
	} else {
		err = do_write(r, c, &(struct wcmd) { IB_USER_VERBS_CMD_GET_CONTEXT, &core, sizeof(core), &resp, sizeof(resp),
						       &features, sizeof(features), &roan, sizeof(roan) }, NULL);
	}
	if (err)
		return false;
	if ((int)resp.async_fd >= 0)
		add(r, c, ASYNC, resp.async_fd);
	return map_ring(r, c, &x->hints, &roan.db_hints);
}

static void unmap(struct ring *ring)
{
	if (ring->ctl)
		munmap(ring->ctl, ring->desc.mmap_size);
	ring->ctl = NULL;
}

void context_close(struct run *r, int c)
{
	struct context *x = &r->ctx[c];
	uint32_t k, i;

	for (k = 0; k < KINDS; k++) {
		for (i = 0; i < MAX_OBJECTS && i < x->n[k]; i++) {
			unmap(&x->obj[k][i].ring[0]);
			unmap(&x->obj[k][i].ring[1]);
			if (k >= CHANNEL)
				close(x->obj[k][i].handle);
		}
	}
	unmap(&x->hints);
	if (x->fd >= 0)
		close(x->fd);
	memset(x, 0, sizeof(*x));
	x->fd = -1;
}

void run_begin(struct run *r)
{
	int c;

	memset(r, 0, sizeof(*r));
	for (c = 0; c < CONTEXTS; c++)
		r->ctx[c].fd = -1;
}

void run_end(struct run *r)
{
	int c;

	for (c = 0; c < CONTEXTS; c++)
		context_close(r, c);
	while (r->children && waitpid(-1, NULL, 0) > 0)
		r->children--;
	if (r->sysfs_changed || r->devices_changed || r->wire_changed)
		devices_repair(r);
	if (r->memory_changed)
		mmap(arena, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* A new object takes the place of the oldest if there are too many; the old one lives on without a name. */
struct object *add(struct run *r, int c, enum kind kind, uint32_t handle)
{
	struct context *x = &r->ctx[c];
	struct object *o = &x->obj[kind][x->n[kind]++ % MAX_OBJECTS];

	unmap(&o->ring[0]);
	unmap(&o->ring[1]);
	if (kind >= CHANNEL) {
		if (x->n[kind] > MAX_OBJECTS)
			close(o->handle);
		fcntl(handle, F_SETFL, O_NONBLOCK);
	}
	*o = (struct object) { .handle = handle };
	return o;
}

/* The last object takes the place of the one that is gone. */
void forget(struct run *r, int c, enum kind kind, uint32_t handle)
{
	struct context *x = &r->ctx[c];
	uint32_t i, n = x->n[kind] < MAX_OBJECTS ? x->n[kind] : MAX_OBJECTS;

	for (i = 0; i < n; i++) {
		if (x->obj[kind][i].handle != handle)
			continue;
		unmap(&x->obj[kind][i].ring[0]);
		unmap(&x->obj[kind][i].ring[1]);
		if (kind >= CHANNEL)
			close(handle);
		x->obj[kind][i] = x->obj[kind][n - 1];
		memset(&x->obj[kind][n - 1], 0, sizeof(struct object));
		x->n[kind] = n - 1;
		return;
	}
}

struct object *pick(struct run *r, int c, enum kind kind, uint8_t which)
{
	struct context *x = &r->ctx[c];
	uint32_t n = x->n[kind] < MAX_OBJECTS ? x->n[kind] : MAX_OBJECTS;

	return n ? &x->obj[kind][which % n] : NULL;
}

uint32_t handle(struct run *r, int c, enum kind kind, uint8_t which)
{
	struct object *o = pick(r, c, kind, which);

	if (o && which < 248)
		return o->handle;
	return which < 252 ? which % 16 : value(which * 3);
}

bool map_ring(struct run *r, int c, struct ring *ring, const struct roan_ring_desc *desc)
{
	void *at;

	unmap(ring);
	ring->desc = *desc;
	if (!desc->mmap_size || !desc->slot_count)
		return false;
	++*calls_done;
	at = mmap(NULL, desc->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->ctx[c].fd, desc->mmap_offset);
	ring->ctl = at == MAP_FAILED ? NULL : at;
	return ring->ctl;
}

void read_events(int fd)
{
	uint8_t buf[256];
	int i;

	for (i = 0; i < 4; i++) {
		++*calls_done;
		if (read(fd, buf, sizeof(buf)) <= 0)
			return;
	}
}
