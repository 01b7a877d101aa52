// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The doorbell, and when to ring it. A queue pair that the kernel is at work on needs none. For one at rest a notice
 * does while the kernel lingers: bells came in quick succession, so it looks through the context's notices by itself
 * after a while. For one that has sent all and waits for an answer it does as well: then the kernel looks again. As soon
 * as a program has nothing to do but wait, the pause is over: an empty poll, or asking for an event, rings for all that
 * was noticed since. An empty poll also rings when the rest of a long send waits for the CPU that the polling keeps busy.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "roan.h"

/*
 * The kernel looks at queue pairs in our context: at the one given, and at those of the notices. Its errors have no one
 * to go to: the requests are in the rings, and a QP or device that is gone is told by completions and events. So errno
 * stays as it was, too.
 */
static void db_ioctl(int fd, const uint32_t *handle)
{
	union {
		struct ib_uverbs_ioctl_hdr hdr;
		uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + sizeof(struct ib_uverbs_attr)];
	} call = { .room = { 0 } };
	struct ib_uverbs_attr *attr = call.hdr.attrs;
	int saved = errno;

	call.hdr.length = sizeof(call.hdr);
	call.hdr.object_id = UVERBS_OBJECT_QP;
	call.hdr.method_id = ROAN_METHOD_QP_DOORBELL;
	call.hdr.driver_id = ROAN_DRIVER_ID;
	if (handle) {
		call.hdr.length += sizeof(*attr);
		call.hdr.num_attrs = 1;
		attr->attr_id = ROAN_ATTR_QP_DOORBELL_HANDLES;
		attr->flags = UVERBS_ATTR_F_MANDATORY;
		attr->len = sizeof(*handle);
		memcpy(&attr->data, handle, sizeof(*handle));	/* as the core wants what fits */
	}
	while (ioctl(fd, RDMA_VERBS_IOCTL, &call.hdr) && errno == EINTR)
		;
	errno = saved;
}

void roan_ring_doorbell(struct roan_qp *qp)
{
	db_ioctl(qp->vqp.qp.context->cmd_fd, &qp->vqp.qp.handle);
}

static struct roan_db_hint *hint_at(const struct ring *ring, uint32_t index)
{
	return ring_slot(ring, index);
}

/* @ring may have gone around any number of times since @qp gave its last notice. */
static bool hint_pending(const struct ring *ring, const struct roan_qp *qp)
{
	return ring_has_index(ring, qp->hint_index) &&
	       __atomic_load_n(&hint_at(ring, qp->hint_index)->qpn, __ATOMIC_RELAXED) == qp->vqp.qp.qp_num;
}

/* False: no room. */
static bool add_hint(struct roan_db_hints *hints, struct roan_qp *qp)
{
	struct ring *ring = &hints->ring;
	uint32_t tail;
	bool has_space;

	roan_lock(&hints->lock);
	tail = ring->index;
	has_space = ring_has_space(ring, tail, ring->mask + 1);
	if (has_space) {
		__atomic_store_n(&hint_at(ring, tail)->qpn, qp->vqp.qp.qp_num, __ATOMIC_RELAXED);
		qp->hint_index = tail;
		ring_post(ring, tail + 1);
	}
	roan_unlock(&hints->lock);
	return has_space;
}

/* Enough that a system call is well spent on it, in proportion to what is under way already. A hint: it may be out of date. */
static bool above_notify_at(const struct ring *sq)
{
	return (int32_t)(sq->index - __atomic_load_n(&sq->ctl->kernel.notify_at, __ATOMIC_RELAXED)) >= 0;
}

/* sq.lock held, after something was posted. */
bool roan_needs_doorbell(struct roan_qp *qp)
{
	struct roan_db_hints *hints = &to_roan_context(qp->vqp.qp.context)->db_hints;
	uint32_t flags = ring_flags(&qp->sq.ring);

	if (!flags)
		return false;
	if (flags & ROAN_RING_ACK_PENDING) {
		if (hints->ring.ctl && above_notify_at(&qp->sq.ring) && !hint_pending(&hints->ring, qp))
			add_hint(hints, qp);		/* no room: it leaves when the answer comes */
		return false;
	}
	if (!hints->ring.ctl || ring_idle(&hints->ring))
		return true;
	return !hint_pending(&hints->ring, qp) && (!add_hint(hints, qp) || ring_idle(&hints->ring));
}

/*
 * The kernel is not through with our sends, and the CPU it wants for the rest is the one we poll on: it shares that with us
 * by time slices, unless we go there.
 */
static bool send_cpu_is_ours(const struct ring *hints)
{
	uint32_t waits_on = __atomic_load_n(&hints->ctl->kernel.send_cpu_plus1, __ATOMIC_RELAXED);

	return waits_on && waits_on - 1 == (uint32_t)sched_getcpu();
}

/* Are there notices for which nobody has rung? One of many who poll is enough. */
static bool hints_unrung(struct roan_db_hints *hints)
{
	uint32_t tail;

	if (ring_drained(&hints->ring))
		return false;
	tail = ring_tail(&hints->ring);
	return __atomic_exchange_n(&hints->rung_index, tail, __ATOMIC_RELAXED) != tail;
}

bool roan_db_hints_flush(struct ibv_context *ctx)
{
	struct roan_db_hints *hints = &to_roan_context(ctx)->db_hints;

	if (!hints->ring.ctl || (!hints_unrung(hints) && !send_cpu_is_ours(&hints->ring)))
		return false;
	db_ioctl(ctx->cmd_fd, NULL);
	return true;
}
