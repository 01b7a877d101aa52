/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Everything the pure core (kernel/core/transport, kernel/core/cc) may see of the outside. Userspace builds put their own file of
 * this name first on the include path (selftests/unit/core_env.h), with the same guard; its size measures how pure the core is.
 */
#ifndef ROAN_CORE_ENV_H
#define ROAN_CORE_ENV_H

#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/bug.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include <linux/unaligned.h>

#include <rdma/roan-abi.h>

/* CRC-32 (IEEE, reflected) of @len bytes continued from @crc, without pre- or post-inversion. kernel/base/crc.c. */
u32 roan_crc32(u32 crc, const void *p, size_t len);

#endif /* ROAN_CORE_ENV_H */
