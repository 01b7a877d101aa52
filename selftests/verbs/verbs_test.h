/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions shared by the C tests of this folder: a device with its objects, a TCP side channel, bytes derived from a
 * seed, and KTAP lines. It uses the public verbs API only and nothing of roan, so the tests can judge any device.
 */
#ifndef VT_H
#define VT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VT_PASS	0
#define VT_FAIL	1
#define VT_SKIP	4	/* kselftest's code */

struct vt_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;	/* path MTU to use */
};

/* Address of a QP, as sent over the side channel between two hosts of the same byte order. */
struct vt_addr {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint32_t mtu;		/* enum ibv_mtu of the sender's port; the smaller one is used */
	uint32_t pad;
};

/* Opens @name, port 1, with the first RoCE v2 GID of the requested family. Exits with VT_FAIL or VT_SKIP on failure. */
void vt_open(struct vt_dev *d, const char *name, bool ipv6, int gid_index, int mtu_bytes);
void vt_close(struct vt_dev *d);

/* INIT -> RTR -> RTS towards @peer. Returns 0 or the errno of the step that failed. */
struct vt_conn {
	enum ibv_qp_type type;
	unsigned int access;	/* ibv_access_flags of the QP */
	uint32_t psn;		/* our first PSN */
	uint8_t timeout;	/* local ACK timeout exponent */
	uint8_t retry;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
};

#define VT_QKEY	0x11111111u

int vt_qp_init(struct ibv_qp *qp, const struct vt_conn *c);
int vt_qp_connect(struct vt_dev *d, struct ibv_qp *qp, const struct vt_conn *c, const struct vt_addr *peer);
struct ibv_ah *vt_ah(struct vt_dev *d, const struct vt_addr *peer);

/* Bytes: position @pos of stream @seed, any start, any length. */
uint64_t vt_mix(uint64_t x);
void vt_fill(void *buf, size_t len, uint64_t seed, size_t pos);
/* Returns the first position that differs, or @len. */
size_t vt_diff(const void *buf, size_t len, uint64_t seed, size_t pos);

/* True if the 40 bytes before a datagram are its IP header: of UDP, from @src to @dst. IPv4: the last 20 bytes. */
bool vt_grh_is(const uint8_t grh[40], const union ibv_gid *src, const union ibv_gid *dst);

/* Polls @cq until a completion arrives or @ms have passed. Returns 1 or 0; exits on a poll error. */
int vt_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms);

uint64_t vt_now_ms(void);

/*
 * Fault injection (/proc/thread-self/fail-nth): the calling thread's @n-th kernel allocation from now on fails; 0: none.
 * vt_fail_left() returns how many more allocations it takes; 0: the failure has happened.
 */
void vt_fail_nth(int n);
int vt_fail_left(void);

/* Returns the number after @word, at the start of a line of a file of /proc or of a cgroup; -1 if there is none. */
long vt_number(const char *file, const char *word);

/* Side channel. Both functions exit with VT_FAIL when the peer has closed it. */
int vt_listen_accept(int port);
int vt_connect(const char *host, int port);
void vt_send(int fd, const void *p, size_t n);
void vt_recv(int fd, void *p, size_t n);

void vt_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void vt_skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* KTAP. */
void vt_ok(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void vt_ok_skip(const char *name, const char *why);
int vt_done(void);	/* prints the plan; returns the exit code */

#endif
