// SPDX-License-Identifier: GPL-2.0
/* Module boilerplate for the suites of this folder. Each suite registers itself. */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit suites of roan");
MODULE_LICENSE("GPL");
