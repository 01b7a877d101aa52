/* SPDX-License-Identifier: GPL-2.0 */
/* On the include path only of kernels that have no linux/unaligned.h of their own yet. */
#include <asm/unaligned.h>
