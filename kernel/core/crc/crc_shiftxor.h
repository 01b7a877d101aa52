/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The CRC-32 of the ICRC by shifts and exclusive ors of 64-bit words: no table, no special instructions, for machines
 * whose kernel has nothing better. kernel/base/crc.c decides whether it is the fastest method.
 */
#ifndef ROAN_CRC_SHIFTXOR_H
#define ROAN_CRC_SHIFTXOR_H

#include "core/core_env.h"

/*
 * Same result as roan_crc32(), which it calls for pieces of less than 80 bytes: roan_crc32() must not call it for
 * these. Any alignment.
 */
u32 roan_crc32_shiftxor(u32 crc, const void *p, size_t len);
/* The same while copying @p to @to; reads the source once. */
u32 roan_crc32_shiftxor_copy(u32 crc, void *to, const void *p, size_t len);

#endif /* ROAN_CRC_SHIFTXOR_H */
