// SPDX-License-Identifier: GPL-2.0
/*
 * What congestion control has for one QP: its paths and the state of its peer, which modify_qp() allocates for the
 * algorithm in effect, and two settings, the algorithm and the rate cap. A program sets the algorithm by a method of
 * the uverbs QP object. An administrator writes one line to one of two write-only files of the port:
 *
 *	ports/1/qp_algo		QPN NAME	`device`: the device's algorithm; `program`: its program chooses
 *	ports/1/qp_cap		QPN KBIT/S	0: none. The program's own rate limit cannot raise it
 *
 * The administrator's algorithm holds, and the method fails with EPERM, until the administrator writes `program`; then
 * the program's last choice is in effect again. With cc_param/program_algo 0 the method fails for each QP of the
 * device, and earlier choices have no effect. Settings last until the QP is destroyed. flow/qp_rate.c applies
 * them to packets.
 */
#include <rdma/ib_sysfs.h>
#include <rdma/uverbs_ioctl.h>
#define UVERBS_MODULE_NAME roan
#include <rdma/uverbs_named_ioctl.h>
#include "base/base.h"
#include "flow/flow.h"
#include "flow/qp_rate.h"
#include "tx/tx.h"
#include "verbs/verbs.h"

void roan_qp_free_paths(struct roan_paths *paths, struct roan_auto_paths *auto_paths)
{
	kfree(auto_paths ? auto_paths->memory : paths);
	kfree(auto_paths);
}

int roan_qp_find_peer(struct roan_qp *qp, const struct roan_av *av, struct roan_peer **peer)
{
	*peer = qp->ext_version ? roan_peer_get(qp->dev, av) : NULL;
	return qp->ext_version && !*peer ? -ENOMEM : 0;
}

int roan_qp_alloc_paths(struct roan_qp *qp)
{
	u32 n = qp->ext_version ? READ_ONCE(qp->dev->cc.params[roan_rate_algo(qp)].paths) : 1;
	struct roan_requester *req = &qp->sq.req;
	struct roan_auto_paths *auto_paths = NULL;
	struct roan_paths *paths = NULL;
	struct roan_peer *peer;

	if (roan_qp_find_peer(qp, roan_qp_av(qp), &peer))
		return -ENOMEM;
	if (n > 1)
		paths = roan_qp_zalloc(qp, roan_paths_size(n), GFP_KERNEL);
	else if (!n)
		auto_paths = roan_qp_zalloc(qp, sizeof(*auto_paths), GFP_KERNEL);
	if (n != 1 && !paths && !auto_paths) {
		roan_peer_put(peer);
		return -ENOMEM;
	}
	if (paths)
		paths->n = n;
	/* A QP that enters ERR meanwhile, without the mutex, flushes what its last connection left. */
	spin_lock_bh(&qp->sq.lock);
	swap(req->paths, paths);
	swap(req->auto_paths, auto_paths);
	swap(qp->peer, peer);
	req->min_rtt = qp->peer ? &qp->peer->min_rtt : NULL;
	spin_unlock_bh(&qp->sq.lock);
	roan_qp_free_paths(paths, auto_paths);
	roan_peer_put(peer);
	return 0;
}

void roan_qp_change_path(struct roan_qp *qp, struct roan_peer **peer)
{
	lockdep_assert_held(&qp->sq.lock);
	swap(qp->peer, *peer);
	roan_requester_change_path(&qp->sq.req, qp->peer ? &qp->peer->min_rtt : NULL);
	roan_rate_start(qp);
}

/* The value of qp->cc_override for @name, unpinned. -EINVAL: no such algorithm; -EOPNOTSUPP, -EPERM: not here. */
static int qp_cc_parse(const struct roan_qp *qp, const char *name)
{
	enum roan_cc_algo algo;

	if (!strcmp(name, "device"))
		return qp->ib.qp_type == IB_QPT_GSI ? -EPERM : 0;
	algo = roan_cc_find(name);
	if (algo == ROAN_CC_NUM_ALGOS)
		return -EINVAL;
	if (qp->ib.qp_type == IB_QPT_GSI)
		return -EPERM;
	if (roan_cc_flags(algo) & ROAN_CC_NEEDS_ACKS && qp->transport != ROAN_TP_RC)
		return -EOPNOTSUPP;
	return algo + 1;
}

/* A QP sends from RTR on (READ responses at first), so it changes at once. Otherwise RTR applies the settings. */
static int qp_cc_apply(struct roan_qp *qp)
{
	int err = roan_rate_prepare(qp, false);

	lockdep_assert_held(&qp->mutex);
	if (err)
		return err;
	spin_lock_bh(&qp->sq.lock);
	if (qp->state >= IB_QPS_RTR && qp->state <= IB_QPS_SQE)
		roan_rate_update_cfg(qp);
	spin_unlock_bh(&qp->sq.lock);
	roan_send(qp);		/* it may be blocked by a limit that is gone */
	return 0;
}

static int qp_cc_override(struct roan_qp *qp, u8 value)
{
	u8 was = qp->cc_override;
	int err;

	WRITE_ONCE(qp->cc_override, value);
	err = qp_cc_apply(qp);
	if (err)
		WRITE_ONCE(qp->cc_override, was);
	return err;
}

static int qp_cc_program_algo(struct roan_qp *qp, const char *name)
{
	int own = qp_cc_parse(qp, name);
	int err;

	if (own < 0)
		return own;
	mutex_lock(&qp->mutex);
	if (qp->cc_override & ROAN_CC_PINNED || !READ_ONCE(qp->dev->cc.program_algo))
		err = -EPERM;
	else
		err = qp_cc_override(qp, own);
	if (!err)
		qp->cc_program = own;
	mutex_unlock(&qp->mutex);
	return err;
}

static int qp_cc_admin_algo(struct roan_qp *qp, const char *name)
{
	bool lift = !strcmp(name, "program");
	int own = qp_cc_parse(qp, lift ? "device" : name);
	int err;

	if (own < 0)
		return own;
	mutex_lock(&qp->mutex);
	err = qp_cc_override(qp, lift ? qp->cc_program : own | ROAN_CC_PINNED);
	mutex_unlock(&qp->mutex);
	return err;
}

static int qp_cc_set_cap(struct roan_qp *qp, u32 kbps)
{
	u32 was = qp->admin_rate_cap;
	int err;

	if (qp->ib.qp_type == IB_QPT_GSI)
		return -EPERM;
	mutex_lock(&qp->mutex);
	WRITE_ONCE(qp->admin_rate_cap, kbps);
	err = qp_cc_apply(qp);
	if (err)
		WRITE_ONCE(qp->admin_rate_cap, was);
	mutex_unlock(&qp->mutex);
	return err;
}

/* ---- the program's method ---- */

static int UVERBS_HANDLER(ROAN_METHOD_QP_CC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_qp *ibqp = uverbs_attr_get_obj(attrs, ROAN_ATTR_QP_CC_HANDLE);
	struct roan_qp_cc cc;
	int err;

	if (IS_ERR(ibqp))
		return PTR_ERR(ibqp);
	err = uverbs_copy_from_or_zero(&cc, attrs, ROAN_ATTR_QP_CC_REQ);
	if (err)
		return err;
	if (strnlen(cc.algo, sizeof(cc.algo)) == sizeof(cc.algo))
		return -EINVAL;
	return qp_cc_program_algo(to_roan_qp(ibqp), cc.algo);
}

DECLARE_UVERBS_NAMED_METHOD(
	ROAN_METHOD_QP_CC,
	UVERBS_ATTR_IDR(ROAN_ATTR_QP_CC_HANDLE, UVERBS_OBJECT_QP, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(ROAN_ATTR_QP_CC_REQ, UVERBS_ATTR_STRUCT(struct roan_qp_cc, algo), UA_MANDATORY));

ADD_UVERBS_METHODS(roan_qp_cc_methods, UVERBS_OBJECT_QP, &UVERBS_METHOD(ROAN_METHOD_QP_CC));

const struct uapi_definition roan_qp_cc_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &roan_qp_cc_methods),
	{}
};

/* ---- the administrator's files ---- */

static struct roan_qp *qp_cc_find_qp(struct ib_device *ibdev, u32 qpn)
{
	struct roan_qp *qp = qpn == 1 ? roan_qp_find_gsi(to_roan_dev(ibdev)) : roan_qp_find(qpn);

	if (!qp || qp->dev == to_roan_dev(ibdev))
		return qp;
	roan_qp_put(qp);
	return NULL;
}

static ssize_t qp_algo_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, const char *buf,
			     size_t n)
{
	struct roan_qp *qp;
	char name[16];
	u32 qpn;
	int err;

	if (sscanf(buf, "%u %15s", &qpn, name) != 2)
		return -EINVAL;
	qp = qp_cc_find_qp(ibdev, qpn);
	if (!qp)
		return -ENOENT;
	err = qp_cc_admin_algo(qp, name);
	roan_qp_put(qp);
	return err ?: n;
}
static IB_PORT_ATTR_WO(qp_algo);

static ssize_t qp_cap_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr, const char *buf,
			    size_t n)
{
	struct roan_qp *qp;
	u32 qpn, kbps;
	int err, at;

	if (sscanf(buf, "%u %n", &qpn, &at) != 1)
		return -EINVAL;
	err = kstrtou32(buf + at, 0, &kbps);
	if (err)
		return err;
	qp = qp_cc_find_qp(ibdev, qpn);
	if (!qp)
		return -ENOENT;
	err = qp_cc_set_cap(qp, kbps);
	roan_qp_put(qp);
	return err ?: n;
}
static IB_PORT_ATTR_WO(qp_cap);

static struct attribute *attrs[] = { &ib_port_attr_qp_algo.attr, &ib_port_attr_qp_cap.attr, NULL };
const struct attribute_group roan_qp_cc_group = { .attrs = attrs };
