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
static void ring(int fd, const uint32_t *handle)
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
	ring(qp->vqp.qp.context->cmd_fd, &qp->vqp.qp.handle);
}

static struct roan_notice *notice_at(const struct ring *ring, uint32_t index)
{
	return ring_slot(ring, index);
}

/* @ring may have gone around any number of times since @qp gave its last notice. */
static bool noticed(const struct ring *ring, const struct roan_qp *qp)
{
	return ring_holds(ring, qp->notice) &&
	       __atomic_load_n(&notice_at(ring, qp->notice)->qpn, __ATOMIC_RELAXED) == qp->vqp.qp.qp_num;
}

/* False: no room. */
static bool give_notice(struct roan_notices *notices, struct roan_qp *qp)
{
	struct ring *ring = &notices->ring;
	uint32_t tail;
	bool room;

	roan_lock(&notices->lock);
	tail = ring->index;
	room = ring_room(ring, tail, ring->mask + 1);
	if (room) {
		__atomic_store_n(&notice_at(ring, tail)->qpn, qp->vqp.qp.qp_num, __ATOMIC_RELAXED);
		qp->notice = tail;
		ring_post(ring, tail + 1);
	}
	roan_unlock(&notices->lock);
	return room;
}

/* Enough that a system call is well spent on it, in proportion to what is under way already. A hint: it may be out of date. */
static bool worth_asking(const struct ring *sq)
{
	return (int32_t)(sq->index - __atomic_load_n(&sq->ctl->kernel.ask_at, __ATOMIC_RELAXED)) >= 0;
}

/* sq.lock held, after something was posted. */
bool roan_must_ring(struct roan_qp *qp)
{
	struct roan_notices *notices = &to_roan_context(qp->vqp.qp.context)->notices;
	uint32_t flags = ring_flags(&qp->sq.ring);

	if (!flags)
		return false;
	if (flags & ROAN_RING_ANSWER_DUE) {
		if (notices->ring.ctl && worth_asking(&qp->sq.ring) && !noticed(&notices->ring, qp))
			give_notice(notices, qp);	/* no room: it leaves when the answer comes */
		return false;
	}
	if (!notices->ring.ctl || ring_rests(&notices->ring))
		return true;
	return !noticed(&notices->ring, qp) && (!give_notice(notices, qp) || ring_rests(&notices->ring));
}

/*
 * The kernel is not through with our sends, and the CPU it wants for the rest is the one we poll on: it shares that with us
 * by time slices, unless we go there.
 */
static bool waits_for_us(const struct ring *notices)
{
	uint32_t waits_on = __atomic_load_n(&notices->ctl->kernel.waits_on, __ATOMIC_RELAXED);

	return waits_on && waits_on - 1 == (uint32_t)sched_getcpu();
}

/* Are there notices for which nobody has rung? One of many who poll is enough. */
static bool is_unheard(struct roan_notices *notices)
{
	uint32_t tail;

	if (ring_taken(&notices->ring))
		return false;
	tail = ring_tail(&notices->ring);
	return __atomic_exchange_n(&notices->rung, tail, __ATOMIC_RELAXED) != tail;
}

bool roan_ring_noticed(struct ibv_context *ctx)
{
	struct roan_notices *notices = &to_roan_context(ctx)->notices;

	if (!notices->ring.ctl || (!is_unheard(notices) && !waits_for_us(&notices->ring)))
		return false;
	ring(ctx->cmd_fd, NULL);
	return true;
}
