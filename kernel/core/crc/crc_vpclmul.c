// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 by folding. The CRC of a message is its remainder modulo the polynomial P. So 128 bits that are followed by n
 * bits may be removed if their product with x^n mod P is added to the bits that follow. With a large n this keeps
 * several accumulators busy; with a small n it combines them into one; a division of the last 128 bits by P leaves the
 * CRC.
 *
 * The lowest bit of the first byte is the highest power of x. So 64 bits a and 64 bits b multiply to a * b * x in 128
 * bits, and each constant has one x less: for a distance of n bits, x^(n + 63) mod P for the first half of 128 bits
 * and x^(n - 1) mod P for the second. A remainder has 32 bits: the upper ones of each constant.
 */
#include "core/crc/crc_vpclmul.h"

#ifdef ROAN_HAVE_VPCLMUL

#define BY_128	0x65673b4600000000, 0x9ba54c6f00000000
#define BY_256	0x9570d49500000000, 0x01b5fd1d00000000
#define BY_384	0x69ccfc0d00000000, 0x2a28386200000000
#define BY_512	0x653d982200000000, 0xcad38e8f00000000
#define BY_2048	0x7cc8e1e700000000, 0x03f9f86300000000	/* 2048 bits: ROAN_VPCLMUL_MIN bytes */
#define BY_NONE	0, 0
#define BY_96	0xccaa009e00000000	/* for 64 bits: x^95 and x^63 mod P */
#define BY_64	0xb8bc676500000000
#define P	0x1db710641
#define X64_BY_P	0x1f7011641		/* the quotient of x^64 and P */

#ifdef __clang__
#define __builtin_ia32_vpclmulqdq_v4di	__builtin_ia32_pclmulqdq256
#define __builtin_ia32_vpclmulqdq_v8di	__builtin_ia32_pclmulqdq512
#endif

#define WIDTH		32
#define TARGET		__attribute__((target("avx2,vpclmulqdq")))
#define NAME(name)	name##_256
#define CLMUL		__builtin_ia32_vpclmulqdq_v4di
#define NEXT		BY_256, BY_256
#define FAR		BY_2048, BY_2048
#define LAST		BY_128, BY_NONE
#include "core/crc/crc_vpclmul_width.h"
#undef WIDTH
#undef TARGET
#undef NAME
#undef CLMUL
#undef NEXT
#undef FAR
#undef LAST

#define WIDTH		64
#define TARGET		__attribute__((target("avx512f,vpclmulqdq")))
#define NAME(name)	name##_512
#define CLMUL		__builtin_ia32_vpclmulqdq_v8di
#define NEXT		BY_512, BY_512, BY_512, BY_512
#define FAR		BY_2048, BY_2048, BY_2048, BY_2048
#define LAST		BY_384, BY_256, BY_128, BY_NONE
#include "core/crc/crc_vpclmul_width.h"

size_t roan_crc32_vpclmul(u32 bits, u32 *crc, const u8 *before, void *to, const void *p, size_t len)
{
	return bits == 512 ? fold_512(crc, before, to, p, len) : fold_256(crc, before, to, p, len);
}

#else

/* Not supported: roan_crc_fpu_possible() is always false. */
size_t roan_crc32_vpclmul(u32 bits, u32 *crc, const u8 *before, void *to, const void *p, size_t len)
{
	return 0;
}

#endif /* ROAN_HAVE_VPCLMUL */
