// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The doorbell, and when to ring it. Mostly the ring's flags say; but while the kernel lingers (it will look by itself
 * after a while, because bells came in quick succession) the poster need not, and goes on posting. As soon as it has
 * nothing to do but wait, the pause is over: an empty poll, or asking for an event, rings for all that was posted since.
 */
#include <string.h>
#include <sys/ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "roan.h"

/*
 * The kernel looks at the QPs in our context. Its errors have no one to go to: the requests are in the rings, and a QP or
 * device that is gone is told by completions and events. So errno stays as it was, too.
 */
static void ring_handles(int fd, const uint32_t *handles, uint32_t n)
{
	union {
		struct ib_uverbs_ioctl_hdr hdr;
		uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + sizeof(struct ib_uverbs_attr)];
	} call = { .room = { 0 } };
	struct ib_uverbs_attr *attr = call.hdr.attrs;
	int saved = errno;

	call.hdr.length = sizeof(call);
	call.hdr.object_id = UVERBS_OBJECT_QP;
	call.hdr.method_id = ROAN_METHOD_QP_DOORBELL;
	call.hdr.num_attrs = 1;
	call.hdr.driver_id = ROAN_DRIVER_ID;
	attr->attr_id = ROAN_ATTR_QP_DOORBELL_HANDLES;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->len = n * sizeof(*handles);
	if (attr->len <= sizeof(attr->data))
		memcpy(&attr->data, handles, attr->len);	/* as the core wants what fits */
	else
		attr->data = (uintptr_t)handles;
	while (ioctl(fd, RDMA_VERBS_IOCTL, &call.hdr) && errno == EINTR)
		;
	errno = saved;
}

void roan_ring_doorbell(struct roan_qp *qp)
{
	ring_handles(qp->vqp.qp.context->cmd_fd, &qp->vqp.qp.handle, 1);
}

static void remove_at(struct roan_unrung *unrung, uint32_t i)
{
	unrung->qp[i] = unrung->qp[--unrung->n];
}

/* True: @qp will be rung for, if the kernel has not looked by then. @at: where it was put last. */
static bool remember(struct roan_cq *cq, struct roan_qp *qp, uint32_t *at)
{
	struct roan_unrung *unrung = &cq->unrung;
	bool known, room;

	roan_lock(&unrung->lock);
	known = *at < unrung->n && unrung->qp[*at] == qp;
	room = unrung->n < ROAN_UNRUNG;
	if (!known && room) {
		*at = unrung->n++;
		unrung->qp[*at] = qp;
	}
	roan_unlock(&unrung->lock);
	return known || room;
}

/* Its owner may wait for either queue. */
bool roan_must_ring(struct roan_qp *qp)
{
	struct roan_cq *scq = to_roan_cq(qp->vqp.qp.send_cq), *rcq = to_roan_cq(qp->vqp.qp.recv_cq);
	uint32_t rests = ring_rests(&qp->sq.ring);

	if (!rests || rests & ROAN_RING_NEED_DOORBELL)
		return rests;
	return !remember(scq, qp, &qp->noted_send) || (rcq != scq && !remember(rcq, qp, &qp->noted_recv));
}

/*
 * One call for all. Handles are taken out under the lock; if one of them is destroyed before the call, that fails, and the
 * kernel looks at the others when it is done lingering.
 */
bool roan_ring_unrung(struct roan_cq *cq)
{
	struct roan_unrung *unrung = &cq->unrung;
	uint32_t handle[ROAN_UNRUNG], n = 0;

	if (!__atomic_load_n(&unrung->n, __ATOMIC_RELAXED))
		return false;
	roan_lock(&unrung->lock);
	for (uint32_t i = 0; i < unrung->n; i++) {
		struct roan_qp *qp = unrung->qp[i];

		if (ring_rests(&qp->sq.ring) & ROAN_RING_LINGERS)
			handle[n++] = qp->vqp.qp.handle;
	}
	unrung->n = 0;
	roan_unlock(&unrung->lock);
	if (n)
		ring_handles(cq->vcq.cq.context->cmd_fd, handle, n);
	return n;
}

static void forget(struct roan_cq *cq, const struct roan_qp *qp)
{
	struct roan_unrung *unrung = &cq->unrung;

	roan_lock(&unrung->lock);
	for (uint32_t i = 0; i < unrung->n; i++)
		if (unrung->qp[i] == qp)
			remove_at(unrung, i--);
	roan_unlock(&unrung->lock);
}

void roan_bell_forget(struct roan_qp *qp)
{
	forget(to_roan_cq(qp->vqp.qp.send_cq), qp);
	forget(to_roan_cq(qp->vqp.qp.recv_cq), qp);
}
