// SPDX-License-Identifier: GPL-2.0
/*
 * May core/crc/crc_vpclmul.c use the CPU's vector registers, now and at all? They belong to user programs and to whatever this
 * softirq interrupted, so each use is a section of its own.
 */
#include "core/crc/crc_vpclmul.h"

#ifdef ROAN_HAVE_VPCLMUL
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

/* User-Mode Linux is a process: its registers are the host's to keep, over signals too. */
static bool os_saves_xstate(u32 bits)
{
#ifdef CONFIG_UML
	return true;
#else
	return cpu_has_xfeatures(XFEATURE_MASK_YMM | (bits == 512 ? XFEATURE_MASK_AVX512 : 0), NULL);
#endif
}

/* Some CPUs slow down for a while when all 512 bits are used; kernels from 6.14 on know them. */
static bool prefers_256(void)
{
#ifdef X86_FEATURE_PREFER_YMM
	return boot_cpu_has(X86_FEATURE_PREFER_YMM);
#else
	return false;
#endif
}

bool roan_crc_fpu_possible(u32 bits)
{
	if (!boot_cpu_has(X86_FEATURE_VPCLMULQDQ) || !os_saves_xstate(bits))
		return false;
	return bits == 512 ? boot_cpu_has(X86_FEATURE_AVX512F) && !prefers_256() : boot_cpu_has(X86_FEATURE_AVX2);
}

bool roan_crc_fpu_begin(void)
{
	if (!irq_fpu_usable())
		return false;
	kernel_fpu_begin();
	return true;
}

void roan_crc_fpu_end(void)
{
	kernel_fpu_end();
}

#else

bool roan_crc_fpu_possible(u32 bits)
{
	return false;
}

bool roan_crc_fpu_begin(void)
{
	return false;
}

void roan_crc_fpu_end(void)
{
}

#endif /* ROAN_HAVE_VPCLMUL */
