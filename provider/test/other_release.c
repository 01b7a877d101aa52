// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Preloaded into a program, it makes struct verbs_context one operation longer, as a later libibverbs would. The
 * provider was built without that operation. Run by check.sh.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <infiniband/verbs.h>

void *_verbs_init_and_alloc_context(struct ibv_device *dev, int fd, size_t size, struct verbs_context *offset, uint32_t id);

void *_verbs_init_and_alloc_context(struct ibv_device *dev, int fd, size_t size, struct verbs_context *offset, uint32_t id)
{
	typeof(_verbs_init_and_alloc_context) *real = dlsym(RTLD_NEXT, "_verbs_init_and_alloc_context");
	uint8_t *context = real(dev, fd, size, offset, id);

	if (context)
		((struct verbs_context *)(context + (uintptr_t)offset))->sz += sizeof(void *);
	return context;
}
