// SPDX-License-Identifier: GPL-2.0
/*
 * Takes as much of something as it can, as a given user: attachments to multicast groups, address handles, memory
 * windows or completion counters. Prints how much it got and the error that ended it, then holds all of it until it is killed. Or sends
 * datagrams to a group and prints the time of each.
 *	user_share -d DEV [-u UID [-n | -c]] mcast FIRST-GROUP GROUPS QPS	each QP to each group, addresses in sequence
 *	user_share -d DEV [-u UID [-n | -c]] ah | mw | cntr COUNT		handles, windows, counters
 *	user_share -d DEV send GROUP COUNT RUNS				ns per datagram, the fastest of RUNS
 * -n: in a user namespace of UID, as an id that only this namespace has. -c: in one that root made, as for a container
 * whose root is UID on the host.
 */
#define _GNU_SOURCE
#include "verbs_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OTHER_ID	200000	/* of the namespace's ids; on the host it is nobody's */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		vt_die("%s: %s", path, strerror(errno));
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		vt_die("user %u: %s", uid, strerror(errno));
	prctl(PR_SET_DUMPABLE, 1);	/* /proc/self stays the process's own */
}

/* A namespace with two ids: 0 is @uid, and 1 is OTHER_ID. Only root can map the second one, as newuidmap(1) does. */
static void enter_namespace(uid_t uid, bool by_root)
{
	char path[64], map[64];
	int ready[2], go[2];
	pid_t child;
	char c = 0;

	if (pipe(ready) || pipe(go))
		vt_die("pipe");
	child = fork();
	if (child < 0)
		vt_die("fork");
	if (child) {
		int status;

		close(ready[1]);
		if (read(ready[0], &c, 1) == 1 && c) {
			snprintf(map, sizeof(map), "0 %u 1\n1 %u 1\n", uid, OTHER_ID);
			snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
			write_file(path, map);
			snprintf(path, sizeof(path), "/proc/%d/gid_map", child);
			write_file(path, map);
			if (write(go[1], "", 1) != 1)
				vt_die("pipe");
		}
		waitpid(child, &status, 0);
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : VT_FAIL);
	}
	if (!by_root)
		become(uid);
	if (unshare(CLONE_NEWUSER))
		vt_skip("no user namespaces: %s", strerror(errno));
	if (write(ready[1], "y", 1) != 1 || read(go[0], &c, 1) != 1)
		vt_die("pipe");
	become(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* a change of ids resets it */
}

/* ---- taking ---- */

static void report(long got, int err)
{
	printf("got %ld: %s\n", got, err ? strerror(err) : "all");
	fflush(stdout);
}

static union ibv_gid group_at(const union ibv_gid *first, int n)
{
	union ibv_gid gid = *first;
	uint32_t low;

	memcpy(&low, gid.raw + 12, 4);
	low = htonl(ntohl(low) + n);
	memcpy(gid.raw + 12, &low, 4);
	return gid;
}

static struct ibv_qp *ud_qp(struct vt_dev *d, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { 64, 1, 1, 1, 0 } };
	struct vt_conn c = { .type = IBV_QPT_UD };
	struct vt_addr nobody = { 0 };
	struct ibv_qp *qp = ibv_create_qp(d->pd, &a);

	if (!qp || vt_qp_init(qp, &c) || vt_qp_connect(d, qp, &c, &nobody))
		vt_die("UD QP: %s", strerror(errno));
	return qp;
}

static void take_groups(struct vt_dev *d, const union ibv_gid *first, int groups, int qps)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 64, NULL, NULL, 0);
	long got = 0;
	int q, g, err;

	if (!cq)
		vt_die("CQ: %s", strerror(errno));
	for (q = 0; q < qps; q++) {
		struct ibv_qp *qp = ud_qp(d, cq);

		for (g = 0; g < groups; g++, got++) {
			union ibv_gid gid = group_at(first, g);

			err = ibv_attach_mcast(qp, &gid, 0);
			if (err)
				return report(got, err);
		}
	}
	report(got, 0);
}

static void take_handles(struct vt_dev *d, int count)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1 };
	int got;

	attr.grh.sgid_index = d->gid_index;
	attr.grh.hop_limit = 64;
	inet_pton(AF_INET6, "::ffff:239.1.1.1", attr.grh.dgid.raw);	/* no neighbour to look up */
	for (got = 0; got < count; got++)
		if (!ibv_create_ah(d->pd, &attr))
			return report(got, errno);
	report(got, 0);
}

static void take_windows(struct vt_dev *d, int count)
{
	int got;

	for (got = 0; got < count; got++)
		if (!ibv_alloc_mw(d->pd, IBV_MW_TYPE_1))
			return report(got, errno);
	report(got, 0);
}

static void take_counters(struct vt_dev *d, int count)
{
#ifdef HAVE_ibv_create_comp_cntr
	struct ibv_comp_cntr_init_attr init = { .type = IBV_COMP_CNTR_TYPE_WRS };
	int got;

	for (got = 0; got < count; got++)
		if (!ibv_create_comp_cntr(d->ctx, &init))
			return report(got, errno);
	report(got, 0);
#else
	(void)d;
	vt_skip("%d completion counters: this rdma-core has none", count);
#endif
}

/* ---- sending ---- */

#define LEN	64
#define BATCH	16

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* A datagram is delivered by the softirq of the CPU that sends it, so the sender's time includes delivery. */
static void send_all(struct vt_dev *d, const union ibv_gid *group, int count, int runs)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 64, NULL, NULL, 0);
	struct vt_addr to = { .gid = *group };
	struct ibv_ah *ah = vt_ah(d, &to);
	struct ibv_qp *qp = ud_qp(d, cq);
	uint64_t best = ~0ull, began;
	uint8_t buf[LEN] = { 0 };
	struct ibv_mr *mr = ibv_reg_mr(d->pd, buf, LEN, 0);
	struct ibv_sge sge = { (uintptr_t)buf, LEN, mr ? mr->lkey : 0 };
	struct ibv_wc wc;
	int i, run;

	if (!ah || !mr)
		vt_die("objects: %s", strerror(errno));
	for (run = 0; run < runs; run++) {
		began = now_ns();
		for (i = 1; i <= count; i++) {
			struct ibv_send_wr wr = {
				.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				.send_flags = i % BATCH ? 0 : IBV_SEND_SIGNALED,
				.wr.ud = { ah, 0xffffff, VT_QKEY },
			}, *bad;

			if (ibv_post_send(qp, &wr, &bad) || (!(i % BATCH) && (!vt_poll(cq, &wc, 20000) || wc.status)))
				vt_die("send %d", i);
		}
		if (now_ns() - began < best)
			best = now_ns() - began;
	}
	printf("%llu\n", (unsigned long long)best / count);
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	bool namespace = false, container = false;
	union ibv_gid group;
	struct vt_dev d;
	uid_t uid = 0;
	int o;

	while ((o = getopt(argc, argv, "d:u:nc")) != -1) {
		switch (o) {
		case 'd': name = optarg; break;
		case 'u': uid = atoi(optarg); break;
		case 'n': namespace = true; break;
		case 'c': container = true; break;
		default: return 2;
		}
	}
	argv += optind;
	argc -= optind;
	if (argc < 2)
		return 2;
	if (uid && (namespace || container))
		enter_namespace(uid, container);
	else if (uid)
		become(uid);
	vt_open(&d, name, argc > 2 && strchr(argv[1], '.') == NULL, -1, 0);
	if (argc > 2 && inet_pton(AF_INET6, argv[1], group.raw) != 1)
		return 2;
	if (argc == 4 && !strcmp(argv[0], "send")) {
		send_all(&d, &group, atoi(argv[2]), atoi(argv[3]));
		return VT_PASS;
	}
	if (argc == 4 && !strcmp(argv[0], "mcast"))
		take_groups(&d, &group, atoi(argv[2]), atoi(argv[3]));
	else if (argc == 2 && !strcmp(argv[0], "ah"))
		take_handles(&d, atoi(argv[1]));
	else if (argc == 2 && !strcmp(argv[0], "mw"))
		take_windows(&d, atoi(argv[1]));
	else if (argc == 2 && !strcmp(argv[0], "cntr"))
		take_counters(&d, atoi(argv[1]));
	else
		return 2;
	pause();
	return VT_PASS;
}
