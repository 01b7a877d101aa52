// SPDX-License-Identifier: GPL-2.0
/*
 * traffic: flows of RDMA WRITE or READ messages (or TCP, for comparison) between two hosts, and their goodput over
 * time. It sleeps when idle: completion channels and timers, no polling, so it also works in virtual time. This file
 * has the options and the server.
 *
 *	traffic [-d DEV] [-p PORT] [-s BYTES] [-k N]		serves; exits after N flows have ended
 *	traffic [-d DEV] [-p PORT] [OPTIONS] ADDRESS		sends to a server
 *
 * A client prints one line per flow at the end, and with -o a series: time in microseconds, then bytes per flow
 * acknowledged since the line before.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "traffic.h"

#define MAX_FLOWS	1024

static const char usage[] =
	"traffic [-d DEV] [-p PORT] [-s BYTES] [-k N]        serve; leave after N flows have come and gone\n"
	"traffic [-d DEV] [-p PORT] [OPTIONS] ADDRESS        send to a server\n"
	"  -n FLOWS (1)    -s BYTES of a message (65536)    -q messages under way per flow (16)\n"
	"  -a START_MS (0) -g GAP_MS between starts (0)     -z STOP_MS (1000), all counted from\n"
	"  -e EPOCH_NS     a time of CLOCK_MONOTONIC (now)  -i sample every US (1000)   -o CSV\n"
	"  -m path MTU     -w local ACK timeout, 4.096 us * 2^w (14)\n"
	"  -c ALGO         congestion control of these flows, whatever the device's\n"
	"  -r MBPS         most that a flow sends, whatever congestion control says\n"
	"  -R read instead of write                         -X in turn with it\n"
	"  -T TCP instead of RDMA\n";

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("traffic: ", stderr);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, " (%s)\n", strerror(errno));
	va_end(ap);
	exit(1);
}

void watch(int epoll, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event ev = { .events = events, .data.u64 = tag };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		die("cannot watch a descriptor");
}

void latency_add(struct latency *lat, uint64_t ns)
{
	uint32_t shift = 0;

	while (ns >> shift >= 2 * LAT_SUB)
		shift++;
	/* Below 2 * LAT_SUB every value has a bucket; above, each power of two has LAT_SUB. */
	lat->bucket[shift * LAT_SUB + (ns >> shift)]++;
	lat->count++;
	if (ns > lat->max)
		lat->max = ns;
}

double latency_us(const struct latency *lat, double quantile)
{
	uint64_t want = lat->count * quantile, seen = 0;
	uint32_t i, shift;

	for (i = 0; i < sizeof(lat->bucket) / sizeof(*lat->bucket); i++) {
		seen += lat->bucket[i];
		if (seen > want) {
			shift = i < 2 * LAT_SUB ? 0 : i / LAT_SUB - 1;
			return ((uint64_t)(i - shift * LAT_SUB) << shift) / 1e3;
		}
	}
	return lat->max / 1e3;
}

/* ---- the server: one connection is one flow, alive while its socket is open ---- */

enum { TAG_LISTEN = MAX_FLOWS };

static void accept_flow(int listener, int epoll, struct end *end, uint32_t i, struct rig *rig, const struct options *opt)
{
	end->sock = accept(listener, NULL, NULL);
	if (end->sock < 0)
		die("accept");
	if (!opt->tcp) {
		end_create(rig, end, opt);
		end_meet(rig, end, opt);
	}
	watch(epoll, end->sock, EPOLLIN, i);
}

/* Reads available bytes. False: the peer has closed the connection. */
static bool drain(int sock)
{
	static char sink[1 << 18];
	ssize_t n;

	do
		n = recv(sock, sink, sizeof(sink), MSG_DONTWAIT);
	while (n > 0);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static int run_server(const struct options *opt)
{
	static struct end ends[MAX_FLOWS];
	int listener = listen_on(opt->port), epoll = epoll_create1(0);
	uint32_t n = 0, gone = 0;
	struct epoll_event ev;
	struct rig rig;

	if (!opt->tcp)
		rig_open(&rig, opt, 16);
	watch(epoll, listener, EPOLLIN, TAG_LISTEN);
	while (!opt->expect || gone < opt->expect) {
		if (epoll_wait(epoll, &ev, 1, -1) != 1)
			continue;
		if (ev.data.u64 == TAG_LISTEN) {
			if (n == MAX_FLOWS)
				die("too many flows");
			accept_flow(listener, epoll, &ends[n], n, &rig, opt);
			n++;
		} else if (!drain(ends[ev.data.u64].sock)) {
			close(ends[ev.data.u64].sock);
			if (ends[ev.data.u64].qp)
				ibv_destroy_qp(ends[ev.data.u64].qp);
			gone++;
		}
	}
	return 0;
}

static uint64_t ms(const char *s)
{
	return strtod(s, NULL) * 1e6;
}

int main(int argc, char **argv)
{
	struct options opt = {
		.port = 18600, .flows = 1, .size = 65536, .depth = 16, .timeout = 14,
		.stop_ns = 1000000000, .sample_ns = 1000000,
	};
	int c;

	while ((c = getopt(argc, argv, "d:p:n:s:q:m:w:e:a:g:z:i:o:k:c:r:RXT")) != -1) {
		switch (c) {
		case 'd': opt.dev = optarg; break;
		case 'p': opt.port = atoi(optarg); break;
		case 'n': opt.flows = atoi(optarg); break;
		case 's': opt.size = strtoul(optarg, NULL, 0); break;
		case 'q': opt.depth = atoi(optarg); break;
		case 'm': opt.mtu = atoi(optarg); break;
		case 'w': opt.timeout = atoi(optarg); break;
		case 'e': opt.epoch_ns = strtoull(optarg, NULL, 0); break;
		case 'a': opt.start_ns = ms(optarg); break;
		case 'g': opt.gap_ns = ms(optarg); break;
		case 'z': opt.stop_ns = ms(optarg); break;
		case 'i': opt.sample_ns = strtod(optarg, NULL) * 1e3; break;
		case 'o': opt.csv = optarg; break;
		case 'k': opt.expect = atoi(optarg); break;
		case 'c': opt.algo = optarg; break;
		case 'r': opt.cap_mbps = atoi(optarg); break;
		case 'R': opt.read = true; break;
		case 'X': opt.mixed = true; break;
		case 'T': opt.tcp = true; break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	opt.peer = argv[optind];
	if (!opt.flows || opt.flows > MAX_FLOWS || !opt.depth || !opt.size || !opt.sample_ns ||
	    (optind < argc && optind + 1 != argc)) {
		fputs(usage, stderr);
		return 2;
	}
	if (!opt.epoch_ns)
		opt.epoch_ns = now_ns();
	return opt.peer ? run_client(&opt) : run_server(&opt);
}
