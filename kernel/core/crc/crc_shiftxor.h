/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The CRC-32 of the ICRC without a table and without instructions of its own, for machines whose kernel has nothing
 * better: shifts and exclusive ors of 64-bit words. Whether it is the fastest way here is kernel/base/crc.c's to find out.
 */
#ifndef ROAN_CRC_SHIFTXOR_H
#define ROAN_CRC_SHIFTXOR_H

#include "core/core_env.h"

/* The same as roan_crc32(), which is called for less than 80 bytes, and must not come back here for them. Any alignment. */
u32 roan_crc32_shiftxor(u32 crc, const void *p, size_t len);
/* Of what is copied: the source is read once. */
u32 roan_crc32_shiftxor_copy(u32 crc, void *to, const void *p, size_t len);

#endif /* ROAN_CRC_SHIFTXOR_H */
