// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Decides when posting needs a doorbell, and rings it. The flags of the send ring and of the hint ring decide:
 *
 *  - The kernel is processing the send ring (no flag): no doorbell.
 *  - The kernel waits for an ACK (ACK_PENDING): no doorbell. Above notify_at the QP gets a doorbell hint.
 *  - The send ring is idle (NEED_DOORBELL) and the kernel batches doorbells of this context (the hint ring has no
 *    NEED_DOORBELL): a hint replaces the doorbell. The kernel reads the hints when its timer expires.
 *  - Otherwise: a doorbell.
 *
 * Before a program waits (empty poll, arming a CQ) one doorbell covers all hints, so a completion does not wait for the
 * timer. The same doorbell is rung when deferred sends wait for the CPU that the program polls on. Which sends the
 * kernel defers is not decided here (kernel/tx/).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "roan.h"

/*
 * The kernel sends, in this system call, for the QP of @handle (if not NULL) and for those in the hint ring. Errors are
 * ignored: the requests are in the rings, and completions and async events report a destroyed QP or removed device.
 * errno is preserved.
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
		memcpy(&attr->data, handle, sizeof(*handle));	/* the core takes up to 8 bytes inline */
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

/*
 * True if the hint ring still holds a hint for @qp. The ring may have wrapped since that hint, so the QPN is compared.
 */
static bool hint_pending(const struct ring *ring, const struct roan_qp *qp)
{
	return ring_has_index(ring, qp->hint_index) &&
	       __atomic_load_n(&hint_at(ring, qp->hint_index)->qpn, __ATOMIC_RELAXED) == qp->vqp.qp.qp_num;
}

/* sq.lock held. False: the hint ring is full. */
static bool add_hint(struct roan_db_hints *hints, struct roan_qp *qp)
{
	struct ring *ring = &hints->ring;
	uint32_t tail;
	bool has_space;

	roan_lock(&hints->lock);
	tail = ring->index;
	has_space = tail - ring_head(ring) <= ring->mask;
	if (has_space) {
		__atomic_store_n(&hint_at(ring, tail)->qpn, qp->vqp.qp.qp_num, __ATOMIC_RELAXED);
		qp->hint_index = tail;
		ring_post(ring, tail + 1);
	}
	roan_unlock(&hints->lock);
	return has_space;
}

/* True if the tail has reached notify_at, so that the posted requests justify a system call. The value may be stale. */
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
			add_hint(hints, qp);		/* ring full: sent when the ACK arrives */
		return false;
	}
	if (!hints->ring.ctl || ring_idle(&hints->ring))
		return true;
	return !hint_pending(&hints->ring, qp) && (!add_hint(hints, qp) || ring_idle(&hints->ring));
}

/*
 * True if deferred sends of this context wait for the CPU that this thread runs on. ksoftirqd shares that CPU with the
 * polling thread by time slices; a doorbell runs the sends in this thread's system call.
 */
static bool send_cpu_is_ours(const struct ring *hints)
{
	uint32_t waits_on = __atomic_load_n(&hints->ctl->kernel.send_cpu_plus1, __ATOMIC_RELAXED);

	return waits_on && waits_on - 1 == (uint32_t)sched_getcpu();
}

/* True if the hint ring has hints that no doorbell covers yet. Only one of several polling threads gets true. */
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
