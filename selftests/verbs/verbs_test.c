// SPDX-License-Identifier: GPL-2.0
/* The functions of verbs_test.h. They exit on errors that make a test impossible, and have no other verdict. */
#define _GNU_SOURCE
#include "verbs_test.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int nr_tests, nr_failed;

void vt_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("FAIL: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(VT_FAIL);
}

void vt_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("SKIP: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(VT_SKIP);
}

void vt_ok(bool ok, const char *fmt, ...)
{
	va_list ap;

	if (!nr_tests)
		puts("TAP version 13");
	nr_tests++;
	nr_failed += !ok;
	printf("%s %d - ", ok ? "ok" : "not ok", nr_tests);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void vt_ok_skip(const char *name, const char *why)
{
	vt_ok(true, "%s # SKIP %s", name, why);
}

int vt_done(void)
{
	printf("1..%d\n", nr_tests);
	return nr_failed ? VT_FAIL : VT_PASS;
}

uint64_t vt_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/* splitmix64: every bit of the result depends on every bit of @x. */
uint64_t vt_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint8_t pattern(uint64_t seed, size_t pos)
{
	return vt_mix(seed + pos / 8) >> (8 * (pos % 8));
}

void vt_fill(void *buf, size_t len, uint64_t seed, size_t pos)
{
	uint8_t *p = buf;
	size_t i = 0;

	while (i < len) {
		if ((pos + i) % 8 == 0 && len - i >= 8) {
			uint64_t w = htole64(vt_mix(seed + (pos + i) / 8));

			memcpy(p + i, &w, 8);
			i += 8;
		} else {
			p[i] = pattern(seed, pos + i);
			i++;
		}
	}
}

size_t vt_diff(const void *buf, size_t len, uint64_t seed, size_t pos)
{
	const uint8_t *p = buf;
	size_t i = 0;

	while (i < len) {
		if ((pos + i) % 8 == 0 && len - i >= 8) {
			uint64_t w = htole64(vt_mix(seed + (pos + i) / 8));

			if (!memcmp(p + i, &w, 8)) {
				i += 8;
				continue;
			}
		}
		if (p[i] != pattern(seed, pos + i))
			return i;
		i++;
	}
	return len;
}

static bool gid_is_v4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, 12);
}

/* A link-local GID needs the peer on the same link, and routing is not tested: use one only if requested. */
static void pick_gid(struct vt_dev *d, bool ipv6, int want)
{
	struct ibv_gid_entry e;
	int i;

	for (i = 0; i < d->port.gid_tbl_len; i++) {
		if (want >= 0 && i != want)
			continue;
		if (ibv_query_gid_ex(d->ctx, 1, i, &e, 0) || e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (want < 0 && (gid_is_v4(&e.gid) == ipv6 || (ipv6 && e.gid.raw[0] == 0xfe)))
			continue;
		d->gid = e.gid;
		d->gid_index = i;
		return;
	}
	vt_die("no RoCE v2 GID for %s", ipv6 ? "IPv6" : "IPv4");
}

static enum ibv_mtu mtu_enum(int bytes)
{
	int e;

	for (e = IBV_MTU_256; e <= IBV_MTU_4096; e++)
		if (128 << e == bytes)
			return e;
	vt_die("%d is not a path MTU", bytes);
}

void vt_open(struct vt_dev *d, const char *name, bool ipv6, int gid_index, int mtu_bytes)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	memset(d, 0, sizeof(*d));
	for (i = 0; list && list[i]; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name)) {
			d->ctx = ibv_open_device(list[i]);
			break;
		}
	if (!list || !list[i])
		vt_die("no device %s", name ? name : "at all");
	if (!d->ctx)
		vt_die("cannot open %s: %s", ibv_get_device_name(list[i]), strerror(errno));
	ibv_free_device_list(list);
	if (ibv_query_port(d->ctx, 1, &d->port) || ibv_query_device_ex(d->ctx, NULL, &d->attr))
		vt_die("cannot query %s", name);
	pick_gid(d, ipv6, gid_index);
	d->mtu = mtu_bytes ? mtu_enum(mtu_bytes) : d->port.active_mtu;
	d->pd = ibv_alloc_pd(d->ctx);
	if (!d->pd)
		vt_die("alloc_pd: %s", strerror(errno));
}

void vt_close(struct vt_dev *d)
{
	int err = ibv_dealloc_pd(d->pd);

	if (err)
		vt_die("dealloc_pd: %s (something still refers to it)", strerror(err));
	if (ibv_close_device(d->ctx))
		vt_die("close_device");
}

int vt_qp_init(struct ibv_qp *qp, const struct vt_conn *c)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = c->access, .qkey = VT_QKEY,
	};

	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (c->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static struct ibv_ah_attr ah_attr(struct vt_dev *d, const struct vt_addr *peer)
{
	struct ibv_ah_attr ah = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = peer->gid, .sgid_index = d->gid_index, .hop_limit = 64 },
	};

	return ah;
}

struct ibv_ah *vt_ah(struct vt_dev *d, const struct vt_addr *peer)
{
	struct ibv_ah_attr a = ah_attr(d, peer);

	return ibv_create_ah(d->pd, &a);
}

int vt_qp_connect(struct vt_dev *d, struct ibv_qp *qp, const struct vt_conn *c, const struct vt_addr *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = peer->mtu < d->mtu ? peer->mtu : d->mtu,
		.dest_qp_num = peer->qpn, .rq_psn = peer->psn, .max_dest_rd_atomic = 16,
		.min_rnr_timer = c->min_rnr_timer, .ah_attr = ah_attr(d, peer),
	};
	int mask = IBV_QP_STATE, err;

	if (c->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (c->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	err = ibv_modify_qp(qp, &a, mask);
	if (err)
		return err;

	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = c->psn;
	a.timeout = c->timeout;
	a.retry_cnt = c->retry;
	a.rnr_retry = c->rnr_retry;
	a.max_rd_atomic = 16;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (c->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &a, mask);
}

bool vt_grh_is(const uint8_t grh[40], const union ibv_gid *src, const union ibv_gid *dst)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *v4 = grh + 20;

	if (!memcmp(src->raw, mapped, 12))
		return v4[0] == 0x45 && v4[9] == IPPROTO_UDP && !memcmp(v4 + 12, src->raw + 12, 4) && !memcmp(v4 + 16, dst->raw + 12, 4);
	return grh[0] >> 4 == 6 && grh[6] == IPPROTO_UDP && !memcmp(grh + 8, src->raw, 16) && !memcmp(grh + 24, dst->raw, 16);
}

int vt_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	uint64_t now, last = vt_now_ms();
	unsigned int idle = 0;
	int n, left = ms;

	do {
		/* A guest may stand still for seconds, and then its other tasks need their time first. */
		now = vt_now_ms();
		left -= now - last < 10 ? now - last : 10;
		last = now;
		n = ibv_poll_cq(cq, 1, wc);
		if (n < 0)
			vt_die("poll_cq: %d", n);
		/* With one CPU the kernel needs it to make progress. Spin first: that is faster if a completion is near. */
		if (!n && ++idle > 50)
			usleep(100);
	} while (!n && left > 0);
	return n;
}

/* Before a connection: its segments pass also while a test lowers the MTU of an interface. */
static void limit_segments(int fd)
{
	int bytes = 1000;

	setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, sizeof(bytes));
}

/*
 * Nothing is delayed, and a peer that has been killed is noticed also if its one RST is lost, as where allocations fail
 * (TCPAbortFailed): the next probe gets another.
 */
static void set_options(int fd)
{
	int one = 1, idle = 5, interval = 1, probes = 100;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));		/* s */
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

int vt_listen_accept(int port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int one = 1, l = socket(AF_INET6, SOCK_STREAM, 0), fd;

	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	limit_segments(l);
	if (bind(l, (void *)&a, sizeof(a)) || listen(l, 1))
		vt_die("listen on %d: %s", port, strerror(errno));
	fd = accept(l, NULL, NULL);
	if (fd < 0)
		vt_die("accept: %s", strerror(errno));
	close(l);
	set_options(fd);
	return fd;
}

int vt_connect(const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	uint64_t end = vt_now_ms() + 60000;
	char svc[16];
	int fd;

	snprintf(svc, sizeof(svc), "%d", port);
	if (getaddrinfo(host, svc, &hints, &ai))
		vt_die("cannot resolve %s", host);
	do {
		fd = socket(ai->ai_family, SOCK_STREAM, 0);
		limit_segments(fd);
		if (!connect(fd, ai->ai_addr, ai->ai_addrlen)) {
			set_options(fd);
			freeaddrinfo(ai);
			return fd;
		}
		close(fd);
		usleep(50000);
	} while (vt_now_ms() < end);
	vt_die("no listener on %s:%d", host, port);
}

void vt_send(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		vt_die("side channel: the peer is gone");
}

void vt_recv(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)p + got, n - got);

		if (r <= 0)
			vt_die("side channel: the peer is gone");
		got += r;
	}
}

static int fail_nth_file(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		vt_die("fail-nth");
	return fd;
}

void vt_fail_nth(int n)
{
	char text[12];

	if (pwrite(fail_nth_file(), text, snprintf(text, sizeof(text), "%d", n), 0) < 0)
		vt_die("fail-nth");
}

int vt_fail_left(void)
{
	char text[12] = "";

	if (pread(fail_nth_file(), text, sizeof(text) - 1, 0) < 0)
		vt_die("fail-nth");
	return atoi(text);
}

long vt_number(const char *file, const char *word)
{
	char line[256];
	long found = -1;
	FILE *f = fopen(file, "r");

	while (f && found < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, word, strlen(word)))
			found = atol(line + strlen(word));
	if (f)
		fclose(f);
	return found;
}
