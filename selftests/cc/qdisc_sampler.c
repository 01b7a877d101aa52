// SPDX-License-Identifier: GPL-2.0
/*
 * qdisc_sampler: the depth of one qdisc over time, read by netlink at fixed times. It sleeps in between.
 *	qdisc_sampler IFACE HANDLE EVERY_US UNTIL_MS [EPOCH_NS]		HANDLE as tc writes it, e.g. 10:
 * Prints a line per sample: time in microseconds since EPOCH, bytes in the queue; then, counted from the beginning,
 * bytes that left, packets dropped, packets marked.
 */
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <linux/gen_stats.h>

struct sample {
	uint32_t backlog;
	uint64_t bytes;
	uint32_t drops;
	uint32_t marked;
};

static void die(const char *what)
{
	fprintf(stderr, "qdisc_sampler: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static const struct rtattr *find(const struct rtattr *rta, int len, unsigned short type)
{
	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len))
		if ((rta->rta_type & NLA_TYPE_MASK) == type)
			return rta;
	return NULL;
}

static void read_stats(const struct rtattr *stats, struct sample *s)
{
	const struct rtattr *first = RTA_DATA(stats), *a;
	int len = RTA_PAYLOAD(stats);
	struct gnet_stats_basic basic;
	struct gnet_stats_queue queue;
	struct tc_red_xstats red;

	memset(s, 0, sizeof(*s));
	a = find(first, len, TCA_STATS_BASIC);
	if (a) {
		memcpy(&basic, RTA_DATA(a), sizeof(basic));
		s->bytes = basic.bytes;
	}
	a = find(first, len, TCA_STATS_QUEUE);
	if (a) {
		memcpy(&queue, RTA_DATA(a), sizeof(queue));
		s->backlog = queue.backlog;
		s->drops = queue.drops;
	}
	a = find(first, len, TCA_STATS_APP);
	if (a && RTA_PAYLOAD(a) >= sizeof(red)) {
		memcpy(&red, RTA_DATA(a), sizeof(red));
		s->marked = red.marked;
	}
}

static void ask(int sock, int ifindex, uint32_t handle, struct sample *s)
{
	struct {
		struct nlmsghdr nlh;
		struct tcmsg tcm;
	} req = {
		.nlh = { .nlmsg_len = sizeof(req), .nlmsg_type = RTM_GETQDISC, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO },
		.tcm = { .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_handle = handle },
	};
	char buf[16384];
	struct nlmsghdr *nlh = (struct nlmsghdr *)buf;
	const struct rtattr *stats;
	ssize_t n;

	if (send(sock, &req, sizeof(req), 0) != sizeof(req))
		die("netlink");
	n = recv(sock, buf, sizeof(buf), 0);
	if (n < 0 || !NLMSG_OK(nlh, (size_t)n))
		die("netlink");
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(nlh))->error;
		die("no such qdisc");
	}
	stats = find((struct rtattr *)((char *)NLMSG_DATA(nlh) + NLMSG_ALIGN(sizeof(struct tcmsg))),
		     nlh->nlmsg_len - NLMSG_SPACE(sizeof(struct tcmsg)), TCA_STATS2);
	if (!stats)
		die("the kernel gives no statistics");
	read_stats(stats, s);
}

int main(int argc, char **argv)
{
	struct itimerspec its;
	struct sample s;
	uint64_t epoch, at, until, late;
	int sock, timer, ifindex;
	uint32_t handle;

	if (argc < 5) {
		fprintf(stderr, "qdisc_sampler IFACE HANDLE EVERY_US UNTIL_MS [EPOCH_NS]\n");
		return 2;
	}
	ifindex = if_nametoindex(argv[1]);
	handle = strtoul(argv[2], NULL, 16) << 16;
	its.it_interval = to_timespec(strtod(argv[3], NULL) * 1e3);
	epoch = argc > 5 ? strtoull(argv[5], NULL, 0) : now_ns();
	until = epoch + strtod(argv[4], NULL) * 1e6;
	its.it_value = to_timespec(epoch);
	if (!ifindex)
		die(argv[1]);
	sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	if (sock < 0 || timer < 0 || timerfd_settime(timer, TFD_TIMER_ABSTIME, &its, NULL))
		die("cannot begin");
	do {
		if (read(timer, &late, 8) != 8)
			die("timer");
		at = now_ns();
		ask(sock, ifindex, handle, &s);
		printf("%.3f,%u,%llu,%u,%u\n", (double)(int64_t)(at - epoch) / 1e3, s.backlog,
		       (unsigned long long)s.bytes, s.drops, s.marked);
	} while (at < until);
	return 0;
}
