// SPDX-License-Identifier: GPL-2.0
/*
 * How long CPU 0 keeps others waiting. One thread on CPU 1 pings an address whose packets CPU 0 receives (ICMP, so the
 * kernel answers in softirq); one thread on CPU 0 sleeps for a millisecond at a time and measures how late it runs.
 * Both are real-time threads: only softirqs and parts of the kernel that cannot be preempted delay them. Prints
 *
 *	ping <samples> <50 %> <99 %> <99.9 %> <longest>		microseconds
 *	timer <the same>
 */
#define _GNU_SOURCE
#include "softirq_time.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS		1000000u
#define MAX_SAMPLES	200000

struct samples {
	int n;
	uint32_t us[MAX_SAMPLES];
};

static struct samples pings, wakes;
static uint64_t end_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void add(struct samples *s, uint64_t ns)
{
	if (s->n < MAX_SAMPLES)
		s->us[s->n++] = ns / 1000;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *what, struct samples *s)
{
	if (!s->n)
		vt_die("%s: no sample", what);
	qsort(s->us, s->n, sizeof(s->us[0]), compare);
	printf("%s %d %u %u %u %u\n", what, s->n, s->us[s->n / 2], s->us[s->n * 99ll / 100], s->us[s->n * 999ll / 1000],
	       s->us[s->n - 1]);
}

static void real_time(int cpu)
{
	struct sched_param p = { .sched_priority = 50 };

	bind_to(cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &p))
		vt_die("SCHED_FIFO: %s", strerror(errno));
}

static void sleep_until(uint64_t at)
{
	struct timespec t = { .tv_sec = at / 1000000000u, .tv_nsec = at % 1000000000u };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *timer_thread(void *unused)
{
	uint64_t due;

	(void)unused;
	real_time(0);
	for (due = now_ns() + STEP_NS; due < end_ns; due = now_ns() + STEP_NS) {
		sleep_until(due);
		add(&wakes, now_ns() - due);
	}
	return NULL;
}

static uint16_t checksum(const void *p, size_t n)
{
	const uint16_t *w = p;
	uint32_t sum = 0;

	for (; n; n -= 2)
		sum += *w++;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Waits for the answer to echo request @seq. False: none within the socket's time-out. */
static bool answered(int fd, uint16_t id, uint16_t seq)
{
	uint8_t buf[256];
	ssize_t len;

	while ((len = recv(fd, buf, sizeof(buf), 0)) >= (ssize_t)(sizeof(struct iphdr) + sizeof(struct icmphdr))) {
		const struct icmphdr *icmp = (void *)(buf + (buf[0] & 15) * 4);

		if (icmp->type == ICMP_ECHOREPLY && icmp->un.echo.id == id && icmp->un.echo.sequence == seq)
			return true;
	}
	return false;
}

static void ping(const char *to)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct timeval limit = { .tv_sec = 20 };
	uint16_t id = htons(getpid() & 0xffff), seq = 0;
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	uint64_t due;

	if (fd < 0 || inet_pton(AF_INET, to, &addr.sin_addr) != 1 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		vt_die("socket: %s", strerror(errno));
	for (due = now_ns() + STEP_NS; due < end_ns; due = now_ns() + STEP_NS, seq++) {
		struct icmphdr req = { .type = ICMP_ECHO, .un.echo = { .id = id, .sequence = seq } };
		uint64_t sent;

		sleep_until(due);
		req.checksum = checksum(&req, sizeof(req));
		sent = now_ns();
		if (sendto(fd, &req, sizeof(req), 0, (void *)&addr, sizeof(addr)) != sizeof(req))
			vt_die("ping: %s", strerror(errno));
		answered(fd, id, seq);	/* one that is lost counts with the time waited for it */
		add(&pings, now_ns() - sent);
	}
	close(fd);
}

int watch(const struct options *opt)
{
	pthread_t timer;

	end_ns = now_ns() + opt->seconds * 1000000000ull;
	if (pthread_create(&timer, NULL, timer_thread, NULL))
		vt_die("no thread");
	real_time(1);
	ping(opt->to);
	pthread_join(timer, NULL);
	print("ping", &pings);
	print("timer", &wakes);
	return 0;
}
