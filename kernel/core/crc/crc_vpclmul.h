/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The CRC-32 of the ICRC by wide carry-less multiplication (VPCLMULQDQ), 256 or 512 bits at a time. Kernels before 6.15
 * have it 128 bits wide at most. It is for those who may use vector registers: whether and when is kernel/base/crc.c's to say.
 */
#ifndef ROAN_CRC_VPCLMUL_H
#define ROAN_CRC_VPCLMUL_H

#include "core/core_env.h"

#define ROAN_VPCLMUL_MIN	256	/* bytes; a message that is shorter cannot be folded */

/* sparse has no vectors. */
#if defined(__x86_64__) && !defined(__CHECKER__) && (defined(__clang__) || __GNUC__ >= 8)
#define ROAN_HAVE_VPCLMUL
#endif

/*
 * Takes @p into *@crc and copies it to @to, unless that is NULL: all but the last 15 bytes at most. How many that are.
 * @bits: 256 or 512, what is possible. @before: NULL, or 16 bytes that come before @p, and stand for *@crc too. Any alignment.
 */
size_t roan_crc32_vpclmul(u32 bits, u32 *crc, const u8 *before, void *to, const void *p, size_t len);

/*
 * The shell's, crc_fpu.c. Between begin, unless that is false, and end nothing may sleep; only there may
 * roan_crc32_vpclmul() be called.
 */
bool roan_crc_fpu_possible(u32 bits);	/* on this CPU */
bool roan_crc_fpu_begin(void);		/* false: not in this context */
void roan_crc_fpu_end(void);

#endif /* ROAN_CRC_VPCLMUL_H */
