// SPDX-License-Identifier: GPL-2.0
/*
 * DMA handles (ibv_alloc_dmah()): hints for the PCIe transactions of a device, such as the CPU whose cache should take
 * the data (TPH). They do not change what a region means. A CPU copies the data of this device and no PCIe transaction
 * is made, so the hints have no effect: a handle is accepted and not used.
 */
#include "verbs/verbs.h"

#ifdef HAVE_ALLOC_DMAH

/* The core has checked the hints: the CPU exists and the caller may run on it. */
static int alloc_dmah(struct ib_dmah *dmah, struct uverbs_attr_bundle *attrs)
{
	return 0;
}

/* The core has checked that no region uses it. */
static int dealloc_dmah(struct ib_dmah *dmah, struct uverbs_attr_bundle *attrs)
{
	return 0;
}

struct roan_dmah {
	struct ib_dmah ib;
};

const struct ib_device_ops roan_dmah_ops = {
	.alloc_dmah	= alloc_dmah,
	.dealloc_dmah	= dealloc_dmah,
	INIT_RDMA_OBJ_SIZE(ib_dmah, roan_dmah, ib),
};

#else

const struct ib_device_ops roan_dmah_ops = {};

#endif
