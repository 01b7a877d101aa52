// SPDX-License-Identifier: GPL-2.0
/*
 * Whether core/crc/crc_vpclmul.c may use the CPU's vector registers: on this CPU at all, and in this context. The
 * registers hold the state of user programs and of code that the softirq interrupted, so each use is a
 * kernel_fpu_begin() section of its own. Does not select the CRC method (crc.c).
 */
#include "core/crc/crc_vpclmul.h"

#ifdef ROAN_HAVE_VPCLMUL
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

/* A UML kernel is a host process: the host saves its registers, also around signals. */
static bool os_saves_xstate(u32 bits)
{
#ifdef CONFIG_UML
	return true;
#else
	return cpu_has_xfeatures(XFEATURE_MASK_YMM | (bits == 512 ? XFEATURE_MASK_AVX512 : 0), NULL);
#endif
}

/* Some CPUs reduce their clock for a while after 512-bit instructions; kernels from 6.14 on flag them. */
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
