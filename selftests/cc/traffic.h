/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of the traffic program: options, connection of two ends, statistics. */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct options {
	const char *dev;	/* RDMA device; NULL: the first */
	const char *peer;	/* client: address of the server */
	const char *csv;	/* client: file of the series; NULL: none */
	uint16_t port;
	const char *algo;	/* congestion control of the queue pairs; NULL: the device's */
	bool tcp;		/* plain sockets instead of verbs */
	bool read;		/* RDMA READ instead of WRITE */
	bool mixed;		/* every other message is a READ */
	uint32_t flows;
	uint32_t size;		/* bytes of a message */
	uint32_t depth;		/* messages outstanding per flow */
	uint32_t mtu;		/* path MTU; 0: the port's */
	uint32_t cap_mbps;	/* rate limit of a QP; 0: none */
	uint32_t timeout;	/* local ACK timeout, as verbs count it */
	uint64_t epoch_ns;	/* CLOCK_MONOTONIC; the times below count from here */
	uint64_t start_ns;
	uint64_t gap_ns;	/* between the starts of two flows */
	uint64_t stop_ns;
	uint64_t sample_ns;
	uint32_t expect;	/* server: connections to serve before it exits; 0: no limit */
};

/* ---- oob_exchange.c: connection of two QPs ---- */

struct end {
	struct ibv_qp *qp;
	int sock;		/* to the peer, open as long as the flow */
	uint64_t peer_addr;
	uint32_t peer_key;
};

struct rig {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf;
	uint32_t size;
	enum ibv_mtu mtu;
	int gid_index;
	union ibv_gid gid;
};

void rig_open(struct rig *rig, const struct options *opt, uint32_t entries);
void end_create(struct rig *rig, struct end *end, const struct options *opt);
void end_meet(struct rig *rig, struct end *end, const struct options *opt);	/* over end->sock; both sides call it */
int listen_on(uint16_t port);
int connect_to(const char *peer, uint16_t port);

/* ---- flows.c: the client ---- */

int run_client(const struct options *opt);

/* ---- helpers ---- */

uint64_t now_ns(void);
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void watch(int epoll, int fd, uint32_t events, uint64_t tag);

/* Latencies, in buckets 1/64 apart. */
#define LAT_SUB	64
struct latency {
	uint64_t count;
	uint64_t max;
	uint32_t bucket[LAT_SUB * 48];
};
void latency_add(struct latency *lat, uint64_t ns);
double latency_us(const struct latency *lat, double quantile);

#endif /* TRAFFIC_H */
