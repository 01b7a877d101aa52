// SPDX-License-Identifier: GPL-2.0
/*
 * A program of librpma, the library for remote persistent memory. The client writes the server's memory in pieces,
 * flushes each, reads it back and compares. At the end the server compares too.
 *	rpma ADDRESS		the server, which serves one client
 *	rpma ADDRESS client
 */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES	(4 << 20)
#define PORT	"7474"
#define WORD	BYTES	/* offset of the 8 bytes that an atomic write stores */
#define USAGE	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | \
		 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

static unsigned char *memory, *back;
static struct rpma_peer *peer;
static struct rpma_mr_local *mr, *back_mr;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(err));
	exit(1);
}

static unsigned char pattern(size_t i)
{
	return (i * 2654435761u) >> 13;
}

static void await(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;

	check(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event == wanted)
		return;
	fprintf(stderr, "event: %s\n", rpma_utils_conn_event_2str(event));
	exit(1);
}

static void completed(struct rpma_conn *conn, const char *what)
{
	struct ibv_wc wc;
	struct rpma_cq *cq;

	check(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
	check(rpma_cq_wait(cq), "rpma_cq_wait");
	check(rpma_cq_get_wc(cq, 1, &wc, NULL), "rpma_cq_get_wc");
	if (wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc.status));
	exit(1);
}

static void same(const unsigned char *bytes, size_t first, size_t n, const char *where)
{
	size_t i;

	for (i = first; i < first + n; i++) {
		if (bytes[i] == pattern(i))
			continue;
		fprintf(stderr, "%s: byte %zu is wrong\n", where, i);
		exit(1);
	}
}

static void serve(const char *address)
{
	char descriptor[256];
	struct rpma_conn_private_data data = { .ptr = descriptor };
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	size_t size;

	check(rpma_mr_get_descriptor_size(mr, &size), "rpma_mr_get_descriptor_size");
	check(rpma_mr_get_descriptor(mr, descriptor), "rpma_mr_get_descriptor");
	data.len = size;
	check(rpma_ep_listen(peer, address, PORT, &ep), "rpma_ep_listen");
	check(rpma_ep_next_conn_req(ep, NULL, &req), "rpma_ep_next_conn_req");
	check(rpma_conn_req_connect(&req, &data, &conn), "rpma_conn_req_connect");
	await(conn, RPMA_CONN_ESTABLISHED);
	await(conn, RPMA_CONN_CLOSED);
	same(memory, 0, BYTES, "the server's memory");
	if (memcmp(memory + WORD, "12345678", 8)) {
		fprintf(stderr, "the atomic write did not arrive\n");
		exit(1);
	}
	check(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	check(rpma_conn_delete(&conn), "rpma_conn_delete");
	check(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

static void use(const char *address)
{
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	size_t i, n, done;

	for (i = 0; i < BYTES; i++)
		memory[i] = pattern(i);
	check(rpma_conn_req_new(peer, address, PORT, NULL, &req), "rpma_conn_req_new");
	check(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
	await(conn, RPMA_CONN_ESTABLISHED);
	check(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
	check(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote), "rpma_mr_remote_from_descriptor");
	for (done = 0, n = 1; done < BYTES; done += n, n = n * 3 < BYTES - done ? n * 3 : BYTES - done) {
		check(rpma_write(conn, remote, done, mr, done, n, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
		check(rpma_flush(conn, remote, done, n, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_flush");
		completed(conn, "write and flush");
		check(rpma_read(conn, back_mr, done, remote, done, n, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_read");
		completed(conn, "read");
		same(back, done, n, "what the client read");
	}
	check(rpma_atomic_write(conn, remote, WORD, "12345678", RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_atomic_write");
	completed(conn, "atomic write");
	check(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
	check(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	await(conn, RPMA_CONN_CLOSED);
	check(rpma_conn_delete(&conn), "rpma_conn_delete");
}

int main(int argc, char **argv)
{
	struct ibv_context *device;

	if (argc < 2)
		return 2;
	check(rpma_utils_get_ibv_context(argv[1],
					 argc > 2 ? RPMA_UTIL_IBV_CONTEXT_REMOTE : RPMA_UTIL_IBV_CONTEXT_LOCAL, &device),
	      "rpma_utils_get_ibv_context");
	memory = aligned_alloc(4096, BYTES + 4096);
	back = aligned_alloc(4096, BYTES);
	memset(memory, 0, BYTES + 4096);
	check(rpma_peer_new(device, &peer), "rpma_peer_new");
	check(rpma_mr_reg(peer, memory, BYTES + 4096, USAGE, &mr), "rpma_mr_reg");
	check(rpma_mr_reg(peer, back, BYTES, USAGE, &back_mr), "rpma_mr_reg");
	if (argc > 2)
		use(argv[1]);
	else
		serve(argv[1]);
	check(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	check(rpma_mr_dereg(&back_mr), "rpma_mr_dereg");
	check(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
