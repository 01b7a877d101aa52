/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The CRC-32 of the ICRC by wide carry-less multiplication (VPCLMULQDQ), 256 or 512 bits at a time. Kernels before
 * 6.15 use 128 bits at most. It needs the vector registers; kernel/base/crc.c and crc_fpu.c decide whether and when it
 * is used.
 */
#ifndef ROAN_CRC_VPCLMUL_H
#define ROAN_CRC_VPCLMUL_H

#include "core/core_env.h"

#define ROAN_VPCLMUL_MIN	256	/* minimum bytes of a message to fold */

/* sparse (__CHECKER__) does not support vector types */
#if defined(__x86_64__) && !defined(__CHECKER__) && (defined(__clang__) || __GNUC__ >= 8)
#define ROAN_HAVE_VPCLMUL
#endif

/*
 * Extends *@crc over @p, and copies it to @to unless that is NULL. Leaves out at most the last 15 bytes; returns the
 * bytes processed. @bits: 256 or 512, supported by the CPU. @before: NULL, or 16 bytes that precede @p and replace
 * *@crc as input. Any alignment.
 */
size_t roan_crc32_vpclmul(u32 bits, u32 *crc, const u8 *before, void *to, const void *p, size_t len);

/*
 * In kernel/base/crc_fpu.c. Call roan_crc32_vpclmul() only between a successful roan_crc_fpu_begin() and
 * roan_crc_fpu_end(); do not sleep between them.
 */
bool roan_crc_fpu_possible(u32 bits);	/* true if this CPU supports @bits */
bool roan_crc_fpu_begin(void);		/* false: not allowed in this context */
void roan_crc_fpu_end(void);

#endif /* ROAN_CRC_VPCLMUL_H */
