// SPDX-License-Identifier: GPL-2.0
/*
 * May core/crc/crc_vpclmul.c use the CPU's vector registers, now and at all? They belong to user programs and to whatever this
 * softirq interrupted, so each use is a section of its own.
 */
#include "core/crc/crc_vpclmul.h"

#ifdef ROAN_CAN_FOLD
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

/* User-Mode Linux is a process: its registers are the host's to keep, over signals too. */
static bool os_keeps(u32 bits)
{
#ifdef CONFIG_UML
	return true;
#else
	return cpu_has_xfeatures(XFEATURE_MASK_YMM | (bits == 512 ? XFEATURE_MASK_AVX512 : 0), NULL);
#endif
}

/* Some CPUs slow down for a while when all 512 bits are used; kernels from 6.14 on know them. */
static bool shuns_512(void)
{
#ifdef X86_FEATURE_PREFER_YMM
	return boot_cpu_has(X86_FEATURE_PREFER_YMM);
#else
	return false;
#endif
}

bool roan_fold_possible(u32 bits)
{
	if (!boot_cpu_has(X86_FEATURE_VPCLMULQDQ) || !os_keeps(bits))
		return false;
	return bits == 512 ? boot_cpu_has(X86_FEATURE_AVX512F) && !shuns_512() : boot_cpu_has(X86_FEATURE_AVX2);
}

bool roan_fold_begin(void)
{
	if (!irq_fpu_usable())
		return false;
	kernel_fpu_begin();
	return true;
}

void roan_fold_end(void)
{
	kernel_fpu_end();
}

#else

bool roan_fold_possible(u32 bits)
{
	return false;
}

bool roan_fold_begin(void)
{
	return false;
}

void roan_fold_end(void)
{
}

#endif /* ROAN_CAN_FOLD */
