// SPDX-License-Identifier: GPL-2.0
/*
 * roan_crc32() for userspace: one table, byte by byte, and simple on purpose. The fast kernel version is
 * kernel/base/crc.c.
 */
#include "core_env.h"

static u32 table[256];

static __attribute__((constructor)) void make_table(void)
{
	for (u32 i = 0; i < 256; i++) {
		u32 c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
		table[i] = c;
	}
}

u32 roan_crc32(u32 crc, const void *p, size_t len)
{
	const u8 *b = p;

	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *b++) & 0xff];
	return crc;
}

/* Userspace versions of kernel/base/crc_fpu.c, for core/crc/crc_vpclmul.c. No FPU section is needed. */
bool roan_crc_fpu_possible(u32 bits)
{
#ifdef __x86_64__
	if (!__builtin_cpu_supports("vpclmulqdq"))
		return false;
	return bits == 512 ? __builtin_cpu_supports("avx512f") : __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}

bool roan_crc_fpu_begin(void)
{
	return true;
}

void roan_crc_fpu_end(void)
{
}
