// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory by itself: how much there is, that nobody sees what another had, that copies stay inside, and that a
 * region is refused what verbs refuse. No packet is sent.
 *   dm -d DEV -l LIMIT		the most bytes that can be had at all
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "../verbs/vt.h"

#define LEN	(40 * 1024)

static struct vt_dev dev;
static uint8_t bytes[LEN], back[LEN];

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	errno = 0;
	return ibv_alloc_dm(dev.ctx, &attr);
}

static void is_clean(void)
{
	static const uint8_t none[LEN];
	struct ibv_dm *dm[2] = { alloc(LEN), alloc(LEN) };
	int i;

	vt_ok(dm[0] && dm[1], "two of %d bytes: %s", LEN, strerror(errno));
	for (i = 0; i < 2; i++) {
		vt_fill(bytes, LEN, i + 1, 0);
		vt_ok(!ibv_memcpy_to_dm(dm[i], 0, bytes, LEN), "%d is written", i);
	}
	for (i = 0; i < 2; i++)
		vt_ok(!ibv_memcpy_from_dm(back, dm[i], 0, LEN) && vt_diff(back, LEN, i + 1, 0) == LEN, "%d has its own bytes", i);
	ibv_free_dm(dm[0]);
	dm[0] = alloc(LEN);
	vt_ok(dm[0] && !ibv_memcpy_from_dm(back, dm[0], 0, LEN) && !memcmp(back, none, LEN), "what is had anew is zero");
	vt_ok(!ibv_memcpy_from_dm(back, dm[1], 0, LEN) && vt_diff(back, LEN, 2, 0) == LEN, "its neighbour is as it was");
	ibv_free_dm(dm[0]);
	ibv_free_dm(dm[1]);
}

static void stays_inside(void)
{
	struct ibv_dm *dm = alloc(LEN);
	struct ibv_mr *mr;

	vt_ok(ibv_memcpy_to_dm(dm, LEN - 4, bytes, 8) == EINVAL, "a copy past the end");
	vt_ok(ibv_memcpy_from_dm(back, dm, -8ull, 16) == EINVAL, "a copy from before the beginning");
	vt_ok(ibv_memcpy_from_dm(back, dm, 2, 4) == EINVAL, "a copy that is no words");
	vt_ok(!ibv_reg_dm_mr(dev.pd, dm, 4096, LEN - 4095, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE), "a region past the end");
	mr = ibv_reg_dm_mr(dev.pd, dm, 4096, LEN - 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	vt_ok(mr && ibv_free_dm(dm) == EBUSY, "it is not freed under a region");
	vt_ok(mr && !ibv_dereg_mr(mr) && !ibv_free_dm(dm), "and is without");
}

int main(int argc, char **argv)
{
	size_t limit = 64 << 20;
	struct ibv_dm *dm;
	int o;

	while ((o = getopt(argc, argv, "d:l:")) != -1) {
		switch (o) {
		case 'd': vt_open(&dev, optarg, false, -1, 0); break;
		case 'l': limit = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (!dev.ctx)
		return 2;
	is_clean();
	stays_inside();
	vt_ok(!alloc(limit + 1) && errno == ENOMEM, "more than there is: %s", strerror(errno));
	dm = alloc(limit);
	vt_ok(!!dm, "all of it: %s", strerror(errno));
	if (dm)
		ibv_free_dm(dm);
	vt_close(&dev);
	return vt_done();
}
