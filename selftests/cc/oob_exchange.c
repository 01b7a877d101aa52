// SPDX-License-Identifier: GPL-2.0
/* Exchange of addresses between a QP of this host and one of the peer: a fixed record over a TCP connection. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roandv.h"
#include "traffic.h"

#define FIRST_PSN	1000

struct record {		/* big endian */
	uint32_t qpn;
	uint32_t key;
	uint64_t addr;
	uint32_t size;
	uint32_t mtu;	/* enum ibv_mtu; the smaller one is used */
	uint8_t gid[16];
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("no RDMA device %s", name ?: "at all");
	ibv_free_device_list(list);
	return ctx;
}

/* Returns the first RoCE v2 GID of an IPv4 address, else the first RoCE v2 GID. */
static void find_gid(struct rig *rig, int entries)
{
	struct ibv_gid_entry e;
	bool found = false;
	int i;

	for (i = 0; i < entries; i++) {
		bool v4;

		if (ibv_query_gid_ex(rig->ctx, 1, i, &e, 0) || e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		v4 = !e.gid.global.subnet_prefix && (be64toh(e.gid.global.interface_id) >> 32) == 0xffff;
		if (found && !v4)
			continue;
		rig->gid = e.gid;
		rig->gid_index = i;
		found = true;
		if (v4)
			return;
	}
	if (!found)
		die("the device has no RoCE v2 address");
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu;

	for (mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		if (bytes == 128u << mtu)
			return mtu;
	die("a path MTU is 256, 512, 1024, 2048 or 4096, not %u", bytes);
}

void rig_open(struct rig *rig, const struct options *opt, uint32_t entries)
{
	struct ibv_port_attr port;

	memset(rig, 0, sizeof(*rig));
	rig->size = opt->size;
	rig->ctx = open_device(opt->dev);
	if (ibv_query_port(rig->ctx, 1, &port))
		die("query_port");
	rig->mtu = opt->mtu ? mtu_of(opt->mtu) : port.active_mtu;
	find_gid(rig, port.gid_tbl_len);
	rig->pd = ibv_alloc_pd(rig->ctx);
	rig->channel = ibv_create_comp_channel(rig->ctx);
	if (!rig->pd || !rig->channel)
		die("no protection domain or completion channel");
	rig->cq = ibv_create_cq(rig->ctx, entries, NULL, rig->channel, 0);
	if (!rig->cq)
		die("no completion queue of %u", entries);
	rig->buf = aligned_alloc(4096, (rig->size + 4095) & ~4095u);
	if (!rig->buf)
		die("no memory");
	memset(rig->buf, 0x5a, rig->size);
	rig->mr = ibv_reg_mr(rig->pd, rig->buf, rig->size,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!rig->mr)
		die("no memory region of %u bytes", rig->size);
}

void end_create(struct rig *rig, struct end *end, const struct options *opt)
{
	struct ibv_qp_init_attr init = {
		.send_cq = rig->cq, .recv_cq = rig->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = opt->depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	end->qp = ibv_create_qp(rig->pd, &init);
	if (!end->qp || ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("no queue pair");
	errno = opt->algo ? roandv_set_cc(end->qp, opt->algo) : 0;
	if (errno)
		die("no congestion control '%s'", opt->algo);
}

static void transfer(int sock, void *buf, size_t len, bool out)
{
	ssize_t n;

	for (; len; buf = (char *)buf + n, len -= n) {
		n = out ? send(sock, buf, len, MSG_NOSIGNAL) : recv(sock, buf, len, 0);
		if (n <= 0)
			die("the peer closed the connection");
	}
}

static void cap(struct ibv_qp *qp, uint32_t mbps)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = mbps * 1000 };

	if (mbps && ibv_modify_qp_rate_limit(qp, &limit))
		die("no cap of %u Mb/s", mbps);
}

static void to_ready(struct end *end, struct rig *rig, const struct record *peer, const struct options *opt)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = ntohl(peer->mtu) < rig->mtu ? ntohl(peer->mtu) : rig->mtu,
		.dest_qp_num = ntohl(peer->qpn), .rq_psn = FIRST_PSN, .max_dest_rd_atomic = 16, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = rig->gid_index, .hop_limit = 64 } },
	};

	memcpy(&attr.ah_attr.grh.dgid, peer->gid, 16);
	if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("the queue pair does not become ready to receive");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS, .sq_psn = FIRST_PSN, .timeout = opt->timeout, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 16,
	};
	if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("the queue pair does not become ready to send");
	cap(end->qp, opt->cap_mbps);
}

void end_meet(struct rig *rig, struct end *end, const struct options *opt)
{
	struct record mine = {
		.qpn = htonl(end->qp->qp_num), .key = htonl(rig->mr->rkey), .addr = htobe64((uintptr_t)rig->buf),
		.size = htonl(rig->size), .mtu = htonl(rig->mtu),
	}, peer;
	char ready = 1;

	memcpy(mine.gid, &rig->gid, 16);
	transfer(end->sock, &mine, sizeof(mine), true);
	transfer(end->sock, &peer, sizeof(peer), false);
	if (ntohl(peer.size) < rig->size && opt->peer)
		die("the server's buffer has %u bytes only: give it -s too", ntohl(peer.size));
	to_ready(end, rig, &peer, opt);
	end->peer_addr = be64toh(peer.addr);
	end->peer_key = ntohl(peer.key);
	transfer(end->sock, &ready, 1, true);	/* neither sends before both can receive */
	transfer(end->sock, &ready, 1, false);
}

int listen_on(uint16_t port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	int sock = socket(AF_INET6, SOCK_STREAM, 0), one = 1;
	bool v6 = sock >= 0;

	if (!v6)
		sock = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(sock, v6 ? (void *)&any : (void *)&any4, v6 ? sizeof(any) : sizeof(any4)) || listen(sock, 1024))
		die("cannot listen on port %u", port);
	return sock;
}

int connect_to(const char *peer, uint16_t port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	char service[8];
	int sock;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(peer, service, &hints, &ai))
		die("%s is not an address", peer);
	sock = socket(ai->ai_family, SOCK_STREAM, 0);
	if (sock < 0 || connect(sock, ai->ai_addr, ai->ai_addrlen))
		die("cannot connect to %s port %u", peer, port);
	freeaddrinfo(ai);
	return sock;
}
