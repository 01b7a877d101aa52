// SPDX-License-Identifier: GPL-2.0
/*
 * Allocation failures of `rdma link add` and `rdma link del`: each is repeated while one of its kernel allocations
 * fails. link_failure.sh configures the fault injection. A call that failed must leave nothing behind: the next one
 * uses the same name and netdev. kmemleak, and the unloading of the module, show the rest. Loading the module is not
 * repeated: load_module() and the trace events of Linux 6.12 warn when some of their own allocations fail.
 *
 *	link_failure NAME NETDEV [STEP [SEED]]
 *
 * `rdma link add` makes 16,000 allocations, and an attempt takes 0.3 s in uml-debug: all would take more than an hour.
 * Most of them are for the 3,072 files in sysfs of the GID table, between the first EDGE and the last EDGE allocations.
 * So the first FEW fail, some of which are roan's own, then each STEP-th at the edges, and each STEP * SPARSE-th
 * between them; SEED chooses the first one of these.
 */
#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "verbs_test.h"

#define EDGE	700
#define SPARSE	100
#define FEW	64

struct message {
	struct nlmsghdr hdr;
	char attrs[256];
};

static const char *name, *netdev;
static unsigned int step = 1, seed = 1;
static int netlink;

/* ---- netlink ---- */

static void put(struct message *m, int type, const void *data, int len)
{
	struct nlattr *at = (void *)((char *)m + NLMSG_ALIGN(m->hdr.nlmsg_len));

	at->nla_type = type;
	at->nla_len = NLA_HDRLEN + len;
	memcpy(at + 1, data, len);
	m->hdr.nlmsg_len = NLMSG_ALIGN(m->hdr.nlmsg_len) + NLA_ALIGN(at->nla_len);
}

/* The kernel runs the command inside send(). */
static int send_message(struct message *m, int cmd, int flags, int nth, int *left)
{
	int err;

	m->hdr.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd);
	m->hdr.nlmsg_flags = NLM_F_REQUEST | flags;
	vt_fail_nth(nth);
	err = send(netlink, m, m->hdr.nlmsg_len, 0) < 0 ? errno : 0;
	*left = vt_fail_left();
	vt_fail_nth(0);
	return err;
}

static int index_in(struct nlmsghdr *h)
{
	int len = h->nlmsg_len - NLMSG_HDRLEN, index = -1;
	struct nlattr *at = NLMSG_DATA(h);
	bool found = false;

	for (; len >= NLA_HDRLEN; len -= NLA_ALIGN(at->nla_len), at = (void *)((char *)at + NLA_ALIGN(at->nla_len))) {
		if (at->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
			memcpy(&index, at + 1, sizeof(index));
		else if (at->nla_type == RDMA_NLDEV_ATTR_DEV_NAME)
			found = !strcmp((char *)(at + 1), name);
	}
	return found ? index : -1;
}

/* Index of the device; -1: there is none. */
static int device_index(void)
{
	struct message m = { .hdr = { .nlmsg_len = NLMSG_HDRLEN } };
	static char buf[65536];
	struct nlmsghdr *h;
	int index = -1, n;

	if (send_message(&m, RDMA_NLDEV_CMD_GET, NLM_F_DUMP, 0, &n))
		vt_die("list of devices");
	while ((n = recv(netlink, buf, sizeof(buf), 0)) > 0) {
		for (h = (void *)buf; NLMSG_OK(h, (unsigned int)n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return index;
			if (index < 0)
				index = index_in(h);
		}
	}
	vt_die("list of devices: no end");
}

/* @acked: false if the kernel could not send its answer, and the command may have succeeded. */
static int command(struct message *m, int cmd, int nth, int *left, bool *acked)
{
	struct { struct nlmsghdr hdr; struct nlmsgerr err; char more[256]; } answer;
	int err = send_message(m, cmd, NLM_F_ACK, nth, left);

	*acked = err || recv(netlink, &answer, sizeof(answer), MSG_DONTWAIT) > 0;
	if (err)
		return err;
	return *acked ? -answer.err.error : errno;
}

static int add_device(int nth, int *left, bool *acked)
{
	struct message m = { .hdr = { .nlmsg_len = NLMSG_HDRLEN } };

	put(&m, RDMA_NLDEV_ATTR_DEV_NAME, name, strlen(name) + 1);
	put(&m, RDMA_NLDEV_ATTR_LINK_TYPE, "roan", sizeof("roan"));
	put(&m, RDMA_NLDEV_ATTR_NDEV_NAME, netdev, strlen(netdev) + 1);
	return command(&m, RDMA_NLDEV_CMD_NEWLINK, nth, left, acked);
}

static int delete_device(int nth, int *left, bool *acked)
{
	struct message m = { .hdr = { .nlmsg_len = NLMSG_HDRLEN } };
	int index = device_index();

	put(&m, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	return command(&m, RDMA_NLDEV_CMD_DELLINK, nth, left, acked);
}

/* ---- the two calls: each attempt leaves the state that it found, or exits. Returns 0 or an errno ---- */

/* If a client's add() fails, the RDMA core keeps the device without that client, and the call succeeds. */
static int add_once(int nth, int *left)
{
	bool acked;
	int err = add_device(nth, left, &acked), unused;

	if (acked && !err != (device_index() >= 0))
		vt_die("allocation %d: link add: %s, and the device is %sthere", nth, strerror(err), err ? "" : "not ");
	if (device_index() >= 0 && delete_device(0, &unused, &acked))
		vt_die("allocation %d: the device cannot be deleted", nth);
	return err;
}

static int delete_once(int nth, int *left)
{
	bool acked;
	int err, unused;

	if (add_device(0, &unused, &acked))
		vt_die("allocation %d: link add after link del", nth);
	err = delete_device(nth, left, &acked);
	if (acked && !err != (device_index() < 0))
		vt_die("allocation %d: link del: %s, and the device is %sthere", nth, strerror(err), err ? "not " : "");
	if (device_index() >= 0 && delete_device(0, &unused, &acked))
		vt_die("allocation %d: the device cannot be deleted", nth);
	return err;
}

static int after(int n, int total)
{
	int next = n + step * SPARSE, last_edge = total - EDGE;

	if (n < FEW || total <= FEW)
		return n + 1;
	if (n == FEW)
		return n + 1 + seed % step;
	if (n < EDGE || n >= last_edge)
		return n + step;
	return next < last_edge ? next : last_edge;
}

static void try(const char *what, int (*once)(int nth, int *left))
{
	int left, err = once(INT_MAX, &left), total = INT_MAX - left, n, attempts = 0, refused = 0;

	for (n = 1; !err && n <= total; n = after(n, total)) {
		refused += !!once(n, &left);
		attempts++;
	}
	if (!err)
		err = once(0, &left);
	vt_ok(!err && refused, "allocation failures: %s (%d of %d allocations failed, %d times the call; STEP=%u SEED=%u)",
	      what, attempts, total, refused, step, seed);
}

int main(int argc, char **argv)
{
	int unused;
	bool acked;

	if (argc < 3)
		vt_die("usage: link_failure NAME NETDEV [STEP [SEED]]");
	name = argv[1];
	netdev = argv[2];
	if (argc > 3 && atoi(argv[3]) > 0)
		step = atoi(argv[3]);
	if (argc > 4)
		seed = atoi(argv[4]);
	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (netlink < 0)
		vt_die("netlink");
	try("link add", add_once);
	try("link del", delete_once);
	if (add_device(0, &unused, &acked))
		vt_die("link add");
	return vt_done();
}
