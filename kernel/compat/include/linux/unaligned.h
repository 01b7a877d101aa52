/* SPDX-License-Identifier: GPL-2.0 */
/* Used only with kernels that do not have linux/unaligned.h; see kernel/compat/probe.sh. */
#include <asm/unaligned.h>
