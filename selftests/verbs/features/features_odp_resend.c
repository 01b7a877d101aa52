// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging: a READ waits for the page of its response, and other page faults of the QP begin and end meanwhile.
 * None of them makes it send the READ again.
 */
#include "features.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define WRITES	200
#define STEP	(256 << 10)	/* bytes: further than any prefetch */

static long resent_by(const struct vt_dev *d)
{
	char file[128];

	snprintf(file, sizeof(file), "/proc/1/root/sys/class/infiniband/%s/ports/1/hw_counters/resent_pkts",
		 ibv_get_device_name(d->ctx->device));
	usleep(20000);	/* the core caches counters for 10 ms */
	return vt_number(file, "");
}

static int post_read(struct pair *p, const struct absent *to)
{
	struct ibv_sge sge = { (uintptr_t)to->mem, 64, to->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p->buf, p->mr->rkey },
	};

	return post(p, 0, wr);
}

static enum ibv_wc_status write_back(struct pair *p, const struct absent *to, size_t off)
{
	struct ibv_sge sge = sge_at(p, 0, 8);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)to->mem + off, to->mr->rkey },
	};

	return post(p, 1, wr) ? NO_COMPLETION : status_of(p->scq[1], 5000);
}

/*
 * READs into @slow. Until that completes the peer WRITEs to pages of @cold, one after the other. Returns the number of
 * WRITEs; @read: status of the READ.
 */
static int writes_during_read(struct pair *p, const struct absent *slow, const struct absent *cold,
			      enum ibv_wc_status *read)
{
	int n = 0;

	if (post_read(p, slow))
		return -1;
	do {
		if (write_back(p, cold, (size_t)n * STEP))
			return -1;
		n++;
		*read = status_of(p->scq[0], 0);
	} while (*read == NO_COMPLETION && n < WRITES);
	if (*read == NO_COMPLETION)
		*read = status_of(p->scq[0], 5000);
	return n;
}

static void resend_once(struct vt_dev *d, int *writes, long *resent, enum ibv_wc_status *read)
{
	struct absent slow, cold;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	absent_map(&cold, (size_t)WRITES * STEP, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	madvise(cold.mem, cold.len, MADV_NOHUGEPAGE);	/* EINVAL: this kernel has none */
	if (!slow_open(&slow, d, slow_device) || !absent_register(&cold, d))
		vt_die("reg_mr");
	*resent = resent_by(d);
	*writes = writes_during_read(&p, &slow, &cold, read);
	*resent = resent_by(d) - *resent;
	pair_close(&p);
	absent_close(&slow);
	absent_close(&cold);
}

void test_odp_resend(struct vt_dev *d)
{
	enum ibv_wc_status read = NO_COMPLETION;
	int tries, writes = 0;
	long resent = 0;

	for (tries = 0; tries < 3 && writes >= 0 && writes < 16; tries++)	/* a guest may stand still meanwhile */
		resend_once(d, &writes, &resent, &read);
	vt_ok(writes >= 16 && read == IBV_WC_SUCCESS && resent < writes / 4,
	      "READ into a page that takes 500 ms, and %d WRITEs by the peer to pages not present: %ld packets sent again (%s)",
	      writes, resent, ibv_wc_status_str(read));
}
