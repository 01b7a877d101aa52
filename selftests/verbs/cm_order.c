// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into both programs of a pair: rdma_connect() waits until the other program listens on that port. perftest
 * -R and qperf -cm let the client go on before the server has called rdma_listen(). Then the scheduler decides which
 * comes first: on one CPU every third connection is refused, and with rdma_rxe, too, if the server is delayed.
 *
 * A listener is a file named after its port in the folder CM_ORDER, which exists from listen to destroy. After ten
 * seconds without a listener the connection is tried all the same.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

static const struct rdma_cm_id *listener;
static char listener_file[256];

static void name_of(char *file, size_t size, __be16 port)
{
	snprintf(file, size, "%s/%u", getenv("CM_ORDER"), ntohs(port));
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int (*real)(struct rdma_cm_id *, int) = dlsym(RTLD_NEXT, "rdma_listen");
	int err = real(id, backlog);

	if (!err) {
		listener = id;
		name_of(listener_file, sizeof(listener_file), rdma_get_src_port(id));
		close(open(listener_file, O_CREAT | O_WRONLY, 0600));
	}
	return err;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int (*real)(struct rdma_cm_id *) = dlsym(RTLD_NEXT, "rdma_destroy_id");

	if (id == listener) {
		unlink(listener_file);
		listener = NULL;
	}
	return real(id);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*real)(struct rdma_cm_id *, struct rdma_conn_param *) = dlsym(RTLD_NEXT, "rdma_connect");
	char file[256];
	int i;

	name_of(file, sizeof(file), rdma_get_dst_port(id));
	for (i = 0; i < 1000 && access(file, F_OK); i++)
		usleep(10000);
	return real(id, param);
}
