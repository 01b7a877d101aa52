// SPDX-License-Identifier: GPL-2.0
/* What makes the suites of this folder a module; each suite registers itself. */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit suites of roan");
MODULE_LICENSE("GPL");
