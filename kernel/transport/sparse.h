/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The CRC-32 of the ICRC without a table and without instructions of its own, for machines whose kernel has nothing
 * better: shifts and exclusive ors of 64-bit words. Whether it is the fastest way here is kernel/crc.c's to find out.
 */
#ifndef ROAN_SPARSE_H
#define ROAN_SPARSE_H

#include "host.h"

/*
 * The same as roan_crc32(). It calls that one for less than 80 bytes at a time, which must not come back here for so few.
 * Any alignment.
 */
u32 roan_crc32_sparse(u32 crc, const void *p, size_t len);

#endif /* ROAN_SPARSE_H */
