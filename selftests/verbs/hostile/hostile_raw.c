// SPDX-License-Identifier: GPL-2.0
/*
 * System calls that no provider makes, on a uverbs file of the test's own: mappings of foreign rings, doorbells for
 * handles that are no QP, bad doorbell hints. Each has one right errno.
 */
#define _GNU_SOURCE
#include "hostile_call.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

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
	      "mmap: an offset without a ring");
	vt_ok(map_errno(fd, len, MAP_SHARED, 0x7ffffffff000ull) == EINVAL, "mmap: far beyond every ring");
	if (context_with(d, zeros, 8, &other))
		vt_die("second context");
	vt_ok(is(map_errno(other, len, MAP_SHARED, desc->mmap_offset), EINVAL, "other"),
	      "mmap: another context's ring");
	close(other);

	ctl = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, desc->mmap_offset);
	vt_ok(ctl != MAP_FAILED, "mmap: with offset and size of the description");
	if (ctl == MAP_FAILED)
		return;
	err = do_call(fd, &(struct call) { IB_USER_VERBS_CMD_DESTROY_CQ, &core, sizeof(core), &resp,
						sizeof(resp), NULL, 0 });
	memset(ctl, 0x77, len);
	vt_ok(is(err, 0, "destroy_cq") && is(map_errno(fd, len, MAP_SHARED, desc->mmap_offset), EINVAL, "again"),
	      "a mapped ring outlives its queue, and cannot be mapped again");
	munmap(ctl, len);
}

/* A provider that does not announce support for two rings in one mapping gets two mappings. */
static void rings_of_a_qp(struct vt_dev *d)
{
	static const uint64_t knows = ROAN_FEATURE_ONE_MAPPING;
	struct roan_ring_desc sq, rq;
	struct raw_qp qp;
	struct raw_cq cq;
	uint32_t pd;
	int i, fd;

	for (i = 0; i < 2; i++) {
		if (context_with(d, i ? &knows : zeros, 8, &fd) || raw_pd(fd, NULL, 0, &pd) ||
		    raw_cq(fd, NULL, 0, &cq, sizeof(cq)) ||
		    raw_qp(fd, pd, cq.core.cq_handle, NULL, 0, &qp, sizeof(qp.roan)))
			vt_die("a QP made by raw commands: %s", strerror(errno));
		sq = qp.roan.sq;
		rq = qp.roan.rq;
		vt_ok(is(map_errno(fd, sq.mmap_size, MAP_SHARED, sq.mmap_offset), 0, "SQ") &&
		      is(map_errno(fd, rq.mmap_size, MAP_SHARED, rq.mmap_offset), 0, "RQ") &&
		      (sq.mmap_offset == rq.mmap_offset) == i,
		      "mmap: the rings of a QP, for a provider that %s one mapping for both",
		      i ? "supports" : "does not support");
		close(fd);
	}
	vt_ok(rq.slots_offset >= sq.slots_offset + sq.slot_size * sq.slot_count + sizeof(struct roan_ring_ctl) &&
	      rq.slots_offset + rq.slot_size * rq.slot_count <= rq.mmap_size, "mmap: the two rings do not overlap");
}

static int bell(int fd, uint16_t nr_attrs, uint16_t attr_id, uint32_t handle, uint32_t driver)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[2];
	} call = {
		.hdr = { .object_id = UVERBS_OBJECT_QP, .method_id = ROAN_METHOD_QP_DOORBELL, .num_attrs = nr_attrs,
			 .driver_id = driver },
		.attr = { { .attr_id = ROAN_ATTR_QP_DOORBELL_HANDLES, .len = 4, .flags = UVERBS_ATTR_F_MANDATORY,
			    .data = inline_u32(handle) },
			  { .attr_id = attr_id, .len = 8, .flags = UVERBS_ATTR_F_MANDATORY } },
	};

	call.hdr.length = sizeof(call.hdr) + nr_attrs * sizeof(call.attr[0]);
	return ioctl(fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

/* Rings many handles in one call; @len is the length of the attribute. */
static int bell_many(int fd, const uint32_t *handles, uint16_t len)
{
	return doorbell_as(fd, len, (uintptr_t)handles);
}

static void many_bells(int fd, uint32_t qp)
{
	uint32_t handles[ROAN_MAX_DOORBELL_QPS + 1];
	int i;

	for (i = 0; i <= ROAN_MAX_DOORBELL_QPS; i++)
		handles[i] = qp;
	vt_ok(is(bell_many(fd, handles, 4 * ROAN_MAX_DOORBELL_QPS), 0, "most"),
	      "doorbell: the maximum number of handles, all of one QP");
	vt_ok(bell_many(fd, handles, 4 * (ROAN_MAX_DOORBELL_QPS + 1)), "doorbell: one handle more than the maximum");
	vt_ok(bell_many(fd, handles, 4 * 3 + 1), "doorbell: a part of a handle");
	vt_ok(bell_many(fd, handles, 0), "doorbell: no handle");
	vt_ok(is(bell_many(fd, (const uint32_t *)64, 4 * 3), EFAULT, "nowhere"), "doorbell: handles at an unmapped address");
	handles[2] = 0x12345678;
	vt_ok(is(bell_many(fd, handles, 4 * 3), ENOENT, "one of them"), "doorbell: one of several handles does not exist");
}

static void bells(int fd, uint32_t pd, uint32_t cq)
{
	struct raw_qp made;
	uint32_t qp;

	if (raw_qp(fd, pd, cq, NULL, 0, &made, sizeof(made.roan)))
		vt_die("create_qp");
	qp = made.core.qp_handle;
	vt_ok(is(bell(fd, 1, 0, qp, ROAN_DRIVER_ID), 0, "reset"), "doorbell: a QP in RESET is accepted");
	vt_ok(is(bell(fd, 1, 0, 0x12345678, ROAN_DRIVER_ID), ENOENT, "none"), "doorbell: no such handle");
	vt_ok(bell(fd, 1, 0, cq, ROAN_DRIVER_ID), "doorbell: a CQ's handle is refused");
	vt_ok(is(bell(fd, 0, 0, 0, ROAN_DRIVER_ID), 0, "absent"), "doorbell: no handle and no doorbell hint");
	vt_ok(is(bell(fd, 2, 0x1001, qp, ROAN_DRIVER_ID), EPROTONOSUPPORT, "unknown"), "doorbell: unknown attribute");
	vt_ok(bell(fd, 1, 0, qp, ROAN_DRIVER_ID + 1), "doorbell: attribute of another driver");
	many_bells(fd, qp);
	vt_ok(is(destroy_qp(fd, qp), 0, "destroy"), "the QP is destroyed");
	vt_ok(is(bell(fd, 1, 0, qp, ROAN_DRIVER_ID), ENOENT, "gone"), "doorbell: a destroyed QP");
}

/* ---- doorbell hints ---- */

static void give_notices(struct roan_ring_ctl *ctl, const struct roan_ring_desc *desc, uint32_t n, uint32_t qpn, uint32_t step)
{
	uint32_t tail = ctl->user.index, i;
	struct roan_db_hint *slot;

	for (i = 0; i < n; i++) {
		slot = (void *)((uint8_t *)ctl + desc->slots_offset + (tail + i) % desc->slot_count * desc->slot_size);
		*slot = (struct roan_db_hint) { .qpn = qpn + i * step };
	}
	__atomic_store_n(&ctl->user.index, tail + n, __ATOMIC_SEQ_CST);
}

/* A QP of @d has a request without a doorbell. A hint with its number in another context's ring must not send it. */
static void foreign_notice(struct vt_dev *d, struct region *r, int fd, struct roan_ring_ctl *ctl,
			   const struct roan_ring_desc *desc)
{
	struct ibv_wc wc;
	struct rig g;
	bool left;

	rig_up(&g, d, r, IBV_QPT_RC, false);
	post_write(&g, 5);
	give_notices(ctl, desc, 1, g.qp->qp_num, 0);
	left = !doorbell_bare(fd) && !vt_poll(g.cq, &wc, 200);
	vt_ok(left && ctl->kernel.index == ctl->user.index, "doorbell hint: another context's QP is not polled");
	vt_ok(!doorbell(g.qp) && vt_poll(g.cq, &wc, 3000) && !wc.status && wc.wr_id == 5, "doorbell hint: another context's QP keeps its work");
	rig_down(&g);
}

static void wild_notices(int fd, struct roan_ring_ctl *ctl, const struct roan_ring_desc *desc)
{
	const uint32_t jumps[] = { desc->slot_count + 1, 0x7fffffff, 0x80000000, -1 };
	unsigned int i, bad = 0;

	give_notices(ctl, desc, desc->slot_count, 0, 1);		/* small QPNs, including 0 and 1 */
	bad += doorbell_bare(fd) || ctl->kernel.index != ctl->user.index;
	give_notices(ctl, desc, desc->slot_count, 0xffffff00, 1);	/* QPNs of more than 24 bits */
	bad += doorbell_bare(fd) || ctl->kernel.index != ctl->user.index;
	vt_ok(!bad, "doorbell hints: QPNs that do not exist");
	for (i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		__atomic_store_n(&ctl->user.index, ctl->user.index + jumps[i], __ATOMIC_SEQ_CST);
		bad += doorbell_bare(fd) || ctl->kernel.index != ctl->user.index;
	}
	vt_ok(!bad, "doorbell hints: an impossible tail is ignored");
}

struct notice_scribbler {
	struct roan_ring_ctl *ctl;
	size_t len;
	atomic_bool stop;
};

/* A thread that advances the tail and overwrites random words of the ring. */
static void *scribble_notices(void *arg)
{
	struct notice_scribbler *sc = arg;
	uint64_t s = 815;

	while (!atomic_load(&sc->stop)) {
		s = vt_mix(s);
		if (s % 16)
			__atomic_store_n(&sc->ctl->user.index, sc->ctl->kernel.index + s % 200, __ATOMIC_RELAXED);
		else
			__atomic_store_n((uint32_t *)sc->ctl + (s >> 32) % (sc->len / 4), s, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * Doorbells come fast enough that the kernel batches them, so that its timer polls the hints, too. The time of each
 * doorbell call must stay bounded.
 */
static void runaway_notices(int fd, struct roan_ring_ctl *ctl, size_t len)
{
	struct notice_scribbler sc = { .ctl = ctl, .len = len };
	uint64_t begin, end, worst = 0;
	pthread_t thread;
	int err = 0;

	if (pthread_create(&thread, NULL, scribble_notices, &sc))
		vt_die("pthread_create");
	for (end = vt_now_ms() + 500; vt_now_ms() < end;) {
		begin = vt_now_ms();
		err = err ?: doorbell_bare(fd);
		if (vt_now_ms() - begin > worst)
			worst = vt_now_ms() - begin;
	}
	atomic_store(&sc.stop, true);
	pthread_join(thread, NULL);
	vt_ok(!err && worst < 5000, "doorbell hints with a running tail: no doorbell call takes long");
}

static void notices(struct vt_dev *d, struct region *r)
{
	struct raw_context resp;
	const struct roan_ring_desc *desc = &resp.roan.db_hints;
	int fd = open_raw(d), err = raw_context(fd, zeros, 8, &resp, sizeof(resp));
	struct roan_ring_ctl *ctl = MAP_FAILED;

	if (!err)
		ctl = mmap(NULL, desc->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, desc->mmap_offset);
	if (ctl == MAP_FAILED)
		vt_die("a ring of doorbell hints: %s", strerror(err ?: errno));
	foreign_notice(d, r, fd, ctl, desc);
	wild_notices(fd, ctl, desc);
	runaway_notices(fd, ctl, desc->mmap_size);
	close(fd);	/* the mapping holds the file, so the context and its timer stay */
	munmap(ctl, desc->mmap_size);
}

void raw_cases(struct vt_dev *d, struct region *r)
{
	struct raw_cq cq, map_cq;
	uint32_t pd;
	int fd;

	notices(d, r);
	if (context_with(d, zeros, 8, &fd) || raw_pd(fd, NULL, 0, &pd) || raw_cq(fd, NULL, 0, &cq, sizeof(cq)) ||
	    raw_cq(fd, NULL, 0, &map_cq, sizeof(map_cq)))
		vt_die("a context made by raw commands: %s", strerror(errno));
	mappings(d, fd, &map_cq);
	rings_of_a_qp(d);
	bells(fd, pd, cq.core.cq_handle);
	close(fd);	/* objects still exist: the kernel cleans up */
}
