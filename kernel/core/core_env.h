/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All declarations from outside that the pure core (kernel/core) may use. Userspace builds put their own file of this
 * name first on the include path (selftests/unit/core_env.h), with the same include guard. The shorter this file, the
 * purer the core.
 */
#ifndef ROAN_CORE_ENV_H
#define ROAN_CORE_ENV_H

#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/bug.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include <linux/unaligned.h>

#include <rdma/roan-abi.h>

/*
 * CRC-32 (IEEE, reflected) of @len bytes, continued from @crc, without pre- or post-inversion. The kernel's is in
 * base/crc.c.
 */
u32 roan_crc32(u32 crc, const void *p, size_t len);

#endif /* ROAN_CORE_ENV_H */
